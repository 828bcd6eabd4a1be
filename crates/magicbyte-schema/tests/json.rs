//! JSON payloads.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, StringArray, StructArray};
use arrow_schema::DataType;

use magicbyte_schema::json::{Integers, JsonDecoder, JsonEncoder};
use magicbyte_schema::{Decoded, Payload, RowError};

fn decode(schema: &str, payloads: &[&str]) -> Decoded {
    let mut decoder = JsonDecoder::new(schema, &[]).unwrap();
    let payloads: Vec<_> =
        payloads.iter().map(|text| Payload { bytes: Some(text.as_bytes()), ..Default::default() }).collect();
    decoder.decode(&payloads).unwrap()
}

fn type_of(schema: &str) -> DataType {
    JsonDecoder::new(schema, &[]).unwrap().data_type().clone()
}

fn errors(decoded: &Decoded) -> Vec<(usize, Option<usize>, &str)> {
    decoded
        .errors
        .iter()
        .map(|RowError { row, position, reason }| (*row, *position, reason.as_str()))
        .collect()
}

const ORDER: &str = r##"{
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "price": {"type": ["null", "number"]},
        "paid": {"oneOf": [{"type": "null"}, {"type": "boolean"}]},
        "lines": {"type": "array", "items": {"$ref": "#/definitions/line"}},
        "extra": {"type": "object", "additionalProperties": {"type": "string"}},
        "either": {"type": ["string", "integer"]}
    },
    "definitions": {"line": {"type": "object", "properties": {"sku": {"type": "string"}, "n": {"type": "integer"}}}}
}"##;

#[test]
fn an_object_is_a_struct() {
    let payload = r#" {"id": 5, "unknown": {"a": [1]}, "price": 1, "paid": true, "lines": [{"n": 2, "sku": "a\u00e9"}, null, {}],
        "extra": {"b": 1.50}, "either": "x", "id": 6.0} "#;
    let decoded = decode(ORDER, &[payload, "{}", "null", r#"{"paid": null, "lines": null, "either": 7}"#]);
    assert_eq!(decoded.errors, []);
    let rows = decoded.values.as_struct();
    assert_eq!(rows.column_names(), ["id", "price", "paid", "lines", "extra", "either"]);
    assert_eq!(
        rows.column(0).as_primitive::<Int64Type>().iter().collect::<Vec<_>>(),
        [Some(6), None, None, None]
    );
    assert_eq!(rows.column(1).as_primitive::<Float64Type>().value(0).to_bits(), 1.0_f64.to_bits());
    assert_eq!(rows.column(2).as_boolean().iter().collect::<Vec<_>>(), [Some(true), None, None, None]);
    let lines = rows.column(3).as_list::<i32>();
    assert_eq!((lines.is_null(1), lines.value(0).len(), lines.value(0).is_null(1)), (true, 3, true));
    assert_eq!(lines.value(0).as_struct().column(0).as_string::<i32>().value(0), "a\u{e9}");
    assert_eq!(rows.column(4).as_string::<i32>().value(0), r#"{"b": 1.50}"#);
    assert_eq!(
        rows.column(5).as_string::<i32>().iter().collect::<Vec<_>>(),
        [Some("\"x\""), None, None, Some("7")]
    );
    assert_eq!((rows.is_null(1), rows.is_null(2)), (false, true));
}

#[test]
fn numbers_are_the_nearest_to_their_text() {
    for text in ["11.791870367106105", "23.308445025757262", "22.537401331860206", "1e-320", "0.1"] {
        let decoded = decode(r#"{"type": "number"}"#, &[text]);
        let number = decoded.values.as_primitive::<Float64Type>().value(0);
        assert_eq!(number.to_bits(), text.parse::<f64>().unwrap().to_bits(), "{text}");
    }
}

#[test]
fn a_bad_row_costs_only_itself() {
    let good = r#"{"id": 1, "lines": [{"sku": "a", "n": 1}], "extra": {"k": 1}}"#;
    let alone = decode(ORDER, &[good, good]).values;
    for cut in 0..good.len() {
        let decoded = decode(ORDER, &[good, &good[..cut], good]);
        assert_eq!(decoded.errors.len(), 1, "{cut}");
        assert_eq!((decoded.errors[0].row, decoded.values.is_null(1)), (1, true));
        assert_eq!(&decoded.values.slice(0, 1), &alone.slice(0, 1));
        assert_eq!(&decoded.values.slice(2, 1), &alone.slice(1, 1));
    }
}

#[test]
fn what_is_wrong_and_where() {
    let decoded = decode(
        ORDER,
        &[
            r#"{"id": "x"}"#,
            "{\"id\": 1}\n{}",
            "[]",
            r#"{"price": NaN}"#,
            r#"{"id": 1.5}"#,
            r#"{"extra": {"a": }}"#,
        ],
    );
    assert_eq!(
        errors(&decoded),
        [
            (0, Some(7), "id: the string \"x\", expected an integer of 64 bits"),
            (1, Some(10), "more text, expected the end of the payload"),
            (2, Some(0), "an array, expected an object"),
            (3, Some(10), "price: expected value"),
            (4, Some(7), "id: the number 1.5, expected an integer of 64 bits"),
            (5, Some(16), "extra: expected value"),
        ]
    );
    let mut decoder = JsonDecoder::text();
    let decoded = decoder.decode(&[Payload { bytes: Some(b"\"\xff\""), ..Default::default() }]).unwrap();
    assert_eq!(errors(&decoded), [(0, Some(1), "text that is not UTF-8")]);
}

#[test]
fn integers_beyond_64_bits_keep_their_rows() {
    let rows = [
        r#"{"id": 9223372036854775808, "price": 2.5}"#,
        r#"{"price": 1.5, "lines": [{"n": 1}, {"sku": "a", "n": -9223372036854775809}, {"n": 1e300}], "id": 7}"#,
        r#"{"id": 18446744073709551616, "extra": {"n": 1e400, "m": 123456789012345678901234567890}}"#,
        r#"{"id": 9223372036854775808, "id": 8}"#,
        r#"{"id": 9223372036854775808, "price": "x"}"#,
        r#"{"price": 1e400, "id": 9007199254740993.0}"#,
    ];
    let decoded = decode(ORDER, &rows);
    assert_eq!(
        errors(&decoded),
        [
            (0, Some(7), "id: the number 9223372036854775808 is left out, expected an integer of 64 bits"),
            (
                1,
                Some(53),
                "lines.n: the number -9223372036854775809 is left out, expected an integer of 64 bits"
            ),
            (2, Some(7), "id: the number 18446744073709551616 is left out, expected an integer of 64 bits"),
            (3, Some(7), "id: the number 9223372036854775808 is left out, expected an integer of 64 bits"),
            (4, Some(37), "price: the string \"x\", expected a number of 64 bits"),
            (5, Some(10), "price: the number 1e400 is left out, expected a number of 64 bits"),
        ]
    );
    let rows = decoded.values.as_struct();
    let ids = rows.column(0).as_primitive::<Int64Type>();
    assert_eq!(
        ids.iter().collect::<Vec<_>>(),
        [None, Some(7), None, Some(8), None, Some(9_007_199_254_740_993)]
    );
    let prices = rows.column(1).as_primitive::<Float64Type>();
    assert_eq!(prices.iter().collect::<Vec<_>>(), [Some(2.5), Some(1.5), None, None, None, None]);
    let lines = rows.column(3).as_list::<i32>().value(1);
    assert_eq!(
        lines.as_struct().column(1).as_primitive::<Int64Type>().iter().collect::<Vec<_>>(),
        [Some(1), None, None]
    );
    assert_eq!(lines.as_struct().column(0).as_string::<i32>().value(1), "a");
    // Text has every digit.
    assert_eq!(
        rows.column(4).as_string::<i32>().value(2),
        r#"{"n": 1e400, "m": 123456789012345678901234567890}"#
    );
    assert_eq!((rows.is_valid(0), rows.is_null(4)), (true, true));
    for bounds in [r#""maximum": 18446744073709551615"#, r#""minimum": -1e19"#, r#""exclusiveMaximum": 1e20"#]
    {
        let schema = format!(r#"{{"type": "integer", {bounds}}}"#);
        let decoded = decode(&schema, &["18446744073709551615", "5", "null", "1.5"]);
        assert_eq!(errors(&decoded), [(3, Some(0), "the number 1.5, expected an integer")]);
        let texts = decoded.values.as_string::<i32>();
        assert_eq!(texts.iter().collect::<Vec<_>>(), [Some("18446744073709551615"), Some("5"), None, None]);
    }
    assert_eq!(type_of(r#"{"type": "integer", "maximum": 9223372036854775807}"#), DataType::Int64);
}

#[test]
fn names_that_come_often_take_no_time() {
    let columns: Vec<_> = (0..9000).map(|n| format!(r#""p{n}": {{"type": "integer"}}"#)).collect();
    let schema = format!(
        r#"{{"properties": {{"a": {{"type": "object", "properties": {{{}}}}}}}}}"#,
        columns.join(",")
    );
    let repeated = |count| format!("{{{}}}", vec![r#""a":{}"#; count].join(","));
    let start = Instant::now();
    let decoded = decode(&schema, &[&repeated(3), &repeated(200_000)]);
    assert_eq!(decoded.errors.len(), 1);
    assert!(decoded.errors[0].reason.contains("its columns would take more than "), "{:?}", decoded.errors);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn integers_as_decimals_or_text() {
    const SCHEMA: &str =
        r#"{"properties": {"id": {"type": "integer"}, "big": {"type": "integer", "maximum": 1e30}}}"#;
    let rows = [
        r#"{"id": 18446744073709551616, "big": 5}"#,
        r#"{"id": -1.50e1, "big": 99999999999999999999999999999999999999}"#,
        r#"{"id": 1e38, "big": 7}"#,
        r#"{"id": 1.5}"#,
        r#"{"id": "5"}"#,
    ];
    let payloads: Vec<_> =
        rows.iter().map(|row| Payload { bytes: Some(row.as_bytes()), ..Default::default() }).collect();

    let mut decoder = JsonDecoder::with_integers(SCHEMA, &[], Integers::Decimal).unwrap();
    let decoded = decoder.decode(&payloads).unwrap();
    let fraction = "id: the number 1.5, expected an integer of 38 digits";
    let expected = [
        (2, Some(7), "id: the number 1e38 is left out, expected an integer of 38 digits"),
        (3, Some(7), fraction),
        (4, Some(7), "id: the string \"5\", expected an integer of 38 digits"),
    ];
    assert_eq!(errors(&decoded), expected);
    for column in decoded.values.as_struct().columns() {
        assert_eq!(column.data_type(), &DataType::Decimal128(38, 0));
    }
    let ids = decoded.values.as_struct().column(0).as_primitive::<Decimal128Type>();
    assert_eq!(ids.iter().collect::<Vec<_>>(), [Some(1 << 64), Some(-15), None, None, None]);
    let encoder = JsonEncoder::new(SCHEMA, &[]).unwrap();
    let written = encoder.encode(&decoded.values, b"").unwrap();
    assert_eq!(written.value(1), br#"{"id":-15,"big":99999999999999999999999999999999999999}"#);

    let mut decoder = JsonDecoder::with_integers(SCHEMA, &[], Integers::Text).unwrap();
    let decoded = decoder.decode(&payloads).unwrap();
    assert_eq!(decoded.errors.len(), 2);
    let ids = decoded.values.as_struct().column(0).as_string::<i32>();
    let texts = [Some("18446744073709551616"), Some("-1.50e1"), Some("1e38"), None, None];
    assert_eq!(ids.iter().collect::<Vec<_>>(), texts);
    assert_eq!(encoder.encode(&decoded.values, b"").unwrap().value(2), br#"{"id":1e38,"big":7}"#);
    for text in ["x", "1.5", "01", "", "5 "] {
        let ids: ArrayRef = Arc::new(StringArray::from(vec![text]));
        let column: ArrayRef = Arc::new(StructArray::try_from(vec![("id", ids)]).unwrap());
        let refused = encoder.encode(&column, b"").err().unwrap().to_string();
        assert_eq!(refused, "row 0: id: a string: expected the text of an integer", "{text:?}");
    }
}

#[test]
fn halves_of_surrogate_pairs() {
    let rows = [
        r#"{"unknown": "\ud800"}"#,
        r#"{"extra": {"a": [{"\ud83dx": 1}]}}"#,
        r#"{"either": "\udc00\ud800"}"#,
        r#"{"either": "\ud83d\ude00", "extra": {"\\ud800": "\\"}}"#,
    ];
    let decoded = decode(ORDER, &rows);
    let reason = "half of a surrogate pair, expected the other half beside it";
    assert_eq!(errors(&decoded), [(0, Some(13), reason), (1, Some(19), reason), (2, Some(12), reason)]);
    let validated = JsonDecoder::text().validate(Some(("{}", &[])), false).unwrap();
    for mut decoder in [JsonDecoder::text(), validated] {
        let decoded =
            decoder.decode(&[Payload { bytes: Some(br#"["\ud800"]"#), ..Default::default() }]).unwrap();
        assert_eq!(errors(&decoded), [(0, Some(2), reason)]);
    }
}

#[test]
fn nested_and_repeated_bombs() {
    let deep = "[".repeat(1_000_000);
    let decoded = decode(ORDER, &[&format!(r#"{{"lines": {deep}"#), &format!(r#"{{"extra": {deep}"#)]);
    assert_eq!(decoded.errors.len(), 2);
    let columns: Vec<String> = (0..1000).map(|n| format!(r#""c{n}": {{"type": "string"}}"#)).collect();
    let items = format!(r#"{{"type": "object", "properties": {{{}}}}}"#, columns.join(","));
    let schema = format!(r#"{{"type": "array", "items": {items}}}"#);
    let decoded = decode(&schema, &[&format!("[{}{{}}]", "{},".repeat(100_000))]);
    assert!(decoded.errors[0].reason.starts_with("its columns would take more than "));
}

#[test]
fn types_of_schemas() {
    let text = DataType::Utf8;
    assert_eq!(type_of(r#"{"type": "string", "format": "date-time"}"#), text);
    assert_eq!(type_of(r#"{"enum": ["a", "b", null]}"#), text);
    assert_eq!(type_of(r#"{"type": ["integer", "null", "number"]}"#), DataType::Float64);
    assert_eq!(type_of("true"), text);
    // A list of what contains itself is text.
    let node = r##"{"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#"}}}"##;
    let DataType::Struct(fields) = type_of(node) else { panic!() };
    assert_eq!(fields[0].data_type(), &DataType::Int64);
    let parts = r##"{"allOf": [{"$ref": "#/$defs/a"}, {"properties": {"b": {"type": "integer"}}}],
        "$defs": {"a": {"type": "object", "properties": {"a": {"type": "boolean"}}}}}"##;
    let DataType::Struct(fields) = type_of(parts) else { panic!() };
    assert_eq!(fields.iter().map(|field| field.name().as_str()).collect::<Vec<_>>(), ["a", "b"]);
    // Definitions that lead to each other a thousand times, and that double.
    let chain: Vec<String> = (0..1000)
        .map(|n| format!(r##""d{n}": {{"type": "array", "items": {{"$ref": "#/$defs/d{}"}}}}"##, n + 1))
        .collect();
    type_of(&format!(r##"{{"$ref": "#/$defs/d0", "$defs": {{{}, "d1000": {{}}}}}}"##, chain.join(",")));
    let doubling: Vec<String> = (0..30)
        .map(|n| format!(r##""d{n}": {{"properties": {{"a": {{"$ref": "#/$defs/d{0}"}}, "b": {{"$ref": "#/$defs/d{0}"}}}}}}"##, n + 1))
        .collect();
    let doubling = format!(r##"{{"$ref": "#/$defs/d0", "$defs": {{{}, "d30": {{}}}}}}"##, doubling.join(","));
    assert_eq!(
        JsonDecoder::new(&doubling, &[]).err().unwrap().to_string(),
        "the schema has more than 10000 columns"
    );
}

#[test]
fn references_to_other_schemas() {
    let schema = r#"{"type": "object", "properties": {"c": {"$ref": "customer.json#/$defs/c"}}}"#;
    let customer = (
        "customer.json",
        r##"{"$defs": {"c": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}}, "n": {"type": "integer"}}}"##,
    );
    let decoder = JsonDecoder::new(schema, &[customer]).unwrap();
    let DataType::Struct(fields) = decoder.data_type() else { panic!() };
    let DataType::Struct(fields) = fields[0].data_type() else { panic!() };
    assert_eq!(fields[0].data_type(), &DataType::Int64);
    let missing = JsonDecoder::new(schema, &[]).err().unwrap().to_string();
    assert_eq!(missing, "the schema has no \"customer.json#/$defs/c\"");
    assert!(JsonDecoder::new("{", &[]).err().unwrap().to_string().starts_with("the schema is not JSON: EOF"));
}

#[test]
fn each_payload_is_validated_by_its_writers_schema() {
    let reader = r#"{"properties": {"id": {"type": "integer"}}, "required": ["id"]}"#;
    let decoder = JsonDecoder::new(reader, &[]).unwrap().validate(Some((reader, &[])), false);
    let mut decoder = decoder.unwrap();
    let referring = r#"{"$ref": "positive.json"}"#;
    let positive = r#"{"properties": {"id": {"exclusiveMinimum": 0}}}"#;
    decoder.add_writer(4, referring, &[("positive.json", positive)]).unwrap();
    assert!(decoder.add_writer(5, referring, &[]).is_err());

    let payload = |writer: u32, text: &'static str| Payload {
        bytes: Some(text.as_bytes()),
        writer,
        ..Default::default()
    };
    let none = Payload::NO_WRITER;
    let decoded = decoder
        .decode(&[
            payload(4, r#"{"id": 1}"#),
            payload(4, r#"{"id": 0}"#),
            payload(none, r#"{"id": 0}"#),
            payload(none, "{}"),
            payload(9, "{}"),
            Payload::default(),
            payload(4, r#"{"id": }"#),
        ])
        .unwrap();
    let ids = decoded.values.as_struct().column(0).as_primitive::<Int64Type>();
    assert_eq!(ids.iter().collect::<Vec<_>>(), [Some(1), None, Some(0), None, None, None, None]);
    assert_eq!(
        errors(&decoded),
        [
            (
                1,
                None,
                "/id: 0 is less than or equal to the minimum of 0 (rule /properties/id/exclusiveMinimum)"
            ),
            (3, None, "\"id\" is a required property (rule /required)"),
            (4, None, "it names no schema to validate it by"),
            (6, Some(7), "expected value"),
        ]
    );
}

#[test]
fn a_thread_with_little_stack_validates_by_any_schema() {
    use std::fmt::Write;

    // Each of 2000 schemas is part of the one before, at every level of the payload.
    let mut schema = r##"{"$ref": "#/$defs/0", "$defs": {"##.to_owned();
    for number in 0..2000 {
        write!(schema, r##""{number}": {{"allOf": [{{"$ref": "#/$defs/{}"}}]}},"##, number + 1).unwrap();
    }
    schema += r##""2000": {"properties": {"a": {"$ref": "#/$defs/0"}}}}}"##;
    let payload = format!("{}1{}", r#"{"a":"#.repeat(120), "}".repeat(120));
    let validated = move || {
        let mut decoder = JsonDecoder::text().validate(None, false).unwrap();
        decoder.add_writer(0, &schema, &[]).unwrap();
        let payload = Payload { bytes: Some(payload.as_bytes()), ..Default::default() };
        decoder.decode(&[payload]).unwrap().errors
    };
    let errors = std::thread::Builder::new().stack_size(2 << 20).spawn(validated).unwrap().join().unwrap();
    assert!(errors[0].reason.contains("nests too deep"), "{errors:?}");
}
