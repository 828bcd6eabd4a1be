//! Plans and arrow-avro agree: random schemas of writers and readers, random values, and damage.

use serde_json::{Value, json};

use super::decoder::AvroDecoder;
use crate::payload::Payload;
use crate::random::Random;

const CASES: u64 = 1500;
const ROWS: usize = 24;

fn schema(random: &mut Random, depth: u64, names: &mut u32) -> Value {
    const PLAIN: [&str; 8] = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"];
    const LOGICAL: [(&str, &str); 6] = [
        ("int", "date"),
        ("long", "timestamp-millis"),
        ("long", "timestamp-micros"),
        ("long", "local-timestamp-millis"),
        ("long", "local-timestamp-micros"),
        ("string", "uuid"),
    ];
    *names += 1;
    let name = format!("N{names}");
    match random.below(if depth == 0 { 11 } else { 16 }) {
        kind @ 0..8 => json!(PLAIN[kind as usize]),
        8 => {
            let (of, logical) = LOGICAL[random.below(6) as usize];
            json!({"type": of, "logicalType": logical})
        }
        9 => json!({"type": "fixed", "name": name, "size": random.below(5) + 1}),
        10 => json!({"type": "enum", "name": name, "symbols": ["A", "B", "C"]}),
        11 => json!({"type": "array", "items": schema(random, depth - 1, names)}),
        12 => json!({"type": "map", "values": schema(random, depth - 1, names)}),
        13 | 14 => {
            let of = schema(random, depth - 1, names);
            if of.is_array() || of == "null" {
                return json!(["null", "long"]);
            }
            if random.one_in(2) { json!(["null", of]) } else { json!([of, "null"]) }
        }
        _ => record(random, depth - 1, names, &name),
    }
}

fn record(random: &mut Random, depth: u64, names: &mut u32, name: &str) -> Value {
    let field = |index| json!({"name": format!("f{index}"), "type": schema(random, depth, names)});
    let fields: Vec<_> = (0..1 + name.len() % 3 + 2).map(field).collect();
    json!({"type": "record", "name": name, "fields": fields})
}

/// A schema that may read what this one has written.
fn evolved(random: &mut Random, schema: &Value) -> Value {
    match schema {
        Value::String(name) if random.one_in(4) => match &name[..] {
            "int" => json!(["long", "float", "double"][random.below(3) as usize]),
            "long" => json!(["float", "double"][random.below(2) as usize]),
            "float" => json!("double"),
            _ => schema.clone(),
        },
        Value::Array(branches) => {
            json!(branches.iter().map(|branch| evolved(random, branch)).collect::<Vec<_>>())
        }
        Value::Object(object) => {
            let mut object = object.clone();
            for part in ["items", "values"] {
                if let Some(of) = object.get_mut(part) {
                    *of = evolved(random, of);
                }
            }
            if let Some(Value::Array(fields)) = object.get_mut("fields") {
                if fields.len() > 1 && random.one_in(4) {
                    fields.remove(random.below(fields.len() as u64) as usize);
                }
                for field in fields.iter_mut() {
                    field["type"] = evolved(random, &field["type"]);
                }
                if random.one_in(4) {
                    fields.insert(0, json!({"name": "added", "type": ["null", "string"], "default": null}));
                }
                if random.one_in(4) {
                    fields.reverse();
                }
            }
            Value::Object(object)
        }
        _ => schema.clone(),
    }
}

fn varint(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn blocks(random: &mut Random, out: &mut Vec<u8>, mut item: impl FnMut(&mut Random, &mut Vec<u8>)) {
    for _ in 0..random.below(3) {
        let most = if random.one_in(50) { 1500 } else { 3 };
        let count = 1 + random.below(most) as i64;
        let mut items = Vec::new();
        for _ in 0..count {
            item(random, &mut items);
        }
        if random.one_in(2) {
            varint(out, -count);
            varint(out, items.len() as i64);
        } else {
            varint(out, count);
        }
        out.extend(items);
    }
    out.push(0);
}

fn text(random: &mut Random, out: &mut Vec<u8>) {
    let text = &"grün, 8 × 1 byte or more"[..[0, 1, 2, 11][random.below(4) as usize]];
    varint(out, text.len() as i64);
    out.extend(text.as_bytes());
}

fn value(random: &mut Random, schema: &Value, out: &mut Vec<u8>) {
    if let Value::Array(branches) = schema {
        let branch = random.below(branches.len() as u64);
        varint(out, branch as i64);
        return value(random, &branches[branch as usize], out);
    }
    match schema.as_str().or_else(|| schema["type"].as_str()).unwrap() {
        "null" => {}
        "boolean" => out.push(random.below(2) as u8),
        "int" => varint(out, random.number(32)),
        "long" => varint(out, random.number(64)),
        "float" => out.extend((random.next() as f32).to_le_bytes()),
        "double" => out.extend((random.next() as f64).to_le_bytes()),
        "bytes" | "string" => text(random, out),
        "fixed" => out.extend((0..schema["size"].as_u64().unwrap()).map(|byte| byte as u8)),
        "enum" => varint(out, random.below(3) as i64),
        "array" => blocks(random, out, |random, out| value(random, &schema["items"], out)),
        "map" => blocks(random, out, |random, out| {
            text(random, out);
            value(random, &schema["values"], out);
        }),
        _ => {
            for field in schema["fields"].as_array().unwrap() {
                value(random, &field["type"], out);
            }
        }
    }
}

#[test]
fn plans_and_arrow_avro_agree() {
    let mut planned = 0;
    for seed in 1..=CASES {
        let random = &mut Random::new(seed);
        let writer = schema(random, 3, &mut 0);
        let reader = if random.one_in(2) { evolved(random, &writer) } else { writer.clone() };
        let decoder = || {
            let mut decoder = AvroDecoder::new(&reader.to_string(), &[]).ok()?;
            decoder.add_writer(1, &writer.to_string(), &[]).ok()?;
            Some(decoder)
        };
        let Some((mut by_plan, mut by_arrow)) = decoder().zip(decoder()) else { continue };
        if !by_arrow.forget_plans() {
            continue;
        }
        planned += 1;
        let rows: Vec<Option<Vec<u8>>> = (0..ROWS)
            .map(|_| {
                let mut payload = Vec::new();
                value(random, &writer, &mut payload);
                if random.one_in(4) {
                    random.damage(&mut payload);
                }
                (!random.one_in(10)).then_some(payload)
            })
            .collect();
        let payloads: Vec<_> = rows
            .iter()
            .map(|bytes| Payload { bytes: bytes.as_deref(), writer: 1, message_indexes: &[] })
            .collect();
        let (ours, theirs) = (by_plan.decode(&payloads).unwrap(), by_arrow.decode(&payloads).unwrap());
        assert_eq!(&ours.values, &theirs.values, "{seed}: {writer} as {reader}");
        let places = |errors: &[crate::RowError]| -> Vec<_> {
            errors.iter().map(|error| (error.row, error.position)).collect()
        };
        assert_eq!(places(&ours.errors), places(&theirs.errors), "{seed}: {writer} as {reader}");
    }
    assert!(planned > CASES / 2, "{planned} of {CASES} cases have plans");
}
