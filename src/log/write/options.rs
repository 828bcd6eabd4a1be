//! How a partition is written.

use crate::log::write::segment_fold::DEFAULT_INDEX_INTERVAL_BYTES;

/// How a partition is written; the names are Kafka's topic configs.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    /// `segment.bytes`: a segment is not larger, and a batch that is larger is refused as by a broker.
    /// 1 GiB unless told; at most 2^31 - 1.
    pub segment_bytes: u32,
    /// `segment.ms`: the next segment begins with a batch whose largest timestamp is so much later
    /// (ms) than the first batch's; never, unless told.
    pub segment_ms: Option<i64>,
    /// `index.interval.bytes`: bytes of log between two index entries, 4096 unless told.
    pub index_interval_bytes: u32,
    /// `segment.index.bytes`: a full index ends its segment too. 10 MiB unless told.
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
