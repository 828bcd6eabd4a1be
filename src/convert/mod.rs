//! Converting batches to another magic or codec, and rewriting them in place.
//!
//! Damage is never covered up: a batch with a CRC mismatch or an invalid record is refused, since the
//! converted batch would get a valid CRC.

pub(crate) mod decoded;
pub(crate) mod down;
pub(crate) mod filter;
pub(crate) mod in_place;
pub(crate) mod merge;
pub(crate) mod rebatch;
pub(crate) mod recompress;
pub(crate) mod unread;
pub(crate) mod up;

pub use down::Losses;
pub use in_place::{set_last_offset, set_max_timestamp, set_partition_leader_epoch, set_producer_state};
pub use rebatch::Rebatcher;

use crate::compression::codec::Compression;
use crate::compression::compressor::Compressor;
use crate::compression::decompressor::Decompressor;
use crate::error::{Error, Result};
use crate::record::Record;
use crate::record::builder::BatchBuilder;
use crate::record::encode::{HeaderFields, RecordFields};
use crate::record::timestamp_type::TimestampType;

/// Converts batches one at a time, reusing codec contexts and buffers. Output is appended to a vector, which
/// an error leaves unchanged.
///
/// ```
/// # use magicbyte::{Batches, Compression, RecordsBuilder, convert::Converter};
/// let mut builder = RecordsBuilder::v1(Compression::Gzip);
/// builder.append(7, 1_500_000_000_000, None, Some(b"old"), &[])?;
/// let old = builder.build()?;
///
/// let mut converter = Converter::to_codec(Compression::Zstd, None)?;
/// let mut new = Vec::new();
/// for batch in Batches::new(&old) {
///     converter.up_convert(&batch?, &mut new)?;
/// }
/// let batch = Batches::new(&new).next().unwrap()?;
/// assert_eq!((batch.magic(), batch.last_offset(), batch.compression()?), (2, 7, Compression::Zstd));
/// # Ok::<(), magicbyte::Error>(())
/// ```
#[derive(Debug)]
pub struct Converter {
    decompressor: Decompressor,
    encoder: Encoder,
}

impl Converter {
    /// A converter that keeps each batch's codec, at Kafka's default level.
    #[must_use]
    pub fn new() -> Self {
        Self { decompressor: Decompressor::new(), encoder: Encoder::default() }
    }

    /// A converter that writes every batch with this codec and level (`None` for Kafka's default).
    ///
    /// # Errors
    /// The errors of [`Compressor::with_level`].
    pub fn to_codec(codec: Compression, level: Option<i32>) -> Result<Self> {
        Ok(Self { encoder: Encoder::to_codec(codec, level)?, ..Self::new() })
    }

    /// Sets the maximum decompressed size of a batch in bytes;
    /// [`DEFAULT_MAX_DECOMPRESSED_BYTES`](crate::DEFAULT_MAX_DECOMPRESSED_BYTES) by default.
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.decompressor = Decompressor::with_limit(limit);
        self
    }
}

impl Default for Converter {
    fn default() -> Self {
        Self::new()
    }
}

/// The writing half of a [`Converter`]: it takes decoded batches.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Encoder {
    codecs: Codecs,
    section: BatchBuilder,
}

#[doc(hidden)]
impl Encoder {
    /// Writes every batch with this codec and level.
    pub fn to_codec(codec: Compression, level: Option<i32>) -> Result<Self> {
        let mut encoder = Self::default();
        encoder.codecs.target = Some(codec);
        encoder.codecs.compressors[codec as usize] = Some(Compressor::with_level(codec, level)?);
        Ok(encoder)
    }
}

/// The target codec, and a compressor for each codec used so far.
#[derive(Debug, Default)]
struct Codecs {
    target: Option<Compression>,
    compressors: [Option<Compressor>; Compression::ALL.len()],
}

impl Codecs {
    /// The codec to write a batch of this codec with.
    fn target_of(&self, codec: Compression) -> Compression {
        self.target.unwrap_or(codec)
    }

    /// The compressor for a batch of this codec.
    fn compressor_of(&mut self, codec: Compression) -> Result<&mut Compressor> {
        let codec = self.target_of(codec);
        Ok(match &mut self.compressors[codec as usize] {
            Some(compressor) => compressor,
            none => none.insert(Compressor::new(codec)?),
        })
    }
}

/// A record of another batch, encoded for this one. Its timestamp is kept unchecked.
fn fields<'r>(section: &BatchBuilder, record: &Record<'r>, attributes: i8) -> RecordFields<'r> {
    let headers = HeaderFields::Stored(record.headers);
    section.fields((record.offset, record.timestamp), attributes, (record.key, record.value), headers)
}

/// Size in bytes that the record would take.
fn size_of(section: &BatchBuilder, record: &Record<'_>) -> usize {
    fields(section, record, record.attributes).size()
}

/// Appends one record of another batch.
fn append(section: &mut BatchBuilder, record: &Record<'_>, attributes: i8) -> Result<()> {
    section.check_offset(record.offset)?;
    let fields = fields(section, record, attributes);
    section.append(&fields);
    Ok(())
}

/// The append time (ms) of a batch with `LogAppendTime`.
fn append_time(timestamp_type: TimestampType, max_timestamp: i64) -> Option<i64> {
    (timestamp_type == TimestampType::LogAppendTime).then_some(max_timestamp)
}

/// Calls `write`, and truncates `out` to its former length if it fails.
fn all_or_nothing(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
    let before = out.len();
    write(out).inspect_err(|_: &Error| out.truncate(before))
}
