//! The header of a magic 2 batch, as a view over its 61 bytes (`DefaultRecordBatch`).

use crate::bytes::checksum::crc32c;
use crate::bytes::cursor::{Cursor, be};
use crate::bytes::prefetch::Ahead;
use crate::compression::codec::Compression;
use crate::compression::decompressor::Decompressor;
use crate::error::{Error, ErrorKind, Result};
use crate::record::batch_header::{
    BatchHeader, COMPRESSION, CONTROL, DELETE_HORIZON, LOG_APPEND_TIME, RECORD_BATCH_OVERHEAD, TRANSACTIONAL,
    at,
};
use crate::record::iter::{RecordIter, increment_sequence};
use crate::record::timestamp_type::TimestampType;

/// A batch of magic 2, borrowed. Header facts cost a load each and never decompress.
#[derive(Clone, Copy, Debug)]
pub struct RecordBatch<'a> {
    /// The whole batch: at least [`RECORD_BATCH_OVERHEAD`] bytes, as framed.
    data: &'a [u8],
    position: u64,
    /// What stands behind it in its input, if that is read next.
    following: Ahead<'a>,
}

impl<'a> RecordBatch<'a> {
    /// `data` is one whole frame; the caller checked its size and magic.
    pub(crate) fn from_frame(data: &'a [u8], position: u64) -> Result<Self> {
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

    /// `data` is one whole frame that [`from_frame`](Self::from_frame) has taken before.
    #[inline(always)]
    pub(crate) fn of_frame(data: &'a [u8], position: u64) -> Self {
        Self { data, position, following: Ahead::default() }
    }

    /// Says what is read next: it is fetched while this batch's records are walked.
    pub(crate) fn followed_by(self, following: &'a [u8]) -> Self {
        Self { following: Ahead::new(following), ..self }
    }

    /// The header's fields by value.
    pub(crate) fn header(&self) -> BatchHeader {
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

    /// The batch as it stands, header included. A view.
    #[must_use]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.data
    }

    /// Byte position of the batch in its input.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Bytes of the whole batch, header and length field included.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        self.data.len()
    }

    /// Offset of the first record that was ever in the batch.
    #[must_use]
    pub fn base_offset(&self) -> i64 {
        be!(self.data, at::BASE_OFFSET, i64)
    }

    /// Offset of the last record that was ever in the batch (inclusive): it outlives compaction,
    /// so the last record present may lie before it.
    #[must_use]
    pub fn last_offset(&self) -> i64 {
        self.base_offset().wrapping_add(self.last_offset_delta().into())
    }

    /// `last_offset - base_offset`.
    #[must_use]
    pub fn last_offset_delta(&self) -> i32 {
        be!(self.data, at::LAST_OFFSET_DELTA, i32)
    }

    /// Epoch of the leader that appended the batch, -1 before a broker has. Outside the CRC.
    #[must_use]
    pub fn partition_leader_epoch(&self) -> i32 {
        be!(self.data, at::PARTITION_LEADER_EPOCH, i32)
    }

    /// The stored CRC-32C of everything from the attributes on.
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

    /// Whose clock the records' timestamps are.
    #[must_use]
    pub fn timestamp_type(&self) -> TimestampType {
        if self.flag(LOG_APPEND_TIME) { TimestampType::LogAppendTime } else { TimestampType::CreateTime }
    }

    /// Whether the batch belongs to a transaction.
    #[must_use]
    pub fn is_transactional(&self) -> bool {
        self.flag(TRANSACTIONAL)
    }

    /// Whether its record is a control record, which consumers never get to see.
    #[must_use]
    pub fn is_control(&self) -> bool {
        self.flag(CONTROL)
    }

    /// The timestamp (ms) the records' deltas count from: the first record's, or the delete
    /// horizon where that is set.
    #[must_use]
    pub fn base_timestamp(&self) -> i64 {
        be!(self.data, at::BASE_TIMESTAMP, i64)
    }

    /// The largest timestamp (ms) of the batch, or its append time; -1 for none.
    #[must_use]
    pub fn max_timestamp(&self) -> i64 {
        be!(self.data, at::MAX_TIMESTAMP, i64)
    }

    /// When (ms) the cleaner may drop the batch's tombstones or marker, if it set that time.
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

    /// The last record's sequence number, -1 for none; after 2^31-1 comes 0. Only a base of -1 means
    /// none here, as in Kafka: from a smaller one, which no producer writes, it counts on.
    #[must_use]
    pub fn last_sequence(&self) -> i32 {
        match self.base_sequence() {
            -1 => -1,
            base => increment_sequence(base, self.last_offset_delta()),
        }
    }

    /// How many records the header announces, unchecked: possibly negative, possibly a lie.
    #[must_use]
    pub fn record_count(&self) -> i32 {
        be!(self.data, at::COUNT, i32)
    }

    pub(crate) fn count(&self) -> Result<u32> {
        let count = self.record_count();
        u32::try_from(count).map_err(|_| {
            self.place(Error::new(ErrorKind::InvalidCount(count.into())).in_field("recordsCount"))
        })
    }

    /// The record section as stored: compressed if the batch is. A view.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.data[RECORD_BATCH_OVERHEAD..]
    }

    /// Checks the CRC-32C: reads the batch once, in hardware.
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

    /// The records. Uncompressed ones borrow the batch, nothing is copied; others are decompressed here,
    /// all at once, and borrow the decompressor's buffer. Does not check the CRC: [`verify`](Self::verify) does.
    ///
    /// # Errors
    /// What stands in the way of the first record: an unknown codec, a negative count, data that
    /// does not decompress or exceeds the limit. Later errors come from the iterator.
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

    /// The records in `records`, this batch's record section, decompressed.
    pub(crate) fn records_in<'r>(&self, records: &'r [u8]) -> Result<RecordIter<'r>>
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
            ahead: self.following,
        })
    }

    /// Whether the payload is read as it stands. Without records it is not looked at: a batch
    /// emptied by compaction may keep its codec bits.
    pub(crate) fn is_stored(&self, codec: Compression) -> bool {
        codec == Compression::None || self.record_count() == 0
    }

    #[cold]
    pub(crate) fn place(&self, error: Error) -> Error {
        error.in_batch(self.position, self.base_offset())
    }
}
