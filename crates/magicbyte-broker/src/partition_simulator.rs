//! An in-memory partition that accepts produce requests and serves fetches as a broker does, for tests of
//! producers and consumers (`UnifiedLog`, `Partition` with a single replica).

use std::collections::BTreeMap;

use magicbyte::sidecar::{ProducerStateManager, TransactionIndexEntry};
use magicbyte::state::{
    AppendOrigin, AppendTerms, BatchMetadata, EpochEntry, LeaderEpochs, ProducerEvent, Producers, Refusal,
    Verdict, last_stable_offset,
};
use magicbyte::{
    Batch, Batches, Compression, ControlRecord, Decompressor, RecordsBuilder, Result as Outcome,
};

use crate::analysis::check_produce_request;
use crate::append::{Append, AppendInfo, ConversionStats};
use crate::append_config::AppendConfig;
use crate::append_error::{AppendError, ErrorCode};
use crate::append_validator::AppendValidator;
use crate::simulated_log::SimulatedLog;

type Result<T> = std::result::Result<T, AppendError>;

/// `producer.id.expiration.ms`: when a producer without an open transaction is removed.
const PRODUCER_ID_EXPIRATION_MS: i64 = 86_400_000;

/// An in-memory partition. Its log is a single segment that is never deleted. The leader is the only replica,
/// so the high watermark is the log end offset. Nothing happens on its own: the clock is [set](Self::set_now)
/// by the caller, and transactions are ended with [`end_transaction`](Self::end_transaction).
///
/// ```
/// use magicbyte_broker::{AppendConfig, ErrorCode, PartitionSimulator};
/// use magicbyte::state::IsolationLevel;
/// use magicbyte::{Compression, RecordsBuilder};
///
/// let mut partition = PartitionSimulator::new(AppendConfig::default())?;
/// let mut builder = RecordsBuilder::v2(Compression::None).producer(7, 0, 0);
/// builder.append(0, 0, None, Some(b"first"), &[])?;
/// let first = builder.build()?;
/// assert!(!partition.produce(&first, 12)?.duplicate);
/// assert!(partition.produce(&first, 12)?.duplicate);
///
/// let mut builder = RecordsBuilder::v2(Compression::None).producer(7, 0, 5);
/// builder.append(0, 0, None, Some(b"sixth"), &[])?;
/// let refused = partition.produce(&builder.build()?, 12).unwrap_err();
/// assert_eq!(refused.code(), ErrorCode::OutOfOrderSequenceNumber);
/// assert_eq!(partition.fetch(0, 1 << 20, IsolationLevel::ReadUncommitted)?.high_watermark, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Transactions are not verified with a coordinator (`transaction.partition.verification.enable=false`).
/// After [`truncate`](Self::truncate) producer state is rebuilt as in Kafka: from the snapshot that the
/// previous truncation took, and a replay of the log from there.
#[derive(Debug)]
pub struct PartitionSimulator {
    validator: AppendValidator,
    pub(super) decompressor: Decompressor,
    now: i64,
    pub(super) leader_epoch: i32,
    pub(super) log: SimulatedLog,
    pub(super) log_start_offset: i64,
    pub(super) log_end_offset: i64,
    pub(super) epochs: LeaderEpochs,
    pub(super) producers: ProducerStateManager,
    /// Aborted transactions in the order of their markers.
    pub(super) transaction_index: Vec<TransactionIndexEntry>,
}

/// The result of a successful append.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The broker's answer; for a duplicate, with the offsets of the first append.
    pub info: AppendInfo,
    /// True if the batch was in the log already, and was not stored again.
    pub duplicate: bool,
}

/// A coordinator's request to end a transaction (`WriteTxnMarkersRequest`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionEnd {
    /// The producer.
    pub producer_id: i64,
    /// Its epoch; in transactions of version 2, one higher than that of its batches.
    pub producer_epoch: i16,
    /// True if the transaction is committed, false if it is aborted.
    pub committed: bool,
    /// The coordinator's epoch.
    pub coordinator_epoch: i32,
    /// `transaction.version`: 0, 1 or 2.
    pub transaction_version: i16,
}

impl PartitionSimulator {
    /// An empty partition at offset 0, with leader epoch 0 and the clock at 0.
    ///
    /// # Errors
    /// The errors of [`AppendValidator::new`].
    pub fn new(config: AppendConfig) -> Outcome<Self> {
        let decompressor = Decompressor::with_limit(config.max_decompressed_bytes);
        let log = SimulatedLog::new(config.max_decompressed_message_bytes);
        let mut epochs = LeaderEpochs::default();
        epochs.assign(EpochEntry { epoch: 0, start_offset: 0 });
        Ok(Self {
            validator: AppendValidator::new(config)?,
            decompressor,
            now: 0,
            leader_epoch: 0,
            log,
            log_start_offset: 0,
            log_end_offset: 0,
            epochs,
            producers: ProducerStateManager::new(BTreeMap::new(), PRODUCER_ID_EXPIRATION_MS),
            transaction_index: Vec::new(),
        })
    }

    /// The broker's clock (ms).
    #[must_use]
    pub fn now(&self) -> i64 {
        self.now
    }

    /// Sets the broker's clock (ms). Producers without an open transaction are removed a day after their last
    /// batch or marker.
    pub fn set_now(&mut self, now: i64) {
        self.now = now;
        self.producers.remove_expired_producers(now);
    }

    /// The first offset that consumers can see.
    #[must_use]
    pub fn log_start_offset(&self) -> i64 {
        self.log_start_offset
    }

    /// The offset of the next record; also the high watermark.
    #[must_use]
    pub fn log_end_offset(&self) -> i64 {
        self.log_end_offset
    }

    /// The last stable offset (exclusive), up to which `read_committed` reads: the start of the earliest open
    /// transaction, or the log's end. If the transaction began before the log's start, it is the base offset
    /// of the batch at the log's start instead.
    #[must_use]
    pub fn last_stable_offset(&self) -> i64 {
        let first_unstable_offset = self.producers().first_unstable_offset().map(|first| {
            if first >= self.log_start_offset {
                return first;
            }
            self.log.find(self.log_start_offset).map_or(self.log_end_offset, |batch| batch.base_offset)
        });
        last_stable_offset(first_unstable_offset, self.log_end_offset)
    }

    /// The leader's epoch.
    #[must_use]
    pub fn leader_epoch(&self) -> i32 {
        self.leader_epoch
    }

    /// The state of producers.
    #[must_use]
    pub fn producers(&self) -> &Producers {
        &self.producers.producers
    }

    /// Handles a produce request of this version: checks the request, then [appends](Self::append).
    ///
    /// # Errors
    /// The errors of [`check_produce_request`] and [`append`](Self::append).
    pub fn produce(&mut self, records: &[u8], version: i16) -> Result<Appended> {
        check_produce_request(records, version)?;
        self.append(records, AppendOrigin::Client)
    }

    /// Checks batches, assigns their offsets, checks them against the state of their producer, and stores
    /// them. Batches with the origin `Replication` keep their offsets.
    ///
    /// # Errors
    /// The errors of [`AppendValidator::validate`]; [`ErrorCode::OutOfOrderSequenceNumber`],
    /// [`ErrorCode::InvalidProducerEpoch`], [`ErrorCode::InvalidTxnState`],
    /// [`ErrorCode::TransactionCoordinatorFenced`].
    pub fn append(&mut self, records: &[u8], origin: AppendOrigin) -> Result<Appended> {
        self.append_with(records, origin, 0)
    }

    fn append_with(
        &mut self,
        records: &[u8],
        origin: AppendOrigin,
        transaction_version: i16,
    ) -> Result<Appended> {
        let mut stored = records.to_vec();
        let append = Append {
            origin,
            next_offset: self.log_end_offset,
            leader_epoch: self.leader_epoch,
            now: self.now,
        };
        let Some(info) = self.validator.validate(&mut stored, &append)? else {
            return Ok(Appended { info: NOTHING_APPENDED, duplicate: false });
        };
        // As in Kafka, this happens even if the producer's batch is then refused.
        self.assign_epochs(&stored)?;
        let events = producer_events(&stored, &mut self.decompressor)?;
        let terms = AppendTerms { transaction_version, ..AppendTerms::of(origin) };
        if let Some(batch) = self.check_producers(&events, terms)? {
            let info = AppendInfo {
                first_offset: Some(batch.first_offset()),
                last_offset: batch.last_offset,
                log_append_time: Some(batch.timestamp),
                ..info
            };
            return Ok(Appended { info, duplicate: true });
        }
        self.log.append(&stored)?;
        self.log_end_offset = info.last_offset.saturating_add(1);
        self.apply(&events);
        Ok(Appended { info, duplicate: false })
    }

    /// Adds the leader epochs of the batches.
    fn assign_epochs(&mut self, batches: &[u8]) -> Result<()> {
        for batch in Batches::new(batches) {
            match batch? {
                Batch::V2(v2) => {
                    let (epoch, start_offset) = (v2.partition_leader_epoch(), v2.base_offset());
                    self.epochs.assign(EpochEntry { epoch, start_offset });
                }
                // Magic 0 and 1 have no epochs, which invalidates the earlier ones.
                Batch::Legacy(_) => self.epochs = LeaderEpochs::default(),
            }
        }
        Ok(())
    }

    /// Checks the batches against the state of their producers; returns the stored batch if the append is a
    /// duplicate.
    fn check_producers(&self, events: &[ProducerEvent], terms: AppendTerms) -> Result<Option<BatchMetadata>> {
        // An append may have several batches of one producer.
        let mut after = (events.len() > 1).then(|| self.producers().clone());
        for event in events {
            match after.as_ref().unwrap_or(self.producers()).check(event, terms) {
                Verdict::Append => {}
                Verdict::Duplicate(batch) => return Ok(Some(batch)),
                Verdict::Refuse(refusal) => return Err(refused(event.producer_id(), refusal)),
            }
            if let Some(after) = &mut after {
                after.apply(event);
            }
        }
        Ok(None)
    }

    fn apply(&mut self, events: &[ProducerEvent]) {
        for event in events {
            let ended = self.producers.producers.apply(event);
            self.transaction_index
                .extend(ended.filter(|ended| !ended.committed).map(TransactionIndexEntry::of));
        }
        self.producers.set_end_offset(self.log_end_offset);
        self.producers.producers.set_high_watermark(self.log_end_offset);
    }

    /// Appends the marker that ends a transaction, as its coordinator does, even if no transaction is open.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidProducerEpoch`], [`ErrorCode::TransactionCoordinatorFenced`];
    /// [`ErrorCode::InvalidRecord`] for a negative producer id or epoch.
    pub fn end_transaction(&mut self, end: TransactionEnd) -> Result<Appended> {
        let TransactionEnd { producer_id, producer_epoch, committed, coordinator_epoch, transaction_version } =
            end;
        if producer_id < 0 || producer_epoch < 0 {
            let why = format!("producer {producer_id} with epoch {producer_epoch} cannot have transactions");
            return Err(AppendError::new(ErrorCode::InvalidRecord, why));
        }
        let builder = RecordsBuilder::v2(Compression::None).producer(producer_id, producer_epoch, -1);
        let mut builder = builder.transactional().control();
        let marker = ControlRecord::EndTransaction { version: 0, committed, coordinator_epoch };
        builder.append_control(0, self.now, &marker)?;
        self.append_with(&builder.build()?, AppendOrigin::Coordinator, transaction_version)
    }

    /// Elects a new leader: the next epoch begins at the log's end. Returns the epoch.
    pub fn elect_leader(&mut self) -> i32 {
        self.leader_epoch = self.leader_epoch.saturating_add(1);
        self.epochs.assign(EpochEntry { epoch: self.leader_epoch, start_offset: self.log_end_offset });
        self.leader_epoch
    }

    /// Truncates the log to end at `offset` (exclusive), as a follower of a new leader does. A batch that
    /// contains the offset is removed whole. Does nothing if the log is shorter.
    ///
    /// # Errors
    /// [`ErrorCode::OffsetOutOfRange`] for a negative offset.
    pub fn truncate(&mut self, offset: i64) -> Result<()> {
        if offset < 0 {
            return Err(out_of_range(offset, "the log cannot end before offset 0"));
        }
        if offset >= self.log_end_offset {
            return Ok(());
        }
        self.log.truncate(offset);
        self.log_end_offset = offset;
        self.log_start_offset = self.log_start_offset.min(offset);
        self.epochs.truncate_from_end(offset);
        // The index is truncated at the first transaction that was still open at the offset.
        let ended = self.transaction_index.iter().position(|ended| ended.last_offset >= offset);
        self.transaction_index.truncate(ended.unwrap_or(usize::MAX));
        self.rebuild_producers()
    }

    /// `UnifiedLog.rebuildProducerState`.
    fn rebuild_producers(&mut self) -> Result<()> {
        let (state, end) = (&mut self.producers, self.log_end_offset);
        let had_no_producers = state.producers.entries().is_empty() && state.end_offset() >= end;
        state.truncate_and_reload(self.log_start_offset, end, self.now);
        if end > state.end_offset() && !had_no_producers {
            let replay_start = state.end_offset().max(self.log_start_offset);
            let events = producer_events(self.log.bytes_from(replay_start), &mut self.decompressor)?;
            state.producers.apply_together(&events);
        }
        state.set_end_offset(end);
        state.take_snapshot();
        state.producers.set_high_watermark(end);
        Ok(())
    }

    /// Moves the log's start up to this offset, or to the log's end for -1; earlier records are no longer
    /// served. Returns the log start offset.
    ///
    /// # Errors
    /// [`ErrorCode::OffsetOutOfRange`], [`ErrorCode::PolicyViolation`] on a compacted topic.
    pub fn delete_records(&mut self, before_offset: i64) -> Result<i64> {
        if self.validator.config().compacted {
            let why = "records of a compacted topic can only be removed by compaction";
            return Err(AppendError::new(ErrorCode::PolicyViolation, why));
        }
        let offset = if before_offset == -1 { self.log_end_offset } else { before_offset };
        if offset < 0 || offset > self.log_end_offset {
            return Err(out_of_range(offset, "the log cannot start after its end"));
        }
        if offset > self.log_start_offset {
            self.log_start_offset = offset;
            self.epochs.truncate_from_start(offset);
            self.producers.set_log_start_offset(offset);
        }
        Ok(self.log_start_offset)
    }
}

/// The producer events of the batches.
fn producer_events(batches: &[u8], decompressor: &mut Decompressor) -> Result<Vec<ProducerEvent>> {
    let mut events = Vec::new();
    for batch in Batches::new(batches) {
        if let Some(v2) = batch?.as_v2() {
            events.extend(ProducerEvent::of(v2, decompressor)?);
        }
    }
    Ok(events)
}

/// The answer to an append without a whole batch.
const NOTHING_APPENDED: AppendInfo = AppendInfo {
    first_offset: None,
    last_offset: -1,
    max_timestamp: -1,
    offset_of_max_timestamp: -1,
    log_append_time: None,
    stats: ConversionStats { temporary_memory_bytes: 0, records_converted: 0 },
};

pub(super) fn out_of_range(offset: i64, why: &str) -> AppendError {
    AppendError::new(ErrorCode::OffsetOutOfRange, format!("offset {offset} is out of range: {why}"))
}

fn refused(producer_id: i64, refusal: Refusal) -> AppendError {
    let code = match refusal {
        Refusal::InvalidProducerEpoch { .. } => ErrorCode::InvalidProducerEpoch,
        Refusal::OutOfOrderSequence { .. } => ErrorCode::OutOfOrderSequenceNumber,
        Refusal::TransactionCoordinatorFenced { .. } => ErrorCode::TransactionCoordinatorFenced,
        Refusal::InvalidTxnState { .. } => ErrorCode::InvalidTxnState,
        _ => ErrorCode::UnknownServerError,
    };
    AppendError::new(code, format!("producer {producer_id}: {refusal}"))
}
