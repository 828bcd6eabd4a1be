//! Random legal schemas of all formats, with values that are right, damaged or of another schema: nothing panics, every
//! row is a value or an error, and the arrays are as their types say.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::{Value, json};

use crate::avro::{AvroDecoder, AvroEncoder};
use crate::json::{JsonDecoder, JsonEncoder};
use crate::protobuf::{ProtobufDecoder, ProtobufEncoder};
use crate::random::Random;
use crate::{Decoded, Payload};

const CASES: u64 = 3000;
const ROWS: usize = 12;

/// Runs a case per seed; a panic names its seed and its schemas.
fn for_each_seed(case: impl Fn(&mut Random, &mut String)) {
    let mut failed = Vec::new();
    for seed in 1..=CASES {
        let mut about = String::new();
        let run = AssertUnwindSafe(|| case(&mut Random::new(seed), &mut about));
        if catch_unwind(run).is_err() {
            failed.push(format!("seed {seed}: {about}"));
        }
    }
    assert!(
        failed.is_empty(),
        "{} of {CASES} cases fail:\n{}",
        failed.len(),
        failed[..failed.len().min(20)].join("\n")
    );
}

fn check(decoded: &Decoded, rows: usize, data_type: &arrow_schema::DataType) {
    assert_eq!(decoded.values.len(), rows);
    assert_eq!(decoded.values.data_type(), data_type);
    decoded.values.to_data().validate_full().unwrap();
    for error in &decoded.errors {
        // A library's panic, caught.
        assert!(!error.reason.contains("panicked"), "{error:?}");
        // JSON keeps the rest of a row with such a number.
        let is_kept = error.reason.ends_with("is left out, expected an integer of 64 bits");
        let is_null = decoded.values.is_null(error.row) || data_type == &arrow_schema::DataType::Null;
        assert!(is_null || is_kept, "{error:?}");
    }
}

const LOGICAL: [(&str, &str); 16] = [
    ("int", "date"),
    ("int", "time-millis"),
    ("long", "time-micros"),
    ("long", "timestamp-millis"),
    ("long", "timestamp-micros"),
    ("long", "timestamp-nanos"),
    ("long", "local-timestamp-millis"),
    ("long", "local-timestamp-micros"),
    ("long", "local-timestamp-nanos"),
    ("string", "uuid"),
    ("bytes", "decimal"),
    ("bytes", "uuid"),
    ("float", "date"),
    ("double", "timestamp-millis"),
    ("boolean", "date"),
    ("bytes", "no-such-type"),
];
const PLAIN: [&str; 8] = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"];

struct Avro {
    names: Vec<String>,
}

impl Avro {
    fn schema(&mut self, random: &mut Random, depth: u64) -> Value {
        let name = format!("N{}", self.names.len());
        match random.below(if depth == 0 { 13 } else { 20 }) {
            kind @ 0..8 => json!(PLAIN[kind as usize]),
            8 | 9 => {
                let (of, logical) = LOGICAL[random.below(LOGICAL.len() as u64) as usize];
                let mut schema = json!({"type": of, "logicalType": logical});
                if logical == "decimal" {
                    let precision = [1, 9, 20, 38, 39, 76, 77, 200][random.below(8) as usize];
                    schema["precision"] = json!(precision);
                    schema["scale"] = json!(random.below(precision + 1));
                }
                schema
            }
            10 => {
                self.names.push(name.clone());
                let size = [0, 1, 4, 12, 16, 40][random.below(6) as usize];
                let mut schema = json!({"type": "fixed", "name": name, "size": size});
                match random.below(4) {
                    0 => schema["logicalType"] = json!("duration"),
                    1 => schema["logicalType"] = json!("uuid"),
                    2 => {
                        schema["logicalType"] = json!("decimal");
                        schema["precision"] = json!(random.below(40) + 1);
                    }
                    _ => {}
                }
                schema
            }
            11 => {
                self.names.push(name.clone());
                let mut schema = json!({"type": "enum", "name": name, "symbols": ["A", "B", "C"]});
                if random.one_in(2) {
                    schema["default"] = json!("B");
                }
                schema
            }
            12 if !self.names.is_empty() => json!(self.names[random.below(self.names.len() as u64) as usize]),
            13 => json!({"type": "array", "items": self.schema(random, depth - 1)}),
            14 => json!({"type": "map", "values": self.schema(random, depth - 1)}),
            15 => {
                // Pairs that are one column.
                let pairs = [("int", "long"), ("long", "int"), ("float", "double"), ("double", "float")];
                let (first, second) = pairs[random.below(4) as usize];
                let mut union = vec![of_kind(random, first), of_kind(random, second)];
                if random.one_in(2) {
                    union.insert(random.below(3) as usize, json!("null"));
                }
                json!(union)
            }
            16..18 => {
                let count = 1 + random.below(4);
                (0..count).map(|_| self.schema(random, depth - 1)).filter(|of| !of.is_array()).collect()
            }
            _ => {
                self.names.push(name.clone());
                let fields: Vec<_> = (0..random.below(4))
                    .map(|index| {
                        let of = self.schema(random, depth.saturating_sub(1));
                        let mut field = json!({"name": format!("f{index}"), "type": of});
                        if random.one_in(3) {
                            field["default"] = default(random, &of);
                        }
                        field
                    })
                    .collect();
                json!({"type": "record", "name": name, "fields": fields})
            }
        }
    }
}

/// A type that is stored as this one.
fn of_kind(random: &mut Random, kind: &str) -> Value {
    let logical: Vec<_> = LOGICAL.iter().filter(|logical| logical.0 == kind).collect();
    match logical.get(random.below(2 * logical.len() as u64 + 1) as usize) {
        Some((_, logical)) => json!({"type": kind, "logicalType": logical}),
        None => json!(kind),
    }
}

/// A default of a type, or of another one.
fn default(random: &mut Random, of: &Value) -> Value {
    let kind = match of {
        Value::Array(branches) => return default(random, branches.first().unwrap_or(&Value::Null)),
        Value::String(kind) => kind.as_str(),
        _ => of["type"].as_str().unwrap_or("null"),
    };
    match kind {
        "null" => Value::Null,
        "boolean" => json!(true),
        "int" | "long" => json!(random.number(31)),
        "float" | "double" => json!(0.5),
        "bytes" | "string" => json!("\u{1}a"),
        "fixed" => json!("a".repeat(of["size"].as_u64().unwrap_or(0) as usize)),
        "enum" => json!("A"),
        "array" => json!([]),
        _ => json!({}),
    }
}

/// The schema with other types, names, orders and defaults here and there.
fn evolved(random: &mut Random, schema: &Value) -> Value {
    if random.one_in(16) {
        return match random.below(3) {
            0 => json!(["null", schema]),
            1 => json!([schema, "null", "long"]),
            _ => json!(PLAIN[random.below(8) as usize]),
        };
    }
    match schema {
        Value::String(kind) if random.one_in(6) => match kind.as_str() {
            "int" => json!(["long", "float", "double"][random.below(3) as usize]),
            "long" => json!({"type": "long", "logicalType": LOGICAL[2 + random.below(7) as usize].1}),
            "bytes" => json!("string"),
            "string" => json!("bytes"),
            _ => schema.clone(),
        },
        Value::Array(branches) => {
            let mut branches: Vec<_> = branches.iter().map(|branch| evolved(random, branch)).collect();
            if random.one_in(4) {
                branches.reverse();
            }
            if branches.len() > 1 && random.one_in(6) {
                branches.pop();
            }
            json!(branches)
        }
        Value::Object(object) => {
            let mut object = object.clone();
            if random.one_in(4) {
                object.remove("logicalType");
            }
            for part in ["items", "values"] {
                if let Some(of) = object.get_mut(part) {
                    *of = evolved(random, of);
                }
            }
            if let Some(Value::Array(fields)) = object.get_mut("fields") {
                for field in fields.iter_mut() {
                    field["type"] = evolved(random, &field["type"]);
                }
                if random.one_in(4) {
                    fields.reverse();
                }
                if random.one_in(4) {
                    let of = Avro { names: vec!["Added".into()] }.schema(random, 1);
                    let default = default(random, &of);
                    fields.push(json!({"name": "added", "type": of, "default": default}));
                }
            }
            Value::Object(object)
        }
        _ => schema.clone(),
    }
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn long(out: &mut Vec<u8>, value: i64) {
    varint(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// A value of a schema, as far as this test can tell.
fn avro_value(random: &mut Random, schema: &Value, out: &mut Vec<u8>) {
    if let Value::Array(branches) = schema {
        let branch = random.below(branches.len().max(1) as u64);
        long(out, branch as i64);
        return branches.get(branch as usize).into_iter().for_each(|of| avro_value(random, of, out));
    }
    match schema.as_str().or_else(|| schema["type"].as_str()).unwrap_or("null") {
        "null" => {}
        "boolean" => out.push(random.below(2) as u8),
        "int" => long(out, random.number(32)),
        "long" => long(out, random.number(64)),
        "float" => out.extend((random.next() as f32).to_le_bytes()),
        "double" => out.extend((random.next() as f64).to_le_bytes()),
        "bytes" | "string" => {
            let size = random.below(20) as usize;
            long(out, size as i64);
            out.extend((0..size).map(|_| b'a' + random.below(20) as u8));
        }
        "fixed" => out.extend((0..schema["size"].as_u64().unwrap_or(0)).map(|byte| byte as u8)),
        "enum" => long(out, random.below(3) as i64),
        kind @ ("array" | "map") => {
            for _ in 0..random.below(3) {
                let count = random.below(3) + 1;
                long(out, count as i64);
                for _ in 0..count {
                    if kind == "map" {
                        avro_value(random, &json!("string"), out);
                    }
                    avro_value(random, &schema[if kind == "map" { "values" } else { "items" }], out);
                }
            }
            out.push(0);
        }
        "record" => {
            for field in schema["fields"].as_array().into_iter().flatten() {
                avro_value(random, &field["type"], out);
            }
        }
        // A name: of a type whose values this test does not follow.
        _ => out.extend((0..random.below(6)).map(|_| random.below(8) as u8)),
    }
}

fn rows(random: &mut Random, mut value: impl FnMut(&mut Random, &mut Vec<u8>)) -> Vec<Option<Vec<u8>>> {
    (0..ROWS)
        .map(|_| {
            let mut payload = Vec::new();
            value(random, &mut payload);
            if random.one_in(4) {
                random.damage(&mut payload);
            }
            (!random.one_in(10)).then_some(payload)
        })
        .collect()
}

fn payloads<'a>(rows: &'a [Option<Vec<u8>>], message_indexes: &'a [i32]) -> Vec<Payload<'a>> {
    let payload =
        |bytes: &'a Option<Vec<u8>>| Payload { bytes: bytes.as_deref(), writer: 1, message_indexes };
    rows.iter().map(payload).collect()
}

#[test]
fn avro() {
    let decoded = std::cell::Cell::new(0);
    for_each_seed(|random, about| {
        let writer = Avro { names: Vec::new() }.schema(random, 3);
        let reader = if random.one_in(3) { writer.clone() } else { evolved(random, &writer) };
        *about = format!("{writer} as {reader}");
        let rows = rows(random, |random, out| avro_value(random, &writer, out));
        let payloads = payloads(&rows, &[]);
        for decoder in [AvroDecoder::new(&reader.to_string(), &[]), Ok(AvroDecoder::text())] {
            let Ok(mut decoder) = decoder else { continue };
            if decoder.add_writer(1, &writer.to_string(), &[]).is_err() {
                continue;
            }
            for _ in 0..2 {
                let output = decoder.decode(&payloads).unwrap();
                check(&output, ROWS, decoder.data_type());
                decoded.set(decoded.get() + output.values.len() - output.values.logical_null_count());
                if let Ok(encoder) = AvroEncoder::new(&reader.to_string(), &[])
                    && encoder.data_type() == output.values.data_type()
                {
                    _ = encoder.encode(&output.values, b"");
                }
            }
        }
    });
    assert!(decoded.get() > CASES as usize, "{} values", decoded.get());
}

/// A union of an int and a long is one column of longs to Spark, whatever they mean.
#[test]
fn avro_unions_of_numbers() {
    for (branches, expected) in [
        (r#"["int", {"type": "long", "logicalType": "timestamp-millis"}]"#, 1),
        (r#"["int", {"type": "long", "logicalType": "local-timestamp-micros"}]"#, 1),
        (r#"[{"type": "int", "logicalType": "date"}, "long"]"#, 1),
        (
            r#"[{"type": "int", "logicalType": "time-millis"}, {"type": "long", "logicalType": "time-micros"}]"#,
            1,
        ),
        (r#"[{"type": "long", "logicalType": "timestamp-micros"}, "null", "int"]"#, 1),
    ] {
        let mut decoder = AvroDecoder::new(branches, &[]).unwrap();
        decoder.add_writer(1, branches, &[]).unwrap();
        let rows = [Some(b"\0\x02".to_vec())];
        let decoded = decoder.decode(&payloads(&rows, &[])).unwrap();
        assert_eq!(decoded.errors, []);
        assert_eq!(decoded.values.as_ref(), &arrow_array::Int64Array::from(vec![expected]), "{branches}");
        let encoded = AvroEncoder::new(branches, &[]).unwrap().encode(&decoded.values, b"").unwrap();
        assert_eq!(encoded.value(0).last(), Some(&2), "{branches}");
    }
}

fn json_schema(random: &mut Random, depth: u64) -> Value {
    const TYPES: [&str; 8] =
        ["integer", "number", "boolean", "string", "null", "object", "array", "no-such-type"];
    const NAMES: [&str; 4] = ["a", "b", "$ref", ""];
    match random.below(if depth == 0 { 6 } else { 14 }) {
        0..3 => json!({"type": TYPES[random.below(8) as usize]}),
        3 => json!({"type": [TYPES[random.below(8) as usize], TYPES[random.below(8) as usize]]}),
        4 => json!({"enum": ["x", "y"]}),
        5 => [json!(true), json!(false), json!({}), json!({"$ref": "#"}), json!({"const": 1})]
            [random.below(5) as usize]
            .clone(),
        6..9 => {
            let mut properties = serde_json::Map::new();
            for _ in 0..random.below(4) {
                properties.insert(random.one_of(&NAMES).to_owned(), json_schema(random, depth - 1));
            }
            json!({"type": "object", "properties": properties})
        }
        9 | 10 => json!({"type": "array", "items": json_schema(random, depth - 1)}),
        _ => {
            let parts: Vec<_> = (0..random.below(3)).map(|_| json_schema(random, depth - 1)).collect();
            json!({random.one_of(&["allOf", "anyOf", "oneOf"]): parts})
        }
    }
}

fn json_value(random: &mut Random, depth: u64) -> Value {
    match random.below(if depth == 0 { 5 } else { 9 }) {
        0 => Value::Null,
        1 => json!(random.one_in(2)),
        2 => json!(random.number(64)),
        3 => json!(random.number(64) as f64 / 7.0),
        4 => json!(random.one_of(&["", "x", "a longer text, größer"])),
        5 | 6 => (0..random.below(4)).map(|_| json_value(random, depth - 1)).collect(),
        _ => {
            let mut members = serde_json::Map::new();
            for _ in 0..random.below(4) {
                let name = random.one_of(&["a", "b", "$ref", "", "other"]).to_owned();
                members.insert(name, json_value(random, depth - 1));
            }
            Value::Object(members)
        }
    }
}

#[test]
fn json() {
    for_each_seed(|random, about| {
        let schema = json_schema(random, 3).to_string();
        about.clone_from(&schema);
        let rows = rows(random, |random, out| out.extend(json_value(random, 3).to_string().into_bytes()));
        for validate in [false, true] {
            let Ok(mut decoder) = JsonDecoder::new(&schema, &[]) else { continue };
            if validate {
                let Ok(validating) = decoder.validate(Some((&schema, &[])), random.one_in(2)) else {
                    continue;
                };
                decoder = validating;
                _ = decoder.add_writer(1, &schema, &[]);
            }
            let output = decoder.decode(&payloads(&rows, &[])).unwrap();
            check(&output, ROWS, decoder.data_type());
            if let Ok(encoder) = JsonEncoder::new(&schema, &[]) {
                _ = encoder.encode(&output.values, b"");
            }
        }
    });
}

/// The fields of a message, and the types that it declares.
fn proto_fields(random: &mut Random, is_proto2: bool, depth: u64, out: &mut String) {
    const SCALARS: [&str; 15] = [
        "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32",
        "sfixed64", "float", "double", "bool", "string", "bytes",
    ];
    const OTHERS: [&str; 9] = [
        "M",
        "E",
        "google.protobuf.Timestamp",
        "google.protobuf.Duration",
        "google.protobuf.Struct",
        "google.protobuf.Value",
        "google.protobuf.Any",
        "google.protobuf.Int64Value",
        "google.protobuf.FieldMask",
    ];
    let of = |random: &mut Random| match random.one_in(3) {
        true => random.one_of(&OTHERS).to_owned(),
        false => random.one_of(&SCALARS).to_owned(),
    };
    for number in 1..=random.below(5) {
        // Numbers of two bytes, too.
        let tag = if random.one_in(5) { number + 600 } else { number };
        let label = match random.below(4) {
            0 => "repeated ",
            _ if is_proto2 => ["optional ", "required "][usize::from(random.one_in(6))],
            1 => "optional ",
            _ => "",
        };
        let kind = of(random);
        match random.below(8) {
            0 => {
                let key = SCALARS[[0, 1, 3, 7, 12, 13][random.below(6) as usize]];
                out.push_str(&format!("map<{key}, {kind}> f{number} = {tag};\n"));
            }
            1 => out.push_str(&format!(
                "oneof o{number} {{ {kind} f{number} = {tag}; string g{number} = {}; }}\n",
                tag + 1000
            )),
            2 if depth > 0 => {
                out.push_str(&format!("message N{depth}{number} {{\n"));
                proto_fields(random, is_proto2, depth - 1, out);
                out.push_str(&format!("}}\n{label}N{depth}{number} f{number} = {tag};\n"));
            }
            3 if is_proto2 => {
                out.push_str(&format!("{label}group G{number} = {tag} {{ optional int32 a = 1; }}\n"));
            }
            4 if is_proto2 && label == "optional " => {
                out.push_str(&format!("optional sint64 f{number} = {tag} [default = -5];\n"));
            }
            _ => out.push_str(&format!("{label}{kind} f{number} = {tag};\n")),
        }
    }
}

fn proto_schema(random: &mut Random) -> String {
    let is_proto2 = random.one_in(2);
    let mut text = format!("syntax = \"proto{}\";\n", if is_proto2 { 2 } else { 3 });
    for file in ["timestamp", "duration", "struct", "any", "wrappers", "field_mask"] {
        text.push_str(&format!("import \"google/protobuf/{file}.proto\";\n"));
    }
    text.push_str("enum E { A = 0; B = 1; C = -1; }\nmessage M {\n");
    proto_fields(random, is_proto2, 2, &mut text);
    text.push_str("}\n");
    text
}

fn proto_message(random: &mut Random, depth: u64, out: &mut Vec<u8>) {
    for _ in 0..random.below(6) {
        let number = if random.one_in(5) { 600 + random.below(6) } else { random.below(6) };
        let wire = random.below(6);
        varint(out, number << 3 | wire);
        match wire {
            0 => varint(out, random.number(64) as u64),
            1 => out.extend(random.next().to_le_bytes()),
            2 => {
                let mut inner = Vec::new();
                match random.below(3) {
                    0 if depth > 0 => proto_message(random, depth - 1, &mut inner),
                    1 => inner.extend((0..random.below(9)).map(|_| random.below(9) as u8)),
                    _ => inner.extend(b"text"),
                }
                varint(out, inner.len() as u64);
                out.extend(inner);
            }
            3 if depth > 0 => {
                proto_message(random, depth - 1, out);
                varint(out, number << 3 | 4);
            }
            5 => out.extend((random.next() as u32).to_le_bytes()),
            _ => {}
        }
    }
}

#[test]
fn protobuf() {
    let compiled = std::cell::Cell::new(0);
    for_each_seed(|random, about| {
        let schema = proto_schema(random);
        about.clone_from(&schema);
        let rows = rows(random, |random, out| proto_message(random, 3, out));
        for decoder in [ProtobufDecoder::new(&schema, &[], &[]), Ok(ProtobufDecoder::text())] {
            let Ok(mut decoder) = decoder else { continue };
            if decoder.add_writer(1, &schema, &[]).is_err() {
                continue;
            }
            compiled.set(compiled.get() + 1);
            let output = decoder.decode(&payloads(&rows, &[0])).unwrap();
            check(&output, ROWS, decoder.data_type());
            if let Ok(encoder) = ProtobufEncoder::new(&schema, &[], None) {
                _ = encoder.encode(&output.values, b"");
            }
        }
    });
    assert!(compiled.get() > CASES as usize / 2, "{} decoders", compiled.get());
}
