//! Remote stores, which users implement: object stores and other remote file systems.

use std::fmt::Debug;
use std::io;
use std::ops::Range;

/// An object store, or another remote file system, to be mounted in [`Stores`](crate::Stores). Paths are whole
/// URLs.
///
/// An error of the kind [`NotFound`](io::ErrorKind::NotFound) means that a file is gone. The kind
/// [`StaleNetworkFileHandle`](io::ErrorKind::StaleNetworkFileHandle) means that a file has another version.
/// Both are damage of a log. Every other error ends the run, so a store retries transient failures.
pub trait RemoteStore: Debug + Send + Sync {
    /// The files and directories directly below a directory.
    ///
    /// # Errors
    /// If the directory cannot be listed.
    fn list(&self, directory: &str) -> io::Result<Vec<StoredFile>>;

    /// The file or directory at a path.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is nothing at the path.
    fn examine(&self, path: &str) -> io::Result<StoredFile>;

    /// The whole content of a small file.
    ///
    /// # Errors
    /// [`io::ErrorKind::FileTooLarge`] if it has more than `limit` bytes.
    fn read(&self, path: &str, limit: u64) -> io::Result<Vec<u8>>;

    /// Starts to read a byte range of a file, if it still has the version. Returns without waiting for the bytes.
    ///
    /// # Errors
    /// If the request cannot be made.
    fn fetch(&self, path: &str, version: Option<&str>, range: Range<u64>) -> io::Result<Box<dyn Fetch>>;
}

/// A range that is being read. Dropping it gives it up.
pub trait Fetch: Debug + Send {
    /// Waits for the requested bytes. They replace the content of the buffer.
    ///
    /// # Errors
    /// If they cannot be read, after the store's retries.
    fn wait(self: Box<Self>, buffer: &mut Vec<u8>) -> io::Result<()>;
}

/// A file or directory in a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredFile {
    /// The name, without the directory.
    pub name: String,
    /// True for a directory; the other fields are then meaningless.
    pub is_directory: bool,
    /// Size in bytes.
    pub size: u64,
    /// Last modification, in milliseconds since the Unix epoch; 0 if unknown.
    pub modified_ms: i64,
    /// A value that changes whenever the content does, such as an ETag. None if the store has no such value.
    pub version: Option<String>,
}

/// A failure of a store that ends the run.
#[derive(Debug)]
pub(super) struct StoreFailed(io::Error);

impl std::fmt::Display for StoreFailed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&self.0, f)
    }
}

impl std::error::Error for StoreFailed {}

/// Marks an error as one that ends the run, unless it is damage of the log.
pub(super) fn fatal(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle => error,
        kind => io::Error::new(kind, StoreFailed(error)),
    }
}

/// The store's own error, if the error comes from a store.
#[doc(hidden)]
#[must_use]
pub fn cause(error: &io::Error) -> Option<&(dyn std::error::Error + 'static)> {
    let inner: &(dyn std::error::Error + 'static) = error.get_ref()?;
    match inner.downcast_ref::<StoreFailed>() {
        Some(StoreFailed(error)) => cause(error),
        None => Some(inner),
    }
}

pub(super) fn is_fatal(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<StoreFailed>())
}
