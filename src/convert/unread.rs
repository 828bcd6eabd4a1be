//! Finding bytes of a batch that no reader returns but a copy would keep.

use crate::batch::Batch;
use crate::compression::codec::Compression;
use crate::compression::plain::is_plain;
use crate::convert::decoded::Decoded;
use crate::error::Result;
use crate::legacy::batch::LegacyBatch;
use crate::legacy::iter::split_message;

#[doc(hidden)]
impl Decoded<'_, '_> {
    /// True if the batch has bytes that no reader returns: after the header of a batch without records, in
    /// the key of a wrapper, after the value of a message, in a truncated message at the end of a wrapper, or
    /// beside the content of a compressed stream.
    ///
    /// # Errors
    /// None in practice, since the batch has been decoded.
    pub fn has_unread_bytes(&self) -> Result<bool> {
        match self.batch {
            Batch::V2(batch) if batch.record_count() == 0 => Ok(!batch.payload().is_empty()),
            Batch::V2(batch) => Ok(!is_plain(batch.compression()?, batch.payload(), self.payload)),
            Batch::Legacy(batch) => has_unread_bytes(batch, self.payload),
        }
    }
}

fn has_unread_bytes(batch: &LegacyBatch<'_>, payload: &[u8]) -> Result<bool> {
    let (codec, message) = (batch.compression()?, batch.message());
    if message.has_rest()? || codec == Compression::None {
        return message.has_rest();
    }
    let (key, _) = message.key_and_value()?;
    if key.is_some() || !is_plain(codec, batch.wrapped(codec)?, payload) {
        return Ok(true);
    }
    let mut rest = payload;
    while let Some((_, message, after)) = split_message(rest)? {
        if message.has_rest()? {
            return Ok(true);
        }
        rest = after;
    }
    Ok(!rest.is_empty())
}
