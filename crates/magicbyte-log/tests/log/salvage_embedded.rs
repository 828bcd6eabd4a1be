//! Damage to batches whose values hold batches: these never become rows.

use std::collections::BTreeSet;
use std::fs;

use magicbyte::Decompressor;
use magicbyte_log::{DamageMode, PlanOptions, ReadOptions};
use magicbyte_testing::handmade::{V2, message};

use crate::salvage::{expect_lost, read_all, spoil};
use crate::support::damage::{Chance, Log, Scratch, record};

/// Batches inside a record's value, with offsets chosen to fool a reader.
fn embedded(magic: u8, first: i64, count: i64) -> Vec<u8> {
    (0..count)
        .flat_map(|index| {
            let mut batch = if magic == 2 {
                V2::of(&[record(0, b"phantom", &[])]).bytes()
            } else {
                message(0, magic, 0, 5, Some(b"k"), Some(b"phantom phantom phantom phantom phantom"))
            };
            batch[..8].copy_from_slice(&(first + index).to_be_bytes());
            batch
        })
        .collect()
}

/// A log with an outer batch at `index`, and the positions of the batches embedded in it and of their end.
struct Outer {
    log: Log,
    index: usize,
    inner: Vec<usize>,
}

fn with_outer(
    outer_magic: u8,
    inner_magic: u8,
    inner_first: i64,
    in_header: bool,
    chance: &mut Chance,
) -> Outer {
    let mut log = Log::of_plain(outer_magic, 6, 200, chance);
    let index = log.places.len();
    let first = log.next_offset();
    let inner = embedded(inner_magic, first + inner_first, 3);
    let batch = if outer_magic == 2 {
        let (value, header) = if in_header { (&b"v"[..], &inner[..]) } else { (&inner[..], &b""[..]) };
        // In a header of the last record, the embedded batches end where the outer one does.
        V2::of(&[record(0, b"before", &[]), record(1, value, header)]).bytes()
    } else {
        message(0, outer_magic, 0, 7, None, Some(&inner))
    };
    let records = if outer_magic == 2 { 2 } else { 1 };
    let start = log.bytes.len();
    log.push(&batch, records);
    let inner_start = start + batch.windows(inner.len()).position(|window| window == inner).unwrap();
    let step = inner.len() / 3;
    for _ in 0..6 {
        log.push_plain(outer_magic, 200, chance);
    }
    Outer { log, index, inner: (0..=3).map(|n| inner_start + n * step).collect() }
}

#[test]
fn batches_in_values_never_become_rows() {
    let scratch = Scratch::new("phantom");
    let mut cases = 0;
    for (outer_magic, inner_magic) in [(2, 2), (2, 1), (1, 1), (1, 2), (0, 0), (2, 0)] {
        // Right after the preceding batch, within the outer batch's own offsets, just after them, and far
        // beyond.
        for inner_first in [0, 1, 2, 3, 40, 1000] {
            for in_header in [false, true] {
                if in_header && outer_magic < 2 {
                    continue;
                }
                let mut chance = Chance(u64::from(outer_magic) * 7 + inner_first as u64);
                let outer = with_outer(outer_magic, inner_magic, inner_first, in_header, &mut chance);
                let place = outer.log.places[outer.index].clone();
                let right = (place.len() - 12) as i32;
                let to = |position: usize| (position - place.start - 12) as i32;
                let mut lengths = vec![right + 1, right - 1, right * 2, 60, 0, -1, i32::MAX, 14];
                lengths.extend(outer.inner.iter().map(|&position| to(position)));
                for length in lengths.into_iter().filter(|&length| length != right) {
                    for also in ["nothing else", "a bit of the first record", "the offset field"] {
                        let mut bytes = outer.log.bytes.clone();
                        bytes[place.start + 8..place.start + 12].copy_from_slice(&length.to_be_bytes());
                        match also {
                            "a bit of the first record" => bytes[place.start + 65] ^= 1,
                            "the offset field" => bytes[place.start..place.start + 4].fill(0x55),
                            _ => {}
                        }
                        let what = format!(
                            "magic {inner_magic} in {outer_magic}, header {in_header}, inner offsets +{inner_first}, \
                             length {length} for {right}, and {also}"
                        );
                        expect_lost(&scratch, &outer.log, &bytes, &BTreeSet::from([outer.index]), &what);
                        cases += 1;
                    }
                }
            }
        }
    }
    assert!(cases > 1000);
}

#[test]
fn a_length_that_leads_into_the_last_batchs_own_value() {
    let scratch = Scratch::new("last");
    for (outer_magic, inner_magic) in [(2, 2), (1, 1), (0, 2)] {
        let outer = with_outer(outer_magic, inner_magic, 3, false, &mut Chance(7));
        let place = outer.log.places[outer.index].clone();
        let mut log = outer.log.clone();
        log.bytes.truncate(place.end);
        log.places.truncate(outer.index + 1);
        log.offsets.truncate(outer.index + 1);
        for &inner in &outer.inner[..3] {
            for tail in [0, 100] {
                let mut bytes = log.bytes.clone();
                let length = (inner - place.start - 12) as i32;
                bytes[place.start + 8..place.start + 12].copy_from_slice(&length.to_be_bytes());
                bytes.resize(bytes.len() + tail, 0);
                let what = format!("magic {inner_magic} in {outer_magic}, length {length}, {tail} zeros");
                expect_lost(&scratch, &log, &bytes, &BTreeSet::from([outer.index]), &what);
            }
        }
    }
}

#[test]
fn a_length_that_leads_into_the_next_batchs_value() {
    let scratch = Scratch::new("next");
    for (outer_magic, inner_magic) in [(2, 2), (1, 1), (0, 2), (2, 0)] {
        let outer = with_outer(outer_magic, inner_magic, 3, false, &mut Chance(7));
        for last in [false, true] {
            let mut log = outer.log.clone();
            if last {
                log.bytes.truncate(log.places[outer.index].end);
                log.places.truncate(outer.index + 1);
                log.offsets.truncate(outer.index + 1);
            }
            let before = log.places[outer.index - 1].clone();
            for &inner in &outer.inner[..3] {
                let length = (inner - before.start - 12) as i32;
                let mut bytes = log.bytes.clone();
                bytes[before.start + 8..before.start + 12].copy_from_slice(&length.to_be_bytes());
                let what = format!("magic {inner_magic} in {outer_magic}, length {length}, last: {last}");
                expect_lost(&scratch, &log, &bytes, &BTreeSet::from([outer.index - 1]), &what);
                // The batch that contains them is intact, but its offset does not fit the log.
                bytes[log.places[outer.index].start] = 0xff;
                let bad = BTreeSet::from([outer.index - 1, outer.index]);
                expect_lost(&scratch, &log, &bytes, &bad, &format!("{what}, outer offset negative"));
            }
        }
    }
}

/// The CRC does not cover the offset: if one is raised, all batches after it seem out of order.
#[test]
fn intact_batches_out_of_order_are_not_searched() {
    let scratch = Scratch::new("raised");
    for (outer_magic, inner_magic) in [(2, 2), (1, 1), (0, 2)] {
        let outer = with_outer(outer_magic, inner_magic, 40, false, &mut Chance(3));
        let mut bytes = outer.log.bytes.clone();
        // An offset between those of the first and the second embedded batch.
        let (raised, offsets) = (&outer.log.places[outer.index - 2], &outer.log.offsets[outer.index - 2]);
        let last = 40 + outer.log.offsets[outer.index].start;
        let stored = if outer_magic == 2 { last + 1 - (offsets.end - offsets.start) } else { last };
        bytes[raised.start..raised.start + 8].copy_from_slice(&stored.to_be_bytes());
        let broken = outer.log.places[outer.index - 1].start;
        bytes[broken + 8..broken + 12].copy_from_slice(&0x0100_0000_i32.to_be_bytes());
        bytes[broken + 30] ^= 1;
        let log = scratch.write(&bytes);
        assert!(log.verify(PlanOptions::default()).unwrap().balanced);
        let read = read_all(&log).0;
        assert!(read.iter().all(|&offset| offset <= last), "{inner_magic} in {outer_magic}: {read:?}");
        // The damaged batch that contains them is not searched, either, although the last of them is in
        // order.
        let place = &outer.log.places[outer.index];
        bytes[broken + 8..broken + 12].copy_from_slice(&outer.log.bytes[broken + 8..broken + 12]);
        bytes[place.start + 8..place.start + 12].copy_from_slice(&i32::MIN.to_be_bytes());
        bytes.splice(place.end..place.end, [0xee; 20]);
        let read = read_all(&scratch.write(&bytes)).0;
        assert!(read.iter().all(|&offset| offset <= last), "{inner_magic} in {outer_magic}: {read:?}");
    }
}

#[test]
fn an_index_that_points_into_a_value_is_not_followed() {
    let scratch = Scratch::new("index");
    let mut chance = Chance(5);
    let outer = with_outer(2, 2, 1, false, &mut chance);
    let place = outer.log.places[outer.index].clone();
    let first = outer.log.offsets[outer.index].start;
    // An index entry is a batch's last offset and its position: the second one points at an embedded batch.
    let entry =
        |offset: i64, position: usize| [(offset as i32).to_be_bytes(), (position as i32).to_be_bytes()];
    let index = [entry(4, outer.log.places[2].start), entry(first + 1, outer.inner[0])].concat().concat();
    let wanted: Vec<i64> = (first + 2..outer.log.next_offset()).collect();
    for broken in [false, true] {
        let mut bytes = outer.log.bytes.clone();
        if broken {
            let length = (outer.inner[0] - place.start - 12) as i32;
            bytes[place.start + 8..place.start + 12].copy_from_slice(&length.to_be_bytes());
        }
        let log = scratch.write(&bytes);
        fs::write(scratch.0.join("t-0/00000000000000000000.index"), &index).unwrap();
        let options = ReadOptions {
            mode: DamageMode::Permissive,
            start_offset: Some(first + 2),
            ..ReadOptions::default()
        };
        let mut decompressor = Decompressor::new();
        let mut read = Vec::new();
        for batch in log.batches(options).unwrap() {
            let batch = batch.unwrap();
            for record in batch.data.batch().records(&mut decompressor).unwrap() {
                let record = record.unwrap();
                assert_ne!(record.value(), Some(&b"phantom"[..]));
                read.push(record.offset());
            }
        }
        assert_eq!(read, wanted);
    }
}

#[test]
fn fifty_outer_batches_at_once() {
    let scratch = Scratch::new("fifty-outer");
    for seed in 0..20 {
        let mut chance = Chance(seed);
        let mut log = Log::of_plain(2, 3, 200, &mut chance);
        let mut bad = BTreeSet::new();
        let mut spoils = Vec::new();
        for _ in 0..50 {
            let inner = embedded(2, log.next_offset() + chance.below(6) as i64, 1 + chance.below(4) as i64);
            let records = [record(0, b"before", &[]), record(1, &inner, &[]), record(2, b"after", &[])];
            let start = log.bytes.len();
            log.push(&V2::of(&records).bytes(), 3);
            let inner_at = log.bytes[start..].windows(inner.len()).position(|w| w == inner).unwrap();
            bad.insert(log.places.len() - 1);
            let lengths = [inner_at as i32 - 12, 70, 1 << 20, -5, (log.bytes.len() - start) as i32];
            spoils.push((start, lengths[chance.below(5)]));
            for _ in 0..=chance.below(3) {
                log.push_plain(2, 150, &mut chance);
            }
        }
        let mut bytes = log.bytes.clone();
        for (start, length) in spoils {
            bytes[start + 8..start + 12].copy_from_slice(&length.to_be_bytes());
            if chance.below(2) == 0 {
                bytes[start + 63] ^= 0x40;
            }
        }
        expect_lost(&scratch, &log, &bytes, &bad, &format!("seed {seed}"));
    }
}

#[test]
fn a_destroyed_outer_header_with_embedded_batches() {
    let scratch = Scratch::new("headless");
    for inner_first in [0, 1, 3, 40, 1000] {
        let mut chance = Chance(inner_first as u64);
        let outer = with_outer(2, 2, inner_first, false, &mut chance);
        let place = outer.log.places[outer.index].clone();
        for way in [5, 6] {
            let mut bytes = outer.log.bytes.clone();
            let what = spoil(&mut bytes, &place, way, &mut chance);
            expect_lost(&scratch, &outer.log, &bytes, &BTreeSet::from([outer.index]), what);
        }
    }
}
