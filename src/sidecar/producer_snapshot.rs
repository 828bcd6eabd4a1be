//! `.snapshot`: the broker's state of each producer at an offset (`ProducerStateManager`).

use std::borrow::Borrow;

use crate::bytes::checksum::crc32c;
use crate::bytes::cursor::Cursor;
use crate::error::{Error, ErrorKind, Result};
use crate::state::producer_entry::{BatchMetadata, ProducerStateEntry};

/// The CRC covers everything after it.
const CRC_END: usize = 6;
const ENTRY: usize = 46;

/// Reads a producer snapshot.
///
/// # Errors
/// [`ErrorKind::InvalidSidecar`] for an unknown version or a wrong size,
/// [`ErrorKind::CrcMismatch`].
pub fn parse_producer_snapshot(data: &[u8]) -> Result<Vec<ProducerStateEntry>> {
    let short = |_| Error::new(ErrorKind::InvalidSidecar("the producer snapshot is truncated"));
    let mut cursor = Cursor::new(data);
    if cursor.i16().map_err(short)? != 1 {
        return Err(ErrorKind::InvalidSidecar("unknown version of a producer snapshot").into());
    }
    let stored = cursor.u32().map_err(short)?;
    let computed = crc32c(&data[CRC_END..], 0);
    if stored != computed {
        return Err(Error::new(ErrorKind::CrcMismatch { stored, computed }).in_field("crc"));
    }
    let count = cursor.i32().map_err(short)?;
    if i64::from(count) * ENTRY as i64 != cursor.remaining() as i64 {
        return Err(Error::new(ErrorKind::InvalidCount(count.into())).in_field("producerEntries"));
    }
    (0..count)
        .map(|_| {
            let mut entry = ProducerStateEntry::empty(cursor.i64()?);
            entry.producer_epoch = cursor.i16()?;
            let last = BatchMetadata {
                last_sequence: cursor.i32()?,
                last_offset: cursor.i64()?,
                offset_delta: cursor.i32()?,
                timestamp: cursor.i64()?,
            };
            // As in `readSnapshot`: without an offset there is no batch.
            if last.last_offset >= 0 {
                entry.add_batch(entry.producer_epoch, last);
            }
            entry.last_timestamp = last.timestamp;
            entry.coordinator_epoch = cursor.i32()?;
            entry.current_txn_first_offset = Some(cursor.i64()?).filter(|&offset| offset >= 0);
            Ok(entry)
        })
        .collect()
}

/// Writes a producer snapshot with the entries in the given order. (Kafka's own order is that of a hash map.)
#[must_use]
pub fn write_producer_snapshot<E: Borrow<ProducerStateEntry>>(entries: &[E]) -> Vec<u8> {
    let mut out = Vec::with_capacity(CRC_END + 4 + ENTRY * entries.len());
    out.extend(1i16.to_be_bytes());
    out.extend([0; 4]);
    // A broker's producers fit into an int.
    out.extend((entries.len() as i32).to_be_bytes());
    for entry in entries.iter().map(E::borrow) {
        out.extend(entry.producer_id.to_be_bytes());
        out.extend(entry.producer_epoch.to_be_bytes());
        out.extend(entry.last_sequence().to_be_bytes());
        out.extend(entry.last_offset().to_be_bytes());
        out.extend(entry.offset_delta().to_be_bytes());
        out.extend(entry.last_timestamp.to_be_bytes());
        out.extend(entry.coordinator_epoch.to_be_bytes());
        out.extend(entry.current_txn_first_offset.unwrap_or(-1).to_be_bytes());
    }
    let crc = crc32c(&out[CRC_END..], 0);
    out[2..CRC_END].copy_from_slice(&crc.to_be_bytes());
    out
}
