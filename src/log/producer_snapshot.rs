//! `.snapshot`: what the broker knew of each producer at an offset (`ProducerStateManager`).

use crate::bytes::checksum::crc32c;
use crate::bytes::cursor::Cursor;
use crate::error::{Error, ErrorKind, Result};

/// The CRC covers everything behind itself.
const CRC_END: usize = 6;
const ENTRY: usize = 46;

/// One producer's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerStateEntry {
    /// The producer.
    pub producer_id: i64,
    /// Its epoch.
    pub producer_epoch: i16,
    /// Sequence of its last record, -1 for none.
    pub last_sequence: i32,
    /// Offset of its last record, -1 for none.
    pub last_offset: i64,
    /// Offsets in its last batch, less one.
    pub offset_delta: i32,
    /// Time (ms) of its last batch or marker.
    pub timestamp: i64,
    /// Epoch of the transaction coordinator that wrote its last marker, -1 for none.
    pub coordinator_epoch: i32,
    /// Where its open transaction began, if one is open.
    pub current_txn_first_offset: Option<i64>,
}

/// Reads a producer snapshot.
///
/// # Errors
/// [`ErrorKind::InvalidSidecar`] for an unknown version or a wrong size,
/// [`ErrorKind::CrcMismatch`].
pub fn parse_producer_snapshot(data: &[u8]) -> Result<Vec<ProducerStateEntry>> {
    let short = |_| Error::new(ErrorKind::InvalidSidecar("the producer snapshot is cut"));
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
            Ok(ProducerStateEntry {
                producer_id: cursor.i64()?,
                producer_epoch: cursor.i16()?,
                last_sequence: cursor.i32()?,
                last_offset: cursor.i64()?,
                offset_delta: cursor.i32()?,
                timestamp: cursor.i64()?,
                coordinator_epoch: cursor.i32()?,
                current_txn_first_offset: Some(cursor.i64()?).filter(|&offset| offset >= 0),
            })
        })
        .collect()
}
