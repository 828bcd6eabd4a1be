//! What was written, read again: no record with a key that was to be forgotten, no bytes that no reader shows,
//! and none of the keys in what else there is.

use std::fs;
use std::ops::Range;
use std::path::Path;

use crate::batch::Batch;
use crate::compression::codec::Compression;
use crate::compression::decompressor::Decompressor;
use crate::convert::decoded::Decoded;
use crate::convert::filter::is_bare;
use crate::error::Result;
use crate::frame::LOG_OVERHEAD;
use crate::legacy::message::RECORD_OVERHEAD_V0;
use crate::log::cleaner::key_set::KeySet;
use crate::log::error::{LogError, LogResult};
use crate::log::segment::reader::{Piece, SegmentReader};
use crate::record::Record;
use crate::record::batch_header::RECORD_BATCH_OVERHEAD;

/// Leaks of one segment that are told in full: one is too many.
const LEAKS_TOLD: usize = 20;

/// What was found in a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CheckedSegment {
    /// Its bytes.
    pub bytes: u64,
    /// Its records.
    pub records: u64,
    /// Places that should not be there.
    pub leaks: u64,
    /// The first of them.
    pub first_leaks: Vec<Leak>,
    /// Records with a larger key that holds one of the keys.
    pub in_keys: u64,
    /// Records with a value that holds one of the keys.
    pub in_values: u64,
    /// Records with headers that hold one of the keys.
    pub in_headers: u64,
}

/// A place that should not be there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Leak {
    /// Where its batch begins.
    pub position: u64,
    /// The offset of the record, or of the batch.
    pub offset: Option<i64>,
    /// What is there.
    pub what: String,
}

/// Reads a segment that a redaction wrote. With `tombstones`, records may have the keys, but nothing else.
///
/// # Errors
/// [`LogError::Io`].
pub fn check_segment(
    path: &Path,
    keys: &KeySet,
    tombstones: bool,
    max_decompressed_bytes: usize,
) -> LogResult<CheckedSegment> {
    let io = |error| LogError::io(path, error);
    let size = fs::metadata(path).map_err(io)?.len();
    let pieces = SegmentReader::open(path, size, 0..size, 0, i64::MAX).map_err(io)?;
    let mut check = Check {
        keys,
        tombstones,
        decompressor: Decompressor::with_limit(max_decompressed_bytes),
        found: CheckedSegment { bytes: size, ..CheckedSegment::default() },
    };
    for piece in pieces.max_batch_size(max_decompressed_bytes) {
        match piece.map_err(io)? {
            Piece::Batch(data) => {
                let checked = check.batch(&data.batch());
                if let Err(error) = checked {
                    check.found.leak(data.position(), None, format!("a batch that does not decode: {error}"));
                }
            }
            Piece::Quarantined { range, .. } | Piece::Tail { range, .. } => {
                check.found.leak(range.start, None, "bytes that are no batch".into());
            }
        }
    }
    Ok(check.found)
}

struct Check<'k> {
    keys: &'k KeySet,
    tombstones: bool,
    decompressor: Decompressor,
    found: CheckedSegment,
}

impl Check<'_> {
    fn batch(&mut self, batch: &Batch<'_>) -> Result<()> {
        let Self { keys, tombstones, decompressor, found } = self;
        let position = batch.position();
        let mut leak = |offset: i64, what: &str| found.leak(position, Some(offset), what.into());
        let is_producers = matches!(batch, Batch::V2(batch) if batch.producer_id() >= 0);
        let mut records = 0;
        let decoded = Decoded::visiting(batch, decompressor, |record| {
            records += 1;
            if batch.is_control() {
                if !is_bare(&record) || records > 1 && is_producers {
                    leak(record.offset, "more in a control batch than what it says");
                }
            } else if record.key.is_some_and(|key| keys.number_of(key).is_some())
                && !(*tombstones && record.value.is_none() && record.headers.is_empty())
            {
                leak(record.offset, "a record with one of the keys");
            }
        })?;
        if decoded.has_unread_bytes()? {
            leak(batch.stored_offset(), "bytes that no reader shows");
        }
        found.records += records;
        if keys.find(header_of(batch)).is_some() {
            found.leak(position, Some(batch.stored_offset()), "one of the keys in a batch's header".into());
        }
        found.add_occurrences(keys, &decoded)
    }
}

/// Of a batch whose payload does not hold it: what precedes that.
fn header_of<'a>(batch: &Batch<'a>) -> &'a [u8] {
    match batch {
        Batch::V2(batch) => &batch.as_bytes()[..RECORD_BATCH_OVERHEAD],
        Batch::Legacy(batch) => match batch.compression() {
            Ok(Compression::None) => &[],
            _ => &batch.as_bytes()[..LOG_OVERHEAD + RECORD_OVERHEAD_V0],
        },
    }
}

impl CheckedSegment {
    fn leak(&mut self, position: u64, offset: Option<i64>, what: String) {
        self.leaks += 1;
        if self.first_leaks.len() < LEAKS_TOLD {
            self.first_leaks.push(Leak { position, offset, what });
        }
    }

    /// Looks for the keys in every byte of the payload.
    fn add_occurrences(&mut self, keys: &KeySet, decoded: &Decoded<'_, '_>) -> Result<()> {
        let (batch, payload) = (decoded.batch, decoded.payload());
        let mut hits = keys.find_iter(payload).peekable();
        if hits.peek().is_none() {
            return Ok(());
        }
        for record in decoded.records() {
            let record = record?;
            let [in_key, in_value, in_headers] = parts_of(&record).map(|part| keys.find(part).is_some());
            if batch.is_control() {
                if in_key || in_value || in_headers {
                    self.leak(
                        batch.position(),
                        Some(record.offset),
                        "one of the keys in a control record".into(),
                    );
                }
            } else {
                let is_own = record.key.is_some_and(|key| keys.number_of(key).is_some());
                self.in_keys += u64::from(in_key && !is_own);
                self.in_values += u64::from(in_value);
                self.in_headers += u64::from(in_headers);
            }
            // What ends in a field, or begins there, is that field's: the lengths between them may look like
            // the rest of a key.
            let fields = parts_of(&record).map(|part| range_in(payload, part));
            let end = fields.iter().map(|field| field.end).max().unwrap_or(0);
            while let Some(hit) = hits.next_if(|hit| hit.start < end) {
                if !fields.iter().any(|field| field.start < hit.end && hit.start < field.end) {
                    self.leak(batch.position(), Some(record.offset), "one of the keys between fields".into());
                }
            }
        }
        if hits.next().is_some() {
            let offset = Some(batch.stored_offset());
            self.leak(batch.position(), offset, "one of the keys after the records".into());
        }
        Ok(())
    }
}

/// Key, value and headers, in this order as in the batch.
fn parts_of<'r>(record: &Record<'r>) -> [&'r [u8]; 3] {
    [record.key.unwrap_or_default(), record.value.unwrap_or_default(), record.headers.parts().0]
}

/// The place of a part of `payload` in it.
fn range_in(payload: &[u8], part: &[u8]) -> Range<usize> {
    if part.is_empty() {
        return 0..0;
    }
    let start = (part.as_ptr() as usize).wrapping_sub(payload.as_ptr() as usize);
    start..start.wrapping_add(part.len())
}
