//! Appends, validated as by a broker.

use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use magicbyte::TimestampType;
use magicbyte::state::AppendOrigin;
use magicbyte_broker::{
    Append, AppendConfig, AppendValidator, TargetCompression, check_produce_request as check,
};

use crate::arguments::Codec;
use crate::classes::append_config_class;
use crate::errors::{append_to_py, to_py};
use crate::locked::Locked;
use crate::results::result_class;
use crate::view::content;
use crate::{docs::docstring, panics};

/// The attributes of an `AppendConfig`.
#[derive(FromPyObject)]
struct ConfigFields {
    max_message_bytes: i32,
    segment_bytes: i32,
    compacted: bool,
    message_timestamp_type: i32,
    message_timestamp_before_max_ms: i64,
    message_timestamp_after_max_ms: i64,
    compression: Option<Codec>,
    level: Option<i32>,
    message_format: i8,
    max_decompressed_bytes: usize,
}

impl ConfigFields {
    fn config(self) -> AppendConfig {
        let compression = match self.compression {
            None => TargetCompression::Producer,
            Some(Codec(codec)) => TargetCompression::Codec(codec, self.level),
        };
        let timestamp_type = match self.message_timestamp_type {
            1 => TimestampType::LogAppendTime,
            _ => TimestampType::CreateTime,
        };
        AppendConfig {
            max_message_bytes: self.max_message_bytes,
            segment_bytes: self.segment_bytes,
            compacted: self.compacted,
            timestamp_type,
            timestamp_before_max_ms: self.message_timestamp_before_max_ms,
            timestamp_after_max_ms: self.message_timestamp_after_max_ms,
            compression,
            message_format: self.message_format,
            max_decompressed_bytes: self.max_decompressed_bytes,
        }
    }
}

/// A topic's settings, as the `AppendConfig` that was given and as ours; the defaults for None.
pub(super) fn topic(py: Python<'_>, config: Option<Bound<'_, PyAny>>) -> PyResult<(Py<PyAny>, AppendConfig)> {
    panics::here();
    let config = match config {
        Some(config) => config,
        None => append_config_class(py)?.call0()?,
    };
    let fields: ConfigFields = config.extract()?;
    Ok((config.unbind(), fields.config()))
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
        let number: i64 = object.extract()?;
        Ok(Self(match number {
            0 => AppendOrigin::Replication,
            1 => AppendOrigin::Coordinator,
            2 => AppendOrigin::Client,
            3 => AppendOrigin::RaftLeader,
            _ => return Err(PyValueError::new_err(format!("origin {number}: expected 0 to 3"))),
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
    }
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
    #[new]
    #[pyo3(signature = (config = None))]
    fn new(py: Python<'_>, config: Option<Bound<'_, PyAny>>) -> PyResult<Self> {
        let (config, settings) = topic(py, config)?;
        let validator = AppendValidator::new(settings).map_err(|e| to_py(py, &e))?;
        Ok(Self { validator: Locked::new(validator), config })
    }

    #[doc = docstring!(broker, AppendValidator.validate)]
    #[pyo3(signature = (records, *, next_offset = 0, leader_epoch = 0, origin = Origin::CLIENT, now = None))]
    fn validate(
        &self,
        py: Python<'_>,
        records: &Bound<'_, PyAny>,
        next_offset: i64,
        leader_epoch: i32,
        origin: Origin,
        now: Option<i64>,
    ) -> PyResult<Option<AppendInfo>> {
        let mut records = content(records)?.into_owned();
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
    let records = content(records)?;
    check(&records, version).map_err(|e| append_to_py(py, &e))
}
