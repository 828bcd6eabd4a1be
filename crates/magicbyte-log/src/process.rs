//! The process that threads belong to.

/// A process. A child that `fork` makes has the values of its parent and none of the threads, so that joining or waiting for
/// one never ends well.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(u32);

#[doc(hidden)]
impl Process {
    #[must_use]
    pub fn current() -> Self {
        Self(std::process::id())
    }

    /// False in a child that was forked since. Costs a system call.
    #[must_use]
    pub fn is_current(self) -> bool {
        self == Self::current()
    }
}
