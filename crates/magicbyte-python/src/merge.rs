//! Merging the copies of a partition. Listings, plans and alignments are JSON.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

use magicbyte::DEFAULT_MAX_DECOMPRESSED_BYTES;
use magicbyte_log::steps::{self, Alignment, MergeOptions, Plan};
use magicbyte_log::{Listing, LogResult};

use crate::errors::log_to_py;
use crate::json::{parse, parse_located, to_json};
use crate::view::items;
use crate::{docs::docstring, panics};

fn located_plans(plans: &[PyBackedStr]) -> PyResult<Vec<Plan>> {
    plans.iter().map(|plan| parse_located(plan)).collect()
}

fn parse_listings(listings: &[PyBackedStr]) -> PyResult<Vec<Listing>> {
    listings.iter().map(|listing| parse(listing)).collect()
}

#[doc = docstring!(merge, align_copies)]
#[pyfunction]
#[pyo3(signature = (
    listings, plans, *, cleaned_until = i64::MIN, max_decompressed_bytes = DEFAULT_MAX_DECOMPRESSED_BYTES
))]
pub(super) fn align_copies(
    py: Python<'_>,
    #[pyo3(from_py_with = items)] listings: Vec<PyBackedStr>,
    #[pyo3(from_py_with = items)] plans: Vec<PyBackedStr>,
    cleaned_until: i64,
    max_decompressed_bytes: usize,
) -> PyResult<String> {
    panics::here();
    let (listings, plans) = (parse_listings(&listings)?, located_plans(&plans)?);
    let aligned = py.detach(|| steps::align(&listings, &plans, cleaned_until, max_decompressed_bytes));
    to_json(&aligned.map_err(|e| log_to_py(py, &e))?)
}

#[doc = docstring!(merge, plan_merge)]
#[pyfunction]
#[pyo3(signature = (alignment, listings, plans, *, leader = None, cleaned_until = i64::MIN))]
pub(super) fn plan_merge(
    py: Python<'_>,
    alignment: &str,
    #[pyo3(from_py_with = items)] listings: Vec<PyBackedStr>,
    #[pyo3(from_py_with = items)] plans: Vec<PyBackedStr>,
    leader: Option<usize>,
    cleaned_until: i64,
) -> PyResult<String> {
    panics::here();
    let alignment: Alignment = parse(alignment)?;
    let (listings, plans) = (parse_listings(&listings)?, located_plans(&plans)?);
    let repaired = (plans.len() == listings.len() + 1).then_some(listings.len());
    let options = MergeOptions { leader, cleaned_until, repaired };
    let planned = py.detach(|| steps::plan_merge(&alignment, &listings, &plans, &options));
    to_json(&planned.map_err(|e| log_to_py(py, &e))?)
}

#[doc = docstring!(merge, repair_holes)]
#[pyfunction]
#[pyo3(signature = (
    alignment, merged, plans, directory, *, max_decompressed_bytes = DEFAULT_MAX_DECOMPRESSED_BYTES
))]
pub(super) fn repair_holes(
    py: Python<'_>,
    alignment: &str,
    merged: &str,
    #[pyo3(from_py_with = items)] plans: Vec<PyBackedStr>,
    directory: PathBuf,
    max_decompressed_bytes: usize,
) -> PyResult<u64> {
    panics::here();
    let (alignment, merged, plans) = (parse(alignment)?, parse(merged)?, located_plans(&plans)?);
    let repaired = py.detach(|| -> LogResult<u64> {
        steps::repair_holes(&alignment, &merged, &plans, &directory, max_decompressed_bytes)
    });
    repaired.map_err(|e| log_to_py(py, &e))
}

#[doc = docstring!(merge, join_alignments)]
#[pyfunction]
pub(super) fn join_alignments(alignment: &str, repairs: &str) -> PyResult<String> {
    panics::here();
    let mut alignment: Alignment = parse(alignment)?;
    alignment.append(parse(repairs)?);
    to_json(&alignment)
}
