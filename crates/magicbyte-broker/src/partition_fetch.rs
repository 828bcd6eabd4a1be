//! Requests of consumers to a simulated partition: fetches and offset lookups.

use magicbyte::sidecar::{TransactionIndexEntry, collect_aborted_transactions};
use magicbyte::state::{AbortedTransaction, IsolationLevel};

use crate::append_error::AppendError;
use crate::consumed_log::{
    self, Bounds, ConsumedLog, FetchAt, ListedOffset, Lookup, OffsetSpec, Slice, Wanted,
};
use crate::partition_simulator::{PartitionSimulator, out_of_range};

/// A partition's part of a fetch response.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Batches as stored, from the one with the requested offset on. The first is whole, the last may be
    /// truncated.
    pub records: Vec<u8>,
    /// The high watermark, which is the log end offset.
    pub high_watermark: i64,
    /// The last stable offset, see [`PartitionSimulator::last_stable_offset`].
    pub last_stable_offset: i64,
    /// The log start offset, see [`PartitionSimulator::log_start_offset`].
    pub log_start_offset: i64,
    /// For `read_committed`: the aborted transactions that may have records here, in the order of their
    /// markers.
    pub aborted_transactions: Vec<AbortedTransaction>,
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
        let request = FetchAt { offset, max_bytes: max_bytes as u64, at_least_one: true, isolation };
        let Bounds { start, end, last_stable_offset, .. } = self.bounds();
        let Some(consumed) = consumed_log::fetch(self, request)? else {
            return Err(out_of_range(offset, &format!("the log extends from {start} to {end}")));
        };
        Ok(Fetched {
            records: consumed.records,
            high_watermark: end,
            last_stable_offset,
            log_start_offset: start,
            aborted_transactions: consumed.aborted,
        })
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
        consumed_log::list_offset(self, spec, isolation)
    }
}

impl ConsumedLog for PartitionSimulator {
    type Records = Vec<u8>;
    type Error = AppendError;

    fn bounds(&self) -> Bounds {
        Bounds {
            start: self.log_start_offset,
            end: self.log_end_offset,
            last_stable_offset: self.last_stable_offset(),
            first_epoch: self.epochs.entries().first().copied(),
            leader_epoch: self.leader_epoch,
        }
    }

    fn slice(&self, wanted: &Wanted) -> Result<Option<Slice<Vec<u8>>>, AppendError> {
        let Some(first) = self.log.find(wanted.offset) else { return Ok(None) };
        let end = self.log.find(wanted.limit).map_or(self.log.size(), |batch| batch.position);
        let room = usize::try_from(wanted.room(first.size as u64)).unwrap_or(usize::MAX);
        let size = room.min(end.saturating_sub(first.position));
        let records = self.log.slice(first.position, size).to_vec();
        let end = self.log.upper_bound(first.position + size).unwrap_or(self.log_end_offset);
        Ok(Some(Slice { records, end }))
    }

    fn aborted(&self, offset: i64, end: i64) -> Vec<AbortedTransaction> {
        let (entries, _) = collect_aborted_transactions(&self.transaction_index, offset, end);
        entries.iter().map(TransactionIndexEntry::transaction).collect()
    }

    fn find(&mut self, lookup: Lookup) -> Result<Option<ListedOffset>, AppendError> {
        Ok(match lookup {
            Lookup::MaxTimestamp => self.log.find_max_timestamp(&mut self.decompressor)?,
            Lookup::Timestamp(timestamp) => {
                self.log.find_by_time(timestamp, self.log_start_offset, &mut self.decompressor)?
            }
        })
    }
}
