//! Bytes from Python: shared with `bytes`, copied from any other buffer. Errors name the argument.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use ::bytes::Bytes;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyString};

use crate::{buffer, panics};

/// An argument that is one of a few names.
pub(super) fn parse_name<T: FromStr<Err: Display>>(name: &str) -> PyResult<T> {
    panics::here();
    name.parse().map_err(|error: T::Err| PyValueError::new_err(error.to_string()))
}

/// The types of arguments of bytes, for errors.
pub(super) const BYTES: &str = "bytes or any C-contiguous buffer";
const BYTES_OR_TEXT: &str = "bytes, str or any C-contiguous buffer";

/// The argument's bytes: shared with a `bytes` object, which cannot change; copied from any other buffer (a
/// bytearray, memoryview or mmap may change at any time). An object of a subclass may have attributes that refer back
/// to who shares its bytes, which the garbage collector could not see, so its bytes are copied, too.
pub(super) fn to_bytes(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    panics::here();
    if let Ok(bytes) = object.cast_exact::<PyBytes>() {
        return Ok(Bytes::from_owner(PyBackedBytes::from(bytes.clone())));
    }
    Ok(buffer::copied(name, BYTES, object)?.into())
}

/// The argument's bytes for the duration of a call: borrowed from a `bytes` object, copied from any other buffer.
pub(super) fn content<'a>(name: &str, object: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    bytes_of(name, BYTES, object)
}

/// Like [`content`]; a str is encoded as UTF-8, with this error handler of Python for surrogates.
pub(super) fn text_content<'a>(
    name: &str,
    object: &'a Bound<'_, PyAny>,
    errors: &str,
) -> PyResult<Cow<'a, [u8]>> {
    let Ok(text) = object.cast::<PyString>() else { return bytes_of(name, BYTES_OR_TEXT, object) };
    match text.to_str() {
        Ok(text) => Ok(Cow::Borrowed(text.as_bytes())),
        Err(_) => {
            let bytes = text.call_method1("encode", ("utf-8", errors))?;
            Ok(Cow::Owned(bytes.cast::<PyBytes>()?.as_bytes().to_vec()))
        }
    }
}

/// A header's key; surrogate escapes become the bytes that they stand for.
pub(super) fn header_key<'a>(key: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    text_content("header key", key, "surrogateescape")
}

/// Like [`content`], for an argument that may have these types.
pub(super) fn bytes_of<'a>(
    name: &str,
    expected: &str,
    object: &'a Bound<'_, PyAny>,
) -> PyResult<Cow<'a, [u8]>> {
    panics::here();
    match object.cast::<PyBytes>() {
        Ok(bytes) => Ok(Cow::Borrowed(bytes.as_bytes())),
        Err(_) => Ok(Cow::Owned(buffer::copied(name, expected, object)?)),
    }
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
