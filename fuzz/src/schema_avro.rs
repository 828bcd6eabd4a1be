//! Avro payloads and schemas.

use magicbyte_schema::avro::{AvroDecoder, AvroEncoder};

use super::payloads::{assert_comes_back, decode_all, payloads};

/// A writer's schema and a reader's: what a schema may have, and how a later one may differ.
const PAIRS: [(&str, &str); 10] = [
    (r#"{"type": "array", "items": "null"}"#, r#"{"type": "array", "items": "null"}"#),
    (
        r#"{"type": "map", "values": ["null", "int", "string"]}"#,
        r#"{"type": "map", "values": ["null", "int", "string"]}"#,
    ),
    (r#"["int", "long", "bytes"]"#, r#"["null", "double", "string"]"#),
    (
        r#"{"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}"#,
        r#"{"type": "enum", "name": "E", "symbols": ["C", "A"]}"#,
    ),
    (
        r#"{"type": "record", "name": "N", "fields": [{"name": "v", "type": "int"}, {"name": "n", "type": ["null", "N"]}]}"#,
        r#"{"type": "record", "name": "N", "fields": [{"name": "v", "type": "int"}, {"name": "n", "type": ["null", "N"]}]}"#,
    ),
    (
        r#"{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}, {"name": "gone", "type": "string"}]}"#,
        r#"{"type": "record", "name": "R", "fields": [{"name": "b", "type": "long", "aliases": ["a"]}, {"name": "new", "type": {"type": "array", "items": "string"}, "default": ["x"]}]}"#,
    ),
    (
        r#"{"type": "array", "items": {"type": "record", "name": "R", "fields": []}}"#,
        r#"{"type": "array", "items": {"type": "record", "name": "R", "fields": [{"name": "a", "type": "string", "default": "long"}]}}"#,
    ),
    (
        r#"{"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}"#,
        r#"{"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}"#,
    ),
    (
        r#"{"type": "long", "logicalType": "timestamp-millis"}"#,
        r#"["null", {"type": "long", "logicalType": "timestamp-millis"}]"#,
    ),
    (
        r#"{"type": "bytes", "logicalType": "decimal", "precision": 90}"#,
        r#"{"type": "bytes", "logicalType": "decimal", "precision": 90}"#,
    ),
];

/// A byte that chooses the schemas, or another for a schema in the first line; then payloads, each after its size.
///
/// What becomes of a payload does not depend on those beside it, what was decoded can be encoded, to values that are equal,
/// and with one schema, text is refused for the same payloads or fewer.
pub fn schema_avro(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else { return };
    let (writer, reader, rest) = match PAIRS.get(usize::from(choice)) {
        Some((writer, reader)) => (*writer, *reader, rest),
        None => {
            let end = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
            let Ok(schema) = std::str::from_utf8(&rest[..end]) else { return };
            (schema, schema, rest.get(end + 1..).unwrap_or_default())
        }
    };
    let Ok(mut decoder) = AvroDecoder::new(reader, &[]) else { return };
    if decoder.add_writer(0, writer, &[]).is_err() {
        return;
    }
    let payloads = payloads(rest);
    let together = decode_all(&payloads, |payloads| decoder.decode(payloads));
    assert_eq!(together.values.data_type(), decoder.data_type());
    // A reader's schema whose values are text has no encoder.
    if let Ok(encoder) = AvroEncoder::new(reader, &[]) {
        decoder.add_writer(1, reader, &[]).unwrap();
        assert_comes_back(
            &together,
            1,
            |column| encoder.encode(column, b""),
            |payloads| decoder.decode(payloads),
        );
    }
    // Otherwise the reader skips what the text has.
    if writer != reader {
        return;
    }
    let mut text = AvroDecoder::text();
    text.add_writer(0, writer, &[]).unwrap();
    let texts = text.decode(&payloads).unwrap();
    for error in &texts.errors {
        assert!(together.errors.iter().any(|other| other.row == error.row), "{error:?}");
    }
}
