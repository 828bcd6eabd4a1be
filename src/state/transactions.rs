//! Transactions as a fold over batch headers and markers: open and aborted transactions. Markers are the
//! authority; `.txnindex` files are only compared with them.

use std::collections::{HashMap, HashSet};

use crate::batch::Batch;
use crate::compression::decompressor::Decompressor;
use crate::error::Result;
use crate::record::batch::RecordBatch;
use crate::record::control::ControlType;
use crate::state::isolation::AbortedTransaction;

/// The begin or end of a transaction in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", tag = "event"))]
pub enum TransactionEvent {
    /// A transactional data batch of a producer without an open transaction.
    Begin {
        /// The producer.
        producer_id: i64,
        /// The batch's base offset.
        offset: i64,
    },
    /// A marker: commit or abort.
    End {
        /// The producer.
        producer_id: i64,
        /// The marker's offset.
        offset: i64,
        /// True if the transaction was committed, false if it was aborted.
        committed: bool,
    },
}

/// Folds [`TransactionEvent`]s, which must come in offset order.
#[derive(Clone, Debug, Default)]
pub struct Transactions {
    open: HashMap<i64, i64>,
    aborted: Vec<AbortedTransaction>,
}

impl Transactions {
    /// True if the producer has an open transaction.
    #[must_use]
    pub fn is_open(&self, producer_id: i64) -> bool {
        self.open.contains_key(&producer_id)
    }

    /// Applies the next event.
    pub fn apply(&mut self, event: TransactionEvent) {
        match event {
            TransactionEvent::Begin { producer_id, offset } => {
                self.open.entry(producer_id).or_insert(offset);
            }
            TransactionEvent::End { producer_id, offset, committed } => {
                // A marker without data before it ends an empty transaction.
                if let Some(first_offset) = self.open.remove(&producer_id)
                    && !committed
                {
                    self.aborted.push(AbortedTransaction { producer_id, first_offset, last_offset: offset });
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
    pub fn aborted(&self) -> &[AbortedTransaction] {
        &self.aborted
    }
}

/// The decision of a `read_committed` consumer about a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Deliver its records.
    Deliver,
    /// Skip it, since it belongs to an aborted transaction.
    Aborted,
    /// Skip it, since it is a control batch.
    Control,
}

/// A consumer's `read_committed` filter for fetched batches (`CompletedFetch`). The broker sends batches up
/// to the last stable offset, with the list of aborted transactions among them.
#[derive(Clone, Debug)]
pub struct AbortedFilter {
    /// First offset and producer of aborted transactions not reached yet, earliest last.
    upcoming: Vec<(i64, i64)>,
    /// Producers with an aborted transaction at the current position.
    aborted: HashSet<i64>,
}

impl AbortedFilter {
    /// A filter from the producer and first offset of each aborted transaction, in any order.
    #[must_use]
    pub fn new(aborted: impl IntoIterator<Item = (i64, i64)>) -> Self {
        let mut upcoming: Vec<_> = aborted.into_iter().map(|(id, offset)| (offset, id)).collect();
        upcoming.sort_unstable_by(|one, other| other.cmp(one));
        Self { upcoming, aborted: HashSet::new() }
    }

    /// Decides about the next batch. Reads the first record of a control batch.
    ///
    /// # Errors
    /// A control batch whose first record does not decode or has no control key.
    pub fn admit(&mut self, batch: &Batch<'_>, decompressor: &mut Decompressor) -> Result<Admission> {
        let Some(batch) = batch.as_v2() else { return Ok(Admission::Deliver) };
        let id = batch.producer_id();
        if id >= 0 {
            // Compared with the batch's last offset, since its first may have been compacted away.
            while self.upcoming.last().is_some_and(|&(first_offset, _)| first_offset <= batch.last_offset()) {
                self.aborted.extend(self.upcoming.pop().map(|(_, id)| id));
            }
        }
        if batch.is_control() {
            if id >= 0 && is_abort(batch, decompressor)? {
                self.aborted.remove(&id);
            } else if batch.is_transactional() && self.aborted.contains(&id) {
                return Ok(Admission::Aborted);
            }
            return Ok(Admission::Control);
        }
        let skipped = batch.is_transactional() && self.aborted.contains(&id);
        Ok(if skipped { Admission::Aborted } else { Admission::Deliver })
    }
}

fn is_abort(batch: &RecordBatch<'_>, decompressor: &mut Decompressor) -> Result<bool> {
    let first = batch.records(decompressor)?.next().transpose()?;
    let kind = first.and_then(|record| record.key().map(ControlType::parse)).transpose();
    Ok(kind.map_err(|error| batch.place(error))? == Some(ControlType::Abort))
}
