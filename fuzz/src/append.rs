//! Appends: three bytes choose the topic's configuration and the origin, the rest are batches that get valid
//! checksums.

use magicbyte::state::{AppendOrigin, IsolationLevel};
use magicbyte::{Batch, Batches, Compression, Decompressor, TimestampType};
use magicbyte_broker::{
    Append, AppendConfig, AppendInfo, AppendValidator, PartitionSimulator, TargetCompression,
};

use super::made::seal;
use super::walk::LIMIT;

const NEXT_OFFSET: i64 = 1000;
const LEADER_EPOCH: i32 = 7;

/// Whatever was sent, what is stored is valid. A refused append is left unchanged.
pub fn append(data: &[u8]) {
    let [topic, target, sender, batches @ ..] = data else { return };
    let config = config(*topic, *target);
    let origin = [AppendOrigin::Client, AppendOrigin::Coordinator][usize::from(sender % 2)];
    let mut sent = batches.to_vec();
    let whole: Vec<_> = Batches::new(batches)
        .map_while(Result::ok)
        .map(|batch| (batch.position() as usize, batch.size_in_bytes()))
        .collect();
    for (position, size) in whole {
        seal(&mut sent[position..position + size]);
    }

    let mut validator = AppendValidator::new(config.clone()).unwrap();
    let append =
        Append { origin, next_offset: NEXT_OFFSET, leader_epoch: LEADER_EPOCH, now: 1_700_000_000_000 };
    let mut stored = sent.clone();
    match validator.validate(&mut stored, &append) {
        Err(_) => assert_eq!(stored, sent, "a refused append was changed"),
        Ok(None) => assert!(stored.is_empty()),
        Ok(Some(info)) if origin == AppendOrigin::Client => check_stored(&stored, &config, &info),
        Ok(Some(_)) => {}
    }

    let mut partition = PartitionSimulator::new(config).unwrap();
    let mut trusted = false;
    for next in [origin, AppendOrigin::Replication, origin] {
        // Kafka, too, takes the batches of leaders and coordinators unchecked, with any last offset delta.
        trusted |= partition.append(&sent, next).is_ok() && next != AppendOrigin::Client;
        let end = partition.log_end_offset();
        assert!(trusted || partition.last_stable_offset() <= end);
        for isolation in [IsolationLevel::ReadUncommitted, IsolationLevel::ReadCommitted] {
            let _ = partition.fetch(end / 2, usize::from(*sender), isolation);
        }
    }
    let end = partition.log_end_offset();
    let _ = partition.truncate(end / 2);
    let _ = partition.delete_records(end / 4);
}

fn config(topic: u8, target: u8) -> AppendConfig {
    let codec = Compression::ALL[usize::from(target % 5)];
    let bit = |number: u8| topic & 1 << number != 0;
    AppendConfig {
        compacted: bit(0),
        timestamp_type: if bit(1) { TimestampType::LogAppendTime } else { TimestampType::CreateTime },
        timestamp_after_max_ms: if bit(2) { i64::MAX } else { 3_600_000 },
        message_format: [2, 2, 1, 0][usize::from(topic >> 3 & 3)],
        compression: if bit(5) { TargetCompression::Producer } else { TargetCompression::Codec(codec, None) },
        max_decompressed_bytes: LIMIT,
        ..AppendConfig::default()
    }
}

/// Every record can be read, and offsets are consecutive.
fn check_stored(stored: &[u8], config: &AppendConfig, info: &AppendInfo) {
    let mut decompressor = Decompressor::new();
    let (mut batches, mut expected) = (Batches::new(stored), NEXT_OFFSET);
    for batch in &mut batches {
        let batch = batch.unwrap();
        batch.verify().unwrap();
        assert_eq!(batch.magic(), config.message_format);
        if let Batch::V2(v2) = &batch {
            assert_eq!(v2.base_offset(), expected);
            assert_eq!(v2.partition_leader_epoch(), LEADER_EPOCH);
        }
        let count = batch.records(&mut decompressor).unwrap().map(Result::unwrap).count();
        expected += count as i64;
        assert_eq!(batch.last_offset(), expected - 1);
    }
    assert_eq!(batches.remaining(), 0);
    assert_eq!((info.first_offset, info.last_offset), (Some(NEXT_OFFSET), expected - 1));
}
