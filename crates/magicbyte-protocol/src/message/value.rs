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

impl<'a> Struct<'a> {
    /// The value of a field, if the structure has it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.fields.iter().find_map(|(field, value)| (field == name).then_some(value))
    }

    /// Sets a field, which may exist.
    pub fn set(&mut self, name: impl Into<Cow<'a, str>>, value: Value<'a>) {
        let name = name.into();
        match self.fields.iter_mut().find(|(field, _)| *field == name) {
            Some((_, old)) => *old = value,
            None => self.fields.push((name, value)),
        }
    }
}
