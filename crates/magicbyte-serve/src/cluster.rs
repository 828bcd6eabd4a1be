//! ApiVersions, Metadata, DescribeCluster and DescribeTopicPartitions: the broker and its topics.

use magicbyte_broker::ErrorCode;
use magicbyte_protocol::internals::MAX_ELEMENTS;
use magicbyte_protocol::message::body::api_versions_response::ApiVersion;
use magicbyte_protocol::message::body::describe_cluster_response::DescribeClusterBroker;
use magicbyte_protocol::message::body::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use magicbyte_protocol::message::body::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use magicbyte_protocol::message::body::{
    ApiVersionsResponse, DescribeClusterResponse, DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse, MetadataRequest, MetadataResponse,
};

use crate::archive::{Archive, Topic, TopicRef};
use crate::memory::{Budget, Unanswered};
use crate::request::SERVED_APIS;
use crate::response::{array, distinct, push};

/// The id of the only broker.
pub(super) const NODE_ID: i32 = 0;
const CLUSTER_ID: &str = "magicbyte-serve";
/// The maximum number of partitions in a response to DescribeTopicPartitions (`max.request.partition.size.limit`).
const PARTITIONS_DESCRIBED: usize = 2000;

/// The address that clients connect to.
#[derive(Clone, Debug)]
pub(super) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
}

/// The response to ApiVersions; `error` tells a client that its version of this request is not served.
pub(super) fn api_versions(error: ErrorCode) -> ApiVersionsResponse<'static> {
    let api_keys = SERVED_APIS.iter().map(|api| ApiVersion {
        api_key: api.key as i16,
        min_version: api.oldest,
        max_version: api.newest,
    });
    ApiVersionsResponse { error_code: error.code(), api_keys: api_keys.collect(), ..Default::default() }
}

/// Responds to Metadata. Of more topics or partitions than a client reads, it gets the first.
///
/// # Errors
/// If memory is exhausted.
pub(super) fn metadata<'a>(
    archive: &'a Archive,
    budget: &Budget<'_>,
    address: &'a Address,
    version: i16,
    request: &'a MetadataRequest<'_>,
) -> Result<MetadataResponse<'a>, Unanswered> {
    // In version 0, no topics means all of them.
    let requested = request.topics.as_ref().filter(|topics| version > 0 || !topics.is_empty());
    let topics = match requested {
        None => {
            let topics = archive.topics.values().take(MAX_ELEMENTS);
            array(budget, topics.map(|topic| metadata_of(budget, topic)))?
        }
        Some(topics) => {
            // Beside an id, Java's consumer has an empty name.
            let named = distinct(topics.iter().map(|topic| match &topic.name {
                Some(name) if topic.topic_id == [0; 16] => (Some(&**name), [0; 16]),
                _ => (None, topic.topic_id),
            }));
            let topics = named.map(|(name, topic_id)| {
                let named = TopicRef::new(name.unwrap_or_default(), topic_id, name.is_none());
                match archive.topic(&named) {
                    Ok(topic) => metadata_of(budget, topic),
                    Err(error) => Ok(MetadataResponseTopic {
                        error_code: error.code(),
                        name: name.map(Into::into),
                        topic_id,
                        ..Default::default()
                    }),
                }
            });
            array(budget, topics)?
        }
    };
    let broker = MetadataResponseBroker {
        node_id: NODE_ID,
        host: (&*address.host).into(),
        port: address.port.into(),
        rack: None,
    };
    Ok(MetadataResponse {
        brokers: vec![broker],
        cluster_id: Some(CLUSTER_ID.into()),
        controller_id: NODE_ID,
        topics,
        ..Default::default()
    })
}

fn metadata_of<'a>(budget: &Budget<'_>, topic: &'a Topic) -> Result<MetadataResponseTopic<'a>, Unanswered> {
    // The leader epoch is unknown until the log is surveyed, and clients can do without it.
    let partitions = topic.partitions.keys().take(MAX_ELEMENTS).map(|&partition_index| {
        Ok(MetadataResponsePartition {
            partition_index,
            leader_id: NODE_ID,
            replica_nodes: vec![NODE_ID],
            isr_nodes: vec![NODE_ID],
            ..Default::default()
        })
    });
    Ok(MetadataResponseTopic {
        name: Some((&*topic.name).into()),
        topic_id: topic.id,
        is_internal: topic.is_internal(),
        partitions: array(budget, partitions)?,
        ..Default::default()
    })
}

/// Responds to DescribeCluster.
pub(super) fn describe_cluster(address: &Address) -> DescribeClusterResponse<'_> {
    let broker = DescribeClusterBroker {
        broker_id: NODE_ID,
        host: (&*address.host).into(),
        port: address.port.into(),
        ..Default::default()
    };
    DescribeClusterResponse {
        cluster_id: CLUSTER_ID.into(),
        controller_id: NODE_ID,
        brokers: vec![broker],
        ..Default::default()
    }
}

/// Responds to DescribeTopicPartitions.
///
/// # Errors
/// If memory is exhausted.
pub(super) fn describe_topic_partitions<'a>(
    archive: &'a Archive,
    budget: &Budget<'_>,
    request: &'a DescribeTopicPartitionsRequest<'_>,
) -> Result<DescribeTopicPartitionsResponse<'a>, Unanswered> {
    let limit = request.response_partition_limit.clamp(1, PARTITIONS_DESCRIBED as i32) as usize;
    let mut names: Vec<&str> = request.topics.iter().map(|topic| &*topic.name).collect();
    if names.is_empty() {
        names = archive.topics.keys().map(|name| &**name).collect();
    }
    names.sort_unstable();
    names.dedup();
    let (mut topics, mut left, mut next_cursor) = (Vec::new(), limit, None);
    for name in names {
        let first = match &request.cursor {
            Some(cursor) if *name < *cursor.topic_name => continue,
            Some(cursor) if *name == *cursor.topic_name => cursor.partition_index,
            _ => 0,
        };
        let Some(topic) = archive.topics.get(name) else {
            let error_code = ErrorCode::UnknownTopicOrPartition.code();
            let name = Some(name.into());
            let unknown = DescribeTopicPartitionsResponseTopic { error_code, name, ..Default::default() };
            push(budget, &mut topics, unknown)?;
            continue;
        };
        let rest: Vec<_> = topic.partitions.range(first..).map(|(&partition, _)| partition).collect();
        let here = &rest[..rest.len().min(left)];
        left -= here.len();
        if !here.is_empty() || rest.is_empty() {
            push(budget, &mut topics, described(budget, topic, here)?)?;
        }
        if let Some(&partition_index) = rest.get(here.len()) {
            next_cursor = Some(Cursor { topic_name: name.into(), partition_index });
            break;
        }
    }
    Ok(DescribeTopicPartitionsResponse { topics, next_cursor, ..Default::default() })
}

fn described<'a>(
    budget: &Budget<'_>,
    topic: &'a Topic,
    partitions: &[i32],
) -> Result<DescribeTopicPartitionsResponseTopic<'a>, Unanswered> {
    let partitions = partitions.iter().map(|&partition_index| {
        Ok(DescribeTopicPartitionsResponsePartition {
            partition_index,
            leader_id: NODE_ID,
            replica_nodes: vec![NODE_ID],
            isr_nodes: vec![NODE_ID],
            // Kafka's admin client does not expect the nulls that are allowed here.
            eligible_leader_replicas: Some(Vec::new()),
            last_known_elr: Some(Vec::new()),
            ..Default::default()
        })
    });
    Ok(DescribeTopicPartitionsResponseTopic {
        name: Some((&*topic.name).into()),
        topic_id: topic.id,
        is_internal: topic.is_internal(),
        partitions: array(budget, partitions)?,
        ..Default::default()
    })
}
