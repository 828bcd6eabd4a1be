//! Partial decompression: no more of a gzip or zstd payload is decompressed than is requested.

use std::io::Read;

use flate2::read::GzDecoder;
use zstd_safe::{DCtx, InBuffer, OutBuffer, ResetDirective};

use crate::compression::codec::Compression;
use crate::compression::output::decompression_failed;
use crate::error::{Error, ErrorKind, Result};

/// The maximum size of the first step of decompression, in bytes.
const STEP: usize = 64 << 10;

/// State that prefixes reuse: a buffer and a zstd context.
#[doc(hidden)]
#[derive(Default)]
pub struct PrefixContext {
    data: Vec<u8>,
    zstd: Option<DCtx<'static>>,
}

/// The beginning of a decompressed payload.
#[doc(hidden)]
pub struct Prefix<'a> {
    stream: Stream<'a>,
    data: &'a mut Vec<u8>,
    limit: usize,
    is_whole: bool,
}

enum Stream<'a> {
    Gzip(Box<GzDecoder<&'a [u8]>>),
    Zstd(&'a mut DCtx<'static>, InBuffer<'a>),
}

#[doc(hidden)]
impl PrefixContext {
    /// The beginning of a payload compressed with this codec; nothing is decompressed yet. `None` for codecs other than
    /// gzip and zstd.
    ///
    /// # Errors
    /// [`ErrorKind::Decompression`] if the context of zstd cannot be used.
    pub fn begin<'a>(
        &'a mut self,
        codec: Compression,
        payload: &'a [u8],
        limit: usize,
    ) -> Result<Option<Prefix<'a>>> {
        let stream = match codec {
            Compression::Gzip => Stream::Gzip(Box::new(GzDecoder::new(payload))),
            Compression::Zstd => {
                let context = self.zstd.get_or_insert_with(DCtx::create);
                context.reset(ResetDirective::SessionOnly).map_err(zstd_error)?;
                Stream::Zstd(context, InBuffer::around(payload))
            }
            _ => return Ok(None),
        };
        self.data.clear();
        Ok(Some(Prefix { stream, data: &mut self.data, limit, is_whole: false }))
    }
}

#[doc(hidden)]
impl Prefix<'_> {
    /// The bytes decompressed so far.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        self.data
    }

    /// True if the whole payload has been decompressed.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The maximum decompressed size in bytes.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Decompresses at least `size` bytes, or all.
    ///
    /// # Errors
    /// [`ErrorKind::Decompression`], [`ErrorKind::LimitExceeded`].
    pub fn reach(&mut self, size: usize) -> Result<()> {
        if size > self.limit {
            return Err(ErrorKind::LimitExceeded { limit: self.limit }.into());
        }
        while self.data.len() < size && !self.is_whole {
            // Takes no more memory than the bytes decompressed so far justify, whatever `size` is.
            let step = (size - self.data.len()).min(self.data.len().max(STEP));
            self.more(step)?;
        }
        Ok(())
    }

    fn more(&mut self, size: usize) -> Result<()> {
        match &mut self.stream {
            Stream::Gzip(reader) => {
                let read = reader.take(size as u64).read_to_end(self.data);
                let read = read.map_err(|error| decompression_failed(format!("gzip: {error}")))?;
                self.is_whole = read < size;
            }
            Stream::Zstd(context, input) => {
                let before = self.data.len();
                self.data.resize(before + size, 0);
                let mut output = OutBuffer::around(&mut self.data[before..]);
                loop {
                    let (read, written) = (input.pos(), output.pos());
                    let code = context.decompress_stream(&mut output, input).map_err(zstd_error)?;
                    let is_stuck = (input.pos(), output.pos()) == (read, written);
                    if output.pos() == output.capacity() || is_stuck {
                        self.is_whole = is_stuck || (code == 0 && input.pos() == input.src.len());
                        break;
                    }
                }
                let written = output.pos();
                self.data.truncate(before + written);
            }
        }
        Ok(())
    }
}

#[cold]
fn zstd_error(code: usize) -> Error {
    decompression_failed(format!("zstd: {}", zstd_safe::get_error_name(code)))
}
