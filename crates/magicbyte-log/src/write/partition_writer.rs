//! Writes a partition's directory: [`begin_partition`], any number of [`PartitionWriter`]s (say, one per
//! task), [`finish_partition`]. It has the sidecars that a broker's `LogLoader` expects, or would rebuild.
//!
//! All files are written to a hidden directory next to the target, which is renamed to the target last: an
//! interrupted run leaves nothing that looks like a partition.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use magicbyte::convert::set_partition_leader_epoch;
use magicbyte::sidecar::{PartitionMetadata, write_partition_metadata};
use magicbyte::{Batch, Batches, Error, ErrorKind};

use crate::error::{LogError, LogResult};
use crate::storage::local;
use crate::storage::location::Location;
use crate::write::durable::{hidden_beside, remove_file, sync_directory, write_file};
use crate::write::options::WriteOptions;
use crate::write::partition_fold::{PartitionFold, SidecarFile, existing_epochs};
use crate::write::segment_fold::SegmentSummary;
use crate::write::segment_writer::{SegmentWriter, check};

/// Creates the hidden directory in which the partition `target` is written, and returns its path. A target
/// can have one writer at a time.
///
/// # Errors
/// [`LogError::Usage`] if the hidden directory exists: it belongs to another writer or to one that was
/// killed. Nothing shows which, so removing it is up to the caller. [`LogError::Io`] if the target exists and
/// is not an empty directory, or the directory cannot be created.
pub fn begin_partition(target: impl AsRef<Path>) -> LogResult<PathBuf> {
    let target = target.as_ref();
    refuse_existing(target)?;
    let directory = hidden_beside(target);
    if let Some(parent) = directory.parent() {
        fs::create_dir_all(parent).map_err(|e| LogError::io(parent, e))?;
    }
    match fs::create_dir(&directory) {
        Ok(()) => Ok(directory),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(LogError::Usage(format!(
            "{} exists: another writer is at work, or was killed; remove it if no writer is running",
            directory.display()
        ))),
        Err(error) => Err(LogError::io(&directory, error)),
    }
}

/// Writes batches of one partition into segments with their `.index` and `.timeindex`; [`finish_partition`]
/// writes the sidecars that span segments. Memory: a buffer of 1 MiB, the open segment's index entries, and
/// the summaries.
#[derive(Debug)]
pub struct PartitionWriter {
    directory: PathBuf,
    options: WriteOptions,
    segment: SegmentWriter,
    finished: Vec<SegmentSummary>,
    modified: Option<SystemTime>,
    /// That of the last batch; 0 at first.
    leader_epoch: i32,
    failed: bool,
}

impl PartitionWriter {
    /// Creates the first segment, with this base offset: the log's (or the part's) first offset. `directory`,
    /// created if it does not exist, is that of [`begin_partition`] or one inside it.
    ///
    /// # Errors
    /// [`LogError::Usage`] for options or offsets that are invalid in Kafka; [`LogError::Io`], also if the
    /// segment exists, which is not overwritten.
    pub fn create(directory: impl AsRef<Path>, base_offset: i64, options: WriteOptions) -> LogResult<Self> {
        let directory = directory.as_ref();
        if base_offset < 0 {
            return Err(LogError::Usage(format!("base offset {base_offset} is negative")));
        }
        if i32::try_from(options.segment_bytes).is_err() || options.segment_index_bytes < 24 {
            let why = "segment_bytes must be less than 2^31 and segment_index_bytes at least 24";
            return Err(LogError::Usage(why.into()));
        }
        fs::create_dir_all(directory).map_err(|e| LogError::io(directory, e))?;
        Ok(Self {
            directory: directory.to_owned(),
            options,
            segment: SegmentWriter::create(directory, base_offset, &options)?,
            finished: Vec::new(),
            modified: None,
            leader_epoch: 0,
            failed: false,
        })
    }

    /// The smallest offset the next batch can have.
    #[must_use]
    pub fn next_offset(&self) -> i64 {
        self.segment.next_offset()
    }

    /// The number of segments so far, including the open one.
    #[must_use]
    pub fn segments(&self) -> usize {
        self.finished.len() + 1
    }

    /// Sets the time at which the following batches were written: a segment's file gets that of its last
    /// batch as its modification time, as from a broker's cleaner. A broker uses it where batches have no
    /// timestamp (magic 0): for retention, and in `LogSegment.largestTimestamp`.
    pub fn set_modified(&mut self, modified: SystemTime) {
        self.modified = Some(modified);
    }

    /// Appends a batch, to a new segment if this one has no room for it. Its CRC is checked. For a compressed
    /// magic 0 or 1 message, its last offset is checked but its first is not. A batch of magic 2 stays as it is,
    /// but without a leader epoch it gets that of the batch before it, or 0: a follower refuses such a batch
    /// (`LeaderEpochFileCache.assign`), so that the partition would have no other replica.
    ///
    /// # Errors
    /// [`LogError::Format`] for a batch with a wrong CRC, offsets that do not follow the previous ones or
    /// more than `segment_bytes`, and for a control batch of a producer that does not end a transaction: the
    /// batch is not written, and the writer can be used further. After [`LogError::Io`] it cannot.
    pub fn append(&mut self, batch: &Batch<'_>) -> LogResult<()> {
        self.refuse_failed()?;
        check(batch, self.next_offset(), &self.options).map_err(|error| self.format(error))?;
        if batch.as_v2().is_none_or(|batch| batch.partition_leader_epoch() >= 0) {
            return self.write(batch);
        }
        let mut data = batch.as_bytes().to_vec();
        set_partition_leader_epoch(&mut data, self.leader_epoch).map_err(|error| self.format(error))?;
        let batch = Batch::from_frame(&data, batch.position()).map_err(|error| self.format(error))?;
        self.write(&batch)
    }

    fn write(&mut self, batch: &Batch<'_>) -> LogResult<()> {
        self.failed = true;
        self.roll_for(batch)?;
        let appended = self.segment.append(batch, self.modified);
        if let (Ok(()), Some(batch)) = (&appended, batch.as_v2()) {
            self.leader_epoch = batch.partition_leader_epoch();
        }
        self.failed = matches!(appended, Err(LogError::Io { .. }));
        appended
    }

    /// Appends all batches in `data`; returns their number.
    ///
    /// # Errors
    /// The errors of [`append`](Self::append), and [`LogError::Format`] for bytes that are not a whole batch. The
    /// batches before the bad one have been appended.
    pub fn append_all(&mut self, data: &[u8]) -> LogResult<u64> {
        let mut count = 0;
        let mut batches = Batches::new(data);
        for batch in &mut batches {
            let batch = batch.map_err(|error| self.format(error))?;
            self.append(&batch)?;
            count += 1;
        }
        match data.len() as u64 - batches.next_position() {
            0 => Ok(count),
            cut => {
                let error = Error::new(ErrorKind::InvalidRecord("the last batch is incomplete"));
                Err(self.format(error.at_position(data.len() as u64 - cut)))
            }
        }
    }

    /// Closes and syncs the last segment; returns the summaries of all segments.
    ///
    /// # Errors
    /// [`LogError::Io`]; [`LogError::Usage`] if writing failed before.
    pub fn finish(mut self) -> LogResult<Vec<SegmentSummary>> {
        self.refuse_failed()?;
        self.finished.push(self.segment.finish()?);
        Ok(self.finished)
    }

    /// Like `UnifiedLog.maybeRoll`: a new segment begins at the batch's first offset, or at the log's end if
    /// the first offset would require decompression.
    fn roll_for(&mut self, batch: &Batch<'_>) -> LogResult<()> {
        if !self.segment.should_roll(batch, &self.options) {
            return Ok(());
        }
        let base_offset = match batch {
            Batch::V2(batch) => batch.base_offset(),
            Batch::Legacy(batch) => {
                self.next_offset().max(batch.last_offset().saturating_sub(i32::MAX.into()))
            }
        };
        let next = SegmentWriter::create(&self.directory, base_offset, &self.options)?;
        let full = std::mem::replace(&mut self.segment, next);
        self.finished.push(full.finish()?);
        Ok(())
    }

    fn format(&self, error: Error) -> LogError {
        LogError::Format { path: self.segment.path().to_owned(), error }
    }

    fn refuse_failed(&self) -> LogResult<()> {
        if self.failed {
            return Err(LogError::Usage(format!(
                "{}: the segment is incomplete, since writing it failed",
                self.segment.path().display()
            )));
        }
        Ok(())
    }
}

/// Makes the partition `target` from the segments that writers wrote in or below the directory of
/// [`begin_partition`]: joins them in offset order, writes `.txnindex`, `.snapshot`,
/// `leader-epoch-checkpoint` and, if `topic_id` is given, `partition.metadata`, syncs, and renames the
/// directory to the target.
///
/// Files that belong to no segment in `summaries` (those of failed tasks) are removed, and so are empty
/// segments that begin before the end of another: they were written from damage alone. With `epochs_of`, the
/// directory the segments come from, the leader epochs extend that directory's checkpoint, if there is one:
/// it has epochs of which no batch is left.
///
/// # Errors
/// [`LogError::Usage`] for segments that overlap, are elsewhere or do not have the size in their summary, and
/// for a malformed topic ID; [`LogError::Io`]. The target exists only after success.
pub fn finish_partition(
    target: impl AsRef<Path>,
    summaries: &[SegmentSummary],
    topic_id: Option<&str>,
    epochs_of: Option<&Location>,
) -> LogResult<()> {
    let target = target.as_ref();
    refuse_existing(target)?;
    let directory = hidden_beside(target);
    let mut segments: Vec<_> = summaries.iter().collect();
    segments.sort_by_key(|segment| (segment.base_offset, segment.batches == 0));
    let (mut last_base, mut end) = (-1, 0);
    let mut keep = HashSet::new();
    let mut write = |(name, data): SidecarFile| {
        // An earlier attempt that failed may have left it.
        remove_file(&directory.join(&name))?;
        write_file(&directory.join(&name), &data)?;
        keep.insert(name);
        Ok(())
    };
    let mut fold = PartitionFold::new(epochs_of.map(existing_epochs).unwrap_or_default(), None);
    segments.retain(|segment| {
        let continues_log = segment.base_offset > last_base && segment.base_offset >= end;
        if continues_log || segment.batches > 0 {
            (last_base, end) = (segment.base_offset, segment.next_offset);
        }
        continues_log || segment.batches > 0
    });
    for segment in &segments {
        fold.add(segment, &mut write)?;
    }
    fold.finish().into_iter().try_for_each(&mut write)?;
    if let Some(id) = topic_id {
        write(("partition.metadata".into(), partition_metadata(id)?))?;
    }
    for segment in segments {
        gather(segment, &directory, &mut keep)?;
    }
    remove_others(&directory, &keep)?;
    sync_directory(&directory)?;
    fs::rename(&directory, target).map_err(|e| LogError::io(target, e))?;
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_directory(parent),
        _ => sync_directory(Path::new(".")),
    }
}

/// Moves a segment's files up into the partition's directory.
fn gather(segment: &SegmentSummary, directory: &Path, keep: &mut HashSet<String>) -> LogResult<()> {
    let from = Path::new(&segment.directory);
    if !from.starts_with(directory) {
        let (from, directory) = (from.display(), directory.display());
        return Err(LogError::Usage(format!("the segment in {from} was not written in {directory}")));
    }
    let stem = format!("{:020}", segment.base_offset);
    let log = from.join(format!("{stem}.log"));
    let size = local::size(&log).map_err(|e| LogError::io(&log, e))?;
    if size != segment.size {
        let why = format!("{}: {size} bytes, but its summary has {}", log.display(), segment.size);
        return Err(LogError::Usage(why));
    }
    for ending in ["log", "index", "timeindex"] {
        let name = format!("{stem}.{ending}");
        if from != directory {
            let path = from.join(&name);
            fs::rename(&path, directory.join(&name)).map_err(|e| LogError::io(&path, e))?;
        }
        keep.insert(name);
    }
    Ok(())
}

fn remove_others(directory: &Path, keep: &HashSet<String>) -> LogResult<()> {
    for path in local::list(directory).map_err(|e| LogError::io(directory, e))? {
        if !keep.contains(&*path.file_name().unwrap_or_default().to_string_lossy()) {
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.map_err(|e| LogError::io(&path, e))?;
        }
    }
    Ok(())
}

/// Refuses a target that exists, unless it is an empty directory.
fn refuse_existing(target: &Path) -> LogResult<()> {
    match local::list(target).map(|entries| entries.is_empty()) {
        Ok(true) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() != io::ErrorKind::NotADirectory => Err(LogError::io(target, error)),
        _ => Err(LogError::io(target, io::ErrorKind::AlreadyExists.into())),
    }
}

fn partition_metadata(id: &str) -> LogResult<Vec<u8>> {
    let is_id = id.len() == 22 && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if !is_id {
        return Err(LogError::Usage(format!(
            "{id:?} is not a topic id: expected 22 characters of URL-safe base64"
        )));
    }
    let metadata = PartitionMetadata { version: 0, topic_id: id.to_owned() };
    Ok(write_partition_metadata(&metadata).into_bytes())
}
