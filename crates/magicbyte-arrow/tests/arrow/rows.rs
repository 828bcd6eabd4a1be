//! Arrow rows written as records: the rows of real logs read back the same.

use std::fs;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use bytes::Bytes;

use magicbyte::{Batch, Batches, Compression, Decompressor, ErrorKind, RecordsBuilder};
use magicbyte_arrow::{Defaults, Flavour, Rows, RowsOptions, RowsWriter, StreamOptions};
use magicbyte_log::WriteOptions;
use magicbyte_testing::{data, scratch};

use crate::support::arrow::{columns, read_buffer, read_log, rows};

fn arrow_batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .unwrap()
}

#[test]
fn rows_are_written_as_the_records_they_came_from() {
    for name in ["v2_headers", "v2_nulls", "v2_timestamps", "v2_big_record", "mixed_012", "v0_none"] {
        let dir = data().join(name);
        for flavour in [Flavour::Millis, Flavour::Views] {
            let names = ["offset", "timestamp", "key", "value", "headers"];
            let options = StreamOptions { columns: columns(&names), flavour, ..StreamOptions::default() };
            let batches = read_log(&dir, options.clone());
            let mut builder = RecordsBuilder::v2(Compression::Lz4);
            for batch in &batches {
                let rows = Rows::of(batch).unwrap();
                assert!(!rows.is_empty());
                let defaults = Defaults { offset: 0, timestamp: 7 };
                if let Err(error) = rows.append_all(defaults, &mut builder) {
                    // The builder refuses timestamps below -1, which real logs can have.
                    assert_eq!((name, error.field()), ("v2_timestamps", Some("timestamp")));
                }
            }
            let written = rows(&read_buffer(&Bytes::from(builder.build().unwrap()), options));
            let read = rows(&batches);
            if name == "v2_timestamps" {
                assert_eq!(written, read[..written.len()]);
            } else {
                assert_eq!(written, read, "{name}");
            }
        }
    }
}

#[test]
fn rows_of_any_layout_have_defaults() {
    let value: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("c")]));
    let time: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![Some(-1), None, Some(2500)]));
    let batch = arrow_batch(vec![("value", value), ("timestamp", time)]);
    let rows_of_batch = Rows::of(&batch).unwrap();
    assert_eq!(rows_of_batch.len(), 3);
    let mut builder = RecordsBuilder::v2(Compression::None);
    let next = rows_of_batch.append_all(Defaults { offset: 10, timestamp: 77 }, &mut builder).unwrap();
    assert_eq!(next, 13);
    let bytes = Bytes::from(builder.build().unwrap());
    let Batch::V2(v2) = Batches::new(&bytes).next().unwrap().unwrap() else { panic!("magic") };
    let mut decompressor = Decompressor::new();
    let found: Vec<_> = v2
        .records(&mut decompressor)
        .unwrap()
        .map(|record| record.unwrap())
        .map(|record| (record.offset(), record.timestamp(), record.value().map(<[u8]>::to_vec)))
        .collect();
    let text = |text: &str| Some(text.as_bytes().to_vec());
    assert_eq!(
        found,
        [(10, -1, text("a")), (11, -1, None), (12, 2, text("c"))],
        "microseconds are rounded down; null means no timestamp"
    );

    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let value: ArrayRef = Arc::new(BinaryArray::from_opt_vec(vec![Some(b"x"), None]));
    let wrong = |columns| Rows::of(&arrow_batch(columns)).map(drop).unwrap_err().to_string();
    assert_eq!(wrong(vec![("key", value.clone())]), "there is no column value (field value)");
    assert!(wrong(vec![("value", numbers.clone())]).contains("neither binary nor text"));
    assert!(wrong(vec![("value", value.clone()), ("offset", value.clone())]).contains("offset is not int64"));
    assert!(wrong(vec![("value", value.clone()), ("headers", numbers)]).contains("headers is not a list"));
    let nulls: ArrayRef = Arc::new(Int64Array::from(vec![Some(5), None]));
    let batch = arrow_batch(vec![("value", value), ("offset", nulls)]);
    let mut builder = RecordsBuilder::v2(Compression::None);
    let error =
        Rows::of(&batch).unwrap().append_all(Defaults { offset: 0, timestamp: 0 }, &mut builder).unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::InvalidRecord("the offset is null"));
    assert_eq!(builder.record_count(), 1);
}

#[test]
fn a_partition_is_written_from_rows() {
    let dir = scratch("columns_rows").join("rows-0");
    fs::create_dir_all(&dir).unwrap();
    let options = RowsOptions {
        compression: (Compression::Zstd, Some(1)),
        batch_bytes: 2000,
        timestamp: 5,
        write: WriteOptions::default(),
    };
    let names = ["offset", "timestamp", "key", "value", "headers"];
    let read = StreamOptions { columns: columns(&names), ..StreamOptions::default() };
    let source = data().join("v2_none");
    let mut writer = RowsWriter::new(&dir, options).unwrap();
    for batch in read_log(&source, read.clone()) {
        writer.append(&batch).unwrap();
    }
    assert_eq!((writer.rows(), writer.first_offset(), writer.next_offset()), (346, Some(0), 346));
    let summaries = writer.finish().unwrap();
    assert_eq!(summaries.len(), 1);
    assert_eq!(rows(&read_log(&dir, read.clone())), rows(&read_log(&source, read)));

    let mut writer = RowsWriter::new(scratch("columns_rows_refused"), options).unwrap();
    let offsets: ArrayRef = Arc::new(Int64Array::from(vec![3, 4, 4]));
    let value: ArrayRef = Arc::new(BinaryArray::from_opt_vec(vec![None; 3]));
    let error = writer.append(&arrow_batch(vec![("value", value), ("offset", offsets)])).unwrap_err();
    assert!(error.to_string().starts_with("row 2 of the partition: offset 4 is not allowed here"), "{error}");
    let level = RowsOptions { compression: (Compression::Gzip, Some(20)), ..options };
    assert!(RowsWriter::new(&dir, level).is_err());
}
