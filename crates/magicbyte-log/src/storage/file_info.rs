//! The metadata of a file before it is opened, and the errors of reading a file.

use std::io;

use magicbyte::ErrorKind;

use crate::storage::remote::{StoredFile, is_fatal};

/// The maximum size of a sidecar, in bytes. Kafka limits an index to 10 MiB by default.
pub(crate) const MAX_SIDECAR_BYTES: u64 = 64 << 20;

/// The metadata of a file before it is opened.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInfo {
    /// Size in bytes; for a compressed segment, the size of its content.
    pub size: u64,
    /// Last modification, in milliseconds since the Unix epoch; 0 if unknown.
    pub(crate) modified_ms: i64,
    /// A value that changes with the content. None for local files, which may grow while they are read.
    pub version: Option<String>,
    /// The number of a local file in its file system, if it has one. The number stays while the file grows.
    pub(crate) inode: Option<u64>,
}

impl FileInfo {
    /// The version, or the closest substitute for a version.
    pub(super) fn identity(&self) -> String {
        self.version.clone().unwrap_or_else(|| format!("{}-{}", self.modified_ms, self.size))
    }
}

/// An entry of a directory.
#[doc(hidden)]
pub enum Found {
    File(FileInfo),
    /// An entry that is not a regular file, and the reason why it is not read.
    Other(Other, String),
}

impl Found {
    /// The metadata of a regular file.
    pub(super) fn into_file(self) -> io::Result<FileInfo> {
        match self {
            Self::File(info) => Ok(info),
            Self::Other(_, why) => Err(io::Error::new(io::ErrorKind::InvalidInput, why)),
        }
    }
}

/// An entry that is not a regular file.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    Directory,
    /// A FIFO, a socket or a device.
    Special,
    /// A segment that was not completely copied to tiered storage.
    Unfinished,
    Unknown,
}

impl From<StoredFile> for Found {
    fn from(file: StoredFile) -> Self {
        if file.is_directory {
            return Self::Other(Other::Directory, "it is a directory, not a regular file".into());
        }
        Self::File(FileInfo {
            size: file.size,
            modified_ms: file.modified_ms,
            version: file.version,
            inode: None,
        })
    }
}

/// The error of a file that no longer has the version that was listed.
#[doc(hidden)]
#[must_use]
pub fn changed() -> io::Error {
    let why = "it has changed since it was listed";
    io::Error::new(io::ErrorKind::StaleNetworkFileHandle, why)
}

/// The error of a file beside a segment that is too large.
pub(super) fn too_large(size: u64) -> io::Error {
    io::Error::new(
        io::ErrorKind::FileTooLarge,
        format!("{size} bytes exceed the limit of {MAX_SIDECAR_BYTES}"),
    )
}

/// The error kind of a file that cannot be read.
pub(crate) fn unreadable(why: impl std::fmt::Display) -> ErrorKind {
    ErrorKind::FileUnreadable(format!("cannot be read: {why}"))
}

/// True if an error concerns the process or the store, not the file: no file can be opened now, memory or
/// room for temporary files is exhausted, or a store fails.
pub(crate) fn ends_the_run(error: &io::Error) -> bool {
    #[cfg(unix)]
    if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) {
        return true;
    }
    matches!(error.kind(), io::ErrorKind::OutOfMemory | io::ErrorKind::StorageFull) || is_fatal(error)
}
