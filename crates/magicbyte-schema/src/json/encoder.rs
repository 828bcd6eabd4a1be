//! [`JsonEncoder`].

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, BinaryArray, BooleanArray, ListArray, PrimitiveArray, StringArray};
use arrow_schema::DataType;
use magicbyte_json::unpaired_surrogate;
use serde_json::value::RawValue;

use super::columns::Values;
use super::integers::{Integer, Integers};
use super::read::number_len;
use super::shape::Shape;
use crate::encoding::{fitted, payloads};
use crate::error::{Result, SchemaError};
use crate::failure::{Attempt, Failure};

/// Encodes a column as JSON payloads; its types are those that [`JsonDecoder`](super::JsonDecoder) gives the schema, with
/// integers of any type.
///
/// A property that is null is left out. Text of a type that may be anything is written as it is, if it is JSON.
///
/// ```
/// use magicbyte_schema::json::JsonEncoder;
/// use arrow_array::{ArrayRef, Int64Array, StructArray};
/// use std::sync::Arc;
///
/// let encoder = JsonEncoder::new(r#"{"properties": {"id": {"type": "integer"}}}"#, &[])?;
/// let ids: ArrayRef = Arc::new(Int64Array::from(vec![Some(5), None]));
/// let column: ArrayRef = Arc::new(StructArray::try_from(vec![("id", ids)]).unwrap());
/// let payloads = encoder.encode(&column, b"")?;
/// assert_eq!(payloads.iter().collect::<Vec<_>>(), [Some(&br#"{"id":5}"#[..]), Some(b"{}")]);
/// # Ok::<(), magicbyte_schema::SchemaError>(())
/// ```
pub struct JsonEncoder {
    shape: Shape,
    /// The type of columns for each of [`Integers::ALL`].
    data_types: [DataType; 3],
}

impl JsonEncoder {
    /// An encoder by this schema; arguments are as for [`JsonDecoder::new`](super::JsonDecoder::new).
    ///
    /// # Errors
    /// If it is not JSON, a `$ref` leads nowhere, or it has more than 10,000 columns.
    pub fn new(schema: &str, references: &[(&str, &str)]) -> Result<Self> {
        let shape = Shape::of(schema, references)?;
        let data_types = Integers::ALL.map(|integers| Values::new(&shape, integers).1);
        Ok(Self { shape, data_types })
    }

    /// The type that columns have, with integers of 64 bits.
    #[must_use]
    pub fn data_type(&self) -> &DataType {
        &self.data_types[0]
    }

    /// Encodes a column, with `prefix` before each payload. A null row is null. Fields of structs are found by their
    /// names; those that are missing are null.
    ///
    /// # Errors
    /// If the column has another type, the payloads have more than 2 GiB, or a value cannot be written: a number that is
    /// not finite, or text that is not what JSON has in its place.
    pub fn encode(&self, column: &ArrayRef, prefix: &[u8]) -> Result<BinaryArray> {
        let [usual, others @ ..] = &self.data_types;
        let column = fitted(column, usual).or_else(|error| {
            others.iter().find_map(|data_type| fitted(column, data_type).ok()).ok_or(error)
        })?;
        let source = Source::of(&self.shape, &column)?;
        payloads(&column, prefix, |row, out| source.write(row, out))
    }
}

/// An array, by the type of its values in JSON.
enum Source<'a> {
    Integer(&'a PrimitiveArray<Int64Type>),
    Decimal(&'a PrimitiveArray<Decimal128Type>),
    Digits(&'a StringArray),
    Number(&'a PrimitiveArray<Float64Type>),
    Boolean(&'a BooleanArray),
    String(&'a StringArray),
    Any(&'a StringArray),
    Object(Vec<Property<'a>>),
    Array(&'a ListArray, Box<Source<'a>>),
}

struct Property<'a> {
    name: &'a str,
    /// The name as JSON, with the colon.
    written: Vec<u8>,
    array: &'a ArrayRef,
    source: Source<'a>,
}

impl<'a> Source<'a> {
    fn of(shape: &'a Shape, array: &'a ArrayRef) -> Result<Self> {
        Ok(match shape {
            Shape::Integer | Shape::LongInteger => match array.data_type() {
                DataType::Utf8 => Self::Digits(array.as_string()),
                DataType::Decimal128(..) => Self::Decimal(array.as_primitive()),
                _ => Self::Integer(array.as_primitive()),
            },
            Shape::Number => Self::Number(array.as_primitive()),
            Shape::Boolean => Self::Boolean(array.as_boolean()),
            Shape::String => Self::String(array.as_string()),
            Shape::Several | Shape::Any | Shape::Sometimes(_) => Self::Any(array.as_string()),
            Shape::Object(fields) => {
                let columns = fields.iter().zip(array.as_struct().columns());
                let properties = columns.map(|((name, shape), array)| {
                    let mut written =
                        serde_json::to_vec(name).map_err(|e| SchemaError::new(e.to_string()))?;
                    written.push(b':');
                    Ok(Property { name, written, array, source: Self::of(shape, array)? })
                });
                Self::Object(properties.collect::<Result<_>>()?)
            }
            Shape::Array(item) => {
                let list = array.as_list();
                Self::Array(list, Box::new(Self::of(item, list.values())?))
            }
        })
    }

    fn write(&self, row: usize, out: &mut Vec<u8>) -> Attempt<()> {
        match self {
            Self::Integer(array) => json(out, &array.value(row)),
            Self::Decimal(array) => {
                out.extend_from_slice(array.value(row).to_string().as_bytes());
                Ok(())
            }
            Self::Digits(array) => {
                let text = array.value(row);
                if number_len(text.as_bytes()) != Some(text.len()) || Integer::of(text).is_none() {
                    return Err(Failure::new("a string: expected the text of an integer"));
                }
                out.extend_from_slice(text.as_bytes());
                Ok(())
            }
            Self::Number(array) => match array.value(row) {
                value if value.is_finite() => json(out, &value),
                value => Err(Failure::new(format!("the number {value}: expected one that JSON has"))),
            },
            Self::Boolean(array) => json(out, &array.value(row)),
            Self::String(array) => json(out, array.value(row)),
            Self::Any(array) => {
                let text = array.value(row);
                if let Err(error) = serde_json::from_str::<&RawValue>(text) {
                    return Err(Failure::new(format!(
                        "a string: expected the text of a JSON value: {error}"
                    )));
                }
                if let Some(position) = unpaired_surrogate(text) {
                    return Err(Failure::at(position, "a string: half of a surrogate pair"));
                }
                out.extend_from_slice(text.as_bytes());
                Ok(())
            }
            Self::Object(properties) => {
                out.push(b'{');
                let mut first = true;
                for property in properties.iter().filter(|property| property.array.is_valid(row)) {
                    if !std::mem::replace(&mut first, false) {
                        out.push(b',');
                    }
                    out.extend_from_slice(&property.written);
                    let written = property.source.write(row, out);
                    written.map_err(|failure| failure.in_field(property.name))?;
                }
                out.push(b'}');
                Ok(())
            }
            Self::Array(list, items) => {
                out.push(b'[');
                let offsets = list.value_offsets();
                for index in offsets[row] as usize..offsets[row + 1] as usize {
                    if index > offsets[row] as usize {
                        out.push(b',');
                    }
                    if list.values().is_null(index) {
                        out.extend_from_slice(b"null");
                    } else {
                        items.write(index, out).map_err(|failure| failure.in_field("[]"))?;
                    }
                }
                out.push(b']');
                Ok(())
            }
        }
    }
}

fn json<T: serde::Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) -> Attempt<()> {
    serde_json::to_writer(out, value).map_err(|error| Failure::new(error.to_string()))
}
