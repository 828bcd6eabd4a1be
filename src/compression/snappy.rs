//! Snappy as Kafka's `SnappyCompression` reads it through snappy-java's `SnappyInputStream` (xerial chunks,
//! or one raw block) and writes it through `SnappyOutputStream` (chunks of 32 KB, each compressed to the same
//! bytes).

use snap::raw::{Decoder, decompress_len, max_compress_len};

use crate::bytes::cursor::be;
use crate::compression::output::{Output, at_least, compression_failed, decompression_failed};
use crate::compression::snappy_block;
use crate::compression::snappy_block::MAX_SMALL_BLOCK;
use crate::error::Result;

/// Followed by two version ints. Those of the first header are ignored (Redpanda writes them little-endian),
/// but those of later headers are checked.
const MAGIC: [u8; 8] = *b"\x82SNAPPY\0";
const HEADER: usize = 16;
const VERSION: usize = 8;
const MAGIC_HEAD: i32 = i32::from_be_bytes([0x82, b'S', b'N', b'A']);
const MAX_CHUNK: usize = 512 << 20;
const MIN_COMPATIBLE_VERSION: i32 = 1;
/// A snappy element of 3 bytes yields at most 64, so a larger declared size is invalid.
const MAX_RATIO: usize = 22;

#[derive(Default)]
pub(super) struct Context(Decoder);

impl Context {
    pub(super) fn decompress(&mut self, payload: &[u8], out: &mut Output<'_>) -> Result<()> {
        if payload.len() < HEADER || !payload.starts_with(&MAGIC) {
            return self.block(payload, out);
        }
        let mut rest = &payload[HEADER..];
        while rest.len() >= 4 {
            let length = be!(rest, 0, i32);
            if length == MAGIC_HEAD {
                let Some((header, after)) = rest.split_at_checked(HEADER) else {
                    return Err(decompression_failed("snappy: a concatenated header is truncated"));
                };
                // Java drops data when this magic is wrong, and how much depends on its buffers: an error is
                // better.
                if !header.starts_with(&MAGIC) {
                    return Err(decompression_failed("snappy: damaged concatenated header"));
                }
                if be!(header, VERSION, i32) < MIN_COMPATIBLE_VERSION {
                    return Err(decompression_failed(
                        "snappy: incompatible version in a concatenated header",
                    ));
                }
                rest = after;
                continue;
            }
            let length = usize::try_from(length).ok().filter(|&length| length <= MAX_CHUNK);
            let Some(length) = length else { return Err(decompression_failed("snappy: invalid chunk size")) };
            let Some((chunk, after)) = rest[4..].split_at_checked(length) else {
                return Err(decompression_failed("snappy: a chunk is truncated"));
            };
            self.block(chunk, out)?;
            rest = after;
        }
        Ok(())
    }

    fn block(&mut self, block: &[u8], out: &mut Output<'_>) -> Result<()> {
        if block.is_empty() {
            return Err(decompression_failed("snappy: empty input"));
        }
        let length =
            decompress_len(block).map_err(|error| decompression_failed(format!("snappy: {error}")))?;
        if length / MAX_RATIO > block.len() {
            return Err(decompression_failed("snappy: a block declares a larger size than it can hold"));
        }
        if length > out.allowance() {
            return Err(out.limit_exceeded());
        }
        let written = self
            .0
            .decompress(block, &mut out.spare(length)[..length])
            .map_err(|error| decompression_failed(format!("snappy: {error}")))?;
        out.advance(written)
    }
}

/// See [`is_plain`](crate::compression::plain::is_plain): one header with versions that a known writer uses,
/// and chunks up to the end.
pub(super) fn is_plain(payload: &[u8]) -> bool {
    if payload.len() < HEADER || !payload.starts_with(&MAGIC) {
        // A raw block has no unused bytes.
        return true;
    }
    let (header, mut rest) = payload.split_at(HEADER);
    if header[VERSION..] != VERSIONS && header[VERSION..] != REDPANDA_VERSIONS {
        return false;
    }
    while let Some((size, after)) = rest.split_first_chunk() {
        // A second header reads as a negative size.
        let Ok(size) = usize::try_from(i32::from_be_bytes(*size)) else { return false };
        let Some(after) = after.get(size..) else { return false };
        rest = after;
    }
    rest.is_empty()
}

/// Uncompressed size of a chunk.
const CHUNK: usize = 32 << 10;
/// Version and the smallest compatible one, big-endian.
const VERSIONS: [u8; 8] = [0, 0, 0, 1, 0, 0, 0, 1];
/// The same, little-endian.
const REDPANDA_VERSIONS: [u8; 8] = [1, 0, 0, 0, 1, 0, 0, 0];

pub(super) struct Encoder {
    snap: snap::raw::Encoder,
    table: [u16; MAX_SMALL_BLOCK],
}

impl Encoder {
    pub(super) fn new() -> Self {
        Self { snap: snap::raw::Encoder::new(), table: [0; MAX_SMALL_BLOCK] }
    }

    /// Compresses `data` in xerial chunks of Kafka's size.
    pub(super) fn compress(&mut self, data: &[u8], output: &mut Vec<u8>) -> Result<usize> {
        self.chunks(data, CHUNK, output)
    }

    /// One block without a frame.
    pub(super) fn raw(&mut self, data: &[u8], output: &mut Vec<u8>) -> Result<usize> {
        self.block(data, at_least(output, max_compress_len(data.len())))
    }

    /// xerial chunks of `size` bytes, at least 1, before compression.
    pub(super) fn chunks(&mut self, data: &[u8], size: usize, output: &mut Vec<u8>) -> Result<usize> {
        let header = at_least(output, HEADER);
        header[..VERSION].copy_from_slice(&MAGIC);
        header[VERSION..HEADER].copy_from_slice(&VERSIONS);
        let mut end = HEADER;
        for chunk in data.chunks(size) {
            let start = end + 4;
            let out = at_least(output, start + max_compress_len(chunk.len()));
            let written = self.block(chunk, &mut out[start..])?;
            out[end..start].copy_from_slice(&(written as u32).to_be_bytes());
            end = start + written;
        }
        Ok(end)
    }

    /// Compresses one block, into at least `max_compress_len` bytes.
    fn block(&mut self, block: &[u8], out: &mut [u8]) -> Result<usize> {
        if block.len() <= MAX_SMALL_BLOCK {
            return Ok(snappy_block::compress(block, &mut self.table, out));
        }
        self.snap.compress(block, out).map_err(|error| compression_failed(format!("snappy: {error}")))
    }
}
