//! `to_arrow` of logs and of batches in memory: an object that exports Arrow streams.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::vec;

use ::arrow_schema::{ArrowError, FieldRef, SchemaRef};
use ::bytes::Bytes;
use arrow_array::{RecordBatch, RecordBatchReader};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use magicbyte::Error;
use magicbyte_arrow::{
    BatchStream, Findings, Flavour, LogStream, RecordColumn, Selection, StreamOptions, records_schema,
};
use magicbyte_log::{LogError, PartitionLog, ReadOptions};

use crate::arrow::{PyArrowBatch, parse_columns, requested, schema_capsule, stream_capsule};
use crate::errors::{log_to_py, to_py};
use crate::json::to_json;
use crate::locked::Locked;
use crate::results::result_class;
use crate::view::items;
use crate::{docs::docstring, panics};

/// More threads than this are rejected as a mistake.
const MAX_THREADS: usize = 256;

/// The arguments of `to_arrow`.
pub(super) struct ToArrowArguments {
    pub(super) columns: Option<Vec<String>>,
    pub(super) views: bool,
    pub(super) selection: Selection,
    pub(super) threads: usize,
}

impl ToArrowArguments {
    pub(super) fn options(self, py: Python<'_>) -> PyResult<StreamOptions> {
        if !(1..=MAX_THREADS).contains(&self.threads) {
            return Err(PyValueError::new_err(format!(
                "threads {}: expected 1 to {MAX_THREADS}",
                self.threads
            )));
        }
        let columns = match self.columns {
            Some(names) => parse_columns(py, &names)?,
            None => RecordColumn::CONSUMED.to_vec(),
        };
        let flavour = if self.views { Flavour::Views } else { Flavour::Millis };
        Ok(StreamOptions { columns, flavour, selection: self.selection, threads: self.threads })
    }
}

/// Checks that a buffer has the requested columns: it does not know its topic and partition.
pub(super) fn check_buffer_columns(options: &StreamOptions) -> PyResult<()> {
    match options.columns.iter().find(|column| !is_in_a_buffer(**column)) {
        Some(column) => {
            let name = column.name();
            Err(PyValueError::new_err(format!("no column {name:?}: a buffer does not belong to a partition")))
        }
        None => Ok(()),
    }
}

fn is_in_a_buffer(column: RecordColumn) -> bool {
    !matches!(column, RecordColumn::Topic | RecordColumn::Partition | RecordColumn::Segment)
}

pub(super) enum Origin {
    Buffer { data: Bytes, check_crcs: bool, max_decompressed_bytes: usize, allow_partial: bool },
    Log { log: Box<PartitionLog>, read: ReadOptions, last: Option<u64> },
}

type Reader = Box<dyn RecordBatchReader + Send>;

/// The columns and types that a consumer requested.
type Requested = Option<(Vec<RecordColumn>, Flavour)>;

/// The parts of a stream, from which it is made each time that it is read.
struct Recipe {
    origin: Origin,
    options: StreamOptions,
    /// The findings of the last stream that was read.
    findings: Arc<Mutex<Findings>>,
}

impl Recipe {
    fn schema(&self) -> SchemaRef {
        records_schema(&self.options.columns, self.options.flavour)
    }

    fn reader(&self, requested: &Requested) -> Reader {
        let mut options = self.options.clone();
        if let Some((columns, flavour)) = requested
            && (matches!(self.origin, Origin::Log { .. }) || columns.iter().all(|c| is_in_a_buffer(*c)))
        {
            (options.columns, options.flavour) = (columns.clone(), *flavour);
        }
        match &self.origin {
            Origin::Buffer { data, check_crcs, max_decompressed_bytes, allow_partial } => {
                let (crcs, limit) = (*check_crcs, *max_decompressed_bytes);
                Box::new(BatchStream::new(data.clone(), options, crcs, limit, *allow_partial))
            }
            Origin::Log { log, read, last } => {
                let findings = Arc::clone(&self.findings);
                let stream = LogStream::new(log.as_ref().clone(), *read, options, findings);
                Box::new(match last {
                    Some(count) => stream.last(*count),
                    None => stream,
                })
            }
        }
    }

    fn findings(&self) -> MutexGuard<'_, Findings> {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Streams one after the other; each is opened when the one before has ended.
struct Chain {
    schema: SchemaRef,
    requested: Requested,
    recipes: vec::IntoIter<Arc<Recipe>>,
    current: Reader,
    ended: bool,
}

impl Iterator for Chain {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            if let Some(next) = self.current.next() {
                self.ended = next.is_err();
                return Some(next);
            }
            match self.recipes.next() {
                Some(recipe) => self.current = recipe.reader(&self.requested),
                None => self.ended = true,
            }
        }
        None
    }
}

impl RecordBatchReader for Chain {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

#[doc = docstring!(arrow, ArrowStream)]
#[pyclass(frozen, name = "ArrowStream", module = "magicbyte")]
pub(super) struct PyArrowStream(Arc<Recipe>);

impl PyArrowStream {
    pub(super) fn new(origin: Origin, options: StreamOptions) -> PyResult<Self> {
        if matches!(origin, Origin::Buffer { .. }) {
            check_buffer_columns(&options)?;
        }
        Ok(Self(Arc::new(Recipe { origin, options, findings: Arc::default() })))
    }

    /// Waits for the stream's lock, which the thread that reads a batch holds, without the interpreter.
    fn findings<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&Findings) -> T + Send) -> T {
        panics::here();
        py.detach(|| work(&self.0.findings()))
    }
}

#[pymethods]
impl PyArrowStream {
    pub(super) fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.0.schema())
    }

    #[doc = docstring!(arrow, ArrowStream.__arrow_c_stream__)]
    #[pyo3(signature = (requested_schema = None))]
    pub(super) fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        panics::here();
        let requested = requested(requested_schema.as_ref())?;
        stream_capsule(py, self.0.reader(&requested))
    }

    fn __iter__(&self) -> PyArrowBatches {
        panics::here();
        PyArrowBatches(Locked::new(Some(self.0.reader(&None))))
    }

    #[doc = docstring!(arrow, ArrowStream.fields)]
    #[getter]
    fn fields(&self) -> Vec<(String, String)> {
        panics::here();
        let text = |field: &FieldRef| (field.name().clone(), field.data_type().to_string());
        self.0.schema().fields().iter().map(text).collect()
    }

    #[doc = docstring!(arrow, ArrowStream.problems)]
    fn problems(&self, py: Python<'_>) -> PyResult<String> {
        self.findings(py, |findings| to_json(&findings.problems.listed))
    }

    #[doc = docstring!(arrow, ArrowStream.problems_left_out)]
    fn problems_left_out(&self, py: Python<'_>) -> u64 {
        self.findings(py, |findings| findings.problems.left_out)
    }

    #[doc = docstring!(arrow, ArrowStream.counts)]
    #[getter]
    fn counts(&self, py: Python<'_>) -> ReadCounts {
        let counts = self.findings(py, |findings| findings.counts);
        ReadCounts {
            batches: counts.batches,
            good_bytes: counts.good_bytes,
            quarantined_bytes: counts.quarantined_bytes,
            tail_bytes: counts.tail_bytes,
            rows: counts.rows,
        }
    }

    #[doc = docstring!(arrow, ArrowStream.end_offset)]
    #[getter]
    fn end_offset(&self, py: Python<'_>) -> Option<i64> {
        self.findings(py, |findings| findings.end_offset)
    }
}

result_class! {
    arrow, "magicbyte._core", ReadCounts {
        batches: u64,
        good_bytes: u64,
        quarantined_bytes: u64,
        tail_bytes: u64,
        rows: u64,
    }
}

#[doc = docstring!(arrow, chain_streams)]
#[pyfunction]
#[pyo3(signature = (streams, requested_schema = None))]
pub(super) fn chain_streams<'py>(
    py: Python<'py>,
    #[pyo3(from_py_with = items)] streams: Vec<Py<PyArrowStream>>,
    requested_schema: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    panics::here();
    let requested = requested(requested_schema.as_ref())?;
    let recipes: Vec<_> = streams.iter().map(|stream| Arc::clone(&stream.get().0)).collect();
    let mut recipes = recipes.into_iter();
    let Some(first) = recipes.next() else {
        return Err(PyValueError::new_err("no streams: expected at least one"));
    };
    if recipes.as_slice().iter().any(|recipe| recipe.schema() != first.schema()) {
        return Err(PyValueError::new_err("the streams have different columns: expected those of the first"));
    }
    let current = first.reader(&requested);
    let chain = Chain { schema: current.schema(), requested, recipes, current, ended: false };
    stream_capsule(py, Box::new(chain))
}

#[doc = docstring!(arrow, ArrowBatches)]
#[pyclass(frozen, name = "ArrowBatches", module = "magicbyte._core")]
pub(super) struct PyArrowBatches(Locked<Option<Reader>>);

#[pymethods]
impl PyArrowBatches {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyArrowBatch>> {
        // A reader that panics is not put back: it would end as if all was read.
        let next = self.0.with(py, |slot| {
            let mut reader = slot.take()?;
            let next = reader.next();
            *slot = Some(reader);
            Some(next)
        });
        match next {
            Some(next) => {
                next.transpose().map(|batch| batch.map(PyArrowBatch::new)).map_err(|e| raised(py, e))
            }
            None => Err(PyRuntimeError::new_err("the stream has ended after a panic")),
        }
    }
}

/// The exception of what ended a stream.
fn raised(py: Python<'_>, error: ArrowError) -> PyErr {
    let ArrowError::ExternalError(failure) = &error else {
        return PyRuntimeError::new_err(error.to_string());
    };
    if let Some(error) = failure.downcast_ref::<LogError>() {
        log_to_py(py, error)
    } else if let Some(error) = failure.downcast_ref::<Error>() {
        to_py(py, error)
    } else {
        PyRuntimeError::new_err(failure.to_string())
    }
}
