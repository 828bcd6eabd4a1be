//! What the batches of producers did, in the order of the log.

use crate::state::producer_entry::BatchMetadata;

/// What batches of producers say, in the order of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "Numbers", try_from = "Numbers"))]
pub enum HistoryEvent {
    /// Data batches of one producer and epoch, each the next in sequence, in or out of a transaction.
    Data {
        /// The producer.
        producer_id: i64,
        /// Its epoch.
        producer_epoch: i16,
        /// Whether they belong to a transaction.
        transactional: bool,
        /// First sequence of the first, -1 for none.
        base_sequence: i32,
        /// The first ones, five at most: only these can repeat what was before.
        first: Vec<BatchMetadata>,
        /// The last ones of the others, five at most: what is remembered.
        last: Vec<BatchMetadata>,
        /// How many they are.
        batches: u64,
        /// Their records.
        records: u64,
        /// Their bytes as stored.
        bytes: u64,
        /// Timestamp (ms) of the first: of its first record, if the header has that.
        first_timestamp: i64,
        /// Their largest timestamp (ms).
        max_timestamp: i64,
        /// Offsets missing in the segment before the first.
        missing_before: u64,
        /// Offsets missing in the segment up to the end of the last.
        missing_until: u64,
    },
    /// A marker; a control batch that compaction emptied has no outcome.
    Marker {
        /// The producer.
        producer_id: i64,
        /// Its epoch.
        producer_epoch: i16,
        /// Whether it commits; none if nothing is left of the marker.
        committed: Option<bool>,
        /// Epoch of the coordinator that wrote it, -1 if it cannot be read.
        coordinator_epoch: i32,
        /// Its offset.
        offset: i64,
        /// Its timestamp (ms).
        timestamp: i64,
    },
}

impl HistoryEvent {
    /// Whose it is.
    #[must_use]
    pub fn producer_id(&self) -> i64 {
        match *self {
            Self::Data { producer_id, .. } | Self::Marker { producer_id, .. } => producer_id,
        }
    }

    /// Where it ends in the log (inclusive).
    #[must_use]
    pub fn last_offset(&self) -> i64 {
        match self {
            Self::Data { first, last, .. } => last.last().or(first.last()).map_or(-1, |one| one.last_offset),
            Self::Marker { offset, .. } => *offset,
        }
    }
}

/// As numbers, since a log can have an event for every batch: names would outweigh the log. Batches are
/// sequence, offset, delta and timestamp.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
enum Numbers {
    Data([i64; 11], Vec<[i64; 4]>, Vec<[i64; 4]>),
    Marker([i64; 6]),
}

#[cfg(feature = "serde")]
impl From<HistoryEvent> for Numbers {
    fn from(event: HistoryEvent) -> Self {
        let batches = |batches: Vec<BatchMetadata>| {
            let numbers = |one: &BatchMetadata| {
                [one.last_sequence.into(), one.last_offset, one.offset_delta.into(), one.timestamp]
            };
            batches.iter().map(numbers).collect()
        };
        match event {
            HistoryEvent::Data {
                producer_id,
                producer_epoch,
                transactional,
                base_sequence,
                first,
                last,
                batches: count,
                records,
                bytes,
                first_timestamp,
                max_timestamp,
                missing_before,
                missing_until,
            } => {
                // Counts of what is in a file; of missing offsets there are no more than an i64 can count.
                let count_of = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
                let facts = [
                    producer_id,
                    producer_epoch.into(),
                    transactional.into(),
                    base_sequence.into(),
                    count_of(count),
                    count_of(records),
                    count_of(bytes),
                    first_timestamp,
                    max_timestamp,
                    count_of(missing_before),
                    count_of(missing_until),
                ];
                Self::Data(facts, batches(first), batches(last))
            }
            HistoryEvent::Marker {
                producer_id,
                producer_epoch,
                committed,
                coordinator_epoch,
                offset,
                timestamp,
            } => {
                let outcome = committed.map_or(-1, i64::from);
                let (epoch, coordinator) = (producer_epoch.into(), coordinator_epoch.into());
                Self::Marker([producer_id, epoch, outcome, coordinator, offset, timestamp])
            }
        }
    }
}

#[cfg(feature = "serde")]
impl TryFrom<Numbers> for HistoryEvent {
    type Error = std::num::TryFromIntError;

    fn try_from(numbers: Numbers) -> std::result::Result<Self, Self::Error> {
        let batches = |batches: Vec<[i64; 4]>| {
            let batch = |[sequence, last_offset, delta, timestamp]: [i64; 4]| {
                let (last_sequence, offset_delta) = (sequence.try_into()?, delta.try_into()?);
                Ok(BatchMetadata { last_sequence, last_offset, offset_delta, timestamp })
            };
            batches.into_iter().map(batch).collect::<std::result::Result<_, Self::Error>>()
        };
        match numbers {
            Numbers::Data(facts, first, last) => {
                let [
                    producer_id,
                    epoch,
                    transactional,
                    sequence,
                    count,
                    records,
                    bytes,
                    first_timestamp,
                    max_timestamp,
                    before,
                    until,
                ] = facts;
                Ok(Self::Data {
                    producer_id,
                    producer_epoch: epoch.try_into()?,
                    transactional: transactional != 0,
                    base_sequence: sequence.try_into()?,
                    first: batches(first)?,
                    last: batches(last)?,
                    batches: count.try_into()?,
                    records: records.try_into()?,
                    bytes: bytes.try_into()?,
                    first_timestamp,
                    max_timestamp,
                    missing_before: before.try_into()?,
                    missing_until: until.try_into()?,
                })
            }
            Numbers::Marker([producer_id, epoch, outcome, coordinator, offset, timestamp]) => {
                Ok(Self::Marker {
                    producer_id,
                    producer_epoch: epoch.try_into()?,
                    committed: (outcome >= 0).then_some(outcome != 0),
                    coordinator_epoch: coordinator.try_into()?,
                    offset,
                    timestamp,
                })
            }
        }
    }
}
