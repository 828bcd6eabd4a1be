//! Columns of JSON values, which are filled as the text is parsed.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::types::{Float64Type, Int64Type, Utf8Type};
use arrow_schema::{DataType, Field, FieldRef, Fields};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::shape::Shape;
use crate::budget::Budget;
use crate::columns::{Booleans, Bytes, Column, Numbers};
use crate::failure::{Attempt, Failure};
use crate::nested::{Lists, Structs};

/// A column of values of one shape, each of which may be null.
pub(crate) enum Values {
    Integer(Numbers<Int64Type>),
    Number(Numbers<Float64Type>),
    Boolean(Booleans),
    String(Bytes<Utf8Type>),
    Any(Bytes<Utf8Type>),
    Object(Box<Objects>),
    Array(Box<Lists<Values>>),
}

pub(crate) struct Objects {
    pub(super) names: HashMap<Box<str>, usize>,
    /// The names as they are usually written, with quotes and a colon.
    pub(super) keys: Vec<String>,
    pub(super) structs: Structs<Values>,
    row_size: usize,
}

impl Values {
    pub(crate) fn new(shape: &Shape) -> (Self, DataType) {
        match shape {
            Shape::Integer => (Self::Integer(Numbers::new()), DataType::Int64),
            Shape::Number => (Self::Number(Numbers::new()), DataType::Float64),
            Shape::Boolean => (Self::Boolean(Booleans::new()), DataType::Boolean),
            Shape::String => (Self::String(Bytes::new()), DataType::Utf8),
            Shape::Any => (Self::Any(Bytes::new()), DataType::Utf8),
            Shape::Object(fields) => {
                let (values, types): (Vec<_>, Vec<_>) =
                    fields.iter().map(|field| Self::new(&field.1)).unzip();
                let named = fields.iter().zip(types);
                let arrow: Fields =
                    named.map(|(field, data_type)| Field::new(&field.0, data_type, true)).collect();
                let names = fields.iter().enumerate();
                let names = names.map(|(index, field)| (field.0.as_str().into(), index)).collect();
                let keys = fields.iter().map(|field| format!("{}:", Value::from(&field.0[..]))).collect();
                let row_size = values.iter().map(Self::row_size).sum();
                let data_type = DataType::Struct(arrow.clone());
                let structs = Structs::new(values, arrow);
                let objects = Objects { names, keys, structs, row_size };
                (Self::Object(Box::new(objects)), data_type)
            }
            Shape::Array(element) => {
                let (elements, data_type) = Self::new(element);
                let field: FieldRef = Arc::new(Field::new_list_field(data_type, true));
                let data_type = DataType::List(Arc::clone(&field));
                (Self::Array(Box::new(Lists::new(elements, field))), data_type)
            }
        }
    }

    pub(super) fn row_size(&self) -> usize {
        match self {
            Self::Object(objects) => objects.row_size,
            _ => size_of::<i64>(),
        }
    }

    fn column_mut(&mut self) -> &mut dyn Column {
        match self {
            Self::Integer(column) => column,
            Self::Number(column) => column,
            Self::Boolean(column) => column,
            Self::String(column) | Self::Any(column) => column,
            Self::Object(objects) => &mut objects.structs,
            Self::Array(column) => column.as_mut(),
        }
    }
}

impl Column for Values {
    fn len(&self) -> usize {
        match self {
            Self::Integer(column) => column.len(),
            Self::Number(column) => column.len(),
            Self::Boolean(column) => column.len(),
            Self::String(column) | Self::Any(column) => column.len(),
            Self::Object(objects) => objects.structs.len(),
            Self::Array(column) => column.len(),
        }
    }

    fn truncate(&mut self, len: usize) {
        self.column_mut().truncate(len);
    }

    fn close_row(&mut self) -> Attempt<()> {
        self.column_mut().close_row()
    }

    fn finish(&mut self) -> ArrayRef {
        self.column_mut().finish()
    }
}

/// Reads a payload into a row, and completes it; after a failure, the row is not whole. Returns the first number that has
/// no place in its column, where the row has null.
pub(super) fn read(text: &str, to: &mut Values, budget: &mut Budget) -> Attempt<Option<Failure>> {
    let mut context = Context { budget, path: Vec::new(), failure: None, lost: None };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let read = Read { to, context: &mut context }.deserialize(&mut deserializer);
    match read.and_then(|()| deserializer.end()) {
        Ok(()) => to.close_row().map(|()| context.lost),
        Err(error) => Err(context.failure(&error, text.as_bytes())),
    }
}

/// The state of reading a payload, besides its columns.
struct Context<'a> {
    budget: &'a mut Budget,
    /// The names of the fields around a failure, from the inside.
    path: Vec<String>,
    /// A failure of our own, which comes back as an error of the parser.
    failure: Option<Failure>,
    /// The first number without a place in its column.
    lost: Option<Failure>,
}

impl Context<'_> {
    /// The failure that an error of the parser is, in the field that was read.
    fn failure(self, error: &serde_json::Error, payload: &[u8]) -> Failure {
        let failure = self.failure.unwrap_or_else(|| unreadable(error));
        let failure = self.path.iter().fold(failure, |failure, name| failure.in_field(name));
        failure.or_at(position(error, payload))
    }

    /// Leaves the open value null: it is a number that its column has no place for.
    fn lose(&mut self, number: impl fmt::Display) {
        self.lost.get_or_insert_with(|| {
            Failure::new(format!("the number {number} is left out, expected an integer of 64 bits"))
        });
    }

    fn keep<T, E: Error>(&mut self, attempt: Attempt<T>) -> Result<T, E> {
        attempt.map_err(|failure| {
            self.failure = Some(failure);
            E::custom("")
        })
    }
}

/// Parses a payload as any JSON.
pub(super) fn parsed(payload: &str) -> Attempt<Value> {
    serde_json::from_str(payload)
        .map_err(|error| unreadable(&error).or_at(position(&error, payload.as_bytes())))
}

fn unreadable(error: &serde_json::Error) -> Failure {
    let text = error.to_string();
    // It ends with the place by lines, which payloads rarely have.
    Failure::new(text.rsplit_once(" at line ").map_or(text.as_str(), |split| split.0))
}

fn position(error: &serde_json::Error, payload: &[u8]) -> usize {
    let mut lines = payload.split_inclusive(|&byte| byte == b'\n');
    let before: usize = lines.by_ref().take(error.line().saturating_sub(1)).map(<[u8]>::len).sum();
    // Columns count from 1, and 0 is the end of the line before.
    (before + error.column().saturating_sub(1)).min(payload.len())
}

/// The integer that a number is: to JSON Schema, 1.0 is one. Above 2^53 a double may be another than the text has.
pub(super) fn whole(value: f64) -> Option<i64> {
    (value.fract() == 0.0 && value.abs() <= (1_u64 << 53) as f64).then_some(value as i64)
}

/// Reads a value into the open row of a column.
struct Read<'a, 'b> {
    to: &'a mut Values,
    context: &'a mut Context<'b>,
}

impl<'de> DeserializeSeed<'de> for Read<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.to {
            Values::Any(column) => {
                let raw = <&RawValue>::deserialize(deserializer)?.get();
                if raw != "null" {
                    column.set(raw.as_bytes());
                }
                Ok(())
            }
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Read<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.to {
            Values::Integer(_) => "an integer of 64 bits",
            Values::Number(_) => "a number",
            Values::Boolean(_) => "a boolean",
            Values::String(_) => "a string",
            Values::Any(_) => "a value",
            Values::Object(_) => "an object",
            Values::Array(_) => "an array",
        })
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        match self.to {
            Values::Boolean(column) => column.set(value),
            _ => return Err(E::invalid_type(serde::de::Unexpected::Bool(value), &self)),
        }
        Ok(())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        match self.to {
            Values::Integer(column) => column.set(value),
            Values::Number(column) => column.set(value as f64),
            _ => return Err(E::invalid_type(serde::de::Unexpected::Signed(value), &self)),
        }
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        match self.to {
            Values::Integer(column) => match i64::try_from(value) {
                Ok(value) => column.set(value),
                Err(_) => self.context.lose(value),
            },
            Values::Number(column) => column.set(value as f64),
            _ => return Err(E::invalid_type(serde::de::Unexpected::Unsigned(value), &self)),
        }
        Ok(())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        match (self.to, whole(value)) {
            (Values::Integer(column), Some(value)) => column.set(value),
            (Values::Integer(_), None) if value.fract() == 0.0 => {
                self.context.lose(format_args!("{value:e}"));
            }
            (Values::Number(column), _) => column.set(value),
            (to, _) => {
                let expected = Read { to, context: self.context };
                return Err(E::invalid_type(serde::de::Unexpected::Float(value), &expected));
            }
        }
        Ok(())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        match self.to {
            Values::String(column) => column.set(value.as_bytes()),
            _ => return Err(E::invalid_type(serde::de::Unexpected::Str(shown(value)), &self)),
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Self { to, context } = self;
        let Values::Array(arrays) = to else {
            return Err(A::Error::invalid_type(serde::de::Unexpected::Seq, &Self { to, context }));
        };
        arrays.open();
        let elements = &mut arrays.items;
        while seq.next_element_seed(Read { to: elements, context: &mut *context })?.is_some() {
            let spent = context.budget.spend(elements.row_size()).and_then(|()| elements.close_row());
            context.keep(spent)?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { to, context } = self;
        let Values::Object(objects) = to else {
            return Err(A::Error::invalid_type(serde::de::Unexpected::Map, &Self { to, context }));
        };
        let Objects { names, structs, .. } = objects.as_mut();
        structs.open();
        let rows = structs.rows();
        let mut next = 0;
        while let Some(key) = map.next_key_seed(Name { names, fields: &structs.fields, next })? {
            let Some(index) = key else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            next = index + 1;
            let lost_before = context.lost.is_some();
            let values = &mut structs.columns[index];
            // If a name comes twice, the last value counts.
            if values.len() > rows {
                values.truncate(rows);
            }
            if let Err(error) = map.next_value_seed(Read { to: values, context: &mut *context }) {
                context.path.push(structs.fields[index].name().clone());
                return Err(error);
            }
            if !lost_before {
                context.lost = context.lost.take().map(|lost| lost.in_field(structs.fields[index].name()));
            }
        }
        Ok(())
    }
}

/// Finds a name among those of an object; writers keep an order, so the next one is tried first.
struct Name<'a> {
    names: &'a HashMap<Box<str>, usize>,
    fields: &'a Fields,
    next: usize,
}

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        match self.fields.get(self.next) {
            Some(field) if field.name() == name => Ok(Some(self.next)),
            _ => Ok(self.names.get(name).copied()),
        }
    }
}

/// Text for a message: of a long one, the start.
fn shown(text: &str) -> &str {
    &text[..text.floor_char_boundary(50)]
}
