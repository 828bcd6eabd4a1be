//! Building messages of magic 0 and 1, plain or in a compressed wrapper (the legacy half of
//! `MemoryRecordsBuilder`; `LegacyRecord.write`).

use crate::bytes::checksum::crc32;
use crate::bytes::writer::Writer;
use crate::compression::codec::Compression;
use crate::compression::compressor::Compressor;
use crate::error::{ErrorKind, Result};
use crate::legacy::message::{LOG_APPEND_TIME, LOG_OVERHEAD, RECORD_OVERHEAD_V0, at};
use crate::record::builder::offset_between;

const TIMESTAMP_SIZE: usize = 8;

/// The fields of one message to be written.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct MessageFields<'a> {
    pub offset: i64,
    /// 0 or 1.
    pub magic: i8,
    pub attributes: u8,
    /// Ignored in magic 0.
    pub timestamp: i64,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
}

#[doc(hidden)]
impl MessageFields<'_> {
    /// Size of the message in bytes, offset and size fields included.
    pub fn size(&self) -> usize {
        LOG_OVERHEAD
            + overhead(self.magic)
            + self.key.map_or(0, <[u8]>::len)
            + self.value.map_or(0, <[u8]>::len)
    }

    /// Appends the message to `out`.
    pub fn append_to(&self, out: &mut Vec<u8>) -> Result<()> {
        let (start, size) = (out.len(), self.size());
        if i32::try_from(size).is_err() {
            return Err(ErrorKind::RecordTooLarge { size, limit: i32::MAX as usize }.into());
        }
        out.resize(start + size, 0);
        let mut to = Writer::new(&mut out[start..]);
        to.i64(self.offset);
        to.i32((size - LOG_OVERHEAD) as i32);
        to.i32(0);
        to.i8(self.magic);
        to.i8(self.attributes as i8);
        if self.magic > 0 {
            to.i64(self.timestamp);
        }
        for field in [self.key, self.value] {
            to.i32(field.map_or(-1, |data| data.len() as i32));
            to.bytes(field.unwrap_or_default());
        }
        write_crc(&mut out[start + LOG_OVERHEAD..]);
        Ok(())
    }
}

/// Computes the CRC of a message (without offset and size) and stores it.
pub(crate) fn write_crc(message: &mut [u8]) {
    let crc = crc32(&message[at::MAGIC..]);
    message[..at::MAGIC].copy_from_slice(&crc.to_be_bytes());
}

/// Size of a message without offset, size, key and value.
fn overhead(magic: i8) -> usize {
    if magic == 0 { RECORD_OVERHEAD_V0 } else { RECORD_OVERHEAD_V0 + TIMESTAMP_SIZE }
}

/// Size of a message set without its messages: that of the wrapper, if compressed.
#[doc(hidden)]
#[must_use]
pub fn set_overhead(magic: i8, codec: Compression) -> usize {
    if codec == Compression::None { 0 } else { LOG_OVERHEAD + overhead(magic) }
}

/// Collects messages. It checks nothing: the caller enforces Kafka's rules.
#[doc(hidden)]
#[derive(Debug)]
pub struct MessageSetBuilder {
    magic: i8,
    codec: Compression,
    /// Replaces every timestamp, with `LogAppendTime` in the attributes.
    append_time: Option<i64>,
    base_offset: i64,
    last_offset: i64,
    max_timestamp: i64,
    count: i32,
    messages: Vec<u8>,
}

#[doc(hidden)]
impl MessageSetBuilder {
    #[must_use]
    pub fn new(magic: i8, codec: Compression) -> Self {
        Self {
            magic,
            codec,
            append_time: None,
            base_offset: 0,
            last_offset: -1,
            max_timestamp: -1,
            count: 0,
            messages: Vec::new(),
        }
    }

    /// Drops all messages but keeps the buffer. A compressed magic 1 set stores offsets relative to the base.
    pub fn start(&mut self, base_offset: i64, append_time: Option<i64>) {
        (self.base_offset, self.append_time) = (base_offset, append_time);
        (self.last_offset, self.max_timestamp, self.count) = (base_offset.wrapping_sub(1), -1, 0);
        self.messages.clear();
    }

    #[must_use]
    pub fn count(&self) -> i32 {
        self.count
    }

    pub(crate) fn last_offset(&self) -> i64 {
        self.last_offset
    }

    /// The messages of an uncompressed set. A view.
    #[must_use]
    pub fn messages(&self) -> &[u8] {
        &self.messages
    }

    /// Size of the messages in bytes.
    #[must_use]
    pub fn messages_size(&self) -> usize {
        self.messages.len()
    }

    /// Checks that a record with this offset can follow the last one.
    pub(crate) fn check_offset(&self, offset: i64) -> Result<()> {
        offset_between(offset, self.base_offset, (self.count > 0).then_some(self.last_offset))
    }

    fn time_attribute(&self) -> u8 {
        if self.magic > 0 && self.append_time.is_some() { LOG_APPEND_TIME } else { 0 }
    }

    /// The message of a record with this absolute offset.
    #[must_use]
    pub fn fields<'a>(
        &self,
        (offset, timestamp): (i64, i64),
        (key, value): (Option<&'a [u8]>, Option<&'a [u8]>),
    ) -> MessageFields<'a> {
        let relative = self.magic > 0 && self.codec != Compression::None;
        MessageFields {
            offset: if relative { offset.wrapping_sub(self.base_offset) } else { offset },
            magic: self.magic,
            attributes: self.time_attribute(),
            timestamp: self.append_time.unwrap_or(timestamp),
            key,
            value,
        }
    }

    /// Appends a message that [`fields`](Self::fields) returned for this offset.
    pub fn append(&mut self, offset: i64, message: &MessageFields<'_>) -> Result<()> {
        message.append_to(&mut self.messages)?;
        self.max_timestamp = self.max_timestamp.max(message.timestamp);
        self.last_offset = offset;
        self.count += 1;
        Ok(())
    }

    /// Appends the finished set to `out`: the messages, or a wrapper around them. Returns the size of the
    /// messages as written.
    pub fn finish(&self, compressor: &mut Compressor, out: &mut Vec<u8>) -> Result<usize> {
        if self.codec == Compression::None {
            out.extend_from_slice(&self.messages);
            return Ok(self.messages.len());
        }
        let payload = compressor.compress(self.magic, &self.messages)?;
        let wrapper = MessageFields {
            offset: self.last_offset,
            magic: self.magic,
            attributes: self.codec as u8 | self.time_attribute(),
            timestamp: self.append_time.unwrap_or(self.max_timestamp),
            key: None,
            value: Some(payload),
        };
        wrapper.append_to(out)?;
        Ok(payload.len())
    }
}
