//! The state of one producer (`ProducerStateEntry`, `BatchMetadata`), and how its batches and markers change
//! it (`ProducerAppendInfo`).

/// The number of batches kept per producer, which is as many as it may have in flight
/// (`ProducerStateEntry.NUM_BATCHES_TO_RETAIN`).
pub const BATCHES_TO_RETAIN: usize = 5;

/// A batch that was appended, with the offsets to answer if it is sent again (`BatchMetadata`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct BatchMetadata {
    /// Sequence of its last record.
    pub last_sequence: i32,
    /// Offset of its last record (inclusive).
    pub last_offset: i64,
    /// Its last offset minus its first.
    pub offset_delta: i32,
    /// Its largest timestamp (ms).
    pub timestamp: i64,
}

impl BatchMetadata {
    /// Sequence of its first record; sequences wrap at 2^31.
    #[must_use]
    pub fn first_sequence(&self) -> i32 {
        // As `DefaultRecordBatch.decrementSequence`, also for numbers that no producer writes.
        let sequence = self.last_sequence.wrapping_sub(self.offset_delta);
        if self.last_sequence < self.offset_delta {
            sequence.wrapping_add(i32::MAX).wrapping_add(1)
        } else {
            sequence
        }
    }

    /// Offset of its first record.
    #[must_use]
    pub fn first_offset(&self) -> i64 {
        self.last_offset.wrapping_sub(self.offset_delta.into())
    }
}

/// One producer's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerStateEntry {
    /// The producer.
    pub producer_id: i64,
    /// Its epoch, -1 for none.
    pub producer_epoch: i16,
    /// Epoch of the transaction coordinator that wrote its last marker, -1 for none.
    pub coordinator_epoch: i32,
    /// Time (ms) of its last batch or marker, -1 for none.
    pub last_timestamp: i64,
    /// First offset of its open transaction, if it has one.
    pub current_txn_first_offset: Option<i64>,
    /// The last batches of the current epoch, oldest first.
    batches: Vec<BatchMetadata>,
}

impl ProducerStateEntry {
    /// The entry of an unknown producer.
    #[must_use]
    pub fn empty(producer_id: i64) -> Self {
        Self {
            producer_id,
            producer_epoch: -1,
            coordinator_epoch: -1,
            last_timestamp: -1,
            current_txn_first_offset: None,
            batches: Vec::new(),
        }
    }

    /// The last batches of the current epoch, oldest first, at most [`BATCHES_TO_RETAIN`]. A snapshot has
    /// only the last one.
    #[must_use]
    pub fn batches(&self) -> &[BatchMetadata] {
        &self.batches
    }

    /// Sequence of its last record, -1 if there is no batch.
    #[must_use]
    pub fn last_sequence(&self) -> i32 {
        self.batches.last().map_or(-1, |batch| batch.last_sequence)
    }

    /// Offset of its last record, -1 if there is no batch.
    #[must_use]
    pub fn last_offset(&self) -> i64 {
        self.batches.last().map_or(-1, |batch| batch.last_offset)
    }

    /// Last offset minus first offset of its last batch, 0 if there is no batch.
    #[must_use]
    pub fn offset_delta(&self) -> i32 {
        self.batches.last().map_or(0, |batch| batch.offset_delta)
    }

    /// The batch that was appended with exactly these sequences in this epoch (`findDuplicateBatch`).
    #[must_use]
    pub fn duplicate_of(&self, producer_epoch: i16, first: i32, last: i32) -> Option<BatchMetadata> {
        let same = |batch: &&BatchMetadata| batch.first_sequence() == first && batch.last_sequence == last;
        self.batches.iter().find(same).filter(|_| self.producer_epoch == producer_epoch).copied()
    }

    /// Adds a batch. If its epoch differs, higher or not, the earlier batches are dropped.
    pub fn add_batch(&mut self, producer_epoch: i16, batch: BatchMetadata) {
        self.set_epoch(producer_epoch);
        if self.batches.len() == BATCHES_TO_RETAIN {
            self.batches.remove(0);
        }
        self.batches.push(batch);
        self.last_timestamp = batch.timestamp;
    }

    /// If the epoch is again the epoch of `before`, puts the batches of `before` in front of the present
    /// ones.
    pub(super) fn restore_batches(&mut self, before: &Self) {
        if self.producer_epoch == before.producer_epoch {
            self.batches.splice(..0, before.batches.iter().copied());
            let old = self.batches.len().saturating_sub(BATCHES_TO_RETAIN);
            self.batches.drain(..old);
        }
    }

    /// Ends the open transaction, if there is one.
    pub(super) fn end_transaction(&mut self, producer_epoch: i16, coordinator_epoch: i32, timestamp: i64) {
        self.set_epoch(producer_epoch);
        self.coordinator_epoch = coordinator_epoch;
        self.last_timestamp = timestamp;
        self.current_txn_first_offset = None;
    }

    fn set_epoch(&mut self, epoch: i16) {
        if self.producer_epoch != epoch {
            self.batches.clear();
            self.producer_epoch = epoch;
        }
    }

    /// True if the entry can be removed: it has no open transaction, and no batch or marker after this time
    /// (ms). In Kafka, the time is the clock minus `producer.id.expiration.ms`.
    #[must_use]
    pub fn is_expired(&self, not_later_than: i64) -> bool {
        self.current_txn_first_offset.is_none() && self.last_timestamp <= not_later_than
    }
}

/// True if a batch that begins with sequence `next` follows one that ended with `last`.
#[must_use]
pub fn is_in_sequence(last: i32, next: i32) -> bool {
    i64::from(next) == i64::from(last) + 1 || (next == 0 && last == i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_sequences_wrap() {
        let batch = |last_sequence, offset_delta| BatchMetadata {
            last_sequence,
            last_offset: 100,
            offset_delta,
            timestamp: 0,
        };
        assert_eq!(batch(9, 9).first_sequence(), 0);
        assert_eq!(batch(0, 1).first_sequence(), i32::MAX);
        assert_eq!(batch(4, 9).first_sequence(), i32::MAX - 4);
        assert_eq!(batch(4, 9).first_offset(), 91);
        assert!(is_in_sequence(i32::MAX, 0) && is_in_sequence(-1, 0) && !is_in_sequence(i32::MAX, i32::MIN));
    }

    #[test]
    fn five_batches_are_kept_until_the_epoch_changes() {
        let mut entry = ProducerStateEntry::empty(1);
        for n in 0..6 {
            let (last_sequence, last_offset) = (n * 2 + 1, i64::from(n) * 2 + 11);
            entry.add_batch(0, BatchMetadata { last_sequence, last_offset, offset_delta: 1, timestamp: 0 });
        }
        assert_eq!(entry.duplicate_of(0, 0, 1), None, "the sixth to last");
        assert_eq!(entry.duplicate_of(0, 2, 3).unwrap().first_offset(), 12);
        assert_eq!(entry.duplicate_of(0, 2, 5), None, "not exactly the same");
        assert_eq!(entry.duplicate_of(1, 2, 3), None);
        entry.end_transaction(1, 0, 5);
        assert_eq!((entry.batches().len(), entry.last_sequence(), entry.last_offset()), (0, -1, -1));
    }
}
