//! The reader's columns that payloads are read into directly, without arrow-avro.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    BinaryType, Date32Type, Float32Type, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType,
    Utf8Type,
};
use arrow_array::{ArrayRef, MapArray, NullArray};
use arrow_schema::{DataType, TimeUnit};

use crate::columns::{Booleans, Bytes, Column, Numbers};
use crate::failure::Attempt;
use crate::nested::{Lists, Structs};

/// A column by its type. A row that is closed without a value is null.
pub(super) enum Target {
    Null(Absent),
    Boolean(Booleans),
    Int(Numbers<Int32Type>),
    Date(Numbers<Date32Type>),
    Long(Numbers<Int64Type>),
    Micros(Numbers<TimestampMicrosecondType>),
    Float(Numbers<Float32Type>),
    Double(Numbers<Float64Type>),
    Text(Bytes<Utf8Type>),
    Bytes(Bytes<BinaryType>),
    Record(Box<Structs<Target>>),
    List(Box<Lists<Target>>),
    Map(Box<Maps>),
}

impl Target {
    /// A column of this type; `None` if it has one that only arrow-avro fills.
    pub(super) fn new(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Null => Self::Null(Absent::NONE),
            DataType::Boolean => Self::Boolean(Booleans::new()),
            DataType::Int32 => Self::Int(Numbers::new()),
            DataType::Date32 => Self::Date(Numbers::new()),
            DataType::Int64 => Self::Long(Numbers::new()),
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                Self::Micros(Numbers::of_type(data_type.clone()))
            }
            DataType::Float32 => Self::Float(Numbers::new()),
            DataType::Float64 => Self::Double(Numbers::new()),
            DataType::Utf8 => Self::Text(Bytes::new()),
            DataType::Binary => Self::Bytes(Bytes::new()),
            DataType::Struct(fields) => {
                let columns = fields.iter().map(|field| Self::new(field.data_type())).collect::<Option<_>>();
                Self::Record(Box::new(Structs::new(columns?, fields.clone())))
            }
            DataType::List(item) => {
                Self::List(Box::new(Lists::new(Self::new(item.data_type())?, Arc::clone(item))))
            }
            DataType::Map(field, false) => {
                let DataType::Struct(entry) = field.data_type() else { return None };
                let (keys, values) = (Self::Text(Bytes::new()), Self::new(entry[1].data_type())?);
                let entries = Structs::new(vec![keys, values], entry.clone());
                Self::Map(Box::new(Maps(Lists::new(entries, Arc::clone(field)))))
            }
            _ => return None,
        })
    }

    fn column(&self) -> &dyn Column {
        match self {
            Self::Null(column) => column,
            Self::Boolean(column) => column,
            Self::Int(column) => column,
            Self::Date(column) => column,
            Self::Long(column) => column,
            Self::Micros(column) => column,
            Self::Float(column) => column,
            Self::Double(column) => column,
            Self::Text(column) => column,
            Self::Bytes(column) => column,
            Self::Record(column) => column.as_ref(),
            Self::List(column) => column.as_ref(),
            Self::Map(column) => column.as_ref(),
        }
    }

    fn column_mut(&mut self) -> &mut dyn Column {
        match self {
            Self::Null(column) => column,
            Self::Boolean(column) => column,
            Self::Int(column) => column,
            Self::Date(column) => column,
            Self::Long(column) => column,
            Self::Micros(column) => column,
            Self::Float(column) => column,
            Self::Double(column) => column,
            Self::Text(column) => column,
            Self::Bytes(column) => column,
            Self::Record(column) => column.as_mut(),
            Self::List(column) => column.as_mut(),
            Self::Map(column) => column.as_mut(),
        }
    }
}

impl Column for Target {
    fn len(&self) -> usize {
        self.column().len()
    }

    fn truncate(&mut self, len: usize) {
        self.column_mut().truncate(len);
    }

    #[inline]
    fn close_row(&mut self) -> Attempt<()> {
        match self {
            Self::Text(column) => column.close_row(),
            other => other.column_mut().close_row(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        self.column_mut().finish()
    }
}

/// Nothing but nulls: how many.
pub(super) struct Absent(usize);

impl Absent {
    pub(super) const NONE: Self = Self(0);
}

impl Column for Absent {
    fn len(&self) -> usize {
        self.0
    }

    fn truncate(&mut self, len: usize) {
        self.0 = len;
    }

    fn close_row(&mut self) -> Attempt<()> {
        self.0 += 1;
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(NullArray::new(std::mem::take(&mut self.0)))
    }
}

/// Maps: lists of entries.
pub(super) struct Maps(pub(super) Lists<Structs<Target>>);

impl Column for Maps {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    fn close_row(&mut self) -> Attempt<()> {
        self.0.close_row()
    }

    fn finish(&mut self) -> ArrayRef {
        let list = self.0.finish();
        let (field, offsets, entries, nulls) = list.as_list::<i32>().clone().into_parts();
        Arc::new(MapArray::new(field, offsets, entries.as_struct().clone(), nulls, false))
    }
}
