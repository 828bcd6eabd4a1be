//! A batch with some of its records (`MemoryRecords.filterTo`, `buildRetainedRecordsInto`): always magic 2,
//! the codec kept, at Kafka's default level.

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

/// What becomes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It stays.
    Keep,
    /// Its key stays, as a tombstone: no value, no headers.
    Null,
    /// A control record: what it says stays, see [`is_bare`].
    Bare,
    /// It goes.
    Drop,
}

/// Bytes of a control record's key (`ControlRecordType.CURRENT_CONTROL_RECORD_KEY_SIZE`).
const CONTROL_KEY: usize = 4;

/// Whether a control record is no more than what it says: its type, and the value of a type that is known, with
/// nothing after it. No headers.
pub(crate) fn is_bare(record: &Record<'_>) -> bool {
    bare(*record) == *record
}

fn bare(record: Record<'_>) -> Record<'_> {
    let key = record.key.map(|key| &key[..key.len().min(CONTROL_KEY)]);
    let value = record.value.and_then(|value| match ControlRecord::parse(key, Some(value)) {
        Ok(ControlRecord::Unknown { .. }) | Err(_) => None,
        // Where it goes on with fields of a later version it differs before its end: then all of it stays.
        Ok(control) => match control.to_key_and_value() {
            Ok((_, known)) if value.starts_with(&known) => Some(&value[..known.len()]),
            _ => Some(value),
        },
    });
    Record { key, value, headers: Headers::default(), ..record }
}

impl Encoder {
    /// Appends the batch with the records that stay, of which there is at least one; `fates` are its
    /// records' in order. A magic 2 batch keeps first and last offset, sequences, flags and epochs; with a
    /// delete horizon its timestamps count from there.
    pub(crate) fn retain(
        &mut self,
        decoded: &Decoded<'_, '_>,
        fates: &[Fate],
        delete_horizon_ms: Option<i64>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let (Self { codecs, section }, batch) = (self, decoded.batch);
        let v2 = match batch {
            Batch::V2(batch) => Some(batch),
            Batch::Legacy(_) => None,
        };
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
            let placed = section.check_offset(record.offset);
            placed.map_err(|e| batch.place(e.at_record(index as u32)))?;
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

/// Appends the header that is left of a batch without records (`DefaultRecordBatch.writeEmptyHeader`). Of
/// magic 0 and 1, where Kafka knows none, one of magic 2 with the same offsets.
pub(crate) fn empty_of(decoded: &Decoded<'_, '_>, out: &mut Vec<u8>) -> Result<()> {
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

/// Of a batch's header what outlives its records: offsets, producer, epochs, and the two flags.
fn kept_of(batch: &RecordBatch<'_>) -> BatchHeader {
    let attributes = batch.header().attributes & i16::from(TRANSACTIONAL | CONTROL);
    BatchHeader { attributes, ..batch.header() }
}
