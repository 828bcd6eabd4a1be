//! The offsets of the messages in a compressed wrapper. The CRC does not cover a wrapper's own offset, so it
//! is checked against the messages inside and the neighboring batches.

use magicbyte::{Batch, Compression, Decompressor, ErrorKind, Result};

/// The messages in a compressed wrapper of magic 0 or 1. Its header has only the last offset.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InnerMessages {
    pub(crate) first_offset: i64,
    /// Inclusive.
    pub(crate) last_offset: i64,
    pub(crate) count: u64,
}

/// True if a batch is a compressed wrapper of magic 0 or 1.
pub(crate) fn is_wrapper(batch: &Batch<'_>) -> bool {
    batch.magic() < 2 && batch.compression() != Ok(Compression::None)
}

/// The messages in a wrapper. None for any other batch, and for a wrapper that does not decode: its reader
/// reports that. Cost: decompresses the wrapper, unless it was decompressed before.
pub(crate) fn inner_messages(batch: &Batch<'_>, decompressor: &mut Decompressor) -> Option<InnerMessages> {
    if !is_wrapper(batch) {
        return None;
    }
    let mut messages: Option<InnerMessages> = None;
    for message in batch.records(decompressor).ok()?.without_crc_check() {
        let offset = message.ok()?.offset();
        let seen =
            messages.get_or_insert(InnerMessages { first_offset: offset, last_offset: offset, count: 0 });
        seen.last_offset = offset;
        seen.count += 1;
    }
    messages
}

/// Checks a wrapper's offset against the offsets `inner` to it. In magic 0 these are absolute, and a broker
/// stores the offset of the last message. In magic 1 they are relative to the wrapper's offset; none may be
/// below `expected`.
///
/// # Errors
/// [`ErrorKind::OffsetOutOfOrder`].
pub(crate) fn check_offset(batch: &Batch<'_>, inner: InnerMessages, expected: i64) -> Result<()> {
    let (found, expected) = match batch.magic() {
        0 if batch.last_offset() != inner.last_offset => (batch.last_offset(), inner.last_offset),
        1 if inner.first_offset < expected => (inner.first_offset, expected),
        _ => return Ok(()),
    };
    Err(batch.place(ErrorKind::OffsetOutOfOrder { found, expected }.into()))
}
