//! The first step: a scan over one segment's batch headers. Nothing is decompressed except control batches
//! and the wrappers next to a gap, and CRCs are checked only where later steps rely on them (markers, the
//! first batches of transactions, borders). The first record of a control batch decides which marker it is
//! (`CompletedFetch.containsAbortMarker`).

use std::collections::{HashSet, VecDeque};
use std::io;
use std::path::Path;

use ::bytes::Bytes;

use crate::batch::Batch;
use crate::bytes::cursor::be;
use crate::compression::codec::Compression;
use crate::compression::decompressor::{DEFAULT_MAX_DECOMPRESSED_BYTES, Decompressor};
use crate::frame::{Frame, HEADER_SIZE_UP_TO_MAGIC};
use crate::log::chunk::{DEFAULT_CHUNK_BYTES, largest_offset};
use crate::log::error::{LogError, LogResult};
use crate::log::listing::Segment;
use crate::log::problem::{INDEX_BEYOND_LOG, Problem};
use crate::log::segment::blocks::Blocks;
use crate::log::segment::limits::Limits;
use crate::log::segment::salvage::Salvage;
use crate::log::storage::examine;
use crate::log::storage::file_info::{Found, ends_the_run};
use crate::log::storage::sidecars::{read_index, read_sidecar, sidecar_problem};
use crate::record::batch::RecordBatch;
use crate::record::batch_header::RECORD_BATCH_OVERHEAD;
use crate::record::control::{ControlRecord, ControlType};
use crate::sidecar::offset_index::{OFFSET_INDEX_ENTRY, parse_offset_index};
use crate::sidecar::producer_snapshot::parse_producer_snapshot;
use crate::sidecar::time_index::{TIME_INDEX_ENTRY, parse_time_index};
use crate::sidecar::transaction_index::{TransactionIndexEntry, parse_transaction_index};
use crate::state::leader_epochs::{EpochEntry, LeaderEpochs};
use crate::state::transactions::{TransactionEvent, Transactions};

/// Headers are small and close together, so blocks are small and batches are skipped rather than read.
const BLOCK: usize = 64 << 10;
/// How many of the last batches the scan can take back.
const LAST_BATCHES: usize = 64;
/// The distance between borders in a file that is far away, unless all of it is fetched: each costs the batches before it.
const REMOTE_BORDERS: u64 = 64 << 20;
/// A border requires that the CRCs of all batches in this many bytes before it hold.
const BEFORE_BORDER: u64 = 1 << 20;
/// Batches of more bytes are not loaded to check their CRC.
const MAX_CHECKED: usize = 64 << 20;

/// A batch that may start a chunk: its CRC and that of the batch before it hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Border {
    /// Position of the batch.
    pub position: u64,
    /// The offset after the last one of the batch before it.
    pub expected_offset: i64,
}

/// The findings from one segment's headers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Survey {
    /// The segment, as listed.
    pub segment: Segment,
    /// The number of batches in the chain of headers.
    pub batches: u64,
    /// The offset in the first batch's header (for a legacy wrapper, that of its last message).
    pub first_offset: Option<i64>,
    /// The last offset of the last batch whose CRC holds.
    pub last_offset: Option<i64>,
    /// Offsets missing between adjacent batches or, by its header, within a batch: they were compacted away.
    pub gaps: u64,
    /// The largest timestamp (ms) in any header; -1 if there is none.
    pub max_timestamp: i64,
    /// Where the last batch ends: the file's size if there is no tail.
    pub chain_end: u64,
    /// Where the last batch whose CRC holds ends.
    pub sound_end: u64,
    /// Borders, about one per 4 MiB, or per 64 MiB of a file that is far away and not decoded next.
    pub borders: Vec<Border>,
    /// Transactions' first batches and markers, in offset order.
    pub transactions: Vec<TransactionEvent>,
    /// Position and producer ID of transactional batches, each producer once after each border: a chunk needs
    /// the aborted transactions of these producers only.
    pub transactional: Vec<(u64, i64)>,
    /// Where leader epochs begin, according to the batches.
    pub leader_epochs: LeaderEpochs,
    /// The entries of the segment's `.txnindex`.
    pub transaction_index: Vec<TransactionIndexEntry>,
    /// Whether the file has lost its batches: it is empty, but not known to have been empty always or to have
    /// been emptied by Kafka's cleaner. Both leave an empty index beside it.
    pub emptied: bool,
    /// Sidecars that cannot be read, are malformed, or point past the segment.
    pub problems: Vec<Problem>,
    /// Why the file could not be read to its end, if so.
    pub unreadable: Option<String>,
    /// Whether this is a part of the survey ([`SurveyInParts`]): what is known of the bytes before the last border.
    pub is_part: bool,
}

impl Survey {
    fn new(segment: &Segment) -> Self {
        Self {
            segment: segment.clone(),
            batches: 0,
            first_offset: None,
            last_offset: None,
            gaps: 0,
            max_timestamp: -1,
            chain_end: 0,
            sound_end: 0,
            borders: Vec::new(),
            transactions: Vec::new(),
            transactional: Vec::new(),
            leader_epochs: LeaderEpochs::default(),
            transaction_index: Vec::new(),
            emptied: false,
            problems: Vec::new(),
            unreadable: None,
            is_part: false,
        }
    }

    /// Where the segment's offsets begin: at the offset in its name, or at the first offset inside if all are
    /// lower (a renamed file). The offsets of a KRaft snapshot begin at 0.
    #[must_use]
    pub fn base_offset(&self) -> i64 {
        let named = self.segment.base_offset;
        match (self.segment.is_checkpoint, self.last_offset) {
            (true, _) => 0,
            (false, Some(last)) if last < named => self.first_offset.unwrap_or(named).min(last),
            _ => named,
        }
    }

    fn add_problem(&mut self, ending: &str, kind: &str, message: String) {
        let file = self.segment.sidecar_path(ending);
        let file = file.file_name().unwrap_or_default().to_string_lossy();
        self.problems.push(self.segment.problem(&file, kind, message));
    }

    /// Checks the segment's sidecars and reports wrong ones; the log is read either way.
    fn check_sidecars(&mut self) -> LogResult<()> {
        let base = self.segment.base_offset;
        self.emptied = self.segment.size == 0 && !self.segment.is_checkpoint;
        if let Some(data) = self.read_index("index", OFFSET_INDEX_ENTRY)? {
            match parse_offset_index(&data, base) {
                Err(error) => self.add_problem("index", error.kind().name(), error.to_string()),
                Ok(entries) => {
                    self.emptied &= !entries.is_empty();
                    let beyond =
                        entries.iter().filter(|e| u64::from(e.position) >= self.chain_end.max(1)).count();
                    if beyond > 0 {
                        let message =
                            format!("{beyond} entries point past the end of the segment's last batch");
                        self.add_problem("index", INDEX_BEYOND_LOG, message);
                    }
                }
            }
        }
        if let Some(data) = self.read_index("timeindex", TIME_INDEX_ENTRY)?
            && let Err(error) = parse_time_index(&data, base)
        {
            self.add_problem("timeindex", error.kind().name(), error.to_string());
        }
        if let Some(data) = self.read_sidecar("txnindex")? {
            match parse_transaction_index(&data) {
                Ok(entries) => self.transaction_index = entries,
                Err(error) => self.add_problem("txnindex", error.kind().name(), error.to_string()),
            }
        }
        if let Some(data) = self.read_sidecar("snapshot")?
            && let Err(error) = parse_producer_snapshot(&data)
        {
            self.add_problem("snapshot", error.kind().name(), error.to_string());
        }
        Ok(())
    }

    /// The content of an index up to its last entry. It has at most one per batch, and at its end one more.
    fn read_index(&mut self, ending: &str, entry: usize) -> LogResult<Option<Vec<u8>>> {
        let reach = self.batches.saturating_add(1).saturating_mul(entry as u64);
        self.read(ending, |path| read_index(path, reach))
    }

    /// The content of a file beside the segment.
    fn read_sidecar(&mut self, ending: &str) -> LogResult<Option<Vec<u8>>> {
        self.read(ending, read_sidecar)
    }

    /// Reads a file beside the segment; one that cannot be read is reported.
    fn read(
        &mut self,
        ending: &str,
        read: impl FnOnce(&Path) -> io::Result<Option<Vec<u8>>>,
    ) -> LogResult<Option<Vec<u8>>> {
        let path = self.segment.sidecar_path(ending);
        read(&path).or_else(|error| {
            if ends_the_run(&error) {
                return Err(LogError::io(&path, error));
            }
            // The listing has reported what is not a regular file.
            if matches!(examine(&path), Ok(Found::File(_))) {
                let (kind, message) = sidecar_problem(&error);
                self.add_problem(ending, kind, message);
            }
            Ok(None)
        })
    }
}

/// Receives the batches of a survey's scan.
pub(crate) trait HeaderVisitor: Send {
    /// Receives the header of the log's next batch and, for a control batch, its first record if that can be
    /// read.
    fn visit(&mut self, batch: &Batch<'_>, size: usize, control: Option<&Control>);
}

/// Scans the headers of a segment. After damage the scan resumes where a reader would.
///
/// # Errors
/// [`LogError::Io`] if no file can be opened or memory is exhausted. Damaged bytes are skipped.
pub fn survey_segment(segment: &Segment) -> LogResult<Survey> {
    survey_with(segment, None)
}

/// Like [`survey_segment`], with a visitor that receives each batch once it is certain to be part of the log.
pub(crate) fn survey_with(segment: &Segment, visitor: Option<&mut dyn HeaderVisitor>) -> LogResult<Survey> {
    let mut scan = Scan::begin(segment, visitor, false)?;
    while scan.step()? {}
    scan.end()
}

/// The survey of a segment that is decoded next, from its first to its last byte, while the survey goes on: of a store, all of
/// it is fetched, ahead of the scan, and kept for the decoding.
///
/// An iterator over what is certain so far, each time a part of the segment was scanned, and last the survey of all of it. Parts
/// have offsets and borders only, enough for a plan that is `read_uncommitted`. Ends at the first error, one of those of
/// [`survey_segment`].
pub struct SurveyInParts {
    /// None at the end.
    scan: Option<Scan<'static>>,
    /// At least this many bytes, from one part to the next.
    part_bytes: u64,
    /// Where the last part ended.
    given: u64,
}

impl SurveyInParts {
    /// Opens a segment; a part is at least `part_bytes` longer than the one before.
    ///
    /// # Errors
    /// Those of [`survey_segment`].
    pub fn begin(segment: &Segment, part_bytes: u64) -> LogResult<Self> {
        Ok(Self { scan: Some(Scan::begin(segment, None, true)?), part_bytes, given: 0 })
    }
}

impl Iterator for SurveyInParts {
    type Item = LogResult<Survey>;

    fn next(&mut self) -> Option<LogResult<Survey>> {
        let mut scan = self.scan.take()?;
        loop {
            match scan.step() {
                Ok(true) => {}
                Ok(false) => return Some(scan.end()),
                Err(error) => return Some(Err(error)),
            }
            if let Some((end, part)) = scan.part(self.given.saturating_add(self.part_bytes)) {
                (self.given, self.scan) = (end, Some(scan));
                return Some(Ok(part));
            }
        }
    }
}

impl std::fmt::Debug for SurveyInParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SurveyInParts").field("given", &self.given).finish_non_exhaustive()
    }
}

struct Scan<'a> {
    visitor: Option<&'a mut dyn HeaderVisitor>,
    /// The distance between borders.
    borders_apart: u64,
    blocks: Blocks,
    position: u64,
    limits: Limits,
    salvage: Salvage,
    /// Damage before this position has been dealt with: the scan does not go back past it.
    resolved: u64,
    transactions: Transactions,
    /// The producers with transactional data since the last border.
    since_border: HashSet<i64>,
    decompressor: Decompressor,
    /// The last batches, each with the state of the survey before it.
    recent: VecDeque<Recent>,
    survey: Survey,
}

/// The first record of a control batch. Its `kind` is None in a batch that compaction emptied.
pub(crate) struct Control {
    pub(crate) kind: Option<ControlType>,
    /// The coordinator epoch of a marker whose value can be read.
    pub(crate) coordinator_epoch: Option<i32>,
    /// In milliseconds.
    pub(crate) timestamp: i64,
}

impl Control {
    /// Whether the record commits or aborts; None if neither. Only the key counts, as in Kafka.
    pub(crate) fn committed(&self) -> Option<bool> {
        match self.kind {
            Some(ControlType::Commit) => Some(true),
            Some(ControlType::Abort) => Some(false),
            _ => None,
        }
    }
}

/// A batch's header, and the state to restore if the batch is taken back.
struct Recent {
    position: u64,
    header: Bytes,
    /// The first record of a control batch, if it could be read.
    control: Option<Control>,
    size: usize,
    last_offset: i64,
    /// Whether the CRC holds, once checked.
    crc_holds: Option<bool>,
    expected: i64,
    batches: u64,
    first_offset: Option<i64>,
    gaps: u64,
    max_timestamp: i64,
    borders: usize,
    transactions: usize,
    transactional: usize,
}

impl<'a> Scan<'a> {
    fn begin(
        segment: &Segment,
        visitor: Option<&'a mut dyn HeaderVisitor>,
        is_decoded_next: bool,
    ) -> LogResult<Self> {
        let path = Path::new(&segment.path);
        let base = if segment.is_checkpoint { 0 } else { segment.base_offset };
        let blocks = Blocks::open(path, segment.size, segment.version.as_deref(), BLOCK)
            .map_err(|error| LogError::io(path, error))?;
        let is_fetched = is_decoded_next && blocks.fetch_for_the_next();
        Ok(Self {
            visitor,
            borders_apart: if blocks.is_remote() && !is_fetched {
                REMOTE_BORDERS
            } else {
                DEFAULT_CHUNK_BYTES
            },
            blocks,
            position: 0,
            limits: Limits {
                expected: i64::MIN,
                max_offset: largest_offset(segment, base),
                max_batch_size: DEFAULT_MAX_DECOMPRESSED_BYTES,
            },
            salvage: Salvage::new(0, segment.size),
            resolved: 0,
            transactions: Transactions::default(),
            since_border: HashSet::new(),
            decompressor: Decompressor::new(),
            recent: VecDeque::with_capacity(LAST_BATCHES),
            survey: Survey::new(segment),
        })
    }

    /// Processes the next header; false at the end of the log.
    fn step(&mut self) -> LogResult<bool> {
        self.next_header().map_err(|error| self.failed(error))
    }

    /// The survey, after the last step.
    fn end(mut self) -> LogResult<Survey> {
        self.find_last_offset().map_err(|error| self.failed(error))?;
        while let Some(recent) = self.recent.pop_front() {
            self.pass_on(&recent);
        }
        self.survey.check_sidecars()?;
        self.survey.unreadable = self.blocks.failure().map(ToString::to_string);
        Ok(self.survey)
    }

    fn failed(&self, error: io::Error) -> LogError {
        LogError::io(Path::new(&self.survey.segment.path), error)
    }

    /// What no damage to come can take back, if that reaches `from`, and where it ends. None as well while the segment's
    /// name may be wrong: all of its offsets tell where they begin.
    fn part(&self, from: u64) -> Option<(u64, Survey)> {
        let recent = self.recent.front()?;
        let borders = &self.survey.borders[..recent.borders];
        let last = borders.last().filter(|border| border.position >= from)?;
        let part = Survey {
            first_offset: recent.first_offset,
            last_offset: Some(last.expected_offset - 1),
            borders: borders.to_vec(),
            is_part: true,
            ..Survey::new(&self.survey.segment)
        };
        (last.expected_offset > self.survey.segment.base_offset).then_some((last.position, part))
    }

    fn next_header(&mut self) -> io::Result<bool> {
        let position = self.position;
        if position >= self.blocks.size() {
            return Ok(false);
        }
        let header = self.blocks.at(position, RECORD_BATCH_OVERHEAD)?;
        let size = match Frame::read(&header) {
            Ok(Frame::Whole { size }) => size,
            Ok(Frame::Cut { needed }) => header.len() + needed as usize,
            Err(_) => return self.recover(None),
        };
        let end = position + size as u64;
        if end > self.blocks.size() || header.len() < HEADER_SIZE_UP_TO_MAGIC {
            return self.recover(None);
        }
        // The batch is its header alone: its fields are readable, its records are not.
        let Ok(batch) = Batch::from_header(&header, position) else { return self.recover(None) };
        let (first, last) = (batch.stored_offset(), batch.last_offset());
        if self.limits.expected == i64::MIN {
            self.limits.expected = self.first_expected(first, end)?;
        }
        if self.salvage.misfit(&mut self.blocks, &self.limits, (first, last), position..end)?.is_some() {
            if self.verified(position, size)?.is_none() || self.recent.iter().any(|r| r.crc_holds.is_none()) {
                return self.recover(Some(end));
            }
            // The CRC holds but the offset is out of order: a reader skips only this batch.
            self.position = end;
            return Ok(true);
        }
        if self.survey.borders.last().map_or(0, |border| border.position) + self.borders_apart <= position {
            self.add_border(position, size)?;
        }
        if self.recent.len() == LAST_BATCHES
            && let Some(recent) = self.recent.pop_front()
        {
            self.pass_on(&recent);
        }
        self.recent.push_back(Recent {
            position,
            header: header.clone(),
            control: None,
            size,
            last_offset: last,
            crc_holds: None,
            expected: self.limits.expected,
            batches: self.survey.batches,
            first_offset: self.survey.first_offset,
            gaps: self.survey.gaps,
            max_timestamp: self.survey.max_timestamp,
            borders: self.survey.borders.len(),
            transactions: self.survey.transactions.len(),
            transactional: self.survey.transactional.len(),
        });
        self.survey.batches += 1;
        let is_wrapper =
            batch.magic() < 2 && batch.compression().is_ok_and(|codec| codec != Compression::None);
        if self.survey.chain_end == position && position > 0 && !is_wrapper {
            self.survey.gaps += first.saturating_sub(self.limits.expected) as u64;
        }
        self.survey.first_offset.get_or_insert(first);
        self.survey.max_timestamp = self.survey.max_timestamp.max(batch.max_timestamp());
        if let Batch::V2(batch) = batch {
            self.read_state(&batch, position, size)?;
        }
        self.limits.expected = last.saturating_add(1);
        self.position = end;
        self.survey.chain_end = end;
        Ok(true)
    }

    /// The smallest possible offset of the segment: that of its name, or a lower one if the file was renamed,
    /// which the second batch confirms.
    fn first_expected(&mut self, first: i64, end: u64) -> io::Result<i64> {
        let named = if self.survey.segment.is_checkpoint { 0 } else { self.survey.segment.base_offset };
        let next = self.blocks.at(end, HEADER_SIZE_UP_TO_MAGIC)?;
        let second = next.get(..8).filter(|bytes| bytes.iter().any(|&byte| byte != 0));
        let renamed = second.is_none_or(|bytes| (first..named).contains(&be!(bytes, 0, i64)));
        Ok(if first < named && renamed { first } else { named })
    }

    /// Records gaps, leader epochs and transactions from a batch.
    fn read_state(&mut self, batch: &RecordBatch<'_>, position: u64, size: usize) -> io::Result<()> {
        let span = i64::from(batch.last_offset_delta()) + 1;
        self.survey.gaps += (span - i64::from(batch.record_count())).max(0) as u64;
        let (epoch, start_offset) = (batch.partition_leader_epoch(), batch.base_offset());
        self.survey.leader_epochs.replay(EpochEntry { epoch, start_offset });
        let (producer_id, offset) = (batch.producer_id(), batch.base_offset());
        if batch.is_control() {
            // Control batches other than markers matter only to a visitor.
            if !batch.is_transactional() && self.visitor.is_none() {
                return Ok(());
            }
            let control = self.read_control(position, size)?;
            if let Some(committed) = control.as_ref().and_then(Control::committed)
                && batch.is_transactional()
            {
                self.add_event(TransactionEvent::End { producer_id, offset, committed });
            }
            if let Some(recent) = self.recent.back_mut() {
                recent.control = control;
            }
        } else if batch.is_transactional() {
            if self.since_border.insert(producer_id) {
                self.survey.transactional.push((position, producer_id));
            }
            if !self.transactions.is_open(producer_id) && self.verified(position, size)?.is_some() {
                self.add_event(TransactionEvent::Begin { producer_id, offset });
            }
        }
        Ok(())
    }

    fn add_event(&mut self, event: TransactionEvent) {
        self.transactions.apply(event);
        self.survey.transactions.push(event);
    }

    fn pass_on(&mut self, recent: &Recent) {
        if let Some(visitor) = &mut self.visitor
            && let Ok(batch) = Batch::from_header(&recent.header, recent.position)
        {
            visitor.visit(&batch, recent.size, recent.control.as_ref());
        }
    }

    /// The headers lead nowhere or offsets go back, so the bytes here or one of the last batches are bad.
    /// Resumes where a reader would, and takes back what came from the headers in between.
    fn recover(&mut self, declared_end: Option<u64>) -> io::Result<bool> {
        for index in 0..self.recent.len() {
            let (position, size) = (self.recent[index].position, self.recent[index].size);
            if position < self.resolved || self.crc_holds(index)? {
                continue;
            }
            self.resolved = position + 1;
            let limits = Limits { expected: self.recent[index].expected, ..self.limits };
            let declared = position + size as u64;
            let next = self.salvage.resume(&mut self.blocks, position, Some(declared), &limits)?;
            if next != Some(declared) {
                self.take_back(index);
                return Ok(self.resume_at(next));
            }
        }
        self.resolved = self.position + 1;
        let next = self.salvage.resume(&mut self.blocks, self.position, declared_end, &self.limits)?;
        Ok(self.resume_at(next))
    }

    fn resume_at(&mut self, next: Option<u64>) -> bool {
        self.position = next.unwrap_or(self.blocks.size());
        next.is_some()
    }

    fn take_back(&mut self, index: usize) {
        let recent = &self.recent[index];
        self.limits.expected = recent.expected;
        let survey = &mut self.survey;
        survey.batches = recent.batches;
        survey.first_offset = recent.first_offset;
        survey.gaps = recent.gaps;
        survey.max_timestamp = recent.max_timestamp;
        survey.chain_end = recent.position;
        survey.borders.truncate(recent.borders);
        survey.leader_epochs.truncate_from_end(recent.expected);
        survey.transactions.truncate(recent.transactions);
        survey.transactional.truncate(recent.transactional);
        self.since_border.clear();
        self.recent.truncate(index);
        self.transactions = Transactions::default();
        for &event in &self.survey.transactions {
            self.transactions.apply(event);
        }
    }

    /// A border needs intact batches on both sides: the one before it provides the offset to continue from,
    /// and a bad batch shortly before it could extend past it.
    fn add_border(&mut self, position: u64, size: usize) -> io::Result<()> {
        if self.verified(position, size)?.is_none() {
            return Ok(());
        }
        for index in (0..self.recent.len()).rev() {
            if !self.crc_holds(index)? {
                return Ok(());
            }
            if self.recent[index].position + BEFORE_BORDER <= position {
                break;
            }
        }
        // Right before it: what was lost of offsets in between belongs to the damage there.
        if let Some(before) =
            self.recent.back().filter(|before| before.position + before.size as u64 == position)
        {
            let expected_offset = before.last_offset.saturating_add(1);
            self.survey.borders.push(Border { position, expected_offset });
            self.since_border.clear();
        }
        Ok(())
    }

    fn crc_holds(&mut self, index: usize) -> io::Result<bool> {
        let recent = &self.recent[index];
        if let Some(crc_holds) = recent.crc_holds {
            return Ok(crc_holds);
        }
        let crc_holds = self.verified(recent.position, recent.size)?.is_some();
        self.recent[index].crc_holds = Some(crc_holds);
        Ok(crc_holds)
    }

    /// The batch's bytes if its CRC holds.
    fn verified(&mut self, position: u64, size: usize) -> io::Result<Option<Bytes>> {
        if size > MAX_CHECKED || self.salvage.refuses(&mut self.blocks, position, size)?.is_some() {
            return Ok(None);
        }
        let data = self.blocks.at(position, size)?;
        let crc_holds = Batch::from_frame(&data, position).is_ok_and(|batch| batch.verify().is_ok());
        if !crc_holds {
            self.salvage.spend(size);
        }
        Ok(crc_holds.then_some(data))
    }

    /// The first record of the control batch; None if the batch is damaged.
    fn read_control(&mut self, position: u64, size: usize) -> io::Result<Option<Control>> {
        let Some(data) = self.verified(position, size)? else { return Ok(None) };
        let first_record = |decompressor: &mut Decompressor| {
            let batch = Batch::from_frame(&data, position)?;
            // Only the first record counts, as in Kafka; compaction can leave a batch with none.
            let Some(record) = batch.records(decompressor)?.next().transpose()? else {
                return Ok(Control { kind: None, coordinator_epoch: None, timestamp: -1 });
            };
            let kind = record.key().map(ControlType::parse).transpose()?;
            let coordinator_epoch = match ControlRecord::parse(record.key(), record.value()) {
                Ok(ControlRecord::EndTransaction { coordinator_epoch, .. }) => Some(coordinator_epoch),
                _ => None,
            };
            crate::error::Result::Ok(Control { kind, coordinator_epoch, timestamp: record.timestamp() })
        };
        Ok(first_record(&mut self.decompressor).ok())
    }

    fn find_last_offset(&mut self) -> io::Result<()> {
        for index in (0..self.recent.len()).rev() {
            if self.crc_holds(index)? {
                let recent = &self.recent[index];
                self.survey.last_offset = Some(recent.last_offset);
                self.survey.sound_end = recent.position + recent.size as u64;
                break;
            }
        }
        Ok(())
    }
}
