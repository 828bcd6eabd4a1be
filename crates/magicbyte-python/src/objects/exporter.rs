//! The exporter of memoryviews of keys and values. For the invariants, see `record_object.rs`.
#![allow(unsafe_code, reason = "a type in CPython's C API")]

use std::ffi::c_int;
use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;

use crate::indexed_batch::{IndexedBatch, Slice};
use crate::objects::kind::{Kind, allocate, dealloc, give_up, release, retain};

/// The object that a memoryview of a key or value refers to.
#[repr(C)]
pub(crate) struct ExporterObject {
    pub(crate) head: ffi::PyObject,
    pub(crate) holder: *mut ffi::PyObject,
    pub(crate) data: *const u8,
    pub(crate) length: usize,
}

pub(crate) static EXPORTER: Kind = Kind::new(size_of::<ExporterObject>());

/// # Safety
/// To be called as CPython calls `bf_getbuffer`: Attached, with an exporter that the caller keeps and a
/// `view` to fill.
pub(crate) unsafe extern "C" fn exporter_getbuffer(
    slf: *mut ffi::PyObject,
    view: *mut ffi::Py_buffer,
    flags: c_int,
) -> c_int {
    // SAFETY: Layout, Holder: data and length are a slice of the batch's bytes, which are never written to;
    // they are exported read-only. FillInfo stores a reference to the exporter in the view, so they outlive
    // it.
    unsafe {
        let exporter = slf.cast::<ExporterObject>();
        let (data, length) = ((*exporter).data.cast_mut().cast(), (*exporter).length as ffi::Py_ssize_t);
        ffi::PyBuffer_FillInfo(view, slf, data, length, 1, flags)
    }
}

/// A read-only memoryview of a part of the batch's bytes; keeps them alive.
///
/// # Safety
/// Attached; `holder` is the object of the batch that `bytes` is a part of.
pub(crate) unsafe fn view(holder: *mut ffi::PyObject, bytes: &[u8]) -> *mut ffi::PyObject {
    // SAFETY: as above; all fields are written before the object is handed out. The memoryview owns the
    // exporter, or on failure it is freed.
    unsafe {
        let exporter = allocate(&EXPORTER).cast::<ExporterObject>();
        if exporter.is_null() {
            return ptr::null_mut();
        }
        retain(holder);
        (*exporter).holder = holder;
        (*exporter).data = bytes.as_ptr();
        (*exporter).length = bytes.len();
        let view = ffi::PyMemoryView_FromObject(exporter.cast());
        give_up(exporter.cast());
        view
    }
}

/// A read-only memoryview of a part of the batch's bytes.
pub(crate) fn memoryview(batch: &Bound<'_, IndexedBatch>, slice: Slice) -> PyResult<Py<PyAny>> {
    // SAFETY: the GIL is held, and the slice is checked to be the batch's.
    let made = unsafe { view(batch.as_ptr(), batch.get().slice(slice)) };
    // SAFETY: a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(batch.py(), made) }.map(Bound::unbind)
}

dealloc!(exporter_dealloc, ExporterObject, EXPORTER);
