//! Data that can be saved from quarantined bytes: a repair that the CRC proves, and the records before the
//! damage, which are suspect and never mixed with good records.

use std::io;

use ::bytes::Bytes;

use magicbyte::internals::{Algorithm, LOG_OVERHEAD, be};
use magicbyte::{Batch, Compression, Decompressor, Error, RECORD_BATCH_OVERHEAD, Record, Result};

use crate::chunk::Chunk;
use crate::listing::Segment;
use crate::read::survey::Survey;
use crate::segment::reader::{Piece, SegmentReader};

const MAGIC: usize = 16;
/// The bits of a 64 KiB batch.
const MOST_PROVEN_BITS: u64 = 8 << 16;

/// A quarantined range, and the data that can be saved from it.
#[derive(Clone, Debug)]
pub struct Rescued {
    /// Position of the first byte in the segment.
    pub position: u64,
    /// The bytes as they are.
    pub data: Bytes,
    /// The reason why they are quarantined.
    pub error: Error,
    /// A repaired batch that differs by one bit, or only by its length or magic.
    pub repair: Option<Repair>,
    /// The bytes with a length and magic that frame them, if they begin with a batch header.
    framed: Option<Vec<u8>>,
}

/// A repaired copy of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repair {
    /// The whole batch: its CRC holds and every record decodes.
    pub batch: Vec<u8>,
    /// First byte that differs, from the start of the batch.
    pub at: usize,
    /// A human-readable description of the change.
    pub change: String,
    /// The number of bits that could have been the flipped one; 1 if no bit had to be found.
    pub candidates: u64,
}

impl Repair {
    /// The probability that damage of any other kind looks like this repair: 2^-32 for each bit that could
    /// have been the flipped one. Records that decode make it smaller still.
    #[must_use]
    pub fn chance(&self) -> f64 {
        self.candidates as f64 / 2f64.powi(32)
    }

    /// True if [`chance`](Self::chance) is below 1 in 8,000, as it is for batches up to 64 KiB. A repair of a
    /// larger batch is a guess.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.candidates <= MOST_PROVEN_BITS
    }
}

impl Rescued {
    /// Passes the records before the first record that does not decode to `take`. They are suspect: in a
    /// batch whose CRC is wrong, any record may have been changed. A compressed batch has none unless its CRC
    /// holds.
    pub fn suspects(&self, decompressor: &mut Decompressor, mut take: impl FnMut(Record<'_>)) {
        let Some(framed) = &self.framed else { return };
        let Ok(batch) = Batch::from_frame(framed, self.position) else { return };
        if batch.verify().is_err() && batch.compression() != Ok(Compression::None) {
            return;
        }
        let Ok(records) = batch.records(decompressor) else { return };
        for record in records.without_crc_check() {
            match record {
                Ok(record) => take(record),
                Err(_) => return,
            }
        }
    }
}

/// Reads a segment and yields every quarantined range with the data that can be saved from it. Needs the
/// segment's survey for its first offset.
///
/// Cost: the cost of [`crate::PartitionLog::verify`], plus one step per bit of each bad batch.
#[derive(Debug)]
pub struct Rescuer {
    pieces: SegmentReader,
    decompressor: Decompressor,
}

impl Rescuer {
    /// Opens the segment; batches larger than the limit in bytes, stored or decompressed, are not repaired.
    ///
    /// # Errors
    /// If no file can be opened or memory is exhausted.
    pub fn open(survey: &Survey, max_decompressed_bytes: usize) -> io::Result<Self> {
        let segment: &Segment = &survey.segment;
        Self::of_chunk(&Chunk::of(segment, survey.base_offset, 0..segment.size), max_decompressed_bytes)
    }

    /// Opens a part of a segment.
    pub(crate) fn of_chunk(chunk: &Chunk, max_decompressed_bytes: usize) -> io::Result<Self> {
        let pieces = SegmentReader::of_chunk(chunk)?;
        let decompressor = Decompressor::with_limit(max_decompressed_bytes);
        Ok(Self { pieces: pieces.max_batch_size(max_decompressed_bytes), decompressor })
    }

    fn advance(&mut self) -> io::Result<Option<Rescued>> {
        while let Some(piece) = self.pieces.next().transpose()? {
            match piece {
                Piece::Tail { .. } => {}
                Piece::Batch(batch) => {
                    if let Err(error) = decode(&batch.batch(), &mut self.decompressor) {
                        let (position, data) = (batch.position(), batch.data().clone());
                        return Ok(Some(self.rescue(position, data, error)));
                    }
                }
                Piece::Quarantined { range, error } => {
                    // A range too large to load is not a batch.
                    let length = (range.end - range.start).min(self.decompressor.limit() as u64) as usize;
                    let data = self.pieces.bytes_at(range.start, length)?;
                    return Ok(Some(self.rescue(range.start, data, error)));
                }
            }
        }
        Ok(None)
    }

    fn rescue(&mut self, position: u64, data: Bytes, error: Error) -> Rescued {
        let repair = repair(&data, &mut self.decompressor);
        let framed = framed(&data);
        Rescued { position, data, error, repair, framed }
    }
}

impl Iterator for Rescuer {
    type Item = io::Result<Rescued>;

    fn next(&mut self) -> Option<Self::Item> {
        self.advance().transpose()
    }
}

fn decode(batch: &Batch<'_>, decompressor: &mut Decompressor) -> Result<()> {
    batch.records(decompressor)?.try_for_each(|record| record.map(drop))
}

/// The range framed as one batch, if its magic is one of Kafka's.
fn framed(data: &[u8]) -> Option<Vec<u8>> {
    let magic = *data.get(MAGIC)?;
    (magic <= 2).then(|| with_length(data, magic)).flatten()
}

/// A copy with the length field set to the range's length; None if a batch of this magic needs more bytes.
fn with_length(data: &[u8], magic: u8) -> Option<Vec<u8>> {
    let smallest = if magic == 2 { RECORD_BATCH_OVERHEAD } else { LOG_OVERHEAD + 14 };
    let length = i32::try_from(data.len().checked_sub(LOG_OVERHEAD)?).ok()?;
    let mut batch = data.to_vec();
    batch.get_mut(8..12)?.copy_from_slice(&length.to_be_bytes());
    (data.len() >= smallest).then_some(batch)
}

/// Tries to explain the damage by one flipped bit, a wrong length or a wrong magic.
#[doc(hidden)]
pub fn repair(data: &[u8], decompressor: &mut Decompressor) -> Option<Repair> {
    [2, 1, 0].into_iter().find_map(|magic| {
        let mut batch = with_length(data, magic)?;
        // In magic 0 and 1 the CRC covers the magic, so a wrong magic is a flipped bit.
        if magic == 2 {
            batch[MAGIC] = 2;
        }
        let (algorithm, crc_at, covered) =
            if magic == 2 { (Algorithm::Castagnoli, 17, 21) } else { (Algorithm::Ieee, 12, 16) };
        let syndrome = be!(&batch, crc_at, u32) ^ algorithm.checksum(&batch[covered..]);
        let flip = if syndrome == 0 {
            None
        } else if syndrome.is_power_of_two() {
            let bit = 31 - syndrome.trailing_zeros() as usize;
            Some((crc_at + bit / 8, 1u8 << (7 - bit % 8)))
        } else {
            let bit = algorithm.flipped_bit(syndrome, batch.len() - covered)?;
            Some((covered + (bit / 8) as usize, 1u8 << (bit % 8)))
        };
        if let Some((at, mask)) = flip {
            batch[at] ^= mask;
        }
        let changes = (0..batch.len()).filter(|&at| batch[at] != data[at]).collect::<Vec<_>>();
        let at = *changes.first()?;
        let is_repaired = Batch::from_frame(&batch, 0).is_ok_and(|view| {
            batch[MAGIC] == magic && view.verify().is_ok() && decode(&view, decompressor).is_ok()
        });
        is_repaired.then(|| {
            let fields = [(8..12, "the length"), (16..17, "the magic"), (crc_at..crc_at + 4, "the CRC")];
            let mut change: Vec<_> = fields
                .iter()
                .filter(|(range, _)| changes.iter().any(|change| range.contains(change)))
                .map(|&(_, name)| name.to_owned())
                .collect();
            if let Some((at, mask)) = flip {
                change.push(format!("bit {} of byte {at}", mask.trailing_zeros()));
            }
            let candidates = if flip.is_some() { 8 * (batch.len() - covered) as u64 } else { 1 };
            Repair { at, change: change.join(", "), candidates, batch: batch.clone() }
        })
    })
}
