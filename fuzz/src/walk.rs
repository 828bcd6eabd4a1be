//! Reads one batch in all ways: they must give the same records and the same error.

use magicbyte::{Batch, ControlRecord, Decompressor, Error, PartialRecord, Record, TimestampType};

/// The limit on what a batch may decompress to, small enough that inputs often exceed it.
pub const LIMIT: usize = 256 << 10;

/// A record with its own copy of the data.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub offset: i64,
    pub timestamp: i64,
    timestamp_type: TimestampType,
    sequence: i32,
    attributes: i8,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl From<Record<'_>> for Row {
    fn from(record: Record<'_>) -> Self {
        let announced = record.headers().len();
        let headers: Vec<_> =
            record.headers().map(|header| (header.key.to_vec(), header.value.map(<[u8]>::to_vec))).collect();
        assert_eq!(headers.len(), announced, "the headers end early");
        // Any bytes may be parsed as a control record; at worst that is an error.
        let _ = ControlRecord::parse(record.key(), record.value());
        Self {
            offset: record.offset(),
            timestamp: record.timestamp(),
            timestamp_type: record.timestamp_type(),
            sequence: record.sequence(),
            attributes: record.attributes(),
            key: record.key().map(<[u8]>::to_vec),
            value: record.value().map(<[u8]>::to_vec),
            headers,
        }
    }
}

impl Row {
    fn partial(&self) -> PartialRecord {
        PartialRecord {
            offset: self.offset,
            timestamp: self.timestamp,
            sequence: self.sequence,
            key_size: self.key.as_ref().map(Vec::len),
            value_size: self.value.as_ref().map(Vec::len),
            header_count: self.headers.len(),
        }
    }
}

/// The records up to the end or the first error.
pub type Read = (Vec<Row>, Option<Error>);

/// The records that the plain iterator gives.
pub fn read(batch: &Batch<'_>, decompressor: &mut Decompressor) -> Read {
    let mut rows = Vec::new();
    let mut records = match batch.records(decompressor) {
        Ok(records) => records,
        Err(error) => return (rows, Some(error)),
    };
    let (least, most) = records.size_hint();
    assert_eq!(least, 0, "the announced count must not be promised");
    while let Some(record) = records.next() {
        match record {
            Ok(record) => rows.push(Row::from(record)),
            Err(error) => {
                assert!(records.next().is_none(), "the iterator continues after an error");
                return (rows, Some(error));
            }
        }
    }
    assert_eq!(Some(rows.len()), most, "more or fewer records than announced, and no error");
    (rows, None)
}

fn read_by_visit(batch: &Batch<'_>, decompressor: &mut Decompressor) -> Read {
    let mut rows = Vec::new();
    let visited =
        batch.records(decompressor).and_then(|records| records.visit(|record| rows.push(record.into())));
    (rows, visited.err())
}

/// Reads the batch in all ways, checks that they agree, and gives what they read.
pub fn walk(batch: &Batch<'_>) -> Read {
    let mut decompressor = Decompressor::with_limit(LIMIT);
    let (rows, error) = read(batch, &mut decompressor);
    // The same decompressor again: earlier use must not change the result.
    assert_eq!(read_by_visit(batch, &mut decompressor), (rows.clone(), error.clone()));
    partials(batch, &mut decompressor, &rows, error.as_ref());
    without_crc_check(batch, &mut decompressor, &rows, error.as_ref());
    if let Some(error) = &error {
        assert_eq!(error.position(), Some(batch.position()), "{error}");
        assert_eq!(error.base_offset(), Some(batch.stored_offset()), "{error}");
        // A wrapper's messages are framed before the first one is given.
        assert!(error.record_index().is_none_or(|index| index as usize >= rows.len()), "{error}");
    }
    header_fields(batch, &mut decompressor, &rows, error.is_none());
    (rows, error)
}

fn partials(batch: &Batch<'_>, decompressor: &mut Decompressor, rows: &[Row], error: Option<&Error>) {
    let Ok(records) = batch.records(decompressor) else { return };
    let mut partials = records.skip_key_value();
    for row in rows {
        assert_eq!(partials.next(), Some(Ok(row.partial())));
    }
    assert_eq!(partials.next(), error.cloned().map(Err));
}

/// Without checking the CRCs inside a wrapper: the same records, possibly more.
fn without_crc_check(
    batch: &Batch<'_>,
    decompressor: &mut Decompressor,
    rows: &[Row],
    error: Option<&Error>,
) {
    let Ok(records) = batch.records(decompressor) else { return };
    let mut records = records.without_crc_check();
    for row in rows {
        assert_eq!(records.next().unwrap().map(Row::from).as_ref(), Ok(row));
    }
    if error.is_none() {
        assert_eq!(records.next(), None);
    }
    records.for_each(drop);
}

/// The header fields can always be read, and agree with the records.
fn header_fields(batch: &Batch<'_>, decompressor: &mut Decompressor, rows: &[Row], whole: bool) {
    let _ = (batch.last_offset(), batch.max_timestamp(), batch.crc(), batch.is_control());
    let base_offset = batch.base_offset(decompressor);
    match batch {
        Batch::V2(batch) => {
            let _ = (batch.last_sequence(), batch.delete_horizon_ms(), batch.is_transactional());
            assert_eq!(base_offset, Ok(batch.base_offset()));
            if whole {
                assert_eq!(rows.len() as i64, i64::from(batch.record_count()));
            }
        }
        Batch::Legacy(_) => {
            if let Some(first) = rows.first() {
                assert_eq!(base_offset, Ok(first.offset));
            }
        }
    }
}
