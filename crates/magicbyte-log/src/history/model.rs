//! The data of a history, serialized to JSON.

use std::collections::BTreeMap;

use magicbyte::state::EpochEntry;

use crate::history::bins::Bin;
use crate::history::segment_history::{OffsetGap, SkippedRange, StepBack};
use crate::listing::IgnoredFile;
use crate::problem::Problem;

/// Options of a history.
#[derive(Clone, Debug)]
pub struct HistoryOptions {
    /// The current time (ms), up to which the ages of open transactions are counted.
    pub now: i64,
    /// An open transaction is hanging if its producer's last timestamp is older than this (ms), as in
    /// `kafka-transactions.sh find-hanging`.
    pub transaction_max_timeout_ms: i64,
    /// The transactions that the coordinator has open in this partition. They are not hanging, since the
    /// coordinator ends them.
    pub coordinated: Vec<CoordinatedTransaction>,
    /// The maximum number of bins.
    pub bins: usize,
    /// The maximum length of each list, such as those of transactions, producers, anomalies and gaps. All
    /// entries are counted.
    pub listed: usize,
}

/// An open transaction in `__transaction_state`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoordinatedTransaction {
    /// The producer.
    pub producer_id: i64,
    /// The producer's transactional ID.
    pub transactional_id: String,
    /// Kafka's name of the state, such as `Ongoing`.
    pub state: String,
}

/// The outcome of a transaction.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransactionOutcome {
    /// The transaction has no marker.
    Open,
    /// The transaction ends with a commit marker.
    Committed,
    /// The transaction ends with an abort marker.
    Aborted,
}

/// One transaction. For a marker without data, the first and last offset are None.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct TransactionHistory {
    /// The producer.
    pub producer_id: i64,
    /// Its epoch when the transaction began, else the marker's.
    pub producer_epoch: i16,
    /// The outcome.
    pub outcome: TransactionOutcome,
    /// Base offset of its first batch.
    pub first_offset: Option<i64>,
    /// Last offset of its last batch (inclusive).
    pub last_offset: Option<i64>,
    /// Offset of its marker.
    pub marker_offset: Option<i64>,
    /// Epoch of its marker; in transactions version 2 it is one more than the batches' epoch.
    pub marker_epoch: Option<i16>,
    /// Epoch of the coordinator that wrote its marker.
    pub coordinator_epoch: Option<i32>,
    /// Timestamp (ms) of its first batch.
    pub first_timestamp: Option<i64>,
    /// Largest timestamp (ms) of its batches.
    pub last_timestamp: Option<i64>,
    /// Timestamp (ms) of its marker.
    pub marker_timestamp: Option<i64>,
    /// The number of data batches.
    pub batches: u64,
    /// Their records, according to the headers.
    pub records: u64,
    /// Their bytes as stored.
    pub bytes: u64,
    /// The last stable offset at its marker, as the transaction index records it for an aborted one.
    pub last_stable_offset: Option<i64>,
    /// For an open transaction: the time (ms) since its producer's last timestamp.
    pub age_ms: Option<i64>,
    /// True if the transaction has been open for longer than allowed.
    pub hanging: bool,
    /// The transactional ID of an open transaction that the coordinator knows.
    pub transactional_id: Option<String>,
    /// The coordinator's state of that transaction.
    pub coordinator_state: Option<String>,
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
            transactional_id: None,
            coordinator_state: None,
        }
    }
}

/// A producer in one of its epochs.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct ProducerHistory {
    /// The producer.
    pub producer_id: i64,
    /// The epoch.
    pub producer_epoch: i16,
    /// Offset of its first batch or marker.
    pub first_offset: i64,
    /// Offset of its last record or marker.
    pub last_offset: i64,
    /// Sequence of its first record; -1 if it has none.
    pub first_sequence: i32,
    /// Sequence of its last record; -1 if it has none.
    pub last_sequence: i32,
    /// Timestamp (ms) of its first batch.
    pub first_timestamp: i64,
    /// Largest timestamp (ms) of its batches and markers.
    pub last_timestamp: i64,
    /// The number of data batches.
    pub batches: u64,
    /// Their records, according to the headers.
    pub records: u64,
    /// Their bytes as stored.
    pub bytes: u64,
    /// Committed transactions.
    pub committed: u64,
    /// Aborted transactions.
    pub aborted: u64,
    /// Markers without data before them.
    pub empty_markers: u64,
    /// Batches that a broker would have acknowledged as duplicates.
    pub duplicates: u64,
    /// Batches that a broker would have refused.
    pub refused: u64,
    /// True if this is the producer's latest epoch, as known to a broker that replays the log.
    pub is_current: bool,
    /// If current: where its open transaction began.
    pub current_txn_first_offset: Option<i64>,
    /// If current: epoch of the coordinator that wrote its last marker; -1 if there is none.
    pub coordinator_epoch: i32,
}

/// A batch that a leader would not have appended, had the producer sent it in this state. The history
/// includes it all the same.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Anomaly {
    /// Kafka's name for the error.
    pub kind: String,
    /// The producer.
    pub producer_id: i64,
    /// The batch's epoch.
    pub producer_epoch: i16,
    /// Its base offset.
    pub offset: i64,
    /// Its first sequence; -1 if it has none.
    pub sequence: i32,
    /// True if offsets are missing since the producer's last batch: compaction may have removed batches in
    /// between.
    pub compacted: bool,
    /// A human-readable description.
    pub message: String,
}

/// The number of control batches of one type.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct ControlCount {
    /// Kafka's name for the type of their first record; `EMPTY` if compaction left none, `UNREADABLE` if it
    /// cannot be read.
    pub kind: String,
    /// The number of batches.
    pub batches: u64,
}

/// The history of a partition.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct PartitionHistory {
    /// The directory.
    pub path: String,
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The time (ms) to which ages refer.
    pub now: i64,
    /// The number of segments that are part of the log.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their batches.
    pub batches: u64,
    /// Their records, except those in `unknown_wrappers`.
    pub records: u64,
    /// Records of batches that end before the log's start, which are not counted above.
    pub deleted: u64,
    /// The log's start, if records before it are left out.
    pub log_start_offset: Option<i64>,
    /// Legacy wrappers that do not decode: the number of their records is unknown.
    pub unknown_wrappers: u64,
    /// The first offset.
    pub first_offset: Option<i64>,
    /// The offset after the last one.
    pub next_offset: Option<i64>,
    /// Where the earliest open transaction begins, else `next_offset`.
    pub last_stable_offset: Option<i64>,
    /// The largest timestamp (ms); -1 if there is none.
    pub max_timestamp: i64,
    /// Batches by magic.
    pub magics: BTreeMap<i8, u64>,
    /// Batches by codec.
    pub codecs: BTreeMap<String, u64>,
    /// Batches without a producer id.
    pub without_producer: u64,
    /// Control batches by type.
    pub controls: Vec<ControlCount>,
    /// Where leader epochs begin, according to the batches: the first of them.
    pub leader_epochs: Vec<EpochEntry>,
    /// The number of leader epochs.
    pub leader_epoch_count: u64,
    /// The producers and epochs with the most bytes, ordered by first offset.
    pub producers: Vec<ProducerHistory>,
    /// The number of producers, each epoch counted separately.
    pub producer_count: u64,
    /// The number of producer IDs.
    pub producer_ids: u64,
    /// Transactions, ordered by their first offset or by the offset of their marker. If there are too many,
    /// hanging transactions are listed before open, aborted and committed ones. Of each outcome, those with
    /// the most bytes are listed.
    pub transactions: Vec<TransactionHistory>,
    /// The number of transactions by outcome; open ones that are hanging are also counted as `hanging`.
    pub transaction_counts: BTreeMap<String, u64>,
    /// The number of transactions that begin in each of equal steps from the first offset to the last:
    /// committed, aborted, open but not hanging, hanging. Empty if there are none.
    pub transaction_steps: Vec<[u64; 4]>,
    /// The first anomalies, in the order of the log.
    pub anomalies: Vec<Anomaly>,
    /// The number of anomalies by kind.
    pub anomaly_counts: BTreeMap<String, u64>,
    /// The number of anomalies that compaction may explain.
    pub compacted_anomalies: u64,
    /// The first gaps in offsets.
    pub gaps: Vec<OffsetGap>,
    /// The number of gaps.
    pub gap_count: u64,
    /// The number of offsets missing in them.
    pub missing_offsets: u64,
    /// The first batches whose timestamp steps back.
    pub steps_back: Vec<StepBack>,
    /// The number of steps back.
    pub step_back_count: u64,
    /// The largest step back (ms).
    pub largest_step_back_ms: u64,
    /// The first byte ranges that are in no batch.
    pub skipped: Vec<SkippedRange>,
    /// The number of such ranges.
    pub skipped_count: u64,
    /// The first problems of the directory and its sidecars.
    pub problems: Vec<Problem>,
    /// The number of problems.
    pub problem_count: u64,
    /// Files that were not read.
    pub ignored: Vec<IgnoredFile>,
    /// The names of the codecs that bins count.
    pub bin_codecs: Vec<String>,
    /// The batches, summarized.
    pub bins: Vec<Bin>,
}
