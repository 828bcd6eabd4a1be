//! The fields of a batch, below `magicbyte dump --bytes`.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use magicbyte::layout::{BatchLayout, Section};
use magicbyte::{DEFAULT_MAX_DECOMPRESSED_BYTES, Decompressor};

use crate::docs::docstring;
use crate::errors::to_py;
use crate::locked::Locked;
use crate::results::result_class;
use crate::view::to_bytes;

result_class! {
    layout, "magicbyte._core", BatchField {
        is_decompressed: bool,
        start: usize,
        data: Py<PyBytes>,
        name: String,
        record: Option<u32>,
        header: Option<u32>,
        number: Option<i64>,
        computed_crc: Option<u32>,
    } holds(data)
}

#[doc = docstring!(layout, BatchLayout)]
#[pyclass(frozen, name = "BatchLayout", module = "magicbyte._core")]
pub(super) struct PyBatchLayout(Locked<BatchLayout>);

#[pymethods]
impl PyBatchLayout {
    #[new]
    #[pyo3(signature = (batch, *, max_decompressed_bytes = DEFAULT_MAX_DECOMPRESSED_BYTES))]
    fn new(batch: &Bound<'_, PyAny>, max_decompressed_bytes: usize) -> PyResult<Self> {
        let decompressor = Decompressor::with_limit(max_decompressed_bytes);
        let batch = to_bytes("batch", batch)?;
        Ok(Self(Locked::new(BatchLayout::new(batch, decompressor))))
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<BatchField>> {
        let next = self.0.with(py, |layout| {
            let next = layout.next().transpose()?;
            Ok(next.map(|field| (layout.bytes(field.section).slice(field.range.clone()), field)))
        });
        let Some((data, field)) = next.map_err(|error| to_py(py, &error))? else { return Ok(None) };
        Ok(Some(BatchField {
            is_decompressed: field.section == Section::Decompressed,
            start: field.range.start,
            data: PyBytes::new(py, &data).unbind(),
            name: field.name.to_owned(),
            record: field.record,
            header: field.header,
            number: field.number,
            computed_crc: field.computed_crc,
        }))
    }

    #[doc = docstring!(layout, BatchLayout.decompressed_size)]
    #[getter]
    fn decompressed_size(&self, py: Python<'_>) -> usize {
        self.0.with(py, |layout| layout.bytes(Section::Decompressed).len())
    }
}
