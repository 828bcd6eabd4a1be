//! Bytes of a batch that no reader shows, and that a copy would keep: what may be in them nobody has seen.

use crate::batch::Batch;
use crate::compression::codec::Compression;
use crate::compression::plain::is_plain;
use crate::convert::decoded::Decoded;
use crate::error::Result;
use crate::legacy::batch::LegacyBatch;
use crate::legacy::iter::split_message;

impl Decoded<'_, '_> {
    /// Whether there are any: after the header of a batch without records, a wrapper's key, after a
    /// message's value, a message cut at a wrapper's end, or beside the content of a compressed stream.
    ///
    /// # Errors
    /// None in practice: the batch was decoded before.
    pub(crate) fn has_unread_bytes(&self) -> Result<bool> {
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
    while let Some((_, message, behind)) = split_message(rest)? {
        if message.has_rest()? {
            return Ok(true);
        }
        rest = behind;
    }
    Ok(!rest.is_empty())
}
