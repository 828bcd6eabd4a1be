//! The end of a bad batch, judged by its content. No checksum covers a batch's length, but records, and a
//! message's key and value, have sizes of their own. They distinguish a batch that was never completely
//! written from a batch whose length is wrong.

use std::io;

use magicbyte::internals::legacy_message::at;
use magicbyte::internals::{HEADER_SIZE_UP_TO_MAGIC, LOG_OVERHEAD, varint};
use magicbyte::{Batch, Compression, RECORD_BATCH_OVERHEAD, Result};

use super::STEP_EFFORT;
use crate::segment::blocks::Blocks;

/// The extent of a batch, by the sizes inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// Everything the header announces is present, and ends at this position.
    Ends(u64),
    /// The file, or the part of it that was written, ends inside the batch.
    Torn,
    /// The sizes are compressed.
    Hidden,
    /// The sizes contradict each other.
    Unknown,
}

/// The bounds of the walk from size to size.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    /// The largest size that the batch can have.
    pub(super) max_size: u64,
    /// The cost at which the walk ends without a result, in bytes of the budget.
    pub(super) max_effort: u64,
    /// True if a record that the end of the file cuts off must end where the batch does if it is the last one, and
    /// only then.
    pub(super) is_exact: bool,
}

/// The extent of the batch at `position`, judged by its `header` and the sizes after it, and the cost of the walk.
pub(super) fn extent(
    blocks: &mut Blocks,
    position: u64,
    header: &[u8],
    bounds: Bounds,
) -> io::Result<(Extent, u64)> {
    let Ok(batch) = Batch::from_header(header, position) else { return Ok((Extent::Unknown, 0)) };
    if matches!(batch, Batch::V2(_)) && batch.compression() != Ok(Compression::None) {
        return Ok((Extent::Hidden, 0));
    }
    let end = position.saturating_add(bounds.max_size);
    let mut walk = Walk { blocks, at: position, end, effort: 0, bounds };
    let walked = match batch {
        Batch::V2(batch) => walk.records(batch.record_count()),
        Batch::Legacy(_) => walk.message(header[HEADER_SIZE_UP_TO_MAGIC - 1]),
    };
    let (at, effort) = (walk.at, walk.effort);
    let extent = match walked {
        Ok(()) => Extent::Ends(at),
        Err(Stop::Cut) => Extent::Torn,
        Err(Stop::Io(error)) => return Err(error),
        // A crash can leave zeros where a preallocated file was never written.
        Err(Stop::Contradiction) if blocks.is_zero_from(at)? => Extent::Torn,
        Err(Stop::Contradiction | Stop::Exhausted) => Extent::Unknown,
    };
    Ok((extent, effort))
}

/// The reason why a walk did not reach the end of the batch.
enum Stop {
    /// The file ends.
    Cut,
    /// An impossible size.
    Contradiction,
    /// The walk has cost as much as it may.
    Exhausted,
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Steps from size to size; the bytes between them are not read.
struct Walk<'a> {
    blocks: &'a mut Blocks,
    at: u64,
    /// The walk must not pass this position.
    end: u64,
    /// The cost of the walk so far.
    effort: u64,
    bounds: Bounds,
}

impl Walk<'_> {
    /// `DefaultRecord`s, one after another.
    fn records(&mut self, count: i32) -> std::result::Result<(), Stop> {
        if count < 0 {
            return Err(Stop::Contradiction);
        }
        self.at += RECORD_BATCH_OVERHEAD as u64;
        for left in (0..count).rev() {
            // An impossible record leaves the walk at the record's start.
            let start = self.at;
            self.record(left == 0).inspect_err(|_| self.at = start)?;
        }
        Ok(())
    }

    fn record(&mut self, is_last: bool) -> std::result::Result<(), Stop> {
        let length = self.number(varint::read_i32)?;
        let outside = self.end;
        let end = self.at + u64::from(length.unsigned_abs());
        if length <= 0 || end > outside {
            return Err(Stop::Contradiction);
        }
        self.end = end;
        match self.fields() {
            // Only the last record ends where the batch does.
            Err(Stop::Cut) if self.bounds.is_exact && is_last != (end == outside) => Err(Stop::Contradiction),
            Ok(()) if self.at != end => Err(Stop::Contradiction),
            walked => {
                self.end = outside;
                walked
            }
        }
    }

    /// The fields of a record after its length.
    fn fields(&mut self) -> std::result::Result<(), Stop> {
        self.skip(1)?; // attributes
        let _timestamp_delta = self.number(varint::read_i64)?;
        let _offset_delta = self.number(varint::read_i32)?;
        self.nullable()?;
        self.nullable()?;
        for _header in 0..self.number(varint::read_i32)? {
            self.nullable()?;
            self.nullable()?;
        }
        Ok(())
    }

    /// A size and that many bytes; a negative size means null.
    fn nullable(&mut self) -> std::result::Result<(), Stop> {
        let size = self.number(varint::read_i32)?;
        self.skip(u64::try_from(size).unwrap_or(0))
    }

    /// A `LegacyRecord`: its key and its value.
    fn message(&mut self, magic: u8) -> std::result::Result<(), Stop> {
        self.at += key_at(magic) as u64;
        for is_value in [false, true] {
            let bytes = self.blocks.peek(self.at, 4)?;
            let Ok(size) = <[u8; 4]>::try_from(&*bytes) else { return Err(Stop::Cut) };
            let size = u64::try_from(i32::from_be_bytes(size)).unwrap_or(0);
            let end = self.at + 4 + size;
            if self.bounds.is_exact && is_value && end > self.blocks.size() && end != self.end {
                return Err(Stop::Contradiction);
            }
            self.skip(4 + size)?;
        }
        Ok(())
    }

    fn skip(&mut self, bytes: u64) -> std::result::Result<(), Stop> {
        let to = self.at.saturating_add(bytes);
        if to > self.end {
            return Err(Stop::Contradiction);
        }
        if to > self.blocks.size() {
            return Err(Stop::Cut);
        }
        if self.effort > self.bounds.max_effort {
            return Err(Stop::Exhausted);
        }
        // The bytes between sizes are not read, however many there are.
        self.effort += bytes.min(STEP_EFFORT);
        self.at = to;
        Ok(())
    }

    fn number<T>(&mut self, read: fn(&mut &[u8]) -> Result<T>) -> std::result::Result<T, Stop> {
        const MAX_SIZE: usize = 10;
        let bytes = self.blocks.peek(self.at, MAX_SIZE)?;
        let mut rest = &*bytes;
        match read(&mut rest) {
            Ok(number) => {
                self.skip((bytes.len() - rest.len()) as u64)?;
                Ok(number)
            }
            Err(_) if bytes.len() < MAX_SIZE => Err(Stop::Cut),
            Err(_) => Err(Stop::Contradiction),
        }
    }
}

/// Where a legacy message's key begins, relative to the message's offset field.
pub(super) fn key_at(magic: u8) -> usize {
    LOG_OVERHEAD + if magic == 0 { at::TIMESTAMP } else { at::TIMESTAMP + 8 }
}
