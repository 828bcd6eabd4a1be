//! Rows of the table `records` as text, and which of them are selected.

use std::collections::HashSet;

use arrow_array::RecordBatch;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use magicbyte_arrow::{LineFormat, LineOptions, LineWriter, RowFilter};
use magicbyte_log::LogResult;

use crate::arrow::batches_of;
use crate::errors::log_to_py;
use crate::view::{optional_items, parse_name};
use crate::{docs::docstring, panics};

#[doc = docstring!(lines, LineWriter)]
#[pyclass(frozen, name = "LineWriter", module = "magicbyte._core")]
pub(super) struct PyLineWriter(LineWriter);

impl PyLineWriter {
    fn text<'py>(
        &self,
        rows: &Bound<'py, PyAny>,
        write: fn(&LineWriter, &RecordBatch, &mut Vec<u8>) -> LogResult<()>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        panics::here();
        let py = rows.py();
        let mut batches = batches_of(rows)?;
        let mut text = Vec::new();
        while let Some(batch) = batches.next_batch()? {
            py.detach(|| write(&self.0, &batch, &mut text)).map_err(|e| log_to_py(py, &e))?;
        }
        Ok(PyBytes::new(py, &text))
    }
}

#[pymethods]
impl PyLineWriter {
    #[new]
    #[pyo3(signature = (
        *, format = "jsonl", template = None, key_format = "utf-8", value_format = "utf-8", visible = false,
        null = ""
    ))]
    fn new(
        py: Python<'_>,
        format: &str,
        template: Option<&str>,
        key_format: &str,
        value_format: &str,
        visible: bool,
        null: &str,
    ) -> PyResult<Self> {
        let format = match (format, template) {
            (_, Some(template)) => LineFormat::Template(parse_name(template)?),
            ("jsonl", None) => LineFormat::Json,
            ("csv", None) => LineFormat::Csv,
            (other, None) => {
                return Err(PyValueError::new_err(format!("format {other:?}: expected jsonl or csv")));
            }
        };
        let (key, value) = (parse_name(key_format)?, parse_name(value_format)?);
        let options = LineOptions { format, key, value, visible, null: null.to_owned() };
        Ok(Self(LineWriter::new(options).map_err(|e| log_to_py(py, &e))?))
    }

    #[doc = docstring!(lines, LineWriter.header)]
    fn header<'py>(&self, rows: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        self.text(rows, LineWriter::write_header)
    }

    #[doc = docstring!(lines, LineWriter.lines)]
    fn lines<'py>(&self, rows: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        self.text(rows, LineWriter::write)
    }
}

#[doc = docstring!(lines, RowFilter)]
#[pyclass(frozen, name = "RowFilter", module = "magicbyte._core")]
pub(super) struct PyRowFilter(RowFilter);

#[pymethods]
impl PyRowFilter {
    #[new]
    #[pyo3(signature = (*, keys = None, pattern = None))]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = optional_items)] keys: Option<Vec<Vec<u8>>>,
        pattern: Option<&str>,
    ) -> PyResult<Self> {
        panics::here();
        let keys = keys.map(HashSet::from_iter);
        Ok(Self(RowFilter::new(keys, pattern).map_err(|e| log_to_py(py, &e))?))
    }

    #[doc = docstring!(lines, RowFilter.mask)]
    fn mask<'py>(&self, py: Python<'py>, rows: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        panics::here();
        let mut batches = batches_of(rows)?;
        let Some(batch) = batches.next_batch()? else { return Ok(PyBytes::new(py, &[])) };
        if batches.next_batch()?.is_some() {
            return Err(PyValueError::new_err("more than one Arrow batch: expected one"));
        }
        let mask = py.detach(|| self.0.mask(&batch)).map_err(|e| log_to_py(py, &e))?;
        Ok(PyBytes::new(py, &mask.values()[..batch.num_rows().div_ceil(8)]))
    }
}
