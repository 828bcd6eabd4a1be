//! The output buffer of a codec, and the errors of codecs.

use crate::error::{Error, ErrorKind, Result};

/// A codec's output: a buffer that never shrinks (so that nothing is zeroed twice), and its limit.
pub(super) struct Output<'b> {
    pub(super) buffer: &'b mut Vec<u8>,
    pub(super) filled: usize,
    pub(super) limit: usize,
}

impl Output<'_> {
    /// The unfilled rest of the buffer, at least `size` bytes.
    pub(super) fn spare(&mut self, size: usize) -> &mut [u8] {
        let needed = self.filled.saturating_add(size);
        if self.buffer.len() < needed {
            let capacity = self.buffer.capacity();
            if capacity < needed {
                // Doubles, but only up to the limit, which bounds the memory of a decompression bomb.
                let target = capacity.saturating_mul(2).min(self.limit).max(needed);
                self.buffer.reserve_exact(target - self.buffer.len());
            }
            self.buffer.resize(needed, 0);
        }
        &mut self.buffer[self.filled..]
    }

    /// Counts `size` more bytes as filled; an error if they exceed the limit.
    pub(super) fn advance(&mut self, size: usize) -> Result<()> {
        self.filled += size;
        if self.filled > self.limit { Err(self.limit_exceeded()) } else { Ok(()) }
    }

    pub(super) fn extend(&mut self, data: &[u8]) -> Result<()> {
        if data.len() > self.limit.saturating_sub(self.filled) {
            return Err(self.limit_exceeded());
        }
        self.spare(data.len())[..data.len()].copy_from_slice(data);
        self.advance(data.len())
    }

    /// The number of bytes that may still be written.
    #[cfg(any(feature = "gzip", feature = "snappy"))]
    pub(super) fn allowance(&self) -> usize {
        self.limit.saturating_sub(self.filled)
    }

    #[cold]
    pub(super) fn limit_exceeded(&self) -> Error {
        ErrorKind::LimitExceeded { limit: self.limit }.into()
    }
}

/// `output`, extended to at least `size` bytes.
#[cfg(any(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd"))]
pub(super) fn at_least(output: &mut Vec<u8>, size: usize) -> &mut [u8] {
    if output.len() < size {
        output.resize(size, 0);
    }
    output
}

#[cfg(any(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd"))]
#[cold]
pub(super) fn decompression_failed(why: impl Into<String>) -> Error {
    ErrorKind::Decompression(why.into()).into()
}

#[cfg(any(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd"))]
#[cold]
pub(super) fn compression_failed(why: impl Into<String>) -> Error {
    ErrorKind::Compression(why.into()).into()
}
