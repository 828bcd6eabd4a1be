//! Producer state, leader epochs, the consumer's filter, and a partition's history.

use std::collections::BTreeMap;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use magicbyte::Batch;
use magicbyte::sidecar::ProducerStateManager;
use magicbyte::state::{
    self, Admission, AppendOrigin, AppendTerms, EpochEntry, LeaderEpochs, ProducerEvent, Verdict,
    VerificationGuard, truncation,
};
use magicbyte_log::{CoordinatedTransaction, HistoryOptions, steps};

use crate::batch::BatchBase;
use crate::errors::log_to_py;
use crate::json::{parse, parse_located, to_json};
use crate::locked::Locked;
use crate::results::result_class;
use crate::view::{content, items};
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
    filter: Locked<state::AbortedFilter>,
}

#[pymethods]
impl AbortedFilter {
    #[new]
    fn new(#[pyo3(from_py_with = items)] aborted: Vec<(i64, i64)>) -> Self {
        Self { filter: Locked::new(state::AbortedFilter::new(aborted)) }
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

type Entry = (i32, i64);

result_class! {
    state, "magicbyte.state", Truncation {
        offset: Option<i64>,
        questions: Py<PyList>,
    } holds(questions)
}

#[doc = docstring!(state, LeaderEpochs)]
#[pyclass(frozen, name = "LeaderEpochs", module = "magicbyte.state")]
pub(super) struct PyLeaderEpochs {
    epochs: Locked<LeaderEpochs>,
}

#[pymethods]
impl PyLeaderEpochs {
    #[new]
    #[pyo3(signature = (entries = Vec::new()), text_signature = "(entries=())")]
    fn new(#[pyo3(from_py_with = items)] entries: Vec<Entry>) -> Self {
        let entries = entries.into_iter().map(|(epoch, start_offset)| EpochEntry { epoch, start_offset });
        Self { epochs: Locked::new(LeaderEpochs::from_entries(&entries.collect::<Vec<_>>())) }
    }

    #[doc = docstring!(state, LeaderEpochs.entries)]
    #[getter]
    fn entries(&self, py: Python<'_>) -> Vec<Entry> {
        let pair = |entry: &EpochEntry| (entry.epoch, entry.start_offset);
        self.epochs.with(py, |epochs| epochs.entries().iter().map(pair).collect())
    }

    #[doc = docstring!(state, LeaderEpochs.assign)]
    fn assign(&self, py: Python<'_>, epoch: i32, start_offset: i64) -> PyResult<()> {
        if epoch < 0 || start_offset < 0 {
            return Err(PyValueError::new_err("an epoch and its start offset must be at least 0"));
        }
        self.epochs.with(py, |epochs| epochs.assign(EpochEntry { epoch, start_offset }));
        Ok(())
    }

    #[doc = docstring!(state, LeaderEpochs.truncate_from_start)]
    fn truncate_from_start(&self, py: Python<'_>, start_offset: i64) {
        self.epochs.with(py, |epochs| epochs.truncate_from_start(start_offset));
    }

    #[doc = docstring!(state, LeaderEpochs.truncate_from_end)]
    fn truncate_from_end(&self, py: Python<'_>, end_offset: i64) {
        self.epochs.with(py, |epochs| epochs.truncate_from_end(end_offset));
    }

    #[doc = docstring!(state, LeaderEpochs.epoch_for_offset)]
    fn epoch_for_offset(&self, py: Python<'_>, offset: i64) -> Option<i32> {
        self.epochs.with(py, |epochs| epochs.epoch_for_offset(offset))
    }

    #[doc = docstring!(state, LeaderEpochs.previous_epoch)]
    fn previous_epoch(&self, py: Python<'_>, epoch: i32) -> Option<i32> {
        self.epochs.with(py, |epochs| epochs.previous(epoch).map(|entry| entry.epoch))
    }

    #[doc = docstring!(state, LeaderEpochs.next_epoch)]
    fn next_epoch(&self, py: Python<'_>, epoch: i32) -> Option<i32> {
        self.epochs.with(py, |epochs| epochs.next(epoch).map(|entry| entry.epoch))
    }

    #[doc = docstring!(state, LeaderEpochs.end_offset_for_epoch)]
    fn end_offset_for_epoch(&self, py: Python<'_>, epoch: i32, log_end_offset: i64) -> Option<Entry> {
        self.epochs.with(py, |epochs| epochs.end_offset_for_epoch(epoch, log_end_offset))
    }

    #[doc = docstring!(state, LeaderEpochs.truncation)]
    fn truncation(
        &self,
        py: Python<'_>,
        log_end_offset: i64,
        leader: &Self,
        leader_end_offset: i64,
    ) -> PyResult<Truncation> {
        let follower = self.epochs.with(py, |epochs| epochs.clone());
        let leader = leader.epochs.with(py, |epochs| epochs.clone());
        let found = truncation(&follower, log_end_offset, &leader, leader_end_offset);
        Ok(Truncation { offset: found.offset, questions: PyList::new(py, found.questions)?.unbind() })
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

result_class! {
    state, "magicbyte.state", AbortedTransaction {
        producer_id: i64,
        first_offset: i64,
        last_offset: i64,
    }
}

result_class! {
    state, "magicbyte.state", BatchMetadata {
        first_sequence: i32,
        first_offset: i64,
        last_sequence: i32,
        last_offset: i64,
        timestamp: i64,
    } {
        #[doc = docstring!(state, BatchMetadata.offset_delta)]
        #[getter]
        fn offset_delta(&self) -> i64 {
            panics::here();
            // The delta that was stored, even where the first offset has wrapped.
            self.last_offset.wrapping_sub(self.first_offset)
        }
    }
}

impl From<state::AbortedTransaction> for AbortedTransaction {
    fn from(transaction: state::AbortedTransaction) -> Self {
        let (producer_id, first_offset, last_offset) = transaction.into();
        Self { producer_id, first_offset, last_offset }
    }
}

impl From<&state::BatchMetadata> for BatchMetadata {
    fn from(batch: &state::BatchMetadata) -> Self {
        Self {
            first_sequence: batch.first_sequence(),
            first_offset: batch.first_offset(),
            last_sequence: batch.last_sequence,
            last_offset: batch.last_offset,
            timestamp: batch.timestamp,
        }
    }
}

result_class! {
    state, "magicbyte.state", ProducerStateEntry {
        producer_id: i64,
        producer_epoch: i16,
        last_sequence: i32,
        last_offset: i64,
        last_timestamp: i64,
        coordinator_epoch: i32,
        current_txn_first_offset: Option<i64>,
        batches: Py<PyTuple>,
    } holds(batches)
}

impl ProducerStateEntry {
    fn of(py: Python<'_>, entry: &state::ProducerStateEntry) -> PyResult<Self> {
        let batches: Vec<_> = entry.batches().iter().map(BatchMetadata::from).collect();
        Ok(Self {
            producer_id: entry.producer_id,
            producer_epoch: entry.producer_epoch,
            last_sequence: entry.last_sequence(),
            last_offset: entry.last_offset(),
            last_timestamp: entry.last_timestamp,
            coordinator_epoch: entry.coordinator_epoch,
            current_txn_first_offset: entry.current_txn_first_offset,
            batches: PyTuple::new(py, batches)?.unbind(),
        })
    }

    /// Copies of entries.
    pub(super) fn all(py: Python<'_>, entries: &[state::ProducerStateEntry]) -> PyResult<Vec<Self>> {
        entries.iter().map(|entry| Self::of(py, entry)).collect()
    }
}

result_class! {
    state, "magicbyte.state", CompletedTransaction {
        producer_id: i64,
        first_offset: i64,
        last_offset: i64,
        committed: bool,
        last_stable_offset: i64,
    }
}

impl From<state::CompletedTransaction> for CompletedTransaction {
    fn from(transaction: state::CompletedTransaction) -> Self {
        Self {
            producer_id: transaction.producer_id,
            first_offset: transaction.first_offset,
            last_offset: transaction.last_offset,
            committed: transaction.committed,
            last_stable_offset: transaction.last_stable_offset,
        }
    }
}

result_class! {
    state, "magicbyte.state", Check {
        verdict: String,
        message: String,
        duplicate_of: Option<Py<BatchMetadata>>,
    }
}

#[doc = docstring!(state, ProducerStateManager)]
#[pyclass(frozen, name = "ProducerStateManager", module = "magicbyte.state")]
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
    #[pyo3(signature = (snapshots = None, *, expiration_ms = 86_400_000))]
    fn new(py: Python<'_>, snapshots: Option<&Bound<'_, PyAny>>, expiration_ms: i64) -> PyResult<Self> {
        panics::here();
        let mut copies = BTreeMap::new();
        if let Some(mapping) = snapshots {
            for (offset, snapshot) in py.get_type::<PyDict>().call1((mapping,))?.cast_into::<PyDict>()? {
                copies.insert(offset.extract()?, content("snapshot", &snapshot)?.into_owned());
            }
        }
        Ok(Self { state: Locked::new(ProducerStateManager::new(copies, expiration_ms)) })
    }

    #[doc = docstring!(state, ProducerStateManager.check)]
    #[pyo3(signature = (batch, *, origin = "client", transaction_version = 0, guard = None))]
    fn check(
        &self,
        py: Python<'_>,
        batch: &BatchBase,
        origin: &str,
        transaction_version: i16,
        guard: Option<&Guard>,
    ) -> PyResult<Check> {
        let verification = guard.map(|guard| guard.0);
        let terms = AppendTerms { origin: origin_of(origin)?, transaction_version, verification };
        let verdict = match Self::event(py, batch)? {
            Some(event) => self.state.with(py, |state| state.producers.check(&event, terms)),
            None => Verdict::Append,
        };
        let (verdict, message, duplicate_of) = match verdict {
            Verdict::Append => ("append", String::new(), None),
            Verdict::Duplicate(batch) => {
                ("duplicate", String::new(), Some(Py::new(py, BatchMetadata::from(&batch))?))
            }
            Verdict::Refuse(refusal) => (refusal.name(), refusal.to_string(), None),
        };
        Ok(Check { verdict: verdict.to_owned(), message, duplicate_of })
    }

    #[doc = docstring!(state, ProducerStateManager.apply)]
    fn apply(&self, py: Python<'_>, batch: &BatchBase) -> PyResult<Option<CompletedTransaction>> {
        let Some(event) = Self::event(py, batch)? else { return Ok(None) };
        let ended = self.state.with(py, |state| state.producers.apply(&event));
        Ok(ended.map(Into::into))
    }

    #[doc = docstring!(state, ProducerStateManager.apply_together)]
    fn apply_together(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = items)] batches: Vec<PyRef<'_, BatchBase>>,
    ) -> PyResult<Vec<CompletedTransaction>> {
        let events: PyResult<Vec<_>> = batches.iter().map(|batch| Self::event(py, batch)).collect();
        let events: Vec<_> = events?.into_iter().flatten().collect();
        let ended = self.state.with(py, |state| state.producers.apply_together(&events));
        Ok(ended.into_iter().map(Into::into).collect())
    }

    #[doc = docstring!(state, ProducerStateManager.start_verification)]
    #[pyo3(signature = (producer_id, sequence, epoch, *, supports_epoch_bump, now))]
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

    #[doc = docstring!(state, ProducerStateManager.producers)]
    #[getter]
    fn producers(&self, py: Python<'_>) -> PyResult<Vec<ProducerStateEntry>> {
        let entries = self.state.with(py, |state| state.producers.entries().to_vec());
        ProducerStateEntry::all(py, &entries)
    }

    #[doc = docstring!(state, ProducerStateManager.first_unstable_offset)]
    #[getter]
    fn first_unstable_offset(&self, py: Python<'_>) -> Option<i64> {
        self.state.with(py, |state| state.producers.first_unstable_offset())
    }

    #[doc = docstring!(state, ProducerStateManager.first_undecided_offset)]
    #[getter]
    fn first_undecided_offset(&self, py: Python<'_>) -> Option<i64> {
        self.state.with(py, |state| state.producers.first_undecided_offset())
    }

    #[doc = docstring!(state, ProducerStateManager.oldest_transaction_timestamp)]
    #[getter]
    fn oldest_transaction_timestamp(&self, py: Python<'_>) -> Option<i64> {
        self.state.with(py, |state| state.producers.oldest_transaction_timestamp())
    }

    #[doc = docstring!(state, ProducerStateManager.set_high_watermark)]
    fn set_high_watermark(&self, py: Python<'_>, offset: i64) {
        self.state.with(py, |state| state.producers.set_high_watermark(offset));
    }

    #[doc = docstring!(state, ProducerStateManager.end_offset)]
    #[getter]
    fn end_offset(&self, py: Python<'_>) -> i64 {
        self.state.with(py, |state| state.end_offset())
    }

    #[setter]
    fn set_end_offset(&self, py: Python<'_>, offset: i64) {
        self.state.with(py, |state| state.set_end_offset(offset));
    }

    #[doc = docstring!(state, ProducerStateManager.take_snapshot)]
    fn take_snapshot(&self, py: Python<'_>) -> Option<i64> {
        self.state.with(py, ProducerStateManager::take_snapshot)
    }

    #[doc = docstring!(state, ProducerStateManager.snapshots)]
    #[getter]
    fn snapshots<'py>(&self, py: Python<'py>) -> BTreeMap<i64, Bound<'py, PyBytes>> {
        let snapshots = self.state.with(py, |state| state.snapshots().clone());
        snapshots.iter().map(|(&offset, bytes)| (offset, PyBytes::new(py, bytes))).collect()
    }

    #[doc = docstring!(state, ProducerStateManager.truncate_and_reload)]
    fn truncate_and_reload(&self, py: Python<'_>, log_start_offset: i64, log_end_offset: i64, now: i64) {
        self.state.with(py, |state| state.truncate_and_reload(log_start_offset, log_end_offset, now));
    }

    #[doc = docstring!(state, ProducerStateManager.set_log_start_offset)]
    fn set_log_start_offset(&self, py: Python<'_>, offset: i64) {
        self.state.with(py, |state| state.set_log_start_offset(offset));
    }

    #[doc = docstring!(state, ProducerStateManager.truncate_fully_and_start_at)]
    fn truncate_fully_and_start_at(&self, py: Python<'_>, offset: i64) {
        self.state.with(py, |state| state.truncate_fully_and_start_at(offset));
    }

    #[doc = docstring!(state, ProducerStateManager.remove_expired_producers)]
    fn remove_expired_producers(&self, py: Python<'_>, now: i64) {
        self.state.with(py, |state| state.remove_expired_producers(now));
    }

    #[doc = docstring!(state, ProducerStateManager.delete_snapshots_before)]
    fn delete_snapshots_before(&self, py: Python<'_>, offset: i64) {
        self.state.with(py, |state| state.delete_snapshots_before(offset));
    }

    #[doc = docstring!(state, ProducerStateManager.remove_stray_snapshots)]
    fn remove_stray_snapshots(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = items)] segment_base_offsets: Vec<i64>,
    ) {
        self.state
            .with(py, |state| state.remove_stray_snapshots(&segment_base_offsets.into_iter().collect()));
    }
}

#[doc = docstring!(state, VerificationGuard)]
#[pyclass(frozen, module = "magicbyte.state", name = "VerificationGuard")]
pub(super) struct Guard(VerificationGuard);

#[pymethods]
impl Guard {
    /// The guard of a request that is not verified.
    #[new]
    fn new() -> Self {
        Self(VerificationGuard::SENTINEL)
    }
}
