//! Offsets of partitions: where logs begin and end, the first record of a time, the ends of leader epochs.

use std::collections::BTreeMap;
use std::sync::Arc;

use magicbyte::state::IsolationLevel;
use magicbyte_protocol::message::ApiKey;
use magicbyte_protocol::message::body::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use magicbyte_protocol::message::body::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use magicbyte_protocol::message::body::{
    ListOffsetsRequest, ListOffsetsResponse, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
};

use crate::address::Address;
use crate::cluster::{Cluster, Route};
use crate::error::{Error, ErrorKind, Result};

/// The first version of ListOffsets with [`OffsetSpec::EarliestLocal`].
const LOCAL_SINCE: i16 = 8;

/// The offset that is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OffsetSpec {
    /// The start of the log.
    Earliest,
    /// The end of what a consumer can read (exclusive): the high watermark, or the last stable offset.
    Latest,
    /// The start of what is on the leader's own disks: later than [`Earliest`](Self::Earliest) if older records are in
    /// remote storage (KIP-405). Brokers before Kafka 3.4 have none.
    EarliestLocal,
    /// The first record with this timestamp (ms) or a later one.
    Timestamp(i64),
}

impl OffsetSpec {
    fn timestamp(self) -> i64 {
        match self {
            Self::Latest => -1,
            Self::Earliest => -2,
            Self::EarliestLocal => -4,
            // Negative ones have other meanings.
            Self::Timestamp(time) => time.max(0),
        }
    }
}

/// A partition of a topic.
pub type TopicPartition = (Arc<str>, i32);

impl Cluster {
    /// Offsets of partitions, by partition; None if no record is as late as the timestamp. A partition that is listed
    /// twice is asked for once. All leaders are asked at the same time.
    ///
    /// The end of the log is the last stable offset with [`IsolationLevel::ReadCommitted`] (not for brokers before Kafka
    /// 0.11, which have no transactions).
    ///
    /// # Errors
    /// The errors of brokers, with topic and partition, and those of connections.
    pub fn list_offsets(
        &mut self,
        partitions: &[TopicPartition],
        spec: OffsetSpec,
        isolation_level: IsolationLevel,
    ) -> Result<BTreeMap<TopicPartition, Option<i64>>> {
        let mut found = BTreeMap::new();
        self.retry(|cluster| {
            let pending: Vec<_> =
                partitions.iter().filter(|partition| !found.contains_key(*partition)).collect();
            cluster.list_some(&pending, spec, isolation_level, &mut found)
        })?;
        Ok(found)
    }

    fn list_some(
        &mut self,
        pending: &[&TopicPartition],
        spec: OffsetSpec,
        isolation_level: IsolationLevel,
        found: &mut BTreeMap<TopicPartition, Option<i64>>,
    ) -> Result<()> {
        self.find_leaders(pending.iter().map(|(topic, _)| topic))?;
        let mut by_leader: BTreeMap<Address, BTreeMap<&TopicPartition, Route>> = BTreeMap::new();
        for partition in pending {
            let route = self.route(&partition.0, partition.1)?;
            by_leader.entry(route.address.clone()).or_default().insert(*partition, route);
        }
        let mut sent = Vec::with_capacity(by_leader.len());
        for (address, asked) in &by_leader {
            let timeout_ms = i32::try_from(self.options.request_timeout.as_millis()).unwrap_or(i32::MAX);
            let connection = self.connection(address)?;
            if spec == OffsetSpec::EarliestLocal && connection.version(ApiKey::ListOffsets)? < LOCAL_SINCE {
                let why = "ListOffsets: the broker does not know the start of its own disks";
                return Err(Error::new(ErrorKind::UnsupportedVersion(why.into())).at(&address.to_string()));
            }
            let request = connection.send(|version| ListOffsetsRequest {
                replica_id: -1,
                isolation_level: i8::from(version >= 2 && isolation_level == IsolationLevel::ReadCommitted),
                topics: asked
                    .iter()
                    .map(|(partition, route)| listed(partition, route, spec, version))
                    .collect(),
                timeout_ms: if version >= 10 { timeout_ms } else { 0 },
            })?;
            sent.push((address, request));
        }
        for (address, request) in sent {
            // Not another connection, even if the session of this one ends now.
            let closed = || Error::new(ErrorKind::Io(std::io::ErrorKind::NotConnected.into()));
            let connection = self.open_connection(address);
            let connection = connection.ok_or_else(|| closed().at(&address.to_string()))?;
            let response = connection.receive(request)?;
            let read: ListOffsetsResponse<'_> = response.read()?;
            connection.note_throttle(read.throttle_time_ms);
            for (topic, answer) in read
                .topics
                .iter()
                .flat_map(|topic| topic.partitions.iter().map(|answer| (&topic.name, answer)))
            {
                let index = answer.partition_index;
                let at = |error: Error| error.at(response.broker()).of(topic, index);
                let place: TopicPartition = (Arc::from(&**topic), index);
                if !by_leader[address].contains_key(&place) {
                    return Err(at(Error::protocol("ListOffsets: was not asked for")));
                }
                Error::check("ListOffsets", answer.error_code).map_err(at)?;
                let offset = Some(answer.offset).filter(|&offset| offset >= 0);
                if offset.is_none() && !matches!(spec, OffsetSpec::Timestamp(_)) {
                    return Err(at(Error::protocol(format!("ListOffsets: offset {}", answer.offset))));
                }
                found.insert(place, offset);
            }
            if let Some(place) = by_leader[address].keys().find(|place| !found.contains_key(**place)) {
                let error = Error::protocol("ListOffsets: the answer lacks the partition");
                return Err(error.at(response.broker()).of(&place.0, place.1));
            }
        }
        Ok(())
    }

    /// The end (exclusive) of the last leader epoch up to this one, in the log of the current leader; None if it has none,
    /// or is older than Kafka 2.1.
    ///
    /// # Errors
    /// The errors of the broker, with topic and partition, and those of connections.
    pub fn end_of_leader_epoch(&mut self, place: &TopicPartition, leader_epoch: i32) -> Result<Option<i64>> {
        self.retry(|cluster| {
            let (topic, partition) = place;
            cluster.find_leaders([topic].into_iter())?;
            let route = cluster.route(topic, *partition)?;
            let connection = cluster.connection(&route.address)?;
            if connection.version(ApiKey::OffsetForLeaderEpoch).is_err() {
                return Ok(None);
            }
            let asked = OffsetForLeaderPartition {
                partition: *partition,
                current_leader_epoch: route.epoch,
                leader_epoch,
            };
            let response = connection.call(|version| OffsetForLeaderEpochRequest {
                // Any consumer; the default is that of a debugging one.
                replica_id: if version >= 3 { -1 } else { -2 },
                topics: vec![OffsetForLeaderTopic { topic: (&**topic).into(), partitions: vec![asked] }],
            })?;
            let read: OffsetForLeaderEpochResponse<'_> = response.read()?;
            let at = |error: Error| error.at(response.broker()).of(topic, *partition);
            let answer = read.topics.iter().filter(|answered| answered.topic == **topic);
            let answer =
                answer.flat_map(|answered| &answered.partitions).find(|one| one.partition == *partition);
            let answer = answer
                .ok_or_else(|| at(Error::protocol("OffsetForLeaderEpoch: the answer lacks the partition")))?;
            Error::check("OffsetForLeaderEpoch", answer.error_code).map_err(at)?;
            Ok(Some(answer.end_offset).filter(|&end| end >= 0))
        })
    }
}

fn listed<'p>(
    place: &'p TopicPartition,
    route: &Route,
    spec: OffsetSpec,
    version: i16,
) -> ListOffsetsTopic<'p> {
    let partition = ListOffsetsPartition {
        partition_index: place.1,
        current_leader_epoch: if version >= 4 { route.epoch } else { -1 },
        timestamp: spec.timestamp(),
    };
    ListOffsetsTopic { name: (&*place.0).into(), partitions: vec![partition] }
}
