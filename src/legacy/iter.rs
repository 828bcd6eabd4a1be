//! Iterating over the messages inside a wrapper (`AbstractLegacyRecordBatch.DeepRecordsIterator`).

use crate::bytes::cursor::be;
use crate::compression::codec::Compression;
use crate::error::{Error, ErrorKind, Result};
use crate::legacy::message::{LOG_OVERHEAD, Message, RECORD_OVERHEAD_V0};
use crate::record::Record;
use crate::record::header::Headers;
use crate::record::timestamp_type::TimestampType;

/// A lazy iterator over the records of a [`LegacyBatch`](super::LegacyBatch). It does not allocate, and ends
/// after the first error.
#[derive(Clone, Debug)]
pub struct MessageIter<'r> {
    /// A sequence of offset, size and message; its sizes have been checked.
    rest: &'r [u8],
    /// Messages not read yet, of `count`.
    left: u32,
    count: u32,
    /// Added to stored offsets: 0 unless a magic 1 wrapper stores relative ones.
    base_offset: i64,
    wrapper: Option<Wrapper>,
    check_crcs: bool,
    position: u64,
    outer_offset: i64,
}

/// The fields that inner messages take from their wrapper.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wrapper {
    pub(crate) timestamp: i64,
    pub(crate) timestamp_type: TimestampType,
}

/// The location of the outermost message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outer {
    /// Byte position in the input.
    pub(crate) position: u64,
    /// Its stored offset.
    pub(crate) offset: i64,
}

impl<'r> MessageIter<'r> {
    /// One message, which is its own batch.
    #[inline(always)]
    pub(crate) fn single(message: &'r [u8], outer: Outer) -> Self {
        Self {
            rest: message,
            left: 1,
            count: 1,
            base_offset: 0,
            wrapper: None,
            // `verify` checks the outer CRC.
            check_crcs: false,
            position: outer.position,
            outer_offset: outer.offset,
        }
    }

    /// The records in `messages`, the decompressed value of the wrapper.
    pub(crate) fn wrapped(messages: &'r [u8], magic: i8, outer: Outer, wrapper: Wrapper) -> Result<Self> {
        let place = |error: Error| error.in_batch(outer.position, outer.offset);
        // Relative offsets end at the wrapper's offset, so the last one is needed before the first can be
        // read.
        let mut count = 0;
        let mut last_inner = 0;
        let mut rest = messages;
        while let Some((offset, _, next)) = split_message(rest).map_err(|e| place(e.at_record(count)))? {
            (last_inner, rest) = (offset, next);
            count += 1;
        }
        let invalid = |why| place(Error::new(ErrorKind::InvalidRecord(why)).in_field("offset"));
        if count == 0 {
            return Err(invalid("a compressed message set has no messages inside"));
        }
        let base_offset = match magic {
            // Old librdkafka producers always write wrapper offset 0.
            1 if outer.offset == 0 => 0,
            1 if outer.offset < last_inner => {
                return Err(invalid("the wrapper's offset is smaller than the last relative offset inside"));
            }
            1 => outer.offset.wrapping_sub(last_inner),
            _ => 0,
        };
        Ok(Self {
            rest: messages,
            left: count,
            count,
            base_offset,
            wrapper: Some(wrapper),
            check_crcs: true,
            position: outer.position,
            outer_offset: outer.offset,
        })
    }

    /// Skips the CRC checks of messages inside a wrapper.
    #[must_use]
    pub fn without_crc_check(mut self) -> Self {
        self.check_crcs = false;
        self
    }

    /// The total number of records.
    #[must_use]
    pub fn record_count(&self) -> u32 {
        self.count
    }

    /// Size in bytes of the messages not read yet.
    #[must_use]
    pub fn payload_size(&self) -> usize {
        self.rest.len()
    }

    #[inline(always)]
    fn read(&mut self) -> Result<Record<'r>> {
        if self.wrapper.is_none() {
            // The message is already framed.
            let message = Message::new(&self.rest[LOG_OVERHEAD..]);
            self.rest = &[];
            return record(message, self.outer_offset, message.timestamp(), message.timestamp_type());
        }
        let Some((stored_offset, message)) = self.read_message()? else {
            return Err(ErrorKind::UnexpectedEnd.into());
        };
        self.record_of(stored_offset, message)
    }

    /// Checks the size of every message inside a wrapper. Kafka reads all of them before it returns the first.
    pub(crate) fn check_sizes(&self, limit: usize) -> Result<()> {
        let (mut rest, mut index) = (self.rest, 0);
        // The last message may be cut. Its size counts, its bytes do not.
        while let Some((overhead, messages)) = rest.split_at_checked(LOG_OVERHEAD) {
            let size = be!(overhead, 8, i32) as usize;
            if size > limit {
                return Err(Error::new(ErrorKind::RecordSizeLimitExceeded { size, limit }).at_record(index));
            }
            rest = messages.get(size..).unwrap_or_default();
            index += 1;
        }
        Ok(())
    }

    /// The next message with its stored offset, unchecked.
    #[doc(hidden)]
    #[inline(always)]
    pub fn read_message(&mut self) -> Result<Option<(i64, Message<'r>)>> {
        Ok(split_message(self.rest)?.map(|(stored_offset, message, after)| {
            self.rest = after;
            (stored_offset, message)
        }))
    }

    /// The record of a message that [`read_message`](Self::read_message) returned.
    #[doc(hidden)]
    #[inline(always)]
    pub fn record_of(&self, stored_offset: i64, message: Message<'r>) -> Result<Record<'r>> {
        if !matches!(message.magic(), 0 | 1) {
            return Err(Error::new(ErrorKind::UnsupportedMagic(message.magic())).in_field("magic"));
        }
        let (mut timestamp, mut timestamp_type) = (message.timestamp(), message.timestamp_type());
        if let Some(wrapper) = self.wrapper {
            if message.compression()? != Compression::None {
                let kind = ErrorKind::InvalidRecord("inner messages must not be compressed");
                return Err(Error::new(kind).in_field("attributes"));
            }
            // A magic 1 message takes the wrapper's timestamp type, and its timestamp if that is the
            // broker's; a magic 0 message has no timestamp in any wrapper.
            if message.magic() == 1 {
                timestamp_type = wrapper.timestamp_type;
                if timestamp_type == TimestampType::LogAppendTime {
                    timestamp = wrapper.timestamp;
                }
            }
        }
        if self.check_crcs {
            message.verify()?;
        }
        record(message, self.base_offset.wrapping_add(stored_offset), timestamp, timestamp_type)
    }
}

#[inline(always)]
fn record(
    message: Message<'_>,
    offset: i64,
    timestamp: i64,
    timestamp_type: TimestampType,
) -> Result<Record<'_>> {
    let (key, value) = message.key_and_value()?;
    Ok(Record {
        offset,
        timestamp,
        timestamp_type,
        sequence: -1,
        attributes: message.attributes() as i8,
        key,
        value,
        headers: Headers::default(),
    })
}

/// The first message of `data`, with its stored offset and the bytes after it. As in Kafka, a truncated
/// message at the end is dropped silently.
#[inline(always)]
pub(crate) fn split_message(data: &[u8]) -> Result<Option<(i64, Message<'_>, &[u8])>> {
    let Some((overhead, rest)) = data.split_at_checked(LOG_OVERHEAD) else { return Ok(None) };
    let size = be!(overhead, 8, i32);
    if size < RECORD_OVERHEAD_V0 as i32 {
        let (min, max) = (RECORD_OVERHEAD_V0 as i64, i32::MAX.into());
        return Err(Error::new(ErrorKind::InvalidSize { found: size.into(), min, max }).in_field("size"));
    }
    let Some((message, after)) = rest.split_at_checked(size as usize) else { return Ok(None) };
    Ok(Some((be!(overhead, 0, i64), Message::new(message), after)))
}

impl<'r> Iterator for MessageIter<'r> {
    type Item = Result<Record<'r>>;

    // As for magic 2.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let read = self.read();
        if let Err(error) = read {
            let index = self.count - self.left;
            self.left = 0;
            return Some(Err(error.at_record(index).in_batch(self.position, self.outer_offset)));
        }
        self.left -= 1;
        Some(read)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left as usize))
    }
}
