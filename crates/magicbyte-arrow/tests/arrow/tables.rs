//! The tables of decoded chunks: records, batches and problems.

use std::fs;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use serde_json::{Map, Value};

use magicbyte::{Batches, Compression, RecordsBuilder};
use magicbyte_arrow::{ChunkDecoder, DecodeOptions, Flavour, MAX_PAYLOAD, Payload, Payloads, records_schema};
use magicbyte_log::{PartitionLog, PlanOptions};
use magicbyte_testing::{data, files, json_lines, partitions, scratch};

use crate::columns::all_columns;
use crate::support::arrow::{columns, rows};

/// The tables of all chunks of a partition: records, batches, problems.
fn decode(dir: &Path, options: &DecodeOptions) -> [Vec<RecordBatch>; 3] {
    let plan = PartitionLog::open(dir).unwrap().plan(PlanOptions::default()).unwrap();
    let (mut tables, mut counted) = ([const { Vec::new() }; 3], 0);
    for chunk in plan.chunks {
        let mut decoder = ChunkDecoder::open(chunk, options.clone()).unwrap();
        while let Some(batch) = decoder.next() {
            tables[0].push(batch.unwrap());
            tables[1].extend(decoder.take_batches());
            tables[2].extend(decoder.take_problems());
        }
        tables[1].extend(decoder.take_batches());
        tables[2].extend(decoder.take_problems());
        assert!(decoder.result().balanced(), "{}", dir.display());
        counted += decoder.result().rows;
    }
    if !options.columns.is_empty() {
        assert_eq!(tables[0].iter().map(|batch| batch.num_rows() as u64).sum::<u64>(), counted);
    }
    tables
}

#[test]
fn the_table_of_batches_has_kafkas_headers() {
    let mut compared = 0;
    for dir in partitions() {
        let [records, batches, _] = decode(&dir, &DecodeOptions::default());
        assert!(records.iter().all(|batch| batch.num_rows() == 0 || batch.num_columns() == 0));
        let ours = rows(&batches);
        let theirs = json_lines(&dir.join("batches.jsonl"));
        let theirs: Vec<_> = theirs.iter().filter(|batch| batch["isvalid"] == true).collect();
        let ours: Vec<_> = ours.iter().filter(|batch| batch["isValid"] == true).collect();
        assert_eq!(ours.len(), theirs.len(), "{}", dir.display());
        for (ours, theirs) in ours.iter().zip(&theirs) {
            let context = format!("{} at {}", dir.display(), theirs["position"]);
            for (name, kafkas) in [
                ("segment", "segment"),
                ("position", "position"),
                ("size", "size"),
                ("baseOffset", "baseOffset"),
                ("lastOffset", "lastOffset"),
                ("magic", "magic"),
                ("compression", "codec"),
                ("crc", "crc"),
                ("isTransactional", "txn"),
                ("isControl", "control"),
                ("maxTimestamp", "maxTimestamp"),
                ("deleteHorizonMs", "deleteHorizonMs"),
            ] {
                assert_eq!(ours[name], theirs[kafkas], "{context} {name}");
            }
            if ours["magic"] == 2 {
                for (name, kafkas) in [
                    ("count", "count"),
                    ("producerId", "pid"),
                    ("producerEpoch", "epoch"),
                    ("baseSequence", "baseSequence"),
                    ("lastSequence", "lastSequence"),
                    ("partitionLeaderEpoch", "partitionLeaderEpoch"),
                ] {
                    assert_eq!(ours[name], theirs[kafkas], "{context} {name}");
                }
            }
            compared += 1;
        }
    }
    assert!(compared > 1000, "{compared}");
}

#[test]
fn chunks_are_decoded_into_arrow_batches_of_bounded_size() {
    let dir = data().join("v2_big_batch");
    let options =
        DecodeOptions { columns: all_columns(), flavour: Flavour::Millis, ..DecodeOptions::default() };
    let everything = rows(&decode(&dir, &options)[0]);
    assert_eq!(everything.len(), 3500);
    let small = DecodeOptions { max_batch_rows: 100, ..options.clone() };
    let [records, ..] = decode(&dir, &small);
    assert!(records.iter().all(|batch| batch.num_rows() <= 100));
    assert!(rows(&records) == everything);
    let small = DecodeOptions { max_batch_bytes: 1000, ..options.clone() };
    let [records, ..] = decode(&dir, &small);
    for batch in &records {
        let row_sizes = rows(std::slice::from_ref(batch)).into_iter().map(|row| {
            row["value"].as_str().map_or(0, str::len) / 2 + row["key"].as_str().map_or(0, str::len) / 2
        });
        assert!(row_sizes.sum::<usize>() < 3 * 1000);
    }
    assert!(records.len() > 2 && rows(&records) == everything, "{}", records.len());

    let plan = PartitionLog::open(&dir).unwrap().plan(PlanOptions::default()).unwrap();
    let too_large = DecodeOptions { max_decompressed_bytes: MAX_PAYLOAD + 1, ..options };
    let error = ChunkDecoder::open(plan.chunks[0].clone(), too_large).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}

#[test]
fn damage_is_in_the_tables_of_batches_and_problems() {
    let dir = scratch("columns_tables").join("damaged-7");
    fs::create_dir_all(&dir).unwrap();
    let mut bytes = fs::read(&files(&data().join("v2_idempotent"), ".log")[0]).unwrap();
    let position = Batches::new(&bytes).nth(3).unwrap().unwrap().position();
    let last = bytes.len() - 10;
    bytes[position as usize + 65] ^= 1;
    bytes.truncate(last);
    fs::write(dir.join("00000000000000000000.log"), bytes).unwrap();
    let [records, _, problems] =
        decode(&dir, &DecodeOptions { columns: columns(&["topic", "partition"]), ..Default::default() });
    let found = rows(&problems);
    let kinds: Vec<_> =
        found.iter().map(|row| (row["kind"].as_str().unwrap(), row["start"].as_i64())).collect();
    assert_eq!(kinds[0], ("crc_mismatch", Some(position as i64)));
    assert!(found.iter().all(|row| row["topic"] == "damaged" && row["partition"] == 7));
    assert!(rows(&records).iter().all(|row| row["topic"] == "damaged" && row["partition"] == 7));
}

#[test]
fn keys_and_values_that_are_not_text_keep_their_bytes() {
    let dir = scratch("columns_text").join("t-0");
    fs::create_dir_all(&dir).unwrap();
    let values: [Option<&[u8]>; 5] = [Some(b"{\"a\": [1]}"), None, Some(b"{"), Some(b"\"\xff\""), Some(b"")];
    let mut builder = RecordsBuilder::v2(Compression::None);
    for (offset, value) in (0..).zip(values) {
        builder.append(offset, 1000, Some(b"key"), value, &[]).unwrap();
    }
    fs::write(dir.join("00000000000000000000.log"), builder.build().unwrap()).unwrap();
    let payloads = |value| Payloads { key: Payload::String, value };
    let options = |value| DecodeOptions {
        columns: columns(&["value", "offset", "key"]),
        payloads: payloads(value),
        ..DecodeOptions::default()
    };
    for (value, valid) in [(Payload::Json, [true, false, false]), (Payload::String, [true, true, true])] {
        let [records, ..] = decode(&dir, &options(value));
        let [batch] = &records[..] else { panic!("{} batches", records.len()) };
        let binary = records_schema(&columns(&["value", "offset", "key"]), Flavour::Spark);
        assert_eq!(batch.schema(), payloads(value).schema(&binary));
        let names: Vec<_> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(names, ["value", "offset", "key", "invalidValue", "invalidKey"]);
        let (text, invalid) = (batch.column(0).as_string::<i32>(), batch.column(3).as_binary::<i32>());
        // The rows after the null: cut JSON, no UTF-8, nothing.
        let is_text = [valid[0], false, valid[1], false, valid[2]];
        for (row, bytes) in values.iter().enumerate() {
            let Some(bytes) = bytes else {
                assert!(text.is_null(row) && invalid.is_null(row));
                continue;
            };
            assert_eq!(text.is_valid(row), is_text[row], "{value:?} {row}");
            assert_eq!(invalid.is_valid(row), !is_text[row], "{value:?} {row}");
            let found = if is_text[row] { text.value(row).as_bytes() } else { invalid.value(row) };
            assert_eq!(found, *bytes);
        }
        assert_eq!(batch.column(4).null_count(), 5);
        let plan = PartitionLog::open(&dir).unwrap().plan(PlanOptions::default()).unwrap();
        let mut decoder = ChunkDecoder::open(plan.chunks[0].clone(), options(value)).unwrap();
        while decoder.next().is_some() {}
        let expected = is_text.iter().filter(|is_text| !**is_text).count() as u64 - 1;
        assert_eq!((decoder.result().invalid_keys, decoder.result().invalid_values), (0, expected));
        let views = DecodeOptions { flavour: Flavour::Views, ..options(value) };
        let error = ChunkDecoder::open(plan.chunks[0].clone(), views).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    }
    assert!("text".parse::<Payload>().is_err());
}

#[test]
fn records_outside_the_times_are_counted() {
    for dir in partitions() {
        let all = DecodeOptions { columns: columns(&["offset", "timestampMillis"]), ..Default::default() };
        let everything = rows(&decode(&dir, &all)[0]);
        let mut times: Vec<_> = everything.iter().filter_map(|row| row["timestampMillis"].as_i64()).collect();
        times.sort_unstable();
        let Some(&middle) = times.get(times.len() / 2) else { continue };
        for (start, end) in [(Some(middle), None), (None, Some(middle)), (Some(middle), Some(middle + 1))] {
            let ranged = DecodeOptions { start_timestamp: start, end_timestamp: end, ..all.clone() };
            // `decode` checks that the accounts balance.
            let found = rows(&decode(&dir, &ranged)[0]);
            let in_time = |row: &&Map<String, Value>| {
                let time = row["timestampMillis"].as_i64().unwrap();
                start.is_none_or(|start| start <= time) && end.is_none_or(|end| time < end)
            };
            let expected: Vec<_> = everything.iter().filter(in_time).cloned().collect();
            assert!(found == expected, "{} {start:?} {end:?}", dir.display());
        }
    }
}
