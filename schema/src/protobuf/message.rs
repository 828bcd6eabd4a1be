//! Columns of messages, and the walk over the wire format that fills them.
//!
//! A field may come in several pieces, anywhere in its message: the last value of a number or string counts, the pieces
//! of an embedded message merge, and those of a repeated field follow each other. So the row of a message stays
//! open until the message around it ends.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    BinaryType, Decimal128Type, DurationMicrosecondType, Float32Type, Float64Type, Int32Type, Int64Type,
    TimestampMicrosecondType, Utf8Type,
};
use arrow_array::{ArrayRef, BooleanArray, ListArray, MapArray, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{FieldRef, Fields};
use arrow_select::filter::filter;

use super::leaves::{JsonText, Micros, Names};
use super::wire::{Reader, Tag, WireType};
use crate::columns::{Booleans, Bytes, Column, Numbers, Offsets, Validity};
use crate::failure::{Attempt, Failure};

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
    /// Reads the value of a field, or a piece of it, into the open row. Returns whether that sets the field: otherwise
    /// it is an unknown one, which is skipped. `depth` is how deep the message is that has the field.
    #[inline]
    fn read(&mut self, tag: Tag, reader: &mut Reader<'_>, depth: u32) -> Attempt<bool> {
        use WireType::{Fixed32, Fixed64, Length, StartGroup, Varint};
        match (self, tag.wire) {
            (Self::Int32(to), Varint) => to.set(reader.varint()? as i32),
            (Self::SInt32(to), Varint) => to.set(zigzag(u64::from(reader.varint()? as u32)) as i32),
            (Self::SFixed32(to), Fixed32) => to.set(i32::from_le_bytes(reader.fixed32()?)),
            (Self::UInt32(to), Varint) => to.set(i64::from(reader.varint()? as u32)),
            (Self::Fixed32(to), Fixed32) => to.set(i64::from(u32::from_le_bytes(reader.fixed32()?))),
            (Self::Int64(to), Varint) => to.set(reader.varint()? as i64),
            (Self::SInt64(to), Varint) => to.set(zigzag(reader.varint()?)),
            (Self::SFixed64(to), Fixed64) => to.set(i64::from_le_bytes(reader.fixed64()?)),
            (Self::UInt64(to), Varint) => to.set(i128::from(reader.varint()?)),
            (Self::Fixed64(to), Fixed64) => to.set(i128::from(u64::from_le_bytes(reader.fixed64()?))),
            (Self::Float(to), Fixed32) => to.set(f32::from_le_bytes(reader.fixed32()?)),
            (Self::Double(to), Fixed64) => to.set(f64::from_le_bytes(reader.fixed64()?)),
            (Self::Bool(to), Varint) => to.set(reader.varint()? != 0),
            (Self::String(to), Length) => {
                let bytes = reader.bytes()?;
                if let Err(error) = std::str::from_utf8(bytes) {
                    let start = reader.position() - bytes.len();
                    return Err(Failure::at(start + error.valid_up_to(), "text that is not UTF-8"));
                }
                to.set(bytes);
            }
            (Self::Bytes(to), Length) => to.set(reader.bytes()?),
            (Self::Enum(to), Varint) => {
                let number = reader.varint()? as i32;
                return to.set(number, reader);
            }
            (Self::List(to), _) => return to.read(tag, reader, depth),
            (Self::Map(to), Length) => return to.read(reader, depth),
            (Self::Message(to), Length) if !to.is_group => {
                reader.check_depth(depth + 1)?;
                reader.delimited(|reader| to.read(None, reader, depth + 1))?;
            }
            (Self::Message(to), StartGroup) if to.is_group => {
                reader.check_depth(depth + 1)?;
                to.read(Some(tag.number), reader, depth + 1)?;
            }
            (Self::Timestamp(to), Length) => reader.delimited(|reader| to.read(reader, depth + 1))?,
            (Self::Duration(to), Length) => reader.delimited(|reader| to.read(reader, depth + 1))?,
            (Self::Json(to), Length) if !to.is_group() => to.set(reader.bytes()?),
            (Self::Json(to), StartGroup) if to.is_group() => to.set(reader.group(tag.number, depth + 1)?),
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

    /// How a repeated field of this type is stored packed: its elements one after the other, without tags.
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
    fn len(&self) -> usize {
        self.column().len()
    }

    fn truncate(&mut self, len: usize) {
        self.column_mut().truncate(len);
    }

    #[inline]
    fn close_row(&mut self) -> Attempt<()> {
        match self {
            Self::Int32(column) => column.close_row(),
            Self::Int64(column) => column.close_row(),
            Self::Double(column) => column.close_row(),
            Self::String(column) => column.close_row(),
            other => other.column_mut().close_row(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        self.column_mut().finish()
    }
}

fn zigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// A field of a message.
pub(crate) struct Field {
    pub(crate) number: u32,
    pub(crate) value: Value,
    /// An index into `oneofs` of its message.
    pub(crate) oneof: Option<usize>,
    pub(crate) required: bool,
}

/// A struct column.
pub(crate) struct Messages {
    fields: Vec<Field>,
    /// Names and types, for each of `fields`.
    arrow: Fields,
    /// Indexes into `fields` by field number, plus 1; 0 is an unknown field. Higher numbers are in `others`.
    by_number: Box<[u16]>,
    others: Box<[(u32, usize)]>,
    /// Indexes into `fields` of their members.
    oneofs: Box<[Box<[usize]>]>,
    is_group: bool,
    row_size: usize,
    open: bool,
    rows: usize,
    validity: Validity,
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
                let place = field.number as usize;
                by_number.resize(by_number.len().max(place + 1), 0);
                by_number[place] = index as u16 + 1;
            } else {
                others.push((field.number, index));
            }
        }
        others.sort_unstable();
        let row_size = fields.iter().map(|field| field.value.row_size()).sum();
        let (by_number, others) = (by_number.into(), others.into());
        let validity = Validity::new();
        Self { fields, arrow, by_number, others, oneofs, is_group, row_size, open: false, rows: 0, validity }
    }

    pub(crate) fn row_size(&self) -> usize {
        self.row_size
    }

    /// Reads a payload, which is this message if it is one of `count` 1, else the message in the field with this index.
    pub(crate) fn read_payload(
        &mut self,
        index: usize,
        count: usize,
        reader: &mut Reader<'_>,
    ) -> Attempt<()> {
        match &mut self.fields[index].value {
            Value::Message(message) if count > 1 => {
                self.open = true;
                message.read(None, reader, 0)
            }
            _ => self.read(None, reader, 0),
        }
    }

    /// From here on the row is a message, though no field may come.
    pub(crate) fn open(&mut self) {
        self.open = true;
    }

    #[inline]
    fn index_of(&self, number: u32) -> Option<usize> {
        match self.by_number.get(number as usize) {
            Some(&found) => (found as usize).checked_sub(1),
            None => {
                let found = self.others.binary_search_by_key(&number, |other| other.0);
                found.ok().map(|found| self.others[found].1)
            }
        }
    }

    /// Reads a message, or a piece of one, into the open row; up to the end of the group of this number, if it is one.
    pub(crate) fn read(&mut self, group: Option<u32>, reader: &mut Reader<'_>, depth: u32) -> Attempt<()> {
        self.open = true;
        while let Some(tag) = reader.next_field(group)? {
            let Some(index) = self.index_of(tag.number) else {
                reader.skip(tag, depth)?;
                continue;
            };
            let field = &mut self.fields[index];
            let set = match field.value.read(tag, reader, depth) {
                Ok(set) => set,
                Err(failure) => return Err(failure.in_field(self.arrow[index].name())),
            };
            if let (true, Some(oneof)) = (set, field.oneof) {
                for &other in self.oneofs[oneof].iter().filter(|&&other| other != index) {
                    let value = &mut self.fields[other].value;
                    if value.len() > self.rows {
                        value.truncate(self.rows);
                    }
                }
            }
        }
        Ok(())
    }
}

impl Column for Messages {
    fn len(&self) -> usize {
        self.rows + usize::from(self.open)
    }

    fn truncate(&mut self, len: usize) {
        self.open = false;
        self.rows = len;
        self.validity.truncate(len);
        self.fields.iter_mut().for_each(|field| field.value.truncate(len));
    }

    fn close_row(&mut self) -> Attempt<()> {
        for (index, field) in self.fields.iter_mut().enumerate() {
            if field.required && self.open && field.value.len() == self.rows {
                return Err(Failure::new("a required field is missing").in_field(self.arrow[index].name()));
            }
            if let Err(failure) = field.value.close_row() {
                return Err(failure.in_field(self.arrow[index].name()));
            }
        }
        self.validity.push(self.open);
        self.rows += 1;
        self.open = false;
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        self.rows = 0;
        let arrays = self.fields.iter_mut().map(|field| field.value.finish()).collect();
        Arc::new(StructArray::new(self.arrow.clone(), arrays, self.validity.finish()))
    }
}

/// A repeated field.
pub(crate) struct Lists {
    offsets: Offsets,
    elements: Value,
    field: FieldRef,
}

impl Lists {
    pub(crate) fn new(elements: Value, field: FieldRef) -> Self {
        Self { offsets: Offsets::new(), elements, field }
    }

    fn read(&mut self, tag: Tag, reader: &mut Reader<'_>, depth: u32) -> Attempt<bool> {
        match self.elements.packed_as() {
            // Whether the schema says packed or not: readers take both.
            Some(wire) if tag.wire == WireType::Length => {
                let element = Tag { number: tag.number, wire };
                reader.delimited(|reader| {
                    while !reader.at_end() {
                        self.read_element(element, reader, depth)?;
                    }
                    Ok(())
                })?;
                Ok(true)
            }
            _ => self.read_element(tag, reader, depth),
        }
    }

    fn read_element(&mut self, tag: Tag, reader: &mut Reader<'_>, depth: u32) -> Attempt<bool> {
        let set = self.elements.read(tag, reader, depth)?;
        if set {
            if let Value::Message(messages) = &self.elements {
                reader.budget.spend(messages.row_size)?;
            }
            self.elements.close_row()?;
        }
        Ok(set)
    }
}

impl Column for Lists {
    /// Whether an open row has elements matters to none.
    fn len(&self) -> usize {
        self.offsets.rows()
    }

    fn truncate(&mut self, len: usize) {
        self.elements.truncate(self.offsets.truncate(len));
    }

    fn close_row(&mut self) -> Attempt<()> {
        self.offsets.push(self.elements.len())
    }

    fn finish(&mut self) -> ArrayRef {
        let elements = self.elements.finish();
        Arc::new(ListArray::new(self.field.clone(), self.offsets.finish(), elements, None))
    }
}

/// A map field: on the wire, a repeated message of a key and a value.
pub(crate) struct Maps {
    offsets: Offsets,
    /// Structs of key and value.
    entries: Messages,
    field: FieldRef,
    /// Entries whose key comes again in the same row, by ascending index: the last one counts.
    replaced: Vec<usize>,
}

/// Keys up to this many are compared with each other.
const FEW: usize = 16;

impl Maps {
    pub(crate) fn new(entries: Messages, field: FieldRef) -> Self {
        Self { offsets: Offsets::new(), entries, field, replaced: Vec::new() }
    }

    fn read(&mut self, reader: &mut Reader<'_>, depth: u32) -> Attempt<bool> {
        reader.check_depth(depth + 1)?;
        reader.budget.spend(self.entries.row_size)?;
        reader.delimited(|reader| self.entries.read(None, reader, depth + 1))?;
        let rows = self.entries.rows;
        let skipped = match &mut self.entries.fields[1].value {
            // An entry without a value has the value's default.
            Value::Message(value) => {
                value.open();
                false
            }
            Value::Timestamp(value) => {
                value.open();
                false
            }
            Value::Duration(value) => {
                value.open();
                false
            }
            Value::Json(value) => {
                value.set(b"");
                false
            }
            Value::Enum(value) => value.take_skipped(),
            _ => false,
        };
        if skipped {
            // Then the whole entry is an unknown field.
            self.entries.truncate(rows);
            return Ok(false);
        }
        self.entries.close_row()?;
        Ok(true)
    }

    fn key(&self, entry: usize) -> Key<'_> {
        match &self.entries.fields[0].value {
            Value::Int32(keys) | Value::SInt32(keys) | Value::SFixed32(keys) => {
                Key::Number(keys.get(entry).into())
            }
            Value::UInt32(keys)
            | Value::Fixed32(keys)
            | Value::Int64(keys)
            | Value::SInt64(keys)
            | Value::SFixed64(keys) => Key::Number(keys.get(entry).into()),
            Value::UInt64(keys) | Value::Fixed64(keys) => Key::Number(keys.get(entry)),
            Value::Bool(keys) => Key::Number(keys.get(entry).into()),
            Value::String(keys) => Key::Text(keys.get(entry)),
            // Protobuf allows no other types.
            _ => Key::Number(entry as i128),
        }
    }
}

#[derive(PartialEq, Eq, Hash)]
enum Key<'a> {
    Number(i128),
    Text(&'a [u8]),
}

impl Column for Maps {
    fn len(&self) -> usize {
        self.offsets.rows()
    }

    fn truncate(&mut self, len: usize) {
        let end = self.offsets.truncate(len);
        self.entries.truncate(end);
        self.replaced.retain(|&entry| entry < end);
    }

    fn close_row(&mut self) -> Attempt<()> {
        let (start, end) = (self.offsets.end(), self.entries.rows);
        let mut replaced = Vec::new();
        if end - start <= FEW {
            let again = |&entry: &usize| (entry + 1..end).any(|later| self.key(later) == self.key(entry));
            replaced.extend((start..end).filter(again));
        } else {
            let mut seen = HashSet::with_capacity(end - start);
            replaced.extend((start..end).rev().filter(|&entry| !seen.insert(self.key(entry))));
            replaced.reverse();
        }
        self.replaced.extend(replaced);
        self.offsets.push(end)
    }

    fn finish(&mut self) -> ArrayRef {
        let mut offsets = self.offsets.finish();
        let mut entries = self.entries.finish();
        let replaced = std::mem::take(&mut self.replaced);
        if !replaced.is_empty() {
            let mut kept = vec![true; entries.len()];
            replaced.iter().for_each(|&entry| kept[entry] = false);
            let before = |&end: &i32| end - replaced.partition_point(|&entry| entry < end as usize) as i32;
            offsets = OffsetBuffer::new(offsets.iter().map(before).collect());
            entries = keep(&entries, kept);
        }
        Arc::new(MapArray::new(self.field.clone(), offsets, entries.as_struct().clone(), None, false))
    }
}

fn keep(entries: &ArrayRef, kept: Vec<bool>) -> ArrayRef {
    // It fails only if the two have different lengths.
    filter(entries, &BooleanArray::from(kept)).unwrap_or_else(|_| entries.clone())
}
