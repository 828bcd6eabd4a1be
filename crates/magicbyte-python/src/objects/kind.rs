//! The types of our objects, and free lists of dead objects for reuse. For the invariants, see
//! `record_object.rs`.
#![allow(unsafe_code, reason = "types in CPython's C API")]

use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::ffi::c_int;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;
/// A type of ours and its free list. Dead objects keep their type and the reference to it.
pub(crate) struct Kind {
    pub(crate) type_object: AtomicPtr<ffi::PyTypeObject>,
    pub(crate) free: UnsafeCell<FreeList>,
    pub(crate) size: usize,
}

pub(crate) struct FreeList {
    pub(crate) objects: [*mut ffi::PyObject; FREE_OBJECTS],
    pub(crate) length: usize,
}

/// Enough for a loop and the records it keeps briefly.
pub(crate) const FREE_OBJECTS: usize = 128;

// SAFETY: `free` is touched only by `allocate` and `release`, with the GIL held (Attached).
unsafe impl Sync for Kind {}

impl Kind {
    pub(crate) const fn new(size: usize) -> Self {
        let free = FreeList { objects: [ptr::null_mut(); FREE_OBJECTS], length: 0 };
        Self { type_object: AtomicPtr::new(ptr::null_mut()), free: UnsafeCell::new(free), size }
    }

    pub(crate) fn make(
        &self,
        py: Python<'_>,
        name: &'static CStr,
        slots: &mut [ffi::PyType_Slot],
        callable: bool,
    ) -> PyResult<Py<PyType>> {
        let mut flags = ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_IMMUTABLETYPE;
        if !callable {
            flags |= ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION;
        }
        let mut spec = ffi::PyType_Spec {
            name: name.as_ptr(),
            basicsize: self.size as c_int,
            itemsize: 0,
            flags: flags as u32,
            slots: slots.as_mut_ptr(),
        };
        // SAFETY: the spec is valid for the call, its slots end in a zero slot and hold functions of
        // the signatures that CPython's documentation gives for their numbers; getset tables are static.
        let made = unsafe { ffi::PyType_FromSpec(&raw mut spec) };
        // SAFETY: a new reference, or null with an exception set.
        let made = unsafe { Bound::from_owned_ptr_or_err(py, made) }?.cast_into::<PyType>()?;
        self.type_object.store(made.as_type_ptr(), Ordering::Release);
        // The type lives as long as the process.
        std::mem::forget(made.clone());
        Ok(made.unbind())
    }
}

/// A new object whose fields after the head are not yet written; null with an exception set.
///
/// # Safety
/// Attached; the caller writes the fields of the kind's struct before handing the object out.
pub(crate) unsafe fn allocate(kind: &Kind) -> *mut ffi::PyObject {
    // SAFETY: Attached, so no other thread is here; an object in the free list is of this kind, unowned, and
    // has the count 0 (Count). PyObject_Init sets the type of new memory, taking a reference to it, and a
    // count of 1.
    unsafe {
        let free = &mut *kind.free.get();
        if free.length > 0 {
            free.length -= 1;
            let object = free.objects[free.length];
            retain(object);
            return object;
        }
        let memory = ffi::PyObject_Malloc(kind.size).cast::<ffi::PyObject>();
        if memory.is_null() {
            return ffi::PyErr_NoMemory();
        }
        ffi::PyObject_Init(memory, kind.type_object.load(Ordering::Acquire))
    }
}

/// Adds a reference.
///
/// # Safety
/// Attached; an object of ours (Count).
#[inline(always)]
pub(crate) unsafe fn retain(object: *mut ffi::PyObject) {
    // SAFETY: as above.
    unsafe { (*object).ob_refcnt += 1 };
}

/// Drops a reference; the last one through CPython.
///
/// # Safety
/// Attached; an object of ours (Count), to which the caller owns a reference.
#[inline(always)]
pub(crate) unsafe fn give_up(object: *mut ffi::PyObject) {
    // SAFETY: as above.
    unsafe {
        if (*object).ob_refcnt > 1 {
            (*object).ob_refcnt -= 1;
        } else {
            ffi::Py_DECREF(object);
        }
    }
}

/// Puts a dead object into the free list, or frees it.
///
/// # Safety
/// Attached; the object is of this kind, its count is 0, and its holder has been released.
pub(crate) unsafe fn release(kind: &Kind, object: *mut ffi::PyObject) {
    // SAFETY: as above; an instance of a heap type owns a reference to its type.
    unsafe {
        let free = &mut *kind.free.get();
        if free.length < FREE_OBJECTS {
            free.objects[free.length] = object;
            free.length += 1;
        } else {
            let type_object = ffi::Py_TYPE(object);
            ffi::PyObject_Free(object.cast());
            ffi::Py_DECREF(type_object.cast());
        }
    }
}

pub(crate) fn slot(slot: c_int, pfunc: *mut c_void) -> ffi::PyType_Slot {
    ffi::PyType_Slot { slot, pfunc }
}

/// Releases the holder, then the memory.
macro_rules! dealloc {
    ($name:ident, $object:ty, $kind:ident) => {
        /// # Safety
        /// To be called as CPython calls `tp_dealloc`: Attached, once, with an object of this kind whose
        /// count is 0.
        pub(crate) unsafe extern "C" fn $name(slf: *mut ffi::PyObject) {
            // SAFETY: Attached, Layout; CPython calls this once, when the count is 0.
            unsafe {
                give_up((*slf.cast::<$object>()).holder);
                release(&$kind, slf);
            }
        }
    };
}
pub(super) use dealloc;
