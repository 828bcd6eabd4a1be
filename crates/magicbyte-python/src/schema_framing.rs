//! The framing of schema registries.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use magicbyte::schema_framing::{Framed, IdSize, SchemaId};
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

/// An id as a number, or a GUID as 16 bytes.
pub(super) fn schema_id(object: &Bound<'_, PyAny>) -> PyResult<SchemaId> {
    Ok(match object.cast::<PyBytes>() {
        Ok(guid) => SchemaId::Guid(guid.as_bytes().try_into().map_err(|_| {
            PyValueError::new_err(format!("a GUID of {} bytes: expected 16", guid.as_bytes().len()))
        })?),
        Err(_) => SchemaId::Id(object.extract()?),
    })
}

fn or_raise<T>(py: Python<'_>, result: Result<T>) -> PyResult<T> {
    result.map_err(|error| to_py(py, &error))
}

type Parts<'py> = (Option<i64>, Option<Bound<'py, PyBytes>>, usize);

#[doc = docstring!(schema_framing, parse_schema_framing)]
#[pyfunction]
#[pyo3(signature = (value, header = None, *, id_bytes = 4))]
pub(super) fn parse_schema_framing<'py>(
    py: Python<'py>,
    value: &Bound<'py, PyAny>,
    header: Option<&Bound<'py, PyAny>>,
    id_bytes: usize,
) -> PyResult<Option<Parts<'py>>> {
    let value = view::content(value)?;
    let header = header.map(view::content).transpose()?;
    let framed = or_raise(py, Framed::parse(&value, header.as_deref(), id_size(id_bytes)?))?;
    Ok(framed.map(|framed| {
        let size = framed.id_bytes();
        match framed.schema {
            SchemaId::Id(id) => (Some(id), None, size),
            SchemaId::Guid(guid) => (None, Some(PyBytes::new(py, &guid)), size),
        }
    }))
}

#[doc = docstring!(schema_framing, parse_message_indexes)]
#[pyfunction]
#[pyo3(signature = (data, position = 0))]
pub(super) fn parse_message_indexes(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    position: usize,
) -> PyResult<(Vec<i32>, usize)> {
    let data = view::content(data)?;
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
