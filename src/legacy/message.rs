//! One message of magic 0 or 1, without its offset and size (`LegacyRecord`).

use crate::bytes::checksum::crc32;
use crate::bytes::cursor::be;
use crate::compression::codec::Compression;
use crate::error::{Error, ErrorKind, Result};
use crate::record::timestamp_type::TimestampType;

/// Size of the offset and size fields in front of every message.
pub(crate) const LOG_OVERHEAD: usize = 12;
/// Size of the smallest message: CRC, magic, attributes, key size and value size.
#[doc(hidden)]
pub const RECORD_OVERHEAD_V0: usize = 14;

/// Positions of the fields, from the start of the message.
pub mod at {
    /// The CRC before it covers everything from the magic on.
    pub const MAGIC: usize = 4;
    pub(crate) const ATTRIBUTES: usize = 5;
    /// In magic 0 the key is here.
    pub const TIMESTAMP: usize = 6;
}

pub(crate) const COMPRESSION: u8 = 0b111;
#[doc(hidden)]
pub const LOG_APPEND_TIME: u8 = 1 << 3;

/// A message without its offset and size fields; at least [`RECORD_OVERHEAD_V0`] bytes.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    data: &'a [u8],
}

impl<'a> Message<'a> {
    /// The caller has checked that `data` has at least [`RECORD_OVERHEAD_V0`] bytes.
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Self { data }
    }

    #[inline]
    pub(crate) fn crc(&self) -> u32 {
        be!(self.data, 0, u32)
    }

    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn magic(&self) -> i8 {
        self.data[at::MAGIC] as i8
    }

    #[inline]
    pub(crate) fn attributes(&self) -> u8 {
        self.data[at::ATTRIBUTES]
    }

    #[doc(hidden)]
    #[inline]
    pub fn compression(&self) -> Result<Compression> {
        Compression::from_id(self.attributes() & COMPRESSION).map_err(|e| e.in_field("attributes"))
    }

    /// Magic 0 has no timestamp, and ignores the flag.
    #[inline]
    pub(crate) fn timestamp_type(&self) -> TimestampType {
        if self.magic() == 0 {
            TimestampType::NoTimestampType
        } else if self.attributes() & LOG_APPEND_TIME != 0 {
            TimestampType::LogAppendTime
        } else {
            TimestampType::CreateTime
        }
    }

    #[inline]
    pub(crate) fn timestamp(&self) -> i64 {
        if self.magic() == 0 { -1 } else { be!(self.data, at::TIMESTAMP, i64) }
    }

    #[inline]
    pub(crate) fn verify(&self) -> Result<()> {
        let (stored, computed) = (self.crc(), crc32(&self.data[at::MAGIC..]));
        if stored == computed {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::CrcMismatch { stored, computed }).in_field("crc"))
        }
    }

    /// True if bytes follow the value. No reader looks at them.
    pub(crate) fn has_rest(&self) -> Result<bool> {
        let (key, value) = self.key_and_value()?;
        let time = if self.magic() == 0 { 0 } else { 8 };
        let fields = key.map_or(0, <[u8]>::len) + value.map_or(0, <[u8]>::len);
        Ok(RECORD_OVERHEAD_V0 + time + fields != self.data.len())
    }

    /// Key and value; any negative size is null. As in Kafka, bytes after the value are ignored.
    #[inline(always)]
    pub(crate) fn key_and_value(&self) -> Result<(Nullable<'a>, Nullable<'a>)> {
        let start = if self.magic() == 0 { at::TIMESTAMP } else { at::TIMESTAMP + 8 };
        let Some(rest) = self.data.get(start..) else {
            return Err(Error::new(ErrorKind::UnexpectedEnd).in_field("key"));
        };
        let (key, rest) = sized(rest, "key")?;
        let (value, _) = sized(rest, "value")?;
        Ok((key, value))
    }
}

type Nullable<'a> = Option<&'a [u8]>;

#[inline(always)]
fn sized<'a>(data: &'a [u8], field: &'static str) -> Result<(Nullable<'a>, &'a [u8])> {
    let Some((size, rest)) = data.split_first_chunk() else {
        return Err(Error::new(ErrorKind::UnexpectedEnd).in_field(field));
    };
    let size = i32::from_be_bytes(*size);
    if size < 0 {
        return Ok((None, rest));
    }
    match rest.split_at_checked(size as usize) {
        Some((taken, rest)) => Ok((Some(taken), rest)),
        None => Err(beyond(size, rest, field)),
    }
}

#[cold]
fn beyond(size: i32, rest: &[u8], field: &'static str) -> Error {
    let kind = ErrorKind::InvalidSize { found: size.into(), min: -1, max: rest.len() as i64 };
    Error::new(kind).in_field(field)
}
