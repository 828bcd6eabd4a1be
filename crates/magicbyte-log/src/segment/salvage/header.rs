//! Facts in a batch's header, and in the sizes of a legacy message.

use std::io;

use magicbyte::Batch;
use magicbyte::internals::{Frame, HEADER_SIZE_UP_TO_MAGIC, LOG_OVERHEAD, RECORD_OVERHEAD_V0, be};

use super::extent::key_at;
use crate::segment::blocks::Blocks;

/// No codec inflates one byte to more records than this: a zstd block of four bytes is at most 128 KiB.
const MAX_RECORDS_PER_BYTE: i64 = 8 << 10;

/// The batch's size that a header declares, if it is possible.
pub(super) fn declared_size(header: &[u8]) -> Option<u64> {
    let length = usize::try_from(be!(header.get(..LOG_OVERHEAD)?, 8, i32)).ok()?;
    (length >= RECORD_OVERHEAD_V0).then_some((LOG_OVERHEAD + length) as u64)
}

/// The size of the batch that a header frames as Kafka does. None if it frames none.
pub(super) fn framed_size(header: &[u8]) -> Option<u64> {
    Some(match Frame::read(header).ok()? {
        Frame::Whole { size } => size as u64,
        Frame::Cut { needed } => header.len() as u64 + needed,
    })
}

/// The maximum number of records in a batch, judged by its length. At most `rest` bytes of the batch are in the
/// file.
pub(super) fn max_records(header: &[u8], rest: u64) -> i64 {
    let length = i64::from(be!(header, 8, i32));
    MAX_RECORDS_PER_BYTE.saturating_mul(length.min(rest.try_into().unwrap_or(i64::MAX)))
}

/// True if the sizes of a legacy message's key and value add up to its length, as far as the header shows
/// them.
pub(super) fn sizes_agree(header: &[u8]) -> bool {
    let (end, is_exact) = end_by_sizes(header);
    declared_size(header).is_some_and(|size| if is_exact { end == size } else { end <= size })
}

/// True if a legacy message of `size` bytes has room for its key and value, as far as they are in memory.
/// Bytes without that room are not a message and need no checksum.
pub(super) fn sizes_fit(message: &[u8], size: usize) -> bool {
    end_by_sizes(message).0 <= size as u64
}

/// The size of a legacy message by the sizes of its key and value, and true if both are in memory; else the
/// message has at least that size.
fn end_by_sizes(message: &[u8]) -> (u64, bool) {
    let mut at = key_at(message[HEADER_SIZE_UP_TO_MAGIC - 1]);
    for _key_and_value in 0..2 {
        let Some(size) = message.get(at..at + 4) else { return (at as u64 + 4, false) };
        // Any negative size is null, as in Kafka.
        at += 4 + usize::try_from(be!(size, 0, i32)).unwrap_or(0);
    }
    (at as u64, true)
}

/// True if the header of a batch in `start..end`, and the sizes inside a legacy message, look as every
/// writer leaves them. Kafka accepts more, so only batches that claim to end past the window or the file are
/// checked. Many bytes do so by chance, and each would cost a checksum over the file.
pub(super) fn is_as_written(blocks: &mut Blocks, header: &[u8], start: u64, end: u64) -> io::Result<bool> {
    const KNOWN_ATTRIBUTES: i16 = 0x7f;
    if Frame::read(header).is_err() {
        return Ok(false);
    }
    let message = match Batch::from_header(header, start) {
        Ok(Batch::V2(batch)) => {
            return Ok(batch.attributes() & !KNOWN_ATTRIBUTES == 0
                && batch.producer_id() >= -1
                && batch.producer_epoch() >= -1
                && batch.base_sequence() >= -1
                && batch.record_count() >= 0);
        }
        Ok(Batch::Legacy(message)) => message,
        Err(_) => return Ok(false),
    };
    let mut at = start + key_at(message.magic().cast_unsigned()) as u64;
    for _key_and_value in 0..2 {
        let Ok(size) = <[u8; 4]>::try_from(&*blocks.peek(at, 4)?) else { return Ok(false) };
        let size = i32::from_be_bytes(size);
        if size < -1 {
            return Ok(false);
        }
        at += 4 + u64::from(size.max(0).cast_unsigned());
    }
    Ok(at == end)
}
