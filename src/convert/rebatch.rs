//! Records of consecutive batches packed tightly into magic 2 batches.

use crate::batch::Batch;
use crate::compression::codec::Compression;
use crate::compression::decompressor::Decompressor;
use crate::convert::decoded::Decoded;
use crate::convert::{Converter, Encoder, append, append_time, size_of, up};
use crate::error::Result;
use crate::record::batch_header::{BatchHeader, RECORD_BATCH_OVERHEAD};
use crate::record::builder::{BatchBuilder, offset_between};

/// Packs the records of a log's batches into magic 2 batches of up to a size. Many small messages
/// compress far better together.
///
/// Only what no producer, transaction or cleaner has marked is packed: legacy batches, and batches of
/// magic 2 without producer, flags and delete horizon. Equal in one pack are leader epoch, append time and
/// codec. All else is converted as [`Converter::up_convert`] does, in its place.
#[derive(Debug)]
pub struct Rebatcher {
    decompressor: Decompressor,
    packer: Packer,
}

/// The half of a [`Rebatcher`] that writes.
#[derive(Debug)]
pub(crate) struct Packer {
    encoder: Encoder,
    max_size: usize,
    pending: Facts,
}

/// What the records of one pack share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Facts {
    codec: Compression,
    append_time: Option<i64>,
    partition_leader_epoch: i32,
}

impl Facts {
    fn header(&self, section: &BatchBuilder) -> BatchHeader {
        let partition_leader_epoch = self.partition_leader_epoch;
        BatchHeader { partition_leader_epoch, ..up::header(section, self.append_time) }
    }
}

impl Rebatcher {
    /// Packs batches of up to `max_size` bytes before compression; a larger record gets one of its own.
    #[must_use]
    pub fn new(converter: Converter, max_size: usize) -> Self {
        let Converter { decompressor, encoder } = converter;
        Self { decompressor, packer: Packer::new(encoder, max_size) }
    }

    /// The converter again. Records not [flushed](Self::flush) are dropped.
    #[must_use]
    pub fn into_converter(self) -> Converter {
        Converter { decompressor: self.decompressor, encoder: self.packer.encoder }
    }

    /// Takes the next batch of the log; appends to `out` the batches that are full by now.
    ///
    /// # Errors
    /// As [`Converter::up_convert`]. The batch is then left out as a whole, those before are not concerned.
    pub fn push(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<()> {
        batch.verify()?;
        self.packer.push(&Decoded::of(batch, &mut self.decompressor)?, out)
    }

    /// Appends the batch of the records not written yet, if there are any.
    ///
    /// # Errors
    /// What stands in the way of compressing it.
    pub fn flush(&mut self, out: &mut Vec<u8>) -> Result<()> {
        self.packer.flush(out)
    }
}

impl Packer {
    pub(crate) fn new(mut encoder: Encoder, max_size: usize) -> Self {
        encoder.section.start(0, 0);
        let pending = Facts { codec: Compression::None, append_time: None, partition_leader_epoch: -1 };
        Self { encoder, max_size, pending }
    }

    /// As [`Rebatcher::push`].
    pub(crate) fn push(&mut self, decoded: &Decoded<'_, '_>, out: &mut Vec<u8>) -> Result<()> {
        match self.facts_of(decoded.batch)? {
            Some(facts) => self.pack(decoded, facts, out),
            None => {
                self.flush(out)?;
                let written = self.encoder.up_convert(decoded, out);
                self.encoder.section.start(0, 0);
                written
            }
        }
    }

    /// As [`Rebatcher::flush`].
    pub(crate) fn flush(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let Encoder { codecs, section } = &mut self.encoder;
        if section.count() > 0 {
            let header = self.pending.header(section);
            section.finish(header, codecs.compressor_of(self.pending.codec)?, out)?;
            section.start(0, 0);
        }
        Ok(())
    }

    /// What a pack with this batch's records has; `None` if they stay by themselves.
    fn facts_of(&self, batch: &Batch<'_>) -> Result<Option<Facts>> {
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
        Ok(Some(Facts { codec, append_time, partition_leader_epoch }))
    }

    fn pack(&mut self, decoded: &Decoded<'_, '_>, facts: Facts, out: &mut Vec<u8>) -> Result<()> {
        // Before the first record is packed: half a batch would be loss or duplication.
        check_offsets(decoded)?;
        let batch = decoded.batch;
        let first = decoded.first_offset.unwrap_or(batch.last_offset());
        let section = &self.encoder.section;
        let fits = section.check_offset(first).and_then(|()| section.check_offset(batch.last_offset()));
        if facts != self.pending || fits.is_err() {
            self.flush(out)?;
        }
        self.pending = facts;
        let Encoder { codecs, section } = &mut self.encoder;
        let mut full = Vec::new();
        for record in decoded.records() {
            let record = record?;
            let size = RECORD_BATCH_OVERHEAD + section.records_size() + size_of(section, &record);
            if section.count() > 0 && size > self.max_size {
                section.finish(facts.header(section), codecs.compressor_of(facts.codec)?, &mut full)?;
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

/// The offsets rise, and one batch can hold them.
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
