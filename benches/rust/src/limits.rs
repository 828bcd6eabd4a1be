//! The parts of the work that no reader or builder of a file of batches can leave out, each alone: what a rate is
//! a share of.

use std::hint::black_box;

use magicbyte::internals::crc32;
use magicbyte::{
    Batch, Batches, Compression, Compressor, Decompressor, RECORD_BATCH_OVERHEAD, Result, crc32c,
};

/// Bytes of a magic 1 wrapper before its content.
const WRAPPER_OVERHEAD: usize = 34;
/// The first byte that the CRC of a batch covers, and that of a legacy message.
const COVERED: usize = 21;
const COVERED_OF_LEGACY: usize = 16;
/// Bytes of a row in columns besides key and value: offset and timestamp, and two ends of 32 bits.
const COLUMNS_OF_A_ROW: u64 = 24;

/// A batch, cut into what the codec and the CRC take. Of magic 0 and 1 the content of a wrapper.
pub struct Piece<'a> {
    codec: Compression,
    magic: i8,
    covered: &'a [u8],
    payload: &'a [u8],
}

impl<'a> Piece<'a> {
    pub fn of(batch: &Batch<'a>) -> Result<Self> {
        let (bytes, magic, codec) = (batch.as_bytes(), batch.magic(), batch.compression()?);
        let (covered, payload) = match batch {
            Batch::Legacy(_) if codec == Compression::None => (COVERED_OF_LEGACY, bytes.len()),
            Batch::Legacy(_) => (COVERED_OF_LEGACY, WRAPPER_OVERHEAD),
            Batch::V2(_) => (COVERED, RECORD_BATCH_OVERHEAD),
        };
        Ok(Self { codec, magic, covered: &bytes[covered..], payload: &bytes[payload..] })
    }

    pub fn all(data: &'a [u8]) -> Result<Vec<Self>> {
        Batches::new(data).map(|batch| Self::of(&batch?)).collect()
    }

    /// The codec alone, into the decompressor's buffer. Without a codec, the payload as it is.
    pub fn decompress<'b>(&'b self, decompressor: &'b mut Decompressor) -> Result<&'b [u8]> {
        if self.codec == Compression::None {
            return Ok(self.payload);
        }
        decompressor.decompress(self.codec, self.magic, self.payload)
    }

    fn checksum(&self) -> u32 {
        if self.magic < 2 { crc32(self.covered) } else { crc32c(self.covered, 0) }
    }
}

/// One of the parts of the work, with the data that it takes.
pub enum Limit<'a> {
    /// The sum of the file's 64-bit words: a plain read of the memory.
    Read(&'a [u8]),
    /// The CRC of every batch.
    Checksum(&'a [Piece<'a>]),
    /// The codec over every payload, with one context and one buffer.
    Decompress(&'a [Piece<'a>], Decompressor),
    /// The codec over every uncompressed payload, with one context and one buffer.
    Compress(&'a [Vec<u8>], Compressor),
    /// CRC-32C of what is written.
    ChecksumOfOutput(&'a [Vec<u8>]),
    /// A copy of these bytes, part by part into one buffer.
    Copy(&'a [Vec<u8>], Vec<u8>),
}

impl Limit<'_> {
    pub fn pass(&mut self) -> Result<()> {
        match self {
            Self::Read(data) => {
                let words = data.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
                black_box(words.fold(0, u64::wrapping_add));
            }
            Self::Checksum(pieces) => {
                black_box(pieces.iter().fold(0, |all, piece| all ^ piece.checksum()));
            }
            Self::Decompress(pieces, decompressor) => {
                for piece in *pieces {
                    black_box(piece.decompress(decompressor)?);
                }
            }
            Self::Compress(sections, compressor) => {
                for section in *sections {
                    black_box(compressor.compress(2, section)?);
                }
            }
            Self::ChecksumOfOutput(parts) => {
                black_box(parts.iter().fold(0, |all, part| all ^ crc32c(part, 0)));
            }
            Self::Copy(parts, buffer) => {
                for part in *parts {
                    buffer.clear();
                    buffer.extend_from_slice(part);
                    black_box(buffer.as_slice());
                }
            }
        }
        Ok(())
    }
}

/// The input of the limits of a file, prepared before the clock starts.
pub struct Prepared<'a> {
    data: &'a [u8],
    pieces: Vec<Piece<'a>>,
    sections: Vec<Vec<u8>>,
    written: Vec<Vec<u8>>,
    columns: Vec<Vec<u8>>,
    codec: Compression,
}

impl<'a> Prepared<'a> {
    /// `codec` is that of the output; `records` and `bytes` are those of the file.
    pub fn new(data: &'a [u8], codec: Compression, records: u64, bytes: u64) -> Result<Self> {
        let pieces = Piece::all(data)?;
        let (mut decompressor, mut compressor) = (Decompressor::new(), Compressor::new(codec)?);
        let (mut sections, mut written) = (Vec::new(), Vec::new());
        for piece in &pieces {
            let section = piece.decompress(&mut decompressor)?.to_vec();
            let mut out = vec![0; RECORD_BATCH_OVERHEAD - COVERED];
            out.extend_from_slice(compressor.compress(2, &section)?);
            sections.push(section);
            written.push(out);
        }
        // As many bytes as the columns have, in as many parts as the file has batches.
        let part = (bytes + records * COLUMNS_OF_A_ROW) as usize / pieces.len().max(1);
        let columns = pieces.iter().map(|piece| piece.covered.iter().copied().cycle().take(part).collect());
        Ok(Self { data, columns: columns.collect(), pieces, sections, written, codec })
    }

    /// `None` for a name that means nothing here.
    pub fn named(&self, name: &str) -> Result<Option<Limit<'_>>> {
        Ok(Some(match name {
            "read" => Limit::Read(self.data),
            "crc" => Limit::Checksum(&self.pieces),
            "decompress" => Limit::Decompress(&self.pieces, Decompressor::new()),
            "compress" => Limit::Compress(&self.sections, Compressor::new(self.codec)?),
            "crc of output" => Limit::ChecksumOfOutput(&self.written),
            "copy of output" => Limit::Copy(&self.written, Vec::new()),
            "copy of columns" => Limit::Copy(&self.columns, Vec::new()),
            _ => return Ok(None),
        }))
    }
}
