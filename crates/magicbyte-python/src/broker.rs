//! Appends, validated as by a broker.

use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes};

use magicbyte::TimestampType;
use magicbyte::state::AppendOrigin;
use magicbyte_broker::{
    Append, AppendConfig, AppendValidator, TargetCompression, check_produce_request as check,
};

use crate::arguments::{Codec, number};
use crate::classes::append_config_class;
use crate::errors::{append_to_py, to_py};
use crate::locked::Locked;
use crate::results::result_class;
use crate::view::content;
use crate::{docs::docstring, panics};

/// A field of an `AppendConfig`. An error names it.
fn field<'py, T>(config: &Bound<'py, PyAny>, name: &str) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    let value = config.getattr(name)?;
    number(&format!("AppendConfig.{name}"), value.as_borrowed())
}

/// A field that is an integer of this type.
macro_rules! integer {
    ($config:ident, $name:literal, $type:ty) => {{
        let (least, most) = (<$type>::MIN, <$type>::MAX);
        field($config, $name).map_err(|error| {
            if !error.is_instance_of::<PyOverflowError>($config.py()) {
                return error;
            }
            let given = $config.getattr($name).map_or_else(|_| String::new(), |given| given.to_string());
            PyOverflowError::new_err(format!("AppendConfig.{} {given}: expected {least} to {most}", $name))
        })
    }};
}

/// The settings in an `AppendConfig`.
fn settings(config: &Bound<'_, PyAny>) -> PyResult<AppendConfig> {
    let has_level = !config.getattr("level")?.is_none();
    let level = has_level.then(|| integer!(config, "level", i32)).transpose()?;
    let compression: Option<Codec> = field(config, "compression")?;
    Ok(AppendConfig {
        max_message_bytes: integer!(config, "max_message_bytes", i32)?,
        max_decompressed_message_bytes: integer!(config, "max_decompressed_message_bytes", usize)?,
        segment_bytes: integer!(config, "segment_bytes", i32)?,
        compacted: field(config, "compacted")?,
        timestamp_type: match integer!(config, "message_timestamp_type", i32)? {
            1 => TimestampType::LogAppendTime,
            _ => TimestampType::CreateTime,
        },
        timestamp_before_max_ms: integer!(config, "message_timestamp_before_max_ms", i64)?,
        timestamp_after_max_ms: integer!(config, "message_timestamp_after_max_ms", i64)?,
        compression: match compression {
            None => TargetCompression::Producer,
            Some(Codec(codec)) => TargetCompression::Codec(codec, level),
        },
        message_format: integer!(config, "message_format", i8)?,
        max_decompressed_bytes: integer!(config, "max_decompressed_bytes", usize)?,
    })
}

/// A topic's settings, as the `AppendConfig` that was given and as ours; the defaults for None.
pub(super) fn topic(py: Python<'_>, config: Option<Bound<'_, PyAny>>) -> PyResult<(Py<PyAny>, AppendConfig)> {
    panics::here();
    let class = append_config_class(py)?;
    let config = match config {
        Some(config) if !config.is_instance(class)? => {
            let given = config.get_type().name()?;
            return Err(PyTypeError::new_err(format!("expected an AppendConfig, not {given}")));
        }
        Some(config) => config,
        None => class.call0()?,
    };
    let settings = settings(&config)?;
    Ok((config.unbind(), settings))
}

/// An `AppendOrigin`, by its number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Origin(pub(super) AppendOrigin);

impl Origin {
    pub(super) const CLIENT: Self = Self(AppendOrigin::Client);
}

impl<'a, 'py> FromPyObject<'a, 'py> for Origin {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<PyBool>() {
            return Err(PyTypeError::new_err("origin: expected an AppendOrigin, not bool"));
        }
        let number: PyResult<i64> = number("origin", object);
        Ok(Self(match number {
            Ok(0) => AppendOrigin::Replication,
            Ok(1) => AppendOrigin::Coordinator,
            Ok(2) => AppendOrigin::Client,
            Ok(3) => AppendOrigin::RaftLeader,
            Err(error) if !error.is_instance_of::<PyOverflowError>(object.py()) => return Err(error),
            _ => return Err(PyValueError::new_err(format!("origin {}: expected 0 to 3", object.str()?))),
        }))
    }
}

result_class! {
    broker, "magicbyte.broker", AppendInfo {
        records: Py<PyBytes>,
        first_offset: Option<i64>,
        last_offset: i64,
        max_timestamp: i64,
        offset_of_max_timestamp: i64,
        log_append_time: Option<i64>,
        temporary_memory_bytes: u64,
        records_converted: u64,
    } holds(records)
}

#[doc = docstring!(broker, AppendValidator)]
#[pyclass(frozen, name = "AppendValidator", module = "magicbyte.broker")]
pub(super) struct PyAppendValidator {
    validator: Locked<AppendValidator>,
    #[doc = docstring!(broker, AppendValidator.config)]
    #[pyo3(get)]
    config: Py<PyAny>,
}

#[pymethods]
impl PyAppendValidator {
    /// The configuration is the caller's object, which may refer to this one.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.config)
    }

    #[new]
    #[pyo3(signature = (config = None))]
    fn new(py: Python<'_>, config: Option<Bound<'_, PyAny>>) -> PyResult<Self> {
        let (config, settings) = topic(py, config)?;
        let validator = AppendValidator::new(settings).map_err(|e| to_py(py, &e))?;
        Ok(Self { validator: Locked::new(validator), config })
    }

    #[doc = docstring!(broker, AppendValidator.validate)]
    #[pyo3(
        signature = (records, *, next_offset = 0, leader_epoch = 0, origin = Origin::CLIENT, now = None),
        text_signature = "($self, records, *, next_offset=0, leader_epoch=0, \
            origin=magicbyte.broker.AppendOrigin.CLIENT, now=None)"
    )]
    fn validate(
        &self,
        py: Python<'_>,
        records: &Bound<'_, PyAny>,
        next_offset: i64,
        leader_epoch: i32,
        origin: Origin,
        now: Option<i64>,
    ) -> PyResult<Option<AppendInfo>> {
        let mut records = content("records", records)?.into_owned();
        let now = now.unwrap_or_else(clock);
        let append = Append { origin: origin.0, next_offset, leader_epoch, now };
        let validated = self.validator.with(py, |validator| validator.validate(&mut records, &append));
        let info = validated.map_err(|e| append_to_py(py, &e))?;
        Ok(info.map(|info| AppendInfo {
            records: PyBytes::new(py, &records).unbind(),
            first_offset: info.first_offset,
            last_offset: info.last_offset,
            max_timestamp: info.max_timestamp,
            offset_of_max_timestamp: info.offset_of_max_timestamp,
            log_append_time: info.log_append_time,
            temporary_memory_bytes: info.stats.temporary_memory_bytes,
            records_converted: info.stats.records_converted,
        }))
    }
}

/// The time of the system's clock (ms since 1970).
fn clock() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX)
}

#[doc = docstring!(broker, check_produce_request)]
#[pyfunction]
#[pyo3(signature = (records, version = 12))]
pub(super) fn check_produce_request(
    py: Python<'_>,
    records: &Bound<'_, PyAny>,
    version: i16,
) -> PyResult<()> {
    let records = content("records", records)?;
    check(&records, version).map_err(|e| append_to_py(py, &e))
}
