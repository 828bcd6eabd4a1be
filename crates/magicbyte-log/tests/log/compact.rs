//! Compaction of real partitions, and of logs built to test one rule each. The expected records are computed
//! from Kafka's own reading of the source (`expected.jsonl`, `committed.jsonl`).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use magicbyte::{Batch, Batches, Compression, ControlRecord, Decompressor, RecordsBuilder, crc32c};
use magicbyte_log::steps::{
    CleanOptions, Cleaned, Compaction, IndexedKeys, ProducerSummary, Rule, clean_group, index_keys,
    plan_compaction, plan_partition, reduce_keys, survey_segment,
};
use magicbyte_log::{
    CompactOptions, CompactRun, DamageMode, Disposition, KeyMapOptions, LogError, LogResult, PartitionLog,
    PlanOptions, ReadOptions, RebuildOptions, WriteOptions, compact_partition, compute_sidecars,
    list_partition,
};
use magicbyte_testing::{data, files, json, json_lines, partitions, scratch};

use crate::support::rows::{Content, Row, assert_rows, kafkas_rows, rows};

/// A record to build: its key and value.
type Pair = (Option<&'static str>, Option<&'static str>);

const SEGMENT: &str = "00000000000000000000.log";

/// Cleans everything up to the last stable offset, and keeps all tombstones.
const ALL: CompactOptions = CompactOptions {
    now: 0,
    delete_retention_ms: 500,
    min_compaction_lag_ms: 0,
    until_offset: None,
    all: true,
    first_dirty_offset: None,
    segment_bytes: 1 << 30,
    segment_index_bytes: 10 << 20,
};

fn at(now: i64) -> CompactOptions {
    CompactOptions { now, ..ALL }
}

fn batch(builder: RecordsBuilder, base_offset: i64, pairs: &[Pair]) -> Vec<u8> {
    let mut builder = builder;
    for (offset, (key, value)) in (base_offset..).zip(pairs) {
        builder.append(offset, 100, key.map(str::as_bytes), value.map(str::as_bytes), &[]).unwrap();
    }
    builder.build().unwrap()
}

fn plain(base_offset: i64, pairs: &[Pair]) -> Vec<u8> {
    batch(RecordsBuilder::v2(Compression::None).partition_leader_epoch(0), base_offset, pairs)
}

fn transactional(producer_id: i64, base_sequence: i32) -> RecordsBuilder {
    let builder = RecordsBuilder::v2(Compression::None).partition_leader_epoch(0);
    builder.producer(producer_id, 0, base_sequence).transactional()
}

fn marker(offset: i64, producer_id: i64, committed: bool) -> Vec<u8> {
    let mut builder = transactional(producer_id, -1).control();
    let record = ControlRecord::EndTransaction { version: 0, committed, coordinator_epoch: 3 };
    builder.append_control(offset, 200, &record).unwrap();
    builder.build().unwrap()
}

/// A partition of these segments, each named after the base offset of its first batch.
fn write_log(directory: &Path, segments: &[Vec<u8>]) -> PathBuf {
    fs::create_dir_all(directory).unwrap();
    for segment in segments {
        let base_offset = i64::from_be_bytes(segment[..8].try_into().unwrap());
        fs::write(directory.join(format!("{base_offset:020}.log")), segment).unwrap();
    }
    directory.to_owned()
}

/// Checks the offset and key of each data record.
fn expect(directory: &Path, expected: &[(i64, &str)]) {
    let mut decompressor = Decompressor::new();
    let mut keys = Vec::new();
    for read in PartitionLog::open(directory).unwrap().batches(ReadOptions::default()).unwrap() {
        let read = read.unwrap();
        if read.disposition == Disposition::Rows {
            for record in read.data.batch().records(&mut decompressor).unwrap() {
                let record = record.unwrap();
                let key = String::from_utf8(record.key().unwrap().to_vec()).unwrap();
                keys.push((record.offset(), key));
            }
        }
    }
    let keys: Vec<_> = keys.iter().map(|(offset, key)| (*offset, key.as_str())).collect();
    assert_eq!(keys, expected);
}

fn plan(directory: &Path, options: &CompactOptions) -> Compaction {
    let listing = list_partition(directory, false).unwrap();
    let surveys: Vec<_> = listing.segments.iter().map(|segment| survey_segment(segment).unwrap()).collect();
    let whole = PlanOptions { chunk_bytes: u64::MAX, ..PlanOptions::default() };
    plan_compaction(&plan_partition(&listing, &surveys, whole).unwrap(), &listing, options).unwrap()
}

fn bytes_of(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    files(directory, "").iter().map(|path| (name(path), fs::read(path).unwrap())).collect()
}

/// The batches of a partition with one segment.
fn with_batches<T>(directory: &Path, mut of: impl FnMut(&Batch<'_>) -> T) -> Vec<T> {
    let data = fs::read(directory.join(SEGMENT)).unwrap();
    Batches::new(&data).map(|batch| of(&batch.unwrap())).collect()
}

/// The first pass over a log of one group: its result, and the lists of each key's last record.
fn index(compaction: &Compaction, directory: &Path) -> (IndexedKeys, Vec<PathBuf>) {
    let keys = KeyMapOptions { seed: 1, memory_bytes: 1 << 20, parts: 1 };
    let scratch = directory.join("keys");
    let chunks = &compaction.groups[0].chunks;
    let indexed = index_keys(chunks, Some((&scratch, keys)), 1 << 20, None, DamageMode::Permissive).unwrap();
    let files: Vec<_> = indexed.files.iter().flatten().cloned().collect();
    (indexed, reduce_keys(&files, scratch.join("lists"), keys).unwrap())
}

/// The second pass over a log of one group.
fn clean(
    compaction: &Compaction,
    indexed: &IndexedKeys,
    lists: Vec<PathBuf>,
    directory: &Path,
    mode: DamageMode,
) -> LogResult<Cleaned> {
    let options = CleanOptions {
        rule: Rule::Compact { now: 0, delete_retention_ms: 500, lists },
        clean_until: compaction.clean_until,
        max_decompressed_bytes: 1 << 20,
        mode,
        write: WriteOptions::default(),
    };
    let summary = ProducerSummary::of(std::slice::from_ref(&indexed.producers), None);
    clean_group(&compaction.groups[0], &indexed.chunks, &summary, directory, &options)
}

#[test]
fn each_key_of_a_real_partition_keeps_its_last_committed_record() {
    let root = scratch("compact-partitions");
    let (mut superseded, mut aborted, mut keyless) = (0, 0, 0);
    for source in partitions() {
        let name = source.file_name().unwrap().to_str().unwrap();
        let target = root.join(format!("{name}-0"));
        let counts = compact_partition(&source, &target, &ALL, &CompactRun::default()).unwrap();

        let until = plan(&source, &ALL).clean_until;
        let committed = source.join("committed.jsonl");
        let committed: Option<HashSet<i64>> = committed
            .exists()
            .then(|| json_lines(&committed).iter().map(|line| line["offset"].as_i64().unwrap()).collect());
        let (cleaned, rest): (Vec<Row>, Vec<Row>) =
            kafkas_rows(&source).into_iter().partition(|row| row.offset < until);
        let before = cleaned.len();
        let delivered: Vec<Row> = cleaned
            .into_iter()
            .filter(|row| committed.as_ref().is_none_or(|offsets| offsets.contains(&row.offset)))
            .collect();
        let last: HashMap<Content, i64> = delivered.iter().map(|row| (row.key.clone(), row.offset)).collect();
        let without_key = delivered.iter().filter(|row| row.key.is_none()).count();
        let kept: Vec<Row> = delivered
            .iter()
            .filter(|row| row.key.is_some() && last[&row.key] == row.offset)
            .cloned()
            .collect();

        assert_eq!(counts.aborted as usize, before - delivered.len(), "{name}");
        assert_eq!(counts.keyless as usize, without_key, "{name}");
        assert_eq!(counts.superseded as usize, delivered.len() - without_key - kept.len(), "{name}");
        assert_eq!((counts.expired_tombstones, counts.markers, counts.redacted), (0, 0, 0), "{name}");
        let dropped = counts.aborted + counts.keyless + counts.superseded;
        let records = json(&source.join("summary.json"))["records"].as_u64().unwrap();
        assert_eq!(counts.kept + dropped, records, "{name}");
        let expected: Vec<Row> = kept.into_iter().chain(rest).collect();
        assert_rows(&rows(&target), &expected, name);
        superseded += counts.superseded;
        aborted += counts.aborted;
        keyless += counts.keyless;
    }
    assert!(superseded > 5_000 && aborted > 10 && keyless > 5_000, "{superseded} {aborted} {keyless}");
}

#[test]
fn producers_and_the_end_of_the_log_survive() {
    for name in ["v2_txn", "v2_compacted_txn", "v2_idempotent", "v2_seq_wrap", "v2_tombstones"] {
        let source = data().join(name);
        let target = scratch(&format!("compact-producers-{name}")).join("t-0");
        compact_partition(&source, &target, &ALL, &CompactRun::default()).unwrap();
        let mut before = BTreeMap::new();
        let listing = list_partition(&source, false).unwrap();
        compute_sidecars(&listing, RebuildOptions::default(), |(file, data)| {
            before.insert(file, data);
            Ok(())
        })
        .unwrap();
        let (last, expected) = before.iter().rfind(|(file, _)| file.ends_with(".snapshot")).unwrap();
        let after = bytes_of(&target);
        assert_eq!(after.get(last), Some(expected), "{name}: producers at the end of the log");
        let epochs = "leader-epoch-checkpoint";
        assert_eq!(after[epochs], before[epochs], "{name}");
        // Computed again from the remaining batches: each producer still has its last epoch.
        let listing = list_partition(&target, false).unwrap();
        let end = |directory: &Path| {
            let log = PartitionLog::open(directory).unwrap();
            log.batches(ReadOptions::default()).unwrap().last().unwrap().unwrap().data.batch().last_offset()
        };
        assert_eq!(end(&target), end(&source), "{name}");
        let mut identities = Vec::new();
        compute_sidecars(&listing, RebuildOptions::default(), |(file, data)| {
            if file == *last {
                let entries = magicbyte::sidecar::parse_producer_snapshot(&data).unwrap();
                identities.extend(entries.iter().map(|entry| (entry.producer_id, entry.producer_epoch)));
            }
            Ok(())
        })
        .unwrap();
        let known = magicbyte::sidecar::parse_producer_snapshot(expected).unwrap();
        let mut known: Vec<_> = known.iter().map(|entry| (entry.producer_id, entry.producer_epoch)).collect();
        known.sort_unstable();
        identities.sort_unstable();
        assert_eq!(identities, known, "{name}");
    }
}

#[test]
fn a_tombstone_gets_a_delete_horizon_and_is_dropped_when_it_passes() {
    let root = scratch("compact-tombstones");
    let source = write_log(
        &root.join("t-0"),
        &[[
            plain(0, &[(Some("a"), Some("1")), (Some("b"), Some("1"))]),
            plain(2, &[(Some("a"), None), (Some("c"), Some("1")), (None, Some("no key"))]),
        ]
        .concat()],
    );
    let run = CompactRun::default();
    let first = root.join("first-0");
    let counts = compact_partition(&source, &first, &at(1_000), &run).unwrap();
    assert_eq!((counts.superseded, counts.keyless, counts.kept, counts.rewritten_batches), (1, 1, 3, 2));
    expect(&first, &[(1, "b"), (2, "a"), (3, "c")]);
    let headers = with_batches(&first, |batch| {
        let Batch::V2(batch) = batch else { panic!("magic 2") };
        (batch.base_offset(), batch.last_offset(), batch.record_count(), batch.delete_horizon_ms())
    });
    assert_eq!(headers, [(0, 1, 1, None), (2, 4, 2, Some(1_500))]);

    // Just before the horizon, nothing changes.
    let second = root.join("second-0");
    let counts = compact_partition(&first, &second, &at(1_499), &run).unwrap();
    assert_eq!((counts.copied_batches, counts.rewritten_batches, counts.kept), (2, 0, 3));
    assert_eq!(bytes_of(&second), bytes_of(&first));

    let third = root.join("third-0");
    let counts = compact_partition(&second, &third, &at(1_500), &run).unwrap();
    assert_eq!((counts.expired_tombstones, counts.kept), (1, 2));
    expect(&third, &[(1, "b"), (3, "c")]);
}

#[test]
fn the_last_batch_is_kept_even_if_empty() {
    let root = scratch("compact-end");
    let log = [plain(0, &[(Some("a"), Some("1"))]), plain(1, &[(Some("b"), None), (Some("a"), None)])];
    let source = write_log(&root.join("t-0"), &[log.concat()]);
    let (first, second) = (root.join("first-0"), root.join("second-0"));
    compact_partition(&source, &first, &at(0), &CompactRun::default()).unwrap();
    let counts = compact_partition(&first, &second, &at(500), &CompactRun::default()).unwrap();
    assert_eq!((counts.expired_tombstones, counts.emptied_batches, counts.kept), (2, 1, 0));
    let headers = with_batches(&second, |batch| {
        let Batch::V2(batch) = batch else { panic!("magic 2") };
        (batch.base_offset(), batch.last_offset(), batch.record_count())
    });
    assert_eq!(headers, [(1, 2, 0)]);
}

/// An aborted transaction's data is removed at once, its last batch when the producer expires, and its marker
/// when the retention time after that is over.
#[test]
fn an_aborted_transaction_disappears_step_by_step() {
    let root = scratch("compact-aborted");
    let pairs: [Pair; 2] = [(Some("x"), Some("1")), (Some("y"), Some("1"))];
    let log = [
        batch(transactional(7, 0), 0, &pairs),
        batch(transactional(7, 2), 2, &pairs),
        marker(4, 7, false),
        plain(5, &[(Some("z"), Some("1"))]),
    ];
    let source = write_log(&root.join("t-0"), &[log.concat()]);
    let headers = |directory: &Path| {
        with_batches(directory, |batch| {
            let Batch::V2(batch) = batch else { panic!("magic 2") };
            (batch.base_offset(), batch.record_count(), batch.delete_horizon_ms())
        })
    };
    let expired = CompactRun { expired_until: Some(1_000), ..CompactRun::default() };

    let first = root.join("first-0");
    let counts = compact_partition(&source, &first, &at(1_000), &CompactRun::default()).unwrap();
    assert_eq!((counts.aborted, counts.dropped_batches, counts.emptied_batches), (4, 1, 1));
    assert_eq!(headers(&first), [(2, 0, None), (4, 1, None), (5, 1, None)]);

    let second = root.join("second-0");
    compact_partition(&first, &second, &at(1_000), &expired).unwrap();
    assert_eq!(headers(&second), [(4, 1, None), (5, 1, None)]);

    let third = root.join("third-0");
    compact_partition(&second, &third, &at(1_000), &expired).unwrap();
    assert_eq!(headers(&third), [(4, 1, Some(1_500)), (5, 1, None)]);

    let fourth = root.join("fourth-0");
    let counts = compact_partition(&third, &fourth, &at(1_500), &expired).unwrap();
    assert_eq!((counts.markers, counts.kept), (1, 1));
    assert_eq!(headers(&fourth), [(5, 1, None)]);
}

#[test]
fn cleaning_stops_at_an_open_transaction() {
    let root = scratch("compact-open");
    let pair: [Pair; 1] = [(Some("a"), Some("1"))];
    let segments = [
        [plain(0, &pair), plain(1, &pair)].concat(),
        [batch(transactional(7, 0), 2, &pair), plain(3, &pair)].concat(),
    ];
    let source = write_log(&root.join("t-0"), &segments);
    let target = root.join("target-0");
    assert_eq!(plan(&source, &ALL).clean_until, 2);
    compact_partition(&source, &target, &ALL, &CompactRun::default()).unwrap();
    expect(&target, &[(1, "a"), (2, "a"), (3, "a")]);
    let second = "00000000000000000002.log";
    assert_eq!(fs::read(target.join(second)).unwrap(), fs::read(source.join(second)).unwrap());
}

/// The choice of `LogCleanerManager.cleanableOffsets` and `Cleaner.groupSegmentsBySize`.
#[test]
fn segments_are_chosen_and_grouped_as_by_a_broker() {
    let segment = |offset: i64, timestamp: i64| {
        let mut builder = RecordsBuilder::v2(Compression::None);
        builder.append(offset, timestamp, Some(b"k"), Some(&[0; 100]), &[]).unwrap();
        builder.build().unwrap()
    };
    let segments: Vec<_> =
        [(0, 10), (1, 20), (2, 30), (3, 40), (4, 50)].map(|(at, time)| segment(at, time)).into();
    let size = segments[0].len() as u64;
    let source = write_log(&scratch("compact-groups").join("t-0"), &segments);
    let groups = |options: &CompactOptions| {
        let compaction = plan(&source, options);
        let of = |group: &magicbyte_log::steps::SegmentGroup| {
            (group.base_offset, group.chunks.len(), group.cleaned)
        };
        (compaction.clean_until, compaction.groups.iter().map(of).collect::<Vec<_>>())
    };
    // The active segment is not cleaned.
    let active = CompactOptions { all: false, ..ALL };
    assert_eq!(groups(&active), (4, vec![(0, 4, true), (4, 1, false)]));
    assert_eq!(groups(&ALL), (5, vec![(0, 5, true)]));
    let pairs = CompactOptions { segment_bytes: 2 * size, ..ALL };
    assert_eq!(groups(&pairs), (5, vec![(0, 2, true), (2, 2, true), (4, 1, true)]));
    let single = CompactOptions { segment_bytes: 2 * size - 1, until_offset: Some(2), ..ALL };
    assert_eq!(
        groups(&single),
        (2, vec![(0, 1, true), (1, 1, true), (2, 1, false), (3, 1, false), (4, 1, false)])
    );
    // Records with timestamp 30 and later are younger than the lag.
    let lag = CompactOptions { now: 129, min_compaction_lag_ms: 100, ..ALL };
    assert_eq!(groups(&lag), (2, vec![(0, 2, true), (2, 1, false), (3, 1, false), (4, 1, false)]));
}

/// Keys that do not fit in memory are spilled to disk; the result is the same.
#[test]
fn the_memory_limit_does_not_change_the_bytes() {
    let root = scratch("compact-memory");
    let mut log = Vec::new();
    let mut last = BTreeMap::new();
    for base_offset in (0..20_000i64).step_by(500) {
        let mut builder = RecordsBuilder::v2(Compression::Lz4);
        for offset in base_offset..base_offset + 500 {
            let key = format!("key-{}", offset.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64) % 7_000);
            builder.append(offset, 5, Some(key.as_bytes()), Some(b"v"), &[]).unwrap();
            last.insert(key, offset);
        }
        log.extend(builder.build().unwrap());
    }
    let source = write_log(&root.join("t-0"), &[log]);
    let (large, small) = (root.join("large-0"), root.join("small-0"));
    let counts = compact_partition(&source, &large, &ALL, &CompactRun::default()).unwrap();
    let little = CompactRun { memory_bytes: 1, ..CompactRun::default() };
    assert_eq!(compact_partition(&source, &small, &ALL, &little).unwrap(), counts);
    assert_eq!(bytes_of(&small), bytes_of(&large));
    assert_eq!(counts.kept as usize, last.len());
    let mut offsets: Vec<i64> = last.into_values().collect();
    offsets.sort_unstable();
    assert_eq!(rows(&large).iter().map(|row| row.offset).collect::<Vec<_>>(), offsets);
}

#[test]
fn a_damaged_batch_is_left_out_and_its_keys_do_not_count() {
    let root = scratch("compact-damage");
    let pair: [Pair; 1] = [(Some("a"), Some("1"))];
    let mut damaged = plain(1, &pair);
    *damaged.last_mut().unwrap() ^= 1;
    let log = [plain(0, &pair), damaged.clone(), plain(2, &[(Some("b"), Some("1"))])].concat();
    let source = write_log(&root.join("t-0"), &[log]);
    let target = root.join("target-0");
    let error = compact_partition(&source, &target, &ALL, &CompactRun::default()).unwrap_err();
    assert!(matches!(error, LogError::Format { .. }), "{error}");
    assert!(!target.exists());

    let permissive = CompactRun { mode: DamageMode::Permissive, ..CompactRun::default() };
    let counts = compact_partition(&source, &target, &ALL, &permissive).unwrap();
    assert_eq!((counts.kept, counts.superseded), (2, 0));
    expect(&target, &[(0, "a"), (2, "b")]);

    let compaction = plan(&source, &ALL);
    let out = root.join("out");
    let (indexed, lists) = index(&compaction, &out);
    let cleaned = clean(&compaction, &indexed, lists, &out, DamageMode::Permissive).unwrap();
    let [problem] = &cleaned.problems.listed[..] else { panic!("{:?}", cleaned.problems) };
    assert_eq!(
        (problem.kind.as_str(), problem.first_lost_offset, problem.last_lost_offset),
        ("crc_mismatch", Some(1), Some(1))
    );
    assert_eq!(cleaned.results[0].quarantined_bytes, damaged.len() as u64);
    assert!(cleaned.results[0].balanced());
}

/// Kafka's cleaner thread dies on such a batch.
#[test]
fn a_batch_whose_offsets_do_not_rise_is_copied_whole() {
    let root = scratch("compact-unordered");
    let mut unordered = plain(0, &[(Some("a"), Some("1")), (Some("a"), Some("2"))]);
    // A record is its length, attributes, timestamp delta, offset delta: swap the offset deltas 0 and 1.
    let second = 61 + 1 + usize::from(unordered[61] / 2);
    unordered[61 + 3] = 2;
    unordered[second + 3] = 0;
    let crc = crc32c(&unordered[21..], 0);
    unordered[17..21].copy_from_slice(&crc.to_be_bytes());
    let log = [unordered.clone(), plain(2, &[(Some("a"), Some("3"))])].concat();
    let source = write_log(&root.join("t-0"), &[log]);
    let compaction = plan(&source, &ALL);
    let out = root.join("out");
    let (indexed, lists) = index(&compaction, &out);

    let cleaned = clean(&compaction, &indexed, lists.clone(), &out, DamageMode::Permissive).unwrap();
    assert_eq!((cleaned.counts.copied_batches, cleaned.counts.superseded, cleaned.counts.kept), (2, 0, 3));
    let [problem] = &cleaned.problems.listed[..] else { panic!("{:?}", cleaned.problems) };
    assert!(problem.message.contains("offsets do not rise"), "{}", problem.message);
    assert_eq!((problem.start, problem.end), (Some(0), Some(unordered.len() as u64)));
    assert!(fs::read(out.join(SEGMENT)).unwrap().starts_with(&unordered));

    let strict = clean(&compaction, &indexed, lists, &root.join("strict"), DamageMode::FailFast).unwrap_err();
    assert!(strict.to_string().contains("offsets do not rise"), "{strict}");
}

#[test]
fn a_log_that_changes_between_the_passes_is_refused() {
    let root = scratch("compact-changed");
    let batches = [plain(0, &[(Some("a"), Some("1"))]), plain(1, &[(Some("b"), Some("1"))])];
    let source = write_log(&root.join("t-0"), &[batches.concat()]);
    let compaction = plan(&source, &ALL);
    let (indexed, lists) = index(&compaction, &root.join("out"));
    let other = plain(1, &[(Some("c"), Some("1"))]);
    fs::write(source.join(SEGMENT), [batches[0].clone(), other].concat()).unwrap();
    let changed = clean(&compaction, &indexed, lists, &root.join("out"), DamageMode::Permissive).unwrap_err();
    assert!(
        matches!(&changed, LogError::Usage(why) if why.ends_with("changed while it was read")),
        "{changed}"
    );
}
