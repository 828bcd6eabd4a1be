//! The walk over a segment's bytes: every byte ends up in a batch, a quarantined range or the tail.

use std::io;
use std::ops::Range;
use std::path::Path;

use ::bytes::Bytes;

use super::blocks::Blocks;
use crate::batches::{Batch, Frame, HEADER_SIZE_UP_TO_MAGIC};
use crate::error::{Error, ErrorKind, Result};
use crate::record::RECORD_BATCH_OVERHEAD;

const BLOCK: usize = 1 << 20;

/// A piece of a segment, in file order; pieces leave no byte out.
#[derive(Debug)]
pub enum Piece {
    /// A batch that is whole, in order, and whose CRC holds.
    Batch(SegmentBatch),
    /// Bytes that cannot be read, and why.
    Quarantined {
        /// Which bytes.
        range: Range<u64>,
        /// What is wrong with them.
        error: Error,
    },
    /// The end of the file behind its last batch.
    Tail {
        /// Which bytes.
        range: Range<u64>,
        /// What they are.
        kind: TailKind,
    },
}

/// What stands behind the last batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailKind {
    /// Zeros to the end: a preallocated file.
    Zeros,
    /// The start of a batch whose rest was never written.
    PartialBatch,
}

impl TailKind {
    /// `zeros` or `partial_batch`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Zeros => "zeros",
            Self::PartialBatch => "partial_batch",
        }
    }
}

/// A batch that owns (a share of) its bytes.
#[derive(Clone, Debug)]
pub struct SegmentBatch {
    data: Bytes,
    position: u64,
}

impl SegmentBatch {
    /// The batch's bytes, refcounted: they stay valid as long as they are held.
    #[must_use]
    pub fn data(&self) -> &Bytes {
        &self.data
    }

    /// Position in the segment.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The batch as a view.
    ///
    /// # Errors
    /// None in practice: the bytes were framed before.
    pub fn batch(&self) -> Result<Batch<'_>> {
        Batch::from_frame(&self.data, self.position)
    }
}

/// Reads a byte range of a segment in pieces; memory is one block or the largest batch.
///
/// A batch that fails its CRC or does not fit between its neighbours' offsets is quarantined
/// alone if a plausible header follows at its declared end; otherwise everything to the end of
/// the range is.
#[derive(Debug)]
pub struct SegmentReader {
    blocks: Blocks,
    position: u64,
    end: u64,
    /// The smallest offset the next batch can have.
    expected: i64,
    /// The largest offset a segment's index can express.
    max_offset: i64,
    check_crcs: bool,
    /// Larger batches are not loaded.
    max_batch_size: usize,
}

impl SegmentReader {
    /// Opens `range` of a segment file that has `size` bytes. The range starts at a batch;
    /// `expected_offset` is the smallest offset that can have, `max_offset` the largest the
    /// segment can hold.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(
        path: &Path,
        size: u64,
        range: Range<u64>,
        expected_offset: i64,
        max_offset: i64,
    ) -> io::Result<Self> {
        Ok(Self {
            blocks: Blocks::open(path, size, BLOCK)?,
            position: range.start,
            end: range.end.min(size),
            expected: expected_offset,
            max_offset,
            check_crcs: true,
            max_batch_size: crate::DEFAULT_MAX_DECOMPRESSED_BYTES,
        })
    }

    /// Leaves CRCs unchecked.
    #[must_use]
    pub fn check_crcs(mut self, check: bool) -> Self {
        self.check_crcs = check;
        self
    }

    /// Quarantines batches larger than this many bytes unread.
    #[must_use]
    pub fn max_batch_size(mut self, bytes: usize) -> Self {
        self.max_batch_size = bytes;
        self
    }

    /// Position of the next piece.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    fn read(&mut self) -> io::Result<Piece> {
        let header = self.blocks.at(self.position, HEADER_SIZE_UP_TO_MAGIC)?;
        let rest = self.blocks.size() - self.position;
        if (header.len() as u64) < rest.min(HEADER_SIZE_UP_TO_MAGIC as u64) {
            return Ok(self.quarantine_rest(ErrorKind::FileTruncated.into()));
        }
        // Zeros are no batch of length 0: they are a preallocated file's tail, or damage.
        if header.iter().all(|&byte| byte == 0) {
            let zeros = self.zeros_from(self.position)?;
            let range = self.position..self.position + zeros;
            if range.end == self.blocks.size() {
                return Ok(Piece::Tail { range, kind: TailKind::Zeros });
            }
            return Ok(self.quarantine_rest(ErrorKind::Zeros.into()));
        }
        match Frame::read(&header) {
            Ok(Frame::Whole { size }) => self.read_batch(size),
            Ok(Frame::Cut { needed }) => {
                let size = header.len() as u64 + needed;
                if size <= rest { self.read_batch(size as usize) } else { self.read_tail(&header, size) }
            }
            Err(error) => Ok(self.quarantine_rest(error)),
        }
    }

    fn read_batch(&mut self, size: usize) -> io::Result<Piece> {
        if size > self.max_batch_size {
            let error = ErrorKind::LimitExceeded { limit: self.max_batch_size };
            return Ok(self.quarantine(size, error.into()));
        }
        let data = self.blocks.at(self.position, size)?;
        if data.len() < size {
            return Ok(self.quarantine_rest(ErrorKind::FileTruncated.into()));
        }
        let checked = match Batch::from_frame(&data, self.position) {
            // A magic 2 batch smaller than its header: its length is wrong, so is what follows.
            Err(error) => return Ok(self.quarantine_rest(error)),
            Ok(batch) => {
                let crc = if self.check_crcs { batch.verify() } else { Ok(()) };
                crc.and_then(|()| self.check_order(&batch)).map(|()| batch.last_offset())
            }
        };
        match checked {
            Ok(last_offset) => {
                self.expected = last_offset.saturating_add(1);
                Ok(Piece::Batch(SegmentBatch { data, position: self.position }))
            }
            Err(error) => Ok(self.quarantine(size, error)),
        }
    }

    /// Base offsets lie outside the CRC: the neighbours are all there is to check them by.
    fn check_order(&mut self, batch: &Batch<'_>) -> Result<()> {
        let (first, last) = (batch.stored_offset(), batch.last_offset());
        let expected = self.expected;
        let refuse = |found| Err(batch.place(ErrorKind::OffsetOutOfOrder { found, expected }.into()));
        if first < expected {
            return refuse(first);
        }
        if last > self.max_offset || last < first {
            return refuse(last);
        }
        if first > expected {
            // A gap before it may be compaction, or the next batch may show that this one's
            // offset is too high.
            let end = self.position + batch.size_in_bytes() as u64;
            let next = self.blocks.at(end, HEADER_SIZE_UP_TO_MAGIC).unwrap_or_default();
            if next.len() == HEADER_SIZE_UP_TO_MAGIC && Frame::read(&next).is_ok() {
                let next_offset = crate::bytes::cursor::be!(&next, 0, i64);
                if (expected..=last).contains(&next_offset) {
                    return refuse(first);
                }
            }
        }
        Ok(())
    }

    /// The range ends inside what may be a batch: a tail, unless it cannot be one.
    fn read_tail(&mut self, header: &[u8], size: u64) -> io::Result<Piece> {
        if header.len() >= 8 {
            let found = crate::bytes::cursor::be!(header, 0, i64);
            if found < self.expected || found > self.max_offset {
                return Ok(self.quarantine_rest(Error::new(ErrorKind::Garbage).in_field("baseOffset")));
            }
        }
        let range = self.position..self.blocks.size();
        if size > self.max_batch_size as u64 || self.holds_a_batch(range.start + 1..range.end)? {
            let max = (range.end - range.start) as i64 - 12;
            let wrong = Error::new(ErrorKind::InvalidSize { found: size as i64 - 12, min: 14, max });
            return Ok(self.quarantine_rest(wrong.in_field("length")));
        }
        Ok(Piece::Tail { range, kind: TailKind::PartialBatch })
    }

    /// Whether a whole magic 2 batch that goes on in the log starts inside the range: then a
    /// length that claims more than the file has is wrong, and what it covers is no tail.
    fn holds_a_batch(&mut self, range: Range<u64>) -> io::Result<bool> {
        let mut at = range.start;
        // Work stays linear however many headers are forged.
        let mut budget = 4 * (range.end - range.start);
        while at + RECORD_BATCH_OVERHEAD as u64 <= range.end {
            let window = self.blocks.at(at, BLOCK)?;
            if window.len() < RECORD_BATCH_OVERHEAD {
                return Ok(false);
            }
            for (index, candidate) in window.windows(HEADER_SIZE_UP_TO_MAGIC).enumerate() {
                let offset = crate::bytes::cursor::be!(candidate, 0, i64);
                if candidate[16] != 2 || offset < self.expected || offset > self.max_offset {
                    continue;
                }
                let length = crate::bytes::cursor::be!(candidate, 8, i32);
                let start = at + index as u64;
                let fits = length >= (RECORD_BATCH_OVERHEAD - 12) as i32
                    && start + 12 + length as u64 <= range.end
                    && length as usize <= self.max_batch_size;
                if !fits {
                    continue;
                }
                let size = 12 + length as u64;
                let Some(left) = budget.checked_sub(size) else { return Ok(false) };
                budget = left;
                let data = self.blocks.at(start, size as usize)?;
                if Batch::from_frame(&data, start).is_ok_and(|batch| batch.verify().is_ok()) {
                    return Ok(true);
                }
            }
            at += (window.len() - HEADER_SIZE_UP_TO_MAGIC + 1) as u64;
        }
        Ok(false)
    }

    /// How many zero bytes stand from `position` on.
    fn zeros_from(&mut self, position: u64) -> io::Result<u64> {
        let mut at = position;
        loop {
            let block = self.blocks.at(at, BLOCK)?;
            let zeros = block.iter().take_while(|&&byte| byte == 0).count();
            at += zeros as u64;
            if zeros < block.len() || block.is_empty() {
                return Ok(at - position);
            }
        }
    }

    /// A batch of this size is bad; its neighbour stands at its declared end.
    fn quarantine(&self, size: usize, error: Error) -> Piece {
        let range = self.position..self.end.min(self.position + size as u64);
        Piece::Quarantined { range, error: error.at_position(self.position) }
    }

    /// Where the next batch begins is not known.
    fn quarantine_rest(&self, error: Error) -> Piece {
        Piece::Quarantined { range: self.position..self.end, error: error.at_position(self.position) }
    }
}

impl Iterator for SegmentReader {
    type Item = io::Result<Piece>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.position >= self.end {
            return None;
        }
        let piece = self.read();
        self.position = match &piece {
            Ok(Piece::Batch(batch)) => batch.position + batch.data.len() as u64,
            Ok(Piece::Quarantined { range, .. } | Piece::Tail { range, .. }) => range.end,
            Err(_) => self.end,
        };
        Some(piece)
    }
}
