//! What clients ask about the cluster: versions, topics, configs.

use crate::broker::append_error::ErrorCode;
use crate::message::value::{Struct, Value};
use crate::serve::archive::{Archive, Topic, TopicRef};
use crate::serve::fields::{
    Answer, array, code, fields, int, is_null, nullable, number, string, structs, structure, text, texts,
    uuid,
};

/// The one broker.
pub(super) const NODE_ID: i32 = 0;
const CLUSTER_ID: &str = "magicbyte-serve";
/// `ConfigResource.Type.TOPIC`.
const TOPIC_RESOURCE: i64 = 2;
/// `ConfigSource.DYNAMIC_TOPIC_CONFIG`.
const TOPIC_CONFIG: i64 = 1;
/// The most partitions that DescribeTopicPartitions answers at once (`max.request.partition.size.limit`).
const PARTITIONS_DESCRIBED: usize = 2000;

/// An API that is answered: key, oldest and newest version.
pub(super) type ServedApi = (i16, i16, i16);

/// The APIs that are answered. librdkafka fetches nothing from a broker that does not offer Produce, and finds out by it
/// which codecs the broker has.
pub(super) const APIS: [ServedApi; 18] = [
    (PRODUCE, 0, 13),
    (FETCH, 4, 18),
    (LIST_OFFSETS, 1, 11),
    (METADATA, 0, 13),
    (OFFSET_COMMIT, 2, 10),
    (OFFSET_FETCH, 1, 10),
    (FIND_COORDINATOR, 0, 6),
    (JOIN_GROUP, 0, 9),
    (HEARTBEAT, 0, 4),
    (LEAVE_GROUP, 0, 5),
    (SYNC_GROUP, 0, 5),
    (DESCRIBE_GROUPS, 0, 6),
    (LIST_GROUPS, 0, 5),
    (API_VERSIONS, 0, 5),
    (OFFSET_FOR_LEADER_EPOCH, 2, 4),
    (DESCRIBE_CONFIGS, 1, 4),
    (DESCRIBE_CLUSTER, 0, 2),
    (DESCRIBE_TOPIC_PARTITIONS, 0, 0),
];

pub(super) const PRODUCE: i16 = 0;
pub(super) const FETCH: i16 = 1;
pub(super) const LIST_OFFSETS: i16 = 2;
pub(super) const METADATA: i16 = 3;
pub(super) const OFFSET_COMMIT: i16 = 8;
pub(super) const OFFSET_FETCH: i16 = 9;
pub(super) const FIND_COORDINATOR: i16 = 10;
pub(super) const JOIN_GROUP: i16 = 11;
pub(super) const HEARTBEAT: i16 = 12;
pub(super) const LEAVE_GROUP: i16 = 13;
pub(super) const SYNC_GROUP: i16 = 14;
pub(super) const DESCRIBE_GROUPS: i16 = 15;
pub(super) const LIST_GROUPS: i16 = 16;
pub(super) const API_VERSIONS: i16 = 18;
pub(super) const OFFSET_FOR_LEADER_EPOCH: i16 = 23;
pub(super) const DESCRIBE_CONFIGS: i16 = 32;
pub(super) const DESCRIBE_CLUSTER: i16 = 60;
pub(super) const DESCRIBE_TOPIC_PARTITIONS: i16 = 75;

/// Where clients connect to.
#[derive(Clone, Debug)]
pub(super) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
}

/// The versions that are answered; `error` tells a client that its own version of this request is not one of them.
pub(super) fn api_versions(error: ErrorCode) -> Struct<'static> {
    let apis = APIS.map(|(key, min, max)| {
        structure([("apiKey", number(key)), ("minVersion", number(min)), ("maxVersion", number(max))])
    });
    fields([("errorCode", code(error)), ("apiKeys", array(apis))])
}

/// Answers Metadata.
pub(super) fn metadata(
    archive: &Archive,
    address: &Address,
    version: i16,
    request: &Struct<'_>,
) -> Struct<'static> {
    // In version 0, no topics means all of them.
    let no_topics = structs(request, "topics").next().is_none();
    let all = is_null(request, "topics") || (version == 0 && no_topics);
    let topics: Vec<_> = match all {
        true => archive.topics.values().map(|topic| metadata_of(Ok(topic), None)).collect(),
        false => {
            let named = structs(request, "topics").map(|asked| match text(asked, "name") {
                Some(name) => TopicRef::Name(name),
                None => TopicRef::Id(uuid(asked, "topicId").unwrap_or_default()),
            });
            named.map(|named| metadata_of(archive.topic(&named), Some(&named))).collect()
        }
    };
    fields([
        ("brokers", array([node("nodeId", address)])),
        ("clusterId", string(CLUSTER_ID)),
        ("controllerId", number(NODE_ID)),
        ("topics", Value::Array(topics)),
    ])
}

fn node(id: &'static str, address: &Address) -> Answer {
    structure([
        (id, number(NODE_ID)),
        ("host", string(&address.host)),
        ("port", number(i64::from(address.port))),
    ])
}

fn metadata_of(topic: Result<&Topic, ErrorCode>, named: Option<&TopicRef>) -> Answer {
    let topic = match topic {
        Ok(topic) => topic,
        Err(error) => {
            let (name, id) = match named {
                Some(TopicRef::Name(name)) => (string(name), [0; 16]),
                Some(TopicRef::Id(id)) => (Value::Null, *id),
                None => (Value::Null, [0; 16]),
            };
            return structure([("errorCode", code(error)), ("name", name), ("topicId", Value::Uuid(id))]);
        }
    };
    structure([
        ("errorCode", code(ErrorCode::None)),
        ("name", string(&topic.name)),
        ("topicId", Value::Uuid(topic.id)),
        ("isInternal", Value::Bool(topic.is_internal())),
        ("partitions", array(topic.partitions.keys().map(|&partition| metadata_of_partition(partition)))),
    ])
}

/// The leader epoch is unknown until the log is surveyed, and clients can do without it.
fn metadata_of_partition(partition: i32) -> Answer {
    Value::Struct(fields_of_partition(partition))
}

fn fields_of_partition(partition: i32) -> Struct<'static> {
    fields([
        ("errorCode", code(ErrorCode::None)),
        ("partitionIndex", number(partition)),
        ("leaderId", number(NODE_ID)),
        ("leaderEpoch", number(-1)),
        ("replicaNodes", array([number(NODE_ID)])),
        ("isrNodes", array([number(NODE_ID)])),
    ])
}

/// Answers DescribeTopicPartitions.
pub(super) fn describe_topic_partitions(archive: &Archive, request: &Struct<'_>) -> Struct<'static> {
    let limit = int(request, "responsePartitionLimit", 0).clamp(1, PARTITIONS_DESCRIBED as i64) as usize;
    let cursor = match request.get("cursor") {
        Some(Value::Struct(cursor)) => {
            Some((text(cursor, "topicName").unwrap_or_default(), int(cursor, "partitionIndex", 0) as i32))
        }
        _ => None,
    };
    let mut names: Vec<_> = structs(request, "topics").filter_map(|topic| text(topic, "name")).collect();
    if names.is_empty() {
        names = archive.topics.keys().cloned().collect();
    }
    names.sort_unstable();
    names.dedup();
    let (mut topics, mut left, mut next) = (Vec::new(), limit, Value::Null);
    for name in names {
        let first = match &cursor {
            Some((topic, _)) if name < *topic => continue,
            Some((topic, partition)) if name == *topic => *partition,
            _ => 0,
        };
        let Some(topic) = archive.topics.get(&name) else {
            let error = ErrorCode::UnknownTopicOrPartition;
            topics.push(structure([("errorCode", code(error)), ("name", string(name))]));
            continue;
        };
        let rest: Vec<_> = topic.partitions.range(first..).map(|(&partition, _)| partition).collect();
        let here = &rest[..rest.len().min(left)];
        left -= here.len();
        let listed = here.iter().map(|&partition| {
            let mut described = fields_of_partition(partition);
            // Kafka's admin client does not expect the nulls that are allowed here.
            described.set("eligibleLeaderReplicas", array([]));
            described.set("lastKnownElr", array([]));
            Value::Struct(described)
        });
        if !here.is_empty() || rest.is_empty() {
            topics.push(structure([
                ("errorCode", code(ErrorCode::None)),
                ("name", string(&topic.name)),
                ("topicId", Value::Uuid(topic.id)),
                ("isInternal", Value::Bool(topic.is_internal())),
                ("partitions", array(listed)),
            ]));
        }
        if let Some(&partition) = rest.get(here.len()) {
            next = structure([("topicName", string(name)), ("partitionIndex", number(partition))]);
            break;
        }
    }
    fields([("topics", Value::Array(topics)), ("nextCursor", next)])
}

/// Answers DescribeCluster.
pub(super) fn describe_cluster(address: &Address) -> Struct<'static> {
    fields([
        ("errorCode", code(ErrorCode::None)),
        ("endpointType", number(1)),
        ("clusterId", string(CLUSTER_ID)),
        ("controllerId", number(NODE_ID)),
        ("brokers", array([node("brokerId", address)])),
    ])
}

/// Answers DescribeConfigs: what is known of topics. Brokers have no configs here.
pub(super) fn describe_configs(archive: &Archive, request: &Struct<'_>) -> Struct<'static> {
    let results = structs(request, "resources").map(|resource| {
        let (kind, name) =
            (int(resource, "resourceType", 0), text(resource, "resourceName").unwrap_or_default());
        let all = is_null(resource, "configurationKeys");
        let asked = texts(resource, "configurationKeys");
        let (error, configs) = match (kind, archive.topics.get(&name)) {
            (TOPIC_RESOURCE, None) => (ErrorCode::UnknownTopicOrPartition, Vec::new()),
            (TOPIC_RESOURCE, Some(topic)) => {
                let chosen = topic.configs.iter().filter(|(name, _)| all || asked.contains(name));
                (ErrorCode::None, chosen.map(|(name, value)| config(name, value)).collect())
            }
            _ => (ErrorCode::None, Vec::new()),
        };
        structure([
            ("errorCode", code(error)),
            ("errorMessage", nullable(None::<String>)),
            ("resourceType", number(kind)),
            ("resourceName", string(name)),
            ("configs", Value::Array(configs)),
        ])
    });
    fields([("results", array(results))])
}

fn config(name: &str, value: &str) -> Answer {
    structure([
        ("name", string(name)),
        ("value", string(value)),
        ("readOnly", Value::Bool(true)),
        ("configSource", number(TOPIC_CONFIG)),
        ("configType", number(0)),
        ("documentation", Value::Null),
    ])
}
