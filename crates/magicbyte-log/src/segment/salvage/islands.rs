//! Batches whose CRC holds, and which of them belong to the log.
//!
//! Such batches form islands: runs of batches end to end. An island does not belong to the log if it is in a
//! value (its length is written right before it). Neither does an island whose offsets the bad batch's header
//! claims for itself, or an island that contradicts later islands with more bytes.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use magicbyte::internals::{LOG_OVERHEAD, RECORD_OVERHEAD_V0, be, varint};

/// A magic 0 message with null key and value.
const MIN_BATCH_SIZE: u64 = (LOG_OVERHEAD + RECORD_OVERHEAD_V0) as u64;

/// A batch whose CRC holds; its offsets may not fit the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) first: i64,
    pub(super) last: i64,
    /// The bytes right before it.
    pub(super) before: [u8; 5],
}

impl Candidate {
    /// The lengths that may be written right before the batch: a magic 2 varint or a legacy size. Single-byte
    /// varints are included only if `short`, since many bytes look like one.
    pub(super) fn lengths_before(&self, short: bool) -> impl Iterator<Item = u64> {
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

/// The start of the first candidate, in file order, that belongs to the log. Offsets that are not `possible`
/// belong to the bad batch or do not fit the log.
pub(super) fn choose(candidates: &[Candidate], possible: &RangeInclusive<i64>) -> Option<u64> {
    let mut islands: Vec<Island> = Vec::new();
    let mut rest = candidates;
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
    next.start - last.end < MIN_BATCH_SIZE && !continues
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Batches of 100 bytes and one offset each, at these hundreds.
    fn candidates(starts_and_offsets: &[(u64, i64)]) -> Vec<Candidate> {
        let candidate = |&(start, offset): &(u64, i64)| Candidate {
            start: 100 * start,
            end: 100 * start + 100,
            first: offset,
            last: offset,
            before: [0xff; 5],
        };
        starts_and_offsets.iter().map(candidate).collect()
    }

    #[test]
    fn offsets_that_are_not_possible() {
        assert_eq!(choose(&candidates(&[(1, 9), (2, 10), (3, 11)]), &(10..=20)), Some(200));
        assert_eq!(choose(&candidates(&[(1, 9), (2, 21)]), &(10..=20)), None);
        assert_eq!(choose(&[], &(10..=20)), None);
    }

    #[test]
    fn batches_with_their_length_before_them_are_in_a_value() {
        let mut batches = candidates(&[(1, 10), (2, 11), (3, 12)]);
        let varint_200 = [0xff, 0xff, 0xff, 0x90, 0x03];
        for before in [varint_200, [0xff, 0, 0, 0, 200]] {
            batches[0].before = before;
            assert_eq!(choose(&batches, &(10..=20)), Some(300), "{before:?}");
        }
        // A varint of one byte counts only before a single batch.
        batches[0].before = [0xff, 0xff, 0xff, 0xff, 100];
        batches[0].end = 150;
        assert_eq!(choose(&batches, &(10..=20)), Some(200));
        batches[0].end = 200;
        assert_eq!(choose(&batches, &(10..=20)), Some(100));
    }

    #[test]
    fn no_batch_fits_between_a_value_and_the_end_of_its_batch() {
        // Offset 10 is the next one, but 11 is missing after it.
        let mut batches = candidates(&[(1, 10), (2, 12)]);
        batches[0].end -= 10;
        assert_eq!(choose(&batches, &(10..=20)), Some(200));
        batches[1].first = 11;
        assert_eq!(choose(&batches, &(10..=20)), Some(100));
    }

    #[test]
    fn a_damaged_offset_does_not_split_an_island() {
        // Without the batch in the middle, its neighbors outweigh the island before them.
        let batches = candidates(&[(1, 30), (2, 31), (3, 32), (5, 10), (6, 11), (7, 90), (8, 12), (9, 13)]);
        assert_eq!(choose(&batches, &(10..=99)), Some(500));
    }

    #[test]
    fn of_islands_that_contradict_each_other_those_with_most_bytes() {
        assert_eq!(choose(&candidates(&[(1, 50), (3, 10), (4, 11)]), &(10..=99)), Some(300));
        assert_eq!(choose(&candidates(&[(1, 50), (2, 51), (4, 10)]), &(10..=99)), Some(100));
        assert_eq!(choose(&candidates(&[(1, 10), (3, 50), (5, 20), (6, 21)]), &(10..=99)), Some(100));
    }
}
