//! Bytes on their way into the processor's cache, while what stands before them is worked on.
//!
//! A checksum waits for memory, a walk over records for itself: done one after the other, each batch costs the sum of
//! both. While records are walked, the bytes behind their batch are asked for, at the walk's own pace; the
//! checksum of the next batch then finds them near. A hint only: nothing is read, and nothing waits.

use std::fmt;
use std::ops::Range;

/// How much is fetched for one batch: it and its follower fit into a second-level cache.
const MOST: usize = 256 << 10;
/// Over longer records the walk is too quick to hide anything.
const LONGEST_STEP: usize = 512;
const CACHE_LINE: usize = 64;

/// Where in an input of `length` bytes the bytes stand that are read behind a batch of `size` bytes that ends at
/// `end`: batches behind each other are about as large.
pub(crate) fn following(length: usize, end: usize, size: usize) -> Range<usize> {
    end..length.min(end + size)
}

/// What will be read next.
#[derive(Clone, Copy, Default)]
pub(crate) struct Ahead<'a>(&'a [u8]);

impl<'a> Ahead<'a> {
    #[inline]
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Self(&data[..data.len().min(MOST)])
    }

    /// Asks for `length` bytes from `start` on, as far as they are there.
    #[inline(always)]
    pub(crate) fn fetch(self, start: usize, length: usize) {
        if start < self.0.len() && length <= LONGEST_STEP {
            for line in (start..start + length).step_by(CACHE_LINE) {
                prefetch_index::prefetch_index(self.0, line);
            }
        }
    }
}

/// Asks for what stands `distance` bytes behind these: in a buffer that is read from its start to its end, or where the
/// next of many small allocations mostly are.
#[inline(always)]
pub(crate) fn fetch_behind(bytes: &[u8], distance: usize) {
    if bytes.len() <= LONGEST_STEP {
        for line in (0..bytes.len()).step_by(CACHE_LINE) {
            prefetch_index::prefetch_index(bytes, distance + line);
        }
    }
}

impl fmt::Debug for Ahead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ahead").field(&self.0.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_ends_with_the_input() {
        assert_eq!(following(100, 40, 30), 40..70);
        assert_eq!(following(100, 90, 30), 90..100);
        assert_eq!(following(100, 100, 30), 100..100);
    }

    #[test]
    fn any_place_may_be_asked_for() {
        let data = [1; 100];
        for (start, length) in [(0, 100), (50, 512), (99, 1), (100, 64), (usize::MAX - 600, 512), (0, 0)] {
            Ahead::new(&data).fetch(start, length);
        }
    }
}
