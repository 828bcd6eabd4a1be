//! The transactions that are open at the end of a log which grows batch by batch.

use std::collections::BTreeMap;

use magicbyte::RecordBatch;
use serde::{Deserialize, Serialize};

/// A transaction that has records, and no marker yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenTransaction {
    /// The producer.
    pub producer_id: i64,
    /// The base offset of its first batch.
    pub first_offset: i64,
    /// True if a transaction that began before this one has ended after its beginning. A log that is cut where this one
    /// begins would keep the other one's records without its marker, and nobody would ever end it.
    pub is_overlapped: bool,
}

/// The open transactions of a log, by their producers: as many as there are producers with one.
#[derive(Debug, Default)]
pub(super) struct OpenTransactions(BTreeMap<i64, OpenTransaction>);

impl OpenTransactions {
    pub(super) fn new(open: Vec<OpenTransaction>) -> Self {
        Self(open.into_iter().map(|one| (one.producer_id, one)).collect())
    }

    /// Adds the next batch of the log.
    pub(super) fn add(&mut self, batch: &RecordBatch<'_>) {
        if !batch.is_transactional() {
            return;
        }
        let producer_id = batch.producer_id();
        if !batch.is_control() {
            let first_offset = batch.base_offset();
            self.0.entry(producer_id).or_insert(OpenTransaction {
                producer_id,
                first_offset,
                is_overlapped: false,
            });
        } else if let Some(ended) = self.0.remove(&producer_id) {
            let later = self.0.values_mut().filter(|one| one.first_offset > ended.first_offset);
            later.for_each(|one| one.is_overlapped = true);
        }
    }

    /// The open transactions, in the order of their beginnings.
    pub(super) fn into_sorted(self) -> Vec<OpenTransaction> {
        let mut sorted: Vec<_> = self.0.into_values().collect();
        sorted.sort_unstable_by_key(|one| (one.first_offset, one.producer_id));
        sorted
    }
}
