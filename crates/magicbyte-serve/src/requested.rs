//! The topics and partitions that a request names. A client may name them again and again: each is in the response once.

use std::collections::HashMap;

use crate::archive::TopicRef;

/// A topic, and the partitions of it that a request names.
#[derive(Debug)]
pub(super) struct RequestedTopic<T> {
    pub(super) topic: TopicRef,
    pub(super) partitions: Vec<Requested<T>>,
}

/// A partition, and what a request says about it.
#[derive(Debug)]
pub(super) struct Requested<T> {
    pub(super) partition: i32,
    pub(super) value: T,
    pub(super) is_repeated: bool,
}

/// Topics and partitions in the order of their first mention. The last mention of a partition counts, as in Kafka's maps.
pub(super) fn requested<T, P: IntoIterator<Item = (i32, T)>>(
    topics: impl IntoIterator<Item = (TopicRef, P)>,
) -> Vec<RequestedTopic<T>> {
    let mut requested: Vec<RequestedTopic<T>> = Vec::new();
    let mut places: HashMap<TopicRef, usize> = HashMap::new();
    let mut places_of_partitions: HashMap<(usize, i32), usize> = HashMap::new();
    for (topic, partitions) in topics {
        let index = *places.entry(topic.clone()).or_insert_with(|| {
            requested.push(RequestedTopic { topic, partitions: Vec::new() });
            requested.len() - 1
        });
        let known = &mut requested[index].partitions;
        for (partition, value) in partitions {
            let at = *places_of_partitions.entry((index, partition)).or_insert(known.len());
            match known.get_mut(at) {
                Some(known) => (known.value, known.is_repeated) = (value, true),
                None => known.push(Requested { partition, value, is_repeated: false }),
            }
        }
    }
    requested
}
