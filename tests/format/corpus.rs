//! The published corpus: this crate agrees with Kafka's verdict on each case.

use serde_json::{Value, json};

use magicbyte::{Batch, Batches, Decompressor, Result};
use magicbyte_testing::handmade::{Row, hex};

fn text(bytes: Option<&Vec<u8>>) -> Value {
    bytes.map_or(Value::Null, |bytes| ::hex::encode(bytes).into())
}

fn record(batch: usize, row: &Row) -> Value {
    let headers: Vec<_> = row.headers.iter().map(|(k, v)| json!([text(Some(k)), text(v.as_ref())])).collect();
    json!({
        "batch": batch, "offset": row.offset, "timestamp": row.timestamp,
        "timestampType": row.timestamp_type as i8, "key": text(row.key.as_ref()),
        "value": text(row.value.as_ref()), "headers": headers, "sequence": row.sequence,
    })
}

fn rows(batch: &Batch<'_>) -> Result<Vec<Row>> {
    batch.verify()?;
    let mut decompressor = Decompressor::new();
    batch.records(&mut decompressor)?.map(|record| record.map(Row::from)).collect()
}

/// Whether all batches were accepted, and the records of those that were.
fn read(bytes: &[u8]) -> (bool, Vec<Value>) {
    let mut accepted = true;
    let mut records = Vec::new();
    for (index, batch) in Batches::new(bytes).enumerate() {
        match batch.and_then(|batch| rows(&batch)) {
            Ok(rows) => records.extend(rows.iter().map(|row| record(index, row))),
            Err(_) => accepted = false,
        }
    }
    (accepted, records)
}

#[test]
fn every_case() {
    let (mut accepted, mut refused) = (0, 0);
    for file in ["built", "codecs", "control", "framing", "header", "legacy", "records"] {
        let lines = std::fs::read_to_string(format!("tests/corpus/{file}.jsonl")).unwrap();
        for line in lines.lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            let (ours, records) = read(&hex(case["hex"].as_str().unwrap()));
            let kafka = case["verdict"] == "accept";
            *(if kafka { &mut accepted } else { &mut refused }) += 1;
            if case.get("differs").is_some() {
                assert_ne!(ours, kafka, "{}: no longer differs", case["id"]);
                continue;
            }
            assert_eq!(ours, kafka, "{}", case["id"]);
            assert_eq!(Value::from(records), case["records"], "{}", case["id"]);
        }
    }
    assert!(accepted > 150 && refused > 150, "{accepted} accepted, {refused} refused");
}
