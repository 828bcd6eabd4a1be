//! The groups of the archived cluster: they have positions, but no members.

use std::sync::Arc;

use crate::committed::Offsets;

/// Kafka's name of the state of a group without members.
pub(super) const EMPTY: &str = "Empty";

/// The protocol of a group's members (`Group.GroupType`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum GroupType {
    /// Consumers, or others such as the workers of Connect, one of which makes the assignments.
    #[default]
    Classic,
    /// Consumers whose assignments the coordinator makes (KIP-848).
    Consumer,
    /// Share consumers (KIP-932).
    Share,
    /// The members of a Streams application (KIP-1071).
    Streams,
}

impl GroupType {
    /// Kafka's name of the type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Consumer => "consumer",
            Self::Share => "share",
            Self::Streams => "streams",
        }
    }

    /// The type with this name; None for a name that Kafka does not have.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let types = [Self::Classic, Self::Consumer, Self::Share, Self::Streams];
        types.into_iter().find(|group_type| group_type.name() == name)
    }
}

/// The state of a group in the records of `__consumer_offsets`, without its offsets and members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupMetadata {
    /// The type.
    pub group_type: GroupType,
    /// The group's epoch; a classic group's generation.
    pub epoch: i32,
    /// The epoch of its last assignment; 0 for a classic group.
    pub assignment_epoch: i32,
    /// The protocol type of a classic group, such as `consumer` or `connect`; empty for a group that only commits.
    pub protocol_type: String,
}

/// A group of the archived cluster. It continues at its offsets until it commits an offset itself.
#[derive(Debug, Default)]
pub(super) struct ArchivedGroup {
    pub(super) metadata: GroupMetadata,
    pub(super) offsets: Offsets,
}

impl ArchivedGroup {
    /// The protocol type as ListGroups has it.
    pub(super) fn protocol_type(&self) -> Arc<str> {
        match self.metadata.group_type {
            GroupType::Classic => (&*self.metadata.protocol_type).into(),
            of => of.name().into(),
        }
    }
}
