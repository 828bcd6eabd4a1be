//! Answers about the cluster: versions, topics, configs.

use std::collections::{BTreeMap, HashMap, HashSet};

use magicbyte_broker::ErrorCode;
use magicbyte_protocol::message::{Struct, Value};

use crate::archive::{Archive, Topic, TopicRef};
use crate::fields::{
    Answer, array, code, distinct, fields, int, ints, is_null, list, nullable, number, push, string, structs,
    structure, text, texts,
};
use crate::memory::{Budget, Unanswered};
use crate::partition::Partition;
use crate::requested::topic_ref;

/// The one broker.
pub(super) const NODE_ID: i32 = 0;
const CLUSTER_ID: &str = "magicbyte-serve";
/// `ConfigResource.Type.TOPIC`.
const TOPIC_RESOURCE: i64 = 2;
/// `ConfigSource.DYNAMIC_TOPIC_CONFIG`.
const TOPIC_CONFIG: i64 = 1;
/// The maximum number of partitions in a response to DescribeTopicPartitions (`max.request.partition.size.limit`).
const PARTITIONS_DESCRIBED: usize = 2000;

/// An API that is answered: key, oldest and newest version.
pub(super) type ServedApi = (i16, i16, i16);

/// The APIs that are answered. librdkafka fetches nothing from a broker that does not offer Produce, and finds out by it
/// which codecs the broker has.
pub(super) const APIS: [ServedApi; 19] = [
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
    (DESCRIBE_LOG_DIRS, 1, 5),
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
pub(super) const DESCRIBE_LOG_DIRS: i16 = 35;
pub(super) const DESCRIBE_CLUSTER: i16 = 60;
pub(super) const DESCRIBE_TOPIC_PARTITIONS: i16 = 75;

/// The address that clients connect to.
#[derive(Clone, Debug)]
pub(super) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
}

/// The versions that are answered; `error` tells a client that its version of this request is not one of them.
pub(super) fn api_versions(error: ErrorCode) -> Struct<'static> {
    let apis = APIS.map(|(key, min, max)| {
        structure([("apiKey", number(key)), ("minVersion", number(min)), ("maxVersion", number(max))])
    });
    fields([("errorCode", code(error)), ("apiKeys", list(apis))])
}

/// Answers Metadata.
///
/// # Errors
/// If memory is exhausted.
pub(super) fn metadata(
    archive: &Archive,
    budget: &Budget<'_>,
    address: &Address,
    version: i16,
    request: &Struct<'_>,
) -> Result<Struct<'static>, Unanswered> {
    // In version 0, no topics means all of them.
    let no_topics = structs(request, "topics").next().is_none();
    let all = is_null(request, "topics") || (version == 0 && no_topics);
    let topics = match all {
        true => array(budget, archive.topics.values().map(|topic| metadata_of(budget, topic)))?,
        false => {
            let named = distinct(structs(request, "topics").map(|asked| topic_ref(asked, "name")));
            let topics = named.map(|named| match archive.topic(&named) {
                Ok(topic) => metadata_of(budget, topic),
                Err(error) => Ok(unknown_topic(&named, error)),
            });
            array(budget, topics)?
        }
    };
    Ok(fields([
        ("brokers", list([node("nodeId", address)])),
        ("clusterId", string(CLUSTER_ID)),
        ("controllerId", number(NODE_ID)),
        ("topics", topics),
    ]))
}

fn node(id: &'static str, address: &Address) -> Answer {
    structure([
        (id, number(NODE_ID)),
        ("host", string(&address.host)),
        ("port", number(i64::from(address.port))),
    ])
}

fn unknown_topic(named: &TopicRef, error: ErrorCode) -> Answer {
    let (name, id) = match named {
        TopicRef::Name(name) => (string(&**name), [0; 16]),
        TopicRef::Id(id) => (Value::Null, *id),
    };
    structure([("errorCode", code(error)), ("name", name), ("topicId", Value::Uuid(id))])
}

fn metadata_of(budget: &Budget<'_>, topic: &Topic) -> Result<Answer, Unanswered> {
    let partitions = topic.partitions.keys().map(|&partition| Ok(metadata_of_partition(partition)));
    Ok(structure([
        ("errorCode", code(ErrorCode::None)),
        ("name", string(&*topic.name)),
        ("topicId", Value::Uuid(topic.id)),
        ("isInternal", Value::Bool(topic.is_internal())),
        ("partitions", array(budget, partitions)?),
    ]))
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
        ("replicaNodes", list([number(NODE_ID)])),
        ("isrNodes", list([number(NODE_ID)])),
    ])
}

/// Answers DescribeTopicPartitions.
///
/// # Errors
/// If memory is exhausted.
pub(super) fn describe_topic_partitions(
    archive: &Archive,
    budget: &Budget<'_>,
    request: &Struct<'_>,
) -> Result<Struct<'static>, Unanswered> {
    let limit = int(request, "responsePartitionLimit", 0).clamp(1, PARTITIONS_DESCRIBED as i64) as usize;
    let cursor = match request.get("cursor") {
        Some(Value::Struct(cursor)) => {
            Some((text(cursor, "topicName").unwrap_or_default(), int(cursor, "partitionIndex", 0) as i32))
        }
        _ => None,
    };
    let mut names: Vec<_> = structs(request, "topics").filter_map(|topic| text(topic, "name")).collect();
    if names.is_empty() {
        names = archive.topics.keys().map(|name| name.to_string()).collect();
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
        let Some(topic) = archive.topics.get(&*name) else {
            let error = ErrorCode::UnknownTopicOrPartition;
            let unknown = structure([("errorCode", code(error)), ("name", string(name))]);
            push(budget, &mut topics, unknown)?;
            continue;
        };
        let rest: Vec<_> = topic.partitions.range(first..).map(|(&partition, _)| partition).collect();
        let here = &rest[..rest.len().min(left)];
        left -= here.len();
        let partitions = here.iter().map(|&partition| {
            let mut described = fields_of_partition(partition);
            // Kafka's admin client does not expect the nulls that are allowed here.
            described.set("eligibleLeaderReplicas", list([]));
            described.set("lastKnownElr", list([]));
            Ok(Value::Struct(described))
        });
        if !here.is_empty() || rest.is_empty() {
            let described = structure([
                ("errorCode", code(ErrorCode::None)),
                ("name", string(&*topic.name)),
                ("topicId", Value::Uuid(topic.id)),
                ("isInternal", Value::Bool(topic.is_internal())),
                ("partitions", array(budget, partitions)?),
            ]);
            push(budget, &mut topics, described)?;
        }
        if let Some(&partition) = rest.get(here.len()) {
            next = structure([("topicName", string(name)), ("partitionIndex", number(partition))]);
            break;
        }
    }
    Ok(fields([("topics", Value::Array(topics)), ("nextCursor", next)]))
}

/// Answers DescribeCluster.
pub(super) fn describe_cluster(address: &Address) -> Struct<'static> {
    fields([
        ("errorCode", code(ErrorCode::None)),
        ("endpointType", number(1)),
        ("clusterId", string(CLUSTER_ID)),
        ("controllerId", number(NODE_ID)),
        ("brokers", list([node("brokerId", address)])),
    ])
}

/// Answers DescribeConfigs with the known configs of topics. Brokers have no configs here.
///
/// # Errors
/// If memory is exhausted.
pub(super) fn describe_configs(
    archive: &Archive,
    budget: &Budget<'_>,
    request: &Struct<'_>,
) -> Result<Struct<'static>, Unanswered> {
    let mut known = HashSet::new();
    let results = structs(request, "resources").filter_map(|resource| {
        let kind = int(resource, "resourceType", 0);
        let name = text(resource, "resourceName").unwrap_or_default();
        known.insert((kind, name.clone())).then(|| config_of(archive, budget, kind, name, resource))
    });
    Ok(fields([("results", array(budget, results)?)]))
}

fn config_of(
    archive: &Archive,
    budget: &Budget<'_>,
    kind: i64,
    name: String,
    resource: &Struct<'_>,
) -> Result<Answer, Unanswered> {
    let all = is_null(resource, "configurationKeys");
    let keys: HashSet<_> = texts(resource, "configurationKeys").into_iter().collect();
    let (error, configs) = match (kind, archive.topics.get(&*name)) {
        (TOPIC_RESOURCE, None) => (ErrorCode::UnknownTopicOrPartition, list([])),
        (TOPIC_RESOURCE, Some(topic)) => {
            let chosen = topic.configs.iter().filter(|(name, _)| all || keys.contains(*name));
            let configs = chosen.map(|(name, value)| Ok(config(name, value)));
            (ErrorCode::None, array(budget, configs)?)
        }
        _ => (ErrorCode::None, list([])),
    };
    Ok(structure([
        ("errorCode", code(error)),
        ("errorMessage", nullable(None::<String>)),
        ("resourceType", number(kind)),
        ("resourceName", string(name)),
        ("configs", configs),
    ]))
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

/// Answers DescribeLogDirs: the sizes of the logs, by their directories. User interfaces send this request.
///
/// # Errors
/// If memory is exhausted.
pub(super) fn describe_log_dirs(
    archive: &Archive,
    budget: &Budget<'_>,
    request: &Struct<'_>,
) -> Result<Struct<'static>, Unanswered> {
    let all = is_null(request, "topics");
    let mut asked: HashMap<String, HashSet<i32>> = HashMap::new();
    for topic in structs(request, "topics") {
        let partitions = asked.entry(text(topic, "topic").unwrap_or_default()).or_default();
        partitions.extend(ints(topic, "partitions"));
    }
    let mut log_dirs: BTreeMap<&str, Vec<Answer>> = BTreeMap::new();
    for topic in archive.topics.values() {
        let asked = asked.get(&*topic.name);
        let mut partitions: BTreeMap<&str, Vec<Answer>> = BTreeMap::new();
        for (index, partition) in &topic.partitions {
            let Partition::Directory(directory) = partition else { continue };
            log_dirs.entry(&directory.log_dir).or_default();
            if all || asked.is_some_and(|asked| asked.contains(index)) {
                let described = structure([
                    ("partitionIndex", number(*index)),
                    ("partitionSize", number(directory.size() as i64)),
                    ("offsetLag", number(0)),
                    ("isFutureKey", Value::Bool(false)),
                ]);
                push(budget, partitions.entry(&directory.log_dir).or_default(), described)?;
            }
        }
        for (log_dir, partitions) in partitions {
            let described =
                structure([("name", string(&*topic.name)), ("partitions", Value::Array(partitions))]);
            push(budget, log_dirs.entry(log_dir).or_default(), described)?;
        }
    }
    let results = log_dirs.into_iter().map(|(log_dir, topics)| {
        let topics = ("topics", Value::Array(topics));
        Ok(structure([("errorCode", code(ErrorCode::None)), ("logDir", string(log_dir)), topics]))
    });
    Ok(fields([("errorCode", code(ErrorCode::None)), ("results", array(budget, results)?)]))
}
