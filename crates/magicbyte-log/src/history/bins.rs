//! A log summarized in a few hundred bins, however many batches it has, for charts.

use magicbyte::Batch;

/// The codecs that bins count, in the order of their IDs. The last name stands for unknown IDs.
pub const CODECS: [&str; 6] = ["none", "gzip", "snappy", "lz4", "zstd", "unknown"];

/// The number of bins at which a segment's are joined in pairs.
const MOST: usize = 256;

/// Consecutive batches.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Bin {
    /// The first offset.
    pub first_offset: i64,
    /// The last offset (inclusive).
    pub last_offset: i64,
    /// The number of batches.
    pub batches: u64,
    /// The number of control batches.
    pub control_batches: u64,
    /// Records; a legacy wrapper that does not decode counts as none.
    pub records: u64,
    /// Bytes as stored.
    pub bytes: u64,
    /// Bytes of control batches, as stored.
    pub control_bytes: u64,
    /// Bytes of the smallest batch of data; 0 if there is none.
    pub smallest: u64,
    /// Bytes of the largest batch of data; 0 if there is none.
    pub largest: u64,
    /// Offsets missing within and between its batches.
    pub missing: u64,
    /// The largest timestamp of data (ms); -1 if there is none.
    pub max_timestamp: i64,
    /// Bytes by codec, in the order of [`CODECS`].
    pub codecs: [u64; CODECS.len()],
}

impl Bin {
    fn of(batch: &Batch<'_>, size: usize, first_offset: i64, records: u64, missing: u64) -> Self {
        let bytes = size as u64;
        let mut codecs = [0; CODECS.len()];
        codecs[codec_of(batch)] = bytes;
        let is_control = batch.is_control();
        let size_of_data = if is_control { 0 } else { bytes };
        Self {
            first_offset,
            last_offset: batch.last_offset(),
            batches: 1,
            control_batches: is_control.into(),
            records,
            bytes,
            control_bytes: bytes - size_of_data,
            smallest: size_of_data,
            largest: size_of_data,
            missing,
            max_timestamp: if is_control { -1 } else { batch.max_timestamp() },
            codecs,
        }
    }

    fn join(&mut self, next: &Self) {
        self.last_offset = next.last_offset;
        self.smallest = match (self.smallest, next.smallest) {
            (0, smallest) | (smallest, 0) => smallest,
            (a, b) => a.min(b),
        };
        self.batches += next.batches;
        self.control_batches += next.control_batches;
        self.records += next.records;
        self.bytes += next.bytes;
        self.control_bytes += next.control_bytes;
        self.largest = self.largest.max(next.largest);
        self.missing = self.missing.saturating_add(next.missing);
        self.max_timestamp = self.max_timestamp.max(next.max_timestamp);
        self.codecs.iter_mut().zip(next.codecs).for_each(|(sum, bytes)| *sum += bytes);
    }
}

/// The index of a batch's codec in [`CODECS`].
pub(crate) fn codec_of(batch: &Batch<'_>) -> usize {
    let name = batch.compression().map_or("unknown", |codec| codec.name());
    CODECS.iter().position(|&codec| codec == name).unwrap_or(CODECS.len() - 1)
}

/// Bins of equally many batches; the number doubles whenever there are too many bins.
#[derive(Debug)]
pub(crate) struct Bins {
    bins: Vec<Bin>,
    batches_each: u64,
}

impl Default for Bins {
    fn default() -> Self {
        Self { bins: Vec::new(), batches_each: 1 }
    }
}

impl Bins {
    pub(crate) fn add(
        &mut self,
        batch: &Batch<'_>,
        size: usize,
        first_offset: i64,
        records: u64,
        missing: u64,
    ) {
        let bin = Bin::of(batch, size, first_offset, records, missing);
        if let Some(last) = self.bins.last_mut().filter(|last| last.batches < self.batches_each) {
            return last.join(&bin);
        }
        if self.bins.len() == MOST {
            self.bins = join_adjacent(&self.bins, 2);
            self.batches_each *= 2;
        }
        self.bins.push(bin);
    }

    pub(crate) fn finish(self) -> Vec<Bin> {
        self.bins
    }
}

/// Joins adjacent bins evenly, down to at most `most`.
pub(crate) fn at_most(bins: &[Bin], most: usize) -> Vec<Bin> {
    join_adjacent(bins, bins.len().div_ceil(most).max(1))
}

fn join_adjacent(bins: &[Bin], each: usize) -> Vec<Bin> {
    let join = |group: &[Bin]| {
        let mut joined = group[0].clone();
        group[1..].iter().for_each(|next| joined.join(next));
        joined
    };
    bins.chunks(each).map(join).collect()
}
