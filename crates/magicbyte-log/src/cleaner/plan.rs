//! Plans which part of a log is cleaned, and into which segments (`LogCleanerManager.cleanableOffsets`,
//! `Cleaner.groupSegmentsBySize`). Pure: no file is read.

use std::collections::HashMap;
use std::path::Path;

use magicbyte::internals::AbortedByProducer;

use crate::chunk::Chunk;
use crate::error::{LogError, LogResult};
use crate::listing::Listing;
use crate::read::plan::{Plan, PlanSegment};

/// Options of a compaction. The names are those of Kafka's topic configs where such a config exists.
#[derive(Clone, Copy, Debug)]
pub struct CompactOptions {
    /// The current time (ms).
    pub now: i64,
    /// `delete.retention.ms`: the time for which tombstones and the markers of empty transactions are kept.
    pub delete_retention_ms: i64,
    /// `min.compaction.lag.ms`: segments with a record younger than this, and those after them, are not
    /// cleaned.
    pub min_compaction_lag_ms: i64,
    /// Cleaning stops before the segment that contains this offset.
    pub until_offset: Option<i64>,
    /// True to clean the last segment, too. A broker does not clean it, since it is the active segment.
    pub all: bool,
    /// The first offset not yet cleaned, from the broker's `cleaner-offset-checkpoint`. Affects only
    /// tombstones of magic 0 and 1, which have no delete horizon.
    pub first_dirty_offset: Option<i64>,
    /// `segment.bytes`: adjacent segments that together do not exceed it are merged.
    pub segment_bytes: u64,
    /// `segment.index.bytes`.
    pub segment_index_bytes: u64,
}

impl Default for CompactOptions {
    fn default() -> Self {
        Self {
            now: 0,
            delete_retention_ms: 24 * 60 * 60 * 1000,
            min_compaction_lag_ms: 0,
            until_offset: None,
            all: false,
            first_dirty_offset: None,
            segment_bytes: 1 << 30,
            segment_index_bytes: 10 << 20,
        }
    }
}

/// The plan of a compaction or redaction.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Compaction {
    /// The offset where cleaning ends (exclusive); the base offset of a segment, or the log's end.
    pub clean_until: i64,
    /// The segments to write, in offset order.
    pub groups: Vec<SegmentGroup>,
}

/// Adjacent segments that are written as one.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct SegmentGroup {
    /// The base offset of the segment to write.
    pub base_offset: i64,
    /// The modification time of the last segment (ms).
    pub modified_ms: i64,
    /// True if the segments are cleaned rather than copied.
    pub cleaned: bool,
    /// The chunks to read.
    pub chunks: Vec<CleanerChunk>,
}

/// A chunk to be cleaned or copied.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct CleanerChunk {
    /// The chunk's number in the log.
    pub number: u32,
    /// True if the chunk is cleaned rather than copied.
    pub cleaned: bool,
    /// True if the chunk's tombstones of magic 0 and 1 are kept, by the age of its segment.
    pub retain_legacy_tombstones: bool,
    /// The chunk, with its aborted transactions.
    pub chunk: Chunk,
}

/// Plans what is cleaned and how segments are grouped. `plan` covers the whole log, `read_uncommitted`.
/// `listing` lists the log's directory and provides the sizes of indexes.
///
/// # Errors
/// [`LogError::Usage`] for a log of more than 2^24 chunks.
pub fn plan_compaction(plan: &Plan, listing: &Listing, options: &CompactOptions) -> LogResult<Compaction> {
    let end = plan.next_offset.unwrap_or(0);
    let log_start = plan.segments.first().map_or(0, |first| first.segment.base_offset);
    let dirty = options.first_dirty_offset.filter(|offset| (log_start..=end).contains(offset));
    let dirty = dirty.unwrap_or(log_start);
    let clean_until = clean_until(plan, options, dirty, end);
    let cleaned =
        plan.segments.iter().take_while(|planned| planned.segment.base_offset < clean_until).count();
    let (clean, rest) = plan.segments.split_at(cleaned);
    // The last segment that begins before the first dirty offset, as in Kafka.
    let last_clean = clean.iter().rev().find(|planned| planned.segment.base_offset < dirty);
    let legacy_horizon = last_clean
        .map_or(0, |planned| planned.segment.modified_ms.saturating_sub(options.delete_retention_ms));
    let mut builder = GroupBuilder::new(plan, legacy_horizon);
    let sizes = index_sizes(listing);
    for group in group_by_size(clean, &sizes, options, clean_until) {
        builder.add(group, true)?;
    }
    for segment in rest {
        builder.add(std::slice::from_ref(segment), false)?;
    }
    Ok(Compaction { clean_until, groups: builder.groups })
}

/// Plans a redaction: each segment is a group of its own, and none is compacted.
///
/// # Errors
/// The errors of [`plan_compaction`].
pub fn plan_redaction(plan: &Plan) -> LogResult<Compaction> {
    let mut builder = GroupBuilder::new(plan, 0);
    for segment in &plan.segments {
        builder.add(std::slice::from_ref(segment), true)?;
    }
    Ok(Compaction { clean_until: plan.next_offset.unwrap_or(0), groups: builder.groups })
}

/// Where cleaning ends: at or before the last stable offset, before the active segment, and at a segment's
/// start, as in `LogToClean`.
fn clean_until(plan: &Plan, options: &CompactOptions, dirty: i64, end: i64) -> i64 {
    let active = plan.segments.last().map_or(0, |last| last.segment.base_offset);
    let mut limit = plan.last_stable_offset.unwrap_or(end);
    if !options.all {
        limit = limit.min(active);
    }
    limit = limit.min(options.until_offset.unwrap_or(i64::MAX));
    if options.min_compaction_lag_ms > 0 {
        let horizon = options.now.saturating_sub(options.min_compaction_lag_ms);
        let is_late = |planned: &&PlanSegment| largest_timestamp(planned) > horizon;
        let from =
            plan.segments.partition_point(|planned| planned.segment.base_offset <= dirty).saturating_sub(1);
        let late = plan.segments[from.min(plan.segments.len())..].iter().find(is_late);
        limit = limit.min(late.map_or(i64::MAX, |planned| planned.segment.base_offset));
    }
    limit = limit.max(dirty);
    if limit >= end && options.all {
        return end;
    }
    let containing = plan.segments.iter().rev().find(|planned| planned.segment.base_offset <= limit);
    containing.map_or(active, |planned| planned.segment.base_offset)
}

/// Like `LogSegment.largestTimestamp`.
fn largest_timestamp(segment: &PlanSegment) -> i64 {
    if segment.max_timestamp >= 0 { segment.max_timestamp } else { segment.segment.modified_ms }
}

/// The sizes of each segment's `.index` and `.timeindex` in bytes, by the segment's file name.
fn index_sizes(listing: &Listing) -> HashMap<String, (u64, u64)> {
    let mut sizes: HashMap<String, (u64, u64)> = HashMap::new();
    for sidecar in &listing.sidecars {
        if let Some((stem, ending @ ("index" | "timeindex"))) = sidecar.file.split_once('.') {
            let (offset_index, time_index) = sizes.entry(format!("{stem}.log")).or_default();
            *(if ending == "index" { offset_index } else { time_index }) = sidecar.size;
        }
    }
    sizes
}

fn group_by_size<'p>(
    mut segments: &'p [PlanSegment],
    sizes: &HashMap<String, (u64, u64)>,
    options: &CompactOptions,
    clean_until: i64,
) -> Vec<&'p [PlanSegment]> {
    let size_of = |planned: &PlanSegment| {
        let (offset_index, time_index) = sizes.get(&planned.segment.file).copied().unwrap_or_default();
        (planned.segment.size, offset_index, time_index)
    };
    let mut groups = Vec::new();
    while let Some(first) = segments.first() {
        let (mut size, mut offset_index, mut time_index) = size_of(first);
        let mut count = 1;
        while let Some(next) = segments.get(count) {
            let (more, more_offset_index, more_time_index) = size_of(next);
            // The next segment's base offset bounds its last one without reading it.
            let next_offset =
                segments.get(count + 1).map_or(clean_until, |planned| planned.segment.base_offset);
            let span = next_offset.saturating_sub(1).saturating_sub(first.segment.base_offset);
            if size + more > options.segment_bytes
                || offset_index + more_offset_index > options.segment_index_bytes
                || time_index + more_time_index > options.segment_index_bytes
                || more > 0 && span > i32::MAX.into()
            {
                break;
            }
            size += more;
            offset_index += more_offset_index;
            time_index += more_time_index;
            count += 1;
        }
        let (group, rest) = segments.split_at(count);
        groups.push(group);
        segments = rest;
    }
    groups
}

struct GroupBuilder<'p> {
    aborted: AbortedByProducer,
    by_path: HashMap<&'p Path, Vec<&'p Chunk>>,
    number: u32,
    /// The offset after the groups so far.
    next_offset: i64,
    /// `legacyDeleteHorizonMs`.
    legacy_horizon: i64,
    groups: Vec<SegmentGroup>,
}

impl<'p> GroupBuilder<'p> {
    fn new(plan: &'p Plan, legacy_horizon: i64) -> Self {
        let mut by_path: HashMap<&Path, Vec<&Chunk>> = HashMap::new();
        for chunk in &plan.chunks {
            by_path.entry(chunk.location.path()).or_default().push(chunk);
        }
        let aborted = AbortedByProducer::new(&plan.aborted);
        Self { aborted, by_path, number: 0, next_offset: 0, legacy_horizon, groups: Vec::new() }
    }

    fn add(&mut self, segments: &[PlanSegment], cleaned: bool) -> LogResult<()> {
        let (Some(first), Some(last)) = (segments.first(), segments.last()) else { return Ok(()) };
        let mut chunks = Vec::new();
        for planned in segments {
            for &chunk in self.by_path.get(planned.segment.location.path()).into_iter().flatten() {
                if self.number >> 24 != 0 {
                    return Err(LogError::Usage("the log has more than 2^24 chunks".into()));
                }
                let next_offset = chunk.next_offset.unwrap_or(i64::MAX);
                let (bytes, offsets) = (chunk.start..chunk.end, chunk.expected_offset..next_offset);
                let aborted = self.aborted.within(&planned.transactional, bytes, offsets);
                chunks.push(CleanerChunk {
                    number: self.number,
                    cleaned,
                    retain_legacy_tombstones: planned.segment.modified_ms > self.legacy_horizon,
                    chunk: Chunk { aborted, ..chunk.clone() },
                });
                self.number += 1;
            }
        }
        // A segment that overlaps the previous one is read from where that ends.
        let first_chunk = chunks.first().filter(|part| part.chunk.location == first.segment.location);
        let base_offset = first_chunk.map_or(first.segment.base_offset, |part| {
            part.chunk.expected_offset.max(part.chunk.start_offset.unwrap_or(i64::MIN))
        });
        // A base offset inside the previous group is contradicted by that group's batches.
        let base_offset = base_offset.max(self.next_offset);
        match self.groups.last_mut() {
            // Damage hides the offsets of the previous group: both would be written to files of one name.
            Some(before) if before.base_offset >= base_offset => before.chunks.append(&mut chunks),
            _ => self.groups.push(SegmentGroup {
                base_offset,
                modified_ms: last.segment.modified_ms,
                cleaned,
                chunks,
            }),
        }
        let ends = segments.iter().filter_map(|planned| planned.last_offset);
        self.next_offset = ends.map(|last| last.saturating_add(1)).fold(self.next_offset, i64::max);
        Ok(())
    }
}
