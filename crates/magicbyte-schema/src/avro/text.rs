//! Payloads as JSON, by a plan.

use std::collections::HashMap;
use std::fmt::{Debug, Write as _};
use std::ops::Range;

use super::cursor::{Cursor, MAX_DEPTH};
use super::decimal::put_digits;
use super::plan::{Choice, Encoded, Items, Node, NodeId, Plan, Record, Step};
use super::read::{micros, unknown_symbol, utf8};
use super::time;
use super::types::{Field, Kind, Logical, Type, TypeId, Types};
use crate::budget::Budget;
use crate::failure::Attempt;
use crate::not_finite;

impl Plan {
    /// A payload of the writer's types as JSON: bytes as in Avro's JSON (a character U+0000 to U+00FF each), decimals as
    /// text, dates and timestamps as in ISO 8601, a union as the value in it.
    pub(super) fn text(
        &self,
        writer: &Types,
        reader: &Types,
        payload: &[u8],
        budget: &mut Budget,
    ) -> Attempt<String> {
        let mut cursor = Cursor::new(writer, payload, budget);
        let mut text = Text { plan: self, reader, out: String::new(), depth: 0 };
        text.value(self.root, reader.root, &mut cursor)?;
        cursor.end()?;
        cursor.spend(text.out.len())?;
        Ok(text.out)
    }
}

struct Text<'a> {
    plan: &'a Plan,
    reader: &'a Types,
    out: String,
    depth: usize,
}

impl<'a> Text<'a> {
    /// Writes a value; `id` is the reader's type of it.
    fn value(&mut self, node: NodeId, id: TypeId, cursor: &mut Cursor<'a>) -> Attempt<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(cursor.too_deep());
        }
        let Type { kind, logical } = self.reader.get(id);
        let start = cursor.position;
        match &self.plan.nodes[node] {
            Node::Null => self.out.push_str("null"),
            Node::Boolean => self.out.push_str(if cursor.boolean()? { "true" } else { "false" }),
            Node::Int | Node::IntAsFloat => {
                let value = cursor.int("an int")?.into();
                self.number(value, kind, *logical).map_err(|failure| failure.or_at(start))?;
            }
            Node::Long | Node::LongAsFloat => {
                let value = cursor.long("a long")?;
                self.number(value, kind, *logical).map_err(|failure| failure.or_at(start))?;
            }
            Node::Float => {
                let value = f32::from_le_bytes(cursor.array("a float")?);
                match kind {
                    Kind::Double => self.real(f64::from(value)),
                    _ => self.real(value),
                }
            }
            Node::Double => self.real(f64::from_le_bytes(cursor.array("a double")?)),
            Node::Sized => {
                let bytes = cursor.sized("bytes or a string")?;
                self.bytes(bytes, kind, *logical, start, cursor).map_err(|failure| failure.or_at(start))?;
            }
            Node::Fixed(size) => {
                let bytes = cursor.bytes(*size, "a fixed")?;
                self.bytes(bytes, kind, *logical, start, cursor).map_err(|failure| failure.or_at(start))?;
            }
            Node::Enum(symbols) => {
                let symbol = cursor.one_of(symbols, "the symbol of an enum")?;
                self.string(symbol.as_ref().map_err(|symbol| unknown_symbol(start, symbol))?);
            }
            Node::Union(choices) => {
                let choice = cursor.one_of(choices, "the branch of a union")?;
                self.choice(*choice, id, cursor)?;
            }
            Node::Branch(choice) => self.choice(*choice, id, cursor)?,
            Node::Array(items) => self.array(items, kind, cursor)?,
            Node::Map(items) => self.map(items, kind, cursor)?,
            Node::Record(record) => self.record(record, kind, cursor)?,
            Node::Refused(reason) => return Err(cursor.fault(reason.to_string())),
        }
        self.depth -= 1;
        self.check(cursor)
    }

    /// Fails if the text is longer than the budget allows.
    fn check(&self, cursor: &Cursor<'_>) -> Attempt<()> {
        if self.out.len() > cursor.budget.left() {
            return Err(cursor.budget.exceeded().or_at(cursor.position));
        }
        Ok(())
    }

    fn choice(&mut self, choice: Choice, id: TypeId, cursor: &mut Cursor<'a>) -> Attempt<()> {
        let of = match &self.reader.get(id).kind {
            Kind::Union(branches) => branches[choice.branch],
            _ => id,
        };
        self.value(choice.node, of, cursor)
    }

    fn array(&mut self, items: &Items, kind: &Kind, cursor: &mut Cursor<'a>) -> Attempt<()> {
        let Kind::Array(of) = *kind else { return Err(cursor.fault(MISMATCH)) };
        self.out.push('[');
        let mut separator = "";
        cursor.blocks(|cursor| {
            self.out.push_str(std::mem::replace(&mut separator, ","));
            self.value(items.node, of, cursor)
        })?;
        self.out.push(']');
        Ok(())
    }

    /// Of several entries with one key, the last one counts, as in Java.
    fn map(&mut self, items: &Items, kind: &Kind, cursor: &mut Cursor<'a>) -> Attempt<()> {
        let Kind::Map(of) = *kind else { return Err(cursor.fault(MISMATCH)) };
        // Each entry's key, and its place in the text.
        let mut entries: Vec<(&[u8], Range<usize>)> = Vec::new();
        let begin = self.out.len();
        cursor.blocks(|cursor| {
            let start = cursor.position;
            let key = cursor.sized("a key")?;
            let from = self.out.len();
            self.string(utf8(key, start)?);
            self.out.push(':');
            self.value(items.node, of, cursor)?;
            entries.push((key, from..self.out.len()));
            Ok(())
        })?;
        let text = self.out.split_off(begin);
        let last: HashMap<&[u8], usize> = entries.iter().map(|(key, _)| *key).zip(0..).collect();
        self.out.push('{');
        let mut separator = "";
        for (index, (key, place)) in entries.into_iter().enumerate() {
            if last.get(key) == Some(&index) {
                self.out.push_str(std::mem::replace(&mut separator, ","));
                self.out.push_str(&text[place.start - begin..place.end - begin]);
            }
        }
        self.out.push('}');
        Ok(())
    }

    /// The fields that the writer has, in its order, and then the defaults of the others.
    fn record(&mut self, record: &'a Record, kind: &'a Kind, cursor: &mut Cursor<'a>) -> Attempt<()> {
        let Kind::Record { fields, .. } = kind else { return Err(cursor.fault(MISMATCH)) };
        self.out.push('{');
        let mut separator = "";
        for step in &record.steps {
            match *step {
                Step::Read { field, node } => {
                    let field = &fields[field];
                    self.name(&mut separator, field);
                    self.value(node, field.of, cursor).map_err(|failure| failure.in_field(&field.name))?;
                }
                Step::Skip(id) => cursor.skip(id, self.depth)?,
            }
        }
        for default in &record.defaults {
            let field = &fields[default.field];
            self.name(&mut separator, field);
            match &default.value {
                None => self.out.push_str("null"),
                Some(Encoded { payload, node }) => cursor
                    .within(payload, |cursor| self.value(*node, field.of, cursor))
                    .map_err(|failure| failure.in_field(&field.name))?,
            }
        }
        self.out.push('}');
        Ok(())
    }

    fn name(&mut self, separator: &mut &str, field: &Field) {
        self.out.push_str(std::mem::replace(separator, ","));
        self.string(&field.name);
        self.out.push(':');
    }

    fn number(&mut self, value: i64, kind: &Kind, logical: Logical) -> Attempt<()> {
        match (kind, logical) {
            (Kind::Float, _) => self.real(value as f32),
            (Kind::Double, _) => self.real(value as f64),
            (_, Logical::Date) => time::put_date(&mut self.out, value),
            (_, Logical::TimestampMillis | Logical::LocalTimestampMillis) => {
                let utc = logical == Logical::TimestampMillis;
                time::put_timestamp(&mut self.out, micros(value)?, utc);
            }
            (_, Logical::TimestampMicros) => time::put_timestamp(&mut self.out, value, true),
            (_, Logical::LocalTimestampMicros) => time::put_timestamp(&mut self.out, value, false),
            _ => write_into(&mut self.out, format_args!("{value}")),
        }
        Ok(())
    }

    fn real<F: Debug + Into<f64> + Copy>(&mut self, value: F) {
        let number: f64 = value.into();
        match number.is_finite() {
            true => write_into(&mut self.out, format_args!("{value:?}")),
            false => self.string(not_finite::name(number)),
        }
    }

    fn bytes(
        &mut self,
        bytes: &[u8],
        kind: &Kind,
        logical: Logical,
        start: usize,
        cursor: &Cursor<'_>,
    ) -> Attempt<()> {
        match (kind, logical) {
            (Kind::String, _) => self.string(utf8(bytes, start)?),
            (_, Logical::Decimal { scale, .. }) => {
                self.out.push('"');
                let room = cursor.budget.left().saturating_sub(self.out.len());
                put_digits(&mut self.out, bytes, scale as usize, room)?;
                self.out.push('"');
            }
            _ => {
                let text: String = bytes.iter().map(|&byte| char::from(byte)).collect();
                self.string(&text);
            }
        }
        Ok(())
    }

    fn string(&mut self, text: &str) {
        // JSON has a form for any text.
        self.out.push_str(&serde_json::to_string(text).unwrap_or_default());
    }
}

/// The reason of an error that would be one of the plan.
const MISMATCH: &str = "the plan has another type than the reader's schema";

fn write_into(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = out.write_fmt(text);
}
