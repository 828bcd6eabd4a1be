//! Rows of the table `problems`: what is wrong with a log, and where.

use std::ops::Range;

use magicbyte::Error;

/// The number of findings of each kind that a report lists; further ones are only counted, so that hostile
/// input cannot make a report large.
pub const LISTED: usize = 1000;

// Kinds of problems that are not errors of a batch or a file.
pub(crate) const CHECKPOINT_BEYOND_LOG: &str = "checkpoint_beyond_log";
pub(crate) const DIRECTORY_UNREADABLE: &str = "directory_unreadable";
pub(crate) const FILE_UNREADABLE: &str = "file_unreadable";
pub(crate) const INDEX_BEYOND_LOG: &str = "index_beyond_log";
pub(crate) const LEADER_EPOCH_MISMATCH: &str = "leader_epoch_mismatch";
pub(crate) const LEADER_EPOCH_OUT_OF_ORDER: &str = "leader_epoch_out_of_order";
pub(crate) const LOG_START_OUT_OF_RANGE: &str = "log_start_out_of_range";
pub(crate) const MISSING_SEGMENT: &str = "missing_segment";
pub(crate) const OFFSET_OVERFLOW: &str = "offset_overflow";
pub(crate) const OVERLAPPING_SEGMENT: &str = "overlapping_segment";
pub(crate) const TRANSACTION_INDEX_MISMATCH: &str = "transaction_index_mismatch";
pub(crate) const UNFINISHED_SWAP: &str = "unfinished_swap";
pub(crate) const UNKNOWN_LOG_FILE: &str = "unknown_log_file";
pub(crate) const WRONG_BASE_OFFSET: &str = "wrong_base_offset";

/// A row of the table `problems`: damage, or an inconsistency in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Problem {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The affected file.
    pub segment: Option<String>,
    /// A stable identifier: [`magicbyte::ErrorKind::name`], or one of the plan's own.
    pub kind: String,
    /// First affected byte.
    pub start: Option<u64>,
    /// One past the last affected byte.
    pub end: Option<u64>,
    /// The batch's base offset, as far as it can be trusted.
    pub base_offset: Option<i64>,
    /// The record's index in its batch.
    pub record_index: Option<u32>,
    /// The field, in Kafka's spelling.
    pub field: Option<String>,
    /// The first offset that may be lost, judging by the good batches around (inclusive). Of several ranges
    /// with no good batch between them, only the first has it.
    pub first_lost_offset: Option<i64>,
    /// The last offset that may be lost (inclusive); None if no good batch follows.
    pub last_lost_offset: Option<i64>,
    /// A human-readable description.
    pub message: String,
}

impl Problem {
    /// A problem with a byte range of a segment.
    #[doc(hidden)]
    pub fn of_bytes(topic: &str, partition: i32, segment: &str, range: Range<u64>, error: &Error) -> Self {
        Self {
            topic: topic.to_owned(),
            partition,
            segment: Some(segment.to_owned()),
            kind: error.kind().name().to_owned(),
            start: Some(range.start),
            end: Some(range.end),
            base_offset: error.base_offset(),
            record_index: error.record_index(),
            field: error.field().map(str::to_owned),
            message: error.to_string(),
            ..Self::default()
        }
    }
}

/// The first [`LISTED`] problems, and the number of further ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Problems {
    /// The first problems, at most [`LISTED`].
    #[serde(rename = "problems")]
    pub listed: Vec<Problem>,
    /// The number of further problems.
    #[serde(rename = "problems_left_out")]
    pub left_out: u64,
}

impl Problems {
    /// Adds a problem.
    pub fn note(&mut self, problem: Problem) {
        if self.listed.len() < LISTED {
            self.listed.push(problem);
        } else {
            self.left_out += 1;
        }
    }

    /// Adds the problems of the part that follows.
    pub fn join(&mut self, next: Self) {
        next.listed.into_iter().for_each(|problem| self.note(problem));
        self.left_out += next.left_out;
    }
}
