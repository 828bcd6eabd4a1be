//! Redaction of real partitions and of built logs: the selected records are removed, everything else is kept,
//! and no byte of the output contains a key.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use magicbyte::{Batches, Compression, RecordsBuilder};
use magicbyte_log::steps::{
    CheckedSegment, CleanOptions, Cleaned, IndexedChunk, KeySet, Plan, ProducerSummary, Rule, Selection,
    check_segment, clean_group, index_keys, plan_partition, plan_redaction, survey_segment,
};
use magicbyte_log::{
    ChunkResult, DamageMode, PlanOptions, WriteOptions, begin_partition, finish_partition, list_partition,
};
use magicbyte_testing::{data, files, json_lines, partitions, scratch};

use crate::support::rows::{Row, assert_rows, kafkas_rows, rows};

const LIMIT: usize = 64 << 20;
const SEGMENT: &str = "00000000000000000000.log";

/// The records that a redaction selects.
struct Request {
    keys: Vec<Vec<u8>>,
    tombstones: bool,
    /// Changes the chunks of the first pass, as an expression does that selects records.
    select: fn(&mut IndexedChunk),
}

impl Request {
    fn of(keys: &[&[u8]]) -> Self {
        let keys = keys.iter().map(|key| key.to_vec()).collect();
        Self { keys, tombstones: false, select: |_| {} }
    }

    fn key_set(&self) -> Arc<KeySet> {
        Arc::new(KeySet::new(self.keys.clone()))
    }
}

fn plan(source: &Path) -> Plan {
    let listing = list_partition(source, false).unwrap();
    let surveys: Vec<_> = listing.segments.iter().map(|segment| survey_segment(segment).unwrap()).collect();
    let whole = PlanOptions { chunk_bytes: u64::MAX, ..PlanOptions::default() };
    plan_partition(&listing, &surveys, whole).unwrap()
}

/// Runs all steps of a redaction. Gives the result of each group; there is one per segment.
fn redact(source: &Path, target: &Path, request: &Request) -> Vec<Cleaned> {
    let redaction = plan_redaction(&plan(source)).unwrap();
    let chunks: Vec<_> = redaction.groups.iter().flat_map(|group| group.chunks.clone()).collect();
    let mut indexed = index_keys(&chunks, None, LIMIT, None, DamageMode::Permissive).unwrap();
    indexed.chunks.iter_mut().for_each(request.select);
    let summary = ProducerSummary::of(&[indexed.producers], None);
    let selection = Selection { keys: request.key_set(), tombstones: request.tombstones };
    let options = CleanOptions {
        rule: Rule::Redact(selection),
        clean_until: redaction.clean_until,
        max_decompressed_bytes: LIMIT,
        mode: DamageMode::Permissive,
        write: WriteOptions::default(),
    };
    let directory = begin_partition(target).unwrap();
    let mut rest = &indexed.chunks[..];
    let mut cleaned = Vec::new();
    for group in &redaction.groups {
        let (chunks, later) = rest.split_at(group.chunks.len());
        rest = later;
        cleaned.push(clean_group(group, chunks, &summary, &directory, &options).unwrap());
    }
    let segments: Vec<_> = cleaned.iter().flat_map(|group| group.segments.clone()).collect();
    finish_partition(target, &segments, None, Some(&source.into())).unwrap();
    cleaned
}

fn check(directory: &Path, request: &Request) -> Vec<CheckedSegment> {
    let keys = request.key_set();
    let segments = files(directory, ".log");
    segments.iter().map(|path| check_segment(path, &keys, request.tombstones, LIMIT).unwrap()).collect()
}

fn holds(directory: &Path, bytes: &[u8]) -> bool {
    files(directory, "")
        .iter()
        .any(|path| fs::read(path).unwrap().windows(bytes.len()).any(|window| window == bytes))
}

fn write_log(directory: &Path, batches: &[Vec<u8>]) {
    fs::create_dir_all(directory).unwrap();
    fs::write(directory.join(SEGMENT), batches.concat()).unwrap();
}

/// The key of the first data record that has one.
fn first_key(source: &Path) -> Option<Vec<u8>> {
    let lines = json_lines(&source.join("expected.jsonl"));
    let keys = lines.iter().filter(|line| line["control"] == false).filter_map(|line| line["key"].as_str());
    keys.filter(|key| !key.is_empty()).map(|key| hex::decode(key).unwrap()).next()
}

#[test]
fn one_key_of_a_real_partition_is_redacted_and_the_rest_is_kept() {
    let root = scratch("redact-partitions");
    let mut redacted = 0;
    for source in partitions() {
        let name = source.file_name().unwrap().to_str().unwrap();
        let Some(key) = first_key(&source) else { continue };
        let target = root.join(format!("{name}-0"));
        let request = Request::of(&[&key]);
        let leaks_before: u64 = check(&source, &request).iter().map(|checked| checked.leaks).sum();
        let cleaned = redact(&source, &target, &request);

        let all = kafkas_rows(&source);
        let key = Row::key_of(&key);
        let (removed, kept): (Vec<Row>, Vec<Row>) = all.into_iter().partition(|row| row.key == key);
        assert_rows(&rows(&target), &kept, name);
        let sum = |of: fn(&Cleaned) -> u64| cleaned.iter().map(of).sum::<u64>();
        assert_eq!(sum(|group| group.counts.redacted), removed.len() as u64, "{name}");
        assert_eq!(sum(|group| group.counts.nulled + group.counts.superseded), 0, "{name}");
        assert!(leaks_before >= removed.len() as u64, "{name}: the check must find them in the source");
        let offsets: Vec<i64> = cleaned
            .iter()
            .flat_map(|group| &group.redacted)
            .flat_map(|offsets| offsets.ranges.iter().flat_map(|&(first, last)| first..=last))
            .collect();
        assert_eq!(offsets, removed.iter().map(|row| row.offset).collect::<Vec<_>>(), "{name}");
        assert!(cleaned.iter().flat_map(|group| &group.results).all(ChunkResult::balanced), "{name}");
        for checked in check(&target, &request) {
            assert_eq!((checked.leaks, &checked.first_leaks[..]), (0, &[][..]), "{name}");
        }
        redacted += removed.len();
    }
    assert!(redacted > 500, "{redacted}");
}

#[test]
fn tombstones_keep_key_offset_and_timestamp() {
    for name in ["v0_gzip", "v1_lz4", "v2_zstd", "v2_headers", "v2_txn"] {
        let source = data().join(name);
        let key = first_key(&source).unwrap();
        let target = scratch(&format!("redact-tombstones-{name}")).join("t-0");
        let request = Request { tombstones: true, ..Request::of(&[&key]) };
        let cleaned = redact(&source, &target, &request);
        let own = Row::key_of(&key);
        let expected: Vec<Row> = kafkas_rows(&source)
            .into_iter()
            .map(|row| if row.key == own { Row { value: None, headers: Vec::new(), ..row } } else { row })
            .collect();
        let nulled = expected.iter().filter(|row| row.key == own).count() as u64;
        assert_rows(&rows(&target), &expected, name);
        assert_eq!(cleaned.iter().map(|group| group.counts.nulled).sum::<u64>(), nulled, "{name}");
        assert_eq!(cleaned.iter().map(|group| group.counts.redacted).sum::<u64>(), 0, "{name}");
        assert!(check(&target, &request).iter().all(|checked| checked.leaks == 0), "{name}");
        // If tombstones are not allowed, each of them is a leak.
        let strict = check(&target, &Request::of(&[&key]));
        assert_eq!(strict.iter().map(|checked| checked.leaks).sum::<u64>(), nulled, "{name}");
        assert_eq!(
            strict.iter().find_map(|checked| checked.first_leaks.first()).unwrap().what,
            "a record with one of the keys"
        );
    }
}

#[test]
fn keys_are_removed_and_reported_where_other_records_contain_them() {
    let root = scratch("redact-keys");
    let source = root.join("t-0");
    let (alice, bob) = (b"alice@example.org".as_slice(), b"bob".as_slice());
    let mut builder = RecordsBuilder::v2(Compression::None);
    builder.append(0, 1, Some(alice), Some(b"1"), &[]).unwrap();
    builder.append(1, 1, Some(bob), Some(b"2"), &[]).unwrap();
    builder.append(2, 1, Some(b"carol"), Some(b"3"), &[]).unwrap();
    let first = builder.build().unwrap();
    let mut builder = RecordsBuilder::v1(Compression::Gzip);
    builder.append(3, 1, Some(alice), Some(b"4"), &[]).unwrap();
    builder.append(4, 1, Some(b"carol"), Some(b"5"), &[]).unwrap();
    write_log(&source, &[first, builder.build().unwrap()]);

    let target = root.join("target-0");
    let request = Request::of(&[b"dave", bob, alice]);
    let [cleaned] = &redact(&source, &target, &request)[..] else { panic!("one segment") };
    assert_eq!(rows(&target).iter().map(|row| row.offset).collect::<Vec<_>>(), [2, 4]);
    assert_eq!((cleaned.counts.redacted, cleaned.counts.rewritten_batches, cleaned.counts.kept), (3, 2, 2));
    assert_eq!(cleaned.redacted[0].ranges, [(0, 1), (3, 3)]);
    // One bit for each key that a record had; bits are in the sorted order of the keys.
    assert_eq!(cleaned.matched, [0b110]);
    assert!(holds(&source, alice) && !holds(&target, alice));

    // Other records are searched only for keys of at least eight bytes.
    let mut builder = RecordsBuilder::v2(Compression::None);
    let longer = [alice, b".uk"].concat();
    builder.append(0, 1, Some(&longer), Some(b"bob"), &[]).unwrap();
    let header = magicbyte::Header { key: "from".as_bytes(), value: Some(alice) };
    builder.append(1, 1, None, Some(alice), &[header]).unwrap();
    let other = root.join("other-0");
    write_log(&other, &[builder.build().unwrap()]);
    let [checked] = &check(&other, &request)[..] else { panic!("one segment") };
    assert_eq!((checked.in_keys, checked.in_values, checked.in_headers, checked.leaks), (1, 1, 1, 0));
}

#[test]
fn selected_records_are_redacted_by_number() {
    let root = scratch("redact-selected");
    let source = root.join("t-0");
    let batches: Vec<Vec<u8>> = [0, 4]
        .map(|base_offset| {
            let mut builder = RecordsBuilder::v2(Compression::Snappy).partition_leader_epoch(0);
            for offset in base_offset..base_offset + 4 {
                builder.append(offset, 1, Some(b"k"), Some(b"v"), &[]).unwrap();
            }
            builder.build().unwrap()
        })
        .into();
    write_log(&source, &batches);
    let target = root.join("target-0");
    let select = |chunk: &mut IndexedChunk| {
        assert_eq!(chunk.records, 8);
        // Records 1 and 2 of the second batch; both batches have the same size.
        let second = chunk.result.good_bytes / 2;
        chunk.selected = vec![(second, vec![(1, 2)])];
    };
    let [cleaned] = &redact(&source, &target, &Request { select, ..Request::of(&[]) })[..] else {
        panic!("one segment")
    };
    assert_eq!(batches[0].len(), batches[1].len());
    assert_eq!(rows(&target).iter().map(|row| row.offset).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 7]);
    assert_eq!((cleaned.counts.copied_batches, cleaned.counts.rewritten_batches), (1, 1));
    assert_eq!(cleaned.redacted[0].ranges, [(5, 6)]);
    // The first batch is copied unchanged, and both keep their offsets.
    let written = fs::read(target.join(SEGMENT)).unwrap();
    assert!(written.starts_with(&batches[0]));
    let last: Vec<i64> = Batches::new(&written).map(|batch| batch.unwrap().last_offset()).collect();
    assert_eq!(last, [3, 7]);
}

/// Bytes after the last record are returned by no reader, but may contain anything.
#[test]
fn bytes_that_no_reader_returns_are_removed() {
    let root = scratch("redact-unread");
    let source = root.join("t-0");
    let secret = b"alice@example.org";
    let mut builder = RecordsBuilder::v1(Compression::None);
    builder.append(0, 1, Some(b"k"), Some(b"v"), &[]).unwrap();
    let mut message = builder.build().unwrap();
    message.extend_from_slice(secret);
    let length = message.len() as i32 - 12;
    message[8..12].copy_from_slice(&length.to_be_bytes());
    let crc = {
        let mut crc = !0u32;
        for &byte in &message[16..] {
            crc ^= u32::from(byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
            }
        }
        !crc
    };
    message[12..16].copy_from_slice(&crc.to_be_bytes());
    write_log(&source, &[message]);
    let request = Request::of(&[&secret[..]]);
    let [before] = &check(&source, &request)[..] else { panic!("one segment") };
    let leaks: Vec<&str> = before.first_leaks.iter().map(|leak| leak.what.as_str()).collect();
    assert_eq!(leaks, ["bytes that no reader returns", "one of the keys after the records"]);

    let target = root.join("target-0");
    let [cleaned] = &redact(&source, &target, &request)[..] else { panic!("one segment") };
    assert_eq!((cleaned.counts.redacted, cleaned.counts.stripped_batches, cleaned.counts.kept), (0, 1, 1));
    assert_rows(&rows(&target), &rows(&source), "the record");
    assert!(!holds(&target, secret));
    assert!(check(&target, &request).iter().all(|checked| checked.leaks == 0));
}
