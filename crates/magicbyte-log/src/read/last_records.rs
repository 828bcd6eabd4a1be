//! Finds where the last records of a log begin, from its end on.

use std::ops::Range;

use magicbyte::state::IsolationLevel;
use magicbyte::{Batch, Decompressor, Result};

use crate::chunk::Chunk;
use crate::error::{LogError, LogResult};
use crate::listing::Segment;
use crate::read::chunk_reader::{ChunkReader, Disposition};
use crate::read::live::Live;
use crate::read::name_order::{is_in_name_order, segments_from};
use crate::read::options::{DamageMode, PlanOptions, ReadOptions};
use crate::read::partition_log::{ATTEMPTS, PartitionLog, whole_segment};
use crate::read::seek::position_for_offset;
use crate::segment::reader::SegmentBatch;

/// The least number of offsets that are fetched at once from a running cluster.
const LIVE_DISTANCE: i64 = 1000;

impl PartitionLog {
    /// The offset of the first of the last `count` data records in the options' range of offsets. None if the
    /// range has fewer records. The options' timestamp is ignored.
    ///
    /// Damage has no records, and is not an error here: a read from the returned offset meets the same damage.
    /// In [`DamageMode::Permissive`], which leaves out batches that do not decode, each counted batch is
    /// decoded. Otherwise most are counted by their headers.
    ///
    /// Cost: the first header of each segment, then as many bytes from the end of the range on as hold the
    /// records. A segment without an index is read as a whole. `read_committed` surveys the log first, as
    /// [`batches`](Self::batches) does.
    ///
    /// # Errors
    /// [`LogError::Io`].
    pub fn start_of_last(&self, count: u64, options: ReadOptions) -> LogResult<Option<i64>> {
        if count == 0 {
            return Ok(Some(i64::MAX));
        }
        self.start_of_last_within(count, options, ATTEMPTS)
    }

    /// `attempts` is the number of times that the log may be listed again.
    fn start_of_last_within(
        &self,
        count: u64,
        options: ReadOptions,
        attempts: u32,
    ) -> LogResult<Option<i64>> {
        let mut tail = Tail {
            missing: count,
            start: options.start_offset.max(self.listing().log_start_offset()).unwrap_or(i64::MIN),
            end: options.end_offset.unwrap_or(i64::MAX),
            options,
            has_replaced_files: false,
            decompressor: Decompressor::with_limit(options.max_decompressed_bytes),
        };
        let found = tail.walk(self)?;
        if tail.has_replaced_files
            && attempts > 0
            && let Some(log) = self.listed_again()
        {
            return log.start_of_last_within(count, options, attempts - 1);
        }
        Ok(found)
    }
}

/// The end of a range of offsets, whose records are counted backwards, piece by piece.
struct Tail {
    /// The number of records that are still to be found.
    missing: u64,
    /// The first offset of the range.
    start: i64,
    /// The offset before which the next piece is counted.
    end: i64,
    options: ReadOptions,
    /// True if files were deleted or replaced after they were listed.
    has_replaced_files: bool,
    decompressor: Decompressor,
}

impl Tail {
    fn walk(&mut self, log: &PartitionLog) -> LogResult<Option<i64>> {
        let isolation_level = self.options.isolation_level;
        if let Some(live) = log.live() {
            return self.walk_live(log, live);
        }
        let start_offset = (self.start > i64::MIN).then_some(self.start);
        let segments = segments_from(&log.listing().segments, start_offset.unwrap_or(0))?;
        if isolation_level != IsolationLevel::ReadCommitted && is_in_name_order(&segments)? {
            return find_last(&segments, |segment| self.count_segment(segment));
        }
        let end_offset = self.options.end_offset;
        let plan =
            log.plan(PlanOptions { isolation_level, start_offset, end_offset, ..PlanOptions::default() })?;
        find_last(&plan.chunks, |chunk| self.count_piece(chunk))
    }

    /// Fetches ranges of offsets from the end on, each about as long as all after it, since offsets may be missing. Only the
    /// answer that has the offset is kept, and is fetched again.
    fn walk_live(&mut self, log: &PartitionLog, live: &Live) -> LogResult<Option<i64>> {
        let isolation_level = self.options.isolation_level;
        let Range { start, end } = live.clamped(
            log.listing(),
            (self.options.start_offset, self.options.end_offset),
            isolation_level,
        )?;
        (self.start, self.end) = (start, end);
        let mut distance = i64::try_from(self.missing).unwrap_or(i64::MAX).max(LIVE_DISTANCE);
        let mut near = end;
        while near > start {
            let range = near.saturating_sub(distance).max(start)..near;
            let mut counted = Vec::new();
            for chunk in live.chunks(log.listing(), range.clone(), isolation_level)? {
                let chunk = chunk?;
                let offsets =
                    chunk.start_offset.unwrap_or(start)..chunk.next_offset.unwrap_or(near).min(near);
                let mut records = 0_u64;
                let mut reader = self.open(&chunk)?;
                while let Some((_, count)) = self.next_batch(&mut reader, &offsets)? {
                    records = records.saturating_add(count);
                }
                counted.push((offsets, records));
            }
            for (offsets, records) in counted.into_iter().rev() {
                if records < self.missing {
                    self.missing -= records;
                    continue;
                }
                self.end = offsets.end;
                let chunks = live.chunks(log.listing(), offsets, isolation_level)?;
                let chunks: Vec<_> = chunks.collect::<LogResult<_>>()?;
                return find_last(&chunks, |chunk| self.count_piece(chunk));
            }
            (near, distance) = (range.start, distance.saturating_mul(2));
        }
        Ok(None)
    }

    /// Counts the records of a segment from its end on, in pieces that begin where its index says. Returns
    /// the offset of the first missing record if the segment has it.
    fn count_segment(&mut self, segment: &Segment) -> LogResult<Option<i64>> {
        if segment.base_offset >= self.end && !segment.is_checkpoint {
            return Ok(None);
        }
        let (mut near, mut end) = (self.end, segment.size);
        let mut distance = i64::try_from(self.missing).unwrap_or(i64::MAX);
        while end > 0 {
            let start = position_for_offset(segment, near)?;
            let piece = match start {
                0 => whole_segment(segment, i64::MIN)?,
                _ => Some(Chunk::of(segment, segment.base_offset, start..segment.size)),
            };
            if start < end
                && let Some(piece) = piece
                && let Some(first) = self.count_piece(&Chunk { end, ..piece })?
            {
                return Ok(Some(first));
            }
            if near <= self.start {
                break;
            }
            // Each piece is about as long as all after it, since offsets may be missing.
            near = near.min(self.end).saturating_sub(distance).max(self.start);
            (end, distance) = (end.min(start), distance.saturating_mul(2));
        }
        Ok(None)
    }

    /// Counts the records of a piece of the log, all of whose records are before those of the pieces counted
    /// so far. Returns the offset of the first missing record if the piece has it.
    fn count_piece(&mut self, chunk: &Chunk) -> LogResult<Option<i64>> {
        let range = chunk.start_offset.map_or(self.start, |start| start.max(self.start))
            ..chunk.end_offset.map_or(self.end, |end| end.min(self.end));
        if chunk.next_offset.is_some_and(|next| next <= range.start) || chunk.expected_offset >= range.end {
            return Ok(None);
        }
        let (mut total, mut first_offset) = (0_u64, None);
        let mut reader = self.open(chunk)?;
        while let Some((data, count)) = self.next_batch(&mut reader, &range)? {
            total = total.saturating_add(count);
            if first_offset.is_none() {
                first_offset = data.batch().base_offset(&mut self.decompressor).ok();
            }
        }
        self.end = first_offset.map_or(self.end, |first| first.max(range.start).min(self.end));
        if total < self.missing {
            self.missing -= total;
            return Ok(None);
        }
        // Reading the piece again needs less memory than a list of its batches.
        let mut skipped = total - self.missing;
        let mut reader = self.open(chunk)?;
        while let Some((data, count)) = self.next_batch(&mut reader, &range)? {
            if count > skipped {
                return Ok(Some(self.nth_offset(&data.batch(), &range, skipped)));
            }
            skipped -= count;
        }
        Ok(None)
    }

    fn open(&mut self, chunk: &Chunk) -> LogResult<ChunkReader> {
        let ReadOptions { check_crcs, max_decompressed_bytes, .. } = self.options;
        let reader = ChunkReader::open(chunk.clone(), check_crcs, max_decompressed_bytes);
        let reader = reader.map_err(|e| LogError::io(chunk.location.path(), e))?;
        self.has_replaced_files |= reader.is_replaced();
        Ok(reader.max_problems(0))
    }

    /// The next batch, and the number of its data records in the range.
    fn next_batch(
        &mut self,
        reader: &mut ChunkReader,
        range: &Range<i64>,
    ) -> LogResult<Option<(SegmentBatch, u64)>> {
        let next = reader.next_batch().map_err(|e| LogError::io(reader.chunk().location.path(), e))?;
        let Some((data, disposition)) = next else { return Ok(None) };
        let batch = data.batch();
        reader.pass(None, batch.last_offset());
        let count = if disposition == Disposition::Rows { self.count(&batch, range) } else { 0 };
        Ok(Some((data, count)))
    }

    /// The number of the batch's records in the range; 0 if it does not decode.
    fn count(&mut self, batch: &Batch<'_>, range: &Range<i64>) -> u64 {
        if batch.last_offset() < range.start {
            return 0;
        }
        if let Some(batch) = batch.as_v2() {
            if batch.base_offset() >= range.end {
                return 0;
            }
            let is_inside = range.start <= batch.base_offset() && batch.last_offset() < range.end;
            if is_inside && self.options.mode == DamageMode::FailFast {
                return u64::try_from(batch.record_count()).unwrap_or(0);
            }
        }
        let offsets = self.offsets(batch, range);
        offsets.and_then(|mut all| all.try_fold(0, |count, offset| offset.map(|_| count + 1))).unwrap_or(0)
    }

    /// The offset of the batch's n-th record in the range, from 0 on. If the batch does not decode, the read
    /// ends with an error wherever it begins in the batch.
    fn nth_offset(&mut self, batch: &Batch<'_>, range: &Range<i64>, n: u64) -> i64 {
        let n = usize::try_from(n).unwrap_or(usize::MAX);
        let found = self.offsets(batch, range).and_then(|mut offsets| offsets.nth(n).transpose());
        found.ok().flatten().unwrap_or(batch.stored_offset().max(range.start))
    }

    /// The offsets of the batch's records in the range.
    fn offsets<'r>(
        &'r mut self,
        batch: &Batch<'r>,
        range: &'r Range<i64>,
    ) -> Result<impl Iterator<Item = Result<i64>> + 'r> {
        let records = batch.records(&mut self.decompressor)?;
        let records = if self.options.check_crcs { records } else { records.without_crc_check() };
        let offsets = records.map(|record| record.map(|record| record.offset()));
        Ok(offsets.filter(|offset| offset.as_ref().map_or(true, |offset| range.contains(offset))))
    }
}

/// Asks the pieces of a log for the offset, from the last one on.
fn find_last<T>(pieces: &[T], mut find: impl FnMut(&T) -> LogResult<Option<i64>>) -> LogResult<Option<i64>> {
    pieces.iter().rev().find_map(|piece| find(piece).transpose()).transpose()
}
