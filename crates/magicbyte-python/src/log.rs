//! A partition's log: its columns, batches and records.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use ::bytes::Bytes;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use magicbyte::state::IsolationLevel;
use magicbyte::{Decompressor, Error};
use magicbyte_arrow::Selection;
use magicbyte_log::{
    DamageMode, Disposition, Listing, LivePartition, LogBatch, LogBatches, LogError, LogResult, PartitionLog,
    PlanOptions, Problem, Problems, ReadOptions,
};

use crate::arguments::{Millis, millis};
use crate::arrow_stream::{Origin, PyArrowStream, ToArrowArguments};
use crate::batch::{Reading, new_batch};
use crate::errors::{log_to_py, to_py};
use crate::fetched::PyFetchedChunks;
use crate::gil_cell::GilCell;
use crate::indexed_batch::IndexedBatch;
use crate::json::{parse_located, to_json};
use crate::live::ClusterPartition;
use crate::locked::Locked;
use crate::objects::record_object::{RECORD, record_at};
use crate::store::located;
use crate::view::{optional_items, parse_name};
use crate::{docs::docstring, panics};

#[doc = docstring!(log, list_log)]
#[pyfunction]
#[pyo3(signature = (path, *, include_deleted_records = false))]
pub(super) fn list_log(py: Python<'_>, path: PathBuf, include_deleted_records: bool) -> PyResult<String> {
    panics::here();
    let log = py.detach(|| PartitionLog::open(located(&path))).map_err(|e| log_to_py(py, &e))?;
    to_json(log.include_deleted_records(include_deleted_records).listing())
}

#[doc = docstring!(log, PartitionReader)]
#[pyclass(frozen, name = "PartitionReader", module = "magicbyte._core")]
pub(super) struct PyPartitionReader {
    log: PartitionLog,
    check_crcs: bool,
    max_decompressed_bytes: usize,
    mode: String,
    /// The partition of a running cluster.
    pub(super) live: Option<ClusterPartition>,
}

impl PyPartitionReader {
    pub(super) fn of_cluster(
        url: &str,
        live: ClusterPartition,
        check_crcs: bool,
        max_decompressed_bytes: usize,
        mode: String,
    ) -> PyResult<Self> {
        let (topic, partition) = &live.place;
        let log = PartitionLog::of_cluster(url, topic, *partition, Arc::new(live.clone()));
        let reader = Self { log, check_crcs, max_decompressed_bytes, mode, live: Some(live) };
        reader.options()?;
        Ok(reader)
    }

    /// A reader of the same partition of a running cluster, which gets its batches from `live`.
    pub(super) fn read_from(&self, live: Arc<dyn LivePartition>) -> Self {
        let Listing { location, topic, partition, .. } = self.log.listing();
        let log = PartitionLog::of_cluster(&location.path().to_string_lossy(), topic, *partition, live);
        Self { log, mode: self.mode.clone(), live: None, ..*self }
    }

    fn options(&self) -> PyResult<ReadOptions> {
        let (check_crcs, max_decompressed_bytes) = (self.check_crcs, self.max_decompressed_bytes);
        Ok(ReadOptions {
            check_crcs,
            max_decompressed_bytes,
            mode: parse_name(&self.mode)?,
            ..ReadOptions::default()
        })
    }

    fn read(&self, py: Python<'_>, options: ReadOptions) -> PyResult<LogBatches> {
        panics::here();
        py.detach(|| self.log.batches(options)).map_err(|e| log_to_py(py, &e))
    }
}

#[pymethods]
impl PyPartitionReader {
    #[new]
    fn new(listing: &str, check_crcs: bool, max_decompressed_bytes: usize, mode: String) -> PyResult<Self> {
        let log = PartitionLog::of_listing(parse_located(listing)?);
        let reader = Self { log, check_crcs, max_decompressed_bytes, mode, live: None };
        reader.options()?;
        Ok(reader)
    }

    /// For pickle: the arguments of the constructor.
    fn __getnewargs__(&self) -> PyResult<(String, bool, usize, &str)> {
        if self.log.is_live() {
            return Err(PyTypeError::new_err("a partition of a running cluster cannot be pickled"));
        }
        Ok((to_json(self.log.listing())?, self.check_crcs, self.max_decompressed_bytes, &self.mode))
    }

    #[doc = docstring!(log, PartitionReader.listing)]
    fn listing(&self) -> PyResult<String> {
        panics::here();
        to_json(self.log.listing())
    }

    #[doc = docstring!(log, PartitionReader.offsets)]
    fn offsets(
        &self,
        py: Python<'_>,
        start_offset: Option<i64>,
        end_offset: Option<i64>,
        isolation_level: &str,
    ) -> PyResult<(i64, i64)> {
        panics::here();
        let level = parse_name(isolation_level)?;
        let offsets = py.detach(|| self.log.live_offsets((start_offset, end_offset), level));
        let offsets = offsets.map_err(|e| log_to_py(py, &e))?.ok_or_else(has_files)?;
        Ok((offsets.start, offsets.end))
    }

    #[doc = docstring!(log, PartitionReader.fetch)]
    #[pyo3(signature = (*, start_offset, end_offset, isolation_level, part = (None, None)))]
    fn fetch(
        &self,
        py: Python<'_>,
        start_offset: Option<i64>,
        end_offset: Option<i64>,
        isolation_level: &str,
        part: (Option<i64>, Option<i64>),
    ) -> PyResult<PyFetchedChunks> {
        panics::here();
        let level = parse_name(isolation_level)?;
        let chunks = py.detach(|| self.log.live_part(part, (start_offset, end_offset), level));
        let chunks = chunks.map_err(|e| log_to_py(py, &e))?;
        chunks.map(PyFetchedChunks::new).ok_or_else(has_files)
    }

    #[doc = docstring!(log, PartitionReader.max_decompressed_bytes)]
    #[getter]
    fn max_decompressed_bytes(&self) -> usize {
        self.max_decompressed_bytes
    }

    #[doc = docstring!(log, PartitionReader.verify)]
    fn verify(&self, py: Python<'_>, isolation_level: &str) -> PyResult<String> {
        let isolation_level = parse_name(isolation_level)?;
        let options = PlanOptions { isolation_level, ..PlanOptions::default() };
        let verified = py.detach(|| self.log.verify_limited(options, self.max_decompressed_bytes));
        to_json(&verified.map_err(|e| log_to_py(py, &e))?)
    }

    #[doc = docstring!(log, PartitionReader.offset_for_timestamp)]
    fn offset_for_timestamp(&self, py: Python<'_>, timestamp: Millis) -> PyResult<Option<i64>> {
        panics::here();
        py.detach(|| self.log.offset_for_timestamp(timestamp.0)).map_err(|e| log_to_py(py, &e))
    }

    #[doc = docstring!(log, PartitionReader.to_arrow)]
    #[pyo3(signature = (
        columns, *, views, start_offset, end_offset, start_timestamp, end_timestamp, last, threads,
        isolation_level
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
        last: Option<u64>,
        threads: usize,
        isolation_level: &str,
    ) -> PyResult<PyArrowStream> {
        let (start_timestamp, end_timestamp) = (millis(start_timestamp), millis(end_timestamp));
        let selection = Selection { start_offset, end_offset, start_timestamp, end_timestamp };
        let options = ToArrowArguments { columns, views, selection, threads }.options(py)?;
        let read = ReadOptions { isolation_level: parse_name(isolation_level)?, ..self.options()? };
        PyArrowStream::new(Origin::Log { log: Box::new(self.log.clone()), read, last }, options)
    }

    #[doc = docstring!(log, PartitionReader.batches)]
    #[pyo3(signature = (*, start_offset, end_offset, start_timestamp, isolation_level))]
    fn batches(
        &self,
        py: Python<'_>,
        start_offset: Option<i64>,
        end_offset: Option<i64>,
        start_timestamp: Option<Millis>,
        isolation_level: &str,
    ) -> PyResult<PyLogBatches> {
        let range = ReadOptions { start_offset, end_offset, ..self.options()? };
        let options = selecting(range, start_timestamp, isolation_level)?;
        // The log's reader has already checked the CRCs.
        let reading = Reading::new(self.check_crcs, self.max_decompressed_bytes);
        let delivered = match options.isolation_level {
            IsolationLevel::ReadCommitted => Delivered::Committed,
            IsolationLevel::ReadUncommitted => Delivered::All,
        };
        Ok(PyLogBatches { batches: Locked::new(self.read(py, options)?), reading, delivered })
    }

    #[doc = docstring!(log, PartitionReader.records)]
    #[pyo3(signature = (*, start_offset, end_offset, start_timestamp, isolation_level))]
    fn records(
        &self,
        py: Python<'_>,
        start_offset: Option<i64>,
        end_offset: Option<i64>,
        start_timestamp: Option<Millis>,
        isolation_level: &str,
    ) -> PyResult<PyLogRecords> {
        let range = ReadOptions { start_offset, end_offset, ..self.options()? };
        let options = selecting(range, start_timestamp, isolation_level)?;
        let listing = self.log.listing();
        let reading = RecordsOfBatches {
            batches: self.read(py, options)?,
            topic: listing.topic.clone(),
            partition: listing.partition,
            check_crcs: self.check_crcs,
            fails_fast: options.mode == DamageMode::FailFast,
            decompressor: Decompressor::with_limit(self.max_decompressed_bytes),
            undecodable: Problems::default(),
        };
        Ok(PyLogRecords { reading: Locked::new(reading), located: GilCell::new(VecDeque::new()) })
    }
}

fn has_files() -> PyErr {
    PyTypeError::new_err("the partition has files: expected one of a running cluster")
}

/// The options of a read with what Python has in other types.
fn selecting(
    range: ReadOptions,
    start_timestamp: Option<Millis>,
    isolation_level: &str,
) -> PyResult<ReadOptions> {
    let isolation_level = parse_name(isolation_level)?;
    Ok(ReadOptions { start_timestamp: millis(start_timestamp), isolation_level, ..range })
}

/// The batches that an iterator delivers.
#[derive(Clone, Copy)]
enum Delivered {
    All,
    /// Without batches of aborted transactions.
    Committed,
    Data,
}

impl Delivered {
    fn includes(self, batch: &LogBatch) -> bool {
        match (self, batch.disposition) {
            (Self::All, _) | (_, Disposition::Rows) => true,
            (Self::Committed, _) => batch.data.batch().is_control(),
            (Self::Data, _) => false,
        }
    }
}

/// Problems as the plain data that JSON has for them.
fn plain<'py>(py: Python<'py>, problems: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (problems,))
}

/// The end of a read; None if that is the end of the log.
fn end_of(batches: &LogBatches) -> Option<i64> {
    Some(batches.end_offset()).filter(|&end| end != i64::MAX)
}

#[doc = docstring!(log, LogBatches)]
#[pyclass(frozen, name = "LogBatches", module = "magicbyte")]
pub(super) struct PyLogBatches {
    batches: Locked<LogBatches>,
    reading: Arc<Reading>,
    delivered: Delivered,
}

#[pymethods]
impl PyLogBatches {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let is_delivered =
            |next: &LogResult<LogBatch>| next.as_ref().map_or(true, |batch| self.delivered.includes(batch));
        let next = self.batches.with(py, |batches| batches.find(is_delivered));
        let Some(next) = next.transpose().map_err(|e| log_to_py(py, &e))? else { return Ok(None) };
        let (data, position) = (next.data.data().clone(), next.data.position());
        new_batch(py, data, Bytes::new(), position, Arc::clone(&self.reading)).map(Some)
    }

    #[doc = docstring!(log, LogBatches.problems)]
    #[getter]
    fn problems<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &self.batches.with(py, |batches| to_json(&batches.problems()))?)
    }

    #[doc = docstring!(log, LogBatches.problems_left_out)]
    #[getter]
    fn problems_left_out(&self, py: Python<'_>) -> u64 {
        self.batches.with(py, |batches| batches.problems_left_out())
    }

    #[doc = docstring!(log, LogBatches.end_offset)]
    #[getter]
    fn end_offset(&self, py: Python<'_>) -> Option<i64> {
        self.batches.with(py, |batches| end_of(batches))
    }
}

/// The batches of a read, whose records are located one batch after the other.
struct RecordsOfBatches {
    batches: LogBatches,
    topic: String,
    partition: i32,
    check_crcs: bool,
    fails_fast: bool,
    decompressor: Decompressor,
    /// The batches that were left out because their records do not decode.
    undecodable: Problems,
}

/// A batch that is being read, the index of its next record, and the offsets that are read of it.
struct Current {
    batch: Py<IndexedBatch>,
    next: usize,
    offsets: Range<i64>,
}

enum Failure {
    Log(LogError),
    Records(Error),
}

impl RecordsOfBatches {
    /// Locates the records of the next batch with data.
    fn locate_next(&mut self) -> Result<Option<(IndexedBatch, Range<i64>)>, Failure> {
        loop {
            let next =
                self.batches.find(|next| next.as_ref().map_or(true, |batch| Delivered::Data.includes(batch)));
            let Some(next) = next.transpose().map_err(Failure::Log)? else { return Ok(None) };
            // The log's reader has already checked the CRC of the batch.
            let located = IndexedBatch::read_until_error(
                &next.data.batch(),
                next.data.data(),
                &mut self.decompressor,
                self.check_crcs,
            );
            match located.and_then(|(indexed, error)| error.map_or(Ok(indexed), Err)) {
                Ok(indexed) => return Ok(Some((indexed, next.start_offset..next.end_offset))),
                Err(error) if self.fails_fast => return Err(Failure::Records(error)),
                Err(error) => {
                    let start = next.data.position();
                    let range = start..start + next.data.data().len() as u64;
                    let (topic, partition) = (&self.topic, self.partition);
                    let problem = Problem::of_bytes(topic, partition, &next.segment, range, &error);
                    self.undecodable.note(problem);
                }
            }
        }
    }
}

#[doc = docstring!(log, LogRecords)]
#[pyclass(frozen, name = "LogRecords", module = "magicbyte")]
pub(super) struct PyLogRecords {
    reading: Locked<RecordsOfBatches>,
    /// The batch that is being read; several only while threads share the iterator.
    located: GilCell<VecDeque<Current>>,
}

impl PyLogRecords {
    /// The next record of the batches that are located.
    fn next_located(&self, py: Python<'_>) -> Option<(Py<IndexedBatch>, usize)> {
        self.located.with(py, |located| {
            while let Some(current) = located.front_mut() {
                let Some(entry) = current.batch.get().entries.get(current.next) else {
                    located.pop_front();
                    continue;
                };
                current.next += 1;
                if current.offsets.contains(&entry.offset) {
                    return Some((current.batch.clone_ref(py), current.next - 1));
                }
            }
            None
        })
    }
}

#[pymethods]
impl PyLogRecords {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        loop {
            if let Some((batch, index)) = self.next_located(py) {
                return record_at(batch.bind(py), index, &RECORD);
            }
            let located = self.reading.with(py, RecordsOfBatches::locate_next);
            let located = located.map_err(|failure| match failure {
                Failure::Log(error) => log_to_py(py, &error),
                Failure::Records(error) => to_py(py, &error),
            })?;
            let Some((indexed, offsets)) = located else { return Ok(None) };
            let current = Current { batch: Py::new(py, indexed)?, next: 0, offsets };
            self.located.with(py, |located| located.push_back(current));
        }
    }

    #[doc = docstring!(log, LogRecords.problems)]
    #[getter]
    fn problems<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let problems = self.reading.with(py, |reading| {
            let listed = [reading.batches.problems(), &reading.undecodable.listed].concat();
            to_json(&listed)
        });
        plain(py, &problems?)
    }

    #[doc = docstring!(log, LogRecords.problems_left_out)]
    #[getter]
    fn problems_left_out(&self, py: Python<'_>) -> u64 {
        self.reading.with(py, |reading| reading.batches.problems_left_out() + reading.undecodable.left_out)
    }

    #[doc = docstring!(log, LogRecords.end_offset)]
    #[getter]
    fn end_offset(&self, py: Python<'_>) -> Option<i64> {
        self.reading.with(py, |reading| end_of(&reading.batches))
    }
}
