//! The functions that the page's worker calls. Each returns JSON, or an object with an `error`.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;

use serde::Serialize;

use crate::{Checkpoint, Segment, Source};

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Writes bytes of the file to memory; returns how many, or -1 if it cannot be read.
    fn read(position: f64, buffer: *mut u8, length: usize) -> i32;
    /// Takes the text of a panic, after which the module is of no use.
    fn panicked(text: *const u8, length: usize);
}

/// The file that the page was given.
#[derive(Debug)]
struct File;

impl Source for File {
    fn read(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        // SAFETY: the page writes at most the buffer's length to the buffer.
        let filled = unsafe { read(position as f64, buffer.as_mut_ptr(), buffer.len()) };
        let filled = usize::try_from(filled).map_err(|_| io::Error::other("the file cannot be read"))?;
        Ok(filled.min(buffer.len()))
    }
}

thread_local! {
    static SEGMENT: RefCell<Option<Segment>> = const { RefCell::new(None) };
    static RESULT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Opens a file of `size` bytes; returns its first checkpoint.
#[unsafe(no_mangle)]
pub extern "C" fn open(size: f64) -> *const u8 {
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        // SAFETY: the page reads the text before it returns.
        unsafe { panicked(text.as_ptr(), text.len()) };
    }));
    SEGMENT.set(Some(Segment::new(Arc::new(File), size as u64)));
    answer(|segment| segment.start())
}

/// The pieces from a checkpoint on.
#[unsafe(no_mangle)]
pub extern "C" fn sheet(position: f64, expected: i64) -> *const u8 {
    answer(|segment| segment.sheet(Checkpoint { position: position as u64, expected }))
}

/// At most `count` fields of a piece from the one with the index `first` on.
#[unsafe(no_mangle)]
pub extern "C" fn fields(position: f64, size: f64, first: usize, count: usize) -> *const u8 {
    answer(|segment| segment.fields(position as u64, size as u64, first, count))
}

/// The size in bytes of the last answer.
#[unsafe(no_mangle)]
pub extern "C" fn answer_size() -> usize {
    RESULT.with_borrow(String::len)
}

#[derive(Serialize)]
#[serde(untagged)]
enum Answer<T> {
    Value(T),
    Error { error: String },
}

fn answer<T: Serialize>(work: impl FnOnce(&mut Segment) -> io::Result<T>) -> *const u8 {
    let answer = SEGMENT.with_borrow_mut(|segment| match segment.as_mut().map(work) {
        Some(Ok(value)) => Answer::Value(value),
        Some(Err(error)) => Answer::Error { error: error.to_string() },
        None => Answer::Error { error: "no file is open".to_owned() },
    });
    let text = serde_json::to_string(&answer).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"));
    RESULT.set(text);
    RESULT.with_borrow(|text| text.as_ptr())
}
