//! The 61-byte header of a magic 2 batch: the positions of its fields, and writing it
//! (`DefaultRecordBatch.writeHeader`).

use crate::bytes::checksum::crc32c;
use crate::bytes::writer::Writer;

/// Size of a magic 2 batch's header in bytes.
pub const RECORD_BATCH_OVERHEAD: usize = 61;

/// Size of offset and length, which the length field does not count.
const LOG_OVERHEAD: usize = 12;

/// Positions of the fields, from the start of the batch.
pub(crate) mod at {
    pub(crate) const BASE_OFFSET: usize = 0;
    pub(crate) const PARTITION_LEADER_EPOCH: usize = 12;
    pub(crate) const CRC: usize = 17;
    /// The CRC covers everything from the attributes on.
    pub(crate) const ATTRIBUTES: usize = 21;
    /// Only the low byte of the 16-bit attributes is read, as in Kafka.
    pub(crate) const ATTRIBUTES_LOW: usize = 22;
    pub(crate) const LAST_OFFSET_DELTA: usize = 23;
    pub(crate) const BASE_TIMESTAMP: usize = 27;
    pub(crate) const MAX_TIMESTAMP: usize = 35;
    pub(crate) const PRODUCER_ID: usize = 43;
    pub(crate) const PRODUCER_EPOCH: usize = 51;
    pub(crate) const BASE_SEQUENCE: usize = 53;
    pub(crate) const COUNT: usize = 57;
}

#[doc(hidden)]
pub const COMPRESSION: u8 = 0b111;
#[doc(hidden)]
pub const LOG_APPEND_TIME: u8 = 1 << 3;
#[doc(hidden)]
pub const TRANSACTIONAL: u8 = 1 << 4;
#[doc(hidden)]
pub const CONTROL: u8 = 1 << 5;
pub(crate) const DELETE_HORIZON: u8 = 1 << 6;

/// The header's fields by value; length and CRC are computed from the batch.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    pub base_offset: i64,
    pub partition_leader_epoch: i32,
    /// All 16 bits, reserved ones included.
    pub attributes: i16,
    pub last_offset_delta: i32,
    pub base_timestamp: i64,
    pub max_timestamp: i64,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub record_count: i32,
}

impl BatchHeader {
    /// Writes the header into the first 61 bytes of `batch`, whose records follow. `batch` has at most 2^31-1
    /// bytes after its length field.
    pub(crate) fn write(&self, batch: &mut [u8]) {
        let length = (batch.len() - LOG_OVERHEAD) as i32;
        let mut out = Writer::new(batch);
        out.i64(self.base_offset);
        out.i32(length);
        out.i32(self.partition_leader_epoch);
        out.i8(2);
        out.i32(0);
        out.i16(self.attributes);
        out.i32(self.last_offset_delta);
        out.i64(self.base_timestamp);
        out.i64(self.max_timestamp);
        out.i64(self.producer_id);
        out.i16(self.producer_epoch);
        out.i32(self.base_sequence);
        out.i32(self.record_count);
        let crc = crc32c(&batch[at::ATTRIBUTES..], 0);
        batch[at::CRC..at::ATTRIBUTES].copy_from_slice(&crc.to_be_bytes());
    }
}
