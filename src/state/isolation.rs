//! The meaning of `read_committed`: isolation levels, aborted transactions, the last stable offset.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// The set of records that a reader sees (Kafka's `isolation.level`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum IsolationLevel {
    /// All records.
    #[default]
    ReadUncommitted,
    /// All records before the last stable offset, except those of aborted transactions.
    ReadCommitted,
}

/// A name that is not an isolation level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownIsolationLevel(String);

impl fmt::Display for UnknownIsolationLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "isolation level {:?}: expected \"read_uncommitted\" or \"read_committed\"", self.0)
    }
}

impl std::error::Error for UnknownIsolationLevel {}

impl FromStr for IsolationLevel {
    type Err = UnknownIsolationLevel;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "read_uncommitted" => Ok(Self::ReadUncommitted),
            "read_committed" => Ok(Self::ReadCommitted),
            other => Err(UnknownIsolationLevel(other.to_owned())),
        }
    }
}

/// The last stable offset (exclusive), up to which `read_committed` reads: the start of the earliest
/// undecided transaction, or the end of the log (`UnifiedLog.lastStableOffset`,
/// `ProducerStateManager.lastStableOffset`).
#[must_use]
pub fn last_stable_offset(first_unstable_offset: Option<i64>, end_offset: i64) -> i64 {
    first_unstable_offset.map_or(end_offset, |first| first.min(end_offset))
}

/// An aborted transaction: `read_committed` skips transactional batches of the producer between the two
/// offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "(i64, i64, i64)", from = "(i64, i64, i64)"))]
pub struct AbortedTransaction {
    /// The producer.
    pub producer_id: i64,
    /// Offset of the transaction's first batch (inclusive).
    pub first_offset: i64,
    /// Offset of its abort marker (inclusive).
    pub last_offset: i64,
}

/// A tuple, to keep the JSON small: there can be one for every two batches.
impl From<AbortedTransaction> for (i64, i64, i64) {
    fn from(range: AbortedTransaction) -> Self {
        (range.producer_id, range.first_offset, range.last_offset)
    }
}

impl From<(i64, i64, i64)> for AbortedTransaction {
    fn from((producer_id, first_offset, last_offset): (i64, i64, i64)) -> Self {
        Self { producer_id, first_offset, last_offset }
    }
}

/// The aborted transactions of a log by producer, in offset order. Transactions of the same producer do not
/// overlap.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct AbortedByProducer(HashMap<i64, Vec<AbortedTransaction>>);

#[doc(hidden)]
impl AbortedByProducer {
    /// From transactions in any order.
    #[must_use]
    pub fn new(aborted: &[AbortedTransaction]) -> Self {
        let mut by_producer: HashMap<i64, Vec<AbortedTransaction>> = HashMap::new();
        for one in aborted {
            by_producer.entry(one.producer_id).or_default().push(*one);
        }
        for transactions in by_producer.values_mut() {
            transactions.sort_unstable_by_key(|one| one.first_offset);
        }
        Self(by_producer)
    }

    /// True if a transactional batch with this base offset was aborted, decided as in `CompletedFetch`.
    #[must_use]
    pub fn contains(&self, producer_id: i64, base_offset: i64) -> bool {
        self.0.get(&producer_id).is_some_and(|transactions| {
            // Only the last transaction that begins at or before the offset can contain it.
            let begun = transactions.partition_point(|one| one.first_offset <= base_offset);
            begun > 0 && base_offset <= transactions[begun - 1].last_offset
        })
    }

    /// The aborted transactions that matter to a byte range of a segment: they overlap `offsets`, and their
    /// producers have transactional data in `bytes`. This keeps thousands of long transactions out of
    /// thousands of chunks. `transactional` has the position and producer of each piece of transactional
    /// data, in order of position.
    #[must_use]
    pub fn within(
        &self,
        transactional: &[(u64, i64)],
        bytes: Range<u64>,
        offsets: Range<i64>,
    ) -> Vec<AbortedTransaction> {
        let start = transactional.partition_point(|&(position, _)| position < bytes.start);
        let inside = transactional[start..].iter().take_while(|&&(position, _)| position < bytes.end);
        let producers: BTreeSet<_> = inside.map(|&(_, producer)| producer).collect();
        let mut found = Vec::new();
        for transactions in producers.iter().filter_map(|producer| self.0.get(producer)) {
            let first = transactions.partition_point(|one| one.last_offset < offsets.start);
            found.extend(transactions[first..].iter().take_while(|one| one.first_offset < offsets.end));
        }
        found
    }
}
