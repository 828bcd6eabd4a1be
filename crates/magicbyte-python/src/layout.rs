//! The fields of a batch, below `magicbyte dump --bytes`.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use magicbyte::layout::{BatchLayout, Field, Meanings, Section};
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
        label: String,
        meaning: String,
        record: Option<u32>,
        header: Option<u32>,
        number: Option<i64>,
        computed_crc: Option<u32>,
    } holds(data)
}

#[doc = docstring!(layout, BatchLayout)]
#[pyclass(frozen, name = "BatchLayout", module = "magicbyte._core")]
pub(super) struct PyBatchLayout(Locked<Explained>);

/// A layout, and the meanings of the fields up to where it is.
struct Explained {
    layout: BatchLayout,
    meanings: Meanings,
}

#[pymethods]
impl PyBatchLayout {
    #[new]
    #[pyo3(signature = (batch, *, max_decompressed_bytes = DEFAULT_MAX_DECOMPRESSED_BYTES))]
    fn new(batch: &Bound<'_, PyAny>, max_decompressed_bytes: usize) -> PyResult<Self> {
        let decompressor = Decompressor::with_limit(max_decompressed_bytes);
        let batch = to_bytes("batch", batch)?;
        let layout = BatchLayout::new(batch, decompressor);
        Ok(Self(Locked::new(Explained { layout, meanings: Meanings::default() })))
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<BatchField>> {
        let next = self.0.with(py, |Explained { layout, meanings }| {
            let next = layout.next().transpose()?;
            Ok(next.map(|field| {
                let data = layout.bytes(field.section).slice(field.range.clone());
                let words = (meanings.label(&field), meanings.meaning(&field, &data));
                (field, data, words)
            }))
        });
        let Some((field, data, (label, meaning))) = next.map_err(|error| to_py(py, &error))? else {
            return Ok(None);
        };
        let Field { section, range, name, record, header, number, computed_crc, .. } = field;
        Ok(Some(BatchField {
            is_decompressed: section == Section::Decompressed,
            start: range.start,
            data: PyBytes::new(py, &data).unbind(),
            name: name.to_owned(),
            label,
            meaning,
            record,
            header,
            number,
            computed_crc,
        }))
    }

    #[doc = docstring!(layout, BatchLayout.payload)]
    #[getter]
    fn payload(&self, py: Python<'_>) -> String {
        self.0.with(py, |explained| explained.meanings.payload())
    }

    #[doc = docstring!(layout, BatchLayout.decompressed_size)]
    #[getter]
    fn decompressed_size(&self, py: Python<'_>) -> usize {
        self.0.with(py, |explained| explained.layout.bytes(Section::Decompressed).len())
    }
}
