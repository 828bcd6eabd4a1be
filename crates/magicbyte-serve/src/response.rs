//! Responses, and their memory while they are made.

use std::collections::HashSet;
use std::hash::Hash;

use magicbyte_protocol::internals::{AsValue, Gap, MAX_ELEMENTS, ValueRef, write_response_around};
use magicbyte_protocol::message::body::Body;

use crate::memory::{Budget, Unanswered};
use crate::request::RequestStart;
use crate::span::Part;

/// A response: the bytes around the record sets, and the record sets.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) head: Vec<u8>,
    pub(super) gaps: Vec<Gap>,
    pub(super) parts: Vec<Vec<Part>>,
}

impl RequestStart {
    /// The response to the request, without record sets.
    ///
    /// # Errors
    /// If a value does not fit into the version.
    pub(super) fn respond(self, body: &impl Body) -> magicbyte::Result<Response> {
        self.respond_with(body, Vec::new())
    }

    /// The response to the request, with record sets whose sizes are in the body.
    ///
    /// # Errors
    /// If a value does not fit into the version.
    pub(super) fn respond_with(self, body: &impl Body, parts: Vec<Vec<Part>>) -> magicbyte::Result<Response> {
        let (head, gaps) = write_response_around(body, self.version, self.correlation_id)?;
        Ok(Response { head, gaps, parts })
    }
}

impl Response {
    /// Bytes in memory.
    pub(super) fn memory(&self) -> usize {
        let part = |part: &Part| match part {
            Part::Memory(bytes) => bytes.len(),
            Part::File(_) => 0,
        };
        self.head.len() + self.parts.iter().flatten().map(part).sum::<usize>()
    }
}

/// A copy of bytes in a response.
///
/// # Errors
/// If the budget has no memory for it, or clients would not read so many.
pub(super) fn blob(budget: &Budget<'_>, bytes: &[u8]) -> Result<Vec<u8>, Unanswered> {
    budget.take(2 * bytes.len())?;
    Ok(bytes.to_vec())
}

/// An array in a response, as long as the budget has memory for its elements.
///
/// # Errors
/// If it does not.
pub(super) fn array<T: AsValue>(
    budget: &Budget<'_>,
    elements: impl IntoIterator<Item = Result<T, Unanswered>>,
) -> Result<Vec<T>, Unanswered> {
    let mut array = Vec::new();
    for element in elements {
        push(budget, &mut array, element?)?;
    }
    Ok(array)
}

/// Adds an element to an [`array`].
///
/// # Errors
/// If the budget has no memory for it.
pub(super) fn push<T: AsValue>(
    budget: &Budget<'_>,
    array: &mut Vec<T>,
    element: T,
) -> Result<(), Unanswered> {
    if array.len() == MAX_ELEMENTS {
        return Err(Unanswered::TooManyElements);
    }
    // The array may have room for as many again. So may the bytes of the response, in which no value of a fixed size is
    // larger than here.
    budget.take(4 * size_of::<T>() + texts_size(element.as_value()))?;
    array.push(element);
    Ok(())
}

/// Memory of the texts in an element, which were not taken before, unlike arrays and [`blob`]s: they are copied into the
/// response.
fn texts_size(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::String(text) => 2 * text.len(),
        ValueRef::Struct(fields) => {
            let mut size = 0;
            fields.for_each(&mut |_, value| size += texts_size(value));
            size
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

#[cfg(test)]
mod tests {
    use magicbyte_protocol::message::body::api_versions_response::ApiVersion;

    use super::*;
    use crate::memory::Memory;
    use crate::recipient::Recipient;
    use crate::stopping::Stopping;

    #[test]
    fn no_array_has_more_elements_than_clients_read() {
        let (stopping, memory) = (Stopping::default(), Memory::new(1 << 30, 0));
        let budget = memory.budget(1 << 30, Recipient::new(&stopping, None));
        let length_of = |count| {
            let elements = (0..count).map(|_| Ok(ApiVersion::default()));
            array(&budget, elements).map(|elements| elements.len())
        };
        assert_eq!(length_of(MAX_ELEMENTS), Ok(MAX_ELEMENTS));
        assert_eq!(length_of(MAX_ELEMENTS + 1), Err(Unanswered::TooManyElements));
    }
}
