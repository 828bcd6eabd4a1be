//! Turns panics into ordinary exceptions, whatever was called.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::panic::PanicException;
use pyo3::prelude::*;

use crate::docs::docstring;

/// PyO3 catches panics in every function and slot it generates and raises its `PanicException`. As a
/// `BaseException` that would bypass handlers and end worker processes, so it is turned into
/// `magicbyte.InternalError`, a `RuntimeError`.
pub(super) fn add_internal_error(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = module.py().get_type::<PanicException>();
    class.setattr("__bases__", (module.py().get_type::<PyRuntimeError>(),))?;
    class.setattr("__name__", "InternalError")?;
    class.setattr("__qualname__", "InternalError")?;
    class.setattr("__module__", "magicbyte")?;
    class.setattr("__doc__", docstring!(basics, InternalError))?;
    module.add("InternalError", class)
}

/// The result of `work`, or null with its error or panic raised: for functions in CPython's C API, which PyO3
/// does not generate.
pub(super) fn guarded(py: Python<'_>, work: impl FnOnce() -> PyResult<Py<PyAny>>) -> *mut ffi::PyObject {
    let work = || {
        here();
        work()
    };
    let error = match catch(work) {
        Ok(Ok(object)) => return object.into_ptr(),
        Ok(Err(error)) => error,
        Err(message) => PanicException::new_err(message),
    };
    error.restore(py);
    ptr::null_mut()
}

/// The result of `work`, or the message it panicked with.
pub(super) fn catch<R>(work: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| text(&*panic))
}

fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic").to_owned()
}

/// A point in all entry points where tests can trigger a panic. Only in builds with debug assertions, which
/// wheels are not.
#[inline(always)]
pub(super) fn here() {
    #[cfg(debug_assertions)]
    on_purpose::here();
}

#[cfg(debug_assertions)]
mod on_purpose {
    use std::sync::atomic::{AtomicBool, Ordering};

    use pyo3::prelude::*;

    static ARMED: AtomicBool = AtomicBool::new(false);

    /// Sets whether the next call that passes here, in any thread, panics; returns the previous setting.
    #[pyfunction]
    pub(in super::super) fn _panic_next(armed: bool) -> bool {
        ARMED.swap(armed, Ordering::SeqCst)
    }

    pub(super) fn here() {
        assert!(!(ARMED.load(Ordering::Relaxed) && ARMED.swap(false, Ordering::SeqCst)), "on purpose");
    }
}

#[cfg(debug_assertions)]
pub(super) use on_purpose::_panic_next;
