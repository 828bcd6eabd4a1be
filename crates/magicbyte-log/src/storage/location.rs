//! A path, resolved once.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::storage::archive::Archive;
use crate::storage::file_info::{FileInfo, Found};
use crate::storage::local::{self, Local};
use crate::storage::mounted::Stores;
use crate::storage::open_file::OpenFile;
use crate::storage::pin;
use crate::storage::store::{Entry, Store};
#[cfg(feature = "tiered")]
use crate::storage::tiered::Tiered;
use crate::storage::unpacked::Unpacked;

/// A file or directory, and the store that has it: the local file system, a remote store, or an archive in either.
/// Compressed segments and segments in tiered storage are read as their content.
///
/// A path is resolved once, where it enters: [`Location::parse`] for URLs, `Location::from` for local paths. Listings,
/// segments and chunks carry their location. As JSON, a location is its path; a URL that comes from JSON is resolved by
/// [`steps::Located`](crate::steps::Located). Two locations are equal if their paths are.
#[derive(Clone)]
pub struct Location {
    path: PathBuf,
    origin: Origin,
    store: Arc<dyn Store>,
}

/// The kind of place where a store's bytes are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Local,
    Archive,
    Remote,
}

impl Location {
    /// The location of a path, or of a URL at which a store is mounted. For a URL without a store, whatever is
    /// asked of the location is an error.
    #[must_use]
    pub fn parse(path: impl AsRef<Path>, stores: &Stores) -> Self {
        Self::resolve(path.as_ref().to_owned(), stores)
    }

    fn resolve(path: PathBuf, stores: &Stores) -> Self {
        let (origin, files) = files_at(&path, stores);
        let store: Arc<dyn Store> = Arc::new(Unpacked::new(files));
        #[cfg(feature = "tiered")]
        let store: Arc<dyn Store> = Arc::new(Tiered::new(store));
        Self { path, origin, store }
    }

    /// Resolves a URL that came without its store.
    pub(crate) fn locate(&mut self, stores: &Stores) {
        if self.origin == Origin::Remote {
            *self = Self::resolve(std::mem::take(&mut self.path), stores);
        }
    }

    /// The path or URL.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The location of a path in the same store.
    fn at(&self, path: PathBuf) -> Self {
        Self { path, origin: self.origin, store: Arc::clone(&self.store) }
    }

    /// The location of a file in this directory.
    pub(crate) fn join(&self, name: &str) -> Self {
        self.at(self.path.join(name))
    }

    /// The location of another file in the same directory.
    pub(crate) fn with_file_name(&self, name: &str) -> Self {
        self.at(self.path.with_file_name(name))
    }

    /// The location of the directory that a file or directory is in.
    pub(crate) fn parent(&self) -> Option<Self> {
        self.path.parent().map(|parent| self.at(parent.to_owned()))
    }

    /// The absolute path without symbolic links, or the path itself if it cannot be resolved.
    pub(crate) fn absolute(&self) -> PathBuf {
        match self.origin {
            Origin::Remote => self.path.clone(),
            Origin::Local | Origin::Archive => {
                std::fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone())
            }
        }
    }

    /// True if files may be written, renamed or deleted while they are read: those of the local file system.
    #[doc(hidden)]
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.origin == Origin::Local
    }

    /// True if a look at a file is a request.
    pub(crate) fn is_remote(&self) -> bool {
        self.origin == Origin::Remote
    }

    /// The time at which a live file or directory was last modified; None if it is gone, or the file system does not
    /// record it.
    pub(crate) fn modified(&self) -> Option<SystemTime> {
        self.is_live().then(|| local::modified(&self.path)).flatten()
    }

    /// True if it is a directory or an archive, which is read as a directory. Symbolic links are followed.
    ///
    /// # Errors
    /// If there is nothing at the path, or it cannot be examined.
    #[doc(hidden)]
    pub fn is_directory(&self) -> io::Result<bool> {
        self.store.is_directory(&self.path)
    }

    /// The files of a partition's directory and all its other entries, in no order. Compressed segments have
    /// their size in the directory, not the size of their content.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub(crate) fn entries(&self) -> io::Result<Vec<(Self, io::Result<Found>)>> {
        let entries = self.store.list(&self.path)?;
        Ok(entries.into_iter().map(|(path, found)| (self.at(path), found)).collect())
    }

    /// Examines a directory entry; symbolic links are followed. A compressed segment is decompressed to find the
    /// size of its content.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if the entry does not exist (any more); errors that end the run.
    #[doc(hidden)]
    pub fn examine(&self) -> io::Result<Found> {
        self.store.examine(&self.path)
    }

    /// Opens a file that has this size and version according to its listing.
    ///
    /// # Errors
    /// If it cannot be opened; [`io::ErrorKind::InvalidInput`] for anything but a regular file,
    /// [`io::ErrorKind::StaleNetworkFileHandle`] if it has another version.
    #[doc(hidden)]
    pub fn open(&self, size: u64, version: Option<&str>) -> io::Result<OpenFile> {
        self.store.open(&self.path, size, version)
    }

    /// A small file, to be read from its start, and its size.
    pub(super) fn open_small(&self) -> io::Result<(Box<dyn io::Read>, u64)> {
        self.store.open_small(&self.path)
    }

    /// The size of a live file now, if it has been written to since it was listed with this version.
    pub(crate) fn size_if_written(&self, version: Option<&str>) -> Option<u64> {
        let version = version.filter(|version| pin::is_pin(version))?;
        let is_other = |info: &FileInfo| pin::pinned_version(info).as_deref() != Some(version);
        match local::examine(&self.path) {
            Ok(Found::File(info)) if is_other(&info) => Some(info.size),
            _ => None,
        }
    }
}

/// The store that has the files at a path as they are.
fn files_at(path: &Path, stores: &Stores) -> (Origin, Arc<dyn Store>) {
    let (origin, files): (_, Arc<dyn Store>) = match stores.of(path) {
        Some(remote) => (Origin::Remote, remote),
        None => (Origin::Local, Arc::new(Local)),
    };
    match Archive::at(path, &files) {
        Some(archive) if origin == Origin::Local => (Origin::Archive, Arc::new(archive)),
        Some(archive) => (origin, Arc::new(archive)),
        None => (origin, files),
    }
}

/// The entries of a directory, in no order: files of tiered storage are the objects that they consist of.
///
/// # Errors
/// If the directory cannot be read.
#[doc(hidden)]
pub fn entries_as_they_are(directory: &Path, stores: &Stores) -> io::Result<Vec<Entry>> {
    files_at(directory, stores).1.list(directory)
}

/// The location of a path of the local file system.
impl<P: AsRef<Path>> From<P> for Location {
    fn from(path: P) -> Self {
        Self::parse(path, &Stores::default())
    }
}

impl Default for Location {
    fn default() -> Self {
        Self::from("")
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)
    }
}

impl PartialEq for Location {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for Location {}

impl Hash for Location {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.path.hash(state);
    }
}

impl Serialize for Location {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Location {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}
