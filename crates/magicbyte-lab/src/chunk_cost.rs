//! The cost of the batches in a chunk of a log, and the report on any number of chunks.

use std::collections::BTreeMap;

use magicbyte::{Batch, Batches, Decompressor, Result};
use magicbyte_log::steps::{BatchCounts, Chunk, ChunkReader};
use magicbyte_log::{ChunkResult, LISTED, LogError, LogResult, Problems};

use crate::cost::{Cost, Format, Tally};

/// The cost of a chunk's batches.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct ChunkCost {
    /// The account of the chunk.
    pub result: ChunkResult,
    /// Damage.
    #[serde(flatten)]
    pub problems: Problems,
    /// The good batches by magic: data, control batches and aborted transactions, inside and outside the requested offsets.
    pub magics: BTreeMap<i8, Tally>,
}

/// Reads a chunk and adds up what its batches cost. Every record is decoded.
///
/// # Errors
/// [`LogError::Io`]. Damage is not an error.
pub fn chunk_cost(chunk: Chunk, max_decompressed_bytes: usize) -> LogResult<ChunkCost> {
    let location = chunk.location.clone();
    let io = |error| LogError::io(location.path(), error);
    let mut decompressor = Decompressor::with_limit(max_decompressed_bytes);
    let mut magics = BTreeMap::<i8, Tally>::new();
    let mut reader = ChunkReader::open(chunk, true, max_decompressed_bytes).map_err(io)?.max_problems(LISTED);
    while let Some((data, disposition)) = reader.next_batch().map_err(io)? {
        let batch = data.batch();
        match batch_cost(&batch, &reader, &mut decompressor) {
            Ok((tally, counts)) => {
                if !reader.chunk().is_deleted(batch.last_offset()) {
                    *magics.entry(batch.magic()).or_default() += tally;
                }
                reader.good(&data, batch.last_offset(), disposition, counts);
            }
            Err(error) => reader.bad(&data, &error),
        }
    }
    let mut problems = Problems::default();
    reader.move_problems(&mut problems);
    Ok(ChunkCost { result: reader.result().clone(), problems, magics })
}

fn batch_cost(
    batch: &Batch<'_>,
    reader: &ChunkReader,
    decompressor: &mut Decompressor,
) -> Result<(Tally, BatchCounts)> {
    let mut tally = Tally::default();
    let mut counts = BatchCounts::default();
    tally.add_visiting(batch, decompressor, |record| {
        counts.first_offset.get_or_insert(record.offset());
        counts.last_offset = Some(record.offset());
        counts.announced += 1;
        reader.leaves_out(record.offset(), &mut counts);
    })?;
    Ok((tally, counts))
}

/// The cost of batches as they are, and in each format.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct CostReport {
    /// Batches of magic 2, wrappers, and messages outside a wrapper.
    pub batches: u64,
    /// Records, control records included.
    pub records: u64,
    /// Headers of records.
    pub headers: u64,
    /// Bytes of the batches as stored.
    pub stored: u64,
    /// The bytes by field, each batch in its own magic, with records decompressed.
    pub decompressed: Cost,
    /// The bytes by field in each format; decompressed, without padding.
    pub formats: BTreeMap<Format, Cost>,
}

impl CostReport {
    /// Adds up the costs of chunks.
    #[must_use]
    pub fn of<'a>(chunks: impl IntoIterator<Item = &'a ChunkCost>) -> Self {
        let mut magics = BTreeMap::<i8, Tally>::new();
        for (&magic, &tally) in chunks.into_iter().flat_map(|chunk| &chunk.magics) {
            *magics.entry(magic).or_default() += tally;
        }
        Self::of_magics(&magics)
    }

    /// Adds up the costs of batches one after the other in memory. Every record is decoded.
    ///
    /// ```
    /// use magicbyte_lab::chunk_cost::CostReport;
    /// use magicbyte::{Compression, Decompressor, RecordsBuilder};
    ///
    /// let mut builder = RecordsBuilder::v2(Compression::None);
    /// builder.append(0, 1_700_000_000_000, None, Some(b"hello"), &[])?;
    /// let cost = CostReport::of_batches(&builder.build()?, &mut Decompressor::new())?;
    /// assert_eq!((cost.stored, cost.decompressed.records.values), (73, 5));
    /// # Ok::<(), magicbyte::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Batches`], of [`Tally::add`], and of an incomplete last batch; CRCs are not checked.
    pub fn of_batches(data: &[u8], decompressor: &mut Decompressor) -> Result<Self> {
        let mut magics = BTreeMap::<i8, Tally>::new();
        let mut batches = Batches::new(data);
        for batch in &mut batches {
            let batch = batch?;
            magics.entry(batch.magic()).or_default().add(&batch, decompressor)?;
        }
        batches.truncated().map_or_else(|| Ok(Self::of_magics(&magics)), Err)
    }

    fn of_magics(magics: &BTreeMap<i8, Tally>) -> Self {
        let mut all = Tally::default();
        let mut decompressed = Cost::default();
        for (&magic, &tally) in magics {
            all += tally;
            let format =
                [Format::Magic0, Format::Magic1, Format::Magic2][usize::from(magic.clamp(0, 2) as u8)];
            let cost = Cost::of(&tally, format);
            decompressed.batches += cost.batches;
            decompressed.records += cost.records;
            decompressed.records.padding += tally.padding;
        }
        Self {
            batches: all.batches,
            records: all.records,
            headers: all.headers,
            stored: all.stored,
            decompressed,
            formats: Format::ALL.map(|format| (format, Cost::of(&all, format))).into(),
        }
    }
}
