//! Without the feature `tiered`, files of tiered storage are what they seem to be.

#![expect(clippy::unnecessary_wraps, reason = "the signatures are those of `tiered`")]

use std::io;
use std::path::{Path, PathBuf};

use crate::storage::file_info::Found;
use crate::storage::open_file::OpenFile;

pub(super) fn present(
    _: &Path,
    entries: Vec<(PathBuf, io::Result<Found>)>,
) -> io::Result<Vec<(PathBuf, io::Result<Found>)>> {
    Ok(entries)
}

pub(super) fn examine(_: &Path) -> io::Result<Option<Found>> {
    Ok(None)
}

pub(super) fn open(_: &Path, _: Option<&str>) -> io::Result<Option<OpenFile>> {
    Ok(None)
}

pub(super) fn read_sidecar(_: &Path) -> io::Result<Option<Vec<u8>>> {
    Ok(None)
}
