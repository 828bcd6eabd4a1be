//! A counting global allocator, for tests that bound memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts the bytes that the current thread has allocated, and their peak.
pub struct Counting;

thread_local! {
    static NOW: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

fn count(grown: usize, shrunk: usize) {
    // Wraps, because a thread may free what another one allocated.
    let now = NOW.get().wrapping_add(grown).wrapping_sub(shrunk);
    NOW.set(now);
    PEAK.set(PEAK.get().max(now));
}

// SAFETY: every call is passed unchanged to the system's allocator; counting touches no pointer.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's promises are those of `System::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the pointer came from `System`, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Large blocks are moved by remapping pages, so only the difference counts.
        count(size.saturating_sub(layout.size()), layout.size().saturating_sub(size));
        // SAFETY: the pointer came from `System`, with this layout; the size is the caller's.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// The result of `work`, and the most memory that it held.
pub fn measured<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.get();
    PEAK.set(before);
    let result = work();
    (result, PEAK.get() - before)
}
