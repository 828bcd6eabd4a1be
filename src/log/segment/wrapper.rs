//! The offsets of the messages in a compressed wrapper. The CRC does not cover a wrapper's own offset, so it
//! is checked against the messages inside and the neighboring batches.

use crate::batch::Batch;
use crate::compression::codec::Compression;
use crate::compression::decompressor::Decompressor;
use crate::error::{ErrorKind, Result};

/// The first and last offset of the messages in a compressed wrapper of magic 0 or 1. None for any other
/// batch, and for a wrapper that does not decode: its reader reports that. Cost: decompresses the wrapper.
pub(crate) fn inner_offsets(batch: &Batch<'_>, decompressor: &mut Decompressor) -> Option<(i64, i64)> {
    if batch.magic() > 1 || batch.compression() == Ok(Compression::None) {
        return None;
    }
    let mut offsets = None;
    for message in batch.records(decompressor).ok()?.without_crc_check() {
        let offset = message.ok()?.offset();
        let (first, _) = *offsets.get_or_insert((offset, offset));
        offsets = Some((first, offset));
    }
    offsets
}

/// Checks a wrapper's offset against the offsets `inner` to it. In magic 0 these are absolute, and a broker
/// stores that of the last message. In magic 1 they are relative to the wrapper's offset; none may be below
/// `expected`.
///
/// # Errors
/// [`ErrorKind::OffsetOutOfOrder`].
pub(crate) fn check_offset(batch: &Batch<'_>, inner: (i64, i64), expected: i64) -> Result<()> {
    let (first, last) = inner;
    let (found, expected) = match batch.magic() {
        0 if batch.last_offset() != last => (batch.last_offset(), last),
        1 if first < expected => (first, expected),
        _ => return Ok(()),
    };
    Err(batch.place(ErrorKind::OffsetOutOfOrder { found, expected }.into()))
}
