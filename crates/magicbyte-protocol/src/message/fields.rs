//! Values as the writer sees them: borrowed from a [`Struct`] or from a body with a type of its own.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::message::value::{Struct, Value};

/// A value, or a view of one.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum ValueRef<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Uuid([u8; 16]),
    String(&'a [u8]),
    Bytes(&'a [u8]),
    /// The size of a record set that the caller sends itself.
    Gap(usize),
    Array(&'a dyn Elements),
    Struct(&'a dyn Fields),
}

/// The elements of an array.
#[doc(hidden)]
pub trait Elements {
    fn len(&self) -> usize;
    fn element(&self, index: usize) -> ValueRef<'_>;
}

/// The fields of a structure, by Kafka's names.
#[doc(hidden)]
pub trait Fields {
    fn get(&self, name: &str) -> Option<ValueRef<'_>>;
    fn for_each(&self, visit: &mut dyn FnMut(&str, ValueRef<'_>));
    /// The bytes of tagged fields that the table does not have.
    fn unknown_tagged_fields(&self) -> Option<&BTreeMap<u32, Cow<'_, [u8]>>> {
        None
    }
}

/// A type whose values can be written.
#[doc(hidden)]
pub trait AsValue {
    fn as_value(&self) -> ValueRef<'_>;
}

impl ValueRef<'_> {
    /// The type of the value, in words for messages.
    pub(crate) fn describe(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Int(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Uuid(_) => "a UUID",
            Self::String(_) => "a string",
            Self::Bytes(_) => "bytes",
            Self::Gap(_) => "the size of records",
            Self::Array(_) => "an array",
            Self::Struct(_) => "a structure",
        }
    }
}

impl<T: AsValue> Elements for Vec<T> {
    fn len(&self) -> usize {
        self.len()
    }

    fn element(&self, index: usize) -> ValueRef<'_> {
        self[index].as_value()
    }
}

impl Fields for Struct<'_> {
    fn get(&self, name: &str) -> Option<ValueRef<'_>> {
        self.get(name).map(AsValue::as_value)
    }

    fn for_each(&self, visit: &mut dyn FnMut(&str, ValueRef<'_>)) {
        for (name, value) in &self.fields {
            visit(name, value.as_value());
        }
    }

    fn unknown_tagged_fields(&self) -> Option<&BTreeMap<u32, Cow<'_, [u8]>>> {
        Some(&self.unknown_tagged_fields)
    }
}

impl AsValue for Value<'_> {
    fn as_value(&self) -> ValueRef<'_> {
        match self {
            Self::Null => ValueRef::Null,
            Self::Bool(value) => ValueRef::Bool(*value),
            Self::Int(n) => ValueRef::Int(*n),
            Self::Float(n) => ValueRef::Float(*n),
            Self::Uuid(uuid) => ValueRef::Uuid(*uuid),
            Self::String(text) => ValueRef::String(text),
            Self::Bytes(bytes) => ValueRef::Bytes(bytes),
            Self::Array(elements) => ValueRef::Array(elements),
            Self::Struct(fields) => ValueRef::Struct(fields),
        }
    }
}
