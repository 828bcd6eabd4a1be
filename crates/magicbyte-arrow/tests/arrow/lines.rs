//! Rows of the table `records` as lines, and the rows that a filter selects. `tests/python/test_lines.py` compares them with
//! Python's own.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray};
use proptest::prelude::{ProptestConfig, any, prop_assert_eq, proptest};
use serde_json::{Value, json};

use magicbyte_arrow::{
    Flavour, LineFormat, LineOptions, LineWriter, PayloadFormat, RowFilter, StreamOptions, Template,
};
use magicbyte_testing::data;

use crate::support::arrow::{columns, read_log};

fn written(batch: &RecordBatch, options: LineOptions) -> Vec<u8> {
    let mut out = Vec::new();
    LineWriter::new(options).unwrap().write(batch, &mut out).unwrap();
    out
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .unwrap()
}

fn values(values: Vec<Option<&[u8]>>) -> RecordBatch {
    batch(vec![("value", Arc::new(BinaryArray::from(values)) as ArrayRef)])
}

#[test]
fn the_lines_of_real_logs() {
    let names = ["offset", "timestamp", "timestampType", "key", "value", "headers"];
    for name in ["v2_headers", "v2_nulls", "v2_timestamps", "mixed_012", "v0_none"] {
        // Both layouts of values, and both units of timestamps.
        let of = |flavour| StreamOptions { columns: columns(&names), flavour, ..StreamOptions::default() };
        let text = |flavour| {
            let batches = read_log(&data().join(name), of(flavour));
            batches.iter().flat_map(|batch| written(batch, LineOptions::default())).collect::<Vec<u8>>()
        };
        let lines = text(Flavour::Millis);
        assert_eq!(String::from_utf8_lossy(&lines), String::from_utf8_lossy(&text(Flavour::Views)));
        let rows: usize =
            read_log(&data().join(name), of(Flavour::Millis)).iter().map(RecordBatch::num_rows).sum();
        let parsed: Vec<Value> = String::from_utf8(lines)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(parsed.len(), rows);
        assert!(parsed.iter().all(|line| line.as_object().unwrap().len() == names.len()));
    }
}

#[test]
fn a_writer_appends_and_leaves_nothing_after_an_error() {
    let mut out = b"before".to_vec();
    let writer = LineWriter::new(LineOptions::default()).unwrap();
    writer.write(&values(vec![Some(b"x")]), &mut out).unwrap();
    assert_eq!(out, b"before{\"value\": \"x\"}\n");
    let wrong = batch(vec![("offset", Arc::new(StringArray::from(vec!["1"])) as ArrayRef)]);
    let error = writer.write(&wrong, &mut out).unwrap_err();
    assert_eq!(error.to_string(), "column \"offset\" has the type Utf8");
    assert_eq!(out, b"before{\"value\": \"x\"}\n");
}

#[test]
fn a_template_has_the_bytes_as_they_are() {
    let template: Template = r"%o:%s|%S\x00".parse().unwrap();
    let rows = batch(vec![
        ("offset", Arc::new(Int64Array::from(vec![7, i64::MIN])) as ArrayRef),
        ("value", Arc::new(BinaryArray::from(vec![Some(&b"\xff\n"[..]), None])) as ArrayRef),
    ]);
    let options = LineOptions { format: LineFormat::Template(template), ..LineOptions::default() };
    assert_eq!(written(&rows, options), b"7:\xff\n|2\0-9223372036854775808:|-1\0");
    for wrong in ["%", "%x", "a%", r"\x", r"\xg", "%\u{fc}"] {
        assert!(wrong.parse::<Template>().is_err(), "{wrong}");
    }
}

#[test]
fn a_filter_selects_rows() {
    let rows = batch(vec![
        ("key", Arc::new(BinaryArray::from(vec![Some(&b"a"[..]), Some(b""), None])) as ArrayRef),
        ("value", Arc::new(BinaryArray::from(vec![None, Some(&b"a\xff"[..]), Some(b"b")])) as ArrayRef),
    ]);
    let mask = |keys: Option<&[&[u8]]>, pattern| {
        let keys = keys.map(|keys| keys.iter().map(|key| key.to_vec()).collect());
        RowFilter::new(keys, pattern).unwrap().mask(&rows).unwrap().iter().collect::<Vec<bool>>()
    };
    assert_eq!(mask(None, None), [true, true, true]);
    assert_eq!(mask(Some(&[b"a", b""]), None), [true, true, false]);
    assert_eq!(mask(None, Some("a")), [true, true, false]);
    assert_eq!(mask(Some(&[b"a"]), Some("b")), [false, false, false]);
    assert!(RowFilter::new(None, Some("(")).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// In any position of a block of 16 bytes, and with any bytes: the line is JSON, in ASCII but for visible characters.
    #[test]
    fn any_bytes_are_a_json_string(value: Vec<u8>, text: String, cut in any::<usize>()) {
        for bytes in [value.as_slice(), text.as_bytes(), &text.as_bytes()[cut % (text.len() + 1)..]] {
            let line = String::from_utf8(written(&values(vec![Some(bytes)]), LineOptions::default())).unwrap();
            prop_assert_eq!(line.chars().filter(|character| character.is_control()).collect::<String>(), "\n");
            let parsed: Value = serde_json::from_str(&line).unwrap();
            prop_assert_eq!(parsed, json!({"value": String::from_utf8_lossy(bytes)}));
        }
    }

    #[test]
    fn json_is_embedded_or_shown(text: String, number: i64) {
        let document = json!([text, number, {"a": [null, true, text]}]);
        let pretty = serde_json::to_string_pretty(&document).unwrap();
        for (bytes, value) in [(pretty.as_str(), Some(&document)), (&pretty[1..], None)] {
            let options = LineOptions { value: PayloadFormat::Json, ..LineOptions::default() };
            let line = String::from_utf8(written(&values(vec![Some(bytes.as_bytes())]), options)).unwrap();
            prop_assert_eq!(line.lines().count(), 1);
            let parsed: Value = serde_json::from_str(&line).unwrap();
            prop_assert_eq!(&parsed["value"], value.unwrap_or(&Value::Null));
            let invalid = if value.is_some() { Value::Null } else { json!(bytes) };
            prop_assert_eq!(parsed.get("invalidValue").unwrap_or(&Value::Null), &invalid);
        }
    }
}
