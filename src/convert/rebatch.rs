//! Packing the records of consecutive batches into larger magic 2 batches.

use crate::batch::Batch;
use crate::compression::codec::Compression;
use crate::compression::decompressor::Decompressor;
use crate::convert::decoded::Decoded;
use crate::convert::{Converter, Encoder, append, append_time, size_of, up};
use crate::error::Result;
use crate::record::batch_header::{BatchHeader, RECORD_BATCH_OVERHEAD};
use crate::record::builder::{BatchBuilder, offset_between};

/// Packs the records of a log's batches into magic 2 batches of up to a given size. Small messages compress
/// far better together.
///
/// Only batches without a producer id, flags and delete horizon are packed, and only with others of the same
/// leader epoch, append time and codec. Any other batch is converted by itself, as [`Converter::up_convert`]
/// does.
#[derive(Debug)]
pub struct Rebatcher {
    decompressor: Decompressor,
    packer: Packer,
}

/// The writing half of a [`Rebatcher`].
#[doc(hidden)]
#[derive(Debug)]
pub struct Packer {
    encoder: Encoder,
    max_size: usize,
    pending: SharedFields,
}

/// The fields that all records of a packed batch share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SharedFields {
    codec: Compression,
    append_time: Option<i64>,
    partition_leader_epoch: i32,
}

impl SharedFields {
    fn header(&self, section: &BatchBuilder) -> BatchHeader {
        let partition_leader_epoch = self.partition_leader_epoch;
        BatchHeader { partition_leader_epoch, ..up::header(section, self.append_time) }
    }
}

impl Rebatcher {
    /// Packs into batches of up to `max_size` bytes before compression; a larger record gets a separate
    /// batch.
    #[must_use]
    pub fn new(converter: Converter, max_size: usize) -> Self {
        let Converter { decompressor, encoder } = converter;
        Self { decompressor, packer: Packer::new(encoder, max_size) }
    }

    /// Returns the converter. Records that are not [flushed](Self::flush) are dropped.
    #[must_use]
    pub fn into_converter(self) -> Converter {
        Converter { decompressor: self.decompressor, encoder: self.packer.encoder }
    }

    /// Takes the next batch of the log; appends to `out` the batches that are now full.
    ///
    /// # Errors
    /// The errors of [`Converter::up_convert`]. The whole batch is then left out; earlier batches are not
    /// affected.
    pub fn push(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<()> {
        batch.verify()?;
        self.packer.push(&Decoded::of(batch, &mut self.decompressor)?, out)
    }

    /// Appends a batch of the records not written yet, if there are any.
    ///
    /// # Errors
    /// The errors of the compression.
    pub fn flush(&mut self, out: &mut Vec<u8>) -> Result<()> {
        self.packer.flush(out)
    }
}

#[doc(hidden)]
impl Packer {
    #[must_use]
    pub fn new(mut encoder: Encoder, max_size: usize) -> Self {
        encoder.section.start(0, 0);
        let pending =
            SharedFields { codec: Compression::None, append_time: None, partition_leader_epoch: -1 };
        Self { encoder, max_size, pending }
    }

    /// Implements [`Rebatcher::push`].
    pub fn push(&mut self, decoded: &Decoded<'_, '_>, out: &mut Vec<u8>) -> Result<()> {
        match self.shared_fields_of(decoded.batch)? {
            Some(shared) => self.pack(decoded, shared, out),
            None => {
                self.flush(out)?;
                let written = self.encoder.up_convert(decoded, out);
                self.encoder.section.start(0, 0);
                written
            }
        }
    }

    /// Implements [`Rebatcher::flush`].
    pub fn flush(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let Encoder { codecs, section } = &mut self.encoder;
        if section.count() > 0 {
            let header = self.pending.header(section);
            section.finish(header, codecs.compressor_of(self.pending.codec)?, out)?;
            section.start(0, 0);
        }
        Ok(())
    }

    /// The fields of a packed batch with this batch's records; `None` if they cannot be packed.
    fn shared_fields_of(&self, batch: &Batch<'_>) -> Result<Option<SharedFields>> {
        let partition_leader_epoch = match batch {
            Batch::V2(v2) => {
                let produced = (v2.producer_id(), v2.producer_epoch(), v2.base_sequence()) != (-1, -1, -1);
                let marked = v2.is_transactional() || v2.is_control() || v2.delete_horizon_ms().is_some();
                if produced || marked || v2.record_count() == 0 {
                    return Ok(None);
                }
                v2.partition_leader_epoch()
            }
            Batch::Legacy(_) => -1,
        };
        let codec = self.encoder.codecs.target_of(batch.compression()?);
        let append_time = append_time(batch.timestamp_type(), batch.max_timestamp());
        Ok(Some(SharedFields { codec, append_time, partition_leader_epoch }))
    }

    fn pack(&mut self, decoded: &Decoded<'_, '_>, shared: SharedFields, out: &mut Vec<u8>) -> Result<()> {
        // All offsets are checked before the first record is packed, so that no batch is packed in part.
        check_offsets(decoded)?;
        let batch = decoded.batch;
        let first = decoded.first_offset.unwrap_or(batch.last_offset());
        let section = &self.encoder.section;
        let fits = section.check_offset(first).and_then(|()| section.check_offset(batch.last_offset()));
        if shared != self.pending || fits.is_err() {
            self.flush(out)?;
        }
        self.pending = shared;
        let Encoder { codecs, section } = &mut self.encoder;
        let mut full = Vec::new();
        for record in decoded.records() {
            let record = record?;
            let size = RECORD_BATCH_OVERHEAD + section.records_size() + size_of(section, &record);
            if section.count() > 0 && size > self.max_size {
                section.finish(shared.header(section), codecs.compressor_of(shared.codec)?, &mut full)?;
                section.start(0, 0);
            }
            if section.count() == 0 {
                section.start(record.offset, record.timestamp);
            }
            let attributes = if batch.magic() < 2 { 0 } else { record.attributes };
            append(section, &record, attributes)?;
        }
        section.extend_to(batch.last_offset());
        out.append(&mut full);
        Ok(())
    }
}

/// Checks that the offsets increase and fit into one batch.
fn check_offsets(decoded: &Decoded<'_, '_>) -> Result<()> {
    let mut range: Option<(i64, i64)> = None;
    for (index, record) in decoded.records().enumerate() {
        let offset = record?.offset;
        let (first, last) = range.map_or((offset, None), |(first, last)| (first, Some(last)));
        offset_between(offset, first, last).map_err(|e| decoded.batch.place(e.at_record(index as u32)))?;
        range = Some((first, offset));
    }
    Ok(())
}
