//! Data records in a comparable form: as this crate reads a log, and as Kafka read it.

use std::path::Path;

use serde_json::Value;
use sha2::{Digest, Sha256};

use magicbyte::{Decompressor, Record};
use magicbyte_log::{Disposition, PartitionLog, ReadOptions};
use magicbyte_testing::json_lines;

/// The length and SHA-256 of a key or a value, or `None` for null. Kafka's reader wrote large ones in this
/// form.
pub type Content = Option<(u64, String)>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub offset: i64,
    pub timestamp: i64,
    pub key: Content,
    pub value: Content,
    pub headers: Vec<(Content, Content)>,
}

fn content(bytes: Option<&[u8]>) -> Content {
    bytes.map(|bytes| (bytes.len() as u64, hex::encode(Sha256::digest(bytes))))
}

impl Row {
    pub fn of(record: &Record<'_>) -> Self {
        Self {
            offset: record.offset(),
            timestamp: record.timestamp(),
            key: content(record.key()),
            value: content(record.value()),
            headers: record
                .headers()
                .map(|header| (content(Some(header.key)), content(header.value)))
                .collect(),
        }
    }

    /// The content of a key, to compare with [`Row::key`].
    pub fn key_of(key: &[u8]) -> Content {
        content(Some(key))
    }

    /// From a line of `expected.jsonl`.
    fn of_line(line: &Value) -> Self {
        let content = |value: &Value| match value {
            Value::Null => None,
            Value::String(text) => content(Some(&hex::decode(text).unwrap())),
            large => Some((large["len"].as_u64().unwrap(), large["sha256"].as_str().unwrap().to_owned())),
        };
        let headers = line["headers"].as_array().unwrap();
        Self {
            offset: line["offset"].as_i64().unwrap(),
            timestamp: line["timestamp"].as_i64().unwrap(),
            key: content(&line["key"]),
            value: content(&line["value"]),
            headers: headers.iter().map(|header| (content(&header[0]), content(&header[1]))).collect(),
        }
    }
}

/// The data records of a partition.
pub fn rows(directory: &Path) -> Vec<Row> {
    let mut decompressor = Decompressor::new();
    let mut rows = Vec::new();
    for read in PartitionLog::open(directory).unwrap().batches(ReadOptions::default()).unwrap() {
        let read = read.unwrap();
        if read.disposition == Disposition::Rows {
            for record in read.data.batch().records(&mut decompressor).unwrap() {
                rows.push(Row::of(&record.unwrap()));
            }
        }
    }
    rows
}

/// The data records of a partition in `tests/data/kafka`, as Kafka read them.
pub fn kafkas_rows(directory: &Path) -> Vec<Row> {
    let lines = json_lines(&directory.join("expected.jsonl"));
    lines.iter().filter(|line| line["control"] == false).map(Row::of_line).collect()
}

/// Fails with the first row that differs, because whole partitions are too long to print.
pub fn assert_rows(found: &[Row], expected: &[Row], what: &str) {
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected, "{what}");
    }
    assert_eq!(found.len(), expected.len(), "{what}: number of records");
}
