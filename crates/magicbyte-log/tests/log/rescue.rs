//! Rescue from damaged batches: repairs in a copy, and the records before the damage as suspects.
#![allow(clippy::single_range_in_vec_init, reason = "a list of ranges with one element")]

use std::fs;

use magicbyte::Decompressor;
use magicbyte_log::steps::survey_segment;
use magicbyte_log::{PartitionLog, Rescued, Rescuer};
use magicbyte_testing::handmade::V2;

use crate::support::damage::{Chance, Log, Scratch, record};

fn rescued(log: &PartitionLog) -> Vec<Rescued> {
    let survey = survey_segment(&log.listing().segments[0]).unwrap();
    Rescuer::open(&survey, 1 << 20).unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn one_flipped_bit_is_repaired_in_a_copy() {
    let scratch = Scratch::new("repair");
    for magic in [2, 1, 0] {
        let mut chance = Chance(11);
        let whole = Log::of_plain(magic, 5, 40, &mut chance);
        let place = whole.places[2].clone();
        let mut repaired = 0;
        for bit in 0..place.len() * 8 {
            let mut bytes = whole.bytes.clone();
            bytes[place.start + bit / 8] ^= 1 << (bit % 8);
            let log = scratch.write(&bytes);
            let ranges = rescued(&log);
            // The CRC does not cover offset and leader epoch.
            if bit / 8 < 8 || magic == 2 && (12..16).contains(&(bit / 8)) {
                continue;
            }
            let [range] = &ranges[..] else { panic!("magic {magic}, bit {bit}: {ranges:?}") };
            assert_eq!(range.data, bytes[place.clone()], "the damaged bytes as they are");
            let repair =
                range.repair.as_ref().unwrap_or_else(|| panic!("magic {magic}, bit {bit}: {range:?}"));
            assert_eq!(
                repair.batch,
                whole.bytes[place.clone()],
                "magic {magic}, bit {bit}: {}",
                repair.change
            );
            assert!((place.start + repair.at..place.end).contains(&(place.start + bit / 8)) || bit / 8 < 12);
            repaired += 1;
            assert_eq!(
                fs::read(log.listing().segments[0].location.path()).unwrap(),
                bytes,
                "the original is not touched"
            );
        }
        assert!(repaired > place.len() * 8 - 12 * 8 - 1);
        // Two flipped bits are not repaired.
        let mut bytes = whole.bytes.clone();
        bytes[place.end - 1] ^= 0x81;
        assert_eq!(rescued(&scratch.write(&bytes))[0].repair, None);
    }
}

#[test]
fn records_before_the_damage_are_suspects() {
    let scratch = Scratch::new("suspects");
    let mut chance = Chance(1);
    let mut log = Log::of_plain(2, 3, 100, &mut chance);
    let records: Vec<_> =
        (0..5).map(|delta| record(delta, format!("value {delta}").as_bytes(), &[])).collect();
    let batch = V2::of(&records).bytes();
    let first = log.next_offset();
    log.push(&batch, 5);
    log.push_plain(2, 100, &mut chance);
    let mut bytes = log.bytes.clone();
    // Damage the length of the fourth record, and a byte of the second record's value.
    let fourth = log.places[3].start + 61 + records[..3].concat().len();
    bytes[fourth] = 0x7f;
    bytes[log.places[3].start + 61 + records[0].len() + 8] ^= 0x3;
    let found = rescued(&scratch.write(&bytes));
    let mut suspects = Vec::new();
    let mut decompressor = Decompressor::new();
    found[0].suspects(&mut decompressor, |record| {
        suspects.push((record.offset(), record.value().unwrap().to_vec()));
    });
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].repair, None);
    assert_eq!(suspects.iter().map(|s| s.0).collect::<Vec<_>>(), [first, first + 1, first + 2]);
    assert_eq!(suspects[0].1, b"value 0");
    assert_ne!(suspects[1].1, b"value 1", "this is why they are only suspects");
    assert_eq!(suspects[2].1, b"value 2");
}

#[test]
fn bytes_that_are_not_a_batch_are_rescued_as_bytes_only() {
    let scratch = Scratch::new("noise");
    let mut chance = Chance(2);
    for size in [0, 5, 11, 17, 30, 61, 500] {
        let before = Log::of_plain(2, 3, 100, &mut chance);
        let noise = chance.bytes(size);
        let mut after = Log { offsets: vec![0..before.next_offset()], ..Log::default() };
        after.push_plain(2, 100, &mut chance);
        let ranges = rescued(&scratch.write(&[&before.bytes[..], &noise, &after.bytes].concat()));
        assert_eq!(ranges.iter().map(|range| range.data.len()).sum::<usize>(), size);
        for range in ranges {
            assert_eq!(range.repair, None);
            range.suspects(&mut Decompressor::new(), |_| {});
        }
    }
}
