//! The work a reader may do because of damage: a budget that keeps the reader linear in its file, and
//! checksums of file ranges that stay cheap when many long ranges overlap.

use std::io;
use std::ops::Range;

use magicbyte::internals::{Algorithm, HEADER_SIZE_UP_TO_MAGIC, be};
use magicbyte::{Batch, RECORD_BATCH_OVERHEAD};

use super::header::framed_size;
use crate::segment::blocks::Blocks;

/// The maximum distance past damage to look for evidence, in bytes. Kafka limits a batch to 1 MiB by default.
pub(super) const REACH: usize = 4 << 20;
/// Bytes a reader may inspect because of damage, per byte passed, in addition to its initial budget.
const PER_BYTE: u64 = 4;
/// The initial budget, per byte of the file: many small files must not cost more than one large file.
const INITIAL_PER_BYTE: u64 = 16;
const MAX_INITIAL: u64 = 16 * REACH as u64;
/// Enough for a file of a few batches to be searched as often as its damage requires.
const MIN_INITIAL: u64 = 256 << 10;
/// The distance between stored prefix checksums: 1 MiB of them per GiB.
const STRIDE: u64 = 4 << 10;
/// Checksums of longer ranges are computed from prefixes.
const AT_ONCE: u64 = 1 << 20;
/// The size of one read.
const PIECE: u64 = 64 << 10;

/// The checksum stored in a header, and the checksum of the batch's bytes inspected so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnChecksum {
    pub(super) algorithm: Algorithm,
    pub(super) stored: u32,
    computed: u32,
    /// Where the covered bytes begin, relative to the batch; they end where the batch does.
    pub(super) start: u64,
    /// The end of the covered bytes that were inspected, relative to the batch.
    pub(super) covered: u64,
}

impl OwnChecksum {
    pub(super) fn read(header: &[u8]) -> Option<Self> {
        match *header.get(HEADER_SIZE_UP_TO_MAGIC - 1)? {
            2 if header.len() >= RECORD_BATCH_OVERHEAD => Some(Self::of(Algorithm::Castagnoli, header)),
            0 | 1 => Some(Self::of(Algorithm::Ieee, header)),
            _ => None,
        }
    }

    /// Reads the checksum as if the header's magic, which may be damaged, were one that uses this algorithm.
    /// The header must reach past the checksum field.
    fn of(algorithm: Algorithm, header: &[u8]) -> Self {
        let (at, start) = match algorithm {
            Algorithm::Castagnoli => (17, 21),
            Algorithm::Ieee => (12, 16),
        };
        Self { algorithm, stored: be!(header, at, u32), computed: 0, start, covered: start }
    }

    /// Extends the checksum to `position` in the file; returns the number of bytes inspected.
    pub(super) fn extend(&mut self, blocks: &mut Blocks, damage: u64, position: u64) -> io::Result<u64> {
        let from = self.covered;
        while damage + self.covered < position {
            let rest = position - damage - self.covered;
            let piece = blocks.peek(damage + self.covered, rest.min(PIECE) as usize)?;
            if piece.is_empty() {
                break;
            }
            self.add(self.algorithm.checksum(&piece), piece.len() as u64);
        }
        Ok(self.covered - from)
    }

    /// The end position of the batch at `damage`, if it has between `min_size` and `max_size` bytes and only its
    /// length is wrong, and the number of bytes inspected. The chance of a false match is one in 2^32 for
    /// each byte.
    pub(super) fn end(
        mut self,
        blocks: &mut Blocks,
        damage: u64,
        min_size: u64,
        max_size: u64,
    ) -> io::Result<(Option<u64>, u64)> {
        let start = self.covered;
        while self.covered < max_size {
            let length = (max_size - self.covered).min(PIECE) as usize;
            let piece = blocks.peek(damage + self.covered, length)?;
            let min = min_size.saturating_sub(self.covered) as usize;
            let (end, checksum) = self.algorithm.prefix_with(self.stored, self.computed, &piece, min);
            if let Some(length) = end {
                return Ok((
                    Some(damage + self.covered + length as u64),
                    self.covered + length as u64 - start,
                ));
            }
            if piece.len() < length {
                break;
            }
            (self.computed, self.covered) = (checksum, self.covered + piece.len() as u64);
        }
        Ok((None, self.covered - start))
    }

    pub(super) fn add(&mut self, checksum: u32, length: u64) {
        self.computed = self.algorithm.join(self.computed, checksum, length);
        self.covered += length;
    }

    pub(super) fn holds(&self) -> bool {
        self.computed == self.stored && self.covered > self.start
    }
}

/// The budget and the checksums of one reader.
#[derive(Debug)]
pub(super) struct Evidence {
    /// Where the reader started.
    start: u64,
    initial: u64,
    spent: u64,
    castagnoli: FileChecksum,
    ieee: FileChecksum,
}

impl Evidence {
    /// The budget of a reader of the bytes `start..end`.
    pub(super) fn new(start: u64, end: u64) -> Self {
        let bytes = end.saturating_sub(start);
        let initial = bytes.saturating_mul(INITIAL_PER_BYTE);
        Self {
            start,
            initial: initial.clamp(MIN_INITIAL, MAX_INITIAL),
            spent: 0,
            castagnoli: FileChecksum::new(Algorithm::Castagnoli, start),
            ieee: FileChecksum::new(Algorithm::Ieee, start),
        }
    }

    /// The bytes that may still be inspected for damage at `position`.
    pub(super) fn left(&self, position: u64) -> u64 {
        let passed = position.saturating_sub(self.start);
        self.initial.saturating_add(passed.saturating_mul(PER_BYTE)).saturating_sub(self.spent)
    }

    /// The distance past damage at `position` to look for evidence. It shrinks as damage becomes frequent.
    pub(super) fn reach(&self, position: u64) -> u64 {
        (self.left(position) / 8).min(REACH as u64)
    }

    pub(super) fn spend(&mut self, bytes: u64) {
        self.spent = self.spent.saturating_add(bytes);
    }

    /// The checksum of a range of the file, paid from the budget for damage at `damage`. None if the file has
    /// become shorter.
    pub(super) fn checksum(
        &mut self,
        blocks: &mut Blocks,
        algorithm: Algorithm,
        range: Range<u64>,
        damage: u64,
    ) -> io::Result<Option<u32>> {
        let length = range.end.saturating_sub(range.start);
        // Bytes that look like the header of a long batch are common, and many such ranges share prefixes.
        if length <= self.left(damage).min(AT_ONCE) {
            self.spend(length);
            return checksum_of(blocks, algorithm, range);
        }
        match algorithm {
            Algorithm::Castagnoli => self.castagnoli.of(blocks, range),
            Algorithm::Ieee => self.ieee.of(blocks, range),
        }
    }

    /// True if the bytes `damage..end` are a batch with one flipped bit, which may be in its checksum or its
    /// magic. The chance of a false match is one in 2^32 for each bit of the batch.
    pub(super) fn is_a_bit_off(
        &mut self,
        blocks: &mut Blocks,
        header: &[u8],
        damage: u64,
        end: u64,
    ) -> io::Result<bool> {
        let Some(&magic) = header.get(HEADER_SIZE_UP_TO_MAGIC - 1) else { return Ok(false) };
        for algorithm in [Algorithm::Castagnoli, Algorithm::Ieee] {
            let is_v2 = algorithm == Algorithm::Castagnoli;
            if is_v2 && header.len() < RECORD_BATCH_OVERHEAD {
                continue;
            }
            let checksum = OwnChecksum::of(algorithm, header);
            let Some(length) = end.checked_sub(damage + checksum.start).filter(|&length| length > 0) else {
                continue;
            };
            let computed = self.checksum(blocks, algorithm, damage + checksum.start..end, damage)?;
            let Some(syndrome) = computed.map(|computed| checksum.stored ^ computed) else { continue };
            // The checksum of magic 2 does not cover the magic: if the magic is wrong, the rest must be
            // right.
            let magic_is_wrong = is_v2 && magic != 2;
            if syndrome == 0 || (!magic_is_wrong && syndrome.is_power_of_two()) {
                return Ok(true);
            }
            if !magic_is_wrong {
                self.spend(length);
                if algorithm.flipped_bit(syndrome, length as usize).is_some() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// True if `position`, where `header` was read, holds a batch of at most `max_size` bytes whose CRC
    /// holds.
    pub(super) fn crc_holds_at(
        &mut self,
        blocks: &mut Blocks,
        header: &[u8],
        position: u64,
        max_size: usize,
        damage: u64,
    ) -> io::Result<bool> {
        let Some(size) = framed_size(header) else { return Ok(false) };
        let end = position + size;
        if size > max_size as u64 || end > blocks.size() || Batch::from_header(header, position).is_err() {
            return Ok(false);
        }
        let Some(checksum) = OwnChecksum::read(header) else { return Ok(false) };
        if checksum.algorithm == Algorithm::Castagnoli && size < RECORD_BATCH_OVERHEAD as u64 {
            return Ok(false);
        }
        let computed = self.checksum(blocks, checksum.algorithm, position + checksum.start..end, damage)?;
        Ok(computed == Some(checksum.stored))
    }
}

/// The checksum of a range, computed from its bytes.
fn checksum_of(blocks: &mut Blocks, algorithm: Algorithm, range: Range<u64>) -> io::Result<Option<u32>> {
    let (mut at, mut checksum) = (range.start, 0);
    while at < range.end {
        let piece = blocks.peek(at, (range.end - at).min(PIECE) as usize)?;
        if piece.is_empty() {
            return Ok(None);
        }
        checksum = algorithm.join(checksum, algorithm.checksum(&piece), piece.len() as u64);
        at += piece.len() as u64;
    }
    Ok(Some(checksum))
}

/// Like `RangeChecksum`, for a file: prefixes are computed once, as far as they are needed.
#[derive(Debug)]
struct FileChecksum {
    algorithm: Algorithm,
    start: u64,
    /// `[i]` is the checksum of the first `i * STRIDE` bytes from `start`.
    prefixes: Vec<u32>,
}

impl FileChecksum {
    fn new(algorithm: Algorithm, start: u64) -> Self {
        Self { algorithm, start, prefixes: vec![0] }
    }

    fn of(&mut self, blocks: &mut Blocks, range: Range<u64>) -> io::Result<Option<u32>> {
        let (start, length) = (range.start, range.end - range.start);
        if length <= 2 * STRIDE || start < self.start {
            return checksum_of(blocks, self.algorithm, range);
        }
        let (Some(before), Some(to_end)) = (self.prefix(blocks, start)?, self.prefix(blocks, range.end)?)
        else {
            return Ok(None);
        };
        Ok(Some(self.algorithm.join(before, to_end, length)))
    }

    fn prefix(&mut self, blocks: &mut Blocks, end: u64) -> io::Result<Option<u32>> {
        let strides = ((end - self.start) / STRIDE) as usize;
        while self.prefixes.len() <= strides {
            let known = self.prefixes.len() - 1;
            let at = self.start + known as u64 * STRIDE;
            let piece = blocks.peek(at, PIECE as usize)?;
            if (piece.len() as u64) < STRIDE {
                return Ok(None);
            }
            for stride in piece.chunks_exact(STRIDE as usize) {
                let before = self.prefixes[self.prefixes.len() - 1];
                self.prefixes.push(self.algorithm.join(before, self.algorithm.checksum(stride), STRIDE));
            }
        }
        let at = self.start + strides as u64 * STRIDE;
        let rest = checksum_of(blocks, self.algorithm, at..end)?;
        Ok(rest.map(|rest| self.algorithm.join(self.prefixes[strides], rest, end - at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_small_files_cost_no_more_than_a_large_one() {
        let start = |bytes: u64| Evidence::new(0, bytes).left(0);
        assert_eq!(start(100), MIN_INITIAL);
        assert_eq!(start(1 << 40), MAX_INITIAL);
        for bytes in [1 << 14, 1 << 20, 1 << 22, 1 << 30] {
            assert!(start(bytes) <= INITIAL_PER_BYTE * bytes, "{bytes}");
        }
    }

    #[test]
    fn any_range_of_a_file_has_the_checksum_of_its_bytes() -> io::Result<()> {
        const START: u64 = 100;
        let data: Vec<u8> = (0..300_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
        let path = std::env::temp_dir().join(format!("magicbyte-evidence-{}.log", std::process::id()));
        std::fs::write(&path, &data)?;
        for algorithm in [Algorithm::Castagnoli, Algorithm::Ieee] {
            let mut blocks = Blocks::open(&path.as_path().into(), data.len() as u64, None, 1 << 16)?;
            let mut file = FileChecksum::new(algorithm, START);
            // The first range begins before the start; some are short, some end on a stride.
            for (start, end) in [
                (0, 200_000),
                (100, 299_000),
                (250_000, 300_000),
                (101, 9_000),
                (20_000, 20_000),
                (4_196, 12_388),
            ] {
                let expected = algorithm.checksum(&data[start as usize..end as usize]);
                assert_eq!(file.of(&mut blocks, start..end)?, Some(expected), "{start}..{end}");
            }
            // The listed size is larger than the file.
            let mut blocks = Blocks::open(&path.as_path().into(), 400_000, None, 1 << 16)?;
            assert_eq!(file.of(&mut blocks, 100..350_000)?, None);
            assert_eq!(file.of(&mut blocks, 299_999..300_001)?, None);
        }
        std::fs::remove_file(path)
    }
}
