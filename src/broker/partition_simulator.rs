//! A partition in memory that takes produce payloads and serves fetches as a broker does, by a clock that is told
//! the time: for tests of producers and consumers (`UnifiedLog`, `Partition`, one replica).

use crate::broker::append::AppendInfo;
use crate::sidecar::transaction_index::TransactionIndexEntry;
use crate::state::isolation::last_stable_offset;
use std::collections::BTreeMap;

use crate::batch::Batch;
use crate::batches::Batches;
use crate::broker::analysis::check_produce_request;
use crate::broker::append::{Append, ConversionStats};
use crate::broker::append_config::AppendConfig;
use crate::broker::append_error::{AppendError, ErrorCode};
use crate::broker::append_validator::AppendValidator;
use crate::broker::simulated_log::SimulatedLog;
use crate::builder::RecordsBuilder;
use crate::compression::codec::Compression;
use crate::compression::decompressor::Decompressor;
use crate::error::Result as Outcome;
use crate::record::control::ControlRecord;
use crate::sidecar::producer_state_manager::ProducerStateManager;
use crate::state::leader_epochs::{EpochEntry, LeaderEpochs};
use crate::state::producer_check::{AppendOrigin, AppendTerms, Refusal, Verdict};
use crate::state::producer_entry::BatchMetadata;
use crate::state::producer_event::ProducerEvent;
use crate::state::producers::Producers;

type Result<T> = std::result::Result<T, AppendError>;

/// `producer.id.expiration.ms`: when a producer without an open transaction is forgotten.
const PRODUCER_ID_EXPIRATION_MS: i64 = 86_400_000;

/// A partition in memory. Its log is one segment that is never deleted; the only replica is the leader, so
/// the high watermark is the log's end. Nothing happens by itself: the clock is [set](Self::set_now), and
/// transactions end by [`end_transaction`](Self::end_transaction).
///
/// ```
/// use magicbyte::broker::{AppendConfig, ErrorCode, PartitionSimulator};
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
/// Producer state after [`truncate`](Self::truncate) is Kafka's: of the snapshot that the truncation before took, and
/// a replay of the log from there.
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
    /// In the order of the markers.
    pub(super) transaction_index: Vec<TransactionIndexEntry>,
}

/// An append that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// What a broker answers; of a duplicate, what it answered the first time.
    pub info: AppendInfo,
    /// The batch is in the log already and was not stored again.
    pub duplicate: bool,
}

/// The end of a transaction, as its coordinator tells the partition (`WriteTxnMarkersRequest`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionEnd {
    /// The producer.
    pub producer_id: i64,
    /// Its epoch; with transactions of version 2 one higher than that of its batches.
    pub producer_epoch: i16,
    /// Whether the transaction is committed; else it is aborted.
    pub committed: bool,
    /// Epoch of the coordinator.
    pub coordinator_epoch: i32,
    /// `transaction.version`: 0, 1 or 2.
    pub transaction_version: i16,
}

impl PartitionSimulator {
    /// An empty partition at offset 0, leader epoch 0 and the time 0.
    ///
    /// # Errors
    /// As [`AppendValidator::new`].
    pub fn new(config: AppendConfig) -> Outcome<Self> {
        let decompressor = Decompressor::with_limit(config.max_decompressed_bytes);
        let mut epochs = LeaderEpochs::default();
        epochs.assign(EpochEntry { epoch: 0, start_offset: 0 });
        Ok(Self {
            validator: AppendValidator::new(config)?,
            decompressor,
            now: 0,
            leader_epoch: 0,
            log: SimulatedLog::default(),
            log_start_offset: 0,
            log_end_offset: 0,
            epochs,
            producers: ProducerStateManager::new(BTreeMap::new(), PRODUCER_ID_EXPIRATION_MS),
            transaction_index: Vec::new(),
        })
    }

    /// The broker's time (ms).
    #[must_use]
    pub fn now(&self) -> i64 {
        self.now
    }

    /// Sets the broker's time (ms). Producers without an open transaction are forgotten a day after their last
    /// batch.
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

    /// Where the first open transaction begins, else the log's end: how far `read_committed` reads. Of a
    /// transaction that began before the log's start, where the batch with that offset begins, or the log's end if
    /// there is no batch.
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

    /// What is known of producers.
    #[must_use]
    pub fn producers(&self) -> &Producers {
        &self.producers.producers
    }

    /// A producer's request of this version: the checks of the request, then [`append`](Self::append).
    ///
    /// # Errors
    /// As [`check_produce_request`] and [`append`](Self::append).
    pub fn produce(&mut self, records: &[u8], version: i16) -> Result<Appended> {
        check_produce_request(records, version)?;
        self.append(records, AppendOrigin::Client)
    }

    /// Checks batches, gives them offsets, compares them with what is known of their producer, and stores them.
    /// A follower's batches (`Replication`) keep theirs.
    ///
    /// # Errors
    /// As [`AppendValidator::validate`]; [`ErrorCode::OutOfOrderSequenceNumber`],
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
            return Ok(Appended { info: NOTHING, duplicate: false });
        };
        // Before the producer's batch is taken or refused, as Kafka does.
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

    /// What batches say about leader epochs.
    fn assign_epochs(&mut self, batches: &[u8]) -> Result<()> {
        for batch in Batches::new(batches) {
            match batch? {
                Batch::V2(v2) => {
                    let (epoch, start_offset) = (v2.partition_leader_epoch(), v2.base_offset());
                    self.epochs.assign(EpochEntry { epoch, start_offset });
                }
                // Magic 0 and 1 have none: those before are not to be trusted.
                Batch::Legacy(_) => self.epochs = LeaderEpochs::default(),
            }
        }
        Ok(())
    }

    /// The batch that is in the log already, if the append is one.
    fn check_producers(&self, events: &[ProducerEvent], terms: AppendTerms) -> Result<Option<BatchMetadata>> {
        // A follower may take several batches of a producer at once.
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

    /// Appends the marker that ends a transaction, as its coordinator does. A producer without an open
    /// transaction gets one, too.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidProducerEpoch`], [`ErrorCode::TransactionCoordinatorFenced`];
    /// [`ErrorCode::InvalidRecord`] for a negative producer id or epoch.
    pub fn end_transaction(&mut self, end: TransactionEnd) -> Result<Appended> {
        let TransactionEnd { producer_id, producer_epoch, committed, coordinator_epoch, transaction_version } =
            end;
        if producer_id < 0 || producer_epoch < 0 {
            let why = format!("producer {producer_id} with epoch {producer_epoch} has no transactions");
            return Err(AppendError::new(ErrorCode::InvalidRecord, why));
        }
        let builder = RecordsBuilder::v2(Compression::None).producer(producer_id, producer_epoch, -1);
        let mut builder = builder.transactional().control();
        let marker = ControlRecord::EndTransaction { version: 0, committed, coordinator_epoch };
        builder.append_control(0, self.now, &marker)?;
        self.append_with(&builder.build()?, AppendOrigin::Coordinator, transaction_version)
    }

    /// A new leader: the next epoch begins where the log ends. Gives it.
    pub fn elect_leader(&mut self) -> i32 {
        self.leader_epoch = self.leader_epoch.saturating_add(1);
        self.epochs.assign(EpochEntry { epoch: self.leader_epoch, start_offset: self.log_end_offset });
        self.leader_epoch
    }

    /// Drops what stands at this offset and behind it, as a follower of a new leader does; of a batch with the
    /// offset inside all goes. The log ends at `offset` then, if it reached so far.
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
        // The index ends with the first transaction that was still open there.
        let ended = self.transaction_index.iter().position(|ended| ended.last_offset >= offset);
        self.transaction_index.truncate(ended.unwrap_or(usize::MAX));
        self.rebuild_producers()
    }

    /// `UnifiedLog.rebuildProducerState`.
    fn rebuild_producers(&mut self) -> Result<()> {
        let (state, end) = (&mut self.producers, self.log_end_offset);
        let knew_nothing = state.producers.entries().is_empty() && state.end_offset() >= end;
        state.truncate_and_reload(self.log_start_offset, end, self.now);
        if end > state.end_offset() && !knew_nothing {
            let known = state.end_offset().max(self.log_start_offset);
            let events = producer_events(self.log.bytes_from(known), &mut self.decompressor)?;
            state.producers.apply_together(&events);
        }
        state.set_end_offset(end);
        state.take_snapshot();
        state.producers.set_high_watermark(end);
        Ok(())
    }

    /// Moves the log's start to this offset, or with -1 to its end; what is before is not served any more.
    /// Gives the log's start.
    ///
    /// # Errors
    /// [`ErrorCode::OffsetOutOfRange`], [`ErrorCode::PolicyViolation`] on a compacted topic.
    pub fn delete_records(&mut self, before_offset: i64) -> Result<i64> {
        if self.validator.config().compacted {
            let why = "records of a compacted topic go by compaction alone";
            return Err(AppendError::new(ErrorCode::PolicyViolation, why));
        }
        let offset = if before_offset == -1 { self.log_end_offset } else { before_offset };
        if offset < 0 || offset > self.log_end_offset {
            return Err(out_of_range(offset, "the log can begin at its end at the latest"));
        }
        if offset > self.log_start_offset {
            self.log_start_offset = offset;
            self.epochs.truncate_from_start(offset);
            self.producers.set_log_start_offset(offset);
        }
        Ok(self.log_start_offset)
    }
}

/// What batches say about their producers.
fn producer_events(batches: &[u8], decompressor: &mut Decompressor) -> Result<Vec<ProducerEvent>> {
    let mut events = Vec::new();
    for batch in Batches::new(batches) {
        if let Batch::V2(v2) = batch? {
            events.extend(ProducerEvent::of(&v2, decompressor)?);
        }
    }
    Ok(events)
}

/// Of an append without a whole batch.
const NOTHING: AppendInfo = AppendInfo {
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
    };
    AppendError::new(code, format!("producer {producer_id}: {refusal}"))
}
