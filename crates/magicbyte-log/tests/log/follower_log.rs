//! A log that follows another one has the same bytes, and goes on where a killed process has left it.

use std::fs;
use std::path::Path;

use magicbyte::{Batches, ErrorKind};
use magicbyte_log::{AppendedBatches, FollowerLog, LogError, whole_batches};
use magicbyte_testing::{data, files, scratch};

fn content(directory: &Path) -> Vec<u8> {
    files(directory, ".log").iter().flat_map(|path| fs::read(path).unwrap()).collect()
}

/// The batches of a partition that a broker wrote.
fn batches(name: &str) -> Vec<Vec<u8>> {
    let bytes = content(&data().join(name));
    Batches::new(&bytes).map(|batch| batch.unwrap().as_bytes().to_vec()).collect()
}

/// Appends each of these, as one fetch after another.
fn follow(directory: &Path, fetched: &[Vec<u8>], segment_bytes: u64) -> Result<AppendedBatches, LogError> {
    let mut log = FollowerLog::new(directory, None, 0, segment_bytes);
    for records in fetched {
        log.append(records)?;
    }
    Ok(log.into_appended())
}

#[test]
fn every_byte_is_kept_in_segments_of_any_size() {
    for name in ["v2_lz4", "v2_txn", "v2_epochs", "v1_gzip", "v0_none", "mixed_012", "v2_compacted_txn"] {
        let batches = batches(name);
        let largest = batches.iter().map(Vec::len).max().unwrap() as u64;
        for segment_bytes in [1, largest, 3 * largest, 1 << 30] {
            for fetched in [batches.clone(), vec![batches.concat()]] {
                let directory = scratch("follower_log");
                let appended = follow(&directory, &fetched, segment_bytes).unwrap();
                assert_eq!(content(&directory), batches.concat(), "{name} {segment_bytes}");
                assert_eq!((appended.batches, appended.damaged.len()), (batches.len() as u64, 0));
                assert_eq!(appended.size, batches.concat().len() as u64);
                for (number, path) in files(&directory, ".log").into_iter().enumerate() {
                    let data = fs::read(&path).unwrap();
                    let in_name = path.file_stem().unwrap().to_str().unwrap().parse::<i64>().unwrap();
                    let first = Batches::new(&data).next().unwrap().unwrap();
                    let expected = |base_offset| if number == 0 { 0 } else { base_offset };
                    let is_named = first.as_v2().is_none_or(|batch| in_name == expected(batch.base_offset()));
                    assert!(is_named, "{name}: {in_name}");
                    let is_alone = Batches::new(&data).count() == 1;
                    assert!(data.len() as u64 <= segment_bytes || is_alone, "{name} {segment_bytes}");
                }
            }
        }
    }
}

#[test]
fn a_batch_whose_crc_fails_is_kept_and_named() {
    let mut batches = batches("v2_lz4");
    let offsets: Vec<i64> =
        batches.iter().map(|batch| Batches::new(batch).next().unwrap().unwrap().last_offset()).collect();
    *batches[1].last_mut().unwrap() ^= 1;
    let directory = scratch("follower_log_damaged");
    let appended = follow(&directory, &[batches.concat()], 1 << 30).unwrap();
    assert_eq!(content(&directory), batches.concat());
    assert_eq!(appended.damaged.len(), 1);
    assert_eq!(
        (appended.damaged[0].first_offset, appended.damaged[0].last_offset),
        (offsets[0] + 1, offsets[1])
    );
    assert!(appended.damaged[0].message.contains("crc"), "{}", appended.damaged[0].message);
}

#[test]
fn batches_that_do_not_follow_are_refused() {
    let batches = batches("v2_lz4");
    for fetched in [
        vec![batches[0].clone(), batches[0].clone()],
        vec![batches[..2].concat(), batches[0].clone()],
        vec![[&batches[1][..], &batches[0]].concat()],
    ] {
        let error = follow(&scratch("follower_log_order"), &fetched, 1 << 30).unwrap_err();
        let LogError::Format { error, .. } = error else { panic!("{error}") };
        assert!(matches!(error.kind(), ErrorKind::OffsetOutOfOrder { .. }), "{error}");
    }
    // A hostile broker names any offset: no index could hold it in the same segment.
    let mut far = batches[1].clone();
    far[..8].copy_from_slice(&(1_i64 << 40).to_be_bytes());
    let directory = scratch("follower_log_far");
    follow(&directory, &[batches[0].clone(), far], 1 << 30).unwrap();
    assert_eq!(files(&directory, ".log").len(), 2);
}

#[test]
fn an_existing_segment_is_not_overwritten() {
    let batches = batches("v2_lz4");
    let directory = scratch("follower_log_again");
    follow(&directory, &batches[..1], 1 << 30).unwrap();
    assert!(matches!(follow(&directory, &batches, 1 << 30), Err(LogError::Io { .. })));
    assert_eq!(content(&directory), batches[0]);
}

/// At each length, a file has the whole batches, and the log goes on after them.
#[test]
fn what_a_killed_process_has_written_is_found() {
    let batches = batches("v2_txn");
    let data = batches.concat();
    let directory = scratch("follower_log_killed");
    let path = directory.join(format!("{:020}.log", 0));
    let (mut whole, mut count) = (0, 0);
    for length in 0..=data.len() {
        if batches.get(count).is_some_and(|batch| whole + batch.len() == length) {
            (whole, count) = (length, count + 1);
        }
        fs::write(&path, &data[..length]).unwrap();
        let (end, found) = whole_batches(&path, 0, 0, i64::MAX, Vec::new()).unwrap();
        assert_eq!((end, found.batches), (whole as u64, count as u64));
    }
    let mut flipped = data.clone();
    flipped[batches[0].len() + 70] ^= 1;
    fs::write(&path, &flipped).unwrap();
    let (end, found) = whole_batches(&path, 0, 0, i64::MAX, Vec::new()).unwrap();
    assert_eq!((end, found.batches), (batches[0].len() as u64, 1));

    fs::write(&path, &data).unwrap();
    let second = Batches::new(&batches[1]).next().unwrap().unwrap().as_v2().unwrap().base_offset();
    let (end, found) = whole_batches(&path, 0, 0, second, Vec::new()).unwrap();
    assert_eq!((end, found.next_offset), (batches[0].len() as u64, second));

    fs::write(&path, &batches[0]).unwrap();
    let mut log = FollowerLog::new(&directory, Some(0), found.next_offset, 1 << 30);
    log.append(&batches[1..].concat()).unwrap();
    assert_eq!(content(&directory), data);
}

#[test]
fn the_last_batch_whose_crc_holds_is_found_again() {
    for name in ["v2_lz4", "v2_txn", "v1_gzip", "v0_none", "mixed_012"] {
        let batches = batches(name);
        let last = batches.last().unwrap();
        for segment_bytes in [1, 1 << 30] {
            for fetched in [batches.clone(), vec![batches.concat()]] {
                let directory = scratch("follower_log_last");
                let appended = follow(&directory, &fetched, segment_bytes).unwrap();
                assert_eq!(&appended.last_batch.unwrap().read().unwrap(), last, "{name} {segment_bytes}");
                let segment = files(&directory, ".log").pop().unwrap();
                let (_, found) = whole_batches(&segment, 0, 0, i64::MAX, Vec::new()).unwrap();
                assert_eq!(&found.last_batch.unwrap().read().unwrap(), last, "{name} {segment_bytes}");
            }
        }
        let mut damaged = batches.clone();
        *damaged.last_mut().unwrap().last_mut().unwrap() ^= 1;
        let appended = follow(&scratch("follower_log_last"), &[damaged.concat()], 1).unwrap();
        let before = batches.len().checked_sub(2).map(|before| batches[before].clone());
        assert_eq!(appended.last_batch.map(|batch| batch.read().unwrap()), before, "{name}");
    }
    assert_eq!(follow(&scratch("follower_log_last"), &[], 1).unwrap().last_batch, None);
}
