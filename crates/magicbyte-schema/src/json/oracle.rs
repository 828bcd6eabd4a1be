//! serde_json reads the same from random payloads of random shapes, many of them damaged.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use magicbyte_json::unpaired_surrogate;
use serde_json::Value;

use super::columns::Values;
use super::integers::Integers;
use super::read::read;
use super::shape::Shape;
use crate::budget::Budget;
use crate::columns::Column;
use crate::random::Random;

const CASES: u64 = 1500;
const ROWS: usize = 24;

const NAMES: [&str; 5] = ["a", "id", "customer", "a \"quoted\" name", "größe"];
const STRINGS: [&str; 14] = [
    "",
    "a",
    "a text of eight",
    "16 bytes, grün.",
    "a text that is longer than a few words of 8 bytes",
    r"\n",
    r#"a \"quoted\" word"#,
    r"a \\ at 8 \\",
    r"\u00fc\ud83d\ude00",
    r"\ud83d",
    r"\x",
    "a tab\t",
    "\u{7f}\u{80}\u{10ffff}",
    r"ends with \",
];
/// Numbers, and at the end some that are invalid.
const NUMBERS: [&str; 22] = [
    "0",
    "-0",
    "1",
    "-17",
    "1.0",
    "-2.5",
    "1e3",
    "1E-2",
    "0.1e+1",
    "45.81234567890123",
    "999999999999999999",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "1e308",
    "01",
    "1.",
    ".5",
    "+1",
    "NaN",
];

fn shape(random: &mut Random, depth: u64) -> Shape {
    match random.below(if depth == 0 { 5 } else { 8 }) {
        0 => Shape::Integer,
        1 => Shape::Number,
        2 => Shape::Boolean,
        3 => Shape::String,
        4 => Shape::Any,
        5 => Shape::Array(Box::new(shape(random, depth - 1))),
        _ => {
            let count = 1 + random.below(NAMES.len() as u64) as usize;
            Shape::Object(
                NAMES[..count].iter().map(|&name| (name.into(), shape(random, depth - 1))).collect(),
            )
        }
    }
}

fn space(random: &mut Random, out: &mut String) {
    if random.one_in(5) {
        out.push_str(random.one_of(&[" ", "  ", "\n", "\r\n\t"]));
    }
}

fn items(
    random: &mut Random,
    out: &mut String,
    count: usize,
    mut item: impl FnMut(&mut Random, &mut String, usize),
) {
    space(random, out);
    for index in 0..count {
        if index > 0 {
            out.push(',');
        }
        space(random, out);
        item(random, out, index);
        space(random, out);
    }
}

/// `repeats` names of objects, or else has values of other types, too: of a name that comes twice, serde_json forgets the
/// first value, whatever it is.
fn value(random: &mut Random, of: &Shape, depth: u64, repeats: bool, out: &mut String) {
    if random.one_in(8) {
        return out.push_str("null");
    }
    // What the column does not expect, too.
    let other;
    let of = match of {
        Shape::Several | Shape::Any => {
            other = shape(random, depth);
            &other
        }
        _ if !repeats && random.one_in(40) => {
            other = shape(random, depth);
            &other
        }
        of => of,
    };
    match of {
        Shape::Integer if repeats || !random.one_in(8) => out.push_str(&random.number(64).to_string()),
        Shape::Number if !random.one_in(8) => {
            out.push_str(&(random.number(64) as f64 / (1_u64 << random.below(64)) as f64).to_string());
        }
        Shape::Integer | Shape::LongInteger | Shape::Number => {
            let range = if random.one_in(4) { 0..NUMBERS.len() } else { 0..8 };
            out.push_str(random.one_of(&NUMBERS[range]));
        }
        Shape::Boolean => out.push_str(random.one_of(&["true", "false"])),
        Shape::String | Shape::Several | Shape::Any | Shape::Sometimes(_) => {
            let range = if random.one_in(4) { 0..STRINGS.len() } else { 0..9 };
            out.push_str(&format!("\"{}\"", random.one_of(&STRINGS[range])));
        }
        Shape::Array(of) => {
            out.push('[');
            let count = random.below(4) as usize;
            items(random, out, count, |random, out, _| {
                value(random, of, depth.saturating_sub(1), repeats, out);
            });
            out.push(']');
        }
        Shape::Object(fields) => {
            out.push('{');
            let (order, kept) = (random.below(3) as usize, 1 + random.below(fields.len() as u64) as usize);
            items(random, out, fields.len(), |random, out, index| {
                let (name, of) = match random.below(30) {
                    0 => ("unknown", &Shape::Any),
                    _ => {
                        let field = &fields
                            [(index + order / 2) % if repeats && order == 0 { kept } else { fields.len() }];
                        (field.0.as_str(), &field.1)
                    }
                };
                let name = match random.below(20) {
                    0 => name.replace('a', r"\u0061").replace('"', "\\\""),
                    _ => name.replace('"', "\\\""),
                };
                out.push_str(&format!("\"{name}\""));
                space(random, out);
                out.push(':');
                space(random, out);
                value(random, of, depth.saturating_sub(1), repeats, out);
            });
            out.push('}');
        }
    }
}

/// Another byte somewhere, one more or one less, or the end cut off.
fn damage(random: &mut Random, text: &mut String) {
    let ascii: Vec<usize> = text.char_indices().filter(|at| at.1.is_ascii()).map(|at| at.0).collect();
    let position = match ascii.len() {
        0 => return,
        count => ascii[random.below(count as u64) as usize],
    };
    let byte =
        random.one_of(&["\"", "\\", ",", ":", "{", "}", "[", "]", "0", "e", "n", ".", "-", "\u{1}", " "]);
    match random.below(4) {
        0 => text.truncate(position),
        1 => text.insert_str(position, byte),
        2 => text.replace_range(position..=position, ""),
        _ => text.replace_range(position..=position, byte),
    }
}

/// True if every number has the digits that tell whether it is an integer of 64 bits.
fn is_exact(value: &Value) -> bool {
    match value {
        Value::Number(number) if number.is_f64() => {
            let size = number.as_f64().map_or(0.0, f64::abs);
            !(2_f64.powi(50)..2_f64.powi(64)).contains(&size)
        }
        Value::Array(items) => items.iter().all(is_exact),
        Value::Object(properties) => properties.values().all(is_exact),
        _ => true,
    }
}

/// The value as a column of this shape has it, and whether a number was lost; `None` if it is of another type.
fn fitted(value: &Value, shape: &Shape) -> Option<(Value, bool)> {
    Some(match (value, shape) {
        (Value::Null, _) => (Value::Null, false),
        (Value::Number(number), Shape::Integer) => match (number.as_i64(), number.as_f64()?) {
            (Some(integer), _) => (integer.into(), false),
            (None, float) if float.fract() != 0.0 => return None,
            (None, float) if float.abs() < 2_f64.powi(50) => ((float as i64).into(), false),
            _ => (Value::Null, true),
        },
        (Value::Number(number), Shape::Number) => (number.as_f64()?.into(), false),
        (Value::Bool(_), Shape::Boolean) | (Value::String(_), Shape::String) | (_, Shape::Any) => {
            (value.clone(), false)
        }
        (Value::Array(items), Shape::Array(of)) => {
            let items = items.iter().map(|item| fitted(item, of)).collect::<Option<Vec<_>>>()?;
            let is_lost = items.iter().any(|item| item.1);
            (items.into_iter().map(|item| item.0).collect(), is_lost)
        }
        (Value::Object(properties), Shape::Object(fields)) => {
            let mut is_lost = false;
            let mut members = serde_json::Map::new();
            for (name, shape) in fields {
                let (value, lost) = fitted(properties.get(name).unwrap_or(&Value::Null), shape)?;
                is_lost |= lost;
                members.insert(name.clone(), value);
            }
            (Value::Object(members), is_lost)
        }
        _ => return None,
    })
}

/// A row of a column.
fn found(array: &ArrayRef, row: usize, shape: &Shape) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    match shape {
        Shape::Integer | Shape::LongInteger => array.as_primitive::<Int64Type>().value(row).into(),
        Shape::Number => array.as_primitive::<Float64Type>().value(row).into(),
        Shape::Boolean => array.as_boolean().value(row).into(),
        Shape::String => array.as_string::<i32>().value(row).into(),
        Shape::Several | Shape::Any | Shape::Sometimes(_) => {
            serde_json::from_str(array.as_string::<i32>().value(row)).unwrap()
        }
        Shape::Array(of) => {
            let items = array.as_list::<i32>().value(row);
            (0..items.len()).map(|index| found(&items, index, of)).collect()
        }
        Shape::Object(fields) => {
            let columns = fields.iter().zip(array.as_struct().columns());
            columns.map(|((name, shape), column)| (name.clone(), found(column, row, shape))).collect()
        }
    }
}

#[test]
fn serde_json_reads_the_same() {
    let (mut rows, mut good, mut lost) = (0, 0, 0);
    for seed in 1..=CASES {
        let random = &mut Random::new(seed);
        let shape = shape(random, 3);
        let (mut column, data_type) = Values::new(&shape, Integers::Int64);
        let mut expected = Vec::new();
        while expected.len() < ROWS {
            let mut text = String::new();
            let repeats = random.one_in(2);
            value(random, &shape, 3, repeats, &mut text);
            if !repeats && random.one_in(2) {
                damage(random, &mut text);
            }
            // The decoder refuses it before.
            if unpaired_surrogate(&text).is_some() {
                continue;
            }
            let parsed = match serde_json::from_str::<Value>(&text) {
                Ok(value) if !is_exact(&value) => continue,
                Err(error) if error.to_string().starts_with("number out of range") => continue,
                parsed => parsed.ok(),
            };
            let theirs = parsed.and_then(|value| fitted(&value, &shape));
            let mut budget = Budget::new(0);
            budget.begin(text.len());
            let row = expected.len();
            match (read(&text, &mut column, &mut budget), &theirs) {
                (Ok(ours), Some((_, is_lost))) => {
                    // Of a name that comes twice, the first value may be one that was lost.
                    assert!(ours.is_some() >= *is_lost, "{seed}: {text}");
                    good += 1;
                    lost += usize::from(*is_lost);
                }
                (Err(failure), None) => {
                    assert!(failure.position().is_some_and(|at| at <= text.len()), "{text}");
                    column.truncate(row);
                    column.close_row().ok().unwrap();
                }
                (ours, _) => panic!("{seed}: {text}: {:?}", ours.map(|_| ()).map_err(|f| f.text())),
            }
            assert_eq!(column.len(), row + 1, "{seed}: {text}");
            expected.push((theirs.map_or(Value::Null, |row| row.0), text));
        }
        rows += ROWS;
        let column = column.finish();
        assert_eq!(column.data_type(), &data_type);
        for (row, (expected, text)) in expected.iter().enumerate() {
            assert_eq!(&found(&column, row, &shape), expected, "{seed}: {text}");
        }
    }
    assert!(good > rows / 2 && good < rows, "{good} of {rows} payloads are good");
    assert!(lost > 0, "no number was lost");
}
