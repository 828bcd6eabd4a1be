//! Where a log goes on behind a batch that cannot be right.
//!
//! A value may hold whole batches, so a right CRC alone proves nothing. In this order:
//!
//! 1. The batch's **declared length**, if the headers from there on lead to a sound batch.
//! 2. Its **own checksum**, which does not cover its length: where the CRC of the bytes up to another
//!    batch is the stored one, the bad batch ends there, whatever sound batches records hold.
//! 3. A **scan** for batches whose CRC holds and whose offsets go on. They form islands: batches end to
//!    end. An island that stands in a value (its length is written right before it), whose offsets the
//!    bad batch's header claims for itself, or that contradicts more bytes of later islands than it
//!    has, is none of the log's.
//!
//! Work is linear in the bytes looked at, whatever lengths headers claim: checksums of ranges come from
//! prefixes ([`RangeChecksum`]), a sound batch is not looked into, and step 2 has a budget that grows
//! with what was read. Each place where headers lead nowhere costs a scan of `REACH`.

use std::collections::BTreeMap;
use std::io;
use std::ops::RangeInclusive;

use ::bytes::Bytes;

use super::blocks::Blocks;
use crate::batches::{Batch, Frame, HEADER_SIZE_UP_TO_MAGIC};
use crate::bytes::cursor::be;
use crate::bytes::range_checksum::{Algorithm, RangeChecksum};
use crate::record::RECORD_BATCH_OVERHEAD;

/// How far behind damage evidence is gathered. Kafka's own limit of a batch is 1 MiB by default.
const REACH: usize = 4 << 20;
const BLOCK: usize = 1 << 20;
/// Checksum work a reader may spend on bad batches, per byte it passed, beyond what it starts with.
const BUDGET_PER_BYTE: u64 = 4;
const BUDGET_TO_START_WITH: u64 = 4 * REACH as u64;

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

impl Limits {
    /// Whether a batch with these offsets, which ends at `end`, fits between its neighbours. Base offsets
    /// lie outside the CRC: the neighbours are all there is to check them by. None if it does, else
    /// the offset that does not.
    pub(super) fn misfit(&self, blocks: &mut Blocks, first: i64, last: i64, end: u64) -> Option<i64> {
        if first < self.expected {
            return Some(first);
        }
        if last > self.max_offset || last < first {
            return Some(last);
        }
        if first > self.expected {
            // A gap before it may be compaction, or the next batch may show that this one's
            // offset is too high.
            let next = blocks.at(end, HEADER_SIZE_UP_TO_MAGIC).unwrap_or_default();
            if next.len() == HEADER_SIZE_UP_TO_MAGIC
                && (self.expected..=last).contains(&be!(&next, 0, i64))
                && self.is_sound(blocks, &next, end)
            {
                return Some(first);
            }
        }
        None
    }

    /// Whether a batch whose CRC holds stands at `position`, where `header` was read.
    fn is_sound(&self, blocks: &mut Blocks, header: &[u8], position: u64) -> bool {
        let size = match Frame::read(header) {
            Ok(Frame::Whole { size }) => size,
            Ok(Frame::Cut { needed }) => header.len() + needed as usize,
            Err(_) => return false,
        };
        let data = if size <= self.max_batch_size { blocks.at(position, size) } else { return false };
        data.is_ok_and(|data| Batch::from_frame(&data, position).is_ok_and(|batch| batch.verify().is_ok()))
    }
}

/// Finds the way out of damage; one a reader.
#[derive(Debug, Default)]
pub(super) struct Salvage {
    spent: u64,
}

impl Salvage {
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
                let sooner =
                    if next == Some(end) { ends_sooner(blocks, damage, &header, end, limits)? } else { None };
                return Ok(sooner.or(next));
            }
        }
        by_scan(blocks, damage, &header, limits)
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
        let allowed = BUDGET_TO_START_WITH + damage.saturating_mul(BUDGET_PER_BYTE);
        let mut proof = OwnChecksum::read(header).filter(|_| self.spent + REACH as u64 <= allowed);
        let (mut at, mut expected, mut sound) = (end, first_offset_behind(header, limits), false);
        loop {
            if let Some(proof) = &mut proof {
                self.spent += proof.extend(blocks, damage, at)?;
                if at != end && proof.holds() {
                    return Ok(Some(at));
                }
            }
            if at == blocks.size() {
                return Ok((sound || at == end).then_some(end));
            }
            let next = blocks.at(at, RECORD_BATCH_OVERHEAD)?;
            if next.iter().all(|&byte| byte == 0) {
                // One zero may be the bad batch's own: a last record without headers ends in it.
                if let Some(proof) = &mut proof {
                    self.spent += proof.extend(blocks, damage, at + 1)?;
                    if proof.holds() {
                        return Ok(Some(at + 1));
                    }
                }
                let to_the_end = zeros_from(blocks, at)? == blocks.size() - at;
                // Records end in zeros: a few of them say nothing about a length.
                let is_tail = next.len() >= HEADER_SIZE_UP_TO_MAGIC;
                return Ok((to_the_end && (sound || at == end && is_tail)).then_some(end));
            }
            let size = match Frame::read(&next) {
                Ok(Frame::Whole { size }) => size,
                Ok(Frame::Cut { needed }) => next.len() + needed as usize,
                Err(_) => return Ok(None),
            };
            // What claims more than the file has is a tail only if a scan finds nothing better.
            if next.len() < HEADER_SIZE_UP_TO_MAGIC || size as u64 > blocks.size() - at {
                return Ok(None);
            }
            let Ok(batch) = Batch::from_header(&next, at) else { return Ok(None) };
            let (first, last) = (batch.stored_offset(), batch.last_offset());
            let fits = first >= expected && last >= first && last <= limits.max_offset;
            sound = sound || limits.is_sound(blocks, &next, at);
            if !fits {
                // A sound neighbour that the reader will refuse; else a contradiction.
                let refused = first < limits.expected || last < first || last > limits.max_offset;
                return Ok((sound && refused && at == end).then_some(end));
            }
            expected = last.saturating_add(1);
            if sound && (proof.is_none() || at - damage >= REACH as u64) {
                return Ok(Some(end));
            }
            at += size as u64;
        }
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

/// The checksum a bad batch carries, and that of its bytes as far as they were looked at.
#[derive(Clone, Copy, Debug)]
struct OwnChecksum {
    algorithm: Algorithm,
    stored: u32,
    computed: u32,
    /// Where the bytes it covers begin, counted from the batch.
    start: u64,
    /// Up to where they were looked at, counted from the batch.
    covered: u64,
}

impl OwnChecksum {
    fn read(header: &[u8]) -> Option<Self> {
        let magic = *header.get(HEADER_SIZE_UP_TO_MAGIC - 1)?;
        let (algorithm, at, start) = match magic {
            2 if header.len() == RECORD_BATCH_OVERHEAD => (Algorithm::Castagnoli, 17, 21),
            0 | 1 => (Algorithm::Ieee, 12, 16),
            _ => return None,
        };
        let stored = be!(header, at, u32);
        Some(Self { algorithm, stored, computed: 0, start, covered: start })
    }

    /// Goes on to `position` in the file; returns how many bytes that took.
    fn extend(&mut self, blocks: &mut Blocks, damage: u64, position: u64) -> io::Result<u64> {
        let from = self.covered;
        while damage + self.covered < position {
            let rest = position - damage - self.covered;
            let piece = blocks.at(damage + self.covered, rest.min(BLOCK as u64) as usize)?;
            if piece.is_empty() {
                break;
            }
            self.add(self.algorithm.checksum(&piece), piece.len() as u64);
        }
        Ok(self.covered - from)
    }

    fn add(&mut self, checksum: u32, length: u64) {
        self.computed = self.algorithm.join(self.computed, checksum, length);
        self.covered += length;
    }

    fn holds(&self) -> bool {
        self.computed == self.stored && self.covered > self.start
    }
}

/// A batch whose CRC holds; its offsets may have no place in the log.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    start: u64,
    end: u64,
    first: i64,
    last: i64,
    /// The bytes right before it.
    before: [u8; 5],
}

impl Candidate {
    /// What a length written right before the batch would be: a varint of magic 2, or a legacy size.
    fn lengths_before(&self) -> impl Iterator<Item = u64> {
        let before = self.before;
        let varint = (1..=5).filter_map(move |size| {
            // Only the shortest form: a longer one ends in a zero byte, as most records do.
            let bytes = &before[5 - size..];
            if size > 1 && bytes[size - 1] == 0 {
                return None;
            }
            let (value, end) = crate::decode_varint(bytes, 0).ok()?;
            (end == size).then_some(value)
        });
        let legacy = i64::from(be!(&before, 1, i32));
        varint.chain(std::iter::once(legacy)).filter_map(|length| u64::try_from(length).ok())
    }
}

/// A length that is too large may lead into the value of a later batch: where that begins, the bad
/// batch's own checksum tells.
fn ends_sooner(
    blocks: &mut Blocks,
    damage: u64,
    header: &[u8],
    end: u64,
    limits: &Limits,
) -> io::Result<Option<u64>> {
    let mut scan = Scan::new(damage, header, limits);
    let mut at = damage;
    while at < end && scan.proof.is_some() {
        let starts = (end - at).min(REACH as u64) as usize;
        let window = blocks.at(at, starts + BLOCK)?;
        if window.len() < starts {
            break;
        }
        if let Some(proven) = scan.window(blocks, &window, at, starts)? {
            return Ok(Some(proven));
        }
        at += starts as u64;
    }
    Ok(None)
}

/// Looks at every byte behind the damage for the first batch that goes on with the log.
fn by_scan(blocks: &mut Blocks, damage: u64, header: &[u8], limits: &Limits) -> io::Result<Option<u64>> {
    let possible = first_offset_behind(header, limits)..=limits.max_offset;
    let mut scan = Scan::new(damage, header, limits);
    let mut at = damage;
    loop {
        let window = blocks.at(at, 2 * REACH)?;
        let is_last = at + window.len() as u64 >= blocks.size() || window.len() < REACH;
        let starts = if is_last { window.len() } else { REACH };
        if let Some(proven) = scan.window(blocks, &window, at, starts)? {
            return Ok(Some(proven));
        }
        at += starts as u64;
        if is_last {
            let whole = at == blocks.size() && scan.proof.is_some_and(|proof| proof.holds());
            return Ok(if whole { Some(at) } else { choose(&scan.found, &possible) });
        }
        if scan.found.first().is_some_and(|first| at >= first.start + REACH as u64 / 2) {
            if let Some(next) = choose(&scan.found, &possible) {
                return Ok(Some(next));
            }
            scan.found.clear();
        }
    }
}

/// A header that says what the log expects and does not contradict itself claims its offsets.
fn first_offset_behind(header: &[u8], limits: &Limits) -> i64 {
    match Batch::from_header(header, 0) {
        Ok(Batch::V2(batch))
            if batch.base_offset() == limits.expected
                && batch.record_count() == batch.last_offset_delta().wrapping_add(1)
                && batch.record_count() > 0
                && batch.last_offset() <= limits.max_offset =>
        {
            batch.last_offset().saturating_add(1)
        }
        _ => limits.expected,
    }
}

struct Scan {
    limits: Limits,
    proof: Option<OwnChecksum>,
    damage: u64,
    /// Where the last sound batch ends, whether the log can take it or not: it is not looked into.
    passed: u64,
    found: Vec<Candidate>,
    /// Bytes of batches checked that reach beyond their window.
    large: u64,
}

impl Scan {
    fn new(damage: u64, header: &[u8], limits: &Limits) -> Self {
        let proof = OwnChecksum::read(header);
        Self { limits: *limits, proof, damage, passed: damage + 1, found: Vec::new(), large: 0 }
    }

    /// Looks for batches that begin in the window's first `starts` bytes. Some: one of them is where
    /// the bad batch ends, by its own checksum.
    fn window(
        &mut self,
        blocks: &mut Blocks,
        window: &Bytes,
        at: u64,
        starts: usize,
    ) -> io::Result<Option<u64>> {
        let mut castagnoli = RangeChecksum::new(Algorithm::Castagnoli, window);
        let mut ieee = RangeChecksum::new(Algorithm::Ieee, window);
        // Where the bad batch's own checksum goes on in this window.
        let covered = self.proof.map_or(0, |proof| (self.damage + proof.covered).saturating_sub(at) as usize);
        let extended = |proof: &OwnChecksum, to: usize, ranges: &mut RangeChecksum<'_>| {
            let mut proof = *proof;
            if to > covered {
                proof.add(ranges.of(covered, to), (to - covered) as u64);
            }
            proof
        };
        // A candidate's first byte stands 16 before its magic.
        let mut next = self.passed.saturating_sub(at) as usize;
        while let Some(hit) =
            window.get(next + HEADER_SIZE_UP_TO_MAGIC - 1..).and_then(|rest| memchr::memchr3(0, 1, 2, rest))
        {
            let start = next + hit;
            if start >= starts {
                break;
            }
            next = start + 1;
            let Some(candidate) = self.candidate(&window[start..], at + start as u64) else { continue };
            let ranges =
                if window[start + HEADER_SIZE_UP_TO_MAGIC - 1] == 2 { &mut castagnoli } else { &mut ieee };
            let Some(end) = self.check(blocks, &candidate, window, start, ranges)? else { continue };
            if let Some(proof) = &self.proof {
                let ranges =
                    if proof.algorithm == Algorithm::Castagnoli { &mut castagnoli } else { &mut ieee };
                if candidate.start - self.damage <= self.limits.max_batch_size as u64
                    && extended(proof, start, ranges).holds()
                {
                    return Ok(Some(candidate.start));
                }
            }
            next = start + end;
            self.passed = at + next as u64;
            let mut before = [0; 5];
            for (index, byte) in before.iter_mut().enumerate() {
                *byte = (start + index).checked_sub(5).map_or(0, |i| window[i]);
            }
            self.found.push(Candidate { before, ..candidate });
        }
        if let Some(proof) = self.proof {
            let ranges = if proof.algorithm == Algorithm::Castagnoli { &mut castagnoli } else { &mut ieee };
            self.proof = Some(extended(&proof, starts, ranges));
        }
        Ok(None)
    }

    /// A header that could be a batch's, by its fields; its offset may have no place in the log.
    fn candidate(&self, data: &[u8], position: u64) -> Option<Candidate> {
        let first = be!(data, 0, i64);
        let size = 12 + usize::try_from(be!(data, 8, i32)).ok()?;
        let smallest = match data[HEADER_SIZE_UP_TO_MAGIC - 1] {
            2 => RECORD_BATCH_OVERHEAD,
            _ => 12 + crate::legacy::RECORD_OVERHEAD_V0,
        };
        if size < smallest || size > self.limits.max_batch_size || data.len() < smallest {
            return None;
        }
        let last = Batch::from_header(&data[..smallest], position).ok()?.last_offset();
        (last >= first).then_some(Candidate {
            start: position,
            end: position + size as u64,
            first,
            last,
            before: [0; 5],
        })
    }

    /// The candidate's size if its CRC holds.
    fn check(
        &mut self,
        blocks: &mut Blocks,
        candidate: &Candidate,
        window: &[u8],
        start: usize,
        ranges: &mut RangeChecksum<'_>,
    ) -> io::Result<Option<usize>> {
        let size = (candidate.end - candidate.start) as usize;
        if candidate.end > blocks.size() {
            return Ok(None);
        }
        let Some(own) = OwnChecksum::read(&window[start..window.len().min(start + RECORD_BATCH_OVERHEAD)])
        else {
            return Ok(None);
        };
        if start + size <= window.len() {
            let sound = ranges.of(start + own.start as usize, start + size) == own.stored;
            return Ok(sound.then_some(size));
        }
        // Larger than the window: rare, unless somebody forges them; then not all are looked at.
        let allowed = 2 * (candidate.start - self.damage) + self.limits.max_batch_size as u64;
        if self.large + size as u64 > allowed {
            return Ok(None);
        }
        self.large += size as u64;
        let data = blocks.at(candidate.start, size)?;
        let sound = Batch::from_frame(&data, candidate.start).is_ok_and(|batch| batch.verify().is_ok());
        Ok(sound.then_some(size))
    }
}

/// Batches end to end, offsets rising.
struct Island {
    start: u64,
    end: u64,
    first: i64,
    last: i64,
}

/// Of the batches found, in file order, the first that belongs to the log; offsets that are not
/// `possible` belong to the bad batch, or have no place in the log.
fn choose(found: &[Candidate], possible: &RangeInclusive<i64>) -> Option<u64> {
    let mut islands: Vec<Island> = Vec::new();
    let mut rest = found;
    while let [first, ..] = rest {
        // What a length in front spans is a value: batches that were sent as data.
        let links = rest.windows(2).take_while(|pair| pair[0].end == pair[1].start).count();
        let in_value = first
            .lengths_before()
            .filter_map(|length| rest[..=links].iter().position(|c| c.end - first.start == length))
            .max();
        let (joined, behind) = rest.split_at(links + 1);
        let real = &joined[in_value.map_or(0, |last| last + 1)..];
        rest = behind;
        for batch in real.iter().filter(|b| b.first >= *possible.start() && b.last <= *possible.end()) {
            match islands.last_mut() {
                Some(island) if island.end == batch.start && island.last < batch.first => {
                    (island.end, island.last) = (batch.end, batch.last);
                }
                _ => islands.push(Island {
                    start: batch.start,
                    end: batch.end,
                    first: batch.first,
                    last: batch.last,
                }),
            }
        }
    }
    heaviest_chain(&islands)
}

/// Islands that contradict each other's offsets cannot all be the log's: those that together have
/// most bytes are. Gives the start of the first of them.
fn heaviest_chain(islands: &[Island]) -> Option<u64> {
    // By the last offset of a chain: its bytes, and where it starts; bytes rise with the offset.
    let mut chains: BTreeMap<i64, (u64, u64)> = BTreeMap::new();
    for island in islands {
        let before = chains.range(..island.first).next_back().map(|(_, &chain)| chain);
        let (bytes, start) = before.unwrap_or((0, island.start));
        let bytes = bytes + (island.end - island.start);
        let beaten = chains.range(..=island.last).next_back().is_some_and(|(_, chain)| chain.0 >= bytes);
        if !beaten {
            let worse: Vec<i64> = chains
                .range(island.last..)
                .take_while(|(_, c)| c.0 <= bytes)
                .map(|(&last, _)| last)
                .collect();
            for last in worse {
                chains.remove(&last);
            }
            chains.insert(island.last, (bytes, start));
        }
    }
    chains.into_values().next_back().map(|(_, start)| start)
}
