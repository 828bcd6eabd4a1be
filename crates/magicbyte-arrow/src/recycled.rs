//! Reusing the memory of Arrow batches after their readers have dropped them.

use std::sync::{Arc, Mutex, PoisonError};

use ::bytes::Bytes;
use arrow_buffer::Buffer;

/// The maximum number of buffers kept for reuse, which is about as many as one of several threads has in
/// flight.
const MAX_KEPT: usize = 4;
/// The maximum size of a kept buffer in bytes. Larger buffers, which came from a single large batch, are
/// freed.
const MAX_BYTES: usize = 4 << 20;

/// The spare buffers of a column. Fresh memory for every Arrow batch would cost more in page faults than the
/// copy into it; a reader that drops each batch before the next gets the same memory again.
#[derive(Clone, Debug, Default)]
pub(super) struct Recycled(Arc<Mutex<Vec<Vec<u8>>>>);

impl Recycled {
    /// Returns the bytes as a buffer, and leaves an empty vector with capacity in their place.
    pub(super) fn renew(&self, data: &mut Vec<u8>) -> Buffer {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let next = kept.unwrap_or_else(|| Vec::with_capacity(data.len() + data.len() / 4));
        let lent = Lent { data: std::mem::replace(data, next), home: self.clone() };
        Bytes::from_owner(lent).into()
    }
}

struct Lent {
    data: Vec<u8>,
    home: Recycled,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if self.data.capacity() <= MAX_BYTES {
            let mut kept = self.home.0.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() < MAX_KEPT {
                self.data.clear();
                kept.push(std::mem::take(&mut self.data));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_reused_once_all_readers_are_gone() {
        let memory = Recycled::default();
        let mut data = b"first".to_vec();
        let first = memory.renew(&mut data);
        data.extend_from_slice(b"second");
        let second = memory.renew(&mut data);
        assert_eq!((&first[..], &second[..]), (&b"first"[..], &b"second"[..]));
        let (at, slice) = (first.as_ptr(), first.slice(1));
        drop(first);
        data.extend_from_slice(b"third");
        let third = memory.renew(&mut data);
        assert_eq!((&slice[..], &third[..]), (&b"irst"[..], &b"third"[..]), "a slice is a reader");
        drop(slice);
        drop(memory.renew(&mut data));
        assert_eq!(data.as_ptr(), at);
    }
}
