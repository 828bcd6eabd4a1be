//! What a caller sets on a [`RecordsBuilder`], what Kafka refuses of it, and what a batch's header says of it.

use crate::compression::Compression;
use crate::error::{Error, ErrorKind, Result};
use crate::record::{BatchBuilder, BatchHeader, CONTROL, DELETE_HORIZON, LOG_APPEND_TIME, TRANSACTIONAL};

use super::{NONE, RecordsBuilder};

/// What the caller set.
#[derive(Clone, Debug)]
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

    /// All but the codec.
    pub(super) fn attributes(&self) -> i16 {
        let flag = |set: bool, bit: u8| if set { i16::from(bit) } else { 0 };
        flag(self.append_time.is_some(), LOG_APPEND_TIME)
            | flag(self.transactional, TRANSACTIONAL)
            | flag(self.control, CONTROL)
            | flag(self.delete_horizon_ms.is_some(), DELETE_HORIZON)
    }
}

impl RecordsBuilder {
    /// The codec's level, of [`Compression::levels`]; Kafka's default unless set.
    #[must_use]
    pub fn level(mut self, level: i32) -> Self {
        self.level = Some(level);
        self
    }

    /// Offset of the next batch, if it begins before its first record.
    #[must_use]
    pub fn base_offset(mut self, offset: i64) -> Self {
        self.options.base_offset = Some(offset);
        self
    }

    /// An idempotent producer's id, epoch and the sequence number of the next batch's first record
    /// (-1 in control batches). Magic 2 only.
    #[must_use]
    pub fn producer(mut self, id: i64, epoch: i16, base_sequence: i32) -> Self {
        self.options.producer_id = id;
        self.options.producer_epoch = epoch;
        self.options.base_sequence = base_sequence;
        self
    }

    /// The batch belongs to a transaction of its producer. Magic 2 only.
    #[must_use]
    pub fn transactional(mut self) -> Self {
        self.options.transactional = true;
        self
    }

    /// The batch holds control records: see [`append_control`](Self::append_control). Magic 2 only.
    #[must_use]
    pub fn control(mut self) -> Self {
        self.options.control = true;
        self
    }

    /// Epoch of the leader that appends the batch. Magic 2 only: the others have no such field, and
    /// leave it out.
    #[must_use]
    pub fn partition_leader_epoch(mut self, epoch: i32) -> Self {
        self.options.partition_leader_epoch = epoch;
        self
    }

    /// When (ms) the cleaner may drop tombstones or the marker; becomes the base timestamp. Magic 2 only.
    #[must_use]
    pub fn delete_horizon_ms(mut self, time: i64) -> Self {
        self.options.delete_horizon_ms = Some(time);
        self
    }

    /// The broker's time (ms) stands for every record's own (`LogAppendTime`). Magic 2 keeps the records' own
    /// beneath it; magic 0 has no timestamps.
    #[must_use]
    pub fn log_append_time(mut self, time: i64) -> Self {
        self.options.append_time = Some(time);
        self
    }

    /// The most bytes a batch may have, 2^31-1 unless set. A compressed one is judged by the
    /// estimate, which a hard-to-compress last record can pass.
    #[must_use]
    pub fn max_size_in_bytes(mut self, size: usize) -> Self {
        self.options.max_size = size.min(i32::MAX as usize);
        self
    }

    /// What `MemoryRecordsBuilder` refuses in its constructor and in `validateProducerState`.
    pub(super) fn check_options(&self) -> Result<()> {
        let Options { producer_id, producer_epoch, base_sequence, .. } = self.options;
        let has_producer = producer_id != i64::from(NONE);
        let forbid = |condition: bool, why| match condition {
            true => Err(Error::new(ErrorKind::InvalidOptions(why))),
            false => Ok(()),
        };
        if self.magic < 2 {
            forbid(self.options.transactional, "transactions need magic 2")?;
            forbid(self.options.control, "control batches need magic 2")?;
            forbid(self.options.delete_horizon_ms.is_some(), "a delete horizon needs magic 2")?;
            forbid(has_producer, "a producer id needs magic 2")?;
            if self.codec == Compression::Zstd {
                return Err(ErrorKind::UnsupportedCompression("zstd needs magic 2").into());
            }
        }
        forbid(self.options.transactional && !has_producer, "a transactional batch needs a producer id")?;
        if has_producer {
            forbid(producer_epoch == i16::from(NONE), "a producer id needs a producer epoch")?;
            forbid(base_sequence < 0 && !self.options.control, "a producer id needs a base sequence")?;
        }
        let negative = |time: Option<i64>| time.is_some_and(|time| time < 0);
        forbid(negative(self.options.delete_horizon_ms), "the delete horizon is negative")?;
        forbid(negative(self.options.append_time), "the log append time is negative")
    }
}
