//! The type of a timestamp, in batches of all magics.

/// The meaning of a record's timestamp (Kafka's `TimestampType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i8)]
pub enum TimestampType {
    /// Magic 0: there is no timestamp.
    NoTimestampType = -1,
    /// The timestamp set by the producer.
    CreateTime = 0,
    /// The broker's clock at the time of the append.
    LogAppendTime = 1,
}

impl TimestampType {
    /// The type with this number, Kafka's `id`: -1 to 1.
    #[doc(hidden)]
    #[must_use]
    pub fn from_id(id: i32) -> Option<Self> {
        [Self::NoTimestampType, Self::CreateTime, Self::LogAppendTime]
            .into_iter()
            .find(|one| *one as i32 == id)
    }

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
