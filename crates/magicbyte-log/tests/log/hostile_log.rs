//! A partition whose file is cut or changed anywhere: the accounts balance, and only records that were in it
//! are delivered.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use magicbyte::{Batches, Decompressor, Record};
use magicbyte_log::{DamageMode, PartitionLog, PlanOptions, ReadOptions};
use magicbyte_testing::data;

const SMALL: [&str; 10] = [
    "v2_nulls",
    "v2_seq_wrap",
    "v2_timestamps",
    "v2_logappend",
    "v0_gzip",
    "v1_by_2_8",
    "v2_txn",
    "v2_tombstones",
    "v2_epochs_log",
    "consumer_offsets_0",
];

type Identity = (i64, i64, Option<Vec<u8>>, Option<Vec<u8>>, usize);

/// Everything about a record except its position.
fn identity(record: &Record<'_>) -> Identity {
    let bytes = |slice: Option<&[u8]>| slice.map(<[u8]>::to_vec);
    (
        record.offset(),
        record.timestamp(),
        bytes(record.key()),
        bytes(record.value()),
        record.headers().count(),
    )
}

struct Partition {
    name: &'static str,
    file: PathBuf,
    bytes: Vec<u8>,
    truth: HashSet<Identity>,
    decompressor: Decompressor,
}

impl Partition {
    fn open(name: &'static str, scratch: &Path) -> Self {
        let log = magicbyte_testing::files(&data().join(name), ".log").remove(0);
        let bytes = fs::read(&log).unwrap();
        let dir = scratch.join(name);
        fs::create_dir_all(&dir).unwrap();
        let mut decompressor = Decompressor::new();
        let mut truth = HashSet::new();
        for batch in Batches::new(&bytes) {
            for record in batch.unwrap().records(&mut decompressor).unwrap() {
                truth.insert(identity(&record.unwrap()));
            }
        }
        Self { name, file: dir.join(log.file_name().unwrap()), bytes, truth, decompressor }
    }

    /// Reads the changed file. Gives the number of records, and how many of them were never in the original.
    fn read(&mut self, bytes: &[u8]) -> (u64, u64) {
        fs::write(&self.file, bytes).unwrap();
        let log = PartitionLog::open(&self.file).unwrap();
        let sums = log.verify(PlanOptions::default()).unwrap();
        assert!(sums.balanced, "{}: {sums:?}", self.name);
        assert_eq!(
            sums.good_bytes + sums.quarantined_bytes + sums.tail_bytes,
            bytes.len() as u64,
            "{}",
            self.name
        );
        let (mut read, mut wrong) = (0, 0);
        let options = ReadOptions { mode: DamageMode::Permissive, ..ReadOptions::default() };
        for batch in log.batches(options).unwrap() {
            let batch = batch.unwrap();
            let Ok(records) = batch.data.batch().records(&mut self.decompressor) else { continue };
            let Ok(records) = records.collect::<Result<Vec<_>, _>>() else { continue };
            for record in records {
                read += 1;
                wrong += u64::from(!self.truth.contains(&identity(&record)));
            }
        }
        assert_eq!(read, sums.announced, "{}: verify and batches agree", self.name);
        (read, wrong)
    }
}

#[test]
fn every_prefix() {
    let scratch = std::env::temp_dir().join(format!("magicbyte-prefix-{}", std::process::id()));
    for name in SMALL {
        let mut partition = Partition::open(name, &scratch);
        let bytes = partition.bytes.clone();
        let step = (bytes.len() / 300).max(1);
        for length in (0..bytes.len()).step_by(step) {
            let (read, wrong) = partition.read(&bytes[..length]);
            assert_eq!(wrong, 0, "{name} cut at {length}");
            let whole = Batches::new(&bytes[..length]).flatten().count();
            assert!(read > 0 || whole == 0 || length < 200, "{name} cut at {length}: whole batches are kept");
        }
    }
    fs::remove_dir_all(scratch).unwrap();
}

#[test]
fn every_flipped_byte() {
    let scratch = std::env::temp_dir().join(format!("magicbyte-flip-{}", std::process::id()));
    for name in SMALL {
        let mut partition = Partition::open(name, &scratch);
        let mut bytes = partition.bytes.clone();
        let batches: Vec<_> = Batches::new(&bytes).flatten().map(|b| b.position() as usize..).collect();
        let starts: Vec<usize> = batches.iter().map(|range| range.start).collect();
        let step = (bytes.len() / 400).max(1);
        for at in (0..bytes.len()).step_by(step) {
            let start = starts.iter().rev().copied().find(|&start| start <= at).unwrap();
            for flip in [0x01, 0x40] {
                bytes[at] ^= flip;
                let (_, wrong) = partition.read(&bytes);
                bytes[at] ^= flip;
                // No checksum covers base offsets: where a gap (compaction, the end of the log) allows
                // another offset, the change cannot be detected.
                let unprotected = at - start < 8;
                assert!(
                    wrong == 0 || unprotected,
                    "{name}: byte {at} ^ {flip:#x}: {wrong} records were not in the original"
                );
            }
        }
    }
    fs::remove_dir_all(scratch).unwrap();
}
/// The offsets inside a magic 0 wrapper are absolute and covered by its CRC; the wrapper's own offset is not.
#[test]
fn a_wrapper_with_a_forged_offset_gives_no_record_twice() {
    let scratch = std::env::temp_dir().join(format!("magicbyte-wrapper-{}", std::process::id()));
    let mut partition = Partition::open("v0_gzip", &scratch);
    let whole = partition.bytes.clone();
    let starts: Vec<usize> = Batches::new(&whole).map(|batch| batch.unwrap().position() as usize).collect();
    let [.., start] = starts[..] else { panic!("empty") };
    let mut forged = whole[start..].to_vec();
    forged[..8].copy_from_slice(&1_000_000_i64.to_be_bytes());
    fs::write(&partition.file, [&whole[..], &forged].concat()).unwrap();
    let log = PartitionLog::open(&partition.file).unwrap();
    let sums = log.verify(PlanOptions::default()).unwrap();
    assert_eq!(sums.rows, partition.truth.len() as u64);
    let [range] = &sums.segments[0].result.quarantined[..] else { panic!("{sums:?}") };
    assert_eq!((range.start as usize, range.reason.as_str()), (whole.len(), "offset_out_of_order"));
    assert!(sums.balanced);
    assert_eq!(partition.read(&whole), (partition.truth.len() as u64, 0));
    fs::remove_dir_all(scratch).unwrap();
}
