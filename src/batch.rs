//! A batch of any magic, and its records: one type over [`RecordBatch`] and [`LegacyBatch`].

use crate::bytes::cursor::be;
use crate::compression::codec::Compression;
use crate::compression::decompressor::Decompressor;
use crate::error::{Error, ErrorKind, Result};
use crate::frame::{Frame, LOG_OVERHEAD, MAGIC};
use crate::legacy::batch::LegacyBatch;
use crate::legacy::iter::MessageIter;
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
    /// The batch that is the whole of `frame`: a view; its header is read, nothing else.
    ///
    /// # Errors
    /// As the iterator [`Batches`]; [`ErrorKind::NeedMoreBytes`] where that would end silently.
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

    /// The batch in a frame that [`from_frame`](Self::from_frame) has taken before.
    #[inline]
    pub(crate) fn of_frame(frame: &'a [u8], position: u64) -> Self {
        match frame[MAGIC] {
            2 => Self::V2(RecordBatch::of_frame(frame, position)),
            _ => Self::Legacy(LegacyBatch::from_frame(frame, position)),
        }
    }

    /// The header of a batch whose records are elsewhere: for its facts, not for its records.
    pub(crate) fn from_header(header: &'a [u8], position: u64) -> Result<Self> {
        const SMALLEST: usize = LOG_OVERHEAD + crate::legacy::message::RECORD_OVERHEAD_V0;
        if header.len() < SMALLEST {
            let needed = (SMALLEST - header.len()) as u64;
            return Err(Error::new(ErrorKind::NeedMoreBytes { needed }).at_position(position));
        }
        Self::new(header, position)
    }

    /// Says what is read next: it is fetched while this batch's records are walked.
    #[inline(always)]
    pub(crate) fn followed_by(self, following: &'a [u8]) -> Self {
        match self {
            Self::V2(batch) => Self::V2(batch.followed_by(following)),
            // A message, or what its wrapper decompresses to: there is no walk over the input itself.
            legacy @ Self::Legacy(_) => legacy,
        }
    }

    /// `frame` was found whole by [`Frame::read`].
    #[inline(always)]
    pub(crate) fn new(frame: &'a [u8], position: u64) -> Result<Self> {
        Ok(match frame[MAGIC] {
            2 => Self::V2(RecordBatch::from_frame(frame, position)?),
            _ => Self::Legacy(LegacyBatch::from_frame(frame, position)),
        })
    }

    /// 0, 1 or 2.
    #[must_use]
    pub fn magic(&self) -> i8 {
        self.as_bytes()[MAGIC] as i8
    }

    /// The batch as it stands. A view.
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

    /// Bytes of the whole batch.
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

    /// The offset in the first eight bytes: the base offset of magic 2, a legacy message's own.
    #[must_use]
    pub fn stored_offset(&self) -> i64 {
        be!(self.as_bytes(), 0, i64)
    }

    /// The base offset; a legacy wrapper must be decompressed for it.
    ///
    /// # Errors
    /// As [`LegacyBatch::base_offset`].
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

    /// Whose clock the timestamps are.
    #[must_use]
    pub fn timestamp_type(&self) -> TimestampType {
        either!(self, b => b.timestamp_type())
    }

    /// The largest timestamp (ms), or the append time; -1 for none.
    #[must_use]
    pub fn max_timestamp(&self) -> i64 {
        either!(self, b => b.max_timestamp())
    }

    /// Whether it holds a control record.
    #[must_use]
    pub fn is_control(&self) -> bool {
        matches!(self, Self::V2(batch) if batch.is_control())
    }

    /// Checks the CRC over the batch: CRC-32C for magic 2, CRC-32 for an outermost message. Reads every
    /// byte once, in hardware; allocates nothing.
    ///
    /// # Errors
    /// [`ErrorKind::CrcMismatch`], with position and base offset.
    #[inline(always)]
    pub fn verify(&self) -> Result<()> {
        either!(self, b => b.verify())
    }

    /// The records, lazily. Uncompressed ones borrow the input: nothing is copied. Others are
    /// decompressed here, all at once, into the decompressor's buffer, which they borrow.
    ///
    /// # Errors
    /// As [`RecordBatch::records`] and [`LegacyBatch::records`].
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

    /// What the records are read from: the batch's own bytes, or decompressed ones.
    pub(crate) fn payload<'r>(&self, decompressor: &'r mut Decompressor) -> Result<&'r [u8]>
    where
        'a: 'r,
    {
        match self.compressed()? {
            None => Ok(self.stored()),
            Some((codec, payload)) => {
                decompressor.decompress(codec, self.magic(), payload).map_err(|e| self.place(e))
            }
        }
    }

    /// As [`payload`](Self::payload), refcounted: a share of `data`, which are the batch's own bytes, or
    /// of the decompression buffer.
    #[cfg(feature = "arrow")]
    pub(crate) fn payload_shared(
        &self,
        data: &::bytes::Bytes,
        decompressor: &mut Decompressor,
    ) -> Result<::bytes::Bytes> {
        match self.compressed()? {
            None => Ok(data.slice_ref(self.stored())),
            Some((codec, payload)) => {
                decompressor.decompress_shared(codec, self.magic(), payload).map_err(|e| self.place(e))
            }
        }
    }

    /// Codec and payload of a batch that is read decompressed.
    fn compressed(&self) -> Result<Option<(Compression, &'a [u8])>> {
        let codec = self.compression()?;
        Ok(match self {
            Self::V2(batch) if batch.is_stored(codec) => None,
            Self::Legacy(_) if codec == Compression::None => None,
            Self::V2(batch) => Some((codec, batch.payload())),
            Self::Legacy(batch) => Some((codec, batch.wrapped(codec)?)),
        })
    }

    /// The record section of a batch that is read as it stands; of a legacy one, the message itself.
    fn stored(&self) -> &'a [u8] {
        match self {
            Self::V2(batch) => batch.payload(),
            Self::Legacy(batch) => batch.as_bytes(),
        }
    }

    /// The records in `payload`, which [`payload`](Self::payload) gave.
    pub(crate) fn records_in<'r>(&self, payload: &'r [u8]) -> Result<Records<'r>>
    where
        'a: 'r,
    {
        Ok(match self {
            Self::V2(batch) => Records::V2(batch.records_in(payload)?),
            Self::Legacy(batch) => Records::Legacy(batch.records_in(payload)?),
        })
    }

    /// Adds this batch's place to an error from elsewhere.
    pub(crate) fn place(&self, error: Error) -> Error {
        either!(self, b => b.place(error))
    }
}

/// The records of a batch of any magic; ends after the first error. A step reads one record and
/// allocates nothing.
#[derive(Clone, Debug)]
pub enum Records<'r> {
    /// Of magic 2.
    V2(RecordIter<'r>),
    /// Of magic 0 or 1.
    Legacy(MessageIter<'r>),
}

impl Records<'_> {
    /// Bytes of the record section as it is read: decompressed where the batch is compressed.
    #[must_use]
    pub fn payload_size(&self) -> usize {
        either!(self, records => records.payload_size())
    }

    /// Leaves the CRCs of messages inside a legacy wrapper unchecked.
    #[must_use]
    pub fn without_crc_check(self) -> Self {
        match self {
            Self::Legacy(messages) => Self::Legacy(messages.without_crc_check()),
            v2 @ Self::V2(_) => v2,
        }
    }
}

impl<'r> Records<'r> {
    /// The same walk without keys and values (Kafka's `skipKeyValueIterator`): they are not touched,
    /// their sizes are checked all the same.
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

    /// Hands every record to `visit`. The kind of batch is asked once, not once a record: in hot
    /// loops this is worth a fifth of the walk.
    ///
    /// # Errors
    /// The first the iterator gives; the records before it were visited.
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
