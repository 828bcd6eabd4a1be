//! Compression with levels and reused contexts (`Compression.wrapForOutput`).

use crate::compression::codec::Compression;
#[cfg(feature = "gzip")]
use crate::compression::gzip;
#[cfg(feature = "lz4")]
use crate::compression::lz4;
#[cfg(feature = "snappy")]
use crate::compression::snappy;
#[cfg(feature = "zstd")]
use crate::compression::zstd;
use crate::error::{Error, ErrorKind, Result};

/// Compresses the record sections of batches with one codec and level, in the formats that Kafka writes.
/// Contexts and the output buffer are reused; create one per thread or builder.
///
/// ```
/// # use magicbyte::{Compression, Compressor, Decompressor};
/// let mut compressor = Compressor::new(Compression::Snappy)?;
/// let compressed = compressor.compress(2, b"hello")?;
/// let mut decompressor = Decompressor::new();
/// assert_eq!(decompressor.decompress(Compression::Snappy, 2, compressed)?, b"hello");
/// # Ok::<(), magicbyte::Error>(())
/// ```
pub struct Compressor {
    codec: Compression,
    level: Option<i32>,
    encoder: Encoder,
    /// Never shrinks, so that nothing is zeroed twice.
    output: Vec<u8>,
}

enum Encoder {
    None,
    #[cfg(feature = "gzip")]
    Gzip(gzip::Encoder),
    #[cfg(feature = "snappy")]
    Snappy(Box<snappy::Encoder>),
    #[cfg(feature = "lz4")]
    /// Boxed: its table is aligned to cache lines, which Python objects are not.
    Lz4(Box<lz4::Encoder>),
    #[cfg(feature = "zstd")]
    Zstd(zstd::Encoder),
}

// CPython aligns its objects to 16 bytes, and the bindings hold compressors in them.
const _: () = assert!(align_of::<Compressor>() <= 16);

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { codec, level, .. } = self;
        f.debug_struct("Compressor").field("codec", codec).field("level", level).finish_non_exhaustive()
    }
}

impl Compressor {
    /// A compressor with Kafka's default level.
    ///
    /// # Errors
    /// [`ErrorKind::UnsupportedCompression`] for a codec left out of this build.
    pub fn new(codec: Compression) -> Result<Self> {
        Self::with_level(codec, None)
    }

    /// A compressor with a level within [`Compression::levels`], `None` for Kafka's default. As in Kafka,
    /// every lz4 level but the default 9 means high compression; levels above 12 are the same as 12.
    ///
    /// # Errors
    /// [`ErrorKind::UnsupportedLevel`], and those of [`new`](Self::new).
    pub fn with_level(codec: Compression, level: Option<i32>) -> Result<Self> {
        if let Some(level) = level {
            let known = codec.levels().is_some_and(|levels| levels.contains(&level));
            // Kafka does not accept gzip level 0 (stored).
            if !known || (codec == Compression::Gzip && level == 0) {
                return Err(unsupported_level(codec, level));
            }
        }
        let chosen = level.or(codec.default_level()).unwrap_or_default();
        let encoder = match codec {
            Compression::None => Encoder::None,
            #[cfg(feature = "gzip")]
            Compression::Gzip => {
                Encoder::Gzip(gzip::Encoder::new(chosen).ok_or_else(|| unsupported_level(codec, chosen))?)
            }
            #[cfg(feature = "snappy")]
            Compression::Snappy => Encoder::Snappy(Box::new(snappy::Encoder::new())),
            #[cfg(feature = "lz4")]
            Compression::Lz4 => Encoder::Lz4(Box::new(lz4::Encoder::new(chosen))),
            #[cfg(feature = "zstd")]
            Compression::Zstd => Encoder::Zstd(zstd::Encoder::new(chosen)?),
            #[allow(unreachable_patterns, reason = "reached when a codec's feature is off")]
            _ => {
                let _ = chosen;
                return Err(ErrorKind::UnsupportedCompression("this build leaves the codec out").into());
            }
        };
        Ok(Self { codec, level, encoder, output: Vec::new() })
    }

    /// The codec.
    #[must_use]
    pub fn codec(&self) -> Compression {
        self.codec
    }

    /// The level requested, `None` for Kafka's default.
    #[must_use]
    pub fn level(&self) -> Option<i32> {
        self.level
    }

    /// Compresses one payload into the reused buffer; returns `data` itself for [`Compression::None`].
    /// `magic` is that of the batch: LZ4 frames in magic 0 get a wrong header checksum (KAFKA-3160), as
    /// readers of that magic expect.
    ///
    /// # Errors
    /// [`ErrorKind::UnsupportedCompression`] for zstd below magic 2, [`ErrorKind::Compression`].
    pub fn compress<'a>(&'a mut self, magic: i8, data: &'a [u8]) -> Result<&'a [u8]> {
        self.codec.for_magic(magic).map_err(|e| e.in_field("attributes"))?;
        #[cfg(any(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd"))]
        let output = &mut self.output;
        let length = match &mut self.encoder {
            Encoder::None => None,
            #[cfg(feature = "gzip")]
            Encoder::Gzip(encoder) => Some(encoder.compress(data, output)?),
            #[cfg(feature = "snappy")]
            Encoder::Snappy(encoder) => Some(encoder.compress(data, output)?),
            #[cfg(feature = "lz4")]
            Encoder::Lz4(encoder) => {
                Some(encoder.compress(data, lz4::HeaderChecksum::of_magic(magic), output)?)
            }
            #[cfg(feature = "zstd")]
            Encoder::Zstd(encoder) => Some(encoder.compress(data, output)?),
        };
        Ok(length.map_or(data, |length| &self.output[..length]))
    }

    /// Compresses one payload with snappy in the framing that a client asks for: xerial chunks of this many
    /// bytes, at least 1, before compression, or one raw block.
    ///
    /// # Errors
    /// [`ErrorKind::UnsupportedCompression`] for another codec, [`ErrorKind::Compression`].
    #[doc(hidden)]
    #[cfg(feature = "snappy")]
    pub fn compress_snappy(&mut self, data: &[u8], chunk: Option<usize>) -> Result<&[u8]> {
        let length = match (&mut self.encoder, chunk) {
            (Encoder::Snappy(encoder), Some(size)) => encoder.chunks(data, size, &mut self.output)?,
            (Encoder::Snappy(encoder), None) => encoder.raw(data, &mut self.output)?,
            _ => return Err(ErrorKind::UnsupportedCompression("only snappy has chunks").into()),
        };
        Ok(&self.output[..length])
    }
}

fn unsupported_level(codec: Compression, level: i32) -> Error {
    let supported = match codec {
        Compression::None | Compression::Snappy => "no level: the codec has none",
        Compression::Gzip => "-1 or 1 to 9",
        Compression::Lz4 => "1 to 17",
        Compression::Zstd => "-131072 to 22",
    };
    ErrorKind::UnsupportedLevel { codec: codec.name(), level, supported }.into()
}
