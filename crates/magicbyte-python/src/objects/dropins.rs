//! The types of the drop-ins (`compat`): records with their clients' names and attributes, and the results of
//! their builders' `append`. For the invariants, see `record_object.rs`.
#![allow(unsafe_code, reason = "types in CPython's C API")]

use std::ffi::{CStr, c_void};
use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use crate::indexed_batch::{Entry, IndexedBatch};
use crate::objects::kind::{Kind, allocate, give_up, release, slot};
use crate::objects::record_object::{
    RecordObject, Shortcut, get_attribute, get_key_bytes, get_offset, get_timestamp, get_value_bytes, none,
    safely, shortcut,
};
use crate::panics::guarded;

impl Kind {
    /// For a type of records.
    pub(crate) const fn of_records() -> Self {
        Self::new(size_of::<RecordObject>())
    }

    /// For a type of receipts.
    pub(crate) const fn of_receipts() -> Self {
        Self::new(size_of::<ReceiptObject>())
    }
}

/// A type whose objects are records of indexed batches.
pub(crate) trait RecordType: 'static {
    const NAME: &'static CStr;
    const DOC: &'static CStr;
    const FIELDS: &'static [Field];
    /// A method without arguments, and its docstring.
    const METHOD: Option<(&'static CStr, Getter, &'static CStr)> = None;
    /// Constructs an object when Python code calls the type.
    const NEW: Constructor;

    fn kind() -> &'static Kind;
    fn repr(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> PyResult<Py<PyAny>>;
}

/// The safe implementation of a getter.
pub(crate) type Getter = fn(&Bound<'_, IndexedBatch>, &Entry) -> PyResult<Py<PyAny>>;
/// Constructs an object from positional and keyword arguments.
pub(crate) type Constructor = fn(&Bound<'_, PyTuple>, Option<&Bound<'_, PyDict>>) -> PyResult<Py<PyAny>>;

/// An attribute of a record, and its docstring.
pub(crate) struct Field {
    pub(crate) name: &'static CStr,
    pub(crate) get: Get,
    pub(crate) doc: &'static CStr,
}

impl Field {
    pub(crate) const fn new(name: &'static CStr, get: Get, doc: &'static CStr) -> Self {
        Self { name, get, doc }
    }
}

/// The getter of an attribute: in C's calling convention for frequent attributes, in safe code for others.
pub(crate) enum Get {
    Offset,
    Timestamp,
    KeyBytes,
    ValueBytes,
    By(Getter),
}

/// # Safety
/// To be called as CPython calls `tp_dealloc`: Attached, once, with an object of T's type whose count is 0.
pub(crate) unsafe extern "C" fn record_dealloc<T: RecordType>(slf: *mut ffi::PyObject) {
    // SAFETY: Attached, Layout; CPython calls this once, when the count is 0, for objects of T's type.
    unsafe {
        give_up((*slf.cast::<RecordObject>()).holder);
        release(T::kind(), slf);
    }
}

/// Attributes that all these records have.
pub(crate) static SHORTCUTS: [Shortcut; 3] =
    [shortcut(c"value", get_value_bytes), shortcut(c"key", get_key_bytes), shortcut(c"offset", get_offset)];

/// # Safety
/// To be called as CPython calls `tp_getattro`: Attached, with an object of a `RecordType` and a name that
/// the caller keeps.
pub(crate) unsafe extern "C" fn record_getattro(
    slf: *mut ffi::PyObject,
    name: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as CPython calls this.
    unsafe { get_attribute(&SHORTCUTS, slf, name) }
}

/// # Safety
/// To be called as CPython calls a getter: Attached; the descriptor has checked `slf`, which the caller
/// keeps; `getter` is the closure of [`getset`].
pub(crate) unsafe extern "C" fn get_by(slf: *mut ffi::PyObject, getter: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: `getter` is what `getset` made from a `&'static Getter`; CPython passes a record.
    unsafe { safely(slf, *getter.cast::<Getter>()) }
}

/// # Safety
/// To be called as CPython calls `tp_repr`: Attached, with an object of T's type that the caller keeps.
pub(crate) unsafe extern "C" fn record_repr<T: RecordType>(slf: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: CPython passes a record.
    unsafe { safely(slf, T::repr) }
}

/// # Safety
/// To be called as CPython calls a METH_NOARGS method: Attached; the descriptor has checked that `slf` is of
/// T's type; the second argument is null.
pub(crate) unsafe extern "C" fn record_method<T: RecordType>(
    slf: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    match T::METHOD {
        // SAFETY: CPython passes a record.
        Some((_, work, _)) => unsafe { safely(slf, work) },
        None => ptr::null_mut(),
    }
}

/// # Safety
/// To be called as CPython calls `tp_new`: Attached, with a tuple, and a dict or null, that the caller keeps.
pub(crate) unsafe extern "C" fn record_new<T: RecordType>(
    _: *mut ffi::PyTypeObject,
    arguments: *mut ffi::PyObject,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as CPython calls it.
    unsafe { construct(arguments, keywords, T::NEW) }
}

/// # Safety
/// Attached; the arguments are a tuple, and a dict or null, which the caller keeps.
pub(crate) unsafe fn construct(
    arguments: *mut ffi::PyObject,
    keywords: *mut ffi::PyObject,
    new: Constructor,
) -> *mut ffi::PyObject {
    // SAFETY: as above.
    let (py, arguments, keywords) = unsafe {
        let py = Python::assume_attached();
        let arguments = Bound::from_borrowed_ptr(py, arguments).cast_into_unchecked::<PyTuple>();
        let keywords = Bound::from_borrowed_ptr_or_opt(py, keywords)
            .map(|keywords| keywords.cast_into_unchecked::<PyDict>());
        (py, arguments, keywords)
    };
    guarded(py, || new(&arguments, keywords.as_ref()))
}

/// The result of a builder's `append`, created as often as records are, and as small.
#[repr(C)]
pub(crate) struct ReceiptObject {
    pub(crate) head: ffi::PyObject,
    pub(crate) numbers: [i64; RECEIPT_NUMBERS],
}

pub(crate) const RECEIPT_NUMBERS: usize = 4;

/// A type whose objects are a few numbers under names.
pub(crate) trait ReceiptType: 'static {
    const NAME: &'static CStr;
    const DOC: &'static CStr;
    /// For each attribute: its name, the index of its number (None in Python if there is no such number), and
    /// its docstring.
    const FIELDS: &'static [(&'static CStr, usize, &'static CStr)];
    const NEW: Constructor;

    fn kind() -> &'static Kind;
    fn repr(numbers: &[i64; RECEIPT_NUMBERS]) -> String;
}

/// An object of these numbers.
pub(crate) fn receipt<T: ReceiptType>(
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

/// # Safety
/// To be called as CPython calls `tp_dealloc`: Attached, once, with an object of T's type whose count is 0.
pub(crate) unsafe extern "C" fn receipt_dealloc<T: ReceiptType>(slf: *mut ffi::PyObject) {
    // SAFETY: Attached, Layout; CPython calls this once, when the count is 0, for objects of T's type.
    unsafe { release(T::kind(), slf) }
}

/// # Safety
/// To be called as CPython calls a getter: Attached; the descriptor has checked that `slf` is a receipt;
/// `index` is the closure of [`receipt_type`].
pub(crate) unsafe extern "C" fn receipt_get(
    slf: *mut ffi::PyObject,
    index: *mut c_void,
) -> *mut ffi::PyObject {
    // SAFETY: Attached, Layout. The closure is not a pointer but the number's index.
    unsafe {
        let numbers = &(*slf.cast::<ReceiptObject>()).numbers;
        numbers.get(index.addr()).map_or_else(|| none(), |&number| ffi::PyLong_FromLongLong(number))
    }
}

/// # Safety
/// To be called as CPython calls `tp_repr`: Attached, with an object of T's type that the caller keeps.
pub(crate) unsafe extern "C" fn receipt_repr<T: ReceiptType>(slf: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: Attached, Layout.
    let (py, numbers) = unsafe { (Python::assume_attached(), (*slf.cast::<ReceiptObject>()).numbers) };
    guarded(py, || Ok(PyString::new(py, &T::repr(&numbers)).into_any().unbind()))
}

/// # Safety
/// To be called as CPython calls `tp_new`: Attached, with a tuple, and a dict or null, that the caller keeps.
pub(crate) unsafe extern "C" fn receipt_new<T: ReceiptType>(
    _: *mut ffi::PyTypeObject,
    arguments: *mut ffi::PyObject,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as CPython calls it.
    unsafe { construct(arguments, keywords, T::NEW) }
}

/// Creates a type of receipts. Its tables are leaked to CPython.
pub(crate) fn receipt_type<T: ReceiptType>(py: Python<'_>) -> PyResult<Py<PyType>> {
    let getter = |&(name, index, doc): &(&'static CStr, usize, &'static CStr)| ffi::PyGetSetDef {
        name: name.as_ptr(),
        get: Some(receipt_get),
        set: None,
        doc: doc.as_ptr(),
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

pub(crate) fn getset(field: &'static Field) -> ffi::PyGetSetDef {
    let mut closure: *mut c_void = ptr::null_mut();
    let get: ffi::getter = match &field.get {
        Get::Offset => get_offset,
        Get::Timestamp => get_timestamp,
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

/// Creates a type of records. Its tables are leaked to CPython.
pub(crate) fn record_type<T: RecordType>(py: Python<'_>) -> PyResult<Py<PyType>> {
    let mut getters: Vec<_> = T::FIELDS.iter().map(getset).collect();
    getters.push(ffi::PyGetSetDef::default());
    let mut slots = vec![
        slot(ffi::Py_tp_dealloc, record_dealloc::<T> as *mut c_void),
        slot(ffi::Py_tp_repr, record_repr::<T> as *mut c_void),
        slot(ffi::Py_tp_getattro, record_getattro as *mut c_void),
        slot(ffi::Py_tp_getset, Box::leak(getters.into_boxed_slice()).as_mut_ptr().cast()),
        slot(ffi::Py_tp_new, record_new::<T> as *mut c_void),
        slot(ffi::Py_tp_doc, T::DOC.as_ptr() as *mut c_void),
    ];
    if let Some((name, _, doc)) = T::METHOD {
        let method = ffi::PyMethodDef {
            ml_name: name.as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunction: record_method::<T> },
            ml_flags: ffi::METH_NOARGS,
            ml_doc: doc.as_ptr(),
        };
        let methods = Box::leak(Box::new([method, ffi::PyMethodDef::zeroed()]));
        slots.push(slot(ffi::Py_tp_methods, methods.as_mut_ptr().cast()));
    }
    slots.push(slot(0, ptr::null_mut()));
    T::kind().make(py, T::NAME, &mut slots, true)
}
