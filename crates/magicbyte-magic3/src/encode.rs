//! From magic 2 to the experimental magic 3.

use magicbyte::internals::Cursor;
use magicbyte::internals::batch_header::{COMPRESSION, LOG_APPEND_TIME};
use magicbyte::{
    Batch, Compression, Compressor, Decompressor, Error, Header, RecordBatch, Result, encode_varint,
};

use crate::fields::{Header3, Idea, Ideas, RawRecord, write_length, write_nullable};

/// Writes magic 2 batches as experimental ones. Buffers and compression contexts are reused.
#[derive(Debug)]
pub struct Encoder {
    ideas: Ideas,
    compressor: Compressor,
    decompressor: Decompressor,
    fields: Vec<u8>,
    content: Vec<u8>,
}

impl Encoder {
    /// An encoder for batches that follow these ideas, compressed with this codec and level (`None` for Kafka's default).
    ///
    /// # Errors
    /// The errors of [`Compressor::with_level`].
    pub fn new(ideas: Ideas, codec: Compression, level: Option<i32>) -> Result<Self> {
        Ok(Self {
            ideas,
            compressor: Compressor::with_level(codec, level)?,
            decompressor: Decompressor::new(),
            fields: Vec::new(),
            content: Vec::new(),
        })
    }

    /// Appends the batch to `out`. Nothing is lost: [`to_magic_2`](crate::to_magic_2) returns its records and its header. A CRC is
    /// not checked.
    ///
    /// # Errors
    /// The errors of [`RecordBatch::records`] and of its records.
    pub fn encode(&mut self, batch: &RecordBatch<'_>, out: &mut Vec<u8>) -> Result<()> {
        let Self { ideas, compressor, decompressor, fields, content } = self;
        let records = RawRecords::of(batch, decompressor)?;
        let shape = records.shape(*ideas);
        let mut header = Header3 { common: batch.header(), ideas: shape.ideas, append_time: None };
        header.common.attributes =
            header.common.attributes & !i16::from(COMPRESSION) | compressor.codec() as i16;
        if shape.ideas.has(Idea::BothTimestamps) {
            header.append_time = Some(header.common.max_timestamp);
            if batch.attributes() as u8 & LOG_APPEND_TIME != 0 {
                header.common.max_timestamp = shape.max_timestamp;
            }
        }
        let start = out.len();
        header.write(out);
        if shape.ideas.has(Idea::BatchHeaders) {
            encode_varint(shape.shared_headers as i64, out);
            let first = records.iter().next().transpose()?;
            for one in first.into_iter().flat_map(|record| record.headers).take(shape.shared_headers) {
                write_header(one, out);
            }
        }
        fields.clear();
        content.clear();
        for record in records.iter() {
            write_record(&record?, &shape, fields, content);
        }
        if shape.ideas.has(Idea::TwoSections) {
            let compressed = compressor.compress(2, fields)?;
            encode_varint(compressed.len() as i64, out);
            out.extend_from_slice(compressed);
            out.extend_from_slice(compressor.compress(2, content)?);
        } else {
            fields.append(content);
            out.extend_from_slice(compressor.compress(2, fields)?);
        }
        Header3::finish(out, start)
    }
}

/// The records of a magic 2 batch, decompressed.
struct RawRecords<'r> {
    payload: &'r [u8],
    count: u32,
    base_timestamp: i64,
}

impl<'r> RawRecords<'r> {
    /// Checks all records.
    fn of(batch: &RecordBatch<'r>, decompressor: &'r mut Decompressor) -> Result<Self> {
        let count = u32::try_from(batch.record_count()).unwrap_or(0);
        let payload = Batch::V2(*batch).payload(decompressor)?;
        batch.records_in(payload)?.try_for_each(|record| record.map(drop))?;
        Ok(Self { payload, count, base_timestamp: batch.base_timestamp() })
    }

    fn iter(&self) -> impl Iterator<Item = Result<RawRecord<'r>>> + use<'r> {
        let mut cursor = Cursor::new(self.payload);
        (0..self.count).map(move |index| RawRecord::read(&mut cursor).map_err(|e: Error| e.at_record(index)))
    }

    /// The shape of the batch: those of `ideas` that its records allow.
    fn shape(&self, mut ideas: Ideas) -> Shape {
        let mut max_timestamp = i64::MIN;
        let mut shared: Option<Vec<Header<'r>>> = None;
        for record in self.iter().flatten() {
            if record.attributes != 0 {
                ideas = ideas.without(Idea::NoRecordAttributes);
            }
            max_timestamp = max_timestamp.max(self.base_timestamp.wrapping_add(record.timestamp_delta));
            if ideas.has(Idea::BatchHeaders) {
                match &mut shared {
                    None => shared = Some(record.headers.collect()),
                    Some(shared) => {
                        let same = shared.iter().zip(record.headers).take_while(|(one, other)| *one == other);
                        let same = same.count();
                        shared.truncate(same);
                    }
                }
            }
        }
        Shape { ideas, max_timestamp, shared_headers: shared.map_or(0, |shared| shared.len()) }
    }
}

struct Shape {
    ideas: Ideas,
    /// The largest timestamp of a record itself (ms).
    max_timestamp: i64,
    /// The number of headers that all records begin with.
    shared_headers: usize,
}

/// Appends a record to `fields`. If the content is kept apart, everything but the fields goes to `content`.
fn write_record(record: &RawRecord<'_>, shape: &Shape, fields: &mut Vec<u8>, content: &mut Vec<u8>) {
    let apart = shape.ideas.are_fields_first();
    let start = fields.len();
    if !shape.ideas.has(Idea::NoRecordAttributes) {
        fields.push(record.attributes as u8);
    }
    encode_varint(record.timestamp_delta, fields);
    encode_varint(record.offset_delta.into(), fields);
    let headers = record.headers.skip(shape.shared_headers);
    let count = record.headers.len() - shape.shared_headers;
    if apart {
        write_length(record.key, fields);
        write_length(record.value, fields);
        content.extend_from_slice(record.key.unwrap_or_default());
        content.extend_from_slice(record.value.unwrap_or_default());
        encode_varint(count as i64, content);
        headers.for_each(|one| write_header(one, content));
    } else {
        write_nullable(record.key, fields);
        write_nullable(record.value, fields);
        encode_varint(count as i64, fields);
        headers.for_each(|one| write_header(one, fields));
        insert_length(fields, start);
    }
}

/// Inserts at `start` the length of the bytes after it.
fn insert_length(data: &mut Vec<u8>, start: usize) {
    let end = data.len();
    encode_varint((end - start) as i64, data);
    data[start..].rotate_left(end - start);
}

fn write_header(header: Header<'_>, out: &mut Vec<u8>) {
    write_nullable(Some(header.key), out);
    write_nullable(header.value, out);
}
