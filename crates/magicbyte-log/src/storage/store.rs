//! The interface of all stores. Some have files of their own ([`Local`](super::local::Local),
//! [`Mounted`](super::mounted::Mounted)); others change what a store inside them shows
//! ([`Archive`](super::archive::Archive), [`Unpacked`](super::unpacked::Unpacked), `Tiered`).

use std::fmt::Debug;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::storage::file_info::{Found, Other};
use crate::storage::open_file::OpenFile;

/// An entry of a directory: its path, and the file or other thing that is there.
pub(crate) type Entry = (PathBuf, io::Result<Found>);

/// A source of files. Paths are whole: they begin as the user's path did.
pub(crate) trait Store: Debug + Send + Sync {
    /// The entries of a directory, in no order. Compressed segments have their size in the directory, not the
    /// size of their content.
    fn list(&self, directory: &Path) -> io::Result<Vec<Entry>>;

    /// A directory entry; symbolic links are followed. [`io::ErrorKind::NotFound`] if there is nothing at the path.
    fn examine(&self, path: &Path) -> io::Result<Found>;

    /// True for a directory, and for an archive, which is read as a directory.
    fn is_directory(&self, path: &Path) -> io::Result<bool> {
        Ok(matches!(self.examine(path)?, Found::Other(Other::Directory, _)))
    }

    /// Opens a file that has this size and version according to its listing.
    fn open(&self, path: &Path, size: u64, version: Option<&str>) -> io::Result<OpenFile>;

    /// A small file, to be read from its start, and its size.
    fn open_small(&self, path: &Path) -> io::Result<(Box<dyn Read>, u64)>;
}
