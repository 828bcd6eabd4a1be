//! Rebuilt sidecars equal, byte for byte, those that a 4.3.1 broker rebuilt (`rebuilt/`) or wrote while
//! appending.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use magicbyte::sidecar::{
    parse_leader_epoch_checkpoint, parse_offset_index, parse_partition_metadata, parse_producer_snapshot,
    parse_time_index, parse_transaction_index, write_leader_epoch_checkpoint, write_offset_index,
    write_partition_metadata, write_producer_snapshot, write_time_index, write_transaction_index,
};
use magicbyte_log::{FileChange, RebuildOptions, compute_sidecars, list_partition, rebuild_sidecars};
use magicbyte_testing::{files, json, partitions, scratch};

/// The broker that made `rebuilt/` ran late in 2026, when the producers of 2023 had expired.
const REBUILT: RebuildOptions =
    RebuildOptions { index_interval_bytes: 256, expired_until: Some(1_790_000_000_000) };

fn rebuilt(dir: &Path, options: RebuildOptions) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let listing = list_partition(dir, false).unwrap();
    compute_sidecars(&listing, options, |(name, data)| {
        assert!(files.insert(name.clone(), data).is_none(), "{name} was given twice");
        Ok(())
    })
    .unwrap();
    files
}

/// The broker's sidecars. Kafka leaves an empty transaction index if there was one; we write none.
fn kafkas(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for ending in [".index", ".timeindex", ".txnindex", ".snapshot"] {
        for path in files(dir, ending) {
            let data = fs::read(&path).unwrap();
            if ending != ".txnindex" || !data.is_empty() {
                found.insert(path.file_name().unwrap().to_str().unwrap().to_owned(), data);
            }
        }
    }
    found
}

#[test]
fn sidecars_equal_those_that_a_broker_rebuilt() {
    let mut compared = 0;
    for dir in partitions() {
        let mut ours = rebuilt(&dir, REBUILT);
        ours.remove("leader-epoch-checkpoint").unwrap();
        let theirs = kafkas(&dir.join("rebuilt"));
        assert_eq!(ours, theirs, "{}", dir.display());
        compared += theirs.len();
    }
    assert_eq!(compared, 285);
}

#[test]
fn sidecars_equal_the_originals_if_the_log_only_grew() {
    for dir in partitions() {
        let name = dir.file_name().unwrap().to_str().unwrap();
        let by_4_3 = name.starts_with("v2_") && !["v2_by_2_8", "v2_from_v0_producer"].contains(&name);
        let left_as_appended = !["compacted", "tombstones", "live", "unclean", "torn", "trimmed"]
            .iter()
            .any(|word| name.contains(word));
        if by_4_3 && left_as_appended {
            let ours = rebuilt(&dir, RebuildOptions { expired_until: None, ..REBUILT });
            for (file, data) in kafkas(&dir) {
                assert_eq!(ours[&file], data, "{name}/{file}");
            }
        }
    }
}

/// Without the checkpoint, the epochs come from the batches alone. An epoch that begins at the end of the log
/// has no batch; a recovering broker drops it.
#[test]
fn leader_epochs_from_the_batches() {
    for name in ["v2_epochs", "v2_epochs_log", "v2_none", "v2_txn", "mixed_012"] {
        let dir = magicbyte_testing::data().join(name);
        let copy = scratch(&format!("rebuild-epochs-{name}"));
        for path in files(&dir, ".log") {
            fs::copy(&path, copy.join(path.file_name().unwrap())).unwrap();
        }
        let end = json(&dir.join("summary.json"))["lastDataOffset"].as_i64().unwrap();
        let text = fs::read_to_string(dir.join("leader-epoch-checkpoint")).unwrap();
        let mut expected = parse_leader_epoch_checkpoint(&text).unwrap();
        expected.retain(|entry| entry.start_offset <= end);
        let expected = write_leader_epoch_checkpoint(&expected).into_bytes();
        assert_eq!(rebuilt(&copy, REBUILT)["leader-epoch-checkpoint"], expected, "{name}");
        assert_eq!(rebuilt(&dir, REBUILT)["leader-epoch-checkpoint"], expected, "{name}");
    }
}

#[test]
fn rebuilding_in_place_writes_only_changes_and_removes_stale_files() {
    let dir = magicbyte_testing::data().join("v2_txn");
    let copy = scratch("rebuild-in-place");
    for path in files(&dir, "").iter().filter(|path| path.is_file()) {
        fs::copy(path, copy.join(path.file_name().unwrap())).unwrap();
    }
    let index = copy.join("00000000000000000007.index");
    let stale = copy.join("00000000000000000005.snapshot");
    fs::write(&index, b"not an index").unwrap();
    fs::write(&stale, b"old").unwrap();
    let interrupted = ".00000000000000000007.index.magicbyte-unfinished";
    fs::write(copy.join(interrupted), b"half").unwrap();
    let other = ".00000000000000000005.index.magicbyte-unfinished";
    fs::write(copy.join(other), b"half").unwrap();
    fs::remove_file(copy.join("00000000000000000007.txnindex")).unwrap();
    let options = RebuildOptions { expired_until: None, ..REBUILT };
    let change = |report: &[magicbyte_log::RebuiltFile], file: &str| {
        report.iter().find(|entry| entry.file == file).unwrap().change
    };
    let planned = rebuild_sidecars(&copy, options, true).unwrap();
    assert!(stale.exists() && fs::read(&index).unwrap() == b"not an index", "a dry run changes nothing");
    let done = rebuild_sidecars(&copy, options, false).unwrap();
    assert_eq!(planned, done);
    assert_eq!(change(&done, "00000000000000000007.index"), FileChange::Changed);
    assert_eq!(change(&done, "00000000000000000007.txnindex"), FileChange::Created);
    assert_eq!(change(&done, "00000000000000000090.txnindex"), FileChange::Unchanged);
    assert_eq!(change(&done, "00000000000000000005.snapshot"), FileChange::Removed);
    assert_eq!(kafkas(&copy), kafkas(&dir));
    assert!(!stale.exists() && !copy.join(interrupted).exists() && !copy.join(other).exists());
    assert!(copy.join("partition.metadata").exists());
    assert!(
        rebuild_sidecars(&copy, options, false)
            .unwrap()
            .iter()
            .all(|entry| entry.change == FileChange::Unchanged)
    );
}

#[test]
fn damage_is_an_error_that_names_its_place() {
    let dir = magicbyte_testing::data().join("v2_txn");
    let copy = scratch("rebuild-damaged");
    for path in files(&dir, ".log") {
        fs::copy(&path, copy.join(path.file_name().unwrap())).unwrap();
    }
    let path = copy.join("00000000000000000007.log");
    let mut log = fs::read(&path).unwrap();
    log[4000] ^= 1;
    fs::write(&path, log).unwrap();
    let error = rebuild_sidecars(&copy, REBUILT, false).unwrap_err().to_string();
    assert!(error.contains("00000000000000000007.log") && error.contains("CRC mismatch"), "{error}");
}

#[test]
fn written_sidecars_equal_what_was_parsed() {
    let mut seen = [0; 6];
    for dir in partitions() {
        for path in files(&dir, "").iter().filter(|path| path.is_file()) {
            let data = fs::read(path).unwrap();
            let name = path.file_name().unwrap().to_str().unwrap();
            let base: i64 = name.split('.').next().unwrap().parse().unwrap_or(0);
            // Live copies end with preallocated zeros, which are not written.
            let used = |written: Vec<u8>| {
                assert!(data[written.len()..].iter().all(|&byte| byte == 0), "{name}");
                assert_eq!(written, data[..written.len()], "{name}");
            };
            if name.ends_with(".index") {
                used(write_offset_index(&parse_offset_index(&data, base).unwrap(), base).unwrap());
                seen[0] += 1;
            } else if name.ends_with(".timeindex") {
                used(write_time_index(&parse_time_index(&data, base).unwrap(), base).unwrap());
                seen[1] += 1;
            } else if name.ends_with(".txnindex") {
                assert_eq!(write_transaction_index(&parse_transaction_index(&data).unwrap()), data);
                seen[2] += 1;
            } else if name.ends_with(".snapshot") {
                assert_eq!(write_producer_snapshot(&parse_producer_snapshot(&data).unwrap()), data, "{name}");
                seen[3] += 1;
            } else if name == "leader-epoch-checkpoint" {
                let text = String::from_utf8(data).unwrap();
                let entries = parse_leader_epoch_checkpoint(&text).unwrap();
                assert_eq!(write_leader_epoch_checkpoint(&entries), text);
                seen[4] += 1;
            } else if name == "partition.metadata" {
                let text = String::from_utf8(data).unwrap();
                assert_eq!(write_partition_metadata(&parse_partition_metadata(&text).unwrap()), text);
                seen[5] += 1;
            }
        }
    }
    assert_eq!(seen, [94, 81, 5, 62, 33, 30]);
}

#[test]
fn offsets_that_an_index_cannot_express_are_refused() {
    let entry = |offset| magicbyte::sidecar::OffsetIndexEntry { offset, position: 0 };
    assert!(write_offset_index(&[entry(i64::from(i32::MAX) + 5)], 5).is_ok());
    assert!(write_offset_index(&[entry(i64::from(i32::MAX) + 6)], 5).is_err());
    assert!(write_offset_index(&[entry(4)], 5).is_err());
    assert!(write_offset_index(&[entry(i64::MIN)], i64::MAX).is_err());
}
