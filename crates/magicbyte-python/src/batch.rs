//! `read_batches` and its batches.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use ::bytes::Bytes;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyCapsule, PyList, PySlice, PyTuple};

use magicbyte::internals::following;
use magicbyte::{Batch, Batches, Compression, DEFAULT_MAX_DECOMPRESSED_BYTES, Decompressor, Result};
use magicbyte_arrow::{Selection, StreamOptions, batch_to_arrow, records_schema};

use crate::arguments::{Millis, millis};
use crate::arrow_stream::{Origin, PyArrowStream, ToArrowArguments, check_buffer_columns};
use crate::errors::to_py;
use crate::indexed_batch::IndexedBatch;
use crate::locked::{Detached, Locked, detached};
use crate::objects::record_object;
use crate::view::{optional_items, to_bytes};
use crate::{arrow, classes, docs::docstring, panics};

/// State shared by all batches of one reader: a locked decompressor, and whether to check CRCs.
pub(super) struct Reading {
    decompressor: Locked<Decompressor>,
    pub(super) check_crcs: bool,
    pub(super) limit: usize,
}

impl Reading {
    pub(super) fn new(check_crcs: bool, limit: usize) -> Arc<Self> {
        Arc::new(Self { decompressor: Locked::new(Decompressor::with_limit(limit)), check_crcs, limit })
    }
}

#[doc = docstring!(batches, read_batches)]
#[pyfunction]
#[pyo3(
    signature = (
        buffer, *, check_crcs = true, max_decompressed_bytes = DEFAULT_MAX_DECOMPRESSED_BYTES,
        allow_partial = false
    ),
    text_signature = "(buffer, *, check_crcs=True, \
        max_decompressed_bytes=magicbyte._core.DEFAULT_MAX_DECOMPRESSED_BYTES, allow_partial=False)"
)]
pub(super) fn read_batches(
    buffer: &Bound<'_, PyAny>,
    check_crcs: bool,
    max_decompressed_bytes: usize,
    allow_partial: bool,
) -> PyResult<PyBatches> {
    let (data, at) = (to_bytes("buffer", buffer)?, AtomicUsize::new(0));
    Ok(PyBatches { data, at, allow_partial, reading: Reading::new(check_crcs, max_decompressed_bytes) })
}

/// A bit set in a position whose bytes are not a batch. No buffer is this long.
const FAILED: usize = 1 << (usize::BITS - 1);

#[doc = docstring!(batches, Batches)]
#[pyclass(frozen, name = "Batches", module = "magicbyte")]
pub(super) struct PyBatches {
    data: Bytes,
    /// The position at which the next batch begins.
    at: AtomicUsize,
    /// True if an incomplete batch at the end is allowed.
    allow_partial: bool,
    reading: Arc<Reading>,
}

impl PyBatches {
    fn rest(&self) -> usize {
        panics::here();
        self.at.load(Ordering::Relaxed) & !FAILED
    }

    fn stream(&self, options: StreamOptions) -> PyResult<PyArrowStream> {
        let (check_crcs, max_decompressed_bytes) = (self.reading.check_crcs, self.reading.limit);
        let (data, allow_partial) = (self.data.clone(), self.allow_partial);
        let origin = Origin::Buffer { data, check_crcs, max_decompressed_bytes, allow_partial };
        PyArrowStream::new(origin, options)
    }
}

#[pymethods]
impl PyBatches {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        // Each batch, and the error, is returned to exactly one of the iterating threads.
        panics::here();
        let (start, framed) = loop {
            let start = self.at.load(Ordering::Relaxed);
            if start & FAILED != 0 {
                return Ok(None);
            }
            let mut batches = Batches::at_position(&self.data[start..], start as u64);
            let next = batches.next().map(|batch| batch.map(|batch| batch.size_in_bytes()));
            let truncated = || batches.truncated().filter(|_| !self.allow_partial).map(Err);
            let Some(framed) = next.or_else(truncated) else { return Ok(None) };
            let after = framed.as_ref().map_or(start | FAILED, |size| start + size);
            if self.at.compare_exchange(start, after, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                break (start, framed);
            }
        };
        let size = framed.map_err(|error| to_py(py, &error))?;
        let data = self.data.slice(start..start + size);
        let following = self.data.slice(following(self.data.len(), start + size, size));
        new_batch(py, data, following, start as u64, Arc::clone(&self.reading)).map(Some)
    }

    #[doc = docstring!(batches, Batches.remaining)]
    #[getter]
    fn remaining(&self) -> usize {
        self.data.len() - self.rest()
    }

    #[doc = docstring!(batches, Batches.needed)]
    #[getter]
    fn needed(&self) -> u64 {
        Batches::new(&self.data[self.rest()..]).needed()
    }

    #[doc = docstring!(batches, Batches.to_arrow)]
    #[pyo3(signature = (
        columns = None, *, views = false, start_offset = None, end_offset = None, start_timestamp = None,
        end_timestamp = None, threads = 1
    ))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of a Python method")]
    fn to_arrow(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = optional_items)] columns: Option<Vec<String>>,
        views: bool,
        start_offset: Option<i64>,
        end_offset: Option<i64>,
        start_timestamp: Option<Millis>,
        end_timestamp: Option<Millis>,
        threads: usize,
    ) -> PyResult<PyArrowStream> {
        let (start_timestamp, end_timestamp) = (millis(start_timestamp), millis(end_timestamp));
        let selection = Selection { start_offset, end_offset, start_timestamp, end_timestamp };
        self.stream(ToArrowArguments { columns, views, selection, threads }.options(py)?)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        self.stream(StreamOptions::default())?.__arrow_c_schema__(py)
    }

    #[doc = docstring!(batches, Batches.__arrow_c_stream__)]
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.stream(StreamOptions::default())?.__arrow_c_stream__(py, requested_schema)
    }
}

#[doc = docstring!(batches, _Batch)]
#[pyclass(frozen, subclass, name = "_Batch", module = "magicbyte")]
pub(super) struct BatchBase {
    data: Bytes,
    /// The bytes that are read next, if they are in memory, to prefetch them.
    following: Bytes,
    position: u64,
    reading: Arc<Reading>,
    /// The number of records, once they have been found.
    count: OnceLock<usize>,
    /// The located records, kept once one of them has been accessed by its index.
    indexed: PyOnceLock<Py<IndexedBatch>>,
}

#[doc = docstring!(batches, RecordBatch)]
#[pyclass(frozen, extends = BatchBase, module = "magicbyte")]
pub(super) struct RecordBatch;

#[doc = docstring!(batches, LegacyBatch)]
#[pyclass(frozen, extends = BatchBase, module = "magicbyte")]
pub(super) struct LegacyBatch;

/// A batch of one whole frame, `data`.
pub(super) fn new_batch(
    py: Python<'_>,
    data: Bytes,
    following: Bytes,
    position: u64,
    reading: Arc<Reading>,
) -> PyResult<Py<PyAny>> {
    let is_v2 = data.get(16) == Some(&2);
    let base = PyClassInitializer::from(BatchBase {
        data,
        following,
        position,
        reading,
        count: OnceLock::new(),
        indexed: PyOnceLock::new(),
    });
    Ok(if is_v2 {
        Py::new(py, base.add_subclass(RecordBatch))?.into_any()
    } else {
        Py::new(py, base.add_subclass(LegacyBatch))?.into_any()
    })
}

impl BatchBase {
    fn batch(&self, py: Python<'_>) -> PyResult<Batch<'_>> {
        panics::here();
        Batch::from_frame(&self.data, self.position).map_err(|error| to_py(py, &error))
    }

    /// Works on the batch with the GIL released.
    pub(super) fn detached<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Detached, &Batch<'_>, &mut Decompressor) -> Result<T> + Send,
    ) -> PyResult<T> {
        let done = detached(py, |thread| {
            let batch = Batch::from_frame(&self.data, self.position)?;
            work(thread, &batch, &mut self.reading.decompressor.lock(thread))
        });
        done.map_err(|error| to_py(py, &error))
    }

    /// The producer of the transaction that the batch is a part of.
    pub(super) fn transactional_producer(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        Ok(self.batch(py)?.as_v2().filter(|batch| batch.is_transactional()).map(|batch| batch.producer_id()))
    }

    /// Decodes and locates the records.
    pub(super) fn index(&self, py: Python<'_>) -> PyResult<IndexedBatch> {
        let check_crcs = self.reading.check_crcs;
        let indexed = detached(py, |thread| {
            let batch = Batch::from_frame(&self.data, self.position)?.followed_by(&self.following);
            let mut decompressor = self.reading.decompressor.lock(thread);
            IndexedBatch::read(&batch, &self.data, &mut decompressor, check_crcs)
        });
        let indexed = indexed.map_err(|error| to_py(py, &error))?;
        self.count.get_or_init(|| indexed.entries.len());
        Ok(indexed)
    }

    /// The located records, which the batch keeps from now on.
    fn kept<'a>(&'a self, py: Python<'a>) -> PyResult<&'a Bound<'a, IndexedBatch>> {
        let kept = self.indexed.get_or_try_init(py, || Py::new(py, self.index(py)?))?;
        Ok(kept.bind(py))
    }

    fn arrow(&self, py: Python<'_>, options: &StreamOptions) -> PyResult<arrow_array::RecordBatch> {
        let (data, position, check_crcs) = (&self.data, self.position, self.reading.check_crcs);
        let arrow = self
            .reading
            .decompressor
            .with(py, |decompressor| batch_to_arrow(data, position, decompressor, options, check_crcs));
        let arrow = arrow.map_err(|error| to_py(py, &error))?;
        self.count.get_or_init(|| arrow.num_rows());
        Ok(arrow)
    }

    /// The batch in the columns that a consumer requests.
    fn requested(
        &self,
        py: Python<'_>,
        schema: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<arrow_array::RecordBatch> {
        let mut options = StreamOptions::default();
        if let Some((columns, flavour)) = arrow::requested(schema)? {
            (options.columns, options.flavour) = (columns, flavour);
        }
        self.arrow(py, &options)
    }
}

/// A getter of a field that only magic 2 has: None for the others.
macro_rules! v2_field {
    ($self:expr, $py:expr, $batch:ident => $field:expr) => {
        Ok($self.batch($py)?.as_v2().map(|$batch| $field))
    };
}

#[pymethods]
impl BatchBase {
    #[doc = docstring!(batches, _Batch.magic)]
    #[getter]
    fn magic(&self, py: Python<'_>) -> PyResult<i8> {
        Ok(self.batch(py)?.magic())
    }

    #[doc = docstring!(batches, _Batch.base_offset)]
    #[getter]
    fn base_offset(&self, py: Python<'_>) -> PyResult<i64> {
        match self.batch(py)? {
            Batch::V2(batch) => Ok(batch.base_offset()),
            Batch::Legacy(batch) if batch.compression().is_ok_and(|c| c == Compression::None) => {
                Ok(batch.last_offset())
            }
            Batch::Legacy(_) => self.detached(py, |_, batch, decompressor| batch.base_offset(decompressor)),
        }
    }

    #[doc = docstring!(batches, _Batch.last_offset)]
    #[getter]
    fn last_offset(&self, py: Python<'_>) -> PyResult<i64> {
        Ok(self.batch(py)?.last_offset())
    }

    #[doc = docstring!(batches, _Batch.next_offset)]
    #[getter]
    fn next_offset(&self, py: Python<'_>) -> PyResult<i64> {
        Ok(self.batch(py)?.last_offset().wrapping_add(1))
    }

    #[doc = docstring!(batches, _Batch.position)]
    #[getter]
    fn position(&self) -> u64 {
        self.position
    }

    #[doc = docstring!(batches, _Batch.size_in_bytes)]
    #[getter]
    fn size_in_bytes(&self) -> usize {
        self.data.len()
    }

    #[doc = docstring!(batches, _Batch.crc)]
    #[getter]
    fn crc(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(self.batch(py)?.crc())
    }

    #[doc = docstring!(batches, _Batch.is_valid)]
    fn is_valid(&self, py: Python<'_>) -> bool {
        panics::here();
        py.detach(|| Batch::from_frame(&self.data, self.position).is_ok_and(|batch| batch.verify().is_ok()))
    }

    #[doc = docstring!(batches, _Batch.compression)]
    #[getter]
    fn compression(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let codec = self.batch(py)?.compression().map_err(|error| to_py(py, &error))?;
        classes::compression(py, codec)
    }

    #[doc = docstring!(batches, _Batch.timestamp_type)]
    #[getter]
    fn timestamp_type(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        classes::timestamp_type(py, self.batch(py)?.timestamp_type())
    }

    #[doc = docstring!(batches, _Batch.base_timestamp)]
    #[getter]
    fn base_timestamp(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        v2_field!(self, py, batch => batch.base_timestamp())
    }

    #[doc = docstring!(batches, _Batch.max_timestamp)]
    #[getter]
    fn max_timestamp(&self, py: Python<'_>) -> PyResult<i64> {
        Ok(self.batch(py)?.max_timestamp())
    }

    #[doc = docstring!(batches, _Batch.delete_horizon_ms)]
    #[getter]
    fn delete_horizon_ms(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        Ok(self.batch(py)?.delete_horizon_ms())
    }

    #[doc = docstring!(batches, _Batch.partition_leader_epoch)]
    #[getter]
    fn partition_leader_epoch(&self, py: Python<'_>) -> PyResult<Option<i32>> {
        v2_field!(self, py, batch => batch.partition_leader_epoch())
    }

    #[doc = docstring!(batches, _Batch.record_count)]
    #[getter]
    fn record_count(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        Ok(match self.batch(py)? {
            Batch::V2(batch) => Some(batch.record_count().into()),
            Batch::Legacy(batch) if batch.compression().is_ok_and(|c| c == Compression::None) => Some(1),
            Batch::Legacy(_) => self.count.get().map(|&count| count as i64),
        })
    }

    #[doc = docstring!(batches, _Batch.producer_id)]
    #[getter]
    fn producer_id(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        v2_field!(self, py, batch => batch.producer_id())
    }

    #[doc = docstring!(batches, _Batch.producer_epoch)]
    #[getter]
    fn producer_epoch(&self, py: Python<'_>) -> PyResult<Option<i16>> {
        v2_field!(self, py, batch => batch.producer_epoch())
    }

    #[doc = docstring!(batches, _Batch.base_sequence)]
    #[getter]
    fn base_sequence(&self, py: Python<'_>) -> PyResult<Option<i32>> {
        v2_field!(self, py, batch => batch.base_sequence())
    }

    #[doc = docstring!(batches, _Batch.last_sequence)]
    #[getter]
    fn last_sequence(&self, py: Python<'_>) -> PyResult<Option<i32>> {
        v2_field!(self, py, batch => batch.last_sequence())
    }

    #[doc = docstring!(batches, _Batch.is_transactional)]
    #[getter]
    fn is_transactional(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.batch(py)?.is_transactional())
    }

    #[doc = docstring!(batches, _Batch.is_control)]
    #[getter]
    fn is_control(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.batch(py)?.is_control())
    }

    /// Decodes and checks the whole batch, then iterates its records.
    fn __iter__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let indexed = match self.indexed.get(py) {
            Some(indexed) => indexed.clone_ref(py),
            None => Py::new(py, self.index(py)?)?,
        };
        record_object::iterate(py, indexed, &record_object::RECORD)
    }

    /// The number of records; decodes the batch unless that has been done.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        match self.count.get() {
            Some(count) => Ok(*count),
            None => Ok(self.kept(py)?.get().entries.len()),
        }
    }

    /// True, so that a test for None decodes nothing.
    #[expect(clippy::unused_self, reason = "a slot")]
    fn __bool__(&self) -> bool {
        true
    }

    #[doc = docstring!(batches, _Batch.__reversed__)]
    fn __reversed__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, last) = (slf.py(), slf.len()? as isize - 1);
        let builtins = py.import("builtins")?;
        let indexes = builtins.call_method1("range", (last, -1, -1))?;
        builtins.call_method1("map", (slf.getattr("__getitem__")?, indexes))
    }

    /// A record, or the records of a slice. The first access decodes the batch and keeps what it decoded.
    fn __getitem__(&self, py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let indexed = self.kept(py)?;
        let length = indexed.get().entries.len() as isize;
        let record = |at: isize| record_object::record_at(indexed, at as usize, &record_object::RECORD);
        if let Ok(slice) = index.cast::<PySlice>() {
            let bounds = slice.indices(length)?;
            let records = PyList::empty(py);
            for step in 0..bounds.slicelength as isize {
                records.append(record(bounds.start + step * bounds.step)?)?;
            }
            return Ok(records.into_any().unbind());
        }
        let index: isize = index.extract()?;
        let at = if index < 0 { index + length } else { index };
        let found = if at < 0 { None } else { record(at)? };
        found.ok_or_else(|| PyIndexError::new_err(format!("record {index} of a batch of {length}")))
    }

    #[doc = docstring!(batches, _Batch.columns)]
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let indexed = self.index(py)?;
        let bytes = |value: Option<&[u8]>| value.map(|v| PyBytes::new(py, v));
        classes::columns_class(py)?.call1((
            PyList::new(py, indexed.entries.iter().map(|e| e.offset))?,
            PyList::new(py, indexed.entries.iter().map(|e| e.timestamp))?,
            PyList::new(py, indexed.entries.iter().map(|e| bytes(indexed.key(e))))?,
            PyList::new(py, indexed.entries.iter().map(|e| bytes(indexed.value(e))))?,
        ))
    }

    #[doc = docstring!(batches, _Batch.to_bytes)]
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.data)
    }

    #[doc = docstring!(batches, _Batch.to_arrow)]
    #[pyo3(signature = (columns = None, *, views = false))]
    fn to_arrow(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = optional_items)] columns: Option<Vec<String>>,
        views: bool,
    ) -> PyResult<arrow::PyArrowBatch> {
        let options =
            ToArrowArguments { columns, views, selection: Selection::default(), threads: 1 }.options(py)?;
        check_buffer_columns(&options)?;
        Ok(arrow::PyArrowBatch::new(self.arrow(py, &options)?))
    }

    #[expect(clippy::unused_self, reason = "a method in Python")]
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let options = StreamOptions::default();
        arrow::schema_capsule(py, &records_schema(&options.columns, options.flavour))
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        arrow::array_capsules(py, &self.requested(py, requested_schema.as_ref())?)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let batch = self.requested(py, requested_schema.as_ref())?;
        let schema = batch.schema();
        arrow::stream_capsule(py, Box::new(arrow_array::RecordBatchIterator::new([Ok(batch)], schema)))
    }

    /// The attributes that `repr` shows, in its order: they are in the header.
    #[classattr]
    #[pyo3(name = "__match_args__")]
    fn names() -> (&'static str, &'static str, &'static str, &'static str, &'static str) {
        ("magic", "last_offset", "position", "size_in_bytes", "compression")
    }

    /// For pickle: the bytes, and how they are read.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let Reading { check_crcs, limit, .. } = &*self.reading;
        let create = py.import("magicbyte._core")?.getattr("unpickle_batch")?;
        (create, (self.to_bytes(py), self.position, check_crcs, limit)).into_pyobject(py)
    }

    /// The batch itself, since it cannot change.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (memo, /))]
    fn __deepcopy__(slf: Py<Self>, memo: &Bound<'_, PyAny>) -> Py<Self> {
        let _ = memo;
        slf
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let batch = self.batch(py)?;
        Ok(format!(
            "<{} magic={} last_offset={} position={} size_in_bytes={} compression={}>",
            if batch.magic() == 2 { "RecordBatch" } else { "LegacyBatch" },
            batch.magic(),
            batch.last_offset(),
            self.position,
            self.data.len(),
            batch.compression().map_or("unknown", Compression::name),
        ))
    }
}
