//! Protobuf's JSON of a message, as Google's `json_format` writes it.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::shape::{FieldShape, Form, Shapes, WellKnown};
use super::time::{shown_duration, shown_timestamp};
use super::tree::{Key, Node, Numbered, Tree};
use super::value::{Fields, Value};
use super::wire::Reader;
use crate::budget::Budget;
use crate::failure::{Attempt, Failure};
use crate::not_finite;

/// Reads a message, and writes its JSON. `index` is that of its shape.
pub(crate) fn text_of(
    shapes: &Arc<Shapes>,
    index: usize,
    message: &[u8],
    budget: &mut Budget,
) -> Attempt<Vec<u8>> {
    let mut node = Node::new(Arc::clone(shapes), index, false);
    let mut reader = Reader::new(message, *budget);
    let read = node.read_fields(0, None, &mut reader, 0);
    *budget = reader.budget;
    read?;
    node.close().map_err(|failure| failure.or_at(message.len()))?;
    text(&node, 0, budget)
}

/// The JSON of a message that is complete, and this deep in another.
pub(crate) fn text(node: &Node, depth: u32, budget: &mut Budget) -> Attempt<Vec<u8>> {
    let mut writer = Writer { text: Vec::new(), max: budget.left(), budget };
    writer.message(node, depth)?;
    let text = writer.text;
    budget.spend(text.len())?;
    Ok(text)
}

struct Writer<'a> {
    text: Vec<u8>,
    max: usize,
    budget: &'a mut Budget,
}

impl Writer<'_> {
    fn put(&mut self, text: &[u8]) -> Attempt<()> {
        self.text.extend_from_slice(text);
        if self.text.len() > self.max { Err(self.budget.exceeded()) } else { Ok(()) }
    }

    fn json(&mut self, value: &(impl Serialize + ?Sized)) -> Attempt<()> {
        // Neither text nor numbers fail, and the text grows in memory.
        serde_json::to_writer(&mut self.text, value).map_err(|error| Failure::new(error.to_string()))?;
        self.put(b"")
    }

    /// Text that was checked when it was read.
    fn string(&mut self, bytes: &[u8]) -> Attempt<()> {
        self.json(String::from_utf8_lossy(bytes).as_ref())
    }

    fn message(&mut self, node: &Node, depth: u32) -> Attempt<()> {
        match node.shape().well_known {
            None => {
                self.put(b"{")?;
                self.fields(node, depth, false)?;
                self.put(b"}")
            }
            Some(WellKnown::Any) => self.any(node, depth),
            Some(WellKnown::Duration) => self.time(node, shown_duration),
            Some(WellKnown::Timestamp) => self.time(node, shown_timestamp),
            Some(WellKnown::FieldMask) => self.field_mask(node),
            Some(WellKnown::Value) => self.any_value(node, depth),
            Some(WellKnown::ListValue) => match node.fields.get(&0) {
                Some(list) => self.value(list, depth),
                None => self.put(b"[]"),
            },
            Some(WellKnown::Struct) => match node.fields.get(&0) {
                Some(map) => self.value(map, depth),
                None => self.put(b"{}"),
            },
            Some(WellKnown::Wrapper) => match node.fields.get(&0) {
                Some(value) => self.value(value, depth),
                None => self.value(&node.shape().fields[0].empty(&node.shapes), depth),
            },
        }
    }

    /// The fields of an object, of which some come before.
    fn fields(&mut self, node: &Node, depth: u32, mut comma: bool) -> Attempt<()> {
        for (&index, value) in &node.fields {
            let field = &node.shape().fields[index];
            if is_absent(field, value) {
                continue;
            }
            if std::mem::replace(&mut comma, true) {
                self.put(b",")?;
            }
            self.json(field.json_name.as_ref())?;
            self.put(b":")?;
            self.value(value, depth).map_err(|failure| failure.in_field(&field.name))?;
        }
        Ok(())
    }

    fn value(&mut self, value: &Value<Tree>, depth: u32) -> Attempt<()> {
        match value {
            Value::Int32(number) | Value::SInt32(number) | Value::SFixed32(number) => self.json(&number.0),
            Value::UInt32(number) | Value::Fixed32(number) => self.json(&number.0),
            // Numbers of 64 bits are text, since JavaScript's have 53.
            Value::Int64(number) | Value::SInt64(number) | Value::SFixed64(number) => {
                self.json(&number.0.to_string())
            }
            Value::UInt64(number) | Value::Fixed64(number) => self.json(&number.0.to_string()),
            Value::Float(number) if number.0.is_finite() => self.json(&number.0),
            Value::Float(number) => self.json(not_finite::name(number.0.into())),
            Value::Double(number) if number.0.is_finite() => self.json(&number.0),
            Value::Double(number) => self.json(not_finite::name(number.0)),
            Value::Bool(bit) => self.json(&bit.0),
            Value::String(text) => self.string(&text.0),
            Value::Bytes(bytes) => self.json(&STANDARD.encode(&bytes.0)),
            Value::Enum(number) => self.enumerated(number),
            Value::Message(message) => self.message(message, depth + 1),
            Value::List(list) => {
                self.put(b"[")?;
                for (index, item) in list.items.iter().enumerate() {
                    if index > 0 {
                        self.put(b",")?;
                    }
                    self.value(item, depth)?;
                }
                self.put(b"]")
            }
            Value::Map(map) => {
                self.put(b"{")?;
                for (index, (key, item)) in map.entries.iter().enumerate() {
                    if index > 0 {
                        self.put(b",")?;
                    }
                    match key {
                        Key::Text(key) => self.string(key)?,
                        Key::Number(key) => self.json(&key.to_string())?,
                        Key::Bool(key) => self.json(&key.to_string())?,
                    }
                    self.put(b":")?;
                    self.value(item, depth)?;
                }
                self.put(b"}")
            }
        }
    }

    fn enumerated(&mut self, value: &Numbered) -> Attempt<()> {
        match value.names.find(value.number) {
            _ if value.names.is_null => self.put(b"null"),
            Some(name) => self.json(name),
            None => self.json(&value.number),
        }
    }

    fn time(&mut self, node: &Node, shown: fn(i64, i32) -> Option<String>) -> Attempt<()> {
        let seconds = match node.fields.get(&0) {
            Some(Value::Int64(seconds)) => seconds.0,
            _ => 0,
        };
        let nanos = match node.fields.get(&1) {
            Some(Value::Int32(nanos)) => nanos.0,
            _ => 0,
        };
        match shown(seconds, nanos) {
            Some(text) => self.json(&text),
            None => Err(no_json(format!("{seconds} seconds and {nanos} nanoseconds are out of range"))),
        }
    }

    fn field_mask(&mut self, node: &Node) -> Attempt<()> {
        let mut joined = String::new();
        if let Some(Value::List(paths)) = node.fields.get(&0) {
            for (index, path) in paths.items.iter().enumerate() {
                let Value::String(path) = path else { continue };
                let path = String::from_utf8_lossy(&path.0);
                let camel = camel_case(&path)
                    .ok_or_else(|| no_json(format!("the path {:?} has no camel case", shortened(&path))))?;
                joined.push_str(if index > 0 { "," } else { "" });
                joined.push_str(&camel);
            }
        }
        self.json(&joined)
    }

    fn any_value(&mut self, node: &Node, depth: u32) -> Attempt<()> {
        match node.fields.values().next() {
            None => self.put(b"null"),
            Some(Value::Double(number)) if !number.0.is_finite() => {
                Err(no_json(format!("the number {} of a google.protobuf.Value", number.0)))
            }
            Some(value) => self.value(value, depth),
        }
    }

    fn any(&mut self, node: &Node, depth: u32) -> Attempt<()> {
        let bytes = |index: usize| match node.fields.get(&index) {
            Some(Value::String(bytes) | Value::Bytes(bytes)) => bytes.0.as_ref(),
            _ => &[],
        };
        let (url, value) = (bytes(0), bytes(1));
        if url.is_empty() && value.is_empty() {
            return self.put(b"{}");
        }
        let url = String::from_utf8_lossy(url);
        let name = url.rsplit('/').next().unwrap_or_default();
        let Some(index) = node.shapes.find(name) else {
            return Err(no_json(format!("the schema has no message {:?}", shortened(name))));
        };
        // The bytes are there once more.
        self.budget.spend(value.len())?;
        let mut inner = Node::new(Arc::clone(&node.shapes), index, false);
        let mut reader = Reader::new(value, *self.budget);
        let read = reader
            .check_depth(depth + 1)
            .and_then(|()| inner.read_fields(0, None, &mut reader, depth + 1))
            .and_then(|()| inner.close());
        *self.budget = reader.budget;
        read.map_err(|failure| failure.without_position().in_field("value"))?;
        self.put(b"{\"@type\":")?;
        self.json(url.as_ref())?;
        if inner.shape().well_known.is_some() {
            self.put(b",\"value\":")?;
            self.message(&inner, depth + 1)?;
        } else {
            self.fields(&inner, depth + 1, true)?;
        }
        self.put(b"}")
    }
}

/// True for a value that a message without the field has, too.
fn is_absent(field: &FieldShape, value: &Value<Tree>) -> bool {
    match value {
        Value::List(list) => list.items.is_empty(),
        Value::Map(map) => map.entries.is_empty(),
        _ if field.has_presence || field.form != Form::Single => false,
        Value::Int32(number) | Value::SInt32(number) | Value::SFixed32(number) => number.0 == 0,
        Value::UInt32(number)
        | Value::Fixed32(number)
        | Value::Int64(number)
        | Value::SInt64(number)
        | Value::SFixed64(number) => number.0 == 0,
        Value::UInt64(number) | Value::Fixed64(number) => number.0 == 0,
        // -0.0 is another value.
        Value::Float(number) => number.0.to_bits() == 0,
        Value::Double(number) => number.0.to_bits() == 0,
        Value::Bool(bit) => !bit.0,
        Value::String(bytes) | Value::Bytes(bytes) => bytes.0.is_empty(),
        Value::Enum(number) => number.number == 0,
        Value::Message(_) => false,
    }
}

/// `a_b.c` as `aB.c`; `None` if there is no way back.
fn camel_case(path: &str) -> Option<String> {
    let mut camel = String::with_capacity(path.len());
    let mut after_underscore = false;
    for letter in path.chars() {
        match letter {
            'A'..='Z' => return None,
            'a'..='z' if after_underscore => camel.push(letter.to_ascii_uppercase()),
            _ if after_underscore => return None,
            '_' => {}
            _ => camel.push(letter),
        }
        after_underscore = letter == '_';
    }
    (!after_underscore).then_some(camel)
}

fn no_json(reason: String) -> Failure {
    Failure::new(format!("it has no JSON form: {reason}"))
}

fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(100)]
}

#[cfg(test)]
mod tests {
    use super::camel_case;

    #[test]
    fn paths_of_a_field_mask() {
        let cases = [
            ("a_b.c_d", Some("aB.cD")),
            ("a", Some("a")),
            ("", Some("")),
            ("A", None),
            ("a_", None),
            ("a__b", None),
            ("a_1", None),
        ];
        for (path, camel) in cases {
            assert_eq!(camel_case(path).as_deref(), camel, "{path:?}");
        }
    }
}
