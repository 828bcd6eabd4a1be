//! `Record`, its iterator and the exporter behind its views, written against CPython's C API.
//!
//! A Python loop makes one object a record. As a `#[pyclass]` that costs twice of what it does here, where a
//! record is three pointers from a free list. Everything that can wait is safe code in `record.rs`.
//!
//! The invariants that the SAFETY comments below refer to:
//!
//! - **Attached**: CPython calls these functions with the GIL held, and the module declares that it uses it; the
//!   GIL guards the free lists and the iterator's index. There is one module a process.
//! - **Layout**: an object of one of these types was made by [`allocate`] with that type, so it has
//!   that type's `repr(C)` struct, whose fields were all written before the object was handed out.
//! - **Holder**: `holder` is a strong reference to the [`IndexedBatch`] object; `batch`, `entry` and
//!   `data` point into it. A frozen pyclass does not move or change, so they are valid while the
//!   object lives.
//! - **Count**: counts are changed in place, as the headers of Python 3.11 do it in every extension of the
//!   stable ABI, which this wheel is; only of objects of ours, none of which is immortal.
#![allow(unsafe_code, reason = "types in CPython's C API")]

pub(super) mod dropins;
mod types;

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

pub(super) use crate::python::objects::types::add_types;
use crate::python::panics::guarded;
use crate::python::record;
use crate::python::record::{Entry, Failure, IndexedBatch, Slice};

#[repr(C)]
struct RecordObject {
    head: ffi::PyObject,
    holder: *mut ffi::PyObject,
    batch: *const IndexedBatch,
    entry: *const Entry,
}

#[repr(C)]
struct IteratorObject {
    head: ffi::PyObject,
    holder: *mut ffi::PyObject,
    batch: *const IndexedBatch,
    next: usize,
    /// What it makes.
    kind: &'static Kind,
}

/// What a memoryview of a key or value is a view of.
#[repr(C)]
struct ExporterObject {
    head: ffi::PyObject,
    holder: *mut ffi::PyObject,
    data: *const u8,
    length: usize,
}

/// A type of ours and its dead objects to use again: they keep their type and the reference to it.
pub(super) struct Kind {
    type_object: AtomicPtr<ffi::PyTypeObject>,
    free: UnsafeCell<FreeList>,
    size: usize,
}

struct FreeList {
    objects: [*mut ffi::PyObject; FREE_OBJECTS],
    length: usize,
}

/// Enough for a loop and what it keeps for a moment.
const FREE_OBJECTS: usize = 128;

// SAFETY: `free` is touched only by `allocate` and `release`, with the GIL held (Attached).
unsafe impl Sync for Kind {}

pub(super) static RECORD: Kind = Kind::new(size_of::<RecordObject>());
static ITERATOR: Kind = Kind::new(size_of::<IteratorObject>());
static EXPORTER: Kind = Kind::new(size_of::<ExporterObject>());

impl Kind {
    const fn new(size: usize) -> Self {
        let free = FreeList { objects: [ptr::null_mut(); FREE_OBJECTS], length: 0 };
        Self { type_object: AtomicPtr::new(ptr::null_mut()), free: UnsafeCell::new(free), size }
    }

    fn make(
        &self,
        py: Python<'_>,
        name: &'static CStr,
        slots: &mut [ffi::PyType_Slot],
        callable: bool,
    ) -> PyResult<Py<PyType>> {
        let mut flags = ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_IMMUTABLETYPE;
        if !callable {
            flags |= ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION;
        }
        let mut spec = ffi::PyType_Spec {
            name: name.as_ptr(),
            basicsize: self.size as c_int,
            itemsize: 0,
            flags: flags as u32,
            slots: slots.as_mut_ptr(),
        };
        // SAFETY: the spec is valid for the call, its slots end in a zero slot and hold functions of
        // the signatures that CPython's documentation gives for their numbers; getset tables are static.
        let made = unsafe { ffi::PyType_FromSpec(&mut spec) };
        // SAFETY: a new reference, or null with an exception set.
        let made = unsafe { Bound::from_owned_ptr_or_err(py, made) }?.cast_into::<PyType>()?;
        self.type_object.store(made.as_type_ptr(), Ordering::Release);
        // The type lives as long as the process.
        std::mem::forget(made.clone());
        Ok(made.unbind())
    }
}

/// A new object whose fields behind the head are not written yet; null with an exception set.
///
/// # Safety
/// Attached; the caller writes the fields of the kind's struct before anybody sees the object.
unsafe fn allocate(kind: &Kind) -> *mut ffi::PyObject {
    // SAFETY: Attached, so nobody else is in here; an object in the free list is of this kind, is owned by
    // nobody and has the count 0 (Count). PyObject_Init gives new memory a type, which it makes a
    // reference of, and a count of 1.
    unsafe {
        let free = &mut *kind.free.get();
        if free.length > 0 {
            free.length -= 1;
            let object = free.objects[free.length];
            retain(object);
            return object;
        }
        let memory = ffi::PyObject_Malloc(kind.size).cast::<ffi::PyObject>();
        if memory.is_null() {
            return ffi::PyErr_NoMemory();
        }
        ffi::PyObject_Init(memory, kind.type_object.load(Ordering::Acquire))
    }
}

/// One reference more.
///
/// # Safety
/// Attached; an object of ours (Count).
#[inline(always)]
unsafe fn retain(object: *mut ffi::PyObject) {
    // SAFETY: as above.
    unsafe { (*object).ob_refcnt += 1 };
}

/// One reference less; the last one goes by way of CPython.
///
/// # Safety
/// Attached; an object of ours (Count), of which the caller owns a reference.
#[inline(always)]
unsafe fn give_up(object: *mut ffi::PyObject) {
    // SAFETY: as above.
    unsafe {
        if (*object).ob_refcnt > 1 {
            (*object).ob_refcnt -= 1;
        } else {
            ffi::Py_DECREF(object);
        }
    }
}

/// Takes a dead object back.
///
/// # Safety
/// Attached; the object is of this kind, its count is 0, and its holder was given up.
unsafe fn release(kind: &Kind, object: *mut ffi::PyObject) {
    // SAFETY: as above; an instance of a heap type owns a reference to its type.
    unsafe {
        let free = &mut *kind.free.get();
        if free.length < FREE_OBJECTS {
            free.objects[free.length] = object;
            free.length += 1;
        } else {
            let type_object = ffi::Py_TYPE(object);
            ffi::PyObject_Free(object.cast());
            ffi::Py_DECREF(type_object.cast());
        }
    }
}

/// An iterator over the batch's records, which makes objects of this kind.
pub(super) fn iterate(py: Python<'_>, batch: Py<IndexedBatch>, kind: &'static Kind) -> PyResult<Py<PyAny>> {
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

/// An object for this record of the batch; none if it has no such record.
pub(super) fn record_at(
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

/// A record of the batch; none if there is no such one, null with an exception set if memory is short.
///
/// # Safety
/// Attached; `holder` is the object of `batch`; the kind's type was made.
unsafe fn new_record(
    holder: *mut ffi::PyObject,
    batch: *const IndexedBatch,
    index: usize,
    kind: &Kind,
) -> Option<*mut ffi::PyObject> {
    // SAFETY: Attached, Holder; the entry is one of the batch's, checked by `get`; all fields are written
    // before the object is handed out.
    unsafe {
        let known = &*batch;
        let entry = known.entries.get(index)?;
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
/// As CPython calls `tp_iternext`: Attached, with a `RecordIterator` that the caller keeps.
unsafe extern "C" fn iterator_next(slf: *mut ffi::PyObject) -> *mut ffi::PyObject {
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
/// As CPython calls a METH_NOARGS method: Attached; the descriptor has checked that `slf` is a
/// `RecordIterator`, and the second argument is null.
unsafe extern "C" fn iterator_length_hint(
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

/// Gives up the holder, then the memory.
macro_rules! dealloc {
    ($name:ident, $object:ty, $kind:ident) => {
        /// # Safety
        /// As CPython calls `tp_dealloc`: Attached, once, with an object of this kind whose count is 0.
        unsafe extern "C" fn $name(slf: *mut ffi::PyObject) {
            // SAFETY: Attached, Layout; CPython calls this once, when the count is 0.
            unsafe {
                give_up((*slf.cast::<$object>()).holder);
                release(&$kind, slf);
            }
        }
    };
}
dealloc!(record_dealloc, RecordObject, RECORD);
dealloc!(iterator_dealloc, IteratorObject, ITERATOR);
dealloc!(exporter_dealloc, ExporterObject, EXPORTER);

/// # Safety
/// As CPython calls `bf_getbuffer`: Attached, with an exporter that the caller keeps and a `view` to fill.
unsafe extern "C" fn exporter_getbuffer(
    slf: *mut ffi::PyObject,
    view: *mut ffi::Py_buffer,
    flags: c_int,
) -> c_int {
    // SAFETY: Layout, Holder: data and length are a slice of the batch's bytes, which nobody writes to; they are
    // exported read-only. FillInfo stores a reference to the exporter in the view, so they outlive it.
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
unsafe fn view(holder: *mut ffi::PyObject, bytes: &[u8]) -> *mut ffi::PyObject {
    // SAFETY: as above; all fields are written before the object is handed out. The memoryview owns the
    // exporter, or nobody does and it goes.
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
pub(super) fn memoryview(batch: &Bound<'_, IndexedBatch>, slice: Slice) -> PyResult<Py<PyAny>> {
    // SAFETY: the GIL is held, and the slice is checked to be the batch's.
    let made = unsafe { view(batch.as_ptr(), batch.get().slice(slice)) };
    // SAFETY: a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(batch.py(), made) }.map(Bound::unbind)
}

/// The record that a `Record` object stands for; none if it is another object.
pub(super) fn record_of<'a>(object: &'a Bound<'_, PyAny>) -> Option<crate::record::Record<'a>> {
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
unsafe fn parts<'a>(slf: *mut ffi::PyObject) -> (&'a IndexedBatch, &'a Entry) {
    // SAFETY: Layout, Holder.
    unsafe {
        let record = slf.cast::<RecordObject>();
        (&*(*record).batch, &*(*record).entry)
    }
}

/// # Safety
/// Attached.
unsafe fn none() -> *mut ffi::PyObject {
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
        /// As CPython calls a getter: Attached; the descriptor has checked that `slf` is a record, which the caller keeps.
        unsafe extern "C" fn $name(slf: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
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
        /// As CPython calls a getter: Attached; the descriptor has checked that `slf` is a record, which the caller keeps.
        unsafe extern "C" fn $copy(slf: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
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
        /// As CPython calls a getter: Attached; the descriptor has checked that `slf` is a record, which the caller keeps.
        unsafe extern "C" fn $view(slf: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
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

/// Work on a record that is a safe function: errors become exceptions, and so does a panic.
///
/// # Safety
/// Attached; `slf` is a `Record` that the caller keeps.
unsafe fn safely(
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
        /// As CPython calls a getter: Attached; the descriptor has checked that `slf` is a record, which the caller keeps.
        unsafe extern "C" fn $name(slf: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
            // SAFETY: as CPython calls a getter.
            unsafe { safely(slf, |batch, entry| $work(batch, entry)) }
        }
    };
}

/// A method of one argument.
macro_rules! safe_method {
    ($name:ident, $work:path) => {
        /// # Safety
        /// As CPython calls a METH_O method: Attached; the descriptor has checked that `slf` is a `Record`; the
        /// caller keeps it and the argument, which is not null.
        unsafe extern "C" fn $name(
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
safe_getter!(get_timestamp_type, record::timestamp_type);
safe_getter!(get_headers, record::headers);
safe_getter!(get_headers_raw, record::headers_raw);
safe_getter!(get_sequence, record::sequence);
safe_getter!(get_control, record::control);
safe_getter!(repr_of, record::repr);
safe_method!(last_header, record::last_header);
safe_method!(headers_for, record::headers_for);

/// The getters that loops use, found by their names' addresses: names in code are interned. All others, and
/// names that are not interned, are found as always.
struct Shortcut {
    name: AtomicPtr<ffi::PyObject>,
    text: &'static CStr,
    get: ffi::getter,
}

const fn shortcut(text: &'static CStr, get: ffi::getter) -> Shortcut {
    Shortcut { name: AtomicPtr::new(ptr::null_mut()), text, get }
}

static SHORTCUTS: [Shortcut; 6] = [
    shortcut(c"value_bytes", get_value_bytes),
    shortcut(c"key_bytes", get_key_bytes),
    shortcut(c"value", get_value),
    shortcut(c"key", get_key),
    shortcut(c"offset", get_offset),
    shortcut(c"timestamp", get_timestamp),
];

/// # Safety
/// As CPython calls `tp_getattro`: Attached, with a `Record` and a name that the caller keeps.
unsafe extern "C" fn record_getattro(
    slf: *mut ffi::PyObject,
    name: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as CPython calls this.
    unsafe { get_attribute(&SHORTCUTS, slf, name) }
}

/// # Safety
/// As CPython calls `tp_getattro`, of a type that has these attributes and cannot be subclassed.
#[inline(always)]
unsafe fn get_attribute(
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
/// As CPython calls `tp_repr`: Attached, with a `Record` that the caller keeps.
unsafe extern "C" fn record_repr(slf: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: as CPython calls it, which is as it calls a getter.
    unsafe { repr_of(slf, ptr::null_mut()) }
}
