//! Payloads of a few bytes whose columns would take gigabytes: batches are cut, or the rows are bad ones.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use magicbyte_schema::avro::AvroDecoder;
use magicbyte_schema::json::JsonDecoder;
use magicbyte_schema::protobuf::ProtobufDecoder;
use magicbyte_schema::{Decoded, Payload, Result};

/// Bytes of a batch, with what vectors may have besides.
const BATCH: usize = 3 * (64 << 20);

fn payload(bytes: &[u8]) -> Payload<'_> {
    Payload { bytes: Some(bytes), writer: 1, message_indexes: &[0] }
}

/// Decodes all payloads, batch by batch; returns how many batches and how many errors there were.
fn decode_all(
    payloads: &[Payload<'_>],
    mut decode: impl FnMut(&[Payload<'_>]) -> Result<Decoded>,
) -> (usize, usize) {
    let (mut batches, mut errors, mut rest) = (0, 0, payloads);
    while !rest.is_empty() {
        let decoded = decode(rest).unwrap();
        let rows = decoded.values.len();
        assert!(rows > 0);
        assert!(decoded.values.get_array_memory_size() < BATCH, "{}", decoded.values.get_array_memory_size());
        assert!(decoded.errors.iter().all(|error| error.row < rows));
        (batches, errors, rest) = (batches + 1, errors + decoded.errors.len(), &rest[rows..]);
    }
    (batches, errors)
}

fn avro(writer: &str, reader: &str) -> AvroDecoder {
    let mut decoder = AvroDecoder::new(reader, &[]).unwrap();
    decoder.add_writer(1, writer, &[]).unwrap();
    decoder
}

fn record(fields: &str) -> String {
    format!(r#"{{"type": "record", "name": "R", "fields": [{fields}]}}"#)
}

fn longs(count: usize, default: &str) -> String {
    let fields: Vec<_> = (0..count).map(|n| format!(r#"{{"name": "f{n}", "type": {default}}}"#)).collect();
    fields.join(", ")
}

#[test]
fn wide_rows_are_cut() {
    let rows = [payload(b""); 3000];
    let mut decoder = avro(&record(""), &record(&longs(9000, r#""long", "default": 0"#)));
    let (batches, errors) = decode_all(&rows, |rows| decoder.decode(rows));
    assert!(batches > 3 && errors == 0, "{batches} batches, {errors} errors");
    // Of nulls.
    let mut decoder = avro(&record(""), &record(&longs(3000, r#"["null", "long"], "default": null"#)));
    let (batches, errors) = decode_all(&[payload(b""); 9000], |rows| decoder.decode(rows));
    assert!(batches > 3 && errors == 0, "{batches} batches, {errors} errors");

    let properties: Vec<_> = (0..9000).map(|n| format!(r#""f{n}": {{"type": "integer"}}"#)).collect();
    let schema = format!(r#"{{"type": "object", "properties": {{{}}}}}"#, properties.join(", "));
    let mut decoder = JsonDecoder::new(&schema, &[]).unwrap();
    let (batches, errors) = decode_all(&[payload(b"{}"); 3000], |rows| decoder.decode(rows));
    assert!(batches > 3 && errors == 0, "{batches} batches, {errors} errors");

    let fields: Vec<_> = (1..=9000).map(|n| format!("int64 f{n} = {n};")).collect();
    let schema = format!("syntax = \"proto3\"; message M {{ {} }}", fields.join(" "));
    let mut decoder = ProtobufDecoder::new(&schema, &[], &[]).unwrap();
    decoder.add_writer(1, &schema, &[]).unwrap();
    let (batches, errors) = decode_all(&rows, |rows| decoder.decode(rows));
    assert!(batches > 3 && errors == 0, "{batches} batches, {errors} errors");
    // Nulls are as wide.
    let (batches, errors) = decode_all(&[Payload::default(); 3000], |rows| decoder.decode(rows));
    assert!(batches > 3 && errors == 0, "{batches} batches, {errors} errors");
}

#[test]
fn defaults_of_any_length() {
    let text = "x".repeat(1_000_000);
    let reader = record(&format!(r#"{{"name": "a", "type": "string", "default": "{text}"}}"#));
    let mut decoder = avro(&record(""), &reader);
    let (batches, errors) = decode_all(&[payload(b""); 200], |rows| decoder.decode(rows));
    assert!(batches > 2 && errors == 0, "{batches} batches, {errors} errors");
    // Of an item without bytes.
    let list = |of: &str| format!(r#"{{"type": "array", "items": {of}}}"#);
    let mut decoder = avro(&list(&record("")), &list(&reader));
    let (_, errors) = decode_all(&[payload(b"\xa0\x06\0"); 3], |rows| decoder.decode(rows));
    assert_eq!(errors, 3);
    let items = vec!["0"; 200_000].join(", ");
    let reader = format!(r#"{{"name": "a", "type": {}, "default": [{items}]}}"#, list("\"long\""));
    let mut decoder = avro(&record(""), &record(&reader));
    assert_eq!(decode_all(&[payload(b""); 3], |rows| decoder.decode(rows)).1, 3);
}

#[test]
fn short_bytes_that_are_long_values() {
    let symbol = "A".repeat(1_000_000);
    let schema =
        format!(r#"{{"type": "array", "items": {{"type": "enum", "name": "E", "symbols": ["{symbol}"]}}}}"#);
    let mut symbols = vec![0xb8, 0x17];
    symbols.extend([0; 1501]);
    // As columns, and as text.
    let mut decoders = [avro(&schema, &schema), AvroDecoder::text()];
    decoders[1].add_writer(1, &schema, &[]).unwrap();
    for decoder in &mut decoders {
        assert_eq!(decode_all(&[payload(&symbols)], |rows| decoder.decode(rows)), (1, 1));
    }
    for scale in [50_000_000, 2_000_000_000] {
        let schema = format!(
            r#"{{"type": "bytes", "logicalType": "decimal", "precision": {scale}, "scale": {scale}}}"#
        );
        let mut decoder = avro(&schema, &schema);
        assert_eq!(decode_all(&[payload(b"\x02\x01"); 3], |rows| decoder.decode(rows)).1, 3);
    }
    // A null of a fixed has no byte, whatever the size.
    let fixed = r#"{"name": "b", "type": ["null", {"type": "fixed", "name": "F", "size": 2147483647}]}"#;
    let more = r#"{"name": "a", "type": "int", "default": 1}, "#;
    let mut decoder = avro(&record(fixed), &record(&format!("{more}{fixed}")));
    assert_eq!(decode_all(&[payload(b"\0"); 3], |rows| decoder.decode(rows)), (1, 0));
}

#[test]
fn items_of_wide_structs() {
    let fields: Vec<_> = (1..=1000).map(|n| format!("int64 f{n} = {n};")).collect();
    let schema = format!(
        "syntax = \"proto3\"; message M {{ repeated W w = 1; }} message W {{ {} }}",
        fields.join(" ")
    );
    let mut decoder = ProtobufDecoder::new(&schema, &[], &[]).unwrap();
    decoder.add_writer(1, &schema, &[]).unwrap();
    let message = b"\x0a\0".repeat(20_000);
    assert_eq!(decode_all(&[payload(&message); 3], |rows| decoder.decode(rows)).1, 3);
    // Each within its own budget, but not all of them within that of a batch.
    let message = b"\x0a\0".repeat(130);
    let (batches, errors) = decode_all(&[payload(&message); 400], |rows| decoder.decode(rows));
    assert!(batches > 3 && errors == 0, "{batches} batches, {errors} errors");
}

#[test]
fn text_of_messages_is_bounded() {
    let name = "f".repeat(100_000);
    let schema =
        format!("syntax = \"proto3\"; message M {{ repeated W w = 1; }} message W {{ int32 {name} = 1; }}");
    let mut decoder = ProtobufDecoder::text();
    decoder.add_writer(1, &schema, &[]).unwrap();
    let message = b"\x0a\x02\x08\x01".repeat(1000);
    assert_eq!(decode_all(&[payload(&message); 3], |rows| decoder.decode(rows)).1, 3);
}
