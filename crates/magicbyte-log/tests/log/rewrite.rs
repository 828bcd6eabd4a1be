//! Chunks rewritten by the tasks of `convert` and `recover`: every record is kept, except for what the
//! target's magic cannot express, which is counted.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use magicbyte::convert::Losses;
use magicbyte::{Batch, Batches, Compression, RecordsBuilder};
use magicbyte_log::steps::{Plan, RewriteOptions, Rewritten, plan_partition, rewrite_chunks, survey_segment};
use magicbyte_log::{
    ChunkResult, LogError, PlanOptions, WriteOptions, begin_partition, finish_partition, list_partition,
};
use magicbyte_testing::{data, files, json_lines, partitions, scratch};

use crate::support::rows::{Row, assert_rows, kafkas_rows, rows};

const CODECS: [Compression; 5] =
    [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

fn plan(source: &Path) -> Plan {
    let listing = list_partition(source, false).unwrap();
    let surveys: Vec<_> = listing.segments.iter().map(|segment| survey_segment(segment).unwrap()).collect();
    plan_partition(&listing, &surveys, PlanOptions::default()).unwrap()
}

/// Rewrites all chunks in one task.
fn rewrite(source: &Path, target: &Path, options: &RewriteOptions) -> Rewritten {
    let plan = plan(source);
    let directory = begin_partition(target).unwrap();
    let base_offset = plan.chunks.first().map_or(0, |chunk| chunk.expected_offset);
    let rewritten = rewrite_chunks(&plan.chunks, &directory, base_offset, options).unwrap();
    finish_partition(target, &rewritten.segments, None, Some(&source.into())).unwrap();
    assert!(rewritten.results.iter().all(ChunkResult::balanced));
    rewritten
}

/// The whole batches of all segments in order.
fn batches_of(directory: &Path) -> Vec<Vec<u8>> {
    let batches = |path: &std::path::PathBuf| {
        let data = fs::read(path).unwrap();
        Batches::new(&data).map_while(Result::ok).map(|batch| batch.as_bytes().to_vec()).collect::<Vec<_>>()
    };
    files(directory, ".log").iter().flat_map(batches).collect()
}

fn plain(base_offset: i64, count: i64) -> Vec<u8> {
    let mut builder = RecordsBuilder::v2(Compression::None).partition_leader_epoch(0);
    for offset in base_offset..base_offset + count {
        builder.append(offset, 100 + offset, Some(b"key"), Some(b"value"), &[]).unwrap();
    }
    builder.build().unwrap()
}

fn write_log(directory: &Path, segments: &[(i64, Vec<u8>)]) {
    fs::create_dir_all(directory).unwrap();
    for (base_offset, data) in segments {
        fs::write(directory.join(format!("{base_offset:020}.log")), data).unwrap();
    }
}

#[test]
fn every_record_survives_any_codec_in_magic_2() {
    let root = scratch("rewrite-codecs");
    for source in partitions() {
        let name = source.file_name().unwrap().to_str().unwrap();
        let expected = kafkas_rows(&source);
        let records: u64 = json_lines(&source.join("batches.jsonl"))
            .iter()
            .filter(|line| line["control"] == true)
            .map(|line| line["count"].as_u64().unwrap())
            .sum::<u64>()
            + expected.len() as u64;
        for codec in CODECS {
            let target = root.join(format!("{name}-{}-0", codec.name()));
            let options =
                RewriteOptions { magic: Some(2), compression: Some((codec, None)), ..Default::default() };
            let rewritten = rewrite(&source, &target, &options);
            let what = format!("{name} {}", codec.name());
            assert_rows(&rows(&target), &expected, &what);
            assert_eq!(rewritten.records, records, "{what}");
            assert_eq!(rewritten.losses, Losses::default(), "{what}");
            assert!(rewritten.results.iter().all(|result| result.quarantined.is_empty()), "{what}");
            for data in batches_of(&target) {
                let Batch::V2(batch) = Batch::from_frame(&data, 0).unwrap() else { panic!("{what}") };
                assert!(
                    batch.is_control() || batch.record_count() == 0 || batch.compression() == Ok(codec),
                    "{what}"
                );
            }
        }
    }
}

#[test]
fn without_options_batches_are_copied_and_segments_keep_their_age() {
    for name in ["mixed_012", "v2_txn", "v2_torn_tail", "v1_lz4"] {
        let root = scratch(&format!("rewrite-copy-{name}"));
        let (source, target) = (root.join("source-0"), root.join("target-0"));
        fs::create_dir(&source).unwrap();
        let ages = (1..).map(|days| SystemTime::UNIX_EPOCH + Duration::from_secs(days * 86_400));
        for (path, age) in files(&data().join(name), ".log").iter().zip(ages) {
            let copy = source.join(path.file_name().unwrap());
            fs::copy(path, &copy).unwrap();
            fs::File::options().write(true).open(&copy).unwrap().set_modified(age).unwrap();
        }
        // One task per segment.
        let directory = begin_partition(&target).unwrap();
        let mut segments = Vec::new();
        for (task, chunk) in plan(&source).chunks.into_iter().enumerate() {
            let task_directory = directory.join(format!("task-{task}"));
            let base_offset = chunk.expected_offset;
            let rewritten =
                rewrite_chunks(&[chunk], &task_directory, base_offset, &RewriteOptions::default()).unwrap();
            segments.extend(rewritten.segments);
        }
        finish_partition(&target, &segments, None, None).unwrap();
        assert_eq!(batches_of(&target), batches_of(&source), "{name}");
        let modified = |path: &std::path::PathBuf| fs::metadata(path).unwrap().modified().unwrap();
        let ages = |directory: &Path| files(directory, ".log").iter().map(modified).collect::<Vec<_>>();
        assert_eq!(ages(&target), ages(&source), "{name}");
    }
}

/// Each loss is counted in Kafka's own reading of the batches.
#[test]
fn what_an_older_magic_cannot_express_is_lost_and_counted() {
    for name in ["v2_headers", "v2_txn", "v2_compacted", "v2_compacted_txn", "v2_idempotent", "v2_timestamps"]
    {
        let source = data().join(name);
        let root = scratch(&format!("rewrite-down-{name}"));
        let lines = json_lines(&source.join("batches.jsonl"));
        let count = |matches: &dyn Fn(&serde_json::Value) -> bool| {
            lines.iter().filter(|line| matches(line)).count() as u64
        };
        // Includes batches without records.
        let is_data = |line: &serde_json::Value| line["control"] == false;
        for magic in [0, 1] {
            let target = root.join(format!("magic{magic}-0"));
            let options = RewriteOptions {
                magic: Some(magic),
                compression: Some((Compression::Gzip, None)),
                ..Default::default()
            };
            let losses = rewrite(&source, &target, &options).losses;
            let what = format!("{name} to magic {magic}");
            assert_eq!(losses.control_batches, count(&|line| line["control"] == true), "{what}");
            let empty = count(&|line| line["control"] == false && line["count"] == 0);
            assert_eq!(losses.empty_batches, empty, "{what}");
            let producers = count(&|line| is_data(line) && line["pid"].as_i64() >= Some(0));
            assert_eq!(losses.producer_batches, producers, "{what}");
            let transactional = count(&|line| is_data(line) && line["txn"] == true);
            assert_eq!(losses.transactional_batches, transactional, "{what}");
            let horizons = count(&|line| is_data(line) && !line["deleteHorizonMs"].is_null());
            assert_eq!(losses.delete_horizons, horizons, "{what}");
            let rows_before = kafkas_rows(&source);
            let headers: usize = rows_before.iter().map(|row| row.headers.len()).sum();
            assert_eq!(losses.headers, headers as u64, "{what}");
            let timestamps = rows_before.iter().filter(|row| magic == 0 && row.timestamp != -1).count();
            assert_eq!(losses.timestamps, timestamps as u64, "{what}");
            let expected: Vec<Row> = rows_before
                .into_iter()
                .map(|row| {
                    let timestamp = if magic == 0 { -1 } else { row.timestamp };
                    Row { timestamp, headers: Vec::new(), ..row }
                })
                .collect();
            assert_rows(&rows(&target), &expected, &what);
            for data in batches_of(&target) {
                assert_eq!(Batch::from_frame(&data, 0).unwrap().magic(), magic, "{what}");
            }
        }
    }
}

#[test]
fn only_the_leader_epoch_changes() {
    let source = data().join("v2_epochs");
    let target = scratch("rewrite-epoch").join("t-0");
    let options = RewriteOptions { leader_epoch: Some(7), ..Default::default() };
    rewrite(&source, &target, &options);
    let expected: Vec<Vec<u8>> = batches_of(&source)
        .into_iter()
        .map(|mut batch| {
            batch[12..16].copy_from_slice(&7i32.to_be_bytes());
            batch
        })
        .collect();
    assert_ne!(batches_of(&source), expected);
    assert_eq!(batches_of(&target), expected);
    let refused = RewriteOptions { leader_epoch: Some(-1), ..Default::default() };
    assert!(rewrite_chunks(&[], &target, 0, &refused).is_err());
}

/// A follower refuses a batch without a leader epoch.
#[test]
fn each_batch_gets_a_leader_epoch() {
    let root = scratch("rewrite-no-epoch");
    let source = root.join("t-0");
    fs::create_dir_all(&source).unwrap();
    let batches = [-1i32, 3, -1].into_iter().zip(0..).map(|(epoch, offset)| {
        let mut batch = plain(offset, 1);
        batch[12..16].copy_from_slice(&epoch.to_be_bytes());
        batch
    });
    fs::write(source.join("00000000000000000000.log"), batches.collect::<Vec<_>>().concat()).unwrap();
    rewrite(&source, &root.join("target-0"), &RewriteOptions::default());
    let epochs: Vec<_> =
        batches_of(&root.join("target-0")).iter().map(|batch| batch[12..16].to_vec()).collect();
    assert_eq!(epochs, [0i32, 3, 3].map(|epoch| epoch.to_be_bytes().to_vec()));
}

#[test]
fn only_batches_without_a_producer_are_rebatched() {
    let root = scratch("rewrite-packed");
    let options = RewriteOptions { rebatch: Some(16 << 10), ..Default::default() };
    let (source, target) = (data().join("v2_none"), root.join("none-0"));
    rewrite(&source, &target, &options);
    assert_rows(&rows(&target), &kafkas_rows(&source), "rebatched");
    let (before, after) = (batches_of(&source), batches_of(&target));
    assert_eq!((before.len(), after.len()), (9, 3));
    let records = |batch: &Vec<u8>| match Batch::from_frame(batch, 0).unwrap() {
        Batch::V2(batch) => batch.record_count(),
        Batch::Legacy(_) => 1,
    };
    assert!(after.iter().all(|batch| batch.len() <= 16 << 10 || records(batch) == 1));

    let (source, target) = (data().join("v2_idempotent"), root.join("idempotent-0"));
    rewrite(&source, &target, &options);
    assert_eq!(batches_of(&target), batches_of(&source));
}

#[test]
fn options_that_exclude_each_other_are_refused() {
    let chunks = plan(&data().join("v2_none")).chunks;
    let root = scratch("rewrite-refused");
    let zstd = Some((Compression::Zstd, None));
    let cases = [
        (
            RewriteOptions { magic: Some(1), rebatch: Some(100), ..Default::default() },
            "rebatching requires magic 2",
        ),
        (RewriteOptions { magic: Some(1), compression: zstd, ..Default::default() }, "zstd needs magic 2"),
        (RewriteOptions { magic: Some(3), ..Default::default() }, "magic 3: expected 0, 1 or 2"),
    ];
    for (options, why) in cases {
        let error = rewrite_chunks(&chunks, root.join("out"), 0, &options).unwrap_err();
        assert!(matches!(&error, LogError::Usage(text) if text.ends_with(why)), "{error}");
        assert!(!root.join("out").exists());
    }
    // The codec checks its own levels: zstd has levels up to 22.
    let options = RewriteOptions { compression: Some((Compression::Zstd, Some(23))), ..Default::default() };
    let error = rewrite_chunks(&chunks, root.join("out"), 0, &options).unwrap_err();
    assert!(matches!(error, LogError::Usage(_)), "{error}");
}

#[test]
fn damage_is_left_out_and_accounted_for() {
    let root = scratch("rewrite-damage");
    let (source, target) = (root.join("source-0"), root.join("target-0"));
    let mut damaged = plain(2, 2);
    *damaged.last_mut().unwrap() ^= 1;
    write_log(&source, &[(0, [plain(0, 2), damaged.clone(), plain(4, 2)].concat())]);
    let rewritten = rewrite(&source, &target, &RewriteOptions::default());
    assert_eq!(rows(&target).iter().map(|row| row.offset).collect::<Vec<_>>(), [0, 1, 4, 5]);
    let [result] = &rewritten.results[..] else { panic!("one chunk") };
    assert_eq!((result.good_batches, result.rows, result.lost_offsets), (2, 4, 2));
    let [range] = &result.quarantined[..] else { panic!("{result:?}") };
    let start = plain(0, 2).len() as u64;
    assert_eq!(
        (range.start, range.end, range.reason.as_str()),
        (start, start + damaged.len() as u64, "crc_mismatch")
    );
    let [problem] = &rewritten.problems.listed[..] else { panic!("{:?}", rewritten.problems) };
    assert_eq!((problem.first_lost_offset, problem.last_lost_offset), (Some(2), Some(3)));

    // A file is created only when there is a good batch.
    let bad = root.join("bad-0");
    write_log(&bad, &[(0, damaged)]);
    let out = root.join("out");
    let rewritten = rewrite_chunks(&plan(&bad).chunks, &out, 0, &RewriteOptions::default()).unwrap();
    assert_eq!((rewritten.records, rewritten.segments.len()), (0, 0));
    assert!(!out.exists());
}

#[test]
fn a_batch_larger_than_a_segment_is_an_error() {
    let root = scratch("rewrite-large");
    let source = root.join("source-0");
    write_log(&source, &[(0, [plain(0, 1), plain(1, 50)].concat())]);
    let write = WriteOptions { segment_bytes: plain(1, 50).len() as u32 - 1, ..Default::default() };
    let options = RewriteOptions { write, ..Default::default() };
    let error = rewrite_chunks(&plan(&source).chunks, root.join("out"), 0, &options).unwrap_err();
    let LogError::Format { error, .. } = error else { panic!("{error}") };
    assert_eq!((error.field(), error.base_offset()), (Some("segment.bytes"), Some(1)));
}

/// The second segment repeats offsets of the first. Batches before the end of the first are not written
/// again; a batch that straddles it cannot be written at all.
#[test]
fn overlapping_segments_give_no_record_twice() {
    let root = scratch("rewrite-overlap");
    let source = root.join("source-0");
    let overlapping = [plain(2, 2), plain(4, 2)].concat();
    write_log(&source, &[(0, [plain(0, 2), plain(2, 2)].concat()), (2, overlapping)]);
    let rewritten = rewrite(&source, &root.join("target-0"), &RewriteOptions::default());
    assert_eq!(
        rows(&root.join("target-0")).iter().map(|row| row.offset).collect::<Vec<_>>(),
        [0, 1, 2, 3, 4, 5]
    );
    assert_eq!((rewritten.results[1].outside, rewritten.results[1].rows, rewritten.records), (2, 2, 6));

    let straddling = root.join("straddling-0");
    write_log(&straddling, &[(0, plain(0, 4)), (2, [plain(2, 4), plain(6, 2)].concat())]);
    let rewritten = rewrite(&straddling, &root.join("other-0"), &RewriteOptions::default());
    assert_eq!(
        rows(&root.join("other-0")).iter().map(|row| row.offset).collect::<Vec<_>>(),
        [0, 1, 2, 3, 6, 7]
    );
    assert_eq!(rewritten.results[1].quarantined[0].reason, "offset_out_of_order");
}
