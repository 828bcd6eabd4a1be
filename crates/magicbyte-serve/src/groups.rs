//! All groups that clients have made, in bounded memory (`GroupMetadataManager`). The groups of the
//! archived cluster are not among them, and take none of it.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::bytes::Bytes;

use magicbyte_broker::ErrorCode;

use crate::assignors::TopicPartitions;
use crate::caller::{Caller, Result};
use crate::classic_group::{Admission, Assignments, Join, Joined, Step};
use crate::committed::CommittedOffset;
use crate::consumer_group::{Beaten, Committable, Heartbeat, JOIN, LEAVE, LEAVE_FOR_NOW};
use crate::group::{Group, Protocol};
use crate::limits::{MAX_GROUP_MEMORY, repeated};

/// `offset.metadata.max.bytes`.
const MAX_METADATA: usize = 4096;
/// All groups are searched for memory this often at most, while there is little of it.
const SEARCH: Duration = Duration::from_secs(1);

/// Groups by name.
#[derive(Debug, Default)]
pub(super) struct Groups {
    groups: BTreeMap<Arc<str>, Group>,
    /// Bytes of all of them.
    memory: usize,
    ids: u64,
    /// The last time at which a search for memory found little.
    searched_in_vain: Option<Instant>,
}

impl Groups {
    pub(super) fn group(&self, name: &str) -> Option<&Group> {
        self.groups.get(name)
    }

    /// The groups after this name, in the order of their names.
    pub(super) fn after(&self, name: Option<&str>) -> impl Iterator<Item = (&Arc<str>, &Group)> {
        let start = name.map_or(Bound::Unbounded, Bound::Excluded);
        self.groups.range::<str, _>((start, Bound::Unbounded))
    }

    /// Changes a group, and measures it again.
    fn change<T>(
        &mut self,
        name: &str,
        now: Instant,
        change: impl FnOnce(&mut Group) -> Result<T>,
    ) -> Result<T> {
        let group = self.groups.get_mut(name).ok_or(ErrorCode::UnknownMemberId)?;
        group.expire(now);
        group.used = now;
        let result = change(group);
        let memory = group.measure();
        self.memory = self.memory - group.memory + memory;
        group.memory = memory;
        result
    }

    /// Adds a group, unless it is there.
    fn add(&mut self, name: &str, now: Instant) {
        if !self.groups.contains_key(name) {
            let mut group = Group::new(now);
            group.memory = group.measure();
            self.memory += memory_of_name(name) + group.memory;
            self.groups.insert(name.into(), group);
        }
    }

    fn remove(&mut self, name: &str) {
        if let Some(group) = self.groups.remove(name) {
            self.memory -= memory_of_name(name) + group.memory;
        }
    }

    /// Makes room for this many bytes in a group. Where there is none, the groups without members that were used least
    /// recently are forgotten, until a quarter of the memory is free: the next requests need not look again.
    fn make_room(&mut self, bytes: usize, name: &str, now: Instant) -> bool {
        let new =
            if self.groups.contains_key(name) { 0 } else { memory_of_name(name) + Group::new(now).measure() };
        let bytes = bytes + new;
        if self.memory + bytes <= MAX_GROUP_MEMORY {
            return true;
        }
        if self.searched_in_vain.is_some_and(|time| now.saturating_duration_since(time) < SEARCH) {
            return false;
        }
        let names: Vec<_> = self.groups.keys().cloned().collect();
        let mut empty = Vec::new();
        for known in names {
            let used = self.groups.get(&known).map(|group| group.used);
            // Members that are late are found now.
            let is_empty = self.change(&known, now, |group| Ok(group.is_empty()));
            if let Some(group) = self.groups.get_mut(&known)
                && let Some(used) = used
            {
                group.used = used;
                if is_empty == Ok(true) && *known != *name {
                    empty.push((used, known));
                }
            }
        }
        empty.sort_unstable();
        let is_enough = |memory| memory + bytes <= MAX_GROUP_MEMORY / 4 * 3;
        for (_, unused) in empty {
            if is_enough(self.memory) {
                break;
            }
            self.remove(&unused);
        }
        self.searched_in_vain = (!is_enough(self.memory)).then_some(now);
        self.memory + bytes <= MAX_GROUP_MEMORY
    }

    /// Adds a [checked](Join::check) member to a group, or lets one join again. Returns its id, with which to
    /// [wait](Self::joined).
    pub(super) fn join(&mut self, name: &str, join: Join, now: Instant) -> Result<Admission> {
        if !self.make_room(join.memory(), name, now) {
            return Err(ErrorCode::GroupMaxSizeReached);
        }
        self.ids += 1;
        let new_id = format!("{}-{:016x}", repeated(&join.client_id), self.ids).into();
        self.add(name, now);
        self.change(name, now, |group| group.classic_to_join()?.join(join, new_id, now))
    }

    /// The result of joining, once all members have joined.
    pub(super) fn joined(
        &mut self,
        name: &str,
        member_id: &str,
        instance_id: Option<&str>,
        now: Instant,
    ) -> Result<Step<Joined>> {
        self.change(name, now, |group| group.classic()?.joined(member_id, instance_id, now))
    }

    /// A member's assignment, once the leader has made it. The leader passes all of them.
    pub(super) fn sync(
        &mut self,
        name: &str,
        caller: Caller<'_>,
        assignments: Option<&Assignments>,
        now: Instant,
    ) -> Result<Step<Bytes>> {
        let members = match self.groups.get(name).map(|group| &group.protocol) {
            Some(Protocol::Classic(group)) => Some(group.members().keys()),
            _ => None,
        };
        let members = members.into_iter().flatten();
        let assigned = members.filter_map(|id| assignments?.get(id));
        let bytes: usize = assigned.map(Bytes::len).sum();
        if !self.make_room(bytes, name, now) {
            return Err(ErrorCode::GroupMaxSizeReached);
        }
        self.change(name, now, |group| group.classic()?.sync(caller, assignments, now))
    }

    /// A sign of life.
    pub(super) fn heartbeat(&mut self, name: &str, caller: Caller<'_>, now: Instant) -> Result<()> {
        self.change(name, now, |group| group.classic()?.heartbeat(caller, now))
    }

    /// Removes a member; the others join again.
    pub(super) fn leave(
        &mut self,
        name: &str,
        member_id: &str,
        instance_id: Option<&str>,
        now: Instant,
    ) -> Result<()> {
        self.change(name, now, |group| group.classic()?.leave(member_id, instance_id, now))
    }

    /// A sign of life of a member of the new protocol, which may join or leave by it.
    pub(super) fn consumer_heartbeat(
        &mut self,
        name: &str,
        beat: Heartbeat,
        partitions: &TopicPartitions,
        now: Instant,
    ) -> Result<Beaten> {
        let has_subscription = beat.names.is_some() || beat.pattern.is_some();
        let bytes = if has_subscription { beat.memory(partitions) } else { 0 };
        match beat.epoch {
            LEAVE | LEAVE_FOR_NOW => {}
            _ if self.make_room(bytes, name, now) => {}
            _ => return Err(ErrorCode::GroupMaxSizeReached),
        }
        let joins = beat.epoch == JOIN;
        if joins {
            self.ids += 1;
            self.add(name, now);
        } else if !self.groups.contains_key(name) {
            return Err(ErrorCode::GroupIdNotFound);
        }
        let new_id = || format!("{}-{:016x}", repeated(&beat.client_id), self.ids).into();
        let member_id = if beat.member_id.is_empty() { new_id() } else { Arc::clone(&beat.member_id) };
        let beat = Heartbeat { member_id, ..beat };
        self.change(name, now, |group| match beat.epoch {
            LEAVE | LEAVE_FOR_NOW => group.consumer()?.leave(&beat),
            JOIN => group.consumer_to_join()?.heartbeat(beat, partitions, now),
            _ => group.consumer()?.heartbeat(beat, partitions, now),
        })
    }

    /// The partitions whose offsets a consumer may commit: a member, or a consumer that is in no group (-1).
    pub(super) fn check_commit(
        &mut self,
        name: &str,
        caller: Caller<'_>,
        now: Instant,
    ) -> Result<Committable> {
        if name.is_empty() {
            return Err(ErrorCode::InvalidGroupId);
        }
        if !self.groups.contains_key(name) {
            if caller.generation >= 0 {
                return Err(ErrorCode::GroupIdNotFound);
            }
            if !self.make_room(0, name, now) {
                return Err(ErrorCode::InvalidCommitOffsetSize);
            }
            self.add(name, now);
        }
        self.change(name, now, |group| group.check_commit(caller, now))
    }

    /// Checks that a member, or a consumer that names none, may know the offsets of a group.
    pub(super) fn check_fetch(
        &mut self,
        name: &str,
        member_id: Option<&str>,
        epoch: i32,
        now: Instant,
    ) -> Result<()> {
        if !self.groups.contains_key(name) {
            return Ok(());
        }
        self.change(name, now, |group| match &group.protocol {
            Protocol::Classic(_) => Ok(()),
            Protocol::Consumer(group) => group.check_fetch(member_id, epoch),
        })
    }

    /// Stores offsets of a topic: the error of each, if it has one.
    pub(super) fn commit(
        &mut self,
        name: &str,
        topic: &Arc<str>,
        offsets: impl IntoIterator<Item = (i32, CommittedOffset)>,
        now: Instant,
    ) -> Vec<Result<()>> {
        let commit = |(partition, offset): (i32, CommittedOffset)| {
            if offset.metadata.as_ref().is_some_and(|metadata| metadata.len() > MAX_METADATA) {
                return Err(ErrorCode::OffsetMetadataTooLarge);
            }
            if !self.make_room(offset.memory(), name, now) {
                return Err(ErrorCode::InvalidCommitOffsetSize);
            }
            let group = self.groups.get_mut(name).ok_or(ErrorCode::UnknownMemberId)?;
            let before = group.offsets.memory();
            group.offsets.insert(topic, partition, offset);
            let after = group.offsets.memory();
            group.memory = group.memory - before + after;
            self.memory = self.memory - before + after;
            Ok(())
        };
        offsets.into_iter().map(commit).collect()
    }
}

/// Bytes of a group's name in the map.
fn memory_of_name(name: &str) -> usize {
    2 * size_of::<Arc<str>>() + 32 + name.len()
}

#[cfg(test)]
mod tests;
