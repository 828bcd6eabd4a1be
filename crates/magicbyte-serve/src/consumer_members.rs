//! ConsumerGroupHeartbeat and ConsumerGroupDescribe: the members of groups of the new protocol.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use regex::bytes::Regex;

use magicbyte_broker::ErrorCode;
use magicbyte_protocol::message::body::consumer_group_describe_response::{
    Assignment as DescribedAssignment, DescribedGroup, Member as DescribedMember,
    TopicPartitions as DescribedPartitions,
};
use magicbyte_protocol::message::body::consumer_group_heartbeat_response::{Assignment, TopicPartitions};
use magicbyte_protocol::message::body::{
    ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
};

use crate::archive::{Archive, TopicRef};
use crate::archived_groups::{EMPTY, GroupType};
use crate::assignors::{Assignor, Place, TopicId};
use crate::caller::Result;
use crate::consumer_group::{Heartbeat, JOIN, LEAVE, LEAVE_FOR_NOW, Member, Subscription};
use crate::coordinator::Coordinator;
use crate::group::Protocol;
use crate::limits::repeated;
use crate::lock::lock;
use crate::members::Client;
use crate::memory::{Budget, Unanswered};
use crate::patterns::compile;
use crate::response::{array, blob, distinct};

/// The interval of heartbeats (`group.consumer.heartbeat.interval.ms`, 5 s in Kafka): a rebalance takes two of them.
const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(300);
/// The first version of ConsumerGroupHeartbeat in which members choose their ids themselves.
const OWN_IDS: i16 = 1;
/// `ConsumerGroupMember.memberType` of members that use the new protocol.
const CONSUMER: i8 = 1;

impl Coordinator {
    /// Responds to ConsumerGroupHeartbeat.
    ///
    /// # Errors
    /// If memory is exhausted.
    pub(super) fn consumer_heartbeat(
        &self,
        archive: &Archive,
        budget: &Budget<'_>,
        version: i16,
        client: Client<'_>,
        request: &ConsumerGroupHeartbeatRequest<'_>,
    ) -> std::result::Result<ConsumerGroupHeartbeatResponse<'static>, Unanswered> {
        let beaten = match read(archive, budget, version, client, request)? {
            Ok(beat) => self.change(|groups, now| {
                groups.consumer_heartbeat(&request.group_id, beat, &self.partitions, now)
            }),
            Err(error) => Err(error),
        };
        let beaten = match beaten {
            Ok(beaten) => beaten,
            Err(error) => {
                let error_message = Some(message(error, request).into());
                let error_code = error.code();
                return Ok(ConsumerGroupHeartbeatResponse {
                    error_code,
                    error_message,
                    ..Default::default()
                });
            }
        };
        let assignment = match beaten.assigned {
            None => None,
            Some(places) => {
                let topics = by_topic(&places).into_iter().map(|(topic_id, partitions)| {
                    budget.take(2 * size_of_val(&*partitions))?;
                    Ok(TopicPartitions { topic_id, partitions })
                });
                Some(Assignment { topic_partitions: array(budget, topics)? })
            }
        };
        Ok(ConsumerGroupHeartbeatResponse {
            member_id: Some(beaten.member_id.to_string().into()),
            member_epoch: beaten.epoch,
            heartbeat_interval_ms: match beaten.epoch {
                LEAVE | LEAVE_FOR_NOW => 0,
                _ => HEARTBEAT_INTERVAL.as_millis() as i32,
            },
            assignment,
            ..Default::default()
        })
    }

    /// Responds to ConsumerGroupDescribe, one group after another.
    ///
    /// # Errors
    /// If memory is exhausted.
    pub(super) fn describe_consumer_groups<'a>(
        &self,
        archive: &Archive,
        budget: &Budget<'_>,
        request: &'a ConsumerGroupDescribeRequest<'_>,
    ) -> std::result::Result<ConsumerGroupDescribeResponse<'a>, Unanswered> {
        let groups =
            distinct(&request.group_ids).map(|name| self.describe_consumer_group(archive, budget, name));
        Ok(ConsumerGroupDescribeResponse { groups: array(budget, groups)?, ..Default::default() })
    }

    fn describe_consumer_group<'a>(
        &self,
        archive: &Archive,
        budget: &Budget<'_>,
        name: &'a str,
    ) -> std::result::Result<DescribedGroup<'a>, Unanswered> {
        let groups = lock(&self.groups);
        let known = groups.group(name);
        let Some((Protocol::Consumer(group), state)) = known.map(|group| (&group.protocol, group.state()))
        else {
            drop(groups);
            let group_id = name.into();
            return Ok(match self.archived_group(name, GroupType::Consumer) {
                Ok(group) => DescribedGroup {
                    group_id,
                    group_state: EMPTY.into(),
                    group_epoch: group.metadata.epoch,
                    assignment_epoch: group.metadata.assignment_epoch,
                    assignor_name: Assignor::default().name().into(),
                    ..Default::default()
                },
                Err((error, message)) => DescribedGroup {
                    error_code: error.code(),
                    error_message: Some(message.into()),
                    group_id,
                    ..Default::default()
                },
            });
        };
        let (epoch, assignment_epoch, assignor) = (group.epoch, group.assignment_epoch, group.assignor());
        budget.take(group.measure())?;
        let members = group.members().clone();
        drop(groups);
        let members = members.iter().map(|(id, member)| described_member(archive, budget, id, member));
        Ok(DescribedGroup {
            group_id: name.into(),
            group_state: state.into(),
            group_epoch: epoch,
            assignment_epoch,
            assignor_name: assignor.name().into(),
            members: array(budget, members)?,
            ..Default::default()
        })
    }
}

/// Reads a heartbeat. Resolves its subscription, which takes time.
///
/// # Errors
/// If the client is gone; within, Kafka's error (`throwIfConsumerGroupHeartbeatRequestIsInvalid`).
fn read(
    archive: &Archive,
    budget: &Budget<'_>,
    version: i16,
    client: Client<'_>,
    request: &ConsumerGroupHeartbeatRequest<'_>,
) -> std::result::Result<Result<Heartbeat>, Unanswered> {
    let assignor = match check(version, request) {
        Ok(assignor) => assignor,
        Err(error) => return Ok(Err(error)),
    };
    let pattern = match request.subscribed_topic_regex.as_deref().map(compile) {
        None => None,
        Some(Ok(regex)) => Some(resolve(archive, budget, regex.as_ref())?),
        Some(Err(error)) => return Ok(Err(error)),
    };
    let pattern_text = request.subscribed_topic_regex.as_deref().unwrap_or_default();
    let names = request.subscribed_topic_names.as_ref().map(|names| {
        let topics = names.iter().filter_map(|name| archive.topics.get(&**name));
        let topics = topics.map(|topic| topic.id).collect();
        Subscription { to: names.iter().map(|name| Arc::from(&**name)).collect(), topics }
    });
    let owned = request.topic_partitions.as_ref().map(|topics| {
        let places = topics
            .iter()
            .flat_map(|topic| topic.partitions.iter().map(|&partition| (topic.topic_id, partition)));
        places.collect()
    });
    Ok(Ok(Heartbeat {
        member_id: (&*request.member_id).into(),
        epoch: request.member_epoch,
        instance_id: request.instance_id.as_deref().map(Into::into),
        rack_id: request.rack_id.as_deref().map(Into::into),
        client_id: client.id.into(),
        host: client.host.into(),
        rebalance_timeout_ms: Some(request.rebalance_timeout_ms).filter(|&ms| ms != -1),
        names,
        pattern: pattern.map(|topics| Subscription { to: pattern_text.into(), topics }),
        assignor,
        owned,
    }))
}

/// Checks what needs no group. Returns the assignor that the member asks for.
fn check(version: i16, request: &ConsumerGroupHeartbeatRequest<'_>) -> Result<Option<Assignor>> {
    let is_empty = |text: &Option<Cow<'_, str>>| text.as_ref().is_some_and(|text| text.trim().is_empty());
    let epoch = request.member_epoch;
    let needs_id = version >= OWN_IDS || epoch > 0 || epoch == LEAVE;
    let has_no_subscription =
        request.subscribed_topic_names.is_none() && request.subscribed_topic_regex.is_none();
    let has_nothing = request.topic_partitions.as_ref().is_some_and(Vec::is_empty);
    let is_invalid = (needs_id && request.member_id.trim().is_empty())
        || request.group_id.trim().is_empty()
        || is_empty(&request.instance_id)
        || is_empty(&request.rack_id)
        || match epoch {
            JOIN => request.rebalance_timeout_ms == -1 || !has_nothing || has_no_subscription,
            LEAVE_FOR_NOW => request.instance_id.is_none(),
            _ => epoch < LEAVE_FOR_NOW,
        };
    if is_invalid {
        return Err(ErrorCode::InvalidRequest);
    }
    let of_name = |name: &Cow<'_, str>| Assignor::of_name(name).ok_or(ErrorCode::UnsupportedAssignor);
    request.server_assignor.as_ref().map(of_name).transpose()
}

/// The topics that a pattern matches.
fn resolve(
    archive: &Archive,
    budget: &Budget<'_>,
    regex: Option<&Regex>,
) -> std::result::Result<BTreeSet<TopicId>, Unanswered> {
    let mut topics = BTreeSet::new();
    let Some(regex) = regex else { return Ok(topics) };
    for (index, topic) in archive.topics.values().enumerate() {
        if index % 100 == 0 {
            budget.check_client()?;
        }
        if regex.is_match(topic.name.as_bytes()) {
            topics.insert(topic.id);
        }
    }
    Ok(topics)
}

/// The message of an error, for the user of a client.
fn message(error: ErrorCode, request: &ConsumerGroupHeartbeatRequest<'_>) -> String {
    let (group, member, epoch) =
        (repeated(&request.group_id), repeated(&request.member_id), request.member_epoch);
    match error {
        ErrorCode::FencedMemberEpoch => format!(
            "The epoch {epoch} of member {member} is not the one that the coordinator knows. The member must abandon all \
             its partitions and rejoin."
        ),
        ErrorCode::UnknownMemberId => format!("Member {member} is not a member of group {group}."),
        ErrorCode::GroupIdNotFound => format!("Group {group} is not a consumer group."),
        ErrorCode::UnreleasedInstanceId | ErrorCode::FencedInstanceId => {
            let instance = repeated(request.instance_id.as_deref().unwrap_or_default());
            format!("Another member than {member} has the instance id {instance}.")
        }
        ErrorCode::UnsupportedAssignor => {
            let assignor = repeated(request.server_assignor.as_deref().unwrap_or_default());
            format!("ServerAssignor {assignor} is not supported. Supported assignors: uniform, range.")
        }
        ErrorCode::InvalidRegularExpression => {
            let pattern = repeated(request.subscribed_topic_regex.as_deref().unwrap_or_default());
            format!("SubscribedTopicRegex `{pattern}` is not a valid regular expression, or too large.")
        }
        ErrorCode::GroupMaxSizeReached => format!("Group {group} has no room for more members."),
        _ => format!("The heartbeat of member {member} with epoch {epoch} is not valid."),
    }
}

/// The partitions of each topic.
fn by_topic<'a>(places: impl IntoIterator<Item = &'a Place>) -> BTreeMap<TopicId, Vec<i32>> {
    let mut topics: BTreeMap<TopicId, Vec<i32>> = BTreeMap::new();
    for &(topic, partition) in places {
        topics.entry(topic).or_default().push(partition);
    }
    topics
}

fn described_member(
    archive: &Archive,
    budget: &Budget<'_>,
    id: &str,
    member: &Member,
) -> std::result::Result<DescribedMember<'static>, Unanswered> {
    let text = |text: &Arc<str>| Cow::Owned(text.to_string());
    let names = member.names.to.iter().map(|name| {
        blob(budget, name.as_bytes())?;
        Ok(text(name))
    });
    // It has what it has not given up yet.
    let assigned: BTreeSet<Place> = member.assigned.keys().chain(member.revoked.keys()).copied().collect();
    Ok(DescribedMember {
        member_id: id.to_owned().into(),
        instance_id: member.instance_id.as_ref().map(text),
        rack_id: member.rack_id.as_ref().map(text),
        member_epoch: member.epoch,
        client_id: text(&member.client_id),
        client_host: format!("/{}", member.host).into(),
        subscribed_topic_names: names.collect::<std::result::Result<_, _>>()?,
        subscribed_topic_regex: Some(text(&member.pattern.to)),
        assignment: described_places(archive, budget, &assigned)?,
        target_assignment: described_places(archive, budget, &member.target)?,
        member_type: CONSUMER,
    })
}

fn described_places(
    archive: &Archive,
    budget: &Budget<'_>,
    places: &BTreeSet<Place>,
) -> std::result::Result<DescribedAssignment<'static>, Unanswered> {
    let topics = by_topic(places).into_iter().filter_map(|(topic_id, partitions)| {
        let topic = archive.topic(&TopicRef::Id(topic_id)).ok()?;
        let taken = budget.take(2 * size_of_val(&*partitions));
        let topic_name = topic.name.to_string().into();
        Some(taken.map(|()| DescribedPartitions { topic_id, topic_name, partitions }))
    });
    Ok(DescribedAssignment { topic_partitions: array(budget, topics)? })
}
