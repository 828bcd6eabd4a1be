//! A batch of any magic, and its records: one type over [`RecordBatch`] and [`LegacyBatch`]. Whatever Kafka's
//! `LogValidator` lets into a log can be read.

use crate::bytes::cursor::be;
use crate::compression::codec::Compression;
use crate::compression::decompressor::Decompressor;
use crate::error::{Error, ErrorKind, Result};
use crate::frame::{Frame, LOG_OVERHEAD, MAGIC};
use crate::legacy::batch::LegacyBatch;
use crate::legacy::iter::MessageIter;
use crate::legacy::message::RECORD_OVERHEAD_V0;
use crate::record::batch::RecordBatch;
use crate::record::iter::RecordIter;
use crate::record::timestamp_type::TimestampType;
use crate::record::{PartialRecord, Record};

/// A batch of any magic, borrowed from the input.
#[derive(Clone, Copy, Debug)]
pub enum Batch<'a> {
    /// Magic 2.
    V2(RecordBatch<'a>),
    /// One outermost message of magic 0 or 1.
    Legacy(LegacyBatch<'a>),
}

macro_rules! either {
    ($self:expr, $batch:ident => $call:expr) => {
        match $self {
            Self::V2($batch) => $call,
            Self::Legacy($batch) => $call,
        }
    };
}

impl<'a> Batch<'a> {
    /// The batch that fills `frame` exactly. A view; only the header is read.
    ///
    /// # Errors
    /// The errors of the iterator [`Batches`](crate::Batches), and [`ErrorKind::NeedMoreBytes`] where it
    /// would end silently.
    pub fn from_frame(frame: &'a [u8], position: u64) -> Result<Self> {
        match Frame::read(frame).map_err(|e| e.at_position(position))? {
            Frame::Whole { size } if size == frame.len() => Self::new(frame, position),
            Frame::Whole { size } => {
                let (found, max) = (frame.len() as i64, size as i64);
                Err(Error::new(ErrorKind::InvalidSize { found, min: max, max }).at_position(position))
            }
            Frame::Cut { needed } => {
                Err(Error::new(ErrorKind::NeedMoreBytes { needed }).at_position(position))
            }
        }
    }

    /// The batch in a frame that [`from_frame`](Self::from_frame) has already accepted.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn of_frame(frame: &'a [u8], position: u64) -> Self {
        match frame[MAGIC] {
            2 => Self::V2(RecordBatch::of_frame(frame, position)),
            _ => Self::Legacy(LegacyBatch::from_frame(frame, position)),
        }
    }

    /// A batch of which only the header is at hand: its header fields can be read, its records cannot.
    #[doc(hidden)]
    pub fn from_header(header: &'a [u8], position: u64) -> Result<Self> {
        const SMALLEST: usize = LOG_OVERHEAD + RECORD_OVERHEAD_V0;
        if header.len() < SMALLEST {
            let needed = (SMALLEST - header.len()) as u64;
            return Err(Error::new(ErrorKind::NeedMoreBytes { needed }).at_position(position));
        }
        Self::new(header, position)
    }

    /// Sets the bytes that are read next; they are prefetched while this batch's records are walked.
    #[doc(hidden)]
    #[inline(always)]
    #[must_use]
    pub fn followed_by(self, following: &'a [u8]) -> Self {
        match self {
            Self::V2(batch) => Self::V2(batch.followed_by(following)),
            // The walk is over one message or over decompressed data, never over the input.
            legacy @ Self::Legacy(_) => legacy,
        }
    }

    /// `frame` is whole: the caller has checked it with [`Frame::read`].
    #[inline(always)]
    pub(crate) fn new(frame: &'a [u8], position: u64) -> Result<Self> {
        Ok(match frame[MAGIC] {
            2 => Self::V2(RecordBatch::from_frame(frame, position)?),
            _ => Self::Legacy(LegacyBatch::from_frame(frame, position)),
        })
    }

    /// The batch itself if it has magic 2.
    #[must_use]
    #[inline]
    pub fn as_v2(&self) -> Option<&RecordBatch<'a>> {
        match self {
            Self::V2(batch) => Some(batch),
            Self::Legacy(_) => None,
        }
    }

    /// 0, 1 or 2.
    #[must_use]
    pub fn magic(&self) -> i8 {
        self.as_bytes()[MAGIC] as i8
    }

    /// The whole batch as stored. A view.
    #[must_use]
    #[inline(always)]
    pub fn as_bytes(&self) -> &'a [u8] {
        either!(self, b => b.as_bytes())
    }

    /// Byte position of the batch in its input.
    #[must_use]
    pub fn position(&self) -> u64 {
        either!(self, b => b.position())
    }

    /// Size of the whole batch in bytes.
    #[must_use]
    #[inline(always)]
    pub fn size_in_bytes(&self) -> usize {
        self.as_bytes().len()
    }

    /// Offset of the last record that was ever in the batch (inclusive).
    #[must_use]
    pub fn last_offset(&self) -> i64 {
        either!(self, b => b.last_offset())
    }

    /// The offset in the first eight bytes: the base offset of a magic 2 batch, or the offset of a legacy
    /// message.
    #[must_use]
    pub fn stored_offset(&self) -> i64 {
        be!(self.as_bytes(), 0, i64)
    }

    /// The base offset. A legacy wrapper has to be decompressed to find it.
    ///
    /// # Errors
    /// The errors of [`LegacyBatch::base_offset`].
    pub fn base_offset(&self, decompressor: &mut Decompressor) -> Result<i64> {
        match self {
            Self::V2(batch) => Ok(batch.base_offset()),
            Self::Legacy(batch) => batch.base_offset(decompressor),
        }
    }

    /// The stored checksum.
    #[must_use]
    pub fn crc(&self) -> u32 {
        either!(self, b => b.crc())
    }

    /// The codec.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownCompression`].
    pub fn compression(&self) -> Result<Compression> {
        either!(self, b => b.compression())
    }

    /// The meaning of the records' timestamps.
    #[must_use]
    pub fn timestamp_type(&self) -> TimestampType {
        either!(self, b => b.timestamp_type())
    }

    /// The maximum timestamp in ms, or the append time; -1 if there is none.
    #[must_use]
    pub fn max_timestamp(&self) -> i64 {
        either!(self, b => b.max_timestamp())
    }

    /// The epoch of the leader that appended the batch; -1 for none, and below magic 2.
    #[must_use]
    pub fn partition_leader_epoch(&self) -> i32 {
        self.as_v2().map_or(-1, RecordBatch::partition_leader_epoch)
    }

    /// True if an idempotent or transactional producer wrote the batch.
    #[must_use]
    pub fn has_producer_id(&self) -> bool {
        self.as_v2().is_some_and(|batch| batch.producer_id() >= 0)
    }

    /// The time (ms) at which the cleaner may drop the batch's tombstones or marker, if it knows; none below
    /// magic 2.
    #[must_use]
    pub fn delete_horizon_ms(&self) -> Option<i64> {
        self.as_v2().and_then(RecordBatch::delete_horizon_ms)
    }

    /// True if the batch is part of a transaction.
    #[must_use]
    pub fn is_transactional(&self) -> bool {
        self.as_v2().is_some_and(RecordBatch::is_transactional)
    }

    /// True if the batch holds a control record.
    #[must_use]
    pub fn is_control(&self) -> bool {
        self.as_v2().is_some_and(RecordBatch::is_control)
    }

    /// Checks the CRC of the batch: CRC-32C for magic 2, CRC-32 for an outermost message. Reads every
    /// byte once, in hardware; does not allocate.
    ///
    /// # Errors
    /// [`ErrorKind::CrcMismatch`], with position and base offset.
    #[inline(always)]
    pub fn verify(&self) -> Result<()> {
        either!(self, b => b.verify())
    }

    /// The records, read lazily. Uncompressed records borrow the input without a copy. A compressed batch is
    /// decompressed here, all at once, into the decompressor's buffer, which its records borrow.
    ///
    /// # Errors
    /// The errors of [`RecordBatch::records`] and [`LegacyBatch::records`].
    #[inline(always)]
    pub fn records<'r>(&self, decompressor: &'r mut Decompressor) -> Result<Records<'r>>
    where
        'a: 'r,
    {
        Ok(match self {
            Self::V2(batch) => Records::V2(batch.records(decompressor)?),
            Self::Legacy(batch) => Records::Legacy(batch.records(decompressor)?),
        })
    }

    /// The bytes that the records are read from: the bytes of the batch, or their decompressed form.
    #[doc(hidden)]
    pub fn payload<'r>(&self, decompressor: &'r mut Decompressor) -> Result<&'r [u8]>
    where
        'a: 'r,
    {
        if let Some(messages) = self.messages() {
            return Ok(messages);
        }
        match self.compressed()? {
            None => Ok(self.stored()),
            Some((codec, payload)) => {
                decompressor.decompress(codec, self.magic(), payload).map_err(|e| self.place(e))
            }
        }
    }

    /// The [`payload`](Self::payload), refcounted: a slice of `data`, which holds the bytes of the batch, or
    /// of the decompression buffer.
    #[doc(hidden)]
    pub fn payload_shared(
        &self,
        data: &::bytes::Bytes,
        decompressor: &mut Decompressor,
    ) -> Result<::bytes::Bytes> {
        if let Some(messages) = self.messages() {
            return Ok(::bytes::Bytes::copy_from_slice(messages));
        }
        match self.compressed()? {
            None => Ok(data.slice_ref(self.stored())),
            Some((codec, payload)) => {
                decompressor.decompress_shared(codec, self.magic(), payload).map_err(|e| self.place(e))
            }
        }
    }

    /// The batch, a wrapper whose value decompresses to `messages`: reading its records does not decompress it
    /// again. A batch of magic 2 is returned as it is.
    #[doc(hidden)]
    #[must_use]
    pub fn decompressed(self, messages: &'a [u8]) -> Self {
        match self {
            Self::V2(_) => self,
            Self::Legacy(batch) => Self::Legacy(batch.decompressed(messages)),
        }
    }

    /// The messages of a wrapper that was decompressed before.
    fn messages(&self) -> Option<&'a [u8]> {
        match self {
            Self::V2(_) => None,
            Self::Legacy(batch) => batch.messages(),
        }
    }

    /// Codec and compressed payload, or `None` if the records can be read as stored.
    fn compressed(&self) -> Result<Option<(Compression, &'a [u8])>> {
        let codec = self.compression()?;
        Ok(match self {
            Self::V2(batch) if batch.is_stored(codec) => None,
            Self::Legacy(_) if codec == Compression::None => None,
            Self::V2(batch) => Some((codec, batch.payload())),
            Self::Legacy(batch) => Some((codec, batch.wrapped(codec)?)),
        })
    }

    /// The record section of a batch that is read as stored; for a legacy batch, the message itself.
    fn stored(&self) -> &'a [u8] {
        match self {
            Self::V2(batch) => batch.payload(),
            Self::Legacy(batch) => batch.as_bytes(),
        }
    }

    /// The records in `payload`, which comes from [`payload`](Self::payload).
    #[doc(hidden)]
    pub fn records_in<'r>(&self, payload: &'r [u8]) -> Result<Records<'r>>
    where
        'a: 'r,
    {
        Ok(match self {
            Self::V2(batch) => Records::V2(batch.records_in(payload)?),
            Self::Legacy(batch) => Records::Legacy(batch.records_in(payload)?),
        })
    }

    /// Like [`records_in`](Self::records_in), but records of a compressed batch may have at most `limit` bytes
    /// (`streamingIterator` since Kafka 4.4). Their size excludes its own field, and the offset of a message.
    #[doc(hidden)]
    pub fn records_up_to<'r>(&self, payload: &'r [u8], limit: usize) -> Result<Records<'r>>
    where
        'a: 'r,
    {
        let mut records = self.records_in(payload)?;
        if self.compression()? != Compression::None {
            match &mut records {
                Records::V2(records) => records.size_limit = limit,
                Records::Legacy(messages) => messages.check_sizes(limit).map_err(|e| self.place(e))?,
            }
        }
        Ok(records)
    }

    /// Adds this batch's position and base offset to an error.
    #[doc(hidden)]
    #[must_use]
    pub fn place(&self, error: Error) -> Error {
        either!(self, b => b.place(error))
    }
}

/// An iterator over the records of a batch of any magic. Each step reads one record without allocating;
/// iteration ends after the first error.
#[derive(Clone, Debug)]
pub enum Records<'r> {
    /// Records of magic 2.
    V2(RecordIter<'r>),
    /// Records of magic 0 or 1.
    Legacy(MessageIter<'r>),
}

impl Records<'_> {
    /// Size in bytes of the record section, decompressed if the batch is compressed.
    #[must_use]
    pub fn payload_size(&self) -> usize {
        either!(self, records => records.payload_size())
    }

    /// Skips the CRC checks of messages inside a legacy wrapper.
    #[must_use]
    pub fn without_crc_check(self) -> Self {
        match self {
            Self::Legacy(messages) => Self::Legacy(messages.without_crc_check()),
            v2 @ Self::V2(_) => v2,
        }
    }
}

impl<'r> Records<'r> {
    /// The same walk without reading keys and values (Kafka's `skipKeyValueIterator`). Their sizes are still
    /// checked.
    ///
    /// ```
    /// # fn sizes(batch: magicbyte::Batch<'_>) -> magicbyte::Result<usize> {
    /// let mut decompressor = magicbyte::Decompressor::new();
    /// let mut bytes = 0;
    /// for record in batch.records(&mut decompressor)?.skip_key_value() {
    ///     bytes += record?.value_size.unwrap_or(0);
    /// }
    /// # Ok(bytes) }
    /// ```
    pub fn skip_key_value(self) -> impl Iterator<Item = Result<PartialRecord>> + use<'r> {
        self.map(|record| record.map(PartialRecord::from))
    }

    /// Calls `visit` with every record. The magic is matched once per batch rather than once per record,
    /// which saves a fifth of the time in hot loops.
    ///
    /// # Errors
    /// The iterator's first error; the records before it have been visited.
    #[inline]
    pub fn visit(self, mut visit: impl FnMut(Record<'r>)) -> Result<()> {
        match self {
            Self::V2(records) => {
                for record in records {
                    visit(record?);
                }
            }
            Self::Legacy(records) => {
                for record in records {
                    visit(record?);
                }
            }
        }
        Ok(())
    }
}

impl<'r> Iterator for Records<'r> {
    type Item = Result<Record<'r>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        either!(self, records => records.next())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        either!(self, records => records.size_hint())
    }
}
