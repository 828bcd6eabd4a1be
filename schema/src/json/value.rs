//! Columns of JSON values, which are filled as the text is parsed.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow_array::types::{Float64Type, Int64Type, Utf8Type};
use arrow_array::{ArrayRef, ListArray, StructArray};
use arrow_schema::{DataType, Field, FieldRef, Fields};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::shape::Shape;
use crate::budget::Budget;
use crate::columns::{Booleans, Bytes, Column, Numbers, Offsets, Validity};
use crate::failure::{Attempt, Failure};

/// A column of values of one shape, each of which may be null.
pub(crate) enum Values {
    Integer(Numbers<Int64Type>),
    Number(Numbers<Float64Type>),
    Boolean(Booleans),
    String(Bytes<Utf8Type>),
    Any(Bytes<Utf8Type>),
    Object(Box<Objects>),
    Array(Box<Arrays>),
}

pub(crate) struct Objects {
    names: HashMap<Box<str>, usize>,
    arrow: Fields,
    values: Vec<Values>,
    row_size: usize,
    open: bool,
    rows: usize,
    validity: Validity,
}

pub(crate) struct Arrays {
    elements: Values,
    field: FieldRef,
    offsets: Offsets,
    open: bool,
    validity: Validity,
}

impl Values {
    pub(crate) fn new(shape: &Shape) -> (Self, DataType) {
        match shape {
            Shape::Integer => (Self::Integer(Numbers::new(None)), DataType::Int64),
            Shape::Number => (Self::Number(Numbers::new(None)), DataType::Float64),
            Shape::Boolean => (Self::Boolean(Booleans::new(None)), DataType::Boolean),
            Shape::String => (Self::String(Bytes::new(None)), DataType::Utf8),
            Shape::Any => (Self::Any(Bytes::new(None)), DataType::Utf8),
            Shape::Object(fields) => {
                let (values, types): (Vec<_>, Vec<_>) =
                    fields.iter().map(|field| Self::new(&field.1)).unzip();
                let named = fields.iter().zip(types);
                let arrow: Fields =
                    named.map(|(field, data_type)| Field::new(&field.0, data_type, true)).collect();
                let names = fields.iter().enumerate();
                let names = names.map(|(index, field)| (field.0.as_str().into(), index)).collect();
                let row_size = values.iter().map(Self::row_size).sum();
                let (validity, data_type) = (Validity::new(), DataType::Struct(arrow.clone()));
                let objects = Objects { names, arrow, values, row_size, open: false, rows: 0, validity };
                (Self::Object(Box::new(objects)), data_type)
            }
            Shape::Array(element) => {
                let (elements, data_type) = Self::new(element);
                let field: FieldRef = Arc::new(Field::new_list_field(data_type, true));
                let data_type = DataType::List(Arc::clone(&field));
                let (offsets, validity) = (Offsets::new(), Validity::new());
                let arrays = Arrays { elements, field, offsets, open: false, validity };
                (Self::Array(Box::new(arrays)), data_type)
            }
        }
    }

    fn row_size(&self) -> usize {
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
            Self::Object(column) => column.as_mut(),
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
            Self::Object(column) => column.len(),
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

impl Column for Objects {
    fn len(&self) -> usize {
        self.rows + usize::from(self.open)
    }

    fn truncate(&mut self, len: usize) {
        self.open = false;
        self.rows = len;
        self.validity.truncate(len);
        self.values.iter_mut().for_each(|values| values.truncate(len));
    }

    fn close_row(&mut self) -> Attempt<()> {
        self.values.iter_mut().try_for_each(Column::close_row)?;
        self.validity.push(self.open);
        self.rows += 1;
        self.open = false;
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        self.rows = 0;
        let arrays = self.values.iter_mut().map(Column::finish).collect();
        Arc::new(StructArray::new(self.arrow.clone(), arrays, self.validity.finish()))
    }
}

impl Column for Arrays {
    fn len(&self) -> usize {
        self.offsets.rows() + usize::from(self.open)
    }

    fn truncate(&mut self, len: usize) {
        self.open = false;
        self.elements.truncate(self.offsets.truncate(len));
        self.validity.truncate(len);
    }

    fn close_row(&mut self) -> Attempt<()> {
        self.offsets.push(self.elements.len())?;
        self.validity.push(self.open);
        self.open = false;
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        let elements = self.elements.finish();
        let validity = self.validity.finish();
        Arc::new(ListArray::new(self.field.clone(), self.offsets.finish(), elements, validity))
    }
}

/// What the reading of a payload knows besides its columns.
pub(crate) struct Context {
    budget: Budget,
    /// The names of the fields around a failure, from the inside.
    path: Vec<String>,
    /// A failure of our own, which comes back as an error of the parser.
    failure: Option<Failure>,
}

impl Context {
    pub(crate) fn new(payload: usize) -> Self {
        Self { budget: Budget::new(payload), path: Vec::new(), failure: None }
    }

    /// The failure that an error of the parser is, at a position in the payload.
    pub(crate) fn failure(self, error: &serde_json::Error, payload: &[u8]) -> Failure {
        let failure = self.failure.unwrap_or_else(|| {
            let text = error.to_string();
            // It ends with the place by lines, which payloads rarely have.
            let reason = text.rsplit_once(" at line ").map_or(text.as_str(), |split| split.0);
            Failure::new(reason)
        });
        let failure = self.path.iter().fold(failure, |failure, name| failure.in_field(name));
        failure.or_at(position(error, payload))
    }

    fn keep<T, E: Error>(&mut self, attempt: Attempt<T>) -> Result<T, E> {
        attempt.map_err(|failure| {
            self.failure = Some(failure);
            E::custom("")
        })
    }
}

fn position(error: &serde_json::Error, payload: &[u8]) -> usize {
    let mut lines = payload.split_inclusive(|&byte| byte == b'\n');
    let before: usize = lines.by_ref().take(error.line().saturating_sub(1)).map(<[u8]>::len).sum();
    // Columns count from 1, and 0 is the end of the line before.
    (before + error.column().saturating_sub(1)).min(payload.len())
}

/// Reads a value into the open row of a column.
pub(crate) struct Read<'a> {
    pub(crate) to: &'a mut Values,
    pub(crate) context: &'a mut Context,
}

impl<'de> DeserializeSeed<'de> for Read<'_> {
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

impl<'de> Visitor<'de> for Read<'_> {
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
            Values::Integer(column) if i64::try_from(value).is_ok() => column.set(value as i64),
            Values::Number(column) => column.set(value as f64),
            _ => return Err(E::invalid_type(serde::de::Unexpected::Unsigned(value), &self)),
        }
        Ok(())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        // To JSON Schema, 1.0 is an integer. Above 2^53 a double may be another one than the text has.
        let is_integer = value.fract() == 0.0 && value.abs() <= (1_u64 << 53) as f64;
        match self.to {
            Values::Integer(column) if is_integer => column.set(value as i64),
            Values::Number(column) => column.set(value),
            _ => return Err(E::invalid_type(serde::de::Unexpected::Float(value), &self)),
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
        arrays.open = true;
        let elements = &mut arrays.elements;
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
        objects.open = true;
        let mut next = 0;
        while let Some(found) =
            map.next_key_seed(Name { names: &objects.names, arrow: &objects.arrow, next })?
        {
            let Some(index) = found else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            next = index + 1;
            let values = &mut objects.values[index];
            // Of a name that comes twice, the last value counts.
            if values.len() > objects.rows {
                values.truncate(objects.rows);
            }
            if let Err(error) = map.next_value_seed(Read { to: values, context: &mut *context }) {
                context.path.push(objects.arrow[index].name().clone());
                return Err(error);
            }
        }
        Ok(())
    }
}

/// Finds a name among those of an object; writers keep an order, so the next one is tried first.
struct Name<'a> {
    names: &'a HashMap<Box<str>, usize>,
    arrow: &'a Fields,
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
        match self.arrow.get(self.next) {
            Some(field) if field.name() == name => Ok(Some(self.next)),
            _ => Ok(self.names.get(name).copied()),
        }
    }
}

/// Text for a message: of a long one, the start.
fn shown(text: &str) -> &str {
    &text[..text.floor_char_boundary(50)]
}
