//! Errors of appends, with Kafka's names (`Errors`, `RecordValidationException`).

use std::fmt;

use crate::error::{Error, ErrorKind};

macro_rules! error_codes {
    ($($(#[$doc:meta])* $variant:ident = $code:literal $name:literal,)*) => {
        /// An error code of Kafka's protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode { $($(#[$doc])* $variant = $code,)* }

        impl ErrorCode {
            /// Kafka's name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The number in responses.
            #[must_use]
            pub fn code(self) -> i16 {
                self as i16
            }
        }
    };
}

error_codes! {
    /// An error without a code of its own.
    UnknownServerError = -1 "UNKNOWN_SERVER_ERROR",
    /// No error.
    None = 0 "NONE",
    /// An offset is outside the log.
    OffsetOutOfRange = 1 "OFFSET_OUT_OF_RANGE",
    /// A size or checksum is wrong.
    CorruptMessage = 2 "CORRUPT_MESSAGE",
    /// There is no such topic or partition.
    UnknownTopicOrPartition = 3 "UNKNOWN_TOPIC_OR_PARTITION",
    /// A batch is larger than `max.message.bytes`.
    MessageTooLarge = 10 "MESSAGE_TOO_LARGE",
    /// The metadata of a committed offset is too large.
    OffsetMetadataTooLarge = 12 "OFFSET_METADATA_TOO_LARGE",
    /// The coordinator cannot be asked now.
    CoordinatorNotAvailable = 15 "COORDINATOR_NOT_AVAILABLE",
    /// The append is larger than a segment.
    RecordListTooLarge = 18 "RECORD_LIST_TOO_LARGE",
    /// A member is of another generation than its group.
    IllegalGeneration = 22 "ILLEGAL_GENERATION",
    /// A member has no assignor in common with its group.
    InconsistentGroupProtocol = 23 "INCONSISTENT_GROUP_PROTOCOL",
    /// A group has no name.
    InvalidGroupId = 24 "INVALID_GROUP_ID",
    /// The group has no such member.
    UnknownMemberId = 25 "UNKNOWN_MEMBER_ID",
    /// A session timeout is out of range.
    InvalidSessionTimeout = 26 "INVALID_SESSION_TIMEOUT",
    /// The members of the group are joining it again.
    RebalanceInProgress = 27 "REBALANCE_IN_PROGRESS",
    /// More offsets than the coordinator keeps.
    InvalidCommitOffsetSize = 28 "INVALID_COMMIT_OFFSET_SIZE",
    /// A timestamp is outside the topic's bounds, or of the type that only a broker may set.
    InvalidTimestamp = 32 "INVALID_TIMESTAMP",
    /// The broker does not support this version of the request.
    UnsupportedVersion = 35 "UNSUPPORTED_VERSION",
    /// The batch uses a feature that the topic's magic does not have.
    UnsupportedForMessageFormat = 43 "UNSUPPORTED_FOR_MESSAGE_FORMAT",
    /// The topic's policy forbids it.
    PolicyViolation = 44 "POLICY_VIOLATION",
    /// A sequence number does not follow the producer's last.
    OutOfOrderSequenceNumber = 45 "OUT_OF_ORDER_SEQUENCE_NUMBER",
    /// A producer epoch is older than the current one.
    InvalidProducerEpoch = 47 "INVALID_PRODUCER_EPOCH",
    /// The state of the transaction does not allow this.
    InvalidTxnState = 48 "INVALID_TXN_STATE",
    /// A marker comes from a coordinator that was replaced.
    TransactionCoordinatorFenced = 52 "TRANSACTION_COORDINATOR_FENCED",
    /// A file of the log cannot be read.
    KafkaStorageError = 56 "KAFKA_STORAGE_ERROR",
    /// There is no such fetch session.
    FetchSessionIdNotFound = 70 "FETCH_SESSION_ID_NOT_FOUND",
    /// The codec cannot be read or stored here.
    UnsupportedCompressionType = 76 "UNSUPPORTED_COMPRESSION_TYPE",
    /// A new member must join again with the id that it got.
    MemberIdRequired = 79 "MEMBER_ID_REQUIRED",
    /// The group has as many members as it can have.
    GroupMaxSizeReached = 81 "GROUP_MAX_SIZE_REACHED",
    /// Another member has the same instance id.
    FencedInstanceId = 82 "FENCED_INSTANCE_ID",
    /// A batch or record breaks a rule.
    InvalidRecord = 87 "INVALID_RECORD",
    /// There is no topic of this id.
    UnknownTopicId = 100 "UNKNOWN_TOPIC_ID",
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

/// What is wrong with one record (`ProduceResponse.RecordError`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// Index of the record in its batch, from 0.
    pub batch_index: u32,
    /// What is wrong.
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
