//! Appends as a broker validates them, and the simulated partition: it reproduces the logs of real brokers
//! byte for byte from what producers sent. Kafka's rules are checked on built batches.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::fs;

use magicbyte::convert::{set_last_offset, set_partition_leader_epoch};
use magicbyte::sidecar::{parse_transaction_index, write_producer_snapshot};
use magicbyte::state::{AbortedTransaction, AppendOrigin, IsolationLevel, ProducerEvent};
use magicbyte::{
    Batch, Batches, Compression, Decompressor, ErrorKind, Record, RecordsBuilder, TimestampType,
};
use magicbyte_broker::{
    Append, AppendConfig, AppendError, AppendValidator, Appended, ErrorCode, OffsetSpec, PartitionSimulator,
    RecordError, RecordErrorKind, TargetCompression, TransactionEnd, check_produce_request,
};
use magicbyte_testing::{data, files};

const NOW: i64 = 1_700_000_000_000;
const COMMITTED: IsolationLevel = IsolationLevel::ReadCommitted;
const UNCOMMITTED: IsolationLevel = IsolationLevel::ReadUncommitted;

fn batch(builder: RecordsBuilder, records: u32) -> Vec<u8> {
    let mut builder = builder;
    for n in 0..records {
        builder.append(n.into(), NOW + i64::from(n), Some(b"key"), Some(b"value"), &[]).unwrap();
    }
    builder.build().unwrap()
}

fn plain(records: u32) -> Vec<u8> {
    batch(RecordsBuilder::v2(Compression::None), records)
}

fn produced(id: i64, epoch: i16, sequence: i32, records: u32) -> Vec<u8> {
    batch(RecordsBuilder::v2(Compression::None).producer(id, epoch, sequence), records)
}

fn transactional(id: i64, epoch: i16, sequence: i32, records: u32) -> Vec<u8> {
    batch(RecordsBuilder::v2(Compression::None).producer(id, epoch, sequence).transactional(), records)
}

fn partition() -> PartitionSimulator {
    partition_of(AppendConfig::default())
}

fn partition_of(config: AppendConfig) -> PartitionSimulator {
    let mut partition = PartitionSimulator::new(config).unwrap();
    partition.set_now(NOW);
    partition
}

fn code<T: std::fmt::Debug>(result: Result<T, AppendError>) -> ErrorCode {
    result.unwrap_err().code()
}

fn offsets(appended: Appended) -> (Option<i64>, i64, bool) {
    (appended.info.first_offset, appended.info.last_offset, appended.duplicate)
}

fn end(producer_id: i64, producer_epoch: i16, committed: bool) -> TransactionEnd {
    TransactionEnd { producer_id, producer_epoch, committed, coordinator_epoch: 0, transaction_version: 0 }
}

/// What `take` extracts from each record of `bytes`.
fn records<T>(bytes: &[u8], mut take: impl FnMut(&Record<'_>) -> T) -> Vec<T> {
    let (mut found, mut decompressor) = (Vec::new(), Decompressor::new());
    for batch in Batches::new(bytes) {
        let batch = batch.unwrap();
        batch.verify().unwrap();
        batch.records(&mut decompressor).unwrap().visit(|record| found.push(take(&record))).unwrap();
    }
    found
}

fn offset(record: &Record<'_>) -> i64 {
    record.offset()
}

fn record_offsets(bytes: &[u8]) -> Vec<i64> {
    records(bytes, offset)
}

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
fn produce_requests_have_one_batch_of_a_magic_that_the_version_allows() {
    let old = batch(RecordsBuilder::v1(Compression::None), 1);
    let two = [plain(1), plain(1)].concat();
    let zstd = batch(RecordsBuilder::v2(Compression::Zstd), 1);
    for (payload, version, expected) in [
        (&old, 2, None),
        (&two, 2, None),
        (&zstd, 7, None),
        (&plain(3), 3, None),
        (&old, 3, Some(ErrorCode::InvalidRecord)),
        (&two, 3, Some(ErrorCode::InvalidRecord)),
        (&vec![], 3, Some(ErrorCode::InvalidRecord)),
        (&zstd, 6, Some(ErrorCode::UnsupportedCompressionType)),
        (&vec![0; 20], 3, Some(ErrorCode::CorruptMessage)),
    ] {
        let checked = check_produce_request(payload, version);
        assert_eq!(checked.err().map(|error| error.code()), expected, "version {version}");
    }
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
fn a_leader_sets_only_offsets_and_epoch_in_place() {
    let mut partition = partition();
    partition.produce(&plain(3), 12).unwrap();
    assert_eq!(partition.elect_leader(), 1);
    for codec in Compression::ALL {
        let sent = batch(RecordsBuilder::v2(codec), 5);
        let next = partition.log_end_offset();
        let info = partition.produce(&sent, 12).unwrap().info;
        assert_eq!((info.first_offset, info.last_offset), (Some(next), next + 4));
        assert_eq!((info.max_timestamp, info.offset_of_max_timestamp), (NOW + 4, next + 4));
        assert_eq!((info.log_append_time, info.stats.records_converted), (None, 0));
        let stored = partition.fetch(next, 1 << 20, UNCOMMITTED).unwrap().records;
        let mut expected = sent;
        set_last_offset(&mut expected, next + 4).unwrap();
        set_partition_leader_epoch(&mut expected, 1).unwrap();
        assert_eq!(stored, expected, "{}", codec.name());
    }
}

fn validate(
    config: AppendConfig,
    records: &mut Vec<u8>,
) -> Result<magicbyte_broker::AppendInfo, AppendError> {
    let append = Append { origin: AppendOrigin::Client, next_offset: 40, leader_epoch: 3, now: NOW };
    AppendValidator::new(config).unwrap().validate(records, &append).map(Option::unwrap)
}

#[test]
fn append_time_is_set_in_the_header_but_not_in_the_records() {
    let config = AppendConfig { timestamp_type: TimestampType::LogAppendTime, ..AppendConfig::default() };
    let mut stored = plain(3);
    let sent = stored.clone();
    let info = validate(config, &mut stored).unwrap();
    assert_eq!((info.max_timestamp, info.log_append_time), (NOW, Some(NOW)));
    let times = records(&stored, |record| (record.timestamp(), record.timestamp_type()));
    assert_eq!(times, [(NOW, TimestampType::LogAppendTime); 3]);
    assert_eq!(stored[61..], sent[61..]);
    // On a topic with CreateTime, a batch that claims LogAppendTime is checked against the bounds and
    // corrected.
    let claimed = batch(RecordsBuilder::v2(Compression::None).log_append_time(NOW), 2);
    let mut corrected = claimed.clone();
    validate(AppendConfig { timestamp_after_max_ms: 0, ..AppendConfig::default() }, &mut corrected).unwrap();
    let Batch::V2(v2) = Batches::new(&corrected).next().unwrap().unwrap() else { panic!("magic") };
    assert_eq!((v2.timestamp_type(), v2.max_timestamp()), (TimestampType::CreateTime, NOW));
    // On a topic with LogAppendTime, a producer must not set it.
    let config = AppendConfig { timestamp_type: TimestampType::LogAppendTime, ..AppendConfig::default() };
    let mut claimed = claimed;
    let refused = validate(config, &mut claimed).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::InvalidTimestamp);
    let wrong = |batch_index| RecordError { batch_index, kind: RecordErrorKind::LogAppendTimeFromProducer };
    assert_eq!(refused.record_errors(), [wrong(0), wrong(1)]);
}

#[test]
fn records_outside_the_time_bounds_are_refused_one_by_one() {
    let config =
        AppendConfig { timestamp_before_max_ms: 10, timestamp_after_max_ms: 1, ..AppendConfig::default() };
    let mut builder = RecordsBuilder::v2(Compression::None);
    for (offset, time) in [NOW - 11, NOW - 10, -1, NOW + 1, NOW + 2].into_iter().enumerate() {
        builder.append(offset as i64, time, None, Some(b"v"), &[]).unwrap();
    }
    let mut sent = builder.build().unwrap();
    let before = sent.clone();
    let refused = validate(config, &mut sent).unwrap_err();
    assert_eq!(sent, before, "a refused append is left as it was");
    assert_eq!(refused.code(), ErrorCode::InvalidTimestamp);
    let outside = |batch_index, timestamp| RecordError {
        batch_index,
        kind: RecordErrorKind::TimestampOutOfRange { timestamp, min: NOW - 10, max: NOW + 1 },
    };
    assert_eq!(refused.record_errors(), [outside(0, NOW - 11), outside(4, NOW + 2)]);
    let message = format!(
        "INVALID_TIMESTAMP: 2 invalid records, the first at index 0: timestamp {} is not within {} to {}",
        NOW - 11,
        NOW - 10,
        NOW + 1
    );
    assert_eq!(refused.to_string(), message);
}

#[test]
fn records_of_compacted_topics_need_keys() {
    let config = AppendConfig { compacted: true, ..AppendConfig::default() };
    let mut builder = RecordsBuilder::v2(Compression::None);
    for (offset, key) in [Some(&b"k"[..]), None, Some(b""), None].into_iter().enumerate() {
        builder.append(offset as i64, NOW, key, None, &[]).unwrap();
    }
    let refused = validate(config.clone(), &mut builder.build().unwrap()).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::InvalidRecord);
    let indexes: Vec<u32> = refused.record_errors().iter().map(|error| error.batch_index).collect();
    assert_eq!(indexes, [1, 3]);
    assert_eq!(refused.record_errors()[0].kind, RecordErrorKind::MissingKey);
    assert_eq!(code(partition_of(config).delete_records(0)), ErrorCode::PolicyViolation);
}

#[test]
fn batches_of_another_codec_or_magic_are_rewritten() {
    let target = TargetCompression::Codec(Compression::Gzip, Some(1));
    let mut stored = produced(7, 2, 5, 4);
    let sent = stored.clone();
    let info =
        validate(AppendConfig { compression: target, ..AppendConfig::default() }, &mut stored).unwrap();
    assert_eq!(info.stats.records_converted, 4);
    assert_eq!((info.first_offset, info.last_offset), (Some(40), 43));
    let Batch::V2(v2) = Batches::new(&stored).next().unwrap().unwrap() else { panic!("magic") };
    assert_eq!(v2.compression().unwrap(), Compression::Gzip);
    assert_eq!((v2.base_offset(), v2.partition_leader_epoch(), v2.producer_id()), (40, 3, 7));
    assert_eq!((v2.producer_epoch(), v2.base_sequence(), v2.last_sequence()), (2, 5, 8));
    let content = |record: &Record<'_>| {
        (record.timestamp(), record.key().map(<[u8]>::to_vec), record.value().map(<[u8]>::to_vec))
    };
    assert_eq!(records(&stored, content), records(&sent, content));

    // Messages of magic 1 become one batch of magic 2, and vice versa.
    let mut stored = batch(RecordsBuilder::v1(Compression::None), 3);
    let sent = stored.clone();
    let info = validate(AppendConfig::default(), &mut stored).unwrap();
    assert_eq!((info.stats.records_converted, info.last_offset), (3, 42));
    let batches: Vec<_> = Batches::new(&stored).map(Result::unwrap).collect();
    assert_eq!((batches.len(), batches[0].magic(), batches[0].last_offset()), (1, 2, 42));
    assert_eq!(records(&stored, content), records(&sent, content));
    let old = AppendConfig { message_format: 1, ..AppendConfig::default() };
    let mut stored = plain(2);
    validate(old.clone(), &mut stored).unwrap();
    let magics: Vec<i8> = Batches::new(&stored).map(|batch| batch.unwrap().magic()).collect();
    assert_eq!(magics, [1, 1]);
    assert_eq!(record_offsets(&stored), [40, 41]);
    let refused = validate(old, &mut produced(7, 0, 0, 1)).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::UnsupportedForMessageFormat);
}

#[test]
fn offsets_inside_magic_0_wrappers_are_assigned_one_by_one() {
    let config = AppendConfig { message_format: 0, ..AppendConfig::default() };
    let mut builder = RecordsBuilder::v0(Compression::Gzip);
    for offset in [5, 9, 10] {
        builder.append(offset, -1, None, Some(b"value"), &[]).unwrap();
    }
    let mut stored = builder.build().unwrap();
    let info = validate(config, &mut stored).unwrap();
    assert_eq!((info.first_offset, info.last_offset, info.max_timestamp), (Some(40), 42, -1));
    assert_eq!(info.stats.records_converted, 3);
    assert_eq!(record_offsets(&stored), [40, 41, 42]);
    // Kafka cannot do this for a compressed batch of magic 2.
    let mut builder = RecordsBuilder::v2(Compression::Gzip);
    builder.append(0, NOW, None, None, &[]).unwrap();
    builder.append(2, NOW, None, None, &[]).unwrap();
    let refused = validate(AppendConfig::default(), &mut builder.build().unwrap()).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::InvalidRecord);
}

#[test]
fn headers_that_producers_must_not_send_are_refused() {
    let refused = |mut bytes: Vec<u8>| validate(AppendConfig::default(), &mut bytes).unwrap_err();
    let mut moved = plain(1);
    set_last_offset(&mut moved, 5).unwrap();
    assert_eq!(
        refused(moved).to_string(),
        "INVALID_RECORD: a producer's batch must begin at offset 0, not 5 (field baseOffset)"
    );
    let empty = RecordsBuilder::v2(Compression::None).base_offset(0).empty_batch(0, -1).unwrap();
    assert_eq!(refused(empty).code(), ErrorCode::InvalidRecord);
    let mut gap = RecordsBuilder::v2(Compression::None);
    gap.append(0, NOW, None, None, &[]).unwrap();
    gap.append(2, NOW, None, None, &[]).unwrap();
    assert_eq!(
        refused(gap.build().unwrap()).to_string(),
        "INVALID_RECORD: the batch has 2 records but offsets for 3"
    );
    let mut control = RecordsBuilder::v2(Compression::None).producer(7, 0, 0).transactional().control();
    let marker =
        magicbyte::ControlRecord::EndTransaction { committed: true, version: 0, coordinator_epoch: 0 };
    control.append_control(0, NOW, &marker).unwrap();
    assert_eq!(
        refused(control.build().unwrap()).to_string(),
        "INVALID_RECORD: producers must not write control batches"
    );
    let mixed = [batch(RecordsBuilder::v1(Compression::None), 1), plain(1)].concat();
    assert_eq!(refused(mixed).code(), ErrorCode::InvalidRecord);
    let mut damaged = plain(1);
    *damaged.last_mut().unwrap() ^= 1;
    let refused = refused(damaged);
    assert_eq!(refused.code(), ErrorCode::CorruptMessage);
    assert!(matches!(refused.cause().unwrap().kind(), ErrorKind::CrcMismatch { .. }));
}

#[test]
fn sizes_are_limited_and_truncated_batches_removed() {
    let sent = plain(10);
    let limit = sent.len() as i32;
    let config = |max_message_bytes, segment_bytes| AppendConfig {
        max_message_bytes,
        segment_bytes,
        ..AppendConfig::default()
    };
    assert!(validate(config(limit, limit), &mut sent.clone()).is_ok());
    assert_eq!(code(validate(config(limit - 1, limit), &mut sent.clone())), ErrorCode::MessageTooLarge);
    assert_eq!(code(validate(config(limit, limit - 1), &mut sent.clone())), ErrorCode::RecordListTooLarge);
    let tight = AppendConfig { max_decompressed_bytes: 10, ..AppendConfig::default() };
    assert_eq!(
        code(validate(tight, &mut batch(RecordsBuilder::v2(Compression::Zstd), 10))),
        ErrorCode::MessageTooLarge
    );

    let mut cut = [&sent[..], &sent[..30]].concat();
    validate(AppendConfig::default(), &mut cut).unwrap();
    assert_eq!(cut.len(), sent.len());
    let append = Append { origin: AppendOrigin::Client, next_offset: 40, leader_epoch: 3, now: NOW };
    let mut only_cut = sent[..30].to_vec();
    let mut validator = AppendValidator::new(AppendConfig::default()).unwrap();
    assert_eq!(validator.validate(&mut only_cut, &append), Ok(None));
    assert!(only_cut.is_empty());
    for wrong in [
        AppendConfig { message_format: 3, ..AppendConfig::default() },
        AppendConfig { timestamp_type: TimestampType::NoTimestampType, ..AppendConfig::default() },
        AppendConfig { timestamp_before_max_ms: -1, ..AppendConfig::default() },
        AppendConfig {
            compression: TargetCompression::Codec(Compression::Gzip, Some(12)),
            ..AppendConfig::default()
        },
    ] {
        assert!(AppendValidator::new(wrong).is_err());
    }
}

#[test]
fn followers_keep_the_leaders_offsets_and_epochs() {
    let mut leader = partition();
    leader.produce(&plain(3), 12).unwrap();
    leader.elect_leader();
    leader.produce(&plain(2), 12).unwrap();
    let fetched = leader.fetch(0, 1 << 20, UNCOMMITTED).unwrap().records;

    let mut follower = partition();
    let info = follower.append(&fetched, AppendOrigin::Replication).unwrap().info;
    assert_eq!((info.first_offset, info.last_offset), (Some(0), 2), "the follower does not know epoch 1 yet");
    follower.elect_leader();
    let rest = leader.fetch(3, 1 << 20, UNCOMMITTED).unwrap().records;
    follower.append(&rest, AppendOrigin::Replication).unwrap();
    assert_eq!(follower.fetch(0, 1 << 20, UNCOMMITTED).unwrap().records, fetched);
    // Offsets that the log already has, and a batch without a leader epoch.
    assert_eq!(code(follower.append(&rest, AppendOrigin::Replication)), ErrorCode::UnknownServerError);
    assert_eq!(code(follower.append(&plain(1), AppendOrigin::Replication)), ErrorCode::InvalidRecord);
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

#[allow(dead_code, reason = "main is unused here")]
#[path = "../examples/append.rs"]
mod example;

#[test]
fn the_example_works_as_described() {
    let mut out = Vec::new();
    example::append(&mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[..3],
        ["sequence 0: offset 0", "sequence 1: offset 1", "sequence 1: is in the log already"]
    );
    assert!(lines[3].starts_with("sequence 5: ") && lines[3].contains("sequence 5"), "{text}");
    assert_eq!(lines[4], "the log ends at offset 2");
}
