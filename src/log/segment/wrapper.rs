//! The offsets of a compressed wrapper's messages. A wrapper's own offset lies outside its checksum; what is
//! inside, and its neighbours, tell whether it can be right.

use crate::batch::Batch;
use crate::compression::codec::Compression;
use crate::compression::decompressor::Decompressor;
use crate::error::{ErrorKind, Result};

/// First and last offset of the messages in a compressed wrapper of magic 0 or 1. None for any other batch, and
/// for one that does not decode: that is for its reader to find. Cost: it is decompressed.
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

/// Checks a wrapper's offset by those `inner` to it. In magic 0 these are absolute: a broker writes that of the
/// last message. In magic 1 they count from the wrapper's: none may be before `expected`.
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
