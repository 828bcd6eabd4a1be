//! The scan after damage, for batches whose CRC holds and whose offsets continue the log.
//!
//! Such batches form islands: runs of batches end to end. An island does not belong to the log if it is in a
//! value (its length is written right before it). Neither does an island whose offsets the bad batch's header
//! claims for itself, or an island that contradicts later islands with more bytes.

use std::collections::BTreeMap;
use std::io;
use std::ops::RangeInclusive;

use ::bytes::Bytes;

use magicbyte::internals::{
    Algorithm, Frame, HEADER_SIZE_UP_TO_MAGIC, LOG_OVERHEAD, RECORD_OVERHEAD_V0, RangeChecksum, be, varint,
};
use magicbyte::{Batch, RECORD_BATCH_OVERHEAD};

use crate::segment::blocks::Blocks;
use crate::segment::evidence::{Evidence, OwnChecksum};
use crate::segment::extent::key_at;
use crate::segment::limits::Limits;

/// A magic 0 message with null key and value.
const SMALLEST_BATCH: u64 = (LOG_OVERHEAD + RECORD_OVERHEAD_V0) as u64;

/// A batch whose CRC holds; its offsets may not fit the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) first: i64,
    last: i64,
    /// The bytes right before it.
    before: [u8; 5],
}

impl Candidate {
    /// The lengths that may be written right before the batch: a magic 2 varint or a legacy size. Single-byte
    /// varints are included only if `short`, since many bytes look like one.
    fn lengths_before(&self, short: bool) -> impl Iterator<Item = u64> {
        let before = self.before;
        let shortest = if short { 1 } else { 2 };
        let varint = (shortest..=5).filter_map(move |size| {
            // Only the shortest encoding: a longer one ends in a zero byte, as most records do.
            let bytes = &before[5 - size..];
            if size > 1 && bytes[size - 1] == 0 {
                return None;
            }
            let (value, end) = varint::decode_varint(bytes, 0).ok()?;
            (end == size).then_some(value)
        });
        let legacy = i64::from(be!(&before, 1, i32));
        varint.chain(std::iter::once(legacy)).filter_map(|length| u64::try_from(length).ok())
    }
}

/// One pass over the bytes after the damage, in windows.
pub(crate) struct Scan {
    limits: Limits,
    proof: Option<OwnChecksum>,
    damage: u64,
    /// The end of the last batch whose CRC holds, whether it fits the log or not: its inside is not searched.
    passed: u64,
    pub(crate) found: Vec<Candidate>,
}

impl Scan {
    pub(crate) fn new(damage: u64, header: &[u8], limits: &Limits) -> Self {
        let proof = OwnChecksum::read(header);
        Self { limits: *limits, proof, damage, passed: damage + 1, found: Vec::new() }
    }

    /// True if the bad batch's own checksum can still prove where it ends.
    pub(crate) fn may_prove(&self) -> bool {
        self.proof.is_some()
    }

    /// True if the bad batch's own checksum proves that it ends where the last window did.
    pub(crate) fn proves_what_it_passed(&self) -> bool {
        self.proof.is_some_and(|proof| proof.holds())
    }

    /// Searches for batches that begin in the window's first `starts` bytes. Returns the start of a batch if
    /// the bad batch's own checksum proves that it ends there.
    pub(crate) fn window(
        &mut self,
        evidence: &mut Evidence,
        blocks: &mut Blocks,
        window: &Bytes,
        at: u64,
        starts: usize,
    ) -> io::Result<Option<u64>> {
        let mut castagnoli = RangeChecksum::new(Algorithm::Castagnoli, window);
        let mut ieee = RangeChecksum::new(Algorithm::Ieee, window);
        // Where the bad batch's own checksum resumes in this window.
        let covered = self.proof.map_or(0, |proof| (self.damage + proof.covered).saturating_sub(at) as usize);
        let extended = |proof: &OwnChecksum, to: usize, ranges: &mut RangeChecksum<'_>| {
            let mut proof = *proof;
            if to > covered {
                proof.add(ranges.of(covered, to), (to - covered) as u64);
            }
            proof
        };
        // A candidate's magic is 16 bytes after its first byte.
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
            let Some(end) = self.check(evidence, blocks, &candidate, window, start, ranges)? else {
                continue;
            };
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

    /// A header whose fields could be a batch's; its offset may not fit the log.
    fn candidate(&self, data: &[u8], position: u64) -> Option<Candidate> {
        let first = be!(data, 0, i64);
        let size = LOG_OVERHEAD + usize::try_from(be!(data, 8, i32)).ok()?;
        let smallest = match data[HEADER_SIZE_UP_TO_MAGIC - 1] {
            2 => RECORD_BATCH_OVERHEAD,
            _ => LOG_OVERHEAD + RECORD_OVERHEAD_V0,
        };
        if size < smallest || size > self.limits.max_batch_size || data.len() < smallest {
            return None;
        }
        let batch = Batch::from_header(&data[..smallest], position).ok()?;
        if batch.magic() < 2 && !lengths_fit(data, size) {
            return None;
        }
        let last = batch.last_offset();
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
        &self,
        evidence: &mut Evidence,
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
            let crc_holds = ranges.of(start + own.start as usize, start + size) == own.stored;
            return Ok(crc_holds.then_some(size));
        }
        if !as_written(blocks, &window[start..], candidate.start, candidate.end)? {
            return Ok(None);
        }
        let covered = candidate.start + own.start..candidate.end;
        let computed = evidence.checksum(blocks, own.algorithm, covered, self.damage)?;
        Ok((computed == Some(own.stored)).then_some(size))
    }
}

/// True if a legacy message has room for its key and value, as far as they are in memory. Bytes without that
/// room are not a message and need no checksum.
fn lengths_fit(message: &[u8], size: usize) -> bool {
    let mut at = key_at(message[HEADER_SIZE_UP_TO_MAGIC - 1]);
    for _key_and_value in 0..2 {
        let Some(length) = message.get(at..at + 4) else { return at + 4 <= size };
        // Any negative length is null, as in Kafka.
        at += 4 + usize::try_from(be!(length, 0, i32)).unwrap_or(0);
    }
    at <= size
}

/// True if the header of a batch in `start..end`, and the lengths inside a legacy message, look as every
/// writer leaves them. Kafka accepts more, so only batches that claim to end past the window or the file are
/// checked. Many bytes do so by chance, and each would cost a checksum over the file.
pub(crate) fn as_written(blocks: &mut Blocks, header: &[u8], start: u64, end: u64) -> io::Result<bool> {
    const KNOWN_ATTRIBUTES: i16 = 0x7f;
    if Frame::read(header).is_err() {
        return Ok(false);
    }
    let message = match Batch::from_header(header, start) {
        Ok(Batch::V2(batch)) => {
            return Ok(batch.attributes() & !KNOWN_ATTRIBUTES == 0
                && batch.producer_id() >= -1
                && batch.producer_epoch() >= -1
                && batch.base_sequence() >= -1
                && batch.record_count() >= 0);
        }
        Ok(Batch::Legacy(message)) => message,
        Err(_) => return Ok(false),
    };
    let mut at = start + key_at(message.magic().cast_unsigned()) as u64;
    for _key_and_value in 0..2 {
        let Ok(size) = <[u8; 4]>::try_from(&*blocks.peek(at, 4)?) else { return Ok(false) };
        let size = i32::from_be_bytes(size);
        if size < -1 {
            return Ok(false);
        }
        at += 4 + u64::from(size.max(0).cast_unsigned());
    }
    Ok(at == end)
}

/// Batches end to end, with rising offsets.
#[derive(Clone, Copy)]
struct Island {
    start: u64,
    end: u64,
    first: i64,
    last: i64,
    /// The bytes of its batches, except those whose offset was damaged.
    bytes: u64,
}

/// The start of the first batch found, in file order, that belongs to the log. Offsets that are not
/// `possible` belong to the bad batch or do not fit the log.
pub(crate) fn choose(found: &[Candidate], possible: &RangeInclusive<i64>) -> Option<u64> {
    let mut islands: Vec<Island> = Vec::new();
    let mut rest = found;
    while let [first, ..] = rest {
        let links = rest.windows(2).take_while(|pair| pair[0].end == pair[1].start).count();
        let (joined, after) = rest.split_at(links + 1);
        rest = after;
        // Batches spanned by a length right before them are a value: batches that were sent as data. What
        // follows a single batch with such a short length is the rest of a record.
        let in_value = first
            .lengths_before(links == 0)
            .filter_map(|length| joined.iter().position(|batch| batch.end - first.start == length))
            .max();
        if after.first().is_some_and(|next| is_in_value_before(joined, next, *possible.start())) {
            continue;
        }
        let fits = |batch: &&Candidate| batch.first >= *possible.start() && batch.last <= *possible.end();
        let real: Vec<&Candidate> =
            joined[in_value.map_or(0, |last| last + 1)..].iter().filter(fits).collect();
        let first_island = islands.len();
        for (index, batch) in real.iter().enumerate() {
            let before = islands[first_island..].last_mut();
            let next = real.get(index + 1);
            // A single batch with a damaged offset does not split its neighbors.
            let is_outlier = before.as_ref().zip(next).is_some_and(|(before, next)| {
                before.last < next.first && (batch.first <= before.last || batch.last >= next.first)
            });
            match before {
                Some(island) if is_outlier => island.end = batch.end,
                Some(island) if island.end == batch.start && island.last < batch.first => {
                    (island.end, island.last) = (batch.end, batch.last);
                    island.bytes += batch.end - batch.start;
                }
                _ => islands.push(Island {
                    start: batch.start,
                    end: batch.end,
                    first: batch.first,
                    last: batch.last,
                    bytes: batch.end - batch.start,
                }),
            }
        }
    }
    heaviest_chain(&islands)
}

/// True if batches end to end are in the value of a bad batch that ends where `next` begins. No batch fits
/// between the two, and offsets are missing before or after them.
fn is_in_value_before(joined: &[Candidate], next: &Candidate, expected: i64) -> bool {
    let (Some(first), Some(last)) = (joined.first(), joined.last()) else { return false };
    let continues = first.first == expected && last.last.checked_add(1) == Some(next.first);
    next.start - last.end < SMALLEST_BATCH && !continues
}

/// Islands whose offsets contradict each other cannot all belong to the log: the compatible ones with the
/// most bytes do. Returns the start of the first of them.
fn heaviest_chain(islands: &[Island]) -> Option<u64> {
    // Keyed by a chain's last offset: its bytes and its start. Bytes rise with the offset.
    let mut chains: BTreeMap<i64, (u64, u64)> = BTreeMap::new();
    for island in islands {
        let before = chains.range(..island.first).next_back().map(|(_, &chain)| chain);
        let (bytes, start) = before.unwrap_or((0, island.start));
        let bytes = bytes + island.bytes;
        let beaten = chains.range(..=island.last).next_back().is_some_and(|(_, chain)| chain.0 >= bytes);
        if !beaten {
            let worse: Vec<i64> = chains
                .range(island.last..)
                .take_while(|(_, chain)| chain.0 <= bytes)
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
