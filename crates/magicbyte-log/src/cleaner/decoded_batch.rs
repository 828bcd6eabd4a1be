//! A batch as every pass over a log reads it, so that all passes accept the same batches.

use magicbyte::internals::Decoded;
use magicbyte::state::ProducerEvent;
use magicbyte::{Batch, ControlType, Decompressor, ErrorKind, Result};

use crate::chunk::Chunk;
use crate::read::chunk_reader::BatchCounts;

/// The parts of a record that the passes use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordParts<'b> {
    pub(crate) offset: i64,
    pub(crate) key: Option<&'b [u8]>,
    pub(crate) has_value: bool,
}

/// A batch whose records all decode.
pub(crate) struct DecodedBatch<'b, 'a> {
    pub(crate) decoded: Decoded<'b, 'a>,
    pub(crate) records: Vec<RecordParts<'b>>,
    pub(crate) counts: BatchCounts,
    /// True if the batch's offsets are in an earlier segment or before the log's start. The batch is then not
    /// part of the log.
    pub(crate) is_outside: bool,
    /// True if the records' offsets rise, also with respect to earlier batches. Otherwise the batch can be
    /// copied but not rewritten.
    pub(crate) rises: bool,
    /// True if the first record's offset was used before, which only a wrapper can hide.
    pub(crate) overlaps: bool,
    pub(crate) event: Option<ProducerEvent>,
    /// The type of a control batch's first record. Only the first record counts, as in Kafka.
    pub(crate) control: Option<ControlType>,
}

impl<'b, 'a> DecodedBatch<'b, 'a> {
    /// Reads all records. Records before the chunk's start are in an earlier segment; offsets before
    /// `next_offset` are taken.
    pub(crate) fn read(
        batch: &'b Batch<'a>,
        decompressor: &'b mut Decompressor,
        chunk: &Chunk,
        next_offset: i64,
    ) -> Result<Self> {
        let event = match batch {
            Batch::V2(batch) => ProducerEvent::of(batch, decompressor)?,
            Batch::Legacy(_) => None,
        };
        let mut records: Vec<RecordParts<'b>> = Vec::new();
        let mut rises = true;
        let decoded = Decoded::visiting(batch, decompressor, |record| {
            let offset = record.offset();
            rises &= records.last().is_none_or(|last| last.offset < offset);
            records.push(RecordParts { offset, key: record.key(), has_value: record.value().is_some() });
        })?;
        let Decoded { count, first_offset, last_offset, .. } = decoded;
        let overlaps = first_offset.is_some_and(|first| first < next_offset);
        rises &= !overlaps;
        let announced = count.into();
        let mut counts = BatchCounts { announced, first_offset, last_offset, ..BatchCounts::default() };
        let begins = match batch {
            Batch::V2(batch) => batch.base_offset(),
            Batch::Legacy(_) => first_offset.unwrap_or(batch.stored_offset()),
        };
        if begins < 0 {
            // A segment cannot be named for a negative offset.
            return Err(batch.place(ErrorKind::OffsetOutOfOrder { found: begins, expected: 0 }.into()));
        }
        let is_deleted = chunk.is_deleted(batch.last_offset());
        let is_outside = is_deleted || chunk.start_offset.is_some_and(|start| begins < start);
        if is_deleted {
            counts.deleted = counts.announced;
        } else if let Some(start) = chunk.start_offset.filter(|_| is_outside) {
            if batch.last_offset() >= start {
                let found = batch.stored_offset();
                return Err(batch.place(ErrorKind::OffsetOutOfOrder { found, expected: start }.into()));
            }
            counts.outside = counts.announced;
        }
        let first = records.first().filter(|_| batch.is_control());
        let control = first.and_then(|first| first.key).map(ControlType::parse).transpose();
        let control = control.map_err(|e| batch.place(e))?;
        Ok(Self { decoded, records, counts, is_outside, rises, overlaps, event, control })
    }
}
