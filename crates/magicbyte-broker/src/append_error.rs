//! Errors of appends, with Kafka's names (`Errors`, `RecordValidationException`).

use std::fmt;

use crate::error_names::ERROR_NAMES;
use magicbyte::{Error, ErrorKind};

/// An error code of Kafka's protocol: those that are answered here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorCode {
    /// An error without a code of its own.
    UnknownServerError = -1,
    /// No error.
    None = 0,
    /// An offset is outside the log.
    OffsetOutOfRange = 1,
    /// A size or checksum is wrong.
    CorruptMessage = 2,
    /// There is no such topic or partition.
    UnknownTopicOrPartition = 3,
    /// A batch is larger than `max.message.bytes`.
    MessageTooLarge = 10,
    /// The metadata of a committed offset is too large.
    OffsetMetadataTooLarge = 12,
    /// The coordinator cannot be asked now.
    CoordinatorNotAvailable = 15,
    /// The append is larger than a segment.
    RecordListTooLarge = 18,
    /// A member is of another generation than its group.
    IllegalGeneration = 22,
    /// A member has no assignor in common with its group.
    InconsistentGroupProtocol = 23,
    /// A group has no name.
    InvalidGroupId = 24,
    /// The group has no such member.
    UnknownMemberId = 25,
    /// A session timeout is out of range.
    InvalidSessionTimeout = 26,
    /// The members of the group are joining it again.
    RebalanceInProgress = 27,
    /// More offsets than the coordinator keeps.
    InvalidCommitOffsetSize = 28,
    /// A timestamp is outside the topic's bounds, or of the type that only a broker may set.
    InvalidTimestamp = 32,
    /// The broker does not support this version of the request.
    UnsupportedVersion = 35,
    /// A request contradicts itself, as by naming a partition twice.
    InvalidRequest = 42,
    /// The batch uses a feature that the topic's magic does not have.
    UnsupportedForMessageFormat = 43,
    /// The topic's policy forbids it.
    PolicyViolation = 44,
    /// A sequence number does not follow the producer's last.
    OutOfOrderSequenceNumber = 45,
    /// A producer epoch is older than the current one.
    InvalidProducerEpoch = 47,
    /// The state of the transaction does not allow this.
    InvalidTxnState = 48,
    /// A marker comes from a coordinator that was replaced.
    TransactionCoordinatorFenced = 52,
    /// There is no authorizer.
    SecurityDisabled = 54,
    /// A file of the log cannot be read.
    KafkaStorageError = 56,
    /// There is no group of this name, or it is of another type.
    GroupIdNotFound = 69,
    /// There is no such fetch session.
    FetchSessionIdNotFound = 70,
    /// A request of a fetch session is not the next one.
    InvalidFetchSessionEpoch = 71,
    /// The codec cannot be read or stored here.
    UnsupportedCompressionType = 76,
    /// A new member must join again with the id that it got.
    MemberIdRequired = 79,
    /// The group has as many members as it can have.
    GroupMaxSizeReached = 81,
    /// Another member has the same instance id.
    FencedInstanceId = 82,
    /// A batch or record breaks a rule.
    InvalidRecord = 87,
    /// There is no such resource, such as a user.
    ResourceNotFound = 91,
    /// There is no topic of this id.
    UnknownTopicId = 100,
    /// The coordinator does not know the transactional id.
    TransactionalIdNotFound = 105,
    /// A member has another epoch than the coordinator knows, and has to join again.
    FencedMemberEpoch = 110,
    /// Another member has the instance id, and has not left.
    UnreleasedInstanceId = 111,
    /// The coordinator does not have the assignor.
    UnsupportedAssignor = 112,
    /// The epoch of a member is not its current one.
    StaleMemberEpoch = 113,
    /// A regular expression is not valid.
    InvalidRegularExpression = 128,
}

impl ErrorCode {
    /// Kafka's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::name_of(self.code()).unwrap_or_default()
    }

    /// The number in responses.
    #[must_use]
    pub fn code(self) -> i16 {
        self as i16
    }

    /// Kafka's name of any error code, such as `OFFSET_OUT_OF_RANGE` of 1; None if Kafka 4.4 does not have the code.
    #[must_use]
    pub fn name_of(code: i16) -> Option<&'static str> {
        let index = ERROR_NAMES.binary_search_by_key(&code, |(known, _)| *known).ok()?;
        Some(ERROR_NAMES[index].1)
    }
}

/// The maximum number of [`RecordError`]s that an error keeps. All are counted, but a batch can have any
/// number.
pub const MAX_RECORD_ERRORS: usize = 1 << 16;

/// The error of a refused append, of which nothing was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendError {
    code: ErrorCode,
    message: String,
    cause: Option<Error>,
    record_errors: Vec<RecordError>,
}

/// A fault in one record (`ProduceResponse.RecordError`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// Index of the record in its batch, from 0.
    pub batch_index: u32,
    /// The kind of the fault.
    pub kind: RecordErrorKind,
}

/// The rules for single records.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordErrorKind {
    /// A message inside a wrapper has another magic than the wrapper.
    MagicMismatch {
        /// The message's magic.
        found: i8,
        /// The wrapper's magic.
        expected: i8,
    },
    /// A record on a compacted topic has no key.
    MissingKey,
    /// A timestamp is outside the topic's bounds. All are in ms, both bounds inclusive.
    TimestampOutOfRange {
        /// The record's timestamp.
        timestamp: i64,
        /// The earliest timestamp allowed.
        min: i64,
        /// The latest timestamp allowed.
        max: i64,
    },
    /// The batch has timestamp type `LogAppendTime`, which only the broker may set.
    LogAppendTimeFromProducer,
}

impl RecordErrorKind {
    fn is_about_time(&self) -> bool {
        matches!(self, Self::TimestampOutOfRange { .. } | Self::LogAppendTimeFromProducer)
    }
}

impl fmt::Display for RecordErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MagicMismatch { found, expected } => {
                write!(f, "a message of magic {found} is inside a wrapper of magic {expected}")
            }
            Self::MissingKey => write!(f, "the topic is compacted and the record has no key"),
            Self::TimestampOutOfRange { timestamp, min, max } => {
                write!(f, "timestamp {timestamp} is not within {min} to {max}")
            }
            Self::LogAppendTimeFromProducer => {
                write!(f, "the batch's timestamp type is LogAppendTime, which producers must not set")
            }
        }
    }
}

impl AppendError {
    #[cold]
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), cause: None, record_errors: Vec::new() }
    }

    #[cold]
    pub(super) fn caused(code: ErrorCode, error: Error) -> Self {
        Self { code, message: error.to_string(), cause: Some(error), record_errors: Vec::new() }
    }

    /// The error of `count` invalid records; `record_errors` has the first of them.
    #[cold]
    pub(super) fn of_records(record_errors: Vec<RecordError>, count: u64, about_time: bool) -> Self {
        let code = if about_time { ErrorCode::InvalidTimestamp } else { ErrorCode::InvalidRecord };
        let first = record_errors.first().map_or(String::new(), |first| {
            format!(", the first at index {}: {}", first.batch_index, first.kind)
        });
        let message = format!("{count} invalid records{first}");
        Self { code, message, cause: None, record_errors }
    }

    /// Kafka's error code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// The error in the bytes, if that is the cause.
    #[must_use]
    pub fn cause(&self) -> Option<&Error> {
        self.cause.as_ref()
    }

    /// The invalid records, the first [`MAX_RECORD_ERRORS`] of them; empty if something else is wrong.
    #[must_use]
    pub fn record_errors(&self) -> &[RecordError] {
        &self.record_errors
    }
}

/// The error of bytes that cannot be read.
impl From<Error> for AppendError {
    #[cold]
    fn from(error: Error) -> Self {
        let code = match error.kind() {
            ErrorKind::CrcMismatch { .. } => ErrorCode::CorruptMessage,
            // In a batch, or of a message in a wrapper, this is an error of framing; in a record, of the
            // record.
            ErrorKind::InvalidSize { .. } | ErrorKind::UnsupportedMagic(_)
                if error.record_index().is_none() || error.field() == Some("size") =>
            {
                ErrorCode::CorruptMessage
            }
            ErrorKind::UnknownCompression(_) | ErrorKind::UnsupportedCompression(_) => {
                ErrorCode::UnsupportedCompressionType
            }
            // A builder refuses the timestamp.
            ErrorKind::InvalidRecord(_) if error.field() == Some("timestamp") => ErrorCode::InvalidTimestamp,
            ErrorKind::LimitExceeded { .. } | ErrorKind::RecordTooLarge { .. } => ErrorCode::MessageTooLarge,
            _ => ErrorCode::InvalidRecord,
        };
        Self::caused(code, error)
    }
}

impl fmt::Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.message)
    }
}

impl std::error::Error for AppendError {}

/// Collects the errors of the records of a batch.
#[derive(Debug, Default)]
pub(super) struct RecordErrors {
    kept: Vec<RecordError>,
    count: u64,
    about_time: bool,
}

impl RecordErrors {
    #[cold]
    pub(super) fn add(&mut self, batch_index: u32, kind: RecordErrorKind) {
        self.count += 1;
        self.about_time |= kind.is_about_time();
        if self.kept.len() < MAX_RECORD_ERRORS {
            self.kept.push(RecordError { batch_index, kind });
        }
    }

    /// A single invalid timestamp makes the whole append's error `INVALID_TIMESTAMP`.
    pub(super) fn into_result(self) -> Result<(), AppendError> {
        if self.count == 0 {
            return Ok(());
        }
        Err(AppendError::of_records(self.kept, self.count, self.about_time))
    }
}
