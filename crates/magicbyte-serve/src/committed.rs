//! The offsets that a group has committed.

use std::collections::BTreeMap;
use std::sync::Arc;

/// An offset that a group has committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedOffset {
    /// The offset at which the group continues.
    pub offset: i64,
    /// The leader epoch of the last record read, -1 if unknown.
    pub leader_epoch: i32,
    /// The metadata that the consumer added.
    pub metadata: Option<String>,
}

impl CommittedOffset {
    /// Bytes of an offset in a map: as much again may be free in a node.
    pub(super) fn memory(&self) -> usize {
        2 * size_of::<(i32, Self)>() + self.metadata.as_ref().map_or(0, String::len)
    }
}

/// The offsets of a group, by topic and partition.
#[derive(Debug, Default)]
pub(super) struct Offsets {
    topics: BTreeMap<Arc<str>, BTreeMap<i32, CommittedOffset>>,
    memory: usize,
}

impl Offsets {
    pub(super) fn insert(&mut self, topic: &Arc<str>, partition: i32, offset: CommittedOffset) {
        if !self.topics.contains_key(topic) {
            self.topics.insert(Arc::clone(topic), BTreeMap::new());
            // A map with a single entry has a whole node.
            self.memory += 12 * size_of::<(i32, CommittedOffset)>();
        }
        self.memory += offset.memory();
        let before = self.topics.get_mut(topic).and_then(|offsets| offsets.insert(partition, offset));
        self.memory -= before.map_or(0, |before| before.memory());
    }

    pub(super) fn get(&self, topic: &str, partition: i32) -> Option<&CommittedOffset> {
        self.topics.get(topic)?.get(&partition)
    }

    pub(super) fn topics(&self) -> impl Iterator<Item = &Arc<str>> {
        self.topics.keys()
    }

    /// The offsets of a topic, in the order of its partitions.
    pub(super) fn of_topic(&self, topic: &str) -> impl Iterator<Item = (i32, &CommittedOffset)> {
        self.topics.get(topic).into_iter().flatten().map(|(partition, offset)| (*partition, offset))
    }

    /// Bytes, apart from the names of the topics, which are the archive's.
    pub(super) fn memory(&self) -> usize {
        self.memory
    }
}
