//! Where the log continues after a bad batch.
//!
//! A value may hold whole batches, so a matching CRC alone proves nothing. Evidence is tried in this order:
//!
//! 1. The **same batch again**: an interrupted append was repeated in full.
//! 2. The batch's **own sizes**: one flipped bit explains the checksum up to the declared end, or the sizes
//!    of its records lead there or to a batch whose CRC holds (`extent.rs`). A batch that claims more than
//!    the file has, and whose records are cut off, is a torn tail, whatever its values hold.
//! 3. Its **declared length**, if the headers from there lead to a batch whose CRC holds.
//! 4. Its **own checksum**, which does not cover its length: if the CRC of the bytes up to another batch is
//!    the stored one, the bad batch ends there, whatever batches its records hold.
//! 5. A **scan** for batches whose CRC holds and whose offsets continue the log (`salvage_scan.rs`).
//!
//! Work is linear in the file, whatever lengths headers claim and however frequent damage is. It is paid from
//! a budget that grows with the bytes passed. As the budget runs out, evidence is gathered over shorter
//! distances, down to the first batch that fits and whose CRC holds; checksums of long ranges are computed
//! from prefixes (`evidence.rs`).

use std::io;
use std::ops::Range;

use memchr::memmem;

use magicbyte::internals::{Algorithm, Frame, HEADER_SIZE_UP_TO_MAGIC, LOG_OVERHEAD, RECORD_OVERHEAD_V0, be};
use magicbyte::{Batch, Compression, Decompressor, Error, ErrorKind, RECORD_BATCH_OVERHEAD};

use crate::segment::blocks::Blocks;
use crate::segment::evidence::{Evidence, OwnChecksum, REACH};
use crate::segment::extent::{Extent, extent, key_at};
use crate::segment::limits::Limits;
use crate::segment::salvage_scan::{Candidate, Scan, as_written, choose};
use crate::segment::wrapper::inner_messages;

const BLOCK: usize = 1 << 20;
/// The cost of inspecting a header, in bytes of the budget.
const HEADER_EFFORT: u64 = 256;
/// The maximum number of headers after a batch that are used to check its offset.
const HEADERS: usize = 16;
/// The first step of a scan with little budget left, in bytes.
const SMALLEST_STEP: u64 = 1 << 10;
/// No codec inflates one byte to more records than this: a zstd block of four bytes is at most 128 KiB.
const MAX_RECORDS_PER_BYTE: i64 = 8 << 10;
/// Once damage has been frequent, a batch larger than this is not loaded only to check its CRC. Nor is a
/// flipped bit accepted as the explanation of its damage: among this many bits, one fits by chance once in
/// 4,000 times.
const LARGE: usize = 64 << 10;

/// The end of a bad batch, by its own sizes.
enum Sizes {
    /// The batch ends here.
    End(u64),
    /// The batch was never completely written.
    Torn,
    /// The header claims more than the file has, and nothing in the batch confirms or refutes it.
    Claimed,
    Unknown,
}

/// Finds where to resume after damage; each reader has one.
#[derive(Debug)]
pub(crate) struct Salvage {
    evidence: Evidence,
    /// The last time that headers led to a batch whose CRC holds: the position where they started, and the
    /// position of that batch.
    led: Option<(u64, u64)>,
}

impl Salvage {
    /// The state for a reader of the bytes `start..end`.
    pub(crate) fn new(start: u64, end: u64) -> Self {
        Self { evidence: Evidence::new(start, end), led: None }
    }

    /// Checks that the offsets of a batch at `range` fit between its neighbors'. Base offsets are outside the
    /// CRC, so the neighbors are the only evidence. None if they fit, else the offset that does not.
    pub(crate) fn misfit(
        &mut self,
        blocks: &mut Blocks,
        limits: &Limits,
        (first, last): (i64, i64),
        range: Range<u64>,
    ) -> io::Result<Option<i64>> {
        let end = range.end;
        if first < limits.expected {
            return Ok(Some(first));
        }
        if last > limits.max_offset || last < first {
            return Ok(Some(last));
        }
        // A gap before it may come from compaction, or later batches may show that this offset is too high.
        let is_too_high = first > limits.expected
            && self.is_contradicted(blocks, limits, last, end)?
            && !follows(blocks, range, limits)?;
        if !is_too_high && last > limits.near() && !self.is_confirmed(blocks, limits, last, end)? {
            return Ok(Some(last));
        }
        Ok(is_too_high.then_some(first))
    }

    /// True if the log continues at `position` after the offset `last`: a batch whose CRC holds follows,
    /// possibly after damaged batches, or nothing follows. A wrong offset far ahead, followed by damage, would
    /// also lose all batches after that damage.
    fn is_confirmed(
        &mut self,
        blocks: &mut Blocks,
        limits: &Limits,
        last: i64,
        position: u64,
    ) -> io::Result<bool> {
        let mut at = position;
        for _ in 0..HEADERS {
            let next = blocks.peek(at, RECORD_BATCH_OVERHEAD)?;
            if next.iter().all(|&byte| byte == 0) {
                return Ok(at.saturating_add(blocks.zeros_from(at)?) >= blocks.size());
            }
            let Some(length) = declared_length(&next) else { return Ok(next.len() < LOG_OVERHEAD) };
            if be!(&next, 0, i64) <= last {
                return Ok(false);
            }
            // The tail: its batch was not written completely.
            if at.saturating_add(length) > blocks.size()
                || self.evidence.crc_holds_at(blocks, &next, at, limits.max_batch_size, position)?
            {
                return Ok(true);
            }
            at = at.saturating_add(length);
        }
        Ok(false)
    }

    /// True if a batch follows at `position` whose CRC holds and whose offset is between the expected offset
    /// and `last`. Damaged batches may be in between.
    fn is_contradicted(
        &mut self,
        blocks: &mut Blocks,
        limits: &Limits,
        last: i64,
        position: u64,
    ) -> io::Result<bool> {
        let mut at = position;
        for _ in 0..HEADERS {
            let next = blocks.peek(at, RECORD_BATCH_OVERHEAD)?;
            if next.len() < HEADER_SIZE_UP_TO_MAGIC || be!(&next, 0, i64) > last {
                break;
            }
            let (Ok(_), Some(length)) = (Frame::read(&next), declared_length(&next)) else { break };
            if be!(&next, 0, i64) >= limits.expected
                && self.evidence.crc_holds_at(blocks, &next, at, limits.max_batch_size, position)?
            {
                return Ok(true);
            }
            at = at.saturating_add(length);
        }
        Ok(false)
    }

    /// Refuses to load a large batch whose CRC is known to be wrong; returns the error. Headers that claim
    /// long ranges one after another must not cost those ranges each time.
    pub(crate) fn refuses(
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

    /// Spends this many bytes of the budget.
    pub(crate) fn spend(&mut self, bytes: usize) {
        self.evidence.spend(bytes as u64);
    }

    /// Position of the first batch after the one at `damage`, or the file's size if that batch is whole and
    /// the last. `declared_end` is where its length puts its end, if the length is possible at all. None if
    /// no batch of this log follows.
    pub(crate) fn resume(
        &mut self,
        blocks: &mut Blocks,
        damage: u64,
        declared_end: Option<u64>,
        limits: &Limits,
    ) -> io::Result<Option<u64>> {
        let header = blocks.at(damage, RECORD_BATCH_OVERHEAD)?;
        if let Some(again) = self.appended_again(blocks, damage, &header, limits)? {
            return Ok(Some(again));
        }
        let sizes = self.by_sizes(blocks, damage, &header, limits)?;
        let torn = match sizes {
            Sizes::End(end) => return Ok(Some(end)),
            Sizes::Torn => return Ok(None),
            Sizes::Claimed => true,
            Sizes::Unknown => false,
        };
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
        self.by_scan(blocks, damage, &header, torn, limits)
    }

    /// Where the batch at `damage` begins a second time, whole: the first append was interrupted, or a page
    /// is in the file twice.
    fn appended_again(
        &mut self,
        blocks: &mut Blocks,
        damage: u64,
        header: &[u8],
        limits: &Limits,
    ) -> io::Result<Option<u64>> {
        // A batch in its own value cannot be as long as itself.
        let (Some(prefix), Some(length)) = (header.first_chunk::<LOG_OVERHEAD>(), declared_length(header))
        else {
            return Ok(None);
        };
        let finder = memmem::Finder::new(prefix);
        let (mut at, end) = (damage + 1, damage + self.evidence.reach(damage).min(length.max(LARGE as u64)));
        while at < end {
            let window = blocks.peek(at, (end - at).min(LARGE as u64) as usize + LOG_OVERHEAD)?;
            self.evidence.spend(window.len() as u64 / 16);
            for hit in finder.find_iter(&window) {
                let position = at + hit as u64;
                let next = blocks.peek(position, RECORD_BATCH_OVERHEAD)?;
                if self.evidence.crc_holds_at(blocks, &next, position, limits.max_batch_size, damage)? {
                    return Ok(Some(position));
                }
            }
            if window.len() <= LOG_OVERHEAD {
                break;
            }
            at += (window.len() - LOG_OVERHEAD) as u64 + 1;
        }
        Ok(None)
    }

    /// The end of the batch, by its own sizes and checksum.
    fn by_sizes(
        &mut self,
        blocks: &mut Blocks,
        damage: u64,
        header: &[u8],
        limits: &Limits,
    ) -> io::Result<Sizes> {
        let left = self.evidence.left(damage);
        let Some(length) = declared_length(header).filter(|_| left > 0) else { return Ok(Sizes::Unknown) };
        let declared_end = damage + length;
        let fits_the_file = declared_end <= blocks.size();
        let claims = claims_its_offsets(header, blocks.size() - damage, limits);
        if fits_the_file
            && length <= LARGE as u64
            && self.evidence.is_a_bit_off(blocks, header, damage, declared_end)?
        {
            return Ok(Sizes::End(declared_end));
        }
        if let Some(end) = self.by_checksum(blocks, damage, header)? {
            return Ok(Sizes::End(end));
        }
        let most = left.min(if fits_the_file { limits.max_batch_size as u64 } else { length });
        let (extent, walked) = extent(blocks, damage, header, most, !fits_the_file)?;
        self.evidence.spend(walked);
        Ok(match extent {
            Extent::Ends(end)
                if (end == declared_end
                    || !fits_the_file
                    || !self.ends_at(blocks, damage, header, declared_end, limits)?)
                    && self.ends_at(blocks, damage, header, end, limits)? =>
            {
                Sizes::End(end)
            }
            Extent::Ends(end)
                if end == declared_end && !self.is_straddled(blocks, damage, header, end, limits)? =>
            {
                Sizes::End(end)
            }
            _ if fits_the_file || !(limits.expected..=limits.near()).contains(&be!(header, 0, i64)) => {
                Sizes::Unknown
            }
            Extent::Torn if claims || as_written(blocks, header, damage, declared_end)? => Sizes::Torn,
            Extent::Hidden if claims && as_written(blocks, header, damage, declared_end)? => Sizes::Claimed,
            _ => Sizes::Unknown,
        })
    }

    /// Where the batch ends if only its length is wrong: its checksum covers everything else.
    fn by_checksum(&mut self, blocks: &mut Blocks, damage: u64, header: &[u8]) -> io::Result<Option<u64>> {
        let Some(own) = OwnChecksum::read(header) else { return Ok(None) };
        let least = match own.algorithm {
            Algorithm::Castagnoli => RECORD_BATCH_OVERHEAD,
            Algorithm::Ieee => LOG_OVERHEAD + RECORD_OVERHEAD_V0,
        };
        let most = self.evidence.reach(damage).min(BLOCK as u64).min(blocks.size() - damage);
        let (end, looked_at) = own.end(blocks, damage, least as u64, most)?;
        self.evidence.spend(looked_at);
        Ok(end)
    }

    /// True if the batch at `damage` ends at `end`, as its sizes indicate: its own checksum holds, the file
    /// ends there, or the next batch begins there, if only by its offset.
    fn ends_at(
        &mut self,
        blocks: &mut Blocks,
        damage: u64,
        header: &[u8],
        end: u64,
        limits: &Limits,
    ) -> io::Result<bool> {
        if blocks.zeros_from(end)? == blocks.size() - end {
            return Ok(true);
        }
        if let Some(own) = OwnChecksum::read(header) {
            let computed = self.evidence.checksum(blocks, own.algorithm, damage + own.start..end, damage)?;
            if computed == Some(own.stored) {
                return Ok(true);
            }
        }
        let rest = blocks.size() - damage;
        let expected = first_offset_after(header, rest, limits);
        let next = blocks.peek(end, RECORD_BATCH_OVERHEAD)?;
        if next.len() < HEADER_SIZE_UP_TO_MAGIC {
            return Ok(false);
        }
        let found = be!(&next, 0, i64);
        let continues = found == expected && claims_its_offsets(header, rest, limits);
        Ok(continues
            || ((expected..=limits.near()).contains(&found)
                && self.evidence.crc_holds_at(blocks, &next, end, limits.max_batch_size, damage)?))
    }

    /// True if a batch whose CRC holds begins before the `end` of the batch at `damage` and ends after it.
    /// Bytes are then missing in between.
    fn is_straddled(
        &mut self,
        blocks: &mut Blocks,
        damage: u64,
        header: &[u8],
        end: u64,
        limits: &Limits,
    ) -> io::Result<bool> {
        let mut scan = Scan::new(damage, header, limits);
        let mut at = end.saturating_sub(self.evidence.reach(damage)).max(damage + 1);
        while at < end {
            let starts = (end - at).min(LARGE as u64) as usize;
            let window = blocks.at(at, starts + LARGE)?;
            if window.len() < starts {
                break;
            }
            self.evidence.spend(starts as u64);
            scan.window(&mut self.evidence, blocks, &window, at, starts)?;
            at += starts as u64;
        }
        Ok(scan.found.iter().any(|batch| batch.end > end && batch.first >= limits.expected))
    }

    /// Follows headers from the declared end. None if they lead nowhere.
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
        let (mut at, mut expected) = (end, first_offset_after(header, rest, limits));
        let led = self.led.take().filter(|&(from, intact)| from == damage && end <= intact);
        let mut intact_at = led.map(|(_, intact)| intact);
        // Set if headers led to an intact neighbor that the reader will refuse: only the batch's own checksum
        // is better evidence.
        let mut refused = None;
        loop {
            if let Some(proof) = &mut proof {
                let looked_at = proof.extend(blocks, damage, at)?;
                self.evidence.spend(looked_at);
                if at != end && proof.holds() {
                    return Ok(Some(at));
                }
            }
            let leads_to_intact = intact_at.is_some();
            if at == blocks.size() {
                return Ok((leads_to_intact || at == end).then_some(end));
            }
            let next = blocks.peek(at, RECORD_BATCH_OVERHEAD)?;
            self.evidence.spend(HEADER_EFFORT);
            if next.iter().all(|&byte| byte == 0) {
                // One zero may belong to the bad batch: a last record without headers ends in one.
                if let Some(proof) = &mut proof {
                    proof.extend(blocks, damage, at + 1)?;
                    if proof.holds() {
                        return Ok(Some(at + 1));
                    }
                }
                if self.evidence.left(damage) == 0 {
                    return Ok(refused);
                }
                let zeros = blocks.zeros_from(at)?;
                self.evidence.spend(zeros);
                // Records end in zeros, so a few zeros prove nothing about a length.
                let is_tail = next.len() >= HEADER_SIZE_UP_TO_MAGIC;
                let to_the_end = zeros == blocks.size() - at;
                return Ok((to_the_end && (leads_to_intact || at == end && is_tail))
                    .then_some(end)
                    .or(refused));
            }
            let size = match Frame::read(&next) {
                Ok(Frame::Whole { size }) => size,
                Ok(Frame::Cut { needed }) => next.len() + needed as usize,
                Err(_) => return Ok(refused),
            };
            // A batch that claims more than the file has is the tail only if a scan finds nothing better.
            if next.len() < HEADER_SIZE_UP_TO_MAGIC || size as u64 > blocks.size() - at {
                return Ok(refused);
            }
            let Ok(batch) = Batch::from_header(&next, at) else { return Ok(refused) };
            let (first, last) = (batch.stored_offset(), batch.last_offset());
            let fits = first >= expected && last >= first && last <= limits.near();
            if intact_at.is_none()
                && self.evidence.crc_holds_at(blocks, &next, at, limits.max_batch_size, damage)?
            {
                intact_at = Some(at);
            }
            if !fits && refused.is_none() {
                let refuses = first < limits.expected || last < first || last > limits.near();
                if intact_at.is_none() || !refuses || at != end {
                    return Ok(None);
                }
                refused = Some(end);
            }
            expected = last.saturating_add(1);
            if let Some(intact) = intact_at
                && (proof.is_none() || at - damage >= reach)
            {
                self.led = Some((end, intact));
                return Ok(Some(end));
            }
            if intact_at.is_none() && self.evidence.left(damage) == 0 {
                return Ok(None);
            }
            at += size as u64;
        }
    }

    /// An end of the bad batch before `end`. A length that is too large may lead into the value of a later
    /// batch, or by chance to the start of a later batch. The evidence is the bad batch's own checksum, or
    /// intact batches with the offsets that are missing between the two. At the end of the file, only the
    /// very next offsets count.
    fn ends_sooner(
        &mut self,
        blocks: &mut Blocks,
        damage: u64,
        header: &[u8],
        end: u64,
        limits: &Limits,
    ) -> io::Result<Option<u64>> {
        let (next, is_last) = (blocks.peek(end, RECORD_BATCH_OVERHEAD)?, end == blocks.size());
        let first_after = match Batch::from_header(&next, end) {
            Ok(batch) => batch.stored_offset(),
            Err(_) if is_last => limits.near(),
            Err(_) => i64::MIN,
        };
        let rest = blocks.size() - damage;
        let missing = first_offset_after(header, rest, limits)..=first_after.saturating_sub(1);
        let end = end.min(damage + self.evidence.left(damage).max(SMALLEST_STEP));
        // Batches that claim to end inside the window are checked from memory.
        let lookahead = if self.evidence.reach(damage) >= BLOCK as u64 { BLOCK } else { LARGE };
        let mut scan = Scan::new(damage, header, limits);
        let mut at = damage;
        while at < end && (scan.may_prove() || !missing.is_empty()) {
            let starts = (end - at).min(REACH as u64) as usize;
            let window = blocks.at(at, starts + lookahead)?;
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
        let continues = |&at: &u64| {
            !is_last || scan.found.iter().any(|batch| batch.start == at && next.contains(&batch.first))
        };
        Ok(choose(&scan.found, &missing).filter(continues))
    }

    /// Searches every byte after the damage for the first batch that continues the log. After a batch that is
    /// `torn` by its header, that batch may skip no more offsets than bytes.
    fn by_scan(
        &mut self,
        blocks: &mut Blocks,
        damage: u64,
        header: &[u8],
        torn: bool,
        limits: &Limits,
    ) -> io::Result<Option<u64>> {
        let rest = blocks.size() - damage;
        let possible = first_offset_after(header, rest, limits)..=limits.near();
        let continues = |found: &[Candidate], start: &u64| {
            let lost = |batch: &Candidate| batch.first.abs_diff(*possible.start());
            !torn || found.iter().any(|batch| batch.start == *start && lost(batch) <= start - damage)
        };
        // Far offsets only if there are no others.
        let far = *possible.start()..=limits.max_offset;
        let chosen = |found: &[Candidate]| {
            let start = choose(found, &possible).or_else(|| choose(found, &far));
            start.filter(|start| continues(found, start))
        };
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
                if whole {
                    return Ok(Some(at));
                }
                return Ok(chosen(&scan.found));
            }
            if scan.found.first().is_some_and(|first| at >= first.start + reach / 2) {
                let chosen = chosen(&scan.found);
                if chosen.is_some() {
                    return Ok(chosen);
                }
                scan.found.clear();
            }
            step = (2 * step).min(REACH);
        }
    }
}

/// The offsets that the batch after a bad batch can have if nothing is lost between them: by all fields of
/// the bad batch, by its last offset, by its count. Damage may have hit one of these fields.
fn next_offsets(header: &[u8], rest: u64, limits: &Limits) -> [i64; 3] {
    let by_all = first_offset_after(header, rest, limits);
    match Batch::from_header(header, 0) {
        Ok(Batch::V2(batch)) if batch.base_offset() == limits.expected => {
            let by_last = batch.last_offset().saturating_add(1);
            [by_all, by_last, batch.base_offset().saturating_add(batch.record_count().into())]
        }
        _ => [by_all; 3],
    }
}

/// True if the batch at `range` is a wrapper whose first message has the expected offset. A wrapper's header
/// has only the last offset.
fn follows(blocks: &mut Blocks, range: Range<u64>, limits: &Limits) -> io::Result<bool> {
    let data = blocks.peek(range.start, (range.end - range.start) as usize)?;
    let Ok(batch) = Batch::from_frame(&data, range.start) else { return Ok(false) };
    let mut decompressor = Decompressor::with_limit(limits.max_batch_size);
    let inner = inner_messages(&batch, &mut decompressor);
    Ok(inner.is_some_and(|inner| {
        inner.first_offset == limits.expected && inner.last_offset == batch.last_offset()
    }))
}

/// The smallest offset that can follow a bad batch, whose header may claim offsets for itself.
fn first_offset_after(header: &[u8], rest: u64, limits: &Limits) -> i64 {
    match Batch::from_header(header, 0) {
        Ok(batch) if claims_its_offsets(header, rest, limits) => batch.last_offset().saturating_add(1),
        _ => limits.expected,
    }
}

/// True if a header has the offset that the log expects and does not contradict itself. The offsets that it
/// claims then belong to its batch, unless its length or the `rest` of the file cannot hold that many
/// records.
fn claims_its_offsets(header: &[u8], rest: u64, limits: &Limits) -> bool {
    let (Ok(_), Ok(batch)) = (Frame::read(header), Batch::from_header(header, 0)) else { return false };
    if batch.stored_offset() != limits.expected || batch.last_offset() > limits.max_offset {
        return false;
    }
    match batch {
        Batch::V2(batch) => {
            batch.record_count() == batch.last_offset_delta().wrapping_add(1)
                && batch.record_count() > 0
                && i64::from(batch.record_count()) <= most_records(header, rest)
        }
        // A wrapper's offset is the offset of its last message.
        Batch::Legacy(message) => message.compression() == Ok(Compression::None) && sizes_agree(header),
    }
}

/// True if the sizes of a legacy message's key and value add up to its length, as far as the header shows
/// them.
fn sizes_agree(header: &[u8]) -> bool {
    let Some(length) = declared_length(header) else { return false };
    let mut at = key_at(header[HEADER_SIZE_UP_TO_MAGIC - 1]);
    for _key_and_value in 0..2 {
        let Some(size) = header.get(at..at + 4) else { return at as u64 + 4 <= length };
        let Ok(size) = usize::try_from(be!(size, 0, i32).max(0)) else { return false };
        at += 4 + size;
    }
    at as u64 == length
}

/// The whole size that a header declares, if it is possible.
fn declared_length(header: &[u8]) -> Option<u64> {
    let length = usize::try_from(be!(header.get(..LOG_OVERHEAD)?, 8, i32)).ok()?;
    (length >= RECORD_OVERHEAD_V0).then_some((LOG_OVERHEAD + length) as u64)
}

/// The maximum number of records in a batch, judged by its length. At most `rest` bytes of the batch are in the
/// file.
fn most_records(header: &[u8], rest: u64) -> i64 {
    let length = i64::from(be!(header, 8, i32));
    MAX_RECORDS_PER_BYTE.saturating_mul(length.min(rest.try_into().unwrap_or(i64::MAX)))
}
