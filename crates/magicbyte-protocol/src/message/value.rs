//! The values of messages.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// A value of any of the protocol's types. Texts and bytes borrow the frame that they were read from.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// Null, where the version allows it.
    Null,
    /// A boolean.
    Bool(bool),
    /// Any of the integer types.
    Int(i64),
    /// A float64.
    Float(f64),
    /// A UUID; for writing, also a [`String`](Self::String) in Kafka's URL-safe base64 form.
    Uuid([u8; 16]),
    /// A text: UTF-8, unless its writer did not care.
    String(Cow<'a, [u8]>),
    /// Bytes, or the batches of a record set.
    Bytes(Cow<'a, [u8]>),
    /// An array.
    Array(Vec<Value<'a>>),
    /// A structure.
    Struct(Struct<'a>),
}

/// The fields of a structure, by the names of Kafka's JSON: `throttleTimeMs`.
///
/// A structure that was read has the fields of its version in the order of their bytes, tagged fields only if the bytes
/// have them. For writing, fields can be left out, and then have their defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Struct<'a> {
    /// Names and values.
    pub fields: Vec<(Cow<'a, str>, Value<'a>)>,
    /// The bytes of tagged fields that the table does not have, by their tags.
    pub unknown_tagged_fields: BTreeMap<u32, Cow<'a, [u8]>>,
}

/// Views of a value, as those of `serde_json::Value`: `None` if it is of another type.
impl<'a> Value<'a> {
    /// True if the value is null.
    #[must_use]
    pub fn is_null(&self) -> bool {
        *self == Self::Null
    }

    /// The boolean.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self { Some(*value) } else { None }
    }

    /// The integer. [`Struct::at`] returns it in the type of its field.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        if let Self::Int(n) = self { Some(*n) } else { None }
    }

    /// The float64.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        if let Self::Float(n) = self { Some(*n) } else { None }
    }

    /// The UUID.
    #[must_use]
    pub fn as_uuid(&self) -> Option<[u8; 16]> {
        if let Self::Uuid(uuid) = self { Some(*uuid) } else { None }
    }

    /// The text, if it is UTF-8.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { std::str::from_utf8(text).ok() } else { None }
    }

    /// The bytes. Those of a text are not.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&[u8]> {
        if let Self::Bytes(bytes) = self { Some(bytes) } else { None }
    }

    /// The elements of the array.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Self]> {
        if let Self::Array(elements) = self { Some(elements) } else { None }
    }

    /// The elements of the array, for changes.
    #[must_use]
    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Self>> {
        if let Self::Array(elements) = self { Some(elements) } else { None }
    }

    /// The structure.
    #[must_use]
    pub fn as_struct(&self) -> Option<&Struct<'a>> {
        if let Self::Struct(fields) = self { Some(fields) } else { None }
    }

    /// The structure, for changes.
    #[must_use]
    pub fn as_struct_mut(&mut self) -> Option<&mut Struct<'a>> {
        if let Self::Struct(fields) = self { Some(fields) } else { None }
    }
}

macro_rules! conversions {
    ($($ty:ty => $value:expr;)*) => {
        $(
            impl<'a> From<$ty> for Value<'a> {
                fn from(value: $ty) -> Self {
                    $value(value)
                }
            }
        )*
    };
}

conversions! {
    bool => Self::Bool;
    i8 => |n| Self::Int(i64::from(n));
    i16 => |n| Self::Int(i64::from(n));
    u16 => |n| Self::Int(i64::from(n));
    i32 => |n| Self::Int(i64::from(n));
    u32 => |n| Self::Int(i64::from(n));
    i64 => Self::Int;
    f64 => Self::Float;
    [u8; 16] => Self::Uuid;
    &'a str => |text: &'a str| Self::String(Cow::Borrowed(text.as_bytes()));
    String => |text: String| Self::String(Cow::Owned(text.into_bytes()));
    &'a [u8] => |bytes| Self::Bytes(Cow::Borrowed(bytes));
    Vec<u8> => |bytes| Self::Bytes(Cow::Owned(bytes));
    Vec<Value<'a>> => Self::Array;
    Vec<Struct<'a>> => |structs: Vec<Struct<'a>>| Self::Array(structs.into_iter().map(Self::Struct).collect());
    Struct<'a> => Self::Struct;
}

/// `None` is null.
impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, T::into)
    }
}

impl<'a> Struct<'a> {
    /// The value of a field, if the structure has it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.fields.iter().find_map(|(field, value)| (field == name).then_some(value))
    }

    /// The value of a field for changes, if the structure has it.
    #[must_use]
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value<'a>> {
        self.fields.iter_mut().find_map(|(field, value)| (field == name).then_some(value))
    }

    /// Sets a field, which may exist.
    pub fn set(&mut self, name: impl Into<Cow<'a, str>>, value: impl Into<Value<'a>>) {
        let (name, value) = (name.into(), value.into());
        match self.fields.iter_mut().find(|(field, _)| *field == name) {
            Some((_, old)) => *old = value,
            None => self.fields.push((name, value)),
        }
    }
}

/// Of names and values; a name that is given again replaces the value.
impl<'a, N: Into<Cow<'a, str>>, const COUNT: usize> From<[(N, Value<'a>); COUNT]> for Struct<'a> {
    fn from(fields: [(N, Value<'a>); COUNT]) -> Self {
        let mut made = Self::default();
        for (name, value) in fields {
            made.set(name, value);
        }
        made
    }
}
