//! A record's parts: a batch that was checked and indexed as a whole, and what its records' slower
//! getters do. The objects themselves are in `objects.rs`.

use std::sync::OnceLock;

use ::bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use crate::batch::Batch;
use crate::bytes::cursor::be;
use crate::bytes::varint;
use crate::compression::decompressor::Decompressor;
use crate::error::{Error, Result};
use crate::python::builder::header_key;
use crate::python::classes;
use crate::python::errors::to_py;
use crate::python::objects;
use crate::record::control::{ControlRecord, ControlType, Voter};
use crate::record::header::{Header, Headers};
use crate::record::timestamp_type::TimestampType;
use crate::record::{Record, SMALLEST_RECORD};

/// A batch's bytes (decompressed) and where its records stand in them.
#[pyclass(frozen, name = "_IndexedBatch", module = "magicbyte._core")]
pub(super) struct IndexedBatch {
    data: Bytes,
    pub(super) entries: Vec<Entry>,
    is_control: bool,
    is_legacy: bool,
    /// What comes behind the last record instead of the end: for readers that yield records up to an error.
    pub(super) failure: Option<Failure>,
    /// Where each record's own bytes stand, once somebody asked.
    places: OnceLock<Vec<Slice>>,
}

/// Makes the exception.
pub(super) type Failure = Box<dyn Fn(Python<'_>) -> PyErr + Send + Sync>;

pub(super) struct Entry {
    pub(super) offset: i64,
    pub(super) timestamp: i64,
    pub(super) key: Nullable,
    pub(super) value: Nullable,
    headers: Slice,
    header_count: u32,
    sequence: i32,
    pub(super) timestamp_type: TimestampType,
    pub(super) attributes: u8,
}

/// A part of the batch's bytes.
#[derive(Clone, Copy)]
pub(super) struct Slice {
    start: u32,
    length: u32,
}

/// A slice, or null: a length that no slice has.
#[derive(Clone, Copy)]
pub(super) struct Nullable(Slice);

impl Nullable {
    const NULL: Self = Self(Slice { start: 0, length: u32::MAX });

    fn get(self) -> Option<Slice> {
        (self.0.length != u32::MAX).then_some(self.0)
    }
}

impl IndexedBatch {
    /// Decodes and checks every record of the batch whose own bytes are `data`.
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

    /// As [`read`](Self::read), with the first error that a record has beside the records before it; the
    /// batch's own CRC is not checked.
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
        // The count is announced, so it reserves no more than the bytes can hold.
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
        let places = OnceLock::new();
        let indexed = Self { data: shared, entries, is_control, is_legacy, failure: None, places };
        Ok((indexed, visited.err()))
    }

    /// The record as it stands: in magic 2 what its length field counts, else the message with offset
    /// and size.
    pub(super) fn own_bytes(&self, entry: &Entry) -> &[u8] {
        let behind = std::ptr::from_ref(entry).addr().wrapping_sub(self.entries.as_ptr().addr());
        let places = self.places.get_or_init(|| self.find_places());
        places.get(behind / size_of::<Entry>()).map_or(&[], |&place| self.slice(place))
    }

    /// The records were read from the start on, each checked.
    fn find_places(&self) -> Vec<Slice> {
        let mut at = 0;
        let place = |_: &Entry| {
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
        self.entries.iter().map(place).collect()
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

    /// The slice's bytes; none of them if it is not this batch's.
    #[inline]
    pub(super) fn slice(&self, slice: Slice) -> &[u8] {
        let start = slice.start as usize;
        self.data.get(start..start + slice.length as usize).unwrap_or_default()
    }

    /// The record as the core knows it; what a legacy message's attributes say is said elsewhere.
    pub(super) fn record(&self, entry: &Entry) -> Record<'_> {
        Record {
            offset: entry.offset,
            timestamp: entry.timestamp,
            timestamp_type: entry.timestamp_type,
            sequence: entry.sequence,
            attributes: if self.is_legacy { 0 } else { entry.attributes as i8 },
            key: self.key(entry),
            value: self.value(entry),
            headers: self.header_list(entry),
        }
    }

    pub(super) fn header_list(&self, entry: &Entry) -> Headers<'_> {
        Headers::from_parts(self.slice(entry.headers), entry.header_count)
    }
}

pub(super) fn timestamp_type(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> PyResult<Py<PyAny>> {
    classes::timestamp_type(batch.py(), entry.timestamp_type)
}

/// Bytes that are not UTF-8 come as surrogate escapes.
pub(super) fn header_text<'py>(py: Python<'py>, key: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    match std::str::from_utf8(key) {
        Ok(text) => Ok(PyString::new(py, text).into_any()),
        Err(_) => PyBytes::new(py, key).call_method1("decode", ("utf-8", "surrogateescape")),
    }
}

/// Key and value.
fn header<'py>(
    batch: &Bound<'py, IndexedBatch>,
    header: &Header<'_>,
) -> PyResult<(Bound<'py, PyAny>, Option<Py<PyAny>>)> {
    let key = header_text(batch.py(), header.key)?;
    let base = batch.get().data.as_ptr() as usize;
    let view = |value: &[u8]| {
        let start = (value.as_ptr() as usize - base) as u32;
        objects::memoryview(batch, Slice { start, length: value.len() as u32 })
    };
    Ok((key, header.value.map(view).transpose()?))
}

fn header_list<'h>(
    batch: &Bound<'_, IndexedBatch>,
    headers: impl Iterator<Item = Header<'h>>,
) -> PyResult<Py<PyAny>> {
    let list = PyList::empty(batch.py());
    for each in headers {
        list.append(header(batch, &each)?)?;
    }
    Ok(list.into_any().unbind())
}

pub(super) fn headers(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> PyResult<Py<PyAny>> {
    header_list(batch, batch.get().header_list(entry))
}

/// The last with this key, or None.
pub(super) fn last_header(
    batch: &Bound<'_, IndexedBatch>,
    entry: &Entry,
    key: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let found = batch.get().header_list(entry).last_header(&header_key(key)?);
    let found = found.map(|found| header(batch, &found)).transpose()?;
    Ok(found.into_pyobject(batch.py())?.into_any().unbind())
}

/// All with this key.
pub(super) fn headers_for(
    batch: &Bound<'_, IndexedBatch>,
    entry: &Entry,
    key: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    header_list(batch, batch.get().header_list(entry).headers_for(&header_key(key)?))
}

pub(super) fn headers_raw(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> PyResult<Py<PyAny>> {
    let py = batch.py();
    let list = PyList::empty(py);
    for header in batch.get().header_list(entry) {
        list.append((PyBytes::new(py, header.key), header.value.map(|v| PyBytes::new(py, v))))?;
    }
    Ok(list.into_any().unbind())
}

/// None for magic 0 and 1, which have no such field.
pub(super) fn sequence(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> PyResult<Py<PyAny>> {
    let sequence = (!batch.get().is_legacy).then_some(entry.sequence);
    Ok(sequence.into_pyobject(batch.py())?.into_any().unbind())
}

/// For a record of a control batch: its type and payload; else None.
pub(super) fn control(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> PyResult<Py<PyAny>> {
    let (py, indexed) = (batch.py(), batch.get());
    if !indexed.is_control {
        return Ok(py.None());
    }
    let (key, value) = (indexed.key(entry), indexed.value(entry));
    let control = ControlRecord::parse(key, value).map_err(|e| to_py(py, &e))?;
    let kind = key.map(ControlType::parse).transpose().map_err(|e| to_py(py, &e))?;
    Ok(control_dict(py, kind, &control)?.into_any().unbind())
}

pub(super) fn repr(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> PyResult<Py<PyAny>> {
    let size = |slice: Nullable| slice.get().map_or("None".into(), |s| format!("{} bytes", s.length));
    let text = format!(
        "<Record offset={} timestamp={} key={} value={} headers={}>",
        entry.offset,
        entry.timestamp,
        size(entry.key),
        size(entry.value),
        entry.header_count
    );
    Ok(PyString::new(batch.py(), &text).into_any().unbind())
}

fn control_dict<'py>(
    py: Python<'py>,
    kind: Option<ControlType>,
    control: &ControlRecord,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("type", kind.map(ControlType::name))?;
    match control {
        ControlRecord::EndTransaction { version, coordinator_epoch, .. } => {
            dict.set_item("version", version)?;
            dict.set_item("coordinator_epoch", coordinator_epoch)?;
        }
        ControlRecord::LeaderChange { version, leader_id, voters: all, granting_voters } => {
            dict.set_item("version", version)?;
            dict.set_item("leader_id", leader_id)?;
            dict.set_item("voters", voters(py, all)?)?;
            dict.set_item("granting_voters", voters(py, granting_voters)?)?;
        }
        ControlRecord::SnapshotHeader { version, last_contained_log_timestamp } => {
            dict.set_item("version", version)?;
            dict.set_item("last_contained_log_timestamp", last_contained_log_timestamp)?;
        }
        ControlRecord::SnapshotFooter { version } => dict.set_item("version", version)?,
        ControlRecord::KRaftVersion { version, kraft_version } => {
            dict.set_item("version", version)?;
            dict.set_item("kraft_version", kraft_version)?;
        }
        ControlRecord::KRaftVoters { version, voters: all } => {
            dict.set_item("version", version)?;
            dict.set_item("voters", voters(py, all)?)?;
        }
        ControlRecord::Unknown { id } => dict.set_item("id", id)?,
    }
    Ok(dict)
}

fn voters<'py>(py: Python<'py>, voters: &[Voter]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for voter in voters {
        let dict = PyDict::new(py);
        dict.set_item("voter_id", voter.voter_id)?;
        dict.set_item("directory_id", PyBytes::new(py, &voter.directory_id))?;
        let endpoints: Vec<_> = voter.endpoints.iter().map(|e| (&e.name, &e.host, e.port)).collect();
        dict.set_item("endpoints", endpoints)?;
        dict.set_item("supported_versions", (voter.min_supported_version, voter.max_supported_version))?;
        list.append(dict)?;
    }
    Ok(list)
}
