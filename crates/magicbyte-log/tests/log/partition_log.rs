//! Partition directories: sidecars, accounts, seeking and isolation, compared with Kafka's.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use magicbyte::Decompressor;
use magicbyte::sidecar::{
    parse_leader_epoch_checkpoint, parse_offset_index, parse_partition_metadata, parse_producer_snapshot,
    parse_time_index, parse_transaction_index,
};
use magicbyte::state::IsolationLevel;
use magicbyte_log::steps::{Survey, plan_partition, survey_segment};
use magicbyte_log::{
    DamageMode, Disposition, IgnoreReason, LISTED, Listing, LogBatches, PartitionLog, PlanOptions, Problem,
    ReadOptions, list_partition,
};
use magicbyte_testing::handmade::{V2, gzip_stored, plain_record};
use magicbyte_testing::{CanonicalDigest, data, json, json_lines, partitions, scratch};

/// Kafka lists the preallocated zeros of a live copy as entries; real entries end where they stop increasing.
fn without_zero_tail(entries: &Value, key: usize) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::new();
    for entry in entries.as_array().unwrap() {
        let last = kept.last().map_or(i64::MIN, |e| e[key].as_i64().unwrap());
        if entry[key].as_i64().unwrap() <= last
            && entry[1 - key].as_i64().unwrap() <= kept[0][1 - key].as_i64().unwrap()
        {
            break;
        }
        kept.push(entry.clone());
    }
    let all_zero = |e: &Value, base: i64| e[key] == json!(if key == 0 { base } else { 0 });
    if kept.len() == 1 && kept[0][1] == json!(0) && all_zero(&kept[0], kept[0][0].as_i64().unwrap()) {
        kept.clear();
    }
    kept
}

#[test]
fn sidecars_have_kafkas_entries() {
    let mut seen = 0;
    for dir in partitions() {
        for line in json_lines(&dir.join("sidecars.jsonl")) {
            let file = line["file"].as_str().unwrap();
            let bytes = fs::read(dir.join(file)).unwrap();
            let base = file.get(..20).and_then(|digits| digits.parse::<i64>().ok()).unwrap_or(0);
            let context = format!("{} {file}", dir.display());
            let expected = &line["entries"];
            match line["kind"].as_str().unwrap() {
                "index" => {
                    let ours = parse_offset_index(&bytes, base).expect(&context);
                    let ours: Vec<_> = ours.iter().map(|e| json!([e.offset, e.position])).collect();
                    assert_eq!(ours, without_zero_tail(expected, 0), "{context}");
                }
                "timeindex" => {
                    let ours = parse_time_index(&bytes, base).expect(&context);
                    let ours: Vec<_> = ours.iter().map(|e| json!([e.timestamp, e.offset])).collect();
                    assert_eq!(ours, without_zero_tail(expected, 0), "{context}");
                }
                "txnindex" => {
                    let ours: Vec<_> = parse_transaction_index(&bytes)
                        .expect(&context)
                        .iter()
                        .map(|e| {
                            json!({
                                "version": e.version, "pid": e.producer_id, "firstOffset": e.first_offset,
                                "lastOffset": e.last_offset, "lastStableOffset": e.last_stable_offset,
                            })
                        })
                        .collect();
                    assert_eq!(json!(ours), *expected, "{context}");
                }
                "snapshot" => {
                    let ours: Vec<_> = parse_producer_snapshot(&bytes).expect(&context).iter().map(|e| json!({
                        "pid": e.producer_id, "epoch": e.producer_epoch, "lastSequence": e.last_sequence(),
                        "lastOffset": e.last_offset(), "lastTimestamp": e.last_timestamp,
                        "firstDataOffset": e.last_offset() - i64::from(e.offset_delta()),
                        "coordinatorEpoch": e.coordinator_epoch,
                        "currentTxnFirstOffset": e.current_txn_first_offset,
                    })).collect();
                    for (ours, theirs) in ours.iter().zip(expected.as_array().unwrap()) {
                        if ours["lastOffset"] != json!(-1) {
                            assert_eq!(ours, theirs, "{context}");
                        }
                    }
                    assert_eq!(ours.len(), expected.as_array().unwrap().len(), "{context}");
                }
                _ => {
                    let text = String::from_utf8(bytes).unwrap();
                    let ours = parse_leader_epoch_checkpoint(&text).expect(&context);
                    let ours: Vec<_> = ours.iter().map(|e| json!([e.epoch, e.start_offset])).collect();
                    assert_eq!(json!(ours), *expected, "{context}");
                }
            }
            seen += 1;
        }
        if let Ok(text) = fs::read_to_string(dir.join("partition.metadata")) {
            assert_eq!(parse_partition_metadata(&text).unwrap().topic_id.len(), 22);
        }
    }
    assert!(seen > 200, "{seen}");
}

/// Number and digest of the data records, computed as Kafka's reader does.
fn digest(batches: LogBatches) -> (u64, String) {
    let mut digest = CanonicalDigest::default();
    let mut decompressor = Decompressor::new();
    let mut records = 0;
    for batch in batches {
        let batch = batch.unwrap();
        if batch.disposition != Disposition::Rows {
            continue;
        }
        for record in batch.data.batch().records(&mut decompressor).unwrap() {
            digest.add(&record.unwrap());
            records += 1;
        }
    }
    (records, digest.finish())
}

#[test]
fn every_partition_reads_and_balances() {
    for dir in partitions() {
        let name = dir.file_name().unwrap().to_str().unwrap();
        let summary = json(&dir.join("summary.json"));
        let log = PartitionLog::open(&dir).unwrap();
        let (records, sha256) = digest(log.batches(ReadOptions::default()).unwrap());
        assert_eq!(json!(records), summary["dataRecords"], "{name}");
        assert_eq!(json!(sha256), summary["sha256"], "{name}");

        let sums = log.verify(PlanOptions::default()).unwrap();
        assert!(sums.balanced, "{name}: {sums:?}");
        assert_eq!(json!(sums.rows), summary["dataRecords"], "{name}");
        assert_eq!(json!(sums.announced), summary["records"], "{name}");
        assert_eq!(sums.quarantined_bytes, 0, "{name}: {sums:?}");
        assert_eq!(sums.good_bytes + sums.tail_bytes, sums.size, "{name}");
        for (segment, theirs) in sums.segments.iter().zip(summary["segments"].as_array().unwrap()) {
            assert_eq!(json!(segment.file), theirs["segment"], "{name}");
            assert_eq!(json!(segment.result.good_bytes), theirs["parsedBytes"], "{name}");
            assert_eq!(json!(segment.result.good_batches), theirs["batches"], "{name}");
        }
    }
}

#[test]
fn read_committed_is_kafkas_committed_view() {
    let mut with_transactions = 0;
    for dir in partitions() {
        let expected = dir.join("committed.jsonl");
        if !expected.exists() {
            continue;
        }
        let expected: Vec<i64> =
            json_lines(&expected).iter().map(|v| v["offset"].as_i64().unwrap()).collect();
        let log = PartitionLog::open(&dir).unwrap();
        let options =
            ReadOptions { isolation_level: IsolationLevel::ReadCommitted, ..ReadOptions::default() };
        let mut decompressor = Decompressor::new();
        let mut offsets = Vec::new();
        for batch in log.batches(options).unwrap() {
            let batch = batch.unwrap();
            if batch.disposition == Disposition::Rows {
                for record in batch.data.batch().records(&mut decompressor).unwrap() {
                    let offset = record.unwrap().offset();
                    if (batch.start_offset..batch.end_offset).contains(&offset) {
                        offsets.push(offset);
                    }
                }
            }
        }
        assert_eq!(offsets, expected, "{}", dir.display());
        let plan = PlanOptions { isolation_level: IsolationLevel::ReadCommitted, ..PlanOptions::default() };
        let sums = log.verify(plan).unwrap();
        assert!(sums.balanced);
        assert_eq!(sums.rows as usize, expected.len());
        with_transactions += 1;
    }
    assert_eq!(with_transactions, 3);
}

fn offsets_from(log: &PartitionLog, options: ReadOptions) -> Vec<i64> {
    let mut decompressor = Decompressor::new();
    let mut offsets = Vec::new();
    for batch in log.batches(options).unwrap() {
        let batch = batch.unwrap();
        for record in batch.data.batch().records(&mut decompressor).unwrap() {
            let offset = record.unwrap().offset();
            if (batch.start_offset..batch.end_offset).contains(&offset) {
                offsets.push(offset);
            }
        }
    }
    offsets
}

#[test]
fn seeks_by_offset_and_timestamp_with_good_missing_and_wrong_indexes() {
    let scratch = std::env::temp_dir().join(format!("magicbyte-seek-{}", std::process::id()));
    for name in ["v2_none", "v1_lz4", "mixed_012", "v2_compacted", "v2_live", "v0_compacted_codecs"] {
        let expected = json_lines(&data().join(name).join("expected.jsonl"));
        let offsets: Vec<i64> = expected.iter().map(|r| r["offset"].as_i64().unwrap()).collect();
        let times: Vec<i64> = expected.iter().map(|r| r["timestamp"].as_i64().unwrap()).collect();
        for indexes in ["as they are", "missing", "wrong"] {
            let dir = scratch.join(name);
            fs::create_dir_all(&dir).unwrap();
            for file in fs::read_dir(data().join(name)).unwrap().map(|e| e.unwrap().path()) {
                let is_index = file.extension().is_some_and(|e| e == "index" || e == "timeindex");
                if !file.is_file() || is_index && indexes == "missing" {
                    continue;
                }
                let mut bytes = fs::read(&file).unwrap();
                if is_index && indexes == "wrong" {
                    // Each offset and position is plausible but wrong.
                    bytes.iter_mut().skip(3).step_by(4).for_each(|byte| *byte = byte.wrapping_add(40));
                }
                fs::write(dir.join(file.file_name().unwrap()), bytes).unwrap();
            }
            let log = PartitionLog::open(&dir).unwrap();
            for (start, end) in [(0, None), (5, None), (57, Some(80)), (200, None), (1 << 40, None)] {
                let options =
                    ReadOptions { start_offset: Some(start), end_offset: end, ..ReadOptions::default() };
                let wanted: Vec<i64> = offsets
                    .iter()
                    .copied()
                    .filter(|&o| o >= start && end.is_none_or(|end| o < end))
                    .collect();
                assert_eq!(offsets_from(&log, options), wanted, "{name} {indexes} {start}");
            }
            for time in [times[0], times[times.len() / 2], times[times.len() / 2] + 1, i64::MAX] {
                let expected = times.iter().position(|&t| t >= time).map(|at| offsets[at]);
                assert_eq!(log.offset_for_timestamp(time).unwrap(), expected, "{name} {indexes} {time}");
                let plan = log.plan(PlanOptions::default()).unwrap();
                let planned = magicbyte_log::steps::offset_for_timestamp(&plan, time).unwrap();
                assert_eq!(planned, expected, "{name} {indexes} {time}");
            }
            fs::remove_dir_all(&dir).unwrap();
        }
    }
}

fn copy_partition(name: &str, scratch: &Path) {
    fs::create_dir_all(scratch).unwrap();
    for file in fs::read_dir(data().join(name)).unwrap().map(|e| e.unwrap().path()) {
        let ending = file.extension().unwrap_or_default().to_str().unwrap();
        if file.is_file() && !["jsonl", "json"].contains(&ending) {
            fs::copy(&file, scratch.join(file.file_name().unwrap())).unwrap();
        }
    }
}

#[test]
fn other_files_are_reported_and_never_read_as_segments() {
    let dir = std::env::temp_dir().join(format!("magicbyte-files-{}", std::process::id())).join("orders-7");
    copy_partition("v2_none", &dir);
    let first = "00000000000000000000.log";
    for name in [
        "00000000000000000000.log.deleted",
        "00000000000000000000.log.cleaned",
        "00000000000000000000.log.swap",
        "notes.txt",
        "17.log",
    ] {
        fs::copy(dir.join(first), dir.join(name)).unwrap();
    }
    // A copy of segment 0 under another name: all its offsets are duplicates.
    fs::copy(dir.join(first), dir.join("00000000000000000001.log")).unwrap();
    let log = PartitionLog::open(&dir).unwrap();
    assert_eq!((log.listing().topic.as_str(), log.listing().partition), ("orders", 7));
    let sums = log.verify(PlanOptions::default()).unwrap();
    assert!(sums.balanced);
    assert_eq!(sums.rows, 346);
    let mut reasons: Vec<_> = sums.ignored.iter().map(|f| f.reason.name()).collect();
    reasons.sort_unstable();
    assert_eq!(reasons, ["cleaned", "deleted", "foreign", "foreign", "overlapping", "swap"]);
    let (records, _) = digest(log.batches(ReadOptions::default()).unwrap());
    assert_eq!(records, 346, "no record of the overlapping copy is returned");
    fs::remove_dir_all(dir.parent().unwrap()).unwrap();
}

#[test]
fn checkpoints_are_read_on_request() {
    let dir = data().join("cluster_metadata");
    let without = list_partition(&dir, false).unwrap();
    assert!(without.ignored.iter().any(|f| f.reason == IgnoreReason::Checkpoint));
    let checkpoint = magicbyte_testing::files(&dir, ".checkpoint").remove(0);
    let sums = PartitionLog::open(&checkpoint).unwrap().verify(PlanOptions::default()).unwrap();
    let expected = json_lines(&dir.join("expected.00000000000000001951-0000000005.jsonl"));
    assert!(sums.balanced);
    assert_eq!(sums.announced as usize, expected.len());
    assert_eq!(
        sums.control,
        2 + expected.iter().filter(|r| r["controlType"] == "KRAFT_VERSION").count() as u64
            + expected.iter().filter(|r| r["controlType"] == "KRAFT_VOTERS").count() as u64
    );
}

#[test]
fn damage_is_quarantined_and_the_rest_is_kept() {
    let dir = std::env::temp_dir().join(format!("magicbyte-damage-{}", std::process::id())).join("t-0");
    let name = "00000000000000000000.log";
    let batches = json_lines(&data().join("v2_mixed_codecs/batches.jsonl"));
    let middle = batches.iter().filter(|b| b["segment"] == name).nth(3).unwrap();
    let (position, size) = (middle["position"].as_u64().unwrap(), middle["size"].as_u64().unwrap());
    let total: u64 = batches.iter().map(|b| b["count"].as_u64().unwrap()).sum();

    let verify_in = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        copy_partition("v2_mixed_codecs", &dir);
        let mut bytes = fs::read(dir.join(name)).unwrap();
        change(&mut bytes);
        fs::write(dir.join(name), bytes).unwrap();
        let sums = PartitionLog::open(&dir).unwrap().verify(PlanOptions::default()).unwrap();
        assert!(sums.balanced, "{sums:?}");
        sums
    };
    let verify = |change: &dyn Fn(&mut Vec<u8>)| verify_in(name, change);
    // A flipped byte in a batch costs only that batch.
    let sums = verify(&|bytes| bytes[position as usize + 70] ^= 1);
    let quarantined = &sums.segments[0].result.quarantined;
    assert_eq!((quarantined[0].start, quarantined[0].end), (position, position + size));
    assert_eq!(quarantined[0].reason, "crc_mismatch");
    assert_eq!(sums.rows, total - middle["count"].as_u64().unwrap());
    assert_eq!(sums.missing_offsets, middle["count"].as_u64().unwrap());
    // A flipped bit of the base offset, which no CRC covers.
    for flip in [0, 5, 7] {
        let sums = verify(&|bytes| bytes[position as usize + flip] ^= 0x10);
        let ranges: Vec<_> = sums.segments[0].result.quarantined.iter().map(|r| (r.start, r.end)).collect();
        assert_eq!(ranges, [(position, position + size)], "byte {flip}");
        assert_eq!(sums.segments[0].result.quarantined[0].reason, "offset_out_of_order");
    }
    // A length beyond the end of the file is not mistaken for a torn tail.
    let sums = verify(&|bytes| bytes[position as usize + 9] = 0x7f);
    assert_eq!(sums.segments[0].result.quarantined[0].reason, "invalid_size");
    assert_eq!(sums.tail_bytes, 0);
    // Zeros or text after the last batch; only the last segment may have a tail.
    for (tail, tail_bytes, quarantined_bytes) in [
        (vec![0; 10], 10, 0),
        (vec![0; 5000], 5000, 0),
        (b"hello worl".to_vec(), 0, 10),
        (vec![7; 300], 0, 300),
    ] {
        let sums = verify_in("00000000000000000235.log", &|bytes| bytes.extend(&tail));
        assert_eq!((sums.tail_bytes, sums.quarantined_bytes), (tail_bytes, quarantined_bytes), "{tail:?}");
        assert_eq!(sums.rows, total);
        let sums = verify(&|bytes| bytes.extend(&tail));
        assert_eq!(
            (sums.tail_bytes, sums.quarantined_bytes),
            (0, tail_bytes + quarantined_bytes),
            "{tail:?}"
        );
        assert_eq!(sums.rows, total);
    }
    fs::remove_dir_all(dir.parent().unwrap()).unwrap();
}

#[test]
fn a_file_that_shrinks_after_listing_is_accounted_for() {
    let dir = std::env::temp_dir().join(format!("magicbyte-shrink-{}", std::process::id())).join("t-0");
    for keep in [0, 5, 12, 3000, 4096] {
        copy_partition("v2_lz4", &dir);
        let log = PartitionLog::open(&dir).unwrap();
        let plan = log.plan(PlanOptions::default()).unwrap();
        let (first, size) = (&plan.chunks[0], plan.segments[0].segment.size);
        fs::OpenOptions::new().write(true).open(first.location.path()).unwrap().set_len(keep).unwrap();
        // `log` listed the file before it shrank, and plans it again after.
        let sums = log.verify(PlanOptions::default()).unwrap();
        assert!(sums.balanced, "{sums:?}");
        assert_eq!(sums.segments[0].size, size);
        let lost = sums.segments[0].result.quarantined.last().unwrap();
        assert_eq!((lost.reason.as_str(), lost.end), ("file_truncated", size));
        assert!(lost.start <= keep);
        assert!(sums.rows > 0, "the other segment is still read");
    }
    fs::remove_dir_all(dir.parent().unwrap()).unwrap();
}

#[test]
fn impossible_sidecars_are_reported_and_not_used() {
    let dir = std::env::temp_dir().join(format!("magicbyte-sidecars-{}", std::process::id())).join("t-0");
    copy_partition("v2_txn", &dir);
    let beyond = [0u32.to_be_bytes(), (1u32 << 30).to_be_bytes()].concat();
    fs::write(dir.join("00000000000000000000.index"), beyond).unwrap();
    fs::write(dir.join("00000000000000000007.timeindex"), [7; 13]).unwrap();
    fs::write(dir.join("00000000000000000007.txnindex"), []).unwrap();
    fs::write(dir.join("00000000000000000007.snapshot"), [0; 9]).unwrap();
    let log = PartitionLog::open(&dir).unwrap();
    let options = PlanOptions { isolation_level: IsolationLevel::ReadCommitted, ..PlanOptions::default() };
    let plan = log.plan(options).unwrap();
    let mut kinds: Vec<_> = plan.problems.iter().map(|p| p.kind.as_str()).collect();
    kinds.sort_unstable();
    assert_eq!(
        kinds,
        ["index_beyond_log", "invalid_sidecar", "invalid_sidecar", "transaction_index_mismatch"]
    );
    let committed = json_lines(&data().join("v2_txn/committed.jsonl"));
    assert_eq!(
        log.verify(options).unwrap().rows as usize,
        committed.len(),
        "the markers decide, not the index"
    );
    fs::remove_dir_all(dir.parent().unwrap()).unwrap();
}

#[test]
fn the_transaction_index_beside_a_compressed_segment() {
    let dir = scratch("compressed-index").join("t-0");
    copy_partition("v2_txn", &dir);
    let segment = dir.join("00000000000000000007.log");
    let packed = gzip_stored(&fs::read(&segment).unwrap());
    fs::write(dir.join("00000000000000000007.log.gz"), packed).unwrap();
    fs::remove_file(segment).unwrap();
    fs::write(dir.join("00000000000000000007.txnindex"), []).unwrap();
    let options = PlanOptions { isolation_level: IsolationLevel::ReadCommitted, ..PlanOptions::default() };
    let problems = PartitionLog::open(&dir).unwrap().plan(options).unwrap().problems;
    let found: Vec<_> = problems.iter().map(|p| (p.kind.as_str(), p.segment.as_deref())).collect();
    assert_eq!(found, [("transaction_index_mismatch", Some("00000000000000000007.txnindex"))]);
}

/// The listing and the surveys of segments of one record each, without their files.
fn many_segments(base_offsets: impl Iterator<Item = i64>) -> (Listing, Vec<Survey>) {
    let directory = scratch("many-segments").join("t-0");
    fs::create_dir_all(&directory).unwrap();
    fs::write(
        directory.join(format!("{:020}.log", 0)),
        V2 { base_offset: 0, ..V2::of(&[plain_record(0)]) }.bytes(),
    )
    .unwrap();
    let mut listing = list_partition(&directory, false).unwrap();
    let only = survey_segment(&listing.segments[0]).unwrap();
    let survey_of = |base_offset: i64| {
        let mut survey = only.clone();
        survey.segment.file = format!("{base_offset:020}.log");
        survey.segment.location = directory.join(&survey.segment.file).into();
        survey.segment.base_offset = base_offset;
        survey.base_offset = base_offset;
        (survey.first_offset, survey.last_offset) = (Some(base_offset), Some(base_offset));
        survey
    };
    let surveys: Vec<_> = base_offsets.map(survey_of).collect();
    listing.segments = surveys.iter().map(|survey| survey.segment.clone()).collect();
    (listing, surveys)
}

/// Each gap between segments ends at the first missing segment in it that the listing has reported, if there is one.
#[test]
fn a_plan_of_many_segments_and_missing_ones_costs_linear_time() {
    const SEGMENTS: i64 = 8_000;
    let (mut listing, surveys) = many_segments((0..SEGMENTS).map(|segment| 10 * segment));
    // In every second gap, and after the last segment.
    let reported = (0..SEGMENTS).map(|segment| 20 * segment + 5);
    listing.problems.extend(reported.rev().map(|offset| Problem {
        segment: Some(format!("{offset:020}.log")),
        kind: "missing_segment".to_owned(),
        ..Problem::default()
    }));
    let begun = Instant::now();
    let plan = plan_partition(&listing, &surveys, PlanOptions::default()).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    let lost = plan.problems.iter().filter_map(|p| Some((p.first_lost_offset?, p.last_lost_offset?)));
    let gaps = (0..SEGMENTS - 1).map(|segment| (10 * segment, if segment % 2 == 0 { 4 } else { 9 }));
    assert!(lost.eq(gaps.map(|(base_offset, last)| (base_offset + 1, base_offset + last))));
}

#[test]
fn a_read_beside_many_missing_segments_costs_linear_time() {
    const MISSING: i64 = 5_000;
    let directory = scratch("many-missing").join("t-0");
    fs::create_dir_all(&directory).unwrap();
    for offset in 1..=MISSING {
        fs::write(directory.join(format!("{offset:020}.index")), []).unwrap();
    }
    let log = PartitionLog::open(&directory).unwrap();
    let begun = Instant::now();
    let options = ReadOptions { mode: DamageMode::Permissive, ..ReadOptions::default() };
    let mut batches = log.batches(options).unwrap();
    assert!(batches.next().is_none());
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(batches.problems().len(), LISTED);
    // Only the last of those that begin before the range can reach into it.
    let range = ReadOptions { start_offset: Some(MISSING - 10), end_offset: Some(MISSING), ..options };
    let mut batches = log.batches(range).unwrap();
    assert!(batches.next().is_none());
    assert_eq!(batches.problems().len(), 10);
}

#[test]
fn an_index_with_the_largest_offset_that_a_name_can_have() {
    let directory = scratch("largest-offset").join("t-0");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join(format!("{:020}.index", i64::MAX)), []).unwrap();
    let log = PartitionLog::open(&directory).unwrap();
    let problems = log.plan(PlanOptions::default()).unwrap().problems;
    let found: Vec<_> =
        problems.iter().map(|p| (p.kind.as_str(), p.first_lost_offset, p.last_lost_offset)).collect();
    assert_eq!(found, [("missing_segment", Some(i64::MAX), None)]);
}

#[test]
fn sidecars_that_are_too_large_or_not_files_are_not_read() {
    let dir = std::env::temp_dir().join(format!("magicbyte-large-{}", std::process::id())).join("t-0");
    copy_partition("v2_none", &dir);
    let log = PartitionLog::open(&dir).unwrap();
    let rows = log.verify(PlanOptions::default()).unwrap().rows;
    let sidecar = |ending: &str| dir.join(log.listing().segments[0].file.replace("log", ending));
    for ending in ["index", "timeindex", "txnindex", "snapshot"] {
        let path = sidecar(ending);
        let _ = fs::remove_file(&path);
        // A sparse file takes no disk space.
        fs::File::create(&path).unwrap().set_len((64 << 20) + 1).unwrap();
        let problems = log.plan(PlanOptions::default()).unwrap().problems;
        let kinds: Vec<_> = problems.iter().map(|p| (p.segment.clone().unwrap(), p.kind.as_str())).collect();
        assert_eq!(kinds, [(path.file_name().unwrap().to_str().unwrap().to_owned(), "limit_exceeded")]);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(log.verify(PlanOptions::default()).unwrap().rows, rows);
        assert_eq!(log.offset_for_timestamp(0).unwrap(), Some(log.listing().segments[0].base_offset));
        fs::remove_dir(&path).unwrap();
    }
    fs::remove_dir_all(dir.parent().unwrap()).unwrap();
}

/// Batches that cross the border of a block are read into the same memory, once nobody holds it.
#[test]
fn the_block_of_a_reader_is_reused() {
    let directory = scratch("one-block").join("t-0");
    fs::create_dir_all(&directory).unwrap();
    let (mut bytes, mut offset) = (Vec::new(), 0);
    while bytes.len() < 20 << 20 {
        let mut builder = magicbyte::RecordsBuilder::v2(magicbyte::Compression::None);
        builder.append(offset, 0, None, Some(&[7; 100_000]), &[]).unwrap();
        bytes.extend(builder.build().unwrap());
        offset += 1;
    }
    fs::write(directory.join(format!("{:020}.log", 0)), &bytes).unwrap();
    let log = PartitionLog::open(&directory).unwrap();
    let batches = log.batches(ReadOptions::default()).unwrap();
    let places: Vec<_> = batches.map(|batch| batch.unwrap().data.data().as_ptr() as usize).collect();
    let span = places.iter().max().unwrap() - places.iter().min().unwrap();
    assert_eq!(places.len() as i64, offset);
    assert!(span < 1 << 20, "{span}");
}
