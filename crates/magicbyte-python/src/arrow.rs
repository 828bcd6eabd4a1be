//! Arrow's C data interface: PyCapsules that pyarrow, polars, duckdb and pandas read and produce.
#![allow(unsafe_code, reason = "the C data interface hands over pointers")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Mutex, OnceLock};

use ::arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, RecordBatch, RecordBatchReader, StructArray};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use magicbyte_arrow::{
    Flavour, Payloads, RecordColumn, Table, batches_schema, columns_of, problems_schema, records_schema,
};
use magicbyte_log::LogError;

use crate::errors::{log_to_py, to_py};
use crate::range_digests::{PyRangeDigest, ranges_of};
use crate::view::{optional_items, parse_name};
use crate::{docs::docstring, panics};

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

pub(super) fn failed(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

pub(super) fn schema_capsule<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    panics::here();
    let ffi = FFI_ArrowSchema::try_from(schema).map_err(failed)?;
    PyCapsule::new_with_value(py, ffi, SCHEMA)
}

/// The capsules of schema and array; the interface passes a batch as a struct array.
pub(super) fn array_capsules<'py>(py: Python<'py>, batch: &RecordBatch) -> PyResult<Bound<'py, PyTuple>> {
    let schema = schema_capsule(py, &batch.schema())?;
    let columns = StructArray::from(batch.clone());
    let array = PyCapsule::new_with_value(py, FFI_ArrowArray::new(&columns.to_data()), ARRAY)?;
    PyTuple::new(py, [schema, array])
}

/// The columns and flavour that a consumer requests by a schema. None if it does not, or if names or types
/// are unknown: by the interface, a producer then uses its default.
pub(super) fn requested(schema: Option<&Bound<'_, PyAny>>) -> PyResult<Option<(Vec<RecordColumn>, Flavour)>> {
    let Some(capsule) = schema.and_then(|schema| schema.cast::<PyCapsule>().ok()) else { return Ok(None) };
    let schema = capsule.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
    // SAFETY: the capsule's name determines what it points to; the capsule owns that and outlives this
    // borrow.
    let schema = unsafe { schema.as_ref() };
    if schema.release().is_none() {
        return Err(already_consumed("schema"));
    }
    Ok(Schema::try_from(schema).ok().and_then(|schema| columns_of(&schema)))
}

/// A consumer moves the struct out of a capsule and marks it as released: its pointers may be dangling.
fn already_consumed(what: &str) -> PyErr {
    PyValueError::new_err(format!("the capsule of an Arrow {what} was already consumed: expected a new one"))
}

pub(super) fn stream_capsule(
    py: Python<'_>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, Exported::stream(reader), STREAM)
}

/// The state shared by the callbacks of an exported stream. A consumer may call them from any thread, and
/// from several at once.
struct Exported {
    schema: SchemaRef,
    /// Locked while a batch is produced, which runs no Python code. Poisoned after a panic.
    reader: Mutex<Box<dyn RecordBatchReader + Send>>,
    /// The first error. It is never replaced, since one thread may read it while another requests a batch.
    error: OnceLock<CString>,
}

/// The errno for an invalid argument, as the interface requires one. The text has the details.
const EINVAL: c_int = 22;

impl Exported {
    fn stream(reader: Box<dyn RecordBatchReader + Send>) -> FFI_ArrowArrayStream {
        let exported = Self { schema: reader.schema(), reader: Mutex::new(reader), error: OnceLock::new() };
        let exported = Box::into_raw(Box::new(exported)).cast();
        // SAFETY: the callbacks below keep the interface's contract with this data; `release` frees it once.
        unsafe {
            FFI_ArrowArrayStream::new_unchecked(
                Some(get_schema),
                Some(get_next),
                Some(get_last_error),
                Some(release),
                exported,
            )
        }
    }

    fn next(&self) -> Result<FFI_ArrowArray, ArrowError> {
        let Ok(mut reader) = self.reader.lock() else {
            return Err(ArrowError::CDataInterface("the stream has ended after a panic".into()));
        };
        panics::here();
        Ok(match reader.next().transpose()? {
            Some(batch) => FFI_ArrowArray::new(&StructArray::from(batch).into_data()),
            None => FFI_ArrowArray::empty(),
        })
    }

    fn schema(&self) -> Result<FFI_ArrowSchema, ArrowError> {
        panics::here();
        FFI_ArrowSchema::try_from(&*self.schema)
    }

    /// Writes the result of `work` to `out`, or keeps its error or panic for `get_last_error`.
    ///
    /// # Safety
    /// `out` may be written to.
    unsafe fn write_to<T>(&self, out: *mut T, work: impl FnOnce(&Self) -> Result<T, ArrowError>) -> c_int {
        let done = panics::catch(|| work(self));
        let text = match done {
            Ok(Ok(made)) => {
                // SAFETY: the caller's promise. The previous content of `out` is not dropped: by the
                // interface it is not valid.
                unsafe { ptr::write_unaligned(out, made) };
                return 0;
            }
            Ok(Err(error)) => error.to_string(),
            Err(panic) => format!("magicbyte panicked, please report this: {panic}"),
        };
        self.error.get_or_init(|| CString::new(text.replace('\0', "\\0")).unwrap_or_default());
        EINVAL
    }
}

/// # Safety
/// The contract of all callbacks of a stream: they get a stream of [`Exported::stream`] that has not been released.
unsafe extern "C" fn get_schema(stream: *mut FFI_ArrowArrayStream, out: *mut FFI_ArrowSchema) -> c_int {
    // SAFETY: the stream is one of ours, and only `release` drops its data; `out` is the consumer's.
    unsafe {
        let exported = &*(*stream).private_data().cast::<Exported>();
        exported.write_to(out, Exported::schema)
    }
}

/// # Safety
/// Like [`get_schema`].
unsafe extern "C" fn get_next(stream: *mut FFI_ArrowArrayStream, out: *mut FFI_ArrowArray) -> c_int {
    // SAFETY: as in `get_schema`. The data is shared, and its mutable part is locked.
    unsafe {
        let exported = &*(*stream).private_data().cast::<Exported>();
        exported.write_to(out, Exported::next)
    }
}

/// # Safety
/// Like [`get_schema`].
unsafe extern "C" fn get_last_error(stream: *mut FFI_ArrowArrayStream) -> *const c_char {
    // SAFETY: as in `get_schema`. The text lives as long as the stream.
    let exported = unsafe { &*(*stream).private_data().cast::<Exported>() };
    exported.error.get().map_or(ptr::null(), |error| error.as_ptr())
}

/// # Safety
/// Like [`get_schema`], once, when no other callback runs.
unsafe extern "C" fn release(stream: *mut FFI_ArrowArrayStream) {
    // SAFETY: the stream is one of ours, not yet released; its data came from a box.
    let exported = unsafe {
        let data = (*stream).set_private_data(ptr::null_mut::<c_void>());
        (*stream).set_release(None);
        Box::from_raw(data.cast::<Exported>())
    };
    // A panic cannot be reported here; at worst memory leaks.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(exported)));
}

/// The batches of an object that exports Arrow data: a record batch, a table, a data frame, a reader.
pub(super) fn batches_of(object: &Bound<'_, PyAny>) -> PyResult<Imported> {
    if let Some(array) = object.getattr_opt("__arrow_c_array__")? {
        let capsules = array.call0()?;
        let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = capsules.extract()?;
        let schema = schema.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
        let array = array.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
        // SAFETY: by Arrow's PyCapsule interface, the capsules' names determine what they point to;
        // `from_raw` moves the structs out and marks those in the capsules as released.
        let (schema, array) =
            unsafe { (FFI_ArrowSchema::from_raw(schema.as_ptr()), FFI_ArrowArray::from_raw(array.as_ptr())) };
        if schema.release().is_none() {
            return Err(already_consumed("schema"));
        }
        if array.is_released() {
            return Err(already_consumed("array"));
        }
        let data_type = DataType::try_from(&schema).map_err(failed)?;
        return Ok(Imported { data_type: of_records(data_type)?, from: From::Array(Some(array)) });
    }
    if let Some(stream) = object.getattr_opt("__arrow_c_stream__")? {
        let capsule = stream.call0()?.cast_into::<PyCapsule>()?;
        let stream = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
        // SAFETY: as above, for a stream.
        let mut stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
        let (Some(_), Some(get_schema)) = (stream.release(), stream.get_schema()) else {
            return Err(already_consumed("stream"));
        };
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: the stream's own callback, and it has not been released.
        let failure = unsafe { get_schema(&raw mut stream, &raw mut schema) };
        if failure != 0 {
            return Err(failed(last_error(&mut stream, failure)));
        }
        let data_type = DataType::try_from(&schema).map_err(failed)?;
        return Ok(Imported { data_type: of_records(data_type)?, from: From::Stream(stream) });
    }
    Err(PyTypeError::new_err("expected Arrow data: an object with __arrow_c_array__ or __arrow_c_stream__"))
}

/// Checks that the data is a batch, which the interface passes as a struct array.
fn of_records(data_type: DataType) -> PyResult<DataType> {
    match data_type {
        DataType::Struct(_) => Ok(data_type),
        _ => Err(PyTypeError::new_err("expected an Arrow record batch, not a single column")),
    }
}

/// Batches from another producer. arrow-rs's reader is not used: it accepts null rows as records, and panics
/// if a stream has no error text.
pub(super) struct Imported {
    data_type: DataType,
    from: From,
}

enum From {
    Array(Option<FFI_ArrowArray>),
    Stream(FFI_ArrowArrayStream),
}

impl Imported {
    /// The next batch. Runs the producer's code, which may be Python code: call it without holding a lock.
    pub(super) fn next_batch(&mut self) -> PyResult<Option<RecordBatch>> {
        let array = match &mut self.from {
            From::Array(array) => array.take(),
            From::Stream(stream) => next_array(stream)?,
        };
        array.map(|array| self.batch(array)).transpose()
    }

    fn batch(&self, array: FFI_ArrowArray) -> PyResult<RecordBatch> {
        // SAFETY: the array has not been released. The interface obliges its producer to describe valid
        // memory of the type in the schema.
        let data = unsafe { from_ffi_and_data_type(array, self.data_type.clone()) }.map_err(failed)?;
        let rows = StructArray::from(data);
        let null = rows.nulls().and_then(|nulls| nulls.iter().position(|valid| !valid));
        match null {
            Some(row) => {
                let why = format!("row {row} of the Arrow batch is null: expected a record");
                Err(PyValueError::new_err(why))
            }
            None => Ok(RecordBatch::from(rows)),
        }
    }
}

/// The next array of a stream; None at its end.
fn next_array(stream: &mut FFI_ArrowArrayStream) -> PyResult<Option<FFI_ArrowArray>> {
    let Some(get_next) = stream.get_next() else { return Err(already_consumed("stream")) };
    let mut array = FFI_ArrowArray::empty();
    // SAFETY: the stream's own callback; `batches_of` moved the stream out, so it has not been released.
    match unsafe { get_next(stream, &raw mut array) } {
        0 => Ok((!array.is_released()).then_some(array)),
        failure => Err(failed(last_error(stream, failure))),
    }
}

/// The producer's error text.
fn last_error(stream: &mut FFI_ArrowArrayStream, failure: c_int) -> ArrowError {
    // SAFETY: the stream's own callback, and it has not been released.
    let text = stream.get_last_error().map(|get_last_error| unsafe { get_last_error(stream) });
    let text = text.filter(|text| !text.is_null()).map(|text| {
        // SAFETY: by the interface, a string that lives until the stream is called again.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    });
    ArrowError::CDataInterface(text.unwrap_or_else(|| format!("the stream failed with errno {failure}")))
}

#[doc = docstring!(arrow, ArrowBatch)]
#[pyclass(frozen, name = "ArrowBatch", module = "magicbyte._core")]
pub(super) struct PyArrowBatch(RecordBatch);

impl PyArrowBatch {
    pub(super) fn new(batch: RecordBatch) -> Self {
        Self(batch)
    }
}

#[pymethods]
impl PyArrowBatch {
    #[doc = docstring!(arrow, ArrowBatch.num_rows)]
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

#[doc = docstring!(arrow, ArrowSchema)]
#[pyclass(frozen, name = "ArrowSchema", module = "magicbyte._core")]
pub(super) struct PyArrowSchema(SchemaRef);

impl PyArrowSchema {
    pub(super) fn new(schema: SchemaRef) -> Self {
        Self(schema)
    }
}

#[pymethods]
impl PyArrowSchema {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.0)
    }
}

pub(super) fn parse_columns(py: Python<'_>, columns: &[String]) -> PyResult<Vec<RecordColumn>> {
    columns.iter().map(|name| name.parse().map_err(|e: LogError| log_to_py(py, &e))).collect()
}

#[doc = docstring!(arrow, arrow_schema)]
#[pyfunction]
#[pyo3(signature = (table, columns = None, *, key_as = "binary", value_as = "binary"))]
pub(super) fn arrow_schema(
    py: Python<'_>,
    table: &str,
    #[pyo3(from_py_with = optional_items)] columns: Option<Vec<String>>,
    key_as: &str,
    value_as: &str,
) -> PyResult<PyArrowSchema> {
    panics::here();
    let payloads = Payloads { key: parse_name(key_as)?, value: parse_name(value_as)? };
    Ok(PyArrowSchema(match table.parse().map_err(|e: LogError| log_to_py(py, &e))? {
        Table::Records => {
            let columns = parse_columns(py, &columns.unwrap_or_default())?;
            payloads.schema(&records_schema(&columns, Flavour::Spark))
        }
        Table::Batches => batches_schema(),
        Table::Problems => problems_schema(),
        _ => return Err(PyValueError::new_err(format!("no schema of the table {table:?}"))),
    }))
}

/// Topic, partition, number of rows, first offset, last offset, digest.
type Digest = (String, i32, u64, i64, i64, u128);

/// Topic, partition, digests of ranges, offsets of rows without their timestamp.
type RowsDigest = (String, i32, Vec<PyRangeDigest>, Vec<i64>);

#[doc = docstring!(arrow, digest_rows)]
#[pyfunction]
pub(super) fn digest_rows(py: Python<'_>, data: &Bound<'_, PyAny>, width: i64) -> PyResult<Vec<RowsDigest>> {
    panics::here();
    let mut found = Vec::new();
    let mut batches = batches_of(data)?;
    while let Some(batch) = batches.next_batch()? {
        let digests = py.detach(|| magicbyte_arrow::digest_rows(&batch, width)).map_err(|e| to_py(py, &e))?;
        found.extend(
            digests
                .into_iter()
                .map(|one| (one.topic, one.partition, ranges_of(&one.ranges), one.without_timestamp)),
        );
    }
    Ok(found)
}

#[doc = docstring!(arrow, digest_records)]
#[pyfunction]
pub(super) fn digest_records(py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<Vec<Digest>> {
    panics::here();
    let mut found = Vec::new();
    let mut batches = batches_of(data)?;
    while let Some(batch) = batches.next_batch()? {
        let digests = py.detach(|| magicbyte_arrow::digest_records(&batch)).map_err(|e| to_py(py, &e))?;
        found.extend(
            digests.into_iter().map(|one| {
                (one.topic, one.partition, one.rows, one.first_offset, one.last_offset, one.digest)
            }),
        );
    }
    Ok(found)
}
