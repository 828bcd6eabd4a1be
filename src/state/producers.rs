//! Producers as a fold over batches: what a broker knows of each when it has replayed a log
//! (`ProducerStateManager`, `ProducerAppendInfo` and `ProducerStateEntry`, origin REPLICATION).

use std::collections::{BTreeMap, HashMap};

use crate::compression::Decompressor;
use crate::error::{ErrorKind, Result};
use crate::record::{ControlRecord, RecordBatch};

/// One producer's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerStateEntry {
    /// The producer.
    pub producer_id: i64,
    /// Its epoch.
    pub producer_epoch: i16,
    /// Sequence of its last record, -1 for none.
    pub last_sequence: i32,
    /// Offset of its last record, -1 for none.
    pub last_offset: i64,
    /// Offsets in its last batch, less one.
    pub offset_delta: i32,
    /// Time (ms) of its last batch or marker.
    pub timestamp: i64,
    /// Epoch of the transaction coordinator that wrote its last marker, -1 for none.
    pub coordinator_epoch: i32,
    /// Where its open transaction began, if one is open.
    pub current_txn_first_offset: Option<i64>,
}

impl ProducerStateEntry {
    fn empty(producer_id: i64) -> Self {
        Self {
            producer_id,
            producer_epoch: -1,
            last_sequence: -1,
            last_offset: -1,
            offset_delta: 0,
            timestamp: -1,
            coordinator_epoch: -1,
            current_txn_first_offset: None,
        }
    }

    /// Another epoch, higher or not, forgets the batches of the one before.
    fn set_epoch(&mut self, epoch: i16) {
        if self.producer_epoch != epoch {
            (self.last_sequence, self.last_offset, self.offset_delta) = (-1, -1, 0);
            self.producer_epoch = epoch;
        }
    }
}

/// What a segment says about a producer, in the order of the log. Data batches that follow each
/// other without anything of the same producer between them are one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", tag = "event"))]
pub enum ProducerEvent {
    /// Data batches.
    Data {
        /// The producer.
        producer_id: i64,
        /// Whether they belong to a transaction.
        transactional: bool,
        /// Base offset of the first.
        first_offset: i64,
        /// Epoch of the last.
        producer_epoch: i16,
        /// Last sequence of the last.
        last_sequence: i32,
        /// Last offset of the last.
        last_offset: i64,
        /// Offsets in the last, less one.
        offset_delta: i32,
        /// Largest timestamp (ms) of the last.
        timestamp: i64,
    },
    /// The end of a transaction.
    Marker {
        /// The producer.
        producer_id: i64,
        /// Its epoch.
        producer_epoch: i16,
        /// Whether it commits; else it aborts.
        committed: bool,
        /// Epoch of the coordinator that wrote it.
        coordinator_epoch: i32,
        /// Its offset.
        offset: i64,
        /// Its timestamp (ms).
        timestamp: i64,
    },
    /// A control batch that compaction emptied: nothing is left of its transaction.
    EmptyMarker {
        /// The producer.
        producer_id: i64,
    },
}

impl ProducerEvent {
    /// What a batch says; nothing if it has no producer id.
    ///
    /// # Errors
    /// A control batch with a producer id whose first record is no end of a transaction.
    pub(crate) fn of(batch: &RecordBatch<'_>, decompressor: &mut Decompressor) -> Result<Option<Self>> {
        let (producer_id, producer_epoch) = (batch.producer_id(), batch.producer_epoch());
        if producer_id < 0 {
            return Ok(None);
        }
        if !batch.is_control() {
            return Ok(Some(Self::Data {
                producer_id,
                transactional: batch.is_transactional(),
                first_offset: batch.base_offset(),
                producer_epoch,
                last_sequence: batch.last_sequence(),
                last_offset: batch.last_offset(),
                offset_delta: batch.last_offset_delta(),
                timestamp: batch.max_timestamp(),
            }));
        }
        let Some(record) = batch.records(decompressor)?.next().transpose()? else {
            return Ok(Some(Self::EmptyMarker { producer_id }));
        };
        let timestamp = record.timestamp();
        match ControlRecord::parse(record.key(), record.value()).map_err(|e| batch.place(e))? {
            ControlRecord::EndTransaction { committed, coordinator_epoch, .. } => Ok(Some(Self::Marker {
                producer_id,
                producer_epoch,
                committed,
                coordinator_epoch,
                offset: batch.base_offset(),
                timestamp,
            })),
            _ => Err(batch
                .place(ErrorKind::InvalidRecord("a producer's control record is no COMMIT or ABORT").into())),
        }
    }

    fn producer_id(&self) -> i64 {
        match *self {
            Self::Data { producer_id, .. }
            | Self::Marker { producer_id, .. }
            | Self::EmptyMarker { producer_id } => producer_id,
        }
    }
}

/// Events of a segment, joined where nothing is lost: their number grows with producers and
/// transactions, not with batches.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProducerEvents {
    events: Vec<ProducerEvent>,
    /// Where each producer's last event stands.
    last: HashMap<i64, usize>,
}

impl ProducerEvents {
    pub(crate) fn add(&mut self, event: ProducerEvent) {
        let id = event.producer_id();
        if let Some(&at) = self.last.get(&id)
            && let ProducerEvent::Data { transactional: before, first_offset: start, .. } = self.events[at]
            && let ProducerEvent::Data { transactional, .. } = event
            && before == transactional
        {
            self.events[at] = event;
            if let ProducerEvent::Data { first_offset, .. } = &mut self.events[at] {
                *first_offset = start;
            }
        } else {
            self.last.insert(id, self.events.len());
            self.events.push(event);
        }
    }

    pub(crate) fn into_events(self) -> Vec<ProducerEvent> {
        self.events
    }
}

/// A transaction that a marker ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompletedTransaction {
    pub(crate) producer_id: i64,
    /// Of its first batch.
    pub(crate) first_offset: i64,
    /// Of its marker.
    pub(crate) last_offset: i64,
    pub(crate) committed: bool,
    /// The first offset of another open transaction, else the one behind the marker.
    pub(crate) last_stable_offset: i64,
}

/// The fold: feed it events in the order of the log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Producers {
    /// In the order in which they appeared.
    entries: Vec<ProducerStateEntry>,
    index: HashMap<i64, usize>,
    /// Open transactions: first offset to producer.
    ongoing: BTreeMap<i64, i64>,
}

impl Producers {
    /// Takes the next event; gives the transaction it ends, if that had data.
    pub(crate) fn apply(&mut self, event: &ProducerEvent) -> Option<CompletedTransaction> {
        let id = event.producer_id();
        let entry = *self.index.entry(id).or_insert(self.entries.len());
        if entry == self.entries.len() {
            self.entries.push(ProducerStateEntry::empty(id));
        }
        let entry = &mut self.entries[entry];
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
                entry.producer_epoch = producer_epoch;
                entry.last_sequence = last_sequence;
                entry.last_offset = last_offset;
                entry.offset_delta = offset_delta;
                entry.timestamp = timestamp;
                if transactional && entry.current_txn_first_offset.is_none() {
                    entry.current_txn_first_offset = Some(first_offset);
                    self.ongoing.insert(first_offset, id);
                }
                None
            }
            ProducerEvent::Marker {
                producer_epoch, committed, coordinator_epoch, offset, timestamp, ..
            } => {
                entry.set_epoch(producer_epoch);
                entry.coordinator_epoch = coordinator_epoch;
                entry.timestamp = timestamp;
                let first_offset = entry.current_txn_first_offset.take()?;
                self.ongoing.remove(&first_offset);
                let next = self.ongoing.keys().next().copied();
                Some(CompletedTransaction {
                    producer_id: id,
                    first_offset,
                    last_offset: offset,
                    committed,
                    last_stable_offset: next.unwrap_or(offset.saturating_add(1)),
                })
            }
            ProducerEvent::EmptyMarker { .. } => None,
        }
    }

    /// Forgets producers without an open transaction whose last word is not later than this time
    /// (ms): what a broker does by its clock and `producer.id.expiration.ms` when it loads a snapshot.
    pub(crate) fn expire(&mut self, not_later_than: i64) {
        self.entries
            .retain(|entry| entry.current_txn_first_offset.is_some() || entry.timestamp > not_later_than);
        self.index = self.entries.iter().enumerate().map(|(at, entry)| (entry.producer_id, at)).collect();
    }

    /// The state, in the order in which Kafka writes it.
    pub(crate) fn snapshot(&self) -> Vec<ProducerStateEntry> {
        let capacity = hash_map_capacity(self.entries.len());
        let mut entries = self.entries.clone();
        entries.sort_by_key(|entry| hash_map_bucket(entry.producer_id, capacity));
        entries
    }
}

/// Kafka writes a snapshot in the order of a `java.util.HashMap<Long, _>`: by bucket, inside a
/// bucket in the order of insertion. The table starts with 16 buckets and doubles when it is more
/// than three quarters full. (Buckets that become trees, from nine entries on, are not imitated: a
/// snapshot in another order says the same.)
fn hash_map_capacity(entries: usize) -> u64 {
    let mut capacity = 16;
    while entries as u64 > capacity / 4 * 3 {
        capacity *= 2;
    }
    capacity
}

fn hash_map_bucket(key: i64, capacity: u64) -> u64 {
    // Long.hashCode, then HashMap.hash.
    let hash = (key ^ (key as u64 >> 32) as i64) as u32;
    u64::from(hash ^ (hash >> 16)) & (capacity - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(producer_id: i64, transactional: bool, first_offset: i64) -> ProducerEvent {
        ProducerEvent::Data {
            producer_id,
            transactional,
            first_offset,
            producer_epoch: 0,
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
        let entry = producers.snapshot()[0];
        assert_eq!((entry.last_sequence, entry.last_offset, entry.timestamp), (9, 11, 500));
        assert_eq!((entry.coordinator_epoch, entry.current_txn_first_offset), (7, None));
        assert_eq!(producers.apply(&marker(1, 13, false, 1)), None, "an empty transaction");
        let entry = producers.snapshot()[0];
        assert_eq!((entry.producer_epoch, entry.last_sequence, entry.last_offset), (1, -1, -1));
    }

    #[test]
    fn the_last_stable_offset_is_that_of_the_others() {
        let mut producers = Producers::default();
        for event in [data(1, true, 0), data(2, true, 2), data(1, true, 4)] {
            producers.apply(&event);
        }
        assert_eq!(producers.apply(&marker(2, 6, false, 0)).unwrap().last_stable_offset, 0);
        assert_eq!(producers.apply(&marker(1, 7, true, 0)).unwrap().last_stable_offset, 8);
    }

    #[test]
    fn joined_events_say_the_same() {
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
        events.iter().for_each(|&event| joined.add(event));
        let joined = joined.into_events();
        assert_eq!(joined.len(), 6);
        let (mut one, mut other) = (Producers::default(), Producers::default());
        let ends: Vec<_> = events.iter().filter_map(|event| one.apply(event)).collect();
        let same: Vec<_> = joined.iter().filter_map(|event| other.apply(event)).collect();
        assert_eq!(ends, same);
        assert_eq!(one.snapshot(), other.snapshot());
    }

    #[test]
    fn the_order_of_javas_hash_map() {
        let ids = [4_000, 31, 15, 1 << 32, 16, 0, 17, -3, 1_000_000_007];
        let mut producers = Producers::default();
        for id in ids {
            producers.apply(&ProducerEvent::EmptyMarker { producer_id: id });
        }
        let order: Vec<_> = producers.snapshot().iter().map(|entry| entry.producer_id).collect();
        // As `new HashMap<Long, _>()` with these keys put in this order gives them.
        assert_eq!(order, JAVA_ORDER);
        let mut producers = Producers::default();
        for id in 0..30 {
            producers.apply(&ProducerEvent::EmptyMarker { producer_id: 977 * id });
        }
        let order: Vec<_> = producers.snapshot().iter().map(|entry| entry.producer_id).collect();
        assert_eq!(order[..8], [0, 18_563, 3_908, 22_471, 7_816, 26_379, 11_724, 15_632], "resized twice");
    }

    const JAVA_ORDER: [i64; 9] = [4_000, 16, 0, 1 << 32, 17, -3, 1_000_000_007, 31, 15];
}
