//! What a topic's configuration says about appends, and who appends.

use crate::compression::codec::Compression;
use crate::compression::decompressor::DEFAULT_MAX_DECOMPRESSED_BYTES;
use crate::record::timestamp_type::TimestampType;
use crate::state::producer_check::AppendOrigin;

/// The settings of a topic that its leader's checks look at; the defaults are Kafka's (`LogConfig`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendConfig {
    /// `max.message.bytes`: the most bytes a batch may have, before and after it was written anew.
    pub max_message_bytes: i32,
    /// `segment.bytes`: the most bytes an append may have.
    pub segment_bytes: i32,
    /// Whether `cleanup.policy` has `compact`: then every record needs a key.
    pub compacted: bool,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`: how far in the past a timestamp may lie.
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`: how far in the future.
    pub timestamp_after_max_ms: i64,
    /// `compression.type`.
    pub compression: TargetCompression,
    /// The magic to be stored: 2, or 0 or 1 as a broker up to 3.9 did by `message.format.version`.
    pub message_format: i8,
    /// The most bytes a batch may decompress to. Kafka has no such limit.
    pub max_decompressed_bytes: usize,
}

impl Default for AppendConfig {
    fn default() -> Self {
        Self {
            max_message_bytes: 1_048_588,
            segment_bytes: 1 << 30,
            compacted: false,
            timestamp_type: TimestampType::CreateTime,
            timestamp_before_max_ms: i64::MAX,
            timestamp_after_max_ms: 3_600_000,
            compression: TargetCompression::Producer,
            message_format: 2,
            max_decompressed_bytes: DEFAULT_MAX_DECOMPRESSED_BYTES,
        }
    }
}

/// The codec that a topic's batches are stored with (`BrokerCompressionType`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TargetCompression {
    /// `producer`: each batch keeps its own.
    #[default]
    Producer,
    /// One codec for all, `uncompressed` if it is none, with a level; `None` is Kafka's default level.
    Codec(Compression, Option<i32>),
}

impl TargetCompression {
    /// The codec for batches that came with `source`.
    pub(super) fn of(self, source: Compression) -> Compression {
        self.fixed().map_or(source, |(codec, _)| codec)
    }

    /// The codec for all, if there is one.
    pub(super) fn fixed(self) -> Option<(Compression, Option<i32>)> {
        match self {
            Self::Producer => None,
            Self::Codec(codec, level) => Some((codec, level)),
        }
    }
}

impl AppendOrigin {
    /// Whether the leader gives offsets, timestamps and epoch.
    pub(super) fn assigns_offsets(self) -> bool {
        matches!(self, Self::Client | Self::Coordinator)
    }
}
