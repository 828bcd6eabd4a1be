//! Requests of consumers to a simulated partition: fetches and offset lookups (`LocalLog.read`,
//! `UnifiedLog.fetchOffsetByTimestamp`).

use crate::broker::append_error::AppendError;
use crate::broker::partition_simulator::{PartitionSimulator, out_of_range};
use crate::broker::simulated_log::Found;
use crate::sidecar::transaction_index::{TransactionIndexEntry, collect_aborted_transactions};
use crate::state::isolation::{AbortedTransaction, IsolationLevel};

/// A partition's part of a fetch response.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Batches as stored, from the one with the requested offset on. The first is whole, the last may be
    /// truncated.
    pub records: Vec<u8>,
    /// The high watermark, which is the log end offset.
    pub high_watermark: i64,
    /// As [`PartitionSimulator::last_stable_offset`].
    pub last_stable_offset: i64,
    /// As [`PartitionSimulator::log_start_offset`].
    pub log_start_offset: i64,
    /// For `read_committed`: the aborted transactions that may have records here, in the order of their
    /// markers.
    pub aborted_transactions: Vec<AbortedTransaction>,
}

/// Which offset to look up.
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

impl PartitionSimulator {
    /// Returns batches from the one with this offset on, at most `max_bytes` but always the whole first
    /// batch.
    ///
    /// # Errors
    /// [`ErrorCode::OffsetOutOfRange`](super::ErrorCode::OffsetOutOfRange) before the log's start and past
    /// its end.
    pub fn fetch(
        &self,
        offset: i64,
        max_bytes: usize,
        isolation: IsolationLevel,
    ) -> Result<Fetched, AppendError> {
        let (start, end) = (self.log_start_offset, self.log_end_offset);
        if offset < start || offset > end {
            return Err(out_of_range(offset, &format!("the log extends from {start} to {end}")));
        }
        let last_stable_offset = self.last_stable_offset();
        let committed = isolation == IsolationLevel::ReadCommitted;
        let limit = if committed { last_stable_offset } else { end };
        let mut fetched = Fetched {
            records: Vec::new(),
            high_watermark: end,
            last_stable_offset,
            log_start_offset: start,
            aborted_transactions: Vec::new(),
        };
        let Some(first) = self.log.find(offset).filter(|_| offset < limit) else { return Ok(fetched) };
        let end = self.log.find(limit).map_or(self.log.size(), |batch| batch.position);
        let size = max_bytes.max(first.size).min(end.saturating_sub(first.position));
        fetched.records.extend_from_slice(self.log.slice(first.position, size));
        if committed {
            let upper_bound = self.log.upper_bound(first.position + size).unwrap_or(self.log_end_offset);
            fetched.aborted_transactions = self.aborted_between(offset, upper_bound);
        }
        Ok(fetched)
    }

    fn aborted_between(&self, offset: i64, upper_bound: i64) -> Vec<AbortedTransaction> {
        let (entries, _) = collect_aborted_transactions(&self.transaction_index, offset, upper_bound);
        entries.iter().map(TransactionIndexEntry::transaction).collect()
    }

    /// Looks up an offset; `None` if no record has such a timestamp, or if it cannot be read yet at this
    /// isolation level.
    ///
    /// # Errors
    /// A record that cannot be read, which appends do not let in.
    pub fn list_offset(
        &mut self,
        spec: OffsetSpec,
        isolation: IsolationLevel,
    ) -> Result<Option<ListedOffset>, AppendError> {
        let limit = match isolation {
            IsolationLevel::ReadUncommitted => self.log_end_offset,
            IsolationLevel::ReadCommitted => self.last_stable_offset(),
        };
        let start = self.log_start_offset;
        let found = match spec {
            OffsetSpec::Earliest => {
                let first = self.epochs.entries().first().filter(|first| first.start_offset <= start);
                let leader_epoch = first.map_or(-1, |first| first.epoch);
                return Ok(Some(ListedOffset { timestamp: -1, offset: start, leader_epoch }));
            }
            OffsetSpec::Latest => {
                let leader_epoch = self.leader_epoch;
                return Ok(Some(ListedOffset { timestamp: -1, offset: limit, leader_epoch }));
            }
            OffsetSpec::MaxTimestamp => self.log.find_max_timestamp(&mut self.decompressor)?,
            OffsetSpec::Timestamp(timestamp) => {
                self.log.find_by_time(timestamp, start, &mut self.decompressor)?
            }
        };
        let found = found.filter(|found| found.offset < limit);
        Ok(found.map(|Found { timestamp, offset, leader_epoch }| ListedOffset {
            timestamp,
            offset,
            leader_epoch,
        }))
    }
}
