//! The framing of schema registries: the bytes by which a key or value names the schema that it was written with.
//!
//! | form | bytes | source |
//! |---|---|---|
//! | id | 0x00, the id in 4 bytes, the payload | Confluent's `SchemaId` |
//! | GUID | 0x01, 16 bytes, the payload | Confluent's `SchemaId` |
//! | header | either of them in a header of the record; the payload is the whole value | `HeaderSchemaIdSerializer` |
//! | long id | 0x00, the id in 8 bytes, the payload | Apicurio's `DefaultIdHandler`, on request only |
//!
//! The bytes do not tell the type of the schema. If it is Protobuf, the indexes of the message in its file follow the
//! id or GUID: [`Framed::message_indexes`].
//!
//! ```
//! use magicbyte::schema_framing::{Framed, IdSize, SchemaId};
//!
//! let framed = Framed::parse(b"\0\0\0\0\x07payload", None, IdSize::Four)?.unwrap();
//! assert_eq!(framed.schema, SchemaId::Id(7));
//! assert_eq!(framed.payload, b"payload");
//! // A value without framing.
//! assert_eq!(Framed::parse(b"{}", None, IdSize::Four)?, None);
//! # Ok::<(), magicbyte::Error>(())
//! ```

use std::borrow::Cow;

use crate::bytes::cursor::Cursor;
use crate::bytes::varint::encode_varint;
use crate::error::{ErrorKind, Result};

/// The header with the schema of a record's key.
pub const KEY_SCHEMA_ID_HEADER: &str = "__key_schema_id";
/// The header with the schema of a record's value.
pub const VALUE_SCHEMA_ID_HEADER: &str = "__value_schema_id";

const ID: u8 = 0;
const GUID: u8 = 1;

/// A schema's name in the framing: an id or a GUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SchemaId {
    /// A registry's number, unique in a context of the registry.
    Id(i64),
    /// A hash of the schema, the same in every registry; the bytes in the order of a UUID's text.
    Guid([u8; 16]),
}

/// The path of a Protobuf message in its file: an index for each level of nesting. It borrows the usual paths, of the
/// first 64 messages that are not inside another.
pub type MessageIndexes = Cow<'static, [i32]>;

/// The message indexes of the usual paths.
static FIRST: [i32; 64] = {
    let mut indexes = [0; 64];
    let mut index = 0;
    while index < indexes.len() {
        indexes[index] = index as i32;
        index += 1;
    }
    indexes
};

/// The size of an id in the framing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdSize {
    /// Four bytes, written by Confluent and, by default, by Apicurio 3.
    #[default]
    Four,
    /// Eight bytes, written by Apicurio's `DefaultIdHandler`. A value that begins with 0x01 is then not framed.
    Eight,
}

/// A key or value with its schema's id; the slices borrow from the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framed<'a> {
    /// The schema that it was written with.
    pub schema: SchemaId,
    /// The bytes after the id, or with a header all bytes of the value.
    pub payload: &'a [u8],
    /// The bytes of the header after the id.
    header: Option<&'a [u8]>,
    id_bytes: usize,
}

impl<'a> Framed<'a> {
    /// Takes a key or value apart, given its schema header if the record has one, which is decisive.
    ///
    /// Returns `None` for a value that is not framed: its first byte is another, or it is shorter than an id.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRecord`] or [`ErrorKind::UnexpectedEnd`] if the header is neither of the two forms.
    #[inline(always)]
    pub fn parse(value: &'a [u8], header: Option<&'a [u8]>, size: IdSize) -> Result<Option<Self>> {
        if let Some(header) = header {
            let (schema, rest) = split_header(header).map_err(|e| e.in_field("schemaId").at_position(0))?;
            let id_bytes = header.len() - rest.len();
            return Ok(Some(Self { schema, payload: value, header: Some(rest), id_bytes }));
        }
        Ok(split(value, size).map(|(schema, payload)| {
            let id_bytes = value.len() - payload.len();
            Self { schema, payload, header: None, id_bytes }
        }))
    }

    /// The position in the value at which the payload begins.
    #[must_use]
    #[inline]
    pub fn value_offset(&self) -> usize {
        if self.header.is_some() { 0 } else { self.id_bytes }
    }

    /// The size of the id in bytes, in the header if there is one, otherwise in the value.
    #[must_use]
    pub fn id_bytes(&self) -> usize {
        self.id_bytes
    }

    /// For a Protobuf schema: the path of the message in its file, and the payload without it.
    ///
    /// # Errors
    /// The errors of [`parse_message_indexes`]; positions count from the start of the value, or of the header if there
    /// is one.
    #[inline]
    pub fn message_indexes(&self) -> Result<(MessageIndexes, &'a [u8])> {
        let parsed = parse_message_indexes(self.header.unwrap_or(self.payload));
        let (indexes, rest) = parsed.map_err(|e| e.shifted_by(self.id_bytes as u64))?;
        Ok((indexes, if self.header.is_some() { self.payload } else { rest }))
    }
}

#[inline]
fn split(value: &[u8], size: IdSize) -> Option<(SchemaId, &[u8])> {
    match (value.split_first()?, size) {
        ((&ID, rest), IdSize::Four) => {
            let (id, payload) = rest.split_first_chunk()?;
            Some((SchemaId::Id(i32::from_be_bytes(*id).into()), payload))
        }
        ((&ID, rest), IdSize::Eight) => {
            let (id, payload) = rest.split_first_chunk()?;
            Some((SchemaId::Id(i64::from_be_bytes(*id)), payload))
        }
        ((&GUID, rest), IdSize::Four) => {
            let (guid, payload) = rest.split_first_chunk()?;
            Some((SchemaId::Guid(*guid), payload))
        }
        _ => None,
    }
}

fn split_header(header: &[u8]) -> Result<(SchemaId, &[u8])> {
    if let Some(found) = split(header, IdSize::Four) {
        return Ok(found);
    }
    Err(match header.first() {
        None | Some(&(ID | GUID)) => ErrorKind::UnexpectedEnd,
        Some(_) => ErrorKind::InvalidRecord(
            "a schema header begins with 0x00 and an id of 4 bytes, or 0x01 and a GUID of 16 bytes",
        ),
    }
    .into())
}

/// The message indexes at the start of `data`, and the bytes after them. A single byte 0 is short for the first
/// message.
///
/// # Errors
/// With the position of the first byte of the number that is at fault: [`ErrorKind::UnexpectedEnd`],
/// [`ErrorKind::InvalidVarint`], [`ErrorKind::InvalidCount`] for more indexes than `data` has bytes,
/// [`ErrorKind::InvalidRecord`] for a negative index.
#[inline]
pub fn parse_message_indexes(data: &[u8]) -> Result<(MessageIndexes, &[u8])> {
    match data {
        [0, rest @ ..] => Ok((Cow::Borrowed(&FIRST[..1]), rest)),
        // One index, whose varint is one byte and not negative.
        [2, index, rest @ ..] if index & 0x81 == 0 => {
            Ok((Cow::Borrowed(std::slice::from_ref(&FIRST[usize::from(index / 2)])), rest))
        }
        _ => parse_other_indexes(data),
    }
}

fn parse_other_indexes(data: &[u8]) -> Result<(MessageIndexes, &[u8])> {
    let mut cursor = Cursor::new(data);
    let mut start = 0;
    let indexes = read_indexes(&mut cursor, &mut start)
        .map_err(|e| e.in_field("messageIndexes").at_position(start as u64))?;
    Ok((indexes, &data[cursor.position()..]))
}

/// `start` is left at the number that was read last.
fn read_indexes(cursor: &mut Cursor<'_>, start: &mut usize) -> Result<MessageIndexes> {
    let count = cursor.varint()?;
    if count == 0 {
        return Ok(Cow::Borrowed(&FIRST[..1]));
    }
    // Each index takes a byte at least.
    if usize::try_from(count).is_ok_and(|count| count <= cursor.remaining()) {
        let indexes = (0..count).map(|_| {
            *start = cursor.position();
            match cursor.varint()? {
                index @ 0.. => Ok(index),
                _ => Err(ErrorKind::InvalidRecord("a message index is negative").into()),
            }
        });
        return indexes.collect();
    }
    Err(ErrorKind::InvalidCount(count.into()).into())
}

/// The bytes before a payload, or in a header: the id, then for Protobuf the message indexes, which are empty for
/// other kinds of schemas.
///
/// # Errors
/// [`ErrorKind::InvalidOptions`] for an id that does not fit, a GUID with [`IdSize::Eight`], or a negative index.
///
/// ```
/// use magicbyte::schema_framing::{IdSize, SchemaId, write_schema_framing};
///
/// // The first message of a Protobuf file.
/// assert_eq!(write_schema_framing(SchemaId::Id(7), &[0], IdSize::Four)?, b"\0\0\0\0\x07\0");
/// # Ok::<(), magicbyte::Error>(())
/// ```
pub fn write_schema_framing(schema: SchemaId, message_indexes: &[i32], size: IdSize) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    match (schema, size) {
        (SchemaId::Id(id), IdSize::Four) => {
            let Ok(id) = i32::try_from(id) else {
                return Err(ErrorKind::InvalidOptions("the schema id does not fit into 4 bytes").into());
            };
            out.push(ID);
            out.extend(id.to_be_bytes());
        }
        (SchemaId::Id(id), IdSize::Eight) => {
            out.push(ID);
            out.extend(id.to_be_bytes());
        }
        (SchemaId::Guid(guid), IdSize::Four) => {
            out.push(GUID);
            out.extend(guid);
        }
        (SchemaId::Guid(_), IdSize::Eight) => {
            return Err(
                ErrorKind::InvalidOptions("there is no GUID in the framing with ids of 8 bytes").into()
            );
        }
    }
    match message_indexes {
        [] => {}
        [0] => out.push(0),
        indexes if indexes.iter().any(|&index| index < 0) => {
            return Err(ErrorKind::InvalidOptions("a message index is negative").into());
        }
        indexes => {
            encode_varint(indexes.len() as i64, &mut out);
            indexes.iter().for_each(|&index| encode_varint(index.into(), &mut out));
        }
    }
    Ok(out)
}
