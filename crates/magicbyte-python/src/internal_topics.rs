//! Records of Kafka's internal topics.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString};

use magicbyte::{ControlRecord, Error};
use magicbyte_protocol::internal_topics::{Part, TopicRecord};
use magicbyte_protocol::internals::{Field, is_default, uuid};
use magicbyte_protocol::message::{Struct, Value};

use crate::batch::BatchBase;
use crate::errors::to_py;
use crate::indexed_batch::IndexedBatch;
use crate::locked::Locked;
use crate::message::structure;
use crate::{docs::docstring, panics, view};

/// The type, its name, the key, the value's version, the value.
type Decoded<'py> =
    (i64, Option<&'static str>, Option<Bound<'py, PyDict>>, Option<i16>, Option<Bound<'py, PyDict>>);

#[doc = docstring!(internal_topics, decode_record)]
#[pyfunction]
#[pyo3(signature = (topic, key, value, secrets=true))]
pub(super) fn decode_record<'py>(
    py: Python<'py>,
    topic: &str,
    key: Option<&Bound<'py, PyAny>>,
    value: Option<&Bound<'py, PyAny>>,
    secrets: bool,
) -> PyResult<Decoded<'py>> {
    panics::here();
    let key = key.map(|key| view::content("key", key)).transpose()?;
    let value = value.map(|value| view::content("value", value)).transpose()?;
    let read = magicbyte_protocol::internal_topics::read_record(topic, key.as_deref(), value.as_deref());
    let mut read = read.map_err(|error| to_py(py, &error))?;
    if let TopicRecord::Known { value: Some(value), .. } = &mut read
        && !secrets
    {
        value.hide_secrets();
    }
    Ok(match read {
        TopicRecord::Unknown(record_type) => (record_type, None, None, None, None),
        TopicRecord::Known { record_type, key, value } => {
            let name = match (&key, &value) {
                (Some(key), _) => key.name().strip_suffix("Key"),
                (None, value) => value.as_ref().map(|value| value.name()),
            };
            let shown = |part: &Part<'_>| json_of_part(py, part);
            let version = value.as_ref().map(|value| value.version);
            let (key, value) = (key.as_ref().map(shown).transpose()?, value.as_ref().map(shown).transpose()?);
            (record_type.into(), name, key, version, value)
        }
    })
}

#[doc = docstring!(internal_topics, is_secret_record)]
#[pyfunction]
pub(super) fn is_secret_record(topic: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    panics::here();
    Ok(magicbyte_protocol::internals::is_secret(topic, &view::content("value", value)?))
}

#[doc = docstring!(internal_topics, decode_data)]
#[pyfunction]
pub(super) fn decode_data<'py>(
    py: Python<'py>,
    name: &str,
    data: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    panics::here();
    let data = view::content("data", data)?;
    json_of_part(
        py,
        &magicbyte_protocol::internal_topics::read_data(name, &data).map_err(|error| to_py(py, &error))?,
    )
}

#[doc = docstring!(internal_topics, encode_metadata_record)]
#[pyfunction]
pub(super) fn encode_metadata_record<'py>(
    py: Python<'py>,
    record_type: i16,
    version: i16,
    data: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyBytes>> {
    panics::here();
    let fields = structure(data, 0)?;
    let written = magicbyte_protocol::internal_topics::write_metadata_record(record_type, version, &fields);
    written.map(|bytes| PyBytes::new(py, &bytes)).map_err(|error| to_py(py, &error))
}

#[doc = docstring!(internal_topics, encode_coordinator_record)]
#[pyfunction]
pub(super) fn encode_coordinator_record<'py>(
    py: Python<'py>,
    topic: &str,
    record_type: i16,
    version: i16,
    key: &Bound<'py, PyDict>,
    value: &Bound<'py, PyDict>,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    panics::here();
    let (key, value) = (structure(key, 0)?, structure(value, 0)?);
    let written = magicbyte_protocol::internal_topics::write_coordinator_record(
        topic,
        record_type,
        version,
        &key,
        &value,
    );
    let (key, value) = written.map_err(|error| to_py(py, &error))?;
    Ok((PyBytes::new(py, &key), PyBytes::new(py, &value)))
}

#[doc = docstring!(internal_topics, encode_data)]
#[pyfunction]
pub(super) fn encode_data<'py>(
    py: Python<'py>,
    name: &str,
    version: i16,
    data: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyBytes>> {
    panics::here();
    let fields = structure(data, 0)?;
    let written = magicbyte_protocol::internal_topics::write_data(name, version, &fields);
    written.map(|bytes| PyBytes::new(py, &bytes)).map_err(|error| to_py(py, &error))
}

/// Converts a part as Kafka's JSON converters do, with the fields in the order of the definition.
fn json_of_part<'py>(py: Python<'py>, part: &Part<'_>) -> PyResult<Bound<'py, PyDict>> {
    json_of_struct(py, &part.definition.fields, part.version, &part.fields)
}

fn json_of_struct<'py>(
    py: Python<'py>,
    fields: &'static [Field],
    version: i16,
    values: &Struct<'_>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for field in fields.iter().filter(|field| field.versions.contain(version)) {
        let Some(value) = values.get(field.name) else { continue };
        if field.tag(version).is_none() || !is_default(field, value) {
            dict.set_item(PyString::intern(py, field.name), json_of(py, field, version, value)?)?;
        }
    }
    Ok(dict)
}

fn json_of<'py>(
    py: Python<'py>,
    field: &'static Field,
    version: i16,
    value: &Value<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    let text = |text: &str| PyString::new(py, text).into_any();
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
        Value::Int(n) => PyInt::new(py, *n).into_any(),
        Value::Float(n) if n.is_finite() => PyFloat::new(py, *n).into_any(),
        // JSON has no such numbers.
        Value::Float(n) if n.is_nan() => text("NaN"),
        Value::Float(n) => text(if *n > 0.0 { "Infinity" } else { "-Infinity" }),
        Value::Uuid(uuid) => text(&uuid::to_text(*uuid)),
        Value::String(bytes) => text(&String::from_utf8_lossy(bytes)),
        Value::Bytes(bytes) => text(&BASE64_STANDARD.encode(bytes)),
        Value::Array(elements) => {
            let elements = elements.iter().map(|element| json_of(py, field, version, element));
            PyList::new(py, elements.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        Value::Struct(values) => json_of_struct(py, &field.fields, version, values)?.into_any(),
    })
}

/// Offset, key and value.
type Row<'py> = (i64, Option<Bound<'py, PyBytes>>, Option<Bound<'py, PyBytes>>);
/// Records of other types, and the exceptions of those that do not decode, by offset.
type Replayed<'py> = (Vec<Row<'py>>, Vec<(i64, Py<PyAny>)>);
type Commit = (String, String, i32, i64, i32, String, i64, i64, i64);

#[doc = docstring!(internal_topics, CommittedOffsets)]
#[pyclass(frozen, module = "magicbyte._core")]
pub(super) struct CommittedOffsets(Locked<magicbyte_protocol::internal_topics::CommittedOffsets>);

#[pymethods]
impl CommittedOffsets {
    #[new]
    fn new() -> Self {
        panics::here();
        Self(Locked::new(magicbyte_protocol::internal_topics::CommittedOffsets::default()))
    }

    #[doc = docstring!(internal_topics, CommittedOffsets.replay)]
    fn replay<'py>(&self, py: Python<'py>, batch: &BatchBase) -> PyResult<Replayed<'py>> {
        let producer = batch.transactional_producer(py)?;
        let indexed = batch.index(py)?;
        let (others, errors) = self.0.with(py, |state| applied(state, &indexed, producer));
        let copied = |bytes: Option<&[u8]>| bytes.map(|bytes| PyBytes::new(py, bytes));
        let others = others.into_iter().map(|(offset, key, value)| (offset, copied(key), copied(value)));
        let errors =
            errors.into_iter().map(|(offset, error)| (offset, to_py(py, &error).into_value(py).into_any()));
        Ok((others.collect(), errors.collect()))
    }

    #[doc = docstring!(internal_topics, CommittedOffsets.commits)]
    #[getter]
    fn commits(&self, py: Python<'_>) -> Vec<Commit> {
        self.0.with(py, |state| {
            let row = |one: magicbyte_protocol::internal_topics::CommittedOffset| {
                (
                    one.group,
                    one.topic,
                    one.partition,
                    one.offset,
                    one.leader_epoch,
                    one.metadata,
                    one.commit_timestamp,
                    one.expire_timestamp,
                    one.record_offset,
                )
            };
            state.commits().map(row).collect()
        })
    }

    #[doc = docstring!(internal_topics, CommittedOffsets.pending)]
    #[getter]
    fn pending(&self, py: Python<'_>) -> usize {
        self.0.with(py, |state| state.pending())
    }
}

type Others<'a> = Vec<(i64, Option<&'a [u8]>, Option<&'a [u8]>)>;

/// Applies the records of a batch; returns those of other types, and the errors by offset.
fn applied<'a>(
    state: &mut magicbyte_protocol::internal_topics::CommittedOffsets,
    batch: &'a IndexedBatch,
    producer_id: Option<i64>,
) -> (Others<'a>, Vec<(i64, Error)>) {
    let (mut others, mut errors) = (Vec::new(), Vec::new());
    for entry in &batch.entries {
        let (key, value) = (batch.nullable(entry.key), batch.nullable(entry.value));
        let result = match (batch.is_control, producer_id) {
            (false, _) => state.replay(entry.offset, key, value, producer_id),
            (true, None) => Ok(true),
            (true, Some(producer_id)) => ControlRecord::parse(key, value).map(|control| {
                if let ControlRecord::EndTransaction { committed, .. } = control {
                    state.end_transaction(producer_id, committed);
                }
                true
            }),
        };
        match result {
            Ok(true) => {}
            Ok(false) => others.push((entry.offset, key, value)),
            Err(error) => errors.push((entry.offset, error)),
        }
    }
    (others, errors)
}
