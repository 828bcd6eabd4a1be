//! A part of a file in memory, searched for batches.

use std::io;

use magicbyte::internals::{
    Algorithm, HEADER_SIZE_UP_TO_MAGIC, LOG_OVERHEAD, RECORD_OVERHEAD_V0, RangeChecksum,
};
use magicbyte::{Batch, RECORD_BATCH_OVERHEAD};

use super::evidence::{Evidence, OwnChecksum};
use super::header::{is_as_written, sizes_fit};
use super::islands::Candidate;
use crate::segment::blocks::Blocks;

/// A part of the file in memory, with the checksums of its ranges.
pub(super) struct Window<'a> {
    bytes: &'a [u8],
    /// Its position in the file.
    at: u64,
    castagnoli: RangeChecksum<'a>,
    ieee: RangeChecksum<'a>,
}

impl<'a> Window<'a> {
    pub(super) fn new(bytes: &'a [u8], at: u64) -> Self {
        Self {
            bytes,
            at,
            castagnoli: RangeChecksum::new(Algorithm::Castagnoli, bytes),
            ieee: RangeChecksum::new(Algorithm::Ieee, bytes),
        }
    }

    fn checksum(&mut self, algorithm: Algorithm, start: usize, end: usize) -> u32 {
        match algorithm {
            Algorithm::Castagnoli => self.castagnoli.of(start, end),
            Algorithm::Ieee => self.ieee.of(start, end),
        }
    }

    /// The checksum of a bad batch at `damage`, from where it was left to the window's first `end` bytes.
    pub(super) fn extended(&mut self, mut checksum: OwnChecksum, damage: u64, end: usize) -> OwnChecksum {
        let start = (damage + checksum.covered).saturating_sub(self.at) as usize;
        if end > start {
            checksum.add(self.checksum(checksum.algorithm, start, end), (end - start) as u64);
        }
        checksum
    }

    /// The next place of a byte that could be a magic, relative to the batch that it would belong to.
    pub(super) fn next_magic(&self, from: usize) -> Option<usize> {
        let rest = self.bytes.get(from + HEADER_SIZE_UP_TO_MAGIC - 1..)?;
        Some(from + memchr::memchr3(0, 1, 2, rest)?)
    }

    /// A header at `start` whose fields could be a batch's; its offset may not fit the log.
    pub(super) fn candidate(&self, start: usize, max_size: usize) -> Option<Candidate> {
        let (data, position) = (&self.bytes[start..], self.at + start as u64);
        let length = i32::from_be_bytes(*data.get(8..)?.first_chunk()?);
        let size = LOG_OVERHEAD + usize::try_from(length).ok()?;
        let min_size = match data[HEADER_SIZE_UP_TO_MAGIC - 1] {
            2 => RECORD_BATCH_OVERHEAD,
            _ => LOG_OVERHEAD + RECORD_OVERHEAD_V0,
        };
        if size < min_size || size > max_size || data.len() < min_size {
            return None;
        }
        let batch = Batch::from_header(&data[..min_size], position).ok()?;
        if batch.magic() < 2 && !sizes_fit(data, size) {
            return None;
        }
        let (first, last) = (batch.stored_offset(), batch.last_offset());
        (last >= first).then_some(Candidate {
            start: position,
            end: position + size as u64,
            first,
            last,
            before: [0; 5],
        })
    }

    /// The bytes right before `start`; zeros where the window begins.
    pub(super) fn before(&self, start: usize) -> [u8; 5] {
        std::array::from_fn(|i| (start + i).checked_sub(5).map_or(0, |at| self.bytes[at]))
    }

    /// True if the CRC of a candidate in this window holds, even if the candidate ends after it. Evidence is paid
    /// for as for damage at `damage`.
    pub(super) fn crc_holds(
        &mut self,
        (blocks, evidence): (&mut Blocks, &mut Evidence),
        damage: u64,
        candidate: &Candidate,
    ) -> io::Result<bool> {
        if candidate.end > blocks.size() {
            return Ok(false);
        }
        let (start, end) = ((candidate.start - self.at) as usize, (candidate.end - self.at) as usize);
        let header = &self.bytes[start..self.bytes.len().min(start + RECORD_BATCH_OVERHEAD)];
        let Some(checksum) = OwnChecksum::read(header) else { return Ok(false) };
        if end <= self.bytes.len() {
            return Ok(
                self.checksum(checksum.algorithm, start + checksum.start as usize, end) == checksum.stored
            );
        }
        if !is_as_written(blocks, &self.bytes[start..], candidate.start, candidate.end)? {
            return Ok(false);
        }
        let covered = candidate.start + checksum.start..candidate.end;
        let computed = evidence.checksum(blocks, checksum.algorithm, covered, damage)?;
        Ok(computed == Some(checksum.stored))
    }
}
