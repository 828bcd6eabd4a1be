//! The steps of `audit`: headers of batches as columns, and digests of their contents.

use std::path::PathBuf;

use pyo3::prelude::*;

use magicbyte::DEFAULT_MAX_DECOMPRESSED_BYTES;
use magicbyte_arrow::BatchHeaders;
use magicbyte_log::Segment;

use crate::arrow::PyArrowBatch;
use crate::docs::docstring;
use crate::errors::{io_to_py, log_to_py};
use crate::json::{parse_located, to_json};
use crate::locked::Locked;
use crate::view::items;

#[doc = docstring!(audit, BatchHeaders)]
#[pyclass(frozen, name = "BatchHeaders", module = "magicbyte._core")]
pub(super) struct PyBatchHeaders(Locked<BatchHeaders>);

#[pymethods]
impl PyBatchHeaders {
    #[new]
    fn new(py: Python<'_>, segment: &str) -> PyResult<Self> {
        let segment: Segment = parse_located(segment)?;
        let headers = py.detach(|| BatchHeaders::open(&segment));
        Ok(Self(Locked::new(headers.map_err(|e| log_to_py(py, &e))?)))
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyArrowBatch>> {
        let rows = self.0.with(py, Iterator::next).transpose();
        Ok(rows.map_err(|e| log_to_py(py, &e))?.map(PyArrowBatch::new))
    }

    #[doc = docstring!(audit, BatchHeaders.survey)]
    fn survey(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.0.with(py, |headers| headers.survey().map(to_json).transpose())
    }
}

#[doc = docstring!(audit, digest_contents)]
#[pyfunction]
#[pyo3(signature = (segment, positions, *, max_decompressed_bytes = DEFAULT_MAX_DECOMPRESSED_BYTES))]
pub(super) fn digest_contents(
    py: Python<'_>,
    segment: &str,
    #[pyo3(from_py_with = items)] positions: Vec<u64>,
    max_decompressed_bytes: usize,
) -> PyResult<Vec<Option<u128>>> {
    let segment: Segment = parse_located(segment)?;
    let path: PathBuf = segment.location.path().to_owned();
    let digests =
        py.detach(|| magicbyte_arrow::digest_contents(&segment, &positions, max_decompressed_bytes));
    digests.map_err(|error| io_to_py(&path, &error))
}
