//! Consumer groups in memory: members, generations, rebalances (`GroupMetadataManager` of classic groups). Nothing
//! happens on its own: members that are late are found by the requests of the others.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use crate::broker::append_error::ErrorCode;

/// The limits of all that clients can make the server keep.
const MOST_GROUPS: usize = 1000;
const MOST_MEMBERS: usize = 250;
const MOST_STORED: usize = 32 << 20;
const MOST_OFFSETS: usize = 200_000;
/// `group.min.session.timeout.ms` is 6 s in Kafka; tests have less.
const SESSION_TIMEOUTS: std::ops::RangeInclusive<i64> = 10..=1_800_000;
/// How long a new group waits for more members (`group.initial.rebalance.delay.ms`, 3 s in Kafka).
const SETTLING: Duration = Duration::from_millis(100);
/// Ids of members that were not heard of since they got them.
const PENDING_IDS: usize = 1000;
/// `offset.metadata.max.bytes`.
const MOST_METADATA: usize = 4096;

/// An offset that a group has committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedOffset {
    /// Where the group continues.
    pub offset: i64,
    /// The leader epoch of the last record read, -1 if unknown.
    pub leader_epoch: i32,
    /// What the consumer has added.
    pub metadata: Option<String>,
}

/// A topic and partition.
pub(super) type Place = (String, i32);

/// All groups.
#[derive(Debug, Default)]
pub(super) struct Groups {
    groups: BTreeMap<String, Group>,
    /// Offsets that were committed since the start.
    offsets: usize,
    ids: u64,
}

#[derive(Debug, Default)]
pub(super) struct Group {
    phase: Phase,
    generation: i32,
    pub(super) protocol_type: String,
    pub(super) protocol: Option<String>,
    leader: String,
    members: BTreeMap<String, Member>,
    pending: VecDeque<String>,
    offsets: HashMap<Place, CommittedOffset>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Empty,
    /// Members join until all have, at least until `settled` and at most until `deadline`.
    Joining {
        settled: Instant,
        deadline: Instant,
    },
    /// The leader makes the assignments.
    Syncing {
        deadline: Instant,
    },
    Stable,
}

#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) instance_id: Option<String>,
    pub(super) client_id: String,
    pub(super) host: String,
    session_timeout: Duration,
    rebalance_timeout: Duration,
    protocols: Vec<(String, Vec<u8>)>,
    pub(super) assignment: Vec<u8>,
    seen: Instant,
    has_joined: bool,
}

/// A JoinGroup request.
#[derive(Clone, Debug)]
pub(super) struct Join {
    pub(super) member_id: String,
    pub(super) instance_id: Option<String>,
    pub(super) client_id: String,
    pub(super) host: String,
    pub(super) session_timeout_ms: i64,
    pub(super) rebalance_timeout_ms: i64,
    pub(super) protocol_type: String,
    pub(super) protocols: Vec<(String, Vec<u8>)>,
    /// Whether a new member has to join again with the id that it gets (since version 4).
    pub(super) id_required: bool,
}

/// The member that a request comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller<'a> {
    pub(super) member_id: &'a str,
    pub(super) instance_id: Option<&'a str>,
    pub(super) generation: i32,
}

/// The result of a round of joining.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Joined {
    pub(super) generation: i32,
    pub(super) protocol_type: String,
    pub(super) protocol: String,
    pub(super) leader: String,
    pub(super) member_id: String,
    /// For the leader: id, instance id and metadata of each member.
    pub(super) members: Vec<(String, Option<String>, Vec<u8>)>,
}

/// A step of a request that may have to wait for others: the answer, or the time to look again.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step<T> {
    Done(T),
    Wait(Duration),
}

type Result<T> = std::result::Result<T, ErrorCode>;

impl Groups {
    /// Adds the offset that a group had committed in the archived cluster.
    pub(super) fn restore(&mut self, group: &str, place: Place, offset: CommittedOffset) {
        self.groups.entry(group.to_owned()).or_default().offsets.insert(place, offset);
    }

    pub(super) fn group(&self, name: &str) -> Option<&Group> {
        self.groups.get(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = (&String, &Group)> {
        self.groups.iter()
    }

    fn group_mut(&mut self, name: &str, now: Instant) -> Result<&mut Group> {
        let group = self.groups.get_mut(name).ok_or(ErrorCode::UnknownMemberId)?;
        group.expire(now);
        Ok(group)
    }

    /// Bytes of the members' own data.
    fn stored(&self) -> usize {
        self.groups.values().flat_map(|group| group.members.values()).map(Member::size).sum()
    }

    /// Adds a member to a group, or lets one join again. Returns its id, with which to [wait](Self::joined).
    pub(super) fn join(&mut self, name: &str, join: Join, now: Instant) -> Result<Admission> {
        if name.is_empty() {
            return Err(ErrorCode::InvalidGroupId);
        }
        if !SESSION_TIMEOUTS.contains(&join.session_timeout_ms) {
            return Err(ErrorCode::InvalidSessionTimeout);
        }
        if join.protocols.is_empty() {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        let size: usize = join.protocols.iter().map(|(name, metadata)| name.len() + metadata.len()).sum();
        let is_known = self.groups.contains_key(name);
        if self.stored() + size > MOST_STORED || (!is_known && self.groups.len() >= MOST_GROUPS) {
            return Err(ErrorCode::GroupMaxSizeReached);
        }
        self.ids += 1;
        let new_id = format!("{}-{:016x}", join.client_id, self.ids);
        self.groups.entry(name.to_owned()).or_default();
        let group = self.group_mut(name, now)?;
        let admission = group.admit(&join, new_id)?;
        if let Admission::Member(id) = &admission {
            group.add(id.clone(), join, now);
        }
        Ok(admission)
    }

    /// The result of joining, once all members have joined.
    pub(super) fn joined(
        &mut self,
        name: &str,
        member_id: &str,
        instance_id: Option<&str>,
        now: Instant,
    ) -> Result<Step<Joined>> {
        let group = self.group_mut(name, now)?;
        group.member(member_id, instance_id)?.seen = now;
        let Some(left) = group.time_to_join(now) else {
            return Ok(Step::Done(group.joined(member_id)));
        };
        if left.is_zero() {
            group.end_joining(now);
            let is_member = group.members.contains_key(member_id);
            return if is_member {
                Ok(Step::Done(group.joined(member_id)))
            } else {
                Err(ErrorCode::UnknownMemberId)
            };
        }
        Ok(Step::Wait(left))
    }

    /// A member's assignment, once the leader has made it. The leader passes all of them.
    pub(super) fn sync(
        &mut self,
        name: &str,
        caller: Caller<'_>,
        assignments: Option<Vec<(String, Vec<u8>)>>,
        now: Instant,
    ) -> Result<Step<Vec<u8>>> {
        let stored = self.stored();
        let group = self.group_mut(name, now)?;
        group.check(caller, now)?;
        let member_id = caller.member_id;
        match group.phase {
            Phase::Empty => Err(ErrorCode::UnknownMemberId),
            Phase::Joining { .. } => Err(ErrorCode::RebalanceInProgress),
            Phase::Stable => Ok(Step::Done(group.assignment(member_id))),
            Phase::Syncing { deadline } => {
                let Some(assignments) = assignments.filter(|_| group.leader == member_id) else {
                    let left = deadline.saturating_duration_since(now);
                    if left.is_zero() {
                        group.begin_joining(now, Duration::ZERO);
                        return Err(ErrorCode::RebalanceInProgress);
                    }
                    return Ok(Step::Wait(left));
                };
                let size: usize = assignments.iter().map(|(_, assignment)| assignment.len()).sum();
                if stored + size > MOST_STORED {
                    return Err(ErrorCode::GroupMaxSizeReached);
                }
                group.members.values_mut().for_each(|member| member.assignment.clear());
                for (id, assignment) in assignments {
                    if let Some(member) = group.members.get_mut(&id) {
                        member.assignment = assignment;
                    }
                }
                group.phase = Phase::Stable;
                Ok(Step::Done(group.assignment(member_id)))
            }
        }
    }

    /// A sign of life.
    pub(super) fn heartbeat(&mut self, name: &str, caller: Caller<'_>, now: Instant) -> Result<()> {
        let group = self.group_mut(name, now)?;
        group.check(caller, now)?;
        match group.phase {
            Phase::Joining { .. } => Err(ErrorCode::RebalanceInProgress),
            _ => Ok(()),
        }
    }

    /// Removes a member; the others join again.
    pub(super) fn leave(
        &mut self,
        name: &str,
        member_id: &str,
        instance_id: Option<&str>,
        now: Instant,
    ) -> Result<()> {
        let group = self.group_mut(name, now)?;
        let named = group.members.iter().find(|(id, member)| match instance_id {
            Some(_) => member.instance_id.as_deref() == instance_id,
            None => *id == member_id,
        });
        let id = named.map(|(id, _)| id.clone()).ok_or(ErrorCode::UnknownMemberId)?;
        group.members.remove(&id);
        group.begin_joining(now, Duration::ZERO);
        Ok(())
    }

    /// Whether a consumer may commit: a member of the current generation, or one that is in no group (-1).
    pub(super) fn check_commit(&mut self, name: &str, caller: Caller<'_>, now: Instant) -> Result<()> {
        let Caller { member_id, generation, .. } = caller;
        if name.is_empty() {
            return Err(ErrorCode::InvalidGroupId);
        }
        if !self.groups.contains_key(name) {
            if generation >= 0 || self.groups.len() >= MOST_GROUPS {
                return Err(ErrorCode::IllegalGeneration);
            }
            self.groups.insert(name.to_owned(), Group::default());
        }
        let group = self.group_mut(name, now)?;
        if generation < 0 && member_id.is_empty() {
            return if group.members.is_empty() { Ok(()) } else { Err(ErrorCode::UnknownMemberId) };
        }
        group.check(caller, now)
    }

    /// Stores an offset.
    pub(super) fn commit(&mut self, name: &str, place: Place, offset: CommittedOffset) -> Result<()> {
        if offset.metadata.as_ref().is_some_and(|metadata| metadata.len() > MOST_METADATA) {
            return Err(ErrorCode::OffsetMetadataTooLarge);
        }
        let group = self.groups.get_mut(name).ok_or(ErrorCode::UnknownMemberId)?;
        if !group.offsets.contains_key(&place) {
            if self.offsets >= MOST_OFFSETS {
                return Err(ErrorCode::InvalidCommitOffsetSize);
            }
            self.offsets += 1;
        }
        group.offsets.insert(place, offset);
        Ok(())
    }

    /// The offset that a group has committed.
    pub(super) fn committed(&self, name: &str, place: &Place) -> Option<&CommittedOffset> {
        self.groups.get(name)?.offsets.get(place)
    }

    /// All offsets that a group has committed.
    pub(super) fn all_committed(&self, name: &str) -> Vec<(Place, CommittedOffset)> {
        let offsets = self.groups.get(name).into_iter().flat_map(|group| &group.offsets);
        offsets.map(|(place, offset)| (place.clone(), offset.clone())).collect()
    }
}

/// What becomes of a member that joins.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// It joins under this id.
    Member(String),
    /// It has to join again with this id.
    Pending(String),
}

impl Group {
    /// Kafka's name of the state.
    pub(super) fn state(&self) -> &'static str {
        match self.phase {
            Phase::Empty => "Empty",
            Phase::Joining { .. } => "PreparingRebalance",
            Phase::Syncing { .. } => "CompletingRebalance",
            Phase::Stable => "Stable",
        }
    }

    pub(super) fn members(&self) -> impl Iterator<Item = (&String, &Member)> {
        self.members.iter()
    }

    fn admit(&mut self, join: &Join, new_id: String) -> Result<Admission> {
        let others = self.members.iter().filter(|(id, _)| **id != join.member_id);
        let others: Vec<_> = others.map(|(_, member)| member).collect();
        let in_common =
            |name: &String| others.iter().all(|other| other.protocols.iter().any(|(known, _)| known == name));
        let fits = others.is_empty()
            || (join.protocol_type == self.protocol_type
                && join.protocols.iter().any(|(name, _)| in_common(name)));
        if !fits {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        let same_instance = join.instance_id.as_ref().and_then(|instance| {
            let same = |member: &Member| member.instance_id.as_ref() == Some(instance);
            self.members.iter().find(|(_, member)| same(member)).map(|(id, _)| id.clone())
        });
        if !join.member_id.is_empty() {
            if self.members.contains_key(&join.member_id) {
                return Ok(Admission::Member(join.member_id.clone()));
            }
            if same_instance.is_some() {
                return Err(ErrorCode::FencedInstanceId);
            }
            let at = self.pending.iter().position(|id| *id == join.member_id);
            let id = at.and_then(|at| self.pending.remove(at)).ok_or(ErrorCode::UnknownMemberId)?;
            return self.with_room(id);
        }
        if let Some(old) = same_instance {
            self.members.remove(&old);
            return Ok(Admission::Member(new_id));
        }
        if join.id_required && join.instance_id.is_none() {
            if self.pending.len() == PENDING_IDS {
                self.pending.pop_front();
            }
            self.pending.push_back(new_id.clone());
            return Ok(Admission::Pending(new_id));
        }
        self.with_room(new_id)
    }

    fn with_room(&self, id: String) -> Result<Admission> {
        if self.members.len() < MOST_MEMBERS {
            Ok(Admission::Member(id))
        } else {
            Err(ErrorCode::GroupMaxSizeReached)
        }
    }

    fn add(&mut self, id: String, join: Join, now: Instant) {
        let millis = |ms: i64| Duration::from_millis(ms.max(0) as u64);
        let session_timeout = millis(join.session_timeout_ms);
        let rebalance_timeout = match join.rebalance_timeout_ms {
            ..=0 => session_timeout,
            ms => millis(ms.min(*SESSION_TIMEOUTS.end())),
        };
        let before = self.members.get(&id);
        let is_unchanged = before.is_some_and(|before| before.protocols == join.protocols);
        let was_empty = self.members.is_empty();
        let member = Member {
            instance_id: join.instance_id,
            client_id: join.client_id,
            host: join.host,
            session_timeout,
            rebalance_timeout,
            protocols: join.protocols,
            assignment: before.map(|before| before.assignment.clone()).unwrap_or_default(),
            seen: now,
            has_joined: true,
        };
        if was_empty {
            self.protocol_type = join.protocol_type;
        }
        self.members.insert(id.clone(), member);
        // A follower that repeats itself gets the same answer again.
        let repeats = match self.phase {
            Phase::Syncing { .. } => is_unchanged,
            Phase::Stable => is_unchanged && self.leader != id,
            Phase::Empty | Phase::Joining { .. } => false,
        };
        if !repeats && !matches!(self.phase, Phase::Joining { .. }) {
            self.begin_joining(now, if was_empty { SETTLING } else { Duration::ZERO });
            if let Some(member) = self.members.get_mut(&id) {
                member.has_joined = true;
            }
        }
    }

    fn begin_joining(&mut self, now: Instant, settling: Duration) {
        if self.members.is_empty() {
            self.phase = Phase::Empty;
            self.generation = self.generation.wrapping_add(1).max(0);
            return;
        }
        if matches!(self.phase, Phase::Joining { .. }) {
            return;
        }
        let longest = self.members.values().map(|member| member.rebalance_timeout).max().unwrap_or_default();
        self.phase = Phase::Joining { settled: now + settling, deadline: now + longest };
        self.members.values_mut().for_each(|member| member.has_joined = false);
    }

    /// The time until joining ends; None if it has.
    fn time_to_join(&self, now: Instant) -> Option<Duration> {
        let Phase::Joining { settled, deadline } = self.phase else { return None };
        let all = self.members.values().all(|member| member.has_joined);
        Some(if all { settled } else { deadline }.saturating_duration_since(now))
    }

    /// Begins the next generation with the members that have joined.
    fn end_joining(&mut self, now: Instant) {
        self.members.retain(|_, member| member.has_joined);
        // Their sessions begin when they can go on.
        self.members.values_mut().for_each(|member| member.seen = now);
        self.generation = self.generation.wrapping_add(1).max(1);
        if !self.members.contains_key(&self.leader) {
            self.leader = self.members.keys().next().cloned().unwrap_or_default();
        }
        self.protocol = self.vote();
        let longest = self.members.values().map(|member| member.rebalance_timeout).max().unwrap_or_default();
        self.phase = match self.members.is_empty() {
            true => Phase::Empty,
            false => Phase::Syncing { deadline: now + longest },
        };
    }

    /// Each member votes for the first of its protocols that all have.
    fn vote(&self) -> Option<String> {
        let has = |member: &Member, name: &str| member.protocols.iter().any(|(known, _)| known == name);
        let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
        for member in self.members.values() {
            let of_all = |name: &&str| self.members.values().all(|other| has(other, name));
            if let Some(first) = member.protocols.iter().map(|(name, _)| name.as_str()).find(of_all) {
                *votes.entry(first).or_default() += 1;
            }
        }
        votes.into_iter().max_by_key(|(_, count)| *count).map(|(name, _)| name.to_owned())
    }

    fn joined(&self, member_id: &str) -> Joined {
        let protocol = self.protocol.clone().unwrap_or_default();
        let metadata = |member: &Member| {
            let chosen = member.protocols.iter().find(|(name, _)| *name == protocol);
            chosen.map(|(_, metadata)| metadata.clone()).unwrap_or_default()
        };
        let members = match self.leader == member_id {
            true => {
                let all = self.members.iter();
                all.map(|(id, member)| (id.clone(), member.instance_id.clone(), metadata(member))).collect()
            }
            false => Vec::new(),
        };
        Joined {
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            leader: self.leader.clone(),
            member_id: member_id.to_owned(),
            members,
            protocol,
        }
    }

    fn assignment(&self, member_id: &str) -> Vec<u8> {
        self.members.get(member_id).map(|member| member.assignment.clone()).unwrap_or_default()
    }

    /// The member of this id, unless another one has taken over its instance id (`ClassicGroup.validateMember`).
    fn member(&mut self, member_id: &str, instance_id: Option<&str>) -> Result<&mut Member> {
        let is_taken = |(id, member): (&String, &Member)| {
            instance_id.is_some() && member.instance_id.as_deref() == instance_id && id != member_id
        };
        if self.members.iter().any(is_taken) {
            return Err(ErrorCode::FencedInstanceId);
        }
        self.members.get_mut(member_id).ok_or(ErrorCode::UnknownMemberId)
    }

    fn check(&mut self, caller: Caller<'_>, now: Instant) -> Result<()> {
        let current = self.generation;
        let member = self.member(caller.member_id, caller.instance_id)?;
        if caller.generation != current {
            return Err(ErrorCode::IllegalGeneration);
        }
        member.seen = now;
        Ok(())
    }

    /// Removes the members whose session has timed out. Those that wait for the others are alive.
    fn expire(&mut self, now: Instant) {
        let is_joining = matches!(self.phase, Phase::Joining { .. });
        let before = self.members.len();
        self.members.retain(|_, member| {
            let waits = is_joining && member.has_joined;
            waits || now.saturating_duration_since(member.seen) <= member.session_timeout
        });
        if self.members.len() < before {
            self.begin_joining(now, Duration::ZERO);
        }
    }
}

impl Member {
    /// The metadata of the protocol that the group has chosen.
    pub(super) fn metadata(&self, protocol: Option<&str>) -> Vec<u8> {
        let chosen = self.protocols.iter().find(|(name, _)| Some(name.as_str()) == protocol);
        chosen.map(|(_, metadata)| metadata.clone()).unwrap_or_default()
    }

    fn size(&self) -> usize {
        let protocols: usize =
            self.protocols.iter().map(|(name, metadata)| name.len() + metadata.len()).sum();
        protocols + self.assignment.len()
    }
}

#[cfg(test)]
mod tests;
