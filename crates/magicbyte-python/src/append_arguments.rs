//! The arguments of `append` and the rows of `append_many`, read without a call into Python if they have
//! exactly the most common types.
//!
//! **Attached** in the SAFETY comments: a borrowed object proves that the GIL is held.
#![allow(unsafe_code, reason = "reading ints, bytes and lists through CPython's C API")]

use std::ffi::c_long;
use std::ptr;
use std::slice;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3::types::PyInt;
use pyo3::types::PyList;
use pyo3::types::PyTuple;

use magicbyte::{Header, RecordsBuilder, Result};

/// An argument, if it is given.
pub(super) type Argument<'a, 'py> = Option<Borrowed<'a, 'py, PyAny>>;

/// The number, if the object is exactly an `int` and fits in 64 bits.
#[inline]
#[allow(clippy::useless_conversion, reason = "needed where a long has 32 bits")]
fn exact_int(object: Borrowed<'_, '_, PyAny>) -> Option<i64> {
    let number = object.cast_exact::<PyInt>().ok()?;
    if size_of::<c_long>() < size_of::<i64>() {
        return number.extract().ok();
    }
    let mut overflow = 0;
    // PyLong_AsLong calls this function, which is twice as fast as PyLong_AsLongLong for a timestamp.
    // SAFETY: Attached; the object is an int, so nothing is raised, and `overflow` may be written to.
    let value = unsafe { ffi::PyLong_AsLongAndOverflow(number.as_ptr(), &raw mut overflow) };
    (overflow == 0).then_some(i64::from(value))
}

/// The bytes of an argument that is exactly `bytes`, None, or not given; None for any other.
#[inline]
fn exact_bytes<'a>(argument: Argument<'a, '_>) -> Option<Option<&'a [u8]>> {
    let Some(object) = argument else { return Some(None) };
    let Ok(bytes) = object.cast_exact::<PyBytes>() else { return object.is_none().then_some(None) };
    let (mut data, mut length) = (ptr::null_mut(), 0);
    // SAFETY: Attached; it is a bytes object, so this cannot fail. Its bytes do not change, and it lives as
    // long as it is borrowed.
    unsafe {
        ffi::PyBytes_AsStringAndSize(bytes.as_ptr(), &raw mut data, &raw mut length);
        Some(Some(slice::from_raw_parts(data.cast(), length as usize)))
    }
}

/// Which of the two methods appends a record.
#[derive(Clone, Copy)]
pub(super) enum Append {
    /// `append`, which raises if there is no room.
    Strict,
    /// `try_append`, which returns False if there is no room.
    IfRoom,
}

impl Append {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Strict => "append",
            Self::IfRoom => "try_append",
        }
    }

    /// Appends a row; false if there is no room.
    #[inline(always)]
    pub(super) fn to(
        self,
        builder: &mut RecordsBuilder,
        (offset, timestamp, key, value): Row<'_>,
        headers: &[Header<'_>],
    ) -> Result<bool> {
        let offset = offset.unwrap_or_else(|| builder.next_offset());
        match self {
            Self::Strict => builder.append(offset, timestamp, key, value, headers).map(|()| true),
            Self::IfRoom => builder.try_append(offset, timestamp, key, value, headers),
        }
    }
}

/// Offset, if it is not counted by the builder, timestamp, key and value.
pub(super) type Row<'a> = (Option<i64>, i64, Option<&'a [u8]>, Option<&'a [u8]>);

/// The fields of a record, if all have exactly these types: no Python code runs.
#[inline]
pub(super) fn exact_fields<'a>(
    (offset, timestamp): (Borrowed<'_, '_, PyAny>, Borrowed<'_, '_, PyAny>),
    (key, value): (Argument<'a, '_>, Argument<'a, '_>),
) -> Option<Row<'a>> {
    let offset = if offset.is_none() { None } else { Some(exact_int(offset)?) };
    Some((offset, exact_int(timestamp)?, exact_bytes(key)?, exact_bytes(value)?))
}

/// The items of a tuple of four, as in [`exact_fields`].
#[inline]
fn exact_row<'a>(item: &'a Bound<'_, PyAny>) -> Option<Row<'a>> {
    let tuple = item.cast_exact::<PyTuple>().ok().filter(|tuple| tuple.len() == 4)?;
    let at = |index| tuple.get_borrowed_item(index).ok();
    exact_fields((at(0)?, at(1)?), (Some(at(2)?), Some(at(3)?)))
}

/// Appends the rows of `list` from `start` up to the first item that is anything else; returns that item's
/// index. The items are borrowed, since a reference count for each would be a write to each.
pub(super) fn append_rows(
    list: &Bound<'_, PyList>,
    start: usize,
    builder: &mut RecordsBuilder,
) -> Result<usize> {
    let count = list.len();
    for index in start..count {
        // SAFETY: Attached; the index is below the length. The list keeps the item while it is borrowed,
        // since no Python code runs here that could change the list.
        let item = unsafe {
            Borrowed::from_ptr(list.py(), ffi::PyList_GetItem(list.as_ptr(), index as ffi::Py_ssize_t))
        };
        let Some(row) = exact_row(&item) else { return Ok(index) };
        Append::Strict.to(builder, row, &[])?;
    }
    Ok(count)
}
