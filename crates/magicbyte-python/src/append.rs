//! `RecordsBuilder.append` and `try_append`, written against CPython's C API: a call through PyO3's wrapper would
//! cost more than the append itself.
//!
//! **Attached** in the SAFETY comments: CPython calls these functions with the GIL held.
#![allow(unsafe_code, reason = "a method in CPython's C API")]

use std::ffi::CStr;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyString, PyTuple, PyType};

use crate::append_arguments::{Append, Argument};
use crate::builder::PyRecordsBuilder;
use crate::docs::{docstring, signed};
use crate::panics::guarded;

const PARAMETERS: [&str; 5] = ["offset", "timestamp", "key", "value", "headers"];
const APPEND_DOC: &CStr = signed!(
    "append($self, /, offset, timestamp, key=None, value=None, headers=None)\n--\n\n",
    docstring!(builder, RecordsBuilder.append)
);
const TRY_APPEND_DOC: &CStr = signed!(
    "try_append($self, /, offset, timestamp, key=None, value=None, headers=None)\n--\n\n",
    docstring!(builder, RecordsBuilder.try_append)
);

/// The parameters' names as interned strings; keywords in source code are interned too.
static NAMES: PyOnceLock<[Py<PyString>; PARAMETERS.len()]> = PyOnceLock::new();

fn parameter(py: Python<'_>, method: Append, name: Borrowed<'_, '_, PyAny>) -> PyResult<usize> {
    let names = NAMES.get_or_init(py, || PARAMETERS.map(|name| PyString::intern(py, name).unbind()));
    if let Some(found) = names.iter().position(|known| known.as_ptr() == name.as_ptr()) {
        return Ok(found);
    }
    let name = name.cast::<PyString>()?;
    let text = name.to_cow()?;
    let unexpected =
        || PyTypeError::new_err(format!("{}() got an unexpected keyword argument '{text}'", method.name()));
    PARAMETERS.iter().position(|known| *known == text).ok_or_else(unexpected)
}

/// The arguments in the order of the parameters.
///
/// # Safety
/// To be called as CPython calls a METH_FASTCALL | METH_KEYWORDS function: `args` are `count` positional
/// arguments, then one for each of the names in the tuple `keywords`, which may be null. All outlive 'a.
#[inline]
unsafe fn arguments<'a>(
    py: Python<'_>,
    method: Append,
    args: *const *mut ffi::PyObject,
    count: usize,
    keywords: *mut ffi::PyObject,
) -> PyResult<[Argument<'a, '_>; PARAMETERS.len()]> {
    let mut arguments = [None; PARAMETERS.len()];
    if count > PARAMETERS.len() {
        let (name, max) = (method.name(), PARAMETERS.len());
        let why = format!("{name}() takes from 2 to {max} positional arguments but {count} were given");
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
            let parameter = parameter(py, method, names.get_borrowed_item(index)?)?;
            if arguments[parameter].replace(at(count + index)).is_some() {
                let (method, name) = (method.name(), PARAMETERS[parameter]);
                let why = format!("{method}() got multiple values for argument '{name}'");
                return Err(PyTypeError::new_err(why));
            }
        }
    }
    Ok(arguments)
}

/// # Safety
/// To be called as CPython calls a METH_FASTCALL | METH_KEYWORDS method: Attached; the descriptor has checked
/// that `slf` is a `RecordsBuilder`; the caller keeps it, the `args` and the tuple `keywords`, which may be
/// null.
unsafe extern "C" fn append(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the caller's promise.
    unsafe { called(Append::Strict, slf, args, count, keywords, |py, _| py.None()) }
}

/// # Safety
/// As [`append`].
unsafe extern "C" fn try_append(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let appended = |py: Python<'_>, appended| PyBool::new(py, appended).to_owned().into_any().unbind();
    // SAFETY: the caller's promise.
    unsafe { called(Append::IfRoom, slf, args, count, keywords, appended) }
}

/// A call of the method, whose result is made of whether the record was appended.
///
/// # Safety
/// As [`append`].
#[inline(always)]
unsafe fn called(
    method: Append,
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
    result: impl FnOnce(Python<'_>, bool) -> Py<PyAny>,
) -> *mut ffi::PyObject {
    // SAFETY: Attached. The method's descriptor has checked that `slf` is a RecordsBuilder, which cannot be
    // subclassed; the caller keeps it for the call.
    let (py, builder) = unsafe {
        let py = Python::assume_attached();
        (py, Borrowed::from_ptr(py, slf).cast_unchecked::<PyRecordsBuilder>())
    };
    guarded(py, || {
        // SAFETY: the caller's promise, and the caller keeps the arguments for the call.
        let arguments = unsafe { arguments(py, method, args, count as usize, keywords) }?;
        builder.get().append_arguments(py, method, arguments).map(|appended| result(py, appended))
    })
}

/// Adds the methods `append` and `try_append` to `RecordsBuilder`.
pub(super) fn add_append(class: &Bound<'_, PyType>) -> PyResult<()> {
    add(class, c"append", append, APPEND_DOC)?;
    add(class, c"try_append", try_append, TRY_APPEND_DOC)
}

fn add(
    class: &Bound<'_, PyType>,
    name: &'static CStr,
    function: ffi::PyCFunctionFastWithKeywords,
    doc: &'static CStr,
) -> PyResult<()> {
    // The type lives as long as the process, and points to it.
    let method = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: function },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: doc.as_ptr(),
    }));
    // SAFETY: Attached; the definition is leaked, so static, and its function has the signature that its
    // flags declare.
    let descriptor = unsafe {
        let made = ffi::PyDescr_NewMethod(class.as_type_ptr(), method);
        Bound::from_owned_ptr_or_err(class.py(), made)?
    };
    let name = name.to_str().unwrap_or_default();
    class.setattr(name, descriptor)
}
