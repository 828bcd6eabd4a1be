//! Index, snapshot and checkpoint files, and the names of files and directories.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use magicbyte::Decompressor;
use magicbyte::sidecar::{
    parse_leader_epoch_checkpoint, parse_offset_index, parse_partition_metadata, parse_producer_snapshot,
    parse_time_index, parse_transaction_index,
};
use magicbyte::state::IsolationLevel;
use magicbyte_log::{DamageMode, IgnoreReason, PartitionLog, PlanOptions, ReadOptions, list_partition};

use super::made::{batch, noise, record};
use super::scratch::Scratch;

/// The first byte chooses what the rest is: the content for the parsers, a file's name, a directory's name,
/// or a sidecar of an intact segment.
pub fn sidecars(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else { return };
    match choice {
        0 => parsers(rest),
        1 => file_name(rest),
        2 => directory_name(rest),
        _ => beside_a_segment(choice, rest),
    }
}

fn parsers(data: &[u8]) {
    for base_offset in [0, 100, i64::MAX - 5, -5] {
        if let Ok(entries) = parse_offset_index(data, base_offset) {
            assert!(entries.len() <= data.len() / 8);
            assert!(entries.iter().all(|entry| entry.offset >= base_offset));
        }
        if let Ok(entries) = parse_time_index(data, base_offset) {
            assert!(entries.len() <= data.len() / 12);
            assert!(entries.iter().all(|entry| entry.offset >= base_offset));
        }
    }
    if let Ok(entries) = parse_transaction_index(data) {
        assert_eq!(entries.len() * 34, data.len());
    }
    let _ = parse_producer_snapshot(data);
    // The same after a valid version and checksum.
    let crc = crc32c::crc32c(data);
    let snapshot = [&[0, 1], &crc.to_be_bytes()[..], data].concat();
    match parse_producer_snapshot(&snapshot) {
        Ok(entries) => assert_eq!(4 + entries.len() * 46, data.len()),
        Err(error) => assert_ne!(error.kind().name(), "crc_mismatch"),
    }
    let text = String::from_utf8_lossy(data);
    if let Ok(entries) = parse_leader_epoch_checkpoint(&text) {
        assert!(entries.len() * 3 <= data.len());
    }
    if let Ok(metadata) = parse_partition_metadata(&text) {
        assert_eq!((metadata.version, metadata.topic_id.len()), (0, 22));
    }
}

/// The bytes as a name that a file system accepts, or `None`.
fn name(data: &[u8]) -> Option<&Path> {
    let usable = !data.is_empty() && data.len() <= 255 && !data.contains(&0) && !data.contains(&b'/');
    (usable && data != b"." && data != b"..").then(|| Path::new(OsStr::from_bytes(data)))
}

fn file_name(data: &[u8]) {
    let Some(name) = name(data) else { return };
    let scratch = Scratch::new();
    scratch.file(name, b"content");
    for include_checkpoints in [false, true] {
        let listing = list_partition(scratch.partition(), include_checkpoints).unwrap();
        let lists = (listing.segments.len(), listing.sidecars.len(), listing.ignored.len());
        assert!([(1, 0, 0), (0, 1, 0), (0, 0, 1)].contains(&lists), "{name:?}: {lists:?}");
        assert_eq!((listing.topic.as_str(), listing.partition), ("t", 0));
        assert!(listing.segments.iter().all(|segment| segment.base_offset >= 0));
        let log = PartitionLog::open(scratch.partition()).unwrap();
        // A name that is not UTF-8 cannot be a segment's.
        assert!(log.verify(PlanOptions::default()).unwrap().balanced);
    }
}

fn directory_name(data: &[u8]) {
    let Some(name) = name(data) else { return };
    let scratch = Scratch::new();
    let directory = scratch.partition().join(name);
    std::fs::create_dir(&directory).unwrap();
    match list_partition(&directory, false) {
        Ok(listing) => assert!(!listing.topic.is_empty() && listing.partition >= 0, "{name:?}: {listing:?}"),
        Err(_) => assert!(name.to_str().is_none(), "only a path that is not UTF-8 is refused"),
    }
    // What is inside it does not belong to the outer directory.
    let outer = list_partition(scratch.partition(), false).unwrap();
    assert!(outer.segments.is_empty() && outer.sidecars.is_empty());
    assert_eq!(outer.ignored.len(), 1);
    assert_eq!(outer.problems.is_empty(), outer.ignored[0].reason == IgnoreReason::Directory);
}

const BATCHES: i64 = 40;
const RECORDS: i64 = 3;

/// A segment of small batches. Timestamps start at 1000 and rise by 1 ms per record. One batch has others
/// embedded in a value.
fn segment() -> Vec<u8> {
    (0..BATCHES)
        .flat_map(|index| {
            let base = index * RECORDS;
            let sent = if index == 20 {
                let inner =
                    |delta| batch(base + 4 + delta, 0, 1, 2000, &record(0, b"k", b"sent as data", b""));
                (0..3).flat_map(inner).collect()
            } else {
                noise(index as u64, 20)
            };
            let records: Vec<u8> = (0..RECORDS).flat_map(|delta| record(delta, b"k", &sent, b"")).collect();
            batch(base, 0, RECORDS as i32, 1000 + base, &records)
        })
        .collect()
}

const SIDECARS: [&str; 6] = [
    "00000000000000000000.index",
    "00000000000000000000.timeindex",
    "00000000000000000000.txnindex",
    "00000000000000000000.snapshot",
    "leader-epoch-checkpoint",
    "partition.metadata",
];

/// Whatever a sidecar contains, the records are those of the log.
fn beside_a_segment(choice: u8, data: &[u8]) {
    thread_local!(static SCRATCH: Scratch = {
        let scratch = Scratch::new();
        scratch.segment(&segment());
        scratch
    });
    SCRATCH.with(|scratch| {
        let sidecar = scratch.file(SIDECARS[usize::from(choice) % SIDECARS.len()], data);
        let log = PartitionLog::open(scratch.partition()).unwrap();
        for isolation_level in [IsolationLevel::ReadUncommitted, IsolationLevel::ReadCommitted] {
            let sums = log.verify(PlanOptions { isolation_level, ..PlanOptions::default() }).unwrap();
            assert!(sums.balanced);
            assert_eq!((sums.rows as i64, sums.quarantined_bytes), (BATCHES * RECORDS, 0));
        }
        let chosen = i64::from(choice) * BATCHES * RECORDS / 256;
        for start in [0, chosen, BATCHES * RECORDS - 1, BATCHES * RECORDS] {
            assert_eq!(read_from(&log, start), (start..BATCHES * RECORDS).collect::<Vec<_>>());
            let found = log.offset_for_timestamp(1000 + start).unwrap();
            assert_eq!(found, (start < BATCHES * RECORDS).then_some(start));
        }
        std::fs::remove_file(sidecar).unwrap();
    });
}

fn read_from(log: &PartitionLog, start: i64) -> Vec<i64> {
    let options =
        ReadOptions { start_offset: Some(start), mode: DamageMode::FailFast, ..ReadOptions::default() };
    let mut decompressor = Decompressor::new();
    let mut offsets = Vec::new();
    for batch in log.batches(options).unwrap() {
        let batch = batch.unwrap();
        for record in batch.data.batch().records(&mut decompressor).unwrap() {
            offsets.extend(Some(record.unwrap().offset()).filter(|&offset| offset >= batch.start_offset));
        }
    }
    offsets
}
