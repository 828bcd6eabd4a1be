//! The outermost message of a magic 0 or 1 message set, and the records in it (`AbstractLegacyRecordBatch`).

use crate::bytes::cursor::be;
use crate::compression::codec::Compression;
use crate::compression::decompressor::Decompressor;
use crate::error::{Error, ErrorKind, Result};
use crate::legacy::iter::{MessageIter, Outer, Wrapper};
use crate::legacy::message::{LOG_OVERHEAD, Message};
use crate::record::timestamp_type::TimestampType;

/// One outermost message of magic 0 or 1, borrowed: a record, or a wrapper around compressed ones.
///
/// Only methods that take a [`Decompressor`] decompress.
#[derive(Clone, Copy, Debug)]
pub struct LegacyBatch<'a> {
    /// The whole message with offset and size: at least 12 + 14 bytes.
    data: &'a [u8],
    position: u64,
    /// The messages of a wrapper that was decompressed before.
    messages: Option<&'a [u8]>,
}

impl<'a> LegacyBatch<'a> {
    /// `data` is one whole frame; the caller has checked its size and magic.
    #[doc(hidden)]
    #[inline(always)]
    #[must_use]
    pub fn from_frame(data: &'a [u8], position: u64) -> Self {
        Self { data, position, messages: None }
    }

    /// `messages` is the decompressed value of this wrapper: its records are read from there.
    pub(crate) fn decompressed(self, messages: &'a [u8]) -> Self {
        Self { messages: Some(messages), ..self }
    }

    /// The messages of a wrapper that was decompressed before. A view.
    pub(crate) fn messages(&self) -> Option<&'a [u8]> {
        self.messages
    }

    #[inline(always)]
    pub(crate) fn message(&self) -> Message<'a> {
        Message::new(&self.data[LOG_OVERHEAD..])
    }

    /// The whole message as stored, offset and size included. A view.
    #[must_use]
    #[inline(always)]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.data
    }

    /// Byte position of the message in its input.
    #[must_use]
    #[inline(always)]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Size of the whole message in bytes, offset and size fields included.
    #[must_use]
    #[inline(always)]
    pub fn size_in_bytes(&self) -> usize {
        self.data.len()
    }

    /// 0 or 1.
    #[must_use]
    pub fn magic(&self) -> i8 {
        self.message().magic()
    }

    /// The stored CRC-32, which covers everything from the magic on.
    #[must_use]
    pub fn crc(&self) -> u32 {
        self.message().crc()
    }

    /// The attributes as stored: codec and, in magic 1, timestamp type.
    #[must_use]
    pub fn attributes(&self) -> u8 {
        self.message().attributes()
    }

    /// The codec.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownCompression`] for the codec numbers 5 to 7.
    #[inline(always)]
    pub fn compression(&self) -> Result<Compression> {
        self.message().compression().map_err(|e| self.place(e))
    }

    /// The message's own offset (inclusive); for a wrapper, that of the last message inside.
    #[must_use]
    #[inline(always)]
    pub fn last_offset(&self) -> i64 {
        be!(self.data, 0, i64)
    }

    /// Offset of the first record; for a wrapper this costs a decompression.
    ///
    /// # Errors
    /// The errors of [`records`](Self::records).
    pub fn base_offset(&self, decompressor: &mut Decompressor) -> Result<i64> {
        if self.compression()? == Compression::None {
            return Ok(self.last_offset());
        }
        match self.records(decompressor)?.without_crc_check().next() {
            Some(first) => Ok(first?.offset()),
            None => Ok(self.last_offset()),
        }
    }

    /// The meaning of the records' timestamps; magic 0 has none.
    #[must_use]
    pub fn timestamp_type(&self) -> TimestampType {
        self.message().timestamp_type()
    }

    /// The message's own timestamp in ms; for a wrapper the largest inside, or its append time. -1 for none,
    /// as always in magic 0.
    #[must_use]
    pub fn max_timestamp(&self) -> i64 {
        self.message().timestamp()
    }

    /// Checks the outer CRC-32. Reads the message once. CRCs of messages inside a wrapper are checked when
    /// [`records`](Self::records) are read.
    ///
    /// # Errors
    /// [`ErrorKind::CrcMismatch`].
    #[inline(always)]
    pub fn verify(&self) -> Result<()> {
        self.message().verify().map_err(|e| self.place(e))
    }

    /// The compressed messages of a wrapper. A view.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRecord`] for a null value, [`ErrorKind::UnsupportedCompression`] for
    /// zstd, which magic 0 and 1 may not use.
    pub(crate) fn wrapped(&self, codec: Compression) -> Result<&'a [u8]> {
        codec.for_magic(self.magic()).map_err(|e| self.place(e.in_field("attributes")))?;
        let (_, value) = self.message().key_and_value().map_err(|e| self.place(e))?;
        value.ok_or_else(|| {
            let kind = ErrorKind::InvalidRecord("a compressed message set has a null value");
            self.place(Error::new(kind).in_field("value"))
        })
    }

    /// The records: a single one, which borrows the message, or those inside a wrapper, whose CRCs the
    /// iterator checks. A wrapper is decompressed here, all at once, and its records borrow the
    /// decompressor's buffer.
    ///
    /// # Errors
    /// Data that does not decompress or exceeds the limit, a wrapper without messages, a wrapper offset
    /// smaller than the last relative one. Errors in messages come from the iterator.
    #[inline(always)]
    pub fn records<'r>(&self, decompressor: &'r mut Decompressor) -> Result<MessageIter<'r>>
    where
        'a: 'r,
    {
        let codec = self.compression()?;
        if codec == Compression::None {
            return Ok(self.single());
        }
        if let Some(messages) = self.messages {
            return self.messages_in(messages);
        }
        let payload = self.wrapped(codec)?;
        let messages = decompressor.decompress(codec, self.magic(), payload).map_err(|e| self.place(e))?;
        self.messages_in(messages)
    }

    /// The records in `payload`: the message itself, or what a wrapper's value decompressed to.
    #[inline(always)]
    pub(crate) fn records_in<'r>(&self, payload: &'r [u8]) -> Result<MessageIter<'r>>
    where
        'a: 'r,
    {
        if self.compression()? == Compression::None { Ok(self.single()) } else { self.messages_in(payload) }
    }

    #[inline(always)]
    fn single(&self) -> MessageIter<'a> {
        MessageIter::single(self.data, self.outer())
    }

    fn messages_in<'r>(&self, messages: &'r [u8]) -> Result<MessageIter<'r>> {
        let wrapper = Wrapper { timestamp: self.max_timestamp(), timestamp_type: self.timestamp_type() };
        MessageIter::wrapped(messages, self.magic(), self.outer(), wrapper)
    }

    #[inline(always)]
    fn outer(&self) -> Outer {
        Outer { position: self.position, offset: self.last_offset() }
    }

    #[doc(hidden)]
    #[cold]
    #[must_use]
    pub fn place(&self, error: Error) -> Error {
        error.in_batch(self.position, self.last_offset())
    }
}
