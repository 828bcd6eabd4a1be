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
use crate::connection::Connection;
use crate::error::{Error, ErrorKind, Result};
use crate::position::TopicPartition;

/// The first version of ListOffsets with [`OffsetSpec::EarliestLocal`].
const LOCAL_SINCE: i16 = 8;

/// The maximum number of leader epochs of a partition that are asked for, one after the other.
const MAX_EPOCHS: usize = 1000;

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
        let by_leader = self.by_leader(pending)?;
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
            let connection = self.asked_connection(address)?;
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
    /// The same as those of [`ends_of_leader_epochs`](Self::ends_of_leader_epochs).
    pub fn end_of_leader_epoch(&mut self, place: &TopicPartition, leader_epoch: i32) -> Result<Option<i64>> {
        let mut ends = self.ends_of_leader_epochs(&BTreeMap::from([(place.clone(), leader_epoch)]))?;
        Ok(ends.remove(place).flatten().map(|(_, end)| end))
    }

    /// The last leader epoch of each partition up to the given one and its end (exclusive), in the log of the current leader;
    /// None if it knows neither this epoch nor a later one, or is older than Kafka 2.1. All leaders are asked at the same
    /// time, each with one request.
    ///
    /// # Errors
    /// The errors of brokers, with topic and partition, and those of connections.
    pub fn ends_of_leader_epochs(
        &mut self,
        epochs: &BTreeMap<TopicPartition, i32>,
    ) -> Result<BTreeMap<TopicPartition, Option<(i32, i64)>>> {
        let mut found = BTreeMap::new();
        self.retry(|cluster| {
            let pending: Vec<_> = epochs.keys().filter(|place| !found.contains_key(*place)).collect();
            cluster.find_some_epochs(&pending, epochs, &mut found)
        })?;
        Ok(found)
    }

    /// The leader epochs in the logs of the current leaders and the offsets where they begin, in order; the last
    /// 1,000 of each log, and none if the leader is older than Kafka 2.1. An epoch may have no batch, or none yet.
    ///
    /// Leaders are asked for one epoch of all their partitions at a time.
    ///
    /// # Errors
    /// The errors of brokers, with topic and partition, and those of connections.
    pub fn leader_epochs(
        &mut self,
        places: &[TopicPartition],
    ) -> Result<BTreeMap<TopicPartition, Vec<(i32, i64)>>> {
        let current = self.retry(|cluster| {
            cluster.find_leaders(places.iter().map(|(topic, _)| topic))?;
            let epoch = |place: &TopicPartition| Ok((place.clone(), cluster.route(&place.0, place.1)?.epoch));
            places.iter().map(epoch).collect()
        })?;
        let mut epochs: BTreeMap<TopicPartition, Vec<_>> = BTreeMap::new();
        // A log has no epochs of magic 0 and 1.
        let last = self.ends_of_leader_epochs(&current)?.into_iter();
        let mut next: BTreeMap<_, i32> = last
            .filter_map(|(place, last)| last.map(|(epoch, _)| (place, epoch)))
            .filter(|&(_, epoch)| epoch >= 0)
            .collect();
        while !next.is_empty() {
            let earlier = next.iter().filter(|&(_, &epoch)| epoch > 0);
            let before = self
                .ends_of_leader_epochs(&earlier.map(|(place, epoch)| (place.clone(), epoch - 1)).collect())?;
            let one_earlier = |(place, epoch)| {
                // Where the epoch before ends, this one begins. The very first has none before it.
                let (earlier, start) = before.get(&place).copied().flatten().unwrap_or((-1, 0));
                let of_log = epochs.entry(place.clone()).or_default();
                // Below the first epoch of its log, a leader answers with the start of that.
                if of_log.last().is_some_and(|&(_, begins)| start >= begins) {
                    return None;
                }
                of_log.push((epoch, start));
                let earlier = earlier.min(epoch - 1);
                (earlier >= 0 && of_log.len() < MAX_EPOCHS).then_some((place, earlier))
            };
            next = next.into_iter().filter_map(one_earlier).collect();
        }
        epochs.values_mut().for_each(|of_log| of_log.reverse());
        Ok(epochs)
    }

    fn find_some_epochs(
        &mut self,
        pending: &[&TopicPartition],
        epochs: &BTreeMap<TopicPartition, i32>,
        found: &mut BTreeMap<TopicPartition, Option<(i32, i64)>>,
    ) -> Result<()> {
        let by_leader = self.by_leader(pending)?;
        let mut sent = Vec::with_capacity(by_leader.len());
        for (address, asked) in &by_leader {
            let connection = self.connection(address)?;
            if connection.version(ApiKey::OffsetForLeaderEpoch).is_err() {
                found.extend(asked.keys().map(|place| ((*place).clone(), None)));
                continue;
            }
            let request = connection.send(|version| OffsetForLeaderEpochRequest {
                // Any consumer; the default is that of a debugging one.
                replica_id: if version >= 3 { -1 } else { -2 },
                topics: asked_epochs(asked, epochs),
            })?;
            sent.push((address, request));
        }
        for (address, request) in sent {
            let response = self.asked_connection(address)?.receive(request)?;
            let read: OffsetForLeaderEpochResponse<'_> = response.read()?;
            for (topic, answer) in read
                .topics
                .iter()
                .flat_map(|topic| topic.partitions.iter().map(|answer| (&topic.topic, answer)))
            {
                let at = |error: Error| error.at(response.broker()).of(topic, answer.partition);
                let place: TopicPartition = (Arc::from(&**topic), answer.partition);
                if !by_leader[address].contains_key(&place) {
                    return Err(at(Error::protocol("OffsetForLeaderEpoch: was not asked for")));
                }
                Error::check("OffsetForLeaderEpoch", answer.error_code).map_err(at)?;
                let last = (answer.leader_epoch, answer.end_offset);
                found.insert(place, Some(last).filter(|&(_, end)| end >= 0));
            }
            if let Some(place) = by_leader[address].keys().find(|place| !found.contains_key(**place)) {
                let error = Error::protocol("OffsetForLeaderEpoch: the answer lacks the partition");
                return Err(error.at(response.broker()).of(&place.0, place.1));
            }
        }
        Ok(())
    }

    /// The partitions by their leaders.
    fn by_leader<'p>(
        &mut self,
        pending: &[&'p TopicPartition],
    ) -> Result<BTreeMap<Address, BTreeMap<&'p TopicPartition, Route>>> {
        self.find_leaders(pending.iter().map(|(topic, _)| topic))?;
        let mut by_leader: BTreeMap<Address, BTreeMap<_, _>> = BTreeMap::new();
        for partition in pending {
            let route = self.route(&partition.0, partition.1)?;
            by_leader.entry(route.address.clone()).or_default().insert(*partition, route);
        }
        Ok(by_leader)
    }

    /// The connection on which a request was sent: not another one, even if its session ends now.
    fn asked_connection(&mut self, address: &Address) -> Result<&mut Connection> {
        let closed = || Error::new(ErrorKind::Io(std::io::ErrorKind::NotConnected.into()));
        self.open_connection(address).ok_or_else(|| closed().at(&address.to_string()))
    }
}

/// The epochs of partitions, neighbours of a topic under one name.
fn asked_epochs<'p>(
    asked: &BTreeMap<&'p TopicPartition, Route>,
    epochs: &BTreeMap<TopicPartition, i32>,
) -> Vec<OffsetForLeaderTopic<'p>> {
    let mut topics: Vec<OffsetForLeaderTopic<'p>> = Vec::new();
    for (&place, route) in asked {
        let (topic, partition) = place;
        let asked = OffsetForLeaderPartition {
            partition: *partition,
            current_leader_epoch: route.epoch,
            leader_epoch: epochs[place],
        };
        match topics.last_mut().filter(|last| last.topic == **topic) {
            Some(last) => last.partitions.push(asked),
            None => topics.push(OffsetForLeaderTopic { topic: (&**topic).into(), partitions: vec![asked] }),
        }
    }
    topics
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
