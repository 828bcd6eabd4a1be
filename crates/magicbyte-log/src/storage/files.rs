//! Files as they are, of the local file system or a store.

use std::io;
use std::path::Path;

use crate::storage::file_info::{FileInfo, Found};
use crate::storage::local;
use crate::storage::open_file::OpenFile;
use crate::storage::ranges::Ranges;
use crate::storage::store::{fatal, store_of};

pub(super) fn examine(path: &Path) -> io::Result<Found> {
    match store_of(path)? {
        Some((store, path)) => store.examine(path).map(Found::from).map_err(fatal),
        None => local::examine(path),
    }
}

/// Size, time and version of a regular file.
pub(super) fn info_of(found: Found) -> io::Result<FileInfo> {
    match found {
        Found::File(info) => Ok(info),
        Found::Other(_, why) => Err(io::Error::new(io::ErrorKind::InvalidInput, why)),
    }
}

pub(super) fn open(path: &Path, size: u64, version: Option<&str>) -> io::Result<OpenFile> {
    Ok(match store_of(path)? {
        Some((store, path)) => OpenFile::Ranges(Ranges::open(store, path, size, version)),
        None => OpenFile::Local(local::open_pinned(path, version)?),
    })
}
