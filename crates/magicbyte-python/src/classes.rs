//! Python classes that the bindings use: enums, exceptions, settings, the tuples Columns and Losses.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyModule, PyType};

use magicbyte::convert::Losses;
use magicbyte::{Compression, TimestampType};

static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
static COLUMNS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static LOSSES: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static APPEND_CONFIG: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static COMPRESSIONS: PyOnceLock<Vec<Py<PyAny>>> = PyOnceLock::new();
static TIMESTAMP_TYPES: PyOnceLock<Vec<Py<PyAny>>> = PyOnceLock::new();

pub(super) fn errors(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    let module = ERRORS.get_or_try_init(py, || py.import("magicbyte.errors").map(Bound::unbind))?;
    Ok(module.bind(py))
}

pub(super) fn columns_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    COLUMNS.import(py, "magicbyte.columns", "Columns")
}

pub(super) fn append_config_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    APPEND_CONFIG.import(py, "magicbyte.broker", "AppendConfig")
}

/// The Losses tuple of a conversion.
pub(super) fn losses(py: Python<'_>, losses: &Losses) -> PyResult<Py<PyAny>> {
    let class = LOSSES.import(py, "magicbyte.conversion", "Losses")?;
    let Losses {
        control_batches,
        empty_batches,
        producer_batches,
        transactional_batches,
        delete_horizons,
        headers,
        timestamps,
    } = *losses;
    let arguments = (
        control_batches,
        empty_batches,
        producer_batches,
        transactional_batches,
        delete_horizons,
        headers,
        timestamps,
    );
    class.call1(arguments).map(Bound::unbind)
}

/// The members of an IntEnum with these values.
fn members(py: Python<'_>, class: &str, values: &[i32]) -> PyResult<Vec<Py<PyAny>>> {
    let class = py.import("magicbyte.enums")?.getattr(class)?;
    values.iter().map(|value| class.call1((*value,)).map(Bound::unbind)).collect()
}

pub(super) fn compression(py: Python<'_>, codec: Compression) -> PyResult<Py<PyAny>> {
    let members = COMPRESSIONS.get_or_try_init(py, || members(py, "Compression", &[0, 1, 2, 3, 4]))?;
    Ok(members[codec as usize].clone_ref(py))
}

pub(super) fn timestamp_type(py: Python<'_>, value: TimestampType) -> PyResult<Py<PyAny>> {
    let members = TIMESTAMP_TYPES.get_or_try_init(py, || members(py, "TimestampType", &[-1, 0, 1]))?;
    Ok(members[(value as i8 + 1) as usize].clone_ref(py))
}
