//! ListGroups and DescribeGroups: the groups as they are.

use std::borrow::Cow;
use std::sync::Arc;

use magicbyte_protocol::message::body::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use magicbyte_protocol::message::body::list_groups_response::ListedGroup;
use magicbyte_protocol::message::body::{
    DescribeGroupsRequest, DescribeGroupsResponse, ListGroupsRequest, ListGroupsResponse,
};

use crate::archived_groups::{EMPTY, GroupType};
use crate::coordinator::{Coordinator, TURN};
use crate::group::{Group, Protocol};
use crate::lock::lock;
use crate::memory::{Budget, Unanswered};
use crate::response::{array, blob, distinct, push};

/// The first version of DescribeGroups with an error for a group that is not there (KIP-1043).
const NOT_FOUND: i16 = 6;

/// The type, protocol type and state of a group.
type Kind = (GroupType, Arc<str>, &'static str);

fn kind(group: &Group) -> Kind {
    match &group.protocol {
        Protocol::Classic(classic) => {
            (GroupType::Classic, Arc::clone(&classic.protocol_type), classic.state())
        }
        Protocol::Consumer(consumer) => (GroupType::Consumer, "consumer".into(), consumer.state()),
    }
}

impl Coordinator {
    /// Responds to ListGroups, in turns.
    ///
    /// # Errors
    /// If memory is exhausted.
    pub(super) fn list(
        &self,
        budget: &Budget<'_>,
        request: &ListGroupsRequest<'_>,
    ) -> Result<ListGroupsResponse<'static>, Unanswered> {
        let is_listed = |filter: &[Cow<'_, str>], name: &str| {
            filter.is_empty() || filter.iter().any(|listed| listed.eq_ignore_ascii_case(name))
        };
        let listed = |name: &str, (group_type, protocol_type, state): &Kind| {
            let group_type = group_type.name();
            let is_listed =
                is_listed(&request.states_filter, state) && is_listed(&request.types_filter, group_type);
            is_listed.then(|| ListedGroup {
                group_id: name.to_owned().into(),
                protocol_type: protocol_type.to_string().into(),
                group_state: (*state).into(),
                group_type: group_type.into(),
            })
        };
        let mut listing = Vec::new();
        let mut last: Option<Arc<str>> = None;
        loop {
            let groups = lock(&self.groups);
            let turn: Vec<_> = groups
                .after(last.as_deref())
                .take(TURN)
                .map(|(name, group)| (Arc::clone(name), kind(group)))
                .collect();
            drop(groups);
            for (name, kind) in &turn {
                if let Some(group) = listed(name, kind) {
                    push(budget, &mut listing, group)?;
                }
            }
            match turn.into_iter().next_back() {
                Some((name, _)) => last = Some(name),
                None => break,
            }
        }
        for (name, archived) in &self.archived {
            let kind = (archived.metadata.group_type, archived.protocol_type(), EMPTY);
            let is_in_use = lock(&self.groups).group(name).is_some();
            if let Some(group) = listed(name, &kind).filter(|_| !is_in_use) {
                push(budget, &mut listing, group)?;
            }
        }
        Ok(ListGroupsResponse { groups: listing, ..Default::default() })
    }

    /// Responds to DescribeGroups, one group after another.
    ///
    /// # Errors
    /// If memory is exhausted.
    pub(super) fn describe<'a>(
        &self,
        budget: &Budget<'_>,
        version: i16,
        request: &'a DescribeGroupsRequest<'_>,
    ) -> Result<DescribeGroupsResponse<'a>, Unanswered> {
        let groups = distinct(&request.groups).map(|name| self.describe_group(budget, version, name));
        Ok(DescribeGroupsResponse { groups: array(budget, groups)?, ..Default::default() })
    }

    fn describe_group<'a>(
        &self,
        budget: &Budget<'_>,
        version: i16,
        name: &'a str,
    ) -> Result<DescribedGroup<'a>, Unanswered> {
        let group_id = name.into();
        let groups = lock(&self.groups);
        let Some(Protocol::Classic(group)) = groups.group(name).map(|group| &group.protocol) else {
            drop(groups);
            return Ok(match self.archived_group(name, GroupType::Classic) {
                Ok(group) => DescribedGroup {
                    group_id,
                    group_state: EMPTY.into(),
                    protocol_type: group.protocol_type().to_string().into(),
                    ..Default::default()
                },
                Err((error, message)) => {
                    let dead = DescribedGroup { group_id, group_state: "Dead".into(), ..Default::default() };
                    let (error_code, error_message) = (error.code(), Some(message.into()));
                    match version {
                        ..NOT_FOUND => dead,
                        _ => DescribedGroup { error_code, error_message, ..dead },
                    }
                }
            });
        };
        let (state, protocol_type) = (group.state(), Arc::clone(&group.protocol_type));
        let protocol = group.protocol.clone();
        let members = group.members().clone();
        drop(groups);
        let members = members.iter().map(|(id, member)| {
            Ok(DescribedGroupMember {
                member_id: id.to_string().into(),
                group_instance_id: member.instance_id.as_ref().map(|id| id.to_string().into()),
                client_id: member.client_id.to_string().into(),
                client_host: format!("/{}", member.host).into(),
                member_metadata: blob(budget, &member.metadata(protocol.as_deref()))?.into(),
                member_assignment: blob(budget, &member.assignment)?.into(),
            })
        });
        Ok(DescribedGroup {
            group_id,
            group_state: state.into(),
            protocol_type: protocol_type.to_string().into(),
            protocol_data: protocol.as_deref().unwrap_or_default().to_owned().into(),
            members: array(budget, members)?,
            ..Default::default()
        })
    }
}
