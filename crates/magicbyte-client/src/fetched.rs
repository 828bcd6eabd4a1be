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
    /// The leader epoch of the last of them, or -1.
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
    let mut whole = Whole { start: 0, end: 0, next_position: position, leader_epoch: -1, needed: 0 };
    let mut batches = Batches::new(records);
    let mut last_offset = None;
    while let Some(batch) = batches.next() {
        let batch = batch.map_err(|error| corrupt(whole.next_position, error))?;
        let last = batch.last_offset();
        if last_offset.is_some_and(|before| last <= before) || last == i64::MAX {
            let before = last_offset.map_or("none".into(), |before| before.to_string());
            return Err(Error::protocol(format!(
                "a batch that ends at offset {last}, after one that ends at {before}"
            )));
        }
        last_offset = Some(last);
        if last < position {
            whole.start = batches.next_position() as usize;
            whole.end = whole.start;
            continue;
        }
        let begins_after = batch.as_v2().is_some_and(|batch| batch.base_offset() >= end);
        if begins_after || whole.next_position >= end {
            whole.next_position = whole.next_position.max(end);
            return Ok(whole);
        }
        whole.end = batches.next_position() as usize;
        whole.next_position = last + 1;
        whole.leader_epoch = batch.partition_leader_epoch();
    }
    if whole.next_position == position && !records.is_empty() {
        whole.needed = batches.needed();
        if whole.needed == 0 {
            let why = format!("{} bytes without a batch at offset {position} or after it", records.len());
            return Err(Error::protocol(why));
        }
    }
    Ok(whole)
}

fn corrupt(offset: i64, error: magicbyte::Error) -> Error {
    Error::new(ErrorKind::Corrupt { offset, error })
}
