//! Typed columns as keys and values that name their schema.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use magicbyte_arrow::internals::texts;
use magicbyte_arrow::{EncodeError, PayloadEncoder};
use magicbyte_schema::SchemaError;
use magicbyte_schema::avro::AvroEncoder;
use magicbyte_schema::json::JsonEncoder;
use magicbyte_schema::protobuf::ProtobufEncoder;

use crate::arrow::{PyArrowBatch, PyArrowSchema};
use crate::errors::to_py;
use crate::schema_decoder::{References, only_batch};
use crate::schema_framing::{id_size, schema_id};
use crate::{docs::docstring, panics};

#[doc = docstring!(schema_encoder, SchemaEncoder)]
#[pyclass(frozen, name = "SchemaEncoder", module = "magicbyte._core")]
pub(super) struct PySchemaEncoder(PayloadEncoder);

#[pymethods]
impl PySchemaEncoder {
    #[new]
    #[pyo3(signature = (format, schema, references = None, *, message = None))]
    fn new(
        py: Python<'_>,
        format: &str,
        schema: &str,
        references: Option<&Bound<'_, PyAny>>,
        message: Option<&str>,
    ) -> PyResult<Self> {
        panics::here();
        let references = References::of(references)?;
        let references = references.as_pairs();
        let encoder = py.detach(|| match format {
            "avro" => AvroEncoder::new(schema, &texts(&references)).map(PayloadEncoder::Avro),
            "protobuf" => ProtobufEncoder::new(schema, &references, message).map(PayloadEncoder::Protobuf),
            "json" => JsonEncoder::new(schema, &references).map(PayloadEncoder::Json),
            other => {
                let expected = "\"avro\", \"protobuf\" or \"json\"";
                Err(SchemaError::new(format!("format {other:?}: expected {expected}")))
            }
        });
        encoder.map(Self).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    #[doc = docstring!(schema_encoder, SchemaEncoder.schema)]
    #[getter]
    fn schema(&self) -> PyArrowSchema {
        panics::here();
        let field = Field::new("value", self.0.data_type().clone(), true);
        PyArrowSchema::new(Arc::new(Schema::new(vec![field])))
    }

    #[doc = docstring!(schema_encoder, SchemaEncoder.message_indexes)]
    #[getter]
    fn message_indexes(&self) -> Vec<i32> {
        panics::here();
        self.0.message_indexes().to_vec()
    }

    #[doc = docstring!(schema_encoder, SchemaEncoder.encode)]
    #[pyo3(signature = (batch, schema_id = None, *, id_bytes = 4))]
    fn encode(
        &self,
        py: Python<'_>,
        batch: &Bound<'_, PyAny>,
        schema_id: Option<&Bound<'_, PyAny>>,
        id_bytes: usize,
    ) -> PyResult<PyArrowBatch> {
        panics::here();
        let batch = only_batch(batch)?;
        let Some(column) = batch.column_by_name("value") else {
            return Err(PyValueError::new_err("the batch has no column value"));
        };
        let size = id_size(id_bytes)?;
        let id = schema_id.map(self::schema_id).transpose()?.map(|id| (id, size));
        let encoded = match py.detach(|| self.0.encode(column, id)) {
            Ok(encoded) => encoded,
            Err(EncodeError::Framing(error)) => return Err(to_py(py, &error)),
            Err(error) => return Err(PyValueError::new_err(error.to_string())),
        };
        let field = Field::new("value", DataType::Binary, true);
        let made = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::new(encoded)]);
        made.map(PyArrowBatch::new).map_err(|error| PyValueError::new_err(error.to_string()))
    }
}
