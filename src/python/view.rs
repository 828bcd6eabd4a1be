//! Bytes in and out: zero-copy from `bytes`, read-only memoryviews that keep their bytes alive.
#![allow(unsafe_code, reason = "the buffer protocol is a C interface")]

use std::borrow::Cow;
use std::ffi::c_int;

use ::bytes::Bytes;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyMemoryView};

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

/// What a memoryview of ours exports: a share of a batch's bytes.
#[pyclass(frozen, name = "_View", module = "magicbyte._core")]
pub(super) struct View(Bytes);

impl View {
    /// A read-only memoryview; keeps `bytes` alive, which nobody writes to while it is shared.
    pub(super) fn memoryview<'py>(py: Python<'py>, bytes: Bytes) -> PyResult<Bound<'py, PyMemoryView>> {
        PyMemoryView::from(Bound::new(py, Self(bytes))?.as_any())
    }
}

#[pymethods]
impl View {
    // SAFETY (of the implementation, which CPython calls): `view` is a valid Py_buffer to fill;
    // the data pointer is that of `Bytes`, whose memory neither moves nor changes while the
    // `Bytes` lives, and FillInfo stores a new reference to `slf`, which owns it, in `view.obj`:
    // so it outlives every use of the buffer. It is exported read-only.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let bytes = &slf.get().0;
        let data = bytes.as_ptr().cast_mut().cast();
        let length = bytes.len() as ffi::Py_ssize_t;
        // SAFETY: as above.
        let status = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), data, length, 1, flags) };
        if status == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}
