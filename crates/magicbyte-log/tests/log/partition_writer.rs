//! Writing partitions: the output has the batches it was given and the sidecars that a broker would rebuild,
//! and it does not look complete before it is.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use magicbyte::{Batch, Batches};
use magicbyte_log::{
    CompactOptions, CompactRun, LogError, PartitionWriter, RebuildOptions, SegmentSummary, WriteOptions,
    begin_partition, compact_partition, compute_sidecars, finish_partition, list_partition,
};
use magicbyte_testing::{data, files, partitions, scratch};

fn read_all(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let read = |path: std::path::PathBuf| {
        (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap())
    };
    files(dir, "").into_iter().filter(|path| path.is_file()).map(read).collect()
}

fn base_offset(log: &Path) -> i64 {
    log.file_stem().unwrap().to_str().unwrap().parse().unwrap()
}

/// The bytes of a segment's complete batches, without a torn tail.
fn batches_of(log: &Path) -> Vec<u8> {
    let mut bytes = fs::read(log).unwrap();
    let mut batches = Batches::new(&bytes);
    for batch in &mut batches {
        batch.unwrap();
    }
    let end = batches.next_position() as usize;
    bytes.truncate(end);
    bytes
}

/// Writes the batches to a new partition, with one writer per source segment if `tasks` is set.
fn rewrite(source: &Path, target: &Path, options: WriteOptions, tasks: bool) -> Vec<SegmentSummary> {
    let directory = begin_partition(target).unwrap();
    let logs = files(source, ".log");
    let mut summaries = Vec::new();
    if tasks {
        for (task, log) in logs.iter().enumerate().rev() {
            let task_directory = directory.join(format!("task-{task}"));
            let mut writer = PartitionWriter::create(&task_directory, base_offset(log), options).unwrap();
            writer.append_all(&batches_of(log)).unwrap();
            summaries.extend(writer.finish().unwrap());
        }
    } else {
        let mut writer = PartitionWriter::create(&directory, base_offset(&logs[0]), options).unwrap();
        for log in &logs {
            writer.append_all(&batches_of(log)).unwrap();
        }
        summaries = writer.finish().unwrap();
    }
    finish_partition(target, &summaries, None, None).unwrap();
    summaries
}

fn assert_as_rebuilt(target: &Path, options: WriteOptions) {
    let rebuild =
        RebuildOptions { index_interval_bytes: options.index_interval_bytes, ..RebuildOptions::default() };
    let mut expected = BTreeMap::new();
    compute_sidecars(&list_partition(target, false).unwrap(), rebuild, |(name, data)| {
        expected.insert(name, data);
        Ok(())
    })
    .unwrap();
    let mut written = read_all(target);
    written.retain(|name, _| !name.ends_with(".log"));
    assert_eq!(written, expected, "{}", target.display());
}

#[test]
fn every_partition_keeps_its_bytes_in_segments_of_any_size() {
    let root = scratch("writer-bytes");
    for source in partitions() {
        let name = source.file_name().unwrap().to_str().unwrap();
        let logs: Vec<u8> = files(&source, ".log").iter().flat_map(|log| batches_of(log)).collect();
        let largest = Batches::new(&logs).map(|batch| batch.unwrap().size_in_bytes()).max().unwrap();
        for (index, segment_bytes) in [1 << 30, largest.max(1000) as u32].into_iter().enumerate() {
            let options =
                WriteOptions { segment_bytes, index_interval_bytes: 256, ..WriteOptions::default() };
            let target = root.join(format!("{name}-{index}"));
            let summaries = rewrite(&source, &target, options, false);
            assert!(index != 0 || summaries.len() == 1);
            assert!(summaries.iter().all(|segment| segment.size <= segment_bytes.into()));
            let written: Vec<u8> =
                files(&target, ".log").iter().flat_map(|log| fs::read(log).unwrap()).collect();
            assert_eq!(written, logs, "{name}");
            assert_as_rebuilt(&target, options);
        }
    }
}

#[test]
fn tasks_for_each_segment_give_the_original_directory() {
    let root = scratch("writer-tasks");
    let options = WriteOptions { index_interval_bytes: 256, ..WriteOptions::default() };
    for name in ["v2_txn", "v2_none", "v2_idempotent", "v2_logappend", "v2_compacted"] {
        let target = root.join(format!("{name}-0"));
        rewrite(&data().join(name), &target, options, true);
        let original = read_all(&data().join(name));
        let mut written = read_all(&target);
        // The original may list an epoch that has no batch.
        written.remove("leader-epoch-checkpoint").unwrap();
        for (file, written) in written {
            assert_eq!(original.get(&file), Some(&written), "{name}/{file}");
        }
        assert!(!files(&root, "").iter().any(|path| path.to_str().unwrap().contains("unfinished")));
    }
}

#[test]
fn an_interrupted_run_leaves_no_partition_and_its_directory_is_not_reused() {
    let (root, source) = (scratch("writer-interrupted"), data().join("v2_txn"));
    let (target, log) = (root.join("orders-0"), data().join("v2_txn/00000000000000000000.log"));
    let directory = begin_partition(&target).unwrap();
    let mut writer = PartitionWriter::create(&directory, 0, WriteOptions::default()).unwrap();
    writer.append_all(&fs::read(log).unwrap()).unwrap();
    drop(writer);
    assert!(!target.exists() && directory.exists());
    assert!(directory.file_name().unwrap().to_str().unwrap().starts_with('.'));
    let LogError::Usage(why) = begin_partition(&target).unwrap_err() else { panic!() };
    assert!(why.contains("another writer is at work"), "{why}");
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    fs::remove_dir_all(&directory).unwrap();
    rewrite(&source, &target, WriteOptions::default(), true);
    assert!(!directory.exists());
    let once = read_all(&target);
    let undisturbed = root.join("undisturbed-0");
    rewrite(&source, &undisturbed, WriteOptions::default(), true);
    assert_eq!(once, read_all(&undisturbed));
}

#[test]
fn an_existing_output_is_not_overwritten() {
    let root = scratch("writer-existing");
    let target = root.join("t-0");
    fs::create_dir(&target).unwrap();
    begin_partition(&target).expect("an empty directory may be used");
    fs::write(target.join("file"), b"mine").unwrap();
    for result in [begin_partition(&target).map(drop), finish_partition(&target, &[], None, None)] {
        let error = result.unwrap_err();
        assert!(
            matches!(&error, LogError::Io { source, .. } if source.kind() == std::io::ErrorKind::AlreadyExists)
        );
    }
    fs::remove_file(target.join("file")).unwrap();
    fs::remove_dir(&target).unwrap();
    fs::write(&target, b"a file").unwrap();
    assert!(begin_partition(&target).is_err());
    let directory = root.join("d");
    PartitionWriter::create(&directory, 7, WriteOptions::default()).unwrap();
    assert!(PartitionWriter::create(&directory, 7, WriteOptions::default()).is_err());
}

/// A magic 2 batch with offsets and a timestamp but no records.
fn batch(base_offset: i64, last_offset_delta: i32, timestamp: i64) -> Vec<u8> {
    let mut bytes = vec![0; 61];
    bytes[..8].copy_from_slice(&base_offset.to_be_bytes());
    bytes[8..12].copy_from_slice(&49i32.to_be_bytes());
    bytes[16] = 2;
    bytes[23..27].copy_from_slice(&last_offset_delta.to_be_bytes());
    bytes[27..35].copy_from_slice(&timestamp.to_be_bytes());
    bytes[35..43].copy_from_slice(&timestamp.to_be_bytes());
    bytes[43..57].fill(0xff);
    let crc = magicbyte::crc32c(&bytes[21..], 0);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    bytes
}

fn bases(summaries: &[SegmentSummary]) -> Vec<i64> {
    summaries.iter().map(|segment| segment.base_offset).collect()
}

#[test]
fn segments_roll_by_time_offset_and_full_index_as_in_kafka() {
    let root = scratch("writer-roll");
    let write = |name: &str, base_offset, options, batches: &[Vec<u8>]| {
        let mut writer = PartitionWriter::create(root.join(name), base_offset, options).unwrap();
        for bytes in batches {
            writer.append(&Batch::from_frame(bytes, 0).unwrap()).unwrap();
        }
        bases(&writer.finish().unwrap())
    };
    let by_time = WriteOptions { segment_ms: Some(100), ..WriteOptions::default() };
    let times =
        [batch(0, 0, 1000), batch(1, 0, 1100), batch(2, 0, 1101), batch(3, 0, 500), batch(4, 0, 1300)];
    assert_eq!(
        write("time", 0, by_time, &times),
        [0, 2, 4],
        "more than 100 ms after the segment's first batch"
    );
    let no_time = [batch(0, 0, -1), batch(1, 0, 5000), batch(2, 0, 9000)];
    assert_eq!(write("no-time", 0, by_time, &no_time), [0], "the first batch has no timestamp");
    let max = i64::from(i32::MAX);
    let far = [batch(5, 0, 0), batch(max + 4, 1, 0), batch(max + 10, i32::MAX, 0), batch(3 * max, 0, 0)];
    let far_bases = [5, max + 10, 3 * max];
    assert_eq!(write("far", 5, WriteOptions::default(), &far), far_bases);
    assert_eq!(write("gap", 0, WriteOptions::default(), &[batch(max + 1, 0, 0)]), [0, max + 1]);
    let full = WriteOptions { index_interval_bytes: 0, segment_index_bytes: 24, ..WriteOptions::default() };
    let many: Vec<_> = (0..6).map(|n| batch(n, 0, -1)).collect();
    assert_eq!(write("full", 0, full, &many), [0, 4], "three entries; the first batch gets none");
}

#[test]
fn a_refused_batch_is_named_and_the_writer_can_continue() {
    let root = scratch("writer-refused");
    let options = WriteOptions { segment_bytes: 130, ..WriteOptions::default() };
    let mut writer = PartitionWriter::create(&root, 10, options).unwrap();
    let mut refuse = |bytes: &[u8], words: &[&str]| {
        let error = writer.append_all(bytes).unwrap_err().to_string();
        for word in words {
            assert!(error.contains(word), "{error}");
        }
    };
    refuse(&batch(9, 0, 0), &["offset 9", "expected at least 10", "00000000000000000010.log"]);
    refuse(&batch(10, -1, 0), &["offset 9"]);
    let mut flipped = batch(10, 0, 0);
    flipped[30] ^= 1;
    refuse(&flipped, &["CRC mismatch", "batch at offset 10"]);
    refuse(&batch(10, 0, 0)[..60], &["the last batch is incomplete", "byte 0"]);
    refuse(
        &[&batch(10, 4, 0)[..], &batch(13, 0, 0)].concat(),
        &["offset 13", "expected at least 15", "byte 61"],
    );
    let large = files(&data().join("v2_none"), ".log").remove(0);
    let error = writer.append_all(&fs::read(large).unwrap()).unwrap_err().to_string();
    assert!(error.contains("offset 0"), "{error}");
    let mut wide = batch(20, 0, 0);
    wide.resize(131, 0);
    wide[8..12].copy_from_slice(&119i32.to_be_bytes());
    let crc = magicbyte::crc32c(&wide[21..], 0);
    wide[17..21].copy_from_slice(&crc.to_be_bytes());
    let error = writer.append_all(&wide).unwrap_err().to_string();
    assert!(error.contains("131") && error.contains("..=130") && error.contains("segment.bytes"), "{error}");
    assert_eq!(writer.append_all(&[batch(15, 0, 0), batch(16, 0, 0)].concat()).unwrap(), 2);
    let summaries = writer.finish().unwrap();
    assert_eq!((bases(&summaries), summaries[1].next_offset), (vec![10, 16], 17));
}

#[test]
fn only_segments_that_belong_together_make_a_partition() {
    let root = scratch("writer-foreign");
    let target = root.join("t-0");
    let refuse = |summaries: &[SegmentSummary], topic_id, word: &str| {
        let error = finish_partition(&target, summaries, topic_id, None).unwrap_err();
        assert!(matches!(error, LogError::Usage(_)) && error.to_string().contains(word), "{error}");
        assert!(!target.exists());
    };
    let directory = begin_partition(&target).unwrap();
    let write = |directory: &Path, base_offset| {
        let mut writer = PartitionWriter::create(directory, base_offset, WriteOptions::default()).unwrap();
        writer.append_all(&batch(base_offset, 9, 0)).unwrap();
        writer.finish().unwrap().remove(0)
    };
    let (first, second) = (write(&directory, 0), write(&directory.join("a"), 10));
    let overlapping = write(&directory.join("b"), 5);
    refuse(&[first.clone(), overlapping], None, "segment 5 begins before offset 10");
    refuse(&[first.clone(), first.clone()], None, "segment 0 begins before");
    refuse(&[write(&root.join("elsewhere"), 0)], None, "was not written in");
    refuse(&[SegmentSummary { size: 60, ..first.clone() }], None, "its summary has 60");
    refuse(std::slice::from_ref(&first), Some("short"), "not a topic id");
    finish_partition(&target, &[second, first], Some("GzXX9iQkTMGiyJ7cQU9tvA"), None).unwrap();
    let names: Vec<_> = read_all(&target).into_keys().collect();
    assert_eq!(
        names,
        [
            "00000000000000000000.index",
            "00000000000000000000.log",
            "00000000000000000000.timeindex",
            "00000000000000000010.index",
            "00000000000000000010.log",
            "00000000000000000010.snapshot",
            "00000000000000000010.timeindex",
            "00000000000000000020.snapshot",
            "leader-epoch-checkpoint",
            "partition.metadata",
        ]
    );
}

#[test]
fn a_failed_compaction_leaves_no_output_and_keeps_its_source() {
    let root = scratch("writer-compaction");
    let (source, target) = (root.join("source-0"), root.join("t-0"));
    fs::create_dir(&source).unwrap();
    let mut log = fs::read(data().join("v2_none/00000000000000000000.log")).unwrap();
    log[100] ^= 1;
    fs::write(source.join("00000000000000000000.log"), &log).unwrap();
    let compact = |source: &Path| {
        compact_partition(source, &target, &CompactOptions::default(), &CompactRun::default())
    };
    assert!(matches!(compact(&source), Err(LogError::Format { .. })));
    assert_eq!(fs::read_dir(&root).unwrap().count(), 1);

    let hidden = root.join(".t-0.magicbyte-unfinished");
    fs::rename(&source, &hidden).unwrap();
    assert!(matches!(compact(&hidden), Err(LogError::Usage(_))));
    assert_eq!(fs::read(hidden.join("00000000000000000000.log")).unwrap(), log);
}
