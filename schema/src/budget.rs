//! What a payload may take of columns.

use crate::failure::{Attempt, Failure};

/// Every payload may take this many bytes, and [`PER_BYTE`] more for each of its own.
const ANY: usize = 1 << 20;
/// A list's element of two bytes may be a struct with hundreds of columns.
const PER_BYTE: usize = 1 << 9;
/// Bytes that an empty row may take, the text of defaults included.
pub(crate) const MAX_ROW: usize = 256 << 10;
/// Columns of a schema; types that use each other multiply.
pub(crate) const MAX_COLUMNS: usize = 10_000;

/// Structs in structs; what is deeper is text.
pub(crate) const MAX_NESTING: usize = 64;

/// The bytes of columns that a payload may still take.
pub(crate) struct Budget {
    left: usize,
    payload: usize,
}

impl Budget {
    pub(crate) fn new(payload: usize) -> Self {
        Self { left: payload.saturating_mul(PER_BYTE).saturating_add(ANY), payload }
    }

    /// Takes these bytes; called where columns take far more memory than the bytes that ask for them.
    #[inline]
    pub(crate) fn spend(&mut self, bytes: usize) -> Attempt<()> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(Failure::new(format!(
                "its columns would take more than {PER_BYTE} times its {} bytes",
                self.payload
            ))),
        }
    }
}
