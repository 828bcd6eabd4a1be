//! The crate's error: its kind, and the broker, topic and partition that it is about.

use std::fmt;
use std::io;
use std::time::Duration;

use magicbyte_broker::ErrorCode;

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// An error: its [`ErrorKind`], and as far as known the broker, the topic and the partition.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    broker: Option<String>,
    topic: Option<String>,
    partition: Option<i32>,
}

/// The kind of an [`Error`]. No text contains a password, a key or a token.
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The connection failed or ended.
    Io(io::Error),
    /// A broker did not do this in time.
    Timeout {
        /// The broker's task, such as "answer Fetch".
        awaited: String,
        /// The time that it had.
        after: Duration,
    },
    /// Bytes that no broker sends; the connection was closed.
    Protocol(String),
    /// A broker's answer is this error.
    Broker {
        /// The request's API.
        request: &'static str,
        /// Kafka's error code; [`Error::name`] is its name.
        code: i16,
        /// The broker's own words.
        message: Option<String>,
    },
    /// The cluster does not have the broker with this id (any more).
    UnknownBroker(i32),
    /// The broker and this client have no version of an API in common.
    UnsupportedVersion(String),
    /// The broker cannot be trusted, or does not trust this client: certificates, user, password, token.
    Security(String),
    /// An option or a file of options is invalid.
    InvalidOptions(String),
    /// The log does not have the offset (any more).
    OffsetOutOfRange {
        /// The offset that was fetched.
        offset: i64,
        /// The first offset of the log, if the broker told it.
        log_start: Option<i64>,
        /// The end of the log (exclusive), if the broker told it.
        log_end: Option<i64>,
    },
    /// The log was truncated, so that records which were fetched from an earlier leader are not in it.
    Truncated {
        /// The next offset to fetch.
        offset: i64,
        /// The offset at which the log of the current leader diverges.
        diverges_at: i64,
    },
    /// The topic was deleted and created again.
    TopicRecreated,
    /// The record set of a partition is not a sequence of batches, at this offset or after it.
    Corrupt {
        /// The next offset to fetch.
        offset: i64,
        /// The reason.
        error: magicbyte::Error,
    },
}

/// Errors after which the same request may succeed later or at another broker, by Kafka's names.
const RETRIABLE: &[&str] = &[
    "UNKNOWN_TOPIC_OR_PARTITION",
    "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_OR_FOLLOWER",
    "REQUEST_TIMED_OUT",
    "BROKER_NOT_AVAILABLE",
    "REPLICA_NOT_AVAILABLE",
    "NETWORK_EXCEPTION",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "KAFKA_STORAGE_ERROR",
    "LISTENER_NOT_FOUND",
    "FENCED_LEADER_EPOCH",
    "UNKNOWN_LEADER_EPOCH",
    "OFFSET_NOT_AVAILABLE",
    "UNKNOWN_TOPIC_ID",
    "INCONSISTENT_TOPIC_ID",
];

impl Error {
    pub(crate) fn new(kind: ErrorKind) -> Self {
        Self(Box::new(Inner { kind, broker: None, topic: None, partition: None }))
    }

    pub(crate) fn protocol(why: impl Into<String>) -> Self {
        Self::new(ErrorKind::Protocol(why.into()))
    }

    pub(crate) fn security(why: impl Into<String>) -> Self {
        Self::new(ErrorKind::Security(why.into()))
    }

    pub(crate) fn options(why: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidOptions(why.into()))
    }

    /// The error of a connection: one that timed out says what the broker had to do.
    pub(crate) fn from_io(error: io::Error, after: Duration, awaited: &str) -> Self {
        // With TLS 1.3, a broker refuses a client's certificate only after the handshake.
        #[cfg(feature = "tls")]
        if let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref()) {
            return Self::tls(error);
        }
        Self::new(match error.kind() {
            io::ErrorKind::TimedOut => ErrorKind::Timeout { awaited: awaited.to_owned(), after },
            io::ErrorKind::UnexpectedEof => {
                let why = format!("closed the connection, expected to {awaited}");
                ErrorKind::Io(io::Error::new(io::ErrorKind::UnexpectedEof, why))
            }
            _ => ErrorKind::Io(error),
        })
    }

    /// One side of a TLS connection does not accept the other.
    #[cfg(feature = "tls")]
    pub(crate) fn tls(error: &rustls::Error) -> Self {
        Self::security(format!("TLS: {error}"))
    }

    /// An error if the code is one.
    pub(crate) fn check(request: &'static str, code: i16) -> Result<()> {
        Self::check_with(request, code, None)
    }

    /// An error if the code is one, with the broker's own words.
    pub(crate) fn check_with(request: &'static str, code: i16, message: Option<&str>) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        Err(Self::new(ErrorKind::Broker { request, code, message: message.map(printable) }))
    }

    /// Names the broker, unless one is named.
    pub(crate) fn at(mut self, broker: &str) -> Self {
        self.0.broker.get_or_insert_with(|| broker.to_owned());
        self
    }

    pub(crate) fn of_topic(mut self, topic: &str) -> Self {
        self.0.topic.get_or_insert_with(|| printable(topic));
        self
    }

    pub(crate) fn of(mut self, topic: &str, partition: i32) -> Self {
        self.0.partition.get_or_insert(partition);
        self.of_topic(topic)
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// The broker's host and port, as they were given or as the cluster told them.
    #[must_use]
    pub fn broker(&self) -> Option<&str> {
        self.0.broker.as_deref()
    }

    /// The topic.
    #[must_use]
    pub fn topic(&self) -> Option<&str> {
        self.0.topic.as_deref()
    }

    /// The partition of the topic.
    #[must_use]
    pub fn partition(&self) -> Option<i32> {
        self.0.partition
    }

    /// Kafka's name of the error, such as `TOPIC_AUTHORIZATION_FAILED`, if a broker has answered one that has a name.
    #[must_use]
    pub fn name(&self) -> Option<&'static str> {
        match self.kind() {
            ErrorKind::Broker { code, .. } => ErrorCode::name_of(*code),
            ErrorKind::OffsetOutOfRange { .. } => Some(ErrorCode::OffsetOutOfRange.name()),
            _ => None,
        }
    }

    /// True if the same request may succeed later, or at another broker.
    #[must_use]
    pub fn is_retriable(&self) -> bool {
        match self.kind() {
            ErrorKind::Io(_) | ErrorKind::Timeout { .. } => true,
            // A topic that the cluster does not have is not waited for.
            ErrorKind::Broker { request: "Metadata", code, .. }
                if *code == ErrorCode::UnknownTopicOrPartition.code() =>
            {
                false
            }
            ErrorKind::Broker { code, .. } => {
                ErrorCode::name_of(*code).is_some_and(|name| RETRIABLE.contains(&name))
            }
            _ => false,
        }
    }
}

/// A broker's text, bounded and without control characters.
pub(crate) fn printable(text: &str) -> String {
    text.chars().take(300).map(|c| if c.is_control() { '?' } else { c }).collect()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, broker, topic, partition } = &*self.0;
        if let Some(broker) = broker {
            write!(f, "{broker}: ")?;
        }
        match (topic, partition) {
            (Some(topic), Some(partition)) => write!(f, "{topic}-{partition}: ")?,
            (Some(topic), None) => write!(f, "topic {topic}: ")?,
            _ => {}
        }
        kind.fmt(f)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Timeout { awaited, after } => write!(f, "did not {awaited} within {after:?}"),
            Self::Protocol(why)
            | Self::UnsupportedVersion(why)
            | Self::Security(why)
            | Self::InvalidOptions(why) => f.write_str(why),
            Self::Broker { request, code, message } => {
                match ErrorCode::name_of(*code) {
                    Some(name) => write!(f, "{request}: {name}")?,
                    None => write!(f, "{request}: error code {code}")?,
                }
                message.as_ref().map_or(Ok(()), |message| write!(f, " ({message})"))
            }
            Self::UnknownBroker(id) => write!(f, "the cluster has no broker {id}"),
            Self::OffsetOutOfRange { offset, log_start: Some(start), .. } if offset < start => {
                write!(f, "OFFSET_OUT_OF_RANGE: offset {offset} was deleted; the log now begins at {start}")
            }
            Self::OffsetOutOfRange { offset, log_end: Some(end), .. } if offset > end => {
                write!(f, "OFFSET_OUT_OF_RANGE: offset {offset} is beyond the end of the log, {end}")
            }
            Self::OffsetOutOfRange { offset, .. } => {
                write!(f, "OFFSET_OUT_OF_RANGE: the log does not have offset {offset}")
            }
            Self::Truncated { offset, diverges_at } => write!(
                f,
                "the log was truncated: offsets {diverges_at} to {offset} (exclusive) were read from an earlier \
                 leader, and the current one does not have them"
            ),
            Self::TopicRecreated => f.write_str("the topic was deleted and created again"),
            Self::Corrupt { offset, error } => write!(f, "the records at offset {offset}: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self.kind() {
            ErrorKind::Io(error) => Some(error),
            ErrorKind::Corrupt { error, .. } => Some(error),
            _ => None,
        }
    }
}
