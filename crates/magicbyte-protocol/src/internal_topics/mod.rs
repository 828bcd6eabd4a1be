//! The records of Kafka's internal topics (`__consumer_offsets`, `__transaction_state`, `__share_group_state`,
//! `__cluster_metadata`, `__remote_log_metadata`), read by the table of [`message`](crate::message).
//!
//! ```
//! use magicbyte_protocol::internal_topics::{TopicRecord, read_record};
//! use magicbyte_protocol::message::Value;
//!
//! let (key, value) = (b"\0\x02\0\x01g", None);
//! let TopicRecord::Known { key: Some(key), value: None, .. } = read_record("__consumer_offsets", Some(key), value)?
//! else {
//!     panic!("the tombstone of a group")
//! };
//! assert_eq!(key.name(), "GroupMetadataKey");
//! assert_eq!(key.fields.get("group"), Some(&Value::String(b"g".into())));
//! # Ok::<(), magicbyte::Error>(())
//! ```

pub(crate) mod committed_offsets;
pub(crate) mod record;

pub use committed_offsets::{CommittedOffset, CommittedOffsets};
pub use record::{
    Part, TopicRecord, read_data, read_record, write_coordinator_record, write_data, write_metadata_record,
};

/// The names of the states of transactions in `__transaction_state`, by their ids (`TransactionState`).
pub const TRANSACTION_STATES: [&str; 8] = [
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
];
