//! Where an append happens, and what becomes of it.

use crate::state::producer_check::AppendOrigin;

/// Where and when an append happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Append {
    /// Who appends.
    pub origin: AppendOrigin,
    /// The log's end: the offset the first record gets.
    pub next_offset: i64,
    /// The leader's epoch, which batches of magic 2 get; for a follower, the epoch it knows.
    pub leader_epoch: i32,
    /// The broker's time (ms).
    pub now: i64,
}

/// What an append became (`LogAppendInfo`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendInfo {
    /// Offset of the first record; `None` for a follower's batches of magic 0 and 1, which do not tell.
    pub first_offset: Option<i64>,
    /// Offset of the last record (inclusive).
    pub last_offset: i64,
    /// The largest timestamp (ms) of the records, -1 for none; the append time where that stands for it.
    pub max_timestamp: i64,
    /// Last offset of the first batch with the largest timestamp, -1 if no batch has one: what the time
    /// index gets.
    pub offset_of_max_timestamp: i64,
    /// The append time (ms), if the topic's timestamps are the broker's.
    pub log_append_time: Option<i64>,
    /// What writing the records anew took.
    pub stats: ConversionStats,
}

/// What checks and conversion took (`RecordValidationStats`, but for the time).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConversionStats {
    /// Bytes of decompressed and of newly written records, headers of their batches included.
    pub temporary_memory_bytes: u64,
    /// Records that were written anew, as against checked where they stand.
    pub records_converted: u64,
}
