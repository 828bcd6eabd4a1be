//! Digests of the records of a log by ranges of offsets, to compare two logs.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use twox_hash::XxHash3_128;
use twox_hash::xxhash3_128::Hasher;

use magicbyte::state::{AbortedFilter, Admission};
use magicbyte::{Batch, Batches, Decompressor, Record, Result, TimestampType};
use magicbyte_log::internals::open_regular;
use magicbyte_log::steps::{BatchCounts, Chunk, ChunkReader};
use magicbyte_log::{ChunkResult, Disposition, LISTED, Problems};

use crate::digest::write_blob;

/// The bytes of a file that are hashed at once.
const BLOCK: usize = 256 << 10;

/// The records of one range of offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeDigest {
    /// The number of the range: the offsets divided by the width.
    pub range: i64,
    /// The number of records, control records included.
    pub records: u64,
    /// The sum of the records' hashes, modulo 2^128: the digest of several chunks is the sum of theirs.
    pub digest: u128,
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordDigest {
    /// The offset of the record.
    pub offset: i64,
    /// Its hash, as in a [`RangeDigest`].
    pub digest: u128,
}

/// The digests of a chunk.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChunkDigests {
    /// The ranges that have records, in order.
    pub ranges: Vec<RangeDigest>,
    /// The account of the chunk.
    pub result: ChunkResult,
    /// Its problems.
    pub problems: Problems,
}

/// Decodes every record of a chunk that a reader sees, and adds up hashes of the records in each range of `width` offsets: the 128-bit
/// XXH3 of offset, timestamp, its type, key, value and headers, and whether it is a control record. So codec, magic
/// and batch of a record make no difference. A record of magic 0, which has no timestamp, equals one with -1. Without
/// control records, the digests are those of a table's rows ([`digest_rows`](crate::digest_rows)).
///
/// # Errors
/// If no file can be opened or memory is exhausted. Damage is a problem of the result.
pub fn digest_chunk(
    chunk: Chunk,
    width: i64,
    max_decompressed_bytes: usize,
    with_control: bool,
) -> io::Result<ChunkDigests> {
    let mut reader = ChunkReader::open(chunk, true, max_decompressed_bytes)?.max_problems(LISTED);
    let mut decompressor = Decompressor::with_limit(max_decompressed_bytes);
    let (mut ranges, mut of_batch) = (Vec::new(), Vec::new());
    let mut bytes = Vec::new();
    while let Some((data, disposition)) = reader.next_batch()? {
        of_batch.clear();
        let batch = data.batch();
        let is_control = disposition == Disposition::Control;
        let digested = digest_batch(&batch, &mut decompressor, |record, counts: &mut BatchCounts| {
            if reader.leaves_out(record.offset(), counts) {
                return;
            }
            let range = record.offset().div_euclid(width.max(1));
            let digest = hash_of(record, is_control, &mut bytes);
            add(&mut of_batch, RangeDigest { range, records: 1, digest });
        });
        match digested {
            Ok(counts) => {
                reader.good(&data, batch.last_offset(), disposition, counts);
                if disposition != Disposition::Aborted && (with_control || !is_control) {
                    of_batch.iter().for_each(|&digest| add(&mut ranges, digest));
                }
            }
            Err(error) => reader.bad(&data, &error),
        }
    }
    let mut problems = Problems::default();
    reader.move_problems(&mut problems);
    Ok(ChunkDigests { ranges, result: reader.result().clone(), problems })
}

/// The 128-bit XXH3 of the bytes of a chunk of a local file, whatever the file's version is by now. It proves that
/// these bytes are still those of an earlier digest, and is much cheaper than a digest: nothing is decoded.
///
/// # Errors
/// If the file cannot be read; [`io::ErrorKind::UnexpectedEof`] if it ends before the chunk does.
pub fn hash_chunk(chunk: &Chunk) -> io::Result<u128> {
    let mut file = open_regular(chunk.location.path())?;
    file.seek(SeekFrom::Start(chunk.start))?;
    let mut left = chunk.end.saturating_sub(chunk.start);
    let mut hasher = Hasher::new();
    let mut block = vec![0; BLOCK];
    while left > 0 {
        let size = usize::try_from(left).map_or(BLOCK, |left| left.min(BLOCK));
        file.read_exact(&mut block[..size])?;
        hasher.write(&block[..size]);
        left -= size as u64;
    }
    Ok(hasher.finish_128())
}

/// The digests of batches that a broker has sent, as [`digest_chunk`] makes them of files.
#[derive(Debug)]
pub struct FetchDigests {
    width: i64,
    with_control: bool,
    decompressor: Decompressor,
    ranges: Vec<RangeDigest>,
    errors: Vec<(Range<i64>, magicbyte::Error)>,
    errors_left_out: u64,
    bytes: Vec<u8>,
}

impl FetchDigests {
    /// Digests of ranges of `width` offsets, with or without those of control records.
    #[must_use]
    pub fn new(width: i64, max_decompressed_bytes: usize, with_control: bool) -> Self {
        Self {
            width: width.max(1),
            with_control,
            decompressor: Decompressor::with_limit(max_decompressed_bytes),
            ranges: Vec::new(),
            errors: Vec::new(),
            errors_left_out: 0,
            bytes: Vec::new(),
        }
    }

    /// Adds the records of these offsets. With a filter, those of aborted transactions are left out. A batch that does
    /// not decode is an error of its offsets, and has no digest.
    pub fn add(&mut self, records: &[u8], offsets: &Range<i64>, mut aborted: Option<AbortedFilter>) {
        let mut next_offset = offsets.start;
        for batch in Batches::new(records) {
            let first_offset = next_offset;
            let added = batch.and_then(|batch| {
                next_offset = batch.last_offset() + 1;
                self.add_batch(&batch, offsets, aborted.as_mut())
            });
            match added {
                Ok(()) => {}
                Err(error) if self.errors.len() < LISTED => {
                    self.errors.push((first_offset..next_offset, error));
                }
                Err(_) => self.errors_left_out += 1,
            }
        }
    }

    fn add_batch(
        &mut self,
        batch: &Batch<'_>,
        offsets: &Range<i64>,
        aborted: Option<&mut AbortedFilter>,
    ) -> Result<()> {
        batch.verify()?;
        if let Some(aborted) = aborted
            && aborted.admit(batch, &mut self.decompressor)? == Admission::Aborted
        {
            return Ok(());
        }
        let counts = self.with_control || !batch.is_control();
        let (bytes, mut of_batch) = (&mut self.bytes, Vec::new());
        digest_batch(batch, &mut self.decompressor, |record, _| {
            if counts && offsets.contains(&record.offset()) {
                let range = record.offset().div_euclid(self.width);
                let digest = hash_of(record, batch.is_control(), bytes);
                add(&mut of_batch, RangeDigest { range, records: 1, digest });
            }
        })?;
        of_batch.iter().for_each(|&digest| add(&mut self.ranges, digest));
        Ok(())
    }

    /// The ranges that have records, in order.
    #[must_use]
    pub fn ranges(&self) -> &[RangeDigest] {
        &self.ranges
    }

    /// The offsets of batches that did not decode, with the reasons, and the number of those that are not listed.
    #[must_use]
    pub fn errors(&self) -> (&[(Range<i64>, magicbyte::Error)], u64) {
        (&self.errors, self.errors_left_out)
    }
}

/// The digest of the record with this offset, or of the last record with None; None if the batch has no such record.
///
/// # Errors
/// If the batch is damaged, or does not decode within the decompressor's limit.
pub fn digest_record(
    batch: &Batch<'_>,
    offset: Option<i64>,
    decompressor: &mut Decompressor,
) -> Result<Option<RecordDigest>> {
    batch.verify()?;
    let (mut found, mut bytes) = (None, Vec::new());
    digest_batch(batch, decompressor, |record, _| {
        if offset.is_none_or(|offset| offset == record.offset()) {
            let digest = hash_of(record, batch.is_control(), &mut bytes);
            found = Some(RecordDigest { offset: record.offset(), digest });
        }
    })?;
    Ok(found)
}

/// Visits all records of a batch, and counts them.
fn digest_batch(
    batch: &Batch<'_>,
    decompressor: &mut Decompressor,
    mut visit: impl FnMut(&Record<'_>, &mut BatchCounts),
) -> Result<BatchCounts> {
    let mut counts = BatchCounts::default();
    for record in batch.records(decompressor)? {
        let record = record?;
        counts.announced += 1;
        counts.first_offset.get_or_insert(record.offset());
        counts.last_offset = Some(record.offset());
        visit(&record, &mut counts);
    }
    Ok(counts)
}

/// Adds records to the last range, or begins another one: offsets increase.
fn add(ranges: &mut Vec<RangeDigest>, more: RangeDigest) {
    match ranges.last_mut() {
        Some(last) if last.range == more.range => {
            last.records += more.records;
            last.digest = last.digest.wrapping_add(more.digest);
        }
        _ => ranges.push(more),
    }
}

/// The hash of a record; `bytes` is memory to use again.
fn hash_of(record: &Record<'_>, is_control: bool, bytes: &mut Vec<u8>) -> u128 {
    bytes.clear();
    let is_append_time = record.timestamp_type() == TimestampType::LogAppendTime;
    write_place(record.offset(), record.timestamp(), is_append_time, is_control, bytes);
    write_content(record, bytes);
    XxHash3_128::oneshot(bytes)
}

/// Writes all of a record but its content.
pub(super) fn write_place(
    offset: i64,
    timestamp: i64,
    is_append_time: bool,
    is_control: bool,
    bytes: &mut Vec<u8>,
) {
    bytes.extend_from_slice(&offset.to_le_bytes());
    bytes.extend_from_slice(&timestamp.to_le_bytes());
    bytes.extend_from_slice(&[u8::from(is_append_time), u8::from(is_control)]);
}

/// Writes key, value and headers.
pub(super) fn write_content(record: &Record<'_>, bytes: &mut Vec<u8>) {
    write_blob(record.key(), bytes);
    write_blob(record.value(), bytes);
    let (_, headers) = record.headers().parts();
    bytes.extend_from_slice(&headers.to_le_bytes());
    for header in record.headers() {
        write_blob(Some(header.key), bytes);
        write_blob(header.value, bytes);
    }
}
