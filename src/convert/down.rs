//! Down-conversion to magic 0 or 1, as brokers up to 3.9 did for old consumers (`RecordsUtil.downConvert`),
//! with counts of the losses.

use std::ops::AddAssign;

use crate::batch::Batch;
use crate::convert::decoded::Decoded;
use crate::convert::{Converter, Encoder, all_or_nothing, append_time};
use crate::error::{ErrorKind, Result};
use crate::legacy::builder::MessageSetBuilder;
use crate::record::Record;

/// Counts of the losses of down-conversion; `+=` sums them over batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Losses {
    /// Control batches, which were left out.
    pub control_batches: u64,
    /// Batches without records, which were left out.
    pub empty_batches: u64,
    /// Batches that lost producer id, epoch and sequence.
    pub producer_batches: u64,
    /// Batches that are no longer part of a transaction, so that aborted records become visible.
    pub transactional_batches: u64,
    /// Batches that lost their delete horizon.
    pub delete_horizons: u64,
    /// Record headers.
    pub headers: u64,
    /// Timestamps other than -1, in conversions to magic 0.
    pub timestamps: u64,
}

impl AddAssign for Losses {
    fn add_assign(&mut self, other: Self) {
        self.control_batches += other.control_batches;
        self.empty_batches += other.empty_batches;
        self.producer_batches += other.producer_batches;
        self.transactional_batches += other.transactional_batches;
        self.delete_horizons += other.delete_horizons;
        self.headers += other.headers;
        self.timestamps += other.timestamps;
    }
}

impl Converter {
    /// Writes the batch as `magic` 0 or 1: one wrapper, or one message per record if uncompressed. A batch of
    /// this magic or a lower one is copied, or recompressed with the target codec.
    ///
    /// # Errors
    /// [`ErrorKind::UnsupportedCompression`] if the codec to write is zstd, [`ErrorKind::InvalidOptions`] for
    /// another `magic`, [`ErrorKind::CrcMismatch`], [`ErrorKind::OffsetOutOfRange`] for offsets that do not
    /// increase, and the errors of [`Batch::records`].
    pub fn down_convert(&mut self, batch: &Batch<'_>, magic: i8, out: &mut Vec<u8>) -> Result<Losses> {
        if !matches!(magic, 0 | 1) {
            return Err(ErrorKind::InvalidOptions("down-conversion needs a target magic of 0 or 1").into());
        }
        batch.verify()?;
        self.encoder.down_convert(&Decoded::of(batch, &mut self.decompressor)?, magic, out)
    }
}

#[doc(hidden)]
impl Encoder {
    /// Implements [`Converter::down_convert`] for magic 0 or 1.
    pub fn down_convert(
        &mut self,
        decoded: &Decoded<'_, '_>,
        magic: i8,
        out: &mut Vec<u8>,
    ) -> Result<Losses> {
        let batch = decoded.batch;
        if batch.magic() <= magic {
            self.recompress(decoded, out)?;
            return Ok(Losses::default());
        }
        if batch.is_control() {
            return Ok(Losses { control_batches: 1, ..Losses::default() });
        }
        let codec = self.codecs.target_of(batch.compression()?).for_magic(magic);
        let codec = codec.map_err(|e| batch.place(e.in_field("attributes")))?;
        let mut losses = losses_of(batch);
        let mut set = MessageSetBuilder::new(magic, codec);
        let append_time = append_time(batch.timestamp_type(), batch.max_timestamp());
        for (index, record) in decoded.records().enumerate() {
            let record = record?;
            if index == 0 {
                set.start(record.offset, append_time);
            }
            append(&mut set, &record).map_err(|e| batch.place(e.at_record(index as u32)))?;
            losses.headers += record.headers.len() as u64;
            losses.timestamps += u64::from(magic == 0 && record.timestamp != -1);
        }
        if set.count() == 0 {
            return Ok(Losses { empty_batches: 1, ..losses });
        }
        let compressor = self.codecs.compressor_of(codec)?;
        all_or_nothing(out, |out| set.finish(compressor, out).map(drop)).map_err(|e| batch.place(e))?;
        Ok(losses)
    }
}

fn append(set: &mut MessageSetBuilder, record: &Record<'_>) -> Result<()> {
    set.check_offset(record.offset)?;
    let message = set.fields((record.offset, record.timestamp), (record.key, record.value));
    set.append(record.offset, &message)
}

/// The losses that come from dropping the header of the batch.
fn losses_of(batch: &Batch<'_>) -> Losses {
    match batch {
        Batch::V2(v2) => Losses {
            producer_batches: u64::from(v2.producer_id() != -1),
            transactional_batches: u64::from(v2.is_transactional()),
            delete_horizons: u64::from(v2.delete_horizon_ms().is_some()),
            ..Losses::default()
        },
        Batch::Legacy(_) => Losses::default(),
    }
}
