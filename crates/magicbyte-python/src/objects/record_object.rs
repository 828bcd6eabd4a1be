//! `Record` and its iterator, written against CPython's C API.
//!
//! A Python loop creates one object per record. A `#[pyclass]` costs twice as much as this: a record of three
//! pointers from a free list. Everything that is not speed-critical is safe code in `record.rs`.
//!
//! The invariants that the SAFETY comments refer to:
//!
//! - **Attached**: CPython calls these functions with the GIL held, which the module declares to use; the GIL
//!   guards the free lists and the iterator's index. There is one module per process.
//! - **Layout**: an object of one of these types was created by [`allocate`] with that type, so it has that
//!   type's `repr(C)` struct, whose fields were all written before the object was handed out.
//! - **Holder**: `holder` is a strong reference to the [`IndexedBatch`] object; `batch`, `entry` and `data`
//!   point into it. A frozen pyclass does not move or change, so they are valid while the object lives.
//! - **Count**: reference counts are changed in place, as Python 3.11's headers do in every extension for the
//!   stable ABI, which this wheel targets; and only those of our own objects, none of which is immortal.
#![allow(unsafe_code, reason = "types in CPython's C API")]

use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;

use crate::indexed_batch::{Entry, Failure, IndexedBatch};
use crate::objects::exporter::view;
use crate::objects::kind::{Kind, allocate, dealloc, give_up, release, retain};
use crate::panics::guarded;
use crate::record;

#[repr(C)]
pub(crate) struct RecordObject {
    pub(crate) head: ffi::PyObject,
    pub(crate) holder: *mut ffi::PyObject,
    pub(crate) batch: *const IndexedBatch,
    pub(crate) entry: *const Entry,
}

#[repr(C)]
pub(crate) struct IteratorObject {
    pub(crate) head: ffi::PyObject,
    pub(crate) holder: *mut ffi::PyObject,
    pub(crate) batch: *const IndexedBatch,
    pub(crate) next: usize,
    /// The kind of the records it creates.
    pub(crate) kind: &'static Kind,
}

pub(crate) static RECORD: Kind = Kind::new(size_of::<RecordObject>());
pub(crate) static ITERATOR: Kind = Kind::new(size_of::<IteratorObject>());

/// An iterator over the batch's records that creates objects of this kind.
pub(crate) fn iterate(py: Python<'_>, batch: Py<IndexedBatch>, kind: &'static Kind) -> PyResult<Py<PyAny>> {
    let inside: *const IndexedBatch = batch.bind(py).get();
    // SAFETY: Attached; all fields are written before the object is handed out; `into_ptr` gives the
    // iterator the reference to its holder.
    unsafe {
        let iterator = allocate(&ITERATOR).cast::<IteratorObject>();
        if iterator.is_null() {
            return Err(PyErr::fetch(py));
        }
        (*iterator).holder = batch.into_ptr();
        (*iterator).batch = inside;
        (*iterator).next = 0;
        (*iterator).kind = kind;
        Ok(Bound::from_owned_ptr(py, iterator.cast()).unbind())
    }
}

/// An object for this record of the batch; None if it has no such record.
pub(crate) fn record_at(
    batch: &Bound<'_, IndexedBatch>,
    index: usize,
    kind: &'static Kind,
) -> PyResult<Option<Py<PyAny>>> {
    let py = batch.py();
    let inside: *const IndexedBatch = batch.get();
    // SAFETY: the GIL is held, and the pointers are a batch's and its object's; a new reference or null.
    unsafe {
        match new_record(batch.as_ptr(), inside, index, kind) {
            None => Ok(None),
            Some(made) => Bound::from_owned_ptr_or_err(py, made).map(|made| Some(made.unbind())),
        }
    }
}

/// A record of the batch; None if there is no such record, null with an exception set if memory is exhausted.
///
/// # Safety
/// Attached; `holder` is the object of `batch`; the kind's type has been created.
pub(crate) unsafe fn new_record(
    holder: *mut ffi::PyObject,
    batch: *const IndexedBatch,
    index: usize,
    kind: &Kind,
) -> Option<*mut ffi::PyObject> {
    // SAFETY: Attached, Holder; the entry is one of the batch's, checked by `get`; all fields are written
    // before the object is handed out.
    unsafe {
        let indexed = &*batch;
        let entry = indexed.entries.get(index)?;
        let record = allocate(kind).cast::<RecordObject>();
        if !record.is_null() {
            retain(holder);
            (*record).holder = holder;
            (*record).batch = batch;
            (*record).entry = entry;
        }
        Some(record.cast())
    }
}

/// # Safety
/// To be called as CPython calls `tp_iternext`: Attached, with a `RecordIterator` that the caller keeps.
pub(crate) unsafe extern "C" fn iterator_next(slf: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: Attached, Layout, Holder. Null without an exception is the end.
    unsafe {
        let iterator = slf.cast::<IteratorObject>();
        let (holder, batch) = ((*iterator).holder, (*iterator).batch);
        match new_record(holder, batch, (*iterator).next, (*iterator).kind) {
            Some(record) => {
                (*iterator).next += usize::from(!record.is_null());
                record
            }
            None => {
                let (py, ended) = (Python::assume_attached(), &*batch);
                let raise = |failure: &Failure| guarded(py, || Err(failure(py)));
                ended.failure.as_ref().map_or(ptr::null_mut(), raise)
            }
        }
    }
}

/// # Safety
/// To be called as CPython calls a METH_NOARGS method: Attached; the descriptor has checked that `slf` is a
/// `RecordIterator`, and the second argument is null.
pub(crate) unsafe extern "C" fn iterator_length_hint(
    slf: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Attached, Layout, Holder; `next` never passes the number of entries.
    unsafe {
        let iterator = slf.cast::<IteratorObject>();
        let entries = &(&*(*iterator).batch).entries;
        ffi::PyLong_FromSize_t(entries.len() - (*iterator).next)
    }
}

dealloc!(record_dealloc, RecordObject, RECORD);
dealloc!(iterator_dealloc, IteratorObject, ITERATOR);

/// The record of a `Record` object; None for any other object.
pub(crate) fn record_of<'a>(object: &'a Bound<'_, PyAny>) -> Option<magicbyte::Record<'a>> {
    let is_record = ptr::eq(object.get_type_ptr(), RECORD.type_object.load(Ordering::Acquire));
    is_record.then(|| {
        // SAFETY: the type was compared, and cannot be subclassed; the references live no longer than
        // the borrow of the object.
        let (batch, entry) = unsafe { parts(object.as_ptr()) };
        batch.record(entry)
    })
}

/// Reads a record's batch and entry.
///
/// # Safety
/// `slf` is a `Record`; the references are not kept longer than it.
pub(crate) unsafe fn parts<'a>(slf: *mut ffi::PyObject) -> (&'a IndexedBatch, &'a Entry) {
    // SAFETY: Layout, Holder.
    unsafe {
        let record = slf.cast::<RecordObject>();
        (&*(*record).batch, &*(*record).entry)
    }
}

/// # Safety
/// Attached.
pub(crate) unsafe fn none() -> *mut ffi::PyObject {
    // SAFETY: None is a static object; the caller gets a reference of its own.
    unsafe {
        let none = ffi::Py_None();
        ffi::Py_INCREF(none);
        none
    }
}

/// A getter of an int field.
macro_rules! int_getter {
    ($name:ident, $field:ident) => {
        /// # Safety
        /// To be called as CPython calls a getter: Attached; the descriptor has checked that `slf` is a
        /// record, which the caller keeps.
        pub(crate) unsafe extern "C" fn $name(slf: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
            // SAFETY: Attached, Layout, Holder.
            unsafe { ffi::PyLong_FromLongLong(parts(slf).1.$field.into()) }
        }
    };
}
int_getter!(get_offset, offset);
int_getter!(get_timestamp, timestamp);
int_getter!(get_attributes, attributes);

/// A getter of a nullable slice: copied into `bytes`, or viewed.
macro_rules! slice_getters {
    ($copy:ident, $view:ident, $field:ident) => {
        /// # Safety
        /// To be called as CPython calls a getter: Attached; the descriptor has checked that `slf` is a
        /// record, which the caller keeps.
        pub(crate) unsafe extern "C" fn $copy(slf: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
            // SAFETY: Attached, Layout, Holder; the bytes are copied.
            unsafe {
                let (batch, entry) = parts(slf);
                match batch.nullable(entry.$field) {
                    Some(bytes) => {
                        ffi::PyBytes_FromStringAndSize(bytes.as_ptr().cast(), bytes.len() as ffi::Py_ssize_t)
                    }
                    None => none(),
                }
            }
        }

        /// # Safety
        /// To be called as CPython calls a getter: Attached; the descriptor has checked that `slf` is a
        /// record, which the caller keeps.
        pub(crate) unsafe extern "C" fn $view(slf: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
            // SAFETY: Attached, Layout, Holder; the bytes are the holder's.
            unsafe {
                let (batch, entry) = parts(slf);
                match batch.nullable(entry.$field) {
                    Some(bytes) => view((*slf.cast::<RecordObject>()).holder, bytes),
                    None => none(),
                }
            }
        }
    };
}
slice_getters!(get_key_bytes, get_key, key);
slice_getters!(get_value_bytes, get_value, value);

/// Calls a safe function with a record: errors and panics become exceptions.
///
/// # Safety
/// Attached; `slf` is a `Record` that the caller keeps.
pub(crate) unsafe fn safely(
    slf: *mut ffi::PyObject,
    work: impl FnOnce(&Bound<'_, IndexedBatch>, &Entry) -> PyResult<Py<PyAny>>,
) -> *mut ffi::PyObject {
    // SAFETY: Layout; the holder is borrowed from a record that the caller keeps.
    let (py, batch, entry) = unsafe {
        let py = Python::assume_attached();
        let holder = Bound::from_borrowed_ptr(py, (*slf.cast::<RecordObject>()).holder);
        // The holder of a record is an IndexedBatch (Holder).
        (py, holder.cast_into_unchecked::<IndexedBatch>(), parts(slf).1)
    };
    guarded(py, || work(&batch, entry))
}

macro_rules! safe_getter {
    ($name:ident, $work:path) => {
        /// # Safety
        /// To be called as CPython calls a getter: Attached; the descriptor has checked that `slf` is a
        /// record, which the caller keeps.
        pub(crate) unsafe extern "C" fn $name(slf: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
            // SAFETY: as CPython calls a getter.
            unsafe { safely(slf, |batch, entry| $work(batch, entry)) }
        }
    };
}

/// A method of one argument.
macro_rules! safe_method {
    ($name:ident, $work:path) => {
        /// # Safety
        /// To be called as CPython calls a METH_O method: Attached; the descriptor has checked that `slf` is
        /// a `Record`; the caller keeps it and the argument, which is not null.
        pub(crate) unsafe extern "C" fn $name(
            slf: *mut ffi::PyObject,
            argument: *mut ffi::PyObject,
        ) -> *mut ffi::PyObject {
            // SAFETY: as CPython calls a method (METH_O): the caller keeps the argument, too.
            unsafe {
                safely(slf, |batch, entry| {
                    $work(batch, entry, &Bound::from_borrowed_ptr(batch.py(), argument))
                })
            }
        }
    };
}
/// A method without arguments.
macro_rules! safe_method_without_arguments {
    ($name:ident, $work:path) => {
        /// # Safety
        /// To be called as CPython calls a METH_NOARGS method: Attached; the descriptor has checked that `slf`
        /// is a `Record`, which the caller keeps; the second argument is null.
        pub(crate) unsafe extern "C" fn $name(
            slf: *mut ffi::PyObject,
            _: *mut ffi::PyObject,
        ) -> *mut ffi::PyObject {
            // SAFETY: as CPython calls a method (METH_NOARGS).
            unsafe { safely(slf, |batch, entry| $work(batch, entry)) }
        }
    };
}
safe_getter!(get_timestamp_type, record::timestamp_type);
safe_getter!(get_headers, record::headers);
safe_getter!(get_headers_raw, record::headers_raw);
safe_getter!(get_sequence, record::sequence);
safe_getter!(get_control, record::control);
safe_getter!(repr_of, record::repr);
safe_method_without_arguments!(to_dict, record::to_dict);
safe_method_without_arguments!(repr_html, record::repr_html);
safe_method_without_arguments!(reduce, record::reduce);
safe_method!(last_header, record::last_header);
safe_method!(headers_for, record::headers_for);

/// A getter that loops use, found by the address of its name, since names in code are interned. All other
/// attributes, and names that are not interned, take the usual way.
pub(crate) struct Shortcut {
    pub(crate) name: AtomicPtr<ffi::PyObject>,
    pub(crate) text: &'static CStr,
    pub(crate) get: ffi::getter,
}

pub(crate) const fn shortcut(text: &'static CStr, get: ffi::getter) -> Shortcut {
    Shortcut { name: AtomicPtr::new(ptr::null_mut()), text, get }
}

pub(crate) static SHORTCUTS: [Shortcut; 6] = [
    shortcut(c"value_bytes", get_value_bytes),
    shortcut(c"key_bytes", get_key_bytes),
    shortcut(c"value", get_value),
    shortcut(c"key", get_key),
    shortcut(c"offset", get_offset),
    shortcut(c"timestamp", get_timestamp),
];

/// # Safety
/// To be called as CPython calls `tp_getattro`: Attached, with a `Record` and a name that the caller keeps.
pub(crate) unsafe extern "C" fn record_getattro(
    slf: *mut ffi::PyObject,
    name: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as CPython calls this.
    unsafe { get_attribute(&SHORTCUTS, slf, name) }
}

/// # Safety
/// To be called as CPython calls `tp_getattro`, of a type that has these attributes and cannot be subclassed.
#[inline(always)]
pub(crate) unsafe fn get_attribute(
    shortcuts: &[Shortcut],
    slf: *mut ffi::PyObject,
    name: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    for shortcut in shortcuts {
        if shortcut.name.load(Ordering::Relaxed) == name {
            // SAFETY: as CPython calls a getter: the attribute is this.
            return unsafe { (shortcut.get)(slf, ptr::null_mut()) };
        }
    }
    // SAFETY: as CPython calls this.
    unsafe { ffi::PyObject_GenericGetAttr(slf, name) }
}

/// # Safety
/// To be called as CPython calls `tp_repr`: Attached, with a `Record` that the caller keeps.
pub(crate) unsafe extern "C" fn record_repr(slf: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: as CPython calls it, which is as it calls a getter.
    unsafe { repr_of(slf, ptr::null_mut()) }
}

/// # Safety
/// To be called as CPython calls `tp_richcompare`: Attached, with a `Record` and any object, both of which the
/// caller keeps.
pub(crate) unsafe extern "C" fn record_richcompare(
    slf: *mut ffi::PyObject,
    other: *mut ffi::PyObject,
    operation: c_int,
) -> *mut ffi::PyObject {
    // SAFETY: as CPython calls this; the type of `other` is compared, and cannot be subclassed. The references
    // live no longer than the call. NotImplemented is a static object, of which the caller gets a reference.
    unsafe {
        let is_record = ptr::eq(ffi::Py_TYPE(other), RECORD.type_object.load(Ordering::Acquire));
        let is_same = is_record.then(|| slf == other || record::is_same(parts(slf), parts(other)));
        match (is_same, operation) {
            (Some(is_same), ffi::Py_EQ) => ffi::PyBool_FromLong(is_same.into()),
            (Some(is_same), ffi::Py_NE) => ffi::PyBool_FromLong((!is_same).into()),
            _ => {
                let not_implemented = ffi::Py_NotImplemented();
                ffi::Py_INCREF(not_implemented);
                not_implemented
            }
        }
    }
}

/// # Safety
/// To be called as CPython calls `tp_hash`: Attached, with a `Record` that the caller keeps.
pub(crate) unsafe extern "C" fn record_hash(slf: *mut ffi::PyObject) -> ffi::Py_hash_t {
    // SAFETY: as CPython calls this; the references live no longer than the call.
    let (batch, entry) = unsafe { parts(slf) };
    // -1 would mean that an exception is set.
    match record::hash(batch, entry) as ffi::Py_hash_t {
        -1 => -2,
        hash => hash,
    }
}
