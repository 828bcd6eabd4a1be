//! Values by their path in a message, with the type that is wanted.

use magicbyte::{Error, ErrorKind, Result};

use crate::message::fields::AsValue;
use crate::message::value::{Struct, Value};

/// A type that [`Struct::at`] returns: an integer type, `bool`, `f64`, a UUID as `[u8; 16]`, `&str`, `&[u8]`,
/// `&[Value]`, [`&Struct`](Struct), [`&Value`](Value), or an `Option` of one for a value that may be null.
pub trait ViewOf<'v, 'a>: Sized + sealed::ViewOf<'v, 'a> {}

mod sealed {
    use crate::message::value::Value;

    pub trait ViewOf<'v, 'a>: Sized {
        /// The type, in words for errors.
        const EXPECTED: &'static str;

        /// The value, if it is of the type.
        fn view(value: &'v Value<'a>) -> Option<Self>;
    }
}

macro_rules! views {
    ($($ty:ty, $expected:expr, $view:expr;)*) => {
        $(
            impl<'v, 'a> sealed::ViewOf<'v, 'a> for $ty {
                const EXPECTED: &'static str = $expected;

                fn view(value: &'v Value<'a>) -> Option<Self> {
                    $view(value)
                }
            }

            impl<'v, 'a> ViewOf<'v, 'a> for $ty {}
        )*
    };
}

macro_rules! integers {
    ($($integer:ty),*) => {
        views! {
            $(
                $integer, concat!("an integer in the range of ", stringify!($integer)),
                |value: &Value<'_>| value.as_i64()?.try_into().ok();
            )*
        }
    };
}

integers!(i8, i16, u16, i32, u32, i64);

views! {
    bool, "a boolean", Value::as_bool;
    f64, "a float", Value::as_f64;
    [u8; 16], "a UUID", Value::as_uuid;
    &'v str, "a string of UTF-8", Value::as_str;
    &'v [u8], "bytes", Value::as_bytes;
    &'v [Value<'a>], "an array", Value::as_array;
    &'v Struct<'a>, "a structure", Value::as_struct;
    &'v Value<'a>, "a value", Some;
}

impl<'v, 'a, T: ViewOf<'v, 'a>> sealed::ViewOf<'v, 'a> for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn view(value: &'v Value<'a>) -> Option<Self> {
        if value.is_null() { Some(None) } else { T::view(value).map(Some) }
    }
}

impl<'v, 'a, T: ViewOf<'v, 'a>> ViewOf<'v, 'a> for Option<T> {}

impl<'a> Struct<'a> {
    /// The value at a path of fields and indices, as `"responses[0].partitions[0].errorCode"`, in the type of the
    /// caller. Texts and bytes are not copied.
    ///
    /// ```
    /// use magicbyte_protocol::message::{Struct, Value};
    ///
    /// let topic = Struct::from([("name", Value::from("orders")), ("errorCode", Value::from(3))]);
    /// let body = Struct::from([("topics", Value::from(vec![topic]))]);
    /// assert_eq!(body.at::<&str>("topics[0].name")?, "orders");
    /// assert_eq!(body.at::<i16>("topics[0].errorCode")?, 3);
    /// let error = body.at::<&[u8]>("topics[0].name").unwrap_err();
    /// assert!(error.to_string().contains("topics[0].name: a string: expected bytes"));
    /// # Ok::<(), magicbyte::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::InvalidMessage`], if there is no value, or a value of another type, with the path as far as it
    /// leads; also if the path is not one.
    pub fn at<'v, T: ViewOf<'v, 'a>>(&'v self, path: &str) -> Result<T> {
        let (name, steps) = steps(path)?;
        let mut place = name;
        let mut value = &self.fields[self.position_at(name, place)?].1;
        for (step, next) in steps {
            value = match (step, value) {
                (Step::Field(name), Value::Struct(fields)) => {
                    &fields.fields[fields.position_at(name, next)?].1
                }
                (Step::Element(index), Value::Array(elements)) => {
                    &elements[checked(index, elements.len(), next)?]
                }
                (step, value) => return Err(mismatch(value, step.parent(), place)),
            };
            place = next;
        }
        T::view(value).ok_or_else(|| mismatch(value, T::EXPECTED, place))
    }

    /// The value at a path as of [`at`](Self::at), for changes.
    ///
    /// # Errors
    /// The errors of [`at`](Self::at).
    pub fn at_mut(&mut self, path: &str) -> Result<&mut Value<'a>> {
        let (name, steps) = steps(path)?;
        let mut place = name;
        let index = self.position_at(name, place)?;
        let mut value = &mut self.fields[index].1;
        for (step, next) in steps {
            value = match (step, value) {
                (Step::Field(name), Value::Struct(fields)) => {
                    let index = fields.position_at(name, next)?;
                    &mut fields.fields[index].1
                }
                (Step::Element(index), Value::Array(elements)) => {
                    let index = checked(index, elements.len(), next)?;
                    &mut elements[index]
                }
                (step, value) => return Err(mismatch(value, step.parent(), place)),
            };
            place = next;
        }
        Ok(value)
    }

    /// The position of a field; `place` is its path.
    fn position_at(&self, name: &str, place: &str) -> Result<usize> {
        self.fields.iter().position(|(field, _)| field == name).ok_or_else(|| {
            let names: Vec<_> = self.fields.iter().map(|(name, _)| &**name).collect();
            invalid(format!("{place}: there is no such field: expected one of {}", names.join(", ")))
        })
    }
}

/// A step from a value to one inside it.
enum Step<'p> {
    Field(&'p str),
    Element(usize),
}

impl Step<'_> {
    /// The type that has such a step, in words.
    fn parent(&self) -> &'static str {
        match self {
            Self::Field(_) => "a structure",
            Self::Element(_) => "an array",
        }
    }
}

/// The first field of a path, and the further steps, each with the path as far as it leads.
fn steps(path: &str) -> Result<(&str, Vec<(Step<'_>, &str)>)> {
    let wrong = || invalid(format!("the path {path:?}: expected one as \"topics[0].name\""));
    let mut steps = Vec::new();
    let mut start = 0;
    for segment in path.split('.') {
        let name = segment.split('[').next().filter(|name| !name.is_empty()).ok_or_else(wrong)?;
        let mut end = start + name.len();
        steps.push((Step::Field(name), &path[..end]));
        for index in segment[name.len()..].split_inclusive(']') {
            let digits =
                index.strip_prefix('[').and_then(|index| index.strip_suffix(']')).ok_or_else(wrong)?;
            end += index.len();
            steps.push((Step::Element(digits.parse().map_err(|_| wrong())?), &path[..end]));
        }
        start = end + 1;
    }
    let (_, first) = steps.remove(0);
    Ok((first, steps))
}

#[cold]
fn mismatch(value: &Value<'_>, expected: &str, place: &str) -> Error {
    invalid(format!("{place}: {}: expected {expected}", value.as_value().describe()))
}

/// The index of an element that an array of this length has.
fn checked(index: usize, length: usize, place: &str) -> Result<usize> {
    if index < length {
        return Ok(index);
    }
    Err(invalid(format!("{place}: there is no such element: the array has {length}")))
}

fn invalid(why: String) -> Error {
    Error::new(ErrorKind::InvalidMessage(why))
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    fn body() -> Struct<'static> {
        let partition = Struct::from([
            ("index", Value::from(1 << 20)),
            ("leader", Value::Null),
            ("id", Value::from([7; 16])),
            ("records", Value::from(&b"batch"[..])),
            ("ratio", Value::from(0.5)),
        ]);
        let odd = Value::String(Cow::Borrowed(b"\xff"));
        let topic = Struct::from([
            ("name", Value::from("orders")),
            ("odd", odd),
            ("isInternal", Value::from(true)),
            ("partitions", Value::from(vec![partition])),
        ]);
        let rows = Value::from(vec![Value::from(vec![Value::from(1), Value::from(2)])]);
        Struct::from([("topics", Value::from(vec![topic])), ("rows", rows)])
    }

    #[test]
    fn types() {
        let body = body();
        assert_eq!(body.at::<&str>("topics[0].name").unwrap(), "orders");
        assert_eq!(body.at::<Option<&str>>("topics[0].name").unwrap(), Some("orders"));
        assert!(body.at::<bool>("topics[0].isInternal").unwrap());
        assert_eq!(body.at::<i32>("topics[0].partitions[0].index").unwrap(), 1 << 20);
        assert_eq!(body.at::<i64>("topics[0].partitions[0].index").unwrap(), 1 << 20);
        assert_eq!(body.at::<Option<i32>>("topics[0].partitions[0].leader").unwrap(), None);
        assert_eq!(body.at::<[u8; 16]>("topics[0].partitions[0].id").unwrap(), [7; 16]);
        assert_eq!(body.at::<&[u8]>("topics[0].partitions[0].records").unwrap(), b"batch");
        assert_eq!(body.at::<f64>("topics[0].partitions[0].ratio").unwrap().to_bits(), 0.5f64.to_bits());
        assert_eq!(body.at::<&[Value<'_>]>("topics").unwrap().len(), 1);
        assert_eq!(body.at::<u16>("rows[0][1]").unwrap(), 2);
        let topic: &Struct<'_> = body.at("topics[0]").unwrap();
        assert_eq!(topic.at::<&Value<'_>>("name").unwrap(), &Value::from("orders"));
    }

    #[test]
    fn errors_name_the_place_and_the_type() {
        let mut body = body();
        let cases = [
            ("topics[0].partitions[0].index", "index: an integer: expected an integer in the range of i16"),
            ("topics[0].name", "topics[0].name: a string: expected an integer in the range of i16"),
            ("topics[0].partitions[0].leader", "leader: null: expected an integer in the range of i16"),
            ("topic", "topic: there is no such field: expected one of topics, rows"),
            (
                "topics[0].partition",
                "topics[0].partition: there is no such field: expected one of name, odd,",
            ),
            ("topics[1].name", "topics[1]: there is no such element: the array has 1"),
            ("topics.name", "topics: an array: expected a structure"),
            ("topics[0][0]", "topics[0]: a structure: expected an array"),
            ("topics[0].name.x", "topics[0].name: a string: expected a structure"),
            ("rows[0][2]", "rows[0][2]: there is no such element: the array has 2"),
        ];
        for (path, expected) in cases {
            let error = body.at::<i16>(path).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
            // Any type is mutable.
            match body.at_mut(path) {
                Ok(_) => assert!(expected.contains("i16"), "{path}"),
                Err(error) => assert!(error.to_string().contains(expected), "{error}"),
            }
        }
        assert!(body.at::<&str>("topics[0].odd").unwrap_err().to_string().contains("a string of UTF-8"));
    }

    #[test]
    fn texts_that_are_no_paths() {
        let mut body = body();
        let wrong = [
            "",
            ".",
            "topics.",
            ".topics",
            "[0]",
            "topics[",
            "topics[]",
            "topics[x]",
            "topics[-1]",
            "topics[0",
            "topics]",
            "topics[0]name",
            "topics[0]]",
            "topics..name",
            "topics[99999999999999999999]",
            "größe[0",
        ];
        for path in wrong {
            let error = body.at::<i16>(path).unwrap_err().to_string();
            assert!(error.contains("expected one as") || path == "topics]", "{path}: {error}");
            assert!(body.at_mut(path).is_err(), "{path}");
        }
    }

    #[test]
    fn changes() {
        let mut body = body();
        *body.at_mut("topics[0].partitions[0].records").unwrap() = Value::from(vec![1, 2]);
        assert_eq!(body.at::<&[u8]>("topics[0].partitions[0].records").unwrap(), [1, 2]);
        for topic in body.get_mut("topics").and_then(Value::as_array_mut).unwrap() {
            topic.as_struct_mut().unwrap().set("name", "payments");
        }
        assert_eq!(body.at::<&str>("topics[0].name").unwrap(), "payments");
    }
}
