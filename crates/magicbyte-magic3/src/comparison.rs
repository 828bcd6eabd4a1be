//! The same records in each format: bytes, and the time for writing, reading and validating them.

use std::hint::black_box;
use std::time::Instant;

use magicbyte::convert::Converter;
use magicbyte::internals::{BatchBuilder, Cursor, HeaderFields};
use magicbyte::{Batches, Compression, Compressor, Decompressor, Header, RecordBatch, Result};

use crate::decode::each_record;
use crate::encode::Encoder;
use crate::fields::{Ideas, RawRecord, frames};
use crate::validate::{Validated, Validator};

/// A format of batches.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Messages of magic 0 or 1. Headers of records are lost, and batch fields that only magic 2 has.
    Messages(i8),
    /// Magic 2.
    Batches,
    /// The experimental magic 3.
    Experimental(Ideas),
}

/// The cost of batches in a format.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Comparison {
    /// Records.
    pub records: u64,
    /// Bytes of all batches.
    pub size: u64,
    /// Bytes that validation decompressed; for uncompressed batches, the bytes of their records.
    pub inspected: u64,
    /// The time for encoding and compressing records that are in memory as uncompressed magic 2 batches (ns).
    pub encode_ns: u64,
    /// The time for checking CRCs, decompressing, and reading keys, values and headers of all records (ns).
    pub decode_ns: u64,
    /// The time for checking CRCs, offsets, timestamps and the presence of keys, as a broker does (ns).
    pub validate_ns: u64,
}

/// Writes the uncompressed magic 2 batches in `data` with a codec (`level` as in [`Compressor::with_level`]) in a format, reads and
/// validates them. Their offsets are consecutive in each batch. Memory: about the size of the result.
///
/// # Errors
/// [`UnsupportedCompression`](magicbyte::ErrorKind::UnsupportedCompression) for zstd in messages,
/// [`InvalidOptions`](magicbyte::ErrorKind::InvalidOptions) for another magic, and the errors of invalid `data`.
pub fn compare(data: &[u8], form: Form, codec: Compression, level: Option<i32>) -> Result<Comparison> {
    if let Form::Messages(magic) = form {
        codec.for_magic(magic)?;
    }
    let mut comparison = Comparison::default();
    let mut out = Vec::with_capacity(data.len());
    let begin = Instant::now();
    encode(data, form, codec, level, &mut out)?;
    comparison.encode_ns = nanoseconds(begin);
    comparison.size = out.len() as u64;
    let begin = Instant::now();
    comparison.records = decode(&out, form)?;
    comparison.decode_ns = nanoseconds(begin);
    let begin = Instant::now();
    comparison.inspected = validate(&out, form)?;
    comparison.validate_ns = nanoseconds(begin);
    Ok(comparison)
}

fn nanoseconds(begin: Instant) -> u64 {
    begin.elapsed().as_nanos() as u64
}

fn encode(data: &[u8], form: Form, codec: Compression, level: Option<i32>, out: &mut Vec<u8>) -> Result<()> {
    let v2 = Batches::new(data);
    match form {
        Form::Messages(magic) => {
            let mut converter = Converter::to_codec(codec, level)?;
            for batch in v2 {
                converter.down_convert(&batch?, magic, out)?;
            }
        }
        Form::Batches => {
            let mut compressor = Compressor::with_level(codec, level)?;
            let mut builder = BatchBuilder::new();
            for batch in v2 {
                if let Some(batch) = batch?.as_v2() {
                    rebuild(batch, &mut builder, &mut compressor, out)?;
                }
            }
        }
        Form::Experimental(ideas) => {
            let mut encoder = Encoder::new(ideas, codec, level)?;
            for batch in v2 {
                if let Some(batch) = batch?.as_v2() {
                    encoder.encode(batch, out)?;
                }
            }
        }
    }
    Ok(())
}

/// Encodes the batch again record by record, as the other formats are.
fn rebuild(
    batch: &RecordBatch<'_>,
    builder: &mut BatchBuilder,
    compressor: &mut Compressor,
    out: &mut Vec<u8>,
) -> Result<()> {
    let header = batch.header();
    builder.start(header.base_offset, header.base_timestamp);
    let mut cursor = Cursor::new(batch.payload());
    for index in 0..batch.count()? {
        let record = RawRecord::read(&mut cursor).map_err(|e| e.at_record(index))?;
        let offset = header.base_offset.wrapping_add(record.offset_delta.into());
        let timestamp = header.base_timestamp.wrapping_add(record.timestamp_delta);
        let headers = HeaderFields::Stored(record.headers);
        let content = (record.key, record.value);
        let fields = builder.fields((offset, timestamp), record.attributes, content, headers);
        builder.append(&fields);
    }
    builder.finish(header, compressor, out)?;
    Ok(())
}

/// Returns the number of records.
fn decode(data: &[u8], form: Form) -> Result<u64> {
    let mut decompressor = Decompressor::new();
    let mut records = 0;
    let mut read =
        |key: Option<&[u8]>, value: Option<&[u8]>, headers: &mut dyn Iterator<Item = Header<'_>>| {
            records += 1;
            black_box((key, value));
            headers.for_each(|header| {
                black_box(header);
            });
        };
    if let Form::Experimental(_) = form {
        for frame in frames(data) {
            each_record(frame?, &mut decompressor, |shared, record| {
                read(record.key, record.value, &mut shared.chain(record.headers));
                Ok(())
            })?;
        }
    } else {
        for batch in Batches::new(data) {
            let batch = batch?;
            batch.verify()?;
            batch.records(&mut decompressor)?.visit(|record| {
                read(record.key(), record.value(), &mut record.headers());
            })?;
        }
    }
    Ok(records)
}

/// Returns the bytes that were decompressed.
fn validate(data: &[u8], form: Form) -> Result<u64> {
    let mut inspected = 0;
    if let Form::Experimental(_) = form {
        let mut validator = Validator::new();
        for frame in frames(data) {
            inspected += black_box(validator.validate(frame?)?).decompressed as u64;
        }
        return Ok(inspected);
    }
    let mut decompressor = Decompressor::new();
    for batch in Batches::new(data) {
        let batch = batch?;
        batch.verify()?;
        let records = batch.records(&mut decompressor)?;
        inspected += records.payload_size() as u64;
        let (mut validated, mut base) = (Validated::NOTHING, None);
        for record in records {
            let record = record?;
            let base = *base.get_or_insert(record.offset());
            validated.add(record.timestamp(), record.offset().wrapping_sub(base), record.key().is_some())?;
        }
        black_box(validated);
    }
    Ok(inspected)
}
