//! Checked conversions between [`Value`]s and the types of [bodies](super::body).

use std::borrow::Cow;
use std::fmt::Write;

use magicbyte::{Error, ErrorKind};

use crate::message::fields::{AsValue, ValueRef};
use crate::message::records::Records;
use crate::message::value::{Struct, Value};

/// A type that is made of a value.
pub trait FromValue<'a>: Sized {
    /// The value, if it is one of the type.
    fn from_value(value: Value<'a>) -> Result<Self, Mismatch>;

    /// The structure, if the type is one and has its fields.
    fn from_fields(fields: Struct<'a>) -> Result<Self, Mismatch> {
        Self::from_value(Value::Struct(fields))
    }
}

/// A value of another type, or a field that a type does not have.
#[derive(Debug)]
pub struct Mismatch {
    /// Fields and elements that lead to the value, the outermost last.
    path: Vec<Step>,
    why: String,
}

#[derive(Debug)]
enum Step {
    Field(&'static str),
    Element(usize),
}

impl Mismatch {
    #[cold]
    pub(crate) fn new(value: &Value<'_>, expected: &str) -> Self {
        Self { path: Vec::new(), why: format!("{}: expected {expected}", value.as_value().describe()) }
    }

    #[cold]
    pub(crate) fn unknown_field(name: &str) -> Self {
        Self { path: Vec::new(), why: format!("the type has no field {name:?}") }
    }

    #[cold]
    pub(crate) fn in_field(mut self, name: &'static str) -> Self {
        self.path.push(Step::Field(name));
        self
    }

    /// The error for a message or structure, as "FetchRequest, topics[0].topic: null: expected a string".
    #[cold]
    pub(crate) fn of(self, name: &str) -> Error {
        let (mut text, mut separator) = (name.to_owned(), ", ");
        for step in self.path.iter().rev() {
            // Writing to a String does not fail.
            let _ = match step {
                Step::Field(name) => write!(text, "{separator}{name}"),
                Step::Element(index) => write!(text, "[{index}]"),
            };
            separator = ".";
        }
        Error::new(ErrorKind::InvalidMessage(format!("{text}: {}", self.why)))
    }
}

macro_rules! integers {
    ($($integer:ty),*) => {
        $(
            impl AsValue for $integer {
                fn as_value(&self) -> ValueRef<'_> {
                    ValueRef::Int((*self).into())
                }
            }

            impl FromValue<'_> for $integer {
                fn from_value(value: Value<'_>) -> Result<Self, Mismatch> {
                    let n = if let Value::Int(n) = value { Self::try_from(n).ok() } else { None };
                    n.ok_or_else(|| Mismatch::new(&value, concat!("an integer in the range of ", stringify!($integer))))
                }
            }
        )*
    };
}

integers!(i8, i16, u16, i32, u32, i64);

impl AsValue for bool {
    fn as_value(&self) -> ValueRef<'_> {
        ValueRef::Bool(*self)
    }
}

impl FromValue<'_> for bool {
    fn from_value(value: Value<'_>) -> Result<Self, Mismatch> {
        match value {
            Value::Bool(value) => Ok(value),
            _ => Err(Mismatch::new(&value, "a boolean")),
        }
    }
}

impl AsValue for f64 {
    fn as_value(&self) -> ValueRef<'_> {
        ValueRef::Float(*self)
    }
}

impl FromValue<'_> for f64 {
    fn from_value(value: Value<'_>) -> Result<Self, Mismatch> {
        match value {
            Value::Float(value) => Ok(value),
            _ => Err(Mismatch::new(&value, "a float")),
        }
    }
}

impl AsValue for [u8; 16] {
    fn as_value(&self) -> ValueRef<'_> {
        ValueRef::Uuid(*self)
    }
}

impl FromValue<'_> for [u8; 16] {
    fn from_value(value: Value<'_>) -> Result<Self, Mismatch> {
        match value {
            Value::Uuid(uuid) => Ok(uuid),
            _ => Err(Mismatch::new(&value, "a UUID")),
        }
    }
}

impl AsValue for Cow<'_, str> {
    fn as_value(&self) -> ValueRef<'_> {
        ValueRef::String(self.as_bytes())
    }
}

/// Invalid UTF-8 is replaced, as in Kafka.
impl<'a> FromValue<'a> for Cow<'a, str> {
    fn from_value(value: Value<'a>) -> Result<Self, Mismatch> {
        match value {
            Value::String(Cow::Borrowed(text)) => Ok(String::from_utf8_lossy(text)),
            Value::String(Cow::Owned(text)) => Ok(Cow::Owned(String::from_utf8_lossy(&text).into_owned())),
            _ => Err(Mismatch::new(&value, "a string")),
        }
    }
}

impl AsValue for Cow<'_, [u8]> {
    fn as_value(&self) -> ValueRef<'_> {
        ValueRef::Bytes(self)
    }
}

impl<'a> FromValue<'a> for Cow<'a, [u8]> {
    fn from_value(value: Value<'a>) -> Result<Self, Mismatch> {
        match value {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err(Mismatch::new(&value, "bytes")),
        }
    }
}

impl AsValue for Records<'_> {
    fn as_value(&self) -> ValueRef<'_> {
        match self {
            Self::Bytes(bytes) => ValueRef::Bytes(bytes),
            Self::Gap(size) => ValueRef::Gap(*size),
        }
    }
}

impl<'a> FromValue<'a> for Records<'a> {
    fn from_value(value: Value<'a>) -> Result<Self, Mismatch> {
        Cow::from_value(value).map(Self::Bytes)
    }
}

impl<T: AsValue> AsValue for Option<T> {
    fn as_value(&self) -> ValueRef<'_> {
        self.as_ref().map_or(ValueRef::Null, AsValue::as_value)
    }
}

impl<'a, T: FromValue<'a>> FromValue<'a> for Option<T> {
    fn from_value(value: Value<'a>) -> Result<Self, Mismatch> {
        match value {
            Value::Null => Ok(None),
            value => T::from_value(value).map(Some),
        }
    }
}

impl<T: AsValue> AsValue for Vec<T> {
    fn as_value(&self) -> ValueRef<'_> {
        ValueRef::Array(self)
    }
}

impl<'a, T: FromValue<'a>> FromValue<'a> for Vec<T> {
    fn from_value(value: Value<'a>) -> Result<Self, Mismatch> {
        let Value::Array(elements) = value else { return Err(Mismatch::new(&value, "an array")) };
        // Exactly as large as needed, unlike the result of `collect`.
        let mut array = Self::with_capacity(elements.len());
        for (index, element) in elements.into_iter().enumerate() {
            array.push(T::from_value(element).map_err(|mut error| {
                error.path.push(Step::Element(index));
                error
            })?);
        }
        Ok(array)
    }
}
