//! Copies of buffers: of any object whose memory is C-contiguous, whatever the type of its items. It is what
//! `zlib.crc32` accepts; PyO3's `PyBuffer<u8>` refuses items that are not unsigned bytes.
//!
//! A copy is taken at once, by CPython. The memory may change whenever Python code runs or the GIL is released, so
//! nothing borrows it.
//!
//! **Attached** in the SAFETY comments: a bound object proves that the GIL is held.
#![allow(unsafe_code, reason = "CPython's buffer API")]

use pyo3::exceptions::{PyBufferError, PyMemoryError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::errors::type_name;

/// A buffer that its object has filled in, and keeps in place until this is dropped.
struct Exported<'a>(&'a mut ffi::Py_buffer);

impl Drop for Exported<'_> {
    fn drop(&mut self) {
        // SAFETY: Attached, since it is made and dropped in `append_to`. PyObject_GetBuffer has filled it in, it
        // has not moved since, and it is released once.
        unsafe { ffi::PyBuffer_Release(self.0) }
    }
}

/// Appends the bytes of `object`. `name` and `expected` are for errors: the argument, and what it may be besides a
/// buffer.
pub(super) fn append_to(
    out: &mut Vec<u8>,
    name: &str,
    expected: &str,
    object: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let py = object.py();
    let mut view = ffi::Py_buffer::new();
    // SAFETY: Attached; `view` may be written to. A request for PyBUF_SIMPLE is one for contiguous memory.
    let failed = unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &raw mut view, ffi::PyBUF_SIMPLE) } != 0;
    if failed {
        return Err(refused(name, expected, object, PyErr::fetch(py)));
    }
    let exported = Exported(&mut view);
    // SAFETY: Attached; the buffer is filled in.
    let is_contiguous = unsafe { ffi::PyBuffer_IsContiguous(exported.0, b'C' as _) } != 0;
    let Some(length) = usize::try_from(exported.0.len).ok().filter(|_| is_contiguous) else {
        let error = PyBufferError::new_err("the buffer is not C-contiguous");
        return Err(refused(name, expected, object, error));
    };
    out.try_reserve_exact(length)
        .map_err(|_| PyMemoryError::new_err(format!("{name}: no memory for a copy of {length} bytes")))?;
    let start = out.len();
    // SAFETY: Attached; the buffer is filled in and contiguous, so CPython copies its `len` bytes, which is not
    // negative, and for which room was reserved after the first `start`. Its object keeps the memory in place
    // until it is released.
    let copied = unsafe {
        let end = out.as_mut_ptr().add(start);
        ffi::PyBuffer_ToContiguous(end.cast(), exported.0, exported.0.len, b'C' as _)
    };
    if copied != 0 {
        return Err(PyErr::fetch(py));
    }
    // SAFETY: the copy has initialized `length` bytes after the first `start`.
    unsafe { out.set_len(start + length) };
    Ok(())
}

/// The bytes of `object`, as in [`append_to`].
pub(super) fn copied(name: &str, expected: &str, object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let mut out = Vec::new();
    append_to(&mut out, name, expected, object).map(|()| out)
}

/// The error of an object without a usable buffer. Of others, such as a KeyboardInterrupt, the object's own code is
/// the source; they are passed on.
#[cold]
fn refused(name: &str, expected: &str, object: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let (py, given) = (object.py(), type_name(object));
    let expected = format!("{name}: expected {expected}, not ");
    let why = || error.value(py).str().map_or_else(|_| String::new(), |why| why.to_string());
    if error.is_instance_of::<PyTypeError>(py) {
        PyTypeError::new_err(format!("{expected}{given}"))
    } else if error.is_instance_of::<PyBufferError>(py) {
        PyBufferError::new_err(format!("{expected}this {given}: {}", why()))
    } else if error.get_type(py).is(py.get_type::<PyValueError>()) {
        // numpy's error for an array that is not C-contiguous, and that of a released memoryview.
        PyValueError::new_err(format!("{expected}this {given}: {}", why()))
    } else {
        error
    }
}
