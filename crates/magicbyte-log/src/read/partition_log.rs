//! A partition's log, read as a whole: segments in order, from any offset or timestamp.

use std::collections::{HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use magicbyte::state::IsolationLevel;
use magicbyte::{Batch, DEFAULT_MAX_DECOMPRESSED_BYTES, Decompressor, Result};

use crate::chunk::Chunk;
use crate::error::{LogError, LogResult};
use crate::listing::{Listing, Segment, list_partition};
use crate::problem::{LISTED, MISSING_SEGMENT, Problem, Problems};
use crate::read::accounting::{ChunkResult, PartitionReconciliation, reconcile, reconcile_fetched};
use crate::read::chunk_reader::{BatchCounts, ChunkReader, Disposition};
use crate::read::header_scan::survey_segment;
use crate::read::live::{Live, LiveChunks, LivePartition};
use crate::read::name_order::{is_in_name_order, segments_from};
use crate::read::options::{DamageMode, PlanOptions, ReadOptions};
use crate::read::plan::{Plan, plan_partition};
use crate::read::seek::{first_stored_offset, position_for_offset};
use crate::segment::reader::SegmentBatch;
use crate::storage::location::Location;

/// The maximum number of successive listings while the files of a log change.
pub(super) const ATTEMPTS: u32 = 5;

/// A partition's directory, opened for reading.
///
/// ```no_run
/// use magicbyte_log::{PartitionLog, ReadOptions};
/// let log = PartitionLog::open("backup/orders-0")?;
/// let mut decompressor = magicbyte::Decompressor::new();
/// for batch in log.batches(ReadOptions { start_offset: Some(1_000), ..Default::default() })? {
///     let batch = batch?;
///     for record in batch.data.batch().records(&mut decompressor)? {
///         println!("{}", record?.offset());
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PartitionLog {
    listing: Listing,
    /// The partition of a running cluster, whose listing has no files.
    live: Option<Live>,
}

impl PartitionLog {
    /// Lists the directory (or a single segment file); reads no segment yet. The log begins at the offset in
    /// the broker's `log-start-offset-checkpoint`, which is in the parent directory.
    ///
    /// # Errors
    /// [`LogError::Io`].
    pub fn open(path: impl Into<Location>) -> LogResult<Self> {
        let mut listing = list_partition(path, false)?;
        listing.read_log_start();
        Ok(Self::of_listing(listing))
    }

    /// Reads the records before the log's start, too, which a broker does not return.
    #[must_use]
    pub fn include_deleted_records(mut self, include: bool) -> Self {
        self.listing.include_deleted_records = include;
        self
    }

    /// A log from files that are already listed. The files may be in several directories, such as local and
    /// remote segments.
    #[must_use]
    pub fn of_listing(listing: Listing) -> Self {
        Self { listing, live: None }
    }

    /// A partition of a running cluster. Every read asks where the log begins and ends now, and ends there; it fetches the
    /// range of offsets once, without a survey. With `read_committed`, the broker tells which transactions were aborted.
    #[must_use]
    pub fn of_cluster(url: &str, topic: &str, partition: i32, live: Arc<dyn LivePartition>) -> Self {
        let (location, topic) = (Location::from(url), topic.to_owned());
        let listing = Listing { location, topic, partition, ..Listing::default() };
        Self { listing, live: Some(Live(live)) }
    }

    /// True for a partition of a running cluster.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.live.is_some()
    }

    pub(super) fn live(&self) -> Option<&Live> {
        self.live.as_ref()
    }

    /// The directory's files.
    #[must_use]
    pub fn listing(&self) -> &Listing {
        &self.listing
    }

    /// Surveys every segment and folds the surveys: transactions, epochs, overlaps.
    ///
    /// # Errors
    /// [`LogError::Io`]; [`LogError::Usage`] for a running cluster.
    pub fn plan(&self, options: PlanOptions) -> LogResult<Plan> {
        if self.live.is_some() {
            let why = format!("{}: a running cluster has no segments to plan", self.listing.location);
            return Err(LogError::Usage(why));
        }
        let surveys: LogResult<Vec<_>> = self.listing.segments.iter().map(survey_segment).collect();
        plan_partition(&self.listing, &surveys?, options)
    }

    /// The batches that hold the requested records, in offset order. `read_committed` surveys the whole log
    /// first, since a transaction's marker may come long after its data. A log whose files do not have their
    /// own names is also surveyed first. Otherwise only the first header of each segment is read before it is
    /// needed.
    ///
    /// # Errors
    /// [`LogError::Io`].
    pub fn batches(&self, options: ReadOptions) -> LogResult<LogBatches> {
        if let Some(live) = &self.live {
            return self.live_batches(live, options);
        }
        let mut start_offset = options.start_offset.max(self.listing.log_start_offset());
        if let Some(timestamp) = options.start_timestamp {
            let first_late = self.start_for_timestamp(timestamp, &options)?.unwrap_or(i64::MAX);
            start_offset = start_offset.max(Some(first_late));
        }
        let mut end_offset = options.end_offset.unwrap_or(i64::MAX);
        let start = start_offset.unwrap_or(i64::MIN);
        let mut losses: Vec<_> = self.unreadable_segments(start, end_offset).collect();
        let is_committed = options.isolation_level == IsolationLevel::ReadCommitted;
        let segments = segments_from(&self.listing.segments, start_offset.unwrap_or(0))?;
        let steps: Vec<(i64, Step)> = if is_committed || !is_in_name_order(&segments)? {
            let plan = self.plan(PlanOptions {
                isolation_level: options.isolation_level,
                start_offset,
                end_offset: options.end_offset,
                ..PlanOptions::default()
            })?;
            if is_committed {
                end_offset = end_offset.min(plan.last_stable_offset.unwrap_or(i64::MAX));
            }
            losses.retain(|(_, problem)| problem.kind != MISSING_SEGMENT || plan.problems.contains(problem));
            losses.extend(missing_segments(&plan, start, end_offset));
            plan.chunks.into_iter().map(|c| (c.expected_offset, Step::Chunk(c))).collect()
        } else {
            segments.into_iter().map(|s| (s.base_offset, Step::Segment(s))).collect()
        };
        Ok(self.batches_of(with_losses(steps, losses), None, start..end_offset, options))
    }

    fn live_batches(&self, live: &Live, options: ReadOptions) -> LogResult<LogBatches> {
        let ReadOptions { mut start_offset, end_offset, isolation_level, .. } = options;
        if let Some(timestamp) = options.start_timestamp {
            let first_late = live.offset_for_timestamp(&self.listing, timestamp)?.unwrap_or(i64::MAX);
            start_offset = start_offset.max(Some(first_late));
        }
        let offsets = live.clamped(&self.listing, (start_offset, end_offset), isolation_level)?;
        let chunks = live.chunks(&self.listing, offsets.clone(), isolation_level)?;
        Ok(self.batches_of(Vec::new(), Some(chunks), offsets, options))
    }

    fn batches_of(
        &self,
        steps: Vec<Step>,
        live: Option<LiveChunks>,
        offsets: Range<i64>,
        options: ReadOptions,
    ) -> LogBatches {
        LogBatches {
            log: self.clone(),
            steps: steps.into_iter(),
            live,
            missing: None,
            next_offset: None,
            reader: None,
            attempts: ATTEMPTS,
            start_offset: offsets.start,
            end_offset: offsets.end,
            options,
            problems: Problems::default(),
            unread: UnreadBytes::default(),
            decompressor: Decompressor::with_limit(options.max_decompressed_bytes),
        }
    }

    /// Unreadable segments, with their base offset, that may hold offsets in `start..end`.
    pub(super) fn unreadable_segments(&self, start: i64, end: i64) -> impl Iterator<Item = (i64, Problem)> {
        let others = self.listing.unreadable_segments().map(|(other, _)| other);
        let others = self.listing.segments.iter().map(|s| s.base_offset).chain(others);
        let latest = others.filter(|&other| other <= start).max();
        let may_overlap = move |base_offset| base_offset < end && latest.is_none_or(|at| at <= base_offset);
        let named =
            self.listing.unreadable_segments().filter(move |&(base_offset, _)| may_overlap(base_offset));
        named.map(|(base_offset, problem)| (base_offset, problem.clone()))
    }

    /// The segments that the plan reports as missing: none if the log was compacted.
    pub(super) fn missing_segments(&self) -> LogResult<Vec<(i64, Problem)>> {
        let mut surveys = Vec::new();
        for segment in &self.listing.segments {
            surveys.push(survey_segment(segment)?);
            // A compacted log: its other segments need not be scanned.
            if surveys.last().is_some_and(|survey| survey.gaps > 0) {
                return Ok(Vec::new());
            }
        }
        let plan = plan_partition(&self.listing, &surveys, PlanOptions::default())?;
        Ok(missing_segments(&plan, i64::MIN, i64::MAX).collect())
    }

    /// The log with the files that are there now, since a broker has cleaned, deleted or rolled segments. None
    /// if listing the directory again cannot help.
    pub(super) fn listed_again(&self) -> Option<Self> {
        let Listing { location, segments, checkpoints, include_deleted_records, .. } = &self.listing;
        let is_of_directory = |segment: &Segment| segment.location.path().parent() == Some(location.path());
        if !location.is_live() || !segments.iter().all(is_of_directory) {
            return None;
        }
        let mut listing = list_partition(location.clone(), false).ok()?;
        listing.checkpoints = *checkpoints;
        listing.include_deleted_records = *include_deleted_records;
        Some(Self::of_listing(listing))
    }

    /// Decodes every record of every segment and accounts for every byte; keeps none of them.
    ///
    /// # Errors
    /// [`LogError::Io`]; damage is not an error but part of the result.
    pub fn verify(&self, options: PlanOptions) -> LogResult<PartitionReconciliation> {
        self.verify_limited(options, DEFAULT_MAX_DECOMPRESSED_BYTES)
    }

    /// Like [`verify`](Self::verify), with a limit for one batch, stored or decompressed, in bytes.
    ///
    /// # Errors
    /// [`LogError::Io`]; damage is not an error but part of the result.
    pub fn verify_limited(
        &self,
        options: PlanOptions,
        max_decompressed_bytes: usize,
    ) -> LogResult<PartitionReconciliation> {
        let mut decompressor = Decompressor::with_limit(max_decompressed_bytes);
        let range = (options.start_offset, options.end_offset);
        if let Some(chunks) = self.live_chunks(range, options.isolation_level)? {
            let results: LogResult<Vec<_>> =
                chunks.map(|chunk| verify_chunk(&chunk?, &mut decompressor)).collect();
            return Ok(reconcile_fetched(&self.listing, options.isolation_level, &results?));
        }
        let plan = self.plan(options)?;
        let results: LogResult<Vec<_>> =
            plan.chunks.iter().map(|chunk| verify_chunk(chunk, &mut decompressor)).collect();
        reconcile(&plan, &results?)
    }
}

/// The gaps that a plan found between segments, as far as they overlap `start..end`, with their first offset.
/// Segments that are missing from the listing are among `unreadable_segments`.
fn missing_segments(plan: &Plan, start: i64, end: i64) -> impl Iterator<Item = (i64, Problem)> {
    let planned: HashSet<_> = plan.segments.iter().map(|planned| Some(&planned.segment.file)).collect();
    let follows_gap = move |problem: &&Problem| {
        problem.kind == MISSING_SEGMENT && planned.contains(&problem.segment.as_ref())
    };
    plan.problems.iter().filter(follows_gap).filter_map(move |problem| {
        let (first, last) = (problem.first_lost_offset?, problem.last_lost_offset?);
        (first < end && last >= start).then(|| (first, problem.clone()))
    })
}

/// Merges lost segments into the steps by offset; steps keep their order.
fn with_losses(steps: Vec<(i64, Step)>, mut losses: Vec<(i64, Problem)>) -> Vec<Step> {
    losses.sort_by_key(|(first, _)| *first);
    let mut losses = losses.into_iter().peekable();
    let mut all = Vec::new();
    for (offset, step) in steps {
        while let Some((_, problem)) = losses.next_if(|(first, _)| *first <= offset) {
            all.push(Step::Loss(problem));
        }
        all.push(step);
    }
    all.extend(losses.map(|(_, problem)| Step::Loss(problem)));
    all
}

fn verify_chunk(chunk: &Chunk, decompressor: &mut Decompressor) -> LogResult<ChunkResult> {
    let io = |error| LogError::io(chunk.location.path(), error);
    let mut reader =
        ChunkReader::open(chunk.clone(), true, decompressor.limit()).map_err(io)?.max_problems(0);
    while let Some((data, disposition)) = reader.next_batch().map_err(io)? {
        let batch = data.batch();
        match count(&batch, &reader, decompressor) {
            Ok(counts) => reader.good(&data, batch.last_offset(), disposition, counts),
            Err(error) => reader.bad(&data, &error),
        }
    }
    Ok(reader.result().clone())
}

/// Decodes all records of a batch and counts them.
fn count(batch: &Batch<'_>, reader: &ChunkReader, decompressor: &mut Decompressor) -> Result<BatchCounts> {
    let mut counts = BatchCounts::default();
    for record in batch.records(decompressor)? {
        let offset = record?.offset();
        counts.announced += 1;
        counts.first_offset.get_or_insert(offset);
        counts.last_offset = Some(offset);
        reader.leaves_out(offset, &mut counts);
    }
    Ok(counts)
}

/// A batch of the log, and the kind of its records.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogBatch {
    /// The batch with its bytes.
    pub data: SegmentBatch,
    /// Data, control or aborted.
    pub disposition: Disposition,
    /// The segment's file name.
    pub segment: String,
    /// The first requested offset.
    pub start_offset: i64,
    /// The requested offsets end before this one.
    pub end_offset: i64,
}

/// The batches of a log, in offset order. See [`PartitionLog::batches`].
#[derive(Debug)]
pub struct LogBatches {
    log: PartitionLog,
    steps: std::vec::IntoIter<Step>,
    /// The chunks of a running cluster, which has no steps.
    live: Option<LiveChunks>,
    /// Missing segments not yet reported, with their first offset; None until a gap requires a survey.
    missing: Option<VecDeque<(i64, Problem)>>,
    /// The offset after the last batch read, requested or not.
    next_offset: Option<i64>,
    reader: Option<ChunkReader>,
    /// The number of times that the log may be listed again before the next batch is read.
    attempts: u32,
    /// Rises as batches are delivered, so that overlapping segments yield no record twice.
    start_offset: i64,
    end_offset: i64,
    options: ReadOptions,
    problems: Problems,
    /// The bytes without batches of the chunks before the current one.
    unread: UnreadBytes,
    /// The decompressor for a wrapper that the reader could not decompress.
    decompressor: Decompressor,
}

/// The bytes that a read has passed without finding batches in them.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnreadBytes {
    /// Bytes of ranges that cannot be read.
    pub quarantined: u64,
    /// Bytes after the last batches.
    pub tail: u64,
}

/// The next step of reading a log.
#[derive(Debug)]
enum Step {
    /// A segment that was not surveyed.
    Segment(Segment),
    Chunk(Chunk),
    /// A segment that is missing or cannot be read.
    Loss(Problem),
}

impl LogBatches {
    /// The problems found so far ([`DamageMode::Permissive`]), including torn tails: the first [`LISTED`].
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems.listed
    }

    /// Takes all problems found so far, listed or only counted.
    #[doc(hidden)]
    pub fn take_problems(&mut self) -> Problems {
        std::mem::take(&mut self.problems)
    }

    /// The number of problems beyond those listed.
    #[must_use]
    pub fn problems_left_out(&self) -> u64 {
        self.problems.left_out
    }

    /// The offset that reading stops before: the requested end, or the last stable offset.
    #[must_use]
    pub fn end_offset(&self) -> i64 {
        self.end_offset
    }

    /// The bytes so far that are in no batch.
    #[doc(hidden)]
    #[must_use]
    pub fn unread_bytes(&self) -> UnreadBytes {
        let UnreadBytes { quarantined, tail } = self.unread;
        let current = self.reader.as_ref().map(ChunkReader::result);
        UnreadBytes {
            quarantined: quarantined + current.map_or(0, |result| result.quarantined_bytes),
            tail: tail + current.map_or(0, ChunkResult::tail_bytes),
        }
    }

    fn end_chunk(&mut self) {
        self.unread = self.unread_bytes();
        self.reader = None;
    }

    fn next_chunk(&mut self) -> LogResult<Option<Chunk>> {
        while let Some(step) = self.steps.next() {
            match step {
                Step::Chunk(chunk) => return Ok(Some(chunk)),
                Step::Loss(problem) => self.lose(problem)?,
                Step::Segment(segment) => {
                    self.check_missing(&segment)?;
                    if segment.base_offset >= self.end_offset && self.end_offset < i64::MAX {
                        return Ok(None);
                    }
                    if segment.size == 0 {
                        self.next_offset.get_or_insert(segment.base_offset);
                    }
                    let next_offset = self.steps.as_slice().iter().find_map(|step| match step {
                        Step::Segment(next) => Some(next.base_offset),
                        _ => None,
                    });
                    if let Some(chunk) = whole_segment(&segment, self.start_offset)? {
                        return Ok(Some(Chunk { next_offset, ..chunk }));
                    }
                }
            }
        }
        self.live.as_mut().and_then(Iterator::next).transpose()
    }

    fn lose(&mut self, problem: Problem) -> LogResult<()> {
        match self.options.mode {
            DamageMode::FailFast => Err(self.log.listing.error_of(&problem)),
            DamageMode::Permissive => {
                self.problems.note(problem);
                Ok(())
            }
        }
    }

    /// Reports a missing segment before this one. Where a segment does not begin right after the previous
    /// one, either offsets were compacted away or a segment is missing: the plan knows which.
    fn check_missing(&mut self, segment: &Segment) -> LogResult<()> {
        let Some(next) = self.next_offset else { return Ok(()) };
        if segment.base_offset <= next || next >= self.end_offset {
            return Ok(());
        }
        if self.missing.is_none() {
            self.missing = Some(self.log.missing_segments()?.into());
        }
        let missing = self.missing.get_or_insert_default();
        while let Some((first, problem)) = missing.pop_front() {
            if problem.last_lost_offset.is_none_or(|last| last < next) {
                continue;
            }
            if first < segment.base_offset {
                return self.lose(problem);
            }
            missing.push_front((first, problem));
            break;
        }
        Ok(())
    }

    /// Continues with the files that are there now. Returns false if that cannot help.
    fn list_again(&mut self) -> LogResult<bool> {
        if self.attempts == 0 {
            return Ok(false);
        }
        let Some(log) = self.log.listed_again() else { return Ok(false) };
        self.attempts -= 1;
        let start = (self.start_offset > i64::MIN).then_some(self.start_offset);
        let options = ReadOptions { start_offset: start, start_timestamp: None, ..self.options };
        let again = log.batches(options)?;
        (self.log, self.steps, self.missing) = (again.log, again.steps, None);
        Ok(true)
    }

    fn advance(&mut self) -> LogResult<Option<LogBatch>> {
        loop {
            if self.reader.is_none() {
                let Some(chunk) = self.next_chunk()? else { return Ok(None) };
                let location = chunk.location.clone();
                let limit = self.options.max_decompressed_bytes;
                let reader = ChunkReader::open(chunk, self.options.check_crcs, limit);
                let reader = reader.map_err(|e| LogError::io(location.path(), e))?;
                if reader.is_replaced() && self.list_again()? {
                    continue;
                }
                self.reader = Some(reader.max_problems(LISTED));
            }
            let Some(reader) = &mut self.reader else { return Ok(None) };
            let next = reader.next_batch().map_err(|e| LogError::io(reader.chunk().location.path(), e))?;
            if let Some((data, _)) = &next {
                let batch = data.batch();
                // The end of damage is all that needs a wrapper's first offset: finding it reads all messages.
                let follows_damage = reader.follows_damage();
                let first = follows_damage.then(|| batch.base_offset(&mut self.decompressor).ok());
                reader.pass(first.flatten(), batch.last_offset());
            }
            reader.move_problems(&mut self.problems);
            reader.check_damage(self.options.mode)?;
            match next {
                None => self.end_chunk(),
                Some((data, disposition)) => {
                    let segment = reader.chunk().segment.clone();
                    let (stored, last) = (data.batch().stored_offset(), data.batch().last_offset());
                    self.next_offset = Some(last.saturating_add(1));
                    if last < self.start_offset {
                        continue;
                    }
                    let base_is_stored = data.data().get(16) == Some(&2);
                    if base_is_stored && stored >= self.end_offset {
                        return Ok(None);
                    }
                    let (start_offset, end_offset) = (self.start_offset, self.end_offset);
                    self.start_offset = last.saturating_add(1);
                    self.attempts = ATTEMPTS;
                    return Ok(Some(LogBatch { data, disposition, segment, start_offset, end_offset }));
                }
            }
        }
    }
}

impl Iterator for LogBatches {
    type Item = LogResult<LogBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance().transpose();
        if matches!(next, Some(Err(_)) | None) {
            self.end_chunk();
            self.steps = Vec::new().into_iter();
            self.live = None;
        }
        next
    }
}

/// One chunk for a segment that was not surveyed, from the position its index gives for the offset. None if
/// the segment adds nothing.
pub(super) fn whole_segment(segment: &Segment, start_offset: i64) -> LogResult<Option<Chunk>> {
    let start =
        if start_offset > segment.base_offset { position_for_offset(segment, start_offset)? } else { 0 };
    // The first offset is missing, or below the file's base offset: only a survey shows where the offsets
    // begin.
    let needs_survey =
        start == 0 && first_stored_offset(segment)?.is_none_or(|first| first < segment.base_offset);
    if !needs_survey || segment.is_checkpoint {
        return Ok(Some(Chunk::of(
            segment,
            if segment.is_checkpoint { 0 } else { segment.base_offset },
            start..segment.size,
        )));
    }
    let survey = survey_segment(segment)?;
    if survey.last_offset.is_some_and(|last| last < start_offset) {
        return Ok(None);
    }
    Ok(Some(Chunk::of(segment, survey.base_offset, start..segment.size)))
}
