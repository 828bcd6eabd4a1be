//! Columns of JSON values, which are filled as the text is read.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::types::{Decimal128Type, Float64Type, Int64Type, Utf8Type};
use arrow_schema::{DataType, Field, FieldRef, Fields};
use serde_json::Value;

use super::integers::{Integers, MAX_DIGITS};
use super::shape::Shape;
use crate::columns::{Booleans, Bytes, Column, Numbers};
use crate::failure::Attempt;
use crate::nested::{Lists, Structs};

/// A column of values of one shape, each of which may be null.
pub(crate) enum Values {
    Integer(Numbers<Int64Type>),
    /// Integers of up to 38 digits.
    Decimal(Numbers<Decimal128Type>),
    /// Integers as they are written.
    Digits(Bytes<Utf8Type>),
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
    pub(crate) fn new(shape: &Shape, integers: Integers) -> (Self, DataType) {
        match shape {
            Shape::Integer if integers == Integers::Int64 => (Self::Integer(Numbers::new()), DataType::Int64),
            Shape::Integer | Shape::LongInteger if integers == Integers::Decimal => {
                let data_type = DataType::Decimal128(MAX_DIGITS, 0);
                (Self::Decimal(Numbers::of_type(data_type.clone())), data_type)
            }
            Shape::Integer | Shape::LongInteger => (Self::Digits(Bytes::new()), DataType::Utf8),
            Shape::Number => (Self::Number(Numbers::new()), DataType::Float64),
            Shape::Boolean => (Self::Boolean(Booleans::new()), DataType::Boolean),
            Shape::String => (Self::String(Bytes::new()), DataType::Utf8),
            Shape::Several | Shape::Any | Shape::Sometimes(_) => (Self::Any(Bytes::new()), DataType::Utf8),
            Shape::Object(fields) => {
                let (values, types): (Vec<_>, Vec<_>) =
                    fields.iter().map(|field| Self::new(&field.1, integers)).unzip();
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
                let (elements, data_type) = Self::new(element, integers);
                let field: FieldRef = Arc::new(Field::new_list_field(data_type, true));
                let data_type = DataType::List(Arc::clone(&field));
                (Self::Array(Box::new(Lists::new(elements, field))), data_type)
            }
        }
    }

    pub(super) fn row_size(&self) -> usize {
        match self {
            Self::Object(objects) => objects.row_size,
            Self::Decimal(_) => size_of::<i128>(),
            _ => size_of::<i64>(),
        }
    }

    /// The values that the column takes, for messages.
    pub(super) fn expected(&self) -> &'static str {
        match self {
            Self::Integer(_) => "an integer of 64 bits",
            Self::Decimal(_) => "an integer of 38 digits",
            Self::Digits(_) => "an integer",
            Self::Number(_) => "a number of 64 bits",
            Self::Boolean(_) => "a boolean",
            Self::String(_) => "a string",
            Self::Any(_) => "a value",
            Self::Object(_) => "an object",
            Self::Array(_) => "an array",
        }
    }

    fn column_mut(&mut self) -> &mut dyn Column {
        match self {
            Self::Integer(column) => column,
            Self::Decimal(column) => column,
            Self::Number(column) => column,
            Self::Boolean(column) => column,
            Self::String(column) | Self::Digits(column) | Self::Any(column) => column,
            Self::Object(objects) => &mut objects.structs,
            Self::Array(column) => column.as_mut(),
        }
    }
}

impl Column for Values {
    fn len(&self) -> usize {
        match self {
            Self::Integer(column) => column.len(),
            Self::Decimal(column) => column.len(),
            Self::Number(column) => column.len(),
            Self::Boolean(column) => column.len(),
            Self::String(column) | Self::Digits(column) | Self::Any(column) => column.len(),
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
