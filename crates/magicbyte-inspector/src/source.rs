//! A file that the page was given, as a store for magicbyte-log.

use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use magicbyte_log::{Fetch, Location, RemoteStore, StoredFile, Stores};

/// The one file of the store.
const URL: &str = "page://file";

/// The bytes of a file.
pub trait Source: Debug + Send + Sync {
    /// Fills the buffer with the bytes at a position; returns how many there were.
    ///
    /// # Errors
    /// If the browser cannot read the file (any more).
    fn read(&self, buffer: &mut [u8], position: u64) -> io::Result<usize>;
}

/// Where magicbyte-log finds the file.
pub(crate) fn location(source: Arc<dyn Source>) -> Location {
    let mut stores = Stores::default();
    stores.mount(URL, Arc::new(Store(Arc::new(Kept { source, last: Mutex::default() }))));
    Location::parse(URL, &stores)
}

#[derive(Debug)]
struct Store(Arc<Kept>);

impl RemoteStore for Store {
    fn list(&self, _: &str) -> io::Result<Vec<StoredFile>> {
        Err(only_ranges())
    }

    fn examine(&self, _: &str) -> io::Result<StoredFile> {
        Err(only_ranges())
    }

    fn read(&self, _: &str, _: u64) -> io::Result<Vec<u8>> {
        Err(only_ranges())
    }

    fn fetch(&self, _: &str, _: Option<&str>, range: Range<u64>) -> io::Result<Box<dyn Fetch>> {
        Ok(Box::new(Slice { source: Arc::clone(&self.0), range }))
    }
}

fn only_ranges() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "the page has one file, which is read in ranges")
}

/// A file with the last range that was read of it, which the next sheet begins in.
#[derive(Debug)]
struct Kept {
    source: Arc<dyn Source>,
    last: Mutex<(u64, Vec<u8>)>,
}

impl Kept {
    /// Fills the buffer as far as the file goes; returns the number of bytes.
    fn read(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (start, bytes) = &mut *last;
        let kept = position.checked_sub(*start).and_then(|at| bytes.get(usize::try_from(at).ok()?..));
        let kept = kept.unwrap_or_default();
        let mut filled = kept.len().min(buffer.len());
        buffer[..filled].copy_from_slice(&kept[..filled]);
        if filled < buffer.len() {
            filled += self.source.read(&mut buffer[filled..], position + filled as u64)?;
            (*start, *bytes) = (position, buffer[..filled].to_vec());
        }
        Ok(filled)
    }
}

/// A range that is read when it is waited for, so that ranges ahead of use cost nothing if they are given up.
#[derive(Debug)]
struct Slice {
    source: Arc<Kept>,
    range: Range<u64>,
}

impl Fetch for Slice {
    fn wait(self: Box<Self>, buffer: &mut Vec<u8>) -> io::Result<()> {
        buffer.clear();
        buffer.resize((self.range.end - self.range.start) as usize, 0);
        let read = self.source.read(buffer, self.range.start)?;
        buffer.truncate(read);
        Ok(())
    }
}
