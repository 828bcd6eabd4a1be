//! The lock around what several Python threads share. There is no other in the bindings, beside the cell of
//! `calls.rs`.
//!
//! Wherever CPython is called, code of the caller may run: a finalizer, an exception's class, the release of a
//! buffer. If one of our locks were held there, that code could come back for it and wait for itself, or another
//! thread could wait for it with the GIL that its owner needs. So a lock is held by detached threads only: who has
//! the guard cannot have a `Python` token, and what is dropped meanwhile is given back to Python later.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

/// Says that this thread has let go of the interpreter. It cannot leave the closure it was made for.
pub(super) struct Detached(());

/// Works without the interpreter.
pub(super) fn detached<R: Send>(py: Python<'_>, work: impl FnOnce(&Detached) -> R + Send) -> R {
    py.detach(|| work(&Detached(())))
}

/// A value behind a lock.
pub(super) struct Locked<T>(Mutex<T>);

impl<T> Locked<T> {
    pub(super) const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Waits for the value. All values here are sound after a panic: a call changes them at its end, or they begin
    /// with the next call.
    pub(super) fn lock<'a>(&'a self, _: &'a Detached) -> MutexGuard<'a, T> {
        crate::python::panics::here();
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send> Locked<T> {
    /// Works on the value, without the interpreter.
    pub(super) fn with<R: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut T) -> R + Send) -> R {
        detached(py, |thread| work(&mut self.lock(thread)))
    }
}
