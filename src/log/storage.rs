//! Opening what lies in a directory, whatever it is: only regular files are read, so that no FIFO and no
//! device keeps us waiting, and sidecars only up to a size.

use std::fs::{self, File, FileType, Metadata};
use std::io::{self, Read};
use std::path::Path;

use crate::error::ErrorKind;

/// Larger sidecars are not read. Kafka's indexes have 10 MiB unless told otherwise.
pub(crate) const MAX_SIDECAR: u64 = 64 << 20;

/// Opens a regular file, or says what has its name instead.
///
/// # Errors
/// When it cannot be opened; [`io::ErrorKind::InvalidInput`] for anything but a regular file.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    // Opening a device can do something to it.
    check_regular(fs::metadata(path)?.file_type())?;
    let mut options = File::options();
    options.read(true);
    // What has the name by now may be a FIFO, which would wait for a writer.
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

/// What it is, for people.
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

/// What has a name in a directory.
pub(crate) enum Found {
    File(Metadata),
    /// Something else, and why it is not read; without a type where nobody can say what it is.
    Other(Option<FileType>, String),
}

/// Looks at a name in a directory; symbolic links are followed.
///
/// # Errors
/// [`io::ErrorKind::NotFound`]: there is no such name, or no longer.
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

/// The kind of damage that a file is which cannot be read.
pub(crate) fn unreadable(why: impl std::fmt::Display) -> ErrorKind {
    ErrorKind::FileUnreadable(format!("cannot be read: {why}"))
}

/// Whether an error is not the file's: nothing can be opened now, or there is no memory.
pub(crate) fn is_exhaustion(error: &io::Error) -> bool {
    #[cfg(unix)]
    if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) {
        return true;
    }
    error.kind() == io::ErrorKind::OutOfMemory
}

/// The content of an index, snapshot or checkpoint file. None: there is no such file.
///
/// # Errors
/// When it cannot be read; [`io::ErrorKind::InvalidInput`] for anything but a regular file,
/// [`io::ErrorKind::FileTooLarge`] above 64 MiB.
pub fn read_sidecar(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match open_regular(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let too_large = |size: u64| {
        let why = format!("{size} bytes are more than the {MAX_SIDECAR} that are read");
        io::Error::new(io::ErrorKind::FileTooLarge, why)
    };
    let size = file.metadata()?.len();
    if size > MAX_SIDECAR {
        return Err(too_large(size));
    }
    let mut data = Vec::new();
    // The size of a file that grows, or lies, is what it gives.
    file.take(MAX_SIDECAR + 1).read_to_end(&mut data)?;
    if data.len() as u64 > MAX_SIDECAR {
        return Err(too_large(data.len() as u64));
    }
    Ok(Some(data))
}

/// Kind and text of the problem that [`read_sidecar`] failed with.
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
        file.set_len(MAX_SIDECAR).expect("sparse");
        assert_eq!(read_sidecar(&path).expect("read").map(|data| data.len() as u64), Some(MAX_SIDECAR));
        file.set_len(MAX_SIDECAR + 1).expect("sparse");
        assert_eq!(read_sidecar(&path).expect_err("too large").kind(), io::ErrorKind::FileTooLarge);
        fs::remove_dir_all(directory).expect("removed");
    }
}
