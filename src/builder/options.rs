//! The options of a [`RecordsBuilder`](super::RecordsBuilder), Kafka's rules for them, and the header they
//! give.

use crate::compression::codec::Compression;
use crate::error::{Error, ErrorKind, Result};
use crate::record::batch_header::{BatchHeader, CONTROL, DELETE_HORIZON, LOG_APPEND_TIME, TRANSACTIONAL};
use crate::record::builder::BatchBuilder;
use crate::record::producer_state::{NONE, ProducerState};

/// The options that the caller has set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) base_offset: Option<i64>,
    pub(super) partition_leader_epoch: i32,
    pub(super) append_time: Option<i64>,
    pub(super) delete_horizon_ms: Option<i64>,
    pub(super) producer: ProducerState,
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
            producer: ProducerState::NONE,
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
            producer_id: self.producer.producer_id,
            producer_epoch: self.producer.producer_epoch,
            base_sequence: self.producer.base_sequence,
            ..records
        }
    }

    /// The attributes without the codec bits.
    pub(super) fn attributes(&self) -> i16 {
        let flag = |set: bool, bit: u8| if set { i16::from(bit) } else { 0 };
        flag(self.append_time.is_some(), LOG_APPEND_TIME)
            | flag(self.producer.is_transactional, TRANSACTIONAL)
            | flag(self.control, CONTROL)
            | flag(self.delete_horizon_ms.is_some(), DELETE_HORIZON)
    }

    /// The checks of `MemoryRecordsBuilder`, from its constructor and `validateProducerState`.
    pub(super) fn check(&self, magic: i8, codec: Compression) -> Result<()> {
        let forbid = |condition: bool, why| match condition {
            true => Err(Error::new(ErrorKind::InvalidOptions(why))),
            false => Ok(()),
        };
        if magic < 2 {
            forbid(self.producer.is_transactional, "transactions need magic 2")?;
            forbid(self.control, "control batches need magic 2")?;
            forbid(self.delete_horizon_ms.is_some(), "a delete horizon needs magic 2")?;
            forbid(self.producer.has_producer_id(), "a producer id needs magic 2")?;
        }
        codec.for_magic(magic)?;
        self.producer.check(self.control)?;
        let negative = |time: Option<i64>| time.is_some_and(|time| time < 0);
        forbid(negative(self.delete_horizon_ms), "the delete horizon is negative")?;
        forbid(negative(self.append_time), "the log append time is negative")
    }
}
