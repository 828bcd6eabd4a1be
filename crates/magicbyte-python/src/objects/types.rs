//! The declarations of the types in `objects/` for CPython: their attributes, methods and slots.
#![allow(unsafe_code, reason = "types in CPython's C API")]

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::atomic::Ordering;

use pyo3::ffi;
use pyo3::ffi::c_str;
use pyo3::prelude::*;

use crate::docs::{docstring, signed};
use crate::objects::dropins;
use crate::objects::exporter::{EXPORTER, exporter_dealloc, exporter_getbuffer};
use crate::objects::kind::slot;
use crate::objects::record_object::{
    ITERATOR, RECORD, SHORTCUTS, get_attributes, get_control, get_headers, get_headers_raw, get_key,
    get_key_bytes, get_offset, get_sequence, get_timestamp, get_timestamp_type, get_value, get_value_bytes,
    headers_for, iterator_dealloc, iterator_length_hint, iterator_next, last_header, record_dealloc,
    record_getattro, record_hash, record_repr, record_richcompare, reduce, repr_html, to_dict,
};

/// A table that CPython keeps pointers into.
#[repr(transparent)]
pub(crate) struct Table<T, const N: usize>(UnsafeCell<[T; N]>);

// SAFETY: only CPython reads the tables, after they were initialized; they are never written to.
unsafe impl<T, const N: usize> Sync for Table<T, N> {}

pub(crate) const fn getter(name: &'static CStr, get: ffi::getter, doc: &'static CStr) -> ffi::PyGetSetDef {
    ffi::PyGetSetDef {
        name: name.as_ptr(),
        get: Some(get),
        set: None,
        doc: doc.as_ptr(),
        closure: ptr::null_mut(),
    }
}

pub(crate) static RECORD_GETTERS: Table<ffi::PyGetSetDef, 13> = Table(UnsafeCell::new([
    getter(c"offset", get_offset, c_str!(docstring!(records, Record.offset))),
    getter(c"timestamp", get_timestamp, c_str!(docstring!(records, Record.timestamp))),
    getter(c"timestamp_type", get_timestamp_type, c_str!(docstring!(records, Record.timestamp_type))),
    getter(c"key", get_key, c_str!(docstring!(records, Record.key))),
    getter(c"value", get_value, c_str!(docstring!(records, Record.value))),
    getter(c"key_bytes", get_key_bytes, c_str!(docstring!(records, Record.key_bytes))),
    getter(c"value_bytes", get_value_bytes, c_str!(docstring!(records, Record.value_bytes))),
    getter(c"headers", get_headers, c_str!(docstring!(records, Record.headers))),
    getter(c"headers_raw", get_headers_raw, c_str!(docstring!(records, Record.headers_raw))),
    getter(c"sequence", get_sequence, c_str!(docstring!(records, Record.sequence))),
    getter(c"attributes", get_attributes, c_str!(docstring!(records, Record.attributes))),
    getter(c"control", get_control, c_str!(docstring!(records, Record.control))),
    ffi::PyGetSetDef { name: ptr::null(), get: None, set: None, doc: ptr::null(), closure: ptr::null_mut() },
]));

/// A method with `METH_NOARGS` or `METH_O`.
const fn method(
    name: &'static CStr,
    function: ffi::PyCFunction,
    flags: c_int,
    doc: &'static CStr,
) -> ffi::PyMethodDef {
    ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: function },
        ml_flags: flags,
        ml_doc: doc.as_ptr(),
    }
}

pub(crate) static RECORD_METHODS: Table<ffi::PyMethodDef, 6> = Table(UnsafeCell::new([
    method(
        c"last_header",
        last_header,
        ffi::METH_O,
        signed!("last_header($self, key, /)\n--\n\n", docstring!(records, Record.last_header)),
    ),
    method(
        c"headers_for",
        headers_for,
        ffi::METH_O,
        signed!("headers_for($self, key, /)\n--\n\n", docstring!(records, Record.headers_for)),
    ),
    method(
        c"to_dict",
        to_dict,
        ffi::METH_NOARGS,
        signed!("to_dict($self)\n--\n\n", docstring!(records, Record.to_dict)),
    ),
    method(
        c"_repr_html_",
        repr_html,
        ffi::METH_NOARGS,
        signed!("_repr_html_($self)\n--\n\n", docstring!(records, Record._repr_html_)),
    ),
    method(c"__reduce__", reduce, ffi::METH_NOARGS, c"__reduce__($self)\n--\n\nFor pickle."),
    ffi::PyMethodDef::zeroed(),
]));

pub(crate) static ITERATOR_METHODS: Table<ffi::PyMethodDef, 2> = Table(UnsafeCell::new([
    method(
        c"__length_hint__",
        iterator_length_hint,
        ffi::METH_NOARGS,
        c"__length_hint__($self)\n--\n\nThe number of records left.",
    ),
    ffi::PyMethodDef::zeroed(),
]));

/// Creates the types and adds the public ones to the module.
pub(crate) fn add_types(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let end = slot(0, ptr::null_mut());
    for shortcut in SHORTCUTS.iter().chain(&dropins::SHORTCUTS) {
        // SAFETY: the text ends in a zero. The reference is kept, so the name lives as long as the process.
        let name = unsafe { ffi::PyUnicode_InternFromString(shortcut.text.as_ptr()) };
        if name.is_null() {
            return Err(PyErr::fetch(py));
        }
        shortcut.name.store(name, Ordering::Relaxed);
    }
    let record = RECORD.make(
        py,
        c"magicbyte.Record",
        &mut [
            slot(ffi::Py_tp_dealloc, record_dealloc as *mut c_void),
            slot(ffi::Py_tp_repr, record_repr as *mut c_void),
            slot(ffi::Py_tp_getattro, record_getattro as *mut c_void),
            slot(ffi::Py_tp_richcompare, record_richcompare as *mut c_void),
            slot(ffi::Py_tp_hash, record_hash as *mut c_void),
            slot(ffi::Py_tp_getset, RECORD_GETTERS.0.get().cast()),
            slot(ffi::Py_tp_methods, RECORD_METHODS.0.get().cast()),
            slot(ffi::Py_tp_doc, c_str!(docstring!(records, Record)).as_ptr() as *mut c_void),
            end,
        ],
        false,
    )?;
    let iterator = ITERATOR.make(
        py,
        c"magicbyte.RecordIterator",
        &mut [
            slot(ffi::Py_tp_dealloc, iterator_dealloc as *mut c_void),
            slot(ffi::Py_tp_iter, ffi::PyObject_SelfIter as *mut c_void),
            slot(ffi::Py_tp_iternext, iterator_next as *mut c_void),
            slot(ffi::Py_tp_methods, ITERATOR_METHODS.0.get().cast()),
            slot(ffi::Py_tp_doc, c_str!(docstring!(records, RecordIterator)).as_ptr() as *mut c_void),
            end,
        ],
        false,
    )?;
    EXPORTER.make(
        py,
        c"magicbyte._core._Exporter",
        &mut [
            slot(ffi::Py_tp_dealloc, exporter_dealloc as *mut c_void),
            slot(ffi::Py_bf_getbuffer, exporter_getbuffer as *mut c_void),
            end,
        ],
        false,
    )?;
    module.add("Record", record)?;
    module.add("RecordIterator", iterator)
}
