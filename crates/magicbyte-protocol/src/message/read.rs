//! Reads any message, by the table.

use std::borrow::Cow;

use magicbyte::internals::Cursor;
use magicbyte::{Error, ErrorKind, Result};

use crate::message::path::Path;
use crate::message::table::{Definition, Field, Scalar};
use crate::message::value::{Struct, Value};

/// The maximum length of a string that Kafka reads and writes.
pub(crate) const MAX_STRING: usize = i16::MAX as usize;

/// The maximum number of elements in an array that Kafka 4.4 reads (`MessageUtil.MAX_ARRAY_LENGTH`).
pub const MAX_ELEMENTS: usize = 1_000_000;
/// The maximum number of tagged fields in a structure that Kafka 4.4 reads (`MessageUtil.MAX_TAGGED_FIELD_COUNT`).
const MAX_TAGGED_FIELDS: u32 = 10_000;
/// The memory of a message's values, in bytes: for each byte of the message, for any message besides, and for all
/// of it. Values of messages that Kafka sends take up to 25 times their bytes, those of a hostile one 70 times.
const VALUES_PER_BYTE: usize = 32;
const VALUES_OF_ANY: usize = 16 << 20;
const MAX_VALUES: usize = 128 << 20;
/// The memory of an allocation besides its content, and of a map with one tagged field, in bytes.
const ALLOCATION: usize = 16;
const TAGGED_FIELD: usize = 320;

/// Reads a message of this version off the front of `data`, which begins at byte `position` of its frame. Returns
/// it with its size.
///
/// A count cannot be larger than the bytes that are left. The memory of all values is bounded before it is reserved.
pub(crate) fn read<'a>(
    definition: &'static Definition,
    version: i16,
    data: &'a [u8],
    position: usize,
) -> Result<(Struct<'a>, usize)> {
    let mut reader = Reader {
        cursor: Cursor::new(data),
        end: position + data.len(),
        path: Path::new(definition, version),
        version,
        flexible: definition.is_flexible(version),
        budget: (VALUES_OF_ANY + VALUES_PER_BYTE.saturating_mul(data.len())).min(MAX_VALUES),
    };
    match reader.structure(&definition.fields) {
        Ok(read) => Ok((read, data.len() - reader.cursor.remaining())),
        Err(error) => Err(reader.placed(error)),
    }
}

struct Reader<'a> {
    cursor: Cursor<'a>,
    /// The position in the frame at which the cursor's bytes end.
    end: usize,
    path: Path,
    version: i16,
    flexible: bool,
    /// The memory that is left for values, in bytes.
    budget: usize,
}

impl<'a> Reader<'a> {
    /// Takes the memory of an allocation from the budget.
    fn reserve(&mut self, bytes: usize) -> Result<()> {
        match self.budget.checked_sub(bytes + ALLOCATION) {
            Some(left) => self.budget = left,
            None => {
                let why = format_args!(
                    "the values of the message take too much memory: expected at most {VALUES_OF_ANY} bytes and \
                     {VALUES_PER_BYTE} for each of its own, and at most {MAX_VALUES}"
                );
                return Err(self.path.error(why));
            }
        }
        Ok(())
    }

    /// After an error, the path and the cursor are where it occurred.
    #[cold]
    fn placed(&self, error: Error) -> Error {
        let error = match error.kind() {
            ErrorKind::InvalidMessage(_) => error,
            ErrorKind::UnexpectedEnd => self.path.error("the bytes end inside it"),
            other => self.path.error(other),
        };
        error.at_position((self.end - self.cursor.remaining()) as u64)
    }

    fn structure(&mut self, fields: &'static [Field]) -> Result<Struct<'a>> {
        let version = self.version;
        let here = || fields.iter().filter(|field| field.versions.contain(version));
        let count = here().count();
        self.reserve(count * size_of::<(Cow<'a, str>, Value<'a>)>())?;
        let mut read = Struct { fields: Vec::with_capacity(count), ..Struct::default() };
        for field in here().filter(|field| field.tag(version).is_none()) {
            self.path.enter(field.name);
            let value = self.field(field)?;
            self.path.leave();
            read.fields.push((Cow::Borrowed(field.name), value));
        }
        if self.flexible {
            self.tagged_fields(fields, &mut read)?;
        }
        Ok(read)
    }

    fn tagged_fields(&mut self, fields: &'static [Field], read: &mut Struct<'a>) -> Result<()> {
        let count = self.cursor.unsigned_varint()?;
        if count > MAX_TAGGED_FIELDS {
            let why = format_args!("{count} tagged fields: expected at most {MAX_TAGGED_FIELDS}");
            return Err(self.path.error(why));
        }
        for _ in 0..count {
            self.reserve(TAGGED_FIELD)?;
            let tag = self.cursor.unsigned_varint()?;
            let size = self.cursor.unsigned_varint()? as usize;
            let bytes = self.cursor.take(size)?;
            let known = fields
                .iter()
                .find(|field| field.tag(self.version) == Some(tag) && field.versions.contain(self.version));
            let Some(field) = known else {
                read.unknown_tagged_fields.insert(tag, Cow::Borrowed(bytes));
                continue;
            };
            self.path.enter(field.name);
            let (after, end) = (self.cursor, self.end);
            self.end -= after.remaining();
            self.cursor = Cursor::new(bytes);
            let value = self.field(field)?;
            if self.cursor.remaining() > 0 {
                let rest = self.cursor.remaining();
                return Err(self.path.error(format_args!("{rest} of the field's {size} bytes remain")));
            }
            (self.cursor, self.end) = (after, end);
            self.path.leave();
            read.set(field.name, value);
        }
        Ok(())
    }

    fn field(&mut self, field: &'static Field) -> Result<Value<'a>> {
        let value = match field.kind.array {
            true => self.array(field)?,
            false => self.single(field)?,
        };
        if value == Value::Null && !field.nullable_versions.contain(self.version) {
            return Err(self.path.error("null, which this version does not allow here"));
        }
        Ok(value)
    }

    fn array(&mut self, field: &'static Field) -> Result<Value<'a>> {
        let count = match field.is_compact(self.version, self.flexible) {
            true => self.compact_length()?,
            false => usize::try_from(self.cursor.i32()?).ok(),
        };
        let Some(count) = count else { return Ok(Value::Null) };
        if count > self.cursor.remaining() {
            let left = self.cursor.remaining();
            return Err(self.path.error(format_args!("{count} elements, but {left} bytes are left")));
        }
        if count > MAX_ELEMENTS {
            return Err(self.path.error(format_args!("{count} elements: expected at most {MAX_ELEMENTS}")));
        }
        self.reserve(count * size_of::<Value<'a>>())?;
        let mut elements = Vec::with_capacity(count);
        for index in 0..count {
            self.path.enter_element(index);
            let element = match field.kind.element {
                Scalar::Struct => Value::Struct(self.structure(&field.fields)?),
                _ => self.single(field)?,
            };
            if element == Value::Null {
                return Err(self.path.error("null, which no element can be"));
            }
            elements.push(element);
            self.path.leave();
        }
        Ok(Value::Array(elements))
    }

    /// A field that is not an array, or an element that is not a structure.
    fn single(&mut self, field: &'static Field) -> Result<Value<'a>> {
        Ok(match field.kind.element {
            Scalar::Bool => Value::Bool(self.cursor.i8()? != 0),
            Scalar::Int8 => Value::Int(self.cursor.i8()?.into()),
            Scalar::Int16 => Value::Int(self.cursor.i16()?.into()),
            Scalar::Uint16 => Value::Int(self.cursor.u16()?.into()),
            Scalar::Int32 => Value::Int(self.cursor.i32()?.into()),
            Scalar::Uint32 => Value::Int(self.cursor.u32()?.into()),
            Scalar::Int64 => Value::Int(self.cursor.i64()?),
            Scalar::Float64 => Value::Float(f64::from_bits(self.cursor.i64()? as u64)),
            Scalar::Uuid => Value::Uuid(self.cursor.uuid()?),
            Scalar::String => {
                let length = match field.is_compact(self.version, self.flexible) {
                    true => self.compact_length()?,
                    false => usize::try_from(self.cursor.i16()?).ok(),
                };
                match length {
                    Some(length) if length > MAX_STRING => {
                        let why = format_args!("a string of {length} bytes: expected at most {MAX_STRING}");
                        return Err(self.path.error(why));
                    }
                    Some(length) => Value::String(Cow::Borrowed(self.cursor.take(length)?)),
                    None => Value::Null,
                }
            }
            Scalar::Bytes | Scalar::Records => {
                let length = match field.is_compact(self.version, self.flexible) {
                    true => self.compact_length()?,
                    false => usize::try_from(self.cursor.i32()?).ok(),
                };
                match length {
                    Some(length) => Value::Bytes(Cow::Borrowed(self.cursor.take(length)?)),
                    None => Value::Null,
                }
            }
            Scalar::Struct => {
                if field.nullable_versions.contain(self.version) && !self.is_present(field)? {
                    return Ok(Value::Null);
                }
                Value::Struct(self.structure(&field.fields)?)
            }
        })
    }

    /// True if a nullable structure follows. The marker -1 is null, and 1 is not. In a tagged field, the marker is a
    /// varint, and 0 is null.
    fn is_present(&mut self, field: &'static Field) -> Result<bool> {
        match field.tag(self.version) {
            None => Ok(self.cursor.i8()? >= 0),
            Some(_) => Ok(self.cursor.unsigned_varint()? > 0),
        }
    }

    /// A length plus one; 0 is null.
    fn compact_length(&mut self) -> Result<Option<usize>> {
        Ok((self.cursor.unsigned_varint()? as usize).checked_sub(1))
    }
}
