//! A partition as clients read it: its bounds, its batches from an offset on, and lookups by time. The directory is
//! surveyed when a client first requests any of them.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ::bytes::Bytes;

use magicbyte::convert::Converter;
use magicbyte::state::{AbortedTransaction, ProducerStateEntry};
use magicbyte::{Batches, DEFAULT_MAX_DECOMPRESSED_BYTES};
use magicbyte_broker::ListedOffset;
use magicbyte_broker::internals::{Bounds, ConsumedLog, Lookup, Slice, Wanted};
use magicbyte_log::internals::{FoundRecord, ProducerReplay, record_for_timestamp};
use magicbyte_log::steps::{Chunk, Survey};
use magicbyte_log::{Listing, Problem, list_partition};

use crate::batch_map::Run;
use crate::limits::MAX_FETCH_MEMORY;
use crate::lock::lock;
use crate::memory::Budget;
use crate::problem_log::ProblemLog;
use crate::span::{Part, Span, load};
use crate::view::{KeptMaps, View, ViewOptions, io_error, survey};

/// Below this size, copying bytes is cheaper than sending them from the file.
const COPIED: u64 = 32 << 10;
/// The minimum time between two listings of a growing directory.
const REFRESH: Duration = Duration::from_millis(200);
/// The time (ms) after which a broker forgets a producer without an open transaction (`producer.id.expiration.ms`), here
/// before the latest record rather than before now.
const PRODUCER_ID_EXPIRATION_MS: i64 = 86_400_000;

/// State that all partitions share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) view: ViewOptions,
    /// True if batches of magic 0 and 1 are converted.
    pub(super) to_magic_2: bool,
    /// True if the directories grow.
    pub(super) follow: bool,
    pub(super) problems: ProblemLog,
    pub(super) maps: KeptMaps,
}

/// A partition, of a directory or the list of problems.
#[derive(Debug)]
pub(super) enum Partition {
    Directory(Box<Directory>),
    Problems,
}

/// A partition's directory.
#[derive(Debug)]
pub(super) struct Directory {
    /// The directory that holds the partition's.
    pub(super) log_dir: String,
    /// Bytes of the segments.
    size: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    listing: Listing,
    view: Option<Arc<View>>,
    /// The surveys of a growing directory: surveys of unchanged segments are reused.
    surveys: Vec<Survey>,
    listed: Instant,
}

/// A log as it is now.
#[derive(Debug)]
pub(super) struct Snapshot<'a> {
    shared: &'a Shared,
    budget: &'a Budget<'a>,
    /// None for the list of problems.
    view: Option<Arc<View>>,
    bounds: Bounds,
}

impl Partition {
    pub(super) fn of(listing: Listing) -> Self {
        let log_dir = listing.location.path().parent().map_or(".".into(), Path::to_string_lossy).into_owned();
        let size = size_of_log(&listing).into();
        let state = State { listing, view: None, surveys: Vec::new(), listed: Instant::now() };
        Self::Directory(Box::new(Directory { log_dir, size, state: Mutex::new(state) }))
    }

    /// The log as it is now.
    ///
    /// # Errors
    /// If a file cannot be read now.
    pub(super) fn snapshot<'a>(
        &self,
        shared: &'a Shared,
        budget: &'a Budget<'a>,
    ) -> io::Result<Snapshot<'a>> {
        let (view, bounds) = match self {
            Self::Directory(directory) => {
                let view = directory.view(shared)?;
                let bounds = bounds_of(&view);
                (Some(view), bounds)
            }
            Self::Problems => {
                let end = shared.problems.end();
                let (first_epoch, leader_epoch) = (None, -1);
                (None, Bounds { start: 0, end, last_stable_offset: end, first_epoch, leader_epoch })
            }
        };
        Ok(Snapshot { shared, budget, view, bounds })
    }

    /// The producers that a broker would know at the end of the log, by a scan over all batch headers.
    ///
    /// # Errors
    /// If a file cannot be read now.
    pub(super) fn producers(&self, shared: &Shared) -> io::Result<Vec<ProducerStateEntry>> {
        match self {
            Self::Directory(directory) => directory.producers(shared),
            Self::Problems => Ok(Vec::new()),
        }
    }

    /// The answer to OffsetForLeaderEpoch: the epoch and where it ends.
    ///
    /// # Errors
    /// If a file cannot be read now.
    pub(super) fn end_of_epoch(&self, shared: &Shared, epoch: i32) -> io::Result<Option<(i32, i64)>> {
        match self {
            Self::Directory(directory) => {
                let view = directory.view(shared)?;
                Ok(view.plan.leader_epochs.end_offset_for_epoch(epoch, view.end))
            }
            Self::Problems => Ok(None),
        }
    }
}

impl ConsumedLog for Snapshot<'_> {
    type Records = Vec<Part>;
    type Error = io::Error;

    fn bounds(&self) -> Bounds {
        self.bounds
    }

    fn slice(&self, wanted: &Wanted) -> io::Result<Option<Slice<Vec<Part>>>> {
        if let Some(view) = &self.view {
            return read_view(view, self.shared, self.budget, *wanted);
        }
        let batches = self.shared.problems.read(wanted.offset, wanted.room(0) as usize);
        let records = batches.into_iter().map(Part::Memory).collect();
        Ok(Some(Slice { records, end: self.bounds.end }))
    }

    fn aborted(&self, offset: i64, end: i64) -> Vec<AbortedTransaction> {
        let aborted = self.view.iter().flat_map(|view| &view.aborted);
        let overlaps = |transaction: &&AbortedTransaction| {
            transaction.last_offset >= offset && transaction.first_offset < end
        };
        aborted.filter(overlaps).copied().collect()
    }

    fn find(&mut self, lookup: Lookup) -> io::Result<Option<ListedOffset>> {
        let Some(view) = &self.view else {
            let problems = &self.shared.problems;
            let problem = match lookup {
                Lookup::MaxTimestamp => problems.find_max_timestamp(),
                Lookup::Timestamp(timestamp) => problems.find_by_time(timestamp),
            };
            return Ok(problem.map(|(offset, timestamp)| ListedOffset::new(timestamp, offset, -1)));
        };
        // A batch of any size may have to be decompressed.
        let _memory = self.budget.lend(DEFAULT_MAX_DECOMPRESSED_BYTES)?;
        let record = match lookup {
            Lookup::MaxTimestamp => {
                let max = view.plan.segments.iter().map(|segment| segment.max_timestamp).max();
                let record = max.map_or(Ok(None), |max| record_for_timestamp(&view.plan, max));
                // `RecordBatch.offsetOfMaxTimestamp`: -1 is a timestamp except in magic 0.
                record.map(|record| record.filter(|record| record.magic > 0))
            }
            Lookup::Timestamp(timestamp) => record_for_timestamp(&view.plan, timestamp),
        };
        let listed = |record: FoundRecord| {
            let FoundRecord { offset, timestamp, leader_epoch, .. } = record;
            ListedOffset::new(timestamp, offset, leader_epoch)
        };
        Ok(record.map_err(io_error)?.map(listed))
    }
}

fn bounds_of(view: &View) -> Bounds {
    let leader_epoch = view.plan.leader_epochs.latest().map_or(-1, |last| last.epoch);
    let last_stable_offset = view.last_stable_offset.min(view.end);
    let first_epoch = view.plan.leader_epochs.earliest();
    Bounds { start: view.start, end: view.end, last_stable_offset, first_epoch, leader_epoch }
}

fn size_of_log(listing: &Listing) -> u64 {
    listing.segments.iter().map(|segment| segment.size).sum()
}

impl Directory {
    /// Bytes of the segments, as they were when last listed.
    pub(super) fn size(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    fn producers(&self, shared: &Shared) -> io::Result<Vec<ProducerStateEntry>> {
        let view = self.view(shared)?;
        let segments = view.plan.segments.iter().map(|planned| &planned.segment);
        let ProducerReplay { mut producers, max_timestamp, .. } =
            ProducerReplay::of(segments, view.start..view.end).map_err(io_error)?;
        producers.expire(max_timestamp.saturating_sub(PRODUCER_ID_EXPIRATION_MS));
        Ok(producers.entries().to_vec())
    }

    /// The log as it is now.
    fn view(&self, shared: &Shared) -> io::Result<Arc<View>> {
        let mut state = lock(&self.state);
        if let Some(view) = &state.view
            && !(shared.follow && state.listed.elapsed() >= REFRESH)
        {
            return Ok(Arc::clone(view));
        }
        if shared.follow {
            let mut listing = list_partition(state.listing.location.clone(), false).map_err(io_error)?;
            state.listed = Instant::now();
            listing.checkpoints = state.listing.checkpoints;
            listing.include_deleted_records = state.listing.include_deleted_records;
            listing.read_log_start();
            let is_same = listing.segments == state.listing.segments
                && listing.log_start_offset() == state.listing.log_start_offset();
            if let Some(view) = state.view.as_ref().filter(|_| is_same) {
                return Ok(Arc::clone(view));
            }
            self.size.store(size_of_log(&listing), Ordering::Relaxed);
            state.listing = listing;
        }
        let mut known = std::mem::take(&mut state.surveys);
        let mut surveys = Vec::new();
        for segment in &state.listing.segments {
            surveys.push(match known.iter().position(|survey| survey.segment == *segment) {
                Some(index) => known.swap_remove(index),
                None => survey(segment).map_err(io_error)?,
            });
        }
        if shared.follow {
            state.surveys.clone_from(&surveys);
        }
        let view = View::of(&state.listing, surveys, shared.view, state.view.as_deref()).map_err(io_error)?;
        view.plan.problems.iter().for_each(|problem| shared.report(problem));
        let view = Arc::new(view);
        state.view = Some(Arc::clone(&view));
        Ok(view)
    }
}

impl Shared {
    fn report(&self, problem: &Problem) {
        // The last batch of a growing log may not be whole yet.
        if !(self.follow && problem.kind == "partial_batch") {
            self.problems.add(problem);
        }
    }
}

fn read_view(
    view: &View,
    shared: &Shared,
    budget: &Budget<'_>,
    wanted: Wanted,
) -> io::Result<Option<Slice<Vec<Part>>>> {
    let mut reading =
        Reading { shared, budget, wanted, taken: 0, memory: 0, parts: Vec::new(), last_offset: None };
    'chunks: for slot in view.slots_from(wanted.offset) {
        if slot.chunk().expected_offset >= wanted.limit || reading.is_full() {
            break;
        }
        let (map, is_new) = slot.map(&shared.maps, budget)?;
        if is_new {
            map.problems.iter().for_each(|problem| shared.report(problem));
        }
        let first = map.runs.partition_point(|run| run.last_offset < wanted.offset);
        for run in &map.runs[first..] {
            if !reading.take(slot.chunk(), run)? {
                break 'chunks;
            }
        }
    }
    let records = reading.parts;
    Ok(reading.last_offset.map(|last| Slice { records, end: last.saturating_add(1) }))
}

struct Reading<'a> {
    shared: &'a Shared,
    budget: &'a Budget<'a>,
    wanted: Wanted,
    taken: u64,
    /// Bytes in memory.
    memory: u64,
    parts: Vec<Part>,
    last_offset: Option<i64>,
}

impl Reading<'_> {
    fn is_full(&self) -> bool {
        !self.fits(1)
    }

    fn fits(&self, size: u64) -> bool {
        let first = if self.taken == 0 { size } else { 0 };
        self.taken + size <= self.wanted.room(first)
    }

    /// Takes the wanted batches of a run; false if no later run has any.
    fn take(&mut self, chunk: &Chunk, run: &Run) -> io::Result<bool> {
        let Wanted { offset, limit, .. } = self.wanted;
        if run.first_offset >= limit || self.is_full() {
            return Ok(false);
        }
        let size = run.end - run.start;
        let is_inside = run.first_offset >= offset && run.last_offset < limit;
        let is_converted = run.is_legacy && self.shared.to_magic_2;
        if chunk.is_of_local_file() && !is_converted && (run.batches == 1 || is_inside) && self.fits(size) {
            self.taken += size;
            self.last_offset = Some(run.last_offset);
            if let Some(Part::File(span)) = self.parts.last_mut()
                && span.extend(&chunk.location, run.start, size)
            {
                return Ok(true);
            }
            self.parts.push(Part::File(Span::new(chunk, run.start, size)));
            return Ok(true);
        }
        let is_memory_full = self.memory > 0 && self.memory + size > MAX_FETCH_MEMORY;
        if is_memory_full || (run.batches == 1 && !self.fits(size)) {
            return Ok(false);
        }
        self.take_batches(chunk, run, is_converted)
    }

    /// The wanted batches of a run, one by one.
    fn take_batches(&mut self, chunk: &Chunk, run: &Run, is_converted: bool) -> io::Result<bool> {
        let size = (run.end - run.start) as usize;
        // A batch may grow a thousandfold while it is converted (gzip; legacy batches are never compressed with zstd).
        let factor = if is_converted { 1 << 10 } else { 1 };
        let memory =
            self.budget.lend(size.saturating_mul(factor).min(size + DEFAULT_MAX_DECOMPRESSED_BYTES))?;
        let data = load(chunk, run.start..run.end)?;
        let mut converter = is_converted.then(Converter::new);
        let mut out = Vec::new();
        let mut goes_on = true;
        for batch in Batches::at_position(&data, run.start) {
            // Its CRC held when the chunk was mapped: the file has changed.
            let batch = batch.map_err(|error| io::Error::other(error.to_string()))?;
            if batch.last_offset() < self.wanted.offset {
                continue;
            }
            let size = batch.size_in_bytes() as u64;
            if batch.stored_offset() >= self.wanted.limit || !self.fits(size) {
                goes_on = false;
                break;
            }
            match &mut converter {
                None => out.extend_from_slice(batch.as_bytes()),
                // Batches that cannot be converted are left out, as a reader would do.
                Some(converter) => {
                    if let Err(error) = converter.up_convert(&batch, &mut out) {
                        let range = batch.position()..batch.position() + size;
                        self.shared.report(&chunk.problem(range, &error));
                    }
                }
            }
            self.taken += size;
            self.last_offset = Some(batch.last_offset());
        }
        drop((data, memory));
        if !out.is_empty() {
            self.budget.take_records(out.len())?;
            self.memory += out.len() as u64;
            self.parts.push(Part::Memory(Bytes::from(out)));
        }
        Ok(goes_on)
    }
}

/// Small parts in memory, and open files for the others, so that a file that is gone is an error of the partition
/// and not of the connection.
///
/// # Errors
/// If a file cannot be read now, or has become shorter, or memory is exhausted.
pub(super) fn prepare(parts: &mut [Part], budget: &Budget<'_>) -> io::Result<()> {
    for part in parts {
        match part {
            Part::File(span) if span.size() < COPIED => {
                budget.take_records(span.size() as usize)?;
                *part = Part::Memory(span.load()?.into());
            }
            Part::File(span) => span.open()?,
            Part::Memory(_) => {}
        }
    }
    Ok(())
}
