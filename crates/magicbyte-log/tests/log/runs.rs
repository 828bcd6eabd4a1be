//! Runs of batches in files of any kind: every whole batch is found, wherever it is, and each once.

use std::fs;

use magicbyte_log::Location;
use magicbyte_log::steps::{BatchRun, find_runs};
use magicbyte_testing::scratch;

use crate::support::damage::{Chance, Log};

fn runs_of(bytes: &[u8], name: &str) -> Vec<BatchRun> {
    let file = scratch(name).join("file");
    fs::write(&file, bytes).unwrap();
    find_runs(&Location::from(file.as_path()), 1_000, &[]).unwrap().runs
}

#[test]
fn every_whole_batch_is_found_between_other_bytes() {
    let mut chance = Chance(5);
    for magic in 0..=2 {
        let log = Log::of_plain(magic, 60, 300, &mut chance);
        let (mut image, mut places) = (chance.bytes(777), Vec::new());
        for (number, place) in log.places.iter().enumerate() {
            places.push(image.len() as u64..(image.len() + place.len()) as u64);
            image.extend(&log.bytes[place.clone()]);
            if number % 7 == 3 {
                let junk = 1 + chance.below(20_000);
                image.extend(chance.bytes(junk));
            }
        }
        let runs = runs_of(&image, "runs-between");
        assert_eq!(runs.iter().map(|run| run.batches).sum::<u64>(), 60, "magic {magic}");
        assert_eq!(runs.len(), 60usize.div_ceil(7), "magic {magic}");
        for run in &runs {
            let first = log.offsets.iter().position(|offsets| offsets.start == run.first_offset).unwrap();
            let last = first + run.batches as usize - 1;
            assert_eq!((run.start, run.end), (places[first].start, places[last].end));
            assert_eq!(run.last_offset, log.offsets[last].end - 1);
            assert!(!run.is_value);
        }
    }
}

#[test]
fn a_run_is_cut_at_damage_and_has_the_wanted_marks() {
    let log = Log::of_plain(2, 50, 300, &mut Chance(6));
    let mut bytes = log.bytes.clone();
    bytes[log.places[20].start + 40] ^= 1;
    let runs = runs_of(&bytes, "runs-damage");
    let spans: Vec<_> = runs.iter().map(|run| (run.start as usize, run.end as usize)).collect();
    assert_eq!(spans, [(0, log.places[19].end), (log.places[21].start, log.bytes.len())]);
    let wanted = runs[1].marks.clone();
    let file = scratch("runs-wanted").join("file");
    fs::write(&file, &log.bytes).unwrap();
    let found = find_runs(&Location::from(file.as_path()), 1, &wanted).unwrap();
    assert!(!found.is_cut);
    assert!(wanted.iter().all(|mark| found.runs[0].marks.contains(mark)));
    fs::write(&file, &bytes).unwrap();
    assert!(find_runs(&Location::from(file.as_path()), 1, &[]).unwrap().is_cut);
}
