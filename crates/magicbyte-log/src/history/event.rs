//! Producers' batches and markers, in the order of the log.

use magicbyte::state::BatchMetadata;

/// A run of a producer's data batches, or a marker.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(into = "EncodedEvent", try_from = "EncodedEvent")]
#[non_exhaustive]
pub enum HistoryEvent {
    /// Data batches of one producer and epoch, each next in sequence, in or out of a transaction.
    Data {
        /// The producer.
        producer_id: i64,
        /// Its epoch.
        producer_epoch: i16,
        /// True if the batches belong to a transaction.
        transactional: bool,
        /// First sequence of the first batch; -1 if it has none.
        base_sequence: i32,
        /// The first batches, at most five: only these can repeat earlier ones.
        first: Vec<BatchMetadata>,
        /// The last of the other batches, at most five: these are what a broker remembers.
        last: Vec<BatchMetadata>,
        /// The number of batches.
        batches: u64,
        /// Their records.
        records: u64,
        /// Their bytes as stored.
        bytes: u64,
        /// Timestamp (ms) of the first record if the first header has it, else of the first batch.
        first_timestamp: i64,
        /// Their largest timestamp (ms).
        max_timestamp: i64,
        /// Offsets missing in the segment before the first batch.
        missing_before: u64,
        /// Offsets missing in the segment up to the end of the last batch.
        missing_until: u64,
    },
    /// A transaction marker, or the rest of a marker after compaction.
    Marker {
        /// The producer.
        producer_id: i64,
        /// Its epoch.
        producer_epoch: i16,
        /// True for a commit, false for an abort; None if compaction emptied the batch.
        committed: Option<bool>,
        /// Epoch of the coordinator that wrote it; -1 if it cannot be read.
        coordinator_epoch: i32,
        /// Its offset.
        offset: i64,
        /// Its timestamp (ms).
        timestamp: i64,
    },
}

impl HistoryEvent {
    /// The producer's ID.
    #[must_use]
    pub fn producer_id(&self) -> i64 {
        match *self {
            Self::Data { producer_id, .. } | Self::Marker { producer_id, .. } => producer_id,
        }
    }

    /// The last offset of the batches, or the marker's (inclusive).
    #[must_use]
    pub fn last_offset(&self) -> i64 {
        match self {
            Self::Data { first, last, .. } => {
                last.last().or(first.last()).map_or(-1, |batch| batch.last_offset)
            }
            Self::Marker { offset, .. } => *offset,
        }
    }
}

/// The JSON form: arrays of numbers, since a log can have an event per batch and field names would outweigh
/// the log. A batch is sequence, offset, delta and timestamp.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
enum EncodedEvent {
    Data([i64; 11], Vec<[i64; 4]>, Vec<[i64; 4]>),
    Marker([i64; 6]),
}

impl From<HistoryEvent> for EncodedEvent {
    fn from(event: HistoryEvent) -> Self {
        let batches = |batches: Vec<BatchMetadata>| {
            let numbers = |batch: &BatchMetadata| {
                [batch.last_sequence.into(), batch.last_offset, batch.offset_delta.into(), batch.timestamp]
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
                // Counts of records and bytes of a file fit an i64; missing offsets saturate.
                let count_of = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
                let fields = [
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
                Self::Data(fields, batches(first), batches(last))
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

impl TryFrom<EncodedEvent> for HistoryEvent {
    type Error = std::num::TryFromIntError;

    fn try_from(numbers: EncodedEvent) -> std::result::Result<Self, Self::Error> {
        let batches = |batches: Vec<[i64; 4]>| {
            let batch = |[sequence, last_offset, delta, timestamp]: [i64; 4]| {
                let (last_sequence, offset_delta) = (sequence.try_into()?, delta.try_into()?);
                Ok(BatchMetadata { last_sequence, last_offset, offset_delta, timestamp })
            };
            batches.into_iter().map(batch).collect::<std::result::Result<_, Self::Error>>()
        };
        match numbers {
            EncodedEvent::Data(fields, first, last) => {
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
                ] = fields;
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
            EncodedEvent::Marker([producer_id, epoch, outcome, coordinator, offset, timestamp]) => {
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
