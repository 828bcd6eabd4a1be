//! The walk over a segment's bytes: every byte ends up in a batch, a quarantined range or the tail. Where
//! Kafka's `FileLogInputStream` stops at an error, this reader continues after the damage.

use std::io;
use std::ops::Range;

use ::bytes::Bytes;

use magicbyte::internals::{Frame, HEADER_SIZE_UP_TO_MAGIC, be};
use magicbyte::{Batch, DEFAULT_MAX_DECOMPRESSED_BYTES, Decompressor, Error, ErrorKind};

use crate::chunk::Chunk;
use crate::listing::Segment;
use crate::segment::blocks::Blocks;
use crate::segment::limits::Limits;
use crate::segment::salvage::Salvage;
use crate::segment::wrapper::is_wrapper;
use crate::storage::location::Location;

const BLOCK: usize = 1 << 20;

/// A piece of a segment. Pieces come in file order and cover every byte.
#[derive(Debug)]
pub enum Piece {
    /// A whole batch, in offset order, whose CRC holds.
    Batch(SegmentBatch),
    /// Bytes that cannot be read, and the reason.
    Quarantined {
        /// The byte range.
        range: Range<u64>,
        /// The error in these bytes.
        error: Error,
    },
    /// The end of the file after the last batch.
    Tail {
        /// The byte range.
        range: Range<u64>,
        /// The kind of bytes.
        kind: TailKind,
    },
}

/// The kind of bytes after the last batch.
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
    /// The messages of a wrapper, once they are decompressed: its offset is checked against theirs.
    messages: Option<Bytes>,
}

impl SegmentBatch {
    fn new(data: Bytes, position: u64) -> Self {
        Self { data, position, messages: None }
    }

    /// The batch's bytes, refcounted.
    #[must_use]
    pub fn data(&self) -> &Bytes {
        &self.data
    }

    /// Position in the segment, in bytes.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The batch as a view.
    #[must_use]
    pub fn batch(&self) -> Batch<'_> {
        let batch = Batch::of_frame(&self.data, self.position);
        match &self.messages {
            Some(messages) => batch.decompressed(messages),
            None => batch,
        }
    }

    /// Decompresses a wrapper of magic 0 or 1, so that whoever reads its records need not. A wrapper that does
    /// not decompress stays as it is: its reader reports that.
    pub(crate) fn decompress_wrapper(&mut self, decompressor: &mut Decompressor) {
        let batch = Batch::of_frame(&self.data, self.position);
        if is_wrapper(&batch) {
            self.messages = batch.payload_shared(&self.data, decompressor).ok();
        }
    }
}

/// Reads a byte range of a segment in pieces. Memory: one block (1 MiB) or the largest batch.
///
/// A bad batch costs only itself: reading resumes where its declared length, its own checksum or a scan finds
/// the next batch (`salvage.rs`). Batches inside values are never mistaken for the log's.
#[derive(Debug)]
pub struct SegmentReader {
    blocks: Blocks,
    position: u64,
    end: u64,
    limits: Limits,
    check_crcs: bool,
    salvage: Salvage,
}

impl SegmentReader {
    /// Opens `range` of a segment file that has `size` bytes. The range starts at a batch. `expected_offset`
    /// is the smallest offset that batch can have; `max_offset` is the largest the segment can hold,
    /// inclusive.
    ///
    /// # Errors
    /// If no file can be opened or memory is exhausted. The bytes of a file that is missing or unreadable are
    /// quarantined instead.
    pub fn open(
        path: impl Into<Location>,
        size: u64,
        range: Range<u64>,
        expected_offset: i64,
        max_offset: i64,
    ) -> io::Result<Self> {
        Self::open_version(&path.into(), size, None, range, expected_offset, max_offset)
    }

    /// Like [`open`](Self::open), if the file still has the version that was listed. Bytes of another version
    /// are quarantined, too.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open); also if a store fails.
    pub(crate) fn open_version(
        location: &Location,
        size: u64,
        version: Option<&str>,
        range: Range<u64>,
        expected_offset: i64,
        max_offset: i64,
    ) -> io::Result<Self> {
        let mut blocks = Blocks::open(location, size, version, BLOCK)?;
        blocks.read_through(&range);
        Ok(Self {
            blocks,
            position: range.start,
            end: range.end.min(size),
            limits: Limits {
                expected: expected_offset,
                max_offset,
                max_batch_size: DEFAULT_MAX_DECOMPRESSED_BYTES,
            },
            check_crcs: true,
            salvage: Salvage::new(range.start, range.end.min(size)),
        })
    }

    /// Opens the bytes of a chunk.
    ///
    /// # Errors
    /// The errors of [`open_version`](Self::open_version).
    pub(crate) fn of_chunk(chunk: &Chunk) -> io::Result<Self> {
        Self::open_version(
            &chunk.location,
            chunk.size,
            chunk.version.as_deref(),
            chunk.start..chunk.end,
            chunk.expected_offset,
            chunk.max_offset,
        )
    }

    /// Sets whether CRCs are checked; they are by default.
    #[must_use]
    pub fn check_crcs(mut self, check: bool) -> Self {
        self.check_crcs = check;
        self
    }

    /// Quarantines batches of more than this many bytes without loading them.
    #[must_use]
    pub fn max_batch_size(mut self, bytes: usize) -> Self {
        self.limits.max_batch_size = bytes;
        self
    }

    /// See [`Blocks::is_replaced`].
    pub(crate) fn is_replaced(&self) -> bool {
        self.blocks.is_replaced()
    }

    /// Position of the next piece.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Bytes of the segment, regardless of the reader's position.
    pub(crate) fn bytes_at(&mut self, position: u64, length: usize) -> io::Result<Bytes> {
        self.blocks.at(position, length)
    }

    /// Opens all of a segment.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open); also if a store fails.
    #[doc(hidden)]
    pub fn of_segment(segment: &Segment) -> io::Result<Self> {
        let Segment { location, size, version, base_offset, .. } = segment;
        Self::open_version(location, *size, version.as_deref(), 0..*size, *base_offset, i64::MAX)
    }

    /// The batch at `position`, if it is whole and its CRC holds; the reader does not move.
    #[doc(hidden)]
    pub fn peek_batch(&mut self, position: u64) -> io::Result<Option<SegmentBatch>> {
        let header = self.blocks.peek(position, HEADER_SIZE_UP_TO_MAGIC)?;
        let size = match Frame::read(&header) {
            Ok(Frame::Whole { size }) => size,
            Ok(Frame::Cut { needed }) => header.len() + needed as usize,
            Err(_) => return Ok(None),
        };
        if size > self.limits.max_batch_size || size as u64 > self.blocks.size().saturating_sub(position) {
            return Ok(None);
        }
        let data = self.blocks.peek(position, size)?;
        // The file may have become shorter since it was listed.
        let is_whole = data.len() == size;
        let holds = is_whole && Batch::from_frame(&data, position).is_ok_and(|batch| batch.verify().is_ok());
        Ok(holds.then(|| SegmentBatch::new(data, position)))
    }

    fn read(&mut self) -> io::Result<Piece> {
        let header = self.blocks.at(self.position, HEADER_SIZE_UP_TO_MAGIC)?;
        let rest = self.blocks.size() - self.position;
        if (header.len() as u64) < rest.min(HEADER_SIZE_UP_TO_MAGIC as u64) {
            return Ok(self.quarantine_to(self.end, self.blocks.missing().into()));
        }
        // Zeros are not a batch of length 0: they are the tail of a preallocated file, or damage.
        if header.iter().all(|&byte| byte == 0) {
            let range = self.position..self.position + self.blocks.zeros_from(self.position)?;
            if range.end == self.blocks.size() && self.blocks.damage(&range).is_none() {
                return Ok(self.tail(TailKind::Zeros));
            }
            return self.quarantine(Some(range.end), ErrorKind::Zeros.into());
        }
        let size = match Frame::read(&header) {
            Ok(Frame::Whole { size }) => size as u64,
            Ok(Frame::Cut { needed }) => header.len() as u64 + needed,
            Err(error) => return self.quarantine(None, error),
        };
        if size > rest {
            return self.read_tail(&header, size);
        }
        // A header keeps its block alive, so that the batch would be read into another one.
        drop(header);
        self.read_batch(size as usize)
    }

    fn read_batch(&mut self, size: usize) -> io::Result<Piece> {
        let end = self.position + size as u64;
        if size > self.limits.max_batch_size {
            let error = ErrorKind::LimitExceeded { limit: self.limits.max_batch_size };
            return self.quarantine(Some(end), error.into());
        }
        if self.check_crcs
            && let Some(error) = self.salvage.refuses(&mut self.blocks, self.position, size)?
        {
            return self.quarantine(Some(end), error);
        }
        let data = self.blocks.at(self.position, size)?;
        if data.len() < size {
            return Ok(self.quarantine_to(self.end, self.blocks.missing().into()));
        }
        if let Some(kind) = self.blocks.damage(&(self.position..end)) {
            return self.quarantine(Some(end), kind.into());
        }
        let batch = match Batch::from_frame(&data, self.position) {
            // A magic 2 batch smaller than its header has a wrong length, so its declared end means nothing.
            Err(error) => return self.quarantine(None, error),
            Ok(batch) => batch,
        };
        if self.check_crcs
            && let Err(error) = batch.verify()
        {
            self.salvage.spend(size);
            return self.quarantine(Some(end), error);
        }
        let (first, last) = (batch.stored_offset(), batch.last_offset());
        let misfit =
            self.salvage.misfit(&mut self.blocks, &self.limits, (first, last), self.position..end)?;
        if let Some(found) = misfit {
            let expected = self.limits.expected;
            // Its CRC holds, so its length is right.
            let error = batch.place(ErrorKind::OffsetOutOfOrder { found, expected }.into());
            return Ok(self.quarantine_to(end, error));
        }
        self.limits.expected = last.saturating_add(1);
        Ok(Piece::Batch(SegmentBatch::new(data, self.position)))
    }

    /// The file ends inside what may be a batch: this is the tail, unless the header cannot be the next
    /// batch's.
    fn read_tail(&mut self, header: &[u8], size: u64) -> io::Result<Piece> {
        if header.len() >= 8 {
            let base_offset = be!(header, 0, i64);
            if base_offset < self.limits.expected || base_offset > self.limits.near() {
                return self.quarantine(None, Error::new(ErrorKind::Garbage).in_field("baseOffset"));
            }
        }
        let range = self.position..self.blocks.size();
        let next = self.resume(None)?;
        if size > self.limits.max_batch_size as u64 || next.is_some() {
            let max = (range.end - range.start) as i64 - 12;
            let wrong = Error::new(ErrorKind::InvalidSize { found: size as i64 - 12, min: 14, max });
            return Ok(self.quarantine_to(next.unwrap_or(self.end), wrong.in_field("length")));
        }
        match self.blocks.damage(&range) {
            Some(kind) => Ok(self.quarantine_to(range.end, kind.into())),
            None => Ok(self.tail(TailKind::PartialBatch)),
        }
    }

    /// The end of the file, as far as it is in the range: what follows a range is for another reader to judge.
    fn tail(&self, kind: TailKind) -> Piece {
        Piece::Tail { range: self.position..self.end, kind }
    }

    /// Quarantines the bytes at the current position; `declared_end` is where the next batch should begin.
    fn quarantine(&mut self, declared_end: Option<u64>, error: Error) -> io::Result<Piece> {
        let next = self.resume(declared_end)?;
        Ok(self.quarantine_to(next.unwrap_or(self.end), error))
    }

    fn resume(&mut self, declared_end: Option<u64>) -> io::Result<Option<u64>> {
        self.salvage.resume(&mut self.blocks, self.position, declared_end, &self.limits)
    }

    fn quarantine_to(&self, end: u64, error: Error) -> Piece {
        let range = self.position..end.min(self.end);
        // A failed read explains the damage to the bytes.
        let error = self.blocks.damage(&range).map_or(error, Error::from);
        Piece::Quarantined { range, error: error.at_position(self.position) }
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Nothing is mapped at address 0: reading there is an error of the system, as on a bad disk.
    const UNREADABLE: &str = "/proc/self/mem";

    #[test]
    fn bytes_the_system_cannot_read_are_quarantined() {
        let pieces = SegmentReader::open(UNREADABLE, 100, 0..100, 0, i64::MAX).expect("opened");
        let pieces: Vec<_> = pieces.map(|piece| piece.expect("no error of the run")).collect();
        let [Piece::Quarantined { range, error }] = &pieces[..] else { panic!("{pieces:?}") };
        assert_eq!(*range, 0..100);
        assert_eq!(error.kind().name(), "file_unreadable");
        assert!(error.to_string().contains("Input/output error"), "{error}");
    }
}
