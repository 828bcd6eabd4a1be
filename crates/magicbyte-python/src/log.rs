//! `PartitionLog`, for the facade in `magicbyte.log`.

use std::path::PathBuf;
use std::sync::Arc;

use ::bytes::Bytes;
use pyo3::prelude::*;

use magicbyte_arrow::Selection;
use magicbyte_log::{Disposition, LogBatches, PartitionLog, PlanOptions, ReadOptions};

use crate::arguments::{Millis, millis};
use crate::arrow_stream::{Origin, PyArrowStream, ToArrowArguments};
use crate::batch::{Reading, new_batch};
use crate::errors::log_to_py;
use crate::jobs::{parse_located, to_json};
use crate::locked::Locked;
use crate::results::result_class;
use crate::store::located;
use crate::view::{optional_items, parse_name};
use crate::{docs::docstring, panics};

#[doc = docstring!(log, PartitionLogCore)]
#[pyclass(frozen, name = "PartitionLogCore", module = "magicbyte._core")]
pub(super) struct PyPartitionLog(PartitionLog);

#[pymethods]
impl PyPartitionLog {
    #[new]
    #[pyo3(signature = (path, *, include_deleted_records = false))]
    fn new(py: Python<'_>, path: PathBuf, include_deleted_records: bool) -> PyResult<Self> {
        panics::here();
        let log = PartitionLog::open(located(&path)).map_err(|e| log_to_py(py, &e))?;
        Ok(Self(log.include_deleted_records(include_deleted_records)))
    }

    #[doc = docstring!(log, PartitionLogCore.of_listing)]
    #[staticmethod]
    fn of_listing(listing: &str) -> PyResult<Self> {
        panics::here();
        Ok(Self(PartitionLog::of_listing(parse_located(listing)?)))
    }

    #[doc = docstring!(log, PartitionLogCore.listing)]
    fn listing(&self) -> PyResult<String> {
        to_json(self.0.listing())
    }

    #[doc = docstring!(log, PartitionLogCore.verify)]
    fn verify(
        &self,
        py: Python<'_>,
        isolation_level: &str,
        max_decompressed_bytes: usize,
    ) -> PyResult<String> {
        panics::here();
        let isolation_level = parse_name(isolation_level)?;
        let options = PlanOptions { isolation_level, ..PlanOptions::default() };
        let verified = py.detach(|| self.0.verify_limited(options, max_decompressed_bytes));
        to_json(&verified.map_err(|e| log_to_py(py, &e))?)
    }

    #[doc = docstring!(log, PartitionLogCore.offset_for_timestamp)]
    fn offset_for_timestamp(&self, py: Python<'_>, timestamp: Millis) -> PyResult<Option<i64>> {
        panics::here();
        py.detach(|| self.0.offset_for_timestamp(timestamp.0)).map_err(|e| log_to_py(py, &e))
    }

    #[doc = docstring!(log, PartitionLogCore.to_arrow)]
    #[pyo3(signature = (
        columns, *, views, start_offset, end_offset, start_timestamp, end_timestamp, last, threads,
        isolation_level, check_crcs, max_decompressed_bytes, mode
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
        check_crcs: bool,
        max_decompressed_bytes: usize,
        mode: &str,
    ) -> PyResult<PyArrowStream> {
        let (start_timestamp, end_timestamp) = (millis(start_timestamp), millis(end_timestamp));
        let selection = Selection { start_offset, end_offset, start_timestamp, end_timestamp };
        let options = ToArrowArguments { columns, views, selection, threads }.options(py)?;
        let isolation_level = parse_name(isolation_level)?;
        let read = ReadOptions { isolation_level, ..read_options(check_crcs, max_decompressed_bytes, mode)? };
        PyArrowStream::new(Origin::Log { log: Box::new(self.0.clone()), read, last }, options)
    }

    #[doc = docstring!(log, PartitionLogCore.batches)]
    #[pyo3(signature = (
        *, start_offset, end_offset, start_timestamp, isolation_level, check_crcs, max_decompressed_bytes, mode
    ))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of a Python method")]
    fn batches(
        &self,
        py: Python<'_>,
        start_offset: Option<i64>,
        end_offset: Option<i64>,
        start_timestamp: Option<Millis>,
        isolation_level: &str,
        check_crcs: bool,
        max_decompressed_bytes: usize,
        mode: &str,
    ) -> PyResult<PyLogBatches> {
        let options = ReadOptions {
            start_offset,
            end_offset,
            start_timestamp: millis(start_timestamp),
            isolation_level: parse_name(isolation_level)?,
            ..read_options(check_crcs, max_decompressed_bytes, mode)?
        };
        panics::here();
        let batches = py.detach(|| self.0.batches(options)).map_err(|e| log_to_py(py, &e))?;
        Ok(PyLogBatches {
            batches: Locked::new(batches),
            // The log's reader has already checked the CRCs.
            reading: Reading::new(check_crcs, max_decompressed_bytes),
        })
    }
}

fn read_options(check_crcs: bool, max_decompressed_bytes: usize, mode: &str) -> PyResult<ReadOptions> {
    let mode = parse_name(mode)?;
    Ok(ReadOptions { check_crcs, max_decompressed_bytes, mode, ..ReadOptions::default() })
}

result_class! {
    log, "magicbyte._core", LogBatch {
        batch: Py<PyAny>,
        segment: String,
        start_offset: i64,
        end_offset: i64,
        is_data: bool,
    }
}

#[doc = docstring!(log, LogBatchesCore)]
#[pyclass(frozen, name = "LogBatchesCore", module = "magicbyte._core")]
pub(super) struct PyLogBatches {
    batches: Locked<LogBatches>,
    reading: Arc<Reading>,
}

#[pymethods]
impl PyLogBatches {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<LogBatch>> {
        let next = self.batches.with(py, Iterator::next);
        let Some(next) = next else { return Ok(None) };
        let next = next.map_err(|e| log_to_py(py, &e))?;
        let is_data = next.disposition == Disposition::Rows;
        let position = next.data.position();
        let batch =
            new_batch(py, next.data.data().clone(), Bytes::new(), position, Arc::clone(&self.reading))?;
        Ok(Some(LogBatch {
            batch,
            segment: next.segment,
            start_offset: next.start_offset,
            end_offset: next.end_offset,
            is_data,
        }))
    }

    #[doc = docstring!(log, LogBatchesCore.problems)]
    fn problems(&self, py: Python<'_>) -> PyResult<String> {
        self.batches.with(py, |batches| to_json(&batches.problems()))
    }

    #[doc = docstring!(log, LogBatchesCore.problems_left_out)]
    fn problems_left_out(&self, py: Python<'_>) -> u64 {
        self.batches.with(py, |batches| batches.problems_left_out())
    }

    #[doc = docstring!(log, LogBatchesCore.end_offset)]
    #[getter]
    fn end_offset(&self, py: Python<'_>) -> i64 {
        self.batches.with(py, |batches| batches.end_offset())
    }
}
