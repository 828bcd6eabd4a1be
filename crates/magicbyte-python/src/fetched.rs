//! Chunks that were fetched from a running cluster, and are in memory.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

use magicbyte_log::LiveChunks;
use magicbyte_log::steps::Chunk;

use crate::errors::log_to_py;
use crate::json::{parse_located, to_json};
use crate::locked::Locked;
use crate::{docs::docstring, panics};

#[doc = docstring!(steps, FetchedChunks)]
#[pyclass(frozen, name = "FetchedChunks", module = "magicbyte._core")]
pub(super) struct PyFetchedChunks {
    offsets: (i64, i64),
    chunks: Locked<Option<LiveChunks>>,
}

impl PyFetchedChunks {
    pub(super) fn new(chunks: LiveChunks) -> Self {
        let offsets = chunks.offsets();
        Self { offsets: (offsets.start, offsets.end), chunks: Locked::new(Some(chunks)) }
    }
}

#[pymethods]
impl PyFetchedChunks {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[doc = docstring!(steps, FetchedChunks.offsets)]
    #[getter]
    fn offsets(&self) -> (i64, i64) {
        self.offsets
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyFetchedChunk>> {
        let next = self.chunks.with(py, |chunks| {
            let next = chunks.as_mut().and_then(Iterator::next).transpose();
            if !matches!(next, Ok(Some(_))) {
                *chunks = None;
            }
            next
        });
        next.map(|chunk| chunk.map(PyFetchedChunk)).map_err(|error| log_to_py(py, &error))
    }
}

#[doc = docstring!(steps, FetchedChunk)]
#[pyclass(frozen, name = "FetchedChunk", module = "magicbyte._core")]
pub(super) struct PyFetchedChunk(Chunk);

#[pymethods]
impl PyFetchedChunk {
    #[doc = docstring!(steps, FetchedChunk.to_json)]
    fn to_json(&self) -> PyResult<String> {
        panics::here();
        to_json(&self.0)
    }
}

/// A chunk of a file, which comes as JSON, or a fetched one.
pub(super) fn chunk_of(chunk: &Bound<'_, PyAny>) -> PyResult<Chunk> {
    if let Ok(fetched) = chunk.cast::<PyFetchedChunk>() {
        return Ok(fetched.get().0.clone());
    }
    match chunk.extract::<PyBackedStr>() {
        Ok(text) => parse_located(&text),
        Err(_) => Err(PyTypeError::new_err("chunk: expected the JSON of a chunk, or a FetchedChunk")),
    }
}
