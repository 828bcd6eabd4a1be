//! `to_arrow` of logs and of batches in memory: an object that exports Arrow streams.

use std::sync::{Arc, Mutex, PoisonError};

use ::bytes::Bytes;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use magicbyte_arrow::{
    BatchStream, Findings, Flavour, LogStream, RecordColumn, Selection, StreamOptions, records_schema,
};
use magicbyte_log::{PartitionLog, ReadOptions};

use crate::arrow::{parse_columns, requested, schema_capsule, stream_capsule};
use crate::jobs::to_json;
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
    Log { log: Box<PartitionLog>, read: ReadOptions },
}

#[doc = docstring!(arrow, ArrowStream)]
#[pyclass(frozen, name = "ArrowStream", module = "magicbyte")]
pub(super) struct PyArrowStream {
    origin: Origin,
    options: StreamOptions,
    findings: Arc<Mutex<Findings>>,
}

impl PyArrowStream {
    pub(super) fn new(origin: Origin, options: StreamOptions) -> PyResult<Self> {
        if matches!(origin, Origin::Buffer { .. }) {
            check_buffer_columns(&options)?;
        }
        Ok(Self { origin, options, findings: Arc::default() })
    }

    /// Waits for the stream's lock, which the thread that reads a batch holds, without the interpreter.
    fn findings<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&Findings) -> T + Send) -> T {
        panics::here();
        py.detach(|| work(&self.findings.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

#[pymethods]
impl PyArrowStream {
    pub(super) fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &records_schema(&self.options.columns, self.options.flavour))
    }

    #[doc = docstring!(arrow, ArrowStream.__arrow_c_stream__)]
    #[pyo3(signature = (requested_schema = None))]
    pub(super) fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        panics::here();
        let mut options = self.options.clone();
        if let Some((columns, flavour)) = requested(requested_schema.as_ref())?
            && (matches!(self.origin, Origin::Log { .. }) || columns.iter().all(|c| is_in_a_buffer(*c)))
        {
            (options.columns, options.flavour) = (columns, flavour);
        }
        match &self.origin {
            Origin::Buffer { data, check_crcs, max_decompressed_bytes, allow_partial } => {
                let (crcs, limit) = (*check_crcs, *max_decompressed_bytes);
                let stream = BatchStream::new(data.clone(), options, crcs, limit, *allow_partial);
                stream_capsule(py, Box::new(stream))
            }
            Origin::Log { log, read } => {
                let stream = LogStream::new(log.as_ref().clone(), *read, options, Arc::clone(&self.findings));
                stream_capsule(py, Box::new(stream))
            }
        }
    }

    #[doc = docstring!(arrow, ArrowStream.problems)]
    fn problems(&self, py: Python<'_>) -> PyResult<String> {
        self.findings(py, |findings| to_json(&findings.problems.listed))
    }

    #[doc = docstring!(arrow, ArrowStream.problems_left_out)]
    fn problems_left_out(&self, py: Python<'_>) -> u64 {
        self.findings(py, |findings| findings.problems.left_out)
    }

    #[doc = docstring!(arrow, ArrowStream.end_offset)]
    #[getter]
    fn end_offset(&self, py: Python<'_>) -> Option<i64> {
        self.findings(py, |findings| findings.end_offset)
    }
}
