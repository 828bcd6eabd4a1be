//! Bytes that Kafka's own classes wrote are read as the records that Kafka was given.

use magicbyte::{Batch, Batches, Compression, ControlRecord, Decompressor, TimestampType};
use magicbyte_testing::handmade::{Row, V2, hex, in_this_build, plain_record, read_all};

const BATCHES: &str = include_str!("../data/batches.txt");
const SEGMENT: &str = include_str!("../data/segment.txt");

fn the_two_records(magic: i8) -> Vec<Row> {
    let row = |offset, timestamp, key: Option<&[u8]>, value: &[u8]| Row {
        offset,
        timestamp: if magic == 0 { -1 } else { timestamp },
        timestamp_type: if magic == 0 { TimestampType::NoTimestampType } else { TimestampType::CreateTime },
        sequence: -1,
        attributes: 0,
        key: key.map(<[u8]>::to_vec),
        value: Some(value.to_vec()),
        headers: vec![],
    };
    vec![row(5, 1000, Some(b"k"), b"v"), row(6, 1001, None, b"v2")]
}

#[test]
fn every_codec_and_magic_holds_the_two_records() {
    let mut seen = 0;
    for line in BATCHES.lines() {
        let words: Vec<_> = line.split(' ').collect();
        let [codec, magic @ ("v0" | "v1" | "v2"), bytes] = words[..] else { continue };
        seen += 1;
        let bytes = hex(bytes);
        let magic: i8 = magic[1..].parse().unwrap();
        let batches: Vec<_> = Batches::new(&bytes).map(Result::unwrap).collect();
        // Uncompressed legacy messages are batches of their own; everything else is one batch.
        assert_eq!(batches.len(), if magic < 2 && codec == "none" { 2 } else { 1 }, "{line}");
        for batch in &batches {
            batch.verify().unwrap();
            assert_eq!(batch.magic(), magic, "{line}");
            assert_eq!(batch.compression().unwrap().name(), codec, "{line}");
        }
        let last = batches.last().unwrap();
        assert_eq!(last.last_offset(), 6, "{line}");
        assert_eq!(last.max_timestamp(), if magic == 0 { -1 } else { 1001 }, "{line}");
        if in_this_build(codec) {
            assert_eq!(batches[0].base_offset(&mut Decompressor::new()).unwrap(), 5, "{line}");
            assert_eq!(read_all(&bytes).unwrap(), the_two_records(magic), "{line}");
        }
    }
    assert_eq!(seen, 13);
}

/// What compaction leaves of a batch that lost all its records.
#[test]
fn the_empty_retained_batch() {
    let line = BATCHES.lines().find(|line| line.starts_with("empty 0")).unwrap();
    let bytes = hex(&line["empty ".len()..]);
    let Batch::V2(batch) = Batches::new(&bytes).next().unwrap().unwrap() else { panic!("magic") };
    batch.verify().unwrap();
    assert_eq!(batch.record_count(), 0);
    assert_eq!((batch.base_offset(), batch.last_offset()), (10, 20));
    assert_eq!((batch.base_timestamp(), batch.max_timestamp()), (-1, 99));
    assert_eq!((batch.producer_id(), batch.producer_epoch(), batch.base_sequence()), (1, 0, 0));
    assert_eq!(batch.last_sequence(), 10);
    assert_eq!(batch.partition_leader_epoch(), 3);
    assert_eq!(batch.delete_horizon_ms(), None);
    assert_eq!(batch.compression().unwrap(), Compression::None);
    assert_eq!(read_all(&bytes).unwrap(), []);
}

/// Old brokers kept the codec bits of an empty batch. Its payload is not decompressed, whatever it holds.
#[test]
fn an_empty_batch_is_empty_under_every_codec() {
    for codec in 0..5 {
        for payload in [vec![], plain_record(0), vec![0xff; 9]] {
            let batch = V2 { attributes: codec, payload, ..V2::of(&[]) };
            assert_eq!(read_all(&batch.bytes()).unwrap(), [], "codec {codec}");
        }
    }
}

#[test]
fn the_abort_marker() {
    let line = SEGMENT.lines().find(|line| line.starts_with("log ")).unwrap();
    let bytes = hex(line.split(' ').next_back().unwrap());
    assert_eq!(bytes.len(), 78);
    let Batch::V2(batch) = Batches::new(&bytes).next().unwrap().unwrap() else { panic!("magic") };
    batch.verify().unwrap();
    assert!(batch.is_control() && batch.is_transactional());
    assert_eq!((batch.base_offset(), batch.producer_id(), batch.producer_epoch()), (110, 7, 1));
    let mut decompressor = Decompressor::new();
    let record = batch.records(&mut decompressor).unwrap().next().unwrap().unwrap();
    assert_eq!((record.timestamp(), record.sequence()), (2000, -1));
    assert_eq!(
        ControlRecord::parse(record.key(), record.value()).unwrap(),
        ControlRecord::EndTransaction { committed: false, version: 0, coordinator_epoch: 3 }
    );
}
