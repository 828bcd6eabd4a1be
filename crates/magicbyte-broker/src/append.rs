//! The circumstances and the result of an append.

use magicbyte::state::AppendOrigin;

/// The circumstances of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Append {
    /// The origin of the batches.
    pub origin: AppendOrigin,
    /// The log end offset, which the first record gets.
    pub next_offset: i64,
    /// The leader's epoch, which is written into batches of magic 2; for a follower, the epoch that it knows.
    pub leader_epoch: i32,
    /// The broker's clock (ms).
    pub now: i64,
}

/// The result of an append (`LogAppendInfo`).
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendInfo {
    /// Offset of the first record; `None` for a follower's batches of magic 0 and 1, which do not contain it.
    pub first_offset: Option<i64>,
    /// Offset of the last record (inclusive).
    pub last_offset: i64,
    /// The largest timestamp (ms) of the records, or the append time if that replaces them; -1 for none.
    pub max_timestamp: i64,
    /// Last offset of the first batch with the largest timestamp, for the time index; -1 if no batch has a
    /// timestamp.
    pub offset_of_max_timestamp: i64,
    /// The append time (ms), if the topic has `LogAppendTime`.
    pub log_append_time: Option<i64>,
    /// The cost of rewriting.
    pub stats: ConversionStats,
}

/// The cost of checks and conversion (`RecordValidationStats`, without the time).
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConversionStats {
    /// Bytes of decompressed and of rewritten records, including the headers of their batches.
    pub temporary_memory_bytes: u64,
    /// Records that were rewritten rather than stored as sent.
    pub records_converted: u64,
}
