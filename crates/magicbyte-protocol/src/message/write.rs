//! Writes any message, by the table: the bytes that Kafka's classes write.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;

use magicbyte::internals::varint;
use magicbyte::{Error, Result};

use crate::message::path::Path;
use crate::message::read::MAX_STRING;
use crate::message::table::{Definition, Field, FieldDefault, Scalar};
use crate::message::uuid;
use crate::message::value::{Struct, Value};

/// Appends a message of this version. Fields that are missing have their defaults.
pub(crate) fn write(
    definition: &'static Definition,
    version: i16,
    message: &Struct<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    Writer::new(definition, version, out).write(definition, message, out).map(|_| ())
}

/// A place for bytes that the caller sends itself.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The position of the bytes: before this byte of the written ones.
    pub position: usize,
    /// The number of bytes.
    pub size: usize,
}

/// Like [`write`], for a broker, which builds the same response for every version: fields that only other versions have
/// are left out. A record set is given as its size, and its bytes are a gap.
pub(crate) fn write_answer(
    definition: &'static Definition,
    version: i16,
    message: &Struct<'_>,
    out: &mut Vec<u8>,
) -> Result<Vec<Gap>> {
    let mut writer = Writer::new(definition, version, out);
    writer.is_answer = true;
    writer.write(definition, message, out)
}

struct Writer {
    out: Vec<u8>,
    path: Path,
    version: i16,
    flexible: bool,
    /// True for [`write_answer`].
    is_answer: bool,
    gaps: Vec<Gap>,
}

impl Writer {
    fn new(definition: &'static Definition, version: i16, out: &mut Vec<u8>) -> Self {
        Self {
            out: std::mem::take(out),
            path: Path::new(definition, version),
            version,
            flexible: definition.is_flexible(version),
            is_answer: false,
            gaps: Vec::new(),
        }
    }

    fn write(
        mut self,
        definition: &'static Definition,
        message: &Struct<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Vec<Gap>> {
        self.structure(&definition.fields, message)?;
        *out = self.out;
        Ok(self.gaps)
    }

    fn structure(&mut self, fields: &'static [Field], given: &Struct<'_>) -> Result<()> {
        let version = self.version;
        let here = |field: &&Field| field.versions.contain(version);
        let known = |field: &&Field| self.is_answer || here(field);
        if let Some((name, _)) =
            given.fields.iter().find(|(name, _)| !fields.iter().filter(known).any(|field| field.name == name))
        {
            let names: Vec<_> = fields.iter().filter(here).map(|field| field.name).collect();
            let why = format!("this version has no field {name:?}: expected some of {}", names.join(", "));
            return Err(self.path.error(why));
        }
        let mut tagged = BTreeMap::new();
        for field in fields.iter().filter(here) {
            self.path.enter(field.name);
            let default;
            let value = match given.get(field.name) {
                Some(value) => value,
                None => {
                    default = default_of(field);
                    &default
                }
            };
            match field.tag(version) {
                None => self.field(field, value)?,
                // Kafka's classes leave it out, too.
                Some(_) if is_default(field, value) => {}
                Some(tag) => {
                    let before = std::mem::take(&mut self.out);
                    self.field(field, value)?;
                    tagged.insert(tag, Cow::Owned(std::mem::replace(&mut self.out, before)));
                }
            }
            self.path.leave();
        }
        for (&tag, bytes) in &given.unknown_tagged_fields {
            let known = fields.iter().find(|field| field.tag(version) == Some(tag));
            if let Some(field) = known {
                return Err(self.path.error(format_args!("tag {tag} is not unknown: it is {}", field.name)));
            }
            tagged.insert(tag, Cow::Borrowed(&**bytes));
        }
        if self.flexible {
            return self.tagged_fields(&tagged);
        }
        match tagged.first_key_value() {
            Some((tag, _)) => Err(self.path.error(format_args!("tag {tag}, but this version has no tags"))),
            None => Ok(()),
        }
    }

    fn tagged_fields(&mut self, tagged: &BTreeMap<u32, Cow<'_, [u8]>>) -> Result<()> {
        self.unsigned(tagged.len())?;
        for (&tag, bytes) in tagged {
            self.unsigned(tag as usize)?;
            self.unsigned(bytes.len())?;
            self.out.extend_from_slice(bytes);
        }
        Ok(())
    }

    fn field(&mut self, field: &'static Field, value: &Value<'_>) -> Result<()> {
        if *value == Value::Null {
            return self.null(field);
        }
        if !field.kind.array {
            if field.kind.element == Scalar::Struct && field.nullable_versions.contain(self.version) {
                self.out.push(1);
            }
            return self.single(field, value);
        }
        let Value::Array(elements) = value else { return Err(self.expected("an array", value)) };
        self.length(field, elements.len(), i32::MAX as usize)?;
        for (index, element) in elements.iter().enumerate() {
            self.path.enter_element(index);
            self.single(field, element)?;
            self.path.leave();
        }
        Ok(())
    }

    fn null(&mut self, field: &'static Field) -> Result<()> {
        if !field.nullable_versions.contain(self.version) {
            return Err(self.path.error("null, which this version does not allow here"));
        }
        let size = match (field.kind.array, field.kind.element) {
            (false, Scalar::Struct) if field.tag(self.version).is_some() => return self.unsigned(0),
            (false, Scalar::Struct) => 1,
            _ if field.is_compact(self.version, self.flexible) => return self.unsigned(0),
            (false, Scalar::String) => 2,
            _ => 4,
        };
        self.out.extend(std::iter::repeat_n(0xff, size));
        Ok(())
    }

    /// A field or an element, not null.
    fn single(&mut self, field: &'static Field, value: &Value<'_>) -> Result<()> {
        match (field.kind.element, value) {
            (Scalar::Bool, Value::Bool(value)) => self.out.push((*value).into()),
            (Scalar::Int8, Value::Int(n)) => self.integer::<i8, 1>(*n, i8::to_be_bytes)?,
            (Scalar::Int16, Value::Int(n)) => self.integer::<i16, 2>(*n, i16::to_be_bytes)?,
            (Scalar::Uint16, Value::Int(n)) => self.integer::<u16, 2>(*n, u16::to_be_bytes)?,
            (Scalar::Int32, Value::Int(n)) => self.integer::<i32, 4>(*n, i32::to_be_bytes)?,
            (Scalar::Uint32, Value::Int(n)) => self.integer::<u32, 4>(*n, u32::to_be_bytes)?,
            (Scalar::Int64, Value::Int(n)) => self.out.extend(n.to_be_bytes()),
            (Scalar::Float64, Value::Float(n)) => self.out.extend(n.to_bits().to_be_bytes()),
            (Scalar::Float64, Value::Int(n)) => self.out.extend((*n as f64).to_bits().to_be_bytes()),
            (Scalar::Uuid, Value::Uuid(uuid)) => self.out.extend(uuid),
            (Scalar::Uuid, Value::String(text)) => match uuid::from_text(text) {
                Some(uuid) => self.out.extend(uuid),
                None => {
                    let why = "the text is not a UUID: expected 22 characters of URL-safe base64";
                    return Err(self.path.error(why));
                }
            },
            (Scalar::String, Value::String(text)) => {
                self.length(field, text.len(), MAX_STRING)?;
                self.out.extend_from_slice(text);
            }
            (Scalar::Bytes | Scalar::Records, Value::Bytes(bytes)) => {
                self.length(field, bytes.len(), i32::MAX as usize)?;
                self.out.extend_from_slice(bytes);
            }
            (Scalar::Records, Value::Int(size)) if self.is_answer => {
                let size = usize::try_from(*size).unwrap_or_default();
                self.length(field, size, i32::MAX as usize)?;
                self.gaps.push(Gap { position: self.out.len(), size });
            }
            (Scalar::Struct, Value::Struct(value)) => self.structure(&field.fields, value)?,
            (element, other) => return Err(self.expected(name_of(element), other)),
        }
        Ok(())
    }

    fn integer<T: TryFrom<i64>, const N: usize>(&mut self, n: i64, bytes: fn(T) -> [u8; N]) -> Result<()> {
        let Ok(fitting) = T::try_from(n) else {
            return Err(self.path.error(format_args!("{n} does not fit into {N} bytes")));
        };
        self.out.extend(bytes(fitting));
        Ok(())
    }

    /// The length of a string, bytes or an array, in the form that the version has.
    fn length(&mut self, field: &'static Field, length: usize, max: usize) -> Result<()> {
        if length > max {
            return Err(self.path.error(format_args!("a length of {length}: expected at most {max}")));
        }
        if field.is_compact(self.version, self.flexible) {
            return self.unsigned(length + 1);
        }
        match max {
            MAX_STRING => self.out.extend((length as i16).to_be_bytes()),
            _ => self.out.extend((length as i32).to_be_bytes()),
        }
        Ok(())
    }

    fn unsigned(&mut self, n: usize) -> Result<()> {
        if u32::try_from(n).is_err() {
            return Err(self.path.error(format_args!("{n} does not fit into a varint of 32 bits")));
        }
        let mut bytes = [0; 5];
        let size = varint::write_unsigned(n as u64, &mut bytes);
        self.out.extend_from_slice(&bytes[..size]);
        Ok(())
    }

    #[cold]
    fn expected(&self, expected: impl Display, found: &Value<'_>) -> Error {
        self.path.error(format_args!("{}: expected {expected}", found.describe()))
    }
}

fn name_of(element: Scalar) -> &'static str {
    match element {
        Scalar::Bool => "a boolean",
        Scalar::Int8 | Scalar::Int16 | Scalar::Int32 | Scalar::Int64 => "an integer",
        Scalar::Uint16 | Scalar::Uint32 => "an integer that is not negative",
        Scalar::Float64 => "a number",
        Scalar::Uuid => "a UUID",
        Scalar::String => "a string",
        Scalar::Bytes | Scalar::Records => "bytes",
        Scalar::Struct => "a structure",
    }
}

/// The value of a field that is not given.
fn default_of(field: &Field) -> Value<'static> {
    match (&field.default, field.kind.array) {
        (Some(FieldDefault::Null(_)), _) => Value::Null,
        (Some(FieldDefault::Bool(value)), _) => Value::Bool(*value),
        (Some(FieldDefault::Int(n)), _) => Value::Int(*n),
        (None, true) => Value::Array(Vec::new()),
        (None, false) => match field.kind.element {
            Scalar::Bool => Value::Bool(false),
            Scalar::Float64 => Value::Float(0.0),
            Scalar::Uuid => Value::Uuid([0; 16]),
            Scalar::String => Value::String(Cow::Borrowed(b"")),
            Scalar::Bytes | Scalar::Records => Value::Bytes(Cow::Borrowed(b"")),
            Scalar::Struct => Value::Struct(Struct::default()),
            _ => Value::Int(0),
        },
    }
}

/// True if a value is the field's default. Tagged fields with their default are left out.
#[doc(hidden)]
#[must_use]
pub fn is_default(field: &Field, value: &Value<'_>) -> bool {
    match value {
        Value::Struct(given) if field.default.is_none() => {
            given.unknown_tagged_fields.is_empty()
                && given.fields.iter().all(|(name, value)| {
                    let inner = field.fields.iter().find(|inner| inner.name == name);
                    inner.is_some_and(|inner| is_default(inner, value))
                })
        }
        Value::String(text) if field.kind.element == Scalar::Uuid => {
            field.default.is_none() && uuid::from_text(text) == Some([0; 16])
        }
        _ => *value == default_of(field),
    }
}
