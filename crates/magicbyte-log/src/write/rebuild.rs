//! Rebuilds all sidecars of a partition from its segments alone, byte for byte as a broker does after a crash
//! (`LogLoader.recoverLog`, `LogSegment.recover`, `UnifiedLog.rebuildProducerState`).

use std::collections::BTreeSet;
use std::path::Path;

use magicbyte::{Error, ErrorKind};

use crate::chunk::Chunk;
use crate::error::{LogError, LogResult};
use crate::listing::{Listing, Segment, list_partition};
use crate::segment::reader::{Piece, SegmentReader};
use crate::storage::location::Location;
use crate::storage::sidecars::read_sidecar;
use crate::write::durable::{is_unfinished, remove_file, replace_file, sync_directory};
use crate::write::partition_fold::{PartitionFold, SidecarFile, existing_epochs};
use crate::write::segment_fold::{DEFAULT_INDEX_INTERVAL_BYTES, FoldedSegment, SegmentFold};

/// Options of rebuilding sidecars.
#[derive(Clone, Copy, Debug)]
pub struct RebuildOptions {
    /// Bytes of log between two index entries: Kafka's `index.interval.bytes`.
    pub index_interval_bytes: u32,
    /// Expires producers between segments, as a rebuilding broker does. A producer expires if its last
    /// timestamp (ms) is not later than this, the broker's clock minus `producer.id.expiration.ms`. With
    /// None, no producer expires here, and the broker that loads the snapshot expires them.
    pub expired_until: Option<i64>,
}

impl Default for RebuildOptions {
    fn default() -> Self {
        Self { index_interval_bytes: DEFAULT_INDEX_INTERVAL_BYTES, expired_until: None }
    }
}

/// The change that [`rebuild_sidecars`] made to a file.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileChange {
    /// The file was missing.
    Created,
    /// The content was wrong.
    Changed,
    /// The content was right.
    Unchanged,
    /// The file is obsolete, or an interrupted run left it.
    Removed,
}

/// A file that [`rebuild_sidecars`] checked.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct RebuiltFile {
    /// The file name.
    pub file: String,
    /// The change.
    pub change: FileChange,
    /// The new size in bytes.
    pub size: u64,
}

/// Computes every sidecar of a partition's directory except `partition.metadata` and passes each to `sink`,
/// segment by segment. Memory: one segment's indexes and the producers. A tail after the last batch of the
/// last segment is ignored, since a broker truncates it.
///
/// # Errors
/// [`LogError::Format`] for bytes that are not an intact batch, and the errors of `sink`.
pub fn compute_sidecars(
    listing: &Listing,
    options: RebuildOptions,
    mut sink: impl FnMut(SidecarFile) -> LogResult<()>,
) -> LogResult<()> {
    listing.check_segments()?;
    let mut partition = PartitionFold::new(existing_epochs(&listing.location), options.expired_until);
    for (index, segment) in listing.segments.iter().enumerate() {
        let is_last = index + 1 == listing.segments.len();
        let folded = fold_segment(segment, &listing.location, is_last, options)?;
        let base_offset = segment.base_offset;
        sink((format!("{base_offset:020}.index"), folded.offset_index))?;
        sink((format!("{base_offset:020}.timeindex"), folded.time_index))?;
        partition.add(&folded.summary, &mut sink)?;
    }
    partition.finish().into_iter().try_for_each(sink)
}

/// Rebuilds the sidecars of a partition's directory in place. Each file is replaced atomically; obsolete
/// sidecars and files left by an interrupted run are removed. A dry run only reports. The segments are not
/// changed.
///
/// # Errors
/// The errors of [`compute_sidecars`]; [`LogError::Io`] if a file cannot be written.
pub fn rebuild_sidecars(
    directory: impl AsRef<Path>,
    options: RebuildOptions,
    dry_run: bool,
) -> LogResult<Vec<RebuiltFile>> {
    let directory = directory.as_ref();
    let listing = list_partition(directory, false)?;
    let mut stale: BTreeSet<_> = listing.sidecars.iter().map(|sidecar| sidecar.file.clone()).collect();
    stale.remove("partition.metadata");
    stale.extend(listing.ignored.iter().map(|file| file.file.clone()).filter(|file| is_unfinished(file)));
    let mut report = Vec::new();
    compute_sidecars(&listing, options, |(file, data)| {
        stale.remove(&file);
        let path = directory.join(&file);
        let change = match read_sidecar(&path) {
            Ok(Some(before)) if before == data => FileChange::Unchanged,
            Ok(None) => FileChange::Created,
            // An unreadable file is replaced, too.
            _ => FileChange::Changed,
        };
        if !dry_run && change != FileChange::Unchanged {
            replace_file(&path, &data)?;
        }
        report.push(RebuiltFile { file, change, size: data.len() as u64 });
        Ok(())
    })?;
    for file in stale {
        if !dry_run {
            remove_file(&directory.join(&file))?;
        }
        report.push(RebuiltFile { file, change: FileChange::Removed, size: 0 });
    }
    if !dry_run {
        sync_directory(directory)?;
    }
    Ok(report)
}

fn fold_segment(
    segment: &Segment,
    directory: &Location,
    is_last: bool,
    options: RebuildOptions,
) -> LogResult<FoldedSegment> {
    let path = segment.location.path();
    let format = |error| LogError::Format { path: path.to_owned(), error };
    let base_offset = segment.base_offset;
    let mut fold = SegmentFold::new(directory.to_string(), base_offset, options.index_interval_bytes);
    let chunk = Chunk::of(segment, base_offset, 0..segment.size);
    let pieces = SegmentReader::of_chunk(&chunk).map_err(|e| LogError::io(path, e))?;
    for piece in pieces {
        match piece.map_err(|e| LogError::io(path, e))? {
            Piece::Batch(batch) => {
                let batch = batch.batch();
                let (found, max) = (batch.last_offset(), base_offset.saturating_add(i32::MAX.into()));
                if found > max {
                    let beyond = ErrorKind::OffsetOutOfRange { found, min: base_offset, max };
                    return Err(format(batch.place(beyond.into())));
                }
                fold.add(&batch).map_err(format)?;
            }
            Piece::Tail { .. } if is_last => {}
            Piece::Tail { range, .. } => {
                let error = Error::new(ErrorKind::Garbage).at_position(range.start);
                return Err(format(error));
            }
            Piece::Quarantined { error, .. } => return Err(format(error)),
        }
    }
    fold.finish().map_err(format)
}
