//! The offsets of a batch whose CRC holds. Base offsets are outside the CRC, so its neighbors are the only
//! evidence.

use std::io;
use std::ops::Range;

use magicbyte::internals::{HEADER_SIZE_UP_TO_MAGIC, LOG_OVERHEAD, be};
use magicbyte::{Batch, Decompressor, RECORD_BATCH_OVERHEAD};

use super::evidence::Evidence;
use super::header::{declared_size, framed_size};
use crate::segment::blocks::Blocks;
use crate::segment::limits::Limits;
use crate::segment::wrapper::inner_messages;

/// The maximum number of headers after a batch that are used to check its offset.
const MAX_HEADERS: usize = 16;

/// A batch at `range`, whose last offset is `last`, among its neighbors.
pub(super) struct Neighbors<'a> {
    pub(super) blocks: &'a mut Blocks,
    pub(super) evidence: &'a mut Evidence,
    pub(super) limits: &'a Limits,
    pub(super) range: Range<u64>,
    pub(super) last: i64,
}

impl Neighbors<'_> {
    /// The offset of the batch that does not fit, if its first offset is `first`.
    pub(super) fn misfit(&mut self, first: i64) -> io::Result<Option<i64>> {
        if first < self.limits.expected {
            return Ok(Some(first));
        }
        if self.last > self.limits.max_offset || self.last < first {
            return Ok(Some(self.last));
        }
        // A gap before it may come from compaction, or later batches may show that this offset is too high.
        if first > self.limits.expected && self.is_contradicted()? && !self.follows()? {
            return Ok(Some(first));
        }
        // A wrong offset far ahead, followed by damage, would also lose all batches after that damage.
        if self.last > self.limits.near() && !self.is_confirmed()? {
            return Ok(Some(self.last));
        }
        Ok(None)
    }

    /// True if the log continues after the batch: a batch whose CRC holds follows, possibly after damaged
    /// batches, or nothing follows.
    fn is_confirmed(&mut self) -> io::Result<bool> {
        let mut at = self.range.end;
        for _ in 0..MAX_HEADERS {
            let next = self.blocks.peek(at, RECORD_BATCH_OVERHEAD)?;
            if next.iter().all(|&byte| byte == 0) {
                return self.blocks.is_zero_from(at);
            }
            let Some(size) = declared_size(&next) else { return Ok(next.len() < LOG_OVERHEAD) };
            if be!(&next, 0, i64) <= self.last {
                return Ok(false);
            }
            // The tail: its batch was not written completely.
            if at.saturating_add(size) > self.blocks.size() || self.crc_holds_at(&next, at)? {
                return Ok(true);
            }
            at = at.saturating_add(size);
        }
        Ok(false)
    }

    /// True if a batch follows whose CRC holds and whose offset is between the expected offset and the last
    /// of this batch. Damaged batches may be in between.
    fn is_contradicted(&mut self) -> io::Result<bool> {
        let mut at = self.range.end;
        for _ in 0..MAX_HEADERS {
            let next = self.blocks.peek(at, RECORD_BATCH_OVERHEAD)?;
            if next.len() < HEADER_SIZE_UP_TO_MAGIC || be!(&next, 0, i64) > self.last {
                break;
            }
            let Some(size) = framed_size(&next) else { break };
            if be!(&next, 0, i64) >= self.limits.expected && self.crc_holds_at(&next, at)? {
                return Ok(true);
            }
            at = at.saturating_add(size);
        }
        Ok(false)
    }

    /// True if the batch is a wrapper whose first message has the expected offset. A wrapper's header has only
    /// the last offset.
    fn follows(&mut self) -> io::Result<bool> {
        let Range { start, end } = self.range;
        let data = self.blocks.peek(start, (end - start) as usize)?;
        let Ok(batch) = Batch::from_frame(&data, start) else { return Ok(false) };
        let mut decompressor = Decompressor::with_limit(self.limits.max_batch_size);
        let inner = inner_messages(&batch, &mut decompressor);
        Ok(inner.is_some_and(|inner| {
            inner.first_offset == self.limits.expected && inner.last_offset == batch.last_offset()
        }))
    }

    fn crc_holds_at(&mut self, header: &[u8], position: u64) -> io::Result<bool> {
        let max_size = self.limits.max_batch_size;
        self.evidence.crc_holds_at(self.blocks, header, position, max_size, self.range.end)
    }
}

#[cfg(test)]
mod tests {
    use magicbyte_testing::handmade::{gzip_stored, message};

    use super::super::Salvage;
    use super::super::testing::{LIMITS, batch, blocks};

    /// The offset that does not fit of a batch with these offsets, if these batches follow.
    fn misfit(first: i64, last: i64, bytes: &[u8], following: &[&[u8]]) -> Option<i64> {
        let file = [bytes, &following.concat()].concat();
        let (size, end) = (file.len() as u64, bytes.len() as u64);
        let checked = Salvage::new(0, size).misfit(&mut blocks(&file), &LIMITS, (first, last), 0..end);
        checked.expect("read")
    }

    #[test]
    fn offsets_outside_of_the_log() {
        let any = batch(10, &[b"value"]);
        assert_eq!(misfit(10, 12, &any, &[]), None);
        assert_eq!(misfit(9, 12, &any, &[]), Some(9));
        assert_eq!(misfit(10, 9, &any, &[]), Some(9));
    }

    #[test]
    fn a_gap_that_later_batches_contradict() {
        let high = batch(50, &[b"value"]);
        assert_eq!(misfit(50, 50, &high, &[&batch(51, &[b"next"])]), None);
        assert_eq!(misfit(50, 50, &high, &[&batch(11, &[b"next"])]), Some(50));
        // A damaged batch contradicts nothing, but the one after it does.
        let mut damaged = batch(11, &[b"next"]);
        damaged[61] ^= 1;
        assert_eq!(misfit(50, 50, &high, &[&damaged]), None);
        assert_eq!(misfit(50, 50, &high, &[&damaged, &batch(12, &[b"next"])]), Some(50));
    }

    #[test]
    fn a_wrapper_whose_first_message_is_expected_leaves_no_gap() {
        let messages = [10, 11, 12].map(|offset| message(offset, 0, 0, 0, None, Some(b"value"))).concat();
        let wrapper = message(12, 0, 1, 0, None, Some(&gzip_stored(&messages)));
        assert_eq!(misfit(12, 12, &wrapper, &[&batch(11, &[b"next"])]), None);
        let alone = message(12, 0, 0, 0, None, Some(b"value"));
        assert_eq!(misfit(12, 12, &alone, &[&batch(11, &[b"next"])]), Some(12));
    }

    #[test]
    fn an_offset_beyond_the_segment_needs_a_batch_that_confirms_it() {
        let offset = 11 + (1 << 32);
        let far = batch(offset, &[b"value"]);
        assert_eq!(misfit(offset, offset, &far, &[&batch(offset + 1, &[b"next"])]), None);
        assert_eq!(misfit(offset, offset, &far, &[]), None);
        assert_eq!(misfit(offset, offset, &far, &[&[0; 100]]), None);
        assert_eq!(misfit(offset, offset, &far, &[&[0xee; 100]]), Some(offset));
    }
}
