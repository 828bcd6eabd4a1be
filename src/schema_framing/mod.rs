//! The framing of keys and values: the bytes, or the header, by which they name the schema that they were written with.
//!
//! | framing | bytes | source |
//! |---|---|---|
//! | Confluent, id | 0x00, the id in 4 bytes, the payload | Confluent's `SchemaId`; Apicurio's `Default4ByteIdHandler` |
//! | Confluent, GUID | 0x01, 16 bytes, the payload | Confluent's `SchemaId` |
//! | Confluent, header | either of them in a header of the record; the payload is the whole value | `HeaderSchemaIdSerializer` |
//! | Apicurio | 0x00, the id in 8 bytes, the payload | Apicurio's `Legacy8ByteIdHandler` |
//! | Apicurio, header | the id in 8 bytes in a header; the payload is the whole value | Apicurio's `DefaultHeadersHandler` |
//! | AWS Glue | 0x03, 0x00 or 0x05 for zlib, a UUID in 16 bytes, the payload | AWS's `SerializationDataEncoder` |
//! | single object | 0xc3 0x01, the fingerprint in 8 bytes, least significant first, the payload | Avro's `BinaryMessageEncoder` |
//!
//! The bytes do not tell the type of the schema. If it is Protobuf, the message follows: [`Framed::message`].
//!
//! ```
//! use magicbyte::schema_framing::{Framed, Framing, SchemaId};
//!
//! let framed = Framed::parse(b"\0\0\0\0\x07payload", None, Framing::Auto)?.unwrap();
//! assert_eq!(framed.schema, SchemaId::Id(7));
//! assert_eq!(framed.payload, b"payload");
//! // A value without framing.
//! assert_eq!(Framed::parse(b"{}", None, Framing::Auto)?, None);
//! # Ok::<(), magicbyte::Error>(())
//! ```

mod header;
mod message_indexes;
mod windows;

pub use header::{KEY_SCHEMA_ID_HEADER, SchemaHeader, VALUE_SCHEMA_ID_HEADER};
pub use message_indexes::{MessageIndexes, parse_message_indexes};
pub use windows::{Window, Windows};

use crate::bytes::varint::encode_varint;
use crate::error::{Error, ErrorKind, Result};
use message_indexes::plain_varint;

const ID: u8 = 0;
const GUID: u8 = 1;
const GLUE: u8 = 3;
const ZLIB: u8 = 5;
const SINGLE_OBJECT: [u8; 2] = [0xc3, 1];

/// A schema's name in the framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SchemaId {
    /// A registry's number, unique in a context of the registry.
    Id(i64),
    /// A UUID, its bytes in the order of its text: Confluent's GUID, a hash of the schema that is the same in every
    /// registry, or the schema version of AWS Glue.
    Guid([u8; 16]),
    /// The CRC-64-AVRO of the schema's Parsing Canonical Form.
    Fingerprint(u64),
}

/// The framing of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// The one that the first bytes or the headers say. Ids in values have 4 bytes.
    #[default]
    Auto,
    /// That of Confluent's serializers.
    Confluent,
    /// That of Apicurio's serializers with ids of 8 bytes, or headers.
    Apicurio,
    /// That of AWS Glue's serializers.
    Glue,
    /// Avro's single-object encoding.
    SingleObject,
    /// None: the payload is the whole value.
    Bare,
}

/// The size of an id in the framing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdSize {
    /// Four bytes, written by Confluent and, by default, by Apicurio 3.
    #[default]
    Four,
    /// Eight bytes, written by Apicurio before.
    Eight,
}

/// The place of a schema's name, and what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place<'a> {
    Value,
    /// Confluent's header, with its bytes after the id.
    ConfluentHeader(&'a [u8]),
    ApicurioHeader,
}

/// A key or value with its schema's name; the slices borrow from the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framed<'a> {
    /// The schema that it was written with.
    pub schema: SchemaId,
    /// The bytes after the name, or with a header all bytes of the value.
    pub payload: &'a [u8],
    /// The framing, which is neither `Auto` nor `Bare`.
    pub framing: Framing,
    /// True if the payload is compressed by zlib, as AWS Glue's serializers do on request.
    pub is_deflated: bool,
    place: Place<'a>,
    id_bytes: usize,
}

/// The Protobuf message that a payload is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// By its path.
    Path(MessageIndexes),
    /// By its place among all messages of the file, nested ones too, in the order of their full names, as AWS Glue does.
    Sorted(u32),
    /// By its name without its package, as Apicurio does.
    Name(&'a str),
}

impl<'a> Framed<'a> {
    /// Takes a key or value apart, given the header with its schema if the record has one, which is decisive.
    ///
    /// Returns `None` for a value that is not framed: its first bytes are others, or it is shorter than a name.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRecord`] or [`ErrorKind::UnexpectedEnd`] if the header has other content than its name says.
    #[inline(always)]
    pub fn parse(
        value: &'a [u8],
        header: Option<(SchemaHeader, &'a [u8])>,
        framing: Framing,
    ) -> Result<Option<Self>> {
        if let Some((name, content)) = header
            && name.is_of(framing)
        {
            return Self::by_header(value, name, content)
                .map(Some)
                .map_err(|e| e.in_field("schemaId").at_position(0));
        }
        Ok(match (value.first(), framing) {
            (Some(&ID), Framing::Auto | Framing::Confluent) => {
                named(value, 1, Framing::Confluent, |id| SchemaId::Id(i32::from_be_bytes(id).into()))
            }
            (Some(&ID), Framing::Apicurio) => {
                named(value, 1, Framing::Apicurio, |id| SchemaId::Id(i64::from_be_bytes(id)))
            }
            (Some(&GUID), Framing::Auto | Framing::Confluent) => {
                named(value, 1, Framing::Confluent, SchemaId::Guid)
            }
            (Some(&GLUE), Framing::Auto | Framing::Glue) => Self::by_glue(value),
            (Some(first), Framing::Auto | Framing::SingleObject)
                if *first == SINGLE_OBJECT[0] && value.get(1) == Some(&SINGLE_OBJECT[1]) =>
            {
                let name = |print| SchemaId::Fingerprint(u64::from_le_bytes(print));
                named(value, 2, Framing::SingleObject, name)
            }
            _ => None,
        })
    }

    #[cold]
    fn by_header(value: &'a [u8], name: SchemaHeader, content: &'a [u8]) -> Result<Self> {
        let framed = |schema, framing, place, id_bytes| Self {
            schema,
            payload: value,
            framing,
            is_deflated: false,
            place,
            id_bytes,
        };
        match name {
            SchemaHeader::Confluent => {
                let (schema, rest) = split_header(content)?;
                let id_bytes = content.len() - rest.len();
                Ok(framed(schema, Framing::Confluent, Place::ConfluentHeader(rest), id_bytes))
            }
            SchemaHeader::ApicurioGlobalId | SchemaHeader::ApicurioContentId => match content.try_into() {
                Ok(id) => {
                    let schema = SchemaId::Id(i64::from_be_bytes(id));
                    Ok(framed(schema, Framing::Apicurio, Place::ApicurioHeader, content.len()))
                }
                Err(_) => Err(ErrorKind::InvalidRecord("Apicurio's header has an id of 8 bytes").into()),
            },
            SchemaHeader::ApicurioOther => Err(ErrorKind::InvalidRecord(
                "Apicurio's headers name the schema by a hash or an artifact, not by an id, which is not read",
            )
            .into()),
        }
    }

    fn by_glue(value: &'a [u8]) -> Option<Self> {
        let is_deflated = match *value.get(1)? {
            0 => false,
            ZLIB => true,
            _ => return None,
        };
        Some(Self { is_deflated, ..named(value, 2, Framing::Glue, SchemaId::Guid)? })
    }

    /// The value with an id of 8 bytes, if it has 0x00 and four bytes that are 0 now: no registry gives the id 0.
    #[must_use]
    pub fn with_long_id(&self, value: &'a [u8]) -> Option<Self> {
        let is_short = self.schema == SchemaId::Id(0) && self.place == Place::Value;
        if is_short { Self::parse(value, None, Framing::Apicurio).ok()? } else { None }
    }

    /// The position in the value at which the payload begins.
    #[must_use]
    #[inline]
    pub fn value_offset(&self) -> usize {
        if self.place == Place::Value { self.id_bytes } else { 0 }
    }

    /// The size of the name in bytes, in the header if there is one, otherwise in the value.
    #[must_use]
    pub fn id_bytes(&self) -> usize {
        self.id_bytes
    }

    /// For a Protobuf schema: its message, and the payload without it. `type_name` is the content of the header
    /// [`SchemaHeader::protobuf_type`], and `payload` is [`Framed::payload`], inflated.
    ///
    /// # Errors
    /// The errors of [`parse_message_indexes`]; positions count from the start of the value, or of the header if there
    /// is one.
    #[inline]
    pub fn message<'p>(
        &self,
        payload: &'p [u8],
        type_name: Option<&'p [u8]>,
    ) -> Result<(Message<'p>, &'p [u8])>
    where
        'a: 'p,
    {
        match (self.place, self.framing) {
            (Place::ConfluentHeader(rest), _) => {
                let (path, _) = self.indexes(rest)?;
                Ok((Message::Path(path), payload))
            }
            (_, Framing::Glue) => match plain_varint(payload) {
                Some((number, rest)) => Ok((Message::Sorted(number), rest)),
                None => Err(Error::new(ErrorKind::InvalidVarint).in_field("messageIndex").at_position(0)),
            },
            (place, _) => {
                if let Some(found) = message_reference(payload) {
                    return Ok(found);
                }
                if let Some(name) = type_name.and_then(|name| std::str::from_utf8(name).ok()) {
                    return Ok((Message::Name(name), payload));
                }
                if place == Place::ApicurioHeader {
                    return Ok((Message::Path(MessageIndexes::Borrowed(&[0])), payload));
                }
                let (path, rest) = self.indexes(payload)?;
                Ok((Message::Path(path), rest))
            }
        }
    }

    #[inline]
    fn indexes<'p>(&self, data: &'p [u8]) -> Result<(MessageIndexes, &'p [u8])> {
        parse_message_indexes(data).map_err(|e| e.shifted_by(self.id_bytes as u64))
    }
}

/// A value whose first `skipped` bytes name the framing, and the next ones the schema.
#[inline(always)]
fn named<const N: usize>(
    value: &[u8],
    skipped: usize,
    framing: Framing,
    name: impl FnOnce([u8; N]) -> SchemaId,
) -> Option<Framed<'_>> {
    let (id, payload) = value.get(skipped..)?.split_first_chunk()?;
    let schema = name(*id);
    Some(Framed { schema, payload, framing, is_deflated: false, place: Place::Value, id_bytes: skipped + N })
}

fn split_header(header: &[u8]) -> Result<(SchemaId, &[u8])> {
    if let Some(found) = Framed::parse(header, None, Framing::Confluent)? {
        return Ok((found.schema, found.payload));
    }
    Err(match header.first() {
        None | Some(&(ID | GUID)) => ErrorKind::UnexpectedEnd,
        Some(_) => ErrorKind::InvalidRecord(
            "a schema header begins with 0x00 and an id of 4 bytes, or 0x01 and a GUID of 16 bytes",
        ),
    }
    .into())
}

/// Apicurio's reference to a message, `Ref`: a Protobuf message with its size before it, whose field 1 is a name.
///
/// As message indexes, the same bytes would be a path of many levels, through messages that no file has.
fn message_reference(payload: &[u8]) -> Option<(Message<'_>, &[u8])> {
    // The usual indexes; a reference with a name has 3 bytes at least.
    if let [0..=2, ..] = payload {
        return None;
    }
    let (size, rest) = plain_varint(payload)?;
    let (reference, after) = rest.split_at_checked(size as usize)?;
    let (length, name) = plain_varint(reference.strip_prefix(&[0x0a])?)?;
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    if name.is_empty() || name.len() != length as usize || !name.iter().all(is_name) {
        return None;
    }
    Some((Message::Name(std::str::from_utf8(name).ok()?), after))
}

/// The bytes before a payload, or in a header: the id, then for Protobuf the message indexes, which are empty for
/// other kinds of schemas.
///
/// # Errors
/// [`ErrorKind::InvalidOptions`] for an id that does not fit, a GUID with [`IdSize::Eight`], a fingerprint, or a negative
/// index.
///
/// ```
/// use magicbyte::schema_framing::{IdSize, SchemaId, write_schema_framing};
///
/// // The first message of a Protobuf file.
/// assert_eq!(write_schema_framing(SchemaId::Id(7), &[0], IdSize::Four)?, b"\0\0\0\0\x07\0");
/// # Ok::<(), magicbyte::Error>(())
/// ```
pub fn write_schema_framing(schema: SchemaId, message_indexes: &[i32], size: IdSize) -> Result<Vec<u8>> {
    let refused = |why| Err(ErrorKind::InvalidOptions(why).into());
    let mut out = Vec::new();
    match (schema, size) {
        (SchemaId::Id(id), IdSize::Four) => {
            let Ok(id) = i32::try_from(id) else {
                return refused("the schema id does not fit into 4 bytes");
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
            return refused("there is no GUID in the framing with ids of 8 bytes");
        }
        (SchemaId::Fingerprint(_), _) => return refused("a schema id is a number or a GUID"),
    }
    match message_indexes {
        [] => {}
        [0] => out.push(0),
        indexes if indexes.iter().any(|&index| index < 0) => return refused("a message index is negative"),
        indexes => {
            encode_varint(indexes.len() as i64, &mut out);
            indexes.iter().for_each(|&index| encode_varint(index.into(), &mut out));
        }
    }
    Ok(out)
}
