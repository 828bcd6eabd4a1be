//! The positions of consumer groups.

use std::collections::BTreeMap;
use std::sync::Arc;

use magicbyte_broker::ErrorCode;
use magicbyte_protocol::message::body::offset_fetch_request::OffsetFetchRequestGroup;
use magicbyte_protocol::message::body::{
    FindCoordinatorRequest, FindCoordinatorResponse, OffsetFetchRequest, OffsetFetchResponse,
};

use crate::address::Address;
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::position::TopicPartition;

/// The version of FindCoordinator since which it is about several keys (KIP-699).
const COORDINATORS_SINCE: i16 = 4;
/// The version of OffsetFetch since which it is about several groups (KIP-709).
const GROUPS_SINCE: i16 = 8;

/// The position of a group in a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommittedOffset {
    /// The offset at which the group continues.
    pub offset: i64,
    /// The leader epoch of the last consumed record; None if the consumer or the broker (before Kafka 2.1) does not
    /// tell it.
    pub leader_epoch: Option<i32>,
    /// The text that the consumer added.
    pub metadata: String,
}

impl Cluster {
    /// The committed offsets of a group; none if there is no such group. Offsets of open transactions are left out.
    ///
    /// # Errors
    /// The errors of brokers, with the group, and those of connections.
    pub fn committed_offsets(&mut self, group: &str) -> Result<BTreeMap<TopicPartition, CommittedOffset>> {
        self.retry(|cluster| {
            let address = cluster.coordinator(group)?;
            cluster.fetch_offsets(&address, group)
        })
    }

    /// The address of the broker that has the positions of a group.
    fn coordinator(&mut self, group: &str) -> Result<Address> {
        let any = self.any_broker()?;
        let connection = self.connection(&any)?;
        let response = connection.call(|version| match version {
            COORDINATORS_SINCE.. => {
                FindCoordinatorRequest { coordinator_keys: vec![group.into()], ..Default::default() }
            }
            _ => FindCoordinatorRequest { key: group.into(), ..Default::default() },
        })?;
        let read: FindCoordinatorResponse<'_> = response.read()?;
        connection.note_throttle(read.throttle_time_ms);
        let at = |error: Error| error.at(response.broker());
        let (code, host, port) = if response.version() >= COORDINATORS_SINCE {
            let found = read.coordinators.iter().find(|found| found.key == group);
            let lacks = || at(Error::protocol(format!("FindCoordinator: the answer lacks group {group:?}")));
            let found = found.ok_or_else(lacks)?;
            (found.error_code, &found.host, found.port)
        } else {
            (read.error_code, &read.host, read.port)
        };
        check("FindCoordinator", code, group).map_err(at)?;
        let address = u16::try_from(port).ok().and_then(|port| Address::new(host, port));
        address.ok_or_else(|| {
            let why =
                format!("FindCoordinator: the coordinator of group {group:?}: expected a host and port");
            at(Error::protocol(why))
        })
    }

    fn fetch_offsets(
        &mut self,
        address: &Address,
        group: &str,
    ) -> Result<BTreeMap<TopicPartition, CommittedOffset>> {
        let connection = self.connection(address)?;
        let response = connection.call(|version| match version {
            GROUPS_SINCE.. => OffsetFetchRequest {
                groups: vec![OffsetFetchRequestGroup {
                    group_id: group.into(),
                    topics: None,
                    ..Default::default()
                }],
                ..Default::default()
            },
            _ => OffsetFetchRequest { group_id: group.into(), topics: None, ..Default::default() },
        })?;
        let read: OffsetFetchResponse<'_> = response.read()?;
        connection.note_throttle(read.throttle_time_ms);
        let at = |error: Error| error.at(response.broker());
        let mut found = BTreeMap::new();
        let mut add = |topic: &str, partition, code, committed: CommittedOffset| -> Result<()> {
            check("OffsetFetch", code, group).map_err(|error| at(error).of(topic, partition))?;
            if committed.offset >= 0 {
                found.insert((Arc::from(topic), partition), committed);
            }
            Ok(())
        };
        if response.version() < GROUPS_SINCE {
            check("OffsetFetch", read.error_code, group).map_err(at)?;
            for topic in &read.topics {
                for one in &topic.partitions {
                    let epoch = one.committed_leader_epoch;
                    let committed = committed(one.committed_offset, epoch, one.metadata.as_deref());
                    add(&topic.name, one.partition_index, one.error_code, committed)?;
                }
            }
            return Ok(found);
        }
        let answer = read.groups.iter().find(|answer| answer.group_id == group);
        let lacks = || at(Error::protocol(format!("OffsetFetch: the answer lacks group {group:?}")));
        let answer = answer.ok_or_else(lacks)?;
        if answer.error_code != ErrorCode::GroupIdNotFound.code() {
            check("OffsetFetch", answer.error_code, group).map_err(at)?;
        }
        for topic in &answer.topics {
            for one in &topic.partitions {
                let epoch = one.committed_leader_epoch;
                let committed = committed(one.committed_offset, epoch, one.metadata.as_deref());
                add(&topic.name, one.partition_index, one.error_code, committed)?;
            }
        }
        Ok(found)
    }
}

fn committed(offset: i64, leader_epoch: i32, metadata: Option<&str>) -> CommittedOffset {
    CommittedOffset {
        offset,
        leader_epoch: Some(leader_epoch).filter(|&epoch| epoch >= 0),
        metadata: metadata.unwrap_or_default().to_owned(),
    }
}

fn check(request: &'static str, code: i16, group: &str) -> Result<()> {
    Error::check_with(request, code, Some(&format!("group {group}")))
}
