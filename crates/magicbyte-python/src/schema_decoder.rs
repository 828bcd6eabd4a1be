//! Keys and values that name their schemas, as typed columns.

use std::sync::Arc;

use arrow_array::RecordBatch;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

use magicbyte::schema_framing::SchemaId;
use magicbyte_arrow::internals::texts;
use magicbyte_arrow::{ColumnFraming, DecodeError, PayloadDecoder, SchemaDecoder, TypedRows};
use magicbyte_schema::SchemaError;
use magicbyte_schema::avro::AvroDecoder;
use magicbyte_schema::json::{Integers, JsonDecoder};
use magicbyte_schema::protobuf::ProtobufDecoder;

use crate::arrow::{PyArrowBatch, PyArrowSchema, batches_of};
use crate::errors::to_py;
use crate::locked::Locked;
use crate::schema_framing::{framing, schema_id, schema_name, windows};
use crate::view::items;
use crate::{docs::docstring, panics};

#[doc = docstring!(schema_decoder, SchemaDecoder)]
#[pyclass(frozen, name = "SchemaDecoder", module = "magicbyte._core")]
pub(super) struct PySchemaDecoder(Locked<SchemaDecoder>);

#[pymethods]
impl PySchemaDecoder {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments")]
    #[pyo3(signature = (format, reader_schema, references = None, *, messages = None, is_key = false, framing = "auto", windows = "none", json_rules = (false, false, "int64")))]
    fn new(
        py: Python<'_>,
        format: &str,
        reader_schema: Option<&str>,
        references: Option<&Bound<'_, PyAny>>,
        messages: Option<&Bound<'_, PyAny>>,
        is_key: bool,
        framing: &str,
        windows: &str,
        json_rules: (bool, bool, &str),
    ) -> PyResult<Self> {
        panics::here();
        let (validate, formats, integers) = json_rules;
        let json = JsonRules { validate, formats, integers: self::integers(integers)? };
        let references = References::of(references)?;
        let messages: Vec<PyBackedStr> = messages.map_or_else(|| Ok(Vec::new()), items)?;
        let messages: Vec<&str> = messages.iter().map(|name| &**name).collect();
        let reader =
            Reader { schema: reader_schema, references: &references.as_pairs(), messages: &messages };
        let of = ColumnFraming { is_key, framing: self::framing(framing)?, windows: self::windows(windows)? };
        let decoder = py.detach(|| payload_decoder(format, &reader, &json));
        let decoder = decoder.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self(Locked::new(SchemaDecoder::new(decoder, of))))
    }

    #[doc = docstring!(schema_decoder, SchemaDecoder.schema)]
    #[getter]
    fn schema(&self, py: Python<'_>) -> PyArrowSchema {
        PyArrowSchema::new(self.0.with(py, |decoder| Arc::clone(decoder.schema())))
    }

    #[doc = docstring!(schema_decoder, SchemaDecoder.new_ids)]
    fn new_ids<'py>(&self, py: Python<'py>, batch: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let batch = only_batch(batch)?;
        let ids = self.0.with(py, |decoder| decoder.new_ids(&batch)).map_err(|error| to_py(py, &error))?;
        names(py, &ids)
    }

    #[doc = docstring!(schema_decoder, SchemaDecoder.add_writer)]
    #[pyo3(signature = (schema_id, schema, references = None))]
    fn add_writer(
        &self,
        py: Python<'_>,
        schema_id: &Bound<'_, PyAny>,
        schema: &str,
        references: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let id = self::schema_id(schema_id)?;
        let references = References::of(references)?;
        self.0.with(py, |decoder| decoder.add_writer(id, schema, &references.as_pairs()));
        Ok(())
    }

    #[doc = docstring!(schema_decoder, SchemaDecoder.give)]
    #[pyo3(signature = (schema, references = None, *, message = None, is_sole = false, no_ids = false))]
    fn give(
        &self,
        py: Python<'_>,
        schema: &str,
        references: Option<&Bound<'_, PyAny>>,
        message: Option<&str>,
        is_sole: bool,
        no_ids: bool,
    ) -> PyResult<()> {
        let references = References::of(references)?;
        self.0.with(py, |decoder| decoder.give(schema, &references.as_pairs(), message, is_sole, no_ids));
        Ok(())
    }

    #[doc = docstring!(schema_decoder, SchemaDecoder.refuse)]
    fn refuse(&self, py: Python<'_>, schema_id: &Bound<'_, PyAny>, reason: String) -> PyResult<()> {
        let id = self::schema_id(schema_id)?;
        self.0.with(py, |decoder| decoder.refuse(id, reason));
        Ok(())
    }

    #[doc = docstring!(schema_decoder, SchemaDecoder.absent)]
    fn absent(&self, py: Python<'_>, schema_id: &Bound<'_, PyAny>, reason: String) -> PyResult<()> {
        let id = self::schema_id(schema_id)?;
        self.0.with(py, |decoder| decoder.absent(id, reason));
        Ok(())
    }

    #[doc = docstring!(schema_decoder, SchemaDecoder.messages)]
    fn messages(&self, py: Python<'_>, batch: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
        let batch = only_batch(batch)?;
        self.0.with(py, |decoder| decoder.messages(&batch)).map_err(|error| to_py(py, &error))
    }

    #[doc = docstring!(schema_decoder, SchemaDecoder.decode)]
    fn decode<'py>(&self, py: Python<'py>, batch: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let batch = only_batch(batch)?;
        match self.0.with(py, |decoder| decoder.decode(&batch)) {
            Ok(TypedRows { batch, unframed, absent }) => {
                (PyArrowBatch::new(batch), unframed, absent).into_bound_py_any(py)
            }
            Err(DecodeError::UnknownSchemas(ids)) => names(py, &ids)?.into_bound_py_any(py),
            Err(DecodeError::Batch(error)) => Err(to_py(py, &error)),
            Err(error) => Err(PyValueError::new_err(error.to_string())),
        }
    }
}

fn names<'py>(py: Python<'py>, ids: &[SchemaId]) -> PyResult<Vec<Bound<'py, PyAny>>> {
    ids.iter().map(|&id| schema_name(py, id)).collect()
}

/// Whose types the column gets.
struct Reader<'a> {
    schema: Option<&'a str>,
    references: &'a [(&'a str, &'a str)],
    messages: &'a [&'a str],
}

/// The rules of JSON alone.
struct JsonRules {
    validate: bool,
    /// The keyword `format` counts, too.
    formats: bool,
    integers: Integers,
}

fn integers(name: &str) -> PyResult<Integers> {
    match name {
        "int64" => Ok(Integers::Int64),
        "decimal" => Ok(Integers::Decimal),
        "text" => Ok(Integers::Text),
        other => {
            let expected = "\"int64\", \"decimal\" or \"text\"";
            Err(PyValueError::new_err(format!("integers {other:?}: expected {expected}")))
        }
    }
}

fn payload_decoder(
    format: &str,
    reader: &Reader<'_>,
    json: &JsonRules,
) -> magicbyte_schema::Result<PayloadDecoder> {
    let Reader { schema, references, messages } = *reader;
    match (format, schema) {
        ("avro" | "protobuf", _) if json.validate => {
            Err(SchemaError::new(format!("validate is for the format \"json\", not for {format:?}")))
        }
        ("avro", Some(schema)) => AvroDecoder::new(schema, &texts(references))
            .map(|decoder| PayloadDecoder::Avro(Box::new(decoder))),
        ("avro", None) => Ok(PayloadDecoder::Avro(Box::new(AvroDecoder::text()))),
        ("protobuf", Some(schema)) => {
            ProtobufDecoder::new(schema, references, messages).map(PayloadDecoder::Protobuf)
        }
        ("protobuf", None) => Ok(PayloadDecoder::Protobuf(ProtobufDecoder::text())),
        ("json", _) => {
            let decoder = match schema {
                Some(schema) => JsonDecoder::with_integers(schema, references, json.integers)?,
                None => JsonDecoder::text(),
            };
            let by = schema.map(|schema| (schema, references));
            let decoder = if json.validate { decoder.validate(by, json.formats)? } else { decoder };
            Ok(PayloadDecoder::Json(decoder))
        }
        (other, _) => {
            Err(SchemaError::new(format!("format {other:?}: expected \"avro\", \"protobuf\" or \"json\"")))
        }
    }
}

/// The schemas that another one uses, as name and text.
pub(super) struct References(Vec<(PyBackedStr, PyBackedStr)>);

impl References {
    pub(super) fn of(object: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        object.map_or_else(|| Ok(Vec::new()), items).map(Self)
    }

    pub(super) fn as_pairs(&self) -> Vec<(&str, &str)> {
        self.0.iter().map(|(name, text)| (&**name, &**text)).collect()
    }
}

pub(super) fn only_batch(object: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    let mut batches = batches_of(object)?;
    match (batches.next_batch()?, batches.next_batch()?) {
        (Some(batch), None) => Ok(batch),
        _ => Err(PyValueError::new_err("expected one Arrow record batch")),
    }
}
