//! JSON payloads and schemas.

use magicbyte_schema::Payload;
use magicbyte_schema::json::{JsonDecoder, JsonEncoder};

use super::payloads::{assert_comes_back, assert_same_rows, between, decode_all, payloads, schema_and_rest};

/// What a schema may have.
const SCHEMAS: [&str; 5] = [
    r#"{"properties": {"a": {"type": "integer"}, "b": {"type": "number"}, "c": {"type": "boolean"}, "d": {"type": "string"}, "e": {}}}"#,
    r#"{"type": "array", "items": {"properties": {"a": {"type": "array", "items": {"type": ["null", "integer"]}}, "b": {"type": "object"}}}}"#,
    r##"{"properties": {"v": {"type": "integer"}, "n": {"$ref": "#"}, "m": {"properties": {"n": {"$ref": "#"}}}}}"##,
    r##"{"allOf": [{"$ref": "#/$defs/a"}, {"properties": {"b": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/a"}]}}}], "$defs": {"a": {"properties": {"a": {"enum": ["x", "y"]}}}}}"##,
    r#"{"type": "string"}"#,
];

/// A byte that chooses the schema, or another for a schema in the first line; then payloads, each after its size.
///
/// What becomes of a payload does not depend on those beside it, spaces change nothing, what a schema accepts is JSON,
/// and what was decoded can be encoded, to values that are equal.
pub fn schema_json(data: &[u8]) {
    let Some((schema, rest)) = schema_and_rest(data, &SCHEMAS) else { return };
    let Ok(mut decoder) = JsonDecoder::new(schema, &[]) else { return };
    let payloads = payloads(rest);
    let decoded = decode_all(&payloads, |payloads| decoder.decode(payloads));
    assert_eq!(decoded.values.data_type(), decoder.data_type());
    let encoder = JsonEncoder::new(schema, &[]).unwrap();
    assert_comes_back(&decoded, 0, |column| encoder.encode(column, b""), |payloads| decoder.decode(payloads));
    let longer = between(&payloads, b" \n", b"\t ");
    let longer: Vec<_> =
        longer.iter().map(|bytes| Payload { bytes: bytes.as_deref(), ..Payload::default() }).collect();
    assert_same_rows(&decoded, &decoder.decode(&longer).unwrap());
    let texts = JsonDecoder::text().decode(&payloads).unwrap();
    for error in &texts.errors {
        assert!(decoded.errors.iter().any(|other| other.row == error.row), "{error:?}");
    }
}
