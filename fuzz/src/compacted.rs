//! Compaction: the first byte chooses the options, the rest are batches with valid checksums or left as they
//! are. The output is a valid log with the last value of each key that could be read.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use magicbyte::state::IsolationLevel;
use magicbyte::{Batch, Batches, Decompressor};
use magicbyte_log::{
    CompactOptions, CompactRun, DamageMode, Disposition, PartitionLog, PlanOptions, ReadOptions,
    compact_partition,
};

use super::made::seal;
use super::scratch::Scratch;
use super::walk::LIMIT;

/// After the delete horizon of most inputs.
const NOW: i64 = 1_800_000_000_000;

/// The offset and value of each key's last record.
type LastValues = BTreeMap<Vec<u8>, (i64, Vec<u8>)>;

/// Damage is left out; everything else is compacted.
pub fn compact(data: &[u8]) {
    let [how, batches @ ..] = data else { return };
    let bit = |number: u8| how & 1 << number != 0;
    let mut bytes = batches.to_vec();
    if !bit(0) {
        let whole: Vec<_> = Batches::new(batches)
            .map_while(Result::ok)
            .map(|batch| (batch.position() as usize, batch.size_in_bytes()))
            .collect();
        for (position, size) in whole {
            seal(&mut bytes[position..position + size]);
        }
    }
    thread_local!(static SCRATCH: Scratch = Scratch::new());
    SCRATCH.with(|scratch| {
        let (source, target) = (scratch.partition(), scratch.beside("u-0"));
        let _ = fs::remove_dir_all(&target);
        for file in fs::read_dir(&source).unwrap() {
            fs::remove_file(file.unwrap().path()).unwrap();
        }
        let second = if bit(1) { second_segment(&bytes) } else { None };
        let (position, base_offset) = second.unwrap_or((bytes.len(), 0));
        scratch.segment(&bytes[..position]);
        if second.is_some() {
            scratch.file(format!("{base_offset:020}.log"), &bytes[position..]);
        }
        let options = CompactOptions {
            now: NOW,
            delete_retention_ms: if bit(2) { 0 } else { 1000 },
            all: !bit(3),
            segment_bytes: if bit(4) { 0 } else { 1 << 30 },
            ..CompactOptions::default()
        };
        let run = CompactRun {
            expired_until: bit(5).then_some(NOW),
            // The smallest map spills to files soon.
            memory_bytes: if bit(6) { 0 } else { 1 << 20 },
            max_decompressed_bytes: LIMIT,
            record_size_limit: None,
            mode: DamageMode::Permissive,
        };
        compact_partition(&source, &target, &options, &run).unwrap();
        check_valid(&target);
        let failing = CompactRun { mode: DamageMode::FailFast, ..run };
        let again = scratch.beside("v-0");
        let _ = fs::remove_dir_all(&again);
        let is_whole = compact_partition(&source, &again, &options, &failing).is_ok();
        if is_whole {
            assert_eq!(files(&again), files(&target), "without damage, the mode must not matter");
        }
        let expected = last_values(&source, is_whole);
        let found = last_values(&target, is_whole);
        // If a segment is damaged, the reader decides which offsets the next one repeats, so the sets cannot
        // be compared.
        let is_comparable = is_whole || second.is_none();
        assert!(
            !is_comparable || expected.is_none() || found == expected,
            "{found:?}\ninstead of\n{expected:?}\n{options:?}"
        );
    });
}

/// Position and offset of the middle batch, if its offset can name a segment.
fn second_segment(bytes: &[u8]) -> Option<(usize, i64)> {
    let starts: Vec<_> = Batches::new(bytes)
        .map_while(Result::ok)
        .filter_map(|batch| {
            Some((batch.position() as usize, batch.base_offset(&mut Decompressor::with_limit(LIMIT)).ok()?))
        })
        .collect();
    starts.get(starts.len() / 2).copied().filter(|&(_, offset)| offset > 0)
}

/// Every batch verifies, offsets rise, and no byte is left over. If whole segments lost their records, the
/// gap cannot be told from a missing segment, so that problem is allowed.
fn check_valid(directory: &Path) {
    let log = PartitionLog::open(directory).unwrap();
    let sums = log.verify(PlanOptions::default()).unwrap();
    assert!(sums.balanced, "{sums:?}");
    assert_eq!((sums.quarantined_bytes, sums.tail_bytes), (0, 0), "{sums:?}");
    let mut next_offset = i64::MIN;
    let mut batches =
        log.batches(ReadOptions { mode: DamageMode::Permissive, ..ReadOptions::default() }).unwrap();
    for batch in batches.by_ref() {
        let data = batch.unwrap().data;
        let batch = data.batch();
        assert!(batch.last_offset() >= next_offset, "offsets do not rise");
        next_offset = batch.last_offset().saturating_add(1);
    }
    assert!(batches.problems().iter().all(|problem| problem.kind == "missing_segment"));
}

/// The offset and value of the last record of each key, without tombstones. `None` for a damaged log with
/// transactions: a lost batch changes which of them are committed.
fn last_values(directory: &Path, is_whole: bool) -> Option<LastValues> {
    let isolation_level =
        if is_whole { IsolationLevel::ReadCommitted } else { IsolationLevel::ReadUncommitted };
    let options = ReadOptions {
        isolation_level,
        max_decompressed_bytes: LIMIT,
        mode: DamageMode::Permissive,
        ..ReadOptions::default()
    };
    let mut decompressor = Decompressor::with_limit(LIMIT);
    let mut last = BTreeMap::new();
    for batch in PartitionLog::open(directory).unwrap().batches(options).unwrap() {
        let batch = batch.unwrap();
        let range = batch.start_offset..batch.end_offset;
        if batch.disposition != Disposition::Rows {
            continue;
        }
        let batch = batch.data.batch();
        if !is_whole && matches!(&batch, Batch::V2(batch) if batch.is_transactional()) {
            return None;
        }
        // Batches with negative offsets are never written.
        if batch.base_offset(&mut decompressor).is_ok_and(|offset| offset < 0) {
            continue;
        }
        let Ok(records) = batch.records(&mut decompressor) else { continue };
        let records: Result<Vec<_>, _> = records
            .map(|record| {
                record
                    .map(|one| (one.offset(), one.key().map(<[u8]>::to_vec), one.value().map(<[u8]>::to_vec)))
            })
            .collect();
        // A batch that ends in an error counts for nothing.
        for (offset, key, value) in records.into_iter().flatten() {
            let Some(key) = key.filter(|_| !is_whole || range.contains(&offset)) else { continue };
            match value {
                Some(value) => last.insert(key, (offset, value)),
                None => last.remove(&key),
            };
        }
    }
    Some(last)
}

/// The content of each file in a directory, by name.
fn files(directory: &Path) -> BTreeMap<std::ffi::OsString, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name(), fs::read(entry.path()).unwrap())).collect()
}
