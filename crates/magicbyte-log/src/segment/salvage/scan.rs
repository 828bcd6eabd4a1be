//! A scan of the bytes after damage, for batches whose CRC holds.

use std::io;

use magicbyte::internals::{
    Algorithm, HEADER_SIZE_UP_TO_MAGIC, LOG_OVERHEAD, RECORD_OVERHEAD_V0, RangeChecksum,
};
use magicbyte::{Batch, RECORD_BATCH_OVERHEAD};

use super::damage::Damage;
use super::evidence::{OwnChecksum, REACH};
use super::header::{is_as_written, sizes_fit};
use super::islands::{Candidate, choose};
use super::{MIN_STEP, Verdict};

/// The first batch after the damage that continues the log.
pub(super) fn next_batch(damage: &mut Damage<'_>) -> io::Result<Verdict> {
    let reach = damage.reach();
    let mut scan = Scan::new(damage);
    let (mut at, mut step) = (damage.start, reach.max(MIN_STEP) as usize);
    loop {
        let window = damage.blocks.at(at, 2 * step)?;
        let is_last = at + window.len() as u64 >= damage.blocks.size() || window.len() < step;
        let starts = if is_last { window.len() } else { step };
        damage.spend(starts as u64);
        if let Some(proven) = scan.window(damage, &window, at, starts)? {
            return Ok(Verdict::End(proven));
        }
        at += starts as u64;
        if is_last && at == damage.blocks.size() && scan.proves_its_end() {
            return Ok(Verdict::End(at));
        }
        // Half the reach past the first candidate is enough to weigh it against what follows.
        if is_last || scan.candidates.first().is_some_and(|first| at >= first.start + reach / 2) {
            if let Some(start) = first_of_the_log(damage, &scan.candidates) {
                return Ok(Verdict::End(start));
            }
            scan.candidates.clear();
        }
        if is_last {
            return Ok(Verdict::Unknown);
        }
        step = (2 * step).min(REACH);
    }
}

/// The start of the first candidate that belongs to the log. After a batch that may be torn, it may skip no more
/// offsets than bytes: the candidates are likely that batch's content.
fn first_of_the_log(damage: &Damage<'_>, candidates: &[Candidate]) -> Option<u64> {
    let (expected, limits) = (damage.min_next_offset(), &damage.limits);
    // Batches with far offsets count only where none is near.
    let start = choose(candidates, &(expected..=limits.near()))
        .or_else(|| choose(candidates, &(expected..=limits.max_offset)))?;
    let continues =
        |batch: &Candidate| batch.start == start && batch.first.abs_diff(expected) <= start - damage.start;
    (!damage.may_be_torn || candidates.iter().any(continues)).then_some(start)
}

/// One pass over the bytes after the damage, in windows.
pub(super) struct Scan {
    checksum: Option<OwnChecksum>,
    /// The end of the last batch whose CRC holds, whether it fits the log or not: its inside is not searched.
    passed: u64,
    pub(super) candidates: Vec<Candidate>,
}

impl Scan {
    pub(super) fn new(damage: &Damage<'_>) -> Self {
        let checksum = OwnChecksum::read(&damage.header);
        Self { checksum, passed: damage.start + 1, candidates: Vec::new() }
    }

    /// True if the bad batch's own checksum can still prove where it ends.
    pub(super) fn may_prove(&self) -> bool {
        self.checksum.is_some()
    }

    /// True if the bad batch's own checksum proves that it ends where the last window did.
    fn proves_its_end(&self) -> bool {
        self.checksum.is_some_and(|checksum| checksum.holds())
    }

    /// Searches for batches that begin in the first `starts` bytes of a window at `at`. Returns the start of a
    /// batch if the bad batch's own checksum proves that it ends there.
    pub(super) fn window(
        &mut self,
        damage: &mut Damage<'_>,
        bytes: &[u8],
        at: u64,
        starts: usize,
    ) -> io::Result<Option<u64>> {
        let mut window = Window::new(bytes, at);
        let mut next = self.passed.saturating_sub(at) as usize;
        while let Some(start) = window.next_magic(next).filter(|&start| start < starts) {
            next = start + 1;
            let Some(candidate) = window.candidate(start, damage.limits.max_batch_size) else { continue };
            if !window.crc_holds(damage, &candidate)? {
                continue;
            }
            // No batch is larger than the limit, so beyond it the checksum would hold only by chance.
            let is_near = candidate.start - damage.start <= damage.limits.max_batch_size as u64;
            if is_near
                && self
                    .checksum
                    .is_some_and(|checksum| window.extended(checksum, damage.start, start).holds())
            {
                return Ok(Some(candidate.start));
            }
            // What looks like batches inside of a good batch is its content.
            self.passed = candidate.end;
            next = (candidate.end - at) as usize;
            // The bytes before it are read only here: of the bytes that look like a header, few are one.
            let before = window.before(start);
            self.candidates.push(Candidate { before, ..candidate });
        }
        self.checksum = self.checksum.map(|checksum| window.extended(checksum, damage.start, starts));
        Ok(None)
    }
}

/// A part of the file in memory, with the checksums of its ranges.
struct Window<'a> {
    bytes: &'a [u8],
    /// Its position in the file.
    at: u64,
    castagnoli: RangeChecksum<'a>,
    ieee: RangeChecksum<'a>,
}

impl<'a> Window<'a> {
    fn new(bytes: &'a [u8], at: u64) -> Self {
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
    fn extended(&mut self, mut checksum: OwnChecksum, damage: u64, end: usize) -> OwnChecksum {
        let start = (damage + checksum.covered).saturating_sub(self.at) as usize;
        if end > start {
            checksum.add(self.checksum(checksum.algorithm, start, end), (end - start) as u64);
        }
        checksum
    }

    /// The next place of a byte that could be a magic, relative to the batch that it would belong to.
    fn next_magic(&self, from: usize) -> Option<usize> {
        let rest = self.bytes.get(from + HEADER_SIZE_UP_TO_MAGIC - 1..)?;
        Some(from + memchr::memchr3(0, 1, 2, rest)?)
    }

    /// A header at `start` whose fields could be a batch's; its offset may not fit the log.
    fn candidate(&self, start: usize, max_size: usize) -> Option<Candidate> {
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
    fn before(&self, start: usize) -> [u8; 5] {
        std::array::from_fn(|i| (start + i).checked_sub(5).map_or(0, |at| self.bytes[at]))
    }

    /// True if the CRC of a candidate in this window holds, even if the candidate ends after it.
    fn crc_holds(&mut self, damage: &mut Damage<'_>, candidate: &Candidate) -> io::Result<bool> {
        if candidate.end > damage.blocks.size() {
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
        if !is_as_written(damage.blocks, &self.bytes[start..], candidate.start, candidate.end)? {
            return Ok(false);
        }
        let covered = candidate.start + checksum.start..candidate.end;
        let computed = damage.evidence.checksum(damage.blocks, checksum.algorithm, covered, damage.start)?;
        Ok(computed == Some(checksum.stored))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{batch, compressed, junk, resume, set_size};

    #[test]
    fn the_first_batch_that_continues_the_log() {
        let noise = junk(500);
        let next = batch(11, &[b"next"]);
        assert_eq!(
            resume(&[&noise, &batch(9, &[b"before"]), &next]),
            Some(500 + batch(9, &[b"before"]).len())
        );
        assert_eq!(resume(&[&noise, &next]), Some(500));
        assert_eq!(resume(&[&noise]), None);
        // Batches with far offsets, of old cleaners, count only if there are no others.
        let far = batch(11 + (1 << 32), &[b"far"]);
        assert_eq!(resume(&[&noise, &far]), Some(500));
        assert_eq!(resume(&[&noise, &far, &noise, &next]), Some(1000 + far.len()));
    }

    #[test]
    fn the_own_checksum_ends_the_bad_batch_behind_batches_in_it() {
        // Beyond the reach of `wrong_length`; the junk after the inner batch leads no header on.
        let inner = batch(11, &[b"inner"]);
        let mut bad = compressed(10, &[&junk(1 << 20), &inner[..], &junk(40)].concat());
        let size = bad.len();
        set_size(&mut bad, 500);
        assert_eq!(resume(&[&bad, &batch(12, &[b"next"])]), Some(size));
        // It is the last batch.
        assert_eq!(resume(&[&bad]), Some(size));
    }
}
