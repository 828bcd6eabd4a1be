//! A segment of many chunks: the cuts do not change the result, and memory does not grow with the file.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::fs;
use std::path::{Path, PathBuf};

use magicbyte::{Batches, Decompressor};
use magicbyte_log::{PartitionLog, PartitionReconciliation, PlanOptions, ReadOptions};

#[global_allocator]
static ALLOCATOR: magicbyte_testing::memory::Counting = magicbyte_testing::memory::Counting;

/// A partition of about this many bytes: real batches of all codecs, repeated with rising offsets (the
/// base offset lies outside the CRC). Gives the directory and the number of records.
fn big_partition(name: &str, bytes: usize) -> (PathBuf, i64) {
    let scratch = std::env::temp_dir().join(format!("magicbyte-{name}-{}", std::process::id()));
    let dir = scratch.join("big-0");
    fs::create_dir_all(&dir).unwrap();
    let sample =
        fs::read(magicbyte_testing::data().join("v2_mixed_codecs/00000000000000000000.log")).unwrap();
    let (mut segment, mut offset) = (Vec::with_capacity(bytes + sample.len()), 0i64);
    while segment.len() < bytes {
        for batch in Batches::new(&sample) {
            let batch = batch.unwrap();
            let start = segment.len();
            segment.extend_from_slice(batch.as_bytes());
            segment[start..start + 8].copy_from_slice(&offset.to_be_bytes());
            offset += batch.last_offset() - batch.stored_offset() + 1;
        }
    }
    fs::write(dir.join("00000000000000000000.log"), segment).unwrap();
    (dir, offset)
}

fn verify(dir: &Path, chunk_bytes: u64) -> (usize, PartitionReconciliation) {
    let log = PartitionLog::open(dir).unwrap();
    let options = PlanOptions { chunk_bytes, ..PlanOptions::default() };
    let chunks = log.plan(options).unwrap().chunks.len();
    (chunks, log.verify(options).unwrap())
}

#[test]
fn cuts_do_not_change_the_result_and_damage_costs_one_batch() {
    let (dir, records) = big_partition("cut", 20 << 20);
    let (many, by_many) = verify(&dir, 4 << 20);
    let (one, by_one) = verify(&dir, 1 << 40);
    assert!(many >= 4, "{many} chunks");
    assert_eq!(one, 1);
    assert_eq!(by_many, by_one);
    assert!(by_many.balanced);
    assert_eq!(by_many.rows as i64, records);

    // Damage a byte of one batch, the base offset of another, and the last byte before each border.
    let file = dir.join("00000000000000000000.log");
    let mut bytes = fs::read(&file).unwrap();
    let positions: Vec<_> = Batches::new(&bytes).map(|b| b.unwrap().position() as usize).collect();
    let borders: Vec<_> = PartitionLog::open(&dir)
        .unwrap()
        .plan(PlanOptions::default())
        .unwrap()
        .chunks
        .iter()
        .skip(1)
        .map(|chunk| chunk.start as usize)
        .collect();
    bytes[positions[positions.len() / 2] + 70] ^= 0x20;
    bytes[positions[positions.len() / 3] + 6] ^= 0x20;
    for border in &borders {
        bytes[border - 1] ^= 0x20;
    }
    fs::write(&file, bytes).unwrap();
    let (_, by_many) = verify(&dir, 4 << 20);
    let (_, by_one) = verify(&dir, 1 << 40);
    assert_eq!(by_many, by_one);
    assert!(by_many.balanced);
    assert_eq!(by_many.segments[0].result.quarantined.len(), 2 + borders.len());
    assert_eq!(by_many.missing_offsets + by_many.rows, records as u64);
    fs::remove_dir_all(dir.parent().unwrap()).unwrap();
}

#[test]
fn memory_does_not_grow_with_the_file() {
    let peak = |bytes: usize| {
        let (dir, records) = big_partition(&format!("memory-{bytes}"), bytes);
        let (read, peak) = magicbyte_testing::memory::measured(|| {
            let mut decompressor = Decompressor::new();
            let mut read = 0;
            for batch in PartitionLog::open(&dir).unwrap().batches(ReadOptions::default()).unwrap() {
                let batch = batch.unwrap();
                read += batch.data.batch().records(&mut decompressor).unwrap().count();
            }
            read as i64
        });
        assert_eq!(read, records);
        let (sums, verify_peak) = magicbyte_testing::memory::measured(|| verify(&dir, 4 << 20).1);
        assert!(sums.balanced);
        fs::remove_dir_all(dir.parent().unwrap()).unwrap();
        peak.max(verify_peak)
    };
    let (small, large) = (peak(4 << 20), peak(32 << 20));
    assert!(large < small + (1 << 20), "{small} bytes for 4 MiB, {large} for 32 MiB");
    assert!(large < 6 << 20, "{large}");
}
