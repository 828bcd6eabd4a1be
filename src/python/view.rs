//! Bytes from Python: zero-copy from `bytes`, copied from anything else with the buffer protocol.

use std::borrow::Cow;

use ::bytes::Bytes;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

/// The object's bytes: shared with a `bytes` object, which cannot change; copied from any other
/// (a bytearray, a memoryview or mmap may be written to behind our back).
pub(super) fn to_bytes(object: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Bytes::from_owner(PyBackedBytes::from(bytes.clone())));
    }
    Ok(buffer(object)?.to_vec(object.py())?.into())
}

/// The object's bytes for the length of a call: borrowed from a `bytes` object, copied from any
/// other with the buffer protocol.
pub(super) fn content<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    match object.cast::<PyBytes>() {
        Ok(bytes) => Ok(Cow::Borrowed(bytes.as_bytes())),
        Err(_) => Ok(Cow::Owned(buffer(object)?.to_vec(object.py())?)),
    }
}

fn buffer(object: &Bound<'_, PyAny>) -> PyResult<PyBuffer<u8>> {
    PyBuffer::get(object)
        .map_err(|_| PyTypeError::new_err("expected an object with the buffer protocol over bytes"))
}
