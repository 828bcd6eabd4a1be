//! The files of a partition's directory: segments, sidecars, and files that are not part of the log
//! (`LogLoader.loadSegmentFiles`; `Snapshots` for those of KRaft).

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::ops::Bound::{Excluded, Unbounded};
use std::path::Path;
use std::time::Duration;

use magicbyte::internals::{LOG_START_OFFSET_CHECKPOINT, offset_in_checkpoint};
use magicbyte::sidecar::{parse_leader_epoch_checkpoint, parse_partition_metadata, parse_producer_snapshot};
use magicbyte::state::{EpochEntry, LeaderEpochs};
use magicbyte::{ErrorKind, Result};

use crate::error::{LogError, LogResult};
use crate::names::{
    DirectoryState, FileKind, IgnoreReason, SidecarKind, base_offset_of, classify, display_name,
    partition_of, segment_of, topic_of,
};
use crate::problem::{DIRECTORY_UNREADABLE, MISSING_SEGMENT, Problem};
use crate::storage::file_info::{FileInfo, Found, Other, ends_the_run, unreadable};
use crate::storage::location::Location;
use crate::storage::pin::pinned_version;
use crate::storage::sidecars::{read_sidecar, sidecar_problem};
use crate::unnamed::base_offset_of_content;

/// The pauses before the next looks at a directory in which a broker is renaming files.
const PAUSES_MS: [u64; 4] = [10, 20, 40, 80];
/// The age of a directory's last change below which a broker may be at work in it.
const JUST_NOW: Duration = Duration::from_secs(2);
/// The number of files that a message names.
const FILES_NAMED: usize = 5;

/// A `.log` (or `.checkpoint`) file, as it was when listed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Segment {
    /// The file; its full path in JSON.
    #[serde(rename = "path")]
    pub location: Location,
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
    /// True if the file is a KRaft snapshot, whose offsets start at 0 whatever its name.
    pub is_checkpoint: bool,
    /// The version that is read. It is an ETag or, for a local file, which may grow, a value that
    /// distinguishes it from another file of its name.
    #[serde(default)]
    pub version: Option<String>,
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

    /// The file beside the segment with this extension (such as `index`).
    #[must_use]
    pub fn sidecar(&self, ending: &str) -> Location {
        self.location.with_file_name(&self.sidecar_name(ending))
    }

    pub(crate) fn sidecar_name(&self, ending: &str) -> String {
        let stem = self.file.split_once('.').map_or(self.file.as_str(), |(stem, _)| stem);
        format!("{stem}.{ending}")
    }
}

/// An index, snapshot or checkpoint file.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Sidecar {
    /// The file name.
    pub file: String,
    /// Size in bytes.
    pub size: u64,
    /// The kind of its content.
    pub kind: SidecarKind,
}

/// A file that is not read as part of the log.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct IgnoredFile {
    /// The file name; bytes that are not UTF-8 are escaped.
    pub file: String,
    /// Size in bytes; 0 for anything but a regular file.
    pub size: u64,
    /// The reason why it is not read.
    pub reason: IgnoreReason,
}

/// The entries for a partition in the checkpoints of a broker's directory. None for a missing entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PartitionCheckpoints {
    /// The first offset that consumers may read, if no segment begins there (`log-start-offset-checkpoint`).
    pub log_start_offset: Option<i64>,
    /// All offsets before it were flushed to disk (`recovery-point-offset-checkpoint`).
    pub recovery_point: Option<i64>,
    /// All offsets before it were committed, that is, replicated (`replication-offset-checkpoint`).
    pub high_watermark: Option<i64>,
}

/// The largest number of leader epochs in a listing.
const LISTED_EPOCHS: usize = 10_000;

/// The files of a partition's directory. Every name is in exactly one of the three lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Listing {
    /// The directory; its path in JSON.
    #[serde(rename = "path")]
    pub location: Location,
    /// The topic, from the directory's name `topic-N`; the whole name if it has another form.
    pub topic: String,
    /// The partition, from the directory's name; 0 if it has another form.
    pub partition: i32,
    /// The state of the directory on a broker, from its name.
    pub state: DirectoryState,
    /// The broker's checkpoint entries for the partition, if the caller has read the checkpoints. They are in
    /// the parent directory.
    pub checkpoints: Option<PartitionCheckpoints>,
    /// True if records before the log's start are read. A broker does not return these records
    /// (`log-start-offset-checkpoint`).
    #[serde(default)]
    pub include_deleted_records: bool,
    /// Segments, in offset order.
    pub segments: Vec<Segment>,
    /// Sidecars, in name order.
    pub sidecars: Vec<Sidecar>,
    /// Ignored files, in name order.
    pub ignored: Vec<IgnoredFile>,
    /// Leader epochs and where they begin, from the `leader-epoch-checkpoint`: the last 10,000.
    #[serde(default)]
    pub leader_epochs: LeaderEpochs,
    /// Files of the log that cannot be read, or that are missing according to the files beside them; malformed
    /// checkpoints and snapshots.
    pub problems: Vec<Problem>,
}

/// Lists a partition's directory. A single file counts as a directory with only that file, whatever its name,
/// if it begins with a batch. KRaft `.checkpoint` snapshots are listed as segments only on request.
/// Checkpoints and the snapshot at the log's end are read, to report malformed files.
///
/// # Errors
/// [`LogError::Io`] if the directory cannot be listed, or its path is not UTF-8: plans travel as JSON.
pub fn list_partition(path: impl Into<Location>, include_checkpoints: bool) -> LogResult<Listing> {
    let location = path.into();
    // A name in the directory was added, changed or removed in the last moments.
    let is_changing = || {
        let age = location.modified().and_then(|time| time.elapsed().ok());
        age.is_some_and(|age| age < JUST_NOW)
    };
    let mut listing = list_once(&location, include_checkpoints)?;
    for pause in PAUSES_MS {
        if !listing.has_renames() || !is_changing() {
            break;
        }
        std::thread::sleep(Duration::from_millis(pause));
        listing = list_once(&location, include_checkpoints)?;
    }
    Ok(listing)
}

fn list_once(location: &Location, include_checkpoints: bool) -> LogResult<Listing> {
    let io = |error| LogError::io(location.path(), error);
    if !location.is_directory().map_err(io)? {
        return list_file(location);
    }
    let mut listing = Listing::empty(location, location)?;
    let entries = location.entries().map_err(io)?;
    let plain: HashSet<_> = entries.iter().filter_map(|(file, _)| plain_segment(file.path())).collect();
    for (file, found) in entries {
        listing.add(&file, found, include_checkpoints, &plain)?;
    }
    listing.sort();
    let first_epoch = listing.check_sidecars()?;
    listing.note_missing_segments(first_epoch);
    listing.problems.sort_by(|a, b| a.segment.cmp(&b.segment));
    Ok(listing)
}

/// Lists the single file that the caller names. The caller means that file, so a segment may have any name.
fn list_file(location: &Location) -> LogResult<Listing> {
    let io = |error| LogError::io(location.path(), error);
    let directory = location.parent().unwrap_or_else(|| Location::from("."));
    let mut listing = Listing::empty(location, &directory)?;
    let found = location.examine();
    match &found {
        Ok(Found::Other(_, why)) => {
            return Err(io(io::Error::new(io::ErrorKind::InvalidInput, why.clone())));
        }
        Ok(Found::File(info)) => {
            let opened = location.open(info.size, pinned_version(info).as_deref()).map_err(io)?;
            let file = display_name(location.path().file_name().unwrap_or_default());
            if matches!(classify(&file), FileKind::Ignored(_))
                && let Some(base_offset) = base_offset_of_content(&opened, info.size).map_err(io)?
            {
                listing.add_segment(location, file, base_offset, info.clone(), false);
                return Ok(listing);
            }
        }
        Err(_) => {}
    }
    listing.add(location, found, true, &HashSet::new())?;
    Ok(listing)
}

impl Listing {
    /// The listing of a directory before any file is added.
    fn empty(location: &Location, directory: &Location) -> LogResult<Self> {
        if location.path().to_str().is_none() {
            let why = "the path is not UTF-8: rename it, or reach it through a link";
            return Err(LogError::io(location.path(), io::Error::new(io::ErrorKind::InvalidInput, why)));
        }
        // As for a broker, a link counts by its own name, unless only what it leads to has that of a partition.
        let path = directory.absolute();
        let named = partition_of(&path).or_else(|| partition_of(&directory.resolved()));
        let (topic, partition, state) =
            named.unwrap_or_else(|| (topic_of(&path), 0, DirectoryState::Current));
        Ok(Self { location: location.clone(), topic, partition, state, ..Self::default() })
    }

    /// The listing of a directory that cannot be listed: one problem, and nothing to read.
    ///
    /// # Errors
    /// [`LogError::Io`] if the path is not UTF-8.
    pub fn unreadable(path: impl Into<Location>, why: &str) -> LogResult<Self> {
        let location = path.into();
        let mut listing = Self::empty(&location, &location)?;
        listing.add_problem(None, DIRECTORY_UNREADABLE, format!("{location} cannot be listed: {why}"));
        Ok(listing)
    }

    /// True if the files look as they do while a broker renames a segment and then its indexes, one after the
    /// other.
    fn has_renames(&self) -> bool {
        let is_swap = |ignored: &IgnoredFile| ignored.reason == IgnoreReason::Swap;
        self.ignored.iter().any(is_swap) || self.missing_segments().next().is_some()
    }

    /// The offset where reading begins, if the broker's checkpoint gives it. Records before it were deleted
    /// (`DeleteRecords`), although their segment is still there.
    #[must_use]
    pub fn log_start_offset(&self) -> Option<i64> {
        let named = self.checkpoints.and_then(|checkpoints| checkpoints.log_start_offset);
        // A broker takes the first segment's base offset if that is greater.
        named.filter(|&offset| offset > 0 && !self.include_deleted_records)
    }

    /// Reads the log's start from a checkpoint in the parent directory. If the checkpoint cannot be read, a
    /// problem is reported and the checkpoint is ignored, as by a broker.
    #[doc(hidden)]
    pub fn read_log_start(&mut self) {
        if self.state != DirectoryState::Current {
            return;
        }
        let is_file = self.segments.iter().any(|segment| segment.location == self.location);
        let directory = if is_file { self.location.parent() } else { Some(self.location.clone()) };
        let Some(parent) = directory.and_then(|directory| directory.parent()) else { return };
        let checkpoint = parent.join(LOG_START_OFFSET_CHECKPOINT);
        let (kind, message) = match read_sidecar(checkpoint.clone()) {
            Ok(None) => return,
            Ok(Some(data)) => {
                let text = String::from_utf8_lossy(&data);
                match offset_in_checkpoint(&text, &self.topic, self.partition) {
                    Ok(offset) => {
                        self.checkpoints.get_or_insert_default().log_start_offset = offset;
                        return;
                    }
                    Err(error) => (error.kind().name(), error.to_string()),
                }
            }
            Err(error) => sidecar_problem(&error),
        };
        self.add_problem(None, kind, format!("{checkpoint}: {message}"));
    }

    fn sort(&mut self) {
        self.segments.sort_by(|a, b| (a.base_offset, &a.file).cmp(&(b.base_offset, &b.file)));
        self.sidecars.sort_by(|a, b| a.file.cmp(&b.file));
        self.ignored.sort_by(|a, b| a.file.cmp(&b.file));
    }

    /// Segments that are missing or not regular files, with their base offset.
    pub(crate) fn unreadable_segments(&self) -> impl Iterator<Item = (i64, &Problem)> {
        self.problems.iter().filter_map(|problem| match classify(problem.segment.as_deref()?) {
            FileKind::Segment(base_offset) | FileKind::Packed(base_offset) => Some((base_offset, problem)),
            _ => None,
        })
    }

    /// The base offsets of missing segments.
    pub(crate) fn missing_segments(&self) -> impl Iterator<Item = i64> {
        self.unreadable_segments()
            .filter_map(|(base_offset, problem)| (problem.kind == MISSING_SEGMENT).then_some(base_offset))
    }

    /// Refuses a directory in which a segment is missing or not a regular file.
    pub(crate) fn check_segments(&self) -> LogResult<()> {
        self.unreadable_segments().next().map_or(Ok(()), |(_, problem)| Err(self.error_of(problem)))
    }

    /// The error for a problem of the listing or the plan, in mode `FailFast`.
    pub(crate) fn error_of(&self, problem: &Problem) -> LogError {
        let path = self.location.path().join(problem.segment.as_deref().unwrap_or_default());
        let is_missing = problem.kind == MISSING_SEGMENT;
        let kind = match (problem.first_lost_offset, problem.last_lost_offset) {
            (Some(first), Some(last)) if is_missing => ErrorKind::MissingSegment { first, last },
            _ => ErrorKind::FileUnreadable(problem.message.clone()),
        };
        LogError::Format { path, error: kind.into() }
    }

    /// Adds a file. `plain` has the base offsets of the segments that are not compressed.
    fn add(
        &mut self,
        location: &Location,
        found: io::Result<Found>,
        include_checkpoints: bool,
        plain: &HashSet<i64>,
    ) -> LogResult<()> {
        let file = display_name(location.path().file_name().unwrap_or_default());
        let (kind, found) = match classify(&file) {
            FileKind::Packed(offset) if plain.contains(&offset) => {
                (FileKind::Ignored(IgnoreReason::Compressed), found)
            }
            FileKind::Packed(offset) => (FileKind::Packed(offset), location.examine()),
            kind => (kind, found),
        };
        let info = match found {
            Ok(Found::File(info)) => info,
            Ok(Found::Other(what, why)) => {
                self.add_other(file, &kind, what, why);
                return Ok(());
            }
            // Deleted after the directory was read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(LogError::io(location.path(), error)),
        };
        let size = info.size;
        match kind {
            FileKind::Segment(base_offset) | FileKind::Packed(base_offset) => {
                self.add_segment(location, file, base_offset, info, false);
            }
            FileKind::Checkpoint(end_offset) if include_checkpoints => {
                self.add_segment(location, file, end_offset, info, true);
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
    fn add_other(&mut self, file: String, kind: &FileKind, what: Other, why: String) {
        let reason = match (kind, what) {
            (FileKind::Ignored(_), Other::Directory) => IgnoreReason::Directory,
            (FileKind::Ignored(_), Other::Special) => IgnoreReason::Special,
            (_, Other::Unfinished) => IgnoreReason::Unfinished,
            _ => {
                let kind = unreadable(why);
                self.add_problem(Some(file.clone()), kind.name(), kind.to_string());
                IgnoreReason::Unreadable
            }
        };
        self.ignored.push(IgnoredFile { file, size: 0, reason });
    }

    /// Reads the files that no survey reads: the checkpoints, and the snapshots that belong to no listed
    /// segment, such as the snapshot at the log's end. An index without its segment is only opened. Returns
    /// the start of the first leader epoch.
    fn check_sidecars(&mut self) -> LogResult<Option<i64>> {
        let mut first_epoch = None;
        let stems: HashSet<_> = self
            .segments
            .iter()
            .filter_map(|segment| segment.file.split_once('.'))
            .map(|(stem, _)| stem)
            .collect();
        let is_of_segment =
            |sidecar: &&Sidecar| sidecar.file.split_once('.').is_some_and(|(stem, _)| stems.contains(stem));
        let others: Vec<_> =
            self.sidecars.iter().filter(|sidecar| !is_of_segment(sidecar)).cloned().collect();
        for Sidecar { file, kind, size } in others {
            let location = self.location.join(&file);
            let content = match kind {
                SidecarKind::OffsetIndex | SidecarKind::TimeIndex | SidecarKind::TransactionIndex => {
                    location.open(size, None).map(|_| None)
                }
                _ => read_sidecar(location.clone()),
            };
            let content = content.map(|data| data.map(|data| check_content(kind, &data)));
            let (kind, message) = match content {
                Ok(None) => continue,
                Ok(Some(Ok(epochs))) => {
                    first_epoch = first_epoch.or(epochs.first().map(|first| first.start_offset));
                    if kind == SidecarKind::LeaderEpochCheckpoint {
                        let last = &epochs[epochs.len().saturating_sub(LISTED_EPOCHS)..];
                        self.leader_epochs = LeaderEpochs::from_entries(last);
                    }
                    continue;
                }
                // Deleted after it was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Ok(Some(Err(error))) => (error.kind().name(), error.to_string()),
                Err(error) if ends_the_run(&error) => return Err(LogError::io(location.path(), error)),
                Err(error) => sidecar_problem(&error),
            };
            self.add_problem(Some(file), kind, message);
        }
        Ok(first_epoch)
    }

    /// Reports segments that were here. A broker keeps indexes only beside their segment (`LogLoader`), at least
    /// one segment in every partition (`LocalLog`), and no leader epoch that starts before its first segment
    /// (`LeaderEpochFileCache`).
    fn note_missing_segments(&mut self, first_epoch: Option<i64>) {
        let known = self.known_segments();
        let missing = self.named_segments(&known);
        let all: BTreeSet<i64> = known.iter().chain(missing.keys()).copied().collect();
        if all.is_empty() && !self.sidecars.is_empty() {
            self.note_no_segment();
        }
        if let (Some(epoch), Some(&first)) = (first_epoch, all.first())
            && epoch < first
        {
            let message = format!(
                "offsets {epoch}..={} are in no file: the first leader epoch starts at {epoch}, the first segment \
                 at {first}. The segments were deleted, or are only in tiered storage",
                first - 1
            );
            let file = SidecarKind::LeaderEpochCheckpoint.name().to_owned();
            self.add_missing(file, (Some(epoch), Some(first - 1)), message);
        }
        let lost_from = |offset: i64| {
            let next = all.range((Excluded(offset), Unbounded)).next();
            (Some(offset), next.map(|next| next - 1))
        };
        for problem in &mut self.problems {
            if let Some(FileKind::Segment(offset) | FileKind::Packed(offset)) =
                problem.segment.as_deref().map(classify)
            {
                (problem.first_lost_offset, problem.last_lost_offset) = lost_from(offset);
            }
        }
        for (offset, file) in missing {
            let name = segment_of(&file);
            let message = if file.starts_with(&name) {
                format!(
                    "only {file} is there: decompress it to have it read (.zst and .gz are read as they are)"
                )
            } else {
                format!("the segment is missing: {file} is there, which a broker keeps only beside it")
            };
            self.add_missing(name, lost_from(offset), message);
        }
    }

    /// The base offsets of segments that are there, readable or not, or about to be deleted or replaced.
    fn known_segments(&self) -> HashSet<i64> {
        let set_aside = |ignored: &&IgnoredFile| match ignored.reason {
            IgnoreReason::Deleted | IgnoreReason::Cleaned | IgnoreReason::Swap => {
                ignored.file.contains(".log.")
            }
            reason => {
                reason == IgnoreReason::Unreadable
                    && matches!(classify(&ignored.file), FileKind::Segment(_) | FileKind::Packed(_))
            }
        };
        let others =
            self.ignored.iter().filter(set_aside).filter_map(|ignored| base_offset_of(&ignored.file));
        self.segments.iter().map(|segment| segment.base_offset).chain(others).collect()
    }

    /// The other segments that were here: the file that names each segment, by base offset. A compressed
    /// segment is named by its own file rather than by its index.
    fn named_segments(&self, known: &HashSet<i64>) -> BTreeMap<i64, String> {
        let compressed = self.ignored.iter().filter(|ignored| ignored.reason == IgnoreReason::Compressed);
        let indexes = self.sidecars.iter().filter(|sidecar| sidecar.kind.is_index());
        let files = indexes.map(|sidecar| &sidecar.file).chain(compressed.map(|ignored| &ignored.file));
        files
            .filter_map(|file| Some((base_offset_of(file)?, file.clone())))
            .filter(|(offset, _)| !known.contains(offset))
            .collect()
    }

    fn note_no_segment(&mut self) {
        let files: Vec<_> =
            self.sidecars.iter().map(|sidecar| sidecar.file.as_str()).take(FILES_NAMED).collect();
        let message = format!(
            "the directory has no segment, although every partition of a broker has one; it has {}",
            files.join(", ")
        );
        self.add_problem(None, MISSING_SEGMENT, message);
    }

    fn add_missing(&mut self, segment: String, lost: (Option<i64>, Option<i64>), message: String) {
        self.add_problem(Some(segment), MISSING_SEGMENT, message);
        if let Some(problem) = self.problems.last_mut() {
            (problem.first_lost_offset, problem.last_lost_offset) = lost;
        }
    }

    fn add_problem(&mut self, segment: Option<String>, kind: &str, message: String) {
        let (topic, partition, kind) = (self.topic.clone(), self.partition, kind.to_owned());
        self.problems.push(Problem { topic, partition, segment, kind, message, ..Problem::default() });
    }

    fn add_segment(
        &mut self,
        location: &Location,
        file: String,
        base_offset: i64,
        info: FileInfo,
        is_checkpoint: bool,
    ) {
        self.segments.push(Segment {
            location: location.clone(),
            file,
            topic: self.topic.clone(),
            partition: self.partition,
            base_offset,
            size: info.size,
            modified_ms: info.modified_ms,
            is_checkpoint,
            version: pinned_version(&info),
        });
    }
}

/// The base offset of a segment that is not compressed, from its name.
fn plain_segment(path: &Path) -> Option<i64> {
    match classify(path.file_name()?.to_str()?) {
        FileKind::Segment(base_offset) => Some(base_offset),
        _ => None,
    }
}

/// Checks that a sidecar of this kind is well-formed. Returns the entries of a leader epoch checkpoint.
fn check_content(kind: SidecarKind, data: &[u8]) -> Result<Vec<EpochEntry>> {
    let text = || String::from_utf8_lossy(data);
    match kind {
        SidecarKind::LeaderEpochCheckpoint => parse_leader_epoch_checkpoint(&text()),
        SidecarKind::PartitionMetadata => parse_partition_metadata(&text()).map(|_| Vec::new()),
        _ => parse_producer_snapshot(data).map(|_| Vec::new()),
    }
}
