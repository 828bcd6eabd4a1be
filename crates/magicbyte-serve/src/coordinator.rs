//! The coordinator of groups, and FindCoordinator.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use magicbyte_broker::ErrorCode;
use magicbyte_protocol::message::body::find_coordinator_response::Coordinator as CoordinatorOfKey;
use magicbyte_protocol::message::body::{FindCoordinatorRequest, FindCoordinatorResponse};

use crate::archived_groups::{ArchivedGroup, GroupMetadata, GroupType};
use crate::assignors::TopicPartitions;
use crate::caller::Result;
use crate::classic_group::Step;
use crate::cluster::{Address, NODE_ID};
use crate::committed::CommittedOffset;
use crate::groups::Groups;
use crate::limits::repeated;
use crate::lock::lock;
use crate::memory::{Budget, Unanswered};
use crate::response::{array, distinct};

/// The interval at which waiting members look for members that died.
const LOOK: Duration = Duration::from_millis(500);
/// Groups and partitions are gone through in turns of this many, between which others get the lock.
pub(super) const TURN: usize = 1000;
/// `FindCoordinatorRequest.CoordinatorType.GROUP`.
const GROUP: i8 = 0;
/// `FindCoordinatorRequest.CoordinatorType.TRANSACTION`.
const TRANSACTION: i8 = 1;
/// The first version of FindCoordinator with several keys.
const KEYS: i16 = 4;

/// The coordinator of all groups.
#[derive(Debug)]
pub(super) struct Coordinator {
    pub(super) groups: Mutex<Groups>,
    changed: Condvar,
    /// The partitions that the coordinator assigns.
    pub(super) partitions: TopicPartitions,
    /// The groups of the archived cluster.
    pub(super) archived: BTreeMap<String, ArchivedGroup>,
}

/// Responds to FindCoordinator: there is one broker. The states of share groups have no coordinator.
///
/// # Errors
/// If memory is exhausted.
pub(super) fn find_coordinator<'a>(
    budget: &Budget<'_>,
    address: &'a Address,
    version: i16,
    request: &'a FindCoordinatorRequest<'_>,
) -> std::result::Result<FindCoordinatorResponse<'a>, Unanswered> {
    let coordinator_of = |key: &'a str| match request.key_type {
        GROUP | TRANSACTION => CoordinatorOfKey {
            key: key.into(),
            node_id: NODE_ID,
            host: (&*address.host).into(),
            port: address.port.into(),
            error_code: ErrorCode::None.code(),
            error_message: None,
        },
        _ => CoordinatorOfKey {
            key: key.into(),
            node_id: -1,
            host: "".into(),
            port: -1,
            error_code: ErrorCode::CoordinatorNotAvailable.code(),
            error_message: Some(
                "magicbyte serve coordinates groups of consumers, and lists transactions".into(),
            ),
        },
    };
    if version < KEYS {
        let CoordinatorOfKey { node_id, host, port, error_code, error_message, .. } =
            coordinator_of(&request.key);
        let response =
            FindCoordinatorResponse { node_id, host, port, error_code, error_message, ..Default::default() };
        return Ok(response);
    }
    let coordinators = distinct(&request.coordinator_keys).map(|key| Ok(coordinator_of(key)));
    Ok(FindCoordinatorResponse { coordinators: array(budget, coordinators)?, ..Default::default() })
}

impl Coordinator {
    /// A coordinator of groups of the archived cluster, which had committed these offsets.
    pub(super) fn new(
        groups: BTreeMap<String, GroupMetadata>,
        committed: Vec<(String, String, i32, CommittedOffset)>,
        partitions: TopicPartitions,
    ) -> Self {
        let archived = groups.into_iter().map(|(name, metadata)| {
            let group = ArchivedGroup { metadata, ..ArchivedGroup::default() };
            (name, group)
        });
        let mut archived: BTreeMap<String, ArchivedGroup> = archived.collect();
        for (group, topic, partition, offset) in committed {
            archived.entry(group).or_default().offsets.insert(&topic.into(), partition, offset);
        }
        Self { groups: Mutex::default(), changed: Condvar::new(), partitions, archived }
    }

    /// An archived group of this type, unless clients have made it theirs.
    ///
    /// # Errors
    /// If there is none: Kafka's error, and its message.
    pub(super) fn archived_group(
        &self,
        name: &str,
        group_type: GroupType,
    ) -> std::result::Result<&ArchivedGroup, (ErrorCode, String)> {
        let is_in_use = lock(&self.groups).group(name).is_some();
        let archived = self.archived.get(name).filter(|_| !is_in_use);
        if let Some(archived) = archived.filter(|group| group.metadata.group_type == group_type) {
            return Ok(archived);
        }
        let shown = repeated(name);
        let message = match is_in_use || archived.is_some() {
            true => format!("Group {shown} is not a {} group.", group_type.name()),
            false => format!("Group {shown} not found."),
        };
        let error = if name.is_empty() { ErrorCode::InvalidGroupId } else { ErrorCode::GroupIdNotFound };
        Err((error, message))
    }

    /// Wakes all waiting clients; the server stops.
    pub(super) fn wake(&self) {
        self.changed.notify_all();
    }

    /// Changes the groups.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Groups, Instant) -> T) -> T {
        let result = change(&mut lock(&self.groups), Instant::now());
        self.changed.notify_all();
        result
    }

    /// Repeats a step until it is done, when others have changed something or it is time.
    pub(super) fn wait<T>(
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
}
