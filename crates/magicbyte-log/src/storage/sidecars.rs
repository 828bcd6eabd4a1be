//! Files beside the segments, read as a whole, up to a maximum size.

use std::io::{self, Read};

use crate::storage::file_info::{MAX_SIDECAR_BYTES, too_large, unreadable};
use crate::storage::location::Location;

/// The size of the reads near the end of an index, in bytes; a whole number of entries of both indexes.
const INDEX_BLOCK: u64 = 24 << 10;
/// A whole number of entries of both indexes, of 8 and of 12 bytes.
const INDEX_ENTRIES: u64 = 24;

/// The content of an index, snapshot or checkpoint file. None if the file does not exist.
///
/// # Errors
/// If it cannot be read; [`io::ErrorKind::InvalidInput`] for anything but a regular file,
/// [`io::ErrorKind::FileTooLarge`] above 64 MiB.
pub fn read_sidecar(path: impl Into<Location>) -> io::Result<Option<Vec<u8>>> {
    read_index(&path.into(), u64::MAX)
}

/// A variant of [`read_sidecar`] that reads only as far as an index can have entries. Kafka preallocates the
/// indexes of an active segment (10 MiB each by default), so the indexes of a killed broker end in many
/// zeros.
///
/// Stops at the first [`INDEX_BLOCK`] of zeros at or after `reach`, the size of the maximum number of entries
/// in the index. Later zeros are left out in whole numbers of entries of both indexes. The result therefore
/// still shows whether the size of the file is a whole number of entries.
///
/// # Errors
/// The errors of [`read_sidecar`].
pub(crate) fn read_index(path: &Location, reach: u64) -> io::Result<Option<Vec<u8>>> {
    let (file, size) = match path.open_small() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
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
    use std::fs::{self, File};
    use std::path::PathBuf;

    use crate::storage::file_info::{Found, Other};
    use crate::storage::local::examine;
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
            assert_eq!(read_sidecar(path(name)).expect("read").as_deref(), Some(&b"content"[..]));
            assert!(matches!(examine(&path(name)).expect("there"), Found::File(_)));
        }
        assert_eq!(read_sidecar(path("none")).expect("nothing to read"), None);
        assert!(examine(&path("none")).is_err_and(|error| error.kind() == io::ErrorKind::NotFound));
        for (name, what) in [("fifo", "a FIFO"), ("socket", "a socket"), (".", "a directory")] {
            let error = read_sidecar(path(name)).expect_err("not regular");
            assert_eq!(error.to_string(), format!("it is {what}, not a regular file"));
            let found = examine(&path(name)).expect("there");
            assert!(
                matches!(found, Found::Other(Other::Directory | Other::Special, why) if why == error.to_string())
            );
        }
        assert!(read_sidecar("/dev/zero").is_err_and(|e| e.to_string().contains("a device")));
        assert_eq!(read_sidecar(path("dangling")).expect("nothing to read"), None);
        for name in ["dangling", "loop"] {
            assert!(matches!(examine(&path(name)).expect("there"), Found::Other(Other::Unknown, _)));
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
            read_index(&path.as_path().into(), reach).expect("read").expect("there")
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
        // The result still shows a size that is not a whole number of entries.
        for rest in 0..24 {
            data.truncate((5 << 20) / 24 * 24 + rest);
            let length = read(&data, 3 * block as u64).len();
            assert_eq!((length % 8, length % 12), (data.len() % 8, data.len() % 12), "{rest}");
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
