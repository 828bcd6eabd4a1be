//! A global allocator that counts, for tests that bound memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts what the thread at hand allocates, and the most there ever was.
pub struct Counting;

thread_local! {
    static NOW: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

fn count(grown: usize, shrunk: usize) {
    // Wrapping, since one thread may free what another allocated.
    let now = NOW.get().wrapping_add(grown).wrapping_sub(shrunk);
    NOW.set(now);
    PEAK.set(PEAK.get().max(now));
}

// SAFETY: every call goes to the system's allocator as it came; counting changes no pointer.
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
        // Large blocks are moved by the page table: only the difference is new.
        count(size.saturating_sub(layout.size()), layout.size().saturating_sub(size));
        // SAFETY: the pointer came from `System`, with this layout; the size is the caller's.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// What `work` gives, and how much memory it had at most.
pub fn measured<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.get();
    PEAK.set(before);
    let result = work();
    (result, PEAK.get() - before)
}
