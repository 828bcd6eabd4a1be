//! A group of consumers: its offsets, and the protocol that its members use. A group without members becomes one of the
//! protocol that its next member uses.

use std::time::Instant;

use magicbyte_broker::ErrorCode;

use crate::caller::{Caller, Result};
use crate::classic_group::ClassicGroup;
use crate::committed::Offsets;
use crate::consumer_group::{Committable, ConsumerGroup};

/// A group of consumers.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) protocol: Protocol,
    pub(super) offsets: Offsets,
    /// The last request about the group.
    pub(super) used: Instant,
    /// Bytes of the group when it was last measured.
    pub(super) memory: usize,
}

/// The protocol of a group, with its members.
#[derive(Debug)]
pub(super) enum Protocol {
    /// The members have a leader, who makes the assignments.
    Classic(ClassicGroup),
    /// The coordinator makes the assignments (KIP-848).
    Consumer(ConsumerGroup),
}

impl Group {
    pub(super) fn new(now: Instant) -> Self {
        let protocol = Protocol::Classic(ClassicGroup::default());
        Self { protocol, offsets: Offsets::default(), used: now, memory: 0 }
    }

    /// Bytes of the group, without its name.
    pub(super) fn measure(&self) -> usize {
        let members = match &self.protocol {
            Protocol::Classic(group) => group.measure(),
            Protocol::Consumer(group) => group.measure(),
        };
        2 * size_of::<Self>() + members + self.offsets.memory()
    }

    /// Kafka's name of the state.
    pub(super) fn state(&self) -> &'static str {
        match &self.protocol {
            Protocol::Classic(group) => group.state(),
            Protocol::Consumer(group) => group.state(),
        }
    }

    /// True if the group has no members.
    pub(super) fn is_empty(&self) -> bool {
        match &self.protocol {
            Protocol::Classic(group) => group.members().is_empty(),
            Protocol::Consumer(group) => group.members().is_empty(),
        }
    }

    /// Removes the members whose time is over.
    pub(super) fn expire(&mut self, now: Instant) {
        match &mut self.protocol {
            Protocol::Classic(group) => group.expire(now),
            Protocol::Consumer(group) => group.expire(now),
        }
    }

    /// The group as one of the classic protocol.
    ///
    /// # Errors
    /// If its members use the other one.
    pub(super) fn classic(&mut self) -> Result<&mut ClassicGroup> {
        match &mut self.protocol {
            Protocol::Classic(group) => Ok(group),
            Protocol::Consumer(_) => Err(ErrorCode::UnknownMemberId),
        }
    }

    /// The group for a member that joins by the classic protocol.
    ///
    /// # Errors
    /// If there are members of the other one (`group.consumer.migration.policy` is `disabled`).
    pub(super) fn classic_to_join(&mut self) -> Result<&mut ClassicGroup> {
        if matches!(&self.protocol, Protocol::Consumer(_)) {
            if !self.is_empty() {
                return Err(ErrorCode::InconsistentGroupProtocol);
            }
            self.protocol = Protocol::Classic(ClassicGroup::default());
        }
        self.classic()
    }

    /// The group as one of the new protocol.
    ///
    /// # Errors
    /// If it is of the classic one.
    pub(super) fn consumer(&mut self) -> Result<&mut ConsumerGroup> {
        match &mut self.protocol {
            Protocol::Consumer(group) => Ok(group),
            Protocol::Classic(_) => Err(ErrorCode::GroupIdNotFound),
        }
    }

    /// The group for a member that joins by the new protocol.
    ///
    /// # Errors
    /// If there are members of the classic one (`group.consumer.migration.policy` is `disabled`).
    pub(super) fn consumer_to_join(&mut self) -> Result<&mut ConsumerGroup> {
        if matches!(&self.protocol, Protocol::Classic(_)) && self.is_empty() {
            self.protocol = Protocol::Consumer(ConsumerGroup::default());
        }
        self.consumer()
    }

    /// The partitions whose offsets a consumer may commit: a member, or a consumer that is in no group (-1).
    pub(super) fn check_commit(&mut self, caller: Caller<'_>, now: Instant) -> Result<Committable> {
        match &mut self.protocol {
            Protocol::Classic(group) => group.check_commit(caller, now).map(|()| Committable::All),
            Protocol::Consumer(group) => group.check_commit(caller),
        }
    }
}
