//! The header of a magic 2 batch, as a view over its 61 bytes (`DefaultRecordBatch`).

use crate::bytes::checksum::crc32c;
use crate::bytes::cursor::{Cursor, be};
use crate::bytes::prefetch::Prefetch;
use crate::compression::codec::Compression;
use crate::compression::decompressor::Decompressor;
use crate::error::{Error, ErrorKind, Result};
use crate::record::batch_header::{
    BatchHeader, COMPRESSION, CONTROL, DELETE_HORIZON, LOG_APPEND_TIME, RECORD_BATCH_OVERHEAD, TRANSACTIONAL,
    at,
};
use crate::record::iter::{RecordIter, increment_sequence};
use crate::record::producer_state::ProducerState;
use crate::record::timestamp_type::TimestampType;

/// A batch of magic 2, borrowed. Reading a header field costs one load and never decompresses.
#[derive(Clone, Copy, Debug)]
pub struct RecordBatch<'a> {
    /// The whole batch: at least [`RECORD_BATCH_OVERHEAD`] bytes, as framed.
    data: &'a [u8],
    position: u64,
    /// The bytes after the batch, if they are read next.
    following: Prefetch<'a>,
}

impl<'a> RecordBatch<'a> {
    /// `data` is one whole frame; the caller has checked its size and magic.
    #[doc(hidden)]
    pub fn from_frame(data: &'a [u8], position: u64) -> Result<Self> {
        if data.len() < RECORD_BATCH_OVERHEAD {
            let invalid = ErrorKind::InvalidSize {
                found: data.len() as i64 - 12,
                min: RECORD_BATCH_OVERHEAD as i64 - 12,
                max: i32::MAX.into(),
            };
            let base_offset = be!(data, at::BASE_OFFSET, i64);
            return Err(Error::new(invalid).in_field("batchLength").in_batch(position, base_offset));
        }
        Ok(Self::of_frame(data, position))
    }

    /// `data` is one whole frame that [`from_frame`](Self::from_frame) has already accepted.
    #[inline(always)]
    pub(crate) fn of_frame(data: &'a [u8], position: u64) -> Self {
        Self { data, position, following: Prefetch::default() }
    }

    /// Sets the bytes that are read next; they are prefetched while this batch's records are walked.
    pub(crate) fn followed_by(self, following: &'a [u8]) -> Self {
        Self { following: Prefetch::new(following), ..self }
    }

    /// The header's fields by value.
    #[doc(hidden)]
    #[must_use]
    pub fn header(&self) -> BatchHeader {
        BatchHeader {
            base_offset: self.base_offset(),
            partition_leader_epoch: self.partition_leader_epoch(),
            attributes: self.attributes(),
            last_offset_delta: self.last_offset_delta(),
            base_timestamp: self.base_timestamp(),
            max_timestamp: self.max_timestamp(),
            producer_id: self.producer_id(),
            producer_epoch: self.producer_epoch(),
            base_sequence: self.base_sequence(),
            record_count: self.record_count(),
        }
    }

    /// The whole batch as stored, header included. A view.
    #[must_use]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.data
    }

    /// Byte position of the batch in its input.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Size of the whole batch in bytes, header and length field included.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        self.data.len()
    }

    /// Offset of the first record that was ever in the batch.
    #[must_use]
    pub fn base_offset(&self) -> i64 {
        be!(self.data, at::BASE_OFFSET, i64)
    }

    /// Offset of the last record that was ever in the batch (inclusive). Compaction keeps it, so the last
    /// record present may have a lower offset. Consumers continue after it (`CompletedFetch`).
    #[must_use]
    pub fn last_offset(&self) -> i64 {
        self.base_offset().wrapping_add(self.last_offset_delta().into())
    }

    /// `last_offset - base_offset`.
    #[must_use]
    pub fn last_offset_delta(&self) -> i32 {
        be!(self.data, at::LAST_OFFSET_DELTA, i32)
    }

    /// Epoch of the leader that appended the batch, -1 before any has. Not covered by the CRC.
    #[must_use]
    pub fn partition_leader_epoch(&self) -> i32 {
        be!(self.data, at::PARTITION_LEADER_EPOCH, i32)
    }

    /// The stored CRC-32C, which covers everything from the attributes on.
    #[must_use]
    pub fn crc(&self) -> u32 {
        be!(self.data, at::CRC, u32)
    }

    /// The attributes as stored, reserved bits included.
    #[must_use]
    pub fn attributes(&self) -> i16 {
        be!(self.data, at::ATTRIBUTES, i16)
    }

    fn flag(&self, bit: u8) -> bool {
        self.data[at::ATTRIBUTES_LOW] & bit != 0
    }

    /// The codec of the records.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownCompression`] for the codec numbers 5 to 7.
    pub fn compression(&self) -> Result<Compression> {
        Compression::from_id(self.data[at::ATTRIBUTES_LOW] & COMPRESSION)
            .map_err(|e| self.place(e.in_field("attributes")))
    }

    /// The meaning of the records' timestamps.
    #[must_use]
    pub fn timestamp_type(&self) -> TimestampType {
        if self.flag(LOG_APPEND_TIME) { TimestampType::LogAppendTime } else { TimestampType::CreateTime }
    }

    /// True if the batch is part of a transaction.
    #[must_use]
    pub fn is_transactional(&self) -> bool {
        self.flag(TRANSACTIONAL)
    }

    /// True if the batch holds a control record, which consumers never see.
    #[must_use]
    pub fn is_control(&self) -> bool {
        self.flag(CONTROL)
    }

    /// The timestamp (ms) that the records' deltas are relative to: the first record's, or the delete horizon
    /// if one is set.
    #[must_use]
    pub fn base_timestamp(&self) -> i64 {
        be!(self.data, at::BASE_TIMESTAMP, i64)
    }

    /// The maximum timestamp of the batch in ms, or its append time; -1 for none.
    #[must_use]
    pub fn max_timestamp(&self) -> i64 {
        be!(self.data, at::MAX_TIMESTAMP, i64)
    }

    /// The time (ms) from which the cleaner may drop the batch's tombstones or marker, if set.
    #[must_use]
    pub fn delete_horizon_ms(&self) -> Option<i64> {
        self.flag(DELETE_HORIZON).then(|| self.base_timestamp())
    }

    /// The producer's id, -1 for none.
    #[must_use]
    pub fn producer_id(&self) -> i64 {
        be!(self.data, at::PRODUCER_ID, i64)
    }

    /// The producer's epoch, -1 for none.
    #[must_use]
    pub fn producer_epoch(&self) -> i16 {
        be!(self.data, at::PRODUCER_EPOCH, i16)
    }

    /// The first record's sequence number, -1 for none.
    #[must_use]
    pub fn base_sequence(&self) -> i32 {
        be!(self.data, at::BASE_SEQUENCE, i32)
    }

    /// The producer, its base sequence, and whether the batch belongs to a transaction.
    #[must_use]
    pub fn producer_state(&self) -> ProducerState {
        ProducerState {
            producer_id: self.producer_id(),
            producer_epoch: self.producer_epoch(),
            base_sequence: self.base_sequence(),
            is_transactional: self.is_transactional(),
        }
    }

    /// The last record's sequence number, -1 for none; 2^31-1 is followed by 0. As in Kafka only a base of -1
    /// means none here; a smaller one, which no producer writes, is counted up from.
    #[must_use]
    pub fn last_sequence(&self) -> i32 {
        match self.base_sequence() {
            -1 => -1,
            base => increment_sequence(base, self.last_offset_delta()),
        }
    }

    /// The record count in the header. Unchecked: it may be wrong, even negative.
    #[must_use]
    pub fn record_count(&self) -> i32 {
        be!(self.data, at::COUNT, i32)
    }

    #[doc(hidden)]
    pub fn count(&self) -> Result<u32> {
        let count = self.record_count();
        u32::try_from(count).map_err(|_| {
            self.place(Error::new(ErrorKind::InvalidCount(count.into())).in_field("recordsCount"))
        })
    }

    /// The record section as stored, compressed if the batch is. A view.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.data[RECORD_BATCH_OVERHEAD..]
    }

    /// Checks the CRC-32C. Reads the batch once, in hardware.
    ///
    /// # Errors
    /// [`ErrorKind::CrcMismatch`].
    pub fn verify(&self) -> Result<()> {
        let (stored, computed) = (self.crc(), crc32c(&self.data[at::ATTRIBUTES..], 0));
        if stored == computed {
            Ok(())
        } else {
            Err(self.place(Error::new(ErrorKind::CrcMismatch { stored, computed }).in_field("crc")))
        }
    }

    /// The records, read lazily. Uncompressed records borrow the batch without a copy; a compressed batch is
    /// decompressed here, all at once, and its records borrow the decompressor's buffer. The CRC is not
    /// checked: see [`verify`](Self::verify).
    ///
    /// # Errors
    /// An unknown codec, a negative count, data that does not decompress or exceeds the limit. Errors in
    /// records come from the iterator.
    pub fn records<'r>(&self, decompressor: &'r mut Decompressor) -> Result<RecordIter<'r>>
    where
        'a: 'r,
    {
        let codec = self.compression()?;
        let records = if self.is_stored(codec) {
            self.payload()
        } else {
            decompressor.decompress(codec, 2, self.payload()).map_err(|e| self.place(e))?
        };
        self.records_in(records)
    }

    /// The records in `records`, which is this batch's decompressed record section.
    #[doc(hidden)]
    pub fn records_in<'r>(&self, records: &'r [u8]) -> Result<RecordIter<'r>>
    where
        'a: 'r,
    {
        let count = self.count()?;
        let append_time = self.timestamp_type() == TimestampType::LogAppendTime;
        Ok(RecordIter {
            cursor: Cursor::new(records),
            left: count,
            count,
            base_offset: self.base_offset(),
            base_timestamp: self.base_timestamp(),
            append_time: append_time.then(|| self.max_timestamp()),
            base_sequence: self.base_sequence(),
            position: self.position,
            prefetch: self.following,
            size_limit: usize::MAX,
        })
    }

    /// True if the payload is read as stored. The payload of a batch without records is never decompressed:
    /// compaction may keep the codec bits of a batch that it empties.
    pub(crate) fn is_stored(&self, codec: Compression) -> bool {
        codec == Compression::None || self.record_count() == 0
    }

    #[cold]
    pub(crate) fn place(&self, error: Error) -> Error {
        error.in_batch(self.position, self.base_offset())
    }
}
