//! The only place that lists directories and opens files for reading. Only regular files are opened, so that no FIFO
//! or device can block, and sidecars are read only up to a maximum size.

use std::fs::{self, File, FileType, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::ErrorKind;

/// The paths of the entries of a directory, in no order.
///
/// # Errors
/// If the directory cannot be read.
pub(crate) fn list(directory: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect()
}

/// Whether a path is a directory; symbolic links are followed.
///
/// # Errors
/// If there is no such path, or it cannot be examined.
pub(crate) fn is_directory(path: &Path) -> io::Result<bool> {
    Ok(fs::metadata(path)?.is_dir())
}

/// The absolute path without symbolic links, or the path itself if it cannot be resolved.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
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

/// Reads once at a position; returns the number of bytes read, 0 at the end of the file.
///
/// # Errors
/// Those of the system.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_at(file, buffer, position);
    #[cfg(windows)]
    return std::os::windows::fs::FileExt::seek_read(file, buffer, position);
}

/// The maximum size of a sidecar, in bytes. Kafka limits an index to 10 MiB by default.
pub(crate) const MAX_SIDECAR_BYTES: u64 = 64 << 20;

/// Opens a regular file.
///
/// # Errors
/// If it cannot be opened; [`io::ErrorKind::InvalidInput`] for anything but a regular file.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
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

fn check_regular(found: FileType) -> io::Result<()> {
    if found.is_file() {
        return Ok(());
    }
    let why = format!("it is {}, not a regular file", describe(found));
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

/// The file type, for messages.
fn describe(found: FileType) -> &'static str {
    if found.is_dir() {
        return "a directory";
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if found.is_fifo() {
            return "a FIFO";
        }
        if found.is_socket() {
            return "a socket";
        }
    }
    "a device"
}

/// An entry of a directory.
pub(crate) enum Found {
    File(Metadata),
    /// Anything but a regular file, with its type if that is known, and why it is not read.
    Other(Option<FileType>, String),
}

/// Examines a directory entry; symbolic links are followed.
///
/// # Errors
/// [`io::ErrorKind::NotFound`] if the entry does not exist (any more).
pub(crate) fn examine(path: &Path) -> io::Result<Found> {
    match fs::metadata(path) {
        Ok(found) => Ok(match check_regular(found.file_type()) {
            Ok(()) => Found::File(found),
            Err(error) => Found::Other(Some(found.file_type()), error.to_string()),
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::symlink_metadata(path)?;
            Ok(Found::Other(None, "it is a symbolic link that leads nowhere".into()))
        }
        Err(error) => Ok(Found::Other(None, error.to_string())),
    }
}

/// The error kind of a file that cannot be read.
pub(crate) fn unreadable(why: impl std::fmt::Display) -> ErrorKind {
    ErrorKind::FileUnreadable(format!("cannot be read: {why}"))
}

/// Whether an error concerns the process, not the file: no file can be opened now, or memory is exhausted.
pub(crate) fn is_exhaustion(error: &io::Error) -> bool {
    #[cfg(unix)]
    if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) {
        return true;
    }
    error.kind() == io::ErrorKind::OutOfMemory
}

/// The content of an index, snapshot or checkpoint file. None if the file does not exist.
///
/// # Errors
/// If it cannot be read; [`io::ErrorKind::InvalidInput`] for anything but a regular file,
/// [`io::ErrorKind::FileTooLarge`] above 64 MiB.
pub fn read_sidecar(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match open_regular(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let too_large = |size: u64| {
        let why = format!("{size} bytes exceed the limit of {MAX_SIDECAR_BYTES}");
        io::Error::new(io::ErrorKind::FileTooLarge, why)
    };
    let size = file.metadata()?.len();
    if size > MAX_SIDECAR_BYTES {
        return Err(too_large(size));
    }
    let mut data = Vec::new();
    // The file may grow, or report a wrong size: only the bytes read count.
    file.take(MAX_SIDECAR_BYTES + 1).read_to_end(&mut data)?;
    if data.len() as u64 > MAX_SIDECAR_BYTES {
        return Err(too_large(data.len() as u64));
    }
    Ok(Some(data))
}

/// The kind and message of the problem for an error of [`read_sidecar`].
pub(crate) fn sidecar_problem(error: &io::Error) -> (&'static str, String) {
    if error.kind() == io::ErrorKind::FileTooLarge {
        return ("limit_exceeded", error.to_string());
    }
    let kind = unreadable(error);
    (kind.name(), kind.to_string())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::process::Command;

    fn scratch(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("magicbyte-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir(&directory).expect("created");
        directory
    }

    #[test]
    fn only_regular_files_are_opened() {
        let directory = scratch("regular-file");
        let path = |name: &str| directory.join(name);
        fs::write(path("file"), "content").expect("written");
        std::os::unix::fs::symlink("file", path("link")).expect("linked");
        std::os::unix::fs::symlink("gone", path("dangling")).expect("linked");
        std::os::unix::fs::symlink("loop", path("loop")).expect("linked");
        assert!(Command::new("mkfifo").arg(path("fifo")).status().expect("started").success());
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).expect("bound");

        for name in ["file", "link"] {
            assert_eq!(read_sidecar(&path(name)).expect("read").as_deref(), Some(&b"content"[..]));
            assert!(matches!(examine(&path(name)).expect("there"), Found::File(_)));
        }
        assert_eq!(read_sidecar(&path("none")).expect("nothing to read"), None);
        assert!(examine(&path("none")).is_err_and(|error| error.kind() == io::ErrorKind::NotFound));
        for (name, what) in [("fifo", "a FIFO"), ("socket", "a socket"), (".", "a directory")] {
            let error = read_sidecar(&path(name)).expect_err("not regular");
            assert_eq!(error.to_string(), format!("it is {what}, not a regular file"));
            let found = examine(&path(name)).expect("there");
            assert!(matches!(found, Found::Other(Some(_), why) if why == error.to_string()));
        }
        assert!(read_sidecar(Path::new("/dev/zero")).is_err_and(|e| e.to_string().contains("a device")));
        assert_eq!(read_sidecar(&path("dangling")).expect("nothing to read"), None);
        for name in ["dangling", "loop"] {
            assert!(matches!(examine(&path(name)).expect("there"), Found::Other(None, _)));
        }
        fs::remove_dir_all(directory).expect("removed");
    }

    #[test]
    fn sidecars_have_a_largest_size() {
        let directory = scratch("large-sidecar");
        let path = directory.join("leader-epoch-checkpoint");
        let file = File::create_new(&path).expect("created");
        file.set_len(MAX_SIDECAR_BYTES).expect("sparse");
        assert_eq!(read_sidecar(&path).expect("read").map(|data| data.len() as u64), Some(MAX_SIDECAR_BYTES));
        file.set_len(MAX_SIDECAR_BYTES + 1).expect("sparse");
        assert_eq!(read_sidecar(&path).expect_err("too large").kind(), io::ErrorKind::FileTooLarge);
        fs::remove_dir_all(directory).expect("removed");
    }
}
