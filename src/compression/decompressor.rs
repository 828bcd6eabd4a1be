//! Decompression with reused contexts and one reused buffer, up to a limit.

use std::sync::Arc;

use ::bytes::Bytes;

use crate::compression::codec::Compression;
#[cfg(feature = "gzip")]
use crate::compression::gzip;
#[cfg(feature = "lz4")]
use crate::compression::lz4;
use crate::compression::output::Output;
#[cfg(feature = "snappy")]
use crate::compression::snappy;
#[cfg(feature = "zstd")]
use crate::compression::zstd;
use crate::error::{Error, ErrorKind, Result};

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
