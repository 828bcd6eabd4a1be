//! Access to the fields of requests, and the making of responses.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::Hash;

use magicbyte_broker::ErrorCode;
use magicbyte_protocol::message::{Struct, Value};

use crate::memory::{Budget, Unanswered};

/// An integer; `default` if this version does not have the field.
pub(super) fn int(request: &Struct<'_>, name: &str, default: i64) -> i64 {
    match request.get(name) {
        Some(Value::Int(n)) => *n,
        _ => default,
    }
}

/// Like [`int`], for a field of 32 bits.
pub(super) fn int32(request: &Struct<'_>, name: &str, default: i32) -> i32 {
    int(request, name, default.into()) as i32
}

/// A text; None if it is null, or this version does not have it. Invalid UTF-8 is replaced.
pub(super) fn text(request: &Struct<'_>, name: &str) -> Option<String> {
    match request.get(name) {
        Some(Value::String(text)) => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    }
}

/// Bytes; none for null.
pub(super) fn bytes<'r>(request: &'r Struct<'_>, name: &str) -> &'r [u8] {
    match request.get(name) {
        Some(Value::Bytes(bytes)) => bytes,
        _ => &[],
    }
}

/// A UUID; None if this version does not have it.
pub(super) fn uuid(request: &Struct<'_>, name: &str) -> Option<[u8; 16]> {
    match request.get(name) {
        Some(Value::Uuid(uuid)) => Some(*uuid),
        _ => None,
    }
}

/// The structures of an array; none if it is null.
pub(super) fn structs<'r, 'a>(request: &'r Struct<'a>, name: &str) -> impl Iterator<Item = &'r Struct<'a>> {
    elements(request, name).iter().filter_map(|element| match element {
        Value::Struct(one) => Some(one),
        _ => None,
    })
}

/// The texts of an array; none if it is null.
pub(super) fn texts(request: &Struct<'_>, name: &str) -> Vec<String> {
    let text = |element: &Value<'_>| match element {
        Value::String(text) => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    };
    elements(request, name).iter().filter_map(text).collect()
}

/// The integers of 32 bits in an array; none if it is null.
pub(super) fn ints<'r>(request: &'r Struct<'_>, name: &str) -> impl Iterator<Item = i32> + 'r {
    elements(request, name).iter().filter_map(|element| match element {
        Value::Int(n) => Some(*n as i32),
        _ => None,
    })
}

/// True if the field is null.
pub(super) fn is_null(request: &Struct<'_>, name: &str) -> bool {
    request.get(name) == Some(&Value::Null)
}

fn elements<'r, 'a>(request: &'r Struct<'a>, name: &str) -> &'r [Value<'a>] {
    match request.get(name) {
        Some(Value::Array(elements)) => elements,
        _ => &[],
    }
}

/// A value of a response.
pub(super) type Answer = Value<'static>;

/// The fields of a response, or of a structure in it.
pub(super) fn fields<const N: usize>(fields: [(&'static str, Answer); N]) -> Struct<'static> {
    let fields = fields.into_iter().map(|(name, value)| (Cow::Borrowed(name), value)).collect();
    Struct { fields, ..Struct::default() }
}

/// A structure in a response.
pub(super) fn structure<const N: usize>(of: [(&'static str, Answer); N]) -> Answer {
    Value::Struct(fields(of))
}

/// A text in a response.
pub(super) fn string(text: impl Into<String>) -> Answer {
    Value::String(Cow::Owned(text.into().into_bytes()))
}

/// A text in a response, or null.
pub(super) fn nullable(text: Option<impl Into<String>>) -> Answer {
    text.map_or(Value::Null, string)
}

/// An integer in a response.
pub(super) fn number(n: impl Into<i64>) -> Answer {
    Value::Int(n.into())
}

/// A copy of bytes in a response.
///
/// # Errors
/// If the budget has no memory for it.
pub(super) fn blob(budget: &Budget<'_>, bytes: &[u8]) -> Result<Answer, Unanswered> {
    budget.take(2 * bytes.len())?;
    Ok(Value::Bytes(Cow::Owned(bytes.to_vec())))
}

/// An array of a few elements in a response.
pub(super) fn list(elements: impl IntoIterator<Item = Answer>) -> Answer {
    Value::Array(elements.into_iter().collect())
}

/// An array in a response, as long as the budget has memory for its elements.
///
/// # Errors
/// If it does not.
pub(super) fn array(
    budget: &Budget<'_>,
    elements: impl IntoIterator<Item = Result<Answer, Unanswered>>,
) -> Result<Answer, Unanswered> {
    let mut array = Vec::new();
    for element in elements {
        push(budget, &mut array, element?)?;
    }
    Ok(Value::Array(array))
}

/// Adds an element to an [`array`].
///
/// # Errors
/// If the budget has no memory for it.
pub(super) fn push(budget: &Budget<'_>, array: &mut Vec<Answer>, element: Answer) -> Result<(), Unanswered> {
    // The array may have room for as many again.
    budget.take(2 * size_of::<Answer>() + heap_size(&element))?;
    array.push(element);
    Ok(())
}

/// Bytes on the heap that were not taken before, unlike the bytes of arrays and [`blob`]s. Texts count twice, since
/// they are copied into the response.
fn heap_size(value: &Answer) -> usize {
    match value {
        Value::String(text) => 2 * text.len(),
        Value::Struct(fields) => {
            let field =
                |(_, value): &(Cow<'_, str>, Answer)| size_of::<(Cow<'_, str>, Answer)>() + heap_size(value);
            fields.fields.iter().map(field).sum()
        }
        _ => 0,
    }
}

/// The elements without repetitions of earlier elements.
pub(super) fn distinct<T: Clone + Eq + Hash>(
    elements: impl IntoIterator<Item = T>,
) -> impl Iterator<Item = T> {
    let mut known = HashSet::new();
    elements.into_iter().filter(move |element| known.insert(element.clone()))
}

/// An error code in a response.
pub(super) fn code(error: ErrorCode) -> Answer {
    Value::Int(error.code().into())
}
