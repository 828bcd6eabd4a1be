//! Producer state, leader epochs, the consumer's filter, and a partition's history.

use std::collections::BTreeMap;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::PyBytes;

use magicbyte::Batch;
use magicbyte::sidecar::ProducerStateManager;
use magicbyte::state::{
    Admission, AppendOrigin, AppendTerms, BatchMetadata, CompletedTransaction, EpochEntry, ProducerEvent,
    ProducerStateEntry, Verdict, VerificationGuard,
};
use magicbyte_log::{CoordinatedTransaction, HistoryOptions, steps};

use crate::batch::BatchBase;
use crate::errors::log_to_py;
use crate::jobs::{parse, parse_located, to_json};
use crate::locked::Locked;
use crate::view::items;
use crate::{docs::docstring, panics};

#[doc = docstring!(steps, segment_history)]
#[pyfunction]
#[pyo3(signature = (segment, *, log_start_offset = None))]
pub(super) fn segment_history(
    py: Python<'_>,
    segment: &str,
    log_start_offset: Option<i64>,
) -> PyResult<String> {
    let segment = parse_located(segment)?;
    let history = py.detach(|| steps::segment_history(&segment, log_start_offset));
    to_json(&history.map_err(|e| log_to_py(py, &e))?)
}

#[doc = docstring!(steps, partition_history)]
#[allow(clippy::too_many_arguments, reason = "keyword arguments of a Python function")]
#[pyfunction]
#[pyo3(signature = (listing, histories, *, now, transaction_max_timeout_ms, coordinated, bins, listed))]
pub(super) fn partition_history(
    py: Python<'_>,
    listing: &str,
    #[pyo3(from_py_with = items)] histories: Vec<PyBackedStr>,
    now: i64,
    transaction_max_timeout_ms: i64,
    #[pyo3(from_py_with = items)] coordinated: Vec<(i64, String, String)>,
    bins: usize,
    listed: usize,
) -> PyResult<String> {
    let listing = parse(listing)?;
    let histories: PyResult<Vec<_>> = histories.iter().map(|history| parse(history)).collect();
    let histories = histories?;
    let coordinated = coordinated
        .into_iter()
        .map(|(producer_id, transactional_id, state)| CoordinatedTransaction {
            producer_id,
            transactional_id,
            state,
        })
        .collect();
    let options = HistoryOptions { now, transaction_max_timeout_ms, coordinated, bins, listed };
    let history = py.detach(|| steps::partition_history(&listing, &histories, &options));
    to_json(&history.map_err(|e| log_to_py(py, &e))?)
}

#[doc = docstring!(state, AbortedFilter)]
#[pyclass(frozen, module = "magicbyte._core")]
pub(super) struct AbortedFilter {
    filter: Locked<magicbyte::state::AbortedFilter>,
}

#[pymethods]
impl AbortedFilter {
    #[new]
    fn new(#[pyo3(from_py_with = items)] aborted: Vec<(i64, i64)>) -> Self {
        Self { filter: Locked::new(magicbyte::state::AbortedFilter::new(aborted)) }
    }

    #[doc = docstring!(state, AbortedFilter.admit)]
    fn admit(&self, py: Python<'_>, batch: &BatchBase) -> PyResult<&'static str> {
        let admission = batch.detached(py, |thread, batch, decompressor| {
            self.filter.lock(thread).admit(batch, decompressor)
        })?;
        Ok(match admission {
            Admission::Deliver => "deliver",
            Admission::Aborted => "aborted",
            Admission::Control => "control",
        })
    }
}

#[doc = docstring!(state, LeaderEpochsCore)]
#[pyclass(frozen, name = "LeaderEpochsCore", module = "magicbyte._core")]
pub(super) struct PyLeaderEpochs {
    epochs: Locked<magicbyte::state::LeaderEpochs>,
}

type Entry = (i32, i64);

fn entry_of(entry: EpochEntry) -> Entry {
    (entry.epoch, entry.start_offset)
}

#[pymethods]
impl PyLeaderEpochs {
    #[new]
    #[pyo3(signature = (entries = Vec::new()))]
    fn new(#[pyo3(from_py_with = items)] entries: Vec<Entry>) -> Self {
        let entries = entries.into_iter().map(|(epoch, start_offset)| EpochEntry { epoch, start_offset });
        let epochs = magicbyte::state::LeaderEpochs::from_entries(&entries.collect::<Vec<_>>());
        Self { epochs: Locked::new(epochs) }
    }

    #[getter]
    fn entries(&self, py: Python<'_>) -> Vec<Entry> {
        self.epochs.with(py, |epochs| epochs.entries().iter().copied().map(entry_of).collect())
    }

    fn assign(&self, py: Python<'_>, epoch: i32, start_offset: i64) -> PyResult<()> {
        if epoch < 0 || start_offset < 0 {
            return Err(PyValueError::new_err("an epoch and its start offset must be at least 0"));
        }
        self.epochs.with(py, |epochs| epochs.assign(EpochEntry { epoch, start_offset }));
        Ok(())
    }

    fn truncate_from_start(&self, py: Python<'_>, start_offset: i64) {
        self.epochs.with(py, |epochs| epochs.truncate_from_start(start_offset));
    }

    fn truncate_from_end(&self, py: Python<'_>, end_offset: i64) {
        self.epochs.with(py, |epochs| epochs.truncate_from_end(end_offset));
    }

    fn epoch_for_offset(&self, py: Python<'_>, offset: i64) -> Option<i32> {
        self.epochs.with(py, |epochs| epochs.epoch_for_offset(offset))
    }

    fn previous_epoch(&self, py: Python<'_>, epoch: i32) -> Option<i32> {
        self.epochs.with(py, |epochs| epochs.previous(epoch).map(|entry| entry.epoch))
    }

    fn next_epoch(&self, py: Python<'_>, epoch: i32) -> Option<i32> {
        self.epochs.with(py, |epochs| epochs.next(epoch).map(|entry| entry.epoch))
    }

    fn end_offset_for_epoch(&self, py: Python<'_>, epoch: i32, log_end_offset: i64) -> Option<Entry> {
        self.epochs.with(py, |epochs| epochs.end_offset_for_epoch(epoch, log_end_offset))
    }

    #[doc = docstring!(state, LeaderEpochsCore.truncation)]
    #[allow(clippy::type_complexity, reason = "a tuple that Python takes apart at once")]
    fn truncation(
        &self,
        py: Python<'_>,
        log_end_offset: i64,
        leader: &Self,
        leader_end_offset: i64,
    ) -> (Option<i64>, Vec<(i32, Option<Entry>)>) {
        let follower = self.epochs.with(py, |epochs| epochs.clone());
        let leader = leader.epochs.with(py, |epochs| epochs.clone());
        let found = magicbyte::state::truncation(&follower, log_end_offset, &leader, leader_end_offset);
        (found.offset, found.questions)
    }
}

fn origin_of(name: &str) -> PyResult<AppendOrigin> {
    match name {
        "client" => Ok(AppendOrigin::Client),
        "coordinator" => Ok(AppendOrigin::Coordinator),
        "replication" => Ok(AppendOrigin::Replication),
        other => Err(PyValueError::new_err(format!(
            "origin {other:?}: expected \"client\", \"coordinator\" or \"replication\""
        ))),
    }
}

/// First sequence, first offset, last sequence, last offset, timestamp.
pub(super) type BatchFields = (i32, i64, i32, i64, i64);
/// Producer ID, first offset, last offset, committed, last stable offset.
type Ended = (i64, i64, i64, bool, i64);
/// Producer ID, epoch, coordinator epoch, last timestamp, first offset of the open transaction, last batches.
pub(super) type ProducerFields = (i64, i16, i32, i64, Option<i64>, Vec<BatchFields>);

#[doc = docstring!(state, ProducerStateManagerCore)]
#[pyclass(frozen, name = "ProducerStateManagerCore", module = "magicbyte._core")]
pub(super) struct PyProducerStateManager {
    state: Locked<ProducerStateManager>,
}

impl PyProducerStateManager {
    fn event(py: Python<'_>, batch: &BatchBase) -> PyResult<Option<ProducerEvent>> {
        batch.detached(py, |_, batch, decompressor| match batch {
            Batch::V2(batch) => ProducerEvent::of(batch, decompressor),
            Batch::Legacy(_) => Ok(None),
        })
    }
}

#[pymethods]
impl PyProducerStateManager {
    #[new]
    #[pyo3(signature = (snapshots = BTreeMap::new(), *, expiration_ms = 86_400_000))]
    fn new(snapshots: BTreeMap<i64, PyBackedBytes>, expiration_ms: i64) -> Self {
        panics::here();
        let snapshots = snapshots.iter().map(|(&offset, bytes)| (offset, bytes.to_vec())).collect();
        Self { state: Locked::new(ProducerStateManager::new(snapshots, expiration_ms)) }
    }

    #[doc = docstring!(state, ProducerStateManagerCore.check)]
    #[pyo3(signature = (batch, *, origin = "client", transaction_version = 0, guard = None))]
    fn check(
        &self,
        py: Python<'_>,
        batch: &BatchBase,
        origin: &str,
        transaction_version: i16,
        guard: Option<&Guard>,
    ) -> PyResult<(&'static str, String, Option<BatchFields>)> {
        let verification = guard.map(|guard| guard.0);
        let terms = AppendTerms { origin: origin_of(origin)?, transaction_version, verification };
        let Some(event) = Self::event(py, batch)? else { return Ok(("append", String::new(), None)) };
        Ok(match self.state.with(py, |state| state.producers.check(&event, terms)) {
            Verdict::Append => ("append", String::new(), None),
            Verdict::Duplicate(batch) => ("duplicate", String::new(), Some(batch_of(&batch))),
            Verdict::Refuse(refusal) => (refusal.name(), refusal.to_string(), None),
        })
    }

    #[doc = docstring!(state, ProducerStateManagerCore.apply)]
    fn apply(&self, py: Python<'_>, batch: &BatchBase) -> PyResult<Option<Ended>> {
        let Some(event) = Self::event(py, batch)? else { return Ok(None) };
        let ended = self.state.with(py, |state| state.producers.apply(&event));
        Ok(ended.map(|e| (e.producer_id, e.first_offset, e.last_offset, e.committed, e.last_stable_offset)))
    }

    #[doc = docstring!(state, ProducerStateManagerCore.apply_together)]
    fn apply_together(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = items)] batches: Vec<PyRef<'_, BatchBase>>,
    ) -> PyResult<Vec<Ended>> {
        let events: PyResult<Vec<_>> = batches.iter().map(|batch| Self::event(py, batch)).collect();
        let events: Vec<_> = events?.into_iter().flatten().collect();
        let ended = self.state.with(py, |state| state.producers.apply_together(&events));
        let fields = |e: CompletedTransaction| {
            (e.producer_id, e.first_offset, e.last_offset, e.committed, e.last_stable_offset)
        };
        Ok(ended.into_iter().map(fields).collect())
    }

    fn start_verification(
        &self,
        py: Python<'_>,
        producer_id: i64,
        sequence: i32,
        epoch: i16,
        supports_epoch_bump: bool,
        now: i64,
    ) -> PyResult<Guard> {
        let guard = self.state.with(py, |state| {
            state.producers.start_verification(producer_id, sequence, epoch, supports_epoch_bump, now)
        });
        guard.map(Guard).map_err(|refusal| PyValueError::new_err(format!("{}: {refusal}", refusal.name())))
    }

    #[doc = docstring!(state, ProducerStateManagerCore.producers)]
    fn producers(&self, py: Python<'_>) -> Vec<ProducerFields> {
        self.state.with(py, |state| state.producers.entries().iter().map(producer_fields).collect())
    }

    #[getter]
    fn first_unstable_offset(&self, py: Python<'_>) -> Option<i64> {
        self.state.with(py, |state| state.producers.first_unstable_offset())
    }

    #[getter]
    fn first_undecided_offset(&self, py: Python<'_>) -> Option<i64> {
        self.state.with(py, |state| state.producers.first_undecided_offset())
    }

    #[getter]
    fn oldest_transaction_timestamp(&self, py: Python<'_>) -> Option<i64> {
        self.state.with(py, |state| state.producers.oldest_transaction_timestamp())
    }

    fn set_high_watermark(&self, py: Python<'_>, offset: i64) {
        self.state.with(py, |state| state.producers.set_high_watermark(offset));
    }

    #[getter]
    fn end_offset(&self, py: Python<'_>) -> i64 {
        self.state.with(py, |state| state.end_offset())
    }

    fn set_end_offset(&self, py: Python<'_>, offset: i64) {
        self.state.with(py, |state| state.set_end_offset(offset));
    }

    fn take_snapshot(&self, py: Python<'_>) -> Option<i64> {
        self.state.with(py, ProducerStateManager::take_snapshot)
    }

    fn snapshots<'py>(&self, py: Python<'py>) -> BTreeMap<i64, Bound<'py, PyBytes>> {
        let snapshots = self.state.with(py, |state| state.snapshots().clone());
        snapshots.iter().map(|(&offset, bytes)| (offset, PyBytes::new(py, bytes))).collect()
    }

    fn truncate_and_reload(&self, py: Python<'_>, log_start_offset: i64, log_end_offset: i64, now: i64) {
        self.state.with(py, |state| state.truncate_and_reload(log_start_offset, log_end_offset, now));
    }

    fn set_log_start_offset(&self, py: Python<'_>, offset: i64) {
        self.state.with(py, |state| state.set_log_start_offset(offset));
    }

    fn truncate_fully_and_start_at(&self, py: Python<'_>, offset: i64) {
        self.state.with(py, |state| state.truncate_fully_and_start_at(offset));
    }

    fn remove_expired_producers(&self, py: Python<'_>, now: i64) {
        self.state.with(py, |state| state.remove_expired_producers(now));
    }

    fn delete_snapshots_before(&self, py: Python<'_>, offset: i64) {
        self.state.with(py, |state| state.delete_snapshots_before(offset));
    }

    fn remove_stray_snapshots(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = items)] segment_base_offsets: Vec<i64>,
    ) {
        self.state
            .with(py, |state| state.remove_stray_snapshots(&segment_base_offsets.into_iter().collect()));
    }
}

pub(super) fn producer_fields(entry: &ProducerStateEntry) -> ProducerFields {
    (
        entry.producer_id,
        entry.producer_epoch,
        entry.coordinator_epoch,
        entry.last_timestamp,
        entry.current_txn_first_offset,
        entry.batches().iter().map(batch_of).collect(),
    )
}

fn batch_of(batch: &BatchMetadata) -> BatchFields {
    (batch.first_sequence(), batch.first_offset(), batch.last_sequence, batch.last_offset, batch.timestamp)
}

#[doc = docstring!(state, VerificationGuard)]
#[pyclass(frozen, module = "magicbyte._core", name = "VerificationGuard")]
pub(super) struct Guard(VerificationGuard);

#[pymethods]
impl Guard {
    /// The guard of a request that is not verified.
    #[new]
    fn new() -> Self {
        Self(VerificationGuard::SENTINEL)
    }
}
