//! The requests to a group coordinator.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::broker::append_error::ErrorCode;
use crate::message::value::{Struct, Value};
use crate::serve::archive::{Archive, TopicRef};
use crate::serve::cluster::{Address, NODE_ID};
use crate::serve::fetch::{named, topic_ref};
use crate::serve::fields::{
    Answer, array, blob, bytes, code, fields, int, int32, ints, is_null, nullable, number, string, structs,
    structure, text, texts,
};
use crate::serve::groups::{Admission, Caller, CommittedOffset, Groups, Join, Step};
use crate::serve::lock::lock;

/// Members that died are found this often by those that wait.
const LOOK: Duration = Duration::from_millis(500);
/// `FindCoordinatorRequest.CoordinatorType.GROUP`.
const GROUP: i64 = 0;

/// The coordinator of all groups.
#[derive(Debug, Default)]
pub(super) struct Coordinator {
    groups: Mutex<Groups>,
    changed: Condvar,
}

/// The client of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client<'a> {
    pub(super) id: &'a str,
    pub(super) host: &'a str,
}

/// A member that waits for the others.
#[derive(Debug)]
pub(super) struct Joining {
    group: String,
    member_id: String,
    instance_id: Option<String>,
}

/// A member that waits for its assignment, or the leader with all of them.
#[derive(Debug)]
pub(super) struct Syncing {
    group: String,
    member_id: String,
    instance_id: Option<String>,
    generation: i32,
    protocol_type: Option<String>,
    protocol: Option<String>,
    assignments: Option<Vec<(String, Vec<u8>)>>,
}

type Result<T> = std::result::Result<T, ErrorCode>;

/// Answers FindCoordinator: there is one broker. Transactions and share groups have no coordinator.
pub(super) fn find_coordinator(address: &Address, version: i16, request: &Struct<'_>) -> Struct<'static> {
    let is_group = int(request, "keyType", GROUP) == GROUP;
    let (error, message) = match is_group {
        true => (ErrorCode::None, None),
        false => (ErrorCode::CoordinatorNotAvailable, Some("magicbyte serve has only groups of consumers")),
    };
    let (node, host, port) = match is_group {
        true => (NODE_ID, address.host.as_str(), i64::from(address.port)),
        false => (-1, "", -1),
    };
    let found = || {
        [
            ("errorCode", code(error)),
            ("errorMessage", nullable(message)),
            ("nodeId", number(node)),
            ("host", string(host)),
            ("port", number(port)),
        ]
    };
    if version < 4 {
        return fields(found());
    }
    let coordinators = texts(request, "coordinatorKeys").into_iter().map(|key| {
        let mut one = fields(found());
        one.set("key", string(key));
        Value::Struct(one)
    });
    fields([("coordinators", array(coordinators))])
}

impl Coordinator {
    pub(super) fn new(groups: Groups) -> Self {
        Self { groups: Mutex::new(groups), changed: Condvar::new() }
    }

    /// Wakes those who wait; the server stops.
    pub(super) fn wake(&self) {
        self.changed.notify_all();
    }

    /// Changes the groups.
    fn change<T>(&self, change: impl FnOnce(&mut Groups, Instant) -> T) -> T {
        let result = change(&mut lock(&self.groups), Instant::now());
        self.changed.notify_all();
        result
    }

    /// Repeats a step until it is done, when others have changed something or it is time.
    fn wait<T>(
        &self,
        is_stopping: &dyn Fn() -> bool,
        mut step: impl FnMut(&mut Groups, Instant) -> Result<Step<T>>,
    ) -> Result<T> {
        let mut groups = lock(&self.groups);
        loop {
            let wait = match step(&mut groups, Instant::now())? {
                Step::Done(result) => {
                    drop(groups);
                    self.changed.notify_all();
                    return Ok(result);
                }
                Step::Wait(wait) => wait,
            };
            if is_stopping() {
                return Err(ErrorCode::CoordinatorNotAvailable);
            }
            groups = match self.changed.wait_timeout(groups, wait.min(LOOK)) {
                Ok((groups, _)) => groups,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }

    /// Takes a JoinGroup request: a member to [wait](Self::join) with, or the answer.
    pub(super) fn begin_join(
        &self,
        version: i16,
        client: Client<'_>,
        request: &Struct<'_>,
    ) -> std::result::Result<Joining, Struct<'static>> {
        let group = text(request, "groupId").unwrap_or_default();
        let member_id = text(request, "memberId").unwrap_or_default();
        let protocols = structs(request, "protocols")
            .map(|protocol| (text(protocol, "name").unwrap_or_default(), bytes(protocol, "metadata")));
        let instance_id = text(request, "groupInstanceId");
        let join = Join {
            member_id: member_id.clone(),
            instance_id: instance_id.clone(),
            client_id: client.id.to_owned(),
            host: client.host.to_owned(),
            session_timeout_ms: int(request, "sessionTimeoutMs", 0),
            rebalance_timeout_ms: int(request, "rebalanceTimeoutMs", -1),
            protocol_type: text(request, "protocolType").unwrap_or_default(),
            protocols: protocols.collect(),
            id_required: version >= 4,
        };
        match self.change(|groups, now| groups.join(&group, join, now)) {
            Ok(Admission::Member(member_id)) => Ok(Joining { group, member_id, instance_id }),
            Ok(Admission::Pending(id)) => Err(not_joined(version, ErrorCode::MemberIdRequired, id)),
            Err(error) => Err(not_joined(version, error, member_id)),
        }
    }

    /// Answers JoinGroup, once all members have joined.
    pub(super) fn join(
        &self,
        version: i16,
        joining: Joining,
        is_stopping: &dyn Fn() -> bool,
    ) -> Struct<'static> {
        let Joining { group, member_id, instance_id } = joining;
        let step = |groups: &mut Groups, now| groups.joined(&group, &member_id, instance_id.as_deref(), now);
        let joined = match self.wait(is_stopping, step) {
            Ok(joined) => joined,
            Err(error) => return not_joined(version, error, member_id),
        };
        let members = joined.members.into_iter().map(|(id, instance_id, metadata)| {
            structure([
                ("memberId", string(id)),
                ("groupInstanceId", nullable(instance_id)),
                ("metadata", blob(metadata)),
            ])
        });
        fields([
            ("errorCode", code(ErrorCode::None)),
            ("generationId", number(joined.generation)),
            ("protocolType", string(joined.protocol_type)),
            ("protocolName", string(joined.protocol)),
            ("leader", string(joined.leader)),
            ("memberId", string(joined.member_id)),
            ("members", array(members)),
        ])
    }

    /// Takes a SyncGroup request.
    pub(super) fn begin_sync(request: &Struct<'_>) -> Syncing {
        let assignments = structs(request, "assignments")
            .map(|one| (text(one, "memberId").unwrap_or_default(), bytes(one, "assignment")));
        Syncing {
            group: text(request, "groupId").unwrap_or_default(),
            member_id: text(request, "memberId").unwrap_or_default(),
            instance_id: text(request, "groupInstanceId"),
            generation: int32(request, "generationId", -1),
            protocol_type: text(request, "protocolType"),
            protocol: text(request, "protocolName"),
            assignments: Some(assignments.collect()),
        }
    }

    /// Answers SyncGroup, once the leader has made the assignments.
    pub(super) fn sync(&self, syncing: Syncing, is_stopping: &dyn Fn() -> bool) -> Struct<'static> {
        let Syncing { group, member_id, instance_id, generation, protocol_type, protocol, mut assignments } =
            syncing;
        let caller = Caller { member_id: &member_id, instance_id: instance_id.as_deref(), generation };
        let synced =
            self.wait(is_stopping, |groups, now| groups.sync(&group, caller, assignments.take(), now));
        match synced {
            Ok(assignment) => fields([
                ("errorCode", code(ErrorCode::None)),
                ("protocolType", nullable(protocol_type)),
                ("protocolName", nullable(protocol)),
                ("assignment", blob(assignment)),
            ]),
            Err(error) => fields([("errorCode", code(error))]),
        }
    }

    /// Answers Heartbeat.
    pub(super) fn heartbeat(&self, request: &Struct<'_>) -> Struct<'static> {
        let group = text(request, "groupId").unwrap_or_default();
        let member_id = text(request, "memberId").unwrap_or_default();
        let instance_id = text(request, "groupInstanceId");
        let generation = int32(request, "generationId", -1);
        let caller = Caller { member_id: &member_id, instance_id: instance_id.as_deref(), generation };
        let alive = self.change(|groups, now| groups.heartbeat(&group, caller, now));
        fields([("errorCode", code(alive.err().unwrap_or(ErrorCode::None)))])
    }

    /// Answers LeaveGroup, in older versions of one member.
    pub(super) fn leave(&self, version: i16, request: &Struct<'_>) -> Struct<'static> {
        let group = text(request, "groupId").unwrap_or_default();
        let leave = |request: &Struct<'_>| {
            let member_id = text(request, "memberId").unwrap_or_default();
            let instance_id = text(request, "groupInstanceId");
            let left =
                self.change(|groups, now| groups.leave(&group, &member_id, instance_id.as_deref(), now));
            (member_id, instance_id, left.err().unwrap_or(ErrorCode::None))
        };
        if version < 3 {
            return fields([("errorCode", code(leave(request).2))]);
        }
        let members = structs(request, "members").map(|one| {
            let (member_id, instance_id, error) = leave(one);
            structure([
                ("memberId", string(member_id)),
                ("groupInstanceId", nullable(instance_id)),
                ("errorCode", code(error)),
            ])
        });
        fields([("errorCode", code(ErrorCode::None)), ("members", array(members))])
    }

    /// Answers OffsetCommit: offsets are kept until the server stops.
    pub(super) fn commit(&self, archive: &Archive, request: &Struct<'_>) -> Struct<'static> {
        let group = text(request, "groupId").unwrap_or_default();
        let member_id = text(request, "memberId").unwrap_or_default();
        let instance_id = text(request, "groupInstanceId");
        let generation = int32(request, "generationIdOrMemberEpoch", -1);
        let caller = Caller { member_id: &member_id, instance_id: instance_id.as_deref(), generation };
        let allowed = self.change(|groups, now| groups.check_commit(&group, caller, now));
        let topics = structs(request, "topics").map(|topic| {
            let place = topic_ref(topic, "name");
            let partitions = structs(topic, "partitions").map(|one| {
                let partition = int32(one, "partitionIndex", -1);
                let offset = CommittedOffset {
                    offset: int(one, "committedOffset", -1),
                    leader_epoch: int32(one, "committedLeaderEpoch", -1),
                    metadata: text(one, "committedMetadata"),
                };
                let stored = allowed.and_then(|()| {
                    archive.partition(&place, partition)?;
                    let name = archive.topic(&place)?.name.clone();
                    self.change(|groups, _| groups.commit(&group, (name, partition), offset))
                });
                let error = stored.err().unwrap_or(ErrorCode::None);
                structure([("partitionIndex", number(partition)), ("errorCode", code(error))])
            });
            let partitions: Vec<_> = partitions.collect();
            let [name, id] = named(&place, "name");
            structure([name, id, ("partitions", Value::Array(partitions))])
        });
        fields([("topics", array(topics))])
    }

    /// Answers OffsetFetch, in older versions of one group.
    pub(super) fn committed(&self, archive: &Archive, version: i16, request: &Struct<'_>) -> Struct<'static> {
        if version < 8 {
            let group = text(request, "groupId").unwrap_or_default();
            return fields([
                ("topics", self.committed_of(archive, &group, version, request)),
                ("errorCode", code(ErrorCode::None)),
            ]);
        }
        let groups = structs(request, "groups").map(|asked| {
            let group = text(asked, "groupId").unwrap_or_default();
            let topics = self.committed_of(archive, &group, version, asked);
            structure([("groupId", string(group)), ("topics", topics), ("errorCode", code(ErrorCode::None))])
        });
        fields([("groups", array(groups))])
    }

    fn committed_of(&self, archive: &Archive, group: &str, version: i16, asked: &Struct<'_>) -> Answer {
        let groups = lock(&self.groups);
        if is_null(asked, "topics") {
            let mut by_topic: BTreeMap<String, Vec<Answer>> = BTreeMap::new();
            for ((topic, partition), offset) in groups.all_committed(group) {
                by_topic.entry(topic).or_default().push(offset_of(partition, Some(&offset), ErrorCode::None));
            }
            let topics = by_topic.into_iter().filter_map(|(topic, partitions)| {
                // By id, only the topics that are here can be named.
                let id = match archive.topics.get(&topic) {
                    Some(topic) => topic.id,
                    None if version < 10 => [0; 16],
                    None => return None,
                };
                let partitions = Value::Array(partitions);
                Some(structure([
                    ("name", string(topic)),
                    ("topicId", Value::Uuid(id)),
                    ("partitions", partitions),
                ]))
            });
            return array(topics);
        }
        let topics = structs(asked, "topics").map(|topic| {
            let place = topic_ref(topic, "name");
            let (name, error) = match (&place, archive.topic(&place)) {
                (_, Ok(topic)) => (topic.name.clone(), ErrorCode::None),
                (TopicRef::Name(name), Err(_)) => (name.clone(), ErrorCode::None),
                (TopicRef::Id(_), Err(error)) => (String::new(), error),
            };
            let partitions = ints(topic, "partitionIndexes").into_iter().map(|partition| {
                let partition = partition as i32;
                offset_of(partition, groups.committed(group, &(name.clone(), partition)), error)
            });
            topic_of(version, named(&place, "name"), partitions.collect())
        });
        array(topics)
    }

    /// Answers ListGroups.
    pub(super) fn list(&self, request: &Struct<'_>) -> Struct<'static> {
        let (states, types) = (texts(request, "statesFilter"), texts(request, "typesFilter"));
        let is_asked = |asked: &[String], one: &str| {
            asked.is_empty() || asked.iter().any(|asked| asked.eq_ignore_ascii_case(one))
        };
        let groups = lock(&self.groups);
        let chosen = groups
            .names()
            .filter(|(_, group)| is_asked(&states, group.state()) && is_asked(&types, "classic"));
        let listed = chosen.map(|(name, group)| {
            structure([
                ("groupId", string(name)),
                ("protocolType", string(&group.protocol_type)),
                ("groupState", string(group.state())),
                ("groupType", string("classic")),
            ])
        });
        fields([("errorCode", code(ErrorCode::None)), ("groups", array(listed))])
    }

    /// Answers DescribeGroups.
    pub(super) fn describe(&self, request: &Struct<'_>) -> Struct<'static> {
        let groups = lock(&self.groups);
        let described = texts(request, "groups").into_iter().map(|name| {
            let Some(group) = groups.group(&name) else {
                return structure([("groupId", string(name)), ("groupState", string("Dead"))]);
            };
            let protocol = group.protocol.as_deref();
            let members = group.members().map(|(id, member)| {
                structure([
                    ("memberId", string(id)),
                    ("groupInstanceId", nullable(member.instance_id.as_deref())),
                    ("clientId", string(&member.client_id)),
                    ("clientHost", string(format!("/{}", member.host))),
                    ("memberMetadata", blob(member.metadata(protocol))),
                    ("memberAssignment", blob(member.assignment.clone())),
                ])
            });
            structure([
                ("groupId", string(name)),
                ("groupState", string(group.state())),
                ("protocolType", string(&group.protocol_type)),
                ("protocolData", string(protocol.unwrap_or_default())),
                ("members", array(members)),
            ])
        });
        fields([("groups", array(described))])
    }
}

fn not_joined(version: i16, error: ErrorCode, member_id: String) -> Struct<'static> {
    fields([
        ("errorCode", code(error)),
        ("memberId", string(member_id)),
        ("protocolName", if version < 7 { string("") } else { Value::Null }),
    ])
}

/// A topic of OffsetFetch, which before version 8 is another structure, without ids.
fn topic_of(version: i16, [name, id]: [(&'static str, Answer); 2], partitions: Vec<Answer>) -> Answer {
    let partitions = ("partitions", Value::Array(partitions));
    match version {
        ..8 => structure([name, partitions]),
        _ => structure([name, id, partitions]),
    }
}

fn offset_of(partition: i32, committed: Option<&CommittedOffset>, error: ErrorCode) -> Answer {
    structure([
        ("partitionIndex", number(partition)),
        ("committedOffset", number(committed.map_or(-1, |committed| committed.offset))),
        ("committedLeaderEpoch", number(committed.map_or(-1, |committed| committed.leader_epoch))),
        ("metadata", string(committed.and_then(|committed| committed.metadata.clone()).unwrap_or_default())),
        ("errorCode", code(error)),
    ])
}
