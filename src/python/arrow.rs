//! Arrow across the C data interface: PyCapsules that pyarrow, polars, duckdb and pandas read and give.
#![allow(unsafe_code, reason = "the C data interface hands over pointers")]

use std::ffi::CStr;

use ::arrow_schema::{ArrowError, Schema, SchemaRef};
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{Array, RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use super::errors::log_to_py;
use crate::columns::{
    Flavour, RecordColumn, Table, batches_schema, columns_of, problems_schema, records_schema,
};
use crate::log::LogError;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

pub(super) fn failed(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

pub(super) fn schema_capsule<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let ffi = FFI_ArrowSchema::try_from(schema).map_err(failed)?;
    PyCapsule::new_with_value(py, ffi, SCHEMA)
}

/// Schema and array; a batch travels as a struct array, as the interface has it.
pub(super) fn array_capsules<'py>(py: Python<'py>, batch: &RecordBatch) -> PyResult<Bound<'py, PyTuple>> {
    let schema = schema_capsule(py, &batch.schema())?;
    let columns = StructArray::from(batch.clone());
    let array = PyCapsule::new_with_value(py, FFI_ArrowArray::new(&columns.to_data()), ARRAY)?;
    PyTuple::new(py, [schema, array])
}

/// The columns and the flavour that a consumer wishes for by a schema; none if it does not, or if there are
/// none of these names and types: by the interface a producer then gives what it has.
pub(super) fn requested(schema: Option<&Bound<'_, PyAny>>) -> Option<(Vec<RecordColumn>, Flavour)> {
    let capsule = schema?.cast::<PyCapsule>().ok()?;
    let schema = capsule.pointer_checked(Some(SCHEMA)).ok()?.cast::<FFI_ArrowSchema>();
    // SAFETY: the capsule's name says what it points to; the capsule owns that and outlives this borrow.
    let schema = unsafe { schema.as_ref() };
    columns_of(&Schema::try_from(schema).ok()?)
}

pub(super) fn stream_capsule<'py>(
    py: Python<'py>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), STREAM)
}

/// The batches of an object that gives Arrow: a record batch, a table, a frame, a reader.
pub(super) fn batches_of(object: &Bound<'_, PyAny>) -> PyResult<Box<dyn RecordBatchReader>> {
    if let Some(array) = object.getattr_opt("__arrow_c_array__")? {
        let capsules = array.call0()?;
        let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = capsules.extract()?;
        let schema = schema.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
        let array = array.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
        // SAFETY: the capsules' names say what they point to, by the PyCapsule interface of Arrow; `from_raw`
        // takes the structs over and marks those in the capsules as released. That array and schema
        // belong together and describe valid memory is the interface's contract with their producer.
        let data = unsafe {
            let schema = FFI_ArrowSchema::from_raw(schema.as_ptr());
            arrow_array::ffi::from_ffi(FFI_ArrowArray::from_raw(array.as_ptr()), &schema)
        };
        let data = data.map_err(failed)?;
        if !matches!(data.data_type(), ::arrow_schema::DataType::Struct(_)) {
            return Err(PyTypeError::new_err("expected an Arrow record batch, not a single column"));
        }
        let batch = RecordBatch::from(StructArray::from(data));
        let schema = batch.schema();
        return Ok(Box::new(RecordBatchIterator::new([Ok(batch)], schema)));
    }
    if let Some(stream) = object.getattr_opt("__arrow_c_stream__")? {
        let capsule = stream.call0()?.cast_into::<PyCapsule>()?;
        let stream = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
        // SAFETY: as above, for a stream.
        let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
        return Ok(Box::new(ArrowArrayStreamReader::try_new(stream).map_err(failed)?));
    }
    Err(PyTypeError::new_err("expected Arrow data: an object with __arrow_c_array__ or __arrow_c_stream__"))
}

/// One Arrow record batch.
#[pyclass(frozen, name = "ArrowBatch", module = "magicbyte._core")]
pub(super) struct PyArrowBatch(RecordBatch);

impl PyArrowBatch {
    pub(super) fn new(batch: RecordBatch) -> Self {
        Self(batch)
    }
}

#[pymethods]
impl PyArrowBatch {
    /// How many rows it has.
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.0.schema())
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        // The interface lets a producer ignore the request.
        let _ = requested_schema;
        array_capsules(py, &self.0)
    }
}

/// An Arrow schema.
#[pyclass(frozen, name = "ArrowSchema", module = "magicbyte._core")]
pub(super) struct PyArrowSchema(SchemaRef);

#[pymethods]
impl PyArrowSchema {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.0)
    }
}

pub(super) fn parse_columns(py: Python<'_>, columns: &[String]) -> PyResult<Vec<RecordColumn>> {
    columns.iter().map(|name| name.parse().map_err(|e: LogError| log_to_py(py, &e))).collect()
}

/// The schema of a table of the Spark flavour; `columns` only for `records`.
#[pyfunction]
#[pyo3(signature = (table, columns = None))]
pub(super) fn arrow_schema(
    py: Python<'_>,
    table: &str,
    columns: Option<Vec<String>>,
) -> PyResult<PyArrowSchema> {
    Ok(PyArrowSchema(match table.parse().map_err(|e: LogError| log_to_py(py, &e))? {
        Table::Records => {
            let columns = parse_columns(py, &columns.unwrap_or_default())?;
            records_schema(&columns, Flavour::Spark)
        }
        Table::Batches => batches_schema(),
        Table::Problems => problems_schema(),
    }))
}
