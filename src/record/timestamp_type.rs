//! Whose clock a timestamp is, in batches of all magics.

/// What a record's timestamp means (Kafka's `TimestampType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i8)]
pub enum TimestampType {
    /// Magic 0: there is no timestamp.
    NoTimestampType = -1,
    /// The producer's time.
    CreateTime = 0,
    /// The broker's time at append.
    LogAppendTime = 1,
}

impl TimestampType {
    /// Kafka's name: `NoTimestampType`, `CreateTime`, `LogAppendTime`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NoTimestampType => "NoTimestampType",
            Self::CreateTime => "CreateTime",
            Self::LogAppendTime => "LogAppendTime",
        }
    }
}
