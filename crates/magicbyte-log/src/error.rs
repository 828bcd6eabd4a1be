//! Errors of reading and writing a directory.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use magicbyte::Error;

/// An error of a directory: of the operating system, of a file's content, or of the caller.
#[derive(Debug)]
#[non_exhaustive]
pub enum LogError {
    /// A file or directory could not be read or written.
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file's content is malformed.
    Format {
        /// The file.
        path: PathBuf,
        /// The error in the file's content.
        error: Error,
    },
    /// The caller's arguments are invalid.
    Usage(String),
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Format { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Usage(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for LogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Format { error, .. } => Some(error),
            Self::Usage(_) => None,
        }
    }
}

impl LogError {
    #[doc(hidden)]
    #[must_use]
    pub fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }
}

/// The result of an operation on a directory.
pub type LogResult<T> = std::result::Result<T, LogError>;
