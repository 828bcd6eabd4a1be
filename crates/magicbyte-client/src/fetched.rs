//! The answer about one partition: whole batches from the position that was asked for.

use std::sync::Arc;

use bytes::Bytes;
use magicbyte::Batches;

use crate::error::{Error, ErrorKind, Result};

/// Batches of one partition, byte for byte as the broker sent them. They keep the memory of the whole response.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Fetched {
    /// The topic.
    pub topic: Arc<str>,
    /// The partition.
    pub partition: i32,
    /// The offset that was asked for. The first batch may begin before it, and later where offsets have no record.
    pub position: i64,
    /// The offset after the last batch.
    pub next_position: i64,
    /// One or more whole batches of any magic, in the order of their offsets. Their CRCs were not checked.
    pub records: Bytes,
    /// The end (exclusive) of what is replicated.
    pub high_watermark: i64,
    /// The end (exclusive) of what `read_committed` reads; -1 from brokers before Kafka 0.11.
    pub last_stable_offset: i64,
    /// The start of the log, or -1 from brokers before Kafka 1.0.
    pub log_start_offset: i64,
    /// Producer and first offset of the aborted transactions among the records, for
    /// [`AbortedFilter`](magicbyte::state::AbortedFilter); empty with `read_uncommitted`.
    pub aborted_transactions: Vec<(i64, i64)>,
}

/// The whole batches of a record set that a range needs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Whole {
    /// The place of their bytes in the record set; empty if there are none.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The offset after the last of them, or after the range if the log continues there.
    pub(crate) next_position: i64,
    /// The highest offset in the batches that were looked at; one of them may be after the range. -1 for none.
    pub(crate) last_offset: i64,
    /// The leader epoch of the last of them, or of the batch that shows that the range ends in a gap; -1 for none.
    pub(crate) leader_epoch: i32,
    /// The bytes that the first batch lacks, if no batch is whole.
    pub(crate) needed: u64,
}

/// Finds the batches between `position` and `end` (exclusive). Batches before the position are left out, as by Kafka's
/// consumer; so is a last batch that is cut.
///
/// # Errors
/// Bytes that are not batches, batches whose offsets do not increase, and record sets that do not move the position.
pub(crate) fn whole_batches(records: &[u8], position: i64, end: i64) -> Result<Whole> {
    let (last_offset, leader_epoch) = (-1, -1);
    let mut whole = Whole { start: 0, end: 0, next_position: position, last_offset, leader_epoch, needed: 0 };
    let mut batches = Batches::new(records);
    while let Some(batch) = batches.next() {
        let batch = batch.map_err(|error| corrupt(whole.next_position, error))?;
        let last = batch.last_offset();
        if last <= whole.last_offset || last == i64::MAX {
            return Err(misplaced(whole.next_position, last, whole.last_offset + 1));
        }
        whole.last_offset = last;
        if last < position {
            whole.start = batches.next_position() as usize;
            whole.end = whole.start;
            continue;
        }
        let begins_after = batch.as_v2().is_some_and(|batch| batch.base_offset() >= end);
        if begins_after || whole.next_position >= end {
            if whole.next_position < end {
                // The epoch before may have ended earlier in the gap.
                whole.next_position = end;
                whole.leader_epoch = batch.partition_leader_epoch();
            }
            return Ok(whole);
        }
        whole.end = batches.next_position() as usize;
        whole.next_position = last + 1;
        whole.leader_epoch = batch.partition_leader_epoch();
    }
    if whole.next_position == position && !records.is_empty() {
        whole.needed = batches.needed();
        if whole.needed == 0 {
            return Err(misplaced(position, whole.last_offset, position));
        }
    }
    Ok(whole)
}

/// A batch that ends at the offset `found`, where only later ones can come.
fn misplaced(offset: i64, found: i64, expected: i64) -> Error {
    corrupt(offset, magicbyte::ErrorKind::OffsetOutOfOrder { found, expected }.into())
}

pub(crate) fn corrupt(offset: i64, error: magicbyte::Error) -> Error {
    Error::new(ErrorKind::Corrupt { offset, error })
}

#[cfg(test)]
mod tests {
    use magicbyte::{Compression, RecordsBuilder};

    use super::whole_batches;

    fn batch(offset: i64, leader_epoch: i32) -> Vec<u8> {
        let mut builder = RecordsBuilder::v2(Compression::None).partition_leader_epoch(leader_epoch);
        builder.append(offset, 0, None, Some(b"value"), &[]).unwrap();
        builder.build().unwrap()
    }

    /// An epoch may end within a gap: a position after its end would not be one of that epoch.
    #[test]
    fn the_epoch_of_a_position_in_a_gap() {
        let records = [batch(49, 3), batch(100, 5)].concat();
        for (end, next_position, leader_epoch) in
            [(49, 49, 3), (50, 50, 3), (51, 51, 5), (80, 80, 5), (100, 100, 5), (101, 101, 5), (150, 101, 5)]
        {
            let whole = whole_batches(&records, 40, end).unwrap();
            assert_eq!((whole.next_position, whole.leader_epoch), (next_position, leader_epoch), "{end}");
        }
        let whole = whole_batches(&batch(100, 5), 60, 80).unwrap();
        assert_eq!((whole.start, whole.end, whole.next_position, whole.leader_epoch), (0, 0, 80, 5));
    }
}
