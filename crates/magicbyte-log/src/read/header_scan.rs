//! The first step: a scan over one segment's batch headers. Only control batches and the wrappers next to a gap are
//! decompressed, and all wrappers for a visitor that counts messages. CRCs are checked only where later steps rely on
//! them (markers, the first batches of transactions, borders). The first record of a control batch decides which marker
//! it is (`CompletedFetch.containsAbortMarker`).

use std::collections::{HashSet, VecDeque};
use std::io;
use std::ops::Range;

use ::bytes::Bytes;

use magicbyte::internals::{Frame, HEADER_SIZE_UP_TO_MAGIC, be};
use magicbyte::state::{EpochEntry, TransactionEvent, Transactions};
use magicbyte::{
    Batch, ControlRecord, ControlType, DEFAULT_MAX_DECOMPRESSED_BYTES, Decompressor, RECORD_BATCH_OVERHEAD,
    RecordBatch,
};

use crate::chunk::{DEFAULT_CHUNK_BYTES, MAX_OFFSET};
use crate::error::{LogError, LogResult};
use crate::listing::Segment;
use crate::read::header_visitor::{Content, Control, HeaderVisitor};
use crate::read::survey::{Border, Survey, header_crc};
use crate::segment::blocks::Blocks;
use crate::segment::limits::Limits;
use crate::segment::salvage::Salvage;
use crate::segment::wrapper::{inner_messages, is_wrapper};
use crate::storage::pin::is_same_file;

/// Headers are small and close together, so blocks are small and batches are skipped rather than read.
const BLOCK: usize = 64 << 10;
/// The maximum number of last batches that the scan can take back.
const LAST_BATCHES: usize = 64;
/// The distance between borders in a remote file, unless all of it is fetched. Each border costs the batches
/// before it.
const REMOTE_BORDERS: u64 = 64 << 20;
/// A border requires that the CRCs of all batches in this many bytes before it hold.
const BEFORE_BORDER: u64 = 1 << 20;
/// Batches of more bytes are not loaded to check their CRC.
const MAX_CHECKED: usize = 64 << 20;

/// Scans the headers of a segment. After damage the scan resumes where a reader would.
///
/// # Errors
/// [`LogError::Io`] if no file can be opened or memory is exhausted. Damaged bytes are skipped.
pub fn survey_segment(segment: &Segment) -> LogResult<Survey> {
    survey_with(segment, ())
}

/// Like [`survey_segment`], with a visitor that receives each batch once it is certain to be part of the log.
#[doc(hidden)]
pub fn survey_with(segment: &Segment, visitor: impl HeaderVisitor) -> LogResult<Survey> {
    let mut scan = HeaderScan::begin(segment, visitor, false)?;
    while scan.step()? {}
    Ok(scan.end()?.0)
}

/// The survey of a segment that has grown since `before`. The scan covers only the bytes after the last batch
/// of `before`. None if the result may differ from [`survey_segment`]: another file has the name, the last
/// batch is different, or there is damage, which is judged by the batches around it.
///
/// # Errors
/// The errors of [`survey_segment`].
pub fn survey_grown(segment: &Segment, before: &Survey) -> LogResult<Option<Survey>> {
    let Some(mut scan) = HeaderScan::resume(segment, before)? else { return Ok(None) };
    while scan.step()? {}
    if scan.is_damaged { Ok(None) } else { Ok(Some(scan.end()?.0)) }
}

/// A scan in progress.
#[doc(hidden)]
pub struct HeaderScan<V> {
    visitor: V,
    /// The distance between borders.
    borders_apart: u64,
    blocks: Blocks,
    position: u64,
    limits: Limits,
    salvage: Salvage,
    /// Damage before this position has been dealt with: the scan does not go back past it.
    resolved: u64,
    /// True if any bytes were damaged, or a batch was out of order.
    is_damaged: bool,
    /// The position where a resumed scan begins.
    resumed_at: Option<u64>,
    transactions: Transactions,
    /// The producers with transactional data since the last border.
    since_border: HashSet<i64>,
    decompressor: Decompressor,
    /// The last batches, each with the state of the survey before it.
    recent: VecDeque<Recent>,
    survey: Survey,
}

/// A batch's header, and the state to restore if the batch is taken back.
struct Recent {
    position: u64,
    header: Bytes,
    content: Option<Content>,
    size: usize,
    last_offset: i64,
    /// True if the CRC holds; None until it is checked.
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

impl HeaderScan<()> {
    /// A scan that continues after the last batch of a survey.
    fn resume(segment: &Segment, before: &Survey) -> LogResult<Option<Self>> {
        let (Some(last_offset), Some((position, crc))) = (before.last_offset, before.last_batch) else {
            return Ok(None);
        };
        let old = &before.segment;
        let is_same = is_same_file(old.version.as_deref(), segment.version.as_deref())
            && (&old.location, old.base_offset, old.is_checkpoint)
                == (&segment.location, segment.base_offset, segment.is_checkpoint);
        let is_whole = before.unreadable.is_none() && !before.is_part && before.sound_end == before.chain_end;
        if !is_same || !is_whole || segment.size < before.sound_end {
            return Ok(None);
        }
        let mut scan = Self::begin(segment, (), false)?;
        let size = before.sound_end.saturating_sub(position) as usize;
        let header = scan.blocks.at(position, size.min(RECORD_BATCH_OVERHEAD));
        let header = header.map_err(|error| scan.failed(error))?;
        if header_crc(&header, size) != crc {
            return Ok(None);
        }
        before.transactions.iter().for_each(|&event| scan.transactions.apply(event));
        scan.position = before.sound_end;
        scan.resolved = before.sound_end;
        scan.resumed_at = Some(before.sound_end);
        scan.limits.expected = last_offset.saturating_add(1);
        scan.salvage = Salvage::new(before.sound_end, segment.size);
        scan.survey = Survey {
            segment: segment.clone(),
            continues: before.last_batch,
            transaction_index: Vec::new(),
            emptied: false,
            problems: Vec::new(),
            ..before.clone()
        };
        scan.remove_resumed_border();
        Ok(Some(scan))
    }

    /// Removes the border at which the survey was resumed before, so that a file that is surveyed every few
    /// seconds does not get a border each time.
    fn remove_resumed_border(&mut self) {
        let Survey { borders, transactional, .. } = &mut self.survey;
        let position = |border: Option<&Border>| border.map_or(0, |border| border.position);
        let before_last = borders.len().checked_sub(2).and_then(|index| borders.get(index));
        if position(borders.last()) < position(before_last) + self.borders_apart {
            borders.pop();
        }
        let border = position(borders.last());
        let since_border = &mut self.since_border;
        transactional
            .retain(|(position, producer_id)| *position < border || since_border.insert(*producer_id));
    }
}

impl<V: HeaderVisitor> HeaderScan<V> {
    /// Opens a segment. With `is_decoded_next`, all of a remote file is fetched, and kept for who decodes it.
    ///
    /// # Errors
    /// The errors of [`survey_segment`].
    pub fn begin(segment: &Segment, visitor: V, is_decoded_next: bool) -> LogResult<Self> {
        let blocks = Blocks::open(&segment.location, segment.size, segment.version.as_deref(), BLOCK)
            .map_err(|error| LogError::io(segment.location.path(), error))?;
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
                max_offset: MAX_OFFSET,
                max_batch_size: DEFAULT_MAX_DECOMPRESSED_BYTES,
            },
            salvage: Salvage::new(0, segment.size),
            resolved: 0,
            is_damaged: false,
            resumed_at: None,
            transactions: Transactions::default(),
            since_border: HashSet::new(),
            decompressor: Decompressor::new(),
            recent: VecDeque::with_capacity(LAST_BATCHES),
            survey: Survey::new(segment),
        })
    }

    /// The visitor, which may have more batches to come.
    pub fn visitor(&mut self) -> &mut V {
        &mut self.visitor
    }

    /// Processes the next header; false at the end of the log.
    ///
    /// # Errors
    /// The errors of [`survey_segment`].
    pub fn step(&mut self) -> LogResult<bool> {
        self.next_header().map_err(|error| self.failed(error))
    }

    /// The survey, after the last step, and the visitor, which has seen all batches.
    ///
    /// # Errors
    /// The errors of [`survey_segment`].
    pub fn end(mut self) -> LogResult<(Survey, V)> {
        self.find_last_offset().map_err(|error| self.failed(error))?;
        if self.survey.last_offset.is_none() {
            self.survey.base_offset = Survey::new(&self.survey.segment).base_offset;
        }
        while let Some(recent) = self.recent.pop_front() {
            self.pass_on(&recent);
        }
        self.survey.check_sidecars()?;
        self.survey.unreadable = self.blocks.failure().map(ToString::to_string);
        Ok((self.survey, self.visitor))
    }

    fn failed(&self, error: io::Error) -> LogError {
        LogError::io(self.survey.segment.location.path(), error)
    }

    /// The survey up to a border that no later damage can take back, and that border's position. None if
    /// there is no such border at or after `from`.
    pub(super) fn part(&self, from: u64) -> Option<(u64, Survey)> {
        let recent = self.recent.front()?;
        let borders = &self.survey.borders[..recent.borders];
        let last = borders.last().filter(|border| border.position >= from)?;
        let part = Survey {
            first_offset: recent.first_offset,
            last_offset: Some(last.expected_offset - 1),
            base_offset: self.survey.base_offset,
            borders: borders.to_vec(),
            is_part: true,
            ..Survey::new(&self.survey.segment)
        };
        Some((last.position, part))
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
            self.survey.base_offset = self.first_expected(&batch, position..end)?;
            self.limits.expected = self.survey.base_offset;
        }
        if self.salvage.misfit(&mut self.blocks, &self.limits, (first, last), position..end)?.is_some() {
            if self.verified(position, size)?.is_none() || self.recent.iter().any(|r| r.crc_holds.is_none()) {
                return self.recover(Some(end));
            }
            // The CRC holds but the offset is out of order: a reader skips only this batch.
            self.is_damaged = true;
            self.position = end;
            return Ok(true);
        }
        if self.resumed_at.take().is_some() {
            // Both sides are intact: the CRC of the batch before it held, and its header is the same.
            if self.verified(position, size)?.is_some() {
                self.survey.borders.push(Border { position, expected_offset: self.limits.expected });
                self.since_border.clear();
            }
        } else if self.survey.borders.last().map_or(0, |border| border.position) + self.borders_apart
            <= position
        {
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
            content: None,
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
        let is_wrapper = is_wrapper(&batch);
        if self.survey.chain_end == position && position > 0 && !is_wrapper {
            self.survey.gaps += first.saturating_sub(self.limits.expected) as u64;
        }
        self.survey.first_offset.get_or_insert(first);
        self.survey.max_timestamp = self.survey.max_timestamp.max(batch.max_timestamp());
        if let Batch::V2(batch) = batch {
            self.read_state(&batch, position, size)?;
        } else if is_wrapper && self.visitor.counts_messages() {
            self.read_messages(position, size)?;
        }
        self.limits.expected = last.saturating_add(1);
        self.position = end;
        self.survey.chain_end = end;
        Ok(true)
    }

    /// The smallest possible offset of the segment: that of its name, or a lower one if the file was renamed,
    /// which the second batch confirms.
    fn first_expected(&mut self, batch: &Batch<'_>, range: Range<u64>) -> io::Result<i64> {
        let named = self.survey.base_offset;
        let first = batch.stored_offset();
        if first >= named {
            return Ok(named);
        }
        let next = self.blocks.at(range.end, HEADER_SIZE_UP_TO_MAGIC)?;
        let second = next.get(..8).filter(|bytes| bytes.iter().any(|&byte| byte != 0));
        // A damaged offset of the first batch is below the name, too, but the second does not follow it.
        let renamed = second.is_none_or(|bytes| {
            let second = be!(bytes, 0, i64);
            (first..named).contains(&second) || second == batch.last_offset().saturating_add(1)
        });
        if !renamed {
            return Ok(named);
        }
        // A wrapper's header has its last offset only.
        let data = self.verified(range.start, (range.end - range.start) as usize)?;
        let inner = data.as_deref().and_then(|data| {
            inner_messages(&Batch::from_frame(data, range.start).ok()?, &mut self.decompressor)
        });
        Ok(inner.map_or(first, |inner| inner.first_offset.min(first)).max(0))
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
            if !batch.is_transactional() && !self.visitor.reads_controls() {
                return Ok(());
            }
            let control = self.read_control(position, size)?;
            if let Some(committed) = control.as_ref().and_then(Control::committed)
                && batch.is_transactional()
            {
                self.add_event(TransactionEvent::End { producer_id, offset, committed });
            }
            if let Some(recent) = self.recent.back_mut() {
                recent.content = control.map(Content::Control);
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
        if let Ok(batch) = Batch::from_header(&recent.header, recent.position) {
            self.visitor.visit(&batch, recent.size, recent.content.as_ref());
        }
    }

    /// The headers lead nowhere or offsets go back, so the bytes here or one of the last batches are bad.
    /// Resumes where a reader would, and takes back what came from the headers in between.
    fn recover(&mut self, declared_end: Option<u64>) -> io::Result<bool> {
        self.is_damaged = true;
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
        // The border must be right after that batch. Otherwise the damage in between accounts for the lost
        // offsets.
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
            magicbyte::Result::Ok(Control { kind, coordinator_epoch, timestamp: record.timestamp() })
        };
        Ok(first_record(&mut self.decompressor).ok())
    }

    /// Reads the messages of the wrapper, unless it is damaged.
    fn read_messages(&mut self, position: u64, size: usize) -> io::Result<()> {
        let Some(data) = self.verified(position, size)? else { return Ok(()) };
        let messages = Batch::from_frame(&data, position)
            .ok()
            .and_then(|batch| inner_messages(&batch, &mut self.decompressor));
        if let Some(recent) = self.recent.back_mut() {
            recent.content = messages.map(Content::Messages);
        }
        Ok(())
    }

    fn find_last_offset(&mut self) -> io::Result<()> {
        for index in (0..self.recent.len()).rev() {
            if self.crc_holds(index)? {
                let recent = &self.recent[index];
                self.survey.last_offset = Some(recent.last_offset);
                let first = be!(&recent.header, 0, i64);
                self.survey.gap_before_last = (first > recent.expected).then_some(recent.expected);
                self.survey.sound_end = recent.position + recent.size as u64;
                self.survey.last_batch = Some((recent.position, header_crc(&recent.header, recent.size)));
                break;
            }
        }
        Ok(())
    }
}
