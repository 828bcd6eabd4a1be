//! The framing of schema registries.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use magicbyte::schema_framing::{Framed, Framing, IdSize, SchemaHeader, SchemaId, Window, Windows};
use magicbyte::{Result, schema_framing};

use crate::errors::to_py;
use crate::{docs::docstring, panics, view};

pub(super) fn id_size(id_bytes: usize) -> PyResult<IdSize> {
    match id_bytes {
        4 => Ok(IdSize::Four),
        8 => Ok(IdSize::Eight),
        other => Err(PyValueError::new_err(format!("id_bytes {other}: expected 4 or 8"))),
    }
}

/// An id as a number, a UUID as 16 bytes, or a fingerprint as 8 bytes.
pub(super) fn schema_id(object: &Bound<'_, PyAny>) -> PyResult<SchemaId> {
    let Ok(bytes) = object.cast::<PyBytes>() else { return Ok(SchemaId::Id(object.extract()?)) };
    let bytes = bytes.as_bytes();
    if let Ok(guid) = bytes.try_into() {
        return Ok(SchemaId::Guid(guid));
    }
    match bytes.try_into() {
        Ok(print) => Ok(SchemaId::Fingerprint(u64::from_be_bytes(print))),
        Err(_) => Err(PyValueError::new_err(format!(
            "a name of {} bytes: expected 16 of a GUID, or 8 of a fingerprint",
            bytes.len()
        ))),
    }
}

/// The other way round.
pub(super) fn schema_name(py: Python<'_>, schema: SchemaId) -> PyResult<Bound<'_, PyAny>> {
    Ok(match schema {
        SchemaId::Id(id) => id.into_pyobject(py)?.into_any(),
        SchemaId::Guid(guid) => PyBytes::new(py, &guid).into_any(),
        SchemaId::Fingerprint(print) => PyBytes::new(py, &print.to_be_bytes()).into_any(),
    })
}

pub(super) fn framing(name: &str) -> PyResult<Framing> {
    Ok(match name {
        "auto" => Framing::Auto,
        "confluent" => Framing::Confluent,
        "apicurio" => Framing::Apicurio,
        "glue" => Framing::Glue,
        "single-object" => Framing::SingleObject,
        "none" => Framing::Bare,
        other => {
            return Err(PyValueError::new_err(format!(
                "framing {other:?}: expected auto, confluent, apicurio, glue, single-object or none"
            )));
        }
    })
}

pub(super) fn windows(name: &str) -> PyResult<Windows> {
    Ok(match name {
        "none" => Windows::None,
        "auto" => Windows::Auto,
        "time" => Windows::Time,
        "session" => Windows::Session,
        "store" => Windows::Store,
        other => {
            return Err(PyValueError::new_err(format!(
                "windows {other:?}: expected none, auto, time, session or store"
            )));
        }
    })
}

fn or_raise<T>(py: Python<'_>, result: Result<T>) -> PyResult<T> {
    result.map_err(|error| to_py(py, &error))
}

type Parts<'py> = (Bound<'py, PyAny>, &'static str, usize, bool);

#[doc = docstring!(schema_framing, parse_schema_framing)]
#[pyfunction]
#[pyo3(signature = (value, header = None, *, framing = "auto"))]
pub(super) fn parse_schema_framing<'py>(
    py: Python<'py>,
    value: &Bound<'py, PyAny>,
    header: Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    framing: &str,
) -> PyResult<Option<Parts<'py>>> {
    let framing = self::framing(framing)?;
    let value = view::content("value", value)?;
    let header = match &header {
        Some((name, content)) => Some((view::header_key(name)?, view::content("header value", content)?)),
        None => None,
    };
    let header = header.as_ref().and_then(|(name, content)| {
        let kind = SchemaHeader::of(name, false).or_else(|| SchemaHeader::of(name, true))?;
        Some((kind, &**content))
    });
    let Some(framed) = or_raise(py, Framed::parse(&value, header, framing))? else { return Ok(None) };
    let name = match framed.framing {
        Framing::Apicurio => "apicurio",
        Framing::Glue => "glue",
        Framing::SingleObject => "single-object",
        Framing::Auto | Framing::Confluent | Framing::Bare => "confluent",
    };
    Ok(Some((schema_name(py, framed.schema)?, name, framed.value_offset(), framed.is_deflated)))
}

#[doc = docstring!(schema_framing, schema_header_names)]
#[pyfunction]
#[pyo3(signature = (*, is_key = false, framing = "auto"))]
pub(super) fn schema_header_names(is_key: bool, framing: &str) -> PyResult<Vec<&'static str>> {
    panics::here();
    let framing = self::framing(framing)?;
    let headers = SchemaHeader::all(is_key).iter().filter(|header| header.1.is_of(framing));
    Ok(headers.map(|header| header.0).collect())
}

#[doc = docstring!(schema_framing, split_window)]
#[pyfunction]
pub(super) fn split_window(
    key: &Bound<'_, PyAny>,
    windows: &str,
) -> PyResult<Option<(usize, i64, Option<i64>)>> {
    let windows = self::windows(windows)?;
    let key = view::content("key", key)?;
    let split = Window::split(&key, windows);
    Ok(split.map(|(key, window)| (key.len(), window.start, window.end)))
}

#[doc = docstring!(schema_framing, parse_message_indexes)]
#[pyfunction]
#[pyo3(signature = (data, position = 0))]
pub(super) fn parse_message_indexes(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    position: usize,
) -> PyResult<(Vec<i32>, usize)> {
    let data = view::content("data", data)?;
    let parsed = schema_framing::parse_message_indexes(data.get(position..).unwrap_or_default());
    let (indexes, rest) = or_raise(py, parsed.map_err(|error| error.shifted_by(position as u64)))?;
    Ok((indexes.into_owned(), data.len() - rest.len()))
}

#[doc = docstring!(schema_framing, write_schema_framing)]
#[pyfunction]
#[pyo3(signature = (schema, message_indexes, *, id_bytes = 4))]
pub(super) fn write_schema_framing<'py>(
    py: Python<'py>,
    schema: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = view::items)] message_indexes: Vec<i32>,
    id_bytes: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    panics::here();
    let written =
        schema_framing::write_schema_framing(schema_id(schema)?, &message_indexes, id_size(id_bytes)?);
    Ok(PyBytes::new(py, &or_raise(py, written)?))
}
