//! Reads of consumers from a log, wherever its bytes are: the rules that the simulated partition and `serve` share
//! (`LocalLog.read`, `UnifiedLog.fetchOffsetByTimestamp`).

use magicbyte::state::{AbortedTransaction, EpochEntry, IsolationLevel};

/// The specification of an offset to look up.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetSpec {
    /// The log start offset (-2 in requests).
    Earliest,
    /// The high watermark, or for `read_committed` the last stable offset (-1 in requests).
    Latest,
    /// The first record with the largest timestamp (-3 in requests).
    MaxTimestamp,
    /// The first record with this timestamp (ms) or a later one.
    Timestamp(i64),
}

/// The answer to an [`OffsetSpec`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedOffset {
    /// The record's timestamp (ms), -1 for [`OffsetSpec::Earliest`] and [`OffsetSpec::Latest`].
    pub timestamp: i64,
    /// The offset.
    pub offset: i64,
    /// The leader epoch of this offset, -1 if unknown.
    pub leader_epoch: i32,
}

impl ListedOffset {
    /// An answer.
    #[must_use]
    pub fn new(timestamp: i64, offset: i64, leader_epoch: i32) -> Self {
        Self { timestamp, offset, leader_epoch }
    }
}

/// The limits of a log.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub start: i64,
    /// The high watermark, which is the log end offset.
    pub end: i64,
    pub last_stable_offset: i64,
    /// The first leader epoch that is known.
    pub first_epoch: Option<EpochEntry>,
    /// The last leader epoch, -1 if there is none.
    pub leader_epoch: i32,
}

impl Bounds {
    /// The exclusive end of the log for a reader of this isolation level.
    fn limit(&self, isolation: IsolationLevel) -> i64 {
        match isolation {
            IsolationLevel::ReadUncommitted => self.end,
            IsolationLevel::ReadCommitted => self.last_stable_offset,
        }
    }
}

/// A consumer's request for records.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct FetchAt {
    pub offset: i64,
    pub max_bytes: u64,
    /// True if the first batch is returned however large it is.
    pub at_least_one: bool,
    pub isolation: IsolationLevel,
}

/// The batches that a consumer gets: from the batch with this offset on, and before `limit`.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub offset: i64,
    pub limit: i64,
    max_bytes: u64,
    at_least_one: bool,
}

#[doc(hidden)]
impl Wanted {
    /// The maximum number of bytes if the first batch has this size.
    #[must_use]
    pub fn room(&self, first_batch: u64) -> u64 {
        if self.at_least_one { self.max_bytes.max(first_batch) } else { self.max_bytes }
    }
}

/// Batches of a log.
#[doc(hidden)]
#[derive(Debug)]
pub struct Slice<R> {
    pub records: R,
    /// The offset after the last batch.
    pub end: i64,
}

/// The target of a lookup by time.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Lookup {
    /// The first record with the largest timestamp.
    MaxTimestamp,
    /// The first record with this timestamp (ms) or a later one.
    Timestamp(i64),
}

/// A log at one time, as its owner finds and slices it.
#[doc(hidden)]
pub trait ConsumedLog {
    type Records: Default;
    type Error;

    fn bounds(&self) -> Bounds;

    /// The wanted batches that there are, at most [`Wanted::room`] bytes; `None` if there are none.
    fn slice(&self, wanted: &Wanted) -> Result<Option<Slice<Self::Records>>, Self::Error>;

    /// The aborted transactions that may have records from `offset` on and before `end`, in the order of their markers.
    fn aborted(&self, offset: i64, end: i64) -> Vec<AbortedTransaction>;

    fn find(&mut self, lookup: Lookup) -> Result<Option<ListedOffset>, Self::Error>;
}

/// Records of a log, and for `read_committed` the aborted transactions that may have some of them.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Consumed<R> {
    pub records: R,
    pub aborted: Vec<AbortedTransaction>,
}

/// Answers a fetch; `None` if the offset is before the log's start or past its end.
#[doc(hidden)]
pub fn fetch<L: ConsumedLog>(log: &L, request: FetchAt) -> Result<Option<Consumed<L::Records>>, L::Error> {
    let FetchAt { offset, max_bytes, at_least_one, isolation } = request;
    let bounds = log.bounds();
    if offset < bounds.start || offset > bounds.end {
        return Ok(None);
    }
    let wanted = Wanted { offset, limit: bounds.limit(isolation), max_bytes, at_least_one };
    let slice = if offset < wanted.limit { log.slice(&wanted)? } else { None };
    let Some(slice) = slice else {
        return Ok(Some(Consumed { records: L::Records::default(), aborted: Vec::new() }));
    };
    let aborted = match isolation {
        IsolationLevel::ReadUncommitted => Vec::new(),
        IsolationLevel::ReadCommitted => log.aborted(offset, slice.end),
    };
    Ok(Some(Consumed { records: slice.records, aborted }))
}

/// Looks up an offset; `None` if no record has such a timestamp, or if this isolation level ends before it.
#[doc(hidden)]
pub fn list_offset<L: ConsumedLog>(
    log: &mut L,
    spec: OffsetSpec,
    isolation: IsolationLevel,
) -> Result<Option<ListedOffset>, L::Error> {
    let bounds = log.bounds();
    let limit = bounds.limit(isolation);
    let lookup = match spec {
        OffsetSpec::Earliest => {
            let first = bounds.first_epoch.filter(|first| first.start_offset <= bounds.start);
            let leader_epoch = first.map_or(-1, |first| first.epoch);
            return Ok(Some(ListedOffset { timestamp: -1, offset: bounds.start, leader_epoch }));
        }
        OffsetSpec::Latest => {
            let leader_epoch = bounds.leader_epoch;
            return Ok(Some(ListedOffset { timestamp: -1, offset: limit, leader_epoch }));
        }
        OffsetSpec::MaxTimestamp => Lookup::MaxTimestamp,
        OffsetSpec::Timestamp(timestamp) => Lookup::Timestamp(timestamp),
    };
    Ok(log.find(lookup)?.filter(|record| record.offset < limit))
}
