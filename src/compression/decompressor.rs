//! Decompression up to a limit, with reused contexts and buffers (`Compression.wrapForInput`).

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

/// The default limit on the decompressed size of one batch: 256 MiB.
///
/// Brokers accept batches of up to 1 MiB by default; this allows for a compression ratio of 250.
pub const DEFAULT_MAX_DECOMPRESSED_BYTES: usize = 256 << 20;

/// Positions in a batch, of records and of views, have 32 bits.
const MAX_POSITION: usize = u32::MAX as usize;

/// The maximum size of a buffer that is handed out, as a multiple of its content.
const MAX_SLACK: usize = 4;
const SMALL_BUFFER: usize = 64 << 10;

/// Decompresses batches, reusing contexts and buffers; create one per thread or reader.
///
/// The decompressed size of a batch is limited: see [`Decompressor::with_limit`].
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
    /// Shared with the batch handed out last; reused only once that batch is dropped.
    buffer: Arc<Vec<u8>>,
    /// The one before: a reader that holds a batch while it requests the next needs two.
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
    /// A decompressor with the default limit, [`DEFAULT_MAX_DECOMPRESSED_BYTES`]. Buffer and contexts are
    /// allocated when first needed.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(DEFAULT_MAX_DECOMPRESSED_BYTES)
    }

    /// A decompressor that refuses batches of more than `limit` bytes, decompressed. The limit is at most
    /// 4 GiB - 1, since positions in a batch have 32 bits.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        let limit = limit.min(MAX_POSITION);
        Self { limit, buffer: Arc::default(), previous: Arc::default(), contexts: Contexts::default() }
    }

    /// The maximum decompressed size of one batch in bytes.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Decompresses one payload into the reused buffer, which is allocated and zeroed only when the output is
    /// larger than any before. `magic` is that of the batch: LZ4 frames in magic 0 have a wrong header
    /// checksum (KAFKA-3160), which is ignored there and only there.
    ///
    /// # Errors
    /// [`ErrorKind::Decompression`] with the codec's reason, [`ErrorKind::LimitExceeded`],
    /// [`ErrorKind::UnsupportedCompression`] for a codec left out of this build.
    pub fn decompress(&mut self, codec: Compression, magic: i8, payload: &[u8]) -> Result<&[u8]> {
        let length = self.fill(codec, magic, payload)?;
        Ok(&self.buffer[..length])
    }

    /// Like [`decompress`](Self::decompress), but the result is refcounted: its buffer is reused only after
    /// every clone and slice of it is dropped. Copies a result only if it is a small part of a large buffer.
    /// Allocates a handle, and a new buffer if two are still held.
    ///
    /// # Errors
    /// The errors of [`decompress`](Self::decompress).
    pub fn decompress_shared(&mut self, codec: Compression, magic: i8, payload: &[u8]) -> Result<Bytes> {
        let length = self.fill(codec, magic, payload)?;
        // A small batch that is kept must not keep the buffer of the largest alive.
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
            // Both batches are still held: leave them their buffers and allocate another.
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
