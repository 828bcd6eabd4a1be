//! Options of writing a partition.

use crate::write::segment_fold::DEFAULT_INDEX_INTERVAL_BYTES;

/// Options of writing a partition; the names are Kafka's topic configs.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    /// `segment.bytes`: the maximum size of a segment, at most 2^31 - 1; a larger batch is refused, as by a
    /// broker. Default 1 GiB.
    pub segment_bytes: u32,
    /// `segment.ms`: a new segment begins with a batch whose largest timestamp is more than this (ms) later
    /// than the first batch's. Default None: never.
    pub segment_ms: Option<i64>,
    /// `index.interval.bytes`: bytes of log between two index entries. Default 4096.
    pub index_interval_bytes: u32,
    /// `segment.index.bytes`: the maximum size of an index; a full index also ends its segment. Default 10
    /// MiB.
    pub segment_index_bytes: u32,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            segment_bytes: 1 << 30,
            segment_ms: None,
            index_interval_bytes: DEFAULT_INDEX_INTERVAL_BYTES,
            segment_index_bytes: 10 << 20,
        }
    }
}
