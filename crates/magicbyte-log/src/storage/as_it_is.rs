//! Files as they are, wherever they are: in archives, too, but not decompressed, and not made of others.

use std::io;
use std::path::Path;

use crate::storage::archive::{Archive, split};
use crate::storage::file_info::{FileInfo, Found};
use crate::storage::files;
use crate::storage::open_file::OpenFile;

pub(super) fn examine(path: &Path) -> io::Result<Found> {
    if let Some((archive, inside)) = split(path)
        && !inside.is_empty()
    {
        return Archive::last_opened(archive, None)?.examine(inside);
    }
    files::examine(path)
}

/// A file: of a compressed one, its own size.
pub(super) fn examine_file(path: &Path) -> io::Result<FileInfo> {
    files::info_of(examine(path)?)
}

pub(super) fn open(path: &Path, size: u64, version: Option<&str>) -> io::Result<OpenFile> {
    if let Some((archive, inside)) = split(path)
        && !inside.is_empty()
    {
        return Archive::last_opened(archive, version)?.open_member(inside);
    }
    files::open(path, size, version)
}
