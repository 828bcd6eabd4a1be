//! `RecordsBuilder.append`, written against CPython's C API: a call through PyO3's wrapper would cost more
//! than the append itself.
//!
//! **Attached** in the SAFETY comments: CPython calls these functions with the GIL held.
#![allow(unsafe_code, reason = "a method in CPython's C API")]

use std::ffi::{CStr, CString};

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyTuple, PyType};

use crate::append_arguments::Argument;
use crate::builder::PyRecordsBuilder;
use crate::docs::{docstring, signed};
use crate::panics::guarded;

const PARAMETERS: [&str; 5] = ["offset", "timestamp", "key", "value", "headers"];
const DOC: &CStr = signed!(
    "append($self, /, offset, timestamp, key=None, value=None, headers=None)\n--\n\n",
    docstring!(builder, RecordsBuilder.append)
);

/// The parameters' names as interned strings; keywords in source code are interned too.
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
/// To be called as CPython calls a METH_FASTCALL | METH_KEYWORDS function: `args` are `count` positional
/// arguments, then one for each of the names in the tuple `keywords`, which may be null. All outlive 'a.
#[inline]
unsafe fn arguments<'a>(
    py: Python<'_>,
    args: *const *mut ffi::PyObject,
    count: usize,
    keywords: *mut ffi::PyObject,
) -> PyResult<[Argument<'a, '_>; PARAMETERS.len()]> {
    let mut arguments = [None; PARAMETERS.len()];
    if count > PARAMETERS.len() {
        let max = PARAMETERS.len();
        let why = format!("append() takes from 2 to {max} positional arguments but {count} were given");
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
/// To be called as CPython calls a METH_FASTCALL | METH_KEYWORDS method: Attached; the descriptor has checked
/// that `slf` is a `RecordsBuilder`; the caller keeps it, the `args` and the tuple `keywords`, which may be
/// null.
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

/// Adds the method `append` to `RecordsBuilder`.
pub(super) fn add_append(class: &Bound<'_, PyType>) -> PyResult<()> {
    let name = CString::from(c"append");
    let method = Box::new(ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: builder_append },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: DOC.as_ptr(),
    });
    // The type lives as long as the process, and points to both.
    let (_, method) = (CString::into_raw(name), Box::leak(method));
    // SAFETY: Attached; the definition is leaked, so static, and its function has the signature that its
    // flags declare.
    let descriptor = unsafe {
        let made = ffi::PyDescr_NewMethod(class.as_type_ptr(), method);
        Bound::from_owned_ptr_or_err(class.py(), made)?
    };
    class.setattr("append", descriptor)
}
