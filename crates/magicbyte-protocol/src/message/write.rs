//! Writes any message, by the table: the bytes that Kafka's classes write.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;

use magicbyte::internals::varint;
use magicbyte::{Error, Result};

use crate::message::fields::{AsValue, Fields, ValueRef};
use crate::message::path::Path;
use crate::message::read::MAX_STRING;
use crate::message::table::{Definition, Field, FieldDefault, Scalar};
use crate::message::uuid;
use crate::message::value::{Struct, Value};

/// A place for bytes that the caller sends itself.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The position of the bytes: before this byte of the written ones.
    pub position: usize,
    /// The number of bytes.
    pub size: usize,
}

/// The treatment of given fields that the version does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// An error: of a structure that need not have them.
    Refused,
    /// An error, unless they have their defaults: of a structure that has the fields of all versions.
    Default,
    /// Left out, for a broker, which makes the same response for every version. A record set may be given as its size;
    /// its bytes are a gap.
    LeftOut,
}

/// Appends a message of this version. Fields that are missing have their defaults.
pub(crate) fn write(
    definition: &'static Definition,
    version: i16,
    message: &dyn Fields,
    absent: Absent,
    out: &mut Vec<u8>,
) -> Result<Vec<Gap>> {
    let mut writer = Writer {
        out: std::mem::take(out),
        path: Path::new(definition, version),
        version,
        flexible: definition.is_flexible(version),
        absent,
        gaps: Vec::new(),
    };
    writer.structure(&definition.fields, message)?;
    *out = writer.out;
    Ok(writer.gaps)
}

struct Writer {
    out: Vec<u8>,
    path: Path,
    version: i16,
    flexible: bool,
    absent: Absent,
    gaps: Vec<Gap>,
}

impl Writer {
    fn structure(&mut self, fields: &'static [Field], given: &dyn Fields) -> Result<()> {
        let version = self.version;
        let here = |field: &&Field| field.versions.contain(version);
        self.check_absent(fields, given)?;
        let mut tagged = BTreeMap::new();
        for field in fields.iter().filter(here) {
            self.path.enter(field.name);
            let value = given.get(field.name).unwrap_or_else(|| default_of(field));
            match field.tag(version) {
                None => self.field(field, value)?,
                // Kafka's classes leave it out, too.
                Some(_) if has_default(field, value) => {}
                Some(tag) => {
                    let before = std::mem::take(&mut self.out);
                    self.field(field, value)?;
                    tagged.insert(tag, Cow::Owned(std::mem::replace(&mut self.out, before)));
                }
            }
            self.path.leave();
        }
        for (&tag, bytes) in given.unknown_tagged_fields().into_iter().flatten() {
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

    /// Checks the given fields that the version does not have.
    fn check_absent(&self, fields: &'static [Field], given: &dyn Fields) -> Result<()> {
        if self.absent == Absent::LeftOut {
            return Ok(());
        }
        let mut refused = None;
        given.for_each(&mut |name, value| {
            let field = fields.iter().find(|field| field.name == name);
            let is_allowed = field.is_some_and(|field| {
                let is_unset = self.absent == Absent::Default && has_default(field, value);
                field.versions.contain(self.version) || is_unset
            });
            if !is_allowed && refused.is_none() {
                refused = Some(name.to_owned());
            }
        });
        let Some(name) = refused else { return Ok(()) };
        let here = fields.iter().filter(|field| field.versions.contain(self.version));
        let names: Vec<_> = here.map(|field| field.name).collect();
        let why = format!("this version has no field {name:?}: expected some of {}", names.join(", "));
        Err(self.path.error(why))
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

    fn field(&mut self, field: &'static Field, value: ValueRef<'_>) -> Result<()> {
        if matches!(value, ValueRef::Null) {
            return self.null(field);
        }
        if !field.kind.array {
            if field.kind.element == Scalar::Struct && field.nullable_versions.contain(self.version) {
                self.out.push(1);
            }
            return self.single(field, value);
        }
        let ValueRef::Array(elements) = value else { return Err(self.expected("an array", value)) };
        self.length(field, elements.len(), i32::MAX as usize)?;
        for index in 0..elements.len() {
            self.path.enter_element(index);
            self.single(field, elements.element(index))?;
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
    fn single(&mut self, field: &'static Field, value: ValueRef<'_>) -> Result<()> {
        match (field.kind.element, value) {
            (Scalar::Bool, ValueRef::Bool(value)) => self.out.push(value.into()),
            (Scalar::Int8, ValueRef::Int(n)) => self.integer::<i8, 1>(n, i8::to_be_bytes)?,
            (Scalar::Int16, ValueRef::Int(n)) => self.integer::<i16, 2>(n, i16::to_be_bytes)?,
            (Scalar::Uint16, ValueRef::Int(n)) => self.integer::<u16, 2>(n, u16::to_be_bytes)?,
            (Scalar::Int32, ValueRef::Int(n)) => self.integer::<i32, 4>(n, i32::to_be_bytes)?,
            (Scalar::Uint32, ValueRef::Int(n)) => self.integer::<u32, 4>(n, u32::to_be_bytes)?,
            (Scalar::Int64, ValueRef::Int(n)) => self.out.extend(n.to_be_bytes()),
            (Scalar::Float64, ValueRef::Float(n)) => self.out.extend(n.to_bits().to_be_bytes()),
            (Scalar::Float64, ValueRef::Int(n)) => self.out.extend((n as f64).to_bits().to_be_bytes()),
            (Scalar::Uuid, ValueRef::Uuid(uuid)) => self.out.extend(uuid),
            (Scalar::Uuid, ValueRef::String(text)) => match uuid::from_text(text) {
                Some(uuid) => self.out.extend(uuid),
                None => {
                    let why = "the text is not a UUID: expected 22 characters of URL-safe base64";
                    return Err(self.path.error(why));
                }
            },
            (Scalar::String, ValueRef::String(text)) => {
                self.length(field, text.len(), MAX_STRING)?;
                self.out.extend_from_slice(text);
            }
            (Scalar::Bytes | Scalar::Records, ValueRef::Bytes(bytes)) => {
                self.length(field, bytes.len(), i32::MAX as usize)?;
                self.out.extend_from_slice(bytes);
            }
            (Scalar::Records, ValueRef::Gap(size)) if self.absent == Absent::LeftOut => {
                self.length(field, size, i32::MAX as usize)?;
                self.gaps.push(Gap { position: self.out.len(), size });
            }
            (Scalar::Struct, ValueRef::Struct(value)) => self.structure(&field.fields, value)?,
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
    fn expected(&self, expected: impl Display, given: ValueRef<'_>) -> Error {
        self.path.error(format_args!("{}: expected {expected}", given.describe()))
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
fn default_of(field: &Field) -> ValueRef<'static> {
    match (&field.default, field.kind.array) {
        (Some(FieldDefault::Null(_)), _) => ValueRef::Null,
        (Some(FieldDefault::Bool(value)), _) => ValueRef::Bool(*value),
        (Some(FieldDefault::Int(n)), _) => ValueRef::Int(*n),
        (None, true) => ValueRef::Array(&NO_ELEMENTS),
        (None, false) => match field.kind.element {
            Scalar::Bool => ValueRef::Bool(false),
            Scalar::Float64 => ValueRef::Float(0.0),
            Scalar::Uuid => ValueRef::Uuid([0; 16]),
            Scalar::String => ValueRef::String(b""),
            Scalar::Bytes | Scalar::Records => ValueRef::Bytes(b""),
            Scalar::Struct => ValueRef::Struct(&NO_FIELDS),
            _ => ValueRef::Int(0),
        },
    }
}

static NO_ELEMENTS: Vec<Value<'static>> = Vec::new();
static NO_FIELDS: Struct<'static> = Struct { fields: Vec::new(), unknown_tagged_fields: BTreeMap::new() };

/// True if a value is the field's default. Tagged fields with their default are left out.
#[doc(hidden)]
#[must_use]
pub fn is_default(field: &Field, value: &Value<'_>) -> bool {
    has_default(field, value.as_value())
}

fn has_default(field: &Field, value: ValueRef<'_>) -> bool {
    match (value, default_of(field)) {
        (ValueRef::Struct(given), ValueRef::Struct(_)) => {
            let mut all = given.unknown_tagged_fields().is_none_or(BTreeMap::is_empty);
            given.for_each(&mut |name, value| {
                let inner = field.fields.iter().find(|inner| inner.name == name);
                all &= inner.is_some_and(|inner| has_default(inner, value));
            });
            all
        }
        (ValueRef::String(text), ValueRef::Uuid(default)) => uuid::from_text(text) == Some(default),
        (ValueRef::Null, ValueRef::Null) => true,
        (ValueRef::Bool(value), ValueRef::Bool(default)) => value == default,
        (ValueRef::Int(n), ValueRef::Int(default)) => n == default,
        // The only default of floats.
        (ValueRef::Float(n), ValueRef::Float(_)) => n == 0.0,
        (ValueRef::Uuid(uuid), ValueRef::Uuid(default)) => uuid == default,
        (ValueRef::String(given), ValueRef::String(default))
        | (ValueRef::Bytes(given), ValueRef::Bytes(default)) => given == default,
        (ValueRef::Array(given), ValueRef::Array(default)) => given.len() == default.len(),
        _ => false,
    }
}
