//! Locks.

use std::sync::{Mutex, MutexGuard};

/// Locks, even after a panic of another connection: what the server keeps is valid after each step.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
