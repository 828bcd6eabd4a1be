//! The fields of a batch, below the command `annotate`.

use ::bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use magicbyte::layout::{BatchLayout, Field, Section};
use magicbyte::{DEFAULT_MAX_DECOMPRESSED_BYTES, Decompressor, Result};
use magicbyte_lab::magic3::layout::Layout3;

use crate::docs::docstring;
use crate::errors::to_py;
use crate::locked::Locked;
use crate::view::to_bytes;

/// A field: true if it is in the decompressed payload, position, bytes, name, record, header, number, computed CRC.
type Fields = (bool, usize, Py<PyBytes>, &'static str, Option<u32>, Option<u32>, Option<i64>, Option<u32>);

#[doc = docstring!(layout, BatchLayoutCore)]
#[pyclass(frozen, name = "BatchLayoutCore", module = "magicbyte._core")]
pub(super) struct PyBatchLayout(Locked<Layout>);

/// The experimental format has its own reader, so that no other path takes it.
enum Layout {
    Kafka(BatchLayout),
    Experimental(Layout3),
}

impl Layout {
    fn next(&mut self) -> Option<Result<Field>> {
        match self {
            Self::Kafka(layout) => layout.next(),
            Self::Experimental(layout) => layout.next(),
        }
    }

    fn bytes(&self, section: Section) -> &Bytes {
        match self {
            Self::Kafka(layout) => layout.bytes(section),
            Self::Experimental(layout) => layout.bytes(section),
        }
    }
}

#[pymethods]
impl PyBatchLayout {
    #[new]
    #[pyo3(signature = (batch, *, max_decompressed_bytes = DEFAULT_MAX_DECOMPRESSED_BYTES, experimental_v3 = false))]
    fn new(batch: &Bound<'_, PyAny>, max_decompressed_bytes: usize, experimental_v3: bool) -> PyResult<Self> {
        let decompressor = Decompressor::with_limit(max_decompressed_bytes);
        let batch = to_bytes(batch)?;
        Ok(Self(Locked::new(match experimental_v3 {
            true => Layout::Experimental(Layout3::new(batch, decompressor)),
            false => Layout::Kafka(BatchLayout::new(batch, decompressor)),
        })))
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Fields>> {
        let next = self.0.with(py, |layout| {
            let next = layout.next().transpose()?;
            Ok(next.map(|field| (layout.bytes(field.section).slice(field.range.clone()), field)))
        });
        let Some((data, field)) = next.map_err(|error| to_py(py, &error))? else { return Ok(None) };
        Ok(Some((
            field.section == Section::Decompressed,
            field.range.start,
            PyBytes::new(py, &data).unbind(),
            field.name,
            field.record,
            field.header,
            field.number,
            field.computed_crc,
        )))
    }

    #[doc = docstring!(layout, BatchLayoutCore.decompressed_size)]
    #[getter]
    fn decompressed_size(&self, py: Python<'_>) -> usize {
        self.0.with(py, |layout| layout.bytes(Section::Decompressed).len())
    }
}
