//! Avro payloads of several writers, through the public API.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int32Type, Int64Type};
use arrow_array::{Array, StringArray};
use arrow_schema::DataType;

use magicbyte_schema::Payload;
use magicbyte_schema::avro::{AvroDecoder, AvroEncoder};

fn payload(writer: u32, bytes: &[u8]) -> Payload<'_> {
    Payload { bytes: Some(bytes), writer, ..Payload::default() }
}

/// A payload by the writer's schema and as the reader's, as JSON text: the reader's type is in a list, which contains
/// itself, so that the text is of the reader's schema.
fn read(writer: &str, reader: &str, bytes: &[u8]) -> Result<String, String> {
    let wrapped = |of: &str| {
        format!(
            r#"{{"type": "record", "name": "Wrapper", "fields": [{{"name": "v", "type": {of}}},
               {{"name": "again", "type": ["null", "Wrapper"]}}]}}"#
        )
    };
    let mut decoder = AvroDecoder::new(&wrapped(reader), &[]).unwrap();
    decoder.add_writer(1, &wrapped(writer), &[]).map_err(|error| error.to_string())?;
    let bytes = [bytes, b"\0"].concat();
    let decoded = decoder.decode(&[payload(1, &bytes)]).unwrap();
    if let Some(error) = decoded.errors.first() {
        return Err(error.reason.clone());
    }
    let text = decoded.values.as_string::<i32>().value(0).to_owned();
    let text = text.strip_prefix(r#"{"v":"#).and_then(|text| text.strip_suffix(r#","again":null}"#));
    // The columns say the same, or the types would not be those of the reader.
    let mut columns = AvroDecoder::new(reader, &[]).unwrap();
    columns.add_writer(1, writer, &[]).unwrap();
    let decoded = columns.decode(&[payload(1, &bytes[..bytes.len() - 1])]).unwrap();
    assert_eq!(decoded.errors, [], "{writer} as {reader}");
    assert_eq!(decoded.values.data_type(), columns.data_type());
    Ok(text.unwrap().to_owned())
}

const RECORD: &str = r#"{"type": "record", "name": "A", "fields": [{"name": "x", "type": "int"}]}"#;

/// The record `A` with an int `x` and another field.
fn with(field: &str) -> String {
    RECORD.replace("}]}", &format!("}}, {field}]}}"))
}

#[test]
fn names_aliases_and_structure() {
    let spaced = RECORD.replace(r#""name": "A""#, r#""name": "A", "namespace": "n""#);
    assert_eq!(read(RECORD, &spaced, b"\x02").unwrap(), r#"{"x":1}"#);
    assert_eq!(read(&spaced, RECORD, b"\x02").unwrap(), r#"{"x":1}"#);
    let other = RECORD.replace(r#""A""#, r#""B""#);
    assert_eq!(read(RECORD, &other, b"\x02").unwrap(), r#"{"x":1}"#);
    let renamed = RECORD.replace(r#""name": "x""#, r#""name": "y", "aliases": ["x"]"#);
    assert_eq!(read(RECORD, &renamed, b"\x02").unwrap(), r#"{"y":1}"#);
    // In Java, an alias of a field counts in a record of the reader's full name, or of an alias of that; elsewhere Java takes
    // the default, and fails without one.
    let moved = renamed.replace(r#""name": "A""#, r#""name": "A", "namespace": "n""#);
    assert_eq!(read(RECORD, &moved, b"\x02").unwrap(), r#"{"y":1}"#);
    let with_default = moved.replace(r#""aliases""#, r#""default": 5, "aliases""#);
    assert_eq!(read(RECORD, &with_default, b"\x02").unwrap(), r#"{"y":5}"#);
    let moved = moved.replace(r#""namespace": "n""#, r#""namespace": "n", "aliases": [".A"]"#);
    assert_eq!(read(RECORD, &moved, b"\x02").unwrap(), r#"{"y":1}"#);

    let e = r#"{"type": "enum", "name": "E", "symbols": ["X", "Y"]}"#;
    let spaced = r#"{"type": "enum", "name": "E", "namespace": "n", "symbols": ["X"], "default": "X"}"#;
    assert_eq!(read(e, spaced, b"\0").unwrap(), r#""X""#);
    assert_eq!(read(e, spaced, b"\x02").unwrap(), r#""X""#);
    let without = spaced.replace(r#", "default": "X""#, "");
    assert!(read(e, &without, b"\x02").unwrap_err().contains(r#"no symbol "Y""#));
    assert!(read(e, &e.replace(r#""E""#, r#""F""#), b"\0").is_err());
}

#[test]
fn an_alias_that_is_the_name_of_another_type() {
    // Java's reader fails there, and Java's `SchemaCompatibility` finds no fault.
    for (inner, bytes, expected) in [
        (r#"{"type": "enum", "name": "S", "symbols": ["X"]}"#, b"\0", r#""X""#),
        (r#"{"type": "fixed", "name": "S", "size": 1}"#, b"a", r#""a""#),
    ] {
        let record = |own: &str, of: &str, more: &str| {
            format!(
                r#"{{"type": "record", "name": "R", {own} "fields": [{{"name": "b", "type": {of}}} {more}]}}"#
            )
        };
        let (aliases, added) = (r#""aliases": ["S"],"#, r#", {"name": "c", "type": "int", "default": 5}"#);
        let old = record("", inner, "");
        let expected = format!(r#"{{"b":{expected},"c":5}}"#);
        assert_eq!(read(&old, &record(aliases, inner, added), bytes).unwrap(), expected);
        // In a union, and in a union of each side.
        let union = format!(r#"["null", {inner}]"#);
        assert_eq!(read(&old, &record(aliases, &union, added), bytes).unwrap(), expected);
        let (old, bytes) = (record("", &union, ""), [b"\x02", bytes.as_slice()].concat());
        assert_eq!(read(&old, &record(aliases, &union, added), &bytes).unwrap(), expected);
        assert!(read(&old, &record(aliases, &inner.replace(r#""S""#, r#""T""#), added), &bytes).is_err());
    }
}

#[test]
fn a_union_of_nothing() {
    let array = |of: &str| format!(r#"{{"type": "array", "items": {of}}}"#);
    for (writer, reader) in [("[]", "[]"), ("[]", r#""int""#), (r#""int""#, "[]"), ("[]", r#"["null"]"#)] {
        assert_eq!(read(&array(writer), &array(reader), b"\0").unwrap(), "[]", "{writer} as {reader}");
        assert!(read(&array(writer), &array(reader), b"\x02\0\0").is_err(), "{writer} as {reader}");
    }
    // No default is a value of it.
    let with_default = with(r#"{"name": "y", "type": [], "default": null}"#);
    assert!(read(RECORD, &with_default, b"\x02").is_err());
    assert!(read("[]", "[]", b"\0").unwrap_err().contains("the branch of a union is 0: there are 0"));
    let types = array("[]");
    let encoder = AvroEncoder::new(&types, &[]).unwrap();
    let mut decoder = AvroDecoder::new(&types, &[]).unwrap();
    decoder.add_writer(1, &types, &[]).unwrap();
    let empty = decoder.decode(&[payload(1, b"\0")]).unwrap().values;
    assert_eq!(encoder.encode(&empty, b"").unwrap().value(0), b"\0");
}

#[test]
fn unions() {
    assert_eq!(read(r#""null""#, r#"["null", "string"]"#, b"").unwrap(), "null");
    assert_eq!(read(r#""int""#, r#"["null", "string", "double"]"#, b"\x02").unwrap(), "1.0");
    assert_eq!(read(r#"["null", "int"]"#, r#""long""#, b"\x02\x02").unwrap(), "1");
    assert!(read(r#"["null", "int"]"#, r#""long""#, b"\0").unwrap_err().contains("the writer's null"));
    // A record by its structure, rather the one with its name.
    let others = |names: [&str; 2]| {
        let records = names.map(|name| RECORD.replace(r#""A""#, &format!(r#""{name}""#)));
        format!(r#"["null", {}, {}]"#, records[0], records[1])
    };
    let mut decoder = AvroDecoder::new(&others(["p.B", "q.A"]), &[]).unwrap();
    decoder.add_writer(1, RECORD, &[]).unwrap();
    let decoded = decoder.decode(&[payload(1, b"\x02"), Payload::default()]).unwrap();
    let members = decoded.values.as_struct();
    assert_eq!((members.column(0).is_null(0), members.column(1).is_valid(0)), (true, true));
    assert!(members.is_null(1));
    // A union of an empty array of what cannot be read.
    let array = |of: &str| format!(r#"{{"type": "array", "items": {of}}}"#);
    assert_eq!(read(&array(r#""string""#), &array(r#""int""#), b"\0").unwrap(), "[]");
}

#[test]
fn defaults() {
    let nested = r#"{"type": "record", "name": "N", "fields": [{"name": "x", "type": "int"},
        {"name": "y", "type": "int", "default": 3}]}"#;
    let optional = format!(r#"["null", {nested}]"#);
    let nested_array = format!(r#"{{"type": "array", "items": {nested}}}"#);
    let ints = r#"{"type": "array", "items": "int"}"#;
    let cases = [
        (r#"["null", "string"]"#, "null", "null"),
        (r#"["string", "null"]"#, "null", "null"),
        (r#"["string", "int", "null"]"#, "null", "null"),
        (r#"["null", "int"]"#, "5", "5"),
        (r#"["int", {"type": "enum", "name": "E", "symbols": ["X"]}, "null"]"#, "null", "null"),
        (r#"["null", "string"]"#, r#""x""#, r#""x""#),
        (&optional, r#"{"x": 1, "y": 2}"#, r#"{"x":1,"y":2}"#),
        (&format!(r#"["null", {ints}]"#), "[]", "[]"),
        // To Java's reader, a null is an array or a map without items, unless null is the first type.
        (ints, "null", "[]"),
        (&format!(r#"[{ints}, "null"]"#), "null", "[]"),
        (r#"[{"type": "map", "values": "int"}, "null"]"#, "null", "{}"),
        (nested, r#"{"x": 1}"#, r#"{"x":1,"y":3}"#),
        (&nested_array, r#"[{"x": 1}]"#, r#"[{"x":1,"y":3}]"#),
        (r#""int""#, "0.0", "0"),
        (r#""int""#, "4294967297", "1"),
        (r#""int""#, "5e9", "2147483647"),
        (r#""long""#, "1e3", "1000"),
        (r#""double""#, "0", "0.0"),
        (r#"{"type": "map", "values": "int"}"#, "{}", "{}"),
        (r#"{"type": "map", "values": "int"}"#, r#"{"a": 1}"#, r#"{"a":1}"#),
        (r#""bytes""#, r#""\u00ff""#, r#""ÿ""#),
        (r#"{"type": "fixed", "name": "F", "size": 2}"#, r#""a""#, r#""a\u0000""#),
        (
            r#"{"type": "record", "name": "B", "fields": [{"name": "y", "type": "null"}]}"#,
            r#"{"y": null}"#,
            r#"{"y":null}"#,
        ),
    ];
    for (of, default, expected) in cases {
        let reader = with(&format!(r#"{{"name": "g", "type": {of}, "default": {default}}}"#));
        let found = read(RECORD, &reader, b"\x02").unwrap();
        assert_eq!(found, format!(r#"{{"x":1,"g":{expected}}}"#), "{of}");
    }
    for (of, default) in
        [(r#""int""#, r#""x""#), (r#""string""#, "1"), (r#"["null", "int"]"#, "true"), (nested, "{}")]
    {
        let reader = with(&format!(r#"{{"name": "g", "type": {of}, "default": {default}}}"#));
        let error = read(RECORD, &reader, b"\x02").unwrap_err();
        assert!(error.contains("g: its default cannot be read"), "{error}");
    }
    let error = read(RECORD, &with(r#"{"name": "g", "type": "int"}"#), b"\x02").unwrap_err();
    assert!(error.contains("g: the writer's record does not have it, and it has no default"), "{error}");
    // A record whose default has the record in it has no end.
    let endless = r#"{"type": "record", "name": "D", "fields": [{"name": "d", "type": "D", "default": {}}]}"#;
    assert!(
        read(RECORD, &with(&format!(r#"{{"name": "g", "type": {endless}, "default": {{}}}}"#)), b"\x02")
            .is_err()
    );
}

#[test]
fn of_several_entries_with_a_key_the_last_one_counts() {
    let map = r#"{"type": "map", "values": "int"}"#;
    assert_eq!(read(map, map, b"\x06\x02a\x02\x02b\x04\x02a\x06\0").unwrap(), r#"{"b":2,"a":3}"#);
    let mut decoder = AvroDecoder::new(map, &[]).unwrap();
    decoder.add_writer(1, map, &[]).unwrap();
    // Few and many entries, in one block and in several.
    let many: Vec<u8> = (0..40_u8).flat_map(|n| [2, 2, b'a' + n % 20, 2 * n]).chain([0]).collect();
    let rows = [payload(1, b"\x06\x02a\x02\x02b\x04\x02a\x06\0"), payload(1, &many), payload(1, b"\0")];
    let decoded = decoder.decode(&rows).unwrap();
    assert_eq!(decoded.errors, []);
    let maps = decoded.values.as_map();
    let sizes: Vec<_> = (0..3).map(|row| maps.value_length(row)).collect();
    assert_eq!(sizes, [2, 20, 0]);
    let last = maps.value(1);
    assert_eq!(last.column(1).as_primitive::<arrow_array::types::Int32Type>().value(19), 39);
}

#[test]
fn decimals_of_any_length() {
    let schema = r#"{"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}"#;
    let mut decoder = AvroDecoder::new(schema, &[]).unwrap();
    decoder.add_writer(1, schema, &[]).unwrap();
    let long = [&[40][..], &[0xff; 20]].concat();
    let rows = [
        payload(1, b"\x02\x01"),
        payload(1, b"\x04\xff\xfe"),
        payload(1, &long),
        payload(1, b"\x04\x7f\xff"),
        payload(1, b"\0"),
    ];
    let decoded = decoder.decode(&rows).unwrap();
    let values = decoded.values.as_primitive::<Decimal128Type>();
    assert_eq!(values.iter().collect::<Vec<_>>(), [Some(1), Some(-2), Some(-1), None, None]);
    assert_eq!(decoded.errors.iter().map(|error| error.row).collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn decimals_that_no_number_holds_are_digits() {
    let schema = r#"{"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 3}"#;
    let mut decoder = AvroDecoder::new(schema, &[]).unwrap();
    decoder.add_writer(1, schema, &[]).unwrap();
    let long = [&[40][..], &[0x7f; 20]].concat();
    let decoded =
        decoder.decode(&[payload(1, b"\x04\xff\xfe"), payload(1, &long), payload(1, b"\0")]).unwrap();
    let texts = decoded.values.as_string::<i32>();
    let expected = [Some("-0.002"), Some("727885129180488904360266563744972327436484050.815"), None];
    assert_eq!(texts.iter().collect::<Vec<_>>(), expected);
    let encoded = AvroEncoder::new(schema, &[]).unwrap().encode(&decoded.values, b"").unwrap();
    assert_eq!(encoded.iter().collect::<Vec<_>>(), [Some(&b"\x02\xfe"[..]), Some(&long), None]);
}

#[test]
fn a_record_without_fields_has_a_column() {
    let empty = r#"{"type": "record", "name": "E", "fields": []}"#;
    let mut decoder = AvroDecoder::new(empty, &[]).unwrap();
    decoder.add_writer(1, empty, &[]).unwrap();
    decoder.add_writer(2, RECORD, &[]).unwrap();
    let decoded = decoder.decode(&[payload(1, b""), Payload::default(), payload(2, b"\x02")]).unwrap();
    let values = decoded.values.as_struct();
    assert_eq!(values.columns().len(), 1);
    assert_eq!([values.is_valid(0), values.is_valid(1), values.is_valid(2)], [true, false, true]);
}

#[test]
fn comments() {
    for text in ["/* owner: \"team\" */ ", "// a line\n"] {
        let mut decoder = AvroDecoder::new(&format!("{text}{RECORD}{text}"), &[]).unwrap();
        decoder.add_writer(1, &RECORD.replace('[', "[ /* x */"), &[]).unwrap();
    }
    let quoted = r#"{"type": "record", "name": "A", "doc": "http://a \" /*", "fields": []}"#;
    assert!(AvroDecoder::new(quoted, &[]).is_ok());
    assert!(AvroDecoder::new(r#""int" /* no end"#, &[]).is_ok());
}

#[test]
fn what_is_skipped_costs_nothing() {
    // A billion nulls, in a field that the reader does not have; blocks with and without a size.
    let nulls = r#"{"name": "n", "type": {"type": "array", "items": "null"}}"#;
    assert_eq!(read(&with(nulls), RECORD, b"\x02\x80\xa8\xd6\xb9\x07\0").unwrap(), r#"{"x":1}"#);
    assert_eq!(read(&with(nulls), RECORD, b"\x02\x01\x04??\0").unwrap(), r#"{"x":1}"#);
    assert!(read(&with(nulls), RECORD, b"\x02\x01\x06??\0").is_err());
    // Read, they cost the payload's budget.
    let list = r#"{"type": "array", "items": "null"}"#;
    let mut decoder = AvroDecoder::new(list, &[]).unwrap();
    decoder.add_writer(1, list, &[]).unwrap();
    let decoded =
        decoder.decode(&[payload(1, b"\x80\xa8\xd6\xb9\x07\0"), payload(1, b"\xa0\x1f\0")]).unwrap();
    assert_eq!(decoded.errors.iter().map(|error| error.row).collect::<Vec<_>>(), [0]);
    assert_eq!(decoded.values.as_list::<i32>().value(1).len(), 2000);
}

/// A record `R` with these fields.
fn record(fields: &[String]) -> String {
    format!(r#"{{"type": "record", "name": "R", "fields": [{}]}}"#, fields.join(","))
}

fn field(name: usize, of: &str) -> String {
    format!(r#"{{"name": "f{name}", "type": {of}}}"#)
}

#[test]
fn short_schemas_and_payloads_take_little_time_and_memory() {
    let start = Instant::now();
    // Defaults that are padded.
    let fixed = r#"{"type": "fixed", "name": "F", "size": 200000}"#;
    let padded = (0..5000).map(|n| {
        let of = if n == 0 { fixed } else { r#""F""# };
        format!(r#"{{"name": "f{n}", "type": {of}, "default": ""}}"#)
    });
    let padded: Vec<_> = padded.collect();
    let mut decoder = AvroDecoder::new(&record(&padded), &[]).unwrap();
    let error = decoder.add_writer(1, &record(&[field(9999, r#""int""#)]), &[]).unwrap_err().to_string();
    assert!(error.contains("the defaults are larger than 262144 bytes"), "{error}");

    // Fields without bytes, in items that are skipped or lose them.
    let nulls: Vec<_> = (0..9000).map(|n| field(n, r#""null""#)).collect();
    let list = |fields: &[String]| format!(r#"{{"type": "array", "items": {}}}"#, record(fields));
    let mut decoder = AvroDecoder::new(&list(&[]), &[]).unwrap();
    decoder.add_writer(1, &list(&nulls), &[]).unwrap();
    let decoded = decoder.decode(&[payload(1, b"\xc0\xb8\x02\0")]).unwrap();
    assert_eq!((decoded.errors.len(), decoded.values.as_list::<i32>().value(0).len()), (0, 20_000));
    let skipped = record(&[field(0, &list(&nulls).replace(r#""R""#, r#""Z""#))]);
    let mut decoder = AvroDecoder::new(&record(&[]), &[]).unwrap();
    decoder.add_writer(1, &skipped, &[]).unwrap();
    let blocks = [vec![2; 100_000], vec![0]].concat();
    assert_eq!(decoder.decode(&[payload(1, &blocks)]).unwrap().errors, []);

    // An enum that many fields have.
    let symbols =
        |letter: char| (0..20_000).map(|n| format!(r#""{letter}{n}""#)).collect::<Vec<_>>().join(",");
    let with_enum = |letter: char| {
        let first = format!(r#"{{"type": "enum", "name": "E", "symbols": [{}]}}"#, symbols(letter));
        let fields = (0..3000).map(|n| field(n, if n == 0 { &first } else { r#""E""# }));
        record(&fields.collect::<Vec<_>>())
    };
    let mut decoder = AvroDecoder::new(&with_enum('A'), &[]).unwrap();
    decoder.add_writer(1, &with_enum('B'), &[]).unwrap();
    // A union of a record that the schema has once.
    let union = |of: &str| {
        let first = format!(r#"["null", {}]"#, record(&[field(0, of)]).replace(r#""R""#, r#""U""#));
        let fields = (0..2400).map(|n| field(n, if n == 0 { &first } else { r#"["null", "U"]"# }));
        record(&fields.collect::<Vec<_>>())
    };
    let mut decoder = AvroDecoder::new(&union(r#""long""#), &[]).unwrap();
    decoder.add_writer(1, &union(r#""int""#), &[]).unwrap();

    // Aliases of a record and of its field.
    let names = (0..20_000).map(|n| format!(r#""a{n}""#)).collect::<Vec<_>>().join(",");
    let aliased = format!(
        r#"{{"type": "record", "name": "R", "aliases": [{names}],
            "fields": [{{"name": "x", "type": "int", "aliases": [{names}]}}]}}"#
    );
    let mut decoder = AvroDecoder::new(&aliased, &[]).unwrap();
    decoder.add_writer(1, &RECORD.replace(r#""A""#, r#""a7""#).replace(r#""x""#, r#""a9""#), &[]).unwrap();
    assert_eq!(decoder.decode(&[payload(1, b"\x02")]).unwrap().errors, []);

    // A long name in messages.
    let long = format!(r#"{{"type": "fixed", "name": "{}", "size": 2}}"#, "n".repeat(1 << 20));
    let mut decoder = AvroDecoder::new(&record(&[field(0, r#""int""#)]), &[]).unwrap();
    let error = decoder.add_writer(1, &record(&[field(0, &long)]), &[]).unwrap_err().to_string();
    assert!(error.len() < 500, "{} bytes", error.len());
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn a_union_of_many_events_is_read_by_their_names() {
    let event = |n: usize, more: &str| {
        format!(
            r#"{{"type": "record", "name": "E{n}", "fields": [{{"name": "a", "type": "int"}}, {{"name": "b", "type": "int"}},
                {{"name": "own{n}", "type": "int", "default": 0}}{more}]}}"#
        )
    };
    let events = |more: &str| {
        let events: Vec<_> = (0..400).map(|n| event(n, if n == 399 { more } else { "" })).collect();
        format!("[{}]", events.join(","))
    };
    let mut decoder =
        AvroDecoder::new(&events(r#", {"name": "new", "type": "int", "default": 7}"#), &[]).unwrap();
    decoder.add_writer(1, &events(""), &[]).unwrap();
    let decoded = decoder.decode(&[payload(1, b"\x9e\x06\x02\x04\x06")]).unwrap();
    assert_eq!(decoded.errors, []);
    let member = decoded.values.as_struct().column(399).as_struct();
    assert_eq!(member.column(3).as_primitive::<Int32Type>().value(0), 7);
}

#[test]
fn a_schema_reads_itself() {
    // To Java, an alias means nothing there; what columns make of a union, or a reference, does not matter.
    let schema = r#"{"type": "record", "name": "R", "fields": [
        {"name": "a", "type": [{"type": "int", "logicalType": "date"}, "long"]},
        {"name": "b", "type": "int", "aliases": ["a"]}]}"#;
    let mut decoder = AvroDecoder::new(schema, &[r#""string""#]).unwrap();
    decoder.add_writer(1, schema, &[]).unwrap();
    let decoded = decoder.decode(&[payload(1, b"\0\x02\x04")]).unwrap();
    assert_eq!(decoded.errors, []);
    assert_eq!(decoded.values.as_struct().column(1).as_primitive::<Int32Type>().value(0), 2);
}

#[test]
fn the_size_of_a_block_that_is_read_does_not_matter() {
    let ints = r#"{"type": "array", "items": "int"}"#;
    assert_eq!(read(ints, ints, b"\x01\x04\x02\0").unwrap(), "[1]");
    assert_eq!(read(ints, ints, b"\x01\xc8\x01\x02\0").unwrap(), "[1]");
    assert_eq!(read(ints, ints, b"\x01\x01\x02\0").unwrap(), "[1]");
}

#[test]
fn an_enum_of_another_namespace_is_a_branch_if_no_other_is() {
    let e = r#"{"type": "enum", "name": "E", "symbols": ["X", "Y"]}"#;
    let moved = r#"["null", {"type": "enum", "name": "n.E", "symbols": ["X", "Y"]}]"#;
    assert_eq!(read(e, moved, b"\x02").unwrap(), r#""Y""#);
    let fixed = r#"{"type": "fixed", "name": "F", "size": 1}"#;
    assert_eq!(
        read(fixed, r#"["null", {"type": "fixed", "name": "n.F", "size": 1}]"#, b"a").unwrap(),
        r#""a""#
    );
}

#[test]
fn plans_are_bounded() {
    // Records of two unions, each of which may be each of the other.
    let union = |letter: char, of: &str| {
        let records: Vec<_> = (0..700)
            .map(|n| {
                format!(r#"{{"type": "record", "name": "{letter}{n}", "fields": [{{"name": "f", "type": "{of}"}}]}}"#)
            })
            .collect();
        format!("[{}]", records.join(", "))
    };
    let mut decoder = AvroDecoder::new(&union('R', "int"), &[]).unwrap();
    let error = decoder.add_writer(1, &union('W', "string"), &[]).unwrap_err().to_string();
    assert!(error.contains("pairs of types"), "{error}");
    assert_eq!(decoder.data_type().to_string().matches("member").count(), 700);
    assert!(matches!(decoder.data_type(), DataType::Struct(_)));
}

#[test]
fn rows_of_several_writers_stay_in_order() {
    let mut decoder = AvroDecoder::new(r#""long""#, &[]).unwrap();
    decoder.add_writer(1, r#""int""#, &[]).unwrap();
    decoder.add_writer(2, r#"["null", "long"]"#, &[]).unwrap();
    let payloads = [
        payload(1, b"\x02"),
        payload(2, b"\x02\x04"),
        Payload::default(),
        payload(3, b"\x02"),
        payload(2, b"\0"),
        payload(1, b""),
        payload(1, b"\x06"),
    ];
    let decoded = decoder.decode(&payloads).unwrap();
    let values = decoded.values.as_primitive::<Int64Type>();
    let expected = [Some(1), Some(2), None, None, None, None, Some(3)];
    assert_eq!(values.iter().collect::<Vec<_>>(), expected);
    let errors: Vec<_> = decoded.errors.iter().map(|error| (error.row, error.position)).collect();
    assert_eq!(errors, [(3, None), (4, Some(1)), (5, Some(0))]);
}

#[test]
fn a_decoder_is_whole_after_bad_rows() {
    let mut decoder = AvroDecoder::new(r#"{"type": "map", "values": "string"}"#, &[]).unwrap();
    decoder.add_writer(1, r#"{"type": "map", "values": "string"}"#, &[]).unwrap();
    for _ in 0..3 {
        let decoded =
            decoder.decode(&[payload(1, b"\x02\x02a\x02b\0"), payload(1, b"\x02\x02a\x02\xff\0")]).unwrap();
        assert_eq!(decoded.errors.len(), 1);
        assert_eq!(decoded.errors[0].position, Some(3));
        let map = decoded.values.as_map();
        assert_eq!((map.is_valid(0), map.is_null(1)), (true, true));
        assert_eq!(map.value(0).column(1).as_ref(), &StringArray::from(vec!["b"]));
    }
}

#[test]
fn a_writer_that_the_reader_cannot_read_is_refused() {
    let mut decoder = AvroDecoder::new(r#""int""#, &[]).unwrap();
    assert!(decoder.add_writer(1, r#""string""#, &[]).unwrap_err().to_string().contains("the reader's"));
    assert!(decoder.add_writer(1, "{", &[]).is_err());
    assert_eq!(decoder.decode(&[payload(1, b"\x02")]).unwrap().errors.len(), 1);
    assert_eq!(decoder.decode(&[]).unwrap().values.len(), 0);
}
