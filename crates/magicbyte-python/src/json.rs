//! Data that passes between Python and the core as JSON.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use magicbyte_log::steps::Located;

use crate::panics;
use crate::store::stores;

/// Data of an argument that is JSON.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> PyResult<T> {
    panics::here();
    serde_json::from_str(text)
        .map_err(|error| PyValueError::new_err(format!("invalid JSON argument: {error}")))
}

/// Data with the stores of the files that it names.
pub(super) fn parse_located<T: DeserializeOwned + Located>(text: &str) -> PyResult<T> {
    let mut value: T = parse(text)?;
    value.locate(&stores());
    Ok(value)
}

/// Data as JSON, for Python.
pub(super) fn to_json<T: Serialize>(value: &T) -> PyResult<String> {
    panics::here();
    serde_json::to_string(value).map_err(|error| PyValueError::new_err(error.to_string()))
}
