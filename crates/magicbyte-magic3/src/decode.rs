//! From the experimental magic 3 back to magic 2.

use magicbyte::internals::batch_header::LOG_APPEND_TIME;
use magicbyte::internals::{Cursor, append_batch};
use magicbyte::{Compression, Compressor, Decompressor, ErrorKind, Header, Headers, Result, encode_varint};

use crate::fields::{Header3, Idea, RawRecord, write_nullable};

/// Appends the experimental batch to `out` as magic 2, with the same codec at Kafka's default level. Every record and every field of
/// the header that [`Encoder::encode`](crate::Encoder::encode) was given is the same; of an uncompressed batch, every byte.
///
/// # Errors
/// The errors of [`Header3::read`] and of the decompression; [`ErrorKind::InvalidRecord`] and the like for records that cannot be read.
pub fn to_magic_2(batch: &[u8], decompressor: &mut Decompressor, out: &mut Vec<u8>) -> Result<()> {
    let mut writer = RecordWriter { records: Vec::new(), body: Vec::new(), limit: decompressor.limit() };
    let mut header = each_record(batch, decompressor, |shared, record| writer.write(shared, record))?;
    if let Some(time) = header.append_time
        && header.common.attributes as u8 & LOG_APPEND_TIME != 0
    {
        header.common.max_timestamp = time;
    }
    let mut compressor = Compressor::new(Compression::from_id(header.codec())?)?;
    append_batch(&header.common, compressor.compress(2, &writer.records)?, out)
}

/// Reads the batch and calls `visit` with the headers that all records begin with, and each record.
///
/// # Errors
/// The errors of [`to_magic_2`], and of `visit`.
pub(crate) fn each_record(
    batch: &[u8],
    decompressor: &mut Decompressor,
    mut visit: impl FnMut(Headers<'_>, &RawRecord<'_>) -> Result<()>,
) -> Result<Header3> {
    let (header, rest) = Header3::read(batch)?;
    let codec = Compression::from_id(header.codec()).map_err(|e| e.in_field("attributes"))?;
    let mut cursor = Cursor::new(rest);
    let shared = match header.ideas.has(Idea::BatchHeaders) {
        true => Headers::check(&mut cursor)?,
        false => Headers::default(),
    };
    let (count, has_attributes) = (header.count()?, header.has_record_attributes());
    let mut apart = |fields: &mut Cursor<'_>, content: &mut Cursor<'_>| {
        for index in 0..count {
            let record = RecordFields::read(fields, has_attributes).and_then(|one| one.with(content));
            record.and_then(|record| visit(shared, &record)).map_err(|e| e.at_record(index))?;
        }
        check_end(content)
    };
    if header.ideas.has(Idea::TwoSections) {
        let size = cursor.length()?.unwrap_or(0);
        let sections = (cursor.take(size)?, cursor.take(cursor.remaining())?);
        let fields = decompressor.decompress_shared(codec, 2, sections.0)?;
        let content = decompressor.decompress(codec, 2, sections.1)?;
        let mut fields = Cursor::new(&fields);
        apart(&mut fields, &mut Cursor::new(content))?;
        check_end(&fields)?;
        return Ok(header);
    }
    let payload = decompressor.decompress(codec, 2, cursor.take(cursor.remaining())?)?;
    let mut cursor = Cursor::new(payload);
    if header.ideas.has(Idea::FieldsFirst) {
        let mut content = Cursor::new(payload);
        for index in 0..count {
            RecordFields::read(&mut content, has_attributes).map_err(|e| e.at_record(index))?;
        }
        apart(&mut cursor, &mut content)?;
        return Ok(header);
    }
    for index in 0..count {
        next(&mut cursor, has_attributes)
            .and_then(|record| visit(shared, &record))
            .map_err(|e| e.at_record(index))?;
    }
    check_end(&cursor)?;
    Ok(header)
}

/// A record whose content follows its fields.
#[inline(always)]
fn next<'r>(cursor: &mut Cursor<'r>, has_attributes: bool) -> Result<RawRecord<'r>> {
    let length = cursor.length().map_err(|e| e.in_field("length"))?.unwrap_or(0);
    let mut body = Cursor::new(cursor.take(length)?);
    let record = RawRecord::read_body(&mut body, has_attributes)?;
    check_end(&body)?;
    Ok(record)
}

/// The fields of a record whose content is elsewhere.
pub(super) struct RecordFields {
    pub(super) attributes: i8,
    pub(super) timestamp_delta: i64,
    pub(super) offset_delta: i32,
    pub(super) key: Option<usize>,
    pub(super) value: Option<usize>,
}

impl RecordFields {
    #[inline(always)]
    pub(super) fn read(cursor: &mut Cursor<'_>, has_attributes: bool) -> Result<Self> {
        Ok(Self {
            attributes: if has_attributes { cursor.i8()? } else { 0 },
            timestamp_delta: cursor.varlong().map_err(|e| e.in_field("timestampDelta"))?,
            offset_delta: cursor.varint().map_err(|e| e.in_field("offsetDelta"))?,
            key: cursor.length().map_err(|e| e.in_field("key"))?,
            value: cursor.length().map_err(|e| e.in_field("value"))?,
        })
    }

    /// The record with its content, which comes next there.
    #[inline(always)]
    fn with<'r>(self, content: &mut Cursor<'r>) -> Result<RawRecord<'r>> {
        let Self { attributes, timestamp_delta, offset_delta, key, value } = self;
        let mut take = |length: Option<usize>| length.map(|length| content.take(length)).transpose();
        let key = take(key).map_err(|e| e.in_field("key"))?;
        let value = take(value).map_err(|e| e.in_field("value"))?;
        let headers = Headers::check(content)?;
        Ok(RawRecord { attributes, timestamp_delta, offset_delta, key, value, headers })
    }
}

fn check_end(cursor: &Cursor<'_>) -> Result<()> {
    match cursor.remaining() {
        0 => Ok(()),
        bytes => Err(ErrorKind::RecordsRemaining { bytes }.into()),
    }
}

/// Writes magic 2 records.
struct RecordWriter {
    records: Vec<u8>,
    body: Vec<u8>,
    /// Headers that are stored once may be large in each record.
    limit: usize,
}

impl RecordWriter {
    fn write(&mut self, shared: Headers<'_>, record: &RawRecord<'_>) -> Result<()> {
        let body = &mut self.body;
        body.clear();
        body.push(record.attributes as u8);
        encode_varint(record.timestamp_delta, body);
        encode_varint(record.offset_delta.into(), body);
        write_nullable(record.key, body);
        write_nullable(record.value, body);
        encode_varint((shared.len() + record.headers.len()) as i64, body);
        for Header { key, value } in shared.chain(record.headers) {
            write_nullable(Some(key), body);
            write_nullable(value, body);
        }
        encode_varint(body.len() as i64, &mut self.records);
        self.records.extend_from_slice(body);
        if self.records.len() > self.limit {
            return Err(ErrorKind::LimitExceeded { limit: self.limit }.into());
        }
        Ok(())
    }
}
