//! The LZ4 frame format as Kafka's `Lz4BlockInputStream` reads it (one frame of independent blocks; bytes
//! after its end mark are ignored) and as `Lz4BlockOutputStream` writes it (blocks of 64 KB, no checksum but
//! the header's). Blocks are decompressed and, at high levels, compressed by the C library, which Kafka's
//! lz4-java calls too; lz4_flex compresses at the default level.

use lz4_flex::block::{self, CompressTable};
use twox_hash::XxHash32;

use crate::compression::output::{Output, at_least, compression_failed, decompression_failed};
use crate::error::Result;

const MAGIC: [u8; 4] = 0x184d_2204_u32.to_le_bytes();
const UNCOMPRESSED: u32 = 1 << 31;
/// The maximum output of one byte of a block: a length continues in bytes of up to 255.
const MAX_RATIO: usize = 255;

/// The treatment of the frame header's checksum.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum HeaderChecksum {
    /// The checksum of the descriptor: written and verified.
    Right,
    /// Brokers and clients of magic 0 included the frame's magic in the checksum (KAFKA-3160): written so,
    /// and ignored by the reader.
    Wrong,
}

impl HeaderChecksum {
    pub(super) fn of_magic(magic: i8) -> Self {
        if magic == 0 { Self::Wrong } else { Self::Right }
    }
}

pub(super) fn decompress(frame: &[u8], checksum: HeaderChecksum, out: &mut Output<'_>) -> Result<()> {
    let mut input = Input(frame);
    let header = Header::read(&mut input, checksum)?;
    loop {
        let word = input.u32("block size")?;
        let size = (word & !UNCOMPRESSED) as usize;
        if size == 0 {
            // The end mark. Kafka reads a content checksum but does not verify it.
            if header.content_checksum {
                input.u32("content checksum")?;
            }
            return Ok(());
        }
        if size > header.max_block {
            return Err(decompression_failed(format!(
                "lz4: block of {size} bytes exceeds {}",
                header.max_block
            )));
        }
        let data = input.take(size, "block")?;
        if header.block_checksum && input.u32("block checksum")? != xxh32(data) {
            return Err(decompression_failed("lz4: block checksum mismatch"));
        }
        if word & UNCOMPRESSED != 0 {
            out.extend(data)?;
        } else {
            let max_size = header.max_block.min(size.saturating_mul(MAX_RATIO));
            let written =
                ::lz4::block::decompress_to_buffer(data, Some(max_size as i32), out.spare(max_size))
                    .map_err(|_| {
                        decompression_failed("lz4: a block is damaged, or larger than its frame allows")
                    })?;
            out.advance(written)?;
        }
    }
}

/// See [`is_plain`](crate::compression::plain::is_plain): content size and checksum, if present, are right,
/// and nothing follows the frame.
pub(super) fn is_plain(frame: &[u8], content: &[u8]) -> bool {
    let mut input = Input(frame);
    // The header's checksum was checked when the content was read.
    let Ok(header) = Header::read(&mut input, HeaderChecksum::Wrong) else { return false };
    if header.content_size.is_some_and(|size| size != content.len() as u64) {
        return false;
    }
    let mut next_block = || -> Result<bool> {
        let size = (input.u32("block size")? & !UNCOMPRESSED) as usize;
        if size == 0 {
            return Ok(false);
        }
        input.take(size, "block")?;
        if header.block_checksum {
            input.u32("block checksum")?;
        }
        Ok(true)
    };
    while next_block().unwrap_or(false) {}
    let is_right = |stored: Result<u32>| stored.is_ok_and(|stored| stored == xxh32(content));
    (!header.content_checksum || is_right(input.u32("content checksum"))) && input.0.is_empty()
}

struct Header {
    max_block: usize,
    block_checksum: bool,
    content_checksum: bool,
    content_size: Option<u64>,
}

impl Header {
    fn read(input: &mut Input<'_>, checksum: HeaderChecksum) -> Result<Self> {
        if input.take(4, "magic")? != MAGIC {
            return Err(decompression_failed("lz4: not a frame (wrong magic)"));
        }
        let descriptor = input.0;
        let flags = input.take(2, "frame descriptor")?;
        let (flg, bd) = (flags[0], flags[1]);
        if flg >> 6 != 1 {
            return Err(decompression_failed("lz4: frame version is not 1"));
        }
        if flg & 0b11 != 0 || bd & 0b1000_1111 != 0 {
            return Err(decompression_failed("lz4: a reserved bit is set (dictionaries are not supported)"));
        }
        if flg & 0b10_0000 == 0 {
            return Err(decompression_failed("lz4: dependent blocks are not supported"));
        }
        let size_code = bd >> 4;
        if size_code < 4 {
            return Err(decompression_failed("lz4: block size code is below 4"));
        }
        let content_size = match flg & 0b1000 {
            0 => None,
            _ => Some(u64::from(input.u32("content size")?) | u64::from(input.u32("content size")?) << 32),
        };
        let length = descriptor.len() - input.0.len();
        let expected = (xxh32(&descriptor[..length]) >> 8) as u8;
        let stored = input.take(1, "header checksum")?[0];
        if checksum == HeaderChecksum::Right && stored != expected {
            return Err(decompression_failed("lz4: frame header checksum mismatch"));
        }
        Ok(Self {
            max_block: 1 << (8 + 2 * u32::from(size_code)),
            block_checksum: flg & 0b1_0000 != 0,
            content_checksum: flg & 0b100 != 0,
            content_size,
        })
    }
}

/// Reads little-endian input.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, size: usize, what: &str) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.0.split_at_checked(size) else {
            return Err(decompression_failed(format!("lz4: the frame ends inside its {what}")));
        };
        self.0 = rest;
        Ok(taken)
    }

    fn u32(&mut self, what: &str) -> Result<u32> {
        let b = self.take(4, what)?;
        Ok(u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    }
}

fn xxh32(data: &[u8]) -> u32 {
    XxHash32::oneshot(0, data)
}

/// Version 1, independent blocks, no checksums, no content size.
const FLG: u8 = 0x60;
/// Blocks of up to 64 KB.
const BD: u8 = 0x40;
const BLOCK: usize = 64 << 10;
const HEADER: usize = 7;
const END_MARK: [u8; 4] = [0; 4];
/// Kafka's default level, which selects its fast compressor.
const FAST: i32 = 9;

/// The compressor of a level.
pub(super) enum Encoder {
    /// lz4_flex's tables for blocks of less than 64 KB and of 64 KB. Clearing the table is half the cost of a
    /// small batch, so the small one matters.
    Fast { small: CompressTable, large: CompressTable },
    /// The C library's high compression; levels above 12 are the same as 12.
    High(i32),
}

impl Encoder {
    pub(super) fn new(level: i32) -> Self {
        match level {
            FAST => Self::Fast { small: CompressTable::small(), large: CompressTable::large() },
            level => Self::High(level),
        }
    }

    pub(super) fn compress(
        &mut self,
        data: &[u8],
        checksum: HeaderChecksum,
        output: &mut Vec<u8>,
    ) -> Result<usize> {
        let blocks = data.len().div_ceil(BLOCK);
        let bound = block::get_maximum_output_size(data.len().min(BLOCK));
        let out = at_least(output, HEADER + blocks * (4 + bound) + END_MARK.len());
        out[..4].copy_from_slice(&MAGIC);
        (out[4], out[5]) = (FLG, BD);
        let hashed = match checksum {
            HeaderChecksum::Right => 4..6,
            HeaderChecksum::Wrong => 0..6,
        };
        out[6] = (xxh32(&out[hashed]) >> 8) as u8;
        let mut end = HEADER;
        for block in data.chunks(BLOCK) {
            let start = end + 4;
            let mut word = self.block(block, &mut out[start..])? as u32;
            let mut size = word as usize;
            if size >= block.len() {
                size = block.len();
                word = size as u32 | UNCOMPRESSED;
                out[start..start + size].copy_from_slice(block);
            }
            out[end..start].copy_from_slice(&word.to_le_bytes());
            end = start + size;
        }
        out[end..end + END_MARK.len()].copy_from_slice(&END_MARK);
        Ok(end + END_MARK.len())
    }

    /// Compresses one block of up to 64 KB.
    fn block(&mut self, block: &[u8], out: &mut [u8]) -> Result<usize> {
        match self {
            Self::Fast { small, large } => {
                let table = if block.len() < usize::from(u16::MAX) { small } else { large };
                block::compress_into_with_table(block, out, table)
                    .map_err(|error| compression_failed(format!("lz4: {error}")))
            }
            Self::High(level) => {
                let mode = ::lz4::block::CompressionMode::HIGHCOMPRESSION(*level);
                ::lz4::block::compress_to_buffer(block, Some(mode), false, out)
                    .map_err(|error| compression_failed(format!("lz4: {error}")))
            }
        }
    }
}
