//! `Record`, its iterator and the exporter behind its views, written against CPython's C API.
//!
//! A Python loop makes one object a record. As a `#[pyclass]` that costs twice of what it does here, where a
//! record is three pointers from a free list. Everything that can wait is safe code in `record.rs`.
//!
//! The invariants that the SAFETY comments below refer to:
//!
//! - **Attached**: CPython calls these functions with the GIL held. The wheel is abi3, so there is no
//!   free-threaded build; the GIL guards the free lists and the iterator's index.
//! - **Layout**: an object of one of these types was made by [`allocate`] with that type, so it has
//!   that type's `repr(C)` struct, whose fields were all written before the object was handed out.
//! - **Holder**: `holder` is a strong reference to the [`IndexedBatch`] object; `batch`, `entry` and
//!   `data` point into it. A frozen pyclass does not move or change, so they are valid while the
//!   object lives.
#![allow(unsafe_code, reason = "types in CPython's C API")]

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use super::record::{self, Entry, Failure, IndexedBatch, Slice};

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

/// A type of ours and memory of its objects to use again.
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

pub(super) static RECORD: Kind = Kind::of_records();
static ITERATOR: Kind = Kind::new(size_of::<IteratorObject>());
static EXPORTER: Kind = Kind::new(size_of::<ExporterObject>());

impl Kind {
    const fn new(size: usize) -> Self {
        let free = FreeList { objects: [ptr::null_mut(); FREE_OBJECTS], length: 0 };
        Self { type_object: AtomicPtr::new(ptr::null_mut()), free: UnsafeCell::new(free), size }
    }

    /// For a type of records.
    pub(super) const fn of_records() -> Self {
        Self::new(size_of::<RecordObject>())
    }

    /// For a type of receipts.
    pub(super) const fn of_receipts() -> Self {
        Self::new(size_of::<ReceiptObject>())
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
        // The type lives as long as the process: objects in free lists have no reference to it.
        std::mem::forget(made.clone());
        Ok(made.unbind())
    }
}

/// A new object whose fields behind the head are not written yet; null with an exception set.
///
/// # Safety
/// Attached; the caller writes the fields of the kind's struct before anybody sees the object.
unsafe fn allocate(kind: &Kind) -> *mut ffi::PyObject {
    // SAFETY: Attached, so nobody else is in here; memory in the free list has the kind's size and is
    // owned by nobody. PyObject_Init gives it a type, which it makes a reference of, and a count of 1.
    unsafe {
        let free = &mut *kind.free.get();
        let memory = if free.length > 0 {
            free.length -= 1;
            free.objects[free.length]
        } else {
            let memory = ffi::PyObject_Malloc(kind.size).cast::<ffi::PyObject>();
            if memory.is_null() {
                return ffi::PyErr_NoMemory();
            }
            memory
        };
        ffi::PyObject_Init(memory, kind.type_object.load(Ordering::Acquire))
    }
}

/// Takes the memory of a dead object back.
///
/// # Safety
/// Attached; the object is of this kind, its count is 0, and its holder was given up.
unsafe fn release(kind: &Kind, object: *mut ffi::PyObject) {
    // SAFETY: as above; an instance of a heap type owns a reference to its type.
    unsafe {
        let type_object = ffi::Py_TYPE(object);
        let free = &mut *kind.free.get();
        if free.length < FREE_OBJECTS {
            free.objects[free.length] = object;
            free.length += 1;
        } else {
            ffi::PyObject_Free(object.cast());
        }
        ffi::Py_DECREF(type_object.cast());
    }
}

/// A type whose objects are records of indexed batches.
pub(super) trait RecordType: 'static {
    const NAME: &'static CStr;
    const DOC: &'static CStr;
    const FIELDS: &'static [Field];
    /// A method without arguments.
    const METHOD: Option<(&'static CStr, Getter)> = None;
    /// Makes an object when Python code calls the type; by default it cannot.
    const NEW: Option<Constructor> = None;

    fn kind() -> &'static Kind;
    fn repr(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> PyResult<Py<PyAny>>;
}

/// What a getter does in safe code.
pub(super) type Getter = fn(&Bound<'_, IndexedBatch>, &Entry) -> PyResult<Py<PyAny>>;
/// Positional and keyword arguments to an object of the type.
pub(super) type Constructor = fn(&Bound<'_, PyTuple>, Option<&Bound<'_, PyDict>>) -> PyResult<Py<PyAny>>;

/// An attribute of a record, and its docstring.
pub(super) struct Field {
    name: &'static CStr,
    get: Get,
    doc: &'static CStr,
}

impl Field {
    pub(super) const fn new(name: &'static CStr, get: Get, doc: &'static CStr) -> Self {
        Self { name, get, doc }
    }
}

/// How an attribute is read: the hot ones in C's calling convention, the others in safe code.
pub(super) enum Get {
    Offset,
    Timestamp,
    Attributes,
    Key,
    Value,
    KeyBytes,
    ValueBytes,
    By(Getter),
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
            ffi::Py_INCREF(holder);
            (*record).holder = holder;
            (*record).batch = batch;
            (*record).entry = entry;
        }
        Some(record.cast())
    }
}

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
        unsafe extern "C" fn $name(slf: *mut ffi::PyObject) {
            // SAFETY: Attached, Layout; CPython calls this once, when the count is 0.
            unsafe {
                ffi::Py_DECREF((*slf.cast::<$object>()).holder);
                release(&$kind, slf);
            }
        }
    };
}
dealloc!(iterator_dealloc, IteratorObject, ITERATOR);
dealloc!(exporter_dealloc, ExporterObject, EXPORTER);

unsafe extern "C" fn record_dealloc<T: RecordType>(slf: *mut ffi::PyObject) {
    // SAFETY: Attached, Layout; CPython calls this once, when the count is 0, for objects of T's type.
    unsafe {
        ffi::Py_DECREF((*slf.cast::<RecordObject>()).holder);
        release(T::kind(), slf);
    }
}

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
        ffi::Py_INCREF(holder);
        (*exporter).holder = holder;
        (*exporter).data = bytes.as_ptr();
        (*exporter).length = bytes.len();
        let view = ffi::PyMemoryView_FromObject(exporter.cast());
        ffi::Py_DECREF(exporter.cast());
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
pub(super) fn record_of<'a>(object: &'a Bound<'_, PyAny>) -> Option<crate::Record<'a>> {
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

/// Calls safe code with a record's batch and entry: errors become exceptions, and so does a panic.
///
/// # Safety
/// Attached; `slf` is an object of a record type.
unsafe fn call(slf: *mut ffi::PyObject, work: Getter) -> *mut ffi::PyObject {
    // SAFETY: Attached, Layout; the holder of a record is an IndexedBatch (Holder), and is borrowed from
    // a record that the caller keeps.
    let (py, batch, entry) = unsafe {
        let py = Python::assume_attached();
        let holder = Bound::from_borrowed_ptr(py, (*slf.cast::<RecordObject>()).holder);
        (py, holder.cast_into_unchecked::<IndexedBatch>(), parts(slf).1)
    };
    guarded(py, || work(&batch, entry))
}

/// The object that `work` makes, or null with its error, or the news of its panic, as exception.
fn guarded(py: Python<'_>, work: impl FnOnce() -> PyResult<Py<PyAny>>) -> *mut ffi::PyObject {
    let error = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(object)) => return object.into_ptr(),
        Ok(Err(error)) => error,
        Err(_) => PyRuntimeError::new_err("magicbyte panicked: please report this"),
    };
    error.restore(py);
    ptr::null_mut()
}

unsafe extern "C" fn get_by(slf: *mut ffi::PyObject, getter: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: `getter` is what `getset` made of a `&'static Getter`; CPython passes a record.
    unsafe { call(slf, *getter.cast::<Getter>()) }
}

unsafe extern "C" fn record_repr<T: RecordType>(slf: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: CPython passes a record.
    unsafe { call(slf, T::repr) }
}

unsafe extern "C" fn record_method<T: RecordType>(
    slf: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    match T::METHOD {
        // SAFETY: CPython passes a record.
        Some((_, work)) => unsafe { call(slf, work) },
        None => ptr::null_mut(),
    }
}

unsafe extern "C" fn record_new<T: RecordType>(
    _: *mut ffi::PyTypeObject,
    arguments: *mut ffi::PyObject,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as CPython calls it.
    unsafe { construct(arguments, keywords, T::NEW) }
}

/// # Safety
/// Attached; the arguments are a tuple, and a dict or null, which the caller keeps.
unsafe fn construct(
    arguments: *mut ffi::PyObject,
    keywords: *mut ffi::PyObject,
    new: Option<Constructor>,
) -> *mut ffi::PyObject {
    // SAFETY: as above.
    let (py, arguments, keywords) = unsafe {
        let py = Python::assume_attached();
        let arguments = Bound::from_borrowed_ptr(py, arguments).cast_into_unchecked::<PyTuple>();
        let keywords = Bound::from_borrowed_ptr_or_opt(py, keywords)
            .map(|keywords| keywords.cast_into_unchecked::<PyDict>());
        (py, arguments, keywords)
    };
    guarded(py, || match new {
        Some(new) => new(&arguments, keywords.as_ref()),
        None => Err(PyTypeError::new_err("cannot create instances: batches make them")),
    })
}

/// What a builder's `append` gives: made as often as records are, and as small.
#[repr(C)]
struct ReceiptObject {
    head: ffi::PyObject,
    numbers: [i64; RECEIPT_NUMBERS],
}

const RECEIPT_NUMBERS: usize = 4;

/// A type whose objects are a few numbers under names.
pub(super) trait ReceiptType: 'static {
    const NAME: &'static CStr;
    const DOC: &'static CStr;
    /// Which number each attribute is; None where there is none such.
    const FIELDS: &'static [(&'static CStr, usize)];
    const NEW: Constructor;

    fn kind() -> &'static Kind;
    fn repr(numbers: &[i64; RECEIPT_NUMBERS]) -> String;
}

/// An object of these numbers.
pub(super) fn receipt<T: ReceiptType>(
    py: Python<'_>,
    numbers: [i64; RECEIPT_NUMBERS],
) -> PyResult<Py<PyAny>> {
    // SAFETY: Attached; all fields are written before the object is handed out; a new reference or null.
    unsafe {
        let made = allocate(T::kind()).cast::<ReceiptObject>();
        if !made.is_null() {
            (*made).numbers = numbers;
        }
        Bound::from_owned_ptr_or_err(py, made.cast()).map(Bound::unbind)
    }
}

unsafe extern "C" fn receipt_dealloc<T: ReceiptType>(slf: *mut ffi::PyObject) {
    // SAFETY: Attached, Layout; CPython calls this once, when the count is 0, for objects of T's type.
    unsafe { release(T::kind(), slf) }
}

unsafe extern "C" fn receipt_get(slf: *mut ffi::PyObject, index: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: Attached, Layout. The closure is no pointer but the number's index.
    unsafe {
        let known = &(*slf.cast::<ReceiptObject>()).numbers;
        known.get(index.addr()).map_or_else(|| none(), |&number| ffi::PyLong_FromLongLong(number))
    }
}

unsafe extern "C" fn receipt_repr<T: ReceiptType>(slf: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: Attached, Layout.
    let (py, numbers) = unsafe { (Python::assume_attached(), (*slf.cast::<ReceiptObject>()).numbers) };
    guarded(py, || Ok(PyString::new(py, &T::repr(&numbers)).into_any().unbind()))
}

unsafe extern "C" fn receipt_new<T: ReceiptType>(
    _: *mut ffi::PyTypeObject,
    arguments: *mut ffi::PyObject,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as CPython calls it.
    unsafe { construct(arguments, keywords, Some(T::NEW)) }
}

/// Makes a type of receipts. Its tables are given to CPython for good.
pub(super) fn receipt_type<T: ReceiptType>(py: Python<'_>) -> PyResult<Py<PyType>> {
    let getter = |&(name, index): &(&'static CStr, usize)| ffi::PyGetSetDef {
        name: name.as_ptr(),
        get: Some(receipt_get),
        set: None,
        doc: ptr::null(),
        closure: ptr::without_provenance_mut(index),
    };
    let mut getters: Vec<_> = T::FIELDS.iter().map(getter).collect();
    getters.push(ffi::PyGetSetDef::default());
    let mut slots = [
        slot(ffi::Py_tp_dealloc, receipt_dealloc::<T> as *mut c_void),
        slot(ffi::Py_tp_repr, receipt_repr::<T> as *mut c_void),
        slot(ffi::Py_tp_getset, Box::leak(getters.into_boxed_slice()).as_mut_ptr().cast()),
        slot(ffi::Py_tp_new, receipt_new::<T> as *mut c_void),
        slot(ffi::Py_tp_doc, T::DOC.as_ptr() as *mut c_void),
        slot(0, ptr::null_mut()),
    ];
    T::kind().make(py, T::NAME, &mut slots, true)
}

/// A table that CPython keeps pointers into.
#[repr(transparent)]
struct Table<T, const N: usize>(UnsafeCell<[T; N]>);

// SAFETY: only CPython reads the tables, after they were made; nobody writes to them.
unsafe impl<T, const N: usize> Sync for Table<T, N> {}

static ITERATOR_METHODS: Table<ffi::PyMethodDef, 2> = Table(UnsafeCell::new([
    ffi::PyMethodDef {
        ml_name: c"__length_hint__".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: iterator_length_hint },
        ml_flags: ffi::METH_NOARGS,
        ml_doc: c"How many records are left.".as_ptr(),
    },
    ffi::PyMethodDef::zeroed(),
]));

fn slot(slot: c_int, pfunc: *mut c_void) -> ffi::PyType_Slot {
    ffi::PyType_Slot { slot, pfunc }
}

fn getset(field: &'static Field) -> ffi::PyGetSetDef {
    let mut closure: *mut c_void = ptr::null_mut();
    let get: ffi::getter = match &field.get {
        Get::Offset => get_offset,
        Get::Timestamp => get_timestamp,
        Get::Attributes => get_attributes,
        Get::Key => get_key,
        Get::Value => get_value,
        Get::KeyBytes => get_key_bytes,
        Get::ValueBytes => get_value_bytes,
        Get::By(getter) => {
            closure = ptr::from_ref::<Getter>(getter).cast_mut().cast();
            get_by
        }
    };
    ffi::PyGetSetDef {
        name: field.name.as_ptr(),
        get: Some(get),
        set: None,
        doc: field.doc.as_ptr(),
        closure,
    }
}

/// Makes a type of records. Its tables are given to CPython for good.
pub(super) fn record_type<T: RecordType>(py: Python<'_>) -> PyResult<Py<PyType>> {
    let mut getters: Vec<_> = T::FIELDS.iter().map(getset).collect();
    getters.push(ffi::PyGetSetDef::default());
    let mut slots = vec![
        slot(ffi::Py_tp_dealloc, record_dealloc::<T> as *mut c_void),
        slot(ffi::Py_tp_repr, record_repr::<T> as *mut c_void),
        slot(ffi::Py_tp_getset, Box::leak(getters.into_boxed_slice()).as_mut_ptr().cast()),
        slot(ffi::Py_tp_doc, T::DOC.as_ptr() as *mut c_void),
    ];
    if let Some((name, _)) = T::METHOD {
        let method = ffi::PyMethodDef {
            ml_name: name.as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunction: record_method::<T> },
            ml_flags: ffi::METH_NOARGS,
            ml_doc: ptr::null(),
        };
        let methods = Box::leak(Box::new([method, ffi::PyMethodDef::zeroed()]));
        slots.push(slot(ffi::Py_tp_methods, methods.as_mut_ptr().cast()));
    }
    if T::NEW.is_some() {
        slots.push(slot(ffi::Py_tp_new, record_new::<T> as *mut c_void));
    }
    slots.push(slot(0, ptr::null_mut()));
    T::kind().make(py, T::NAME, &mut slots, T::NEW.is_some())
}

/// Makes the types and adds those that people see to the module.
pub(super) fn add_types(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let end = slot(0, ptr::null_mut());
    let record = record_type::<record::PlainRecord>(py)?;
    let iterator = ITERATOR.make(
        py,
        c"magicbyte.RecordIterator",
        &mut [
            slot(ffi::Py_tp_dealloc, iterator_dealloc as *mut c_void),
            slot(ffi::Py_tp_iter, ffi::PyObject_SelfIter as *mut c_void),
            slot(ffi::Py_tp_iternext, iterator_next as *mut c_void),
            slot(ffi::Py_tp_methods, ITERATOR_METHODS.0.get().cast()),
            slot(ffi::Py_tp_doc, c"Iterates the records of one batch.".as_ptr() as *mut c_void),
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
