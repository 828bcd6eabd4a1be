//! Reading and writing a file at a position, without moving its cursor.

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
}
