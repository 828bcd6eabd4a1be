//! The files of a partition's directory: segments, sidecars, and files that are not part of the log.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, FileType};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::error::{ErrorKind, Result};
use crate::log::error::{LogError, LogResult};
use crate::log::problem::{DIRECTORY_UNREADABLE, Problem};
use crate::log::storage;
use crate::log::storage::{Found, examine, open_regular, read_sidecar, sidecar_problem, unreadable};
use crate::sidecar::leader_epoch_checkpoint::parse_leader_epoch_checkpoint;
use crate::sidecar::partition_metadata::parse_partition_metadata;
use crate::sidecar::producer_snapshot::parse_producer_snapshot;

/// A `.log` (or `.checkpoint`) file, as it was when listed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Segment {
    /// The full path.
    pub path: String,
    /// The file name.
    pub file: String,
    /// The topic, from the directory's name `topic-N`.
    pub topic: String,
    /// The partition, from the directory's name.
    pub partition: i32,
    /// The base offset, from the file's name.
    pub base_offset: i64,
    /// Size in bytes.
    pub size: u64,
    /// Last modification, in milliseconds since the Unix epoch.
    pub modified_ms: i64,
    /// Whether the file is a KRaft snapshot, whose offsets start at 0 whatever its name.
    pub is_checkpoint: bool,
}

impl Segment {
    /// A problem with the segment, or with a file beside it, as a whole.
    pub(crate) fn problem(&self, file: &str, kind: &str, message: String) -> Problem {
        Problem {
            topic: self.topic.clone(),
            partition: self.partition,
            segment: Some(file.to_owned()),
            kind: kind.to_owned(),
            message,
            ..Problem::default()
        }
    }

    /// The path of the file beside the segment with this extension (such as `index`).
    #[must_use]
    pub fn sidecar_path(&self, ending: &str) -> PathBuf {
        Path::new(&self.path).with_extension(ending)
    }
}

/// What a file beside the segments holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum SidecarKind {
    /// A `.index`: positions by offset.
    #[cfg_attr(feature = "serde", serde(rename = "index"))]
    OffsetIndex,
    /// A `.timeindex`: offsets by timestamp.
    #[cfg_attr(feature = "serde", serde(rename = "timeindex"))]
    TimeIndex,
    /// A `.txnindex`: aborted transactions.
    #[cfg_attr(feature = "serde", serde(rename = "txnindex"))]
    TransactionIndex,
    /// A `.snapshot`: the state of producers.
    #[cfg_attr(feature = "serde", serde(rename = "snapshot"))]
    ProducerSnapshot,
    /// The `leader-epoch-checkpoint`.
    #[cfg_attr(feature = "serde", serde(rename = "leader-epoch-checkpoint"))]
    LeaderEpochCheckpoint,
    /// The `partition.metadata`: the topic's ID.
    #[cfg_attr(feature = "serde", serde(rename = "partition.metadata"))]
    PartitionMetadata,
}

impl SidecarKind {
    const ALL: [Self; 6] = [
        Self::OffsetIndex,
        Self::TimeIndex,
        Self::TransactionIndex,
        Self::ProducerSnapshot,
        Self::LeaderEpochCheckpoint,
        Self::PartitionMetadata,
    ];

    /// The extension, or the whole name of a file with a fixed name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OffsetIndex => "index",
            Self::TimeIndex => "timeindex",
            Self::TransactionIndex => "txnindex",
            Self::ProducerSnapshot => "snapshot",
            Self::LeaderEpochCheckpoint => "leader-epoch-checkpoint",
            Self::PartitionMetadata => "partition.metadata",
        }
    }

    /// Whether each partition has one such file, with a fixed name.
    fn has_fixed_name(self) -> bool {
        matches!(self, Self::LeaderEpochCheckpoint | Self::PartitionMetadata)
    }
}

/// An index, snapshot or checkpoint file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Sidecar {
    /// The file name.
    pub file: String,
    /// Size in bytes.
    pub size: u64,
    /// What it holds.
    pub kind: SidecarKind,
}

/// Why a file is not read as part of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum IgnoreReason {
    /// A broker is about to delete it (`.deleted`).
    Deleted,
    /// A broker's cleaner is writing it (`.cleaned`).
    Cleaned,
    /// A broker is putting it in the place of others (`.swap`).
    Swap,
    /// A KRaft snapshot, and the caller did not ask for these.
    Checkpoint,
    /// Its name is not one of Kafka's.
    Foreign,
    /// All its offsets are in earlier segments.
    Overlapping,
    /// A directory.
    Directory,
    /// A FIFO, a socket or a device.
    Special,
    /// It is named like a file of the log but is not a regular file, or its type is unknown.
    Unreadable,
}

impl IgnoreReason {
    /// The reason in lower case, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Cleaned => "cleaned",
            Self::Swap => "swap",
            Self::Checkpoint => "checkpoint",
            Self::Foreign => "foreign",
            Self::Overlapping => "overlapping",
            Self::Directory => "directory",
            Self::Special => "special",
            Self::Unreadable => "unreadable",
        }
    }
}

/// A file that is not read as part of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct IgnoredFile {
    /// The file name; bytes that are not UTF-8 are escaped.
    pub file: String,
    /// Size in bytes; 0 for anything but a regular file.
    pub size: u64,
    /// Why it is not read.
    pub reason: IgnoreReason,
}

/// The files of a partition's directory. Every name is in exactly one of the three lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Listing {
    /// The directory.
    pub path: String,
    /// The topic, from the directory's name `topic-N`; the whole name if it has another form.
    pub topic: String,
    /// The partition, from the directory's name; 0 if it has another form.
    pub partition: i32,
    /// Segments, in offset order.
    pub segments: Vec<Segment>,
    /// Sidecars, in name order.
    pub sidecars: Vec<Sidecar>,
    /// Ignored files, in name order.
    pub ignored: Vec<IgnoredFile>,
    /// Files of the log that cannot be read; malformed checkpoints and snapshots.
    pub problems: Vec<Problem>,
}

/// Lists a partition's directory; a single `.log` or `.checkpoint` file counts as a directory with only that
/// file. KRaft `.checkpoint` snapshots are listed as segments only on request. Checkpoints and the snapshot
/// at the log's end are read, to report those that are malformed.
///
/// # Errors
/// [`LogError::Io`] if the directory cannot be listed, or its path is not UTF-8: plans travel as JSON.
pub fn list_partition(path: &Path, include_checkpoints: bool) -> LogResult<Listing> {
    let io = |error| LogError::io(path, error);
    let is_directory = storage::is_directory(path).map_err(io)?;
    let directory = if is_directory { path } else { path.parent().unwrap_or(Path::new(".")) };
    let mut listing = Listing::empty(path, directory)?;
    if is_directory {
        // Read all names before the first size: a segment followed by another one is closed, so its size is
        // final.
        for entry in storage::list(path).map_err(io)? {
            listing.add(&entry, include_checkpoints)?;
        }
        listing.check_sidecars(directory);
    } else {
        open_regular(path).map_err(io)?;
        listing.add(path, true)?;
    }
    listing.segments.sort_by(|a, b| (a.base_offset, &a.file).cmp(&(b.base_offset, &b.file)));
    listing.sidecars.sort_by(|a, b| a.file.cmp(&b.file));
    listing.ignored.sort_by(|a, b| a.file.cmp(&b.file));
    listing.problems.sort_by(|a, b| a.segment.cmp(&b.segment));
    Ok(listing)
}

impl Listing {
    /// The listing of a directory before any file is added.
    fn empty(path: &Path, directory: &Path) -> LogResult<Self> {
        let Some(text) = path.to_str() else {
            let why = "the path is not UTF-8: rename it, or reach it through a link";
            return Err(LogError::io(path, io::Error::new(io::ErrorKind::InvalidInput, why)));
        };
        let (topic, partition) = topic_and_partition(directory);
        Ok(Self { path: text.to_owned(), topic, partition, ..Self::default() })
    }

    /// The listing of a directory that cannot be listed: one problem, and nothing to read.
    ///
    /// # Errors
    /// [`LogError::Io`] if the path is not UTF-8.
    pub fn unreadable(path: &Path, why: &str) -> LogResult<Self> {
        let mut listing = Self::empty(path, path)?;
        listing.add_problem(None, DIRECTORY_UNREADABLE, format!("{} cannot be listed: {why}", listing.path));
        Ok(listing)
    }

    /// Segments that are not regular files, with their base offset.
    pub(crate) fn unreadable_segments(&self) -> impl Iterator<Item = (i64, &Problem)> {
        self.problems.iter().filter_map(|problem| match classify(problem.segment.as_deref()?) {
            FileKind::Segment(base_offset) => Some((base_offset, problem)),
            _ => None,
        })
    }

    /// Refuses a directory in which a segment is not a regular file.
    pub(crate) fn check_segments(&self) -> LogResult<()> {
        self.unreadable_segments().next().map_or(Ok(()), |(_, problem)| Err(self.error_of(problem)))
    }

    /// The error for a problem of the listing or the plan, in mode `FailFast`.
    pub(crate) fn error_of(&self, problem: &Problem) -> LogError {
        let path = Path::new(&self.path).join(problem.segment.as_deref().unwrap_or_default());
        let kind = match (problem.first_lost_offset, problem.last_lost_offset) {
            (Some(first), Some(last)) => ErrorKind::MissingSegment { first, last },
            _ => ErrorKind::FileUnreadable(problem.message.clone()),
        };
        LogError::Format { path, error: kind.into() }
    }

    fn add(&mut self, path: &Path, include_checkpoints: bool) -> LogResult<()> {
        let file = display_name(path.file_name().unwrap_or_default());
        let kind = classify(&file);
        let metadata = match examine(path) {
            Ok(Found::File(metadata)) => metadata,
            Ok(Found::Other(what, why)) => {
                self.add_other(file, &kind, what, why);
                return Ok(());
            }
            // Deleted after the directory was read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(LogError::io(path, error)),
        };
        let size = metadata.len();
        match kind {
            FileKind::Segment(base_offset) => self.add_segment(path, file, base_offset, &metadata, false),
            FileKind::Checkpoint(end_offset) if include_checkpoints => {
                self.add_segment(path, file, end_offset, &metadata, true);
            }
            FileKind::Checkpoint(_) => {
                self.ignored.push(IgnoredFile { file, size, reason: IgnoreReason::Checkpoint });
            }
            FileKind::Sidecar(kind) => self.sidecars.push(Sidecar { file, size, kind }),
            FileKind::Ignored(reason) => self.ignored.push(IgnoredFile { file, size, reason }),
        }
        Ok(())
    }

    /// Adds anything but a regular file.
    fn add_other(&mut self, file: String, kind: &FileKind, file_type: Option<FileType>, why: String) {
        let reason = match (kind, file_type) {
            (FileKind::Ignored(_), Some(file_type)) if file_type.is_dir() => IgnoreReason::Directory,
            (FileKind::Ignored(_), Some(_)) => IgnoreReason::Special,
            _ => {
                let kind = unreadable(why);
                self.add_problem(Some(file.clone()), kind.name(), kind.to_string());
                IgnoreReason::Unreadable
            }
        };
        self.ignored.push(IgnoredFile { file, size: 0, reason });
    }

    /// Reads what no survey reads: the checkpoints, and the snapshots that belong to no listed segment, such
    /// as the one at the log's end. An index without its segment is only opened.
    fn check_sidecars(&mut self, directory: &Path) {
        let stems: HashSet<_> =
            self.segments.iter().filter_map(|one| one.file.strip_suffix(".log")).collect();
        let is_of_segment =
            |one: &&Sidecar| one.file.split_once('.').is_some_and(|(stem, _)| stems.contains(stem));
        let others: Vec<_> = self.sidecars.iter().filter(|one| !is_of_segment(one)).cloned().collect();
        for Sidecar { file, kind, .. } in others {
            let path = directory.join(&file);
            let content = match kind {
                SidecarKind::OffsetIndex | SidecarKind::TimeIndex | SidecarKind::TransactionIndex => {
                    open_regular(&path).map(|_| None)
                }
                _ => read_sidecar(&path),
            };
            let (kind, message) = match content.map(|data| data.map(|data| check_content(kind, &data))) {
                Ok(None | Some(Ok(()))) => continue,
                // Deleted after it was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Ok(Some(Err(error))) => (error.kind().name(), error.to_string()),
                Err(error) => sidecar_problem(&error),
            };
            self.add_problem(Some(file), kind, message);
        }
    }

    fn add_problem(&mut self, segment: Option<String>, kind: &str, message: String) {
        let (topic, partition, kind) = (self.topic.clone(), self.partition, kind.to_owned());
        self.problems.push(Problem { topic, partition, segment, kind, message, ..Problem::default() });
    }

    fn add_segment(
        &mut self,
        path: &Path,
        file: String,
        base_offset: i64,
        metadata: &fs::Metadata,
        is_checkpoint: bool,
    ) {
        let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        self.segments.push(Segment {
            path: path.display().to_string(),
            file,
            topic: self.topic.clone(),
            partition: self.partition,
            base_offset,
            size: metadata.len(),
            modified_ms: modified.map_or(0, |since| since.as_millis() as i64),
            is_checkpoint,
        });
    }
}

/// Checks that a sidecar of this kind is well-formed.
fn check_content(kind: SidecarKind, data: &[u8]) -> Result<()> {
    let text = || String::from_utf8_lossy(data);
    match kind {
        SidecarKind::LeaderEpochCheckpoint => parse_leader_epoch_checkpoint(&text()).map(drop),
        SidecarKind::PartitionMetadata => parse_partition_metadata(&text()).map(drop),
        _ => parse_producer_snapshot(data).map(drop),
    }
}

enum FileKind {
    Segment(i64),
    Checkpoint(i64),
    Sidecar(SidecarKind),
    Ignored(IgnoreReason),
}

fn classify(file: &str) -> FileKind {
    for reason in [IgnoreReason::Deleted, IgnoreReason::Cleaned, IgnoreReason::Swap] {
        if file.strip_suffix(reason.name()).is_some_and(|rest| rest.ends_with('.')) {
            return FileKind::Ignored(reason);
        }
    }
    let foreign = FileKind::Ignored(IgnoreReason::Foreign);
    let mut kinds = SidecarKind::ALL.into_iter();
    if let Some(kind) = kinds.clone().find(|kind| kind.has_fixed_name() && kind.name() == file) {
        return FileKind::Sidecar(kind);
    }
    let Some((stem, extension)) = file.split_once('.') else { return foreign };
    if extension == "checkpoint" {
        let parts = stem.split_once('-').filter(|(_, epoch)| epoch.parse::<u32>().is_ok());
        return parts.and_then(|(offset, _)| base_offset(offset)).map_or(foreign, FileKind::Checkpoint);
    }
    let Some(offset) = base_offset(stem) else { return foreign };
    if extension == "log" {
        return FileKind::Segment(offset);
    }
    kinds.find(|kind| !kind.has_fixed_name() && kind.name() == extension).map_or(foreign, FileKind::Sidecar)
}

/// Kafka writes offsets in names with 20 digits.
fn base_offset(stem: &str) -> Option<i64> {
    (stem.len() == 20 && stem.bytes().all(|b| b.is_ascii_digit())).then(|| stem.parse().ok()).flatten()
}

/// `topic-N`, or `topic-N.<hash>-delete` and the like, as Kafka renames directories before it removes them.
fn topic_and_partition(directory: &Path) -> (String, i32) {
    let absolute = storage::absolute(directory);
    let name = display_name(absolute.file_name().unwrap_or_default());
    let stem = match name.rsplit_once('.') {
        Some((stem, rest)) if ["-delete", "-future", "-stray"].iter().any(|s| rest.ends_with(s)) => stem,
        _ => &name,
    };
    match stem.rsplit_once('-').and_then(|(topic, n)| Some((topic, parse_partition(n)?))) {
        Some((topic, partition)) if !topic.is_empty() => (topic.to_owned(), partition),
        _ => (name, 0),
    }
}

/// A file name as text; if it is not UTF-8, its bytes are escaped, so that no two names look the same.
fn display_name(name: &OsStr) -> String {
    name.to_str().map_or_else(|| name.as_encoded_bytes().escape_ascii().to_string(), str::to_owned)
}

fn parse_partition(digits: &str) -> Option<i32> {
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(topic_and_partition(Path::new("/x/orders-12")), ("orders".into(), 12));
        assert_eq!(topic_and_partition(Path::new("/x/my-topic-0")), ("my-topic".into(), 0));
        assert_eq!(topic_and_partition(Path::new("/x/t-3.0f3e-delete")), ("t".into(), 3));
        assert_eq!(topic_and_partition(Path::new("/x/v2_txn")), ("v2_txn".into(), 0));
        assert!(matches!(classify("00000000000000000042.log"), FileKind::Segment(42)));
        assert!(matches!(classify("42.log"), FileKind::Ignored(IgnoreReason::Foreign)));
        assert!(matches!(classify("00000000000000000042.log.swap"), FileKind::Ignored(IgnoreReason::Swap)));
        assert!(matches!(classify("00000000000000000042-0000000005.checkpoint"), FileKind::Checkpoint(42)));
        assert!(matches!(classify("99999999999999999999.log"), FileKind::Ignored(IgnoreReason::Foreign)));
        assert!(matches!(
            classify("00000000000000000042.index.deleted"),
            FileKind::Ignored(IgnoreReason::Deleted)
        ));
        assert!(matches!(classify("swap"), FileKind::Ignored(IgnoreReason::Foreign)));
        assert!(matches!(classify("42-5.checkpoint"), FileKind::Ignored(IgnoreReason::Foreign)));
        for (name, kind) in [
            ("00000000000000000042.index", SidecarKind::OffsetIndex),
            ("00000000000000000042.timeindex", SidecarKind::TimeIndex),
            ("00000000000000000042.txnindex", SidecarKind::TransactionIndex),
            ("00000000000000000042.snapshot", SidecarKind::ProducerSnapshot),
            ("leader-epoch-checkpoint", SidecarKind::LeaderEpochCheckpoint),
            ("partition.metadata", SidecarKind::PartitionMetadata),
        ] {
            assert!(matches!(classify(name), FileKind::Sidecar(found) if found == kind), "{name}");
        }
        let fixed = "00000000000000000042.leader-epoch-checkpoint";
        assert!(matches!(classify(fixed), FileKind::Ignored(IgnoreReason::Foreign)));
    }
}
