//! `.txnindex`: aborted transactions, in entries of 34 bytes (Kafka's `TransactionIndex`).

use crate::bytes::cursor::be;
use crate::error::{ErrorKind, Result};
use crate::state::isolation::AbortedTransaction;
use crate::state::producers::CompletedTransaction;

const ENTRY: usize = 34;

/// One aborted transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TransactionIndexEntry {
    /// The entry's version, 0.
    pub version: i16,
    /// The producer.
    pub producer_id: i64,
    /// Offset of its first record.
    pub first_offset: i64,
    /// Offset of its abort marker (inclusive).
    pub last_offset: i64,
    /// The last stable offset when the marker was written.
    pub last_stable_offset: i64,
}

impl TransactionIndexEntry {
    /// The entry of an aborted transaction.
    #[must_use]
    pub fn of(ended: CompletedTransaction) -> Self {
        let CompletedTransaction { producer_id, first_offset, last_offset, last_stable_offset, .. } = ended;
        Self { version: 0, producer_id, first_offset, last_offset, last_stable_offset }
    }

    /// The transaction itself.
    #[must_use]
    pub fn transaction(&self) -> AbortedTransaction {
        let Self { producer_id, first_offset, last_offset, .. } = *self;
        AbortedTransaction { producer_id, first_offset, last_offset }
    }
}

/// Reads a transaction index.
///
/// # Errors
/// [`ErrorKind::InvalidSidecar`] if the size is not a multiple of 34 or the version is unknown.
pub fn parse_transaction_index(data: &[u8]) -> Result<Vec<TransactionIndexEntry>> {
    if !data.len().is_multiple_of(ENTRY) {
        return Err(ErrorKind::InvalidSidecar("the size is not a multiple of 34").into());
    }
    let entry = |e: &[u8]| match be!(e, 0, i16) {
        0 => Ok(TransactionIndexEntry {
            version: 0,
            producer_id: be!(e, 2, i64),
            first_offset: be!(e, 10, i64),
            last_offset: be!(e, 18, i64),
            last_stable_offset: be!(e, 26, i64),
        }),
        _ => Err(ErrorKind::InvalidSidecar("unknown version of a transaction index entry").into()),
    };
    data.chunks_exact(ENTRY).map(entry).collect()
}

/// The entries of a segment's index that matter to a fetch of the offsets from `start` to `end` (exclusive),
/// and whether this is certain to be all, so that later segments need not be searched
/// (`TransactionIndex.collectAbortedTxns`).
#[must_use]
pub fn collect_aborted_transactions(
    entries: &[TransactionIndexEntry],
    start: i64,
    end: i64,
) -> (Vec<TransactionIndexEntry>, bool) {
    // The first entry whose last stable offset is past the range is the last that can overlap it.
    let last = entries.iter().position(|entry| entry.last_stable_offset >= end);
    let candidates = &entries[..last.map_or(entries.len(), |last| last + 1)];
    let overlaps = |entry: &&TransactionIndexEntry| entry.last_offset >= start && entry.first_offset < end;
    (candidates.iter().filter(overlaps).copied().collect(), last.is_some())
}

/// Writes a transaction index.
#[must_use]
pub fn write_transaction_index(entries: &[TransactionIndexEntry]) -> Vec<u8> {
    let mut out = Vec::with_capacity(ENTRY * entries.len());
    for entry in entries {
        out.extend(entry.version.to_be_bytes());
        out.extend(entry.producer_id.to_be_bytes());
        out.extend(entry.first_offset.to_be_bytes());
        out.extend(entry.last_offset.to_be_bytes());
        out.extend(entry.last_stable_offset.to_be_bytes());
    }
    out
}
