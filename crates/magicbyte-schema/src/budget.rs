//! Memory that payloads may take of columns: one budget for all formats, spent before the memory is taken.

use crate::failure::{Attempt, Failure};

/// Every payload may take this many bytes, and [`PER_BYTE`] more for each of its own.
const ANY: usize = 1 << 20;
/// A list's element of two bytes may be a struct with hundreds of columns.
const PER_BYTE: usize = 1 << 9;
/// A large payload may take [`MAX_BATCH`] bytes, and this many more for each of its own.
const PER_BYTE_OF_LARGE: usize = 1 << 4;
/// Bytes of columns at which a batch is cut.
const MAX_BATCH: usize = 64 << 20;
/// Bytes that an empty row may take, the text of defaults included.
pub(crate) const MAX_ROW: usize = 256 << 10;
/// Columns of a schema; types that use each other multiply.
pub(crate) const MAX_COLUMNS: usize = 10_000;

/// Structs in structs; what is deeper is text.
pub(crate) const MAX_NESTING: usize = 64;

/// The bytes of columns that a batch of payloads, and the payload that is read, may still take.
#[derive(Clone, Copy)]
pub(crate) struct Budget {
    row_size: usize,
    rows: usize,
    batch: usize,
    payload: usize,
    payload_size: usize,
}

impl Budget {
    /// For a batch whose rows take `row_size` bytes each, null or not.
    pub(crate) fn new(row_size: usize) -> Self {
        Self { row_size, rows: 0, batch: MAX_BATCH, payload: 0, payload_size: 0 }
    }

    /// Begins a payload of this many bytes, which columns may copy. False if the batch has to be cut before it; a batch has a
    /// row at least.
    pub(crate) fn begin(&mut self, payload: usize) -> bool {
        let bytes = self.row_size.saturating_add(payload);
        if self.rows > 0 && self.batch < bytes {
            return false;
        }
        self.rows += 1;
        self.batch = self.batch.saturating_sub(bytes);
        self.payload = max_of(payload);
        self.payload_size = payload;
        true
    }

    /// Takes these bytes; called where columns take far more memory than the bytes that ask for them.
    #[inline]
    pub(crate) fn spend(&mut self, bytes: usize) -> Attempt<()> {
        match self.payload.checked_sub(bytes) {
            Some(left) => {
                self.payload = left;
                self.batch = self.batch.saturating_sub(bytes);
                Ok(())
            }
            None => Err(self.exceeded()),
        }
    }

    /// Bytes that the payload may still take.
    pub(crate) fn left(&self) -> usize {
        self.payload
    }

    #[cold]
    pub(crate) fn exceeded(&self) -> Failure {
        let (size, max) = (self.payload_size, max_of(self.payload_size));
        Failure::new(format!(
            "its columns would take more than {max} bytes, the limit for a payload of {size}"
        ))
    }
}

/// The most bytes that a payload of this size may take.
pub(crate) fn max_of(payload: usize) -> usize {
    let small = payload.saturating_mul(PER_BYTE).saturating_add(ANY);
    small.min(payload.saturating_mul(PER_BYTE_OF_LARGE).saturating_add(MAX_BATCH))
}

#[cfg(test)]
mod tests {
    use super::{Budget, MAX_BATCH};

    #[test]
    fn a_batch_is_cut_before_the_row_that_it_has_no_room_for() {
        let mut budget = Budget::new(MAX_BATCH / 4);
        assert!((0..4).all(|_| budget.begin(0)));
        assert!(!budget.begin(0));
        let mut wide = Budget::new(2 * MAX_BATCH);
        assert!(wide.begin(0));
        assert!(!wide.begin(0));
    }

    #[test]
    fn a_payload_takes_no_more_than_its_bytes_allow() {
        let mut budget = Budget::new(8);
        budget.begin(2);
        assert!(budget.spend((1 << 20) + 1024).is_ok());
        assert!(budget.spend(1).is_err());
        budget.begin(1 << 20);
        assert!(budget.spend((64 << 20) + (16 << 20) + 1).is_err());
        assert!(budget.spend((64 << 20) + (16 << 20)).is_ok());
        assert!(!budget.begin(0));
    }
}
