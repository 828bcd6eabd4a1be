//! Bytes from Python: shared with `bytes`, copied from anything else with the buffer protocol.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use ::bytes::Bytes;
use pyo3::buffer::{PyBuffer, PyUntypedBuffer};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyString};

use crate::panics;

/// An argument that is one of a few names.
pub(super) fn parse_name<T: FromStr<Err: Display>>(name: &str) -> PyResult<T> {
    panics::here();
    name.parse().map_err(|error: T::Err| PyValueError::new_err(error.to_string()))
}

/// The object's bytes: shared with a `bytes` object, which cannot change; copied from anything else (a
/// bytearray, memoryview or mmap may change at any time).
pub(super) fn to_bytes(object: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    panics::here();
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Bytes::from_owner(PyBackedBytes::from(bytes.clone())));
    }
    Ok(buffer(object)?.to_vec(object.py())?.into())
}

/// The object's bytes for the duration of a call: borrowed from a `bytes` object, copied from anything else
/// with the buffer protocol.
pub(super) fn content<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    panics::here();
    match object.cast::<PyBytes>() {
        Ok(bytes) => Ok(Cow::Borrowed(bytes.as_bytes())),
        Err(_) => Ok(Cow::Owned(buffer(object)?.to_vec(object.py())?)),
    }
}

/// An error raised by the object's own code is passed on: it may be a KeyboardInterrupt.
fn buffer(object: &Bound<'_, PyAny>) -> PyResult<PyBuffer<u8>> {
    let not_bytes = || PyTypeError::new_err("expected an object with the buffer protocol over bytes");
    let py = object.py();
    let buffer =
        PyUntypedBuffer::get(object).map_err(|error| match error.is_instance_of::<PyTypeError>(py) {
            true => not_bytes(),
            false => error,
        })?;
    buffer.into_typed().map_err(|_| not_bytes())
}

/// A sequence of any length, for `from_py_with`. PyO3's own extraction of a `Vec` reserves as much as
/// `__len__` returns, which may be wrong.
pub(super) fn items<'py, T: FromPyObjectOwned<'py>>(object: &Bound<'py, PyAny>) -> PyResult<Vec<T>> {
    panics::here();
    if object.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("expected a sequence of items, not a str"));
    }
    let mut items = Vec::new();
    for item in object.try_iter()? {
        items.push(item?.extract().map_err(Into::into)?);
    }
    Ok(items)
}

/// Like [`items`], or None.
pub(super) fn optional_items<'py, T: FromPyObjectOwned<'py>>(
    object: &Bound<'py, PyAny>,
) -> PyResult<Option<Vec<T>>> {
    if object.is_none() { Ok(None) } else { items(object).map(Some) }
}

/// A str as UTF-8, with surrogate escapes turned back into the original bytes; or bytes.
pub(super) fn header_key<'a>(key: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    let Ok(text) = key.cast::<PyString>() else { return content(key) };
    match text.to_str() {
        Ok(text) => Ok(Cow::Borrowed(text.as_bytes())),
        Err(_) => {
            let bytes = text.call_method1("encode", ("utf-8", "surrogateescape"))?;
            Ok(Cow::Owned(bytes.cast::<PyBytes>()?.as_bytes().to_vec()))
        }
    }
}
