//! Where the last records begin: compared with reading the whole log and counting.

use std::fs;
use std::path::{Path, PathBuf};

use magicbyte::Decompressor;
use magicbyte::state::IsolationLevel;
use magicbyte_log::{
    DamageMode, Disposition, PartitionCheckpoints, PartitionLog, ReadOptions, RebuildOptions,
    rebuild_sidecars,
};
use magicbyte_testing::handmade::{V2, plain_record, record_of, sized};
use magicbyte_testing::{partitions, scratch};

const PERMISSIVE: ReadOptions = ReadOptions {
    start_offset: None,
    end_offset: None,
    start_timestamp: None,
    isolation_level: IsolationLevel::ReadUncommitted,
    check_crcs: true,
    max_decompressed_bytes: 1 << 20,
    mode: DamageMode::Permissive,
};

/// The offsets of the data records in the range; those of a batch that does not decode are left out.
fn offsets(log: &PartitionLog, options: ReadOptions) -> Vec<i64> {
    let mut all = Vec::new();
    let mut decompressor = Decompressor::new();
    for batch in log.batches(options).unwrap() {
        let batch = batch.unwrap();
        if batch.disposition != Disposition::Rows {
            continue;
        }
        let data = batch.data.batch();
        let Ok(records) = data.records(&mut decompressor) else { continue };
        let Ok(decoded) = records.map(|record| Ok(record?.offset())).collect::<magicbyte::Result<Vec<_>>>()
        else {
            continue;
        };
        all.extend(decoded.into_iter().filter(|o| (batch.start_offset..batch.end_offset).contains(o)));
    }
    all
}

/// Checks every number of last records up to one more than there are.
fn check(log: &PartitionLog, options: ReadOptions, context: &str) {
    let all = offsets(log, options);
    assert_eq!(log.start_of_last(0, options).unwrap(), Some(i64::MAX), "{context}");
    assert_eq!(log.start_of_last(all.len() as u64 + 1, options).unwrap(), None, "{context}");
    for count in
        (1..=all.len()).step_by(1 + all.len() / 150).chain([all.len()].into_iter().filter(|&n| n > 0))
    {
        let start = log.start_of_last(count as u64, options).unwrap();
        assert_eq!(start, Some(all[all.len() - count]), "{context}: the last {count} of {}", all.len());
        let read = offsets(log, ReadOptions { start_offset: start, ..options });
        assert_eq!(read, all[all.len() - count..], "{context}: the last {count} of {}", all.len());
    }
}

/// A batch of as many plain records.
fn batch(base_offset: i64, records: i32) -> V2 {
    let records: Vec<_> = (0..records).map(plain_record).collect();
    V2 { base_offset, ..V2::of(&records) }
}

/// Batches of ten records with these base offsets.
fn segment(bases: impl IntoIterator<Item = i64>) -> Vec<u8> {
    bases.into_iter().flat_map(|base| batch(base, 10).bytes()).collect()
}

fn write(directory: &Path, name: i64, bytes: &[u8]) {
    fs::create_dir_all(directory).unwrap();
    fs::write(directory.join(format!("{name:020}.log")), bytes).unwrap();
}

/// A partition of three segments of ten batches of ten records.
fn three_segments(name: &str) -> PathBuf {
    let directory = scratch(name).join("t-0");
    for base in [0, 100, 200] {
        write(&directory, base, &segment((base..base + 100).step_by(10)));
    }
    directory
}

fn open(directory: &Path) -> PartitionLog {
    PartitionLog::open(directory).unwrap()
}

#[test]
fn of_brokers_partitions() {
    for directory in partitions() {
        let (log, name) = (open(&directory), directory.display().to_string());
        for isolation_level in [IsolationLevel::ReadUncommitted, IsolationLevel::ReadCommitted] {
            for mode in [DamageMode::FailFast, DamageMode::Permissive] {
                let options = ReadOptions { isolation_level, mode, ..ReadOptions::default() };
                check(&log, options, &name);
                let all = offsets(&log, options);
                if let [first, .., last] = all[..] {
                    let (start_offset, end_offset) = (Some(first + (last - first) / 3), Some(last - 1));
                    check(&log, ReadOptions { start_offset, end_offset, ..options }, &name);
                }
            }
        }
    }
}

#[test]
fn in_ranges_across_segments() {
    let log = open(&three_segments("last-ranges"));
    for (start, end) in
        [(0, 300), (0, 100), (5, 295), (95, 205), (100, 200), (150, 151), (299, 300), (7, 7), (400, 500)]
    {
        let options =
            ReadOptions { start_offset: Some(start), end_offset: Some(end), ..ReadOptions::default() };
        check(&log, options, &format!("{start}..{end}"));
    }
}

/// The content of a file decides where its offsets begin, whatever its name.
#[test]
fn of_files_with_wrong_names() {
    for names in [[90, 100, 200], [100, 0, 200], [200, 100, 0], [0, 200, 100], [50, 150, 250]] {
        let directory = scratch("last-names").join("t-0");
        for (base, name) in [0, 100, 200].into_iter().zip(names) {
            write(&directory, name, &segment((base..base + 100).step_by(10)));
        }
        check(&open(&directory), ReadOptions::default(), &format!("{names:?}"));
        fs::remove_dir_all(directory).unwrap();
    }
}

#[test]
fn of_empty_and_overlapping_segments() {
    let directory = three_segments("last-empty");
    write(&directory, 300, b"");
    write(&directory, 310, b"");
    check(&open(&directory), PERMISSIVE, "empty segments at the end");
    write(&directory, 100, b"");
    check(&open(&directory), PERMISSIVE, "an empty segment between others");
    let directory = three_segments("last-overlap");
    write(&directory, 100, &segment((80..200).step_by(10)));
    check(&open(&directory), PERMISSIVE, "a segment that begins before its name");
    write(&directory, 100, &segment([95, 105, 115]));
    check(&open(&directory), PERMISSIVE, "a batch that is partly in the segment before");
}

#[test]
fn after_compaction_and_log_start() {
    let directory = scratch("last-gaps").join("t-0");
    write(&directory, 0, &segment([0, 10, 500, 510]));
    write(&directory, 1000, &segment([1700, 1710, 9000]));
    check(&open(&directory), PERMISSIVE, "gaps");
    let checkpoints = PartitionCheckpoints { log_start_offset: Some(505), ..Default::default() };
    let mut listing = open(&directory).listing().clone();
    listing.checkpoints = Some(checkpoints);
    check(&PartitionLog::of_listing(listing), PERMISSIVE, "a log start in a batch");
}

/// Control batches, also after the last record, are not counted, and have offsets of their own.
#[test]
fn between_control_batches() {
    let directory = scratch("last-control").join("t-0");
    let mut bytes = Vec::new();
    for base in (0..100).step_by(10) {
        bytes.extend(batch(base, 3).bytes());
        let (key, value) = (sized(&[0, 0, 0, 1]), sized(&[0; 6]));
        let record = record_of(&[&[0], &[0], &[0], &key, &value, &[0]]);
        let control = V2 { attributes: 0x30, producer_id: 7, producer_epoch: 0, ..V2::of(&[record]) };
        bytes.extend(V2 { base_offset: base + 3, ..control }.bytes());
    }
    write(&directory, 0, &bytes);
    for isolation_level in [IsolationLevel::ReadUncommitted, IsolationLevel::ReadCommitted] {
        check(&open(&directory), ReadOptions { isolation_level, ..PERMISSIVE }, "control batches");
    }
}

/// An index only says where to begin to read.
#[test]
fn with_and_without_an_index() {
    let directory = scratch("last-index").join("t-0");
    // Compaction left few records among the first offsets.
    let bases = (0..30).map(|n| n * 1000).chain((30_000..40_000).step_by(10));
    write(&directory, 0, &segment(bases));
    let index = directory.join(format!("{:020}.index", 0));
    rebuild_sidecars(&directory, RebuildOptions::default(), false).unwrap();
    let right = fs::read(&index).unwrap();
    assert!(right.len() > 100);
    let lie = [&[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 70], &right[..]].concat();
    for bytes in [right, lie, vec![0xff; 803], Vec::new()] {
        fs::write(&index, &bytes).unwrap();
        let log = open(&directory);
        check(&log, PERMISSIVE, &format!("an index of {} bytes", bytes.len()));
        check(&log, ReadOptions { end_offset: Some(35_005), ..PERMISSIVE }, "an end before the last entries");
    }
}

#[test]
fn among_damage() {
    for damaged in [0, 14, 15, 29] {
        let directory = three_segments("last-damage");
        let file = directory.join(format!("{:020}.log", damaged / 10 * 100));
        let mut bytes = fs::read(&file).unwrap();
        let at = bytes.len() / 10 * (damaged as usize % 10) + 70;
        bytes[at] ^= 1;
        fs::write(&file, &bytes).unwrap();
        check(&open(&directory), PERMISSIVE, &format!("batch {damaged} has a wrong CRC"));
        // The read itself fails if it meets the damage.
        let start = open(&directory).start_of_last(295, ReadOptions::default()).unwrap();
        assert_eq!(start, None);
        fs::remove_dir_all(directory).unwrap();
    }
    let directory = three_segments("last-torn");
    let file = directory.join(format!("{:020}.log", 200));
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 5]).unwrap();
    check(&open(&directory), PERMISSIVE, "the last batch is cut off");
}

/// A batch whose CRC holds but whose records do not decode has no records in PERMISSIVE mode. In FAILFAST mode
/// the read fails there, so that its records count by the header.
#[test]
fn among_batches_that_do_not_decode() {
    for broken in [0, 100, 250, 290] {
        let directory = scratch("last-broken").join("t-0");
        for base in [0, 100, 200] {
            let batches = (base..base + 100).step_by(10).map(|base| {
                let mut batch = batch(base, 10);
                batch.payload[0] ^= u8::from(base == broken);
                batch.bytes()
            });
            write(&directory, base, &batches.collect::<Vec<_>>().concat());
        }
        let log = open(&directory);
        check(&log, PERMISSIVE, &format!("batch {broken} does not decode"));
        let start = log.start_of_last(15, ReadOptions::default()).unwrap();
        assert_eq!(start, Some(285));
        fs::remove_dir_all(directory).unwrap();
    }
}

/// The first count of records that a hostile header names is not believed in PERMISSIVE mode.
#[test]
fn announced_counts_that_are_wrong() {
    for count in [i32::MAX, -1, i32::MIN, 11, 9] {
        let directory = scratch("last-count").join("t-0");
        let bytes = [segment([0, 10]), V2 { count, ..batch(20, 10) }.bytes(), segment([30])].concat();
        write(&directory, 0, &bytes);
        check(&open(&directory), PERMISSIVE, &format!("a count of {count}"));
        open(&directory).start_of_last(u64::MAX, ReadOptions::default()).unwrap();
        open(&directory).start_of_last(15, ReadOptions::default()).unwrap();
        fs::remove_dir_all(directory).unwrap();
    }
}

/// A broker has replaced the files since they were listed.
#[test]
fn of_files_that_were_replaced() {
    let directory = three_segments("last-replaced");
    let log = open(&directory);
    for base in [100, 200] {
        let file = directory.join(format!("{base:020}.log"));
        let new = directory.join("new");
        fs::write(&new, segment((base..base + 100).step_by(20))).unwrap();
        fs::rename(&new, &file).unwrap();
    }
    assert_eq!(log.start_of_last(20, PERMISSIVE).unwrap(), Some(260));
    assert_eq!(log.start_of_last(60, PERMISSIVE).unwrap(), Some(180));
}

#[test]
fn of_a_directory_that_is_gone() {
    let directory = three_segments("last-gone");
    let log = open(&directory);
    fs::remove_dir_all(&directory).unwrap();
    assert_eq!(log.start_of_last(1, PERMISSIVE).unwrap(), None);
}
