//! A scan of the bytes after damage, for batches whose CRC holds.

use std::io;

use super::damage::Damage;
use super::evidence::{OwnChecksum, REACH};
use super::islands::{Candidate, choose};
use super::window::Window;
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
            let file = (&mut *damage.blocks, &mut *damage.evidence);
            if !window.crc_holds(file, damage.start, &candidate)? {
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
