//! `Record`: one entry of a batch that was checked and indexed as a whole.

use std::sync::Arc;

use ::bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyMemoryView, PyString};

use super::errors::to_py;
use super::facade;
use super::view::View;
use crate::record::{ControlRecord, ControlType, Headers, Voter};
use crate::{Batch, Decompressor, Record, Result, TimestampType};

/// A batch's bytes (decompressed) and where its records stand in them.
pub(super) struct IndexedBatch {
    data: Bytes,
    pub(super) entries: Vec<Entry>,
    is_control: bool,
    is_legacy: bool,
}

pub(super) struct Entry {
    pub(super) offset: i64,
    pub(super) timestamp: i64,
    timestamp_type: TimestampType,
    sequence: i32,
    attributes: i8,
    header_count: u32,
    key: Option<Range>,
    value: Option<Range>,
    headers: Range,
}

#[derive(Clone, Copy)]
pub(super) struct Range {
    start: u32,
    length: u32,
}

impl IndexedBatch {
    /// Decodes and checks every record of the batch whose own bytes are `data`.
    pub(super) fn read(
        data: &Bytes,
        position: u64,
        decompressor: &mut Decompressor,
        check_crcs: bool,
    ) -> Result<Self> {
        let batch = Batch::from_frame(data, position)?;
        if check_crcs {
            batch.verify()?;
        }
        let shared = batch.payload_shared(data, decompressor)?;
        let records = batch.records_in(&shared)?;
        let records = if check_crcs { records } else { records.without_crc_check() };
        let base = shared.as_ptr() as usize;
        let range = |slice: &[u8]| Range {
            start: (slice.as_ptr() as usize - base) as u32,
            length: slice.len() as u32,
        };
        let mut entries = Vec::new();
        for record in records {
            let record: Record<'_> = record?;
            let (headers, header_count) = record.headers().parts();
            entries.push(Entry {
                offset: record.offset(),
                timestamp: record.timestamp(),
                timestamp_type: record.timestamp_type(),
                sequence: record.sequence(),
                attributes: record.attributes(),
                header_count,
                key: record.key().map(range),
                value: record.value().map(range),
                headers: if header_count == 0 { Range { start: 0, length: 0 } } else { range(headers) },
            });
        }
        let (is_control, is_legacy) = (batch.is_control(), batch.magic() < 2);
        Ok(Self { data: shared, entries, is_control, is_legacy })
    }

    pub(super) fn key(&self, entry: &Entry) -> Option<&[u8]> {
        entry.key.map(|range| self.slice(range))
    }

    pub(super) fn value(&self, entry: &Entry) -> Option<&[u8]> {
        entry.value.map(|range| self.slice(range))
    }

    fn slice(&self, range: Range) -> &[u8] {
        &self.data[range.start as usize..][..range.length as usize]
    }

    fn share(&self, range: Range) -> Bytes {
        self.data.slice(range.start as usize..(range.start + range.length) as usize)
    }
}

/// One record. Key and value are views that keep the whole batch alive.
#[pyclass(frozen, name = "Record", module = "magicbyte")]
pub(super) struct PyRecord {
    pub(super) batch: Arc<IndexedBatch>,
    pub(super) index: usize,
}

impl PyRecord {
    fn entry(&self) -> &Entry {
        &self.batch.entries[self.index]
    }

    fn view<'py>(&self, py: Python<'py>, range: Option<Range>) -> PyResult<Option<Bound<'py, PyMemoryView>>> {
        range.map(|range| View::memoryview(py, self.batch.share(range))).transpose()
    }

    /// The record as the core knows it; what a legacy message's attributes say is said elsewhere.
    pub(super) fn as_record(&self) -> Record<'_> {
        let entry = self.entry();
        Record {
            offset: entry.offset,
            timestamp: entry.timestamp,
            timestamp_type: entry.timestamp_type,
            sequence: entry.sequence,
            attributes: if self.batch.is_legacy { 0 } else { entry.attributes },
            key: self.batch.key(entry),
            value: self.batch.value(entry),
            headers: self.header_list(),
        }
    }

    fn header_list(&self) -> Headers<'_> {
        let entry = self.entry();
        Headers::from_parts(self.batch.slice(entry.headers), entry.header_count)
    }
}

#[pymethods]
impl PyRecord {
    /// Absolute offset in the partition.
    #[getter]
    fn offset(&self) -> i64 {
        self.entry().offset
    }

    /// Milliseconds since 1970; -1 for none.
    #[getter]
    fn timestamp(&self) -> i64 {
        self.entry().timestamp
    }

    /// Whose clock the timestamp is.
    #[getter]
    fn timestamp_type(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        facade::timestamp_type(py, self.entry().timestamp_type)
    }

    /// The key: a read-only memoryview, or None for null.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyMemoryView>>> {
        self.view(py, self.entry().key)
    }

    /// The value: a read-only memoryview, or None for null.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyMemoryView>>> {
        self.view(py, self.entry().value)
    }

    /// The key, copied; None for null.
    #[getter]
    fn key_bytes<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.batch.key(self.entry()).map(|key| PyBytes::new(py, key))
    }

    /// The value, copied; None for null.
    #[getter]
    fn value_bytes<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.batch.value(self.entry()).map(|value| PyBytes::new(py, value))
    }

    /// The headers in order: (key, memoryview or None); bytes of a key that are not UTF-8 come
    /// as surrogate escapes.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for header in self.header_list() {
            let key = match std::str::from_utf8(header.key) {
                Ok(text) => PyString::new(py, text).into_any(),
                Err(_) => {
                    PyBytes::new(py, header.key).call_method1("decode", ("utf-8", "surrogateescape"))?
                }
            };
            let value =
                header.value.map(|v| View::memoryview(py, self.batch.data.slice_ref(v))).transpose()?;
            list.append((key, value))?;
        }
        Ok(list)
    }

    /// The headers in order, as bytes, copied.
    #[getter]
    fn headers_raw<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for header in self.header_list() {
            list.append((PyBytes::new(py, header.key), header.value.map(|v| PyBytes::new(py, v))))?;
        }
        Ok(list)
    }

    /// The producer's sequence number, -1 for none; None for magic 0 and 1, which have no such field.
    #[getter]
    fn sequence(&self) -> Option<i32> {
        (!self.batch.is_legacy).then(|| self.entry().sequence)
    }

    /// The record's own attributes byte (0 to 255).
    #[getter]
    fn attributes(&self) -> u8 {
        self.entry().attributes as u8
    }

    /// For a record of a control batch: its type and payload; else None.
    #[getter]
    fn control<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        if !self.batch.is_control {
            return Ok(None);
        }
        let entry = self.entry();
        let (key, value) = (self.batch.key(entry), self.batch.value(entry));
        let control = ControlRecord::parse(key, value).map_err(|e| to_py(py, &e))?;
        let kind = key.map(ControlType::parse).transpose().map_err(|e| to_py(py, &e))?;
        control_dict(py, kind, &control).map(Some)
    }

    fn __repr__(&self) -> String {
        let entry = self.entry();
        let size = |range: Option<Range>| range.map_or("None".into(), |r| format!("{} bytes", r.length));
        format!(
            "<Record offset={} timestamp={} key={} value={} headers={}>",
            entry.offset,
            entry.timestamp,
            size(entry.key),
            size(entry.value),
            entry.header_count
        )
    }
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
