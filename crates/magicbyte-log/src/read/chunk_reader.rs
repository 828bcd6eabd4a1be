//! The third step: reads a chunk's batches in order and accounts for each, leaving out control batches and
//! aborted transactions as a consumer's `CompletedFetch` does. The caller decides what to do with the
//! records.

use std::io;

use magicbyte::internals::AbortedByProducer;
use magicbyte::{Batch, Decompressor, Error, ErrorKind, Result, crc32c};

use crate::chunk::Chunk;
use crate::error::{LogError, LogResult};
use crate::problem::{Problem, Problems};
use crate::read::accounting::{ByteRange, ChunkResult};
use crate::read::options::DamageMode;
use crate::segment::reader::{Piece, SegmentBatch, SegmentReader, TailKind};
use crate::segment::wrapper::{check_offset, inner_messages};

/// Bytes of a magic 2 batch from its offset through its CRC.
const CHECKSUMMED: usize = 21;

/// The kind of records in a batch, as seen by a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Data records.
    Rows,
    /// Control records.
    Control,
    /// Records of an aborted transaction.
    Aborted,
}

/// One step of a [`ChunkReader`].
#[doc(hidden)]
#[derive(Debug)]
pub enum Step {
    /// A batch whose CRC holds.
    Batch(SegmentBatch, Disposition),
    /// Bytes outside of such batches.
    Damage,
    /// The end of the chunk.
    End,
}

/// The record counts of one good batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct BatchCounts {
    /// All records.
    pub announced: u64,
    /// Records before the log's start.
    pub deleted: u64,
    /// Other records before the requested start, or from the requested end on.
    pub outside: u64,
    /// Offset of the first record, if there is one.
    pub first_offset: Option<i64>,
    /// Offset of the last record.
    pub last_offset: Option<i64>,
}

/// Reads one chunk: call [`next_batch`](Self::next_batch), then [`good`](Self::good) or [`bad`](Self::bad)
/// for the batch it returned, until it returns none.
#[derive(Debug)]
pub struct ChunkReader {
    chunk: Chunk,
    pieces: SegmentReader,
    result: ChunkResult,
    problems: Vec<Problem>,
    /// Problems beyond this number are only counted.
    max_problems: usize,
    problems_left_out: u64,
    /// The first and the last damaged range since the last good batch. The next good batch shows what was
    /// lost.
    damage: (Option<Problem>, Option<Problem>),
    /// The smallest offset the next good batch can have.
    next_offset: i64,
    first_error: Option<Error>,
    checksum: u32,
    aborted: AbortedByProducer,
    /// The decompressor for wrappers: only their messages have the first offset.
    decompressor: Decompressor,
}

impl ChunkReader {
    /// Opens the chunk's file.
    ///
    /// # Errors
    /// If no file can be opened or memory is exhausted. The bytes of a file that is missing or unreadable are
    /// accounted as damage instead.
    pub fn open(chunk: Chunk, check_crcs: bool, max_batch_size: usize) -> io::Result<Self> {
        let pieces = SegmentReader::of_chunk(&chunk)?.check_crcs(check_crcs).max_batch_size(max_batch_size);
        let result = ChunkResult::of(&chunk);
        let next_offset = chunk.expected_offset;
        let aborted = AbortedByProducer::new(&chunk.aborted);
        Ok(Self {
            chunk,
            pieces,
            result,
            problems: Vec::new(),
            max_problems: usize::MAX,
            problems_left_out: 0,
            damage: (None, None),
            next_offset,
            first_error: None,
            checksum: 0,
            aborted,
            decompressor: Decompressor::with_limit(max_batch_size),
        })
    }

    /// Keeps at most this many problems until they are taken; further ones are only counted, for
    /// [`take_problems_left_out`](Self::take_problems_left_out). By default all are kept.
    #[must_use]
    pub fn max_problems(mut self, most: usize) -> Self {
        self.max_problems = most;
        self
    }

    /// The chunk.
    #[must_use]
    pub fn chunk(&self) -> &Chunk {
        &self.chunk
    }

    /// True if the file was deleted or replaced after it was listed, so that the whole chunk is damage.
    pub(crate) fn is_replaced(&self) -> bool {
        self.pieces.is_replaced()
    }

    /// The next batch whose CRC holds, and the kind of its records. Damage in between is accounted for.
    ///
    /// # Errors
    /// If memory is exhausted. Bytes that the operating system cannot read are damage.
    pub fn next_batch(&mut self) -> io::Result<Option<(SegmentBatch, Disposition)>> {
        loop {
            match self.step()? {
                Step::Batch(batch, disposition) => return Ok(Some((batch, disposition))),
                Step::Damage => {}
                Step::End => return Ok(None),
            }
        }
    }

    /// Like [`next_batch`](Self::next_batch), but returns after each piece, since damage may be long.
    #[doc(hidden)]
    pub fn step(&mut self) -> io::Result<Step> {
        match self.pieces.next().transpose()? {
            Some(piece) => self.take(piece),
            None => {
                let next_offset = self.chunk.next_offset;
                self.end_damage(next_offset);
                Ok(Step::End)
            }
        }
    }

    fn take(&mut self, piece: Piece) -> io::Result<Step> {
        match piece {
            Piece::Batch(mut batch) => {
                batch.decompress_wrapper(&mut self.decompressor);
                match self.check_wrapper(&batch)? {
                    Ok(()) => {
                        self.add_to_checksum(&batch);
                        let disposition = self.disposition(&batch.batch());
                        return Ok(Step::Batch(batch, disposition));
                    }
                    Err(error) => self.bad(&batch, &error),
                }
            }
            Piece::Quarantined { range, error } => self.quarantine(range.start, range.end, &error),
            // Only the last segment may be incomplete.
            Piece::Tail { range, kind } if self.chunk.next_offset.is_some() => {
                let kind = match kind {
                    TailKind::Zeros => ErrorKind::Zeros,
                    TailKind::PartialBatch => ErrorKind::PartialBatch,
                };
                self.quarantine(range.start, range.end, &Error::new(kind).at_position(range.start));
            }
            Piece::Tail { range, kind } => {
                if kind == TailKind::PartialBatch {
                    let cut = Error::new(ErrorKind::PartialBatch).at_position(range.start);
                    self.note(self.chunk.problem(range.clone(), &cut));
                }
                let reason = kind.name().to_owned();
                self.result.tail = Some(ByteRange { start: range.start, end: range.end, reason });
            }
        }
        Ok(Step::Damage)
    }

    /// Checks a wrapper's offset against its messages' offsets and the neighboring batches.
    fn check_wrapper(&mut self, data: &SegmentBatch) -> io::Result<Result<()>> {
        let batch = data.batch();
        let Some(inner) = inner_messages(&batch, &mut self.decompressor) else { return Ok(Ok(())) };
        if let Err(error) = check_offset(&batch, inner, self.next_offset) {
            return Ok(Err(error));
        }
        // After a gap the next wrapper shows whether this one's offset is too high.
        if batch.magic() == 1
            && inner.first_offset > self.next_offset
            && let Some(next) = self.pieces.peek_batch(data.position() + data.data().len() as u64)?
            && let Some(next) = inner_messages(&next.batch(), &mut self.decompressor)
            && (self.next_offset..=inner.last_offset).contains(&next.first_offset)
        {
            let kind = ErrorKind::OffsetOutOfOrder { found: inner.last_offset, expected: self.next_offset };
            return Ok(Err(batch.place(kind.into())));
        }
        Ok(Ok(()))
    }

    /// Adds a batch's position, the header bytes that its own CRC does not cover, and that CRC.
    fn add_to_checksum(&mut self, batch: &SegmentBatch) {
        let mut identity = [0; 8 + CHECKSUMMED];
        identity[..8].copy_from_slice(&batch.position().to_be_bytes());
        let head = &batch.data()[..batch.data().len().min(CHECKSUMMED)];
        identity[8..8 + head.len()].copy_from_slice(head);
        self.checksum = crc32c(&identity, self.checksum);
    }

    /// Only transactional batches of the aborted transaction's producer are skipped.
    fn disposition(&self, batch: &Batch<'_>) -> Disposition {
        let Some(batch) = batch.as_v2() else { return Disposition::Rows };
        if batch.is_control() {
            return Disposition::Control;
        }
        let aborted =
            batch.is_transactional() && self.aborted.contains(batch.producer_id(), batch.base_offset());
        if aborted { Disposition::Aborted } else { Disposition::Rows }
    }

    /// Counts a record in `counts` if it is before the log's start or outside the requested range. Returns
    /// true if it was counted.
    #[inline]
    pub fn leaves_out(&self, offset: i64, counts: &mut BatchCounts) -> bool {
        let is_deleted = self.chunk.is_deleted(offset);
        let is_requested = self.chunk.start_offset.is_none_or(|start| offset >= start)
            && self.chunk.end_offset.is_none_or(|end| offset < end);
        counts.deleted += u64::from(is_deleted);
        counts.outside += u64::from(!is_deleted && !is_requested);
        is_deleted || !is_requested
    }

    /// Accounts for a batch whose records all decode.
    pub fn good(
        &mut self,
        batch: &SegmentBatch,
        last_offset: i64,
        disposition: Disposition,
        counts: BatchCounts,
    ) {
        let result = &mut self.result;
        if self.chunk.is_deleted(last_offset) {
            result.deleted_bytes += batch.data().len() as u64;
        } else {
            result.good_batches += 1;
            result.good_bytes += batch.data().len() as u64;
        }
        result.announced += counts.announced;
        let inside = counts.announced - counts.deleted - counts.outside;
        result.deleted += counts.deleted;
        result.outside += counts.outside;
        match disposition {
            Disposition::Rows => result.rows += inside,
            Disposition::Control => result.control += inside,
            Disposition::Aborted => result.aborted += inside,
        }
        if result.first_offset.is_none() {
            result.first_offset = counts.first_offset;
        }
        result.last_offset = Some(last_offset);
        self.pass(counts.first_offset, last_offset);
    }

    /// Passes a good batch: offsets lost before it end where it begins.
    #[doc(hidden)]
    pub fn pass(&mut self, first_offset: Option<i64>, last_offset: i64) {
        self.end_damage(first_offset);
        self.result.lost_at_end = None;
        self.next_offset = last_offset.saturating_add(1);
    }

    /// True if damage was the last thing read.
    #[doc(hidden)]
    pub fn follows_damage(&self) -> bool {
        self.damage.0.is_some()
    }

    /// Accounts for a batch that does not decode: none of its records counts.
    pub fn bad(&mut self, batch: &SegmentBatch, error: &Error) {
        let start = batch.position();
        self.quarantine(start, start + batch.data().len() as u64, error);
    }

    fn quarantine(&mut self, start: u64, end: u64, error: &Error) {
        let kind = error.kind().name();
        self.first_error.get_or_insert_with(|| error.clone());
        self.result.quarantine(ByteRange { start, end, reason: kind.into() });
        // Adjacent ranges of the same kind are one problem: a file of garbage has one, not millions.
        let (first, last) = &mut self.damage;
        if let Some(before) = last.as_mut().or(first.as_mut())
            && before.end == Some(start)
            && before.kind == kind
        {
            before.end = Some(end);
            return;
        }
        let mut problem = self.chunk.problem(start..end, error);
        if first.is_none() {
            problem.first_lost_offset = Some(self.next_offset);
            *first = Some(problem);
        } else if let Some(before) = last.replace(problem) {
            self.note(before);
        }
    }

    /// Ends the current damage. `next_offset` is that of the next good record; None if nothing is known to
    /// follow.
    fn end_damage(&mut self, next_offset: Option<i64>) {
        let (Some(mut first), last) = std::mem::take(&mut self.damage) else { return };
        if let Some(next) = next_offset {
            if next > self.next_offset {
                first.last_lost_offset = Some(next - 1);
                let lost = next.abs_diff(self.next_offset);
                self.result.lost_offsets = self.result.lost_offsets.saturating_add(lost);
                self.result.lost_at_end = Some((self.next_offset, next - 1));
            } else {
                first.first_lost_offset = None;
            }
        }
        self.note(first);
        if let Some(last) = last {
            self.note(last);
        }
    }

    fn note(&mut self, problem: Problem) {
        if self.problems.len() < self.max_problems {
            self.problems.push(problem);
        } else {
            self.problems_left_out += 1;
        }
    }

    /// Counts the timestamps, keys and values of rows that a table cannot hold.
    pub fn add_unrepresented(&mut self, timestamps: u64, keys: u64, values: u64) {
        self.result.null_timestamps += timestamps;
        self.result.invalid_keys += keys;
        self.result.invalid_values += values;
    }

    /// The smallest offset the next good batch can have.
    pub(crate) fn next_offset(&self) -> i64 {
        self.next_offset
    }

    /// The problems found since the last call.
    pub fn take_problems(&mut self) -> Vec<Problem> {
        std::mem::take(&mut self.problems)
    }

    /// Moves the problems found since the last call to `problems`.
    #[doc(hidden)]
    pub fn move_problems(&mut self, problems: &mut Problems) {
        self.take_problems().into_iter().for_each(|problem| problems.note(problem));
        problems.left_out += self.take_problems_left_out();
    }

    /// The number of problems not yet taken.
    #[must_use]
    pub fn problems(&self) -> usize {
        self.problems.len()
    }

    /// The number of problems that were only counted since the last call.
    pub fn take_problems_left_out(&mut self) -> u64 {
        std::mem::take(&mut self.problems_left_out)
    }

    /// The error of the first range quarantined since the last call.
    pub fn take_error(&mut self) -> Option<Error> {
        self.first_error.take()
    }

    /// Fails with the first damage since the last call, in mode [`DamageMode::FailFast`].
    pub(crate) fn check_damage(&mut self, mode: DamageMode) -> LogResult<()> {
        match (self.take_error(), mode) {
            (Some(error), DamageMode::FailFast) => {
                Err(LogError::Format { path: self.chunk.location.path().to_owned(), error })
            }
            _ => Ok(()),
        }
    }

    /// A checksum of the positions, offsets and CRCs of the batches that [`next_batch`](Self::next_batch)
    /// returned. It shows another reader of the chunk that the file has changed.
    #[must_use]
    pub fn checksum(&self) -> u32 {
        self.checksum
    }

    /// The account; complete once [`next_batch`](Self::next_batch) has returned none.
    #[must_use]
    pub fn result(&self) -> &ChunkResult {
        &self.result
    }
}
