//! The one reader of values: what is stored how, what is skipped, and what a list, a map and a message are made of.
//!
//! It puts values into [`Places`]: columns, or the fields of a message that becomes text. So both have the same rules, which
//! are those of Google's parsers.

use super::tags::Tags;
use super::wire::{Reader, Tag, WireType};
use crate::failure::Attempt;
use crate::varint::unzigzag;

/// Where values go. Rows are those of columns; other places have one.
pub(crate) trait Places {
    type Int32: Place<i32>;
    type Int64: Place<i64>;
    type UInt64: Place<i128>;
    type Float: Place<f32>;
    type Double: Place<f64>;
    type Bool: Place<bool>;
    type Text: BytesPlace;
    type Bytes: BytesPlace;
    type Enum: EnumPlace;
    type Message: MessagePlace;
    type List: ListPlace;
    type Map: MapPlace;
}

/// A place for numbers; the last one counts.
pub(crate) trait Place<V> {
    fn set(&mut self, row: usize, value: V);
}

/// A place for text or bytes; the last ones count.
pub(crate) trait BytesPlace {
    fn set(&mut self, row: usize, value: &[u8]) -> Attempt<()>;
}

/// A place for the numbers of an enum.
pub(crate) trait EnumPlace {
    /// Returns whether the enum has the number: otherwise nothing is set.
    fn set(&mut self, row: usize, number: i32, reader: &mut Reader<'_>) -> Attempt<bool>;
}

/// A place for a message, whose pieces merge.
pub(crate) trait MessagePlace {
    fn is_group(&self) -> bool;

    /// Reads a message, or a piece of one; up to the end of the group of this number, if it is one.
    fn read(&mut self, row: usize, group: Option<u32>, reader: &mut Reader<'_>, depth: u32) -> Attempt<()>;
}

/// A place for the elements of a repeated field, one after the other.
pub(crate) trait ListPlace {
    /// Begins to read elements of a row.
    fn open(&mut self, row: usize) -> Attempt<()>;

    /// The wire type of elements in the packed form; `None` if there is none for their type.
    fn packed_as(&self) -> Option<WireType>;

    /// Reads an element; returns whether there is one.
    fn read_element(&mut self, tag: Tag, reader: &mut Reader<'_>, depth: u32) -> Attempt<bool>;

    /// Reads all elements at once if each has the same size; otherwise none.
    fn read_fixed(&mut self, _reader: &mut Reader<'_>) {}

    /// Readers take both forms, whether the schema says packed or not.
    #[inline(never)]
    fn read(&mut self, row: usize, tag: Tag, reader: &mut Reader<'_>, depth: u32) -> Attempt<bool> {
        self.open(row)?;
        match self.packed_as() {
            Some(wire) if tag.wire == WireType::Length => {
                let element = Tag { number: tag.number, wire };
                reader.delimited(|reader| {
                    self.read_fixed(reader);
                    while !reader.at_end() {
                        self.read_element(element, reader, depth)?;
                    }
                    Ok(true)
                })
            }
            _ => self.read_element(tag, reader, depth),
        }
    }
}

/// A place for the entries of a map, each a message of a key and a value.
pub(crate) trait MapPlace {
    /// Reads an entry; returns whether there is one.
    fn read(&mut self, row: usize, reader: &mut Reader<'_>, depth: u32) -> Attempt<bool>;
}

/// A place, by the Protobuf type of what goes there.
pub(crate) enum Value<P: Places> {
    Int32(P::Int32),
    SInt32(P::Int32),
    SFixed32(P::Int32),
    UInt32(P::Int64),
    Fixed32(P::Int64),
    Int64(P::Int64),
    SInt64(P::Int64),
    SFixed64(P::Int64),
    UInt64(P::UInt64),
    Fixed64(P::UInt64),
    Float(P::Float),
    Double(P::Double),
    Bool(P::Bool),
    String(P::Text),
    Bytes(P::Bytes),
    Enum(P::Enum),
    Message(P::Message),
    List(P::List),
    Map(P::Map),
}

impl<P: Places> Value<P> {
    /// Reads the value of a field, or a piece of it, into a row. Returns whether that sets the field: otherwise it is
    /// an unknown one, which is skipped. `depth` is how deep the message is that has the field.
    #[inline(always)]
    pub(crate) fn read(
        &mut self,
        row: usize,
        tag: Tag,
        reader: &mut Reader<'_>,
        depth: u32,
    ) -> Attempt<bool> {
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
            (Self::String(to), Length) => to.set(row, reader.text()?)?,
            (Self::Bytes(to), Length) => to.set(row, reader.bytes()?)?,
            (Self::Enum(to), Varint) => {
                let number = reader.varint()? as i32;
                return to.set(row, number, reader);
            }
            (Self::List(to), _) => return to.read(row, tag, reader, depth),
            (Self::Map(to), Length) => return to.read(row, reader, depth),
            (Self::Message(to), Length) if !to.is_group() => {
                reader.check_depth(depth + 1)?;
                reader.delimited(|reader| to.read(row, None, reader, depth + 1))?;
            }
            (Self::Message(to), StartGroup) if to.is_group() => {
                reader.check_depth(depth + 1)?;
                to.read(row, Some(tag.number), reader, depth + 1)?;
            }
            _ => {
                reader.skip(tag, depth)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The wire type of elements in a packed repeated field of this type. They are stored one after the other, without
    /// tags.
    pub(crate) fn packed_as(&self) -> Option<WireType> {
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
}

/// A message whose fields are read.
pub(crate) trait Fields {
    fn tags(&self) -> &Tags;

    /// Reads the value of a field, or a piece of it, by the index that [`Fields::tags`] gives the field.
    fn read_field(
        &mut self,
        index: usize,
        row: usize,
        tag: Tag,
        reader: &mut Reader<'_>,
        depth: u32,
    ) -> Attempt<()>;

    /// Reads the fields of a message, or a piece of one, into a row; up to the end of the group of this number, if it is
    /// one.
    #[inline(always)]
    fn read_fields(
        &mut self,
        row: usize,
        group: Option<u32>,
        reader: &mut Reader<'_>,
        depth: u32,
    ) -> Attempt<()> {
        loop {
            let (tag, index) = match self.tags().short(reader) {
                Some((tag, index)) => (tag, index),
                None if reader.at_end() && group.is_none() => return Ok(()),
                None => {
                    let Some(tag) = reader.next_field(group)? else { return Ok(()) };
                    let Some(index) = self.tags().index_of(tag.number) else {
                        reader.skip(tag, depth)?;
                        continue;
                    };
                    (tag, index)
                }
            };
            self.read_field(index, row, tag, reader, depth)?;
        }
    }
}
