//! Magic 0 and 1 to magic 2, by the rules of Kafka 4's cleaner
//! (`MemoryRecords.buildRetainedRecordsInto`), but nothing is dropped.

use crate::batch::Batch;
use crate::convert::decoded::Decoded;
use crate::convert::{Converter, Encoder, append, append_time};
use crate::error::Result;
use crate::record::batch_header::{BatchHeader, LOG_APPEND_TIME};
use crate::record::builder::BatchBuilder;

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
    /// [`LegacyBatch::records`](crate::LegacyBatch::records) refuses,
    /// [`ErrorKind::OffsetOutOfRange`](crate::ErrorKind::OffsetOutOfRange) for offsets inside that
    /// do not rise or are more than 2^31-1 apart.
    pub fn up_convert(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<()> {
        batch.verify()?;
        if self.encoder.keeps(batch) {
            out.extend_from_slice(batch.as_bytes());
            return Ok(());
        }
        self.encoder.up_convert(&Decoded::of(batch, &mut self.decompressor)?, out)
    }
}

impl Encoder {
    /// Up-conversion would write the batch as it is.
    fn keeps(&self, batch: &Batch<'_>) -> bool {
        batch.magic() == 2 && self.codecs.target.is_none()
    }

    /// As [`Converter::up_convert`].
    pub(crate) fn up_convert(&mut self, decoded: &Decoded<'_, '_>, out: &mut Vec<u8>) -> Result<()> {
        let batch = decoded.batch;
        match batch {
            _ if self.keeps(batch) => {
                out.extend_from_slice(batch.as_bytes());
                Ok(())
            }
            Batch::V2(_) => self.recompress(decoded, out),
            Batch::Legacy(_) => self.up_convert_legacy(decoded, out),
        }
    }

    fn up_convert_legacy(&mut self, decoded: &Decoded<'_, '_>, out: &mut Vec<u8>) -> Result<()> {
        let (Self { codecs, section }, batch) = (self, decoded.batch);
        for (index, record) in decoded.records().enumerate() {
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
