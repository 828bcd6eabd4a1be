//! The simulated partition: it reproduces the logs of real brokers byte for byte from what producers sent.

use std::fs;

use magicbyte::convert::{set_last_offset, set_partition_leader_epoch};
use magicbyte::sidecar::{parse_transaction_index, write_producer_snapshot};
use magicbyte::state::{AbortedTransaction, ProducerEvent};
use magicbyte::{Batch, Batches, Compression, Decompressor, RecordsBuilder};
use magicbyte_broker::{ErrorCode, OffsetSpec, TransactionEnd};
use magicbyte_testing::{data, files};

use crate::support::{
    COMMITTED, NOW, UNCOMMITTED, code, end, offsets, partition, plain, produced, record_offsets,
    transactional,
};

/// Producers sent the batches of these logs with base offset 0 and no leader epoch, transaction coordinators
/// the markers. The simulated leader must store what the real one did.
#[test]
fn real_logs_are_reproduced_from_what_producers_sent() {
    let mut markers = 0;
    for name in [
        "v2_none",
        "v2_gzip",
        "v2_lz4",
        "v2_snappy",
        "v2_zstd",
        "v2_mixed_codecs",
        "v2_headers",
        "v2_nulls",
        "v2_idempotent",
        "v2_seq_wrap",
        "v2_big_batch",
        "v2_txn",
    ] {
        let dir = data().join(name);
        let log: Vec<u8> = files(&dir, ".log").iter().flat_map(|file| fs::read(file).unwrap()).collect();
        let mut partition = partition();
        let mut decompressor = Decompressor::new();
        for batch in Batches::new(&log) {
            let batch = batch.unwrap();
            let Batch::V2(v2) = batch else { panic!("magic") };
            let event = ProducerEvent::of(&v2, &mut decompressor).unwrap();
            let appended = if let Some(ProducerEvent::Marker {
                producer_id,
                producer_epoch,
                committed,
                coordinator_epoch,
                timestamp,
                ..
            }) = event
            {
                markers += 1;
                partition.set_now(timestamp);
                // An epoch above the producer's own means that this is transaction version 2.
                let known = partition.producers().get(producer_id).unwrap().producer_epoch;
                let transaction_version = if producer_epoch > known { 2 } else { 1 };
                partition.end_transaction(TransactionEnd {
                    producer_id,
                    producer_epoch,
                    committed,
                    coordinator_epoch,
                    transaction_version,
                })
            } else {
                let mut sent = v2.as_bytes().to_vec();
                set_last_offset(&mut sent, v2.last_offset_delta().into()).unwrap();
                set_partition_leader_epoch(&mut sent, -1).unwrap();
                partition.produce(&sent, 12)
            };
            let context = format!("{name} at {}", v2.base_offset());
            let info = appended.expect(&context).info;
            assert_eq!(
                (info.first_offset, info.last_offset),
                (Some(v2.base_offset()), v2.last_offset()),
                "{context}"
            );
            assert_eq!(info.max_timestamp, v2.max_timestamp(), "{context}");
        }
        let start = partition.log_start_offset();
        assert!(partition.fetch(start, usize::MAX, UNCOMMITTED).unwrap().records == log, "{name}");

        // The real broker's index lists what read_committed needs.
        let mut aborted: Vec<AbortedTransaction> = Vec::new();
        for index in files(&dir, ".txnindex") {
            let entries = parse_transaction_index(&fs::read(index).unwrap()).unwrap();
            aborted.extend(entries.iter().map(magicbyte::sidecar::TransactionIndexEntry::transaction));
        }
        let fetched = partition.fetch(start, usize::MAX, COMMITTED).unwrap();
        assert_eq!(fetched.aborted_transactions, aborted, "{name}");
        let stable = if name == "v2_txn" { 83 } else { partition.log_end_offset() };
        assert_eq!((partition.last_stable_offset(), fetched.last_stable_offset), (stable, stable), "{name}");
        let last = Batches::new(&fetched.records).last().unwrap().unwrap().last_offset();
        assert_eq!(last, stable - 1, "{name}");
    }
    assert_eq!(markers, 16);
}

#[test]
fn retries_are_recognized_and_gaps_refused() {
    let mut partition = partition();
    for n in 0..6 {
        let appended = partition.produce(&produced(7, 0, n * 2, 2), 12).unwrap();
        assert_eq!(offsets(appended), (Some(i64::from(n) * 2), i64::from(n) * 2 + 1, false));
    }
    for n in 1..6 {
        let retried = partition.produce(&produced(7, 0, n * 2, 2), 12).unwrap();
        assert_eq!(offsets(retried), (Some(i64::from(n) * 2), i64::from(n) * 2 + 1, true));
    }
    assert_eq!(partition.log_end_offset(), 12);
    // The last five batches are kept; a retry of an older one is out of order.
    assert_eq!(code(partition.produce(&produced(7, 0, 0, 2), 12)), ErrorCode::OutOfOrderSequenceNumber);
    let refused = partition.produce(&produced(7, 0, 13, 1), 12).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "OUT_OF_ORDER_SEQUENCE_NUMBER: producer 7: sequence 13 does not follow 11"
    );
    // A new epoch starts again at sequence 0, and fences the old one.
    assert_eq!(code(partition.produce(&produced(7, 1, 12, 1), 12)), ErrorCode::OutOfOrderSequenceNumber);
    partition.produce(&produced(7, 1, 0, 1), 12).unwrap();
    assert_eq!(code(partition.produce(&produced(7, 0, 12, 1), 12)), ErrorCode::InvalidProducerEpoch);
    // Other producers, and batches without a producer, are unaffected.
    partition.produce(&produced(8, 0, 5, 1), 12).unwrap();
    partition.produce(&plain(1), 12).unwrap();
    assert_eq!(partition.log_end_offset(), 15);
    let known: Vec<i64> = partition.producers().entries().iter().map(|entry| entry.producer_id).collect();
    assert_eq!(known, [7, 8]);
}

#[test]
fn producers_expire_after_a_day() {
    const DAY: i64 = 86_400_000;
    let mut partition = partition();
    partition.produce(&produced(7, 0, 0, 1), 12).unwrap();
    partition.set_now(NOW + DAY - 1);
    assert!(partition.produce(&produced(7, 0, 0, 1), 12).unwrap().duplicate);
    partition.set_now(NOW + DAY);
    assert!(partition.producers().entries().is_empty());
    let appended = partition.produce(&produced(7, 0, 0, 1), 12).unwrap();
    assert_eq!(offsets(appended), (Some(1), 1, false));
}

#[test]
fn committed_readers_see_transactions_once_they_are_decided() {
    let mut partition = partition();
    partition.produce(&plain(2), 12).unwrap();
    partition.produce(&transactional(7, 0, 0, 3), 12).unwrap();
    partition.produce(&transactional(8, 0, 0, 1), 12).unwrap();
    assert_eq!((partition.last_stable_offset(), partition.log_end_offset()), (2, 6));
    assert_eq!(record_offsets(&partition.fetch(0, 1 << 20, COMMITTED).unwrap().records), [0, 1]);
    assert_eq!(partition.fetch(0, 1 << 20, UNCOMMITTED).unwrap().high_watermark, 6);
    assert_eq!(code(partition.produce(&produced(7, 0, 3, 1), 12)), ErrorCode::InvalidTxnState);

    partition.end_transaction(end(8, 0, true)).unwrap();
    assert_eq!(partition.last_stable_offset(), 2, "the first transaction is still open");
    let appended = partition.end_transaction(end(7, 0, false)).unwrap();
    assert_eq!(offsets(appended), (Some(7), 7, false));
    assert_eq!(partition.last_stable_offset(), 8);
    let fetched = partition.fetch(0, 1 << 20, COMMITTED).unwrap();
    let aborted = AbortedTransaction { producer_id: 7, first_offset: 2, last_offset: 7 };
    assert_eq!(fetched.aborted_transactions, [aborted]);
    assert_eq!(record_offsets(&fetched.records), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(partition.fetch(0, 1 << 20, UNCOMMITTED).unwrap().aborted_transactions, []);

    // The epochs of markers and of coordinators never decrease.
    let old = TransactionEnd { coordinator_epoch: -1, ..end(7, 0, true) };
    assert_eq!(code(partition.end_transaction(old)), ErrorCode::TransactionCoordinatorFenced);
    partition.produce(&transactional(7, 2, 0, 1), 12).unwrap();
    assert_eq!(code(partition.end_transaction(end(7, 1, true))), ErrorCode::InvalidProducerEpoch);
    let version_2 = TransactionEnd { transaction_version: 2, ..end(7, 2, true) };
    assert_eq!(code(partition.end_transaction(version_2)), ErrorCode::InvalidProducerEpoch);
    partition.end_transaction(TransactionEnd { producer_epoch: 3, ..version_2 }).unwrap();
    assert_eq!(code(partition.end_transaction(end(-1, 0, true))), ErrorCode::InvalidRecord);
}

/// A broker finds the aborted transactions of a fetch by its sparse offset index, and so may list too many.
#[test]
fn the_index_bounds_the_aborted_transactions_of_a_fetch() {
    let mut partition = partition();
    let mut large = RecordsBuilder::v2(Compression::None);
    large.append(0, NOW, None, Some(&[0; 5000]), &[]).unwrap();
    let large = large.build().unwrap();
    partition.produce(&large, 12).unwrap();
    partition.produce(&large, 12).unwrap();
    for producer_id in [7, 8] {
        partition.produce(&transactional(producer_id, 0, 0, 2), 12).unwrap();
        partition.end_transaction(end(producer_id, 0, false)).unwrap();
    }
    // The first fetch ends at the batch of the index's first entry; the upper bound is then the second entry,
    // offset 3.
    let fetched = partition.fetch(0, large.len(), COMMITTED).unwrap();
    assert_eq!(fetched.records.len(), large.len());
    let first_offsets = |transactions: &[AbortedTransaction]| -> Vec<i64> {
        transactions.iter().map(|transaction| transaction.first_offset).collect()
    };
    assert_eq!(first_offsets(&fetched.aborted_transactions), [2]);
    let fetched = partition.fetch(0, 1 << 20, COMMITTED).unwrap();
    assert_eq!(first_offsets(&fetched.aborted_transactions), [2, 5]);
}

#[test]
fn fetches_begin_with_a_whole_batch() {
    let mut partition = partition();
    for _ in 0..3 {
        partition.produce(&plain(4), 12).unwrap();
    }
    let size = plain(4).len();
    let fetch = |offset, max_bytes| partition.fetch(offset, max_bytes, UNCOMMITTED).unwrap().records;
    assert_eq!(fetch(5, 0).len(), size, "at least one batch");
    assert_eq!(record_offsets(&fetch(5, 0)), [4, 5, 6, 7]);
    assert_eq!(fetch(0, size + 10).len(), size + 10);
    assert!(fetch(12, 100).is_empty());
    assert_eq!(code(partition.fetch(13, 100, UNCOMMITTED)), ErrorCode::OffsetOutOfRange);
    assert_eq!(code(partition.fetch(-1, 100, UNCOMMITTED)), ErrorCode::OffsetOutOfRange);
}

#[test]
fn offsets_are_found_by_time() {
    let mut partition = partition();
    for times in [[10, 30], [50, 20], [40, 50]] {
        let mut builder = RecordsBuilder::v2(Compression::None);
        for (offset, time) in times.into_iter().enumerate() {
            builder.append(offset as i64, NOW + time, None, None, &[]).unwrap();
        }
        partition.produce(&builder.build().unwrap(), 12).unwrap();
    }
    partition.elect_leader();
    partition.produce(&transactional(7, 0, 0, 1), 12).unwrap();
    let mut list = |spec, isolation| {
        let found = partition.list_offset(spec, isolation).unwrap();
        found.map(|found| {
            (found.timestamp - if found.timestamp < 0 { 0 } else { NOW }, found.offset, found.leader_epoch)
        })
    };
    assert_eq!(list(OffsetSpec::Earliest, UNCOMMITTED), Some((-1, 0, 0)));
    assert_eq!(list(OffsetSpec::Latest, UNCOMMITTED), Some((-1, 7, 1)));
    assert_eq!(list(OffsetSpec::Latest, COMMITTED), Some((-1, 6, 1)));
    assert_eq!(list(OffsetSpec::MaxTimestamp, UNCOMMITTED), Some((50, 2, 0)));
    assert_eq!(list(OffsetSpec::Timestamp(NOW + 11), UNCOMMITTED), Some((30, 1, 0)));
    assert_eq!(list(OffsetSpec::Timestamp(NOW + 31), UNCOMMITTED), Some((50, 2, 0)));
    assert_eq!(list(OffsetSpec::Timestamp(NOW + 51), UNCOMMITTED), None);
    assert_eq!(list(OffsetSpec::Timestamp(NOW), COMMITTED), Some((10, 0, 0)));
}

#[test]
fn truncation_reverts_producers_and_transactions() {
    let mut partition = partition();
    partition.produce(&produced(7, 0, 0, 5), 12).unwrap();
    partition.produce(&transactional(8, 0, 0, 2), 12).unwrap();
    partition.end_transaction(end(8, 0, false)).unwrap();
    partition.elect_leader();
    partition.produce(&produced(7, 0, 5, 5), 12).unwrap();
    assert_eq!(code(partition.truncate(-1)), ErrorCode::OffsetOutOfRange);
    partition.truncate(13).unwrap();
    assert_eq!(partition.log_end_offset(), 13);

    // This removes the marker at offset 7, so the transaction is open again.
    partition.truncate(7).unwrap();
    assert_eq!((partition.log_end_offset(), partition.last_stable_offset()), (7, 5));
    let open: Vec<_> = partition.producers().open_transactions().collect();
    assert_eq!(open, [(5, 8)]);
    assert_eq!(partition.fetch(0, 1 << 20, COMMITTED).unwrap().aborted_transactions, []);
    // The truncated batch no longer counts as a duplicate.
    assert!(partition.produce(&produced(7, 0, 0, 5), 12).unwrap().duplicate);
    let appended = partition.produce(&produced(7, 0, 5, 5), 12).unwrap();
    assert_eq!(offsets(appended), (Some(7), 11, false));
    // Truncation to an offset inside a batch removes the whole batch.
    partition.truncate(9).unwrap();
    let left = partition.fetch(0, 1 << 20, UNCOMMITTED).unwrap().records;
    assert_eq!(record_offsets(&left), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(partition.log_end_offset(), 9);
    assert!(!write_producer_snapshot(&partition.producers().snapshot()).is_empty());
}

#[test]
fn deleted_records_are_not_served() {
    let mut partition = partition();
    partition.produce(&plain(5), 12).unwrap();
    partition.produce(&plain(5), 12).unwrap();
    assert_eq!(partition.delete_records(7), Ok(7));
    assert_eq!(partition.delete_records(3), Ok(7), "the start does not move back");
    assert_eq!(code(partition.delete_records(11)), ErrorCode::OffsetOutOfRange);
    assert_eq!(code(partition.fetch(6, 100, UNCOMMITTED)), ErrorCode::OffsetOutOfRange);
    let fetched = partition.fetch(7, 1 << 20, UNCOMMITTED).unwrap();
    assert_eq!(fetched.log_start_offset, 7);
    assert_eq!(record_offsets(&fetched.records), [5, 6, 7, 8, 9], "batches are served whole");
    let earliest = partition.list_offset(OffsetSpec::Earliest, UNCOMMITTED).unwrap().unwrap();
    assert_eq!((earliest.offset, earliest.leader_epoch), (7, 0));
    assert_eq!(partition.delete_records(-1), Ok(10));
}
