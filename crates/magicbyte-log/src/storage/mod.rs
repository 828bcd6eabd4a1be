//! The only module that lists directories and opens files for reading. A path is a path of the local file
//! system, a URL of a mounted [`Store`](store::Store), or leads into an archive. Reading a compressed segment
//! returns its content, and so does reading a segment's objects in tiered storage.

mod archive;
mod as_it_is;
pub(crate) mod file_info;
mod files;
pub(crate) mod local;
pub(crate) mod open_file;
pub(crate) mod pin;
mod range_cache;
mod ranges;
pub(crate) mod remote_names;
pub(crate) mod sidecars;
mod sparse;
pub(crate) mod store;
#[cfg(feature = "tiered")]
pub(crate) mod tiered;
#[cfg(not(feature = "tiered"))]
#[path = "untiered.rs"]
mod tiered;
mod unpacked;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::storage::archive::Archive;
use crate::storage::file_info::{FileInfo, Found, Other, changed, ends_the_run};
use crate::storage::open_file::{OpenFile, Unpacked};
use crate::storage::store::{fatal, is_url, store_of};
use crate::storage::unpacked::{MAX_SEGMENT, Packing, unpack};

const JUST_NOW: Duration = Duration::from_secs(2);

/// The files of a partition's directory and all its other entries, in no order. Compressed segments have
/// their size in the directory, not the size of their content.
///
/// # Errors
/// If the directory cannot be read.
pub(crate) fn entries(directory: &Path) -> io::Result<Vec<(PathBuf, io::Result<Found>)>> {
    tiered::present(directory, entries_as_they_are(directory)?)
}

/// The entries of a directory, in no order.
///
/// # Errors
/// If the directory cannot be read.
#[doc(hidden)]
pub fn entries_as_they_are(directory: &Path) -> io::Result<Vec<(PathBuf, io::Result<Found>)>> {
    if let Some((archive, inside)) = archive::split(directory) {
        let archive =
            if inside.is_empty() { Archive::open(archive)? } else { Archive::last_opened(archive, None)? };
        let names = archive.list(inside)?;
        let examined = |name: &str| archive.examine(format!("{inside}/{name}").trim_start_matches('/'));
        return Ok(names.into_iter().map(|name| (directory.join(name), examined(name))).collect());
    }
    if let Some((store, path)) = store_of(directory)? {
        let found = |file: store::StoredFile| {
            let path = directory.join(&file.name);
            (path, Ok(Found::from(file)))
        };
        return Ok(store.list(path).map_err(fatal)?.into_iter().map(found).collect());
    }
    // Read all names before the first size: a segment followed by another one is closed, so its size is final.
    let paths = local::list(directory)?;
    Ok(paths
        .into_iter()
        .map(|path| (local::examine(&path), path))
        .map(|(found, path)| (path, found))
        .collect())
}

/// True if a path is a directory or an archive, which is read as a directory. Symbolic links are followed.
///
/// # Errors
/// If there is no such path, or it cannot be examined.
#[doc(hidden)]
pub fn is_directory(path: &Path) -> io::Result<bool> {
    if is_url(path) || archive::split(path).is_some() {
        return Ok(archive::split(path).is_some_and(|(_, inside)| inside.is_empty())
            || matches!(as_it_is::examine(path)?, Found::Other(Other::Directory, _)));
    }
    Ok(std::fs::metadata(path)?.is_dir())
}

/// True if a name in a local directory was added, changed or removed in the last moments.
pub(crate) fn is_written_now(directory: &Path) -> bool {
    let modified = if is_stored(directory) { None } else { local::modified(directory) };
    modified.and_then(|time| time.elapsed().ok()).is_some_and(|since| since < JUST_NOW)
}

/// True if a path is a URL or leads into an archive.
#[doc(hidden)]
#[must_use]
pub fn is_stored(path: &Path) -> bool {
    is_url(path) || archive::split(path).is_some()
}

/// The absolute path without symbolic links, or the path itself if it cannot be resolved.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    if is_url(path) {
        path.to_owned()
    } else {
        std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
    }
}

/// A name without the ending of an archive, if it has one.
pub(crate) fn without_archive_ending(name: &str) -> &str {
    archive::stem(name).unwrap_or(name)
}

/// Examines a directory entry; symbolic links are followed. A compressed segment is decompressed to find the
/// size of its content.
///
/// # Errors
/// [`io::ErrorKind::NotFound`] if the entry does not exist (any more); errors that end the run.
#[doc(hidden)]
pub fn examine(path: &Path) -> io::Result<Found> {
    if let Some(found) = tiered::examine(path)? {
        return Ok(found);
    }
    let found = as_it_is::examine(path)?;
    let (Found::File(info), Some(_)) = (&found, packing_of_segment(path)) else { return Ok(found) };
    match unpacked_segment(path, Some(&info.identity())) {
        Ok(content) => Ok(Found::File(FileInfo {
            size: content.size,
            modified_ms: info.modified_ms,
            version: Some(info.identity()),
            inode: None,
        })),
        Err(error) if error.kind() == io::ErrorKind::NotFound || ends_the_run(&error) => Err(error),
        Err(error) => Ok(Found::Other(Other::Unknown, error.to_string())),
    }
}

/// The packing of a compressed segment (`.log.zst`, `.log.gz`) that is read; None for any other file.
pub(crate) fn packing_of_segment(path: &Path) -> Option<Packing> {
    let name = path.file_name()?.to_str()?;
    let (segment, _) = name.rsplit_once('.')?;
    segment.ends_with(".log").then(|| Packing::of(name)).flatten()
}

fn unpacked_segment(path: &Path, version: Option<&str>) -> io::Result<Arc<Unpacked>> {
    let Some(packing) = packing_of_segment(path) else { return Err(io::ErrorKind::InvalidInput.into()) };
    let identity = match version {
        Some(version) => version.to_owned(),
        None => as_it_is::examine_file(path)?.identity(),
    };
    let open = || {
        let info = as_it_is::examine_file(path)?;
        if info.identity() != identity {
            return Err(changed());
        }
        as_it_is::open(path, info.size, info.version.as_deref())
    };
    unpack((path.display().to_string(), identity.clone()), packing, MAX_SEGMENT, open)
}

/// The version by which a reader notices that a segment is not the file that was listed.
pub(crate) fn pinned_version(info: &FileInfo) -> Option<String> {
    info.version.clone().or_else(|| pin::pin(info))
}

/// The size of a local file now, if it has been written to since it was listed with this version.
pub(crate) fn size_if_written(path: &Path, version: Option<&str>) -> Option<u64> {
    let version = version.filter(|version| pin::is_pin(version))?;
    match local::examine(path) {
        Ok(Found::File(info)) if pinned_version(&info).as_deref() != Some(version) => Some(info.size),
        _ => None,
    }
}

/// Opens a file that has this size and version according to its listing.
///
/// # Errors
/// If it cannot be opened; [`io::ErrorKind::InvalidInput`] for anything but a regular file,
/// [`io::ErrorKind::StaleNetworkFileHandle`] if it has another version.
#[doc(hidden)]
pub fn open(path: &Path, size: u64, version: Option<&str>) -> io::Result<OpenFile> {
    if let Some(file) = tiered::open(path, version)? {
        return Ok(file);
    }
    match packing_of_segment(path) {
        Some(_) => unpacked_segment(path, version).map(OpenFile::Unpacked),
        None => as_it_is::open(path, size, version),
    }
}
