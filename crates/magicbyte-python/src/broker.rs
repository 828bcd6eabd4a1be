//! Appends, validated as by a broker.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use magicbyte::TimestampType;
use magicbyte::state::AppendOrigin;
use magicbyte_broker::{
    Append, AppendConfig, AppendInfo, AppendValidator, TargetCompression, check_produce_request as check,
};

use crate::arguments::Codec;
use crate::errors::{append_to_py, to_py};
use crate::locked::Locked;
use crate::view::content;
use crate::{docs::docstring, panics};

/// The topic's configuration; every field is given.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct ConfigFields {
    max_message_bytes: i32,
    segment_bytes: i32,
    compacted: bool,
    log_append_time: bool,
    timestamp_before_max_ms: i64,
    timestamp_after_max_ms: i64,
    compression: Option<Codec>,
    level: Option<i32>,
    message_format: i8,
    max_decompressed_bytes: usize,
}

impl ConfigFields {
    pub(super) fn config(self) -> AppendConfig {
        panics::here();
        let compression = match self.compression {
            None => TargetCompression::Producer,
            Some(Codec(codec)) => TargetCompression::Codec(codec, self.level),
        };
        let timestamp_type = match self.log_append_time {
            true => TimestampType::LogAppendTime,
            false => TimestampType::CreateTime,
        };
        AppendConfig {
            max_message_bytes: self.max_message_bytes,
            segment_bytes: self.segment_bytes,
            compacted: self.compacted,
            timestamp_type,
            timestamp_before_max_ms: self.timestamp_before_max_ms,
            timestamp_after_max_ms: self.timestamp_after_max_ms,
            compression,
            message_format: self.message_format,
            max_decompressed_bytes: self.max_decompressed_bytes,
        }
    }
}

/// The `AppendOrigin` with this number.
pub(super) fn origin(number: u8) -> PyResult<AppendOrigin> {
    Ok(match number {
        0 => AppendOrigin::Replication,
        1 => AppendOrigin::Coordinator,
        2 => AppendOrigin::Client,
        3 => AppendOrigin::RaftLeader,
        _ => return Err(PyValueError::new_err(format!("origin {number}: expected 0 to 3"))),
    })
}

/// The fields of `AppendInfo` in order, without the records.
pub(super) type InfoFields = (Option<i64>, i64, i64, i64, Option<i64>, u64, u64);

pub(super) fn info_fields(info: &AppendInfo) -> InfoFields {
    (
        info.first_offset,
        info.last_offset,
        info.max_timestamp,
        info.offset_of_max_timestamp,
        info.log_append_time,
        info.stats.temporary_memory_bytes,
        info.stats.records_converted,
    )
}

#[doc = docstring!(broker, AppendValidatorCore)]
#[pyclass(frozen, name = "AppendValidatorCore", module = "magicbyte._core")]
pub(super) struct PyAppendValidator(Locked<AppendValidator>);

#[pymethods]
impl PyAppendValidator {
    #[new]
    fn new(py: Python<'_>, config: ConfigFields) -> PyResult<Self> {
        let validator = AppendValidator::new(config.config()).map_err(|e| to_py(py, &e))?;
        Ok(Self(Locked::new(validator)))
    }

    #[doc = docstring!(broker, AppendValidatorCore.validate)]
    fn validate<'py>(
        &self,
        py: Python<'py>,
        records: &Bound<'py, PyAny>,
        origin_number: u8,
        next_offset: i64,
        leader_epoch: i32,
        now: i64,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, InfoFields)>> {
        let mut records = content(records)?.into_owned();
        let append = Append { origin: origin(origin_number)?, next_offset, leader_epoch, now };
        let validated = self.0.with(py, |validator| validator.validate(&mut records, &append));
        let info = validated.map_err(|e| append_to_py(py, &e))?;
        Ok(info.map(|info| (PyBytes::new(py, &records), info_fields(&info))))
    }
}

#[doc = docstring!(broker, check_produce_request)]
#[pyfunction]
pub(super) fn check_produce_request(
    py: Python<'_>,
    records: &Bound<'_, PyAny>,
    version: i16,
) -> PyResult<()> {
    let records = content(records)?;
    check(&records, version).map_err(|e| append_to_py(py, &e))
}
