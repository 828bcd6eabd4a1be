//! Up-conversion of magic 0 and 1 to magic 2, by the rules of Kafka 4's cleaner
//! (`MemoryRecords.buildRetainedRecordsInto`), except that nothing is dropped.

use crate::batch::Batch;
use crate::convert::decoded::Decoded;
use crate::convert::{Converter, Encoder, append, append_time};
use crate::error::Result;
use crate::record::batch_header::{BatchHeader, LOG_APPEND_TIME};
use crate::record::builder::BatchBuilder;

impl Converter {
    /// Writes the batch as magic 2. A wrapper or a single message becomes one batch; gaps in offsets are
    /// kept. A batch of magic 2 is copied, or recompressed with the target codec.
    ///
    /// Records of magic 0 get timestamp -1 with `CreateTime`; records of a wrapper with `LogAppendTime` get
    /// its append time. There is no producer, and the leader epoch is -1. Timestamps that Kafka's builder
    /// would refuse are kept.
    ///
    /// # Errors
    /// [`ErrorKind::CrcMismatch`](crate::ErrorKind::CrcMismatch), also of a message inside,
    /// [`ErrorKind::OffsetOutOfRange`](crate::ErrorKind::OffsetOutOfRange) for offsets that do not increase
    /// or are more than 2^31-1 apart, and the errors of
    /// [`LegacyBatch::records`](crate::LegacyBatch::records).
    pub fn up_convert(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<()> {
        batch.verify()?;
        if self.encoder.keeps(batch) {
            out.extend_from_slice(batch.as_bytes());
            return Ok(());
        }
        self.encoder.up_convert(&Decoded::of(batch, &mut self.decompressor)?, out)
    }
}

#[doc(hidden)]
impl Encoder {
    /// True if up-conversion leaves the batch unchanged.
    fn keeps(&self, batch: &Batch<'_>) -> bool {
        batch.magic() == 2 && self.codecs.target.is_none()
    }

    /// Implements [`Converter::up_convert`].
    pub fn up_convert(&mut self, decoded: &Decoded<'_, '_>, out: &mut Vec<u8>) -> Result<()> {
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

/// The header of a batch without a producer.
pub(super) fn header(section: &BatchBuilder, append_time: Option<i64>) -> BatchHeader {
    let header = section.header();
    match append_time {
        Some(max_timestamp) => BatchHeader { attributes: LOG_APPEND_TIME.into(), max_timestamp, ..header },
        None => header,
    }
}
