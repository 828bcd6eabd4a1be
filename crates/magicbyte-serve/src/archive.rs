//! The topics that are served.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use magicbyte::crc32c;
use magicbyte_broker::ErrorCode;
use magicbyte_log::Listing;
use magicbyte_protocol::internals::uuid;

use crate::assignors::{TopicId, TopicPartitions};
use crate::partition::{Partition, Shared};
use crate::problem_log::PROBLEMS_TOPIC;

/// A topic that is served, as the caller describes it.
#[derive(Clone, Debug, Default)]
pub struct ServedTopic {
    /// Its id in Kafka's text form; without one, an id is made of the name.
    pub topic_id: Option<String>,
    /// Its configs, for clients that ask.
    pub configs: BTreeMap<String, String>,
}

/// A topic.
#[derive(Debug)]
pub(super) struct Topic {
    pub(super) name: Arc<str>,
    pub(super) id: TopicId,
    pub(super) configs: BTreeMap<String, String>,
    pub(super) partitions: BTreeMap<i32, Partition>,
}

impl Topic {
    /// True if consumers that subscribe to a pattern leave the topic out.
    pub(super) fn is_internal(&self) -> bool {
        matches!(&*self.name, "__consumer_offsets" | "__transaction_state" | "__share_group_state")
    }
}

/// The topics by name and by id.
#[derive(Debug)]
pub(super) struct Archive {
    pub(super) shared: Shared,
    pub(super) topics: BTreeMap<Arc<str>, Topic>,
    names: HashMap<[u8; 16], Arc<str>>,
}

/// The name or id of a topic in a request. All partitions of the topic share the name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum TopicRef {
    Name(Arc<str>),
    Id([u8; 16]),
}

impl TopicRef {
    /// A topic by its name, or by its id in versions of a request that have ids instead.
    pub(super) fn new(name: &str, id: [u8; 16], is_by_id: bool) -> Self {
        if is_by_id { Self::Id(id) } else { Self::Name(name.into()) }
    }

    /// The name; empty for an id. A response has either this or the id.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Id(_) => "",
        }
    }

    /// The id; zero for a name.
    pub(super) fn id(&self) -> [u8; 16] {
        match self {
            Self::Name(_) => [0; 16],
            Self::Id(id) => *id,
        }
    }
}

impl Archive {
    pub(super) fn new(
        listings: Vec<Listing>,
        mut described: BTreeMap<String, ServedTopic>,
        shared: Shared,
    ) -> Self {
        let mut partitions: BTreeMap<String, BTreeMap<i32, Partition>> = BTreeMap::new();
        for listing in listings {
            let (topic, partition) = (listing.topic.clone(), listing.partition);
            partitions.entry(topic).or_default().insert(partition, Partition::of(listing));
        }
        partitions.insert(PROBLEMS_TOPIC.into(), BTreeMap::from([(0, Partition::Problems)]));
        let mut archive = Self { shared, topics: BTreeMap::new(), names: HashMap::new() };
        for (name, partitions) in partitions {
            let ServedTopic { topic_id, configs } = described.remove(&name).unwrap_or_default();
            let given = topic_id.and_then(|id| uuid::from_text(id.as_bytes()));
            // Two topics may claim an id: then only the first has it.
            let id = given.into_iter().chain(made_ids(&name)).find(|id| !archive.is_taken(*id));
            let Some(id) = id else { continue };
            let name: Arc<str> = name.into();
            archive.names.insert(id, Arc::clone(&name));
            archive.topics.insert(Arc::clone(&name), Topic { name, id, configs, partitions });
        }
        archive
    }

    /// The number of partitions.
    pub(super) fn partitions(&self) -> usize {
        self.topics.values().map(|topic| topic.partitions.len()).sum()
    }

    /// The partitions of each topic, by its id.
    pub(super) fn topic_partitions(&self) -> TopicPartitions {
        let of = |topic: &Topic| (topic.id, topic.partitions.keys().copied().collect());
        self.topics.values().map(of).collect()
    }

    /// Kafka uses the ids 0 and 1 itself.
    fn is_taken(&self, id: [u8; 16]) -> bool {
        u128::from_be_bytes(id) < 2 || self.names.contains_key(&id)
    }

    /// The topic of this name or id.
    ///
    /// # Errors
    /// Kafka's, if there is none.
    pub(super) fn topic(&self, named: &TopicRef) -> Result<&Topic, ErrorCode> {
        match named {
            TopicRef::Name(name) => self.topics.get(name).ok_or(ErrorCode::UnknownTopicOrPartition),
            TopicRef::Id(id) => {
                let name = self.names.get(id).ok_or(ErrorCode::UnknownTopicId)?;
                self.topics.get(name).ok_or(ErrorCode::UnknownTopicId)
            }
        }
    }

    /// A partition.
    ///
    /// # Errors
    /// Kafka's, if there is none.
    pub(super) fn partition(&self, named: &TopicRef, partition: i32) -> Result<&Partition, ErrorCode> {
        self.topic(named)?.partitions.get(&partition).ok_or(ErrorCode::UnknownTopicOrPartition)
    }
}

/// Ids for a topic without one: the same each time for the same name.
fn made_ids(name: &str) -> impl Iterator<Item = [u8; 16]> {
    (0u32..).map(move |seed| {
        let mut id = [0; 16];
        let mut sum = seed;
        for part in id.chunks_exact_mut(4) {
            sum = crc32c(name.as_bytes(), crc32c(&seed.to_be_bytes(), sum));
            part.copy_from_slice(&sum.to_be_bytes());
        }
        id
    })
}
