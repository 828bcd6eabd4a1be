//! Reads back what a redaction wrote, to confirm that no record has a key to be erased, that no bytes are
//! invisible to readers, and that the keys are not found anywhere else.

use std::ops::Range;
use std::path::Path;

use magicbyte::internals::{Decoded, LOG_OVERHEAD, RECORD_OVERHEAD_V0, is_bare};
use magicbyte::{Batch, Compression, Decompressor, RECORD_BATCH_OVERHEAD, Record, Result};

use crate::cleaner::key_set::KeySet;
use crate::error::{LogError, LogResult};
use crate::segment::reader::{Piece, SegmentReader};
use crate::storage::local;

/// The number of leaks of one segment that are listed.
const LISTED_LEAKS: usize = 20;

/// The findings in one segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct CheckedSegment {
    /// Size in bytes.
    pub bytes: u64,
    /// The number of records.
    pub records: u64,
    /// The number of leaks.
    pub leaks: u64,
    /// The first leaks.
    pub first_leaks: Vec<Leak>,
    /// Records whose key is not one of the keys but contains one.
    pub in_keys: u64,
    /// Records whose value contains one of the keys.
    pub in_values: u64,
    /// Records whose headers contain one of the keys.
    pub in_headers: u64,
}

/// Bytes that a redaction should not have left.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Leak {
    /// Position of the batch.
    pub position: u64,
    /// The offset of the record or the batch.
    pub offset: Option<i64>,
    /// A human-readable description.
    pub what: String,
}

/// Checks a segment that a redaction wrote. With `tombstones`, records may have the keys, but neither values
/// nor headers.
///
/// # Errors
/// [`LogError::Io`].
pub fn check_segment(
    path: impl AsRef<Path>,
    keys: &KeySet,
    tombstones: bool,
    max_decompressed_bytes: usize,
) -> LogResult<CheckedSegment> {
    let path = path.as_ref();
    let io = |error| LogError::io(path, error);
    let size = local::size(path).map_err(io)?;
    let pieces = SegmentReader::open(path, size, 0..size, 0, i64::MAX).map_err(io)?;
    let mut check = Check {
        keys,
        tombstones,
        decompressor: Decompressor::with_limit(max_decompressed_bytes),
        checked: CheckedSegment { bytes: size, ..CheckedSegment::default() },
    };
    for piece in pieces.max_batch_size(max_decompressed_bytes) {
        match piece.map_err(io)? {
            Piece::Batch(data) => {
                if let Err(error) = check.batch(&data.batch()) {
                    check.checked.leak(
                        data.position(),
                        None,
                        format!("a batch that does not decode: {error}"),
                    );
                }
            }
            Piece::Quarantined { range, .. } | Piece::Tail { range, .. } => {
                check.checked.leak(range.start, None, "bytes outside of batches".into());
            }
        }
    }
    Ok(check.checked)
}

struct Check<'k> {
    keys: &'k KeySet,
    tombstones: bool,
    decompressor: Decompressor,
    checked: CheckedSegment,
}

impl Check<'_> {
    fn batch(&mut self, batch: &Batch<'_>) -> Result<()> {
        let Self { keys, tombstones, decompressor, checked } = self;
        let position = batch.position();
        let mut leak = |offset: i64, what: &str| checked.leak(position, Some(offset), what.into());
        let is_producers = batch.has_producer_id();
        let mut records = 0;
        let decoded = Decoded::visiting(batch, decompressor, |record| {
            records += 1;
            if batch.is_control() {
                if !is_bare(&record) || records > 1 && is_producers {
                    leak(record.offset(), "excess bytes or records in a control batch");
                }
            } else if record.key().is_some_and(|key| keys.number_of(key).is_some())
                && !(*tombstones && record.value().is_none() && record.headers().is_empty())
            {
                leak(record.offset(), "a record with one of the keys");
            }
        })?;
        if decoded.has_unread_bytes()? {
            leak(batch.stored_offset(), "bytes that no reader returns");
        }
        checked.records += records;
        if keys.find(header_of(batch)).is_some() {
            checked.leak(position, Some(batch.stored_offset()), "one of the keys in a batch's header".into());
        }
        checked.add_occurrences(keys, &decoded)
    }
}

/// The bytes before the payload, if the payload does not include them.
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
        if self.first_leaks.len() < LISTED_LEAKS {
            self.first_leaks.push(Leak { position, offset, what });
        }
    }

    /// Searches for the keys in every byte of the payload.
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
                        Some(record.offset()),
                        "one of the keys in a control record".into(),
                    );
                }
            } else {
                let is_own = record.key().is_some_and(|key| keys.number_of(key).is_some());
                self.in_keys += u64::from(in_key && !is_own);
                self.in_values += u64::from(in_value);
                self.in_headers += u64::from(in_headers);
            }
            // A hit that overlaps a field belongs to that field: the lengths between fields may look like the
            // rest of a key.
            let fields = parts_of(&record).map(|part| range_in(payload, part));
            let end = fields.iter().map(|field| field.end).max().unwrap_or(0);
            while let Some(hit) = hits.next_if(|hit| hit.start < end) {
                if !fields.iter().any(|field| field.start < hit.end && hit.start < field.end) {
                    self.leak(
                        batch.position(),
                        Some(record.offset()),
                        "one of the keys between fields".into(),
                    );
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

/// Key, value and headers, in the order in which they are stored.
fn parts_of<'r>(record: &Record<'r>) -> [&'r [u8]; 3] {
    [record.key().unwrap_or_default(), record.value().unwrap_or_default(), record.headers().parts().0]
}

/// The range of a part of `payload` within it.
fn range_in(payload: &[u8], part: &[u8]) -> Range<usize> {
    if part.is_empty() {
        return 0..0;
    }
    let start = (part.as_ptr() as usize).wrapping_sub(payload.as_ptr() as usize);
    start..start.wrapping_add(part.len())
}
