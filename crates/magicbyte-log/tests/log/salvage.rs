//! Damage costs only the batch that it hits; batches inside values never become rows.
#![allow(clippy::single_range_in_vec_init, reason = "lists of ranges, some with one element")]

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::time::{Duration, Instant};

use magicbyte::Decompressor;
use magicbyte_log::steps::{SurveyInParts, survey_segment};
use magicbyte_log::{
    ByteRange, DamageMode, PartitionLog, PartitionReconciliation, Piece, PlanOptions, Problem, ReadOptions,
    SegmentReader,
};
use magicbyte_testing::handmade::V2;

use crate::support::damage::{Chance, Log, Scratch, record};

/// Joins adjacent ranges, whatever their reasons.
fn joined(ranges: &[ByteRange]) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match out.last_mut() {
            Some(last) if last.end == range.start as usize => last.end = range.end as usize,
            _ => out.push(range.start as usize..range.end as usize),
        }
    }
    out
}

pub(crate) fn read_all(log: &PartitionLog) -> (Vec<i64>, Vec<Problem>) {
    let options = ReadOptions { mode: DamageMode::Permissive, ..ReadOptions::default() };
    let mut decompressor = Decompressor::new();
    let mut offsets = Vec::new();
    let mut batches = log.batches(options).unwrap();
    for batch in batches.by_ref() {
        let batch = batch.unwrap();
        for record in batch.data.batch().records(&mut decompressor).unwrap() {
            offsets.push(record.unwrap().offset());
        }
    }
    (offsets, batches.problems().to_vec())
}

/// Reads the log in all ways, and checks that exactly the batches in `bad` are missing.
pub(crate) fn expect_lost(scratch: &Scratch, whole: &Log, bytes: &[u8], bad: &BTreeSet<usize>, what: &str) {
    let log = scratch.write(bytes);
    let sums = log.verify(PlanOptions::default()).unwrap();
    assert!(sums.balanced, "{what}");
    let mut lost: Vec<Range<usize>> = Vec::new();
    for &index in bad {
        let place = whole.places[index].clone();
        match lost.last_mut() {
            Some(last) if last.end == place.start => last.end = place.end,
            _ => lost.push(place),
        }
    }
    let result = &sums.segments[0].result;
    assert_eq!(joined(&result.quarantined), lost, "{what}: {result:?}");
    let kept: Vec<i64> = (0..whole.places.len())
        .filter(|index| !bad.contains(index))
        .flat_map(|index| whole.offsets[index].clone())
        .collect();
    assert_eq!(sums.rows, kept.len() as u64, "{what}");
    let (read, problems) = read_all(&log);
    assert_eq!(read, kept, "{what}");
    let known: Vec<_> =
        problems.iter().filter_map(|p| Some((p.first_lost_offset?, p.last_lost_offset?))).collect();
    let mut offsets: Vec<(i64, i64)> = Vec::new();
    for &index in bad {
        let range = whole.offsets[index].clone();
        match offsets.last_mut() {
            Some(last) if last.1 + 1 == range.start => last.1 = range.end - 1,
            _ => offsets.push((range.start, range.end - 1)),
        }
    }
    // Nothing shows how many offsets were lost at the end of the log.
    offsets.retain(|&(_, last)| last + 1 < whole.next_offset());
    assert_eq!(sums.lost_offsets as i64, offsets.iter().map(|(first, last)| last + 1 - first).sum::<i64>());
    assert_eq!(known, offsets, "{what}");
    let small = PlanOptions { chunk_bytes: 1, ..PlanOptions::default() };
    let cut: PartitionReconciliation = log.verify(small).unwrap();
    assert_eq!(cut, sums, "{what}: in small chunks");
}

/// Damages the batch at `place` in one of `WAYS` ways, and describes the damage.
pub(crate) fn spoil(bytes: &mut [u8], place: &Range<usize>, way: usize, chance: &mut Chance) -> &'static str {
    let batch = &mut bytes[place.clone()];
    let length = batch.len();
    match way {
        0 => {
            let at = 61 + chance.below(length - 61);
            batch[at] ^= 1 << chance.below(8);
            "a bit of the records"
        }
        1 => {
            batch[8..12].copy_from_slice(&(length as i32 * 3).to_be_bytes());
            "a length too large"
        }
        2 => {
            batch[8..12].copy_from_slice(&49i32.to_be_bytes());
            "a length too small"
        }
        3 => {
            batch[8..12].copy_from_slice(&[0xff; 4]);
            "a negative length"
        }
        4 => {
            batch[8..12].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff]);
            "a length past the end"
        }
        5 => {
            batch[..61].fill(0);
            "a header of zeros"
        }
        6 => {
            let noise = chance.bytes(61);
            batch[..61].copy_from_slice(&noise);
            "a header of noise"
        }
        7 => {
            let noise = chance.bytes(length);
            batch.copy_from_slice(&noise);
            "nothing but noise"
        }
        8 => {
            batch.fill(0);
            "nothing but zeros"
        }
        9 => {
            batch[16] = 7;
            "a wrong magic"
        }
        10 => {
            batch[17] ^= 0x10;
            batch[12] ^= 0x10;
            "a bit of the checksum"
        }
        11 => {
            batch[8..12].copy_from_slice(&(length as i32 * 2).to_be_bytes());
            batch[length - 1] ^= 1;
            "a length, and a bit of the records"
        }
        _ => {
            batch[..8].copy_from_slice(&[0x11; 8]);
            batch[length / 2] ^= 4;
            "an offset, and a bit of the records"
        }
    }
}
const WAYS: usize = 13;

#[test]
fn one_bad_batch_costs_only_itself() {
    let scratch = Scratch::new("one");
    for magic in [2, 1, 0] {
        let mut chance = Chance(u64::from(magic));
        let whole = Log::of_plain(magic, 12, 300, &mut chance);
        for way in 0..WAYS {
            for bad in [0, 5, 10, 11] {
                let mut bytes = whole.bytes.clone();
                let what = spoil(&mut bytes, &whole.places[bad], way, &mut chance);
                if bad == 11 && [4, 8, 11].contains(&way) {
                    continue; // At the end, zeros or a batch that looks cut count as a tail.
                }
                let lost = BTreeSet::from([bad]);
                expect_lost(&scratch, &whole, &bytes, &lost, &format!("magic {magic}, batch {bad}, {what}"));
            }
        }
    }
}

#[test]
fn a_renamed_segment_without_its_first_header() {
    let scratch = Scratch::new("renamed");
    let whole = Log::of_plain(2, 8, 200, &mut Chance(1));
    let mut bytes = whole.bytes.clone();
    bytes[..17].fill(0);
    fs::write(scratch.0.join("t-0/00000000000000001000.log"), &bytes).unwrap();
    let log = PartitionLog::open(scratch.0.join("t-0")).unwrap();
    let sums = log.verify(PlanOptions::default()).unwrap();
    let kept: Vec<i64> = (whole.offsets[1].start..whole.next_offset()).collect();
    assert_eq!((sums.rows, sums.balanced), (kept.len() as u64, true));
    assert_eq!(read_all(&log).0, kept);
}

#[test]
fn fifty_bad_batches_cost_only_themselves() {
    let scratch = Scratch::new("fifty");
    for magic in [2, 1] {
        for seed in 0..12 {
            let mut chance = Chance(seed);
            let whole = Log::of_plain(magic, 700, 200, &mut chance);
            let mut bytes = whole.bytes.clone();
            let mut bad = BTreeSet::new();
            while bad.len() < 50 {
                let index = chance.below(699);
                if bad.insert(index) {
                    let way = chance.below(WAYS);
                    spoil(&mut bytes, &whole.places[index], way, &mut chance);
                }
            }
            expect_lost(&scratch, &whole, &bytes, &bad, &format!("magic {magic}, seed {seed}"));
        }
    }
}

#[test]
fn tails_stay_tails() {
    let scratch = Scratch::new("tails");
    let mut chance = Chance(3);
    let whole = Log::of_plain(2, 10, 200, &mut chance);
    let last = whole.places[9].clone();
    for cut in [last.start + 5, last.start + 30, last.end - 1] {
        let sums = scratch.write(&whole.bytes[..cut]).verify(PlanOptions::default()).unwrap();
        assert_eq!(sums.tail_bytes, (cut - last.start) as u64, "cut at {cut}");
        assert_eq!(sums.quarantined_bytes, 0);
    }
    let zeros = [&whole.bytes[..], &[0; 5000]].concat();
    let sums = scratch.write(&zeros).verify(PlanOptions::default()).unwrap();
    assert_eq!((sums.tail_bytes, sums.quarantined_bytes), (5000, 0));
    // The batch is complete according to its checksum, so it is not a cut tail.
    let mut bytes = whole.bytes.clone();
    bytes[last.start + 8..last.start + 12].copy_from_slice(&[0, 1, 0, 0]);
    let sums = scratch.write(&bytes).verify(PlanOptions::default()).unwrap();
    assert_eq!((sums.tail_bytes, sums.quarantined_bytes), (0, last.len() as u64));
}

#[test]
fn a_length_that_ends_one_byte_before_the_end_costs_one_batch() {
    let scratch = Scratch::new("last-zero");
    let mut chance = Chance(8);
    let mut whole = Log::of_plain(2, 4, 60, &mut chance);
    whole.push(&V2::of(&[record(0, b"last", &[])]).bytes(), 1);
    // The batch before the last seems to end one byte before the end of the file, and that byte is zero.
    let (bad, last) = (whole.places[3].clone(), whole.places[4].clone());
    assert_eq!(whole.bytes[last.end - 1], 0);
    let mut bytes = whole.bytes.clone();
    bytes[bad.start + 8..bad.start + 12]
        .copy_from_slice(&((last.end - 1 - bad.start - 12) as i32).to_be_bytes());
    for also in [false, true] {
        if also {
            bytes[bad.start + 22] ^= 5;
        }
        expect_lost(&scratch, &whole, &bytes, &BTreeSet::from([3]), &format!("also damaged: {also}"));
    }
}

/// A consistent header that claims more records than its length or the file can hold.
#[test]
fn a_header_with_too_many_records_hides_nothing() {
    let scratch = Scratch::new("claim");
    let mut chance = Chance(12);
    let whole = Log::of_plain(2, 6, 60, &mut chance);
    let bad = whole.places[2].clone();
    let claimed = 0x0101_0101i32;
    for length in [(bad.len() - 12) as i32, claimed] {
        let mut bytes = whole.bytes.clone();
        let header = &mut bytes[bad.clone()];
        header[8..12].copy_from_slice(&length.to_be_bytes());
        header[23..27].copy_from_slice(&(claimed - 1).to_be_bytes());
        header[57..61].copy_from_slice(&claimed.to_be_bytes());
        expect_lost(&scratch, &whole, &bytes, &BTreeSet::from([2]), &format!("length {length}"));
    }
}

#[test]
fn forged_headers_cost_linear_time_and_hide_nothing() {
    let scratch = Scratch::new("forged");
    let mut chance = Chance(9);
    let before = Log::of_plain(2, 5, 200, &mut chance);
    let mut tail = Log { offsets: vec![0..1_000_000], ..Log::default() };
    for _ in 0..5 {
        tail.push_plain(2, 200, &mut chance);
    }
    // A header every 61 bytes with rising offsets; each claims a length that ends at another header.
    for claim in [1usize, 1000, 60_000] {
        let count = 8 * (1 << 20) / 61;
        let mut bytes = before.bytes.clone();
        bytes.extend([0x33; 7]);
        for index in 0..count {
            let mut header = V2::of(&[]).bytes();
            header[..8].copy_from_slice(&(100 + i64::from(index)).to_be_bytes());
            header[8..12].copy_from_slice(&((claim * 61 - 12) as i32).to_be_bytes());
            header[17] ^= 1;
            header[60] = 1;
            bytes.extend(header);
        }
        let end = bytes.len();
        bytes.extend(&tail.bytes);
        let begun = Instant::now();
        let log = scratch.write(&bytes);
        let sums = log.verify(PlanOptions::default()).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(20), "claims of {claim}: {:?}", begun.elapsed());
        let result = &sums.segments[0].result;
        assert_eq!(joined(&result.quarantined), [before.bytes.len()..end], "claims of {claim}");
        let kept = before.offsets.iter().chain(&tail.offsets[1..]).map(|o| o.end - o.start).sum::<i64>();
        assert_eq!(sums.rows as i64, kept, "claims of {claim}");
    }
}

/// Every second batch is broken: the search after one must not be repeated for each of the others.
#[test]
fn frequent_damage_costs_linear_time() {
    let scratch = Scratch::new("often");
    let mut chance = Chance(11);
    let whole = Log::of_plain(2, 24_000, 60, &mut chance);
    let ways = ["length zero", "a length of a mebibyte", "a far length", "noise", "a flipped bit"];
    for (way, name) in ways.into_iter().enumerate() {
        let mut bytes = whole.bytes.clone();
        for place in whole.places.iter().step_by(2) {
            let rest = bytes.len() - place.start - 12;
            let length: Option<usize> = match way {
                0 => Some(0),
                1 => Some((1 << 20).min(rest)),
                2 => Some(rest - chance.below(rest.min(1000))),
                _ => None,
            };
            match length {
                Some(length) => bytes[place.start + 8..][..4].copy_from_slice(&(length as u32).to_be_bytes()),
                None if way == 3 => bytes[place.start..][..61].copy_from_slice(&chance.bytes(61)),
                None => {}
            }
            bytes[place.end - 2] ^= 1;
        }
        let begun = Instant::now();
        let log = scratch.write(&bytes);
        let sums = log.verify(PlanOptions::default()).unwrap();
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(20), "{name}: {took:?} for {} bytes", bytes.len());
        assert!(sums.balanced, "{name}");
        let kept = whole.offsets.iter().skip(1).step_by(2).map(|o| o.end - o.start).sum::<i64>();
        assert_eq!(sums.rows as i64, kept, "{name}");
    }
}

/// A batch may end where zeros begin if they go on to the end of the file. They are read once for all such batches.
#[test]
fn many_bad_batches_before_the_same_zeros_cost_linear_time() {
    const PAIRS: usize = 4_000;
    let scratch = Scratch::new("before-zeros");
    let header = V2 { count: 0, last_offset_delta: 0, ..V2::of(&[]) }.bytes();
    let good = V2::of(&[record(0, b"value", &[])]).bytes();
    let end = PAIRS * (header.len() + good.len());
    let mut log = Log::default();
    for _ in 0..PAIRS {
        let mut bad = header.clone();
        bad[8..12].copy_from_slice(&((end - log.bytes.len() - 12) as i32).to_be_bytes());
        bad[17] ^= 0x5a;
        bad[18] ^= 0x5a;
        log.push(&bad, 1);
        log.push(&good, 1);
    }
    let bytes = [&log.bytes[..], &[0; 4 << 20], &[1]].concat();
    let begun = Instant::now();
    let sums = scratch.write(&bytes).verify(PlanOptions::default()).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert_eq!((sums.rows, sums.balanced), (PAIRS as u64, true));
}

#[test]
fn the_tail_of_a_range_ends_where_the_range_does() {
    let scratch = Scratch::new("tail-of-range");
    let whole = Log::of_plain(2, 2, 200, &mut Chance(4));
    let torn = whole.places[1].clone();
    for tail in [&whole.bytes[torn.start..torn.end - 1], &[0; 150]] {
        let bytes = [&whole.bytes[..torn.start], tail].concat();
        let log = scratch.write(&bytes);
        let (path, size) = (log.listing().segments[0].location.clone(), bytes.len() as u64);
        let end = torn.start as u64 + 100;
        let pieces = SegmentReader::open(path, size, 0..end, 0, i64::MAX).unwrap().map(Result::unwrap);
        let Some(Piece::Tail { range, .. }) = pieces.last() else { panic!("no tail") };
        assert_eq!(range, torn.start as u64..end);
    }
}

/// Parts of a survey are its beginning, and the account does not depend on where chunks are cut, whatever is damaged.
#[test]
fn parts_of_a_survey_and_chunks_of_any_size() {
    let scratch = Scratch::new("parts");
    let (mut parts, mut skipped) = (0, 0);
    for seed in 0..30 {
        let mut chance = Chance(seed);
        let mut log = Log::of_plain((seed % 3) as u8, 1200, 16 << 10, &mut chance);
        let borders = survey_segment(&scratch.write(&log.bytes).listing().segments[0]).unwrap().borders;
        for n in 0..chance.below(12) {
            let mut place = log.places[chance.below(log.places.len())].clone();
            if n == 0 {
                // Where a chunk could have begun.
                let border = borders[chance.below(borders.len())].position as usize;
                place = log.places.iter().find(|range| range.start == border).unwrap().clone();
            }
            let end = match chance.below(3) {
                0 => place.start + chance.below(30),
                1 => place.end + chance.below(60 << 10),
                _ => place.end,
            };
            let end = end.min(log.bytes.len());
            match chance.below(2) {
                0 => log.bytes[place.start..end].fill(0),
                _ => log.bytes[place.start..end].fill_with(|| chance.below(256) as u8),
            }
        }
        let opened = scratch.write(&log.bytes);
        let segment = &opened.listing().segments[0];
        let whole = survey_segment(segment).unwrap();
        let mut given = 0;
        for part in SurveyInParts::begin(segment, 1).unwrap() {
            let part = part.unwrap();
            if part.is_part {
                assert!(part.borders.len() > given && whole.borders.starts_with(&part.borders), "{seed}");
                assert_eq!(part.first_offset, whole.first_offset, "{seed}");
                (given, parts) = (part.borders.len(), parts + 1);
            } else {
                assert_eq!(part, whole, "{seed}");
            }
        }
        let account = |chunk_bytes| {
            let mut found = opened.verify(PlanOptions { chunk_bytes, ..PlanOptions::default() }).unwrap();
            found.segments.clear();
            found
        };
        assert_eq!(account(1), account(u64::MAX), "{seed}");
        let last = log.next_offset() as usize;
        let start = chance.below(last);
        let end = start + chance.below(last - start + 1);
        let of_range = |chunk_bytes| {
            let (start_offset, end_offset) = (Some(start as i64), Some(end as i64));
            let options = PlanOptions { chunk_bytes, start_offset, end_offset, ..PlanOptions::default() };
            opened.verify(options).unwrap()
        };
        let (found, all) = (of_range(1), of_range(u64::MAX));
        assert!(found.balanced && all.balanced && found.rows == all.rows, "{seed}");
        assert_eq!(
            found.good_bytes + found.quarantined_bytes + found.tail_bytes + found.outside_bytes,
            found.size
        );
        // Both begin at the border before the range.
        assert!(all.outside_bytes <= found.outside_bytes, "{seed}");
        skipped += found.outside_bytes;
    }
    assert!(parts > 60, "{parts}");
    assert!(skipped > 100 << 20, "{skipped}");
}
