//! The LZ4 frame format as Kafka's `Lz4BlockInputStream` reads it: one frame of independent
//! blocks; what follows its end mark is ignored. The blocks are lz4_flex's.

use std::hash::Hasher;

use lz4_flex::block;
use twox_hash::XxHash32;

use super::{Output, refuse};
use crate::error::Result;

const MAGIC: [u8; 4] = 0x184d_2204_u32.to_le_bytes();
const UNCOMPRESSED: u32 = 1 << 31;
/// No byte of a block yields more: a length goes on in bytes of up to 255.
const MAX_RATIO: usize = 255;

/// Whether the frame header's checksum is looked at.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum HeaderChecksum {
    Verify,
    /// Brokers and clients of magic 0 computed it wrongly (KAFKA-3160).
    Ignore,
}

impl HeaderChecksum {
    pub(super) fn of_magic(magic: i8) -> Self {
        if magic == 0 { Self::Ignore } else { Self::Verify }
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
            return Err(refuse(format!("lz4: block of {size} bytes exceeds {}", header.max_block)));
        }
        let data = input.take(size, "block")?;
        if header.block_checksum && input.u32("block checksum")? != xxh32(data) {
            return Err(refuse("lz4: block checksum mismatch"));
        }
        if word & UNCOMPRESSED != 0 {
            out.extend(data)?;
        } else {
            let room = header.max_block.min(size.saturating_mul(MAX_RATIO));
            let written = block::decompress_into(data, &mut out.spare(room)[..room])
                .map_err(|error| refuse(format!("lz4: {error}")))?;
            out.advance(written)?;
        }
    }
}

struct Header {
    max_block: usize,
    block_checksum: bool,
    content_checksum: bool,
}

impl Header {
    fn read(input: &mut Input<'_>, checksum: HeaderChecksum) -> Result<Self> {
        if input.take(4, "magic")? != MAGIC {
            return Err(refuse("lz4: not a frame (wrong magic)"));
        }
        let descriptor = input.0;
        let flags = input.take(2, "frame descriptor")?;
        let (flg, bd) = (flags[0], flags[1]);
        if flg >> 6 != 1 {
            return Err(refuse("lz4: frame version is not 1"));
        }
        if flg & 0b11 != 0 || bd & 0b1000_1111 != 0 {
            return Err(refuse("lz4: a reserved bit is set (dictionaries are not supported)"));
        }
        if flg & 0b10_0000 == 0 {
            return Err(refuse("lz4: dependent blocks are not supported"));
        }
        let size_code = bd >> 4;
        if size_code < 4 {
            return Err(refuse("lz4: block size code is below 4"));
        }
        let content_size = flg & 0b1000 != 0;
        if content_size {
            input.take(8, "content size")?;
        }
        let length = descriptor.len() - input.0.len();
        let expected = (xxh32(&descriptor[..length]) >> 8) as u8;
        let stored = input.take(1, "header checksum")?[0];
        if checksum == HeaderChecksum::Verify && stored != expected {
            return Err(refuse("lz4: frame header checksum mismatch"));
        }
        Ok(Self {
            max_block: 1 << (8 + 2 * u32::from(size_code)),
            block_checksum: flg & 0b1_0000 != 0,
            content_checksum: flg & 0b100 != 0,
        })
    }
}

/// LZ4's little-endian input.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, size: usize, what: &str) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.0.split_at_checked(size) else {
            return Err(refuse(format!("lz4: the frame is cut in its {what}")));
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
    let mut hasher = XxHash32::with_seed(0);
    hasher.write(data);
    hasher.finish_32()
}
