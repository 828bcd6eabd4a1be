//! Every partition that real brokers wrote gives exactly the records and batches that Kafka reads.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use magicbyte::{Batch, Batches, ControlRecord, ControlType, Decompressor, Record};
use magicbyte_testing::{CanonicalDigest, files, json, json_lines, partitions};

fn bytes_or_digest(bytes: Option<&[u8]>) -> Value {
    match bytes {
        None => Value::Null,
        Some(b) if b.len() <= 4096 => json!(hex::encode(b)),
        Some(b) => json!({"sha256": hex::encode(Sha256::digest(b)), "len": b.len()}),
    }
}

fn record_json(batch: &Batch<'_>, record: &Record<'_>) -> Value {
    let headers: Vec<_> =
        record.headers().map(|h| json!([hex::encode(h.key), h.value.map(hex::encode)])).collect();
    let (pid, epoch, txn, leader_epoch) = match batch {
        Batch::V2(b) => {
            (b.producer_id(), b.producer_epoch(), b.is_transactional(), b.partition_leader_epoch())
        }
        Batch::Legacy(_) => (-1, -1, false, -1),
    };
    let mut line = json!({
        "offset": record.offset(), "timestamp": record.timestamp(),
        "timestampType": batch.timestamp_type().name(),
        "key": bytes_or_digest(record.key()), "value": bytes_or_digest(record.value()),
        "headers": headers, "magic": batch.magic(), "codec": batch.compression().unwrap().name(),
        "pid": pid, "epoch": epoch, "seq": record.sequence(), "txn": txn,
        "control": batch.is_control(), "leaderEpoch": leader_epoch,
    });
    if batch.is_control() {
        line["controlType"] = json!(ControlType::parse(record.key().unwrap()).unwrap().name());
        let control = ControlRecord::parse(record.key(), record.value()).unwrap();
        if let ControlRecord::EndTransaction { coordinator_epoch, .. } = control {
            line["coordinatorEpoch"] = json!(coordinator_epoch);
        }
    }
    line
}

fn batch_json(segment: &str, batch: &Batch<'_>, count: usize, base_offset: i64) -> Value {
    let mut line = json!({
        "segment": segment, "position": batch.position(), "baseOffset": base_offset,
        "lastOffset": batch.last_offset(), "count": count, "size": batch.size_in_bytes(),
        "magic": batch.magic(), "codec": batch.compression().unwrap().name(), "crc": batch.crc(),
        "isvalid": batch.verify().is_ok(), "pid": -1, "epoch": -1, "baseSequence": -1,
        "lastSequence": -1, "txn": false, "control": false, "deleteHorizonMs": null,
        "maxTimestamp": batch.max_timestamp(), "timestampType": batch.timestamp_type().name(),
        "partitionLeaderEpoch": -1,
    });
    if let Batch::V2(b) = batch {
        line["pid"] = json!(b.producer_id());
        line["epoch"] = json!(b.producer_epoch());
        line["baseSequence"] = json!(b.base_sequence());
        line["lastSequence"] = json!(b.last_sequence());
        line["txn"] = json!(b.is_transactional());
        line["control"] = json!(b.is_control());
        line["deleteHorizonMs"] = json!(b.delete_horizon_ms());
        line["partitionLeaderEpoch"] = json!(b.partition_leader_epoch());
    }
    line
}

/// Reads whole files with the core alone, and compares each line.
fn compare(name: &str, paths: &[std::path::PathBuf], dir: &std::path::Path, suffix: &str) -> String {
    let mut expected_records = json_lines(&dir.join(format!("expected{suffix}.jsonl"))).into_iter();
    let mut expected_batches = json_lines(&dir.join(format!("batches{suffix}.jsonl"))).into_iter();
    let mut digest = CanonicalDigest::default();
    let mut decompressor = Decompressor::new();
    let mut headers_only = Decompressor::new();
    for path in paths {
        let bytes = std::fs::read(path).unwrap();
        let segment = path.file_name().unwrap().to_str().unwrap();
        for batch in Batches::new(&bytes) {
            let batch = batch.unwrap();
            let mut count = 0;
            for record in batch.records(&mut decompressor).unwrap() {
                let record = record.unwrap();
                count += 1;
                assert_eq!(expected_records.next(), Some(record_json(&batch, &record)), "{name}");
                if !batch.is_control() {
                    digest.add(&record);
                }
            }
            let skipped: Vec<_> =
                batch.records(&mut headers_only).unwrap().skip_key_value().map(Result::unwrap).collect();
            let walked = batch.records(&mut decompressor).unwrap();
            assert_eq!(skipped, walked.map(|record| record.unwrap().into()).collect::<Vec<_>>());
            assert_eq!(skipped.len(), count, "{name}");
            let base_offset = batch.base_offset(&mut headers_only).unwrap();
            let line = batch_json(segment, &batch, count, base_offset);
            assert_eq!(expected_batches.next(), Some(line), "{name}");
        }
    }
    assert_eq!(expected_records.next(), None, "{name}");
    assert_eq!(expected_batches.next(), None, "{name}");
    digest.finish()
}

#[test]
fn every_record_and_batch_of_every_partition() {
    for dir in partitions() {
        let name = dir.file_name().unwrap().to_str().unwrap();
        let digest = compare(name, &files(&dir, ".log"), &dir, "");
        assert_eq!(digest, json(&dir.join("summary.json"))["sha256"], "{name}");
        for checkpoint in files(&dir, ".checkpoint") {
            let stem = checkpoint.file_stem().unwrap().to_str().unwrap();
            compare(stem, std::slice::from_ref(&checkpoint), &dir, &format!(".{stem}"));
        }
    }
}
