//! Transactions as a fold over batch headers and markers: which were aborted, which are open.
//! Markers are the authority; `.txnindex` files are only compared.

use std::collections::HashMap;

/// What a log says about transactions, in offset order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", tag = "event"))]
pub enum TransactionEvent {
    /// A transactional data batch of a producer that had no open transaction.
    Begin {
        /// The producer.
        producer_id: i64,
        /// The batch's base offset.
        offset: i64,
    },
    /// A marker.
    End {
        /// The producer.
        producer_id: i64,
        /// The marker's offset.
        offset: i64,
        /// Whether it commits; else it aborts.
        committed: bool,
    },
}

/// An aborted transaction: batches of the producer between the two offsets are not for
/// `read_committed` readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct AbortedRange {
    /// The producer.
    pub producer_id: i64,
    /// Offset of the transaction's first batch (inclusive).
    pub first_offset: i64,
    /// Offset of its abort marker (inclusive).
    pub last_offset: i64,
}

/// The fold: feed it events in offset order.
#[derive(Clone, Debug, Default)]
pub struct Transactions {
    open: HashMap<i64, i64>,
    aborted: Vec<AbortedRange>,
}

impl Transactions {
    /// Whether the producer has an open transaction.
    #[must_use]
    pub fn is_open(&self, producer_id: i64) -> bool {
        self.open.contains_key(&producer_id)
    }

    /// Takes the next event.
    pub fn apply(&mut self, event: TransactionEvent) {
        match event {
            TransactionEvent::Begin { producer_id, offset } => {
                self.open.entry(producer_id).or_insert(offset);
            }
            TransactionEvent::End { producer_id, offset, committed } => {
                // A marker without data before it ends nothing (an empty transaction).
                if let Some(first_offset) = self.open.remove(&producer_id)
                    && !committed
                {
                    self.aborted.push(AbortedRange { producer_id, first_offset, last_offset: offset });
                }
            }
        }
    }

    /// Offset of the first record of the earliest open transaction.
    #[must_use]
    pub fn first_unstable_offset(&self) -> Option<i64> {
        self.open.values().min().copied()
    }

    /// The aborted transactions, in the order of their markers.
    #[must_use]
    pub fn aborted(&self) -> &[AbortedRange] {
        &self.aborted
    }
}
