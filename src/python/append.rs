//! What a call for each record costs: `RecordsBuilder.append` against CPython's C API, the fields of the
//! common tuple, a list of such tuples, and a cell that the GIL guards in place of a lock.
//!
//! Through PyO3's wrapper and a mutex, calling `append` would cost more than appending. **Attached** in the
//! SAFETY comments: CPython calls in with the GIL held, and a `Python` token proves the same. The module
//! declares that it uses the GIL, so an interpreter without one takes it back.
#![allow(unsafe_code, reason = "a method in CPython's C API")]

use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_long};
use std::ptr;
use std::slice;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyInt, PyList, PyString, PyTuple, PyType};

use crate::builder::RecordsBuilder;
use crate::error::Result;
use crate::python::builder::PyRecordsBuilder;
use crate::python::panics::guarded;

/// A value that whoever holds the GIL may use.
pub(super) struct GilCell<T> {
    value: UnsafeCell<T>,
    /// [`FREE`], or who uses it: set with the GIL held only.
    used: AtomicU8,
    /// Held by a thread that works on the value without the GIL.
    detached: Mutex<()>,
}

const FREE: u8 = 0;
const ATTACHED: u8 = 1;
const DETACHED: u8 = 2;

// SAFETY: `value` is touched in `with` and `with_detached` only, by who found `used` free and set it, with the GIL held
// (Attached), until they free it: an acquiring load that finds it free comes after all they did.
unsafe impl<T: Send> Sync for GilCell<T> {}

impl<T: Send> GilCell<T> {
    pub(super) fn new(value: T) -> Self {
        Self { value: UnsafeCell::new(value), used: AtomicU8::new(FREE), detached: Mutex::new(()) }
    }

    /// Works on the value. `work` runs no Python code, which could come back here: that panics.
    #[inline]
    pub(super) fn with<R>(&self, py: Python<'_>, work: impl FnOnce(&mut T) -> R) -> R {
        let _used = self.enter(py, ATTACHED);
        crate::python::panics::here();
        // SAFETY: `enter` found the value free, and keeps others out until `_used` is dropped.
        work(unsafe { &mut *self.value.get() })
    }

    /// As [`with`](Self::with), without the GIL; others that want the value wait. It is free before this thread takes
    /// the GIL back, which runs finalizers that may want it.
    pub(super) fn with_detached<R: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut T) -> R + Send) -> R {
        let used = self.enter(py, DETACHED);
        py.detach(move || {
            let _detached = self.detached.lock();
            // Freed first, so that who waits for the lock finds the value free.
            let _used = used;
            crate::python::panics::here();
            // SAFETY: as in `with`.
            work(unsafe { &mut *self.value.get() })
        })
    }

    #[inline]
    fn enter(&self, py: Python<'_>, by: u8) -> Used<'_> {
        while self.used.load(Ordering::Acquire) != FREE {
            self.wait(py);
        }
        self.used.store(by, Ordering::Relaxed);
        Used(&self.used)
    }

    #[cold]
    fn wait(&self, py: Python<'_>) {
        // Whoever is attached and uses it is this thread, since we have the GIL.
        assert!(self.used.load(Ordering::Acquire) != ATTACHED, "a value was asked for by who is using it");
        py.detach(|| drop(self.detached.lock()));
    }
}

/// Lets others in when dropped.
struct Used<'a>(&'a AtomicU8);

impl Drop for Used<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(FREE, Ordering::Release);
    }
}

/// An argument, if it was given.
pub(super) type Argument<'a, 'py> = Option<Borrowed<'a, 'py, PyAny>>;

/// The number, if the object is an `int` itself and has 64 bits.
#[inline]
#[allow(clippy::useless_conversion, reason = "not where a long has 32 bits")]
fn exact_int(object: Borrowed<'_, '_, PyAny>) -> Option<i64> {
    let number = object.cast_exact::<PyInt>().ok()?;
    if size_of::<c_long>() < size_of::<i64>() {
        return number.extract().ok();
    }
    let mut overflow = 0;
    // PyLong_AsLong calls it, and is twice as fast as PyLong_AsLongLong for a timestamp.
    // SAFETY: Attached; it is an int, so nothing is raised, and `overflow` is there to be written to.
    let value = unsafe { ffi::PyLong_AsLongAndOverflow(number.as_ptr(), &mut overflow) };
    (overflow == 0).then_some(i64::from(value))
}

/// The bytes of an argument that is `bytes` itself, or None, or left out; nothing for any other.
#[inline]
fn exact_bytes<'a>(argument: Argument<'a, '_>) -> Option<Option<&'a [u8]>> {
    let Some(object) = argument else { return Some(None) };
    let Ok(bytes) = object.cast_exact::<PyBytes>() else { return object.is_none().then_some(None) };
    let (mut data, mut length) = (ptr::null_mut(), 0);
    // SAFETY: Attached; it is a bytes object, so this cannot fail. Its bytes do not change, and it lives as
    // long as it is borrowed.
    unsafe {
        ffi::PyBytes_AsStringAndSize(bytes.as_ptr(), &mut data, &mut length);
        Some(Some(slice::from_raw_parts(data.cast(), length as usize)))
    }
}

/// Offset, timestamp, key and value.
pub(super) type Row<'a> = (i64, i64, Option<&'a [u8]>, Option<&'a [u8]>);

/// The fields of a record, if all are of these very types: no Python code runs.
#[inline]
pub(super) fn exact_fields<'a>(
    (offset, timestamp): (Borrowed<'_, '_, PyAny>, Borrowed<'_, '_, PyAny>),
    (key, value): (Argument<'a, '_>, Argument<'a, '_>),
) -> Option<Row<'a>> {
    Some((exact_int(offset)?, exact_int(timestamp)?, exact_bytes(key)?, exact_bytes(value)?))
}

/// What stands in a tuple of four, as [`exact_fields`].
#[inline]
fn exact_row<'a>(item: &'a Bound<'_, PyAny>) -> Option<Row<'a>> {
    let tuple = item.cast_exact::<PyTuple>().ok().filter(|tuple| tuple.len() == 4)?;
    let at = |index| tuple.get_borrowed_item(index).ok();
    exact_fields((at(0)?, at(1)?), (Some(at(2)?), Some(at(3)?)))
}

/// Appends the rows of `list` from `start` on, up to the first item that is another object; gives its index.
/// The items are not held one by one, which would write to each.
pub(super) fn append_rows(
    list: &Bound<'_, PyList>,
    start: usize,
    builder: &mut RecordsBuilder,
) -> Result<usize> {
    let count = list.len();
    for index in start..count {
        // SAFETY: Attached; the index is below the length. The list holds the item as long as it is borrowed,
        // since no Python code runs here that could change the list.
        let item = unsafe {
            Borrowed::from_ptr(list.py(), ffi::PyList_GetItem(list.as_ptr(), index as ffi::Py_ssize_t))
        };
        let Some((offset, timestamp, key, value)) = exact_row(&item) else { return Ok(index) };
        builder.append(offset, timestamp, key, value, &[])?;
    }
    Ok(count)
}

const PARAMETERS: [&str; 5] = ["offset", "timestamp", "key", "value", "headers"];
const SIGNATURE: &CStr = c"append($self, /, offset, timestamp, key=None, value=None, headers=None)
--

Appends one record.";

/// The parameters' names as interned strings, which keywords in source code are.
static NAMES: PyOnceLock<[Py<PyString>; PARAMETERS.len()]> = PyOnceLock::new();

fn parameter(py: Python<'_>, name: Borrowed<'_, '_, PyAny>) -> PyResult<usize> {
    let names = NAMES.get_or_init(py, || PARAMETERS.map(|name| PyString::intern(py, name).unbind()));
    if let Some(found) = names.iter().position(|known| known.as_ptr() == name.as_ptr()) {
        return Ok(found);
    }
    let name = name.cast::<PyString>()?;
    let text = name.to_cow()?;
    PARAMETERS
        .iter()
        .position(|known| *known == text)
        .ok_or_else(|| PyTypeError::new_err(format!("append() got an unexpected keyword argument '{text}'")))
}

/// The arguments in the order of the parameters.
///
/// # Safety
/// As CPython calls a METH_FASTCALL | METH_KEYWORDS function: `args` are `count` positional arguments, then one
/// for each of the names in the tuple `keywords`, which may be null. All outlive 'a.
#[inline]
unsafe fn arguments<'a, 'py>(
    py: Python<'py>,
    args: *const *mut ffi::PyObject,
    count: usize,
    keywords: *mut ffi::PyObject,
) -> PyResult<[Argument<'a, 'py>; PARAMETERS.len()]> {
    let mut arguments = [None; PARAMETERS.len()];
    if count > PARAMETERS.len() {
        let most = PARAMETERS.len();
        let why = format!("append() takes from 2 to {most} positional arguments but {count} were given");
        return Err(PyTypeError::new_err(why));
    }
    // SAFETY: the caller's promise; an argument is not null.
    let at = |index: usize| unsafe { Borrowed::from_ptr(py, *args.add(index)) };
    for (index, argument) in arguments.iter_mut().enumerate().take(count) {
        *argument = Some(at(index));
    }
    if !keywords.is_null() {
        // SAFETY: the caller's promise.
        let names = unsafe { Borrowed::from_ptr(py, keywords).cast_unchecked::<PyTuple>() };
        for index in 0..names.len() {
            let parameter = parameter(py, names.get_borrowed_item(index)?)?;
            if arguments[parameter].replace(at(count + index)).is_some() {
                let name = PARAMETERS[parameter];
                let why = format!("append() got multiple values for argument '{name}'");
                return Err(PyTypeError::new_err(why));
            }
        }
    }
    Ok(arguments)
}

/// # Safety
/// As CPython calls a METH_FASTCALL | METH_KEYWORDS method: Attached; the descriptor has checked that `slf` is a
/// `RecordsBuilder`; the caller keeps it, the `args` and the tuple `keywords`, which may be null.
unsafe extern "C" fn builder_append(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Attached. The method's descriptor has checked that `slf` is a RecordsBuilder, which cannot be
    // subclassed; the caller keeps it and the arguments for the call.
    let (py, builder, arguments) = unsafe {
        let py = Python::assume_attached();
        let builder = Borrowed::from_ptr(py, slf).cast_unchecked::<PyRecordsBuilder>();
        (py, builder, arguments(py, args, count as usize, keywords))
    };
    guarded(py, || builder.get().append_arguments(py, arguments?).map(|()| py.None()))
}

/// Gives `RecordsBuilder` its method `append`.
pub(super) fn add_append(class: &Bound<'_, PyType>) -> PyResult<()> {
    let name = CString::from(c"append");
    let method = Box::new(ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: builder_append },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: SIGNATURE.as_ptr(),
    });
    // The type lives as long as the process, and keeps pointers to both.
    let (_, method) = (CString::into_raw(name), Box::leak(method));
    // SAFETY: Attached; the definition is static by now, its function has the signature that its flags say.
    let descriptor = unsafe {
        let made = ffi::PyDescr_NewMethod(class.as_type_ptr(), method);
        Bound::from_owned_ptr_or_err(class.py(), made)?
    };
    class.setattr("append", descriptor)
}
