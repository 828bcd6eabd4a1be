//! The codecs: their numbers, names and levels (Kafka's `CompressionType`).

use std::ops::RangeInclusive;

use crate::error::{ErrorKind, Result};

/// The codec of a batch: bits 0-2 of its attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Compression {
    /// Records are stored uncompressed.
    None = 0,
    /// gzip: one or more members.
    Gzip = 1,
    /// Snappy, in xerial chunks or as one raw block.
    Snappy = 2,
    /// The LZ4 frame format.
    Lz4 = 3,
    /// zstd frames; magic 2 only.
    Zstd = 4,
}

impl Compression {
    /// All codecs, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The codec with this number.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownCompression`] for 5, 6 and 7, as in Kafka.
    pub fn from_id(id: u8) -> Result<Self> {
        Self::ALL.get(usize::from(id)).copied().ok_or_else(|| ErrorKind::UnknownCompression(id).into())
    }

    /// The codec itself, if batches of this magic may use it.
    ///
    /// # Errors
    /// [`ErrorKind::UnsupportedCompression`] for zstd below magic 2 (KIP-110).
    pub fn for_magic(self, magic: i8) -> Result<Self> {
        match self {
            Self::Zstd if magic < 2 => Err(ErrorKind::UnsupportedCompression("zstd needs magic 2").into()),
            _ => Ok(self),
        }
    }

    /// Kafka's name: `none`, `gzip`, `snappy`, `lz4`, `zstd`.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["none", "gzip", "snappy", "lz4", "zstd"][self as usize]
    }

    /// The levels that Kafka accepts for the codec; `None` for a codec without levels. gzip's -1 means its
    /// default, 6.
    #[must_use]
    pub fn levels(self) -> Option<RangeInclusive<i32>> {
        match self {
            Self::None | Self::Snappy => None,
            Self::Gzip => Some(-1..=9),
            Self::Lz4 => Some(1..=17),
            Self::Zstd => Some(-131_072..=22),
        }
    }

    /// The level that Kafka uses by default: gzip -1, lz4 9 (its fast compressor), zstd 3.
    #[must_use]
    pub fn default_level(self) -> Option<i32> {
        match self {
            Self::None | Self::Snappy => None,
            Self::Gzip => Some(-1),
            Self::Lz4 => Some(9),
            Self::Zstd => Some(3),
        }
    }
}
