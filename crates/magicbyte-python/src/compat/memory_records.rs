//! The clients' `MemoryRecords`: a fetched buffer, and what its batches have in common.

use std::sync::atomic::{AtomicUsize, Ordering};

use ::bytes::Bytes;
use pyo3::exceptions::{PyStopIteration, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use magicbyte::{Batch, Batches, Result};

use crate::compat::client::{
    Client, instead_of_type_error, not_bytes_like, set_constants, with_decompressor,
};
use crate::indexed_batch::{Failure, IndexedBatch};
use crate::locked::detached;
use crate::view::to_bytes;
use crate::{docs::docstring, panics};

impl Client {
    /// Decodes a frame up to its first bad record; that error is raised after the records before it.
    pub(super) fn index(
        self,
        py: Python<'_>,
        data: &Bytes,
        check_inner_crcs: bool,
    ) -> PyResult<IndexedBatch> {
        let read = detached(py, |thread| {
            with_decompressor(thread, |decompressor| {
                IndexedBatch::read_until_error(
                    &Batch::from_frame(data, 0)?,
                    data,
                    decompressor,
                    check_inner_crcs,
                )
            })
        });
        let (mut indexed, error) = read.map_err(|error| self.corrupt(py, &error))?;
        indexed.failure = error.map(|error| -> Failure { Box::new(move |py| self.corrupt(py, &error)) });
        self.counts().read(indexed.entries.len());
        Ok(indexed)
    }
}

/// The bytes of a buffer, or CPython's error for an object that is not one.
pub(super) fn buffer(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    to_bytes(name, object)
        .map_err(|error| instead_of_type_error(object.py(), error, || not_bytes_like(object)))
}

#[doc = docstring!(compat_batches, _MemoryRecords)]
#[pyclass(frozen, subclass, name = "_MemoryRecords", module = "magicbyte.compat._core")]
pub(super) struct MemoryRecords {
    client: Client,
    data: Bytes,
    /// Where the next batch begins.
    position: AtomicUsize,
}

impl MemoryRecords {
    fn new(client: Client, data: Bytes) -> Self {
        Self { client, data, position: AtomicUsize::new(0) }
    }

    /// Where the next batch begins, and its size; None at the end, or if the batch is incomplete.
    fn frame(&self) -> Option<(usize, Result<usize>)> {
        panics::here();
        let start = self.position.load(Ordering::Relaxed);
        let frame = Batches::at_position(&self.data[start..], start as u64).next()?;
        Some((start, frame.map(|batch| batch.size_in_bytes())))
    }
}

#[pymethods]
impl MemoryRecords {
    #[doc = docstring!(compat_batches, _MemoryRecords.size_in_bytes)]
    fn size_in_bytes(&self) -> usize {
        self.data.len()
    }

    #[doc = docstring!(compat_batches, _MemoryRecords.has_next)]
    fn has_next(&self) -> bool {
        self.frame().is_some()
    }

    #[doc = docstring!(compat_batches, _MemoryRecords.next_batch)]
    fn next_batch(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let Some((start, size)) = self.frame() else { return Ok(None) };
        let size = size.map_err(|error| self.client.corrupt(py, &error))?;
        // Before Python code can run, so that no other thread gets the same batch.
        self.position.store(start + size, Ordering::Relaxed);
        let data = self.data.slice(start..start + size);
        let batch = match data[16] {
            2 => self.client.default_batch(py, data)?,
            _ => self.client.legacy_batch(py, data)?,
        };
        Ok(Some(batch))
    }

    #[doc = docstring!(compat_batches, _MemoryRecords.valid_bytes)]
    fn valid_bytes(&self) -> usize {
        panics::here();
        Batches::new(&self.data).map_while(Result::ok).map(|batch| batch.size_in_bytes()).sum()
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.next_batch(py)
    }
}

#[doc = docstring!(compat_batches, AiokafkaMemoryRecords)]
#[pyclass(frozen, subclass, extends = MemoryRecords, name = "MemoryRecords", module = "magicbyte.compat.aiokafka")]
struct AiokafkaMemoryRecords;

#[pymethods]
impl AiokafkaMemoryRecords {
    #[new]
    fn new(bytes_data: &Bound<'_, PyAny>) -> PyResult<PyClassInitializer<Self>> {
        let Ok(bytes) = bytes_data.cast::<PyBytes>() else {
            let found = bytes_data.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "Argument 'bytes_data' has incorrect type (expected bytes, got {found})"
            )));
        };
        Ok(PyClassInitializer::from(MemoryRecords::new(Client::Aiokafka, to_bytes("bytes_data", bytes)?))
            .add_subclass(Self))
    }
}

#[doc = docstring!(compat_batches, KafkaPythonMemoryRecords)]
#[pyclass(frozen, subclass, extends = MemoryRecords, name = "MemoryRecords", module = "magicbyte.compat.kafka_python")]
struct KafkaPythonMemoryRecords;

#[pymethods]
impl KafkaPythonMemoryRecords {
    #[new]
    fn new(bytes_data: &Bound<'_, PyAny>) -> PyResult<PyClassInitializer<Self>> {
        Ok(PyClassInitializer::from(MemoryRecords::new(
            Client::KafkaPython,
            buffer("bytes_data", bytes_data)?,
        ))
        .add_subclass(Self))
    }

    #[doc = docstring!(compat_batches, KafkaPythonMemoryRecords.next)]
    fn next(slf: PyRef<'_, Self>) -> PyResult<Py<PyAny>> {
        slf.as_super().next_batch(slf.py())?.ok_or_else(|| PyStopIteration::new_err(()))
    }
}

pub(super) fn add_types(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("_MemoryRecords", py.get_type::<MemoryRecords>())?;
    module.add("AiokafkaMemoryRecords", py.get_type::<AiokafkaMemoryRecords>())?;
    let of_kafka_python = py.get_type::<KafkaPythonMemoryRecords>();
    let constants = [("LENGTH_OFFSET", 8), ("LOG_OVERHEAD", 12), ("MAGIC_OFFSET", 16), ("MIN_SLICE", 26)];
    set_constants(&of_kafka_python, &constants, &[])?;
    module.add("KafkaPythonMemoryRecords", of_kafka_python)
}
