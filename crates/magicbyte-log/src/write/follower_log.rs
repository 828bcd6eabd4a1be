//! The log of a partition that follows another one: whole batches are appended as they come, byte for byte
//! (`UnifiedLog.appendAsFollower`).

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use magicbyte::{Batch, Batches, Error, ErrorKind};
use serde::{Deserialize, Serialize};

use crate::error::{LogError, LogResult};
use crate::problem::LISTED;
use crate::segment::reader::{Piece, SegmentReader};
use crate::write::open_transactions::{OpenTransaction, OpenTransactions};

const LOG_SUFFIX: &str = "log";

/// The end of a log in a directory, which exists. It has no indexes: a broker that opens the log makes them.
#[derive(Debug)]
pub struct FollowerLog {
    directory: PathBuf,
    segment_bytes: u64,
    active: Option<ActiveSegment>,
    appended: AppendedBatches,
    open: OpenTransactions,
}

/// The segment that grows.
#[derive(Debug)]
struct ActiveSegment {
    base_offset: i64,
    path: Arc<Path>,
    file: File,
    size: u64,
}

/// The sums of batches that were appended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AppendedBatches {
    /// The offset after the last batch.
    pub next_offset: i64,
    /// The base offset in the name of the segment that grows; None before the first batch.
    pub active_segment: Option<i64>,
    /// Bytes.
    pub size: u64,
    /// Number of batches.
    pub batches: u64,
    /// Records that the headers announce. Messages of magic 0 and 1 count as one, whatever is inside.
    pub records: u64,
    /// The leader epochs, and the offset at which each begins.
    pub leader_epochs: Vec<(i32, i64)>,
    /// The highest producer id, or -1.
    pub max_producer_id: i64,
    /// The transactions that are open at the end, in the order of their beginnings.
    pub open_transactions: Vec<OpenTransaction>,
    /// The first batches whose CRC does not hold.
    pub damaged: Vec<DamagedBatch>,
    /// The number of those that are not listed.
    pub damaged_left_out: u64,
    /// The last batch whose CRC holds.
    #[serde(skip)]
    pub last_batch: Option<BatchInFile>,
}

/// The place of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchInFile {
    /// The path of the segment.
    pub path: Arc<Path>,
    /// The bytes of the batch in it.
    pub range: Range<u64>,
}

impl BatchInFile {
    /// Reads the batch.
    ///
    /// # Errors
    /// If the segment cannot be read, or does not have these bytes.
    pub fn read(&self) -> LogResult<Vec<u8>> {
        let mut data = vec![0; (self.range.end - self.range.start) as usize];
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.range.start))?;
            file.read_exact(&mut data)
        });
        read.map_err(|error| LogError::io(&self.path, error))?;
        Ok(data)
    }
}

/// A batch that was appended as it is although its CRC does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DamagedBatch {
    /// The offset after the batch before it.
    pub first_offset: i64,
    /// Its last offset.
    pub last_offset: i64,
    /// The reason.
    pub message: String,
}

impl AppendedBatches {
    fn new(next_offset: i64, active_segment: Option<i64>) -> Self {
        Self {
            next_offset,
            active_segment,
            size: 0,
            batches: 0,
            records: 0,
            leader_epochs: Vec::new(),
            max_producer_id: -1,
            open_transactions: Vec::new(),
            damaged: Vec::new(),
            damaged_left_out: 0,
            last_batch: None,
        }
    }

    /// Adds the batch at a position of a segment. Its CRC was checked, with this result.
    fn add(&mut self, batch: &Batch<'_>, path: &Arc<Path>, position: u64, checked: Result<(), Error>) {
        if checked.is_ok() {
            let range = position..position + batch.size_in_bytes() as u64;
            self.last_batch = Some(BatchInFile { path: Arc::clone(path), range });
        }
        if let Err(error) = checked {
            if self.damaged.len() < LISTED {
                self.damaged.push(DamagedBatch {
                    first_offset: self.next_offset,
                    last_offset: batch.last_offset(),
                    message: error.to_string(),
                });
            } else {
                self.damaged_left_out += 1;
            }
        }
        let base_offset = batch.as_v2().map_or(self.next_offset, |batch| batch.base_offset());
        let epoch = batch.partition_leader_epoch();
        if epoch >= 0 && self.leader_epochs.last().is_none_or(|(last, _)| *last < epoch) {
            self.leader_epochs.push((epoch, base_offset));
        }
        let producer_id = batch.as_v2().map_or(-1, |batch| batch.producer_id());
        self.max_producer_id = self.max_producer_id.max(producer_id);
        self.next_offset = batch.last_offset().saturating_add(1);
        self.size += batch.size_in_bytes() as u64;
        self.batches += 1;
        self.records += batch.as_v2().map_or(1, |batch| u64::try_from(batch.record_count()).unwrap_or(0));
    }
}

impl FollowerLog {
    /// The log in a directory, which goes on at an offset. The segment with this base offset in its name gets batches
    /// until it has `segment_bytes`; with None, or when it has them, the next batch begins a segment. Nothing is opened
    /// before there is a batch.
    pub fn new(
        directory: impl Into<PathBuf>,
        active_segment: Option<i64>,
        next_offset: i64,
        segment_bytes: u64,
    ) -> Self {
        let appended = AppendedBatches::new(next_offset, active_segment);
        let open = OpenTransactions::default();
        Self { directory: directory.into(), segment_bytes, active: None, appended, open }
    }

    /// The log with these transactions, which are open where it goes on.
    #[must_use]
    pub fn with_open_transactions(self, open: Vec<OpenTransaction>) -> Self {
        Self { open: OpenTransactions::new(open), ..self }
    }

    /// Appends whole batches, whose CRCs are checked: a batch that fails is appended as it is and noted.
    ///
    /// # Errors
    /// If the batches do not follow those of the log, or cannot be written; then only some of them were appended.
    pub fn append(&mut self, records: &[u8]) -> LogResult<()> {
        if let (None, Some(base_offset)) = (&self.active, self.appended.active_segment) {
            let mut options = OpenOptions::new();
            self.active = Some(ActiveSegment::open(&self.directory, base_offset, options.append(true))?);
        }
        let mut batches = Batches::new(records);
        // The batches from here on are still to be written.
        let mut start = 0;
        loop {
            let position = batches.next_position() as usize;
            let Some(batch) = batches.next() else { break };
            let batch = batch.map_err(|error| self.format_error(error))?;
            let base_offset = batch.as_v2().map_or(self.appended.next_offset, |batch| batch.base_offset());
            let expected = self.appended.next_offset;
            if batch.last_offset() < expected || (self.active.is_some() && base_offset < expected) {
                let error = Error::new(ErrorKind::OffsetOutOfOrder { found: base_offset, expected });
                return Err(self.format_error(error));
            }
            let unwritten = (position - start) as u64;
            if self.needs_segment(unwritten, &batch) {
                self.write(&records[start..position])?;
                start = position;
                // Where a cleaner has removed the first batches, the log still begins where it did.
                let is_near = self.active.is_none() && fits(&batch, expected);
                self.roll(if is_near { base_offset.min(expected) } else { base_offset })?;
            }
            let checked = batch.verify();
            if let (Ok(()), Some(batch)) = (&checked, batch.as_v2()) {
                self.open.add(batch);
            }
            if let Some(active) = &self.active {
                let position = active.size + (position - start) as u64;
                self.appended.add(&batch, &active.path, position, checked);
            }
        }
        self.write(&records[start..batches.next_position() as usize])
    }

    /// True if a batch does not belong into the active segment (`LogSegment.shouldRoll`).
    fn needs_segment(&self, unwritten: u64, batch: &Batch<'_>) -> bool {
        self.active.as_ref().is_none_or(|active| {
            let size = active.size + unwritten;
            let is_full = size > 0 && size + batch.size_in_bytes() as u64 > self.segment_bytes;
            is_full || !fits(batch, active.base_offset)
        })
    }

    fn roll(&mut self, base_offset: i64) -> LogResult<()> {
        let mut options = OpenOptions::new();
        self.active =
            Some(ActiveSegment::open(&self.directory, base_offset, options.append(true).create_new(true))?);
        self.appended.active_segment = Some(base_offset);
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> LogResult<()> {
        let Some(active) = self.active.as_mut().filter(|_| !bytes.is_empty()) else {
            return Ok(());
        };
        active.file.write_all(bytes).map_err(|error| LogError::io(&active.path, error))?;
        active.size += bytes.len() as u64;
        Ok(())
    }

    fn format_error(&self, error: Error) -> LogError {
        LogError::Format { path: self.directory.clone(), error }
    }

    /// Notes that there is no batch before this offset.
    pub fn skip_to(&mut self, offset: i64) {
        self.appended.next_offset = self.appended.next_offset.max(offset);
    }

    /// The sums of the batches that were appended.
    #[must_use]
    pub fn into_appended(self) -> AppendedBatches {
        AppendedBatches { open_transactions: self.open.into_sorted(), ..self.appended }
    }
}

/// True if a segment with this base offset can have the batch: indexes have offsets relative to it in 32 bits.
fn fits(batch: &Batch<'_>, base_offset: i64) -> bool {
    batch.last_offset().checked_sub(base_offset).is_some_and(|relative| i32::try_from(relative).is_ok())
}

impl ActiveSegment {
    fn open(directory: &Path, base_offset: i64, options: &OpenOptions) -> LogResult<Self> {
        let path = directory.join(format!("{base_offset:020}.{LOG_SUFFIX}"));
        let opened = options.open(&path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (size, file) = opened.map_err(|error| LogError::io(&path, error))?;
        Ok(Self { base_offset, path: path.into(), file, size })
    }
}

/// Finds the whole batches with good CRCs at `position` of a segment and after it, which have the offset `next_offset`
/// or later ones, up to the first batch that begins at `end_offset` or later. Returns the position after the last one,
/// and their sums: what a process that was killed has finished. `open` has the transactions that are open before them.
///
/// # Errors
/// If the segment cannot be read.
pub fn whole_batches(
    path: &Path,
    position: u64,
    next_offset: i64,
    end_offset: i64,
    open: Vec<OpenTransaction>,
) -> LogResult<(u64, AppendedBatches)> {
    let io = |error| LogError::io(path, error);
    let size = fs::metadata(path).map_err(io)?.len();
    let segment = Arc::from(path);
    let mut end = position;
    let mut found = AppendedBatches::new(next_offset, None);
    let mut open = OpenTransactions::new(open);
    for piece in SegmentReader::open(path, size, position..size, next_offset, i64::MAX).map_err(io)? {
        let Piece::Batch(batch) = piece.map_err(io)? else { break };
        let view = batch.batch();
        if view.as_v2().map_or(view.last_offset(), |batch| batch.base_offset()) >= end_offset {
            break;
        }
        end = batch.position() + batch.data().len() as u64;
        if let Some(batch) = view.as_v2() {
            open.add(batch);
        }
        found.add(&view, &segment, batch.position(), Ok(()));
    }
    found.open_transactions = open.into_sorted();
    Ok((end, found))
}
