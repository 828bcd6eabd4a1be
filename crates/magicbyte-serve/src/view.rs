//! A partition's log as it is served: its plan, and the chunks' maps, which are made when they are needed.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex};

use magicbyte::Batch;
use magicbyte::state::{
    AbortedTransaction, IsolationLevel, TransactionEvent, Transactions, last_stable_offset,
};
use magicbyte_log::internals::{Content, HeaderVisitor, is_same_file, survey_with};
use magicbyte_log::steps::{Chunk, Plan, Survey, plan_partition};
use magicbyte_log::{Listing, LogError, LogResult, PlanOptions, Segment};

use crate::batch_map::BatchMap;
use crate::lock::lock;
use crate::memory::Budget;

/// The number of maps that are kept: the maps of 16 GiB of log, at most 2 KiB each unless the log is badly damaged.
const MAPS_KEPT: usize = 4096;

/// The options that determine the view of a log.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ViewOptions {
    /// The log ends before the first batch with a later timestamp (ms).
    pub(super) as_of: Option<i64>,
    /// The log ends at the last stable offset, and has no batches of aborted transactions.
    pub(super) read_committed_only: bool,
}

/// A log at one time.
#[derive(Debug)]
pub(super) struct View {
    pub(super) plan: Plan,
    pub(super) start: i64,
    /// The log end offset, and the high watermark.
    pub(super) end: i64,
    pub(super) last_stable_offset: i64,
    /// In the order of their markers.
    pub(super) aborted: Vec<AbortedTransaction>,
    slots: Vec<Arc<Slot>>,
}

/// A chunk with its map, once that was needed.
#[derive(Debug)]
pub(super) struct Slot {
    chunk: Chunk,
    map: Mutex<Option<Arc<BatchMap>>>,
}

impl View {
    /// Joins the surveys of a listing's segments. The maps of chunks that `before` has, too, are kept.
    pub(super) fn of(
        listing: &Listing,
        mut surveys: Vec<Survey>,
        options: ViewOptions,
        before: Option<&Self>,
    ) -> LogResult<Self> {
        // Names may be wrong, and transactions are folded in the order of offsets.
        surveys.sort_by_key(|survey| survey.first_offset.unwrap_or(survey.base_offset));
        let end = match options.as_of {
            Some(time) => end_as_of(&surveys, time)?,
            None => None,
        };
        if let Some(end) = end {
            for survey in &mut surveys {
                survey.transactions.retain(|event| {
                    let (TransactionEvent::Begin { offset, .. } | TransactionEvent::End { offset, .. }) =
                        event;
                    *offset < end
                });
                survey.leader_epochs.truncate_from_end(end);
            }
        }
        let isolation_level = match options.read_committed_only {
            true => IsolationLevel::ReadCommitted,
            false => IsolationLevel::ReadUncommitted,
        };
        let plan =
            plan_partition(listing, &surveys, PlanOptions { isolation_level, ..PlanOptions::default() })?;
        let last_segment = plan.segments.last().map_or(0, |last| last.segment.base_offset);
        let log_end = plan.next_offset.unwrap_or(last_segment);
        let log_end = end.map_or(log_end, |end| end.min(log_end));
        let first_segment = plan.segments.first().map_or(log_end, |first| first.segment.base_offset);
        let start = plan.first_offset.map_or(first_segment, |first| first.min(first_segment)).max(0);
        let start = plan.log_start_offset.map_or(start, |log_start| log_start.max(start)).min(log_end);
        let last_stable_offset = last_stable_offset(first_unstable_offset(&surveys), log_end).max(start);
        let log_end = if options.read_committed_only { last_stable_offset } else { log_end };
        // Their batches are left out already.
        let aborted = if options.read_committed_only { Vec::new() } else { plan.aborted.clone() };
        let before = before.map(|view| &view.slots).into_iter().flatten();
        let known: HashMap<_, _> =
            before.map(|slot| ((slot.chunk.location.path(), slot.chunk.start), slot)).collect();
        let slots = plan.chunks.iter().map(|chunk| {
            let before = known.get(&(chunk.location.path(), chunk.start)).filter(|slot| slot.is_of(chunk));
            let new = || Arc::new(Slot { chunk: chunk.clone(), map: Mutex::default() });
            before.map_or_else(new, |slot| Arc::clone(slot))
        });
        let slots = slots.collect();
        let mut plan = plan;
        plan.chunks = Vec::new();
        Ok(Self { plan, start: start.min(log_end), end: log_end, last_stable_offset, aborted, slots })
    }

    /// The chunks from the one on that may hold this offset.
    pub(super) fn slots_from(&self, offset: i64) -> &[Arc<Slot>] {
        let after = self.slots.partition_point(|slot| slot.chunk.expected_offset <= offset);
        &self.slots[after.saturating_sub(1)..]
    }
}

impl Slot {
    pub(super) fn chunk(&self) -> &Chunk {
        &self.chunk
    }

    /// True if the map also belongs to this chunk: a growing segment keeps its first chunks.
    fn is_of(&self, chunk: &Chunk) -> bool {
        fn bytes(chunk: &Chunk) -> (u64, u64, i64, Option<i64>, Option<i64>) {
            (chunk.start, chunk.end, chunk.expected_offset, chunk.start_offset, chunk.log_start_offset)
        }
        bytes(&self.chunk) == bytes(chunk)
            && is_same_file(self.chunk.version.as_deref(), chunk.version.as_deref())
            && self.chunk.aborted == chunk.aborted
    }

    /// The chunk's map, and whether it was made now.
    ///
    /// # Errors
    /// If no file can be opened or memory is exhausted.
    pub(super) fn map(
        self: &Arc<Self>,
        kept: &KeptMaps,
        budget: &Budget<'_>,
    ) -> io::Result<(Arc<BatchMap>, bool)> {
        let mut slot = lock(&self.map);
        if let Some(map) = &*slot {
            return Ok((Arc::clone(map), false));
        }
        // The largest batch is in memory, which may be the whole chunk.
        let _memory = budget.lend((self.chunk.end - self.chunk.start) as usize)?;
        let map = Arc::new(BatchMap::of(&self.chunk)?);
        *slot = Some(Arc::clone(&map));
        drop(slot);
        kept.keep(self);
        Ok((map, true))
    }
}

/// The chunks whose maps are in memory, oldest first.
#[derive(Debug, Default)]
pub(super) struct KeptMaps(Mutex<VecDeque<Arc<Slot>>>);

impl KeptMaps {
    fn keep(&self, slot: &Arc<Slot>) {
        let mut kept = lock(&self.0);
        kept.push_back(Arc::clone(slot));
        let oldest = if kept.len() > MAPS_KEPT { kept.pop_front() } else { None };
        drop(kept);
        if let Some(oldest) = oldest {
            *lock(&oldest.map) = None;
        }
    }
}

/// The survey's scan of one segment, as it is served.
pub(super) fn survey(segment: &Segment) -> LogResult<Survey> {
    survey_with(segment, ())
}

fn first_unstable_offset(surveys: &[Survey]) -> Option<i64> {
    let mut transactions = Transactions::default();
    for survey in surveys {
        survey.transactions.iter().for_each(|&event| transactions.apply(event));
    }
    transactions.first_unstable_offset()
}

/// The end of the log as it was at this time (ms): where the first batch with a later timestamp begins. None if there
/// is none.
fn end_as_of(surveys: &[Survey], time: i64) -> LogResult<Option<i64>> {
    struct FirstLater {
        time: i64,
        next: i64,
        offset: Option<i64>,
    }

    impl HeaderVisitor for FirstLater {
        fn visit(&mut self, batch: &Batch<'_>, _size: usize, _content: Option<&Content>) {
            if self.offset.is_none() && batch.max_timestamp() > self.time {
                // A wrapper's header has its last offset.
                let is_wrapper = batch.magic() < 2;
                self.offset = Some(if is_wrapper { self.next } else { batch.stored_offset() });
            }
            self.next = batch.last_offset().saturating_add(1);
        }
    }

    for survey in surveys.iter().filter(|survey| survey.max_timestamp > time) {
        let mut visitor = FirstLater { time, next: survey.base_offset, offset: None };
        survey_with(&survey.segment, &mut visitor)?;
        if visitor.offset.is_some() {
            return Ok(visitor.offset);
        }
    }
    Ok(None)
}

/// A usage error as an error of the operating system, which is all that a client is told.
pub(super) fn io_error(error: LogError) -> io::Error {
    match error {
        LogError::Io { source, .. } => source,
        other => io::Error::other(other.to_string()),
    }
}
