//! Appends as a broker validates them: Kafka's rules, checked on built batches.

use magicbyte::convert::{set_last_offset, set_partition_leader_epoch};
use magicbyte::state::AppendOrigin;
use magicbyte::{Batch, Batches, Compression, ErrorKind, Record, RecordsBuilder, TimestampType};
use magicbyte_broker::{
    Append, AppendConfig, AppendError, AppendValidator, ErrorCode, RecordError, RecordErrorKind,
    TargetCompression, check_produce_request,
};

use crate::support::{
    NOW, UNCOMMITTED, batch, code, partition, partition_of, plain, produced, record_offsets, records,
};

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
