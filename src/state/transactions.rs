//! Transactions as a fold over batch headers and markers: which were aborted, which are open.
//! Markers are the authority; `.txnindex` files are only compared.

use crate::state::isolation::AbortedTransaction;
use std::collections::{HashMap, HashSet};

use crate::batch::Batch;
use crate::compression::decompressor::Decompressor;
use crate::error::Result;
use crate::record::batch::RecordBatch;
use crate::record::control::ControlType;

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

/// The fold: feed it events in offset order.
#[derive(Clone, Debug, Default)]
pub struct Transactions {
    open: HashMap<i64, i64>,
    aborted: Vec<AbortedTransaction>,
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

/// What a consumer that reads committed records only does with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Its records are delivered.
    Deliver,
    /// It belongs to an aborted transaction: it is skipped whole.
    Aborted,
    /// It is a control batch, which applications never see.
    Control,
}

/// The consumer's filter for `read_committed` over fetched batches (`CompletedFetch`): the broker
/// sends batches up to the last stable offset, and the aborted transactions among them.
#[derive(Clone, Debug)]
pub struct AbortedFilter {
    /// First offset and producer, the earliest last.
    waiting: Vec<(i64, i64)>,
    aborted: HashSet<i64>,
}

impl AbortedFilter {
    /// Of the aborted transactions' producers and first offsets, in any order.
    #[must_use]
    pub fn new(aborted: impl IntoIterator<Item = (i64, i64)>) -> Self {
        let mut waiting: Vec<_> = aborted.into_iter().map(|(id, offset)| (offset, id)).collect();
        waiting.sort_unstable_by(|one, other| other.cmp(one));
        Self { waiting, aborted: HashSet::new() }
    }

    /// What to do with the next batch. Of a control batch the first record is read.
    ///
    /// # Errors
    /// A control batch whose first record does not decode or has no control key.
    pub fn admit(&mut self, batch: &Batch<'_>, decompressor: &mut Decompressor) -> Result<Admission> {
        let Batch::V2(batch) = batch else { return Ok(Admission::Deliver) };
        let id = batch.producer_id();
        if id >= 0 {
            // Up to the batch's last offset: its first may have been compacted away.
            while self.waiting.last().is_some_and(|&(first_offset, _)| first_offset <= batch.last_offset()) {
                self.aborted.extend(self.waiting.pop().map(|(_, id)| id));
            }
        }
        if batch.is_control() {
            if id >= 0 && self.is_abort(batch, decompressor)? {
                self.aborted.remove(&id);
            } else if batch.is_transactional() && self.aborted.contains(&id) {
                return Ok(Admission::Aborted);
            }
            return Ok(Admission::Control);
        }
        let skipped = batch.is_transactional() && self.aborted.contains(&id);
        Ok(if skipped { Admission::Aborted } else { Admission::Deliver })
    }

    fn is_abort(&self, batch: &RecordBatch<'_>, decompressor: &mut Decompressor) -> Result<bool> {
        let first = batch.records(decompressor)?.next().transpose()?;
        let kind = first.and_then(|record| record.key().map(ControlType::parse)).transpose();
        Ok(kind.map_err(|error| batch.place(error))? == Some(ControlType::Abort))
    }
}
