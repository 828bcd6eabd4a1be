//! A partition in memory.

use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use magicbyte_broker::{AppendError, Appended, OffsetSpec, PartitionSimulator, TransactionEnd};

use crate::broker::{Origin, topic};
use crate::docs::docstring;
use crate::errors::{append_to_py, to_py};
use crate::locked::Locked;
use crate::results::result_class;
use crate::state::{AbortedTransaction, ProducerStateEntry};
use crate::view::{content, parse_name};

result_class! {
    broker, "magicbyte.broker", ProduceResponse {
        base_offset: i64,
        last_offset: i64,
        log_append_time: i64,
        log_start_offset: i64,
        is_duplicate: bool,
    }
}

result_class! {
    broker, "magicbyte.broker", FetchResponse {
        records: Py<PyBytes>,
        high_watermark: i64,
        last_stable_offset: i64,
        log_start_offset: i64,
        aborted_transactions: Py<PyList>,
    } holds(records, aborted_transactions)
}

result_class! {
    broker, "magicbyte.broker", ListedOffset {
        timestamp: i64,
        offset: i64,
        leader_epoch: i32,
    }
}

#[doc = docstring!(broker, PartitionSimulator)]
#[pyclass(frozen, name = "PartitionSimulator", module = "magicbyte.broker")]
pub(super) struct PySimulator {
    partition: Locked<PartitionSimulator>,
    #[doc = docstring!(broker, PartitionSimulator.config)]
    #[pyo3(get)]
    config: Py<PyAny>,
}

impl PySimulator {
    fn append_by(
        &self,
        py: Python<'_>,
        append: impl FnOnce(&mut PartitionSimulator) -> Result<Appended, AppendError> + Send,
    ) -> PyResult<ProduceResponse> {
        let appended = self.partition.with(py, |partition| {
            let Appended { info, duplicate, .. } = append(partition)?;
            Ok(ProduceResponse {
                base_offset: info.first_offset.unwrap_or(-1),
                last_offset: info.last_offset,
                log_append_time: info.log_append_time.unwrap_or(-1),
                log_start_offset: partition.log_start_offset(),
                is_duplicate: duplicate,
            })
        });
        appended.map_err(|e| append_to_py(py, &e))
    }
}

#[pymethods]
impl PySimulator {
    /// The configuration is the caller's object, which may refer to this one.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.config)
    }

    #[new]
    #[pyo3(signature = (config = None, *, clock = 0))]
    fn new(py: Python<'_>, config: Option<Bound<'_, PyAny>>, clock: i64) -> PyResult<Self> {
        let (config, settings) = topic(py, config)?;
        let mut partition = PartitionSimulator::new(settings).map_err(|e| to_py(py, &e))?;
        partition.set_now(clock);
        Ok(Self { partition: Locked::new(partition), config })
    }

    #[doc = docstring!(broker, PartitionSimulator.append)]
    #[pyo3(
        signature = (records, *, origin = Origin::CLIENT, produce_version = Some(12)),
        text_signature = "($self, records, *, origin=magicbyte.broker.AppendOrigin.CLIENT, produce_version=12)"
    )]
    fn append(
        &self,
        py: Python<'_>,
        records: &Bound<'_, PyAny>,
        origin: Origin,
        produce_version: Option<i16>,
    ) -> PyResult<ProduceResponse> {
        let records = content("records", records)?;
        self.append_by(py, |partition| match (origin, produce_version) {
            (Origin::CLIENT, Some(version)) => partition.produce(&records, version),
            (origin, _) => partition.append(&records, origin.0),
        })
    }

    #[doc = docstring!(broker, PartitionSimulator.end_transaction)]
    #[pyo3(signature = (
        producer_id, producer_epoch, committed, *, coordinator_epoch = 0, transaction_version = 1
    ))]
    fn end_transaction(
        &self,
        py: Python<'_>,
        producer_id: i64,
        producer_epoch: i16,
        committed: bool,
        coordinator_epoch: i32,
        transaction_version: i16,
    ) -> PyResult<ProduceResponse> {
        let end =
            TransactionEnd { producer_id, producer_epoch, committed, coordinator_epoch, transaction_version };
        self.append_by(py, |partition| partition.end_transaction(end))
    }

    #[doc = docstring!(broker, PartitionSimulator.fetch)]
    #[pyo3(signature = (offset, max_bytes = 1_048_576, *, isolation_level = "read_uncommitted"))]
    fn fetch(
        &self,
        py: Python<'_>,
        offset: i64,
        max_bytes: usize,
        isolation_level: &str,
    ) -> PyResult<FetchResponse> {
        let isolation = parse_name(isolation_level)?;
        let fetched = self.partition.with(py, |partition| partition.fetch(offset, max_bytes, isolation));
        let fetched = fetched.map_err(|e| append_to_py(py, &e))?;
        let aborted: Vec<AbortedTransaction> =
            fetched.aborted_transactions.into_iter().map(Into::into).collect();
        Ok(FetchResponse {
            records: PyBytes::new(py, &fetched.records).unbind(),
            high_watermark: fetched.high_watermark,
            last_stable_offset: fetched.last_stable_offset,
            log_start_offset: fetched.log_start_offset,
            aborted_transactions: PyList::new(py, aborted)?.unbind(),
        })
    }

    #[doc = docstring!(broker, PartitionSimulator.list_offsets)]
    #[pyo3(signature = (timestamp, *, isolation_level = "read_uncommitted"))]
    fn list_offsets(
        &self,
        py: Python<'_>,
        timestamp: &Bound<'_, PyAny>,
        isolation_level: &str,
    ) -> PyResult<Option<ListedOffset>> {
        let spec = offset_spec(timestamp)?;
        let isolation = parse_name(isolation_level)?;
        let listed = self.partition.with(py, |partition| partition.list_offset(spec, isolation));
        let listed = listed.map_err(|e| append_to_py(py, &e))?;
        Ok(listed.map(|listed| ListedOffset {
            timestamp: listed.timestamp,
            offset: listed.offset,
            leader_epoch: listed.leader_epoch,
        }))
    }

    #[doc = docstring!(broker, PartitionSimulator.elect_leader)]
    fn elect_leader(&self, py: Python<'_>) -> i32 {
        self.partition.with(py, PartitionSimulator::elect_leader)
    }

    #[doc = docstring!(broker, PartitionSimulator.truncate)]
    fn truncate(&self, py: Python<'_>, offset: i64) -> PyResult<()> {
        self.partition.with(py, |partition| partition.truncate(offset)).map_err(|e| append_to_py(py, &e))
    }

    #[doc = docstring!(broker, PartitionSimulator.delete_records)]
    #[pyo3(signature = (before_offset = -1), text_signature = "($self, before_offset=-1)")]
    fn delete_records(&self, py: Python<'_>, before_offset: i64) -> PyResult<i64> {
        let start = self.partition.with(py, |partition| partition.delete_records(before_offset));
        start.map_err(|e| append_to_py(py, &e))
    }

    #[doc = docstring!(broker, PartitionSimulator.producers)]
    #[getter]
    fn producers(&self, py: Python<'_>) -> PyResult<Vec<ProducerStateEntry>> {
        let entries = self.partition.with(py, |partition| partition.producers().entries().to_vec());
        ProducerStateEntry::all(py, &entries)
    }

    #[doc = docstring!(broker, PartitionSimulator.clock)]
    #[getter]
    fn clock(&self, py: Python<'_>) -> i64 {
        self.partition.with(py, |partition| partition.now())
    }

    #[setter]
    fn set_clock(&self, py: Python<'_>, now: i64) {
        self.partition.with(py, |partition| partition.set_now(now));
    }

    #[doc = docstring!(broker, PartitionSimulator.advance)]
    fn advance(&self, py: Python<'_>, ms: i64) -> PyResult<()> {
        self.partition
            .with(py, |partition| {
                let now = partition.now().checked_add(ms)?;
                partition.set_now(now);
                Some(())
            })
            .ok_or_else(|| PyValueError::new_err(format!("{ms} ms: the clock would leave its range")))
    }

    #[doc = docstring!(broker, PartitionSimulator.leader_epoch)]
    #[getter]
    fn leader_epoch(&self, py: Python<'_>) -> i32 {
        self.partition.with(py, |partition| partition.leader_epoch())
    }

    #[doc = docstring!(broker, PartitionSimulator.log_start_offset)]
    #[getter]
    fn log_start_offset(&self, py: Python<'_>) -> i64 {
        self.partition.with(py, |partition| partition.log_start_offset())
    }

    #[doc = docstring!(broker, PartitionSimulator.last_stable_offset)]
    #[getter]
    fn last_stable_offset(&self, py: Python<'_>) -> i64 {
        self.partition.with(py, |partition| partition.last_stable_offset())
    }

    #[doc = docstring!(broker, PartitionSimulator.log_end_offset)]
    #[getter]
    fn log_end_offset(&self, py: Python<'_>) -> i64 {
        self.partition.with(py, |partition| partition.log_end_offset())
    }
}

/// The offset that is looked up: by the name of a place in the log, or a timestamp (ms).
fn offset_spec(timestamp: &Bound<'_, PyAny>) -> PyResult<OffsetSpec> {
    if let Ok(name) = timestamp.cast::<PyString>() {
        return match name.to_str()? {
            "latest" => Ok(OffsetSpec::Latest),
            "earliest" => Ok(OffsetSpec::Earliest),
            "max_timestamp" => Ok(OffsetSpec::MaxTimestamp),
            other => Err(PyValueError::new_err(format!(
                "timestamp {other:?}: expected \"earliest\", \"latest\" or \"max_timestamp\""
            ))),
        };
    }
    match timestamp.extract()? {
        -1 => Ok(OffsetSpec::Latest),
        -2 => Ok(OffsetSpec::Earliest),
        -3 => Ok(OffsetSpec::MaxTimestamp),
        at @ 0.. => Ok(OffsetSpec::Timestamp(at)),
        at => Err(PyValueError::new_err(format!("timestamp {at}: expected -3 to -1, or at least 0"))),
    }
}
