//! Compaction and redaction, one function per step; all values between them are JSON.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use serde::Serialize;

use magicbyte::DEFAULT_MAX_DECOMPRESSED_BYTES;
use magicbyte_log::steps::{
    CleanCounts, CleanOptions, Cleaned, CleanerChunk, IndexedChunk, KeySet, ProducerSummary, RedactedOffsets,
    Rule, SegmentGroup, Selection,
};
use magicbyte_log::{CompactOptions, DEFAULT_INDEX_INTERVAL_BYTES, KeyMapOptions, WriteOptions, steps};

use crate::errors::log_to_py;
use crate::json::{parse, parse_located, to_json};
use crate::view::{items, parse_name};
use crate::writer::{TaskResult, Work};
use crate::{docs::docstring, panics, view};

#[doc = docstring!(cleaner, plan_compaction)]
#[pyfunction]
#[pyo3(signature = (
    plan, listing, *, now, delete_retention_ms = CompactOptions::default().delete_retention_ms,
    min_compaction_lag_ms = 0, until_offset = None, all = false, first_dirty_offset = None,
    segment_bytes = CompactOptions::default().segment_bytes,
    segment_index_bytes = CompactOptions::default().segment_index_bytes
))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments of a Python function")]
pub(super) fn plan_compaction(
    py: Python<'_>,
    plan: &str,
    listing: &str,
    now: i64,
    delete_retention_ms: i64,
    min_compaction_lag_ms: i64,
    until_offset: Option<i64>,
    all: bool,
    first_dirty_offset: Option<i64>,
    segment_bytes: u64,
    segment_index_bytes: u64,
) -> PyResult<String> {
    let options = CompactOptions {
        now,
        delete_retention_ms,
        min_compaction_lag_ms,
        until_offset,
        all,
        first_dirty_offset,
        segment_bytes,
        segment_index_bytes,
    };
    let compaction = steps::plan_compaction(&parse(plan)?, &parse(listing)?, &options);
    to_json(&compaction.map_err(|e| log_to_py(py, &e))?)
}

#[doc = docstring!(cleaner, plan_redaction)]
#[pyfunction]
pub(super) fn plan_redaction(py: Python<'_>, plan: &str) -> PyResult<String> {
    to_json(&steps::plan_redaction(&parse(plan)?).map_err(|e| log_to_py(py, &e))?)
}

#[doc = docstring!(cleaner, index_keys)]
#[pyfunction]
#[pyo3(signature = (
    chunks, directory = None, *, seed = 0, memory_bytes = 64 << 20, parts = 16,
    max_decompressed_bytes = DEFAULT_MAX_DECOMPRESSED_BYTES, record_size_limit = None, mode = "PERMISSIVE"
))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments of a Python function")]
pub(super) fn index_keys(
    py: Python<'_>,
    #[pyo3(from_py_with = items)] chunks: Vec<String>,
    directory: Option<PathBuf>,
    seed: u64,
    memory_bytes: usize,
    parts: usize,
    max_decompressed_bytes: usize,
    record_size_limit: Option<usize>,
    mode: &str,
) -> PyResult<String> {
    let chunks: PyResult<Vec<CleanerChunk>> = chunks.iter().map(|chunk| parse_located(chunk)).collect();
    let chunks = chunks?;
    let options = KeyMapOptions { seed, memory_bytes, parts };
    let keys = directory.as_deref().map(|directory| (directory, options));
    let mode = parse_name(mode)?;
    let indexed =
        py.detach(|| steps::index_keys(&chunks, keys, max_decompressed_bytes, record_size_limit, mode));
    let indexed = indexed.map_err(|e| log_to_py(py, &e))?;
    to_json(&IndexedText {
        chunks: indexed.chunks,
        producers: to_json(&indexed.producers)?,
        files: indexed.files,
    })
}

/// Values that are only passed on are text, as in [`Work`].
#[derive(Serialize)]
struct IndexedText {
    chunks: Vec<IndexedChunk>,
    producers: String,
    files: Vec<Option<PathBuf>>,
}

#[doc = docstring!(cleaner, reduce_keys)]
#[pyfunction]
#[pyo3(signature = (files, directory, *, seed, memory_bytes = 64 << 20))]
pub(super) fn reduce_keys(
    py: Python<'_>,
    #[pyo3(from_py_with = items)] files: Vec<PathBuf>,
    directory: PathBuf,
    seed: u64,
    memory_bytes: usize,
) -> PyResult<Vec<PathBuf>> {
    let options = KeyMapOptions { seed, memory_bytes, parts: 16 };
    py.detach(|| steps::reduce_keys(&files, &directory, options)).map_err(|e| log_to_py(py, &e))
}

#[doc = docstring!(cleaner, producer_summary)]
#[pyfunction]
#[pyo3(signature = (producers, groups, *, expired_until = None))]
pub(super) fn producer_summary(
    #[pyo3(from_py_with = items)] producers: Vec<PyBackedStr>,
    #[pyo3(from_py_with = items)] groups: Vec<(i64, i64)>,
    expired_until: Option<i64>,
) -> PyResult<Vec<String>> {
    let producers: PyResult<Vec<_>> = producers.iter().map(|events| parse(events)).collect();
    let summary = ProducerSummary::of(&producers?, expired_until);
    groups.iter().map(|&(first, last)| to_json(&summary.between(first, last))).collect()
}

#[doc = docstring!(cleaner, compact_group)]
#[pyfunction]
#[pyo3(signature = (
    group, indexed, summary, directory, *, lists, clean_until, now, delete_retention_ms,
    max_decompressed_bytes = DEFAULT_MAX_DECOMPRESSED_BYTES,
    index_interval_bytes = DEFAULT_INDEX_INTERVAL_BYTES, mode = "PERMISSIVE"
))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments of a Python function")]
pub(super) fn compact_group(
    py: Python<'_>,
    group: &str,
    #[pyo3(from_py_with = items)] indexed: Vec<String>,
    summary: &str,
    directory: PathBuf,
    #[pyo3(from_py_with = items)] lists: Vec<PathBuf>,
    clean_until: i64,
    now: i64,
    delete_retention_ms: i64,
    max_decompressed_bytes: usize,
    index_interval_bytes: u32,
    mode: &str,
) -> PyResult<String> {
    let options = CleanOptions {
        rule: Rule::Compact { now, delete_retention_ms, lists },
        clean_until,
        max_decompressed_bytes,
        mode: parse_name(mode)?,
        write: WriteOptions { index_interval_bytes, ..WriteOptions::default() },
    };
    clean_group(py, group, &indexed, summary, directory, &options)
}

#[doc = docstring!(cleaner, redact_group)]
#[pyfunction]
#[pyo3(signature = (
    group, indexed, summary, directory, *, keys, tombstones, clean_until,
    max_decompressed_bytes = DEFAULT_MAX_DECOMPRESSED_BYTES,
    index_interval_bytes = DEFAULT_INDEX_INTERVAL_BYTES, mode = "PERMISSIVE"
))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments of a Python function")]
pub(super) fn redact_group(
    py: Python<'_>,
    group: &str,
    #[pyo3(from_py_with = items)] indexed: Vec<String>,
    summary: &str,
    directory: PathBuf,
    keys: &PyKeySet,
    tombstones: bool,
    clean_until: i64,
    max_decompressed_bytes: usize,
    index_interval_bytes: u32,
    mode: &str,
) -> PyResult<String> {
    let options = CleanOptions {
        rule: Rule::Redact(Selection { keys: Arc::clone(&keys.0), tombstones }),
        clean_until,
        max_decompressed_bytes,
        mode: parse_name(mode)?,
        write: WriteOptions { index_interval_bytes, ..WriteOptions::default() },
    };
    clean_group(py, group, &indexed, summary, directory, &options)
}

#[doc = docstring!(cleaner, KeySet)]
#[pyclass(frozen, name = "KeySet", module = "magicbyte._core")]
pub(super) struct PyKeySet(Arc<KeySet>);

#[pymethods]
impl PyKeySet {
    #[new]
    fn new(py: Python<'_>, #[pyo3(from_py_with = items)] keys: Vec<Bound<'_, PyAny>>) -> PyResult<Self> {
        panics::here();
        let keys = keys.iter().map(|key| Ok(view::content("key", key)?.into_owned()));
        let keys = keys.collect::<PyResult<_>>()?;
        Ok(Self(Arc::new(py.detach(|| KeySet::new(keys)))))
    }

    #[doc = docstring!(cleaner, KeySet.find)]
    fn find(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        panics::here();
        let data = view::to_bytes("data", data)?;
        Ok(py.detach(|| self.0.find(&data)).map(|found| found.start))
    }
}

#[doc = docstring!(cleaner, check_segment)]
#[pyfunction]
#[pyo3(signature = (path, keys, *, tombstones, max_decompressed_bytes = DEFAULT_MAX_DECOMPRESSED_BYTES))]
pub(super) fn check_segment(
    py: Python<'_>,
    path: PathBuf,
    keys: &PyKeySet,
    tombstones: bool,
    max_decompressed_bytes: usize,
) -> PyResult<String> {
    panics::here();
    let checked = py.detach(|| steps::check_segment(&path, &keys.0, tombstones, max_decompressed_bytes));
    to_json(&checked.map_err(|e| log_to_py(py, &e))?)
}

fn clean_group(
    py: Python<'_>,
    group: &str,
    indexed: &[String],
    summary: &str,
    directory: PathBuf,
    options: &CleanOptions,
) -> PyResult<String> {
    let group: SegmentGroup = parse_located(group)?;
    let indexed: PyResult<Vec<IndexedChunk>> = indexed.iter().map(|chunk| parse(chunk)).collect();
    let (indexed, summary) = (indexed?, parse(summary)?);
    let cleaned = py.detach(|| steps::clean_group(&group, &indexed, &summary, &directory, options));
    let cleaned = cleaned.map_err(|e| log_to_py(py, &e))?;
    let Cleaned { results, problems, segments, counts, redacted, matched, .. } = cleaned;
    let details = CleanedDetails { counts, redacted, matched };
    to_json(&TaskResult { work: Work::of(&results, problems, &segments)?, details })
}

#[derive(Serialize)]
struct CleanedDetails {
    counts: CleanCounts,
    redacted: Vec<RedactedOffsets>,
    matched: Vec<u64>,
}
