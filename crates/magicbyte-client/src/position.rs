//! The name of a partition, and the position up to which it was read.

use std::sync::Arc;

/// A partition of a topic.
pub type TopicPartition = (Arc<str>, i32);

/// The end of what was fetched of a partition, with what proves that a leader has the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadPosition {
    /// The next offset.
    pub(crate) offset: i64,
    /// The leader epoch of the last batch; -1 if unknown.
    pub(crate) leader_epoch: i32,
    /// The id that the topic had first.
    pub(crate) topic_id: Option<[u8; 16]>,
}
