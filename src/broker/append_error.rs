//! Why an append is refused, under Kafka's names (`Errors`, `RecordValidationException`).

use std::fmt;

use crate::error::{Error, ErrorKind};

macro_rules! error_codes {
    ($($(#[$doc:meta])* $variant:ident = $code:literal $name:literal,)*) => {
        /// An error as a broker answers it: the name and number of Kafka's protocol.
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
    /// What Kafka has no other answer for.
    UnknownServerError = -1 "UNKNOWN_SERVER_ERROR",
    /// An offset outside of the log.
    OffsetOutOfRange = 1 "OFFSET_OUT_OF_RANGE",
    /// A size or checksum is wrong.
    CorruptMessage = 2 "CORRUPT_MESSAGE",
    /// A batch is larger than `max.message.bytes`.
    MessageTooLarge = 10 "MESSAGE_TOO_LARGE",
    /// The append is larger than a segment.
    RecordListTooLarge = 18 "RECORD_LIST_TOO_LARGE",
    /// A timestamp is outside of the topic's bounds, or of the type that only a broker sets.
    InvalidTimestamp = 32 "INVALID_TIMESTAMP",
    /// The stored magic cannot say what the batch says.
    UnsupportedForMessageFormat = 43 "UNSUPPORTED_FOR_MESSAGE_FORMAT",
    /// The topic's policy forbids it.
    PolicyViolation = 44 "POLICY_VIOLATION",
    /// A sequence number that does not follow the producer's last.
    OutOfOrderSequenceNumber = 45 "OUT_OF_ORDER_SEQUENCE_NUMBER",
    /// A producer epoch that was replaced.
    InvalidProducerEpoch = 47 "INVALID_PRODUCER_EPOCH",
    /// A transaction is in no state for this.
    InvalidTxnState = 48 "INVALID_TXN_STATE",
    /// A marker of a coordinator that was replaced.
    TransactionCoordinatorFenced = 52 "TRANSACTION_COORDINATOR_FENCED",
    /// The codec is not one that can be read or stored here.
    UnsupportedCompressionType = 76 "UNSUPPORTED_COMPRESSION_TYPE",
    /// A batch or record breaks a rule.
    InvalidRecord = 87 "INVALID_RECORD",
}

/// How many [`RecordError`]s an error keeps: it counts all, but a batch can decompress to any number.
pub const MAX_RECORD_ERRORS: usize = 1 << 16;

/// An append that was refused: nothing of it is stored.
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

/// The rules that single records break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordErrorKind {
    /// A message inside a wrapper has another magic than the wrapper.
    MagicMismatch {
        /// The message's magic.
        found: i8,
        /// The wrapper's.
        expected: i8,
    },
    /// A record without key on a compacted topic.
    MissingKey,
    /// A timestamp outside of the topic's bounds; all in ms, both bounds inclusive.
    TimestampOutOfRange {
        /// The record's timestamp.
        timestamp: i64,
        /// The earliest possible.
        min: i64,
        /// The latest possible.
        max: i64,
    },
    /// The batch says `LogAppendTime`, which only the broker sets.
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
                write!(f, "a message of magic {found} stands in a wrapper of magic {expected}")
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

    /// `count` records were wrong, `record_errors` are the first of them.
    #[cold]
    pub(super) fn of_records(record_errors: Vec<RecordError>, count: u64, about_time: bool) -> Self {
        let code = if about_time { ErrorCode::InvalidTimestamp } else { ErrorCode::InvalidRecord };
        let first = record_errors.first().map_or(String::new(), |first| {
            format!(", the first at index {}: {}", first.batch_index, first.kind)
        });
        let message = format!("records refused: {count}{first}");
        Self { code, message, cause: None, record_errors }
    }

    /// The error as Kafka answers it.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// What is wrong with the bytes and where, if they are what is wrong.
    #[must_use]
    pub fn cause(&self) -> Option<&Error> {
        self.cause.as_ref()
    }

    /// The records that break a rule by themselves, the first [`MAX_RECORD_ERRORS`] of them; empty if
    /// something else is wrong.
    #[must_use]
    pub fn record_errors(&self) -> &[RecordError] {
        &self.record_errors
    }
}

/// Bytes that cannot be read.
impl From<Error> for AppendError {
    #[cold]
    fn from(error: Error) -> Self {
        let code = match error.kind() {
            ErrorKind::CrcMismatch { .. } => ErrorCode::CorruptMessage,
            // Of a record it is the record that is wrong; of a batch, or of a message in a wrapper, the framing.
            ErrorKind::InvalidSize { .. } | ErrorKind::UnsupportedMagic(_)
                if error.record_index().is_none() || error.field() == Some("size") =>
            {
                ErrorCode::CorruptMessage
            }
            ErrorKind::UnknownCompression(_) | ErrorKind::UnsupportedCompression(_) => {
                ErrorCode::UnsupportedCompressionType
            }
            // What a builder refuses to write.
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

/// Collects the errors of a batch's records.
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

    /// One wrong timestamp makes the whole append a matter of timestamps.
    pub(super) fn into_result(self) -> Result<(), AppendError> {
        if self.count == 0 {
            return Ok(());
        }
        Err(AppendError::of_records(self.kept, self.count, self.about_time))
    }
}
