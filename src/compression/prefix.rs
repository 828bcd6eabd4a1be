//! Decompressing no more of a payload than is asked for: gzip and zstd as streams, other codecs as a whole.

use std::io::Read;

use flate2::read::GzDecoder;
use zstd_safe::{DCtx, InBuffer, OutBuffer};

use crate::compression::codec::Compression;
use crate::compression::decompressor::Decompressor;
use crate::compression::output::decompression_failed;
use crate::error::{ErrorKind, Result};

/// The beginning of a decompressed payload.
pub(crate) struct Prefix<'a> {
    stream: Stream<'a>,
    data: Vec<u8>,
    limit: usize,
    is_whole: bool,
}

enum Stream<'a> {
    Gzip(Box<GzDecoder<&'a [u8]>>),
    Zstd(DCtx<'static>, InBuffer<'a>),
    Other(Compression, &'a [u8]),
}

impl<'a> Prefix<'a> {
    /// Of a payload of magic 2 or later; nothing is decompressed yet.
    pub(crate) fn new(codec: Compression, payload: &'a [u8], limit: usize) -> Self {
        let stream = match codec {
            Compression::Gzip => Stream::Gzip(Box::new(GzDecoder::new(payload))),
            Compression::Zstd => Stream::Zstd(DCtx::create(), InBuffer::around(payload)),
            _ => Stream::Other(codec, payload),
        };
        Self { stream, data: Vec::new(), limit, is_whole: false }
    }

    /// What has been decompressed.
    pub(crate) fn data(&self) -> &[u8] {
        &self.data
    }

    /// Whether that is all.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The largest size that is decompressed.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Decompresses all.
    ///
    /// # Errors
    /// Those of [`reach`](Self::reach).
    pub(crate) fn reach_end(&mut self) -> Result<()> {
        while !self.is_whole {
            self.reach(self.data.len().saturating_mul(4).max(16 << 10).min(self.limit))?;
            if self.data.len() == self.limit && !self.is_whole {
                return Err(ErrorKind::LimitExceeded { limit: self.limit }.into());
            }
        }
        Ok(())
    }

    /// Decompresses at least `size` bytes, or all.
    ///
    /// # Errors
    /// [`ErrorKind::Decompression`], [`ErrorKind::LimitExceeded`].
    pub(crate) fn reach(&mut self, size: usize) -> Result<()> {
        if size > self.limit {
            return Err(ErrorKind::LimitExceeded { limit: self.limit }.into());
        }
        if self.data.len() >= size || self.is_whole {
            return Ok(());
        }
        match &mut self.stream {
            Stream::Gzip(reader) => {
                let missing = (size - self.data.len()) as u64;
                let read = reader.take(missing).read_to_end(&mut self.data);
                let read = read.map_err(|error| decompression_failed(format!("gzip: {error}")))?;
                self.is_whole = (read as u64) < missing;
            }
            Stream::Zstd(context, input) => {
                let before = self.data.len();
                self.data.resize(size, 0);
                let mut output = OutBuffer::around(&mut self.data[before..]);
                loop {
                    let (read, written) = (input.pos(), output.pos());
                    let code = context.decompress_stream(&mut output, input);
                    let code = code.map_err(|code| {
                        decompression_failed(format!("zstd: {}", zstd_safe::get_error_name(code)))
                    })?;
                    let is_stuck = (input.pos(), output.pos()) == (read, written);
                    if output.pos() == output.capacity() || is_stuck {
                        self.is_whole = is_stuck || (code == 0 && input.pos() == input.src.len());
                        break;
                    }
                }
                let written = output.pos();
                self.data.truncate(before + written);
            }
            Stream::Other(codec, payload) => {
                let mut decompressor = Decompressor::with_limit(self.limit);
                self.data = decompressor.decompress(*codec, 2, payload)?.to_vec();
                self.is_whole = true;
            }
        }
        Ok(())
    }
}
