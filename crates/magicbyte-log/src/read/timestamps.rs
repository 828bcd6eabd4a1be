//! Finds records by their timestamps, and the offset at which a read of them has to start: no later than the
//! first damage, which may hide an earlier record.

use magicbyte::{Batch, DEFAULT_MAX_DECOMPRESSED_BYTES, Decompressor, Result};

use crate::chunk::Chunk;
use crate::error::{LogError, LogResult};
use crate::listing::Segment;
use crate::problem::Problem;
use crate::read::chunk_reader::ChunkReader;
use crate::read::name_order::is_in_name_order;
use crate::read::options::{PlanOptions, ReadOptions};
use crate::read::partition_log::PartitionLog;
use crate::read::plan::Plan;
use crate::read::seek::{Headers, position_for_timestamp};

/// A record found by its timestamp.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundRecord {
    pub offset: i64,
    /// Timestamp in milliseconds.
    pub timestamp: i64,
    /// The leader epoch of its batch; -1 in magic 0 and 1.
    pub leader_epoch: i32,
    /// The magic of its batch: magic 0 has no timestamp.
    pub magic: i8,
}

/// The first offset in the log whose record has this timestamp (ms) or a later one (Kafka's
/// `LogSegment.findOffsetByTimestamp`, segment by segment). None if no readable record has. Kafka gives up at
/// damage; here the search goes on after it.
///
/// # Errors
/// [`LogError::Io`] if no file can be opened or memory is exhausted.
pub fn offset_for_timestamp(plan: &Plan, timestamp: i64) -> LogResult<Option<i64>> {
    Ok(record_for_timestamp(plan, timestamp)?.map(|record| record.offset))
}

/// A variant of [`offset_for_timestamp`] that also returns the record's own timestamp and leader epoch.
#[doc(hidden)]
pub fn record_for_timestamp(plan: &Plan, timestamp: i64) -> LogResult<Option<FoundRecord>> {
    let search = Search::new(timestamp, plan.log_start_offset);
    let may_hold = plan.segments.iter().filter(|planned| planned.max_timestamp >= timestamp);
    search.first_record(may_hold.map(|planned| &planned.segment))
}

/// The offset at which a read of the records from this timestamp (ms) on has to start: that of the first such
/// record, or an earlier one that damage or a missing segment hides. None if there is neither.
///
/// # Errors
/// [`LogError::Io`] if no file can be opened or memory is exhausted.
pub fn start_for_timestamp(plan: &Plan, timestamp: i64) -> LogResult<Option<i64>> {
    Search::new(timestamp, plan.log_start_offset).start_in_plan(plan)
}

impl PartitionLog {
    /// The first offset, from the log's start on, whose record has this timestamp (ms) or a later one. None
    /// if no readable record has.
    ///
    /// # Errors
    /// [`LogError::Io`].
    pub fn offset_for_timestamp(&self, timestamp: i64) -> LogResult<Option<i64>> {
        let listing = self.listing();
        if let Some(live) = self.live() {
            return live.offset_for_timestamp(listing, timestamp);
        }
        if !is_in_name_order(&listing.segments)? {
            return offset_for_timestamp(&self.plan(PlanOptions::default())?, timestamp);
        }
        let search = Search::new(timestamp, listing.log_start_offset());
        Ok(search.first_record(&listing.segments)?.map(|record| record.offset))
    }

    /// See [`start_for_timestamp`]. The limits are those of the read.
    pub(super) fn start_for_timestamp(
        &self,
        timestamp: i64,
        options: &ReadOptions,
    ) -> LogResult<Option<i64>> {
        let listing = self.listing();
        let search = Search {
            check_crcs: options.check_crcs,
            max_batch_bytes: options.max_decompressed_bytes,
            ..Search::new(timestamp, listing.log_start_offset())
        };
        if !is_in_name_order(&listing.segments)? {
            return search.start_in_plan(&self.plan(PlanOptions::default())?);
        }
        let unreadable = self.unreadable_segments(search.log_start, i64::MAX);
        let lost = unreadable.map(|(first, _)| first).collect();
        search.start(&listing.segments, lost, || self.missing_segments())
    }
}

/// A search for the first record with a timestamp or a later one.
struct Search {
    timestamp: i64,
    /// The log's start: records before it do not count.
    log_start: i64,
    check_crcs: bool,
    max_batch_bytes: usize,
}

/// The end of a search in a segment.
enum Searched {
    Found(FoundRecord),
    /// A batch at this position cannot be read.
    Damaged(u64),
    Ended,
}

impl Search {
    fn new(timestamp: i64, log_start: Option<i64>) -> Self {
        let log_start = log_start.unwrap_or(i64::MIN);
        Self { timestamp, log_start, check_crcs: true, max_batch_bytes: DEFAULT_MAX_DECOMPRESSED_BYTES }
    }

    fn first_record<'a>(
        &self,
        segments: impl IntoIterator<Item = &'a Segment>,
    ) -> LogResult<Option<FoundRecord>> {
        for segment in segments {
            let mut next_offset = i64::MIN;
            let found = match self.in_segment(segment, &mut next_offset)? {
                Searched::Found(record) => Some(record),
                Searched::Damaged(position) => self.after_damage(segment, position, next_offset)?,
                Searched::Ended => None,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn start_in_plan(&self, plan: &Plan) -> LogResult<Option<i64>> {
        let lost = plan.problems.iter().filter(|problem| {
            problem.segment.is_some() && problem.last_lost_offset.is_none_or(|last| last >= self.log_start)
        });
        let lost = lost.filter_map(|problem| problem.first_lost_offset).collect();
        self.start(plan.segments.iter().map(|planned| &planned.segment), lost, || Ok(Vec::new()))
    }

    /// The offset to start at. `lost` has the first offsets of segments that are known to be missing or
    /// unreadable; `missing` finds the others, and is asked only where offsets are missing between segments.
    fn start<'a>(
        &self,
        segments: impl IntoIterator<Item = &'a Segment>,
        mut lost: Vec<i64>,
        missing: impl Fn() -> LogResult<Vec<(i64, Problem)>>,
    ) -> LogResult<Option<i64>> {
        let mut next_offset = i64::MIN;
        let mut is_complete = false;
        for segment in segments {
            let base = if segment.is_checkpoint { i64::MIN } else { segment.base_offset };
            if !is_complete && next_offset > i64::MIN && base > next_offset {
                lost.extend(missing()?.into_iter().map(|(first, _)| first));
                is_complete = true;
            }
            let hidden = lost.iter().copied().filter(|&first| first < base).min();
            if let Some(first) = hidden {
                return Ok(Some(first));
            }
            if segment.size == 0 {
                next_offset = next_offset.max(base);
            }
            match self.in_segment(segment, &mut next_offset)? {
                Searched::Found(record) => return Ok(Some(record.offset)),
                Searched::Damaged(_) => return Ok(Some(next_offset)),
                Searched::Ended => (),
            }
        }
        Ok(lost.into_iter().min())
    }

    /// Searches the intact batches at the segment's start. `next_offset` becomes the offset after the last one.
    fn in_segment(&self, segment: &Segment, next_offset: &mut i64) -> LogResult<Searched> {
        let mut headers = Headers::open(segment)?;
        headers.position = position_for_timestamp(segment, self.timestamp)?;
        let mut decompressor = Decompressor::with_limit(self.max_batch_bytes);
        loop {
            let position = headers.position;
            if position >= segment.size {
                return Ok(Searched::Ended);
            }
            let Some(header) = headers.next()? else { return Ok(Searched::Damaged(position)) };
            if header.stored_offset < *next_offset || header.size > self.max_batch_bytes {
                return Ok(Searched::Damaged(position));
            }
            if header.max_timestamp >= self.timestamp || self.check_crcs {
                let data = headers.batch(&header)?;
                match self.in_batch(&data, position, &mut decompressor) {
                    Ok(Some(record)) => return Ok(Searched::Found(record)),
                    Ok(None) => (),
                    Err(_) => return Ok(Searched::Damaged(position)),
                }
            }
            *next_offset = header.last_offset.saturating_add(1);
        }
    }

    /// Searches the batches that a reader finds from damage on.
    fn after_damage(
        &self,
        segment: &Segment,
        position: u64,
        next_offset: i64,
    ) -> LogResult<Option<FoundRecord>> {
        let io = |error| LogError::io(segment.location.path(), error);
        let chunk = Chunk::of(segment, next_offset, position..segment.size);
        let reader = ChunkReader::open(chunk, self.check_crcs, self.max_batch_bytes);
        let mut reader = reader.map_err(io)?.max_problems(0);
        let mut decompressor = Decompressor::with_limit(self.max_batch_bytes);
        while let Some((data, _)) = reader.next_batch().map_err(io)? {
            // A batch that does not decode has no record to find.
            if let Ok(Some(record)) = self.in_batch(data.data(), data.position(), &mut decompressor) {
                return Ok(Some(record));
            }
            reader.pass(None, data.batch().last_offset());
        }
        Ok(None)
    }

    fn in_batch(
        &self,
        data: &[u8],
        position: u64,
        decompressor: &mut Decompressor,
    ) -> Result<Option<FoundRecord>> {
        let batch = Batch::from_frame(data, position)?;
        if self.check_crcs {
            batch.verify()?;
        }
        if batch.max_timestamp() < self.timestamp {
            return Ok(None);
        }
        let (leader_epoch, magic) = (batch.partition_leader_epoch(), batch.magic());
        for record in batch.records(decompressor)? {
            let record = record?;
            let (offset, timestamp) = (record.offset(), record.timestamp());
            if timestamp >= self.timestamp && offset >= self.log_start {
                return Ok(Some(FoundRecord { offset, timestamp, leader_epoch, magic }));
            }
        }
        Ok(None)
    }
}
