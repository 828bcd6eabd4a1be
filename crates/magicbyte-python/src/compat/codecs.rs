//! Helpers of the clients' codec functions, besides `magicbyte._core.decompress`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use magicbyte::{Compression, Compressor, Result};

use crate::arguments::Codec;
use crate::compat::memory_records::buffer;
use crate::docs::docstring;
use crate::errors::to_py;

/// The largest chunk of snappy: those of snappy-java, which Kafka reads them with, have at most 512 MiB.
const MAX_CHUNK: i64 = 512 << 20;

#[doc = docstring!(compat_functions, compress)]
#[pyfunction]
#[pyo3(signature = (compression, magic, payload, level = None))]
fn compress<'py>(
    compression: Codec,
    magic: i8,
    payload: &Bound<'py, PyAny>,
    level: Option<i32>,
) -> PyResult<Bound<'py, PyBytes>> {
    compressed(payload, Compressor::with_level(compression.0, level), |compressor, data| {
        compressor.compress(magic, data)
    })
}

#[doc = docstring!(compat_functions, compress_snappy)]
#[pyfunction]
#[pyo3(signature = (payload, chunk_size = None))]
fn compress_snappy<'py>(
    payload: &Bound<'py, PyAny>,
    chunk_size: Option<i64>,
) -> PyResult<Bound<'py, PyBytes>> {
    if let Some(size) = chunk_size.filter(|size| !(1..=MAX_CHUNK).contains(size)) {
        let message = format!("a snappy chunk has 1 to {MAX_CHUNK} bytes, not {size}");
        return Err(PyValueError::new_err(message));
    }
    compressed(payload, Compressor::new(Compression::Snappy), |compressor, data| {
        compressor.compress_snappy(data, chunk_size.map(|size| size as usize))
    })
}

fn compressed<'py>(
    payload: &Bound<'py, PyAny>,
    compressor: Result<Compressor>,
    work: impl for<'a> FnOnce(&'a mut Compressor, &'a [u8]) -> Result<&'a [u8]> + Send,
) -> PyResult<Bound<'py, PyBytes>> {
    let py = payload.py();
    let data = buffer("payload", payload)?;
    let mut compressor = compressor.map_err(|error| to_py(py, &error))?;
    let written = py.detach(|| work(&mut compressor, &data));
    Ok(PyBytes::new(py, written.map_err(|error| to_py(py, &error))?))
}

pub(super) fn add_functions(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(compress, module)?)?;
    module.add_function(wrap_pyfunction!(compress_snappy, module)?)
}
