//! Batches that were received and wait for the caller.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};

use crate::address::Address;
use crate::fetched::Fetched;

/// Batches by the place of their partition in the order of delivery, each with the broker whose response has them.
#[derive(Debug, Default)]
pub(crate) struct Ready(BTreeMap<usize, VecDeque<(Address, Fetched)>>);

impl Ready {
    pub(crate) fn push(&mut self, rank: usize, broker: Address, fetched: Fetched) {
        self.0.entry(rank).or_default().push_back((broker, fetched));
    }

    /// The next batches, unless those of a partition before `first` are still to come.
    pub(crate) fn pop(&mut self, first: usize) -> Option<Fetched> {
        let mut entry = self.0.first_entry().filter(|entry| *entry.key() <= first)?;
        let next = entry.get_mut().pop_front();
        if entry.get().is_empty() {
            entry.remove();
        }
        next.map(|(_, fetched)| fetched)
    }

    /// Drops the batches of partitions after `first`.
    pub(crate) fn drop_after(&mut self, first: usize) {
        self.0.retain(|&rank, _| rank <= first);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The brokers whose batches wait for those of the partition `first`. Each has one response in memory.
    pub(crate) fn waiting(&self, first: usize) -> impl Iterator<Item = &Address> {
        self.0.range((Excluded(first), Unbounded)).flat_map(|(_, queue)| queue).map(|(broker, _)| broker)
    }
}
