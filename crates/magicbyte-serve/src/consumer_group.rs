//! A group whose coordinator makes the assignments (KIP-848, `ConsumerGroup`): members follow its epochs, and give up
//! partitions before others get them. Nothing happens by itself: late members are found by the requests of others.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use magicbyte_broker::ErrorCode;

use crate::assignors::{Assignee, Assignor, Place, TopicId, TopicPartitions};
use crate::caller::{Caller, Result, millis};
use crate::limits::MAX_MEMBERS;

/// The time without heartbeats after which a member is removed (`group.consumer.session.timeout.ms`).
pub(super) const SESSION_TIMEOUT: Duration = Duration::from_secs(45);
/// The epoch with which a member joins.
pub(super) const JOIN: i32 = 0;
/// The epoch with which a member leaves (`LEAVE_GROUP_MEMBER_EPOCH`).
pub(super) const LEAVE: i32 = -1;
/// The epoch with which a static member leaves, whose instance will come back (`LEAVE_GROUP_STATIC_MEMBER_EPOCH`).
pub(super) const LEAVE_FOR_NOW: i32 = -2;

/// Partitions, and the epochs at which a member got them.
pub(super) type Partitions = BTreeMap<Place, i32>;

/// A group of consumers of the new protocol.
#[derive(Debug)]
pub(super) struct ConsumerGroup {
    /// Larger with each change of the members and what they subscribe to.
    pub(super) epoch: i32,
    /// The epoch of the target assignment.
    pub(super) assignment_epoch: i32,
    members: BTreeMap<Arc<str>, Member>,
    /// The partitions that a member has, or has not given up yet.
    owned: BTreeSet<Place>,
}

/// The partitions whose offsets a member may commit.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Committable {
    All,
    /// A member of an older epoch still has those that it was assigned at this epoch or before (KIP-1251).
    AssignedBy(i32, Partitions),
}

impl Committable {
    /// True if the offset of this partition may be committed.
    pub(super) fn has(&self, place: Place) -> bool {
        match self {
            Self::All => true,
            Self::AssignedBy(epoch, partitions) => {
                partitions.get(&place).is_some_and(|assigned| assigned <= epoch)
            }
        }
    }
}

/// A subscription of a member, and the existing topics that it means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Subscription<T> {
    pub(super) to: T,
    pub(super) topics: BTreeSet<TopicId>,
}

/// The progress of a member towards its target assignment (`MemberState`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum MemberState {
    #[default]
    Stable,
    /// It has to give up partitions first.
    UnrevokedPartitions,
    /// It waits for partitions that others have not given up.
    UnreleasedPartitions,
}

/// A member of a group.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) instance_id: Option<Arc<str>>,
    pub(super) rack_id: Option<Arc<str>>,
    pub(super) client_id: Arc<str>,
    pub(super) host: Arc<str>,
    pub(super) epoch: i32,
    previous_epoch: i32,
    state: MemberState,
    rebalance_timeout: Duration,
    assignor: Option<Assignor>,
    pub(super) names: Subscription<BTreeSet<Arc<str>>>,
    /// Empty if there is none.
    pub(super) pattern: Subscription<Arc<str>>,
    pub(super) assigned: Partitions,
    /// The partitions that it has to give up.
    pub(super) revoked: Partitions,
    pub(super) target: Arc<BTreeSet<Place>>,
    seen: Instant,
    /// The time by which it has to give up partitions.
    revokes_by: Option<Instant>,
}

/// A ConsumerGroupHeartbeat request. What is None has not changed since the last one.
#[derive(Clone, Debug)]
pub(super) struct Heartbeat {
    pub(super) member_id: Arc<str>,
    pub(super) epoch: i32,
    pub(super) instance_id: Option<Arc<str>>,
    pub(super) rack_id: Option<Arc<str>>,
    pub(super) client_id: Arc<str>,
    pub(super) host: Arc<str>,
    pub(super) rebalance_timeout_ms: Option<i32>,
    pub(super) names: Option<Subscription<BTreeSet<Arc<str>>>>,
    pub(super) pattern: Option<Subscription<Arc<str>>>,
    pub(super) assignor: Option<Assignor>,
    /// The partitions that the member has.
    pub(super) owned: Option<BTreeSet<Place>>,
}

/// The answer to a heartbeat.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Beaten {
    pub(super) member_id: Arc<str>,
    pub(super) epoch: i32,
    /// The partitions that the member may have, if it has to know.
    pub(super) assigned: Option<BTreeSet<Place>>,
}

/// The next step of a member.
struct Next {
    state: MemberState,
    epoch: i32,
    assigned: Partitions,
    revoked: Partitions,
}

impl Heartbeat {
    /// Bytes that the member takes, with all partitions that it may get.
    pub(super) fn memory(&self, partitions: &TopicPartitions) -> usize {
        let names = self.names.as_ref().map(|names| (&names.topics, memory_of_names(names)));
        let pattern = self.pattern.as_ref().map(|pattern| (&pattern.topics, memory_of_pattern(pattern)));
        let subscriptions: Vec<_> = names.into_iter().chain(pattern).collect();
        let of_topic = |topic| partitions.get(topic).map_or(0, Vec::len);
        let places: usize = subscriptions.iter().flat_map(|(topics, _)| topics.iter().map(of_topic)).sum();
        let subscribed: usize = subscriptions.iter().map(|(_, memory)| memory).sum();
        let texts = [Some(&self.member_id), self.instance_id.as_ref(), self.rack_id.as_ref()];
        let texts: usize = texts.into_iter().flatten().map(|text| text.len()).sum();
        let base = 2 * size_of::<(Arc<str>, Member)>() + texts + self.client_id.len() + self.host.len();
        base + subscribed + 2 * places * (size_of::<(Place, i32)>() + 2 * size_of::<Place>())
    }
}

impl Default for ConsumerGroup {
    /// Before the first assignment, so that there is one also for members that subscribe to nothing.
    fn default() -> Self {
        Self { epoch: 1, assignment_epoch: 0, members: BTreeMap::new(), owned: BTreeSet::new() }
    }
}

impl ConsumerGroup {
    pub(super) fn members(&self) -> &BTreeMap<Arc<str>, Member> {
        &self.members
    }

    /// Bytes that the group refers to.
    pub(super) fn measure(&self) -> usize {
        let members: usize = self.members.iter().map(|(id, member)| id.len() + member.memory()).sum();
        members + 2 * self.owned.len() * size_of::<Place>()
    }

    /// Kafka's name of the state.
    pub(super) fn state(&self) -> &'static str {
        if self.members.is_empty() {
            "Empty"
        } else if self.epoch > self.assignment_epoch {
            "Assigning"
        } else if self.members.values().any(|member| !member.is_at(self.assignment_epoch)) {
            "Reconciling"
        } else {
            "Stable"
        }
    }

    /// The assignor that most members ask for.
    pub(super) fn assignor(&self) -> Assignor {
        let mut votes: BTreeMap<Assignor, usize> = BTreeMap::new();
        for assignor in self.members.values().filter_map(|member| member.assignor) {
            *votes.entry(assignor).or_default() += 1;
        }
        votes
            .into_iter()
            .rev()
            .max_by_key(|(_, count)| *count)
            .map(|(assignor, _)| assignor)
            .unwrap_or_default()
    }

    /// A sign of life: a member joins, says what has changed, and learns its next partitions.
    pub(super) fn heartbeat(
        &mut self,
        beat: Heartbeat,
        partitions: &TopicPartitions,
        now: Instant,
    ) -> Result<Beaten> {
        self.admit(&beat, now)?;
        let (joins, id) = (beat.epoch == JOIN, Arc::clone(&beat.member_id));
        let is_full = beat.rebalance_timeout_ms.is_some()
            && (beat.names.is_some() || beat.pattern.is_some())
            && beat.owned.is_some();
        let owned = beat.owned.clone();
        let member = self.members.get_mut(&id).ok_or(ErrorCode::UnknownMemberId)?;
        let has_changed = member.update(beat, now);
        let before: Vec<Place> = member.assigned.keys().copied().collect();
        if has_changed {
            self.epoch += 1;
        }
        if self.epoch > self.assignment_epoch {
            self.assign(partitions);
        }
        self.reconcile(&id, has_changed, owned.as_ref(), now);
        let member = self.members.get(&id).ok_or(ErrorCode::UnknownMemberId)?;
        let is_told = joins || is_full || !member.assigned.keys().eq(&before);
        let assigned = is_told.then(|| member.assigned.keys().copied().collect());
        Ok(Beaten { member_id: id, epoch: member.epoch, assigned })
    }

    /// Makes sure that the member exists, and that the request is its own.
    fn admit(&mut self, beat: &Heartbeat, now: Instant) -> Result<()> {
        let joins = beat.epoch == JOIN;
        if self.members.len() >= MAX_MEMBERS && !self.members.contains_key(&beat.member_id) {
            return Err(ErrorCode::GroupMaxSizeReached);
        }
        let of_instance = beat.instance_id.as_deref().map(|instance_id| self.of_instance(instance_id));
        match of_instance {
            Some(Some(id)) if joins => {
                if self.members.get(&id).is_some_and(|member| member.epoch != LEAVE_FOR_NOW) {
                    return Err(ErrorCode::UnreleasedInstanceId);
                }
                // The instance has come back: it continues with the partitions of its former member.
                if let Some(member) = self.members.remove(&id) {
                    let back = Member { epoch: 0, previous_epoch: 0, ..member };
                    self.members.insert(Arc::clone(&beat.member_id), back);
                }
                return Ok(());
            }
            Some(Some(id)) if id != beat.member_id => return Err(ErrorCode::FencedInstanceId),
            Some(None) if !joins => return Err(ErrorCode::UnknownMemberId),
            _ => {}
        }
        match self.members.get(&beat.member_id) {
            Some(member) => member.check_epoch(beat),
            None if joins => {
                self.members.insert(Arc::clone(&beat.member_id), Member::new(beat, now));
                Ok(())
            }
            None => Err(ErrorCode::UnknownMemberId),
        }
    }

    fn of_instance(&self, instance_id: &str) -> Option<Arc<str>> {
        let same = |member: &Member| member.instance_id.as_deref() == Some(instance_id);
        self.members.iter().find(|(_, member)| same(member)).map(|(id, _)| Arc::clone(id))
    }

    /// Makes the target assignment (`TargetAssignmentBuilder`).
    fn assign(&mut self, partitions: &TopicPartitions) {
        let topics: Vec<_> = self.members.values().map(Member::topics).collect();
        let assignees = self.members.iter().zip(&topics).map(|((id, member), topics)| Assignee {
            member_id: id,
            instance_id: member.instance_id.as_deref(),
            topics,
            before: &member.target,
        });
        let targets = self.assignor().assign(&assignees.collect::<Vec<_>>(), partitions);
        drop(topics);
        for (member, target) in self.members.values_mut().zip(targets) {
            member.target = target;
        }
        self.assignment_epoch = self.epoch;
    }

    /// Takes a member's next step towards its target assignment (`CurrentAssignmentBuilder`).
    fn reconcile(&mut self, id: &str, has_changed: bool, owned: Option<&BTreeSet<Place>>, now: Instant) {
        let Some(member) = self.members.get(id) else { return };
        let still_owns = |revoked: &Partitions| {
            owned.is_none_or(|owned| owned.iter().any(|place| revoked.contains_key(place)))
        };
        let has_to_revoke = member.state == MemberState::UnrevokedPartitions && still_owns(&member.revoked);
        let next = if has_to_revoke || member.is_at(self.assignment_epoch) {
            if has_changed { member.without_unsubscribed(still_owns) } else { None }
        } else {
            Some(self.next(member, still_owns))
        };
        let Some(next) = next else { return };
        if let Some(member) = self.members.get_mut(id) {
            for place in member.assigned.keys().chain(member.revoked.keys()) {
                self.owned.remove(place);
            }
            member.take(next, now);
            self.owned.extend(member.assigned.keys().chain(member.revoked.keys()));
        }
    }

    fn next(&self, member: &Member, still_owns: impl Fn(&Partitions) -> bool) -> Next {
        let is_target = |place: &Place| member.target.contains(place) && member.is_subscribed(&place.0);
        let (mut assigned, revoked): (Partitions, Partitions) =
            member.assigned.iter().partition(|(place, _)| is_target(place));
        if !revoked.is_empty() && still_owns(&revoked) {
            let state = MemberState::UnrevokedPartitions;
            return Next { state, epoch: member.epoch, assigned, revoked };
        }
        let mut state = MemberState::Stable;
        for &place in member.target.iter().filter(|place| is_target(place)) {
            if assigned.contains_key(&place) {
                continue;
            }
            // What it has given up itself is free.
            if self.owned.contains(&place) && !member.revoked.contains_key(&place) {
                state = MemberState::UnreleasedPartitions;
            } else {
                assigned.insert(place, self.assignment_epoch);
            }
        }
        Next { state, epoch: self.assignment_epoch, assigned, revoked: Partitions::new() }
    }

    /// Lets a member leave. One that leaves for now keeps its partitions until its instance comes back, or its session
    /// is over.
    pub(super) fn leave(&mut self, beat: &Heartbeat) -> Result<Beaten> {
        let id = match &beat.instance_id {
            None => Arc::clone(&beat.member_id),
            Some(instance_id) => {
                let id = self.of_instance(instance_id).ok_or(ErrorCode::UnknownMemberId)?;
                if id != beat.member_id {
                    return Err(ErrorCode::FencedInstanceId);
                }
                id
            }
        };
        let member = self.members.get_mut(&id).ok_or(ErrorCode::UnknownMemberId)?;
        if beat.epoch == LEAVE_FOR_NOW {
            for place in std::mem::take(&mut member.revoked).keys() {
                self.owned.remove(place);
            }
            member.epoch = LEAVE_FOR_NOW;
            member.revokes_by = None;
            member.assigned.values_mut().for_each(|epoch| *epoch = 0);
        } else {
            self.remove(&id);
        }
        Ok(Beaten { member_id: id, epoch: beat.epoch, assigned: None })
    }

    fn remove(&mut self, id: &str) {
        if let Some(member) = self.members.remove(id) {
            for place in member.assigned.keys().chain(member.revoked.keys()) {
                self.owned.remove(place);
            }
            self.epoch += 1;
        }
    }

    /// Removes the members whose session is over, and those that have not given up partitions in time.
    pub(super) fn expire(&mut self, now: Instant) {
        let is_late = |member: &Member| {
            now.saturating_duration_since(member.seen) > SESSION_TIMEOUT
                || member.revokes_by.is_some_and(|deadline| deadline < now)
        };
        let late = self.members.iter().filter(|(_, member)| is_late(member));
        for id in late.map(|(id, _)| Arc::clone(id)).collect::<Vec<_>>() {
            self.remove(&id);
        }
    }

    /// The partitions whose offsets a consumer may commit (`ConsumerGroup.validateOffsetCommit`).
    pub(super) fn check_commit(&self, caller: Caller<'_>) -> Result<Committable> {
        if caller.generation < 0 && self.members.is_empty() {
            return Ok(Committable::All);
        }
        let member = self.members.get(caller.member_id).ok_or(ErrorCode::UnknownMemberId)?;
        match caller.generation {
            epoch if epoch == member.epoch => Ok(Committable::All),
            epoch if epoch > member.epoch => Err(ErrorCode::StaleMemberEpoch),
            epoch => Ok(Committable::AssignedBy(epoch, member.assigned.clone())),
        }
    }

    /// Checks that a member, or a consumer that names none, may know the offsets (`ConsumerGroup.validateOffsetFetch`).
    pub(super) fn check_fetch(&self, member_id: Option<&str>, epoch: i32) -> Result<()> {
        let Some(id) = member_id.or((epoch >= 0).then_some("")) else { return Ok(()) };
        let member = self.members.get(id).ok_or(ErrorCode::UnknownMemberId)?;
        if member.epoch == epoch { Ok(()) } else { Err(ErrorCode::StaleMemberEpoch) }
    }
}

impl Member {
    fn new(beat: &Heartbeat, now: Instant) -> Self {
        Self {
            instance_id: None,
            rack_id: None,
            client_id: Arc::clone(&beat.client_id),
            host: Arc::clone(&beat.host),
            epoch: 0,
            previous_epoch: 0,
            state: MemberState::Stable,
            rebalance_timeout: Duration::ZERO,
            assignor: None,
            names: Subscription::default(),
            pattern: Subscription::default(),
            assigned: Partitions::new(),
            revoked: Partitions::new(),
            target: Arc::default(),
            seen: now,
            revokes_by: None,
        }
    }

    fn memory(&self) -> usize {
        let texts = [self.instance_id.as_ref(), self.rack_id.as_ref()];
        let texts: usize = texts.into_iter().flatten().map(|text| text.len()).sum();
        let base = 2 * size_of::<(Arc<str>, Self)>() + texts + self.client_id.len() + self.host.len();
        let partitions = (self.assigned.len() + self.revoked.len()) * size_of::<(Place, i32)>();
        let places = partitions + self.target.len() * size_of::<Place>();
        base + memory_of_names(&self.names) + memory_of_pattern(&self.pattern) + 2 * places
    }

    fn is_at(&self, epoch: i32) -> bool {
        self.state == MemberState::Stable && self.epoch == epoch
    }

    fn is_subscribed(&self, topic: &TopicId) -> bool {
        self.names.topics.contains(topic) || self.pattern.topics.contains(topic)
    }

    fn topics(&self) -> Cow<'_, BTreeSet<TopicId>> {
        match (&self.names.topics, &self.pattern.topics) {
            (names, pattern) if pattern.is_empty() => Cow::Borrowed(names),
            (names, pattern) if names.is_empty() => Cow::Borrowed(pattern),
            (names, pattern) => Cow::Owned(names | pattern),
        }
    }

    /// Checks the epoch of a heartbeat. The previous one is right if the response with the new one was lost.
    fn check_epoch(&self, beat: &Heartbeat) -> Result<()> {
        let owns_no_more = || {
            let mut owned = beat.owned.iter().flatten();
            beat.owned.is_some() && owned.all(|place| self.assigned.contains_key(place))
        };
        match beat.epoch {
            JOIN => Ok(()),
            epoch if epoch == self.epoch => Ok(()),
            epoch if epoch < self.epoch && epoch == self.previous_epoch && owns_no_more() => Ok(()),
            _ => Err(ErrorCode::FencedMemberEpoch),
        }
    }

    /// Takes over what a heartbeat says. True if the member subscribes to something else now.
    fn update(&mut self, beat: Heartbeat, now: Instant) -> bool {
        (self.seen, self.client_id, self.host) = (now, beat.client_id, beat.host);
        self.instance_id = beat.instance_id.or(self.instance_id.take());
        self.rack_id = beat.rack_id.or(self.rack_id.take());
        self.assignor = beat.assignor.or(self.assignor);
        if let Some(timeout) = beat.rebalance_timeout_ms {
            self.rebalance_timeout = millis(timeout.into());
        }
        let mut has_changed = false;
        if let Some(names) = beat.names.filter(|names| *names != self.names) {
            self.names = names;
            has_changed = true;
        }
        if let Some(pattern) = beat.pattern.filter(|pattern| *pattern != self.pattern) {
            self.pattern = pattern;
            has_changed = true;
        }
        has_changed
    }

    /// The step of a member that subscribes to fewer topics, where it is not time for its target assignment.
    fn without_unsubscribed(&self, still_owns: impl Fn(&Partitions) -> bool) -> Option<Next> {
        let (assigned, unsubscribed): (Partitions, Partitions) =
            self.assigned.iter().partition(|(place, _)| self.is_subscribed(&place.0));
        if unsubscribed.is_empty() {
            return None;
        }
        let mut revoked = self.revoked.clone();
        revoked.extend(unsubscribed);
        Some(if still_owns(&revoked) {
            Next { state: MemberState::UnrevokedPartitions, epoch: self.epoch, assigned, revoked }
        } else {
            Next { state: self.state, epoch: self.epoch, assigned, revoked: self.revoked.clone() }
        })
    }

    fn take(&mut self, next: Next, now: Instant) {
        self.previous_epoch = self.epoch;
        let Next { state, epoch, assigned, revoked } = next;
        (self.state, self.epoch, self.assigned, self.revoked) = (state, epoch, assigned, revoked);
        let has_to_revoke = state == MemberState::UnrevokedPartitions;
        self.revokes_by = has_to_revoke.then(|| now + self.rebalance_timeout);
    }
}

/// Bytes of names and of the ids of their topics.
fn memory_of_names(names: &Subscription<BTreeSet<Arc<str>>>) -> usize {
    let texts: usize = names.to.iter().map(|name| 2 * size_of::<Arc<str>>() + 32 + name.len()).sum();
    texts + 2 * size_of::<TopicId>() * names.topics.len()
}

/// Bytes of a pattern and of the ids of its topics.
fn memory_of_pattern(pattern: &Subscription<Arc<str>>) -> usize {
    pattern.to.len() + 2 * size_of::<TopicId>() * pattern.topics.len()
}

#[cfg(test)]
mod tests;
