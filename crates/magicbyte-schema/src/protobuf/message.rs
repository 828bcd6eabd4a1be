//! Columns of messages.
//!
//! A field may come in several pieces, anywhere in its message: the last value of a number or string counts, the pieces
//! of an embedded message merge, and those of a repeated field follow each other. So a row is complete when the message
//! around it ends.

use std::sync::Arc;

use arrow_array::types::{
    BinaryType, Decimal128Type, DurationMicrosecondType, Float32Type, Float64Type, Int32Type, Int64Type,
    TimestampMicrosecondType, Utf8Type,
};
use arrow_array::{ArrayRef, StructArray};
use arrow_schema::Fields;

use super::columns::{Bits, Booleans, Bytes, Column, Numbers};
use super::leaves::{JsonText, Micros, Names};
use super::tags::Tags;
use super::value::{Fields as FieldsOf, MessagePlace, Places};
use super::wire::{Reader, Tag};
use crate::budget::Budget;
use crate::failure::{Attempt, Failure};

mod repeated;

pub(crate) use repeated::{Lists, Maps};

/// Columns of a struct.
pub(crate) enum Columns {}

impl Places for Columns {
    type Int32 = Numbers<Int32Type>;
    type Int64 = Numbers<Int64Type>;
    type UInt64 = Numbers<Decimal128Type>;
    type Float = Numbers<Float32Type>;
    type Double = Numbers<Float64Type>;
    type Bool = Booleans;
    type Text = Bytes<Utf8Type>;
    type Bytes = Bytes<BinaryType>;
    type Enum = Names;
    type Message = Embedded;
    type List = Box<Lists>;
    type Map = Box<Maps>;
}

/// A column, by the Protobuf type that it is read from.
pub(crate) type Value = super::value::Value<Columns>;

/// The column of an embedded message.
pub(crate) struct Embedded {
    pub(crate) is_group: bool,
    pub(crate) column: Message,
}

/// The form that a message has in a column.
pub(crate) enum Message {
    Struct(Box<Messages>),
    Timestamp(Micros<TimestampMicrosecondType>),
    Duration(Micros<DurationMicrosecondType>),
    Json(Box<JsonText>),
}

impl MessagePlace for Embedded {
    #[inline]
    fn is_group(&self) -> bool {
        self.is_group
    }

    #[inline]
    fn read(&mut self, row: usize, group: Option<u32>, reader: &mut Reader<'_>, depth: u32) -> Attempt<()> {
        match &mut self.column {
            Message::Struct(to) => to.read(row, group, reader, depth),
            Message::Timestamp(to) => to.read(group, reader, depth),
            Message::Duration(to) => to.read(group, reader, depth),
            Message::Json(to) => to.read(group, reader, depth),
        }
    }
}

impl Embedded {
    /// A row has a message, though no field may come.
    fn open(&mut self, row: usize) {
        match &mut self.column {
            Message::Struct(column) => column.present.set(row, true),
            Message::Timestamp(column) => column.open(),
            Message::Duration(column) => column.open(),
            Message::Json(column) => column.open(),
        }
    }

    /// Completes a row.
    fn close(&mut self, row: usize, budget: &mut Budget) -> Attempt<()> {
        match &mut self.column {
            Message::Struct(column) => column.close(row, budget),
            Message::Timestamp(column) => column.close(row),
            Message::Duration(column) => column.close(row),
            Message::Json(column) => column.close(row, budget),
        }
    }
}

/// The column of a value, borrowed as the value is.
macro_rules! column {
    ($value:expr, $unbox:ident) => {
        match $value {
            Value::Int32(column) | Value::SInt32(column) | Value::SFixed32(column) => column,
            Value::UInt32(column)
            | Value::Fixed32(column)
            | Value::Int64(column)
            | Value::SInt64(column)
            | Value::SFixed64(column) => column,
            Value::UInt64(column) | Value::Fixed64(column) => column,
            Value::Float(column) => column,
            Value::Double(column) => column,
            Value::Bool(column) => column,
            Value::String(column) => column,
            Value::Bytes(column) => column,
            Value::Enum(column) => column,
            Value::Message(Embedded { column: Message::Struct(column), .. }) => column.$unbox(),
            Value::Message(Embedded { column: Message::Timestamp(column), .. }) => column,
            Value::Message(Embedded { column: Message::Duration(column), .. }) => column,
            Value::Message(Embedded { column: Message::Json(column), .. }) => column.$unbox(),
            Value::List(column) => column.$unbox(),
            Value::Map(column) => column.$unbox(),
        }
    };
}

impl Value {
    fn column(&self) -> &dyn Column {
        column!(self, as_ref)
    }

    fn column_mut(&mut self) -> &mut dyn Column {
        column!(self, as_mut)
    }

    /// True if a row has to be completed after its last piece.
    fn closes(&self) -> bool {
        match self {
            Self::Message(Embedded { column: Message::Struct(messages), .. }) => !messages.closing.is_empty(),
            Self::Message(_) | Self::Map(_) => true,
            _ => false,
        }
    }

    /// Completes a row.
    fn close(&mut self, row: usize, budget: &mut Budget) -> Attempt<()> {
        match self {
            Self::Message(column) => column.close(row, budget),
            Self::Map(column) => {
                column.close(row);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Bytes that a row takes at least, whatever it has; see [`Budget`](crate::budget::Budget).
    pub(crate) fn row_size(&self) -> usize {
        match self {
            Self::Message(Embedded { column: Message::Struct(messages), .. }) => messages.row_size,
            Self::String(column) => column.row_size(),
            Self::Bytes(column) => column.row_size(),
            Self::Enum(column) => column.row_size(),
            Self::UInt64(_) | Self::Fixed64(_) => 16,
            _ => 8,
        }
    }
}

impl Column for Value {
    fn has(&self, row: usize) -> bool {
        self.column().has(row)
    }

    fn truncate(&mut self, row: usize) {
        self.column_mut().truncate(row);
    }

    fn finish(&mut self, rows: usize) -> Attempt<ArrayRef> {
        self.column_mut().finish(rows)
    }
}

/// A field of a message.
pub(crate) struct Field {
    pub(crate) number: u32,
    pub(crate) value: Value,
    pub(crate) label: Label,
}

/// The properties of a field that its message needs, besides the value.
pub(crate) enum Label {
    None,
    /// An index into `oneofs` of its message.
    Oneof(usize),
    /// The messages that have it.
    Required(Bits),
}

/// A struct column.
pub(crate) struct Messages {
    fields: Vec<Field>,
    /// Names and types, for each of `fields`.
    arrow: Fields,
    tags: Tags,
    /// Indexes into `fields` of their members.
    oneofs: Box<[Box<[usize]>]>,
    /// Indexes of the fields that matter when a row is completed.
    closing: Box<[usize]>,
    row_size: usize,
    present: Bits,
}

impl Messages {
    /// `fields` are at most 65,534.
    pub(crate) fn new(fields: Vec<Field>, arrow: Fields, oneofs: Box<[Box<[usize]>]>) -> Self {
        let tags = Tags::new(fields.iter().map(|field| field.number));
        let closes = |field: &Field| matches!(field.label, Label::Required(_)) || field.value.closes();
        let closing = (0..fields.len()).filter(|&index| closes(&fields[index])).collect();
        let row_size = fields.iter().map(|field| field.value.row_size()).sum();
        Self { fields, arrow, tags, oneofs, closing, row_size, present: Bits::unset() }
    }

    pub(crate) fn row_size(&self) -> usize {
        self.row_size
    }

    /// Reads a payload, which is this message if it is one of `count` 1, else the message in the field with this index.
    pub(crate) fn read_payload(
        &mut self,
        row: usize,
        index: usize,
        count: usize,
        reader: &mut Reader<'_>,
    ) -> Attempt<()> {
        match &mut self.fields[index].value {
            Value::Message(message) if count > 1 => {
                self.present.set(row, true);
                message.read(row, None, reader, 0)
            }
            _ => self.read(row, None, reader, 0),
        }
    }

    /// Reads a message, or a piece of one, into a row; up to the end of the group of this number, if it is one.
    pub(crate) fn read(
        &mut self,
        row: usize,
        group: Option<u32>,
        reader: &mut Reader<'_>,
        depth: u32,
    ) -> Attempt<()> {
        self.present.set(row, true);
        self.read_fields(row, group, reader, depth)
    }

    /// Unsets the members of a oneof except this one.
    fn unset_others(&mut self, row: usize, oneof: usize, member: usize) {
        for &other in self.oneofs[oneof].iter().filter(|&&other| other != member) {
            let value = &mut self.fields[other].value;
            if value.has(row) {
                value.truncate(row);
            }
        }
    }

    /// Completes a row.
    #[inline]
    pub(crate) fn close(&mut self, row: usize, budget: &mut Budget) -> Attempt<()> {
        if self.closing.is_empty() || !self.present.get(row) {
            return Ok(());
        }
        self.close_fields(row, budget)
    }

    fn close_fields(&mut self, row: usize, budget: &mut Budget) -> Attempt<()> {
        for &index in &self.closing {
            let field = &mut self.fields[index];
            let closed = match &field.label {
                Label::Required(present) if !present.get(row) => {
                    Err(Failure::new("a required field is missing"))
                }
                _ => field.value.close(row, budget),
            };
            closed.map_err(|failure| failure.in_field(self.arrow[index].name()))?;
        }
        Ok(())
    }
}

impl FieldsOf for Messages {
    #[inline(always)]
    fn tags(&self) -> &Tags {
        &self.tags
    }

    #[inline(always)]
    fn read_field(
        &mut self,
        index: usize,
        row: usize,
        tag: Tag,
        reader: &mut Reader<'_>,
        depth: u32,
    ) -> Attempt<()> {
        let field = &mut self.fields[index];
        match (field.value.read(row, tag, reader, depth), &mut field.label) {
            (Ok(false), _) | (Ok(true), Label::None) => {}
            (Ok(true), Label::Required(present)) => present.set(row, true),
            (Ok(true), &mut Label::Oneof(oneof)) => self.unset_others(row, oneof, index),
            (Err(failure), _) => return Err(failure.in_field(self.arrow[index].name())),
        }
        Ok(())
    }
}

impl Column for Messages {
    fn has(&self, row: usize) -> bool {
        self.present.get(row)
    }

    fn truncate(&mut self, row: usize) {
        self.present.truncate(row);
        for field in &mut self.fields {
            field.value.truncate(row);
            if let Label::Required(present) = &mut field.label {
                present.truncate(row);
            }
        }
    }

    fn finish(&mut self, rows: usize) -> Attempt<ArrayRef> {
        let arrays = self.fields.iter_mut().map(|field| {
            if let Label::Required(present) = &mut field.label {
                present.truncate(0);
            }
            field.value.finish(rows)
        });
        let arrays = arrays.collect::<Attempt<_>>()?;
        Ok(Arc::new(StructArray::new(self.arrow.clone(), arrays, self.present.finish_nulls(rows))))
    }
}
