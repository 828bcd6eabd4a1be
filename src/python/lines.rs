//! Rows of the table `records` as text.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::columns::lines::writer::{LineOptions, LineWriter};
use crate::python::arrow::batches_of;
use crate::python::errors::log_to_py;
use crate::python::view::parse_name;

/// Writes rows of the table `records` as JSON lines.
#[pyclass(frozen, name = "LineWriter", module = "magicbyte._core")]
pub(super) struct PyLineWriter(LineWriter);

#[pymethods]
impl PyLineWriter {
    #[new]
    #[pyo3(signature = (*, key_format = "utf-8", value_format = "utf-8"))]
    fn new(key_format: &str, value_format: &str) -> PyResult<Self> {
        let options = LineOptions { key: parse_name(key_format)?, value: parse_name(value_format)? };
        Ok(Self(LineWriter::new(options)))
    }

    /// The lines of the rows of an Arrow batch.
    fn lines<'py>(&self, py: Python<'py>, rows: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        crate::python::panics::here();
        let mut batches = batches_of(rows)?;
        let mut text = Vec::new();
        while let Some(batch) = batches.next_batch()? {
            py.detach(|| self.0.write(&batch, &mut text)).map_err(|e| log_to_py(py, &e))?;
        }
        Ok(PyBytes::new(py, &text))
    }
}
