//! Segments in tiered storage as Aiven's plugin writes them, presented as the files of a partition. Each
//! segment has three objects (`ObjectKeyFactory`): `OFFSET-ID.log`, in chunks; `OFFSET-ID.indexes`, all files
//! beside the segment; and `OFFSET-ID.rsm-manifest`, which describes both. Without a manifest, a file is what
//! it seems to be.

mod chunk_index;
mod chunked;
pub(crate) mod encryption;
mod manifest;

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::storage::as_it_is;
use crate::storage::file_info::{
    FileInfo, Found, MAX_SIDECAR_BYTES, Other, changed, ends_the_run, too_large,
};
use crate::storage::open_file::{OpenFile, read_range};
use crate::storage::remote_names::{partition_below_topic, without_id};
use crate::storage::tiered::chunked::Chunked;
use crate::storage::tiered::encryption::OVERHEAD;
use crate::storage::tiered::manifest::{MAX_MANIFEST, Manifest, SIDECARS};

const MANIFEST: &str = "rsm-manifest";
const INDEXES: &str = "indexes";
/// The number of manifests that are kept.
const KEPT: usize = 64;

/// A segment with a manifest.
#[derive(Debug)]
struct RemoteSegment {
    /// The path of the segment's log.
    path: PathBuf,
    manifest: Arc<Manifest>,
    /// The object with the log.
    object: FileInfo,
    /// A value that changes with the manifest or the object.
    version: String,
}

static OPENED: Mutex<Vec<Arc<RemoteSegment>>> = Mutex::new(Vec::new());

/// The files that a directory's entries represent. A segment's log and the files beside it replace the
/// segment's objects.
///
/// # Errors
/// Errors that end the run. A segment with a wrong manifest becomes an entry that cannot be read.
pub(super) fn present(
    directory: &Path,
    entries: Vec<(PathBuf, io::Result<Found>)>,
) -> io::Result<Vec<(PathBuf, io::Result<Found>)>> {
    let described: HashSet<PathBuf> = entries
        .iter()
        .filter(|(path, _)| has_ending(path, MANIFEST))
        .filter_map(|(path, _)| log_of(path))
        .collect();
    let is_of_aiven = partition_below_topic(directory).is_some();
    if described.is_empty() && !is_of_aiven {
        return Ok(entries);
    }
    let mut presented = Vec::new();
    for (path, found) in entries {
        let is_object = [MANIFEST, INDEXES, "log"].iter().any(|ending| has_ending(&path, ending));
        match log_of(&path).filter(|_| is_object) {
            Some(log) if described.contains(&log) => {}
            // The manifest is written last.
            Some(log) if is_of_aiven && log == path => {
                let why = "it has no manifest: it was not copied to its end".to_owned();
                presented.push((path, Ok(Found::Other(Other::Unfinished, why))));
            }
            _ => presented.push((path, found)),
        }
    }
    for path in described {
        match RemoteSegment::open(&path) {
            Ok(segment) => presented.extend(segment.iter().flat_map(|segment| segment.files())),
            Err(error) if ends_the_run(&error) => return Err(error),
            Err(error) => presented.push((path, Ok(Found::Other(Other::Unknown, error.to_string())))),
        }
    }
    Ok(presented)
}

/// The file at the path of a segment's log, or of a file beside it. None if the segment has no manifest.
///
/// # Errors
/// [`io::ErrorKind::NotFound`] if the segment has no such file; errors that end the run.
pub(super) fn examine(path: &Path) -> io::Result<Option<Found>> {
    let Some(log) = may_be_part_of(path) else { return Ok(None) };
    match RemoteSegment::open(&log) {
        Ok(None) => Ok(None),
        Ok(Some(segment)) => match segment.files().into_iter().find(|(file, _)| file == path) {
            Some((_, found)) => found.map(Some),
            None => Err(io::ErrorKind::NotFound.into()),
        },
        Err(error) if ends_the_run(&error) => Err(error),
        Err(error) => Ok(Some(Found::Other(Other::Unknown, error.to_string()))),
    }
}

/// Opens the log of a segment. None if it has no manifest.
///
/// # Errors
/// If the manifest is wrong, or the objects cannot be read or have another version.
pub(super) fn open(path: &Path, version: Option<&str>) -> io::Result<Option<OpenFile>> {
    if may_be_part_of(path).is_none_or(|log| log != path) {
        return Ok(None);
    }
    let Some(segment) = RemoteSegment::last_opened(path, version)? else { return Ok(None) };
    let object = as_it_is::open(path, segment.object.size, segment.object.version.as_deref())?;
    if !segment.manifest.is_transformed() {
        return Ok(Some(object));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let chunked = Chunked::new(Arc::clone(&segment.manifest), object, name);
    Ok(Some(OpenFile::Composed(Box::new(chunked))))
}

/// The content of a file beside a segment. None if the segment has no manifest.
///
/// # Errors
/// [`io::ErrorKind::NotFound`] if the segment has no such file; if it cannot be read or decrypted.
pub(super) fn read_sidecar(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let Some(log) = may_be_part_of(path).filter(|log| log != path) else { return Ok(None) };
    let Some(segment) = RemoteSegment::last_opened(&log, None)? else { return Ok(None) };
    let range = segment.manifest.sidecars.iter().find(|(ending, _)| has_ending(path, ending));
    let Some((_, range)) = range else { return Err(io::ErrorKind::NotFound.into()) };
    if range.end - range.start > MAX_SIDECAR_BYTES {
        return Err(too_large(range.end - range.start));
    }
    let indexes = log.with_extension(INDEXES);
    let invalid = |why: String| {
        let name = indexes.file_name().unwrap_or_default().to_string_lossy();
        let why = format!("bytes {}..{} of {name}: {why}", range.start, range.end);
        io::Error::new(io::ErrorKind::InvalidData, why)
    };
    let info = as_it_is::examine_file(&indexes).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => invalid("the object is missing".into()),
        _ => error,
    })?;
    let object = as_it_is::open(&indexes, info.size, info.version.as_deref())?;
    let mut part = read_range(&object, range)?.map_err(invalid)?;
    if let Some(encryption) = &segment.manifest.encryption {
        encryption.decrypt(&mut part).map_err(invalid)?;
    }
    Ok(Some(part))
}

impl RemoteSegment {
    /// The segment of a log as it is now. None if it has no manifest.
    fn open(log: &Path) -> io::Result<Option<Arc<Self>>> {
        let path = log.with_extension(MANIFEST);
        let described = match as_it_is::examine_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            described => described?,
        };
        let invalid = |why: String| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            io::Error::new(io::ErrorKind::InvalidData, format!("{name}: {why}"))
        };
        let object = as_it_is::examine_file(log).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => invalid("the object that it describes is missing".into()),
            _ => error,
        })?;
        let version = format!("{} {}", described.identity(), object.identity());
        if let Some(known) = known(log, Some(&version)) {
            return Ok(Some(known));
        }
        if described.size > MAX_MANIFEST {
            return Err(invalid(format!("{} bytes exceed the limit of {MAX_MANIFEST}", described.size)));
        }
        let file = as_it_is::open(&path, described.size, described.version.as_deref())?;
        let json = read_range(&file, &(0..described.size))?.map_err(invalid)?;
        let manifest = Arc::new(Manifest::parse(&json).map_err(invalid)?);
        let expected = manifest.chunks.stored_size();
        // A shorter object is read as far as it has chunks.
        if object.size > expected || (object.size < expected && !manifest.is_transformed()) {
            let why = format!("it describes {expected} bytes, and the object has {}", object.size);
            return Err(invalid(why));
        }
        let segment = Arc::new(Self { path: log.to_owned(), manifest, object, version });
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        opened.retain(|one| one.path != log);
        if opened.len() >= KEPT {
            opened.remove(0);
        }
        opened.push(Arc::clone(&segment));
        Ok(Some(segment))
    }

    /// The segment as it was last opened in this process, if it has the version. Its objects are not
    /// examined.
    fn last_opened(log: &Path, version: Option<&str>) -> io::Result<Option<Arc<Self>>> {
        if let Some(known) = known(log, version) {
            return Ok(Some(known));
        }
        match (Self::open(log)?, version) {
            (Some(segment), Some(version)) if segment.version != version => Err(changed()),
            (segment, _) => Ok(segment),
        }
    }

    fn info(&self) -> FileInfo {
        FileInfo {
            size: self.manifest.chunks.original_size,
            modified_ms: self.object.modified_ms,
            version: Some(self.version.clone()),
            inode: None,
        }
    }

    /// The log, and the files beside it.
    fn files(&self) -> Vec<(PathBuf, io::Result<Found>)> {
        let added = if self.manifest.encryption.is_some() { OVERHEAD } else { 0 };
        let sidecars = self.manifest.sidecars.iter().map(|(ending, range)| {
            let size = (range.end - range.start).saturating_sub(added);
            let info = FileInfo { size, modified_ms: self.object.modified_ms, version: None, inode: None };
            (self.path.with_extension(ending), Ok(Found::File(info)))
        });
        sidecars.chain([(self.path.clone(), Ok(Found::File(self.info())))]).collect()
    }
}

fn known(log: &Path, version: Option<&str>) -> Option<Arc<RemoteSegment>> {
    let opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_wanted = |one: &RemoteSegment| version.is_none_or(|version| one.version == version);
    opened.iter().find(|one| one.path == log && is_wanted(one)).cloned()
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|extension| extension == ending)
}

/// The log of the segment that a file `OFFSET-ID.ENDING` belongs to.
fn log_of(path: &Path) -> Option<PathBuf> {
    without_id(path.file_stem()?.to_str()?)?;
    Some(path.with_extension("log"))
}

/// The log of the segment with a manifest that a path may belong to. The path is the log itself, or a file
/// beside it. Directories `topic-N-TOPICID` have no manifests (`LocalTieredStorage`), so no store is queried
/// for them.
fn may_be_part_of(path: &Path) -> Option<PathBuf> {
    let log = log_of(path)?;
    let is_presented = log == path || SIDECARS.iter().any(|ending| has_ending(path, ending));
    let directory = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    (is_presented && directory.is_none_or(|name| without_id(name).is_none())).then_some(log)
}
