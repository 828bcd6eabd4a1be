//! Protobuf payloads, byte by byte. `tests/python/test_protobuf_columns.py` compares with Google's library.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal128Type, DurationMicrosecondType, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::DataType;

use magicbyte_schema::protobuf::ProtobufDecoder;
use magicbyte_schema::{Decoded, Payload};

fn decode(schema: &str, payloads: &[&[u8]]) -> Decoded {
    let mut decoder = ProtobufDecoder::new(schema, &[], &[]).unwrap();
    decoder.add_writer(1, schema, &[]).unwrap();
    let payloads: Vec<_> = payloads
        .iter()
        .map(|bytes| Payload { bytes: Some(bytes), writer: 1, message_indexes: &[0] })
        .collect();
    decoder.decode(&payloads).unwrap()
}

fn rows(schema: &str, payloads: &[&[u8]]) -> StructArray {
    let decoded = decode(schema, payloads);
    assert_eq!(decoded.errors, []);
    decoded.values.as_struct().clone()
}

/// The only error, of one payload: its position and reason.
fn error(schema: &str, payload: &[u8]) -> (Option<usize>, String) {
    let decoded = decode(schema, &[payload]);
    assert_eq!((decoded.values.len(), decoded.errors.len()), (1, 1), "{:?}", decoded.values);
    assert!(decoded.values.is_null(0));
    (decoded.errors[0].position, decoded.errors[0].reason.clone())
}

fn column<'a>(rows: &'a StructArray, name: &str) -> &'a ArrayRef {
    rows.column_by_name(name).unwrap()
}

#[test]
fn the_last_value_of_a_field_counts_and_unknown_fields_are_skipped() {
    let schema = r#"syntax = "proto3"; message M { int32 a = 1; string b = 2; uint64 c = 600; bool d = 4; }"#;
    let payload = b"\x08\x01\x12\x02xx\x08\x07\x12\x01y\xc0\x25\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x28\x05\x20\x02";
    let rows = rows(schema, &[payload, b""]);
    assert_eq!(column(&rows, "a").as_primitive::<Int32Type>().values(), &[7, 0]);
    assert_eq!(column(&rows, "b").as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["y", ""]);
    assert_eq!(column(&rows, "c").as_primitive::<Decimal128Type>().value(0), i128::from(u64::MAX));
    assert!(column(&rows, "d").as_boolean().value(0));
    // Stored in another way than the schema says.
    assert_eq!(
        column(&self::rows(schema, &[b"\x0d\0\0\0\x01"]), "a").as_primitive::<Int32Type>().value(0),
        0
    );
}

#[test]
fn a_bad_row_costs_only_itself() {
    let schema = r#"syntax = "proto3";
        message M { repeated int32 a = 1; map<string, N> m = 2; N n = 3; oneof o { string s = 4; N t = 5; } }
        message N { repeated string x = 1; int64 y = 2; }"#;
    let good: &[u8] =
        b"\x0a\x02\x01\x02\x12\x09\x0a\x01k\x12\x04\x0a\x02ab\x1a\x05\x0a\x01z\x10\x09\x22\x01s";
    let alone = decode(schema, &[good, good]).values;
    for cut in 1..good.len() {
        let decoded = decode(schema, &[good, &good[..cut], good]);
        let valid: Vec<usize> = (0..3).filter(|&row| decoded.values.is_valid(row)).collect();
        if decoded.errors.is_empty() {
            assert_eq!(valid, [0, 1, 2]);
        } else {
            assert_eq!((decoded.errors[0].row, valid), (1, vec![0, 2]));
        }
        assert_eq!(&decoded.values.slice(0, 1), &alone.slice(0, 1));
        assert_eq!(&decoded.values.slice(2, 1), &alone.slice(1, 1));
    }
}

#[test]
fn a_bad_entry_does_not_cost_the_next_row_its_own() {
    let schema = r#"syntax = "proto2"; message M { map<string, E> m = 1; } enum E { X = 0; Y = 1; }"#;
    // Its number has no name, and its key is cut off.
    let bad = b"\x0a\x05\x10\x09\x0a\x05k";
    let decoded = decode(schema, &[bad, b"\x0a\x05\x0a\x01k\x10\x01"]);
    assert_eq!((decoded.errors.len(), decoded.errors[0].row), (1, 0));
    let map = column(decoded.values.as_struct(), "m").as_map().value(1);
    assert_eq!(map.column(1).as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["Y"]);
}

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    /// A few of these fields in any order, some of them twice; at times with damage.
    fn message(&mut self, fields: &[&[u8]]) -> Vec<u8> {
        let count = self.below(5);
        let fields = (0..count).map(|_| fields[self.below(fields.len() as u64) as usize]);
        let mut message = fields.collect::<Vec<_>>().concat();
        if !message.is_empty() && self.below(8) == 0 {
            let place = self.below(message.len() as u64) as usize;
            match self.below(2) {
                0 => message.truncate(place),
                _ => message[place] ^= 1 << self.below(8),
            }
        }
        message
    }
}

#[test]
fn a_row_is_the_same_alone_and_among_others() {
    let schema = r#"syntax = "proto2";
        message M {
          optional int64 a = 1; optional int32 b = 2 [default = 7]; optional string c = 3 [default = "none"]; optional bytes d = 4;
          optional bool e = 5 [default = true]; repeated double f = 6 [packed = true]; repeated int32 g = 7; optional N h = 8;
          repeated N i = 9; map<string, E> j = 10; optional E k = 11; repeated E l = 12; optional group O = 13 { optional bool x = 1; }
          oneof one { bool m = 14; string n = 15; N q = 16; uint64 p = 600; }
        }
        message N { required fixed32 x = 1; optional string y = 2; repeated sint64 z = 3; }
        enum E { X = 0; Y = 1; }"#;
    let fields: [&[u8]; 29] = [
        b"\x08\x81\x80\x01",
        b"\x10\x05",
        b"\x1a\x03abc",
        b"\x1a\x06\xc3\xa4\xc3\xb6\xc3\xbc",
        b"\x1a\x14twenty bytes of text",
        b"\x22\x02\xff\xfe",
        b"\x28\0",
        b"\x28\x01",
        b"\x32\x10\0\0\0\0\0\0\xf8\x3f\0\0\0\0\0\0\xf0\x3f",
        b"\x31\0\0\0\0\0\0\0\x40",
        b"\x38\x05",
        b"\x3a\x03\x01\x80\x01",
        b"\x42\x05\x0d\x01\0\0\0",
        b"\x42\x03\x12\x01y",
        b"\x42\x02\x18\x03",
        b"\x4a\x0a\x0d\x01\0\0\0\x12\x01y\x18\x02",
        b"\x4a\x05\x0d\x02\0\0\0",
        b"\x52\x05\x0a\x01k\x10\x01",
        b"\x52\x05\x0a\x01l\x10\x09",
        b"\x58\x01",
        b"\x58\x07",
        b"\x62\x03\x01\x07\0",
        b"\x6b\x08\x01\x6c",
        b"\x70\x01",
        b"\x7a\x01n",
        b"\x82\x01\x05\x0d\x03\0\0\0",
        b"\xc0\x25\xff\xff\xff\xff\x0f",
        b"\xf8\xff\xff\xff\x0f\x05",
        b"\x0d\x01\0\0\0",
    ];
    let mut numbers = Numbers(5);
    let messages: Vec<Vec<u8>> = (0..3000).map(|_| numbers.message(&fields)).collect();
    let mut decoder = ProtobufDecoder::new(schema, &[], &[]).unwrap();
    decoder.add_writer(1, schema, &[]).unwrap();
    let payload = |bytes| Payload { bytes: Some(bytes), writer: 1, message_indexes: &[0] };
    let payloads: Vec<_> = messages.iter().map(|message| payload(message.as_slice())).collect();
    let together = decoder.decode(&payloads).unwrap();
    assert!((100..1500).contains(&together.errors.len()), "{} errors", together.errors.len());
    let mut errors = together.errors.iter().peekable();
    for (row, message) in messages.iter().enumerate() {
        let alone = decoder.decode(&[payload(message)]).unwrap();
        assert_eq!(together.values.slice(row, 1).as_ref(), alone.values.as_ref(), "{message:02x?}");
        let error = errors.next_if(|error| error.row == row).map(|error| (error.position, &error.reason));
        let found = alone.errors.first().map(|error| (error.position, &error.reason));
        assert_eq!(error, found, "{message:02x?}");
    }
}

#[test]
fn the_pieces_of_a_message_merge() {
    let schema = r#"syntax = "proto3"; message M { N n = 1; int32 z = 2; } message N { int32 a = 1; repeated int32 b = 2; }"#;
    let rows = rows(schema, &[b"\x0a\x04\x08\x01\x10\x05\x10\x09\x0a\x04\x12\x02\x06\x07", b"\x10\x01"]);
    let n = column(&rows, "n").as_struct();
    assert_eq!((n.is_null(0), n.is_null(1)), (false, true));
    assert_eq!(column(n, "a").as_primitive::<Int32Type>().value(0), 1);
    let b = column(n, "b").as_list::<i32>().value(0);
    assert_eq!(b.as_primitive::<Int32Type>().values(), &[5, 6, 7]);
}

#[test]
fn one_member_of_a_oneof_is_set() {
    let schema = r#"syntax = "proto3"; message M { oneof o { int32 a = 1; string b = 2; M2 c = 3; } } message M2 { repeated int32 x = 1; }"#;
    let rows = rows(
        schema,
        &[b"\x1a\x02\x08\x05\x08\x03", b"\x08\x03\x12\x01x", b"\x12\0\x1a\x02\x08\x05\x1a\x02\x08\x06", b""],
    );
    let set = |row: usize| ["a", "b", "c"].map(|name| column(&rows, name).is_valid(row));
    assert_eq!([set(0), set(1)], [[true, false, false], [false, true, false]]);
    assert_eq!([set(2), set(3)], [[false, false, true], [false, false, false]]);
    let x = column(column(&rows, "c").as_struct(), "x").as_list::<i32>().value(2);
    assert_eq!(x.as_primitive::<Int32Type>().values(), &[5, 6]);
}

#[test]
fn the_last_entry_of_a_key_counts() {
    let schema = r#"syntax = "proto3"; message M { map<int32, string> m = 1; }"#;
    let twice = b"\x0a\x05\x08\x01\x12\x01a\x0a\x05\x08\x02\x12\x01b\x0a\x05\x08\x01\x12\x01c";
    let rows = rows(schema, &[twice, b"\x0a\0", twice]);
    let map = column(&rows, "m").as_map();
    for row in [0, 2] {
        let entries = map.value(row);
        assert_eq!(entries.column(0).as_primitive::<Int32Type>().values(), &[2, 1]);
        assert_eq!(entries.column(1).as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["b", "c"]);
    }
    // Neither key nor value: the defaults of their types.
    assert_eq!(map.value(1).column(0).as_primitive::<Int32Type>().values(), &[0]);
    assert_eq!(map.value(1).column(1).as_string::<i32>().value(0), "");
}

#[test]
fn proto2_has_defaults_required_fields_groups_and_closed_enums() {
    let schema = r#"syntax = "proto2";
        message M {
          required int32 a = 1; optional string b = 2 [default = "none"]; optional int64 c = 3;
          repeated group G = 4 { optional int32 x = 1; } optional E e = 5 [default = Y]; repeated E f = 6;
        }
        enum E { X = 0; Y = 1; }"#;
    let rows =
        rows(schema, &[b"\x08\x01\x23\x08\x05\x24\x23\x24\x28\x09\x32\x03\x01\x09\0", b"\x08\x01\x28\0"]);
    assert!(!rows.fields()[0].is_nullable());
    assert_eq!(column(&rows, "b").as_string::<i32>().value(0), "none");
    assert!(column(&rows, "c").is_null(0));
    let g = column(&rows, "g").as_list::<i32>().value(0);
    assert_eq!(
        column(g.as_struct(), "x").as_primitive::<Int32Type>().iter().collect::<Vec<_>>(),
        [Some(5), None]
    );
    assert_eq!(column(&rows, "e").as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["Y", "X"]);
    let f = column(&rows, "f").as_list::<i32>().value(0);
    assert_eq!(f.as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["Y", "X"]);
    assert_eq!(error(schema, b"").1, "a: a required field is missing");
    assert_eq!(error(schema, b"\x23\x08\x05"), (Some(3), "g: group 4 does not end".to_owned()));
}

#[test]
fn well_known_types() {
    let schema = r#"syntax = "proto3";
        import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto";
        import "google/protobuf/struct.proto"; import "google/protobuf/wrappers.proto"; import "google/protobuf/empty.proto";
        message M {
          google.protobuf.Timestamp t = 1; google.protobuf.Duration d = 2; google.protobuf.Struct s = 3;
          google.protobuf.Int64Value w = 4; google.protobuf.Empty e = 5;
        }"#;
    let payload = b"\x0a\x05\x08\x01\x10\xd0\x0f\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x1a\x0a\x0a\x08\x0a\x01k\x12\x03\x1a\x01v\x22\x02\x08\x05\x2a\0";
    let rows = rows(schema, &[payload, b""]);
    assert_eq!(column(&rows, "t").as_primitive::<TimestampMicrosecondType>().value(0), 1_000_002);
    assert_eq!(column(&rows, "d").as_primitive::<DurationMicrosecondType>().value(0), -1_000_000);
    assert_eq!(column(&rows, "s").as_string::<i32>().value(0), r#"{"k":"v"}"#);
    assert_eq!(column(column(&rows, "w").as_struct(), "value").as_primitive::<Int64Type>().value(0), 5);
    assert!(column(&rows, "e").is_valid(0));
    assert!(rows.columns().iter().all(|column| column.is_null(1)));
}

#[test]
fn a_message_that_contains_itself_is_text_where_it_does() {
    let schema = r#"syntax = "proto3"; message Node { int32 v = 1; Node next = 2; }"#;
    let rows = rows(schema, &[b"\x08\x01\x12\x06\x08\x02\x12\x02\x08\x03", b""]);
    let next = column(&rows, "next").as_string::<i32>();
    assert_eq!((next.value(0), next.is_null(1)), (r#"{"v":2,"next":{"v":3}}"#, true));
    let deep = (0..200).fold(Vec::new(), |inner, _| nested(&inner));
    let reason = error(schema, &deep).1;
    assert!(reason.starts_with("next.") && reason.ends_with("deeper than 100"), "{reason}");
}

fn nested(inner: &[u8]) -> Vec<u8> {
    let mut out = vec![0x12];
    let mut length = inner.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend(inner);
    out
}

#[test]
fn what_is_wrong_and_where() {
    let schema = r#"syntax = "proto3"; message M { string a = 1; N n = 2; repeated fixed64 f = 3; } message N { string b = 1; }"#;
    let case = |payload: &[u8]| error(schema, payload);
    assert_eq!(case(b"\x0a\x02\xc3"), (Some(1), "a: a length of 2 where 1 bytes are left".to_owned()));
    assert_eq!(case(b"\x12\x04\x0a\x02a\xff"), (Some(5), "n.b: text that is not UTF-8".to_owned()));
    assert_eq!(
        case(b"\x1a\x09\0\0\0\0\0\0\0\0\0"),
        (Some(10), "f: a value is cut off: 1 of 8 bytes".to_owned())
    );
    assert_eq!(case(b"\0"), (Some(0), "field number 0: expected one from 1 to 536870911".to_owned()));
    assert_eq!(case(b"\x0f"), (Some(0), "wire type 7 does not exist".to_owned()));
    assert_eq!(case(b"\x0c"), (Some(0), "the end of group 1, which has not begun".to_owned()));
    assert_eq!(
        case(b"\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x82\x01"),
        (Some(1), "a varint has more than 10 bytes".to_owned())
    );
    assert_eq!(case(b"\xa8\x80\x80\x80\x80\x00\x05"), (Some(0), "a varint has more than 5 bytes".to_owned()));
    assert_eq!(
        case(b"\x0a\x81\x80\x80\x80\x10a"),
        (Some(1), "a: a tag or length has more than 32 bits".to_owned())
    );
    let groups = [0x33].repeat(100_000);
    assert_eq!(case(&groups), (Some(101), "messages are nested deeper than 100".to_owned()));
}

#[test]
fn memory_is_bounded_by_the_payload() {
    let fields: String = (1..1000).map(|n| format!("int64 f{n} = {n};")).collect();
    let schema = format!(r#"syntax = "proto3"; message M {{ repeated N n = 1; }} message N {{ {fields} }}"#);
    let payload = b"\x0a\0".repeat(100_000);
    assert!(error(&schema, &payload).1.starts_with("n: its columns would take more than "));
}

#[test]
fn schemas_that_cannot_be_used() {
    let refused = |schema: &str| ProtobufDecoder::new(schema, &[], &[]).err().unwrap().to_string();
    assert!(refused("message").contains("expected"), "{}", refused("message"));
    assert_eq!(refused(r#"syntax = "proto3";"#), "the schema has no message");
    let needed = refused(r#"syntax = "proto3"; import "a.proto"; message M { A a = 1; }"#);
    assert!(needed.ends_with("; no reference has the name a.proto"), "{needed}");
    assert!(refused(r#"edition = "2025"; message M {}"#).contains("2025"));
    let feature = r#"edition = "2023"; message M { int32 a = 1 [features.field_presence = ABSENT]; }"#;
    assert!(refused(feature).contains("field_presence"), "{}", refused(feature));
    assert!(
        refused(r#"syntax = "proto3"; package google.protobuf; message Struct {}"#).contains("Google's own")
    );
    // Each level doubles the columns.
    let doubling: String =
        (0..30).map(|n| format!("message M{n} {{ M{} a = 1; M{} b = 2; }}", n + 1, n + 1)).collect();
    let doubling = format!(r#"syntax = "proto3"; {doubling} message M30 {{ int32 x = 1; }}"#);
    assert_eq!(refused(&doubling), "M0 has more than 10000 columns");
    let cycle = [
        ("a.proto", r#"syntax = "proto3"; import "b.proto";"#),
        ("b.proto", r#"syntax = "proto3"; import "a.proto";"#),
    ];
    let schema = r#"syntax = "proto3"; import "a.proto"; message M {}"#;
    assert!(ProtobufDecoder::new(schema, &cycle, &[]).err().unwrap().to_string().contains("cycl"));
}

#[test]
fn several_messages_in_one_column() {
    let reader = r#"syntax = "proto3"; package p; message A { int32 a = 1; } message B { int32 b = 1; message C { int32 c = 1; } }"#;
    // In the writer's file the messages are in another order.
    let writer = r#"syntax = "proto3"; package p; message B { int32 b = 1; message C { int32 c = 1; } } message A { int32 a = 1; } message D {}"#;
    let mut decoder = ProtobufDecoder::new(reader, &[], &["p.A", "p.B.C"]).unwrap();
    decoder.add_writer(1, writer, &[]).unwrap();
    let payload = |message_indexes| Payload { bytes: Some(b"\x08\x05"), writer: 1, message_indexes };
    let decoded = decoder
        .decode(&[payload(&[1]), payload(&[0, 0]), payload(&[2]), payload(&[7]), Payload::default()])
        .unwrap();
    let values = decoded.values.as_struct();
    assert_eq!(values.column_names(), ["A", "C"]);
    let valid = |column: usize| (0..5).map(|row| values.column(column).is_valid(row)).collect::<Vec<_>>();
    assert_eq!(
        (valid(0), valid(1)),
        (vec![true, false, false, false, false], vec![false, true, false, false, false])
    );
    assert_eq!((values.is_null(2), values.is_null(4)), (true, true));
    let reasons: Vec<_> = decoded.errors.iter().map(|error| (error.row, error.reason.as_str())).collect();
    assert_eq!(
        reasons,
        [
            (2, "it is a message p.D: expected p.A or p.B.C"),
            (3, "the schema has no message with the indexes [7]"),
        ]
    );
}

/// The texts of payloads.
fn texts(schema: &str, payloads: &[&[u8]]) -> Decoded {
    let mut decoder = ProtobufDecoder::text();
    decoder.add_writer(1, schema, &[]).unwrap();
    assert_eq!(decoder.data_type(), &DataType::Utf8);
    let payload = |bytes| Payload { bytes: Some(bytes), writer: 1, message_indexes: &[0] };
    decoder.decode(&payloads.iter().copied().map(payload).collect::<Vec<_>>()).unwrap()
}

fn text(schema: &str, payload: &[u8]) -> String {
    let decoded = texts(schema, &[payload]);
    assert_eq!(decoded.errors, []);
    decoded.values.as_string::<i32>().value(0).to_owned()
}

#[test]
fn text_is_the_json_of_each_payload() {
    let schema = r#"syntax = "proto3"; message M { int32 someNumber = 1; }"#;
    let decoded = texts(schema, &[b"\x08\x05", b"\x08"]);
    assert_eq!(decoded.values.as_string::<i32>().value(0), r#"{"someNumber":5}"#);
    assert_eq!(decoded.errors.len(), 1);
}

#[test]
fn text_has_the_rules_of_columns() {
    let numbers = r#"syntax = "proto3"; message M { double d = 1; string s = 2; float f = 3; }"#;
    assert_eq!(text(numbers, b"\x09\0\0\0\0\0\0\0\x80"), r#"{"d":-0.0}"#);
    assert_eq!(text(numbers, b"\x1d\0\0\xc0\x7f"), r#"{"f":"NaN"}"#);
    // Stored as another type: unknown.
    assert_eq!(text(numbers, b"\x10\x05\x0a\x01a"), "{}");
    let enums = r#"syntax = "proto2"; message M { optional E e = 1; repeated E r = 2; map<string, E> m = 3; } enum E { X = 0; }"#;
    assert_eq!(text(enums, b"\x08\x05\x12\x02\x05\x00\x1a\x05\x0a\x01k\x10\x05"), r#"{"r":["X"]}"#);
    let oneof = r#"syntax = "proto3"; message M { oneof o { int32 a = 1; string b = 2; M c = 3; } }"#;
    assert_eq!(text(oneof, b"\x08\0\x1a\x02\x08\x05\x1a\x03\x12\x01x"), r#"{"c":{"b":"x"}}"#);
    let required = r#"syntax = "proto2"; message M { optional M m = 1; required int32 a = 2; }"#;
    let error = &texts(required, &[b"\x10\x01\x0a\0"]).errors[0];
    assert_eq!((error.position, error.reason.as_str()), (Some(4), "m.a: a required field is missing"));
}

#[test]
fn text_of_well_known_types() {
    let schema = r#"syntax = "proto3"; import "google/protobuf/any.proto"; import "google/protobuf/field_mask.proto";
        import "google/protobuf/timestamp.proto"; import "google/protobuf/struct.proto";
        import "google/protobuf/wrappers.proto";
        message M { google.protobuf.Any a = 1; google.protobuf.FieldMask m = 2; google.protobuf.Timestamp t = 3; int32 i = 4;
          google.protobuf.Int64Value w = 5; google.protobuf.NullValue n = 6; }"#;
    assert_eq!(text(schema, b"\x0a\0\x20\x07"), r#"{"a":{},"i":7}"#);
    assert_eq!(text(schema, b"\x0a\x07\x0a\x01M\x12\x02\x20\x05"), r#"{"a":{"@type":"M","i":5}}"#);
    let wrapped = b"\x0a\x22\x0a\x1cx/google.protobuf.Int64Value\x12\x02\x08\x05";
    let json = r#"{"a":{"@type":"x/google.protobuf.Int64Value","value":"5"}}"#;
    assert_eq!(text(schema, wrapped), json);
    assert_eq!(text(schema, b"\x12\x09\x0a\x03a_b\x0a\x02cd\x2a\0"), r#"{"m":"aB,cd","w":"0"}"#);
    assert_eq!(text(schema, b"\x1a\x05\x08\x01\x10\xc0\x3e"), r#"{"t":"1970-01-01T00:00:01.000008Z"}"#);
    let reason = |payload: &[u8]| texts(schema, &[payload]).errors[0].reason.clone();
    assert_eq!(reason(b"\x0a\x03\x0a\x01X"), "a: it has no JSON form: the schema has no message \"X\"");
    let negative = b"\x1a\x0b\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
    assert_eq!(reason(negative), "t: it has no JSON form: 0 seconds and -1 nanoseconds are out of range");
    // An Any in an Any, and so on.
    let mut deep = Vec::new();
    for _ in 0..200 {
        let mut any = b"\x0a\x01M".to_vec();
        any.extend(nested(&deep));
        deep = vec![0x0a];
        deep.extend(&nested(&any)[1..]);
    }
    assert!(reason(&deep).contains("deeper than 100"), "{}", reason(&deep));
}

#[test]
fn a_map_is_no_message_of_a_value() {
    let schema = r#"syntax = "proto3"; message O { map<string, int32> m = 1; message A { int32 a = 1; }
        map<string, int32> n = 2; message B { int32 b = 1; } }"#;
    let mut decoder = ProtobufDecoder::text();
    decoder.add_writer(1, schema, &[]).unwrap();
    let name = |indexes: &[i32]| decoder.message_name(1, indexes);
    // protoc counts the entries, and Java's reader of texts does not.
    let counted: Vec<_> = (0..5).map(|index| name(&[0, index])).collect();
    assert_eq!(
        counted.iter().map(Option::as_deref).collect::<Vec<_>>(),
        [Some("O.A"), Some("O.A"), None, Some("O.B"), None]
    );
    assert_eq!((name(&[0, 0, 0]), name(&[-1]), name(&[])), (None, None, None));
}

#[test]
fn values_of_options_that_only_floats_have() {
    for value in ["-inf", "-nan", "- /* - */ inf", "18446744073709551616", "-9223372036854775809", "-1.5"] {
        for (head, label) in
            [("syntax = \"proto2\"", "optional"), ("syntax = \"proto3\"", ""), ("edition = \"2023\"", "")]
        {
            let schema = format!(
                r"{head}; option (a.b) = {value}; option (a).b.c = {value};
                message M {{ option (m) = {value}; {label} int32 a = 1 [(x) = {value}, (.y).z = {value}];
                  oneof o {{ option (o) = {value}; string s = 2; }} }}
                enum E {{ option (e) = {value}; X = 0 [(v) = {value}]; Y = -1; }}
                service S {{ option (s) = {value}; rpc R(M) returns (M) {{ option (r) = {value}; }} }}"
            );
            assert_eq!(text(&schema, b"\x08\x01"), r#"{"a":1}"#, "{schema}");
        }
    }
    let of = |field: &str| format!(r#"syntax = "proto2"; message M {{ optional {field}; }}"#);
    for default in ["-inf", "18446744073709551616", "-9223372036854775809", "18446744073709551616.5"] {
        let rows = rows(&of(&format!("double a = 1 [default = {default}]")), &[b""]);
        let number = column(&rows, "a").as_primitive::<Float64Type>().value(0);
        assert_eq!(number.to_bits(), default.parse::<f64>().unwrap().to_bits(), "{default}");
    }
    // What `protoc` refuses.
    for field in [
        "int32 a = 18446744073709551616",
        "int32 a = -inf",
        "int32 a = 1 [(x) = -info]",
        "int64 a = 1 [default = 18446744073709551616]",
        "string a = 1 [(x) = -",
    ] {
        assert!(ProtobufDecoder::new(&of(field), &[], &[]).is_err(), "{field}");
    }
}

#[test]
fn imports_and_options_that_no_field_needs() {
    let schema = r#"syntax = "proto3"; import "validate.proto"; import "google/api/annotations.proto"; import "google/type/money.proto";
        option (go.file) = { a: 1 }; option java_unknown = true;
        message M {
          option (table) = "m"; int32 a = 1 [(validate.rules).int32.gt = 0, deprecated = true]; google.type.Money m = 2;
          repeated int32 p = 3 [packed = false, (x) = 1]; oneof o { option (one) = 1; string s = 4; }
        }
        enum E { option allow_alias = true; option (e) = 1; X = 0 [(v) = "x"]; Y = 0; }
        extend google.protobuf.FieldOptions { Lost lost = 1000; }
        service S { rpc Get(lost.Request) returns (lost.Response) { option (google.api.http) = { get: "/" }; } }"#;
    let rows = rows(schema, &[b"\x08\x05\x12\x05\x0a\x03EUR"]);
    assert_eq!(column(&rows, "a").as_primitive::<Int32Type>().value(0), 5);
    let code = column(column(&rows, "m").as_struct(), "currency_code").as_string::<i32>();
    assert_eq!(code.value(0), "EUR");
}

#[test]
fn features_of_an_edition() {
    let schema = r#"edition = "2023"; // A comment.
        option features.enum_type = CLOSED;
        message M {
          option features.repeated_field_encoding = EXPANDED;
          int32 explicit = 1 [default = 7]; int32 implicit = 2 [features.field_presence = IMPLICIT];
          int32 required = 3 [features = { field_presence: LEGACY_REQUIRED }]; E closed = 4; F open = 5;
          N group = 6 [features.message_encoding = DELIMITED]; reserved gone, "lost"; string text = 7 [default = "default = 5"];
        }
        message N { int32 a = 1; }
        enum E { Y = 1; } enum F { option features.enum_type = OPEN; X = 0; }"#;
    let payload = b"\x10\0\x18\0\x20\x05\x28\x05\x33\x08\x01\x34";
    let rows = rows(schema, &[payload]);
    let number = |name: &str| column(&rows, name).as_primitive::<Int32Type>().value(0);
    assert_eq!((number("explicit"), number("implicit"), number("required")), (7, 0, 0));
    assert_eq!(
        (column(&rows, "closed").is_null(0), column(&rows, "open").as_string::<i32>().value(0)),
        (true, "5")
    );
    assert_eq!(column(column(&rows, "group").as_struct(), "a").as_primitive::<Int32Type>().value(0), 1);
    assert_eq!(column(&rows, "text").as_string::<i32>().value(0), "default = 5");
    assert_eq!(text(schema, payload), r#"{"required":0,"open":5,"group":{"a":1}}"#);
    assert_eq!(error(schema, b"").1, "required: a required field is missing");
    let newer =
        r#"edition = "2024"; import option "a.proto"; export message M { local enum E { X = 0; } E e = 1; }"#;
    assert_eq!(text(newer, b"\x08\x00"), r#"{"e":"X"}"#);
}

#[test]
fn messages_in_a_thousand_messages() {
    let chain: String = (0..1000).map(|n| format!("message M{n} {{ M{} m = 1; }}", n + 1)).collect();
    let schema = format!(r#"syntax = "proto3"; {chain} message M1000 {{ int32 x = 1; }}"#);
    assert_eq!(decode(&schema, &[b"\x0a\x02\x0a\0"]).errors, []);
}

#[test]
fn entries_that_no_compiler_makes_are_refused() {
    // message M { map<..> e = 1; }, with an entry that has no fields.
    let schema = "CgFhIh0KAU0SDwoBZRgBIAMoCzIELk0uRRoHCgFFOgI4AWIGcHJvdG8z";
    let error = ProtobufDecoder::new(schema, &[], &[]).err().unwrap().to_string();
    assert!(error.contains("M.E: the map entry is not a key = 1 of"), "{error}");
    let mut text = ProtobufDecoder::text();
    assert!(text.add_writer(1, schema, &[]).is_err());
}

#[test]
fn features_of_languages_do_not_hide_others() {
    for features in [
        "{ [pb.cpp] { string_type: VIEW } field_presence: IMPLICIT }",
        "{ [pb.cpp]: { string_type: VIEW }, field_presence: IMPLICIT; }",
        "{ [pb.cpp] < string_type: VIEW > field_presence : IMPLICIT }",
        "{ field_presence: IMPLICIT [pb.cpp] { nested { field_presence: EXPLICIT } } }",
        r#"{ json_format: ALLOW [a.b] { text: "} field_presence: EXPLICIT" } field_presence: IMPLICIT }"#,
    ] {
        let schema = format!(
            r#"edition = "2023"; import "google/protobuf/cpp_features.proto"; option features = {features}; message M {{ int32 a = 1; }}"#
        );
        let rows = rows(&schema, &[b""]);
        assert!(column(&rows, "a").is_valid(0), "{features}");
    }
}

#[test]
fn an_entry_without_a_value_lacks_what_the_value_requires() {
    let schema =
        r#"syntax = "proto2"; message M { map<string, R> m = 1; } message R { required int32 a = 1; }"#;
    let payload = b"\x0a\x03\x0a\x01k";
    let (_, columns) = error(schema, payload);
    let mut decoder = ProtobufDecoder::text();
    decoder.add_writer(1, schema, &[]).unwrap();
    let payload = Payload { bytes: Some(payload), writer: 1, message_indexes: &[0] };
    let text = decoder.decode(&[payload]).unwrap();
    assert!(columns.contains("required"), "{columns}");
    assert!(text.errors[0].reason.contains("required"), "{:?}", text.errors);
}
