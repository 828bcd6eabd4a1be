//! The declarations of a Protobuf schema.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

use magicbyte_schema::protobuf;

use crate::{docs::docstring, panics};

#[doc = docstring!(protobuf_structure, protobuf_structure)]
#[pyfunction]
#[pyo3(signature = (schema, references = None))]
pub(super) fn protobuf_structure(
    py: Python<'_>,
    schema: &str,
    references: Option<Vec<(PyBackedStr, PyBackedStr)>>,
) -> PyResult<String> {
    panics::here();
    let references = references.unwrap_or_default();
    let references: Vec<(&str, &str)> = references.iter().map(|(name, text)| (&**name, &**text)).collect();
    py.detach(|| protobuf::structure(schema, &references))
        .map_err(|error| PyValueError::new_err(error.to_string()))
}
