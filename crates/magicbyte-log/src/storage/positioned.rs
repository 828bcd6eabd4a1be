//! Reading and writing a file at a position, without moving its cursor. A platform that is neither Unix nor Windows,
//! such as WebAssembly in a browser, has no files of its own; there, everything is read from mounted stores.

use std::fs::File;
use std::io;

/// Reads once at a position; returns the number of bytes read, 0 at the end of the file.
///
/// # Errors
/// The errors of the system.
#[doc(hidden)]
pub fn read_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_at(file, buffer, position);
    #[cfg(windows)]
    return std::os::windows::fs::FileExt::seek_read(file, buffer, position);
    #[cfg(not(any(unix, windows)))]
    return Err(no_files(file, buffer.len(), position));
}

/// Writes once at a position; returns the number of bytes written.
///
/// # Errors
/// The errors of the system.
pub(super) fn write_at(file: &File, bytes: &[u8], position: u64) -> io::Result<usize> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::write_at(file, bytes, position);
    #[cfg(windows)]
    return std::os::windows::fs::FileExt::seek_write(file, bytes, position);
    #[cfg(not(any(unix, windows)))]
    return Err(no_files(file, bytes.len(), position));
}

#[cfg(not(any(unix, windows)))]
fn no_files(file: &File, bytes: usize, position: u64) -> io::Error {
    let what = format!("{bytes} bytes at {position} of {file:?}: this platform has no files");
    io::Error::new(io::ErrorKind::Unsupported, what)
}
