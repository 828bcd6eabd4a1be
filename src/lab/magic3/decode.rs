//! From the experimental magic 3 back to magic 2.

use crate::bytes::cursor::Cursor;
use crate::bytes::varint::encode_varint;
use crate::compression::codec::Compression;
use crate::compression::compressor::Compressor;
use crate::compression::decompressor::Decompressor;
use crate::error::{Error, ErrorKind, Result};
use crate::lab::magic3::fields::{Header3, Idea, RawRecord, write_nullable};
use crate::record::batch_header::LOG_APPEND_TIME;
use crate::record::builder::append_batch;
use crate::record::header::{Header, Headers};

/// Appends the experimental batch to `out` as magic 2, with the same codec at Kafka's default level. Every record and every field of
/// the header that [`Encoder::encode`](super::Encoder::encode) was given is the same; of an uncompressed batch, every byte.
///
/// # Errors
/// Those of [`Header3::read`] and of the decompression; [`ErrorKind::InvalidRecord`] and the like for records that cannot be read.
pub fn to_magic_2(batch: &[u8], decompressor: &mut Decompressor, out: &mut Vec<u8>) -> Result<()> {
    let (mut header, rest) = Header3::read(batch)?;
    let codec = Compression::from_id(header.codec()).map_err(|e| e.in_field("attributes"))?;
    let mut cursor = Cursor::new(rest);
    let shared = match header.ideas.has(Idea::BatchHeaders) {
        true => Headers::check(&mut cursor)?,
        false => Headers::default(),
    };
    let limit = decompressor.limit();
    let mut writer = RecordWriter { shared, records: Vec::new(), body: Vec::new(), limit };
    let count = u32::try_from(header.common.record_count)
        .map_err(|_| ErrorKind::InvalidCount(header.common.record_count.into()))?;
    let place = |index| move |error: Error| error.at_record(index);
    if header.ideas.has(Idea::TwoSections) {
        let size = cursor.length()?.unwrap_or(0);
        let sections = (cursor.take(size)?, cursor.take(cursor.remaining())?);
        let fields = decompressor.decompress_shared(codec, 2, sections.0)?;
        let content = decompressor.decompress(codec, 2, sections.1)?;
        writer.apart(&header, count, &mut Cursor::new(&fields), &mut Cursor::new(content))?;
    } else {
        let payload = decompressor.decompress(codec, 2, cursor.take(cursor.remaining())?)?;
        let mut cursor = Cursor::new(payload);
        if header.ideas.are_fields_first() {
            let mut content = Cursor::new(payload);
            let has_attributes = !header.ideas.has(Idea::NoRecordAttributes);
            for index in 0..count {
                RecordFields::read(&mut content, has_attributes).map_err(place(index))?;
            }
            writer.apart(&header, count, &mut cursor, &mut content)?;
        } else {
            for index in 0..count {
                writer.next(&header, &mut cursor).map_err(place(index))?;
            }
            check_end(&cursor)?;
        }
    }
    if let Some(time) = header.append_time
        && header.common.attributes as u8 & LOG_APPEND_TIME != 0
    {
        header.common.max_timestamp = time;
    }
    let mut compressor = Compressor::new(codec)?;
    append_batch(&header.common, compressor.compress(2, &writer.records)?, out)
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
    pub(super) fn read(cursor: &mut Cursor<'_>, has_attributes: bool) -> Result<Self> {
        Ok(Self {
            attributes: if has_attributes { cursor.i8()? } else { 0 },
            timestamp_delta: cursor.varlong().map_err(|e| e.in_field("timestampDelta"))?,
            offset_delta: cursor.varint().map_err(|e| e.in_field("offsetDelta"))?,
            key: cursor.length().map_err(|e| e.in_field("key"))?,
            value: cursor.length().map_err(|e| e.in_field("value"))?,
        })
    }
}

fn check_end(cursor: &Cursor<'_>) -> Result<()> {
    match cursor.remaining() {
        0 => Ok(()),
        bytes => Err(ErrorKind::RecordsRemaining { bytes }.into()),
    }
}

/// Writes magic 2 records.
struct RecordWriter<'r> {
    /// The headers that all records begin with.
    shared: Headers<'r>,
    records: Vec<u8>,
    body: Vec<u8>,
    /// Headers that are stored once may be large in each record.
    limit: usize,
}

impl RecordWriter<'_> {
    /// A record whose content follows its fields.
    fn next(&mut self, header: &Header3, cursor: &mut Cursor<'_>) -> Result<()> {
        let length = cursor.length().map_err(|e| e.in_field("length"))?.unwrap_or(0);
        let mut body = Cursor::new(cursor.take(length)?);
        let record = RawRecord::read_body(&mut body, !header.ideas.has(Idea::NoRecordAttributes))?;
        check_end(&body)?;
        self.write(&record)
    }

    /// All records, whose content is apart.
    fn apart(
        &mut self,
        header: &Header3,
        count: u32,
        fields: &mut Cursor<'_>,
        content: &mut Cursor<'_>,
    ) -> Result<()> {
        let has_attributes = !header.ideas.has(Idea::NoRecordAttributes);
        for index in 0..count {
            self.write_apart(has_attributes, fields, content).map_err(|e| e.at_record(index))?;
        }
        check_end(content)
    }

    fn write_apart(
        &mut self,
        has_attributes: bool,
        fields: &mut Cursor<'_>,
        content: &mut Cursor<'_>,
    ) -> Result<()> {
        let RecordFields { attributes, timestamp_delta, offset_delta, key, value } =
            RecordFields::read(fields, has_attributes)?;
        let key = key.map(|length| content.take(length)).transpose().map_err(|e| e.in_field("key"))?;
        let value = value.map(|length| content.take(length)).transpose().map_err(|e| e.in_field("value"))?;
        let headers = Headers::check(content)?;
        self.write(&RawRecord { attributes, timestamp_delta, offset_delta, key, value, headers })
    }

    fn write(&mut self, record: &RawRecord<'_>) -> Result<()> {
        let body = &mut self.body;
        body.clear();
        body.push(record.attributes as u8);
        encode_varint(record.timestamp_delta, body);
        encode_varint(record.offset_delta.into(), body);
        write_nullable(record.key, body);
        write_nullable(record.value, body);
        encode_varint((self.shared.len() + record.headers.len()) as i64, body);
        for Header { key, value } in self.shared.chain(record.headers) {
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
