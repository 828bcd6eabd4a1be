//! Recompressing a batch with another codec or level, as a broker's `LogValidator` does, but without
//! re-encoding its records.

use crate::batch::Batch;
use crate::compression::codec::Compression;
use crate::convert::decoded::Decoded;
use crate::convert::{Converter, Encoder, all_or_nothing};
use crate::error::{Error, ErrorKind, Result};
use crate::legacy;
use crate::legacy::batch::LegacyBatch;
use crate::legacy::builder::MessageFields;
use crate::legacy::iter::split_message;
use crate::record::batch::RecordBatch;
use crate::record::batch_header::{BatchHeader, COMPRESSION};
use crate::record::builder::append_batch;
use crate::record::timestamp_type::TimestampType;

impl Converter {
    /// Writes the batch with the converter's codec. Everything else is kept: offsets, timestamps, attributes,
    /// epochs, sequences and every byte of the records. Compressing an uncompressed batch and decompressing
    /// it again gives the same bytes.
    ///
    /// A legacy wrapper that is decompressed becomes single messages; a single message that is compressed
    /// gets a separate wrapper. A batch without records is copied.
    ///
    /// # Errors
    /// [`ErrorKind::CrcMismatch`], [`ErrorKind::UnsupportedCompression`] for zstd below magic 2, and the
    /// errors of [`Batch::records`].
    pub fn recompress(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<()> {
        batch.verify()?;
        self.encoder.recompress(&Decoded::of(batch, &mut self.decompressor)?, out)
    }

    /// Writes a magic 0 batch with consecutive offsets from `base_offset` on, as brokers did for producers.
    /// Offsets inside a wrapper are absolute, so it is recompressed. For batches of other magics use
    /// [`set_last_offset`](super::set_last_offset).
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`] for another magic, [`ErrorKind::OffsetOutOfRange`] beyond 2^63-1,
    /// [`ErrorKind::CrcMismatch`], and the errors of the decompression.
    pub fn assign_offsets(
        &mut self,
        batch: &LegacyBatch<'_>,
        base_offset: i64,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        batch.verify()?;
        let codec = batch.compression()?;
        self.assign_in_wrapper(batch, codec, base_offset, out).map_err(|e| batch.place(e))
    }

    fn assign_in_wrapper(
        &mut self,
        batch: &LegacyBatch<'_>,
        codec: Compression,
        base_offset: i64,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if batch.magic() != 0 {
            return Err(ErrorKind::InvalidOptions("only magic 0 needs offsets assigned one by one").into());
        }
        let mut messages = match codec {
            Compression::None => batch.as_bytes().to_vec(),
            _ => self.decompressor.decompress(codec, 0, batch.wrapped(codec)?)?.to_vec(),
        };
        let (mut at, mut count) = (0, 0u32);
        while let Some((_, _, after)) = split_message(&messages[at..])? {
            let end = messages.len() - after.len();
            let offset = base_offset.checked_add(count.into()).ok_or_else(|| {
                let kind = ErrorKind::OffsetOutOfRange { found: base_offset, min: 0, max: i64::MAX };
                Error::new(kind).in_field("offset").at_record(count)
            })?;
            messages[at..at + 8].copy_from_slice(&offset.to_be_bytes());
            (at, count) = (end, count + 1);
        }
        if count == 0 {
            return Err(ErrorKind::InvalidRecord("a compressed message set has no messages inside").into());
        }
        if codec == Compression::None {
            out.extend_from_slice(&messages);
            return Ok(());
        }
        let compressor = self.encoder.codecs.compressor_of(codec)?;
        let codec = compressor.codec();
        let payload = compressor.compress(0, &messages[..at])?;
        let offset = base_offset + i64::from(count) - 1;
        MessageFields { offset, ..wrapper_like(batch, codec, payload) }.append_to(out)
    }
}

#[doc(hidden)]
impl Encoder {
    /// Implements [`Converter::recompress`].
    pub fn recompress(&mut self, decoded: &Decoded<'_, '_>, out: &mut Vec<u8>) -> Result<()> {
        let batch = decoded.batch;
        let written = match batch {
            Batch::V2(batch) if batch.record_count() == 0 => {
                out.extend_from_slice(batch.as_bytes());
                return Ok(());
            }
            Batch::V2(batch) => self.recompress_v2(batch, decoded.payload, out),
            Batch::Legacy(message) => match (message.compression()?, self.codecs.target) {
                (Compression::None, None | Some(Compression::None)) => {
                    out.extend_from_slice(message.as_bytes());
                    return Ok(());
                }
                (Compression::None, Some(codec)) => self.wrap(message, codec, out),
                (_, Some(Compression::None)) => unwrap(decoded, out),
                (codec, _) => self.recompress_wrapper(message, codec, decoded.payload, out),
            },
        };
        written.map_err(|e| batch.place(e))
    }

    fn recompress_v2(&mut self, batch: &RecordBatch<'_>, records: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let compressor = self.codecs.compressor_of(batch.compression()?)?;
        let header = batch.header();
        let attributes = header.attributes & !i16::from(COMPRESSION) | compressor.codec() as i16;
        append_batch(&BatchHeader { attributes, ..header }, compressor.compress(2, records)?, out)
    }

    fn recompress_wrapper(
        &mut self,
        wrapper: &LegacyBatch<'_>,
        codec: Compression,
        messages: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let compressor = self.codecs.compressor_of(codec)?;
        let new_codec = compressor.codec();
        wrapper_like(wrapper, new_codec, compressor.compress(wrapper.magic(), messages)?).append_to(out)
    }

    /// A wrapper around this one message.
    fn wrap(&mut self, message: &LegacyBatch<'_>, codec: Compression, out: &mut Vec<u8>) -> Result<()> {
        let magic = message.magic();
        let mut inner = message.as_bytes().to_vec();
        if magic > 0 {
            // Relative offsets start at 0.
            inner[..8].fill(0);
        }
        let payload = self.codecs.compressor_of(codec)?.compress(magic, &inner)?;
        wrapper_like(message, codec, payload).append_to(out)
    }
}

/// Writes the messages inside a wrapper as single messages, with the fields that they took from it.
fn unwrap(wrapper: &Decoded<'_, '_>, out: &mut Vec<u8>) -> Result<()> {
    let records = wrapper.records();
    all_or_nothing(out, |out| {
        for record in records {
            let record = record?;
            let message = MessageFields {
                offset: record.offset,
                magic: i8::from(record.timestamp_type != TimestampType::NoTimestampType),
                attributes: match record.timestamp_type {
                    TimestampType::LogAppendTime => legacy::LOG_APPEND_TIME,
                    _ => 0,
                },
                timestamp: record.timestamp,
                key: record.key,
                value: record.value,
            };
            message.append_to(out)?;
        }
        Ok(())
    })
}

/// A wrapper with this payload and the other fields of `message`.
fn wrapper_like<'p>(message: &LegacyBatch<'_>, codec: Compression, payload: &'p [u8]) -> MessageFields<'p> {
    MessageFields {
        offset: message.last_offset(),
        magic: message.magic(),
        attributes: message.attributes() & !legacy::COMPRESSION | codec as u8,
        timestamp: message.max_timestamp(),
        key: None,
        value: Some(payload),
    }
}
