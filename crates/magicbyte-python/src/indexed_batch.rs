//! A batch whose records have been located: iterators and views of records point into it.

use std::sync::OnceLock;

use ::bytes::Bytes;
use pyo3::prelude::*;

use magicbyte::internals::{SMALLEST_RECORD, be, varint};
use magicbyte::{Batch, Decompressor, Error, Headers, Record, Result, TimestampType};
/// A batch's decompressed bytes, and where its records are in them.
#[pyclass(frozen, name = "_IndexedBatch", module = "magicbyte._core")]
pub(super) struct IndexedBatch {
    pub(super) data: Bytes,
    pub(super) entries: Vec<Entry>,
    pub(super) is_control: bool,
    pub(super) is_legacy: bool,
    /// Raised after the last record instead of ending: for readers that yield records up to an error.
    pub(super) failure: Option<Failure>,
    /// Each record's own bytes, once requested.
    record_slices: OnceLock<Vec<Slice>>,
}

/// Creates the exception.
pub(super) type Failure = Box<dyn Fn(Python<'_>) -> PyErr + Send + Sync>;

pub(super) struct Entry {
    pub(super) offset: i64,
    pub(super) timestamp: i64,
    pub(super) key: Nullable,
    pub(super) value: Nullable,
    headers: Slice,
    pub(super) header_count: u32,
    pub(super) sequence: i32,
    pub(super) timestamp_type: TimestampType,
    pub(super) attributes: u8,
}

/// A part of the batch's bytes.
#[derive(Clone, Copy)]
pub(super) struct Slice {
    pub start: u32,
    pub length: u32,
}

/// A slice, or null, represented by a length that no slice has.
#[derive(Clone, Copy)]
pub(super) struct Nullable(Slice);

impl Nullable {
    const NULL: Self = Self(Slice { start: 0, length: u32::MAX });

    pub(super) fn get(self) -> Option<Slice> {
        (self.0.length != u32::MAX).then_some(self.0)
    }
}

impl IndexedBatch {
    /// Decodes and checks every record of the batch, whose stored bytes are `data`.
    pub(super) fn read(
        batch: &Batch<'_>,
        data: &Bytes,
        decompressor: &mut Decompressor,
        check_crcs: bool,
    ) -> Result<Self> {
        if check_crcs {
            batch.verify()?;
        }
        let (indexed, error) = Self::read_until_error(batch, data, decompressor, check_crcs)?;
        error.map_or(Ok(indexed), Err)
    }

    /// Like [`read`](Self::read), but returns the records before the first bad one along with its error; does
    /// not check the batch's own CRC.
    pub(super) fn read_until_error(
        batch: &Batch<'_>,
        data: &Bytes,
        decompressor: &mut Decompressor,
        check_inner_crcs: bool,
    ) -> Result<(Self, Option<Error>)> {
        let shared = batch.payload_shared(data, decompressor)?;
        let records = batch.records_in(&shared)?;
        let records = if check_inner_crcs { records } else { records.without_crc_check() };
        let base = shared.as_ptr() as usize;
        let slice_of = |slice: &[u8]| Slice {
            start: (slice.as_ptr() as usize - base) as u32,
            length: slice.len() as u32,
        };
        let nullable = |slice: Option<&[u8]>| slice.map_or(Nullable::NULL, |slice| Nullable(slice_of(slice)));
        // The announced count cannot be trusted: reserve no more than the bytes can hold.
        let mut entries =
            Vec::with_capacity(records.size_hint().1.unwrap_or(0).min(shared.len() / SMALLEST_RECORD));
        let visited = records.visit(|record: Record<'_>| {
            let (headers, header_count) = record.headers().parts();
            entries.push(Entry {
                offset: record.offset(),
                timestamp: record.timestamp(),
                key: nullable(record.key()),
                value: nullable(record.value()),
                headers: if header_count == 0 { Slice { start: 0, length: 0 } } else { slice_of(headers) },
                header_count,
                sequence: record.sequence(),
                timestamp_type: record.timestamp_type(),
                attributes: record.attributes() as u8,
            });
        });
        let (is_control, is_legacy) = (batch.is_control(), batch.magic() < 2);
        let record_slices = OnceLock::new();
        let indexed = Self { data: shared, entries, is_control, is_legacy, failure: None, record_slices };
        Ok((indexed, visited.err()))
    }

    /// A batch of nothing but this record, copied; None if it takes more than a batch can hold.
    pub(super) fn of_one(record: &Record<'_>, is_control: bool, is_legacy: bool) -> Option<Self> {
        let (headers, header_count) = record.headers().parts();
        let mut data = Vec::new();
        let mut add = |part: &[u8]| {
            let slice = Slice { start: data.len().try_into().ok()?, length: part.len().try_into().ok()? };
            data.extend_from_slice(part);
            // As for every batch, whose size is a positive i32.
            i32::try_from(data.len()).is_ok().then_some(slice)
        };
        let mut nullable =
            |part: Option<&[u8]>| part.map_or(Some(Nullable::NULL), |part| add(part).map(Nullable));
        let (key, value) = (nullable(record.key())?, nullable(record.value())?);
        let entry = Entry {
            offset: record.offset(),
            timestamp: record.timestamp(),
            key,
            value,
            headers: add(headers)?,
            header_count,
            sequence: record.sequence(),
            timestamp_type: record.timestamp_type(),
            attributes: record.attributes() as u8,
        };
        let (data, entries, record_slices) = (data.into(), vec![entry], OnceLock::new());
        Some(Self { data, entries, is_control, is_legacy, failure: None, record_slices })
    }

    /// The record's stored bytes: in magic 2 without the length field, in magic 0 and 1 the message with its
    /// offset and size.
    pub(super) fn own_bytes(&self, entry: &Entry) -> &[u8] {
        let distance = std::ptr::from_ref(entry).addr().wrapping_sub(self.entries.as_ptr().addr());
        let record_slices = self.record_slices.get_or_init(|| self.find_record_slices());
        record_slices.get(distance / size_of::<Entry>()).map_or(&[], |&slice| self.slice(slice))
    }

    /// Walks the records again; each has been checked before.
    fn find_record_slices(&self) -> Vec<Slice> {
        let mut at = 0;
        let next_slice = |_: &Entry| {
            let (start, length) = if self.is_legacy {
                (at, self.data.get(at..at + 12).map_or(0, |overhead| 12 + be!(overhead, 8, i32) as usize))
            } else {
                let mut rest = self.data.get(at..).unwrap_or_default();
                let length = varint::read_i32(&mut rest).unwrap_or(0);
                (self.data.len() - rest.len(), length as usize)
            };
            at = start.saturating_add(length);
            Slice { start: start as u32, length: length as u32 }
        };
        self.entries.iter().map(next_slice).collect()
    }

    pub(super) fn key(&self, entry: &Entry) -> Option<&[u8]> {
        self.nullable(entry.key)
    }

    pub(super) fn value(&self, entry: &Entry) -> Option<&[u8]> {
        self.nullable(entry.value)
    }

    #[inline]
    pub(super) fn nullable(&self, slice: Nullable) -> Option<&[u8]> {
        slice.get().map(|slice| self.slice(slice))
    }

    /// The slice's bytes; empty if it is not of this batch.
    #[inline]
    pub(super) fn slice(&self, slice: Slice) -> &[u8] {
        let start = slice.start as usize;
        self.data.get(start..start + slice.length as usize).unwrap_or_default()
    }

    /// The record as the core's type; the attributes of a legacy message are in its other fields.
    pub(super) fn record(&self, entry: &Entry) -> Record<'_> {
        Record::of_parts(
            entry.offset,
            (entry.timestamp, entry.timestamp_type),
            entry.sequence,
            if self.is_legacy { 0 } else { entry.attributes as i8 },
            (self.key(entry), self.value(entry)),
            self.header_list(entry),
        )
    }

    pub(super) fn header_list(&self, entry: &Entry) -> Headers<'_> {
        Headers::from_parts(self.slice(entry.headers), entry.header_count)
    }
}
