//! Merging several magic 2 batches into one, and splitting one into several. This is only done on request,
//! since readers of the log can see the difference. Gaps between offsets, which Kafka's `Cleaner` leaves, are
//! kept.

use crate::batch::Batch;
use crate::compression::compressor::Compressor;
use crate::convert::{Converter, Encoder, all_or_nothing, append, append_time, size_of};
use crate::error::{Error, ErrorKind, Result};
use crate::record::batch::RecordBatch;
use crate::record::batch_header::{BatchHeader, COMPRESSION, RECORD_BATCH_OVERHEAD};
use crate::record::builder::{BatchBuilder, offset_between};
use crate::record::iter::sequence_of;

impl Converter {
    /// Writes consecutive batches as one, with the target codec or that of the first; writes nothing if there
    /// are none.
    ///
    /// The batches must have the same flags, timestamp type, leader epoch, producer id and epoch and, where
    /// set, append time and delete horizon, and increasing offsets. There may be no gap between a producer's
    /// batches, since sequences are counted by offset within a batch. Control batches and batches without
    /// records cannot be merged.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`] naming the difference, with the batch's base offset;
    /// [`ErrorKind::OffsetOutOfRange`], [`ErrorKind::CrcMismatch`], and those of [`RecordBatch::records`].
    pub fn merge(&mut self, batches: &[RecordBatch<'_>], out: &mut Vec<u8>) -> Result<()> {
        let ([first, ..], [.., last]) = (batches, batches) else { return Ok(()) };
        let mut before = None;
        for batch in batches {
            batch.verify()?;
            check_mergeable(before, batch).map_err(|e| batch.place(e))?;
            before = Some(batch);
        }
        let base_offset = first.base_offset();
        offset_between(last.last_offset(), base_offset, None).map_err(|e| last.place(e))?;

        let Self { decompressor, encoder: Encoder { codecs, section } } = self;
        section.start(base_offset, first.base_timestamp());
        for batch in batches {
            for (index, record) in batch.records(decompressor)?.enumerate() {
                let record = record?;
                if section.count() == 0 {
                    section.start(base_offset, first.delete_horizon_ms().unwrap_or(record.timestamp));
                }
                append(section, &record, record.attributes)
                    .map_err(|e| batch.place(e.at_record(index as u32)))?;
            }
            section.extend_to(batch.last_offset());
        }
        let max_timestamp = batches.iter().map(RecordBatch::max_timestamp).max().unwrap_or(-1);
        let header = BatchHeader { max_timestamp, ..with_records_of(section, first) };
        let compressor = codecs.compressor_of(first.compression()?)?;
        section.finish(header, compressor, out).map_err(|e| first.place(e))?;
        Ok(())
    }

    /// Writes the batch as several batches of at most `max_size` bytes before compression; a larger record
    /// gets a batch of its own. A batch that is small enough, has no records or is a control batch is written
    /// as [`recompress`](Self::recompress) does. Each part extends up to the first record of the next;
    /// sequences continue across parts.
    ///
    /// # Errors
    /// [`ErrorKind::CrcMismatch`], [`ErrorKind::OffsetOutOfRange`] for offsets that do not increase, and
    /// those of [`RecordBatch::records`].
    pub fn split(&mut self, batch: &RecordBatch<'_>, max_size: usize, out: &mut Vec<u8>) -> Result<()> {
        let Self { decompressor, encoder: Encoder { codecs, section } } = self;
        let records = batch.records(decompressor)?;
        if batch.is_control() || RECORD_BATCH_OVERHEAD + records.payload_size() <= max_size {
            return self.recompress(&Batch::V2(*batch), out);
        }
        batch.verify()?;
        let compressor = codecs.compressor_of(batch.compression()?)?;
        let mut base_offset = batch.base_offset();
        section.start(base_offset, batch.base_timestamp());
        all_or_nothing(out, |out| {
            for (index, record) in records.enumerate() {
                let record = record?;
                let at_record = |e: Error| batch.place(e.at_record(index as u32));
                let size = RECORD_BATCH_OVERHEAD + section.records_size() + size_of(section, &record);
                if section.count() > 0 && size > max_size {
                    section.check_offset(record.offset).map_err(at_record)?;
                    section.extend_to(record.offset - 1);
                    write_part(section, batch, compressor, out)?;
                    base_offset = record.offset;
                    section.start(base_offset, batch.base_timestamp());
                }
                if section.count() == 0 {
                    section.start(base_offset, batch.delete_horizon_ms().unwrap_or(record.timestamp));
                }
                append(section, &record, record.attributes).map_err(at_record)?;
            }
            section.extend_to(batch.last_offset());
            write_part(section, batch, compressor, out)
        })
    }
}

/// Checks that the batch can follow the one before it in a merged batch.
fn check_mergeable(before: Option<&RecordBatch<'_>>, batch: &RecordBatch<'_>) -> Result<()> {
    let is_first = before.is_none();
    let before = before.unwrap_or(batch);
    let flags = |b: &RecordBatch<'_>| b.attributes() & !i16::from(COMPRESSION);
    let producer = |b: &RecordBatch<'_>| (b.producer_id(), b.producer_epoch());
    let time = |b: &RecordBatch<'_>| append_time(b.timestamp_type(), b.max_timestamp());
    let next_sequence = sequence_of(before.last_sequence(), 1);
    let gap = before.last_offset().checked_add(1) != Some(batch.base_offset());
    let why = if batch.is_control() {
        "control batches cannot be merged"
    } else if batch.record_count() == 0 {
        "batches without records cannot be merged"
    } else if flags(before) != flags(batch) {
        "the batches to merge differ in flags or timestamp type"
    } else if before.partition_leader_epoch() != batch.partition_leader_epoch() {
        "the batches to merge differ in leader epoch"
    } else if producer(before) != producer(batch) {
        "the batches to merge differ in producer id or epoch"
    } else if time(before) != time(batch) {
        "the batches to merge differ in append time"
    } else if before.delete_horizon_ms() != batch.delete_horizon_ms() {
        "the batches to merge differ in delete horizon"
    } else if !is_first && batch.base_offset() <= before.last_offset() {
        "the batches to merge are not in offset order"
    } else if !is_first && batch.base_sequence() >= 0 && (gap || next_sequence != batch.base_sequence()) {
        "the producer's batches to merge have a gap between them"
    } else {
        return Ok(());
    };
    Err(ErrorKind::InvalidOptions(why).into())
}

fn write_part(
    section: &BatchBuilder,
    batch: &RecordBatch<'_>,
    compressor: &mut Compressor,
    out: &mut Vec<u8>,
) -> Result<()> {
    section.finish(with_records_of(section, batch), compressor, out).map_err(|e| batch.place(e))?;
    Ok(())
}

/// The header of `batch` for the records in `section`, the first of which are in `batch`.
fn with_records_of(section: &BatchBuilder, batch: &RecordBatch<'_>) -> BatchHeader {
    let (whole, records) = (batch.header(), section.header());
    let delta = records.base_offset.wrapping_sub(whole.base_offset) as i32;
    BatchHeader {
        partition_leader_epoch: whole.partition_leader_epoch,
        attributes: whole.attributes,
        max_timestamp: append_time(batch.timestamp_type(), whole.max_timestamp)
            .unwrap_or(records.max_timestamp),
        producer_id: whole.producer_id,
        producer_epoch: whole.producer_epoch,
        base_sequence: sequence_of(whole.base_sequence, delta),
        ..records
    }
}
