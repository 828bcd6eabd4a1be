//! A group of the classic protocol: members, generations, rebalances (`ClassicGroup`). Nothing happens by itself: late
//! members are found by the requests of other members.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::bytes::Bytes;

use magicbyte_broker::ErrorCode;

use crate::caller::{Caller, Result, millis};
use crate::limits::{MAX_MEMBER_MEMORY, MAX_MEMBERS, MAX_PENDING_MEMORY};

/// Kafka's `group.min.session.timeout.ms` is 6 s; tests use less.
const SESSION_TIMEOUTS: std::ops::RangeInclusive<i64> = 10..=1_800_000;
/// The time that a new group waits for more members (`group.initial.rebalance.delay.ms`, 3 s in Kafka).
pub(super) const SETTLING: Duration = Duration::from_millis(100);

/// A group whose leader makes the assignments.
#[derive(Debug)]
pub(super) struct ClassicGroup {
    phase: Phase,
    generation: i32,
    pub(super) protocol_type: Arc<str>,
    pub(super) protocol: Option<Arc<str>>,
    leader: Arc<str>,
    members: BTreeMap<Arc<str>, Member>,
    /// The number of members that have each protocol.
    supported: HashMap<Arc<str>, usize>,
    /// Members that have an id and have not joined with it, in the order of their ids.
    pending: VecDeque<Pending>,
}

#[derive(Debug)]
struct Pending {
    id: Arc<str>,
    deadline: Instant,
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

/// The name and metadata of each protocol, the best one first.
pub(super) type Protocols = Vec<(Arc<str>, Bytes)>;

/// A member of a group.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) instance_id: Option<Arc<str>>,
    pub(super) client_id: Arc<str>,
    pub(super) host: Arc<str>,
    session_timeout: Duration,
    rebalance_timeout: Duration,
    /// Shared with clients that describe the group.
    protocols: Arc<Protocols>,
    pub(super) assignment: Bytes,
    seen: Instant,
    has_joined: bool,
    /// Bytes of all but the assignment.
    memory: usize,
}

/// A JoinGroup request.
#[derive(Clone, Debug)]
pub(super) struct Join {
    pub(super) member_id: Arc<str>,
    pub(super) instance_id: Option<Arc<str>>,
    pub(super) client_id: Arc<str>,
    pub(super) host: Arc<str>,
    pub(super) session_timeout_ms: i64,
    pub(super) rebalance_timeout_ms: i64,
    pub(super) protocol_type: Arc<str>,
    /// Each name once.
    pub(super) protocols: Protocols,
    /// True if a new member has to join again with the id that it gets (since version 4).
    pub(super) id_required: bool,
}

/// The outcome for a member that joins.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// It joins under this id.
    Member(Arc<str>),
    /// It has to join again with this id.
    Pending(Arc<str>),
}

/// The result of a round of joining.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Joined {
    pub(super) generation: i32,
    pub(super) protocol_type: Arc<str>,
    pub(super) protocol: Arc<str>,
    pub(super) leader: Arc<str>,
    pub(super) member_id: Arc<str>,
    /// For the leader: id, instance id and metadata of each member.
    pub(super) members: Vec<(Arc<str>, Option<Arc<str>>, Bytes)>,
}

/// A step of a request that may have to wait for others: the answer, or the time to look again.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step<T> {
    Done(T),
    Wait(Duration),
}

/// The assignments that a leader has made, by member id.
pub(super) type Assignments = HashMap<Arc<str>, Bytes>;

impl Join {
    /// Checks everything that needs no group, and so no lock.
    ///
    /// # Errors
    /// Kafka's error, if the request is wrong or the member too large.
    pub(super) fn check(&self, group: &str) -> Result<()> {
        if group.is_empty() {
            return Err(ErrorCode::InvalidGroupId);
        }
        if !SESSION_TIMEOUTS.contains(&self.session_timeout_ms) {
            return Err(ErrorCode::InvalidSessionTimeout);
        }
        if self.protocols.is_empty() {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        if self.memory() > MAX_MEMBER_MEMORY {
            return Err(ErrorCode::GroupMaxSizeReached);
        }
        Ok(())
    }

    /// Bytes that the member takes, with its protocols in the group's count of them.
    pub(super) fn memory(&self) -> usize {
        // An allocation has up to 32 bytes of its own.
        let protocol = |(name, metadata): &(Arc<str>, Bytes)| {
            2 * size_of::<(Arc<str>, Bytes)>() + name.len() + metadata.len() + 2 * 32
        };
        let protocols: usize = self.protocols.iter().map(protocol).sum();
        // The client id is also a part of the member's id, which is the map's key and may be the leader's.
        let texts =
            3 * self.client_id.len() + self.host.len() + self.instance_id.as_ref().map_or(0, |id| id.len());
        2 * size_of::<(Arc<str>, Member)>() + texts + protocols
    }
}

impl Default for ClassicGroup {
    fn default() -> Self {
        let nothing: Arc<str> = "".into();
        Self {
            phase: Phase::Empty,
            generation: 0,
            protocol_type: Arc::clone(&nothing),
            protocol: None,
            leader: nothing,
            members: BTreeMap::new(),
            supported: HashMap::new(),
            pending: VecDeque::new(),
        }
    }
}

impl ClassicGroup {
    /// Bytes that the group refers to.
    pub(super) fn measure(&self) -> usize {
        let members: usize =
            self.members.values().map(|member| member.memory + member.assignment.len()).sum();
        let texts = self.protocol_type.len() + self.protocol.as_ref().map_or(0, |name| name.len());
        texts + members + self.pending_memory()
    }

    fn pending_memory(&self) -> usize {
        self.pending.iter().map(|pending| 2 * size_of::<Pending>() + 32 + pending.id.len()).sum()
    }

    /// Kafka's name of the state.
    pub(super) fn state(&self) -> &'static str {
        match self.phase {
            Phase::Empty => "Empty",
            Phase::Joining { .. } => "PreparingRebalance",
            Phase::Syncing { .. } => "CompletingRebalance",
            Phase::Stable => "Stable",
        }
    }

    pub(super) fn members(&self) -> &BTreeMap<Arc<str>, Member> {
        &self.members
    }

    /// Adds a member, or lets one join again. Returns its id, which is `new_id` for a new one.
    pub(super) fn join(&mut self, join: Join, new_id: Arc<str>, now: Instant) -> Result<Admission> {
        let admission = self.admit(&join, new_id, now)?;
        if let Admission::Member(id) = &admission {
            self.add(Arc::clone(id), join, now);
        }
        Ok(admission)
    }

    fn admit(&mut self, join: &Join, new_id: Arc<str>, now: Instant) -> Result<Admission> {
        if !self.supports(join) {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        let same_instance = join.instance_id.as_ref().and_then(|instance| {
            let same = |member: &Member| member.instance_id.as_ref() == Some(instance);
            self.members.iter().find(|(_, member)| same(member)).map(|(id, _)| Arc::clone(id))
        });
        if !join.member_id.is_empty() {
            if self.members.contains_key(&join.member_id) {
                return Ok(Admission::Member(Arc::clone(&join.member_id)));
            }
            if same_instance.is_some() {
                return Err(ErrorCode::FencedInstanceId);
            }
            let at = self.pending.iter().position(|pending| pending.id == join.member_id);
            let pending = at.and_then(|at| self.pending.remove(at)).ok_or(ErrorCode::UnknownMemberId)?;
            return self.with_room(pending.id);
        }
        if let Some(old) = same_instance {
            self.remove(&old);
            return Ok(Admission::Member(new_id));
        }
        if join.id_required && join.instance_id.is_none() {
            let deadline = now + millis(join.session_timeout_ms);
            self.pending.push_back(Pending { id: Arc::clone(&new_id), deadline });
            while self.pending.len() > 1 && self.pending_memory() > MAX_PENDING_MEMORY {
                self.pending.pop_front();
            }
            return Ok(Admission::Pending(new_id));
        }
        self.with_room(new_id)
    }

    /// True if all other members have one of the protocols (`ClassicGroup.supportsProtocols`).
    fn supports(&self, join: &Join) -> bool {
        let member = self.members.get(&join.member_id);
        let others = self.members.len() - usize::from(member.is_some());
        if others == 0 {
            return true;
        }
        let protocols: HashSet<_> =
            member.into_iter().flat_map(|member| &*member.protocols).map(|(name, _)| name).collect();
        let count =
            |name| self.supported.get(name).copied().unwrap_or(0) - usize::from(protocols.contains(name));
        join.protocol_type == self.protocol_type
            && join.protocols.iter().any(|(name, _)| count(name) == others)
    }

    fn with_room(&self, id: Arc<str>) -> Result<Admission> {
        if self.members.len() < MAX_MEMBERS {
            Ok(Admission::Member(id))
        } else {
            Err(ErrorCode::GroupMaxSizeReached)
        }
    }

    fn add(&mut self, id: Arc<str>, join: Join, now: Instant) {
        let session_timeout = millis(join.session_timeout_ms);
        let rebalance_timeout = match join.rebalance_timeout_ms {
            ..=0 => session_timeout,
            ms => millis(ms.min(*SESSION_TIMEOUTS.end())),
        };
        let was_empty = self.members.is_empty();
        let before = self.remove(&id);
        let is_unchanged = before.as_ref().is_some_and(|before| *before.protocols == join.protocols);
        let member = Member {
            memory: join.memory(),
            instance_id: join.instance_id,
            client_id: join.client_id,
            host: join.host,
            session_timeout,
            rebalance_timeout,
            protocols: Arc::new(join.protocols),
            assignment: before.map(|before| before.assignment).unwrap_or_default(),
            seen: now,
            has_joined: true,
        };
        if was_empty {
            self.protocol_type = join.protocol_type;
        }
        for (name, _) in &*member.protocols {
            *self.supported.entry(Arc::clone(name)).or_default() += 1;
        }
        self.members.insert(Arc::clone(&id), member);
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

    fn remove(&mut self, id: &str) -> Option<Member> {
        let member = self.members.remove(id)?;
        for (name, _) in &*member.protocols {
            if let Some(count) = self.supported.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    self.supported.remove(name);
                }
            }
        }
        if self.supported.is_empty() {
            self.supported.shrink_to_fit();
        }
        Some(member)
    }

    fn retain(&mut self, is_kept: impl Fn(&Member) -> bool) {
        let left = self.members.iter().filter(|(_, member)| !is_kept(member));
        let left: Vec<_> = left.map(|(id, _)| Arc::clone(id)).collect();
        for id in left {
            self.remove(&id);
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
        self.phase = Phase::Joining { settled: now + settling, deadline: now + self.rebalance_timeout() };
        self.members.values_mut().for_each(|member| member.has_joined = false);
    }

    fn rebalance_timeout(&self) -> Duration {
        self.members.values().map(|member| member.rebalance_timeout).max().unwrap_or_default()
    }

    /// The result of joining, once all members have joined.
    pub(super) fn joined(
        &mut self,
        member_id: &str,
        instance_id: Option<&str>,
        now: Instant,
    ) -> Result<Step<Joined>> {
        self.member(member_id, instance_id)?.seen = now;
        if let Phase::Joining { settled, deadline } = self.phase {
            let all = self.members.values().all(|member| member.has_joined);
            let left = if all { settled } else { deadline }.saturating_duration_since(now);
            if !left.is_zero() {
                return Ok(Step::Wait(left));
            }
            self.end_joining(now);
        }
        let (id, _) = self.members.get_key_value(member_id).ok_or(ErrorCode::UnknownMemberId)?;
        let members = match self.leader == *id {
            true => {
                let metadata = |member: &Member| member.metadata(self.protocol.as_deref());
                let all = self.members.iter();
                all.map(|(id, member)| (Arc::clone(id), member.instance_id.clone(), metadata(member)))
                    .collect()
            }
            false => Vec::new(),
        };
        Ok(Step::Done(Joined {
            generation: self.generation,
            protocol_type: Arc::clone(&self.protocol_type),
            protocol: self.protocol.clone().unwrap_or_else(|| "".into()),
            leader: Arc::clone(&self.leader),
            member_id: Arc::clone(id),
            members,
        }))
    }

    /// Begins the next generation with the members that have joined.
    fn end_joining(&mut self, now: Instant) {
        self.retain(|member| member.has_joined);
        // Their sessions begin when they can go on.
        self.members.values_mut().for_each(|member| member.seen = now);
        self.generation = self.generation.wrapping_add(1).max(1);
        if !self.members.contains_key(&self.leader) {
            self.leader = self.members.keys().next().cloned().unwrap_or_else(|| "".into());
        }
        self.protocol = self.vote();
        self.phase = match self.members.is_empty() {
            true => Phase::Empty,
            false => Phase::Syncing { deadline: now + self.rebalance_timeout() },
        };
    }

    /// Each member votes for the first of its protocols that all have.
    fn vote(&self) -> Option<Arc<str>> {
        let of_all = |name: &&Arc<str>| self.supported.get(*name) == Some(&self.members.len());
        let mut votes: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
        for member in self.members.values() {
            if let Some(first) = member.protocols.iter().map(|(name, _)| name).find(of_all) {
                *votes.entry(first).or_default() += 1;
            }
        }
        votes.into_iter().max_by_key(|(_, count)| *count).map(|(name, _)| Arc::clone(name))
    }

    /// A member's assignment, once the leader has made it. The leader passes all of them.
    pub(super) fn sync(
        &mut self,
        caller: Caller<'_>,
        assignments: Option<&Assignments>,
        now: Instant,
    ) -> Result<Step<Bytes>> {
        self.check(caller, now)?;
        match self.phase {
            Phase::Empty => Err(ErrorCode::UnknownMemberId),
            Phase::Joining { .. } => Err(ErrorCode::RebalanceInProgress),
            Phase::Stable => Ok(Step::Done(self.assignment(caller.member_id))),
            Phase::Syncing { deadline } => {
                let Some(assignments) = assignments.filter(|_| *self.leader == *caller.member_id) else {
                    let left = deadline.saturating_duration_since(now);
                    if left.is_zero() {
                        self.begin_joining(now, Duration::ZERO);
                        return Err(ErrorCode::RebalanceInProgress);
                    }
                    return Ok(Step::Wait(left));
                };
                for (id, member) in &mut self.members {
                    member.assignment = assignments.get(id).cloned().unwrap_or_default();
                }
                self.phase = Phase::Stable;
                Ok(Step::Done(self.assignment(caller.member_id)))
            }
        }
    }

    fn assignment(&self, member_id: &str) -> Bytes {
        self.members.get(member_id).map(|member| member.assignment.clone()).unwrap_or_default()
    }

    /// A sign of life.
    pub(super) fn heartbeat(&mut self, caller: Caller<'_>, now: Instant) -> Result<()> {
        self.check(caller, now)?;
        match self.phase {
            Phase::Joining { .. } => Err(ErrorCode::RebalanceInProgress),
            _ => Ok(()),
        }
    }

    /// Removes a member; the others join again.
    pub(super) fn leave(&mut self, member_id: &str, instance_id: Option<&str>, now: Instant) -> Result<()> {
        let id: Arc<str> = match instance_id {
            None => member_id.into(),
            Some(_) => {
                let same = |member: &Member| member.instance_id.as_deref() == instance_id;
                let named = self.members.iter().find(|(_, member)| same(member));
                named.map(|(id, _)| Arc::clone(id)).ok_or(ErrorCode::UnknownMemberId)?
            }
        };
        self.remove(&id).ok_or(ErrorCode::UnknownMemberId)?;
        self.begin_joining(now, Duration::ZERO);
        Ok(())
    }

    /// Checks that a consumer may commit: a member of the current generation, or a consumer that is in no group (-1).
    pub(super) fn check_commit(&mut self, caller: Caller<'_>, now: Instant) -> Result<()> {
        if caller.generation < 0 && caller.member_id.is_empty() {
            return if self.members.is_empty() { Ok(()) } else { Err(ErrorCode::UnknownMemberId) };
        }
        self.check(caller, now)
    }

    /// The member of this id, unless another one has taken over its instance id (`ClassicGroup.validateMember`).
    fn member(&mut self, member_id: &str, instance_id: Option<&str>) -> Result<&mut Member> {
        let is_taken = |(id, member): (&Arc<str>, &Member)| {
            instance_id.is_some() && member.instance_id.as_deref() == instance_id && **id != *member_id
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

    /// Removes the members whose session has timed out. Members that wait for others are alive.
    pub(super) fn expire(&mut self, now: Instant) {
        self.pending.retain(|pending| pending.deadline > now);
        let is_joining = matches!(self.phase, Phase::Joining { .. });
        let before = self.members.len();
        self.retain(|member| {
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
    pub(super) fn metadata(&self, protocol: Option<&str>) -> Bytes {
        let chosen = self.protocols.iter().find(|(name, _)| Some(&**name) == protocol);
        chosen.map(|(_, metadata)| metadata.clone()).unwrap_or_default()
    }
}
