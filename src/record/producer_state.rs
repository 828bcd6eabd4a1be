//! The producer that a magic 2 batch names.

use crate::error::{Error, ErrorKind, Result};

/// No producer id, epoch, sequence or leader epoch; no timestamp.
pub(crate) const NONE: i8 = -1;

/// The producer of a batch, the sequence of its first record, and whether it belongs to a transaction
/// (`MemoryRecordsBuilder.setProducerState`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProducerState {
    /// The id of an idempotent producer, -1 for none.
    pub producer_id: i64,
    /// The producer's epoch, -1 for none.
    pub producer_epoch: i16,
    /// The sequence number of the batch's first record, -1 for none and in control batches.
    pub base_sequence: i32,
    /// True if the batch belongs to a transaction of its producer.
    pub is_transactional: bool,
}

impl ProducerState {
    /// No producer.
    pub const NONE: Self = Self::new(NONE as i64, NONE as i16, NONE as i32);

    /// An idempotent producer.
    #[must_use]
    pub const fn new(producer_id: i64, producer_epoch: i16, base_sequence: i32) -> Self {
        Self { producer_id, producer_epoch, base_sequence, is_transactional: false }
    }

    /// The same producer in a transaction.
    #[must_use]
    pub const fn transactional(self) -> Self {
        Self { is_transactional: true, ..self }
    }

    pub(crate) fn has_producer_id(&self) -> bool {
        self.producer_id != i64::from(NONE)
    }

    /// Checks that Kafka writes these fields into a batch (`MemoryRecordsBuilder.validateProducerState`).
    pub(crate) fn check(&self, is_control: bool) -> Result<()> {
        let forbid = |why| Err(Error::new(ErrorKind::InvalidOptions(why)));
        if !self.has_producer_id() {
            return match self.is_transactional {
                true => forbid("a transactional batch needs a producer id"),
                false => Ok(()),
            };
        }
        if self.producer_epoch == i16::from(NONE) {
            return forbid("a producer id needs a producer epoch");
        }
        if self.base_sequence < 0 && !is_control {
            return forbid("a producer id needs a base sequence");
        }
        Ok(())
    }
}
