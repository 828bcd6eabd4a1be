//! The end of a bad batch by its length, if the headers from there on lead to a batch whose CRC holds.

use std::io;

use ::bytes::Bytes;

use magicbyte::Batch;
use magicbyte::internals::HEADER_SIZE_UP_TO_MAGIC;

use super::damage::Damage;
use super::evidence::{OwnChecksum, REACH};
use super::header::framed_size;
use super::islands::{Candidate, choose};
use super::scan::Scan;
use super::{BLOCK, LARGE, MIN_STEP, STEP_EFFORT, Verdict};

/// The end that the reader expects, if headers lead on from there and nothing shows that the batch ends before.
pub(super) fn declared_end(damage: &mut Damage<'_>) -> io::Result<Verdict> {
    let Some(end) = damage.declared_end.filter(|&end| end <= damage.blocks.size()) else {
        return Ok(Verdict::Unknown);
    };
    let Some(next) = HeaderWalk::begin(damage, end).run()? else { return Ok(Verdict::Unknown) };
    let sooner = if next == end { sooner_end(damage, end)? } else { None };
    Ok(Verdict::End(sooner.unwrap_or(next)))
}

/// A walk from header to header. The first batch whose CRC holds confirms the declared end. The walk goes on past
/// it while the bad batch's own checksum may still prove another end.
struct HeaderWalk<'a, 'b> {
    damage: &'a mut Damage<'b>,
    /// The declared end, where the walk begins.
    end: u64,
    /// The distance to go on for the checksum.
    reach: u64,
    at: u64,
    /// The smallest offset that the next header can have.
    expected: i64,
    checksum: Option<OwnChecksum>,
    /// The first batch of the walk whose CRC holds.
    intact: Option<u64>,
    /// True if the declared end leads to an intact batch that the reader will refuse because of its offset. Only
    /// the bad batch's own checksum is better evidence.
    is_refused: bool,
}

impl<'a, 'b> HeaderWalk<'a, 'b> {
    fn begin(damage: &'a mut Damage<'b>, end: u64) -> Self {
        let reach = damage.reach();
        // After each of many bad batches in a row, the walk would pass the same headers up to the same batch.
        let led = damage.led.take().filter(|&(from, intact)| from == damage.start && end <= intact);
        let (at, expected) = (end, damage.min_next_offset());
        let checksum = OwnChecksum::read(&damage.header).filter(|_| reach > 0);
        let intact = led.map(|(_, intact)| intact);
        Self { damage, end, reach, at, expected, checksum, intact, is_refused: false }
    }

    /// The end of the bad batch. None if the headers lead nowhere.
    fn run(mut self) -> io::Result<Option<u64>> {
        loop {
            if self.checksum_holds()? && self.at != self.end {
                return Ok(Some(self.at));
            }
            let header = self.header()?;
            let Some((size, batch)) = self.whole_batch(&header) else { return self.end_of_headers(&header) };
            if let Some(is_confirmed) = self.judge(&header, &batch)? {
                return Ok(is_confirmed.then_some(self.end));
            }
            self.at += size;
        }
    }

    /// True if the bad batch's own checksum holds up to this header.
    fn checksum_holds(&mut self) -> io::Result<bool> {
        let Some(checksum) = &mut self.checksum else { return Ok(false) };
        let inspected = checksum.extend(self.damage.blocks, self.damage.start, self.at)?;
        self.damage.spend(inspected);
        Ok(checksum.holds())
    }

    /// The next header, or no bytes at the end of the file.
    fn header(&mut self) -> io::Result<Bytes> {
        if self.at == self.damage.blocks.size() {
            return Ok(Bytes::new());
        }
        self.damage.spend(STEP_EFFORT);
        self.damage.header_at(self.at)
    }

    /// The size and the fields of a header's batch, if it ends in the file. A batch that claims more than the file
    /// has is the tail only if a scan finds nothing better.
    fn whole_batch<'h>(&self, header: &'h [u8]) -> Option<(u64, Batch<'h>)> {
        let size = framed_size(header)?;
        let is_whole = header.len() >= HEADER_SIZE_UP_TO_MAGIC && size <= self.damage.blocks.size() - self.at;
        Some((size, Batch::from_header(header, self.at).ok().filter(|_| is_whole)?))
    }

    /// True if the batch of a header confirms the declared end, false if it refutes it, None if the walk goes on.
    fn judge(&mut self, header: &[u8], batch: &Batch<'_>) -> io::Result<Option<bool>> {
        if self.intact.is_none() && self.damage.crc_holds_at(header, self.at)? {
            self.intact = Some(self.at);
        }
        if !self.accepts(batch.stored_offset(), batch.last_offset()) {
            return Ok(Some(false));
        }
        self.expected = batch.last_offset().saturating_add(1);
        Ok(match self.intact {
            Some(intact) if self.checksum.is_none() || self.at - self.damage.start >= self.reach => {
                *self.damage.led = Some((self.end, intact));
                Some(true)
            }
            None if self.damage.left() == 0 => Some(false),
            _ => None,
        })
    }

    /// True if the walk may pass a header with these offsets.
    fn accepts(&mut self, first: i64, last: i64) -> bool {
        let limits = &self.damage.limits;
        let is_possible = last >= first && last <= limits.near();
        if self.is_refused || is_possible && first >= self.expected {
            return true;
        }
        let is_readable = is_possible && first >= limits.expected;
        self.is_refused = self.intact.is_some() && !is_readable && self.at == self.end;
        self.is_refused
    }

    /// The end of the bad batch if no whole batch follows: `header` is not the header of one.
    fn end_of_headers(&mut self, header: &[u8]) -> io::Result<Option<u64>> {
        let (at, damage) = (self.at, &mut *self.damage);
        let (is_at_end, leads_to_intact) = (at == damage.blocks.size(), self.intact.is_some());
        let mut is_confirmed = self.is_refused || is_at_end && (leads_to_intact || at == self.end);
        if !is_at_end && header.iter().all(|&byte| byte == 0) {
            // One zero may belong to the bad batch: a last record without headers ends in one.
            if let Some(checksum) = &mut self.checksum {
                checksum.extend(damage.blocks, damage.start, at + 1)?;
                if checksum.holds() {
                    return Ok(Some(at + 1));
                }
            }
            // Records end in zeros, so a few zeros prove nothing about a length.
            let is_tail = at == self.end && header.len() >= HEADER_SIZE_UP_TO_MAGIC;
            is_confirmed |= (leads_to_intact || is_tail) && damage.blocks.is_zero_from(at)?;
        }
        Ok(is_confirmed.then_some(self.end))
    }
}

/// An end of the bad batch before `end`. A length that is too large may lead into the value of a later
/// batch, or by chance to the start of a later batch. The evidence is the bad batch's own checksum, or
/// intact batches with the offsets that are missing between the two. At the end of the file, only the
/// very next offsets count.
fn sooner_end(damage: &mut Damage<'_>, end: u64) -> io::Result<Option<u64>> {
    let (next, is_last) = (damage.header_at(end)?, end == damage.blocks.size());
    let first_after = match Batch::from_header(&next, end) {
        Ok(batch) => batch.stored_offset(),
        Err(_) if is_last => damage.limits.near(),
        Err(_) => i64::MIN,
    };
    let missing = damage.min_next_offset()..=first_after.saturating_sub(1);
    let end = end.min(damage.start + damage.left().max(MIN_STEP));
    // Batches that claim to end inside the window are checked from memory.
    let lookahead = if damage.reach() >= BLOCK as u64 { BLOCK } else { LARGE };
    let mut scan = Scan::new(damage);
    let mut at = damage.start;
    while at < end && (scan.may_prove() || !missing.is_empty()) {
        let starts = (end - at).min(REACH as u64) as usize;
        let window = damage.blocks.at(at, starts + lookahead)?;
        if window.len() < starts {
            break;
        }
        damage.spend(starts as u64);
        if let Some(proven) = scan.window(damage, &window, at, starts)? {
            return Ok(Some(proven));
        }
        at += starts as u64;
    }
    let Some(start) = choose(&scan.candidates, &missing) else { return Ok(None) };
    let next = damage.next_offsets();
    let continues = |batch: &Candidate| batch.start == start && next.contains(&batch.first);
    Ok((!is_last || scan.candidates.iter().any(continues)).then_some(start))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{batch, compressed, junk, position, resume, set_size, spoil};

    #[test]
    fn headers_lead_to_an_intact_batch() {
        // The offsets of the inner and the next batch contradict each other, and the inner one has more bytes.
        let inner = batch(11, &[&junk(100)]);
        let mut bad = compressed(10, &[&junk(20), &inner[..], &junk(40)].concat());
        spoil(&mut bad);
        assert_eq!(resume(&[&bad, &batch(11, &[b"next"])]), Some(bad.len()));
        // Over a second bad batch, too, whose own header leads on.
        let mut second = compressed(11, &junk(20));
        spoil(&mut second);
        assert_eq!(resume(&[&bad, &second, &batch(12, &[b"next"])]), Some(bad.len()));
    }

    #[test]
    fn the_own_checksum_is_better_evidence_than_an_intact_batch() {
        // Beyond the reach of `wrong_length`, so that only the walk compares the checksum.
        let inner = [batch(11, &[b"inner"]), batch(12, &[b"inner"])].concat();
        let mut bad = compressed(10, &[&junk(1 << 20), &inner[..]].concat());
        let (inner_at, size) = (bad.len() - inner.len(), bad.len());
        set_size(&mut bad, inner_at);
        assert_eq!(resume(&[&bad, &batch(13, &[b"next"])]), Some(size));
    }

    #[test]
    fn zeros_after_the_declared_end() {
        // The tail of a preallocated file: nothing else shows that the batch ends here.
        let mut bad = compressed(10, &[&junk(20), &batch(11, &[b"inner"])[..], &junk(40)].concat());
        spoil(&mut bad);
        assert_eq!(resume(&[&bad, &[0; 100]]), Some(bad.len()));
    }

    #[test]
    fn a_length_that_leads_past_the_next_batch() {
        let mut bad = compressed(10, &junk(60));
        spoil(&mut bad);
        let (next, later) = (batch(11, &[b"next", b"next"]), batch(13, &[b"later"]));
        let size = bad.len();
        set_size(&mut bad, size + next.len());
        assert_eq!(resume(&[&bad, &next, &later]), Some(size));
        // At the end of the file, only the very next offset counts.
        assert_eq!(resume(&[&bad, &next]), Some(size));
        let mut far = next.clone();
        far[7] = 50;
        assert_eq!(resume(&[&bad, &far]), Some(size + next.len()));
        assert_eq!(position(&[&bad[..], &next].concat(), &next), size);
    }
}
