//! The options of a [`RecordsBuilder`](super::RecordsBuilder), Kafka's rules for them, and the header they
//! give.

use crate::compression::codec::Compression;
use crate::error::{Error, ErrorKind, Result};
use crate::record::batch_header::{BatchHeader, CONTROL, DELETE_HORIZON, LOG_APPEND_TIME, TRANSACTIONAL};
use crate::record::builder::BatchBuilder;

/// No producer id, epoch, sequence or leader epoch; no timestamp.
pub(super) const NONE: i8 = -1;

/// The options that the caller has set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) base_offset: Option<i64>,
    pub(super) partition_leader_epoch: i32,
    pub(super) append_time: Option<i64>,
    pub(super) delete_horizon_ms: Option<i64>,
    pub(super) producer_id: i64,
    pub(super) producer_epoch: i16,
    pub(super) base_sequence: i32,
    pub(super) transactional: bool,
    pub(super) control: bool,
    pub(super) max_size: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            base_offset: None,
            partition_leader_epoch: NONE.into(),
            append_time: None,
            delete_horizon_ms: None,
            producer_id: NONE.into(),
            producer_epoch: NONE.into(),
            base_sequence: NONE.into(),
            transactional: false,
            control: false,
            max_size: i32::MAX as usize,
        }
    }
}

impl Options {
    pub(super) fn header(&self, batch: &BatchBuilder) -> BatchHeader {
        let records = batch.header();
        BatchHeader {
            partition_leader_epoch: self.partition_leader_epoch,
            attributes: self.attributes(),
            max_timestamp: self.append_time.unwrap_or(records.max_timestamp),
            producer_id: self.producer_id,
            producer_epoch: self.producer_epoch,
            base_sequence: self.base_sequence,
            ..records
        }
    }

    /// The attributes without the codec bits.
    pub(super) fn attributes(&self) -> i16 {
        let flag = |set: bool, bit: u8| if set { i16::from(bit) } else { 0 };
        flag(self.append_time.is_some(), LOG_APPEND_TIME)
            | flag(self.transactional, TRANSACTIONAL)
            | flag(self.control, CONTROL)
            | flag(self.delete_horizon_ms.is_some(), DELETE_HORIZON)
    }

    /// The checks of `MemoryRecordsBuilder`, from its constructor and `validateProducerState`.
    pub(super) fn check(&self, magic: i8, codec: Compression) -> Result<()> {
        let Options { producer_id, producer_epoch, base_sequence, .. } = *self;
        let has_producer = producer_id != i64::from(NONE);
        let forbid = |condition: bool, why| match condition {
            true => Err(Error::new(ErrorKind::InvalidOptions(why))),
            false => Ok(()),
        };
        if magic < 2 {
            forbid(self.transactional, "transactions need magic 2")?;
            forbid(self.control, "control batches need magic 2")?;
            forbid(self.delete_horizon_ms.is_some(), "a delete horizon needs magic 2")?;
            forbid(has_producer, "a producer id needs magic 2")?;
        }
        codec.for_magic(magic)?;
        forbid(self.transactional && !has_producer, "a transactional batch needs a producer id")?;
        if has_producer {
            forbid(producer_epoch == i16::from(NONE), "a producer id needs a producer epoch")?;
            forbid(base_sequence < 0 && !self.control, "a producer id needs a base sequence")?;
        }
        let negative = |time: Option<i64>| time.is_some_and(|time| time < 0);
        forbid(negative(self.delete_horizon_ms), "the delete horizon is negative")?;
        forbid(negative(self.append_time), "the log append time is negative")
    }
}
