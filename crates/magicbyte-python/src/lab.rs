//! The costs of batches. The values are JSON.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

use magicbyte::{Compression, DEFAULT_MAX_DECOMPRESSED_BYTES, Decompressor};
use magicbyte_lab::chunk_cost::{ChunkCost, CostReport};
use magicbyte_lab::trial;
use magicbyte_lab::trial::Layout;

use crate::docs::docstring;
use crate::errors::{log_to_py, to_py};
use crate::json::{parse, parse_located, to_json};
use crate::view::{items, to_bytes};

#[doc = docstring!(lab, chunk_cost)]
#[pyfunction]
#[pyo3(signature = (chunk, *, max_decompressed_bytes = DEFAULT_MAX_DECOMPRESSED_BYTES))]
pub(super) fn chunk_cost(py: Python<'_>, chunk: &str, max_decompressed_bytes: usize) -> PyResult<String> {
    let chunk = parse_located(chunk)?;
    let cost = py.detach(|| magicbyte_lab::chunk_cost::chunk_cost(chunk, max_decompressed_bytes));
    to_json(&cost.map_err(|e| log_to_py(py, &e))?)
}

#[doc = docstring!(lab, cost_report)]
#[pyfunction]
pub(super) fn cost_report(#[pyo3(from_py_with = items)] chunks: Vec<PyBackedStr>) -> PyResult<String> {
    let chunks: PyResult<Vec<ChunkCost>> = chunks.iter().map(|chunk| parse(chunk)).collect();
    to_json(&CostReport::of(&chunks?))
}

#[doc = docstring!(lab, batches_cost)]
#[pyfunction]
#[pyo3(signature = (batches, *, max_decompressed_bytes = DEFAULT_MAX_DECOMPRESSED_BYTES))]
pub(super) fn batches_cost(
    py: Python<'_>,
    batches: &Bound<'_, PyAny>,
    max_decompressed_bytes: usize,
) -> PyResult<String> {
    let data = to_bytes("batches", batches)?;
    let mut decompressor = Decompressor::with_limit(max_decompressed_bytes);
    let report = py.detach(|| CostReport::of_batches(&data, &mut decompressor));
    to_json(&report.map_err(|e| to_py(py, &e))?)
}

#[doc = docstring!(lab, try_layouts)]
#[pyfunction]
#[pyo3(signature = (
    chunks, position, layouts, *, window_bytes, max_decompressed_bytes = DEFAULT_MAX_DECOMPRESSED_BYTES,
    dictionary = false
))]
pub(super) fn try_layouts(
    py: Python<'_>,
    #[pyo3(from_py_with = items)] chunks: Vec<PyBackedStr>,
    position: u64,
    #[pyo3(from_py_with = items)] layouts: Vec<(u8, Option<i32>, Option<usize>)>,
    window_bytes: usize,
    max_decompressed_bytes: usize,
    dictionary: bool,
) -> PyResult<String> {
    let chunks: PyResult<Vec<_>> = chunks.iter().map(|chunk| parse_located(chunk)).collect();
    let chunks = chunks?;
    let layouts: PyResult<Vec<_>> = layouts
        .iter()
        .map(|&(codec, level, batch_bytes)| {
            let codec = Compression::from_id(codec).map_err(|e| to_py(py, &e))?;
            Ok(Layout { codec, level, batch_bytes })
        })
        .collect();
    let layouts = layouts?;
    let window = py.detach(|| {
        trial::try_layouts(&chunks, position, &layouts, window_bytes, max_decompressed_bytes, dictionary)
    });
    to_json(&window.map_err(|e| log_to_py(py, &e))?)
}
