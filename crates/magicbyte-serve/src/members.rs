//! JoinGroup, SyncGroup, Heartbeat and LeaveGroup: the members of groups.

use std::collections::HashSet;
use std::sync::Arc;

use ::bytes::Bytes;

use magicbyte_broker::ErrorCode;
use magicbyte_protocol::message::body::join_group_response::JoinGroupResponseMember;
use magicbyte_protocol::message::body::leave_group_response::MemberResponse;
use magicbyte_protocol::message::body::{
    HeartbeatRequest, HeartbeatResponse, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest,
    LeaveGroupResponse, SyncGroupRequest, SyncGroupResponse,
};

use crate::caller::Caller;
use crate::classic_group::{Admission, Assignments, Join, Protocols, Step};
use crate::coordinator::{Coordinator, TURN};
use crate::groups::Groups;
use crate::memory::{Budget, Unanswered};
use crate::response::{array, blob, distinct, push};

/// The first version of JoinGroup in which a new member has to join again with the id that it gets.
const ID_REQUIRED: i16 = 4;
/// The first version of JoinGroup whose response may have no protocol.
const NULL_PROTOCOL: i16 = 7;
/// The first version of LeaveGroup with several members.
const MEMBERS: i16 = 3;

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

/// A member that has not joined.
#[derive(Debug)]
pub(super) struct NotJoined {
    error: ErrorCode,
    member_id: Arc<str>,
}

impl NotJoined {
    pub(super) fn response(&self, version: i16) -> JoinGroupResponse<'static> {
        JoinGroupResponse {
            error_code: self.error.code(),
            member_id: self.member_id.to_string().into(),
            protocol_name: (version < NULL_PROTOCOL).then(|| "".into()),
            ..Default::default()
        }
    }
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

impl Syncing {
    pub(super) fn new(request: SyncGroupRequest<'_>) -> Self {
        let assignments = request.assignments.iter().map(|assignment| {
            (Arc::from(&*assignment.member_id), Bytes::copy_from_slice(&assignment.assignment))
        });
        Self {
            assignments: assignments.collect(),
            group: request.group_id.into_owned(),
            member_id: request.member_id.into_owned(),
            instance_id: request.group_instance_id.map(Into::into),
            generation: request.generation_id,
            protocol_type: request.protocol_type.map(Into::into),
            protocol: request.protocol_name.map(Into::into),
        }
    }
}

impl Coordinator {
    /// Takes a JoinGroup request: a member to [wait](Self::join) with.
    ///
    /// # Errors
    /// If the member cannot join, or not yet.
    pub(super) fn begin_join(
        &self,
        version: i16,
        client: Client<'_>,
        request: JoinGroupRequest<'_>,
    ) -> Result<Joining, NotJoined> {
        let group = &*request.group_id;
        let member_id: Arc<str> = (&*request.member_id).into();
        let instance_id = request.group_instance_id.as_deref();
        let join = Join {
            member_id: Arc::clone(&member_id),
            instance_id: instance_id.map(Arc::from),
            client_id: client.id.into(),
            host: client.host.into(),
            session_timeout_ms: request.session_timeout_ms.into(),
            rebalance_timeout_ms: request.rebalance_timeout_ms.into(),
            protocol_type: (&*request.protocol_type).into(),
            protocols: protocols(&request),
            id_required: version >= ID_REQUIRED,
        };
        let admission =
            join.check(group).and_then(|()| self.change(|groups, now| groups.join(group, join, now)));
        match admission {
            Ok(Admission::Member(member_id)) => {
                Ok(Joining { group: group.to_owned(), member_id, instance_id: instance_id.map(Into::into) })
            }
            Ok(Admission::Pending(id)) => {
                Err(NotJoined { error: ErrorCode::MemberIdRequired, member_id: id })
            }
            Err(error) => Err(NotJoined { error, member_id }),
        }
    }

    /// Responds to JoinGroup, once all members have joined.
    ///
    /// # Errors
    /// If memory is exhausted.
    pub(super) fn join(
        &self,
        version: i16,
        budget: &Budget<'_>,
        joining: Joining,
    ) -> Result<JoinGroupResponse<'static>, Unanswered> {
        let Joining { group, member_id, instance_id } = joining;
        let joined =
            self.wait(budget, |groups, now| groups.joined(&group, &member_id, instance_id.as_deref(), now));
        let joined = match joined {
            Ok(joined) => joined,
            Err(error) => return Ok(NotJoined { error, member_id }.response(version)),
        };
        let members = joined.members.into_iter().map(|(id, instance_id, metadata)| {
            Ok(JoinGroupResponseMember {
                member_id: id.to_string().into(),
                group_instance_id: instance_id.map(|id| id.to_string().into()),
                metadata: blob(budget, &metadata)?.into(),
            })
        });
        Ok(JoinGroupResponse {
            generation_id: joined.generation,
            protocol_type: Some(joined.protocol_type.to_string().into()),
            protocol_name: Some(joined.protocol.to_string().into()),
            leader: joined.leader.to_string().into(),
            member_id: joined.member_id.to_string().into(),
            members: array(budget, members)?,
            ..Default::default()
        })
    }

    /// Responds to SyncGroup, once the leader has made the assignments.
    ///
    /// # Errors
    /// If memory is exhausted.
    pub(super) fn sync(
        &self,
        budget: &Budget<'_>,
        syncing: Syncing,
    ) -> Result<SyncGroupResponse<'static>, Unanswered> {
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
            Ok(assignment) => SyncGroupResponse {
                protocol_type: protocol_type.map(Into::into),
                protocol_name: protocol.map(Into::into),
                assignment: blob(budget, &assignment)?.into(),
                ..Default::default()
            },
            Err(error) => SyncGroupResponse { error_code: error.code(), ..Default::default() },
        })
    }

    /// Responds to Heartbeat.
    pub(super) fn heartbeat(&self, request: &HeartbeatRequest<'_>) -> HeartbeatResponse {
        let caller = Caller {
            member_id: &request.member_id,
            instance_id: request.group_instance_id.as_deref(),
            generation: request.generation_id,
        };
        let alive = self.change(|groups, now| groups.heartbeat(&request.group_id, caller, now));
        let error_code = alive.err().unwrap_or(ErrorCode::None).code();
        HeartbeatResponse { error_code, ..Default::default() }
    }

    /// Responds to LeaveGroup, in older versions of one member.
    ///
    /// # Errors
    /// If memory is exhausted.
    pub(super) fn leave<'a>(
        &self,
        version: i16,
        budget: &Budget<'_>,
        request: &'a LeaveGroupRequest<'_>,
    ) -> Result<LeaveGroupResponse<'a>, Unanswered> {
        let leave = |groups: &mut Groups, (id, instance_id): (&str, Option<&str>), now| {
            groups.leave(&request.group_id, id, instance_id, now).err().unwrap_or(ErrorCode::None)
        };
        if version < MEMBERS {
            let error = self.change(|groups, now| leave(groups, (&request.member_id, None), now));
            return Ok(LeaveGroupResponse { error_code: error.code(), ..Default::default() });
        }
        let leaving = request.members.iter();
        let leaving: Vec<_> =
            distinct(leaving.map(|member| (&*member.member_id, member.group_instance_id.as_deref())))
                .collect();
        let mut members = Vec::new();
        for leaving in leaving.chunks(TURN) {
            let errors: Vec<_> =
                self.change(|groups, now| leaving.iter().map(|&member| leave(groups, member, now)).collect());
            for (&(member_id, instance_id), error) in leaving.iter().zip(errors) {
                let member = MemberResponse {
                    member_id: member_id.into(),
                    group_instance_id: instance_id.map(Into::into),
                    error_code: error.code(),
                };
                push(budget, &mut members, member)?;
            }
        }
        Ok(LeaveGroupResponse { members, ..Default::default() })
    }
}

/// The protocols of a member. Where a name is repeated, the first one counts: it is the one that would be voted for.
fn protocols(request: &JoinGroupRequest<'_>) -> Protocols {
    let mut known = HashSet::new();
    let protocols = request.protocols.iter().filter(|protocol| known.insert(&*protocol.name));
    protocols
        .map(|protocol| (Arc::from(&*protocol.name), Bytes::copy_from_slice(&protocol.metadata)))
        .collect()
}
