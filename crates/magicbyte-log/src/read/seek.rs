//! Finds a position in a segment through its indexes, which are checked against the log, or by a scan of
//! batch headers if an index is missing or wrong.

use std::path::PathBuf;

use ::bytes::Bytes;
use magicbyte::internals::Frame;
use magicbyte::sidecar::{parse_offset_index, parse_time_index};
use magicbyte::{Batch, DEFAULT_MAX_DECOMPRESSED_BYTES, RECORD_BATCH_OVERHEAD};

use crate::error::{LogError, LogResult};
use crate::listing::Segment;
use crate::segment::blocks::Blocks;
use crate::storage::sidecars::read_index;

const BLOCK: usize = 64 << 10;

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
pub(super) fn position_for_timestamp(segment: &Segment, timestamp: i64) -> LogResult<u64> {
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
pub(super) struct Headers {
    path: PathBuf,
    blocks: Blocks,
    pub(super) position: u64,
}

pub(super) struct HeaderSummary {
    pub(super) position: u64,
    pub(super) size: usize,
    pub(super) stored_offset: i64,
    pub(super) last_offset: i64,
    pub(super) max_timestamp: i64,
}

impl Headers {
    pub(super) fn open(segment: &Segment) -> LogResult<Self> {
        let path = segment.location.path().to_owned();
        let blocks = Blocks::open(&segment.location, segment.size, segment.version.as_deref(), BLOCK)
            .map_err(|e| LogError::io(&path, e))?;
        Ok(Self { path, blocks, position: 0 })
    }

    fn io(&self, error: std::io::Error) -> LogError {
        LogError::io(&self.path, error)
    }

    /// The next header; None where the chain of headers ends.
    pub(super) fn next(&mut self) -> LogResult<Option<HeaderSummary>> {
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

    /// The bytes of the header's batch.
    pub(super) fn batch(&mut self, header: &HeaderSummary) -> LogResult<Bytes> {
        self.blocks.at(header.position, header.size).map_err(|e| self.io(e))
    }

    fn crc_holds(&mut self, header: &HeaderSummary) -> LogResult<bool> {
        if header.size > DEFAULT_MAX_DECOMPRESSED_BYTES {
            return Ok(false);
        }
        let data = self.batch(header)?;
        Ok(Batch::from_frame(&data, header.position).is_ok_and(|batch| batch.verify().is_ok()))
    }
}
