//! Finds a position in a segment through its indexes, which are checked against the log, or by a scan of
//! batch headers if an index is missing or wrong.

use std::path::PathBuf;

use magicbyte::internals::Frame;
use magicbyte::sidecar::{parse_offset_index, parse_time_index};
use magicbyte::{Batch, DEFAULT_MAX_DECOMPRESSED_BYTES, Decompressor, RECORD_BATCH_OVERHEAD, Result};

use crate::error::{LogError, LogResult};
use crate::listing::Segment;
use crate::read::plan::Plan;
use crate::segment::blocks::Blocks;
use crate::storage::sidecars::read_index;

const BLOCK: usize = 64 << 10;

/// The first offset in the log whose record has this timestamp (ms) or a later one (Kafka's
/// `LogSegment.findOffsetByTimestamp`, segment by segment). None if there is no such record.
///
/// # Errors
/// [`LogError::Io`] if no file can be opened or memory is exhausted.
pub fn offset_for_timestamp(plan: &Plan, timestamp: i64) -> LogResult<Option<i64>> {
    Ok(record_for_timestamp(plan, timestamp)?.map(|record| record.offset))
}

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

/// A variant of [`offset_for_timestamp`] that also returns the record's own timestamp and leader epoch.
#[doc(hidden)]
pub fn record_for_timestamp(plan: &Plan, timestamp: i64) -> LogResult<Option<FoundRecord>> {
    let start = plan.log_start_offset.unwrap_or(i64::MIN);
    for planned in plan.segments.iter().filter(|planned| planned.max_timestamp >= timestamp) {
        if let Some(record) = record_for_timestamp_in(&planned.segment, timestamp, start)? {
            return Ok(Some(record));
        }
    }
    Ok(None)
}

/// The first offset in the segment, from `start` on, whose record has this timestamp (ms) or a later one.
pub(crate) fn offset_for_timestamp_in(
    segment: &Segment,
    timestamp: i64,
    start: i64,
) -> LogResult<Option<i64>> {
    Ok(record_for_timestamp_in(segment, timestamp, start)?.map(|record| record.offset))
}

fn record_for_timestamp_in(segment: &Segment, timestamp: i64, start: i64) -> LogResult<Option<FoundRecord>> {
    let mut headers = Headers::open(segment)?;
    headers.position = position_for_timestamp(segment, timestamp)?;
    let mut decompressor = Decompressor::new();
    while let Some(header) = headers.next()? {
        if header.max_timestamp < timestamp || header.size > DEFAULT_MAX_DECOMPRESSED_BYTES {
            continue;
        }
        let data = headers.blocks.at(header.position, header.size).map_err(|e| headers.io(e))?;
        let record = first_at_or_after(&data, header.position, (timestamp, start), &mut decompressor);
        // A damaged batch has no record to find. A read that starts at a later one does not report it.
        if let Ok(Some(record)) = record {
            return Ok(Some(record));
        }
    }
    Ok(None)
}

fn first_at_or_after(
    data: &[u8],
    position: u64,
    (timestamp, start): (i64, i64),
    decompressor: &mut Decompressor,
) -> Result<Option<FoundRecord>> {
    let batch = Batch::from_frame(data, position)?;
    batch.verify()?;
    let leader_epoch = batch.partition_leader_epoch();
    for record in batch.records(decompressor)? {
        let record = record?;
        let (offset, timestamp_found) = (record.offset(), record.timestamp());
        if timestamp_found >= timestamp && offset >= start {
            let magic = batch.magic();
            return Ok(Some(FoundRecord { offset, timestamp: timestamp_found, leader_epoch, magic }));
        }
    }
    Ok(None)
}

/// Position of a batch such that no record at or after `offset` is before it: the last indexed batch whose
/// base offset is not greater than `offset`, or the segment's start.
pub(crate) fn position_for_offset(segment: &Segment, offset: i64) -> LogResult<u64> {
    let Some(data) = known_entries(segment, "index") else { return Ok(0) };
    let Ok(entries) = parse_offset_index(&data, segment.base_offset) else { return Ok(0) };
    let known = entries.partition_point(|entry| entry.offset <= offset);
    let mut headers = Headers::open(segment)?;
    // An entry counts only if it leads to a batch whose CRC holds and whose base offset is not past the
    // offset, and intact batches lead there from two entries before: an entry that points into a value is not
    // reached.
    for index in (0..known).rev() {
        let (entry, position) = (entries[index], u64::from(entries[index].position));
        headers.position = index.checked_sub(2).map_or(0, |before| entries[before].position.into());
        let mut intact = true;
        while intact && headers.position < position {
            intact = match headers.next()? {
                Some(header) => headers.crc_holds(&header)?,
                None => false,
            };
        }
        if intact
            && headers.position == position
            && let Some(header) = headers.next()?
            && (segment.base_offset..=entry.offset).contains(&header.stored_offset)
            && header.stored_offset <= offset
            && headers.crc_holds(&header)?
        {
            return Ok(position);
        }
    }
    Ok(0)
}

/// Position of a batch with no record at or after the timestamp before it.
fn position_for_timestamp(segment: &Segment, timestamp: i64) -> LogResult<u64> {
    let Some(data) = known_entries(segment, "timeindex") else { return Ok(0) };
    let Ok(entries) = parse_time_index(&data, segment.base_offset) else { return Ok(0) };
    let known = entries.partition_point(|entry| entry.timestamp < timestamp);
    let Some(entry) = entries[..known].last() else { return Ok(0) };
    // The entry must point to the batch in which its timestamp was reached.
    let mut headers = Headers::open(segment)?;
    headers.position = position_for_offset(segment, entry.offset)?;
    while let Some(header) = headers.next()? {
        if header.last_offset >= entry.offset {
            let entry_holds = header.last_offset == entry.offset && header.max_timestamp == entry.timestamp;
            return Ok(if entry_holds { header.position } else { 0 });
        }
    }
    Ok(0)
}

/// The offset in the first batch's header.
pub(crate) fn first_stored_offset(segment: &Segment) -> LogResult<Option<i64>> {
    Ok(Headers::open(segment)?.next()?.map(|header| header.stored_offset))
}

/// The segment's index with this extension, up to its first zeros: later entries would only save time. An
/// unreadable index is as good as a missing one; the survey reports it.
fn known_entries(segment: &Segment, ending: &str) -> Option<Vec<u8>> {
    read_index(&segment.sidecar(ending), 0).ok().flatten()
}

/// A walk over a segment's batch headers.
struct Headers {
    path: PathBuf,
    blocks: Blocks,
    position: u64,
}

struct HeaderSummary {
    position: u64,
    size: usize,
    stored_offset: i64,
    last_offset: i64,
    max_timestamp: i64,
}

impl Headers {
    fn open(segment: &Segment) -> LogResult<Self> {
        let path = segment.location.path().to_owned();
        let blocks = Blocks::open(&segment.location, segment.size, segment.version.as_deref(), BLOCK)
            .map_err(|e| LogError::io(&path, e))?;
        Ok(Self { path, blocks, position: 0 })
    }

    fn io(&self, error: std::io::Error) -> LogError {
        LogError::io(&self.path, error)
    }

    /// The next header; None where the chain of headers ends.
    fn next(&mut self) -> LogResult<Option<HeaderSummary>> {
        let position = self.position;
        let header = self.blocks.at(position, RECORD_BATCH_OVERHEAD).map_err(|e| self.io(e))?;
        let size = match Frame::read(&header) {
            Ok(Frame::Whole { size }) => size,
            Ok(Frame::Cut { needed }) => header.len() + needed as usize,
            Err(_) => return Ok(None),
        };
        if size as u64 > self.blocks.size().saturating_sub(position) {
            return Ok(None);
        }
        let Ok(batch) = Batch::from_header(&header, position) else { return Ok(None) };
        self.position = position + size as u64;
        Ok(Some(HeaderSummary {
            position,
            size,
            stored_offset: batch.stored_offset(),
            last_offset: batch.last_offset(),
            max_timestamp: batch.max_timestamp(),
        }))
    }

    fn crc_holds(&mut self, header: &HeaderSummary) -> LogResult<bool> {
        if header.size > DEFAULT_MAX_DECOMPRESSED_BYTES {
            return Ok(false);
        }
        let data = self.blocks.at(header.position, header.size).map_err(|e| self.io(e))?;
        Ok(Batch::from_frame(&data, header.position).is_ok_and(|batch| batch.verify().is_ok()))
    }
}
