//! Sidecars, and decompressed payloads, for tools that show file contents.

use std::path::PathBuf;

use pyo3::exceptions::PyFileNotFoundError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use magicbyte::sidecar::{
    TransactionIndexEntry, offset_index_entries, parse_leader_epoch_checkpoint, parse_offset_index,
    parse_partition_metadata, parse_producer_snapshot, parse_time_index, parse_transaction_index,
    time_index_entries,
};
use magicbyte::state::ProducerStateEntry;
use magicbyte::{DEFAULT_MAX_DECOMPRESSED_BYTES, Decompressor, Result, sidecar};

use crate::arguments::Codec;
use crate::errors::{io_to_py, to_py};
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

#[doc = docstring!(sidecars, offset_index)]
#[pyfunction]
#[pyo3(signature = (data, base_offset, *, check = true))]
pub(super) fn offset_index(
    py: Python<'_>,
    data: &[u8],
    base_offset: i64,
    check: bool,
) -> PyResult<Vec<(i64, u32)>> {
    if check {
        or_raise(py, parse_offset_index(data, base_offset))?;
    }
    Ok(offset_index_entries(data, base_offset).map(|e| (e.offset, e.position)).collect())
}

#[doc = docstring!(sidecars, time_index)]
#[pyfunction]
#[pyo3(signature = (data, base_offset, *, check = true))]
pub(super) fn time_index(
    py: Python<'_>,
    data: &[u8],
    base_offset: i64,
    check: bool,
) -> PyResult<Vec<(i64, i64)>> {
    if check {
        or_raise(py, parse_time_index(data, base_offset))?;
    }
    Ok(time_index_entries(data, base_offset).map(|e| (e.timestamp, e.offset)).collect())
}

type Aborted = (i16, i64, i64, i64, i64);

#[doc = docstring!(sidecars, transaction_index)]
#[pyfunction]
pub(super) fn transaction_index(py: Python<'_>, data: &[u8]) -> PyResult<Vec<Aborted>> {
    Ok(or_raise(py, parse_transaction_index(data))?.into_iter().map(aborted).collect())
}

#[doc = docstring!(sidecars, collect_aborted_transactions)]
#[pyfunction]
pub(super) fn collect_aborted_transactions(
    py: Python<'_>,
    data: &[u8],
    start: i64,
    end: i64,
) -> PyResult<(Vec<Aborted>, bool)> {
    let entries = or_raise(py, parse_transaction_index(data))?;
    let (found, is_complete) = sidecar::transaction_index::collect_aborted_transactions(&entries, start, end);
    Ok((found.into_iter().map(aborted).collect(), is_complete))
}

fn aborted(entry: TransactionIndexEntry) -> Aborted {
    let TransactionIndexEntry { version, producer_id, first_offset, last_offset, last_stable_offset } = entry;
    (version, producer_id, first_offset, last_offset, last_stable_offset)
}

type Producer = (i64, i16, i32, i64, i32, i64, i32, Option<i64>);

#[doc = docstring!(sidecars, producer_snapshot)]
#[pyfunction]
pub(super) fn producer_snapshot(py: Python<'_>, data: &[u8]) -> PyResult<Vec<Producer>> {
    let entries = or_raise(py, parse_producer_snapshot(data))?.into_iter();
    let fields = |e: ProducerStateEntry| {
        (
            e.producer_id,
            e.producer_epoch,
            e.last_sequence(),
            e.last_offset(),
            e.offset_delta(),
            e.last_timestamp,
            e.coordinator_epoch,
            e.current_txn_first_offset,
        )
    };
    Ok(entries.map(fields).collect())
}

#[doc = docstring!(sidecars, leader_epoch_checkpoint)]
#[pyfunction]
pub(super) fn leader_epoch_checkpoint(py: Python<'_>, text: &str) -> PyResult<Vec<(i32, i64)>> {
    let entries = or_raise(py, parse_leader_epoch_checkpoint(text))?.into_iter();
    Ok(entries.map(|e| (e.epoch, e.start_offset)).collect())
}

#[doc = docstring!(sidecars, partition_metadata)]
#[pyfunction]
pub(super) fn partition_metadata(py: Python<'_>, text: &str) -> PyResult<(i32, String)> {
    let metadata = or_raise(py, parse_partition_metadata(text))?;
    Ok((metadata.version, metadata.topic_id))
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
    let payload = view::to_bytes(payload)?;
    let mut decompressor = Decompressor::with_limit(max_decompressed_bytes);
    let data = py.detach(|| decompressor.decompress(compression.0, magic, &payload));
    Ok(PyBytes::new(py, or_raise(py, data)?))
}
