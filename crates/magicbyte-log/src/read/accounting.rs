//! The accounts that prove nothing was lost: every byte and every record is counted exactly once.

use std::collections::HashMap;
use std::path::Path;

use magicbyte::state::IsolationLevel;

use crate::chunk::Chunk;
use crate::error::{LogError, LogResult};
use crate::listing::{IgnoredFile, Listing, Segment};
use crate::problem::LISTED;
use crate::read::plan::Plan;

/// A byte range, and the reason why it was not read.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct ByteRange {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// [`magicbyte::ErrorKind::name`] for a quarantined range, [`crate::TailKind::name`] for a tail.
    pub reason: String,
}

impl ByteRange {
    fn length(&self) -> u64 {
        self.end - self.start
    }
}

/// The account of one chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct ChunkResult {
    /// The segment's path.
    pub path: String,
    /// The segment's file name.
    pub segment: String,
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// Batches whose framing and CRC are right and whose records all decode.
    pub good_batches: u64,
    /// Their bytes.
    pub good_bytes: u64,
    /// The bytes of good batches that end before the log's start, which are not counted above.
    pub deleted_bytes: u64,
    /// Ranges that could not be read; adjacent ones with the same reason are joined. Lists the first
    /// [`LISTED`], then the first of each other reason, and the last.
    pub quarantined: Vec<ByteRange>,
    /// The number of quarantined ranges, including those not listed.
    pub quarantined_ranges: u64,
    /// The bytes of all quarantined ranges.
    pub quarantined_bytes: u64,
    /// The bytes after the last batch of the file.
    pub tail: Option<ByteRange>,
    /// Records announced by good batches: the sum of the next five.
    pub announced: u64,
    /// Records delivered.
    pub rows: u64,
    /// Records in control batches.
    pub control: u64,
    /// Records in aborted transactions (`read_committed`).
    pub aborted: u64,
    /// Records outside the requested range, or past the last stable offset.
    pub outside: u64,
    /// Records before the log's start, which a broker does not return.
    pub deleted: u64,
    /// Offset of the first good record, or of the first good batch.
    pub first_offset: Option<i64>,
    /// Last offset of the last good batch.
    pub last_offset: Option<i64>,
    /// Offsets that damage may have cost, as far as good neighbors show.
    pub lost_offsets: u64,
    /// The lost offsets after the last good batch (both inclusive).
    pub lost_at_end: Option<(i64, i64)>,
    /// Rows whose timestamp a table of microseconds cannot hold.
    pub null_timestamps: u64,
    /// Rows whose key is not the text that keys are read as.
    pub invalid_keys: u64,
    /// Rows whose value is not the text that values are read as.
    pub invalid_values: u64,
    /// Rows whose key should name a schema and names none.
    pub unframed_keys: u64,
    /// Rows whose value should name a schema and names none.
    pub unframed_values: u64,
}

impl ChunkResult {
    /// The empty account of a chunk.
    pub(crate) fn of(chunk: &Chunk) -> Self {
        Self {
            path: chunk.location.to_string(),
            segment: chunk.segment.clone(),
            topic: chunk.topic.clone(),
            partition: chunk.partition,
            start: chunk.start,
            end: chunk.end,
            ..Self::default()
        }
    }

    /// The account of a chunk that is not read, for this reason.
    #[must_use]
    pub fn set_aside(chunk: &Chunk, reason: &str) -> Self {
        let mut result = Self::of(chunk);
        result.quarantine(ByteRange { start: chunk.start, end: chunk.end, reason: reason.to_owned() });
        result
    }

    /// The same account at another position.
    fn moved_to(&self, start: u64) -> Self {
        let mut moved = self.clone();
        let place = |position: u64| position.saturating_sub(self.start).saturating_add(start);
        (moved.start, moved.end) = (start, place(self.end));
        for range in moved.quarantined.iter_mut().chain(&mut moved.tail) {
            (range.start, range.end) = (place(range.start), place(range.end));
        }
        moved
    }

    pub(crate) fn tail_bytes(&self) -> u64 {
        self.tail.as_ref().map_or(0, ByteRange::length)
    }

    /// True if bytes and records add up.
    #[must_use]
    pub fn balanced(&self) -> bool {
        self.good_bytes + self.deleted_bytes + self.quarantined_bytes + self.tail_bytes()
            == self.end - self.start
            && self.rows + self.control + self.aborted + self.outside + self.deleted == self.announced
    }

    /// Adds the account of the chunk that directly follows. Counts add up; bytes join. Lists at most `listed`
    /// ranges.
    fn join(&mut self, next: &Self, listed: usize) {
        self.end = next.end;
        self.good_batches += next.good_batches;
        self.good_bytes += next.good_bytes;
        self.deleted_bytes += next.deleted_bytes;
        let (ranges, bytes) = (self.quarantined_ranges, self.quarantined_bytes);
        for range in &next.quarantined {
            self.list(range.clone(), listed);
        }
        // Ranges that are not listed join nothing.
        let joined = ranges + next.quarantined.len() as u64 - self.quarantined_ranges;
        self.quarantined_ranges = ranges + next.quarantined_ranges - joined;
        self.quarantined_bytes = bytes + next.quarantined_bytes;
        self.tail = next.tail.clone().or(self.tail.take());
        self.announced += next.announced;
        self.rows += next.rows;
        self.control += next.control;
        self.aborted += next.aborted;
        self.outside += next.outside;
        self.deleted += next.deleted;
        self.first_offset = self.first_offset.or(next.first_offset);
        self.last_offset = next.last_offset.or(self.last_offset);
        self.lost_offsets = self.lost_offsets.saturating_add(next.lost_offsets);
        self.lost_at_end = next.lost_at_end;
        self.null_timestamps += next.null_timestamps;
        self.invalid_keys += next.invalid_keys;
        self.invalid_values += next.invalid_values;
        self.unframed_keys += next.unframed_keys;
        self.unframed_values += next.unframed_values;
    }

    pub(crate) fn quarantine(&mut self, range: ByteRange) {
        self.list(range, LISTED);
    }

    fn list(&mut self, range: ByteRange, listed: usize) {
        self.quarantined_bytes += range.length();
        if let Some(last) = self.quarantined.last_mut()
            && last.end == range.start
            && last.reason == range.reason
        {
            last.end = range.end;
            return;
        }
        self.quarantined_ranges += 1;
        // The last range is replaced if it is listed only for being the last.
        if self.quarantined.len() > listed
            && let Some((last, before)) = self.quarantined.split_last_mut()
            && before.iter().any(|range| range.reason == last.reason)
        {
            *last = range;
        } else {
            self.quarantined.push(range);
        }
    }
}

/// The account of one segment file.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct SegmentReconciliation {
    /// The file's name.
    pub file: String,
    /// Size in bytes when the file was listed.
    pub size: u64,
    /// Bytes in the tail.
    pub tail_bytes: u64,
    /// Bytes of chunks outside the requested range, which are not read.
    pub outside_bytes: u64,
    /// Offsets between the first and the last that no good record has.
    pub missing_offsets: u64,
    /// True if good batches, quarantined ranges, the tail and the bytes outside the request make up the whole
    /// file, and the records add up.
    pub balanced: bool,
    /// All chunks of the file joined.
    #[serde(flatten)]
    pub result: ChunkResult,
}

/// The account of a partition.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct PartitionReconciliation {
    /// The directory.
    pub path: String,
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// Which records were delivered.
    pub isolation_level: IsolationLevel,
    /// Bytes of all segments.
    pub size: u64,
    /// Batches whose records all decode.
    pub good_batches: u64,
    /// Their bytes.
    pub good_bytes: u64,
    /// The bytes of good batches that end before the log's start, which are not counted above.
    pub deleted_bytes: u64,
    /// Bytes that could not be read.
    pub quarantined_bytes: u64,
    /// Bytes after the last batches.
    pub tail_bytes: u64,
    /// Bytes of chunks outside the requested range, which are not read.
    pub outside_bytes: u64,
    /// Records announced by good batches: the sum of the next five.
    pub announced: u64,
    /// Records delivered.
    pub rows: u64,
    /// Records in control batches.
    pub control: u64,
    /// Records in aborted transactions.
    pub aborted: u64,
    /// Records outside the requested range, or past the last stable offset.
    pub outside: u64,
    /// Records before the log's start, which a broker does not return.
    pub deleted: u64,
    /// The log's start, if records before it are left out.
    pub log_start_offset: Option<i64>,
    /// Offset of the first good record.
    pub first_offset: Option<i64>,
    /// Last offset of the last good batch.
    pub last_offset: Option<i64>,
    /// Offsets between the first and the last that no good record has: compacted away, or lost.
    pub missing_offsets: u64,
    /// Offsets that may be lost: the lost offsets of all problems, each counted once.
    pub lost_offsets: u64,
    /// Rows whose timestamp a table of microseconds cannot hold.
    pub null_timestamps: u64,
    /// Rows whose key is not the text that keys are read as.
    pub invalid_keys: u64,
    /// Rows whose value is not the text that values are read as.
    pub invalid_values: u64,
    /// Rows whose key should name a schema and names none.
    pub unframed_keys: u64,
    /// Rows whose value should name a schema and names none.
    pub unframed_values: u64,
    /// Where the earliest open transaction begins, else the log end offset.
    pub last_stable_offset: Option<i64>,
    /// The number of the directory's problems, quarantined ranges and torn tails.
    pub problems: u64,
    /// True if every segment is balanced.
    pub balanced: bool,
    /// The account of each segment.
    pub segments: Vec<SegmentReconciliation>,
    /// Files that were not read.
    pub ignored: Vec<IgnoredFile>,
}

/// Joins the results of all chunks of a plan, given in any order.
///
/// # Errors
/// [`LogError::Usage`] if a result belongs to a segment that is not in the plan.
pub fn reconcile(plan: &Plan, results: &[ChunkResult]) -> LogResult<PartitionReconciliation> {
    let mut parts: HashMap<&Path, Vec<&ChunkResult>> =
        plan.segments.iter().map(|planned| (planned.segment.location.path(), Vec::new())).collect();
    for result in results {
        let Some(known) = parts.get_mut(Path::new(&result.path)) else {
            return Err(LogError::Usage(format!("{} is not a segment of the plan", result.path)));
        };
        known.push(result);
    }
    // Tasks end in any order, and only neighbors join.
    for parts in parts.values_mut() {
        parts.sort_by_key(|result| result.start);
    }
    let mut chunks: HashMap<&Path, Vec<&Chunk>> = HashMap::new();
    for chunk in &plan.chunks {
        chunks.entry(chunk.location.path()).or_default().push(chunk);
    }
    let mut listed = LISTED;
    let segments: Vec<_> = plan
        .segments
        .iter()
        .map(|planned| {
            let segment = &planned.segment;
            let path = segment.location.path();
            let reconciled =
                reconcile_segment(segment, &parts[path], &chunks.remove(path).unwrap_or_default(), listed);
            listed = listed.saturating_sub(reconciled.result.quarantined.len());
            reconciled
        })
        .collect();
    let sum = |of: fn(&SegmentReconciliation) -> u64| segments.iter().map(of).sum::<u64>();
    let first_offset = segments.iter().find_map(|s| s.result.first_offset);
    let last_offset = segments.iter().rev().find_map(|s| s.result.last_offset);
    let announced = sum(|s| s.result.announced);
    let ranges = sum(|s| s.result.quarantined_ranges);
    let partial =
        segments.iter().filter(|s| s.result.tail.as_ref().is_some_and(|t| t.reason != "zeros")).count();
    Ok(PartitionReconciliation {
        path: plan.path.clone(),
        topic: plan.topic.clone(),
        partition: plan.partition,
        isolation_level: plan.isolation_level,
        size: sum(|s| s.size),
        good_batches: sum(|s| s.result.good_batches),
        good_bytes: sum(|s| s.result.good_bytes),
        deleted_bytes: sum(|s| s.result.deleted_bytes),
        quarantined_bytes: sum(|s| s.result.quarantined_bytes),
        tail_bytes: sum(|s| s.tail_bytes),
        outside_bytes: sum(|s| s.outside_bytes),
        announced,
        rows: sum(|s| s.result.rows),
        control: sum(|s| s.result.control),
        aborted: sum(|s| s.result.aborted),
        outside: sum(|s| s.result.outside),
        deleted: sum(|s| s.result.deleted),
        log_start_offset: plan.log_start_offset,
        first_offset,
        last_offset,
        missing_offsets: missing(first_offset, last_offset, announced),
        lost_offsets: lost_offsets(plan, &segments),
        null_timestamps: sum(|s| s.result.null_timestamps),
        invalid_keys: sum(|s| s.result.invalid_keys),
        invalid_values: sum(|s| s.result.invalid_values),
        unframed_keys: sum(|s| s.result.unframed_keys),
        unframed_values: sum(|s| s.result.unframed_values),
        last_stable_offset: plan.last_stable_offset,
        problems: plan.problems.len() as u64 + ranges + partial as u64,
        balanced: segments.iter().all(|s| s.balanced),
        segments,
        ignored: plan.ignored.clone(),
    })
}

/// Joins the results of chunks that follow each other; without any, the account is empty.
#[must_use]
pub fn join_results(results: &[ChunkResult]) -> ChunkResult {
    let Some((first, rest)) = results.split_first() else { return ChunkResult::default() };
    let mut joined = first.clone();
    rest.iter().for_each(|next| joined.join(next, LISTED));
    joined
}

/// Joins the results of all chunks that were fetched from a partition of a running cluster, in order. The bytes are those
/// that were fetched, in one fetch or in one for each part; there are no segments.
#[must_use]
pub fn reconcile_fetched(
    listing: &Listing,
    isolation_level: IsolationLevel,
    results: &[ChunkResult],
) -> PartitionReconciliation {
    let mut joined = ChunkResult::default();
    let mut balanced = true;
    let mut end = 0;
    for result in results {
        // Each fetch counts its bytes from 0.
        balanced &= result.balanced() && (result.start == end || result.start == 0);
        end = result.end;
        joined.join(&result.moved_to(joined.end), LISTED);
    }
    PartitionReconciliation {
        path: listing.location.to_string(),
        topic: listing.topic.clone(),
        partition: listing.partition,
        isolation_level,
        size: joined.end,
        good_batches: joined.good_batches,
        good_bytes: joined.good_bytes,
        deleted_bytes: joined.deleted_bytes,
        quarantined_bytes: joined.quarantined_bytes,
        tail_bytes: joined.tail_bytes(),
        outside_bytes: 0,
        announced: joined.announced,
        rows: joined.rows,
        control: joined.control,
        aborted: joined.aborted,
        outside: joined.outside,
        deleted: joined.deleted,
        log_start_offset: None,
        first_offset: joined.first_offset,
        last_offset: joined.last_offset,
        missing_offsets: missing(joined.first_offset, joined.last_offset, joined.announced),
        lost_offsets: joined.lost_offsets,
        null_timestamps: joined.null_timestamps,
        invalid_keys: joined.invalid_keys,
        invalid_values: joined.invalid_values,
        unframed_keys: joined.unframed_keys,
        unframed_values: joined.unframed_values,
        last_stable_offset: None,
        problems: joined.quarantined_ranges,
        balanced: balanced && joined.balanced(),
        segments: Vec::new(),
        ignored: Vec::new(),
    }
}

/// Joins the results of a segment, which are in order; `chunks` are those of the plan, and at most `listed` quarantined
/// ranges are listed.
fn reconcile_segment(
    segment: &Segment,
    parts: &[&ChunkResult],
    chunks: &[&Chunk],
    listed: usize,
) -> SegmentReconciliation {
    let mut joined = ChunkResult {
        path: segment.location.to_string(),
        segment: segment.file.clone(),
        topic: segment.topic.clone(),
        partition: segment.partition,
        ..ChunkResult::default()
    };
    let mut complete = parts.iter().all(|part| part.balanced());
    // A chunk may have been read in pieces; what is read beyond the chunks counts as well.
    let mut read: Vec<(u64, u64)> = Vec::new();
    for part in parts {
        match read.last_mut() {
            Some((_, end)) if part.start == *end => *end = part.end,
            // Parts that overlap would count bytes twice.
            before => {
                complete &= before.is_none_or(|(_, end)| part.start > *end);
                read.push((part.start, part.end));
            }
        }
        joined.join(part, listed);
    }
    complete &=
        chunks.iter().all(|chunk| read.iter().any(|&(start, end)| start <= chunk.start && chunk.end <= end));
    let read: u64 = read.iter().map(|(start, end)| end - start).sum();
    let outside_bytes = segment.size.saturating_sub(read);
    SegmentReconciliation {
        file: segment.file.clone(),
        size: segment.size,
        tail_bytes: joined.tail_bytes(),
        outside_bytes,
        missing_offsets: missing(joined.first_offset, joined.last_offset, joined.announced),
        // The bytes outside are what no part has read, so the first sum fails if more was read than there is.
        // Without a request, nothing may be left out.
        balanced: complete
            && read + outside_bytes == segment.size
            && (outside_bytes == 0 || chunks.iter().any(|chunk| chunk.is_limited())),
        result: joined,
    }
}

/// The offsets of the plan's problems and those lost within segments. Damage at the end of a segment and a
/// missing segment after it may claim the same offsets.
fn lost_offsets(plan: &Plan, segments: &[SegmentReconciliation]) -> u64 {
    let missing = plan.lost_ranges();
    segments.iter().map(|segment| &segment.result).fold(missing.count(), |sum, result| {
        let twice = result.lost_at_end.map_or(0, |(first, last)| missing.count_within(first, last));
        sum.saturating_add(result.lost_offsets.saturating_sub(twice))
    })
}

/// Offsets are unique, so every offset in the span that has no record is missing.
fn missing(first: Option<i64>, last: Option<i64>, announced: u64) -> u64 {
    match (first, last) {
        (Some(first), Some(last)) => {
            (last.saturating_sub(first).saturating_add(1).max(0) as u64).saturating_sub(announced)
        }
        _ => 0,
    }
}
