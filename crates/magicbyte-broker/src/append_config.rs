//! The part of a topic's configuration that concerns appends.

use magicbyte::{Compression, DEFAULT_MAX_DECOMPRESSED_BYTES, TimestampType};

/// The largest value of `max.decompressed.message.bytes`, and its default: the size of Java's largest array.
pub(super) const MAX_DECOMPRESSED_MESSAGE_BYTES: usize = i32::MAX as usize - 8;

/// The topic settings that concern appends. The defaults are Kafka's (`LogConfig`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendConfig {
    /// `max.message.bytes`: the maximum size of a batch in bytes, as sent and as stored.
    pub max_message_bytes: i32,
    /// `max.decompressed.message.bytes`, which topics have since Kafka 4.4: the maximum size in bytes of a record
    /// in a compressed batch.
    pub max_decompressed_message_bytes: usize,
    /// `segment.bytes`: the maximum size of an append in bytes.
    pub segment_bytes: i32,
    /// True if `cleanup.policy` includes `compact`, which requires a key in every record.
    pub compacted: bool,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`: how far in the past a timestamp may be.
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`: how far in the future a timestamp may be.
    pub timestamp_after_max_ms: i64,
    /// `compression.type`.
    pub compression: TargetCompression,
    /// The magic of stored batches: 2, or 0 or 1 as on brokers up to 3.9 with `message.format.version`.
    pub message_format: i8,
    /// The maximum decompressed size of a batch in bytes. Kafka has no such limit.
    pub max_decompressed_bytes: usize,
}

impl Default for AppendConfig {
    fn default() -> Self {
        Self {
            max_message_bytes: 1_048_588,
            max_decompressed_message_bytes: MAX_DECOMPRESSED_MESSAGE_BYTES,
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
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TargetCompression {
    /// `producer`: each batch keeps its codec.
    #[default]
    Producer,
    /// One codec for all batches ([`Compression::None`] is `uncompressed`), and its level, `None` for Kafka's
    /// default.
    Codec(Compression, Option<i32>),
}

impl TargetCompression {
    /// The codec for batches that were sent with the codec `source`.
    pub(super) fn of(self, source: Compression) -> Compression {
        self.fixed().map_or(source, |(codec, _)| codec)
    }

    /// The codec and level for all batches, if there is one.
    pub(super) fn fixed(self) -> Option<(Compression, Option<i32>)> {
        match self {
            Self::Producer => None,
            Self::Codec(codec, level) => Some((codec, level)),
        }
    }
}
