//! Where a log goes on behind a batch that cannot be right.
//!
//! A value may hold whole batches, so a right CRC alone proves nothing. In this order:
//!
//! 1. The batch's **declared length**, if the headers from there on lead to a sound batch.
//! 2. Its **own checksum**, which does not cover its length: where the CRC of the bytes up to another
//!    batch is the stored one, the bad batch ends there, whatever sound batches records hold.
//! 3. A **scan** for batches whose CRC holds and whose offsets go on (`salvage_scan.rs`).
//!
//! Work is linear in the file, whatever lengths headers claim and however often damage comes. What is
//! looked at because of damage is paid from a budget that grows with the bytes passed; as it runs
//! out, evidence is gathered over shorter ways, down to the first sound batch that fits, while
//! checksums of long ranges come from prefixes (`evidence.rs`).

use std::io;

use super::blocks::Blocks;
use super::evidence::{Evidence, OwnChecksum, REACH};
use super::salvage_scan::{Scan, choose};
use crate::batches::{Batch, Frame, HEADER_SIZE_UP_TO_MAGIC};
use crate::bytes::cursor::be;
use crate::error::{Error, ErrorKind};
use crate::record::RECORD_BATCH_OVERHEAD;

const BLOCK: usize = 1 << 20;
/// What looking at a header costs, in bytes.
const HEADER_EFFORT: u64 = 256;
/// A scan that may not look far begins with this many bytes.
const SMALLEST_STEP: u64 = 1 << 10;
/// No codec inflates a byte to more records: a zstd block of four bytes is at most 128 KiB.
const MOST_RECORDS_A_BYTE: i64 = 8 << 10;
/// A batch this large is not loaded for its CRC alone once damage has come often.
const LARGE: usize = 64 << 10;

/// What a batch must fit to be the log's next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The smallest offset it can have.
    pub(super) expected: i64,
    /// The largest offset the segment can hold.
    pub(super) max_offset: i64,
    /// Larger batches are not loaded.
    pub(super) max_batch_size: usize,
}

/// Finds the way out of damage; one a reader.
#[derive(Debug)]
pub(super) struct Salvage {
    evidence: Evidence,
    /// Where headers led to the last time: the position from which they do, and the sound batch.
    led: Option<(u64, u64)>,
}

impl Salvage {
    /// For a reader that begins at `start`.
    pub(super) fn new(start: u64) -> Self {
        Self { evidence: Evidence::new(start), led: None }
    }

    /// Whether a batch with these offsets, which ends at `end`, fits between its neighbours. Base offsets
    /// lie outside the CRC: the neighbours are all there is to check them by. None if it does, else
    /// the offset that does not.
    pub(super) fn misfit(
        &mut self,
        blocks: &mut Blocks,
        limits: &Limits,
        (first, last): (i64, i64),
        end: u64,
    ) -> io::Result<Option<i64>> {
        if first < limits.expected {
            return Ok(Some(first));
        }
        if last > limits.max_offset || last < first {
            return Ok(Some(last));
        }
        if first > limits.expected {
            // A gap before it may be compaction, or the next batch may show that this one's
            // offset is too high.
            let next = blocks.peek(end, RECORD_BATCH_OVERHEAD)?;
            if next.len() >= HEADER_SIZE_UP_TO_MAGIC
                && (limits.expected..=last).contains(&be!(&next, 0, i64))
                && self.evidence.is_sound(blocks, &next, end, limits.max_batch_size, end)?
            {
                return Ok(Some(first));
            }
        }
        Ok(None)
    }

    /// Headers that claim long ranges one after the other must not cost these ranges each time: whether a
    /// large batch is not worth loading, since its CRC is known to be wrong.
    pub(super) fn refuses(
        &mut self,
        blocks: &mut Blocks,
        position: u64,
        size: usize,
    ) -> io::Result<Option<Error>> {
        if size <= LARGE || size as u64 <= self.evidence.left(position) {
            return Ok(None);
        }
        let header = blocks.peek(position, RECORD_BATCH_OVERHEAD)?;
        let (Ok(batch), Some(own)) = (Batch::from_header(&header, position), OwnChecksum::read(&header))
        else {
            return Ok(None);
        };
        let (covered, stored) = (position + own.start..position + size as u64, own.stored);
        let computed = self.evidence.checksum(blocks, own.algorithm, covered, position)?;
        let wrong = computed.filter(|&computed| computed != stored);
        Ok(wrong.map(|computed| batch.place(ErrorKind::CrcMismatch { stored, computed }.into())))
    }

    /// So many bytes were looked at for nothing.
    pub(super) fn spend(&mut self, bytes: usize) {
        self.evidence.spend(bytes as u64);
    }

    /// Position of the first batch behind the one at `damage`, or the file's size if that one is whole
    /// and the last. `declared_end`: where its length says it ends, if that is a length at all.
    /// None: no batch of this log follows.
    pub(super) fn resume(
        &mut self,
        blocks: &mut Blocks,
        damage: u64,
        declared_end: Option<u64>,
        limits: &Limits,
    ) -> io::Result<Option<u64>> {
        let header = blocks.at(damage, RECORD_BATCH_OVERHEAD)?;
        if let Some(end) = declared_end.filter(|&end| end <= blocks.size()) {
            let next = self.by_declared_length(blocks, damage, &header, end, limits)?;
            if next.is_some() {
                let sooner = if next == Some(end) {
                    self.ends_sooner(blocks, damage, &header, end, limits)?
                } else {
                    None
                };
                return Ok(sooner.or(next));
            }
        }
        self.by_scan(blocks, damage, &header, limits)
    }

    /// Follows headers from the declared end on. None if they lead nowhere.
    fn by_declared_length(
        &mut self,
        blocks: &mut Blocks,
        damage: u64,
        header: &[u8],
        end: u64,
        limits: &Limits,
    ) -> io::Result<Option<u64>> {
        let reach = self.evidence.reach(damage);
        let mut proof = OwnChecksum::read(header).filter(|_| reach > 0);
        let rest = blocks.size() - damage;
        let (mut at, mut expected) = (end, first_offset_behind(header, rest, limits));
        let led = self.led.take().filter(|&(from, sound)| from == damage && end <= sound);
        let mut sound_at = led.map(|(_, sound)| sound);
        // Led to a sound neighbour that the reader will refuse: only the own checksum knows better.
        let mut refused = None;
        loop {
            if let Some(proof) = &mut proof {
                let looked_at = proof.extend(blocks, damage, at)?;
                self.evidence.spend(looked_at);
                if at != end && proof.holds() {
                    return Ok(Some(at));
                }
            }
            let sound = sound_at.is_some();
            if at == blocks.size() {
                return Ok((sound || at == end).then_some(end));
            }
            let next = blocks.peek(at, RECORD_BATCH_OVERHEAD)?;
            self.evidence.spend(HEADER_EFFORT);
            if next.iter().all(|&byte| byte == 0) {
                // One zero may be the bad batch's own: a last record without headers ends in it.
                if let Some(proof) = &mut proof {
                    proof.extend(blocks, damage, at + 1)?;
                    if proof.holds() {
                        return Ok(Some(at + 1));
                    }
                }
                if self.evidence.left(damage) == 0 {
                    return Ok(refused);
                }
                let zeros = zeros_from(blocks, at)?;
                self.evidence.spend(zeros);
                // Records end in zeros: a few of them say nothing about a length.
                let is_tail = next.len() >= HEADER_SIZE_UP_TO_MAGIC;
                let to_the_end = zeros == blocks.size() - at;
                return Ok((to_the_end && (sound || at == end && is_tail)).then_some(end).or(refused));
            }
            let size = match Frame::read(&next) {
                Ok(Frame::Whole { size }) => size,
                Ok(Frame::Cut { needed }) => next.len() + needed as usize,
                Err(_) => return Ok(refused),
            };
            // What claims more than the file has is a tail only if a scan finds nothing better.
            if next.len() < HEADER_SIZE_UP_TO_MAGIC || size as u64 > blocks.size() - at {
                return Ok(refused);
            }
            let Ok(batch) = Batch::from_header(&next, at) else { return Ok(refused) };
            let (first, last) = (batch.stored_offset(), batch.last_offset());
            let fits = first >= expected && last >= first && last <= limits.max_offset;
            if !sound && self.evidence.is_sound(blocks, &next, at, limits.max_batch_size, damage)? {
                sound_at = Some(at);
            }
            if !fits && refused.is_none() {
                let refuses = first < limits.expected || last < first || last > limits.max_offset;
                if sound_at.is_none() || !refuses || at != end {
                    return Ok(None);
                }
                refused = Some(end);
            }
            expected = last.saturating_add(1);
            if let Some(sound) = sound_at
                && (proof.is_none() || at - damage >= reach)
            {
                self.led = Some((end, sound));
                return Ok(Some(end));
            }
            if sound_at.is_none() && self.evidence.left(damage) == 0 {
                return Ok(None);
            }
            at += size as u64;
        }
    }

    /// A length that is too large may lead into the value of a later batch, or by chance to where a later
    /// batch begins: whether the bad batch ends before `end`. Its own checksum tells, or sound batches
    /// with the offsets that are missing between the two; before the end of the file, the next ones.
    fn ends_sooner(
        &mut self,
        blocks: &mut Blocks,
        damage: u64,
        header: &[u8],
        end: u64,
        limits: &Limits,
    ) -> io::Result<Option<u64>> {
        let (next, is_last) = (blocks.peek(end, RECORD_BATCH_OVERHEAD)?, end == blocks.size());
        let behind = match Batch::from_header(&next, end) {
            Ok(batch) => batch.stored_offset(),
            Err(_) if is_last => limits.max_offset,
            Err(_) => i64::MIN,
        };
        let rest = blocks.size() - damage;
        let missing = first_offset_behind(header, rest, limits)..=behind.saturating_sub(1);
        let end = end.min(damage + self.evidence.left(damage).max(SMALLEST_STEP));
        // What claims to end inside the window is judged from memory.
        let ahead = if self.evidence.reach(damage) >= BLOCK as u64 { BLOCK } else { LARGE };
        let mut scan = Scan::new(damage, header, limits);
        let mut at = damage;
        while at < end && (scan.may_prove() || !missing.is_empty()) {
            let starts = (end - at).min(REACH as u64) as usize;
            let window = blocks.at(at, starts + ahead)?;
            if window.len() < starts {
                break;
            }
            self.evidence.spend(starts as u64);
            if let Some(proven) = scan.window(&mut self.evidence, blocks, &window, at, starts)? {
                return Ok(Some(proven));
            }
            at += starts as u64;
        }
        let next = next_offsets(header, rest, limits);
        let goes_on = |&at: &u64| {
            !is_last || scan.found.iter().any(|batch| batch.start == at && next.contains(&batch.first))
        };
        Ok(choose(&scan.found, &missing).filter(goes_on))
    }

    /// Looks at every byte behind the damage for the first batch that goes on with the log.
    fn by_scan(
        &mut self,
        blocks: &mut Blocks,
        damage: u64,
        header: &[u8],
        limits: &Limits,
    ) -> io::Result<Option<u64>> {
        let rest = blocks.size() - damage;
        let possible = first_offset_behind(header, rest, limits)..=limits.max_offset;
        let reach = self.evidence.reach(damage);
        let mut scan = Scan::new(damage, header, limits);
        let (mut at, mut step) = (damage, reach.max(SMALLEST_STEP) as usize);
        loop {
            let window = blocks.at(at, 2 * step)?;
            let is_last = at + window.len() as u64 >= blocks.size() || window.len() < step;
            let starts = if is_last { window.len() } else { step };
            self.evidence.spend(starts as u64);
            if let Some(proven) = scan.window(&mut self.evidence, blocks, &window, at, starts)? {
                return Ok(Some(proven));
            }
            at += starts as u64;
            if is_last {
                let whole = at == blocks.size() && scan.proves_what_it_passed();
                return Ok(if whole { Some(at) } else { choose(&scan.found, &possible) });
            }
            if scan.found.first().is_some_and(|first| at >= first.start + reach / 2) {
                if let Some(next) = choose(&scan.found, &possible) {
                    return Ok(Some(next));
                }
                scan.found.clear();
            }
            step = (2 * step).min(REACH);
        }
    }
}

/// The offsets the batch behind a bad one can have, if nothing is lost between them: by all its fields, by its
/// last offset, by its count. Damage may have hit one of them.
fn next_offsets(header: &[u8], rest: u64, limits: &Limits) -> [i64; 3] {
    let by_all = first_offset_behind(header, rest, limits);
    match Batch::from_header(header, 0) {
        Ok(Batch::V2(batch)) if batch.base_offset() == limits.expected => {
            let by_last = batch.last_offset().saturating_add(1);
            [by_all, by_last, batch.base_offset().saturating_add(batch.record_count().into())]
        }
        _ => [by_all; 3],
    }
}

/// How many zero bytes stand from `position` on.
pub(super) fn zeros_from(blocks: &mut Blocks, position: u64) -> io::Result<u64> {
    let mut at = position;
    loop {
        let block = blocks.at(at, BLOCK)?;
        let zeros = block.iter().take_while(|&&byte| byte == 0).count();
        at += zeros as u64;
        if zeros < block.len() || block.is_empty() {
            return Ok(at - position);
        }
    }
}

/// A header that says what the log expects and does not contradict itself claims its offsets, unless its
/// length or the `rest` of the file cannot hold as many records.
fn first_offset_behind(header: &[u8], rest: u64, limits: &Limits) -> i64 {
    match Batch::from_header(header, 0) {
        Ok(Batch::V2(batch))
            if batch.base_offset() == limits.expected
                && batch.record_count() == batch.last_offset_delta().wrapping_add(1)
                && batch.record_count() > 0
                && i64::from(batch.record_count()) <= most_records(header, rest)
                && batch.last_offset() <= limits.max_offset =>
        {
            batch.last_offset().saturating_add(1)
        }
        _ => limits.expected,
    }
}

/// How many records a batch can have by its length, of which no more than `rest` are in the file.
fn most_records(header: &[u8], rest: u64) -> i64 {
    let length = i64::from(be!(header, 8, i32));
    MOST_RECORDS_A_BYTE.saturating_mul(length.min(rest.try_into().unwrap_or(i64::MAX)))
}
