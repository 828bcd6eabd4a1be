//! Kafka's bytes made by hand, field by field: these tests do not depend on this library's writers.

use magicbyte::{Batches, Compression, Decompressor, Error, ErrorKind, Record, Result, TimestampType};

/// Bytes from hex; whitespace is only for readability.
pub fn hex(text: &str) -> Vec<u8> {
    ::hex::decode(text.split_whitespace().collect::<String>()).unwrap()
}

pub fn varint(value: i64) -> Vec<u8> {
    let mut out = Vec::new();
    magicbyte::encode_varint(value, &mut out);
    out
}

/// `data` with its length in front, as a varint.
pub fn sized(data: &[u8]) -> Vec<u8> {
    [varint(data.len() as i64), data.to_vec()].concat()
}

/// A magic 2 record of these fields: its size, then the fields.
pub fn record_of(fields: &[&[u8]]) -> Vec<u8> {
    sized(&fields.concat())
}

/// The simplest record: key "k", value "v", no headers.
pub fn plain_record(offset_delta: i32) -> Vec<u8> {
    let delta = varint(offset_delta.into());
    record_of(&[&[0], &delta, &delta, &sized(b"k"), &sized(b"v"), &varint(0)])
}

/// A magic 2 batch. Length and CRC are computed; every other field has the value given here.
#[derive(Clone, Debug)]
pub struct V2 {
    pub base_offset: i64,
    pub leader_epoch: i32,
    pub attributes: u16,
    pub last_offset_delta: i32,
    pub base_timestamp: i64,
    pub max_timestamp: i64,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub count: i32,
    pub payload: Vec<u8>,
}

impl V2 {
    /// A valid batch of these records.
    pub fn of(records: &[Vec<u8>]) -> Self {
        Self {
            base_offset: 100,
            leader_epoch: 0,
            attributes: 0,
            last_offset_delta: records.len() as i32 - 1,
            base_timestamp: 1000,
            max_timestamp: 2000,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            count: records.len() as i32,
            payload: records.concat(),
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut body = Vec::new();
        body.extend(self.attributes.to_be_bytes());
        body.extend(self.last_offset_delta.to_be_bytes());
        body.extend(self.base_timestamp.to_be_bytes());
        body.extend(self.max_timestamp.to_be_bytes());
        body.extend(self.producer_id.to_be_bytes());
        body.extend(self.producer_epoch.to_be_bytes());
        body.extend(self.base_sequence.to_be_bytes());
        body.extend(self.count.to_be_bytes());
        body.extend(&self.payload);
        let mut out = Vec::new();
        out.extend(self.base_offset.to_be_bytes());
        out.extend((body.len() as i32 + 9).to_be_bytes());
        out.extend(self.leader_epoch.to_be_bytes());
        out.push(2);
        out.extend(crc32c::crc32c(&body).to_be_bytes());
        out.extend(body);
        out
    }
}

/// A legacy message with the correct size and CRC; `rest` is what follows its attributes.
pub fn message_of(offset: i64, magic: u8, attributes: u8, rest: &[u8]) -> Vec<u8> {
    let body = [&[magic, attributes], rest].concat();
    let mut out = offset.to_be_bytes().to_vec();
    out.extend((body.len() as i32 + 4).to_be_bytes());
    out.extend(crc32fast::hash(&body).to_be_bytes());
    out.extend(body);
    out
}

/// A legacy message; magic 0 drops the timestamp.
pub fn message(
    offset: i64,
    magic: u8,
    attributes: u8,
    timestamp: i64,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
) -> Vec<u8> {
    let mut rest = Vec::new();
    if magic == 1 {
        rest.extend(timestamp.to_be_bytes());
    }
    for field in [key, value] {
        rest.extend(field.map_or(-1, |data| data.len() as i32).to_be_bytes());
        rest.extend(field.unwrap_or_default());
    }
    message_of(offset, magic, attributes, &rest)
}

/// A gzip member with one stored block, so no encoder is needed.
pub fn gzip_stored(data: &[u8]) -> Vec<u8> {
    gzip_member(0, &[], data)
}

/// A gzip member with these flags, and the header fields that they announce.
pub fn gzip_member(flags: u8, fields: &[u8], data: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 0xff];
    out.extend(fields);
    let size = u16::try_from(data.len()).unwrap();
    out.push(1);
    out.extend(size.to_le_bytes());
    out.extend((!size).to_le_bytes());
    out.extend(data);
    out.extend(crc32fast::hash(data).to_le_bytes());
    out.extend((data.len() as u32).to_le_bytes());
    out
}

/// True if this codec is compiled in.
pub fn in_this_build(codec: &str) -> bool {
    let Some(codec) = (0..5).map(|id| Compression::from_id(id).unwrap()).find(|known| known.name() == codec)
    else {
        return true;
    };
    let failed = Decompressor::new().decompress(codec, 2, b"").map(drop);
    !matches!(failed, Err(error) if matches!(error.kind(), ErrorKind::UnsupportedCompression(_)))
}

/// A record with its own copy of the data.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub offset: i64,
    pub timestamp: i64,
    pub timestamp_type: TimestampType,
    pub sequence: i32,
    pub attributes: i8,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl From<Record<'_>> for Row {
    fn from(record: Record<'_>) -> Self {
        Self {
            offset: record.offset(),
            timestamp: record.timestamp(),
            timestamp_type: record.timestamp_type(),
            sequence: record.sequence(),
            attributes: record.attributes(),
            key: record.key().map(<[u8]>::to_vec),
            value: record.value().map(<[u8]>::to_vec),
            headers: record.headers().map(|h| (h.key.to_vec(), h.value.map(<[u8]>::to_vec))).collect(),
        }
    }
}

/// Every record of every batch, with CRCs checked, or the first error.
pub fn read_all(bytes: &[u8]) -> Result<Vec<Row>> {
    let mut decompressor = Decompressor::new();
    let mut rows = Vec::new();
    for batch in Batches::new(bytes) {
        let batch = batch?;
        batch.verify()?;
        for record in batch.records(&mut decompressor)? {
            rows.push(Row::from(record?));
        }
    }
    Ok(rows)
}

/// Reads a valid batch followed by `bad`, and gives the error. Fails if there is no error, or if it
/// names the wrong place.
pub fn error_after_good(bad: &[u8]) -> (ErrorKind, Option<u32>, Option<&'static str>) {
    let good = V2::of(&[plain_record(0)]).bytes();
    let error = read_all(&[&good[..], bad].concat()).expect_err("read without an error");
    assert_eq!(error.position(), Some(good.len() as u64), "{error}");
    let stored = i64::from_be_bytes(bad[..8].try_into().unwrap());
    assert_eq!(error.base_offset(), Some(stored), "{error}");
    summary(&error)
}

/// The error's kind, record index and field.
pub fn summary(error: &Error) -> (ErrorKind, Option<u32>, Option<&'static str>) {
    (error.kind().clone(), error.record_index(), error.field())
}
