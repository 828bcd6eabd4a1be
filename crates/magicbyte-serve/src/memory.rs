//! The memory of requests and responses: each connection has a little of its own, and all of them share the rest. Whoever
//! needs more waits for it, so that clients together never take more than the operator gave them.

use std::cell::Cell;
use std::fmt::{self, Display};
use std::io;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use magicbyte::{Error, ErrorKind};

use crate::lock::lock;
use crate::recipient::Recipient;

/// Memory is taken from the shared part in blocks of this size.
const BLOCK: usize = 256 << 10;
/// A request that holds shared memory waits this long for more: two of them may wait for each other.
const PATIENCE: Duration = Duration::from_secs(10);
/// A client that went away is noticed this often by those that wait.
const LOOK: Duration = Duration::from_millis(200);

/// Why a request gets no answer: its connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unanswered {
    /// More memory is needed than there is, or than one response may take.
    MemoryExhausted,
    /// An array has more elements than clients read.
    TooManyElements,
    /// Nobody waits for the answer any more.
    ClientGone,
}

impl Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MemoryExhausted => "the answer takes more memory than there is for it",
            Self::TooManyElements => "the answer has an array of more than 1,000,000 elements",
            Self::ClientGone => "the client is gone",
        })
    }
}

impl std::error::Error for Unanswered {}

/// The error of a request whose connection is closed, since it gets no response.
impl From<Unanswered> for Error {
    fn from(unanswered: Unanswered) -> Self {
        Self::new(ErrorKind::InvalidMessage(unanswered.to_string()))
    }
}

impl From<Unanswered> for io::Error {
    fn from(unanswered: Unanswered) -> Self {
        Self::other(unanswered)
    }
}

/// The memory for one purpose of all connections, in bytes.
#[derive(Debug)]
pub(super) struct Memory {
    own: usize,
    shared: usize,
    free: Mutex<usize>,
    returned: Condvar,
}

impl Memory {
    /// Memory of which each connection has `own` bytes, and all together `shared` more.
    pub(super) fn new(own: usize, shared: usize) -> Self {
        Self { own, shared, free: Mutex::new(shared), returned: Condvar::new() }
    }

    /// The memory of one request, of which at most `limit` bytes are its response.
    pub(super) fn budget<'a>(&'a self, limit: usize, recipient: Recipient<'a>) -> Budget<'a> {
        let nothing = Cell::default;
        let (response, records, lent, reserved) = (nothing(), nothing(), nothing(), nothing());
        Budget { memory: self, recipient, limit, response, records, lent, reserved }
    }

    fn reserve(
        &self,
        bytes: usize,
        patience: Option<Duration>,
        recipient: Recipient<'_>,
    ) -> Result<(), Unanswered> {
        let begun = Instant::now();
        let mut free = lock(&self.free);
        while *free < bytes {
            let is_over = patience.is_some_and(|patience| begun.elapsed() >= patience);
            if is_over {
                return Err(Unanswered::MemoryExhausted);
            }
            if recipient.is_gone() {
                return Err(Unanswered::ClientGone);
            }
            free = match self.returned.wait_timeout(free, LOOK) {
                Ok((free, _)) => free,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        *free -= bytes;
        Ok(())
    }

    fn release(&self, bytes: usize) {
        if bytes > 0 {
            *lock(&self.free) += bytes;
            self.returned.notify_all();
        }
    }
}

/// The memory that one request has taken. It is given back at the end.
#[derive(Debug)]
pub(super) struct Budget<'a> {
    memory: &'a Memory,
    recipient: Recipient<'a>,
    limit: usize,
    /// Bytes of the response so far, without records.
    response: Cell<usize>,
    /// Bytes of records in memory.
    records: Cell<usize>,
    /// Bytes that are needed only for a part of the work.
    lent: Cell<usize>,
    /// Bytes of the shared part.
    reserved: Cell<usize>,
}

impl<'a> Budget<'a> {
    pub(super) fn recipient(&self) -> Recipient<'a> {
        self.recipient
    }

    /// Ends work for a client that is gone.
    pub(super) fn check_client(&self) -> Result<(), Unanswered> {
        if self.recipient.is_gone() { Err(Unanswered::ClientGone) } else { Ok(()) }
    }

    /// Takes memory until the response is sent.
    ///
    /// # Errors
    /// If the response becomes larger than one may be, or others do not give back what they have.
    pub(super) fn take(&self, bytes: usize) -> Result<(), Unanswered> {
        let response = self.response.get().saturating_add(bytes);
        if response > self.limit {
            return Err(Unanswered::MemoryExhausted);
        }
        self.grow(bytes)?;
        self.response.set(response);
        Ok(())
    }

    /// Takes memory for records until the response is sent. A single batch may be larger than any limit.
    ///
    /// # Errors
    /// If others do not give back what they have.
    pub(super) fn take_records(&self, bytes: usize) -> Result<(), Unanswered> {
        self.grow(bytes)?;
        self.records.set(self.records.get().saturating_add(bytes));
        Ok(())
    }

    /// Takes memory until the guard is dropped, outside the limit of a response. Where that is more than all of the
    /// memory, all of it.
    ///
    /// # Errors
    /// If others do not give back what they have.
    pub(super) fn lend(&self, bytes: usize) -> Result<Lent<'_, 'a>, Unanswered> {
        let bytes = bytes.min(self.memory.shared);
        self.grow(bytes)?;
        self.lent.set(self.lent.get() + bytes);
        Ok(Lent { budget: self, bytes })
    }

    /// Keeps this much for the response and its records, and gives back the rest.
    pub(super) fn shrink_to(&self, bytes: usize) {
        self.response.set(bytes.saturating_sub(self.records.get()).min(self.response.get()));
        self.give_back();
    }

    /// True while others may wait for memory that this request has.
    pub(super) fn is_shared(&self) -> bool {
        self.reserved.get() > 0
    }

    fn grow(&self, bytes: usize) -> Result<(), Unanswered> {
        let missing = self.needed(bytes).saturating_sub(self.reserved.get());
        if missing > 0 {
            let patience = self.is_shared().then_some(PATIENCE);
            self.memory.reserve(missing, patience, self.recipient)?;
            self.reserved.set(self.reserved.get() + missing);
        }
        Ok(())
    }

    fn give_back(&self) {
        let surplus = self.reserved.get().saturating_sub(self.needed(0));
        self.reserved.set(self.reserved.get() - surplus);
        self.memory.release(surplus);
    }

    /// The shared bytes for what is used and `more`: whole blocks, unless these are more than all.
    fn needed(&self, more: usize) -> usize {
        let parts = [self.response.get(), self.records.get(), self.lent.get(), more];
        let used = parts.into_iter().fold(0, usize::saturating_add);
        used.saturating_sub(self.memory.own).div_ceil(BLOCK).saturating_mul(BLOCK).min(self.memory.shared)
    }
}

impl Drop for Budget<'_> {
    fn drop(&mut self) {
        self.memory.release(self.reserved.get());
    }
}

/// Memory that a part of the work needs.
#[derive(Debug)]
pub(super) struct Lent<'b, 'a> {
    budget: &'b Budget<'a>,
    bytes: usize,
}

impl Drop for Lent<'_, '_> {
    fn drop(&mut self) {
        self.budget.lent.set(self.budget.lent.get() - self.bytes);
        self.budget.give_back();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::stopping::Stopping;

    #[test]
    fn clients_together_take_no_more_than_there_is() {
        let stopping = Stopping::default();
        let recipient = Recipient::new(&stopping, None);
        let memory = Memory::new(100, 4 * BLOCK);
        let free = || *lock(&memory.free);
        let (first, second) = (memory.budget(3 * BLOCK, recipient), memory.budget(3 * BLOCK, recipient));
        first.take(100).unwrap();
        assert_eq!((free(), first.is_shared()), (4 * BLOCK, false), "a little is its own");
        first.take(1).unwrap();
        assert_eq!((free(), first.is_shared()), (3 * BLOCK, true));
        assert_eq!(first.take(3 * BLOCK), Err(Unanswered::MemoryExhausted), "more than a response may take");
        let lent = first.lend(usize::MAX).unwrap();
        assert_eq!(free(), 0, "all of it, at most");
        second.take(100).unwrap();
        thread::scope(|scope| {
            let waits = scope.spawn(|| {
                let third = memory.budget(BLOCK, recipient);
                third.take(BLOCK).unwrap();
            });
            thread::sleep(Duration::from_millis(20));
            assert!(!waits.is_finished());
            drop(lent);
        });
        assert_eq!(free(), 3 * BLOCK);
        first.shrink_to(100);
        assert_eq!((free(), first.is_shared()), (4 * BLOCK, false));
        first.take_records(4 * BLOCK).unwrap();
        first.take(100).unwrap();
        assert_eq!(free(), 0, "a batch may be larger than a response");
        drop((first, second));
        assert_eq!(free(), 4 * BLOCK);
    }
}
