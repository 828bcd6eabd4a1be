//! Arrow columns: schemas, and the records of real logs in each flavour, selection and number of threads,
//! compared with Kafka's own reading of them.

use std::fs;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use bytes::Bytes;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use magicbyte::{
    Batches, Compression, DEFAULT_MAX_DECOMPRESSED_BYTES, Decompressor, ErrorKind, RecordsBuilder,
};
use magicbyte_arrow::{
    BatchStream, Flavour, ReadCounts, RecordColumn, Selection, StreamOptions, Table, batch_to_arrow,
    batches_schema, columns_of, problems_schema, records_schema,
};
use magicbyte_log::{DamageMode, PartitionLog, PlanOptions, ReadOptions};
use magicbyte_testing::{data, files, json_lines, partitions, scratch};

use crate::support::arrow::{columns, log_bytes, read_buffer, read_log, rows, stream_of};

const NAMES: [&str; 18] = [
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "headers",
    "timestampMillis",
    "magic",
    "compression",
    "producerId",
    "producerEpoch",
    "sequence",
    "isTransactional",
    "leaderEpoch",
    "segment",
    "position",
];

pub(crate) fn all_columns() -> Vec<RecordColumn> {
    columns(&NAMES)
}

/// Kafka's reading gives large values by length and digest; ours in the same form.
fn digest_if_large(ours: &Value, theirs: &Value) -> Value {
    if theirs.get("sha256").is_none() {
        return ours.clone();
    }
    let bytes = hex::decode(ours.as_str().unwrap()).unwrap();
    json!({ "len": bytes.len(), "sha256": hex::encode(Sha256::digest(&bytes)) })
}

/// The data records of Kafka's reading, with our column names.
fn expected(dir: &Path) -> Vec<Map<String, Value>> {
    let timestamp_types = ["NoTimestampType", "CreateTime", "LogAppendTime"];
    let lines = json_lines(&dir.join("expected.jsonl")).into_iter();
    lines
        .filter(|record| record["control"] == false)
        .map(|record| {
            let time_type = timestamp_types.iter().position(|name| record["timestampType"] == *name).unwrap();
            let headers: Vec<Value> = record["headers"]
                .as_array()
                .unwrap()
                .iter()
                .map(|header| {
                    let key = hex::decode(header[0].as_str().unwrap()).unwrap();
                    json!([String::from_utf8_lossy(&key), header[1]])
                })
                .collect();
            let row = json!({
                "key": record["key"], "value": record["value"], "offset": record["offset"],
                "timestamp": record["timestamp"], "timestampMillis": record["timestamp"],
                "timestampType": time_type as i64 - 1, "magic": record["magic"], "compression": record["codec"],
                "headers": if headers.is_empty() { Value::Null } else { json!(headers) },
                "producerId": record["pid"], "producerEpoch": record["epoch"], "sequence": record["seq"],
                "isTransactional": record["txn"], "leaderEpoch": record["leaderEpoch"],
            });
            row.as_object().unwrap().clone()
        })
        .collect()
}

#[test]
fn every_real_log_gives_the_records_that_kafka_read() {
    let mut compared = 0;
    for dir in partitions() {
        let theirs = expected(&dir);
        for flavour in [Flavour::Millis, Flavour::Views, Flavour::Spark] {
            let options = StreamOptions { columns: all_columns(), flavour, ..StreamOptions::default() };
            let ours = rows(&read_log(&dir, options));
            let context = format!("{} {flavour:?}", dir.display());
            assert_eq!(ours.len(), theirs.len(), "{context}");
            for (ours, theirs) in ours.iter().zip(&theirs) {
                for (name, value) in theirs {
                    let is_representable = || value.as_i64().unwrap().checked_mul(1000).is_some();
                    let value = match &name[..] {
                        "timestamp" if *value == -1 => &Value::Null,
                        "timestamp" if flavour == Flavour::Spark && !is_representable() => &Value::Null,
                        _ => value,
                    };
                    let ours = digest_if_large(&ours[name], value);
                    assert_eq!(ours, *value, "{context} {name} at offset {}", theirs["offset"]);
                }
                // The remaining columns are the record's location.
                assert_eq!(ours.len(), theirs.len() + 4);
                let segment = ours["segment"].as_str().unwrap();
                assert!(dir.join(segment).is_file(), "{context} {segment}");
                let position = ours["position"].as_i64().unwrap() as u64;
                assert!(position < dir.join(segment).metadata().unwrap().len(), "{context}");
            }
            compared += ours.len();
        }
    }
    assert!(compared > 3 * 10_000, "{compared}");
}

#[test]
fn positions_are_those_of_the_batches() {
    let dir = data().join("v2_txn");
    let options =
        StreamOptions { columns: columns(&["offset", "segment", "position"]), ..StreamOptions::default() };
    let batches = json_lines(&dir.join("batches.jsonl"));
    for row in rows(&read_log(&dir, options)) {
        let offset = row["offset"].as_i64();
        let theirs = batches
            .iter()
            .find(|batch| batch["baseOffset"].as_i64() <= offset && offset <= batch["lastOffset"].as_i64())
            .unwrap();
        assert_eq!((&row["segment"], &row["position"]), (&theirs["segment"], &theirs["position"]));
    }
}

#[test]
fn threads_give_the_same_rows_in_the_same_order() {
    for name in ["v2_none", "v2_mixed_codecs", "v1_snappy_large"] {
        // Enough for several jobs of 256 KiB, most of them with many batches.
        let log = log_bytes(name);
        let data: Bytes = log.repeat((1 << 20) / log.len() + 1).into();
        for flavour in [Flavour::Millis, Flavour::Views] {
            let options =
                |threads| StreamOptions { columns: all_columns(), flavour, threads, ..Default::default() };
            let one = read_buffer(&data, options(1));
            let rows_of_one = rows(&one);
            for threads in [2, 3, 8] {
                assert!(
                    rows(&read_buffer(&data, options(threads))) == rows_of_one,
                    "{name} {threads} threads"
                );
            }
            // A stream may be dropped before its end.
            let mut stream =
                BatchStream::new(data.clone(), options(4), true, DEFAULT_MAX_DECOMPRESSED_BYTES, true);
            assert!(stream.next().unwrap().unwrap().num_rows() > 0);
        }
    }
}

#[test]
fn damage_ends_a_buffers_stream_after_the_rows_before_it() {
    let mut bytes = log_bytes("v2_none").to_vec();
    let positions: Vec<u64> = Batches::new(&bytes).map(|batch| batch.unwrap().position()).collect();
    bytes[positions[4] as usize + 100] ^= 1;
    let before: usize = Batches::new(&bytes)
        .take(4)
        .map(|batch| batch.unwrap().records(&mut Decompressor::new()).unwrap().count())
        .sum();
    for threads in [1, 3] {
        let options = StreamOptions { threads, ..StreamOptions::default() };
        let data = Bytes::from(bytes.clone());
        let mut stream = BatchStream::new(data, options, true, DEFAULT_MAX_DECOMPRESSED_BYTES, true);
        let mut found = 0;
        let error = loop {
            match stream.next().unwrap() {
                Ok(batch) => found += batch.num_rows(),
                Err(error) => break error,
            }
        };
        assert_eq!(found, before);
        assert!(error.to_string().contains("CRC mismatch"), "{error}");
        assert!(stream.next().is_none());
    }
}

#[test]
fn damage_in_a_log_is_an_error_or_is_reported() {
    let dir = scratch("columns_damage").join("damaged-0");
    fs::create_dir_all(&dir).unwrap();
    for file in files(&data().join("v2_none"), ".log") {
        fs::copy(&file, dir.join(file.file_name().unwrap())).unwrap();
    }
    let log = files(&dir, ".log").remove(0);
    let mut bytes = fs::read(&log).unwrap();
    let batches: Vec<_> = Batches::new(&bytes).map(|batch| batch.unwrap()).collect();
    let (position, first, last) =
        (batches[1].position(), batches[1].last_offset() - 1, batches[1].last_offset());
    let lost = batches[1].records(&mut Decompressor::new()).unwrap().count();
    bytes[position as usize + 70] ^= 1;
    fs::write(&log, bytes).unwrap();

    for threads in [1, 2] {
        let options = StreamOptions { columns: columns(&["offset"]), threads, ..StreamOptions::default() };
        let read = ReadOptions { mode: DamageMode::Permissive, ..ReadOptions::default() };
        let (stream, findings) = stream_of(&dir, read, options.clone());
        let offsets: Vec<_> = rows(&stream.map(Result::unwrap).collect::<Vec<_>>())
            .iter()
            .map(|row| row["offset"].clone())
            .collect();
        assert_eq!(offsets.len(), expected(&data().join("v2_none")).len() - lost);
        assert!(!offsets.contains(&json!(first)) && !offsets.contains(&json!(last)));
        let findings = findings.lock().unwrap();
        let problem = &findings.problems.listed[0];
        assert_eq!((problem.kind.as_str(), problem.start), ("crc_mismatch", Some(position)));
        assert_eq!(findings.counts, account_of(&dir));

        let (stream, _) = stream_of(&dir, ReadOptions::default(), options);
        let error = stream.map(|batch| batch.map(drop)).find_map(Result::err).unwrap();
        assert!(error.to_string().contains("CRC mismatch"), "{error}");
    }
}

/// The counts of a read of a whole log, from its account.
fn account_of(dir: &Path) -> ReadCounts {
    let account = PartitionLog::open(dir).unwrap().verify(PlanOptions::default()).unwrap();
    let mut counts = ReadCounts::default();
    counts.batches = account.good_batches;
    counts.good_bytes = account.good_bytes;
    counts.quarantined_bytes = account.quarantined_bytes;
    counts.tail_bytes = account.tail_bytes;
    counts.rows = account.rows;
    counts
}

#[test]
fn counts_of_a_read_are_those_of_the_account() {
    for name in ["v0_gzip", "v1_none", "v2_zstd", "v2_txn", "v2_torn_tail", "v2_compacted", "mixed_012"] {
        let dir = data().join(name);
        for threads in [1, 2] {
            let options = StreamOptions { threads, ..StreamOptions::default() };
            let read = ReadOptions { mode: DamageMode::Permissive, ..ReadOptions::default() };
            let (stream, findings) = stream_of(&dir, read, options);
            assert_eq!(findings.lock().unwrap().counts, ReadCounts::default());
            stream.for_each(|batch| drop(batch.unwrap()));
            assert_eq!(findings.lock().unwrap().counts, account_of(&dir), "{name}");
        }
    }
}

#[test]
fn selections_are_ranges_of_offsets_and_timestamps() {
    for name in ["v2_timestamps", "v1_logappend", "v2_logappend", "v0_gzip", "mixed_012", "v2_compacted"] {
        let dir = data().join(name);
        let all = expected(&dir);
        let offsets: Vec<i64> = all.iter().map(|row| row["offset"].as_i64().unwrap()).collect();
        let mut times: Vec<i64> = all.iter().map(|row| row["timestamp"].as_i64().unwrap()).collect();
        times.sort_unstable();
        let (offset, time) = (
            |part: usize| Some(offsets[offsets.len() * part / 4]),
            |part: usize| Some(times[times.len() * part / 4]),
        );
        let none = Selection::default();
        for selection in [
            Selection { start_offset: offset(1), ..none },
            Selection { end_offset: offset(3), ..none },
            Selection { start_offset: offset(1), end_offset: offset(2), ..none },
            Selection { start_timestamp: time(1), end_timestamp: time(3), ..none },
            Selection { start_offset: offset(1), start_timestamp: time(2), ..none },
            Selection { start_offset: offset(2), end_offset: offset(1), ..none },
        ] {
            let within = |value: i64, start: Option<i64>, end: Option<i64>| {
                start.is_none_or(|start| start <= value) && end.is_none_or(|end| value < end)
            };
            let theirs: Vec<i64> = all
                .iter()
                .map(|row| (row["offset"].as_i64().unwrap(), row["timestamp"].as_i64().unwrap()))
                .filter(|&(offset, time)| {
                    within(offset, selection.start_offset, selection.end_offset)
                        && within(time, selection.start_timestamp, selection.end_timestamp)
                })
                .map(|(offset, _)| offset)
                .collect();
            for columns in [columns(&["offset"]), columns(&["offset", "magic"])] {
                let options = StreamOptions { columns, selection, ..StreamOptions::default() };
                let ours = rows(&read_log(&dir, options));
                let ours: Vec<i64> = ours.iter().map(|row| row["offset"].as_i64().unwrap()).collect();
                assert_eq!(ours, theirs, "{name} {selection:?}");
            }
        }
    }
}

#[test]
fn the_end_of_a_selection_is_exclusive() {
    let mut builder = RecordsBuilder::v2(Compression::None);
    for offset in 0..5 {
        builder.append(offset, 100 + offset, None, None, &[]).unwrap();
    }
    let bytes = Bytes::from(builder.build().unwrap());
    let count = |selection| {
        let options = StreamOptions { columns: columns(&["offset"]), selection, ..StreamOptions::default() };
        read_buffer(&bytes, options).iter().map(RecordBatch::num_rows).sum::<usize>()
    };
    let none = Selection::default();
    assert_eq!(count(Selection { end_offset: Some(4), ..none }), 4);
    assert_eq!(count(Selection { end_offset: Some(5), ..none }), 5);
    assert_eq!(count(Selection { end_offset: Some(0), ..none }), 0);
    assert_eq!(count(Selection { start_offset: Some(4), ..none }), 1);
    assert_eq!(count(Selection { start_timestamp: Some(104), ..none }), 1);
    assert_eq!(count(Selection { end_timestamp: Some(104), ..none }), 4);
    assert_eq!(count(Selection { start_timestamp: Some(105), ..none }), 0);
}

#[test]
fn committed_logs_end_at_the_last_stable_offset() {
    let dir = data().join("v2_txn");
    let read = ReadOptions {
        isolation_level: magicbyte::state::IsolationLevel::ReadCommitted,
        ..ReadOptions::default()
    };
    let options = StreamOptions { columns: columns(&["offset"]), ..StreamOptions::default() };
    let (mut stream, findings) = stream_of(&dir, read, options);
    assert_eq!(findings.lock().unwrap().end_offset, None, "nothing is read before the first batch");
    let batches: Vec<_> = stream.by_ref().map(Result::unwrap).collect();
    let offsets: Vec<_> = rows(&batches).iter().map(|row| row["offset"].clone()).collect();
    let theirs: Vec<_> =
        json_lines(&dir.join("committed.jsonl")).iter().map(|line| line["offset"].clone()).collect();
    assert_eq!(offsets, theirs);
    assert_eq!(findings.lock().unwrap().end_offset, Some(83));
}

#[test]
fn header_columns_do_not_read_records() {
    let mut builder = RecordsBuilder::v2(Compression::Zstd);
    for offset in 0..10 {
        builder.append(offset, 1000, None, Some(b"value"), &[]).unwrap();
    }
    let mut bytes = builder.build().unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    let read = |names: &[&str]| {
        let options = StreamOptions { columns: columns(names), ..StreamOptions::default() };
        let data = Bytes::from(bytes.clone());
        let mut stream = BatchStream::new(data, options, false, DEFAULT_MAX_DECOMPRESSED_BYTES, true);
        stream.next().unwrap()
    };
    let counted = read(&["magic", "compression"]).unwrap();
    assert_eq!((counted.num_rows(), counted.num_columns()), (10, 2));
    assert_eq!(read(&[]).unwrap().num_rows(), 10);
    assert!(read(&["magic", "offset"]).is_err(), "the records are damaged");
}

#[test]
fn large_values_are_views_into_the_input() {
    let mut builder = RecordsBuilder::v2(Compression::None);
    for (offset, size) in [5000, 12, 13, 2000].into_iter().enumerate() {
        builder.append(offset as i64, 0, None, Some(&vec![offset as u8; size]), &[]).unwrap();
    }
    let bytes = Bytes::from(builder.build().unwrap());
    let options =
        |flavour| StreamOptions { columns: columns(&["value"]), flavour, ..StreamOptions::default() };
    let [batch] = &read_buffer(&bytes, options(Flavour::Views))[..] else { panic!("one batch") };
    let values = batch.column(0).as_binary_view();
    let input = bytes.as_ptr_range();
    let is_view = |row| input.contains(&values.value(row).as_ptr());
    assert_eq!((0..4).map(is_view).collect::<Vec<_>>(), [true, false, true, true], "12 bytes are inline");
    assert_eq!(rows(std::slice::from_ref(batch)), rows(&read_buffer(&bytes, options(Flavour::Millis))));
    // The values of a batch of small records are copied.
    let mut builder = RecordsBuilder::v2(Compression::None);
    for offset in 0..100 {
        builder.append(offset, 0, None, Some(&[1; 100]), &[]).unwrap();
    }
    let bytes = Bytes::from(builder.build().unwrap());
    let [batch] = &read_buffer(&bytes, options(Flavour::Views))[..] else { panic!("one batch") };
    let values = batch.column(0).as_binary_view();
    assert!(!bytes.as_ptr_range().contains(&values.value(50).as_ptr()));
    assert_eq!(values.value(99), [1; 100]);
}

#[test]
fn batch_to_arrow_includes_control_records() {
    let bytes = log_bytes("v2_txn");
    let (mut controls, mut decompressor) = (0, Decompressor::new());
    for batch in Batches::new(&bytes) {
        let batch = batch.unwrap();
        let data = bytes.slice_ref(batch.as_bytes());
        let options = StreamOptions::default();
        let columns = batch_to_arrow(&data, 0, &mut decompressor, &options, true).unwrap();
        assert_eq!(columns.num_rows(), batch.records(&mut decompressor).unwrap().count());
        controls += usize::from(batch.is_control());
        let mut damaged = data.to_vec();
        *damaged.last_mut().unwrap() ^= 1;
        let damaged = Bytes::from(damaged);
        let error = batch_to_arrow(&damaged, 70, &mut decompressor, &options, true).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::CrcMismatch { .. }));
        assert_eq!(error.position(), Some(70));
    }
    assert_eq!(controls, 16);
}

#[test]
fn timestamps_that_spark_cannot_represent_are_null() {
    let mut builder = RecordsBuilder::v2(Compression::None);
    for (offset, time) in [1, i64::MAX / 1000, i64::MAX].into_iter().enumerate() {
        builder.append(offset as i64, time, None, None, &[]).unwrap();
    }
    let bytes = Bytes::from(builder.build().unwrap());
    let names = ["timestamp", "timestampMillis"];
    for (flavour, last) in [(Flavour::Spark, Value::Null), (Flavour::Millis, json!(i64::MAX))] {
        let options = StreamOptions { columns: columns(&names), flavour, ..StreamOptions::default() };
        let found = rows(&read_buffer(&bytes, options));
        assert_eq!(
            found.iter().map(|row| row["timestamp"].clone()).collect::<Vec<_>>(),
            [json!(1), json!(i64::MAX / 1000), last]
        );
        assert_eq!(found[2]["timestampMillis"], json!(i64::MAX));
    }
}

/// Magic 0 has no timestamps, and in later magics -1 means none. Other negative timestamps are before 1970.
#[test]
fn a_missing_timestamp_is_null() {
    for (magic, times, expected) in [
        (0, vec![-1, -1], vec![Value::Null, Value::Null]),
        (1, vec![-1, 5], vec![Value::Null, json!(5)]),
        (2, vec![7, -1], vec![json!(7), Value::Null]),
    ] {
        let builders = [RecordsBuilder::v0, RecordsBuilder::v1, RecordsBuilder::v2];
        let mut builder = builders[magic](Compression::None);
        for (offset, time) in times.iter().enumerate() {
            builder.append(offset as i64, *time, None, Some(b"v"), &[]).unwrap();
        }
        let bytes = Bytes::from(builder.build().unwrap());
        for flavour in [Flavour::Spark, Flavour::Millis, Flavour::Views] {
            let names = columns(&["timestamp", "timestampMillis", "timestampType"]);
            let options = StreamOptions { columns: names, flavour, ..StreamOptions::default() };
            let found = rows(&read_buffer(&bytes, options));
            let column = |name: &str| found.iter().map(|row| row[name].clone()).collect::<Vec<_>>();
            assert_eq!(column("timestamp"), expected, "magic {magic} {flavour:?}");
            assert_eq!(column("timestampMillis"), times.iter().map(|ms| json!(ms)).collect::<Vec<_>>());
            assert_eq!(column("timestampType")[0], json!(if magic == 0 { -1 } else { 0 }));
        }
    }
}

#[test]
fn a_timestamp_before_1970_is_not_null() {
    let mut builder = RecordsBuilder::v2(Compression::None);
    builder.append(0, 5, None, None, &[]).unwrap();
    let mut batch = builder.build().unwrap();
    batch[27..35].copy_from_slice(&(-2_i64).to_be_bytes()); // the base timestamp
    for flavour in [Flavour::Spark, Flavour::Millis] {
        let options = StreamOptions { columns: columns(&["timestamp"]), flavour, ..StreamOptions::default() };
        let mut decompressor = Decompressor::new();
        let batch = batch_to_arrow(&Bytes::from(batch.clone()), 0, &mut decompressor, &options, false);
        assert_eq!(rows(&[batch.unwrap()])[0]["timestamp"], json!(-2));
    }
}

#[test]
fn schemas_have_the_documented_columns() {
    let types = |flavour| -> Vec<String> {
        let schema = records_schema(&all_columns(), flavour);
        assert!(schema.fields().iter().all(|field| field.is_nullable()));
        schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect()
    };
    let spark = types(Flavour::Spark);
    assert_eq!(spark.iter().map(|column| column.split(' ').next().unwrap()).collect::<Vec<_>>(), NAMES);
    assert_eq!(
        spark[..7],
        [
            "key Binary",
            "value Binary",
            "topic Utf8",
            "partition Int32",
            "offset Int64",
            "timestamp Timestamp(µs, \"UTC\")",
            "timestampType Int32",
        ]
    );
    assert_eq!(types(Flavour::Millis)[5], "timestamp Timestamp(ms, \"UTC\")");
    assert_eq!(types(Flavour::Views)[1], "value BinaryView");
    for flavour in [Flavour::Spark, Flavour::Millis, Flavour::Views] {
        let found = columns_of(&records_schema(&all_columns(), flavour));
        assert_eq!(found, Some((all_columns(), flavour)));
    }
    assert_eq!(columns_of(&batches_schema()), None);
    assert_eq!((batches_schema().fields().len(), problems_schema().fields().len()), (25, 12));
    let unknown = "nonsense".parse::<RecordColumn>().unwrap_err().to_string();
    assert!(
        unknown.starts_with("no column \"nonsense\" in the table records: expected one of key, value"),
        "{unknown}"
    );
    assert_eq!("batches".parse::<Table>().unwrap(), Table::Batches);
    assert!("nonsense".parse::<Table>().is_err());
    // A column may be requested twice.
    let twice = columns(&["offset", "magic", "offset"]);
    let [batch] =
        &read_log(&data().join("v2_txn"), StreamOptions { columns: twice, ..Default::default() })[..]
    else {
        panic!("one batch")
    };
    assert_eq!(batch.column(0), batch.column(2));
}
