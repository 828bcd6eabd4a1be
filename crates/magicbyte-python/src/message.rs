//! The protocol's messages as dicts.

use std::borrow::Cow;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use magicbyte_protocol::internals::uuid;
use magicbyte_protocol::message::{ApiKey, Message, MessageKind, Struct, Value};

use crate::errors::to_py;
use crate::record::header_text;
use crate::{docs::docstring, panics, view};

/// The name of unknown tagged fields in Kafka's generated classes.
const UNKNOWN: &str = "_unknownTaggedFields";
/// The maximum nesting depth. No message is nested as deeply.
const MAX_DEPTH: usize = 32;

/// The types of values, for errors.
const VALUES: &str = "None, bool, int, float, str, bytes, list, tuple, dict or any C-contiguous buffer";

/// API key, version of the body, header, body.
type Decoded<'py> = (i16, i16, Bound<'py, PyDict>, Bound<'py, PyDict>);

#[doc = docstring!(message, apis)]
#[pyfunction]
pub(super) fn apis() -> Vec<(i16, &'static str, i16, i16, Option<i16>)> {
    panics::here();
    let row = |&api: &ApiKey| {
        (api as i16, api.name(), api.min_version(), api.max_version(), api.min_flexible_version())
    };
    ApiKey::ALL.iter().map(row).collect()
}

#[doc = docstring!(message, header_versions)]
#[pyfunction]
pub(super) fn header_versions(py: Python<'_>, api_key: i16, api_version: i16) -> PyResult<(i16, i16)> {
    panics::here();
    let versions = ApiKey::try_from(api_key).and_then(|api| {
        Ok((api.request_header_version(api_version)?, api.response_header_version(api_version)?))
    });
    versions.map_err(|error| to_py(py, &error))
}

#[doc = docstring!(message, decode_request)]
#[pyfunction]
#[pyo3(signature = (frame, secrets=true))]
pub(super) fn decode_request<'py>(
    py: Python<'py>,
    frame: &Bound<'py, PyAny>,
    secrets: bool,
) -> PyResult<Decoded<'py>> {
    let frame = view::content("frame", frame)?;
    let message =
        py.detach(|| magicbyte_protocol::message::read_request(&frame)).map_err(|error| to_py(py, &error))?;
    decoded(py, message, secrets)
}

#[doc = docstring!(message, decode_response)]
#[pyfunction]
#[pyo3(signature = (frame, api_key, api_version, secrets=true))]
pub(super) fn decode_response<'py>(
    py: Python<'py>,
    frame: &Bound<'py, PyAny>,
    api_key: i16,
    api_version: i16,
    secrets: bool,
) -> PyResult<Decoded<'py>> {
    let frame = view::content("frame", frame)?;
    let message = py.detach(|| magicbyte_protocol::message::read_response(&frame, api_key, api_version));
    decoded(py, message.map_err(|error| to_py(py, &error))?, secrets)
}

#[doc = docstring!(message, encode_request)]
#[pyfunction]
pub(super) fn encode_request<'py>(
    py: Python<'py>,
    api_key: i16,
    api_version: i16,
    header: &Bound<'py, PyDict>,
    body: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyBytes>> {
    encoded(py, MessageKind::Request, api_key, api_version, header, body)
}

#[doc = docstring!(message, encode_response)]
#[pyfunction]
pub(super) fn encode_response<'py>(
    py: Python<'py>,
    api_key: i16,
    api_version: i16,
    header: &Bound<'py, PyDict>,
    body: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyBytes>> {
    encoded(py, MessageKind::Response, api_key, api_version, header, body)
}

fn decoded<'py>(py: Python<'py>, mut message: Message<'_>, secrets: bool) -> PyResult<Decoded<'py>> {
    if !secrets {
        message.hide_secrets();
    }
    let (header, body) = (dict(py, message.header)?, dict(py, message.body)?);
    Ok((message.api_key, message.api_version, header, body))
}

/// Takes the fields, so that their memory and that of the dict are not needed at once.
pub(super) fn dict<'py>(py: Python<'py>, fields: Struct<'_>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in fields.fields {
        dict.set_item(PyString::intern(py, &name), object(py, value)?)?;
    }
    if !fields.unknown_tagged_fields.is_empty() {
        let unknown = PyDict::new(py);
        for (tag, bytes) in fields.unknown_tagged_fields {
            unknown.set_item(tag, PyBytes::new(py, &bytes))?;
        }
        dict.set_item(UNKNOWN, unknown)?;
    }
    Ok(dict)
}

fn object<'py>(py: Python<'py>, value: Value<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(value) => PyBool::new(py, value).to_owned().into_any(),
        Value::Int(n) => PyInt::new(py, n).into_any(),
        Value::Float(n) => PyFloat::new(py, n).into_any(),
        Value::Uuid(uuid) => PyString::new(py, &uuid::to_text(uuid)).into_any(),
        Value::String(text) => header_text(py, &text)?,
        Value::Bytes(bytes) => PyBytes::new(py, &bytes).into_any(),
        Value::Array(elements) => {
            let list = PyList::empty(py);
            for element in elements {
                list.append(object(py, element)?)?;
            }
            list.into_any()
        }
        Value::Struct(fields) => dict(py, fields)?.into_any(),
    })
}

fn encoded<'py>(
    py: Python<'py>,
    kind: MessageKind,
    api_key: i16,
    api_version: i16,
    header: &Bound<'py, PyDict>,
    body: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyBytes>> {
    panics::here();
    let (header, body) = (structure(header, 0)?, structure(body, 0)?);
    let message = Message { kind, api_key, api_version, header, body };
    let frame = py
        .detach(|| magicbyte_protocol::message::write_message(&message))
        .map_err(|error| to_py(py, &error))?;
    Ok(PyBytes::new(py, &frame))
}

/// A dict as the fields of a message; `depth` is the number of dicts around it.
pub(super) fn structure(dict: &Bound<'_, PyDict>, depth: usize) -> PyResult<Struct<'static>> {
    let mut fields = Struct::default();
    for (name, given) in dict {
        let name: String = name.extract()?;
        if name == UNKNOWN {
            for (tag, bytes) in given.cast::<PyDict>()? {
                let bytes = view::content(UNKNOWN, &bytes)?;
                fields.unknown_tagged_fields.insert(tag.extract()?, owned(bytes));
            }
        } else {
            // The keys of a dict are distinct.
            let value = value(&name, &given, depth + 1)?;
            fields.fields.push((Cow::Owned(name), value));
        }
    }
    Ok(fields)
}

/// The value of a field with this name, or of an element of the array in that field.
fn value(name: &str, given: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value<'static>> {
    if depth > MAX_DEPTH {
        return Err(PyValueError::new_err(format!(
            "the message is nested more than {MAX_DEPTH} levels deep"
        )));
    }
    if given.is_none() {
        return Ok(Value::Null);
    }
    // Before int, whose subclass bool is.
    if let Ok(value) = given.cast::<PyBool>() {
        return Ok(Value::Bool(value.is_true()));
    }
    if given.is_instance_of::<PyInt>() {
        return Ok(Value::Int(given.extract()?));
    }
    if given.is_instance_of::<PyFloat>() {
        return Ok(Value::Float(given.extract()?));
    }
    if given.is_instance_of::<PyString>() {
        return Ok(Value::String(owned(view::header_key(given)?)));
    }
    if let Ok(dict) = given.cast::<PyDict>() {
        return Ok(Value::Struct(structure(dict, depth)?));
    }
    if given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() {
        let elements = given.try_iter()?.map(|element| value(name, &element?, depth + 1));
        return Ok(Value::Array(elements.collect::<PyResult<_>>()?));
    }
    view::bytes_of(name, VALUES, given).map(|bytes| Value::Bytes(owned(bytes)))
}

fn owned(bytes: Cow<'_, [u8]>) -> Cow<'static, [u8]> {
    Cow::Owned(bytes.into_owned())
}
