//! Columns of messages, and the walk over the wire format that fills them.
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

use super::columns::{Bits, Booleans, Bytes, Column, Numbers, is_ascii};
use super::leaves::{JsonText, Micros, Names};
use super::wire::{Reader, ShortTags, Tag, WireType};
use crate::budget::Budget;
use crate::failure::{Attempt, Failure};
use crate::varint::unzigzag;

mod repeated;

pub(crate) use repeated::{Lists, Maps};

/// A column, by the Protobuf type that it is read from.
pub(crate) enum Value {
    Int32(Numbers<Int32Type>),
    SInt32(Numbers<Int32Type>),
    SFixed32(Numbers<Int32Type>),
    UInt32(Numbers<Int64Type>),
    Fixed32(Numbers<Int64Type>),
    Int64(Numbers<Int64Type>),
    SInt64(Numbers<Int64Type>),
    SFixed64(Numbers<Int64Type>),
    UInt64(Numbers<Decimal128Type>),
    Fixed64(Numbers<Decimal128Type>),
    Float(Numbers<Float32Type>),
    Double(Numbers<Float64Type>),
    Bool(Booleans),
    String(Bytes<Utf8Type>),
    Bytes(Bytes<BinaryType>),
    Enum(Names),
    Timestamp(Micros<TimestampMicrosecondType>),
    Duration(Micros<DurationMicrosecondType>),
    Message(Box<Messages>),
    Json(Box<JsonText>),
    List(Box<Lists>),
    Map(Box<Maps>),
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
            Value::Timestamp(column) => column,
            Value::Duration(column) => column,
            Value::Message(column) => column.$unbox(),
            Value::Json(column) => column.$unbox(),
            Value::List(column) => column.$unbox(),
            Value::Map(column) => column.$unbox(),
        }
    };
}

impl Value {
    /// Reads the value of a field, or a piece of it, into a row. Returns whether that sets the field: otherwise it is
    /// an unknown one, which is skipped. `depth` is how deep the message is that has the field.
    #[inline(always)]
    fn read(&mut self, row: usize, tag: Tag, reader: &mut Reader<'_>, depth: u32) -> Attempt<bool> {
        use WireType::{Fixed32, Fixed64, Length, StartGroup, Varint};
        match (self, tag.wire) {
            (Self::Int32(to), Varint) => to.set(row, reader.varint()? as i32),
            (Self::SInt32(to), Varint) => to.set(row, unzigzag(u64::from(reader.varint()? as u32)) as i32),
            (Self::SFixed32(to), Fixed32) => to.set(row, i32::from_le_bytes(reader.fixed32()?)),
            (Self::UInt32(to), Varint) => to.set(row, i64::from(reader.varint()? as u32)),
            (Self::Fixed32(to), Fixed32) => to.set(row, i64::from(u32::from_le_bytes(reader.fixed32()?))),
            (Self::Int64(to), Varint) => to.set(row, reader.varint()? as i64),
            (Self::SInt64(to), Varint) => to.set(row, unzigzag(reader.varint()?)),
            (Self::SFixed64(to), Fixed64) => to.set(row, i64::from_le_bytes(reader.fixed64()?)),
            (Self::UInt64(to), Varint) => to.set(row, i128::from(reader.varint()?)),
            (Self::Fixed64(to), Fixed64) => to.set(row, i128::from(u64::from_le_bytes(reader.fixed64()?))),
            (Self::Float(to), Fixed32) => to.set(row, f32::from_le_bytes(reader.fixed32()?)),
            (Self::Double(to), Fixed64) => to.set(row, f64::from_le_bytes(reader.fixed64()?)),
            (Self::Bool(to), Varint) => to.set(row, reader.varint()? != 0),
            (Self::String(to), Length) => {
                let bytes = reader.bytes()?;
                if !is_ascii(bytes)
                    && let Err(error) = std::str::from_utf8(bytes)
                {
                    let start = reader.position() - bytes.len();
                    return Err(Failure::at(start + error.valid_up_to(), "text that is not UTF-8"));
                }
                to.set(row, bytes)?;
            }
            (Self::Bytes(to), Length) => to.set(row, reader.bytes()?)?,
            (Self::Enum(to), Varint) => {
                let number = reader.varint()? as i32;
                if !to.set(row, number, reader)? {
                    return Ok(false);
                }
            }
            (Self::List(to), _) => {
                if !to.read(row, tag, reader, depth)? {
                    return Ok(false);
                }
            }
            (Self::Map(to), Length) => {
                if !to.read(row, reader, depth)? {
                    return Ok(false);
                }
            }
            (Self::Message(to), Length) if !to.is_group => {
                reader.check_depth(depth + 1)?;
                reader.delimited(|reader| to.read(row, None, reader, depth + 1))?;
            }
            (Self::Message(to), StartGroup) if to.is_group => {
                reader.check_depth(depth + 1)?;
                to.read(row, Some(tag.number), reader, depth + 1)?;
            }
            (Self::Timestamp(to), Length) => reader.delimited(|reader| to.read(reader, depth + 1))?,
            (Self::Duration(to), Length) => reader.delimited(|reader| to.read(reader, depth + 1))?,
            (Self::Json(to), Length) if !to.is_group() => to.add(reader.bytes()?),
            (Self::Json(to), StartGroup) if to.is_group() => to.add(reader.group(tag.number, depth + 1)?),
            _ => {
                reader.skip(tag, depth)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn column(&self) -> &dyn Column {
        column!(self, as_ref)
    }

    fn column_mut(&mut self) -> &mut dyn Column {
        column!(self, as_mut)
    }

    /// The wire type of elements in a packed repeated field of this type. They are stored one after the other, without
    /// tags.
    fn packed_as(&self) -> Option<WireType> {
        match self {
            Self::Int32(_)
            | Self::SInt32(_)
            | Self::UInt32(_)
            | Self::Int64(_)
            | Self::SInt64(_)
            | Self::UInt64(_)
            | Self::Bool(_)
            | Self::Enum(_) => Some(WireType::Varint),
            Self::SFixed32(_) | Self::Fixed32(_) | Self::Float(_) => Some(WireType::Fixed32),
            Self::SFixed64(_) | Self::Fixed64(_) | Self::Double(_) => Some(WireType::Fixed64),
            _ => None,
        }
    }

    /// True if a row has to be completed after its last piece.
    fn closes(&self) -> bool {
        match self {
            Self::Timestamp(_) | Self::Duration(_) | Self::Json(_) | Self::Map(_) => true,
            Self::Message(messages) => !messages.closing.is_empty(),
            _ => false,
        }
    }

    /// Completes a row.
    fn close(&mut self, row: usize, budget: &mut Budget) -> Attempt<()> {
        match self {
            Self::Timestamp(column) => column.close(row),
            Self::Duration(column) => column.close(row),
            Self::Json(column) => column.close(row, budget),
            Self::Message(messages) => messages.close(row, budget),
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
            Self::Message(messages) => messages.row_size,
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
    short_tags: Box<ShortTags>,
    /// Indexes into `fields` by field number, plus 1; 0 is an unknown field. Higher numbers are in `others`.
    by_number: Box<[u16]>,
    others: Box<[(u32, usize)]>,
    /// Indexes into `fields` of their members.
    oneofs: Box<[Box<[usize]>]>,
    /// Indexes of the fields that matter when a row is completed.
    closing: Box<[usize]>,
    is_group: bool,
    row_size: usize,
    present: Bits,
}

/// Field numbers below this are looked up in a table.
const TABLE: u32 = 512;

impl Messages {
    /// `fields` are at most 65,534.
    pub(crate) fn new(
        fields: Vec<Field>,
        arrow: Fields,
        oneofs: Box<[Box<[usize]>]>,
        is_group: bool,
    ) -> Self {
        let mut by_number = Vec::new();
        let mut others = Vec::new();
        for (index, field) in fields.iter().enumerate() {
            if field.number < TABLE {
                let slot = field.number as usize;
                by_number.resize(by_number.len().max(slot + 1), 0);
                by_number[slot] = index as u16 + 1;
            } else {
                others.push((field.number, index));
            }
        }
        others.sort_unstable();
        // Number 0 is one that no tag has.
        let numbers = fields.iter().map(|field| field.number).zip(0..).filter(|field| field.0 > 0);
        let short_tags = Box::new(ShortTags::new(numbers));
        let closes = |field: &Field| matches!(field.label, Label::Required(_)) || field.value.closes();
        let closing = (0..fields.len()).filter(|&index| closes(&fields[index])).collect();
        let row_size = fields.iter().map(|field| field.value.row_size()).sum();
        let (by_number, others) = (by_number.into(), others.into());
        let present = Bits::unset();
        Self { fields, arrow, short_tags, by_number, others, oneofs, closing, is_group, row_size, present }
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

    #[inline]
    fn index_of(&self, number: u32) -> Option<usize> {
        match self.by_number.get(number as usize) {
            Some(&index) => (index as usize).checked_sub(1),
            None => {
                let index = self.others.binary_search_by_key(&number, |other| other.0);
                index.ok().map(|index| self.others[index].1)
            }
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
        loop {
            let (tag, index) = match reader.short_tag(&self.short_tags) {
                Some((tag, index)) => (tag, index),
                None if reader.at_end() && group.is_none() => return Ok(()),
                None => {
                    let Some(tag) = reader.next_field(group)? else { return Ok(()) };
                    let Some(index) = self.index_of(tag.number) else {
                        reader.skip(tag, depth)?;
                        continue;
                    };
                    (tag, index)
                }
            };
            let field = &mut self.fields[index];
            match (field.value.read(row, tag, reader, depth), &mut field.label) {
                (Ok(false), _) | (Ok(true), Label::None) => {}
                (Ok(true), Label::Required(present)) => present.set(row, true),
                (Ok(true), &mut Label::Oneof(oneof)) => self.unset_others(row, oneof, index),
                (Err(failure), _) => return Err(failure.in_field(self.arrow[index].name())),
            }
        }
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
