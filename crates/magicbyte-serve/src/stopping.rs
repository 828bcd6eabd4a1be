//! The end of a server, for which waiting clients wake up.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use crate::lock::lock;

/// The state of the server: running or stopping.
#[derive(Debug, Default)]
pub(super) struct Stopping {
    is_stopping: Mutex<bool>,
    changed: Condvar,
}

impl Stopping {
    pub(super) fn is_stopping(&self) -> bool {
        *lock(&self.is_stopping)
    }

    /// Ends all waiting; false if that was done before.
    pub(super) fn stop(&self) -> bool {
        let before = std::mem::replace(&mut *lock(&self.is_stopping), true);
        self.changed.notify_all();
        !before
    }

    /// Waits, but not longer than the server runs.
    pub(super) fn wait(&self, time: Duration) {
        let is_running = |stopping: &mut bool| !*stopping;
        // A poisoned lock would only end the wait.
        let _ = self.changed.wait_timeout_while(lock(&self.is_stopping), time, is_running);
    }
}
