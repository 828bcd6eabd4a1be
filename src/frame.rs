//! The first bytes of a batch: offset, length and magic (Kafka's `ByteBufferLogInputStream`).

use crate::bytes::cursor::be;
use crate::error::{Error, ErrorKind, Result};
use crate::legacy::message::RECORD_OVERHEAD_V0;

/// Size of the offset and length fields in front of every batch.
#[doc(hidden)]
pub const LOG_OVERHEAD: usize = 12;
/// Size of offset, length, CRC or leader epoch, and magic.
#[doc(hidden)]
pub const HEADER_SIZE_UP_TO_MAGIC: usize = 17;
pub(crate) const MAGIC: usize = 16;
/// The smallest value of the length field: a magic 0 message without key and value.
const MIN_LENGTH: i32 = RECORD_OVERHEAD_V0 as i32;
/// Larger lengths overflow an int once [`LOG_OVERHEAD`] is added.
const MAX_LENGTH: i32 = i32::MAX - LOG_OVERHEAD as i32;

/// The batch at the start of some bytes.
#[doc(hidden)]
pub enum Frame {
    /// A batch of this size in bytes.
    Whole {
        /// Bytes.
        size: usize,
    },
    /// The start of a batch, or too few bytes to decide: at least this many are missing.
    Cut {
        /// Bytes.
        needed: u64,
    },
}

#[doc(hidden)]
impl Frame {
    /// Checks the start of `data` in Kafka's order, so that a truncated tail and a corrupt one are
    /// distinguished as Kafka does.
    #[inline(always)]
    pub fn read(data: &[u8]) -> Result<Self> {
        let cut = |size: usize| Self::Cut { needed: (size - data.len()) as u64 };
        if data.len() < LOG_OVERHEAD {
            return Ok(cut(LOG_OVERHEAD));
        }
        let length = be!(data, 8, i32);
        if length < MIN_LENGTH {
            return Err(invalid_length(data));
        }
        let size = LOG_OVERHEAD + length as usize;
        if data.len() < HEADER_SIZE_UP_TO_MAGIC {
            return Ok(cut(size));
        }
        if !(0..=2).contains(&(data[MAGIC] as i8)) {
            return Err(unsupported_magic(data));
        }
        // Kafka counts a whole batch in an int, overflows here and fails: the batch is corrupt, not
        // truncated.
        if length > MAX_LENGTH {
            return Err(invalid_length(data));
        }
        Ok(if data.len() < size { cut(size) } else { Self::Whole { size } })
    }
}

#[cold]
fn invalid_length(data: &[u8]) -> Error {
    let (found, min, max) = (be!(data, 8, i32).into(), MIN_LENGTH.into(), MAX_LENGTH.into());
    let invalid = ErrorKind::InvalidSize { found, min, max };
    Error::new(invalid).in_field("length").in_batch_at_offset(be!(data, 0, i64))
}

#[cold]
fn unsupported_magic(data: &[u8]) -> Error {
    let error = Error::new(ErrorKind::UnsupportedMagic(data[MAGIC] as i8));
    error.in_field("magic").in_batch_at_offset(be!(data, 0, i64))
}
