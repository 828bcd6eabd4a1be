//! Record sets inside messages.

use std::borrow::Cow;

/// A record set, in Produce requests and Fetch responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Records<'a> {
    /// The bytes of batches.
    Bytes(Cow<'a, [u8]>),
    /// The number of bytes that a broker sends itself.
    #[doc(hidden)]
    Gap(usize),
}

impl Default for Records<'_> {
    fn default() -> Self {
        Self::Bytes(Cow::Borrowed(&[]))
    }
}
