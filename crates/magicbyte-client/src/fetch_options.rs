//! Ranges to fetch, and the sizes of the portions.

use std::sync::Arc;
use std::time::Duration;

use magicbyte::state::IsolationLevel;

/// A range of offsets of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchRange {
    /// The topic.
    pub topic: Arc<str>,
    /// The partition.
    pub partition: i32,
    /// The first offset.
    pub start: i64,
    /// The end (exclusive).
    pub end: i64,
}

/// Options of a [`Fetcher`](crate::Fetcher).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchOptions {
    /// With [`IsolationLevel::ReadCommitted`], brokers send nothing after the last stable offset, and the list of aborted
    /// transactions. The batches of these are sent, too: leave them out with
    /// [`AbortedFilter`](magicbyte::state::AbortedFilter).
    pub isolation_level: IsolationLevel,
    /// The time that a broker may wait for records.
    pub max_wait: Duration,
    /// The maximum size of a response's records in bytes (`fetch.max.bytes`). A batch that is larger comes alone, and is
    /// bounded by [`max_response_bytes`](crate::ClientOptions::max_response_bytes).
    pub max_bytes: usize,
    /// The maximum size of the records of one partition in a response (`max.partition.fetch.bytes`), likewise.
    pub max_partition_bytes: usize,
    /// True to deliver the partitions one after the other, in the order of their ranges. Those that come next are fetched
    /// ahead, from several brokers at a time: memory is that of eight responses at most, whatever the number of partitions.
    pub in_order: bool,
    /// True if ranges without anything read may begin at the start of the log, if that is later by now: retention has
    /// overtaken them. Otherwise this is [`ErrorKind::OffsetOutOfRange`](crate::ErrorKind::OffsetOutOfRange).
    pub from_log_start: bool,
}

impl Default for FetchOptions {
    /// `read_uncommitted`, 500 ms, 16 MiB, 4 MiB; in any order, and from the first offsets of the ranges.
    fn default() -> Self {
        Self {
            isolation_level: IsolationLevel::ReadUncommitted,
            max_wait: Duration::from_millis(500),
            max_bytes: 16 << 20,
            max_partition_bytes: 4 << 20,
            in_order: false,
            from_log_start: false,
        }
    }
}
