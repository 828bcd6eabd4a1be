//! One segment being written: its `.log`, and its two indexes on closing.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use magicbyte::{Batch, Error, ErrorKind, Result};

use crate::error::{LogError, LogResult};
use crate::write::durable::write_file;
use crate::write::options::WriteOptions;
use crate::write::segment_fold::{FoldedSegment, SegmentFold, SegmentSummary};

const BUFFER: usize = 1 << 20;

/// An open segment. Its caller checks that batches are in order and fit.
#[derive(Debug)]
pub(crate) struct SegmentWriter {
    path: PathBuf,
    log: BufWriter<File>,
    fold: SegmentFold,
    /// Largest timestamp (ms) of the first batch, from which `segment.ms` is counted.
    first_timestamp: Option<i64>,
    /// The file's modification time on closing; None leaves the clock's.
    modified: Option<SystemTime>,
}

impl SegmentWriter {
    /// Creates the segment's `.log`, which must not exist.
    pub(crate) fn create(directory: &Path, base_offset: i64, options: &WriteOptions) -> LogResult<Self> {
        let path = directory.join(format!("{base_offset:020}.log"));
        let file = File::create_new(&path).map_err(|e| LogError::io(&path, e))?;
        let name = directory.display().to_string();
        Ok(Self {
            path,
            log: BufWriter::with_capacity(BUFFER, file),
            fold: SegmentFold::new(name, base_offset, options.index_interval_bytes),
            first_timestamp: None,
            modified: None,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn next_offset(&self) -> i64 {
        self.fold.next_offset()
    }

    /// True if the batch belongs in the next segment (`LogSegment.shouldRoll`, without jitter and without the
    /// wall clock).
    pub(crate) fn should_roll(&self, batch: &Batch<'_>, options: &WriteOptions) -> bool {
        let size = self.fold.size();
        let waited = match self.first_timestamp {
            Some(first) if first >= 0 => batch.max_timestamp().saturating_sub(first),
            _ => 0,
        };
        let relative = batch.last_offset().saturating_sub(self.fold.base_offset());
        size + batch.size_in_bytes() as u64 > options.segment_bytes.into()
            || size > 0 && options.segment_ms.is_some_and(|limit| waited > limit)
            || self.fold.is_index_full(options.segment_index_bytes)
            || relative > i32::MAX.into()
    }

    /// Appends a batch that was written at this time. After an I/O error the segment is unusable.
    pub(crate) fn append(&mut self, batch: &Batch<'_>, modified: Option<SystemTime>) -> LogResult<()> {
        self.fold.add(batch).map_err(|error| LogError::Format { path: self.path.clone(), error })?;
        self.first_timestamp.get_or_insert(batch.max_timestamp());
        self.modified = modified;
        self.log.write_all(batch.as_bytes()).map_err(|e| LogError::io(&self.path, e))
    }

    /// Writes the indexes and syncs all three files.
    pub(crate) fn finish(self) -> LogResult<SegmentSummary> {
        let io = |error| LogError::io(&self.path, error);
        let file = self.log.into_inner().map_err(|e| io(e.into_error()))?;
        if let Some(modified) = self.modified {
            file.set_modified(modified).map_err(io)?;
        }
        file.sync_all().map_err(io)?;
        let FoldedSegment { offset_index, time_index, summary } =
            self.fold.finish().map_err(|error| LogError::Format { path: self.path.clone(), error })?;
        write_file(&self.path.with_extension("index"), &offset_index)?;
        write_file(&self.path.with_extension("timeindex"), &time_index)?;
        Ok(summary)
    }
}

/// Checks that the batch is intact and continues the log (`UnifiedLog.analyzeAndValidateRecords`).
pub(crate) fn check(batch: &Batch<'_>, next_offset: i64, options: &WriteOptions) -> Result<()> {
    batch.verify()?;
    let (first, last) = (batch.stored_offset(), batch.last_offset());
    if first < next_offset || last < first {
        let (found, expected) = if first < next_offset { (first, next_offset) } else { (last, first) };
        return Err(batch.place(ErrorKind::OffsetOutOfOrder { found, expected }.into()));
    }
    let (size, max) = (batch.size_in_bytes() as i64, options.segment_bytes.into());
    if size > max {
        let too_large = Error::new(ErrorKind::InvalidSize { found: size, min: 0, max });
        return Err(batch.place(too_large.in_field("segment.bytes")));
    }
    Ok(())
}
