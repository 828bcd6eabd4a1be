//! `.timeindex`: maps the largest timestamp so far to an offset, in entries of 12 bytes (Kafka's
//! `TimeIndex`).

use crate::bytes::cursor::be;
use crate::error::{ErrorKind, Result};
use crate::sidecar::offset_index::{check_size, relative_offset, used_entries};

/// The size of an entry in bytes.
#[doc(hidden)]
pub const TIME_INDEX_ENTRY: usize = 12;

/// One entry: no record up to the offset has a larger timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TimeIndexEntry {
    /// Timestamp in ms.
    pub timestamp: i64,
    /// Absolute last offset of the batch that has this timestamp.
    pub offset: i64,
}

/// The entries of a time index as stored, even if out of order. Zeros at the end of the file and a truncated
/// last entry are left out.
pub fn time_index_entries(data: &[u8], base_offset: i64) -> impl Iterator<Item = TimeIndexEntry> {
    used_entries(data, TIME_INDEX_ENTRY).map(move |e| TimeIndexEntry {
        timestamp: be!(e, 0, i64),
        offset: base_offset.wrapping_add(be!(e, 8, i32).into()),
    })
}

/// Reads the time index of a segment with this base offset; zeros at its end are left out.
///
/// # Errors
/// [`ErrorKind::InvalidSidecar`] if the size is not a multiple of 12, timestamps do not increase or offsets
/// decrease.
pub fn parse_time_index(data: &[u8], base_offset: i64) -> Result<Vec<TimeIndexEntry>> {
    check_size(data, TIME_INDEX_ENTRY, "a time index")?;
    let entries: Vec<_> = time_index_entries(data, base_offset).collect();
    let increasing =
        |pair: &[TimeIndexEntry]| pair[0].timestamp < pair[1].timestamp && pair[0].offset <= pair[1].offset;
    if !entries.windows(2).all(increasing) || entries.first().is_some_and(|e| e.offset < base_offset) {
        return Err(ErrorKind::InvalidSidecar("the entries of the time index do not increase").into());
    }
    Ok(entries)
}

/// Writes the time index of a segment with this base offset.
///
/// # Errors
/// [`ErrorKind::InvalidSidecar`] if an offset is below the base offset or more than 2^31-1 above it.
pub fn write_time_index(entries: &[TimeIndexEntry], base_offset: i64) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(TIME_INDEX_ENTRY * entries.len());
    for entry in entries {
        out.extend(entry.timestamp.to_be_bytes());
        out.extend(relative_offset(entry.offset, base_offset)?.to_be_bytes());
    }
    Ok(out)
}
