//! Events that change the state of producers, one per batch. The first record of a control batch decides
//! which marker it is (`ProducerAppendInfo.append`, `CompletedFetch.containsAbortMarker`).

use std::collections::HashMap;

use crate::compression::decompressor::Decompressor;
use crate::error::{ErrorKind, Result};
use crate::record::batch::RecordBatch;
use crate::record::control::ControlRecord;

/// The effect of a producer's batch on the broker's state, or of several consecutive data batches of the
/// producer, joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "Vec<i64>", try_from = "Vec<i64>"))]
pub enum ProducerEvent {
    /// Data batches.
    Data {
        /// The producer.
        producer_id: i64,
        /// True if the batches are part of a transaction.
        transactional: bool,
        /// Base offset of the first batch.
        first_offset: i64,
        /// Epoch of the last batch.
        producer_epoch: i16,
        /// First sequence of the last batch, -1 for none.
        base_sequence: i32,
        /// Last sequence of the last batch, -1 for none.
        last_sequence: i32,
        /// Last offset of the last batch (inclusive).
        last_offset: i64,
        /// Last offset minus base offset of the last batch.
        offset_delta: i32,
        /// Largest timestamp (ms) of the last batch.
        timestamp: i64,
    },
    /// The end of a transaction.
    Marker {
        /// The producer.
        producer_id: i64,
        /// Its epoch.
        producer_epoch: i16,
        /// True if the transaction was committed, false if it was aborted.
        committed: bool,
        /// Epoch of the coordinator that wrote it.
        coordinator_epoch: i32,
        /// Its offset.
        offset: i64,
        /// Its timestamp (ms).
        timestamp: i64,
    },
    /// A control batch that compaction emptied. Whether it was a commit or an abort is lost.
    EmptyMarker {
        /// The producer.
        producer_id: i64,
        /// Its epoch.
        producer_epoch: i16,
        /// Offset of the batch.
        offset: i64,
    },
}

impl ProducerEvent {
    /// The event of a batch; `None` if it has no producer id.
    ///
    /// # Errors
    /// A control batch with a producer id whose first record is not an end-of-transaction marker.
    pub fn of(batch: &RecordBatch<'_>, decompressor: &mut Decompressor) -> Result<Option<Self>> {
        let (producer_id, producer_epoch) = (batch.producer_id(), batch.producer_epoch());
        if producer_id < 0 {
            return Ok(None);
        }
        if !batch.is_control() {
            return Ok(Some(Self::of_data(batch)));
        }
        let Some(record) = batch.records(decompressor)?.next().transpose()? else {
            let offset = batch.base_offset();
            return Ok(Some(Self::EmptyMarker { producer_id, producer_epoch, offset }));
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
            _ => Err(batch.place(
                ErrorKind::InvalidRecord("a producer's control record is not a COMMIT or ABORT").into(),
            )),
        }
    }

    /// The event of a data batch, from its header alone.
    #[doc(hidden)]
    #[must_use]
    pub fn of_data(batch: &RecordBatch<'_>) -> Self {
        Self::Data {
            producer_id: batch.producer_id(),
            transactional: batch.is_transactional(),
            first_offset: batch.base_offset(),
            producer_epoch: batch.producer_epoch(),
            base_sequence: batch.base_sequence(),
            last_sequence: batch.last_sequence(),
            last_offset: batch.last_offset(),
            offset_delta: batch.last_offset_delta(),
            timestamp: batch.max_timestamp(),
        }
    }

    /// The producer.
    #[must_use]
    pub fn producer_id(&self) -> i64 {
        match *self {
            Self::Data { producer_id, .. }
            | Self::Marker { producer_id, .. }
            | Self::EmptyMarker { producer_id, .. } => producer_id,
        }
    }
}

/// Numbers only: there can be one event per batch, and JSON with names would be larger than the log.
#[cfg(feature = "serde")]
impl From<ProducerEvent> for Vec<i64> {
    fn from(event: ProducerEvent) -> Self {
        match event {
            ProducerEvent::Data {
                producer_id,
                transactional,
                first_offset,
                producer_epoch,
                base_sequence,
                last_sequence,
                last_offset,
                offset_delta,
                timestamp,
            } => vec![
                producer_id,
                transactional.into(),
                first_offset,
                producer_epoch.into(),
                base_sequence.into(),
                last_sequence.into(),
                last_offset,
                offset_delta.into(),
                timestamp,
            ],
            ProducerEvent::Marker {
                producer_id,
                producer_epoch,
                committed,
                coordinator_epoch,
                offset,
                timestamp,
            } => vec![
                producer_id,
                producer_epoch.into(),
                committed.into(),
                coordinator_epoch.into(),
                offset,
                timestamp,
            ],
            ProducerEvent::EmptyMarker { producer_id, producer_epoch, offset } => {
                vec![producer_id, producer_epoch.into(), offset]
            }
        }
    }
}

#[cfg(feature = "serde")]
impl TryFrom<Vec<i64>> for ProducerEvent {
    type Error = &'static str;

    fn try_from(numbers: Vec<i64>) -> std::result::Result<Self, Self::Error> {
        const OUT_OF_RANGE: &str = "a producer event's number is out of range";
        let short = |number: i64| i16::try_from(number).map_err(|_| OUT_OF_RANGE);
        let int = |number: i64| i32::try_from(number).map_err(|_| OUT_OF_RANGE);
        match *numbers {
            [
                producer_id,
                transactional,
                first_offset,
                epoch,
                base_sequence,
                last_sequence,
                last_offset,
                delta,
                timestamp,
            ] => Ok(Self::Data {
                producer_id,
                transactional: transactional != 0,
                first_offset,
                producer_epoch: short(epoch)?,
                base_sequence: int(base_sequence)?,
                last_sequence: int(last_sequence)?,
                last_offset,
                offset_delta: int(delta)?,
                timestamp,
            }),
            [producer_id, epoch, committed, coordinator_epoch, offset, timestamp] => Ok(Self::Marker {
                producer_id,
                producer_epoch: short(epoch)?,
                committed: committed != 0,
                coordinator_epoch: int(coordinator_epoch)?,
                offset,
                timestamp,
            }),
            [producer_id, epoch, offset] => {
                Ok(Self::EmptyMarker { producer_id, producer_epoch: short(epoch)?, offset })
            }
            _ => Err("a producer event has 9, 6 or 3 numbers"),
        }
    }
}

/// Collects the events of a segment, and joins events that a snapshot does not distinguish. The number of
/// events grows with producers and transactions, not with batches.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct ProducerEvents {
    events: Vec<ProducerEvent>,
    /// Index of each producer's last event.
    last: HashMap<i64, usize>,
}

#[doc(hidden)]
impl ProducerEvents {
    pub fn add(&mut self, event: ProducerEvent) {
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

    #[must_use]
    pub fn into_events(self) -> Vec<ProducerEvent> {
        self.events
    }
}
