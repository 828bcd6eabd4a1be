//! The local file system. Only regular files are opened, so that no FIFO or device can block.

use std::fs::{self, File, FileType, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::storage::file_info::{FileInfo, Found, Other, changed};
use crate::storage::open_file::OpenFile;
use crate::storage::pin::holds;
use crate::storage::store::{Entry, Store};

/// The local file system.
#[derive(Debug)]
pub(super) struct Local;

impl Store for Local {
    fn list(&self, directory: &Path) -> io::Result<Vec<Entry>> {
        // Read all names before the first size: a segment followed by another one is closed, so its size is
        // final.
        let paths = list(directory)?;
        Ok(paths.into_iter().map(|path| (examine(&path), path)).map(|(found, path)| (path, found)).collect())
    }

    fn examine(&self, path: &Path) -> io::Result<Found> {
        examine(path)
    }

    fn is_directory(&self, path: &Path) -> io::Result<bool> {
        Ok(fs::metadata(path)?.is_dir())
    }

    fn open(&self, path: &Path, _: u64, version: Option<&str>) -> io::Result<OpenFile> {
        open_pinned(path, version).map(OpenFile::Local)
    }

    fn open_small(&self, path: &Path) -> io::Result<(Box<dyn Read>, u64)> {
        let file = open_regular(path)?;
        let size = file.metadata()?.len();
        Ok((Box::new(file), size))
    }
}

/// The paths of the entries of a directory, in no order.
///
/// # Errors
/// If the directory cannot be read.
pub(crate) fn list(directory: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect()
}

/// The size of a file, in bytes.
///
/// # Errors
/// If there is no such file, or it cannot be examined.
pub(crate) fn size(path: &Path) -> io::Result<u64> {
    Ok(fs::metadata(path)?.len())
}

/// When a file was last modified; none if it is gone, or the file system does not record it.
pub(crate) fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|file| file.modified()).ok()
}

/// Opens a regular file.
///
/// # Errors
/// If it cannot be opened; [`io::ErrorKind::InvalidInput`] for anything but a regular file.
#[doc(hidden)]
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Opening a device can have side effects.
    check_regular(fs::metadata(path)?.file_type())?;
    let mut options = File::options();
    options.read(true);
    // By now the name may belong to a FIFO, which would block until it has a writer.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.open(path)?;
    check_regular(file.metadata()?.file_type())?;
    Ok(file)
}

/// Opens a regular file that has this pin, if one is given.
///
/// # Errors
/// The errors of [`open_regular`]; [`io::ErrorKind::StaleNetworkFileHandle`] for another file of the same name.
#[doc(hidden)]
pub fn open_pinned(path: &Path, pin: Option<&str>) -> io::Result<File> {
    let file = open_regular(path)?;
    if let Some(pin) = pin
        && !holds(pin, &info_of(&file.metadata()?))
    {
        return Err(changed());
    }
    Ok(file)
}

fn check_regular(file_type: FileType) -> io::Result<()> {
    if file_type.is_file() {
        return Ok(());
    }
    let why = format!("it is {}, not a regular file", describe(file_type));
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

/// The file type, for messages.
fn describe(file_type: FileType) -> &'static str {
    if file_type.is_dir() {
        return "a directory";
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if file_type.is_fifo() {
            return "a FIFO";
        }
        if file_type.is_socket() {
            return "a socket";
        }
    }
    "a device"
}

/// Examines a directory entry; symbolic links are followed.
///
/// # Errors
/// [`io::ErrorKind::NotFound`] if the entry does not exist (any more).
pub(super) fn examine(path: &Path) -> io::Result<Found> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(match check_regular(metadata.file_type()) {
            Ok(()) => Found::File(info_of(&metadata)),
            Err(_) if metadata.is_dir() => {
                Found::Other(Other::Directory, "it is a directory, not a regular file".into())
            }
            Err(error) => Found::Other(Other::Special, error.to_string()),
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::symlink_metadata(path)?;
            Ok(Found::Other(Other::Unknown, "it is a symbolic link that leads nowhere".into()))
        }
        Err(error) => Ok(Found::Other(Other::Unknown, error.to_string())),
    }
}

fn info_of(metadata: &Metadata) -> FileInfo {
    #[cfg(unix)]
    let inode = Some(std::os::unix::fs::MetadataExt::ino(metadata));
    #[cfg(windows)]
    let inode = Some(std::os::windows::fs::MetadataExt::creation_time(metadata));
    #[cfg(not(any(unix, windows)))]
    let inode = None;
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    FileInfo {
        size: metadata.len(),
        modified_ms: modified.map_or(0, |since| since.as_millis() as i64),
        version: None,
        inode,
    }
}
