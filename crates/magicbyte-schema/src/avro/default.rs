//! The defaults of a schema, which are JSON, as payloads (Java's `ResolvingGrammarGenerator.encode`).

use serde_json::{Map, Number, Value};

use super::types::{Kind, TypeId, Types, shown};
use crate::budget::MAX_ROW;
use crate::varint;

/// The room that is left for the defaults of a plan: records of a short schema multiply, and Java pads a fixed to any
/// size.
pub(super) struct Room {
    bytes: usize,
    /// Counts those of the defaults in a default.
    values: usize,
}

impl Room {
    pub(super) fn new() -> Self {
        Self { bytes: MAX_ROW, values: MAX_VALUES }
    }

    /// Writes a default of this type as Avro does.
    ///
    /// # Errors
    /// The reason why it is not a value of the type.
    pub(super) fn payload(
        &mut self,
        types: &Types,
        id: TypeId,
        default: &Value,
    ) -> Result<Box<[u8]>, String> {
        let mut writer = Writer { types, out: Vec::new(), room: self };
        writer.write_of_field(id, default, 0)?;
        let out = writer.out;
        self.bytes = self.bytes.saturating_sub(out.len());
        Ok(out.into_boxed_slice())
    }
}

const MAX_VALUES: usize = 1 << 20;
/// The nesting depth of its values: the default of a record may have the record in it.
const MAX_DEPTH: usize = 100;

struct Writer<'a> {
    types: &'a Types,
    out: Vec<u8>,
    room: &'a mut Room,
}

impl Writer<'_> {
    /// Writes the default of a field. Java makes a number of one that is text, but not of text inside another default.
    fn write_of_field(&mut self, id: TypeId, default: &Value, depth: usize) -> Result<(), String> {
        let number = default.as_str().and_then(number_in);
        match (&self.types.get(id).kind, number) {
            (Kind::Float, Some(number)) => self.out.extend((number as f32).to_le_bytes()),
            (Kind::Double, Some(number)) => self.out.extend(number.to_le_bytes()),
            _ => self.write(id, default, depth)?,
        }
        Ok(())
    }

    fn write(&mut self, id: TypeId, value: &Value, depth: usize) -> Result<(), String> {
        self.room.values = self.room.values.saturating_sub(1);
        if depth > MAX_DEPTH || self.room.values == 0 || self.out.len() > self.room.bytes {
            return Err(too_large());
        }
        let types = self.types;
        match (&types.get(id).kind, value) {
            (Kind::Null, Value::Null) => {}
            (Kind::Boolean, &Value::Bool(value)) => self.out.push(value.into()),
            (Kind::Int, Value::Number(number)) => self.put_long(int(number).into()),
            (Kind::Long, Value::Number(number)) => self.put_long(long(number)),
            (Kind::Float, Value::Number(number)) => self.out.extend((double(number) as f32).to_le_bytes()),
            (Kind::Double, Value::Number(number)) => self.out.extend(double(number).to_le_bytes()),
            (Kind::String, Value::String(text)) => self.put_bytes(text.as_bytes()),
            (Kind::Bytes, Value::String(text)) => self.put_bytes(&latin1(text)),
            (&Kind::Fixed { size, .. }, Value::String(text)) => {
                if size > self.room.bytes {
                    return Err(too_large());
                }
                let mut bytes = latin1(text);
                bytes.resize(size, 0);
                self.out.extend(bytes);
            }
            (Kind::Enum { symbols, .. }, Value::String(text)) => {
                let Some(symbol) = symbols.iter().position(|symbol| symbol == text) else {
                    return Err(format!("{} is not a symbol of the enum", shown(value)));
                };
                self.put_long(symbol as i64);
            }
            (&Kind::Array(item), _) => self.write_items(item, &items(value), depth)?,
            (&Kind::Map(of), _) => self.write_entries(of, value.as_object(), depth)?,
            (Kind::Union(branches), _) => self.write_branch(branches, value, depth)?,
            (Kind::Record { fields, .. }, _) => {
                for field in fields {
                    match (value.get(&field.name), &field.default) {
                        (Some(value), _) => self.write(field.of, value, depth + 1)?,
                        (None, Some(default)) => self.write_of_field(field.of, default, depth + 1)?,
                        (None, None) => {
                            return Err(format!("its field {} has no value and no default", field.name));
                        }
                    }
                }
            }
            (kind, _) => return Err(format!("{}: expected {}", shown(value), kind.word())),
        }
        Ok(())
    }

    /// The first branch that the value may be. Java fails if it is not; here, the next one is tried.
    fn write_branch(&mut self, branches: &[TypeId], value: &Value, depth: usize) -> Result<(), String> {
        let types = self.types;
        let mut failed = None;
        for (index, &branch) in branches.iter().enumerate() {
            if takes(&types.get(branch).kind, value) {
                let start = self.out.len();
                self.put_long(index as i64);
                match self.write(branch, value, depth + 1) {
                    Ok(()) => return Ok(()),
                    Err(reason) => failed = failed.or(Some(reason)),
                }
                self.out.truncate(start);
            }
        }
        Err(failed.unwrap_or_else(|| format!("{} is not a value of any type of the union", shown(value))))
    }

    /// A block, which an array without items does not have, and the end of the blocks.
    fn write_items(&mut self, item: TypeId, values: &[&Value], depth: usize) -> Result<(), String> {
        if !values.is_empty() {
            self.put_long(values.len() as i64);
            values.iter().try_for_each(|value| self.write(item, value, depth + 1))?;
        }
        self.put_long(0);
        Ok(())
    }

    fn write_entries(
        &mut self,
        of: TypeId,
        // To Jackson, anything but an object has none.
        entries: Option<&Map<String, Value>>,
        depth: usize,
    ) -> Result<(), String> {
        if let Some(entries) = entries.filter(|entries| !entries.is_empty()) {
            self.put_long(entries.len() as i64);
            for (key, value) in entries {
                self.put_bytes(key.as_bytes());
                self.write(of, value, depth + 1)?;
            }
        }
        self.put_long(0);
        Ok(())
    }

    fn put_long(&mut self, value: i64) {
        varint::put(&mut self.out, varint::zigzag(value));
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        self.put_long(bytes.len() as i64);
        self.out.extend_from_slice(bytes);
    }
}

fn too_large() -> String {
    format!(
        "the defaults are larger than {MAX_ROW} bytes or {MAX_VALUES} values, or nested deeper than {MAX_DEPTH}"
    )
}

/// The items of a default for an array. To Jackson, an object has items, too, and anything else has none.
fn items(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(entries) => entries.values().collect(),
        _ => Vec::new(),
    }
}

/// True if this branch of a union is the one that Java takes for a default, unless an earlier one is.
fn takes(kind: &Kind, value: &Value) -> bool {
    match kind {
        Kind::Null => value.is_null(),
        Kind::Boolean => value.is_boolean(),
        Kind::Int | Kind::Long | Kind::Float | Kind::Double => value.is_number(),
        Kind::Bytes | Kind::String | Kind::Fixed { .. } => value.is_string(),
        Kind::Enum { .. } | Kind::Array(_) | Kind::Map(_) | Kind::Union(_) | Kind::Record { .. } => true,
    }
}

/// A number of any form, such as `3.0`, as Jackson's `intValue` gives it: of an integer, the low bits.
fn int(number: &Number) -> i32 {
    match number.is_f64() {
        true => double(number) as i32,
        false => long(number) as i32,
    }
}

/// The same for `longValue`.
fn long(number: &Number) -> i64 {
    match (number.as_i64(), number.as_u64()) {
        (Some(whole), _) => whole,
        (_, Some(whole)) => whole as i64,
        _ => double(number) as i64,
    }
}

/// The number that Java's `Double.valueOf` makes of text; hexadecimal ones are left out.
fn number_in(text: &str) -> Option<f64> {
    let text = text.trim_matches(|letter| letter <= ' ');
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    match unsigned {
        "NaN" | "Infinity" => text.parse().ok(),
        _ if unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.') => {
            text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text).parse().ok()
        }
        _ => None,
    }
}

fn double(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

/// A byte for each character; Java writes a question mark for those above U+00FF.
fn latin1(text: &str) -> Vec<u8> {
    text.chars().map(|character| u8::try_from(character).unwrap_or(b'?')).collect()
}
