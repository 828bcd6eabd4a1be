//! The state of producers as a fold over batches (`ProducerStateManager`).

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::state::isolation::last_stable_offset;
use crate::state::producer_check::{AppendTerms, Refusal, Verdict, check};
use crate::state::producer_entry::{BatchMetadata, ProducerStateEntry};
use crate::state::producer_event::ProducerEvent;
use crate::state::verification::{VerificationGuard, VerificationState};

/// A transaction that a marker ended (`CompletedTxn`).
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedTransaction {
    /// The producer.
    pub producer_id: i64,
    /// Base offset of its first batch.
    pub first_offset: i64,
    /// Offset of its marker (inclusive).
    pub last_offset: i64,
    /// True if the transaction was committed, false if it was aborted.
    pub committed: bool,
    /// The last stable offset for the transaction index: the first offset of the earliest transaction still
    /// open, or the offset after the marker.
    pub last_stable_offset: i64,
}

/// The producers of a partition. [`check`](Self::check) gives a broker's verdict on a batch,
/// [`apply`](Self::apply) adds a batch to the state; a replay applies without checking. Each batch costs one
/// lookup; memory grows with producers and open transactions.
#[derive(Clone, Debug, Default)]
pub struct Producers {
    /// In order of appearance.
    entries: Vec<ProducerStateEntry>,
    index: HashMap<i64, usize>,
    /// The maximum number of producers so far: Java's hash maps do not shrink.
    max_count: usize,
    /// Open transactions: first offset to producer.
    ongoing: BTreeMap<i64, i64>,
    /// Ended transactions whose marker is not known to be replicated: first offset to the marker's offset.
    unreplicated: BTreeMap<i64, i64>,
    verifications: HashMap<i64, VerificationState>,
    last_guard: u64,
}

impl Producers {
    /// The state of a producer, if it is known.
    #[must_use]
    pub fn get(&self, producer_id: i64) -> Option<&ProducerStateEntry> {
        self.index.get(&producer_id).map(|&at| &self.entries[at])
    }

    /// All producers, in order of appearance.
    #[must_use]
    pub fn entries(&self) -> &[ProducerStateEntry] {
        &self.entries
    }

    /// A broker's verdict on a single batch, given as its event. Changes nothing.
    #[must_use]
    pub fn check(&self, event: &ProducerEvent, terms: AppendTerms) -> Verdict {
        let id = event.producer_id();
        check(event, self.get(id), self.verifications.get(&id), terms)
    }

    /// Applies the next batch without checking it; returns the transaction that it ends, if that had data.
    pub fn apply(&mut self, event: &ProducerEvent) -> Option<CompletedTransaction> {
        let id = event.producer_id();
        let at = self.entry_of(id);
        let entry = &mut self.entries[at];
        match *event {
            ProducerEvent::Data {
                transactional,
                first_offset,
                producer_epoch,
                last_sequence,
                last_offset,
                offset_delta,
                timestamp,
                ..
            } => {
                entry.add_batch(
                    producer_epoch,
                    BatchMetadata { last_sequence, last_offset, offset_delta, timestamp },
                );
                if transactional {
                    self.verifications.remove(&id);
                    if entry.current_txn_first_offset.is_none() {
                        entry.current_txn_first_offset = Some(first_offset);
                        self.ongoing.insert(first_offset, id);
                    }
                }
                None
            }
            ProducerEvent::Marker {
                producer_epoch, committed, coordinator_epoch, offset, timestamp, ..
            } => {
                // With version 2, the next transaction may already be under verification.
                let next_began = |state: &VerificationState| {
                    state.supports_epoch_bump() && state.epoch() == producer_epoch
                };
                if !self.verifications.get(&id).is_some_and(next_began) {
                    self.verifications.remove(&id);
                }
                let first_offset = entry.current_txn_first_offset;
                entry.end_transaction(producer_epoch, coordinator_epoch, timestamp);
                let first_offset = first_offset?;
                self.ongoing.remove(&first_offset);
                self.unreplicated.insert(first_offset, offset);
                let next = self.first_undecided_offset();
                Some(CompletedTransaction {
                    producer_id: id,
                    first_offset,
                    last_offset: offset,
                    committed,
                    last_stable_offset: last_stable_offset(next, offset.saturating_add(1)),
                })
            }
            ProducerEvent::EmptyMarker { .. } => None,
        }
    }

    /// Applies batches that a follower appends together, or the batches of a segment whose producers are
    /// reloaded. Kafka merges such a group afterwards (one `ProducerAppendInfo` per producer), so that a producer
    /// whose epoch changed and changed back also keeps batches from before. Returns the transactions that the
    /// batches end.
    pub fn apply_together(&mut self, events: &[ProducerEvent]) -> Vec<CompletedTransaction> {
        let mut before = HashMap::new();
        let mut changed = HashSet::new();
        let mut ended = Vec::new();
        for event in events {
            let id = event.producer_id();
            let entry = self.get(id).cloned().unwrap_or_else(|| ProducerStateEntry::empty(id));
            let epoch = entry.producer_epoch;
            before.entry(id).or_insert(entry);
            ended.extend(self.apply(event));
            if self.get(id).is_some_and(|entry| entry.producer_epoch != epoch) {
                changed.insert(id);
            }
        }
        for id in changed {
            let at = self.entry_of(id);
            self.entries[at].restore_batches(&before[&id]);
        }
        ended
    }

    fn entry_of(&mut self, producer_id: i64) -> usize {
        let at = *self.index.entry(producer_id).or_insert(self.entries.len());
        if at == self.entries.len() {
            self.entries.push(ProducerStateEntry::empty(producer_id));
            self.max_count = self.max_count.max(self.entries.len());
        }
        at
    }

    /// Adds an entry of a snapshot, replacing any earlier one of the same producer.
    pub fn load(&mut self, entry: ProducerStateEntry) {
        if let Some(first_offset) = entry.current_txn_first_offset {
            self.ongoing.insert(first_offset, entry.producer_id);
        }
        let at = self.entry_of(entry.producer_id);
        self.entries[at] = entry;
    }

    /// Removes all producers and transactions (`truncateFullyAndStartAt`).
    pub fn clear(&mut self) {
        self.entries.clear();
        self.index.clear();
        self.ongoing.clear();
        self.unreplicated.clear();
    }

    /// Starts or continues to verify the transaction of a batch with this epoch and first sequence; `now` is
    /// in ms. Returns the guard for the append, or [`VerificationGuard::SENTINEL`] if the transaction is open
    /// already (`UnifiedLog.maybeStartTransactionVerification`).
    ///
    /// # Errors
    /// [`Refusal::InvalidProducerEpoch`].
    pub fn start_verification(
        &mut self,
        producer_id: i64,
        sequence: i32,
        epoch: i16,
        supports_epoch_bump: bool,
        now: i64,
    ) -> Result<VerificationGuard, Refusal> {
        if let Some(entry) = self.get(producer_id) {
            let current = entry.producer_epoch;
            if epoch < current {
                return Err(Refusal::InvalidProducerEpoch { epoch, current });
            }
            if epoch == current && entry.current_txn_first_offset.is_some() {
                return Ok(VerificationGuard::SENTINEL);
            }
        }
        let last_guard = &mut self.last_guard;
        let state = self.verifications.entry(producer_id).or_insert_with(|| {
            *last_guard += 1;
            let guard = VerificationGuard::new(*last_guard);
            VerificationState::new(guard, now, sequence, epoch, supports_epoch_bump)
        });
        state.update(sequence, epoch);
        Ok(state.guard)
    }

    /// First offset of the earliest transaction that is undecided, or whose marker is not known to be
    /// replicated.
    #[must_use]
    pub fn first_unstable_offset(&self) -> Option<i64> {
        let unreplicated = self.unreplicated.keys().next().copied();
        [self.first_undecided_offset(), unreplicated].into_iter().flatten().min()
    }

    /// First offset of the earliest open transaction.
    #[must_use]
    pub fn first_undecided_offset(&self) -> Option<i64> {
        self.ongoing.keys().next().copied()
    }

    /// The open transactions as first offset and producer, in order of first offset.
    pub fn open_transactions(&self) -> impl Iterator<Item = (i64, i64)> {
        self.ongoing.iter().map(|(&offset, &id)| (offset, id))
    }

    /// Sets the high watermark: markers before it are replicated (`onHighWatermarkUpdated`).
    pub fn set_high_watermark(&mut self, high_watermark: i64) {
        self.unreplicated.retain(|_, &mut marker| marker >= high_watermark);
    }

    /// The last timestamp (ms) of the producer with the earliest open transaction. Kafka considers the
    /// transaction late five minutes after `transaction.max.timeout.ms`.
    #[must_use]
    pub fn oldest_transaction_timestamp(&self) -> Option<i64> {
        let (_, id) = self.ongoing.first_key_value()?;
        Some(self.get(*id)?.last_timestamp)
    }

    /// Removes producers without an open transaction that have no batch or marker after this time (ms), and
    /// verifications that are as old. In Kafka the time is the clock minus `producer.id.expiration.ms`.
    pub fn expire(&mut self, not_later_than: i64) {
        self.entries.retain(|entry| !entry.is_expired(not_later_than));
        self.index = self.entries.iter().enumerate().map(|(at, entry)| (entry.producer_id, at)).collect();
        self.verifications.retain(|_, state| state.timestamp > not_later_than);
    }

    /// The state, in the order of Kafka's snapshots.
    #[must_use]
    pub fn snapshot(&self) -> Vec<ProducerStateEntry> {
        self.in_order().into_iter().cloned().collect()
    }

    /// Like [`snapshot`](Self::snapshot), but borrows the entries.
    #[doc(hidden)]
    #[must_use]
    pub fn in_order(&self) -> Vec<&ProducerStateEntry> {
        let capacity = hash_map_capacity(self.max_count);
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_by_key(|entry| hash_map_bucket(entry.producer_id, capacity));
        entries
    }
}

/// Kafka writes a snapshot in the order of a `java.util.HashMap<Long, _>`: by bucket, and within a bucket in
/// order of insertion. The table starts with 16 buckets and doubles when it is more than three quarters full.
/// (Buckets of nine or more entries become trees, which is not imitated: the order does not matter to
/// readers.)
fn hash_map_capacity(entries: usize) -> u64 {
    let mut capacity = 16;
    while entries as u64 > capacity / 4 * 3 {
        capacity *= 2;
    }
    capacity
}

fn hash_map_bucket(key: i64, capacity: u64) -> u64 {
    // `Long.hashCode`, then `HashMap.hash`.
    let hash = (key ^ (key as u64 >> 32) as i64) as u32;
    u64::from(hash ^ (hash >> 16)) & (capacity - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::producer_event::ProducerEvents;

    fn data(producer_id: i64, transactional: bool, first_offset: i64) -> ProducerEvent {
        ProducerEvent::Data {
            producer_id,
            transactional,
            first_offset,
            producer_epoch: 0,
            base_sequence: 8,
            last_sequence: 9,
            last_offset: first_offset + 1,
            offset_delta: 1,
            timestamp: 100,
        }
    }

    fn marker(producer_id: i64, offset: i64, committed: bool, producer_epoch: i16) -> ProducerEvent {
        let (coordinator_epoch, timestamp) = (7, 500);
        ProducerEvent::Marker { producer_id, producer_epoch, committed, coordinator_epoch, offset, timestamp }
    }

    #[test]
    fn a_marker_keeps_the_last_batch_unless_it_raises_the_epoch() {
        let mut producers = Producers::default();
        producers.apply(&data(1, true, 10));
        let ended = producers.apply(&marker(1, 12, false, 0)).unwrap();
        assert_eq!((ended.first_offset, ended.last_offset, ended.last_stable_offset), (10, 12, 13));
        let entry = &producers.entries()[0];
        assert_eq!((entry.last_sequence(), entry.last_offset(), entry.last_timestamp), (9, 11, 500));
        assert_eq!((entry.coordinator_epoch, entry.current_txn_first_offset), (7, None));
        assert_eq!(producers.apply(&marker(1, 13, false, 1)), None, "an empty transaction");
        let entry = &producers.entries()[0];
        assert_eq!((entry.producer_epoch, entry.last_sequence(), entry.last_offset()), (1, -1, -1));
    }

    #[test]
    fn an_epoch_that_changes_back_keeps_its_batches_if_applied_together() {
        let events = [data(1, false, 10), marker(1, 12, false, 3), data(1, false, 20)];
        let (mut one, mut together) = (Producers::default(), Producers::default());
        for producers in [&mut one, &mut together] {
            producers.apply(&data(1, false, 0));
        }
        for event in &events {
            assert_eq!(one.apply(event), None);
        }
        together.apply_together(&events);
        let offsets = |producers: &Producers| -> Vec<i64> {
            producers.entries()[0].batches().iter().map(|batch| batch.last_offset).collect()
        };
        assert_eq!((offsets(&one), offsets(&together)), (vec![21], vec![1, 21]));
    }

    #[test]
    fn the_last_stable_offset_is_that_of_other_open_transactions() {
        let mut producers = Producers::default();
        for event in [data(1, true, 0), data(2, true, 2), data(1, true, 4)] {
            producers.apply(&event);
        }
        assert_eq!(producers.apply(&marker(2, 6, false, 0)).unwrap().last_stable_offset, 0);
        assert_eq!(producers.apply(&marker(1, 7, true, 0)).unwrap().last_stable_offset, 8);
    }

    #[test]
    fn joined_events_have_the_same_effect() {
        let events = [
            data(1, false, 0),
            data(1, true, 2),
            data(2, true, 4),
            data(1, true, 6),
            data(2, true, 8),
            marker(1, 10, false, 0),
            data(1, true, 11),
            marker(2, 13, true, 0),
        ];
        let mut joined = ProducerEvents::default();
        for event in events {
            joined.add(event);
        }
        let joined = joined.into_events();
        assert_eq!(joined.len(), 6);
        let (mut one, mut other) = (Producers::default(), Producers::default());
        let ends: Vec<_> = events.iter().filter_map(|event| one.apply(event)).collect();
        let same: Vec<_> = joined.iter().filter_map(|event| other.apply(event)).collect();
        assert_eq!(ends, same);
        let bytes = |producers: &Producers| {
            crate::sidecar::producer_snapshot::write_producer_snapshot(&producers.snapshot())
        };
        assert_eq!(bytes(&one), bytes(&other), "a snapshot has the last batch only");
    }

    #[test]
    fn the_order_of_javas_hash_map() {
        let ids = [4_000, 31, 15, 1 << 32, 16, 0, 17, -3, 1_000_000_007];
        let mut producers = Producers::default();
        for id in ids {
            producers.apply(&ProducerEvent::EmptyMarker { producer_id: id, producer_epoch: 0, offset: 0 });
        }
        let order: Vec<_> = producers.snapshot().iter().map(|entry| entry.producer_id).collect();
        // The order of a `new HashMap<Long, _>()` with these keys inserted in this order.
        assert_eq!(order, JAVA_ORDER);
        let mut producers = Producers::default();
        for id in 0..30 {
            producers.apply(&ProducerEvent::EmptyMarker {
                producer_id: 977 * id,
                producer_epoch: 0,
                offset: 0,
            });
        }
        let order: Vec<_> = producers.snapshot().iter().map(|entry| entry.producer_id).collect();
        assert_eq!(order[..8], [0, 18_563, 3_908, 22_471, 7_816, 26_379, 11_724, 15_632], "resized twice");
    }

    const JAVA_ORDER: [i64; 9] = [4_000, 16, 0, 1 << 32, 17, -3, 1_000_000_007, 31, 15];
}
