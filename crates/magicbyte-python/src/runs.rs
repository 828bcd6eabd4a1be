//! Runs of batches in files of any kind, with JSON arguments and results.

use std::path::PathBuf;

use pyo3::prelude::*;

use magicbyte_log::steps::{self, BatchMark};

use crate::docs::docstring;
use crate::errors::log_to_py;
use crate::json::{parse, to_json};
use crate::store::located;

#[doc = docstring!(runs, find_runs)]
#[pyfunction]
pub(super) fn find_runs(py: Python<'_>, path: PathBuf, max_runs: usize, wanted: &str) -> PyResult<String> {
    let wanted: Vec<BatchMark> = parse(wanted)?;
    let runs = py.detach(|| steps::find_runs(&located(&path), max_runs, &wanted));
    to_json(&runs.map_err(|e| log_to_py(py, &e))?)
}
