//! What can go wrong with a directory.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What can go wrong with a directory: the operating system, or the bytes.
#[derive(Debug)]
#[non_exhaustive]
pub enum LogError {
    /// A file or directory could not be read.
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file's content is not what its name promises.
    Format {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        error: crate::error::Error,
    },
    /// The caller asked for something that cannot be.
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
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }
}

/// The result of reading a directory.
pub type LogResult<T> = std::result::Result<T, LogError>;
