//! Changes that a broker makes to a batch without decoding it (`MutableRecordBatch`, which
//! `DefaultRecordBatch` implements).

use crate::batch::Batch;
use crate::compression::codec::Compression;
use crate::error::{Error, ErrorKind, Result};
use crate::frame::Frame;
use crate::record::batch_header::{
    BatchHeader, COMPRESSION, CONTROL, DELETE_HORIZON, LOG_APPEND_TIME, TRANSACTIONAL,
};
use crate::record::producer_state::ProducerState;
use crate::record::timestamp_type::TimestampType;
use crate::{legacy, record};

/// Moves a batch so that its last record has this offset; the other offsets of a magic 2 batch or a magic 1
/// wrapper move with it. The CRC does not cover the offset and does not change.
///
/// `batch` is exactly one batch.
///
/// # Errors
/// [`ErrorKind::InvalidOptions`] for a magic 0 wrapper, whose messages have absolute offsets:
/// [`Converter::assign_offsets`](super::Converter::assign_offsets) rewrites those.
/// [`ErrorKind::OffsetOutOfRange`] if the base offset would be negative. Framing errors.
pub fn set_last_offset(batch: &mut [u8], last_offset: i64) -> Result<()> {
    let base = match Batch::from_frame(batch, 0)? {
        Batch::V2(v2) => {
            let delta = i64::from(v2.last_offset_delta());
            let base = last_offset.checked_sub(delta).filter(|base| *base >= 0);
            base.ok_or_else(|| {
                let kind = ErrorKind::OffsetOutOfRange { found: last_offset, min: delta, max: i64::MAX };
                v2.place(Error::new(kind).in_field("lastOffset"))
            })?
        }
        Batch::Legacy(message) if message.magic() == 0 && message.compression()? != Compression::None => {
            let kind = ErrorKind::InvalidOptions("the offsets in a magic 0 wrapper are absolute");
            return Err(message.place(Error::new(kind).in_field("offset")));
        }
        Batch::Legacy(_) => last_offset,
    };
    batch[..8].copy_from_slice(&base.to_be_bytes());
    Ok(())
}

/// Sets the epoch of the leader that appends the batch, which the CRC does not cover. `batch` is exactly one
/// batch.
///
/// # Errors
/// [`ErrorKind::InvalidOptions`] below magic 2. Framing errors.
pub fn set_partition_leader_epoch(batch: &mut [u8], epoch: i32) -> Result<()> {
    match Batch::from_frame(batch, 0)? {
        Batch::V2(_) => {
            let at = record::at::PARTITION_LEADER_EPOCH;
            batch[at..at + 4].copy_from_slice(&epoch.to_be_bytes());
            Ok(())
        }
        Batch::Legacy(message) => {
            let kind = ErrorKind::InvalidOptions("a leader epoch needs magic 2");
            Err(message.place(Error::new(kind).in_field("partitionLeaderEpoch")))
        }
    }
}

/// Sets the batch's timestamp type and largest timestamp (ms), which with `LogAppendTime` is every record's.
/// If either changes, unknown bits of the attributes are cleared and the CRC is recomputed. `batch` is
/// exactly one batch.
///
/// # Errors
/// [`ErrorKind::CrcMismatch`] for a batch that is already damaged, [`ErrorKind::InvalidOptions`] for magic 0
/// and for [`TimestampType::NoTimestampType`], [`ErrorKind::UnknownCompression`]. Framing errors.
pub fn set_max_timestamp(batch: &mut [u8], timestamp_type: TimestampType, max_timestamp: i64) -> Result<()> {
    let old = Batch::from_frame(batch, 0)?;
    let forbid = |why| Err(old.place(Error::new(ErrorKind::InvalidOptions(why)).in_field("maxTimestamp")));
    if old.magic() == 0 {
        return forbid("magic 0 has no timestamp");
    }
    if timestamp_type == TimestampType::NoTimestampType {
        return forbid("magic 1 and 2 have a timestamp type");
    }
    if (old.timestamp_type(), old.max_timestamp()) == (timestamp_type, max_timestamp) {
        return Ok(());
    }
    old.verify()?;
    old.compression()?;
    let append_time = if timestamp_type == TimestampType::LogAppendTime { LOG_APPEND_TIME } else { 0 };
    match old {
        Batch::V2(v2) => {
            let header = v2.header();
            let known = COMPRESSION | TRANSACTIONAL | CONTROL | DELETE_HORIZON;
            let attributes = header.attributes & i16::from(known) | i16::from(append_time);
            BatchHeader { attributes, max_timestamp, ..header }.write(batch);
        }
        Batch::Legacy(message) => {
            let attributes = message.attributes() & legacy::COMPRESSION | append_time;
            let message = &mut batch[legacy::LOG_OVERHEAD..];
            message[legacy::at::ATTRIBUTES] = attributes;
            let at = legacy::at::TIMESTAMP;
            message[at..at + 8].copy_from_slice(&max_timestamp.to_be_bytes());
            legacy::write_crc(message);
        }
    }
    Ok(())
}

/// Sets the producer of the batch, the sequence of its first record, and whether it belongs to a transaction,
/// as a producer does with a batch that it sends again after its epoch was bumped (KIP-360,
/// `ProducerBatch.resetProducerState`). The records are not decoded; the CRC is recomputed. `batch` is exactly
/// one batch.
///
/// # Errors
/// [`ErrorKind::CrcMismatch`] for a batch that is already damaged. [`ErrorKind::InvalidOptions`] below magic
/// 2, for fields that Kafka does not combine, and for a control batch that would enter or leave a
/// transaction. Framing errors.
pub fn set_producer_state(batch: &mut [u8], state: ProducerState) -> Result<()> {
    let old = Batch::from_frame(batch, 0)?;
    let Batch::V2(v2) = old else {
        let kind = ErrorKind::InvalidOptions("a producer id needs magic 2");
        return Err(old.place(Error::new(kind).in_field("producerId")));
    };
    v2.verify()?;
    state.check(v2.is_control()).map_err(|error| v2.place(error))?;
    if v2.is_control() && v2.is_transactional() != state.is_transactional {
        let kind = ErrorKind::InvalidOptions("a control batch cannot enter or leave a transaction");
        return Err(v2.place(Error::new(kind).in_field("attributes")));
    }
    let header = v2.header();
    let transactional = if state.is_transactional { TRANSACTIONAL } else { 0 };
    let attributes = header.attributes & !i16::from(TRANSACTIONAL) | i16::from(transactional);
    let ProducerState { producer_id, producer_epoch, base_sequence, .. } = state;
    BatchHeader { attributes, producer_id, producer_epoch, base_sequence, ..header }.write(batch);
    Ok(())
}

/// Calls `change` for each batch of `data`, which consists of whole batches.
///
/// # Errors
/// The errors of `change`, framing errors, and [`ErrorKind::NeedMoreBytes`] for a truncated last batch, with
/// the batch's position in `data`. Batches before it have been changed.
#[doc(hidden)]
pub fn each_batch(data: &mut [u8], mut change: impl FnMut(&mut [u8]) -> Result<()>) -> Result<()> {
    let mut at = 0;
    while at < data.len() {
        let changed = match Frame::read(&data[at..]) {
            Ok(Frame::Whole { size }) => change(&mut data[at..at + size]).map(|()| size),
            Ok(Frame::Cut { needed }) => Err(ErrorKind::NeedMoreBytes { needed }.into()),
            Err(error) => Err(error),
        };
        at += changed.map_err(|error| error.shifted_by(at as u64))?;
    }
    Ok(())
}
