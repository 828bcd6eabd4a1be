//! Writes partitions and rebuilds sidecars. Summaries and reports are JSON.

use std::path::{Path, PathBuf};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use serde::Serialize;

use magicbyte::convert::Losses;
use magicbyte::{Compression, DEFAULT_MAX_DECOMPRESSED_BYTES};
use magicbyte_arrow::{RowsOptions, RowsWriter};
use magicbyte_log::steps::{RewriteOptions, Rewritten};
use magicbyte_log::{
    ChunkResult, DEFAULT_INDEX_INTERVAL_BYTES, LogResult, PartitionWriter, Problems, RebuildOptions,
    SegmentSummary, WriteOptions, steps,
};

use crate::arguments::Codec;
use crate::errors::log_to_py;
use crate::json::{parse, parse_located, to_json};
use crate::locked::Locked;
use crate::state::ProducerStateEntry;
use crate::store::located;
use crate::view::items;
use crate::{arrow, docs::docstring, panics, view};

/// The result of a task that writes segments. Accounts and summaries are nested JSON texts, since the driver
/// only passes them on: as Python objects they could be larger than the log.
#[derive(Serialize)]
pub(super) struct Work {
    results: Vec<String>,
    #[serde(flatten)]
    problems: Problems,
    segments: Vec<String>,
    batches: u64,
    size: u64,
}

impl Work {
    pub(super) fn of(
        results: &[ChunkResult],
        problems: Problems,
        segments: &[SegmentSummary],
    ) -> PyResult<Self> {
        Ok(Self {
            results: results.iter().map(to_json).collect::<PyResult<_>>()?,
            problems,
            segments: segments.iter().map(to_json).collect::<PyResult<_>>()?,
            batches: segments.iter().map(|one| one.batches).sum(),
            size: segments.iter().map(|one| one.size).sum(),
        })
    }
}

/// The result of a task, with details specific to the job.
#[derive(Serialize)]
pub(super) struct TaskResult<T> {
    #[serde(flatten)]
    pub(super) work: Work,
    #[serde(flatten)]
    pub(super) details: T,
}

#[derive(Serialize)]
struct RewrittenDetails {
    records: u64,
    losses: Losses,
}

#[doc = docstring!(writer, begin_partition)]
#[pyfunction]
pub(super) fn begin_partition(py: Python<'_>, target: PathBuf) -> PyResult<PathBuf> {
    panics::here();
    py.detach(|| magicbyte_log::begin_partition(&target)).map_err(|e| log_to_py(py, &e))
}

#[doc = docstring!(writer, finish_partition)]
#[pyfunction]
#[pyo3(signature = (target, summaries, *, topic_id = None, epochs_of = None))]
pub(super) fn finish_partition(
    py: Python<'_>,
    target: PathBuf,
    #[pyo3(from_py_with = items)] summaries: Vec<PyBackedStr>,
    topic_id: Option<&str>,
    epochs_of: Option<PathBuf>,
) -> PyResult<()> {
    let summaries: PyResult<Vec<SegmentSummary>> = summaries.iter().map(|text| parse(text)).collect();
    let summaries = summaries?;
    let epochs_of = epochs_of.as_deref().map(located);
    py.detach(|| magicbyte_log::finish_partition(&target, &summaries, topic_id, epochs_of.as_ref()))
        .map_err(|e| log_to_py(py, &e))
}

#[doc = docstring!(writer, forget_producers)]
#[pyfunction]
pub(super) fn forget_producers(py: Python<'_>, directory: PathBuf) -> PyResult<Vec<ProducerStateEntry>> {
    panics::here();
    let open = py.detach(|| magicbyte_log::forget_producers(&directory));
    ProducerStateEntry::all(py, &open.map_err(|e| log_to_py(py, &e))?)
}

#[doc = docstring!(writer, rebuild_sidecars)]
#[pyfunction]
#[pyo3(signature = (
    directory, *, index_interval_bytes = DEFAULT_INDEX_INTERVAL_BYTES, expired_until = None, dry_run = false
))]
pub(super) fn rebuild_sidecars(
    py: Python<'_>,
    directory: PathBuf,
    index_interval_bytes: u32,
    expired_until: Option<i64>,
    dry_run: bool,
) -> PyResult<String> {
    let options = RebuildOptions { index_interval_bytes, expired_until };
    let report = py.detach(|| magicbyte_log::rebuild_sidecars(&directory, options, dry_run));
    to_json(&report.map_err(|e| log_to_py(py, &e))?)
}

#[doc = docstring!(writer, PartitionWriter)]
#[pyclass(frozen, name = "PartitionWriter", module = "magicbyte._core")]
pub(super) struct PyPartitionWriter(Locked<Option<PartitionWriter>>);

impl PyPartitionWriter {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut PartitionWriter) -> LogResult<T> + Send,
    ) -> PyResult<T> {
        match self.0.with(py, |writer| writer.as_mut().map(work)) {
            Some(done) => done.map_err(|e| log_to_py(py, &e)),
            None => Err(finished()),
        }
    }
}

fn finished() -> PyErr {
    PyValueError::new_err("the writer is finished")
}

#[pymethods]
impl PyPartitionWriter {
    #[new]
    #[pyo3(signature = (
        directory, base_offset = 0, *, segment_bytes = WriteOptions::default().segment_bytes,
        segment_ms = None, index_interval_bytes = DEFAULT_INDEX_INTERVAL_BYTES,
        segment_index_bytes = WriteOptions::default().segment_index_bytes
    ))]
    fn new(
        py: Python<'_>,
        directory: PathBuf,
        base_offset: i64,
        segment_bytes: u32,
        segment_ms: Option<i64>,
        index_interval_bytes: u32,
        segment_index_bytes: u32,
    ) -> PyResult<Self> {
        panics::here();
        let options = WriteOptions { segment_bytes, segment_ms, index_interval_bytes, segment_index_bytes };
        let writer = py.detach(|| PartitionWriter::create(Path::new(&directory), base_offset, options));
        Ok(Self(Locked::new(Some(writer.map_err(|e| log_to_py(py, &e))?))))
    }

    #[doc = docstring!(writer, PartitionWriter.next_offset)]
    #[getter]
    fn next_offset(&self, py: Python<'_>) -> PyResult<i64> {
        self.with(py, |writer| Ok(writer.next_offset()))
    }

    #[doc = docstring!(writer, PartitionWriter.append)]
    fn append(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<u64> {
        let data = view::to_bytes("data", data)?;
        self.with(py, |writer| writer.append_all(&data))
    }

    #[doc = docstring!(writer, PartitionWriter.finish)]
    fn finish(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let writer = self.0.with(py, Option::take).ok_or_else(finished)?;
        let summaries = py.detach(|| writer.finish()).map_err(|e| log_to_py(py, &e))?;
        summaries.iter().map(to_json).collect()
    }
}

#[doc = docstring!(writer, set_aside)]
#[pyfunction]
pub(super) fn set_aside(chunk: &str, reason: &str) -> PyResult<String> {
    to_json(&ChunkResult::set_aside(&parse(chunk)?, reason))
}

#[doc = docstring!(writer, rewrite_chunks)]
#[pyfunction]
#[pyo3(signature = (
    chunks, directory, base_offset, *, magic = None, compression = None, level = None, rebatch = None,
    leader_epoch = None, max_decompressed_bytes = DEFAULT_MAX_DECOMPRESSED_BYTES,
    segment_bytes = WriteOptions::default().segment_bytes, segment_ms = None,
    index_interval_bytes = DEFAULT_INDEX_INTERVAL_BYTES
))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments of a Python function")]
pub(super) fn rewrite_chunks(
    py: Python<'_>,
    #[pyo3(from_py_with = items)] chunks: Vec<String>,
    directory: PathBuf,
    base_offset: i64,
    magic: Option<i8>,
    compression: Option<Codec>,
    level: Option<i32>,
    rebatch: Option<usize>,
    leader_epoch: Option<i32>,
    max_decompressed_bytes: usize,
    segment_bytes: u32,
    segment_ms: Option<i64>,
    index_interval_bytes: u32,
) -> PyResult<String> {
    let chunks: PyResult<Vec<_>> = chunks.iter().map(|chunk| parse_located(chunk)).collect();
    let chunks = chunks?;
    let write = WriteOptions { segment_bytes, segment_ms, index_interval_bytes, ..WriteOptions::default() };
    let options = RewriteOptions {
        magic,
        compression: compression.map(|codec| (codec.0, level)),
        rebatch,
        leader_epoch,
        max_decompressed_bytes,
        write,
    };
    let rewritten = py.detach(|| steps::rewrite_chunks(&chunks, &directory, base_offset, &options));
    let Rewritten { results, problems, segments, records, losses, .. } =
        rewritten.map_err(|e| log_to_py(py, &e))?;
    to_json(&TaskResult {
        work: Work::of(&results, problems, &segments)?,
        details: RewrittenDetails { records, losses },
    })
}

#[doc = docstring!(writer, RowsWriter)]
#[pyclass(frozen, name = "RowsWriter", module = "magicbyte._core")]
pub(super) struct PyRowsWriter(Locked<Option<RowsWriter>>);

#[pymethods]
impl PyRowsWriter {
    #[new]
    #[pyo3(signature = (
        directory, *, compression = Codec(Compression::None), level = None, batch_bytes = 256 << 10, timestamp = -1,
        segment_bytes = WriteOptions::default().segment_bytes
    ))]
    fn new(
        py: Python<'_>,
        directory: PathBuf,
        compression: Codec,
        level: Option<i32>,
        batch_bytes: usize,
        timestamp: i64,
        segment_bytes: u32,
    ) -> PyResult<Self> {
        panics::here();
        let write = WriteOptions { segment_bytes, ..WriteOptions::default() };
        let options = RowsOptions { compression: (compression.0, level), batch_bytes, timestamp, write };
        let writer = RowsWriter::new(&directory, options).map_err(|e| log_to_py(py, &e))?;
        Ok(Self(Locked::new(Some(writer))))
    }

    #[doc = docstring!(writer, RowsWriter.append)]
    fn append(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut batches = arrow::batches_of(data)?;
        while let Some(batch) = batches.next_batch()? {
            let appended = self.0.with(py, |writer| writer.as_mut().map(|writer| writer.append(&batch)));
            appended.ok_or_else(finished)?.map_err(|e| log_to_py(py, &e))?;
        }
        Ok(())
    }

    #[doc = docstring!(writer, RowsWriter.finish)]
    fn finish(&self, py: Python<'_>) -> PyResult<(Vec<String>, u64, Option<i64>, i64)> {
        let writer = self.0.with(py, Option::take).ok_or_else(finished)?;
        let (rows, first, next) = (writer.rows(), writer.first_offset(), writer.next_offset());
        let summaries = py.detach(|| writer.finish()).map_err(|e| log_to_py(py, &e))?;
        let summaries: PyResult<_> = summaries.iter().map(to_json).collect();
        Ok((summaries?, rows, first, next))
    }
}
