//! Shared by the tests of columns: reads logs and buffers as Arrow batches, and shows these as JSON.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use bytes::Bytes;
use serde_json::{Map, Value, json};

use magicbyte::DEFAULT_MAX_DECOMPRESSED_BYTES;
use magicbyte_arrow::{BatchStream, Findings, LogStream, RecordColumn, StreamOptions};
use magicbyte_log::{DamageMode, PartitionLog, ReadOptions};
use magicbyte_testing::{data, files};

pub fn columns(names: &[&str]) -> Vec<RecordColumn> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

/// A cell in the form of Kafka's reading in JSON: bytes in hex, timestamps in milliseconds.
pub fn cell(column: &ArrayRef, row: usize) -> Value {
    if column.is_null(row) {
        return Value::Null;
    }
    match column.data_type() {
        DataType::Binary => json!(hex::encode(column.as_binary::<i32>().value(row))),
        DataType::BinaryView => json!(hex::encode(column.as_binary_view().value(row))),
        DataType::Utf8 => json!(column.as_string::<i32>().value(row)),
        DataType::Int32 => json!(column.as_primitive::<Int32Type>().value(row)),
        DataType::Int64 => json!(column.as_primitive::<Int64Type>().value(row)),
        DataType::Boolean => json!(column.as_boolean().value(row)),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            json!(column.as_primitive::<TimestampMillisecondType>().value(row))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            let micros = column.as_primitive::<TimestampMicrosecondType>().value(row);
            assert_eq!(micros % 1000, 0);
            json!(micros / 1000)
        }
        DataType::List(_) => {
            let entries = column.as_list::<i32>().value(row);
            let (keys, values) = (entries.as_struct().column(0), entries.as_struct().column(1));
            (0..entries.len()).map(|at| json!([cell(keys, at), cell(values, at)])).collect()
        }
        other => panic!("unexpected type {other}"),
    }
}

/// Every row as a JSON object by column name.
pub fn rows(batches: &[RecordBatch]) -> Vec<Map<String, Value>> {
    let row = |batch: &RecordBatch, row| {
        let schema = batch.schema();
        schema.fields().iter().zip(batch.columns()).map(|(f, c)| (f.name().clone(), cell(c, row))).collect()
    };
    batches
        .iter()
        .flat_map(|batch| (0..batch.num_rows()).map(|at| row(batch, at)).collect::<Vec<_>>())
        .collect()
}

pub fn stream_of(dir: &Path, read: ReadOptions, options: StreamOptions) -> (LogStream, Arc<Mutex<Findings>>) {
    let findings = Arc::new(Mutex::new(Findings::default()));
    let log = PartitionLog::open(dir).unwrap();
    (LogStream::new(log, read, options, Arc::clone(&findings)), findings)
}

pub fn read_log(dir: &Path, options: StreamOptions) -> Vec<RecordBatch> {
    let read = ReadOptions { mode: DamageMode::Permissive, ..ReadOptions::default() };
    stream_of(dir, read, options).0.map(Result::unwrap).collect()
}

/// The bytes of all segments of a partition in `tests/data/kafka`.
pub fn log_bytes(name: &str) -> Bytes {
    files(&data().join(name), ".log").iter().flat_map(|file| fs::read(file).unwrap()).collect()
}

pub fn read_buffer(data: &Bytes, options: StreamOptions) -> Vec<RecordBatch> {
    let stream = BatchStream::new(data.clone(), options, true, DEFAULT_MAX_DECOMPRESSED_BYTES, true);
    stream.map(Result::unwrap).collect()
}
