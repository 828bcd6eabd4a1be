//! The requests to a group coordinator.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use ::bytes::Bytes;

use magicbyte_broker::ErrorCode;
use magicbyte_protocol::message::{Struct, Value};

use crate::archive::{Archive, TopicRef};
use crate::cluster::{Address, NODE_ID};
use crate::committed::{CommittedOffset, Offsets};
use crate::fields::{
    Answer, array, blob, bytes, code, distinct, fields, int, int32, ints, is_null, nullable, number, push,
    string, structs, structure, text, texts,
};
use crate::group::{Admission, Assignments, Caller, Join, Protocols, Result, Step};
use crate::groups::Groups;
use crate::lock::lock;
use crate::memory::{Budget, Unanswered};
use crate::requested::{RequestedTopic, named, requested, topic_ref};

/// The interval at which waiting members look for members that died.
const LOOK: Duration = Duration::from_millis(500);
/// `FindCoordinatorRequest.CoordinatorType.GROUP`.
const GROUP: i64 = 0;
/// Groups and partitions are gone through in turns of this many, between which others get the lock.
const TURN: usize = 1000;

/// The coordinator of all groups.
#[derive(Debug)]
pub(super) struct Coordinator {
    groups: Mutex<Groups>,
    changed: Condvar,
    /// The offsets that the groups of the archived cluster had committed. A group continues there until it commits an
    /// offset itself.
    archived: BTreeMap<String, Offsets>,
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
    member_id: Arc<str>,
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
    assignments: Assignments,
}

type Response = std::result::Result<Struct<'static>, Unanswered>;

/// Answers FindCoordinator: there is one broker. Transactions and share groups have no coordinator.
///
/// # Errors
/// If memory is exhausted.
pub(super) fn find_coordinator(
    budget: &Budget<'_>,
    address: &Address,
    version: i16,
    request: &Struct<'_>,
) -> Response {
    let is_group = int(request, "keyType", GROUP) == GROUP;
    let (error, message) = match is_group {
        true => (ErrorCode::None, None),
        false => (ErrorCode::CoordinatorNotAvailable, Some("magicbyte serve has only groups of consumers")),
    };
    let (node, host, port) = match is_group {
        true => (NODE_ID, address.host.as_str(), i64::from(address.port)),
        false => (-1, "", -1),
    };
    let coordinator = || {
        [
            ("errorCode", code(error)),
            ("errorMessage", nullable(message)),
            ("nodeId", number(node)),
            ("host", string(host)),
            ("port", number(port)),
        ]
    };
    if version < 4 {
        return Ok(fields(coordinator()));
    }
    let coordinators = distinct(texts(request, "coordinatorKeys")).map(|key| {
        let mut coordinator = fields(coordinator());
        coordinator.set("key", string(key));
        Ok(Value::Struct(coordinator))
    });
    Ok(fields([("coordinators", array(budget, coordinators)?)]))
}

impl Coordinator {
    /// A coordinator of groups that had committed these offsets in the archived cluster.
    pub(super) fn new(committed: Vec<(String, String, i32, CommittedOffset)>) -> Self {
        let mut archived: BTreeMap<String, Offsets> = BTreeMap::new();
        for (group, topic, partition, offset) in committed {
            archived.entry(group).or_default().insert(&topic.into(), partition, offset);
        }
        Self { groups: Mutex::default(), changed: Condvar::new(), archived }
    }

    /// Wakes all waiting clients; the server stops.
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
        budget: &Budget<'_>,
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
            let recipient = budget.recipient();
            if recipient.is_stopping() || recipient.is_gone() {
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
        let member_id: Arc<str> = text(request, "memberId").unwrap_or_default().into();
        let instance_id = text(request, "groupInstanceId");
        let join = Join {
            member_id: Arc::clone(&member_id),
            instance_id: instance_id.as_deref().map(Arc::from),
            client_id: client.id.into(),
            host: client.host.into(),
            session_timeout_ms: int(request, "sessionTimeoutMs", 0),
            rebalance_timeout_ms: int(request, "rebalanceTimeoutMs", -1),
            protocol_type: text(request, "protocolType").unwrap_or_default().into(),
            protocols: protocols(request),
            id_required: version >= 4,
        };
        let admission =
            join.check(&group).and_then(|()| self.change(|groups, now| groups.join(&group, join, now)));
        match admission {
            Ok(Admission::Member(member_id)) => Ok(Joining { group, member_id, instance_id }),
            Ok(Admission::Pending(id)) => Err(not_joined(version, ErrorCode::MemberIdRequired, &id)),
            Err(error) => Err(not_joined(version, error, &member_id)),
        }
    }

    /// Answers JoinGroup, once all members have joined.
    ///
    /// # Errors
    /// If memory is exhausted.
    pub(super) fn join(&self, version: i16, budget: &Budget<'_>, joining: Joining) -> Response {
        let Joining { group, member_id, instance_id } = joining;
        let joined =
            self.wait(budget, |groups, now| groups.joined(&group, &member_id, instance_id.as_deref(), now));
        let joined = match joined {
            Ok(joined) => joined,
            Err(error) => return Ok(not_joined(version, error, &member_id)),
        };
        let members = joined.members.into_iter().map(|(id, instance_id, metadata)| {
            Ok(structure([
                ("memberId", string(&*id)),
                ("groupInstanceId", nullable(instance_id.as_deref())),
                ("metadata", blob(budget, &metadata)?),
            ]))
        });
        Ok(fields([
            ("errorCode", code(ErrorCode::None)),
            ("generationId", number(joined.generation)),
            ("protocolType", string(&*joined.protocol_type)),
            ("protocolName", string(&*joined.protocol)),
            ("leader", string(&*joined.leader)),
            ("memberId", string(&*joined.member_id)),
            ("members", array(budget, members)?),
        ]))
    }

    /// Takes a SyncGroup request.
    pub(super) fn begin_sync(request: &Struct<'_>) -> Syncing {
        let assignments = structs(request, "assignments").map(|assignment| {
            let member_id = text(assignment, "memberId").unwrap_or_default();
            (member_id.into(), Bytes::copy_from_slice(bytes(assignment, "assignment")))
        });
        Syncing {
            group: text(request, "groupId").unwrap_or_default(),
            member_id: text(request, "memberId").unwrap_or_default(),
            instance_id: text(request, "groupInstanceId"),
            generation: int32(request, "generationId", -1),
            protocol_type: text(request, "protocolType"),
            protocol: text(request, "protocolName"),
            assignments: assignments.collect(),
        }
    }

    /// Answers SyncGroup, once the leader has made the assignments.
    ///
    /// # Errors
    /// If memory is exhausted.
    pub(super) fn sync(&self, budget: &Budget<'_>, syncing: Syncing) -> Response {
        let Syncing { group, member_id, instance_id, generation, protocol_type, protocol, assignments } =
            syncing;
        let caller = Caller { member_id: &member_id, instance_id: instance_id.as_deref(), generation };
        let first = self.change(|groups, now| groups.sync(&group, caller, Some(&assignments), now));
        // Only the leader's count, and the leader does not wait.
        drop(assignments);
        let synced = match first {
            Ok(Step::Done(assignment)) => Ok(assignment),
            Ok(Step::Wait(_)) => self.wait(budget, |groups, now| groups.sync(&group, caller, None, now)),
            Err(error) => Err(error),
        };
        Ok(match synced {
            Ok(assignment) => fields([
                ("errorCode", code(ErrorCode::None)),
                ("protocolType", nullable(protocol_type)),
                ("protocolName", nullable(protocol)),
                ("assignment", blob(budget, &assignment)?),
            ]),
            Err(error) => fields([("errorCode", code(error))]),
        })
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
    ///
    /// # Errors
    /// If memory is exhausted.
    pub(super) fn leave(&self, version: i16, budget: &Budget<'_>, request: &Struct<'_>) -> Response {
        let group = text(request, "groupId").unwrap_or_default();
        let member =
            |of: &Struct<'_>| (text(of, "memberId").unwrap_or_default(), text(of, "groupInstanceId"));
        let leave = |groups: &mut Groups, (id, instance_id): &(String, Option<String>), now| {
            groups.leave(&group, id, instance_id.as_deref(), now).err().unwrap_or(ErrorCode::None)
        };
        if version < 3 {
            let error = self.change(|groups, now| leave(groups, &member(request), now));
            return Ok(fields([("errorCode", code(error))]));
        }
        let leaving: Vec<_> = distinct(structs(request, "members").map(member)).collect();
        let mut members = Vec::new();
        for leaving in leaving.chunks(TURN) {
            let errors: Vec<_> =
                self.change(|groups, now| leaving.iter().map(|member| leave(groups, member, now)).collect());
            for ((member_id, instance_id), error) in leaving.iter().zip(errors) {
                let member = structure([
                    ("memberId", string(member_id)),
                    ("groupInstanceId", nullable(instance_id.as_deref())),
                    ("errorCode", code(error)),
                ]);
                push(budget, &mut members, member)?;
            }
        }
        Ok(fields([("errorCode", code(ErrorCode::None)), ("members", Value::Array(members))]))
    }

    /// Answers OffsetCommit: offsets are kept until the server stops, or takes their memory for other groups.
    ///
    /// # Errors
    /// If memory is exhausted.
    pub(super) fn commit(&self, archive: &Archive, budget: &Budget<'_>, request: &Struct<'_>) -> Response {
        let group = text(request, "groupId").unwrap_or_default();
        let member_id = text(request, "memberId").unwrap_or_default();
        let instance_id = text(request, "groupInstanceId");
        let generation = int32(request, "generationIdOrMemberEpoch", -1);
        let caller = Caller { member_id: &member_id, instance_id: instance_id.as_deref(), generation };
        let allowed = self.change(|groups, now| groups.check_commit(&group, caller, now));
        let topics = requested(structs(request, "topics").map(|topic| {
            let partition = |asked| (int32(asked, "partitionIndex", -1), asked);
            (topic_ref(topic, "name"), structs(topic, "partitions").map(partition))
        }));
        let topics = topics.into_iter().map(|RequestedTopic { topic, partitions }| {
            let mut answers = Vec::new();
            for turn in partitions.chunks(TURN) {
                let (mut errors, mut offsets) = (BTreeMap::new(), Vec::new());
                for asked in turn {
                    match allowed.and_then(|()| archive.partition(&topic, asked.partition)) {
                        Ok(_) => offsets.push((asked.partition, committed_offset(asked.value))),
                        Err(error) => drop(errors.insert(asked.partition, error)),
                    }
                }
                if let (false, Ok(topic)) = (offsets.is_empty(), archive.topic(&topic)) {
                    let partitions: Vec<_> = offsets.iter().map(|(partition, _)| *partition).collect();
                    let stored = self.change(|groups, now| groups.commit(&group, &topic.name, offsets, now));
                    let failed = partitions.into_iter().zip(stored);
                    errors.extend(failed.filter_map(|(partition, stored)| Some((partition, stored.err()?))));
                }
                for asked in turn {
                    let error = errors.get(&asked.partition).copied().unwrap_or(ErrorCode::None);
                    let answer =
                        structure([("partitionIndex", number(asked.partition)), ("errorCode", code(error))]);
                    push(budget, &mut answers, answer)?;
                }
            }
            let [name, id] = named(&topic, "name");
            Ok(structure([name, id, ("partitions", Value::Array(answers))]))
        });
        Ok(fields([("topics", array(budget, topics)?)]))
    }

    /// Answers OffsetFetch, in older versions of one group.
    ///
    /// # Errors
    /// If memory is exhausted.
    pub(super) fn committed(
        &self,
        archive: &Archive,
        budget: &Budget<'_>,
        version: i16,
        request: &Struct<'_>,
    ) -> Response {
        let topics = |group: &str, asked: &Struct<'_>| match is_null(asked, "topics") {
            true => self.all_committed(archive, budget, version, group),
            false => self.committed_of(archive, budget, version, group, asked),
        };
        if version < 8 {
            let group = text(request, "groupId").unwrap_or_default();
            let topics = topics(&group, request)?;
            return Ok(fields([("topics", topics), ("errorCode", code(ErrorCode::None))]));
        }
        let mut known = HashSet::new();
        let groups = structs(request, "groups").filter_map(|asked| {
            let group = text(asked, "groupId").unwrap_or_default();
            known.insert(group.clone()).then(|| {
                let topics = topics(&group, asked)?;
                let error = ("errorCode", code(ErrorCode::None));
                Ok(structure([("groupId", string(group)), ("topics", topics), error]))
            })
        });
        Ok(fields([("groups", array(budget, groups)?)]))
    }

    /// All offsets of a group, topic by topic: the lock is free in between.
    fn all_committed(
        &self,
        archive: &Archive,
        budget: &Budget<'_>,
        version: i16,
        group: &str,
    ) -> std::result::Result<Answer, Unanswered> {
        let archived = self.archived.get(group);
        let mut topics: Vec<Arc<str>> = archived.into_iter().flat_map(Offsets::topics).cloned().collect();
        topics.extend(
            lock(&self.groups).group(group).into_iter().flat_map(|group| group.offsets.topics()).cloned(),
        );
        topics.sort_unstable();
        topics.dedup();
        let topics = topics.into_iter().filter_map(|topic| {
            // By id, only the topics that are here can be named.
            let id = match archive.topics.get(&topic) {
                Some(topic) => topic.id,
                None if version < 10 => [0; 16],
                None => return None,
            };
            let archived = archived.into_iter().flat_map(|offsets| offsets.of_topic(&topic));
            let mut offsets: BTreeMap<i32, CommittedOffset> =
                archived.map(|(partition, offset)| (partition, offset.clone())).collect();
            if let Some(group) = lock(&self.groups).group(group) {
                let own = group.offsets.of_topic(&topic);
                offsets.extend(own.map(|(partition, offset)| (partition, offset.clone())));
            }
            let partitions = offsets
                .iter()
                .map(|(partition, offset)| Ok(offset_of(*partition, Some(offset), ErrorCode::None)));
            let named = [("name", string(&*topic)), ("topicId", Value::Uuid(id))];
            Some(array(budget, partitions).map(|partitions| topic_of(version, named, partitions)))
        });
        array(budget, topics)
    }

    fn committed_of(
        &self,
        archive: &Archive,
        budget: &Budget<'_>,
        version: i16,
        group: &str,
        asked: &Struct<'_>,
    ) -> std::result::Result<Answer, Unanswered> {
        let topics = requested(structs(asked, "topics").map(|topic| {
            let partitions = ints(topic, "partitionIndexes").map(|partition| (partition, ()));
            (topic_ref(topic, "name"), partitions)
        }));
        let topics = topics.into_iter().map(|RequestedTopic { topic, partitions }| {
            let (name, error) = match (&topic, archive.topic(&topic)) {
                (_, Ok(topic)) => (Arc::clone(&topic.name), ErrorCode::None),
                (TopicRef::Name(name), Err(_)) => (Arc::clone(name), ErrorCode::None),
                (TopicRef::Id(_), Err(error)) => ("".into(), error),
            };
            let archived = self.archived.get(group);
            let mut answers = Vec::new();
            for turn in partitions.chunks(TURN) {
                let groups = lock(&self.groups);
                let own = groups.group(group).map(|group| &group.offsets);
                let offset = |partition| {
                    let own = own.and_then(|offsets| offsets.get(&name, partition));
                    own.or_else(|| archived?.get(&name, partition)).cloned()
                };
                let offsets: Vec<_> = turn.iter().map(|asked| offset(asked.partition)).collect();
                drop(groups);
                for (asked, offset) in turn.iter().zip(&offsets) {
                    push(budget, &mut answers, offset_of(asked.partition, offset.as_ref(), error))?;
                }
            }
            Ok(topic_of(version, named(&topic, "name"), Value::Array(answers)))
        });
        array(budget, topics)
    }

    /// Answers ListGroups, in turns.
    ///
    /// # Errors
    /// If memory is exhausted.
    pub(super) fn list(&self, budget: &Budget<'_>, request: &Struct<'_>) -> Response {
        let (states, types) = (texts(request, "statesFilter"), texts(request, "typesFilter"));
        let is_asked = |asked: &[String], name: &str| {
            asked.is_empty() || asked.iter().any(|asked| asked.eq_ignore_ascii_case(name))
        };
        let listed = |name: &str, protocol_type: &str, state: &'static str| {
            let is_chosen = is_asked(&states, state) && is_asked(&types, "classic");
            is_chosen.then(|| {
                structure([
                    ("groupId", string(name)),
                    ("protocolType", string(protocol_type)),
                    ("groupState", string(state)),
                    ("groupType", string("classic")),
                ])
            })
        };
        let mut listing = Vec::new();
        let mut last: Option<Arc<str>> = None;
        loop {
            let groups = lock(&self.groups);
            let turn: Vec<_> = groups
                .after(last.as_deref())
                .take(TURN)
                .map(|(name, group)| (Arc::clone(name), Arc::clone(&group.protocol_type), group.state()))
                .collect();
            drop(groups);
            for (name, protocol_type, state) in &turn {
                if let Some(group) = listed(name, protocol_type, state) {
                    push(budget, &mut listing, group)?;
                }
            }
            match turn.into_iter().next_back() {
                Some((name, ..)) => last = Some(name),
                None => break,
            }
        }
        for name in self.archived.keys() {
            let is_in_use = lock(&self.groups).group(name).is_some();
            if let Some(group) = listed(name, "", "Empty").filter(|_| !is_in_use) {
                push(budget, &mut listing, group)?;
            }
        }
        Ok(fields([("errorCode", code(ErrorCode::None)), ("groups", Value::Array(listing))]))
    }

    /// Answers DescribeGroups, one group after another.
    ///
    /// # Errors
    /// If memory is exhausted.
    pub(super) fn describe(&self, budget: &Budget<'_>, request: &Struct<'_>) -> Response {
        let described = distinct(texts(request, "groups")).map(|name| {
            let groups = lock(&self.groups);
            let Some(group) = groups.group(&name) else {
                let state = if self.archived.contains_key(&name) { "Empty" } else { "Dead" };
                return Ok(structure([("groupId", string(name)), ("groupState", string(state))]));
            };
            let (state, protocol_type) = (group.state(), Arc::clone(&group.protocol_type));
            let protocol = group.protocol.clone();
            let members = group.members().clone();
            drop(groups);
            let members = members.iter().map(|(id, member)| {
                Ok(structure([
                    ("memberId", string(&**id)),
                    ("groupInstanceId", nullable(member.instance_id.as_deref())),
                    ("clientId", string(&*member.client_id)),
                    ("clientHost", string(format!("/{}", member.host))),
                    ("memberMetadata", blob(budget, &member.metadata(protocol.as_deref()))?),
                    ("memberAssignment", blob(budget, &member.assignment)?),
                ]))
            });
            Ok(structure([
                ("groupId", string(name)),
                ("groupState", string(state)),
                ("protocolType", string(&*protocol_type)),
                ("protocolData", string(protocol.as_deref().unwrap_or_default())),
                ("members", array(budget, members)?),
            ]))
        });
        Ok(fields([("groups", array(budget, described)?)]))
    }
}

/// The protocols of a member. Where a name is repeated, the first one counts: it is the one that would be voted for.
fn protocols(request: &Struct<'_>) -> Protocols {
    let mut known = HashSet::new();
    let protocols = structs(request, "protocols").filter_map(|protocol| {
        let name: Arc<str> = text(protocol, "name").unwrap_or_default().into();
        let metadata = || Bytes::copy_from_slice(bytes(protocol, "metadata"));
        known.insert(Arc::clone(&name)).then(|| (name, metadata()))
    });
    protocols.collect()
}

fn committed_offset(asked: &Struct<'_>) -> CommittedOffset {
    CommittedOffset {
        offset: int(asked, "committedOffset", -1),
        leader_epoch: int32(asked, "committedLeaderEpoch", -1),
        metadata: text(asked, "committedMetadata"),
    }
}

fn not_joined(version: i16, error: ErrorCode, member_id: &str) -> Struct<'static> {
    fields([
        ("errorCode", code(error)),
        ("memberId", string(member_id)),
        ("protocolName", if version < 7 { string("") } else { Value::Null }),
    ])
}

/// A topic of OffsetFetch, which before version 8 is another structure, without ids.
fn topic_of(version: i16, [name, id]: [(&'static str, Answer); 2], partitions: Answer) -> Answer {
    let partitions = ("partitions", partitions);
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
