//! The steps of jobs: `list -> survey -> plan -> decode -> reconcile`, with JSON arguments and results.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

use magicbyte::DEFAULT_MAX_DECOMPRESSED_BYTES;
use magicbyte_arrow::{ChunkDecoder, DecodeOptions, Flavour, Payloads};
use magicbyte_log::steps::{Chunk, DEFAULT_CHUNK_BYTES, SurveyInParts};
use magicbyte_log::{DamageMode, Listing, LogError, PlanOptions, Problems, steps};

use crate::arrow::{PyArrowBatch, parse_columns};
use crate::errors::{io_to_py, log_to_py};
use crate::fetched::chunk_of;
use crate::json::{parse, parse_located, to_json};
use crate::locked::Locked;
use crate::range_digests::{PyRangeDigest, ranges_of};
use crate::store::located;
use crate::view::{items, parse_name};
use crate::{docs::docstring, panics};

#[doc = docstring!(steps, list_partition)]
#[pyfunction]
#[pyo3(signature = (path, *, include_checkpoints = false))]
pub(super) fn list_partition(py: Python<'_>, path: PathBuf, include_checkpoints: bool) -> PyResult<String> {
    let listing = py.detach(|| magicbyte_log::list_partition(located(&path), include_checkpoints));
    to_json(&listing.map_err(|e| log_to_py(py, &e))?)
}

#[doc = docstring!(steps, unreadable_directory)]
#[pyfunction]
pub(super) fn unreadable_directory(py: Python<'_>, path: PathBuf, why: &str) -> PyResult<String> {
    panics::here();
    to_json(&Listing::unreadable(&path, why).map_err(|e| log_to_py(py, &e))?)
}

#[doc = docstring!(steps, is_partition)]
#[pyfunction]
pub(super) fn is_partition(directory: OsString, names: Vec<OsString>) -> bool {
    panics::here();
    // No file of Kafka has a name that is not UTF-8.
    steps::is_partition(&directory.to_string_lossy(), names.iter().filter_map(|name| name.to_str()))
}

#[doc = docstring!(steps, is_segment_file)]
#[pyfunction]
pub(super) fn is_segment_file(name: OsString) -> bool {
    panics::here();
    name.to_str().is_some_and(steps::is_segment_file)
}

#[doc = docstring!(steps, is_in_name_order)]
#[pyfunction]
pub(super) fn is_in_name_order(py: Python<'_>, listing: &str) -> PyResult<bool> {
    panics::here();
    let listing: Listing = parse_located(listing)?;
    let is_in_order = py.detach(|| steps::is_in_name_order(&listing.segments));
    is_in_order.map_err(|e| log_to_py(py, &e))
}

#[doc = docstring!(steps, is_same_file)]
#[pyfunction]
pub(super) fn is_same_file(version: Option<&str>, other: Option<&str>) -> bool {
    panics::here();
    magicbyte_log::internals::is_same_file(version, other)
}

#[doc = docstring!(steps, segments_from)]
#[pyfunction]
pub(super) fn segments_from(py: Python<'_>, listing: &str, offset: i64) -> PyResult<String> {
    let listing: Listing = parse_located(listing)?;
    let segments = py.detach(|| steps::segments_from(&listing.segments, offset));
    to_json(&segments.map_err(|e| log_to_py(py, &e))?)
}

#[doc = docstring!(steps, survey_segment)]
#[pyfunction]
#[pyo3(signature = (segment, before = None))]
pub(super) fn survey_segment(py: Python<'_>, segment: &str, before: Option<&str>) -> PyResult<String> {
    let segment = parse_located(segment)?;
    let before = before.map(parse).transpose()?;
    let survey = py.detach(|| {
        let grown = match &before {
            Some(before) => steps::survey_grown(&segment, before)?,
            None => None,
        };
        grown.map_or_else(|| steps::survey_segment(&segment), Ok)
    });
    to_json(&survey.map_err(|e| log_to_py(py, &e))?)
}

#[doc = docstring!(steps, SurveyInParts)]
#[pyclass(frozen, name = "SurveyInParts", module = "magicbyte._core")]
pub(super) struct PySurveyInParts(Locked<SurveyInParts>);

#[pymethods]
impl PySurveyInParts {
    #[new]
    fn new(py: Python<'_>, segment: &str, part_bytes: u64) -> PyResult<Self> {
        let segment = parse_located(segment)?;
        let parts = py.detach(|| SurveyInParts::begin(&segment, part_bytes));
        Ok(Self(Locked::new(parts.map_err(|e| log_to_py(py, &e))?)))
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<(u64, bool, String)>> {
        let Some(survey) = self.0.with(py, Iterator::next) else { return Ok(None) };
        let survey = survey.map_err(|e| log_to_py(py, &e))?;
        let end = match survey.borders.last() {
            Some(border) if survey.is_part => border.position,
            _ => survey.segment.size,
        };
        Ok(Some((end, !survey.is_part, to_json(&survey)?)))
    }
}

#[doc = docstring!(steps, plan_partition)]
#[pyfunction]
#[pyo3(signature = (
    listing, surveys, *, isolation_level = "read_uncommitted", start_offset = None, end_offset = None,
    chunk_bytes = DEFAULT_CHUNK_BYTES
))]
pub(super) fn plan_partition(
    py: Python<'_>,
    listing: &str,
    #[pyo3(from_py_with = items)] surveys: Vec<PyBackedStr>,
    isolation_level: &str,
    start_offset: Option<i64>,
    end_offset: Option<i64>,
    chunk_bytes: u64,
) -> PyResult<String> {
    let isolation_level = parse_name(isolation_level)?;
    let listing = parse(listing)?;
    let surveys: PyResult<Vec<_>> = surveys.iter().map(|survey| parse(survey)).collect();
    let options = PlanOptions { isolation_level, start_offset, end_offset, chunk_bytes };
    let plan = steps::plan_partition(&listing, &surveys?, options);
    to_json(&plan.map_err(|e| log_to_py(py, &e))?)
}

#[doc = docstring!(steps, offset_for_timestamp)]
#[pyfunction]
pub(super) fn offset_for_timestamp(py: Python<'_>, plan: &str, timestamp: i64) -> PyResult<Option<i64>> {
    let plan = parse_located(plan)?;
    py.detach(|| steps::offset_for_timestamp(&plan, timestamp)).map_err(|e| log_to_py(py, &e))
}

#[doc = docstring!(steps, start_for_timestamp)]
#[pyfunction]
pub(super) fn start_for_timestamp(py: Python<'_>, plan: &str, timestamp: i64) -> PyResult<Option<i64>> {
    let plan = parse_located(plan)?;
    py.detach(|| steps::start_for_timestamp(&plan, timestamp)).map_err(|e| log_to_py(py, &e))
}

#[doc = docstring!(steps, reconcile)]
#[pyfunction]
pub(super) fn reconcile(
    py: Python<'_>,
    plan: &str,
    #[pyo3(from_py_with = items)] results: Vec<PyBackedStr>,
) -> PyResult<String> {
    let plan = parse(plan)?;
    let results: PyResult<Vec<_>> = results.iter().map(|result| parse(result)).collect();
    to_json(&steps::reconcile(&plan, &results?).map_err(|e| log_to_py(py, &e))?)
}

#[doc = docstring!(steps, join_results)]
#[pyfunction]
pub(super) fn join_results(#[pyo3(from_py_with = items)] results: Vec<PyBackedStr>) -> PyResult<String> {
    panics::here();
    let results: PyResult<Vec<_>> = results.iter().map(|result| parse(result)).collect();
    to_json(&steps::join_results(&results?))
}

#[doc = docstring!(steps, reconcile_fetched)]
#[pyfunction]
pub(super) fn reconcile_fetched(
    listing: &str,
    isolation_level: &str,
    #[pyo3(from_py_with = items)] results: Vec<PyBackedStr>,
) -> PyResult<String> {
    panics::here();
    let results: PyResult<Vec<_>> = results.iter().map(|result| parse(result)).collect();
    to_json(&steps::reconcile_fetched(&parse(listing)?, parse_name(isolation_level)?, &results?))
}

#[doc = docstring!(steps, trim_chunk)]
#[pyfunction]
pub(super) fn trim_chunk(py: Python<'_>, chunk: &str) -> PyResult<Option<String>> {
    let chunk: Chunk = parse_located(chunk)?;
    let path = chunk.location.path().to_owned();
    let trimmed = py.detach(|| steps::trim_chunk(chunk)).map_err(|e| io_to_py(&path, &e))?;
    trimmed.map(|chunk| to_json(&chunk)).transpose()
}

#[doc = docstring!(steps, check_chunk)]
#[pyfunction]
pub(super) fn check_chunk(
    py: Python<'_>,
    chunk: &Bound<'_, PyAny>,
    max_decompressed_bytes: usize,
) -> PyResult<(String, String)> {
    let chunk = chunk_of(chunk)?;
    let path = chunk.location.path().to_owned();
    let options = DecodeOptions { batches_table: false, max_decompressed_bytes, ..DecodeOptions::default() };
    let checked = py.detach(|| {
        let mut decoder = ChunkDecoder::open(chunk, options)?;
        let mut problems = Problems::default();
        while decoder.next().transpose()?.is_some() {
            decoder.move_problems(&mut problems);
        }
        decoder.move_problems(&mut problems);
        Ok((decoder.result().clone(), problems))
    });
    let (result, problems) = checked.map_err(|error: io::Error| io_to_py(&path, &error))?;
    Ok((to_json(&result)?, to_json(&problems)?))
}

#[doc = docstring!(steps, digest_chunk)]
#[pyfunction]
#[pyo3(signature = (chunk, width, max_decompressed_bytes, with_control = true))]
pub(super) fn digest_chunk(
    py: Python<'_>,
    chunk: &str,
    width: i64,
    max_decompressed_bytes: usize,
    with_control: bool,
) -> PyResult<(Vec<PyRangeDigest>, String, String)> {
    let chunk: Chunk = parse_located(chunk)?;
    let path = chunk.location.path().to_owned();
    let digested =
        py.detach(|| magicbyte_arrow::digest_chunk(chunk, width, max_decompressed_bytes, with_control));
    let digested = digested.map_err(|error| io_to_py(&path, &error))?;
    Ok((ranges_of(&digested.ranges), to_json(&digested.result)?, to_json(&digested.problems)?))
}

#[doc = docstring!(steps, hash_chunk)]
#[pyfunction]
pub(super) fn hash_chunk(py: Python<'_>, chunk: &str) -> PyResult<u128> {
    let chunk: Chunk = parse_located(chunk)?;
    let hashed = py.detach(|| magicbyte_arrow::hash_chunk(&chunk));
    hashed.map_err(|error| io_to_py(chunk.location.path(), &error))
}

#[doc = docstring!(steps, ChunkDecoder)]
#[pyclass(frozen, name = "ChunkDecoder", module = "magicbyte._core")]
pub(super) struct PyChunkDecoder {
    decoder: Locked<ChunkDecoder>,
    path: PathBuf,
    mode: DamageMode,
}

#[pymethods]
impl PyChunkDecoder {
    #[new]
    #[pyo3(signature = (
        chunk, *, columns, max_batch_bytes = 2 << 20, max_batch_rows = 64 << 10,
        max_decompressed_bytes = DEFAULT_MAX_DECOMPRESSED_BYTES, batches_table = true, check_crcs = true,
        mode = "PERMISSIVE", key_as = "binary", value_as = "binary", start_timestamp = None,
        end_timestamp = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of a Python constructor")]
    fn new(
        py: Python<'_>,
        chunk: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = items)] columns: Vec<String>,
        max_batch_bytes: usize,
        max_batch_rows: usize,
        max_decompressed_bytes: usize,
        batches_table: bool,
        check_crcs: bool,
        mode: &str,
        key_as: &str,
        value_as: &str,
        start_timestamp: Option<i64>,
        end_timestamp: Option<i64>,
    ) -> PyResult<Self> {
        if max_batch_bytes == 0 || max_batch_rows == 0 {
            return Err(PyValueError::new_err("max_batch_bytes and max_batch_rows must be at least 1"));
        }
        let options = DecodeOptions {
            columns: parse_columns(py, &columns)?,
            flavour: Flavour::Spark,
            payloads: Payloads { key: parse_name(key_as)?, value: parse_name(value_as)? },
            start_timestamp,
            end_timestamp,
            max_batch_bytes,
            max_batch_rows,
            max_decompressed_bytes,
            batches_table,
            check_crcs,
        };
        let chunk = chunk_of(chunk)?;
        let path = chunk.location.path().to_owned();
        let decoder = ChunkDecoder::open(chunk, options).map_err(|e| io_to_py(&path, &e))?;
        Ok(Self { decoder: Locked::new(decoder), path, mode: parse_name(mode)? })
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyArrowBatch>> {
        let fail_fast = self.mode == DamageMode::FailFast;
        let (next, error) = self.decoder.with(py, |decoder| {
            let next = decoder.next().transpose();
            (next, fail_fast.then(|| decoder.take_error()).flatten())
        });
        if let Some(error) = error {
            return Err(log_to_py(py, &LogError::Format { path: self.path.clone(), error }));
        }
        let batch = next.map_err(|e| io_to_py(&self.path, &e))?;
        Ok(batch.map(PyArrowBatch::new))
    }

    #[doc = docstring!(steps, ChunkDecoder.take_batches)]
    fn take_batches(&self, py: Python<'_>) -> Option<PyArrowBatch> {
        self.decoder.with(py, ChunkDecoder::take_batches).map(PyArrowBatch::new)
    }

    #[doc = docstring!(steps, ChunkDecoder.take_problems)]
    fn take_problems(&self, py: Python<'_>) -> Option<PyArrowBatch> {
        self.decoder.with(py, ChunkDecoder::take_problems).map(PyArrowBatch::new)
    }

    #[doc = docstring!(steps, ChunkDecoder.checksum)]
    #[getter]
    fn checksum(&self, py: Python<'_>) -> u32 {
        self.decoder.with(py, |decoder| decoder.checksum())
    }

    #[doc = docstring!(steps, ChunkDecoder.result)]
    fn result(&self, py: Python<'_>) -> PyResult<String> {
        self.decoder.with(py, |decoder| to_json(decoder.result()))
    }
}
