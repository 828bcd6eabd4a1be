//! A partition that is being fetched: its position, the broker that is asked, and its name in requests and responses.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::time::{Duration, Instant};

use magicbyte_broker::ErrorCode;
use magicbyte_protocol::message::body::FetchResponse;
use magicbyte_protocol::message::body::fetch_request::{FetchPartition, FetchTopic};
use magicbyte_protocol::message::body::fetch_response::PartitionData;

use crate::cluster::{Cluster, Route};
use crate::connection::Response;
use crate::error::{Error, Result};
use crate::position::{ReadPosition, TopicPartition};

/// The version since which a leader notices that it does not have what was fetched before (KIP-595).
pub(crate) const DIVERGING_EPOCH_SINCE: i16 = 12;
/// The version since which topics are named by their ids (KIP-516).
pub(crate) const TOPIC_IDS_SINCE: i16 = 13;

/// A partition whose range is not fetched yet.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) place: TopicPartition,
    /// The place in the order of delivery; 0 for all if any order will do.
    pub(crate) rank: usize,
    /// True if batches were read, or the range is a continuation.
    pub(crate) has_read: bool,
    pub(crate) end: i64,
    pub(crate) max_bytes: usize,
    pub(crate) read: ReadPosition,
    /// The epoch of the leader that was asked last; -1 if none was.
    pub(crate) asked_epoch: i32,
    /// The replica that the leader has named as the closest one (KIP-392).
    pub(crate) replica: Option<i32>,
    /// The time of the first failure since the last success.
    failing_since: Option<Instant>,
}

impl Partition {
    /// A range, which may go on where an earlier one ended.
    pub(crate) fn new(
        place: TopicPartition,
        range: Range<i64>,
        max_bytes: usize,
        before: Option<&ReadPosition>,
    ) -> Self {
        let before = before.filter(|before| before.offset == range.start).copied();
        let read = before.unwrap_or(ReadPosition { offset: range.start, leader_epoch: -1, topic_id: None });
        Self {
            place,
            rank: 0,
            has_read: before.is_some(),
            end: range.end,
            max_bytes,
            read,
            asked_epoch: -1,
            replica: None,
            failing_since: None,
        }
    }

    /// Notes a failure; true if the partition has failed for this long.
    pub(crate) fn has_failed_for(&mut self, timeout: Duration) -> bool {
        self.failing_since.get_or_insert_with(Instant::now).elapsed() >= timeout
    }

    pub(crate) fn succeeded(&mut self) {
        self.failing_since = None;
    }

    /// The broker to ask: the closest replica if the leader has named one.
    pub(crate) fn route(&self, cluster: &Cluster) -> Result<Route> {
        let mut route = cluster.route(&self.place.0, self.place.1)?;
        if let Some(address) = self.replica.and_then(|id| cluster.address_of(id)) {
            route.address = address.clone();
        }
        Ok(route)
    }

    /// The name of its topic in a response that has ids, or names.
    fn key(&self, by_id: bool) -> TopicKey<'_> {
        match self.read.topic_id {
            Some(id) if by_id => TopicKey::Id(id),
            _ => TopicKey::Name(&self.place.0),
        }
    }

    fn request(&self, route: &Route, version: i16) -> FetchPartition {
        FetchPartition {
            partition: self.place.1,
            current_leader_epoch: if version >= 9 { route.epoch } else { -1 },
            fetch_offset: self.read.offset,
            last_fetched_epoch: if version >= DIVERGING_EPOCH_SINCE { self.read.leader_epoch } else { -1 },
            partition_max_bytes: self.max_bytes as i32,
            ..Default::default()
        }
    }
}

/// The partitions of a request in their order, neighbours of a topic under one name.
pub(crate) fn requested(asked: &[(Partition, Route)], version: i16) -> Vec<FetchTopic<'_>> {
    let by_id = version >= TOPIC_IDS_SINCE;
    let of_one_topic = asked.chunk_by(|(one, _), (other, _)| one.place.0 == other.place.0);
    let topics = of_one_topic.map(|partitions| {
        let (first, route) = &partitions[0];
        FetchTopic {
            topic: if by_id { "".into() } else { (&*first.place.0).into() },
            topic_id: route.topic_id.filter(|_| by_id).unwrap_or_default(),
            partitions: partitions.iter().map(|(one, route)| one.request(route, version)).collect(),
        }
    });
    topics.collect()
}

/// The name of a topic in a response.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum TopicKey<'a> {
    Id([u8; 16]),
    Name(&'a str),
}

/// The answers about the partitions that were asked for, one for each.
pub(crate) fn answers<'r, 'a>(
    response: &Response,
    read: &'r FetchResponse<'a>,
    partitions: &[Partition],
) -> Result<BTreeMap<TopicPartition, &'r PartitionData<'a>>> {
    let at = |error: Error| error.at(response.broker());
    Error::check("Fetch", read.error_code).map_err(at)?;
    let by_id = response.version() >= TOPIC_IDS_SINCE;
    let asked: HashMap<(TopicKey<'_>, i32), &Partition> =
        partitions.iter().map(|one| ((one.key(by_id), one.place.1), one)).collect();
    let mut answers = BTreeMap::new();
    for topic in &read.responses {
        let key = if by_id { TopicKey::Id(topic.topic_id) } else { TopicKey::Name(&topic.topic) };
        for answer in &topic.partitions {
            let index = answer.partition_index;
            let Some(asked) = asked.get(&(key, index)) else {
                return Err(at(Error::protocol("Fetch: was not asked for").of(&topic.topic, index)));
            };
            if answers.insert(asked.place.clone(), answer).is_some() {
                return Err(at(Error::protocol("Fetch: a second answer").of(&asked.place.0, index)));
            }
        }
    }
    Ok(answers)
}

/// The record set of an answer.
pub(crate) fn bytes_of<'a>(answer: &'a PartitionData<'_>) -> &'a [u8] {
    answer.records.as_ref().map_or(&[], |records| records.as_bytes())
}

/// True if the closest replica lacks what the leader may have: its log ends or begins elsewhere.
pub(crate) fn is_behind(answer: &PartitionData<'_>) -> bool {
    answer.error_code == ErrorCode::OffsetOutOfRange.code() || answer.diverging_epoch.end_offset >= 0
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use magicbyte_protocol::message::body::{FetchRequest, write_request};

    use super::*;
    use crate::address::Address;

    /// A thousand partitions of a topic are under one name, so that a fetch session (KIP-227) would save little.
    #[test]
    fn sizes_of_requests() {
        let address = Address { host: "host".into(), port: 9092 };
        let route = Route { address, epoch: 3, topic_id: Some([7; 16]) };
        let topic: Arc<str> = "a topic with a name".into();
        let partition = |number| Partition::new((Arc::clone(&topic), number), 0..100, 1 << 20, None);
        let asked: Vec<_> = (0..1000).map(|number| (partition(number), route.clone())).collect();
        for (version, size) in [(12, 34_000), (18, 34_000)] {
            let request = FetchRequest { topics: requested(&asked, version), ..Default::default() };
            assert_eq!(request.topics.len(), 1);
            let bytes = write_request(&request, version, 1, None).expect("a request of this version");
            assert!(bytes.len() < size, "{} bytes", bytes.len());
        }
    }
}
