//! The recipient of an answer. Work that takes long ends when nobody waits for it any more.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::stopping::Stopping;

/// A closed connection is noticed this often by a request that waits.
const LOOK: Duration = Duration::from_millis(500);

/// The client that waits for an answer, and the server that it waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recipient<'a> {
    stopping: &'a Stopping,
    /// None for a caller in this process.
    connection: Option<&'a TcpStream>,
}

impl<'a> Recipient<'a> {
    pub(super) fn new(stopping: &'a Stopping, connection: Option<&'a TcpStream>) -> Self {
        Self { stopping, connection }
    }

    /// True once nobody can get an answer: the client has closed its connection, or the server closes it. Costs a system
    /// call.
    pub(super) fn is_gone(&self) -> bool {
        self.connection.is_some_and(|connection| self.is_stopping() || is_closed(connection))
    }

    /// True once waiting has to end.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.is_stopping()
    }

    /// Waits, but not longer than the client does, and not longer than the server runs.
    pub(super) fn wait(&self, time: Duration) {
        let begun = Instant::now();
        loop {
            let left = time.saturating_sub(begun.elapsed());
            if left.is_zero() || self.is_stopping() || self.is_gone() {
                return;
            }
            self.stopping.wait(left.min(LOOK));
        }
    }
}

/// A client that has more requests on their way may close its connection before they are read.
#[cfg(target_os = "linux")]
fn is_closed(connection: &TcpStream) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let mut events = [PollFd::new(connection, PollFlags::RDHUP)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    // An error of the call itself says nothing about the client.
    poll(&mut events, Some(&at_once)).is_ok_and(|ready| ready > 0)
}

#[cfg(not(target_os = "linux"))]
fn is_closed(connection: &TcpStream) -> bool {
    if connection.set_nonblocking(true).is_err() {
        return false;
    }
    let end = matches!(connection.peek(&mut [0]), Ok(0));
    connection.set_nonblocking(false).is_err() || end
}
