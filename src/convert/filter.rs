//! Writing a batch with only some of its records (`MemoryRecords.filterTo`, `buildRetainedRecordsInto`):
//! always as magic 2, with the same codec at Kafka's default level.

use crate::batch::Batch;
use crate::convert::decoded::Decoded;
use crate::convert::{Encoder, fields};
use crate::error::Result;
use crate::record::Record;
use crate::record::batch::RecordBatch;
use crate::record::batch_header::{BatchHeader, CONTROL, DELETE_HORIZON, LOG_APPEND_TIME, TRANSACTIONAL};
use crate::record::builder::append_batch;
use crate::record::control::ControlRecord;
use crate::record::header::Headers;
use crate::record::timestamp_type::TimestampType;

/// The treatment of a record.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Kept.
    Keep,
    /// Replaced by a tombstone: the key stays, value and headers go.
    Null,
    /// A control record without extra bytes, see [`is_bare`].
    Bare,
    /// Dropped.
    Drop,
}

/// Bytes of a control record's key (`ControlRecordType.CURRENT_CONTROL_RECORD_KEY_SIZE`).
const CONTROL_KEY: usize = 4;

/// True if a control record has nothing but its type and, if the type is known, its value. No bytes follow
/// them, and there are no headers.
#[doc(hidden)]
#[must_use]
pub fn is_bare(record: &Record<'_>) -> bool {
    bare(*record) == *record
}

fn bare(record: Record<'_>) -> Record<'_> {
    let key = record.key.map(|key| &key[..key.len().min(CONTROL_KEY)]);
    let value = record.value.and_then(|value| match ControlRecord::parse(key, Some(value)) {
        Ok(ControlRecord::Unknown { .. }) | Err(_) => None,
        // A later version with more fields differs before its end; then all of the value stays.
        Ok(control) => match control.to_key_and_value() {
            Ok((_, known)) if value.starts_with(&known) => Some(&value[..known.len()]),
            _ => Some(value),
        },
    });
    Record { key, value, headers: Headers::default(), ..record }
}

#[doc(hidden)]
impl Encoder {
    /// Appends the batch with the records that are kept, at least one. `fates` has one entry per record, in
    /// order. A magic 2 batch keeps its first and last offset, sequences, flags and epochs. Timestamps are
    /// relative to the delete horizon if there is one.
    pub fn retain(
        &mut self,
        decoded: &Decoded<'_, '_>,
        fates: &[Fate],
        delete_horizon_ms: Option<i64>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let (Self { codecs, section }, batch) = (self, decoded.batch);
        let v2 = batch.as_v2();
        let mut first = true;
        for (index, (record, fate)) in decoded.records().zip(fates).enumerate() {
            let record = match fate {
                Fate::Keep => record?,
                Fate::Null => Record { value: None, headers: Headers::default(), ..record? },
                Fate::Bare => bare(record?),
                Fate::Drop => continue,
            };
            if std::mem::take(&mut first) {
                let base_offset = v2.map_or(record.offset, RecordBatch::base_offset);
                section.start(base_offset, delete_horizon_ms.unwrap_or(record.timestamp));
            }
            let checked = section.check_offset(record.offset);
            checked.map_err(|e| batch.place(e.at_record(index as u32)))?;
            // Kafka's builder writes no record attributes.
            let record = fields(section, &record, 0);
            section.append(&record);
        }
        let written = section.header();
        let mut header = v2.map_or_else(|| written.clone(), kept_of);
        header.base_timestamp = written.base_timestamp;
        header.max_timestamp = written.max_timestamp;
        header.record_count = written.record_count;
        if batch.timestamp_type() == TimestampType::LogAppendTime {
            header.attributes |= i16::from(LOG_APPEND_TIME);
            header.max_timestamp = batch.max_timestamp();
        }
        if delete_horizon_ms.is_some() {
            header.attributes |= i16::from(DELETE_HORIZON);
        }
        let compressor = codecs.compressor_of(batch.compression()?)?;
        section.finish(header, compressor, out).map_err(|e| batch.place(e))?;
        Ok(())
    }
}

/// Appends the batch without any records: only its header (`DefaultRecordBatch.writeEmptyHeader`). A batch of
/// magic 0 or 1, for which Kafka has no such form, becomes an empty magic 2 batch with the same offsets.
#[doc(hidden)]
pub fn empty_of(decoded: &Decoded<'_, '_>, out: &mut Vec<u8>) -> Result<()> {
    let batch = decoded.batch;
    let mut header = match batch {
        Batch::V2(batch) => kept_of(batch),
        Batch::Legacy(_) => {
            let (first, last) = (decoded.first_offset, decoded.last_offset);
            let (first, last) = (first.unwrap_or(batch.last_offset()), last.unwrap_or(batch.last_offset()));
            BatchHeader {
                base_offset: first,
                partition_leader_epoch: -1,
                attributes: 0,
                last_offset_delta: last.wrapping_sub(first) as i32,
                base_timestamp: -1,
                max_timestamp: -1,
                producer_id: -1,
                producer_epoch: -1,
                base_sequence: -1,
                record_count: 0,
            }
        }
    };
    if batch.timestamp_type() == TimestampType::LogAppendTime {
        header.attributes |= i16::from(LOG_APPEND_TIME);
    }
    (header.base_timestamp, header.max_timestamp, header.record_count) = (-1, batch.max_timestamp(), 0);
    append_batch(&header, &[], out).map_err(|e| batch.place(e))
}

/// The part of a batch's header that is kept without its records: offsets, producer, epochs and two flags.
fn kept_of(batch: &RecordBatch<'_>) -> BatchHeader {
    let attributes = batch.header().attributes & i16::from(TRANSACTIONAL | CONTROL);
    BatchHeader { attributes, ..batch.header() }
}
