//! Pauses between attempts.

use std::thread;
use std::time::{Duration, Instant};

const FIRST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(1);

/// Pauses that grow, until too much time has passed without success.
#[derive(Debug)]
pub(crate) struct Backoff {
    timeout: Duration,
    /// Set by the first failure: time in which nothing was tried does not count.
    deadline: Option<Instant>,
    next: Duration,
}

/// The end of a time that begins now. One that no clock reaches, such as [`Duration::MAX`], ends in a century.
pub(crate) fn deadline(timeout: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_hours(876_000);
    Instant::now() + timeout.min(CENTURY)
}

impl Backoff {
    pub(crate) fn new(timeout: Duration) -> Self {
        Self { timeout, deadline: None, next: FIRST }
    }

    /// Begins again with the shortest pause and the full time.
    pub(crate) fn succeeded(&mut self) {
        *self = Self::new(self.timeout);
    }

    /// Waits as long as a broker wants before the next attempt; false if it is too late for one. A broker that names any
    /// time gains no more than the caller's patience.
    pub(crate) fn pause_for(&mut self, told: Duration) -> bool {
        if Instant::now() >= *self.deadline.get_or_insert_with(|| deadline(self.timeout)) {
            return false;
        }
        thread::sleep(told.min(self.timeout));
        true
    }

    /// Waits before the next attempt; false if it is too late for one.
    pub(crate) fn pause(&mut self) -> bool {
        let now = Instant::now();
        if now + self.next > *self.deadline.get_or_insert_with(|| deadline(self.timeout)) {
            return false;
        }
        thread::sleep(self.next);
        self.next = (2 * self.next).min(LONGEST);
        true
    }
}
