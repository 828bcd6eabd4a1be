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

/// The bytes that an index is read by once it may have ended; a whole number of entries of both indexes.
const INDEX_BLOCK: u64 = 24 << 10;
/// A whole number of entries of both indexes, of 8 and of 12 bytes.
const INDEX_ENTRIES: u64 = 24;

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
    read_index(path, u64::MAX)
}

/// As [`read_sidecar`], but reads only as far as an index can have entries. Kafka preallocates the indexes of
/// an active segment (10 MiB each by default), so that those of a killed broker end in many zeros.
///
/// Stops at the first [`INDEX_BLOCK`] of zeros at or after `reach`, the size of the most entries that the
/// index can have. Zeros after that are left out, in whole numbers of entries of both indexes, so that it shows
/// whether the size of the file is one.
///
/// # Errors
/// As [`read_sidecar`].
pub(crate) fn read_index(path: &Path, reach: u64) -> io::Result<Option<Vec<u8>>> {
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
    let mut file = file.take(MAX_SIDECAR_BYTES + 1);
    let blocks = reach.min(MAX_SIDECAR_BYTES + 1).div_ceil(INDEX_BLOCK);
    file.by_ref().take(blocks * INDEX_BLOCK).read_to_end(&mut data)?;
    loop {
        let start = data.len();
        if file.by_ref().take(INDEX_BLOCK).read_to_end(&mut data)? < INDEX_BLOCK as usize {
            break;
        }
        if data[start..].iter().all(|&byte| byte == 0) {
            let entries_and_rest = start as u64 + size.saturating_sub(start as u64) % INDEX_ENTRIES;
            data.truncate(entries_and_rest as usize);
            break;
        }
    }
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

    /// A block of zeros ends an index, unless more entries could follow.
    #[test]
    fn an_index_is_read_to_the_end_of_its_entries() {
        let directory = scratch("index-end");
        let path = directory.join("00000000000000000000.index");
        let block = INDEX_BLOCK as usize;
        let read = |data: &[u8], reach: u64| {
            fs::write(&path, data).expect("written");
            read_index(&path, reach).expect("read").expect("there")
        };
        let mut data = vec![0; 10 << 20];
        assert!(read(&data, 0).len() < 24);
        data[..8].fill(1);
        assert_eq!(read(&data, 0), data[..block + (data.len() - block) % 24]);
        // More entries than expected are read, too.
        data[..3 * block].fill(1);
        assert_eq!(read(&data, 0).len() / block, 3);
        // Zeros within reach are not the end: a crash can lose a page of an index and keep the next.
        data[..2 * block].fill(0);
        assert!(read(&data, 0).len() < 24);
        let reached = read(&data, 2 * block as u64 + 1);
        assert_eq!(reached.len() / block, 3);
        assert_eq!(reached[..3 * block], data[..3 * block]);
        // That a size is not a whole number of entries still shows.
        for rest in 0..24 {
            data.truncate((5 << 20) / 24 * 24 + rest);
            let found = read(&data, 3 * block as u64).len();
            assert_eq!((found % 8, found % 12), (data.len() % 8, data.len() % 12), "{rest}");
            data.resize(6 << 20, 0);
        }
        assert_eq!(read(b"short", 0), b"short");
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
