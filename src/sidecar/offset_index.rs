//! `.index`: maps offsets to file positions, in entries of 8 bytes (Kafka's `OffsetIndex`).

use crate::bytes::cursor::be;
use crate::error::{Error, ErrorKind, Result};

/// The size of an entry in bytes.
#[doc(hidden)]
pub const OFFSET_INDEX_ENTRY: usize = 8;

/// One entry: the batch with this last offset starts at this position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct OffsetIndexEntry {
    /// Absolute last offset of the batch; before Kafka 4.1, of the whole append.
    pub offset: i64,
    /// Byte position of the batch (append) in the segment.
    pub position: u32,
}

/// The entries of an offset index as stored, even if out of order, for inspecting damaged files. The zeros at
/// the end of a live broker's preallocated file and a truncated last entry are left out.
pub fn offset_index_entries(data: &[u8], base_offset: i64) -> impl Iterator<Item = OffsetIndexEntry> {
    used_entries(data, OFFSET_INDEX_ENTRY).map(move |e| OffsetIndexEntry {
        offset: base_offset.wrapping_add(be!(e, 0, i32).into()),
        position: be!(e, 4, u32),
    })
}

/// Reads the offset index of a segment with this base offset; zeros at its end are left out.
///
/// # Errors
/// [`ErrorKind::InvalidSidecar`] if the size is not a multiple of 8 or the entries do not increase.
pub fn parse_offset_index(data: &[u8], base_offset: i64) -> Result<Vec<OffsetIndexEntry>> {
    check_size(data, OFFSET_INDEX_ENTRY, "an offset index")?;
    let entries: Vec<_> = offset_index_entries(data, base_offset).collect();
    let increasing =
        |pair: &[OffsetIndexEntry]| pair[0].offset < pair[1].offset && pair[0].position < pair[1].position;
    if !entries.windows(2).all(increasing) || entries.first().is_some_and(|e| e.offset < base_offset) {
        return Err(ErrorKind::InvalidSidecar("the entries of the offset index do not increase").into());
    }
    Ok(entries)
}

/// Writes the offset index of a segment with this base offset.
///
/// # Errors
/// [`ErrorKind::InvalidSidecar`] if an offset is below the base offset or more than 2^31-1 above it.
pub fn write_offset_index(entries: &[OffsetIndexEntry], base_offset: i64) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(OFFSET_INDEX_ENTRY * entries.len());
    for entry in entries {
        out.extend(relative_offset(entry.offset, base_offset)?.to_be_bytes());
        out.extend(entry.position.to_be_bytes());
    }
    Ok(out)
}

/// An offset relative to the segment's base offset, as its indexes store it (Kafka's
/// `AbstractIndex.relativeOffset`).
pub(super) fn relative_offset(offset: i64, base_offset: i64) -> Result<i32> {
    let relative = offset.checked_sub(base_offset).and_then(|distance| i32::try_from(distance).ok());
    relative.filter(|&distance| distance >= 0).ok_or_else(|| {
        ErrorKind::InvalidSidecar("an offset is not within an int of its segment's base offset").into()
    })
}

pub(super) fn check_size(data: &[u8], entry: usize, what: &'static str) -> Result<()> {
    if !data.len().is_multiple_of(entry) {
        let kind = ErrorKind::InvalidSidecar("the size is not a multiple of an entry's");
        return Err(Error::new(kind).in_field(what));
    }
    Ok(())
}

/// The entries of an index file before the zeros at its end. A first entry of zeros (base offset, position 0)
/// counts only if others follow it.
pub(super) fn used_entries(data: &[u8], size: usize) -> impl Iterator<Item = &[u8]> {
    let tail = data.iter().rev().take_while(|&&byte| byte == 0).count();
    // The last used entry may end in zero bytes of its own.
    let used = ((data.len() - tail).div_ceil(size) * size).min(data.len());
    data[..used].chunks_exact(size)
}
