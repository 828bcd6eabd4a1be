//! A bad batch, and the facts that several rules ask of it.

use std::io;

use ::bytes::Bytes;

use magicbyte::internals::{Frame, HEADER_SIZE_UP_TO_MAGIC, be};
use magicbyte::{Batch, Compression, RECORD_BATCH_OVERHEAD};

use super::evidence::{Evidence, OwnChecksum};
use super::header::{max_records, sizes_agree};
use crate::segment::blocks::Blocks;
use crate::segment::limits::Limits;

/// A bad batch, with the file it is in and the budget to search that file.
pub(super) struct Damage<'a> {
    pub(super) blocks: &'a mut Blocks,
    pub(super) evidence: &'a mut Evidence,
    /// See `Salvage`.
    pub(super) led: &'a mut Option<(u64, u64)>,
    pub(super) limits: Limits,
    /// The position of the batch.
    pub(super) start: u64,
    /// The first bytes of the batch: a header, if they are intact and the file does not end before.
    pub(super) header: Bytes,
    /// The end that the reader expected.
    pub(super) declared_end: Option<u64>,
    pub(super) may_be_torn: bool,
}

impl Damage<'_> {
    /// The bytes that may still be inspected.
    pub(super) fn left(&self) -> u64 {
        self.evidence.left(self.start)
    }

    /// The distance to look for evidence.
    pub(super) fn reach(&self) -> u64 {
        self.evidence.reach(self.start)
    }

    pub(super) fn spend(&mut self, bytes: u64) {
        self.evidence.spend(bytes);
    }

    /// The number of bytes from the batch's start to the end of the file.
    pub(super) fn rest(&self) -> u64 {
        self.blocks.size() - self.start
    }

    /// The bytes of a header at `position`, or fewer where the file ends.
    pub(super) fn header_at(&mut self, position: u64) -> io::Result<Bytes> {
        self.blocks.peek(position, RECORD_BATCH_OVERHEAD)
    }

    /// True if `position`, where `header` was read, holds a batch whose CRC holds.
    pub(super) fn crc_holds_at(&mut self, header: &[u8], position: u64) -> io::Result<bool> {
        let max_size = self.limits.max_batch_size;
        self.evidence.crc_holds_at(self.blocks, header, position, max_size, self.start)
    }

    /// True if the batch ends at `end`, as its sizes indicate: its own checksum holds, the file ends there, or
    /// the next batch begins there, if only by its offset.
    pub(super) fn ends_at(&mut self, end: u64) -> io::Result<bool> {
        // A file that was allocated ahead has only zeros there: nothing can contradict the end.
        if self.blocks.is_zero_from(end)? {
            return Ok(true);
        }
        if let Some(checksum) = OwnChecksum::read(&self.header) {
            let covered = self.start + checksum.start..end;
            let computed = self.evidence.checksum(self.blocks, checksum.algorithm, covered, self.start)?;
            if computed == Some(checksum.stored) {
                return Ok(true);
            }
        }
        let next = self.header_at(end)?;
        if next.len() < HEADER_SIZE_UP_TO_MAGIC {
            return Ok(false);
        }
        let (first, expected) = (be!(&next, 0, i64), self.min_next_offset());
        // The next batch may be damaged as well, so its CRC is not asked for if this header announces its offset.
        if first == expected && self.claims_its_offsets() {
            return Ok(true);
        }
        let is_near = (expected..=self.limits.near()).contains(&first);
        Ok(is_near && self.crc_holds_at(&next, end)?)
    }

    /// True if the header has the offset that the log expects and does not contradict itself. The offsets that
    /// it claims then belong to its batch, unless its length or the rest of the file cannot hold that many
    /// records.
    pub(super) fn claims_its_offsets(&self) -> bool {
        let header = &self.header[..];
        let (Ok(_), Ok(batch)) = (Frame::read(header), Batch::from_header(header, 0)) else { return false };
        if batch.stored_offset() != self.limits.expected || batch.last_offset() > self.limits.max_offset {
            return false;
        }
        match batch {
            Batch::V2(batch) => {
                batch.record_count() == batch.last_offset_delta().wrapping_add(1)
                    && batch.record_count() > 0
                    && i64::from(batch.record_count()) <= max_records(header, self.rest())
            }
            // A wrapper's offset is the offset of its last message.
            Batch::Legacy(message) => message.compression() == Ok(Compression::None) && sizes_agree(header),
        }
    }

    /// The smallest offset that can follow the batch, whose header may claim offsets for itself.
    pub(super) fn min_next_offset(&self) -> i64 {
        match Batch::from_header(&self.header, 0) {
            Ok(batch) if self.claims_its_offsets() => batch.last_offset().saturating_add(1),
            _ => self.limits.expected,
        }
    }

    /// The offsets that the next batch can have if nothing is lost before it: by all fields of the header, by
    /// its last offset, by its count. Damage may have hit one of these fields.
    pub(super) fn next_offsets(&self) -> [i64; 3] {
        let by_all = self.min_next_offset();
        match Batch::from_header(&self.header, 0) {
            Ok(Batch::V2(batch)) if batch.base_offset() == self.limits.expected => {
                let by_last = batch.last_offset().saturating_add(1);
                [by_all, by_last, batch.base_offset().saturating_add(batch.record_count().into())]
            }
            _ => [by_all; 3],
        }
    }
}
