//! Runs of batches in a file: what its headers say about the partition that a run belongs to.

use std::collections::HashSet;
use std::io;

use magicbyte::{Batch, DEFAULT_MAX_DECOMPRESSED_BYTES, Decompressor, RecordBatch};

use crate::error::{LogError, LogResult};
use crate::runs::marks::{BatchMark, Marks};
use crate::segment::blocks::Blocks;
use crate::segment::salvage::{WholeBatch, WholeBatches};
use crate::storage::file_info::Found;
use crate::storage::location::Location;

const BLOCK: usize = 4 << 20;
/// File systems place files at multiples of this many bytes.
const SECTOR: u64 = 512;
/// The producers of a run that are kept.
const MAX_PRODUCERS: usize = 64;

/// Batches of one log, end to end in a file, with rising offsets.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct BatchRun {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// The number of batches.
    pub batches: u64,
    /// The first offset.
    pub first_offset: i64,
    /// The last offset.
    pub last_offset: i64,
    /// Offsets between the batches that are in none: they were compacted away.
    pub gaps: u64,
    /// The leader epoch of the first batch; -1 in magic 0 and 1.
    pub first_epoch: i32,
    /// The leader epoch of the last batch.
    pub last_epoch: i32,
    /// The largest timestamp in ms.
    pub max_timestamp: i64,
    /// True if the run's length is written right before it: the run is a value of another record, which is damaged.
    pub is_value: bool,
    /// Marks of some batches with data, by which copies of them are recognized.
    pub marks: Vec<BatchMark>,
    /// The first producers by their first batches.
    pub producers: Vec<ProducerRun>,
}

/// The batches of one producer in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct ProducerRun {
    /// The producer's ID.
    pub producer_id: i64,
    /// The producer's epoch in its first batch.
    pub first_epoch: i16,
    /// The base sequence of its first batch.
    pub first_sequence: i32,
    /// The producer's epoch in its last batch.
    pub last_epoch: i16,
    /// The sequence that follows its last batch.
    pub next_sequence: i32,
}

/// A file's runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct FoundRuns {
    /// The file's size in bytes.
    pub size: u64,
    /// The runs by position.
    pub runs: Vec<BatchRun>,
    /// True if the file has more than the requested number of runs.
    pub is_cut: bool,
    /// The reason why the file could not be read to its end, if it could not.
    pub unreadable: Option<String>,
}

/// Finds the runs of whole batches in a file of any kind: at most `max_runs`. A batch counts if its CRC holds and
/// it is not inside of such a batch. The runs have the `wanted` marks of their batches, besides some others. Cost: one
/// read of the file.
///
/// # Errors
/// [`LogError::Io`] if the file does not exist or is not a regular file, or memory is exhausted.
pub fn find_runs(location: &Location, max_runs: usize, wanted: &[BatchMark]) -> LogResult<FoundRuns> {
    let io = |error| LogError::io(location.path(), error);
    let info = match location.examine().map_err(io)? {
        Found::File(info) => info,
        Found::Other(_, why) => return Err(io(io::Error::new(io::ErrorKind::InvalidInput, why))),
    };
    let mut blocks = Blocks::open(location, info.size, None, BLOCK).map_err(io)?;
    blocks.read_through(&(0..info.size));
    let mut batches = WholeBatches::new(blocks, DEFAULT_MAX_DECOMPRESSED_BYTES);
    let mut found = FoundRuns { size: info.size, ..FoundRuns::default() };
    let wanted = wanted.iter().copied().collect();
    let mut current: Option<Current> = None;
    let mut decompressor = Decompressor::new();
    while let Some(whole) = batches.next().map_err(io)? {
        let Ok(batch) = Batch::from_frame(&whole.data, whole.position) else { continue };
        let first = batch.base_offset(&mut decompressor).unwrap_or_else(|_| batch.stored_offset());
        if let Some(run) = current.as_mut().filter(|run| run.continues(&batch, first)) {
            run.push(&batch, first, &wanted);
            continue;
        }
        found.runs.extend(current.take().map(Current::finish));
        if found.runs.len() == max_runs {
            found.is_cut = true;
            return Ok(found);
        }
        current = Some(Current::begin(&whole, &batch, first, &wanted));
    }
    found.runs.extend(current.map(Current::finish));
    found.unreadable = batches.failure().map(ToString::to_string);
    Ok(found)
}

/// The run that the last batch belongs to.
struct Current {
    run: BatchRun,
    first: WholeBatch,
    marks: Marks,
}

impl Current {
    fn begin(whole: &WholeBatch, batch: &Batch<'_>, first_offset: i64, wanted: &HashSet<BatchMark>) -> Self {
        let epoch = batch.partition_leader_epoch();
        let run = BatchRun {
            start: whole.position,
            end: whole.position,
            batches: 0,
            first_offset,
            last_offset: first_offset.saturating_sub(1),
            gaps: 0,
            first_epoch: epoch,
            last_epoch: epoch,
            max_timestamp: -1,
            is_value: false,
            marks: Vec::new(),
            producers: Vec::new(),
        };
        let mut current = Self { run, first: whole.without_data(), marks: Marks::default() };
        current.push(batch, first_offset, wanted);
        current
    }

    /// True if the batch is the next one of the same log. Where a file may begin, it has to follow without a gap.
    fn continues(&self, batch: &Batch<'_>, first_offset: i64) -> bool {
        let run = &self.run;
        let is_next = first_offset.checked_sub(1) == Some(run.last_offset);
        batch.position() == run.end
            && first_offset > run.last_offset
            && batch.partition_leader_epoch() >= run.last_epoch
            && (is_next || !run.end.is_multiple_of(SECTOR))
    }

    fn push(&mut self, batch: &Batch<'_>, first_offset: i64, wanted: &HashSet<BatchMark>) {
        let run = &mut self.run;
        run.gaps = run.gaps.saturating_add(first_offset.abs_diff(run.last_offset).saturating_sub(1));
        run.end += batch.size_in_bytes() as u64;
        run.batches += 1;
        run.last_offset = batch.last_offset().max(first_offset);
        run.last_epoch = batch.partition_leader_epoch();
        run.max_timestamp = run.max_timestamp.max(batch.max_timestamp());
        // The markers of a transaction in several partitions may be equal.
        if !batch.is_control() {
            self.marks.add(BatchMark::of(batch), wanted);
        }
        if let Some(batch) = batch.as_v2() {
            add_producer(&mut run.producers, batch);
        }
    }

    fn finish(self) -> BatchRun {
        let Self { run, first, marks } = self;
        BatchRun { is_value: first.begins_a_value(run.end), marks: marks.finish(), ..run }
    }
}

fn add_producer(producers: &mut Vec<ProducerRun>, batch: &RecordBatch<'_>) {
    let (producer_id, epoch, sequence) = (batch.producer_id(), batch.producer_epoch(), batch.base_sequence());
    // A control batch has no sequence.
    if producer_id < 0 || sequence < 0 {
        return;
    }
    let next_sequence = batch.last_sequence().checked_add(1).unwrap_or(0);
    if let Some(known) = producers.iter_mut().find(|known| known.producer_id == producer_id) {
        (known.last_epoch, known.next_sequence) = (epoch, next_sequence);
    } else if producers.len() < MAX_PRODUCERS {
        producers.push(ProducerRun {
            producer_id,
            first_epoch: epoch,
            first_sequence: sequence,
            last_epoch: epoch,
            next_sequence,
        });
    }
}
