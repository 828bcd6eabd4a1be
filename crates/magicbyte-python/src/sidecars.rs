//! Sidecars, and decompressed payloads, for tools that show file contents.

use std::path::PathBuf;

use pyo3::exceptions::PyFileNotFoundError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use magicbyte::sidecar::{
    self, offset_index_entries, parse_leader_epoch_checkpoint, parse_offset_index, parse_partition_metadata,
    parse_producer_snapshot, parse_time_index, parse_transaction_index, time_index_entries,
};
use magicbyte::{DEFAULT_MAX_DECOMPRESSED_BYTES, Decompressor, Result};

use crate::arguments::Codec;
use crate::errors::{io_to_py, to_py};
use crate::results::result_class;
use crate::state::ProducerStateEntry;
use crate::store::located;
use crate::{docs::docstring, panics, view};

#[doc = docstring!(sidecars, read_sidecar)]
#[pyfunction]
pub(super) fn read_sidecar(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyBytes>> {
    panics::here();
    let data =
        py.detach(|| magicbyte_log::read_sidecar(located(&path))).map_err(|error| io_to_py(&path, &error))?;
    let data =
        data.ok_or_else(|| PyFileNotFoundError::new_err(format!("{}: no such file", path.display())))?;
    Ok(PyBytes::new(py, &data))
}

fn or_raise<T>(py: Python<'_>, result: Result<T>) -> PyResult<T> {
    panics::here();
    result.map_err(|error| to_py(py, &error))
}

result_class! {
    sidecars, "magicbyte._core", OffsetIndexEntry {
        offset: i64,
        position: u32,
    }
}

#[doc = docstring!(sidecars, offset_index)]
#[pyfunction]
#[pyo3(signature = (data, base_offset, *, check = true))]
pub(super) fn offset_index(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    base_offset: i64,
    check: bool,
) -> PyResult<Vec<OffsetIndexEntry>> {
    let data = view::content("data", data)?;
    if check {
        or_raise(py, parse_offset_index(&data, base_offset))?;
    }
    let entries = offset_index_entries(&data, base_offset);
    Ok(entries.map(|of| OffsetIndexEntry { offset: of.offset, position: of.position }).collect())
}

result_class! {
    sidecars, "magicbyte._core", TimeIndexEntry {
        timestamp: i64,
        offset: i64,
    }
}

#[doc = docstring!(sidecars, time_index)]
#[pyfunction]
#[pyo3(signature = (data, base_offset, *, check = true))]
pub(super) fn time_index(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    base_offset: i64,
    check: bool,
) -> PyResult<Vec<TimeIndexEntry>> {
    let data = view::content("data", data)?;
    if check {
        or_raise(py, parse_time_index(&data, base_offset))?;
    }
    let entries = time_index_entries(&data, base_offset);
    Ok(entries.map(|of| TimeIndexEntry { timestamp: of.timestamp, offset: of.offset }).collect())
}

result_class! {
    sidecars, "magicbyte._core", TransactionIndexEntry {
        version: i16,
        producer_id: i64,
        first_offset: i64,
        last_offset: i64,
        last_stable_offset: i64,
    }
}

impl From<sidecar::TransactionIndexEntry> for TransactionIndexEntry {
    fn from(entry: sidecar::TransactionIndexEntry) -> Self {
        let sidecar::TransactionIndexEntry {
            version,
            producer_id,
            first_offset,
            last_offset,
            last_stable_offset,
        } = entry;
        Self { version, producer_id, first_offset, last_offset, last_stable_offset }
    }
}

#[doc = docstring!(sidecars, transaction_index)]
#[pyfunction]
pub(super) fn transaction_index(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
) -> PyResult<Vec<TransactionIndexEntry>> {
    let data = view::content("data", data)?;
    Ok(or_raise(py, parse_transaction_index(&data))?.into_iter().map(Into::into).collect())
}

#[doc = docstring!(sidecars, collect_aborted_transactions)]
#[pyfunction]
pub(super) fn collect_aborted_transactions(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    start: i64,
    end: i64,
) -> PyResult<(Vec<TransactionIndexEntry>, bool)> {
    let data = view::content("data", data)?;
    let entries = or_raise(py, parse_transaction_index(&data))?;
    let (found, is_complete) = sidecar::transaction_index::collect_aborted_transactions(&entries, start, end);
    Ok((found.into_iter().map(Into::into).collect(), is_complete))
}

#[doc = docstring!(sidecars, producer_snapshot)]
#[pyfunction]
pub(super) fn producer_snapshot(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
) -> PyResult<Vec<ProducerStateEntry>> {
    let data = view::content("data", data)?;
    ProducerStateEntry::all(py, &or_raise(py, parse_producer_snapshot(&data))?)
}

#[doc = docstring!(sidecars, leader_epoch_checkpoint)]
#[pyfunction]
pub(super) fn leader_epoch_checkpoint(py: Python<'_>, text: &str) -> PyResult<Vec<(i32, i64)>> {
    let entries = or_raise(py, parse_leader_epoch_checkpoint(text))?.into_iter();
    Ok(entries.map(|e| (e.epoch, e.start_offset)).collect())
}

result_class! {
    sidecars, "magicbyte._core", PartitionMetadata {
        version: i32,
        topic_id: String,
    }
}

#[doc = docstring!(sidecars, partition_metadata)]
#[pyfunction]
pub(super) fn partition_metadata(py: Python<'_>, text: &str) -> PyResult<PartitionMetadata> {
    let metadata = or_raise(py, parse_partition_metadata(text))?;
    Ok(PartitionMetadata { version: metadata.version, topic_id: metadata.topic_id })
}

#[doc = docstring!(basics, decompress)]
#[pyfunction]
#[pyo3(signature = (compression, magic, payload, *, max_decompressed_bytes = DEFAULT_MAX_DECOMPRESSED_BYTES))]
pub(super) fn decompress<'py>(
    py: Python<'py>,
    compression: Codec,
    magic: i8,
    payload: &Bound<'py, PyAny>,
    max_decompressed_bytes: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let payload = view::to_bytes("payload", payload)?;
    let mut decompressor = Decompressor::with_limit(max_decompressed_bytes);
    let data = py.detach(|| decompressor.decompress(compression.0, magic, &payload));
    Ok(PyBytes::new(py, or_raise(py, data)?))
}
