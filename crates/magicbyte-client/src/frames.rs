//! The memory of responses, used again: fresh memory for each would cost more in page faults and zeros than the copy from
//! the socket.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;

/// The maximum number of frames that are kept.
const MAX_KEPT: usize = 4;

type Kept = Mutex<Vec<Vec<u8>>>;

/// Frames that nobody reads any more. They are freed with it, and those that are still read once nobody does.
#[derive(Debug)]
pub(crate) struct Frames {
    kept: Arc<Kept>,
    /// The maximum size of a kept frame in bytes. Larger ones come from a single large batch.
    max_bytes: usize,
}

impl Frames {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { kept: Arc::default(), max_bytes }
    }

    /// Memory for a response, with the bytes of an older one or without any.
    pub(crate) fn take(&self) -> Vec<u8> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// The first bytes of a frame, whose memory comes back when the last reader drops them.
    pub(crate) fn lend(&self, frame: Vec<u8>, length: usize) -> Bytes {
        let is_kept = frame.capacity() <= self.max_bytes;
        let home = if is_kept { Arc::downgrade(&self.kept) } else { Weak::new() };
        Bytes::from_owner(Lent { frame, home }).slice(..length)
    }
}

struct Lent {
    frame: Vec<u8>,
    home: Weak<Kept>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.frame
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(home) = self.home.upgrade() else { return };
        let mut kept = home.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MAX_KEPT {
            kept.push(std::mem::take(&mut self.frame));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_once_nobody_reads_it() {
        let frames = Frames::new(100);
        let first = frames.lend(b"first".to_vec(), 4);
        assert_eq!(&first[..], b"firs");
        let (at, part) = (first.as_ptr(), first.slice(1..));
        drop(first);
        assert!(frames.take().is_empty(), "a part is a reader");
        drop(part);
        let again = frames.take();
        assert_eq!((&again[..], again.as_ptr()), (&b"first"[..], at));
    }

    #[test]
    fn little_memory_is_kept() {
        let frames = Frames::new(100);
        drop(frames.lend(vec![0; 101], 101));
        assert!(frames.take().is_empty(), "too large");
        let lent: Vec<_> = (0..6).map(|_| frames.lend(vec![0; 100], 1)).collect();
        drop(lent);
        let kept = std::iter::repeat_with(|| frames.take()).take_while(|frame| !frame.is_empty());
        assert_eq!(kept.count(), MAX_KEPT);
        let last = frames.lend(vec![7; 100], 100);
        drop(frames);
        assert_eq!(last[99], 7);
    }
}
