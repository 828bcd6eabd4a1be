//! Files that exist completely or not at all: written under another name, synced, renamed.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::error::{LogError, LogResult};

const UNFINISHED: &str = ".magicbyte-unfinished";

/// Writes a new file and syncs it.
pub(crate) fn write_file(path: &Path, data: &[u8]) -> LogResult<()> {
    let io = |error| LogError::io(path, error);
    let mut file = File::create_new(path).map_err(io)?;
    file.write_all(data).map_err(io)?;
    file.sync_all().map_err(io)
}

/// Atomically creates or replaces a file.
pub(crate) fn replace_file(path: &Path, data: &[u8]) -> LogResult<()> {
    let beside = hidden_beside(path);
    remove_file(&beside)?;
    write_file(&beside, data)?;
    fs::rename(&beside, path).map_err(|e| LogError::io(path, e))
}

/// Removes a file if it exists.
pub(crate) fn remove_file(path: &Path) -> LogResult<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(LogError::io(path, error)),
        _ => Ok(()),
    }
}

/// Makes renames, removals and new names in a directory durable, where the system supports that.
pub(crate) fn sync_directory(path: &Path) -> LogResult<()> {
    // Other systems cannot open a directory, and need not.
    if !cfg!(unix) {
        return Ok(());
    }
    match File::open(path).and_then(|directory| directory.sync_all()) {
        // Some file systems sync only files, and a directory may be writable but not readable.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::InvalidInput | ErrorKind::Unsupported | ErrorKind::PermissionDenied
            ) =>
        {
            Ok(())
        }
        done => done.map_err(|e| LogError::io(path, e)),
    }
}

/// The hidden name next to a path, for an unfinished file or directory.
pub(crate) fn hidden_beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}{UNFINISHED}"))
}

/// True if an interrupted run left a file of this name.
pub(crate) fn is_unfinished(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(UNFINISHED)
}
