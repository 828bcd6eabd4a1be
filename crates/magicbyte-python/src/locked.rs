//! The lock around values shared by Python threads. There is no other in the bindings, apart from
//! `gil_cell.rs`.
//!
//! Any call into CPython may run code of the caller: a finalizer, an exception's class, the release of a
//! buffer. If a lock of ours were held then, that code could wait for it forever, or another thread could
//! wait for it while holding the GIL that its owner needs. So only detached threads hold a lock: a thread
//! with the guard cannot have a `Python` token, and Python references dropped meanwhile are released later.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use crate::panics;

/// Proof that this thread is detached from the interpreter. It cannot leave the closure for which it was
/// created.
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

    /// Waits for the value. A poisoned lock is ignored: all values here are consistent after a panic, since a
    /// call changes them at its end, or the next call resets them.
    pub(super) fn lock<'a>(&'a self, _: &'a Detached) -> MutexGuard<'a, T> {
        panics::here();
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send> Locked<T> {
    /// Works on the value, without the interpreter.
    pub(super) fn with<R: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut T) -> R + Send) -> R {
        detached(py, |thread| work(&mut self.lock(thread)))
    }
}
