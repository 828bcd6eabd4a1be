//! Requests of Kafka's administrators. A read-only broker refuses what would change something, in words that their tools
//! print, and has no quotas, users, authorizer or quorum of its own.

use std::borrow::Cow;

use magicbyte_broker::ErrorCode;
use magicbyte_protocol::message::body::alter_partition_reassignments_response::{
    ReassignablePartitionResponse, ReassignableTopicResponse,
};
use magicbyte_protocol::message::body::describe_user_scram_credentials_response::DescribeUserScramCredentialsResult;
use magicbyte_protocol::message::body::elect_leaders_response::{PartitionResult, ReplicaElectionResult};
use magicbyte_protocol::message::body::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse, DescribeAclsResponse,
    DescribeClientQuotasResponse, DescribeQuorumResponse, DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse, ElectLeadersRequest, ElectLeadersResponse,
    ListPartitionReassignmentsResponse,
};

use crate::archive::{Archive, TopicRef};
use crate::limits::repeated;
use crate::memory::{Budget, Unanswered};
use crate::request::{AdministrationRequest, RequestStart};
use crate::requested::{RequestedTopic, requested};
use crate::response::{Response, array, distinct};

/// The first version of DescribeQuorum with messages of errors.
const QUORUM_MESSAGES: i16 = 2;

/// Responds to a request of an administrator.
///
/// # Errors
/// If memory is exhausted.
pub(super) fn respond(
    archive: &Archive,
    budget: &Budget<'_>,
    start: RequestStart,
    request: &AdministrationRequest<'_>,
) -> magicbyte::Result<Response> {
    match request {
        AdministrationRequest::ElectLeaders(request) => {
            start.respond(&refuse_elect_leaders(archive, budget, request)?)
        }
        AdministrationRequest::AlterPartitionReassignments(request) => {
            start.respond(&refuse_reassignments(budget, request)?)
        }
        AdministrationRequest::ListPartitionReassignments(_) => start.respond(&no_reassignments()),
        AdministrationRequest::DescribeQuorum(_) => start.respond(&refuse_describe_quorum(start.version)),
        AdministrationRequest::DescribeAcls(_) => start.respond(&no_authorizer()),
        AdministrationRequest::DescribeClientQuotas(_) => start.respond(&no_quotas()),
        AdministrationRequest::DescribeUserScramCredentials(request) => {
            start.respond(&no_users(budget, request)?)
        }
    }
}

/// Refuses ElectLeaders, partition by partition: the error of all of them would have no message.
///
/// # Errors
/// If memory is exhausted.
fn refuse_elect_leaders<'a>(
    archive: &'a Archive,
    budget: &Budget<'_>,
    request: &'a ElectLeadersRequest<'_>,
) -> Result<ElectLeadersResponse<'a>, Unanswered> {
    let topics = match &request.topic_partitions {
        Some(topics) => requested(topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|&partition| (partition, ()));
            (TopicRef::Name((&*topic.topic).into()), partitions)
        })),
        None => requested(archive.topics.values().map(|topic| {
            let partitions = topic.partitions.keys().map(|&partition| (partition, ()));
            (TopicRef::Name(topic.name.clone()), partitions)
        })),
    };
    let topics = topics.into_iter().map(|RequestedTopic { topic, partitions }| {
        let refused = partitions.into_iter().map(|requested| {
            Ok(PartitionResult {
                partition_id: requested.partition,
                error_code: ErrorCode::PolicyViolation.code(),
                error_message: Some("magicbyte serve is read-only: it elects no leaders".into()),
            })
        });
        let topic = topic.name().to_owned().into();
        Ok(ReplicaElectionResult { topic, partition_result: array(budget, refused)? })
    });
    Ok(ElectLeadersResponse { replica_election_results: array(budget, topics)?, ..Default::default() })
}

/// Refuses AlterPartitionReassignments, partition by partition: Kafka's tools do not print the error of all of them.
///
/// # Errors
/// If memory is exhausted.
fn refuse_reassignments<'a>(
    budget: &Budget<'_>,
    request: &'a AlterPartitionReassignmentsRequest<'_>,
) -> Result<AlterPartitionReassignmentsResponse<'a>, Unanswered> {
    let topics = requested(request.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| (partition.partition_index, ()));
        (TopicRef::Name((&*topic.name).into()), partitions)
    }));
    let topics = topics.into_iter().map(|RequestedTopic { topic, partitions }| {
        let refused = partitions.into_iter().map(|requested| {
            Ok(ReassignablePartitionResponse {
                partition_index: requested.partition,
                error_code: ErrorCode::PolicyViolation.code(),
                error_message: Some("magicbyte serve is read-only: it reassigns no partitions".into()),
            })
        });
        let name = topic.name().to_owned().into();
        Ok(ReassignableTopicResponse { name, partitions: array(budget, refused)? })
    });
    let responses = array(budget, topics)?;
    Ok(AlterPartitionReassignmentsResponse { error_message: None, responses, ..Default::default() })
}

/// Responds to ListPartitionReassignments: there are none.
fn no_reassignments() -> ListPartitionReassignmentsResponse<'static> {
    ListPartitionReassignmentsResponse { error_message: None, ..Default::default() }
}

/// Refuses DescribeQuorum.
fn refuse_describe_quorum(version: i16) -> DescribeQuorumResponse<'static> {
    let message = "magicbyte serve has no quorum; `magicbyte cluster` describes that of the archive";
    let refused = DescribeQuorumResponse {
        error_code: ErrorCode::PolicyViolation.code(),
        ..DescribeQuorumResponse::default()
    };
    match version {
        ..QUORUM_MESSAGES => refused,
        _ => DescribeQuorumResponse { error_message: Some(message.into()), ..refused },
    }
}

/// Responds to DescribeAcls as a broker without an authorizer.
fn no_authorizer() -> DescribeAclsResponse<'static> {
    let message = "magicbyte serve has no authorizer; `magicbyte cluster` lists the ACLs of the archive";
    DescribeAclsResponse {
        error_code: ErrorCode::SecurityDisabled.code(),
        error_message: Some(message.into()),
        ..Default::default()
    }
}

/// Responds to DescribeClientQuotas: there are none.
fn no_quotas() -> DescribeClientQuotasResponse<'static> {
    DescribeClientQuotasResponse { error_message: None, ..Default::default() }
}

/// Responds to DescribeUserScramCredentials: there are no users.
///
/// # Errors
/// If memory is exhausted.
fn no_users<'a>(
    budget: &Budget<'_>,
    request: &'a DescribeUserScramCredentialsRequest<'_>,
) -> Result<DescribeUserScramCredentialsResponse<'a>, Unanswered> {
    let users = distinct(request.users.iter().flatten().map(|user| &*user.name));
    let results = users.map(|user| {
        let shown = repeated(user);
        Ok(DescribeUserScramCredentialsResult {
            user: Cow::Borrowed(user),
            error_code: ErrorCode::ResourceNotFound.code(),
            error_message: Some(format!("magicbyte serve has no users, and none of the name {shown}").into()),
            ..Default::default()
        })
    });
    let results = array(budget, results)?;
    Ok(DescribeUserScramCredentialsResponse { error_message: None, results, ..Default::default() })
}
