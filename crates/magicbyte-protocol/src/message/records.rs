//! Record sets inside messages.

use std::borrow::Cow;

/// A record set, in Produce requests and Fetch responses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
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

impl Records<'_> {
    /// The batches, for [`Batches`](magicbyte::Batches); empty if a broker sends them itself.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Gap(_) => &[],
        }
    }
}

impl<'a> From<&'a [u8]> for Records<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(Cow::Borrowed(bytes))
    }
}

impl From<Vec<u8>> for Records<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(Cow::Owned(bytes))
    }
}
