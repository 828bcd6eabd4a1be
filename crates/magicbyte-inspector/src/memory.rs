//! `malloc` and `free` for libdeflate, which is C: without an operating system, nothing else has them. (zstd and lz4
//! bring theirs.)

use std::alloc::{Layout, alloc, dealloc};

/// The size of an allocation is kept in front of it, in as many bytes as the alignment of any C type.
const FRONT: usize = 16;

fn layout(size: usize) -> Option<Layout> {
    Layout::from_size_align(size.checked_add(FRONT)?, FRONT).ok()
}

/// C's `malloc`.
#[unsafe(no_mangle)]
extern "C" fn malloc(size: usize) -> *mut u8 {
    let Some(layout) = layout(size) else { return std::ptr::null_mut() };
    // SAFETY: the layout has at least `FRONT` bytes, and is aligned for `usize`. The sum stays in the allocation.
    unsafe {
        let start = alloc(layout);
        if start.is_null() {
            return start;
        }
        start.cast::<usize>().write(size);
        start.add(FRONT)
    }
}

/// C's `free`.
#[unsafe(no_mangle)]
extern "C" fn free(pointer: *mut u8) {
    if pointer.is_null() {
        return;
    }
    // SAFETY: C frees what `malloc` returned, in front of which the size of its layout is.
    unsafe {
        let start = pointer.sub(FRONT);
        if let Some(layout) = layout(start.cast::<usize>().read()) {
            dealloc(start, layout);
        }
    }
}
