//! A path, resolved once.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use std::{fmt, io};

use ::bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::storage::archive::Archive;
use crate::storage::file_info::Found;
use crate::storage::in_memory::InMemory;
use crate::storage::local::{self, Local};
use crate::storage::mounted::Stores;
use crate::storage::open_file::OpenFile;
use crate::storage::pin;
use crate::storage::remote::fatal;
use crate::storage::store::{Entry, Store};
#[cfg(feature = "tiered")]
use crate::storage::tiered::Tiered;
use crate::storage::unpacked::Unpacked;

/// A file or directory, and the store that has it: the local file system, a remote store, or an archive in
/// either. Compressed segments and segments in tiered storage are read as their content.
///
/// A path is resolved once, where it enters: by [`Location::parse`] if it may be a URL, by `Location::from` if
/// it is local. Listings, segments and chunks carry their location. In JSON, a location is its path; a URL
/// that comes from JSON is resolved by [`Located`](crate::steps::Located). Locations with one path are equal.
#[derive(Clone, Debug)]
pub struct Location {
    path: PathBuf,
    origin: Origin,
    /// None for a URL at which no store is mounted.
    store: Option<Arc<dyn Store>>,
}

/// The kind of place where a store's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Local,
    Archive,
    Remote,
}

impl Location {
    /// The location of a local path, or of a URL at which a store is mounted. A URL without a store has a
    /// location of which nothing can be read.
    #[must_use]
    pub fn parse(path: impl AsRef<Path>, stores: &Stores) -> Self {
        Self::resolve(path.as_ref().to_owned(), stores)
    }

    fn resolve(path: PathBuf, stores: &Stores) -> Self {
        let (origin, files) = files_at(&path, stores);
        let stacked = |(files, number)| -> Arc<dyn Store> {
            let files: Arc<dyn Store> = Arc::new(Unpacked { files, number });
            #[cfg(feature = "tiered")]
            let files = Arc::new(Tiered { files, number, keys: stores.keys.clone() });
            files
        };
        Self { path, origin, store: files.map(stacked) }
    }

    /// The location of bytes in memory, which are those of a file from a position on. The path only names them.
    pub(crate) fn in_memory(path: PathBuf, start: u64, bytes: Bytes) -> Self {
        Self { path, origin: Origin::Remote, store: Some(Arc::new(InMemory { start, bytes })) }
    }

    /// Resolves a URL that came without its store, and a path that came without the keys of encrypted segments.
    pub(crate) fn locate(&mut self, stores: &Stores) {
        #[cfg(feature = "tiered")]
        let lacks_keys = !stores.keys.is_empty();
        #[cfg(not(feature = "tiered"))]
        let lacks_keys = false;
        if self.origin == Origin::Remote || lacks_keys {
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
        Self { path, origin: self.origin, store: self.store.clone() }
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

    /// The absolute path. It ends with a name, which may be that of a symbolic link.
    pub(crate) fn absolute(&self) -> PathBuf {
        if self.path.file_name().is_none() {
            return self.resolved();
        }
        let local = (!self.is_remote()).then(|| std::path::absolute(&self.path).ok()).flatten();
        local.unwrap_or_else(|| self.path.clone())
    }

    /// The absolute path without symbolic links, or the path itself if it cannot be resolved.
    pub(crate) fn resolved(&self) -> PathBuf {
        let local = (!self.is_remote()).then(|| std::fs::canonicalize(&self.path).ok()).flatten();
        local.unwrap_or_else(|| self.path.clone())
    }

    /// True for the local file system, where files may be written, renamed or deleted while they are read.
    #[doc(hidden)]
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.origin == Origin::Local
    }

    /// True if a look at a file is a request.
    pub(crate) fn is_remote(&self) -> bool {
        self.origin == Origin::Remote
    }

    /// The last modification of a live file or directory; None if it is gone, or the file system does not
    /// record it.
    pub(crate) fn modified(&self) -> Option<SystemTime> {
        self.is_live().then(|| local::modified(&self.path)).flatten()
    }

    /// The size of a live file now, if it has been written to since it was listed with this version.
    pub(crate) fn size_if_written(&self, version: Option<&str>) -> Option<u64> {
        let version = version.filter(|version| pin::is_pin(version))?;
        match local::examine(&self.path) {
            Ok(Found::File(info)) if pin::pinned_version(&info).as_deref() != Some(version) => {
                Some(info.size)
            }
            _ => None,
        }
    }

    fn store(&self) -> io::Result<&dyn Store> {
        self.store.as_deref().ok_or_else(not_mounted)
    }

    /// True if it is a directory or an archive, which is read as a directory. Symbolic links are followed.
    ///
    /// # Errors
    /// If there is nothing at the path, or it cannot be examined.
    #[doc(hidden)]
    pub fn is_directory(&self) -> io::Result<bool> {
        self.store()?.is_directory(&self.path)
    }

    /// The files of a partition's directory and all its other entries, in no order. Compressed segments have
    /// their size in the directory, not the size of their content.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub(crate) fn entries(&self) -> io::Result<Vec<(Self, io::Result<Found>)>> {
        let entries = self.store()?.list(&self.path)?;
        Ok(entries.into_iter().map(|(path, found)| (self.at(path), found)).collect())
    }

    /// Examines a directory entry; symbolic links are followed. A compressed segment is decompressed to find
    /// the size of its content.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if the entry does not exist (any more); errors that end the run.
    #[doc(hidden)]
    pub fn examine(&self) -> io::Result<Found> {
        self.store()?.examine(&self.path)
    }

    /// Opens a file that has this size and version according to its listing.
    ///
    /// # Errors
    /// If it cannot be opened; [`io::ErrorKind::InvalidInput`] for anything but a regular file,
    /// [`io::ErrorKind::StaleNetworkFileHandle`] if it has another version.
    #[doc(hidden)]
    pub fn open(&self, size: u64, version: Option<&str>) -> io::Result<OpenFile> {
        self.store()?.open(&self.path, size, version)
    }

    /// A small file, to be read from its start, and its size.
    pub(super) fn open_small(&self) -> io::Result<(Box<dyn io::Read>, u64)> {
        self.store()?.open_small(&self.path)
    }
}

/// A store and its number, see [`Mounted`](super::mounted::Mounted).
type Files = (Arc<dyn Store>, u64);

/// The store that has the files at a path as they are; None for a URL without a store.
fn files_at(path: &Path, stores: &Stores) -> (Origin, Option<Files>) {
    let (origin, files, number): (_, Arc<dyn Store>, _) = match path.to_str().filter(|path| is_url(path)) {
        None => (Origin::Local, Arc::new(Local), 0),
        Some(url) => match stores.of(url) {
            Some(mounted) => (Origin::Remote, Arc::clone(&mounted) as _, mounted.number),
            None => return (Origin::Remote, None),
        },
    };
    match Archive::at(path, &files, number) {
        Some(archive) if origin == Origin::Local => (Origin::Archive, Some((Arc::new(archive), number))),
        Some(archive) => (origin, Some((Arc::new(archive), number))),
        None => (origin, Some((files, number))),
    }
}

fn is_url(path: &str) -> bool {
    path.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty()
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
    })
}

fn not_mounted() -> io::Error {
    let why =
        "it is a URL, and this command or function reads only local paths, or no store is mounted for it";
    fatal(io::Error::new(io::ErrorKind::Unsupported, why))
}

/// The entries of a directory, in no order; in tiered storage, the objects that segments consist of.
///
/// # Errors
/// If the directory cannot be read.
#[doc(hidden)]
pub fn entries_as_they_are(directory: &Path, stores: &Stores) -> io::Result<Vec<Entry>> {
    let (files, _) = files_at(directory, stores).1.ok_or_else(not_mounted)?;
    files.list(directory)
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

impl PartialEq for Location {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for Location {}

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
