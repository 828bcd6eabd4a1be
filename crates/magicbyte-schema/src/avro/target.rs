//! The reader's columns that payloads are read into.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    BinaryType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type,
    TimestampMicrosecondType, Utf8Type,
};
use arrow_array::{ArrayRef, MapArray, NullArray};
use arrow_schema::{DataType, Fields};

use super::columns::{Members, data_type};
use super::types::{Kind, Logical, Type, TypeId, Types};
use crate::columns::{Booleans, Bytes, Column, Numbers};
use crate::failure::Attempt;
use crate::nested::{Lists, Structs};

/// A column by the reader's type. A row that is closed without a value is null.
pub(super) enum Target {
    Null(Absent),
    Boolean(Booleans),
    Int(Numbers<Int32Type>),
    Date(Numbers<Date32Type>),
    Long(Numbers<Int64Type>),
    /// Timestamps that values give in milliseconds.
    Millis(Numbers<TimestampMicrosecondType>),
    Micros(Numbers<TimestampMicrosecondType>),
    Float(Numbers<Float32Type>),
    Double(Numbers<Float64Type>),
    Decimal(Decimals),
    /// Decimals that are too long for a number.
    Digits(Digits),
    Text(Bytes<Utf8Type>),
    Bytes(Bytes<BinaryType>),
    /// Columns for the members of a union, of which one is set.
    Union(Box<Union>),
    Record(Box<Structs<Target>>),
    List(Box<Lists<Target>>),
    Map(Box<Maps>),
}

impl Target {
    /// The column for values of a type; it has the type that [`data_type`] gives them.
    pub(super) fn new(types: &Types, id: TypeId) -> Self {
        let Type { kind, logical } = types.get(id);
        let of_type = data_type(types, id);
        match (kind, logical, &of_type) {
            (_, Logical::Date, _) => Self::Date(Numbers::new()),
            (_, Logical::TimestampMillis | Logical::LocalTimestampMillis, _) => {
                Self::Millis(Numbers::of_type(of_type))
            }
            (_, Logical::TimestampMicros | Logical::LocalTimestampMicros, _) => {
                Self::Micros(Numbers::of_type(of_type))
            }
            (_, &Logical::Decimal { precision, scale }, DataType::Decimal128(..)) => {
                Self::Decimal(Decimals { numbers: Numbers::of_type(of_type), precision, scale })
            }
            (_, &Logical::Decimal { precision, scale }, _) => {
                Self::Digits(Digits { text: Bytes::new(), precision, scale })
            }
            (Kind::Boolean, ..) => Self::Boolean(Booleans::new()),
            (Kind::Int, ..) => Self::Int(Numbers::new()),
            (Kind::Long, ..) => Self::Long(Numbers::new()),
            (Kind::Float, ..) => Self::Float(Numbers::new()),
            (Kind::Double, ..) => Self::Double(Numbers::new()),
            (Kind::Bytes | Kind::Fixed { .. }, ..) => Self::Bytes(Bytes::new()),
            (Kind::String | Kind::Enum { .. }, ..) => Self::Text(Bytes::new()),
            (&Kind::Array(item), _, DataType::List(field)) => {
                Self::List(Box::new(Lists::new(Self::new(types, item), Arc::clone(field))))
            }
            (&Kind::Map(value), _, DataType::Map(field, _)) => {
                let columns = vec![Self::Text(Bytes::new()), Self::new(types, value)];
                let entries = Structs::new(columns, fields_of(field.data_type()));
                Self::Map(Box::new(Maps(Lists::new(entries, Arc::clone(field)))))
            }
            (Kind::Record { fields, .. }, ..) => {
                let mut columns: Vec<_> = fields.iter().map(|field| Self::new(types, field.of)).collect();
                if columns.is_empty() {
                    columns.push(Self::Text(Bytes::new()));
                }
                Self::Record(Box::new(Structs::new(columns, fields_of(&of_type))))
            }
            (Kind::Union(branches), ..) => match Members::of(types, branches) {
                Members::None => Self::Null(Absent::NONE),
                Members::One(id) => Self::new(types, id),
                Members::Longs => Self::Long(Numbers::new()),
                Members::Doubles => Self::Double(Numbers::new()),
                Members::Several(ids) => {
                    let column = |branch: &TypeId| ids.iter().position(|id| id == branch);
                    let columns = ids.iter().map(|&id| Self::new(types, id)).collect();
                    Self::Union(Box::new(Union {
                        members: Structs::new(columns, fields_of(&of_type)),
                        columns: branches.iter().map(column).collect(),
                    }))
                }
            },
            // Of arrays and maps, `data_type` has made lists and maps.
            (Kind::Null | Kind::Array(_) | Kind::Map(_), ..) => Self::Null(Absent::NONE),
        }
    }

    fn column(&self) -> &dyn Column {
        match self {
            Self::Null(column) => column,
            Self::Boolean(column) => column,
            Self::Int(column) => column,
            Self::Date(column) => column,
            Self::Long(column) => column,
            Self::Millis(column) | Self::Micros(column) => column,
            Self::Float(column) => column,
            Self::Double(column) => column,
            Self::Decimal(column) => &column.numbers,
            Self::Digits(column) => &column.text,
            Self::Text(column) => column,
            Self::Bytes(column) => column,
            Self::Union(column) => &column.members,
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
            Self::Millis(column) | Self::Micros(column) => column,
            Self::Float(column) => column,
            Self::Double(column) => column,
            Self::Decimal(column) => &mut column.numbers,
            Self::Digits(column) => &mut column.text,
            Self::Text(column) => column,
            Self::Bytes(column) => column,
            Self::Union(column) => &mut column.members,
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

fn fields_of(data_type: &DataType) -> Fields {
    match data_type {
        DataType::Struct(fields) => fields.clone(),
        _ => Fields::empty(),
    }
}

/// Decimals, with what the reader's schema says of them.
pub(super) struct Decimals {
    pub(super) numbers: Numbers<Decimal128Type>,
    pub(super) precision: u32,
    pub(super) scale: u32,
}

/// Decimals as their digits.
pub(super) struct Digits {
    pub(super) text: Bytes<Utf8Type>,
    pub(super) precision: u32,
    pub(super) scale: u32,
}

/// A struct with a column for each member of a union.
pub(super) struct Union {
    pub(super) members: Structs<Target>,
    /// The column of each branch; null has none.
    pub(super) columns: Vec<Option<usize>>,
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
