//! What a story says: plain data, JSON to whoever shows it.

use std::collections::BTreeMap;

use crate::log::history::bins::Bin;
use crate::log::history::segment_history::{OffsetGap, SkippedRange, StepBack};
use crate::log::listing::IgnoredFile;
use crate::log::problem::Problem;
use crate::state::leader_epochs::EpochEntry;

/// How a story is told.
#[derive(Clone, Copy, Debug)]
pub struct HistoryOptions {
    /// What time it is (ms): ages of open transactions count up to it.
    pub now: i64,
    /// An open transaction hangs if its producer was last heard of longer ago than this (ms), as
    /// `kafka-transactions.sh find-hanging` has it.
    pub max_transaction_timeout_ms: i64,
    /// About how many bins there are at most.
    pub bins: usize,
    /// How many transactions, producers, anomalies, gaps and so on are listed of each; all are counted.
    pub listed: usize,
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum TransactionOutcome {
    /// It did not.
    Open,
    /// With a commit marker.
    Committed,
    /// With an abort marker.
    Aborted,
}

/// One transaction; of a marker without data before it the first and last offset are none.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TransactionHistory {
    /// The producer.
    pub producer_id: i64,
    /// Its epoch when the transaction began, else the marker's.
    pub producer_epoch: i16,
    /// How it ended.
    pub outcome: TransactionOutcome,
    /// Base offset of its first batch.
    pub first_offset: Option<i64>,
    /// Last offset of its last batch (inclusive).
    pub last_offset: Option<i64>,
    /// Offset of its marker.
    pub marker_offset: Option<i64>,
    /// Epoch in its marker: with transactions of version 2 one more than that of its batches.
    pub marker_epoch: Option<i16>,
    /// Epoch of the coordinator that wrote its marker.
    pub coordinator_epoch: Option<i32>,
    /// Timestamp (ms) of its first batch.
    pub first_timestamp: Option<i64>,
    /// Largest timestamp (ms) of its batches.
    pub last_timestamp: Option<i64>,
    /// Timestamp (ms) of its marker.
    pub marker_timestamp: Option<i64>,
    /// Data batches.
    pub batches: u64,
    /// Their records, by the headers.
    pub records: u64,
    /// Their bytes as stored.
    pub bytes: u64,
    /// What the transaction index notes if it was aborted: the last stable offset at its marker.
    pub last_stable_offset: Option<i64>,
    /// Of an open one: time (ms) since its producer was last heard of.
    pub age_ms: Option<i64>,
    /// Whether it is open for longer than transactions may be.
    pub hanging: bool,
}

impl TransactionHistory {
    pub(crate) fn of(producer_id: i64, producer_epoch: i16) -> Self {
        Self {
            producer_id,
            producer_epoch,
            outcome: TransactionOutcome::Open,
            first_offset: None,
            last_offset: None,
            marker_offset: None,
            marker_epoch: None,
            coordinator_epoch: None,
            first_timestamp: None,
            last_timestamp: None,
            marker_timestamp: None,
            batches: 0,
            records: 0,
            bytes: 0,
            last_stable_offset: None,
            age_ms: None,
            hanging: false,
        }
    }
}

/// A producer in one of its epochs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ProducerHistory {
    /// The producer.
    pub producer_id: i64,
    /// The epoch.
    pub producer_epoch: i16,
    /// Offset of its first batch or marker.
    pub first_offset: i64,
    /// Offset of its last record or marker.
    pub last_offset: i64,
    /// Sequence of its first record, -1 for none.
    pub first_sequence: i32,
    /// Sequence of its last record, -1 for none.
    pub last_sequence: i32,
    /// Timestamp (ms) of its first batch.
    pub first_timestamp: i64,
    /// Largest timestamp (ms) of its batches and markers.
    pub last_timestamp: i64,
    /// Data batches.
    pub batches: u64,
    /// Their records, by the headers.
    pub records: u64,
    /// Their bytes as stored.
    pub bytes: u64,
    /// Transactions that were committed.
    pub committed: u64,
    /// Transactions that were aborted.
    pub aborted: u64,
    /// Markers without data before them.
    pub empty_markers: u64,
    /// Batches that a broker had answered as duplicates.
    pub duplicates: u64,
    /// Batches that a broker had refused.
    pub refused: u64,
    /// Whether a broker that replays the log knows this epoch as the producer's last.
    pub is_current: bool,
    /// Of a current one: where its open transaction began.
    pub current_txn_first_offset: Option<i64>,
    /// Of a current one: epoch of the coordinator that wrote its last marker, -1 for none.
    pub coordinator_epoch: i32,
}

/// A batch to which a broker had said something else than "appended", were it a leader that gets it
/// from the producer. The log was followed all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Anomaly {
    /// Kafka's name of the error.
    pub kind: String,
    /// The producer.
    pub producer_id: i64,
    /// The batch's epoch.
    pub producer_epoch: i16,
    /// Its base offset.
    pub offset: i64,
    /// Its first sequence, -1 for none.
    pub sequence: i32,
    /// Whether offsets are missing since the producer's last batch: compaction may have taken what
    /// should stand between.
    pub compacted: bool,
    /// For people.
    pub message: String,
}

/// Control batches of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ControlCount {
    /// Kafka's name of the type of their first record; `EMPTY` for what compaction left, `UNREADABLE`.
    pub kind: String,
    /// How many batches.
    pub batches: u64,
}

/// What a partition's batches tell.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PartitionHistory {
    /// The directory.
    pub path: String,
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The time it was told for (ms).
    pub now: i64,
    /// Segments that count.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their batches.
    pub batches: u64,
    /// Their records, by the headers; those in legacy wrappers are not known.
    pub records: u64,
    /// The first offset.
    pub first_offset: Option<i64>,
    /// One behind the last offset.
    pub next_offset: Option<i64>,
    /// Where the earliest open transaction begins, else `next_offset`.
    pub last_stable_offset: Option<i64>,
    /// The largest timestamp (ms), -1 for none.
    pub max_timestamp: i64,
    /// Batches by magic.
    pub magics: BTreeMap<i8, u64>,
    /// Batches by codec.
    pub codecs: BTreeMap<String, u64>,
    /// Batches without a producer id.
    pub without_producer: u64,
    /// Control batches by type.
    pub controls: Vec<ControlCount>,
    /// Where the first leader epochs begin, by the batches.
    pub leader_epochs: Vec<EpochEntry>,
    /// How many there are.
    pub leader_epoch_count: u64,
    /// Producers and epochs, those with the most bytes, by their first offset.
    pub producers: Vec<ProducerHistory>,
    /// How many there are, each epoch on its own.
    pub producer_count: u64,
    /// How many producers, whatever their epochs.
    pub producer_ids: u64,
    /// Transactions, by the first offset or that of the marker: hanging ones before open ones, then aborted
    /// and committed ones, of each those with the most bytes.
    pub transactions: Vec<TransactionHistory>,
    /// How many there are by outcome; the open ones that hang once more as `hanging`.
    pub transaction_counts: BTreeMap<String, u64>,
    /// How many begin in each of equal steps from the first offset to the last: committed, aborted, open, and
    /// apart from these hanging. Empty without any.
    pub transaction_steps: Vec<[u64; 4]>,
    /// The first anomalies, in the order of the log.
    pub anomalies: Vec<Anomaly>,
    /// Anomalies by kind, all of them.
    pub anomaly_counts: BTreeMap<String, u64>,
    /// Those that compaction may explain.
    pub compacted_anomalies: u64,
    /// The first gaps in offsets.
    pub gaps: Vec<OffsetGap>,
    /// How many gaps there are.
    pub gap_count: u64,
    /// How many offsets they leave out.
    pub missing_offsets: u64,
    /// The first batches that step back in time.
    pub steps_back: Vec<StepBack>,
    /// How many there are.
    pub step_back_count: u64,
    /// The largest one (ms).
    pub largest_step_back_ms: u64,
    /// The first bytes that are in no batch.
    pub skipped: Vec<SkippedRange>,
    /// How many such ranges there are.
    pub skipped_count: u64,
    /// What is wrong with the directory and its sidecars, the first ones.
    pub problems: Vec<Problem>,
    /// How many there are.
    pub problem_count: u64,
    /// Files that were not read.
    pub ignored: Vec<IgnoredFile>,
    /// The names of the codecs in bins.
    pub bin_codecs: Vec<String>,
    /// The batches in steps.
    pub bins: Vec<Bin>,
}
