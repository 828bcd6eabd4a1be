//! A cell that is guarded by the GIL instead of a lock.
//!
//! **Attached** in the SAFETY comments: a `Python` token proves that the GIL is held. The module declares
//! that it uses the GIL, so a free-threaded interpreter enables it.
#![allow(unsafe_code, reason = "access that the GIL guards")]

use std::cell::UnsafeCell;
use std::sync::Mutex;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering;

use pyo3::prelude::*;

use crate::panics;
/// A value that the thread holding the GIL may use.
pub(super) struct GilCell<T> {
    value: UnsafeCell<T>,
    /// [`FREE`], or how it is in use; set only with the GIL held.
    used: AtomicU8,
    /// Held by a thread that works on the value without the GIL.
    detached: Mutex<()>,
}

const FREE: u8 = 0;
const ATTACHED: u8 = 1;
const DETACHED: u8 = 2;

// SAFETY: `value` is accessed only in `with` and `with_detached`, by the thread that found `used` free and
// set it with the GIL held (Attached), until that thread frees it: an acquiring load that finds it free
// happens after all it did.
unsafe impl<T: Send> Sync for GilCell<T> {}

impl<T: Send> GilCell<T> {
    pub(super) fn new(value: T) -> Self {
        Self { value: UnsafeCell::new(value), used: AtomicU8::new(FREE), detached: Mutex::new(()) }
    }

    /// Works on the value. `work` must not run Python code: if that came back here, it would panic.
    #[inline]
    pub(super) fn with<R>(&self, py: Python<'_>, work: impl FnOnce(&mut T) -> R) -> R {
        let _used = self.enter(py, ATTACHED);
        panics::here();
        // SAFETY: `enter` found the value free, and keeps others out until `_used` is dropped.
        work(unsafe { &mut *self.value.get() })
    }

    /// Like [`with`](Self::with), without the GIL; other threads that need the value wait. The value is freed
    /// before this thread takes the GIL back, since that may run finalizers that need it.
    pub(super) fn with_detached<R: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut T) -> R + Send) -> R {
        let used = self.enter(py, DETACHED);
        py.detach(move || {
            let _detached = self.detached.lock();
            // Dropped first, so that a thread waiting for the lock finds the value free.
            let _used = used;
            panics::here();
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
        // An attached user must be this thread, since it has the GIL.
        assert!(
            self.used.load(Ordering::Acquire) != ATTACHED,
            "a value was requested while this thread was using it"
        );
        py.detach(|| drop(self.detached.lock()));
    }
}

/// Frees the value when dropped.
struct Used<'a>(&'a AtomicU8);

impl Drop for Used<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(FREE, Ordering::Release);
    }
}
