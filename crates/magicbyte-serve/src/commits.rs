//! OffsetCommit and OffsetFetch: the offsets that groups have committed.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use magicbyte_broker::ErrorCode;
use magicbyte_protocol::message::body::offset_commit_request::OffsetCommitRequestPartition;
use magicbyte_protocol::message::body::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use magicbyte_protocol::message::body::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use magicbyte_protocol::message::body::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use magicbyte_protocol::message::body::{
    OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse,
};

use crate::archive::{Archive, TopicRef};
use crate::caller::Caller;
use crate::committed::{CommittedOffset, Offsets};
use crate::consumer_group::Committable;
use crate::coordinator::{Coordinator, TURN};
use crate::lock::lock;
use crate::memory::{Budget, Unanswered};
use crate::requested::{Requested, RequestedTopic, requested};
use crate::response::{array, push};

/// The first version of both requests with epochs of members.
const MEMBER_EPOCHS: i16 = 9;
/// The first version of both requests with ids of topics instead of names.
const TOPIC_IDS: i16 = 10;
/// The first version of OffsetFetch with several groups.
const GROUPS: i16 = 8;

/// The group whose offsets are requested.
#[derive(Clone, Copy)]
struct OffsetsOf<'a> {
    archive: &'a Archive,
    budget: &'a Budget<'a>,
    version: i16,
    group: &'a str,
}

impl Coordinator {
    /// Responds to OffsetCommit: offsets are kept until the server stops, or takes their memory for other groups.
    ///
    /// # Errors
    /// If memory is exhausted.
    pub(super) fn commit(
        &self,
        archive: &Archive,
        budget: &Budget<'_>,
        version: i16,
        request: &OffsetCommitRequest<'_>,
    ) -> Result<OffsetCommitResponse<'static>, Unanswered> {
        let group = &*request.group_id;
        let caller = Caller {
            member_id: &request.member_id,
            instance_id: request.group_instance_id.as_deref(),
            generation: request.generation_id_or_member_epoch,
        };
        let allowed = self.change(|groups, now| groups.check_commit(group, caller, now));
        let allowed = allowed.map_err(|error| match error {
            ErrorCode::GroupIdNotFound if version < MEMBER_EPOCHS => ErrorCode::IllegalGeneration,
            ErrorCode::StaleMemberEpoch if version < MEMBER_EPOCHS => ErrorCode::UnsupportedVersion,
            error => error,
        });
        let topics = requested(request.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|partition| (partition.partition_index, partition));
            (TopicRef::new(&topic.name, topic.topic_id, version >= TOPIC_IDS), partitions)
        }));
        let topics = topics.into_iter().map(|RequestedTopic { topic, partitions }| {
            let mut responses = Vec::new();
            for turn in partitions.chunks(TURN) {
                let errors = match &allowed {
                    Ok(committable) => self.commit_turn(archive, group, (&topic, turn), committable),
                    Err(error) => turn.iter().map(|requested| (requested.partition, *error)).collect(),
                };
                for requested in turn {
                    let error = errors.get(&requested.partition).copied().unwrap_or(ErrorCode::None);
                    let response = OffsetCommitResponsePartition {
                        partition_index: requested.partition,
                        error_code: error.code(),
                    };
                    push(budget, &mut responses, response)?;
                }
            }
            let (name, topic_id) = (topic.name().to_owned().into(), topic.id());
            Ok(OffsetCommitResponseTopic { name, topic_id, partitions: responses })
        });
        Ok(OffsetCommitResponse { topics: array(budget, topics)?, ..Default::default() })
    }

    /// Stores offsets of a topic. Returns the errors by partition.
    fn commit_turn(
        &self,
        archive: &Archive,
        group: &str,
        (topic, turn): (&TopicRef, &[Requested<&OffsetCommitRequestPartition<'_>>]),
        committable: &Committable,
    ) -> BTreeMap<i32, ErrorCode> {
        let (mut errors, mut offsets) = (BTreeMap::new(), Vec::new());
        let allowed = |partition| {
            archive.partition(topic, partition)?;
            let place = (archive.topic(topic)?.id, partition);
            if committable.has(place) { Ok(()) } else { Err(ErrorCode::StaleMemberEpoch) }
        };
        for requested in turn {
            match allowed(requested.partition) {
                Ok(()) => offsets.push((requested.partition, committed_offset(requested.value))),
                Err(error) => drop(errors.insert(requested.partition, error)),
            }
        }
        if let (false, Ok(topic)) = (offsets.is_empty(), archive.topic(topic)) {
            let partitions: Vec<_> = offsets.iter().map(|(partition, _)| *partition).collect();
            let stored = self.change(|groups, now| groups.commit(group, &topic.name, offsets, now));
            let failed = partitions.into_iter().zip(stored);
            errors.extend(failed.filter_map(|(partition, stored)| Some((partition, stored.err()?))));
        }
        errors
    }

    /// Responds to OffsetFetch, in older versions of one group.
    ///
    /// # Errors
    /// If memory is exhausted.
    pub(super) fn committed(
        &self,
        archive: &Archive,
        budget: &Budget<'_>,
        version: i16,
        request: OffsetFetchRequest<'_>,
    ) -> Result<OffsetFetchResponse<'static>, Unanswered> {
        let requested = match version {
            ..GROUPS => vec![OffsetFetchRequestGroup {
                group_id: request.group_id,
                topics: request.topics.map(|topics| topics.into_iter().map(newer_topic).collect()),
                ..Default::default()
            }],
            _ => request.groups,
        };
        let mut known = HashSet::new();
        let groups = requested.iter().filter_map(|requested| {
            let group = &*requested.group_id;
            known.insert(group).then(|| {
                let member_id = requested.member_id.as_deref();
                let epoch = requested.member_epoch;
                if let Err(error) =
                    self.change(|groups, now| groups.check_fetch(group, member_id, epoch, now))
                {
                    let (group_id, error_code) = (group.to_owned().into(), error.code());
                    return Ok(OffsetFetchResponseGroup { group_id, error_code, ..Default::default() });
                }
                let of = OffsetsOf { archive, budget, version, group };
                let topics = match &requested.topics {
                    None => self.all_committed(of)?,
                    Some(topics) => self.committed_of(of, topics)?,
                };
                let group_id = group.to_owned().into();
                Ok(OffsetFetchResponseGroup { group_id, topics, ..Default::default() })
            })
        });
        let groups = array(budget, groups)?;
        if version >= GROUPS {
            return Ok(OffsetFetchResponse { groups, ..Default::default() });
        }
        let topics = groups.into_iter().flat_map(|group| group.topics).map(older_topic).collect();
        Ok(OffsetFetchResponse { topics, ..Default::default() })
    }

    /// All offsets of a group, topic by topic: the lock is free in between.
    fn all_committed(
        &self,
        of: OffsetsOf<'_>,
    ) -> Result<Vec<OffsetFetchResponseTopics<'static>>, Unanswered> {
        let OffsetsOf { archive, budget, version, group } = of;
        let archived = self.archived.get(group).map(|group| &group.offsets);
        let mut topics: Vec<Arc<str>> = archived.into_iter().flat_map(Offsets::topics).cloned().collect();
        topics.extend(
            lock(&self.groups).group(group).into_iter().flat_map(|group| group.offsets.topics()).cloned(),
        );
        topics.sort_unstable();
        topics.dedup();
        let topics = topics.into_iter().filter_map(|topic| {
            // By id, only the topics that are here can be named.
            let topic_id = match archive.topics.get(&topic) {
                Some(topic) => topic.id,
                None if version < TOPIC_IDS => [0; 16],
                None => return None,
            };
            let archived = archived.into_iter().flat_map(|offsets| offsets.of_topic(&topic));
            let mut offsets: BTreeMap<i32, CommittedOffset> =
                archived.map(|(partition, offset)| (partition, offset.clone())).collect();
            if let Some(group) = lock(&self.groups).group(group) {
                let committed = group.offsets.of_topic(&topic);
                offsets.extend(committed.map(|(partition, offset)| (partition, offset.clone())));
            }
            let partitions = offsets
                .into_iter()
                .map(|(partition, offset)| Ok(offset_of(partition, Some(offset), ErrorCode::None)));
            let name = topic.to_string().into();
            let topic = |partitions| OffsetFetchResponseTopics { name, topic_id, partitions };
            Some(array(budget, partitions).map(topic))
        });
        array(budget, topics)
    }

    fn committed_of(
        &self,
        of: OffsetsOf<'_>,
        topics: &[OffsetFetchRequestTopics<'_>],
    ) -> Result<Vec<OffsetFetchResponseTopics<'static>>, Unanswered> {
        let OffsetsOf { archive, budget, version, group } = of;
        let topics = requested(topics.iter().map(|topic| {
            let partitions = topic.partition_indexes.iter().map(|&partition| (partition, ()));
            (TopicRef::new(&topic.name, topic.topic_id, version >= TOPIC_IDS), partitions)
        }));
        let topics = topics.into_iter().map(|RequestedTopic { topic, partitions }| {
            let (name, error) = match (&topic, archive.topic(&topic)) {
                (_, Ok(topic)) => (Arc::clone(&topic.name), ErrorCode::None),
                (TopicRef::Name(name), Err(_)) => (Arc::clone(name), ErrorCode::None),
                (TopicRef::Id(_), Err(error)) => ("".into(), error),
            };
            let archived = self.archived.get(group).map(|group| &group.offsets);
            let mut responses = Vec::new();
            for turn in partitions.chunks(TURN) {
                let groups = lock(&self.groups);
                let committed = groups.group(group).map(|group| &group.offsets);
                let offset = |partition| {
                    let committed = committed.and_then(|offsets| offsets.get(&name, partition));
                    committed.or_else(|| archived?.get(&name, partition)).cloned()
                };
                let offsets: Vec<_> = turn.iter().map(|requested| offset(requested.partition)).collect();
                drop(groups);
                for (requested, offset) in turn.iter().zip(offsets) {
                    push(budget, &mut responses, offset_of(requested.partition, offset, error))?;
                }
            }
            let (name, topic_id) = (topic.name().to_owned().into(), topic.id());
            Ok(OffsetFetchResponseTopics { name, topic_id, partitions: responses })
        });
        array(budget, topics)
    }
}

fn committed_offset(requested: &OffsetCommitRequestPartition<'_>) -> CommittedOffset {
    CommittedOffset {
        offset: requested.committed_offset,
        leader_epoch: requested.committed_leader_epoch,
        metadata: requested.committed_metadata.as_deref().map(Into::into),
    }
}

fn offset_of(
    partition_index: i32,
    committed: Option<CommittedOffset>,
    error: ErrorCode,
) -> OffsetFetchResponsePartitions<'static> {
    let nothing = CommittedOffset { offset: -1, leader_epoch: -1, metadata: None };
    let CommittedOffset { offset, leader_epoch, metadata } = committed.unwrap_or(nothing);
    OffsetFetchResponsePartitions {
        partition_index,
        committed_offset: offset,
        committed_leader_epoch: leader_epoch,
        metadata: Some(metadata.unwrap_or_default().into()),
        error_code: error.code(),
    }
}

/// A topic of a request before [`GROUPS`] as in newer ones.
fn newer_topic(topic: OffsetFetchRequestTopic<'_>) -> OffsetFetchRequestTopics<'_> {
    let OffsetFetchRequestTopic { name, partition_indexes } = topic;
    OffsetFetchRequestTopics { name, partition_indexes, ..Default::default() }
}

/// A topic of a response as in those before [`GROUPS`].
fn older_topic(topic: OffsetFetchResponseTopics<'_>) -> OffsetFetchResponseTopic<'_> {
    let partitions = topic.partitions.into_iter().map(|partition| OffsetFetchResponsePartition {
        partition_index: partition.partition_index,
        committed_offset: partition.committed_offset,
        committed_leader_epoch: partition.committed_leader_epoch,
        metadata: partition.metadata,
        error_code: partition.error_code,
    });
    OffsetFetchResponseTopic { name: topic.name, partitions: partitions.collect() }
}
