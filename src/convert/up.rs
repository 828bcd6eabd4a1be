//! Magic 0 and 1 to magic 2, by the rules of Kafka 4's cleaner
//! (`MemoryRecords.buildRetainedRecordsInto`), but nothing is dropped.

use super::{Converter, append, append_time};
use crate::batches::Batch;
use crate::error::Result;
use crate::legacy::LegacyBatch;
use crate::record::{BatchBuilder, BatchHeader, LOG_APPEND_TIME};

impl Converter {
    /// Writes the batch as magic 2: a compressed wrapper becomes one batch, its gaps kept, as does
    /// an uncompressed message. A batch of magic 2 keeps all it has, but for a target codec.
    ///
    /// A record of magic 0 has the timestamp -1 afterwards, as `CreateTime`; under a wrapper's
    /// `LogAppendTime` all have the append time. No producer, leader epoch -1. Timestamps that
    /// Kafka's builder would refuse are kept.
    ///
    /// # Errors
    /// [`ErrorKind::CrcMismatch`](crate::ErrorKind::CrcMismatch), also of a message inside, what
    /// [`LegacyBatch::records`] refuses,
    /// [`ErrorKind::OffsetOutOfRange`](crate::ErrorKind::OffsetOutOfRange) for offsets inside that
    /// do not rise or are more than 2^31-1 apart.
    pub fn up_convert(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<()> {
        match batch {
            Batch::V2(v2) if self.codecs.target.is_none() => {
                batch.verify()?;
                out.extend_from_slice(v2.as_bytes());
                Ok(())
            }
            Batch::V2(_) => self.recompress(batch, out),
            Batch::Legacy(legacy) => self.up_convert_legacy(legacy, out),
        }
    }

    fn up_convert_legacy(&mut self, batch: &LegacyBatch<'_>, out: &mut Vec<u8>) -> Result<()> {
        batch.verify()?;
        let Self { decompressor, codecs, section } = self;
        for (index, record) in batch.records(decompressor)?.enumerate() {
            let record = record?;
            if index == 0 {
                section.start(record.offset, record.timestamp);
            }
            append(section, &record, 0).map_err(|e| batch.place(e.at_record(index as u32)))?;
        }
        let header = header(section, append_time(batch.timestamp_type(), batch.max_timestamp()));
        let compressor = codecs.compressor_of(batch.compression()?)?;
        section.finish(header, compressor, out).map_err(|e| batch.place(e))?;
        Ok(())
    }
}

/// The header of records without a producer.
pub(super) fn header(section: &BatchBuilder, append_time: Option<i64>) -> BatchHeader {
    let header = section.header();
    match append_time {
        Some(max_timestamp) => BatchHeader { attributes: LOG_APPEND_TIME.into(), max_timestamp, ..header },
        None => header,
    }
}
