//! The quick way and serde_json agree: random shapes, random values, and damage.

use super::quick;
use super::shape::Shape;
use super::value::{self, Values};
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
const NUMBERS: [&str; 24] = [
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
    "9007199254740993.0",
    "1e308",
    "1e309",
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

fn value(random: &mut Random, of: &Shape, depth: u64, out: &mut String) {
    if random.one_in(8) {
        return out.push_str("null");
    }
    // What the column does not expect, too.
    let other;
    let of = match of {
        Shape::Any => {
            other = shape(random, depth);
            &other
        }
        _ if random.one_in(40) => {
            other = shape(random, depth);
            &other
        }
        of => of,
    };
    match of {
        Shape::Integer if !random.one_in(8) => out.push_str(&random.number(64).to_string()),
        Shape::Number if !random.one_in(8) => {
            out.push_str(&(random.number(64) as f64 / (1_u64 << random.below(64)) as f64).to_string());
        }
        Shape::Integer | Shape::Number => {
            let range = if random.one_in(4) { 0..NUMBERS.len() } else { 0..8 };
            out.push_str(random.one_of(&NUMBERS[range]));
        }
        Shape::Boolean => out.push_str(random.one_of(&["true", "false"])),
        Shape::String | Shape::Any => {
            let range = if random.one_in(4) { 0..STRINGS.len() } else { 0..9 };
            out.push_str(&format!("\"{}\"", random.one_of(&STRINGS[range])));
        }
        Shape::Array(of) => {
            out.push('[');
            let count = random.below(4) as usize;
            items(random, out, count, |random, out, _| value(random, of, depth.saturating_sub(1), out));
            out.push(']');
        }
        Shape::Object(fields) => {
            out.push('{');
            let (order, kept) = (random.below(3) as usize, 1 + random.below(fields.len() as u64) as usize);
            items(random, out, fields.len(), |random, out, index| {
                let (name, of) = match random.below(30) {
                    0 => ("unknown", &Shape::Any),
                    _ => {
                        let field =
                            &fields[(index + order / 2) % if order == 0 { kept } else { fields.len() }];
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
                value(random, of, depth.saturating_sub(1), out);
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

#[test]
fn the_quick_way_and_serde_json_agree() {
    let (mut quickly, mut rows, mut good) = (0, 0, 0);
    for seed in 1..=CASES {
        let random = &mut Random::new(seed);
        let shape = shape(random, 3);
        let (mut ours, data_type) = Values::new(&shape);
        let (mut theirs, _) = Values::new(&shape);
        for row in 0..ROWS {
            let mut text = String::new();
            value(random, &shape, 3, &mut text);
            if random.one_in(4) {
                damage(random, &mut text);
            }
            let mut budget = Budget::new(0);
            budget.begin(text.len());
            let read = value::read(&text, &mut theirs, &mut budget.clone());
            let is_good = read.is_ok();
            if let Err(failure) = read {
                assert!(!failure.is_full());
                theirs.truncate(row);
                theirs.close_row().ok().unwrap();
            }
            rows += 1;
            good += usize::from(is_good);
            match quick::read(&text, &mut ours, &mut budget) {
                Some(()) => {
                    assert!(is_good, "{seed}: {text}");
                    quickly += 1;
                }
                None => {
                    ours.truncate(row);
                    if value::read(&text, &mut ours, &mut budget).is_err() {
                        ours.truncate(row);
                        ours.close_row().ok().unwrap();
                    }
                }
            }
            assert_eq!((ours.len(), theirs.len()), (row + 1, row + 1), "{seed}: {text}");
        }
        let (ours, theirs) = (ours.finish(), theirs.finish());
        assert_eq!(ours.data_type(), &data_type);
        assert_eq!(&ours, &theirs, "{seed}: {shape:?}");
    }
    assert!(good > rows / 2 && good < rows, "{good} of {rows} payloads are good");
    assert!(quickly > good * 4 / 5, "{quickly} of {good} good payloads are read the quick way");
}
