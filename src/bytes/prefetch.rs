//! Prefetching the bytes of the next batch into the processor's cache while the current one is processed.
//!
//! A checksum is bound by memory, a walk over records by its own dependencies; in sequence, each batch costs
//! the sum of both. So while records are walked, the bytes after their batch are prefetched at the same pace,
//! and the next batch's checksum finds them in the cache. Prefetches are hints: nothing is read, and nothing
//! waits.

use std::fmt;
use std::ops::Range;

/// The maximum to prefetch during one batch: both fit into a second-level cache.
const MAX_SIZE: usize = 256 << 10;
/// The walk over longer records is too quick to hide a prefetch.
const MAX_STEP: usize = 512;
const CACHE_LINE: usize = 64;

/// The range to prefetch, in an input of `length` bytes, after a batch of `size` bytes that ends at `end`:
/// consecutive batches mostly have about the same size.
#[doc(hidden)]
#[must_use]
pub fn following(length: usize, end: usize, size: usize) -> Range<usize> {
    end..length.min(end + size)
}

/// The bytes that will be read next.
#[derive(Clone, Copy, Default)]
pub(crate) struct Prefetch<'a>(&'a [u8]);

impl<'a> Prefetch<'a> {
    #[inline]
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Self(&data[..data.len().min(MAX_SIZE)])
    }

    /// Prefetches `length` bytes from `start` on, as far as they exist.
    #[inline(always)]
    pub(crate) fn fetch(self, start: usize, length: usize) {
        if start < self.0.len() && length <= MAX_STEP {
            for line in (start..start + length).step_by(CACHE_LINE) {
                prefetch_index::prefetch_index(self.0, line);
            }
        }
    }
}

/// Prefetches the memory `distance` bytes after `bytes`: the next values of a buffer that is read in order,
/// or mostly the next of many small allocations.
#[inline(always)]
pub(crate) fn prefetch_after(bytes: &[u8], distance: usize) {
    if bytes.len() <= MAX_STEP {
        for line in (0..bytes.len()).step_by(CACHE_LINE) {
            prefetch_index::prefetch_index(bytes, distance + line);
        }
    }
}

impl fmt::Debug for Prefetch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Prefetch").field(&self.0.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_ends_with_the_input() {
        assert_eq!(following(100, 40, 30), 40..70);
        assert_eq!(following(100, 90, 30), 90..100);
        assert_eq!(following(100, 100, 30), 100..100);
    }

    #[test]
    fn any_range_can_be_prefetched() {
        let data = [1; 100];
        for (start, length) in [(0, 100), (50, 512), (99, 1), (100, 64), (usize::MAX - 600, 512), (0, 0)] {
            Prefetch::new(&data).fetch(start, length);
        }
    }
}
