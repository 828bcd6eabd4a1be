//! The slower getters of records. The objects themselves are in `objects/`.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use magicbyte::{ControlRecord, ControlType, Header, Headers, Voter};

use crate::classes;
use crate::errors::to_py;
use crate::indexed_batch::{Entry, IndexedBatch, Slice};
use crate::objects::exporter;
use crate::view::header_key;

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

/// Bytes of a key or value that `repr` shows.
const SHOWN: usize = 40;

pub(super) fn repr(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> PyResult<Py<PyAny>> {
    let (py, indexed) = (batch.py(), batch.get());
    let shown = |bytes: Option<&[u8]>| {
        let Some(bytes) = bytes else { return Ok("None".to_owned()) };
        let start = PyBytes::new(py, &bytes[..bytes.len().min(SHOWN)]).repr()?;
        let more = if bytes.len() > SHOWN { format!("... ({} bytes)", bytes.len()) } else { String::new() };
        PyResult::Ok(format!("{start}{more}"))
    };
    let text = format!(
        "<Record offset={} timestamp={} key={} value={} headers={}>",
        entry.offset,
        entry.timestamp,
        shown(indexed.key(entry))?,
        shown(indexed.value(entry))?,
        entry.header_count
    );
    Ok(PyString::new(py, &text).into_any().unbind())
}

/// The record as a dict of copies: the fields that a consumer sees, and the record's sequence and attributes.
pub(super) fn to_dict(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> PyResult<Py<PyAny>> {
    let (py, indexed) = (batch.py(), batch.get());
    let copied = |bytes: Option<&[u8]>| bytes.map(|bytes| PyBytes::new(py, bytes));
    let headers = PyList::empty(py);
    for header in indexed.header_list(entry) {
        headers.append((header_text(py, header.key)?, copied(header.value)))?;
    }
    let dict = PyDict::new(py);
    dict.set_item("offset", entry.offset)?;
    dict.set_item("timestamp", entry.timestamp)?;
    dict.set_item("timestamp_type", timestamp_type(batch, entry)?)?;
    dict.set_item("key", copied(indexed.key(entry)))?;
    dict.set_item("value", copied(indexed.value(entry)))?;
    dict.set_item("headers", headers)?;
    dict.set_item("sequence", sequence(batch, entry)?)?;
    dict.set_item("attributes", entry.attributes)?;
    Ok(dict.into_any().unbind())
}

/// The HTML of a notebook, which is made in Python.
pub(super) fn repr_html(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> PyResult<Py<PyAny>> {
    let html = batch.py().import("magicbyte.notebook")?.getattr("record_html")?;
    html.call1((to_dict(batch, entry)?,)).map(Bound::unbind)
}

/// A value that equal records share; what is compared is in [`is_same`].
pub(super) fn hash(indexed: &IndexedBatch, entry: &Entry) -> u64 {
    static STATE: OnceLock<RandomState> = OnceLock::new();
    let fields = (entry.offset, entry.timestamp, indexed.key(entry), indexed.value(entry));
    STATE.get_or_init(RandomState::new).hash_one(fields)
}

/// True if two records are equal, wherever they are stored (`DefaultRecord.equals`, without the size).
pub(super) fn is_same((a, entry_a): (&IndexedBatch, &Entry), (b, entry_b): (&IndexedBatch, &Entry)) -> bool {
    let (record_a, record_b) = (a.record(entry_a), b.record(entry_b));
    // Equal headers may be stored with lengths that take more bytes than they need.
    let none = Headers::default();
    (a.is_legacy, a.is_control) == (b.is_legacy, b.is_control)
        && record_a.with_headers(none) == record_b.with_headers(none)
        && record_a.headers().eq(record_b.headers())
}

/// For `pickle`: the function that creates the record again, and its arguments.
pub(super) fn reduce(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> PyResult<Py<PyAny>> {
    let (py, indexed) = (batch.py(), batch.get());
    let copied = |bytes: Option<&[u8]>| bytes.map(|bytes| PyBytes::new(py, bytes));
    let numbers =
        (entry.offset, entry.timestamp, entry.timestamp_type as i8, entry.sequence, entry.attributes);
    let (headers, header_count) = indexed.header_list(entry).parts();
    let content =
        (copied(indexed.key(entry)), copied(indexed.value(entry)), PyBytes::new(py, headers), header_count);
    let kind = (indexed.is_control, indexed.is_legacy);
    let create = py.import("magicbyte._core")?.getattr("unpickle_record")?;
    Ok((create, (numbers, content, kind)).into_pyobject(py)?.into_any().unbind())
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
        // Kinds that a newer format adds have their type alone.
        _ => {}
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
