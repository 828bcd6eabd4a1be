//! A partition in memory.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use magicbyte_broker::{AppendError, Appended, OffsetSpec, PartitionSimulator, TransactionEnd};

use crate::broker::{ConfigFields, InfoFields, info_fields, origin};
use crate::docs::docstring;
use crate::errors::{append_to_py, to_py};
use crate::locked::Locked;
use crate::state::{ProducerFields, producer_fields};
use crate::view::{content, parse_name};

#[doc = docstring!(broker, PartitionSimulatorCore)]
#[pyclass(frozen, name = "PartitionSimulatorCore", module = "magicbyte._core")]
pub(super) struct PySimulator(Locked<PartitionSimulator>);

/// Records, high watermark, last stable offset, log start offset, aborted transactions.
type FetchedFields<'py> = (Bound<'py, PyBytes>, i64, i64, i64, Vec<(i64, i64, i64)>);

impl PySimulator {
    fn append_by(
        &self,
        py: Python<'_>,
        append: impl FnOnce(&mut PartitionSimulator) -> Result<Appended, AppendError> + Send,
    ) -> PyResult<(InfoFields, bool)> {
        let appended = self.0.with(py, append).map_err(|e| append_to_py(py, &e))?;
        Ok((info_fields(&appended.info), appended.duplicate))
    }
}

#[pymethods]
impl PySimulator {
    #[new]
    fn new(py: Python<'_>, config: ConfigFields) -> PyResult<Self> {
        let simulator = PartitionSimulator::new(config.config()).map_err(|e| to_py(py, &e))?;
        Ok(Self(Locked::new(simulator)))
    }

    #[doc = docstring!(broker, PartitionSimulatorCore.produce)]
    fn produce(
        &self,
        py: Python<'_>,
        records: &Bound<'_, PyAny>,
        version: i16,
    ) -> PyResult<(InfoFields, bool)> {
        let records = content(records)?;
        self.append_by(py, |partition| partition.produce(&records, version))
    }

    #[doc = docstring!(broker, PartitionSimulatorCore.append)]
    fn append(
        &self,
        py: Python<'_>,
        records: &Bound<'_, PyAny>,
        origin_number: u8,
    ) -> PyResult<(InfoFields, bool)> {
        let (records, origin) = (content(records)?, origin(origin_number)?);
        self.append_by(py, |partition| partition.append(&records, origin))
    }

    #[doc = docstring!(broker, PartitionSimulatorCore.end_transaction)]
    fn end_transaction(
        &self,
        py: Python<'_>,
        producer_id: i64,
        producer_epoch: i16,
        committed: bool,
        coordinator_epoch: i32,
        transaction_version: i16,
    ) -> PyResult<(InfoFields, bool)> {
        let end =
            TransactionEnd { producer_id, producer_epoch, committed, coordinator_epoch, transaction_version };
        self.append_by(py, |partition| partition.end_transaction(end))
    }

    #[doc = docstring!(broker, PartitionSimulatorCore.fetch)]
    fn fetch<'py>(
        &self,
        py: Python<'py>,
        offset: i64,
        max_bytes: usize,
        isolation_level: &str,
    ) -> PyResult<FetchedFields<'py>> {
        let isolation = parse_name(isolation_level)?;
        let fetched = self.0.with(py, |partition| partition.fetch(offset, max_bytes, isolation));
        let fetched = fetched.map_err(|e| append_to_py(py, &e))?;
        let aborted = fetched.aborted_transactions.into_iter().map(Into::into).collect();
        let records = PyBytes::new(py, &fetched.records);
        Ok((records, fetched.high_watermark, fetched.last_stable_offset, fetched.log_start_offset, aborted))
    }

    #[doc = docstring!(broker, PartitionSimulatorCore.list_offset)]
    fn list_offset(
        &self,
        py: Python<'_>,
        timestamp: i64,
        isolation_level: &str,
    ) -> PyResult<Option<(i64, i64, i32)>> {
        let spec = match timestamp {
            -1 => OffsetSpec::Latest,
            -2 => OffsetSpec::Earliest,
            -3 => OffsetSpec::MaxTimestamp,
            0.. => OffsetSpec::Timestamp(timestamp),
            _ => {
                return Err(PyValueError::new_err(format!(
                    "timestamp {timestamp}: expected -3 to -1, or at least 0"
                )));
            }
        };
        let isolation = parse_name(isolation_level)?;
        let listed = self.0.with(py, |partition| partition.list_offset(spec, isolation));
        let listed = listed.map_err(|e| append_to_py(py, &e))?;
        Ok(listed.map(|listed| (listed.timestamp, listed.offset, listed.leader_epoch)))
    }

    fn elect_leader(&self, py: Python<'_>) -> i32 {
        self.0.with(py, PartitionSimulator::elect_leader)
    }

    fn truncate(&self, py: Python<'_>, offset: i64) -> PyResult<()> {
        self.0.with(py, |partition| partition.truncate(offset)).map_err(|e| append_to_py(py, &e))
    }

    fn delete_records(&self, py: Python<'_>, before_offset: i64) -> PyResult<i64> {
        self.0.with(py, |partition| partition.delete_records(before_offset)).map_err(|e| append_to_py(py, &e))
    }

    #[doc = docstring!(broker, PartitionSimulatorCore.producers)]
    fn producers(&self, py: Python<'_>) -> Vec<ProducerFields> {
        self.0.with(py, |partition| partition.producers().entries().iter().map(producer_fields).collect())
    }

    #[getter]
    fn now(&self, py: Python<'_>) -> i64 {
        self.0.with(py, |partition| partition.now())
    }

    fn set_now(&self, py: Python<'_>, now: i64) {
        self.0.with(py, |partition| partition.set_now(now));
    }

    #[getter]
    fn leader_epoch(&self, py: Python<'_>) -> i32 {
        self.0.with(py, |partition| partition.leader_epoch())
    }

    #[getter]
    fn log_start_offset(&self, py: Python<'_>) -> i64 {
        self.0.with(py, |partition| partition.log_start_offset())
    }

    #[getter]
    fn last_stable_offset(&self, py: Python<'_>) -> i64 {
        self.0.with(py, |partition| partition.last_stable_offset())
    }

    #[getter]
    fn log_end_offset(&self, py: Python<'_>) -> i64 {
        self.0.with(py, |partition| partition.log_end_offset())
    }
}
