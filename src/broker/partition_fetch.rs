//! What consumers ask of a simulated partition: fetches and offsets (`LocalLog.read`,
//! `UnifiedLog.fetchOffsetByTimestamp`).

use crate::broker::append_error::AppendError;
use crate::broker::partition_simulator::{PartitionSimulator, out_of_range};
use crate::broker::simulated_log::Found;
use crate::sidecar::transaction_index::{TransactionIndexEntry, collect_aborted_transactions};
use crate::state::isolation::AbortedTransaction;
use crate::state::isolation::IsolationLevel;

/// A partition's part of a fetch response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Batches as stored, from the one with the asked offset on. The first is whole, the last may be cut.
    pub records: Vec<u8>,
    /// The log's end.
    pub high_watermark: i64,
    /// As [`PartitionSimulator::last_stable_offset`].
    pub last_stable_offset: i64,
    /// As [`PartitionSimulator::log_start_offset`].
    pub log_start_offset: i64,
    /// For `read_committed`: aborted transactions that may have records here, in the order of their markers.
    pub aborted_transactions: Vec<AbortedTransaction>,
}

/// Which offset is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetSpec {
    /// The log's start (-2 in requests).
    Earliest,
    /// The high watermark, or with `read_committed` the last stable offset (-1).
    Latest,
    /// The first record of the first batch with the largest timestamp (-3).
    MaxTimestamp,
    /// The first record with this timestamp (ms) or a later one.
    Timestamp(i64),
}

/// An answer to [`OffsetSpec`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedOffset {
    /// The record's timestamp (ms), -1 for the log's start and end.
    pub timestamp: i64,
    /// The offset.
    pub offset: i64,
    /// The leader's epoch at this offset, -1 if it is not known.
    pub leader_epoch: i32,
}

impl PartitionSimulator {
    /// Batches from the one with this offset on: at most `max_bytes`, but the first whole.
    ///
    /// # Errors
    /// [`ErrorCode::OffsetOutOfRange`](super::ErrorCode::OffsetOutOfRange) before the log's start and behind its
    /// end.
    pub fn fetch(
        &self,
        offset: i64,
        max_bytes: usize,
        isolation: IsolationLevel,
    ) -> Result<Fetched, AppendError> {
        let (start, end) = (self.log_start_offset, self.log_end_offset);
        if offset < start || offset > end {
            return Err(out_of_range(offset, &format!("the log has {start} to {end}")));
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

    /// The offset asked for; `None` if no record has such a timestamp, or none that can be read yet.
    ///
    /// # Errors
    /// A record that cannot be read, which no append let in.
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
