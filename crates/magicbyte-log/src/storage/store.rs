//! Stores: sources of logs besides the local file system. A store is mounted under the beginning of a URL,
//! such as `s3://bucket`, and then serves every path that begins with it.

use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

/// An object store, or another remote file system. Paths are whole URLs.
///
/// An error of the kind [`NotFound`](io::ErrorKind::NotFound) means that a file is gone. The kind
/// [`StaleNetworkFileHandle`](io::ErrorKind::StaleNetworkFileHandle) means that a file has another version.
/// Both are damage of a log. Every other error ends the run, so a store retries transient failures.
pub trait Store: Debug + Send + Sync {
    /// The files and directories directly below a directory.
    ///
    /// # Errors
    /// If the directory cannot be listed.
    fn list(&self, directory: &str) -> io::Result<Vec<StoredFile>>;

    /// The file or directory at a path.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is none.
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

static MOUNTED: RwLock<Vec<(String, Arc<dyn Store>)>> = RwLock::new(Vec::new());

/// Serves all paths that begin with `prefix` (a URL without a slash at its end) from `store`, in this
/// process. Returns the store that was mounted there before, which then serves only the open files.
pub fn mount(prefix: &str, store: Arc<dyn Store>) -> Option<Arc<dyn Store>> {
    let mut mounted = MOUNTED.write().unwrap_or_else(PoisonError::into_inner);
    match mounted.iter_mut().find(|(other, _)| other == prefix) {
        Some((_, other)) => Some(std::mem::replace(other, store)),
        None => {
            mounted.push((prefix.to_owned(), store));
            None
        }
    }
}

/// True if a path is a URL rather than a path of the local file system.
pub(crate) fn is_url(path: &Path) -> bool {
    path.to_str().and_then(|path| path.split_once("://")).is_some_and(|(scheme, _)| {
        !scheme.is_empty()
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
    })
}

/// The store that serves a URL; None for a local path.
///
/// # Errors
/// If no store is mounted for it.
pub(super) fn store_of(path: &Path) -> io::Result<Option<(Arc<dyn Store>, &str)>> {
    let (true, Some(text)) = (is_url(path), path.to_str()) else { return Ok(None) };
    let mounted = MOUNTED.read().unwrap_or_else(PoisonError::into_inner);
    let serves =
        |prefix: &str| text.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    match mounted.iter().find(|(prefix, _)| serves(prefix)) {
        Some((_, store)) => Ok(Some((Arc::clone(store), text))),
        None => {
            let why = "it is a URL, and this command or function reads only local paths, or no store is mounted for it";
            Err(io::Error::new(io::ErrorKind::Unsupported, why))
        }
    }
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
