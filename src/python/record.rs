//! The slower getters of records. The objects themselves are in `objects/`.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use crate::python::classes;
use crate::python::errors::to_py;
use crate::python::indexed_batch::{Entry, IndexedBatch, Nullable, Slice};
use crate::python::objects::exporter;
use crate::python::view::header_key;
use crate::record::control::{ControlRecord, ControlType, Voter};
use crate::record::header::Header;

pub(super) fn timestamp_type(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> PyResult<Py<PyAny>> {
    classes::timestamp_type(batch.py(), entry.timestamp_type)
}

/// A header key as a str; bytes that are not UTF-8 become surrogate escapes.
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
        exporter::memoryview(batch, Slice { start, length: value.len() as u32 })
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

/// The last header with this key, or None.
pub(super) fn last_header(
    batch: &Bound<'_, IndexedBatch>,
    entry: &Entry,
    key: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let found = batch.get().header_list(entry).last_header(&header_key(key)?);
    let found = found.map(|found| header(batch, &found)).transpose()?;
    Ok(found.into_pyobject(batch.py())?.into_any().unbind())
}

/// All headers with this key.
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

/// The sequence number; None for magic 0 and 1, which have no such field.
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

#[expect(clippy::unnecessary_wraps, reason = "getters share one signature")]
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
