//! The codecs as Kafka uses them: what each writes, accepts and refuses, with a cap on the output.
//!
//! One file a codec, with both directions. Decompression reads the whole payload of a batch into one
//! reused buffer: [`Output`]; compression is [`Compressor`]'s.

mod compressor;
#[cfg(feature = "gzip")]
mod gzip;
#[cfg(feature = "lz4")]
mod lz4;
mod plain;
#[cfg(feature = "snappy")]
mod snappy;
#[cfg(feature = "snappy")]
mod snappy_block;
#[cfg(feature = "zstd")]
mod zstd;

use std::ops::RangeInclusive;
use std::sync::Arc;

use ::bytes::Bytes;
pub use compressor::Compressor;
pub(crate) use plain::is_plain;

use crate::error::{Error, ErrorKind, Result};

/// The codec of a batch: bits 0-2 of its attributes (Kafka's `CompressionType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Compression {
    /// Records stand in the batch as they are.
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

    /// Kafka's name: `none`, `gzip`, `snappy`, `lz4`, `zstd`.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["none", "gzip", "snappy", "lz4", "zstd"][self as usize]
    }

    /// The levels Kafka has for the codec, the smallest and largest inclusive; `None` for a codec
    /// without levels. gzip's -1 means its default, 6.
    #[must_use]
    pub fn levels(self) -> Option<RangeInclusive<i32>> {
        match self {
            Self::None | Self::Snappy => None,
            Self::Gzip => Some(-1..=9),
            Self::Lz4 => Some(1..=17),
            Self::Zstd => Some(-131_072..=22),
        }
    }

    /// The level Kafka uses if none is asked for: gzip -1, lz4 9 (its fast compressor), zstd 3.
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

/// The default cap on one batch's decompressed size: 256 MiB.
///
/// A broker accepts 1 MiB batches unless told otherwise; this leaves room for 250 times that.
pub const DEFAULT_MAX_DECOMPRESSED_BYTES: usize = 256 << 20;

/// Positions of records in a batch, and of views into it, have 32 bits.
const MAX_POSITION: usize = u32::MAX as usize;

/// How much larger than its content a buffer may be that a batch is handed out in.
const MAX_SLACK: usize = 4;
const SMALL_BUFFER: usize = 64 << 10;

/// Decompresses batches, reusing contexts and one buffer; one per thread or reader.
///
/// What a batch decompresses to is capped: see [`Decompressor::with_limit`].
///
/// ```
/// # use magicbyte::{Compression, Decompressor, ErrorKind};
/// let mut decompressor = Decompressor::with_limit(1 << 20);
/// // A raw snappy block: length 5, then a literal of five bytes.
/// let data = decompressor.decompress(Compression::Snappy, 2, b"\x05\x10hello")?;
/// assert_eq!(data, b"hello");
/// # Ok::<(), magicbyte::Error>(())
/// ```
pub struct Decompressor {
    limit: usize,
    /// Shared with the batches handed out last; written again only when nobody else holds it.
    buffer: Arc<Vec<u8>>,
    /// The one before: a reader that looks at a batch while it asks for the next needs two.
    previous: Arc<Vec<u8>>,
    contexts: Contexts,
}

#[derive(Default)]
struct Contexts {
    #[cfg(feature = "gzip")]
    gzip: gzip::Context,
    #[cfg(feature = "snappy")]
    snappy: snappy::Context,
    #[cfg(feature = "zstd")]
    zstd: zstd::Context,
}

impl Default for Decompressor {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decompressor").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl Decompressor {
    /// A decompressor with the default limit, [`DEFAULT_MAX_DECOMPRESSED_BYTES`]. Allocates no
    /// buffer and no context: these come with the first batch of a codec.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(DEFAULT_MAX_DECOMPRESSED_BYTES)
    }

    /// A decompressor that refuses to write more than `limit` bytes for one batch; at most 4 GiB - 1, whatever the
    /// limit: positions in a batch have 32 bits.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        let limit = limit.min(MAX_POSITION);
        Self { limit, buffer: Arc::default(), previous: Arc::default(), contexts: Contexts::default() }
    }

    /// The largest size in bytes one batch may decompress to.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Decompresses one payload into the reused buffer, which grows to the largest output so far and is
    /// allocated, and zeroed, only then. `magic` is that of the batch: magic 0
    /// carries LZ4 frames with a wrong header checksum (KAFKA-3160), which only there is ignored.
    ///
    /// # Errors
    /// [`ErrorKind::Decompression`] with the codec's reason, [`ErrorKind::LimitExceeded`],
    /// [`ErrorKind::UnsupportedCompression`] for a codec left out of this build.
    pub fn decompress(&mut self, codec: Compression, magic: i8, payload: &[u8]) -> Result<&[u8]> {
        let length = self.fill(codec, magic, payload)?;
        Ok(&self.buffer[..length])
    }

    /// Like [`decompress`](Self::decompress), but the result is refcounted: the buffer behind it
    /// is written again only when every clone and slice of it is gone. Copies nothing, unless the
    /// result is a small part of a large buffer; allocates a handle, and a buffer while two are held.
    ///
    /// # Errors
    /// As [`decompress`](Self::decompress).
    pub fn decompress_shared(&mut self, codec: Compression, magic: i8, payload: &[u8]) -> Result<Bytes> {
        let length = self.fill(codec, magic, payload)?;
        // A small batch that somebody keeps must not keep the buffer of the largest alive.
        if self.buffer.len() > MAX_SLACK * length.max(SMALL_BUFFER) {
            return Ok(Bytes::copy_from_slice(&self.buffer[..length]));
        }
        Ok(Bytes::from_owner(Shared { buffer: Arc::clone(&self.buffer), length }))
    }

    fn fill(&mut self, codec: Compression, magic: i8, payload: &[u8]) -> Result<usize> {
        if Arc::get_mut(&mut self.buffer).is_none() {
            std::mem::swap(&mut self.buffer, &mut self.previous);
        }
        if Arc::get_mut(&mut self.buffer).is_none() {
            // Somebody keeps the last batch: leave its buffer to them, start one of the same size.
            self.buffer = Arc::new(Vec::with_capacity(self.buffer.len().min(1 << 20)));
        }
        let Some(buffer) = Arc::get_mut(&mut self.buffer) else {
            return Err(Error::new(ErrorKind::Decompression("buffer in use".into())));
        };
        let mut out = Output { buffer, filled: 0, limit: self.limit };
        let contexts = &mut self.contexts;
        match codec {
            Compression::None => out.extend(payload),
            #[cfg(feature = "gzip")]
            Compression::Gzip => contexts.gzip.decompress(payload, &mut out),
            #[cfg(feature = "snappy")]
            Compression::Snappy => contexts.snappy.decompress(payload, &mut out),
            #[cfg(feature = "lz4")]
            Compression::Lz4 => lz4::decompress(payload, lz4::HeaderChecksum::of_magic(magic), &mut out),
            #[cfg(feature = "zstd")]
            Compression::Zstd => contexts.zstd.decompress(payload, &mut out),
            #[allow(unreachable_patterns, reason = "reached when a codec's feature is off")]
            _ => {
                let _ = (contexts, magic);
                Err(ErrorKind::UnsupportedCompression("this build leaves the codec out").into())
            }
        }?;
        Ok(out.filled)
    }
}

/// A refcounted prefix of the decompressor's buffer.
struct Shared {
    buffer: Arc<Vec<u8>>,
    length: usize,
}

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[..self.length]
    }
}

/// Where a codec writes: a buffer that only grows (so nothing is zeroed twice), and the limit.
struct Output<'b> {
    buffer: &'b mut Vec<u8>,
    filled: usize,
    limit: usize,
}

impl Output<'_> {
    /// Room behind what is filled: at least `size` bytes, all the buffer has.
    fn spare(&mut self, size: usize) -> &mut [u8] {
        let needed = self.filled.saturating_add(size);
        if self.buffer.len() < needed {
            let capacity = self.buffer.capacity();
            if capacity < needed {
                // Doubles, but not past the limit: that is all the memory a bomb can get.
                let target = capacity.saturating_mul(2).min(self.limit).max(needed);
                self.buffer.reserve_exact(target - self.buffer.len());
            }
            self.buffer.resize(needed, 0);
        }
        &mut self.buffer[self.filled..]
    }

    /// Takes `size` written bytes over, unless that passes the limit.
    fn advance(&mut self, size: usize) -> Result<()> {
        self.filled += size;
        if self.filled > self.limit { Err(self.limit_exceeded()) } else { Ok(()) }
    }

    fn extend(&mut self, data: &[u8]) -> Result<()> {
        if data.len() > self.limit.saturating_sub(self.filled) {
            return Err(self.limit_exceeded());
        }
        self.spare(data.len())[..data.len()].copy_from_slice(data);
        self.advance(data.len())
    }

    /// How much may still be written.
    #[cfg(any(feature = "gzip", feature = "snappy"))]
    fn allowance(&self) -> usize {
        self.limit.saturating_sub(self.filled)
    }

    #[cold]
    fn limit_exceeded(&self) -> Error {
        ErrorKind::LimitExceeded { limit: self.limit }.into()
    }
}

#[cfg(any(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd"))]
#[cold]
fn refuse(why: impl Into<String>) -> Error {
    ErrorKind::Decompression(why.into()).into()
}
