//! ListOffsets and OffsetForLeaderEpoch: lookups in logs. Produce, which is refused.

use magicbyte::state::IsolationLevel;
use magicbyte_broker::{ErrorCode, ListedOffset, OffsetSpec};
use magicbyte_protocol::message::Struct;

use crate::archive::{Archive, TopicRef};
use crate::fields::{Answer, array, code, fields, int, int32, number, string, structs, structure};
use crate::memory::{Budget, Unanswered};
use crate::requested::{RequestedTopic, named, requested, topic_ref};

/// The timestamps that are not one (`ListOffsetsRequest`).
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;

/// A ListOffsets request: timestamps by topic and partition.
#[derive(Debug)]
pub(super) struct OffsetLookups {
    isolation: IsolationLevel,
    topics: Vec<RequestedTopic<i64>>,
}

impl OffsetLookups {
    pub(super) fn of(request: &Struct<'_>) -> Self {
        let isolation = match int(request, "isolationLevel", 0) {
            1 => IsolationLevel::ReadCommitted,
            _ => IsolationLevel::ReadUncommitted,
        };
        let topics = structs(request, "topics").map(|topic| {
            let partition = |asked| (int32(asked, "partitionIndex", 0), int(asked, "timestamp", 0));
            (topic_ref(topic, "name"), structs(topic, "partitions").map(partition))
        });
        Self { isolation, topics: requested(topics) }
    }
}

/// Answers ListOffsets. A partition that was named twice has an error, as in Kafka (`ReplicaManager.fetchOffset`).
///
/// # Errors
/// If the client is gone, or memory is exhausted.
pub(super) fn list_offsets(
    archive: &Archive,
    budget: &Budget<'_>,
    lookups: OffsetLookups,
) -> Result<Struct<'static>, Unanswered> {
    let OffsetLookups { isolation, topics } = lookups;
    let topics = topics.into_iter().map(|RequestedTopic { topic, partitions }| {
        let partitions = partitions.into_iter().map(|asked| {
            budget.check_client()?;
            let listed = match asked.is_repeated {
                true => Err(ErrorCode::InvalidRequest),
                false => list_offset(archive, budget, &topic, asked.partition, asked.value, isolation),
            };
            let nothing = ListedOffset::new(-1, -1, -1);
            let (error, listed) = match listed {
                Ok(listed) => (ErrorCode::None, listed.unwrap_or(nothing)),
                Err(error) => (error, nothing),
            };
            Ok(structure([
                ("partitionIndex", number(asked.partition)),
                ("errorCode", code(error)),
                ("timestamp", number(listed.timestamp)),
                ("offset", number(listed.offset)),
                ("leaderEpoch", number(listed.leader_epoch)),
            ]))
        });
        let partitions = array(budget, partitions)?;
        let [name, _] = named(&topic, "name");
        Ok(structure([name, ("partitions", partitions)]))
    });
    Ok(fields([("topics", array(budget, topics)?)]))
}

fn list_offset(
    archive: &Archive,
    budget: &Budget<'_>,
    topic: &TopicRef,
    partition: i32,
    timestamp: i64,
    isolation: IsolationLevel,
) -> Result<Option<ListedOffset>, ErrorCode> {
    let spec = match timestamp {
        LATEST => OffsetSpec::Latest,
        EARLIEST | EARLIEST_LOCAL => OffsetSpec::Earliest,
        MAX_TIMESTAMP => OffsetSpec::MaxTimestamp,
        // Those of tiered storage: nothing is there.
        ..0 => return Ok(None),
        time => OffsetSpec::Timestamp(time),
    };
    let partition = archive.partition(topic, partition)?;
    let unreadable = |_| ErrorCode::KafkaStorageError;
    let mut log = partition.snapshot(&archive.shared, budget).map_err(unreadable)?;
    magicbyte_broker::internals::list_offset(&mut log, spec, isolation).map_err(unreadable)
}

/// An OffsetForLeaderEpoch request: leader epochs by topic and partition.
#[derive(Debug)]
pub(super) struct EpochLookups(Vec<RequestedTopic<i32>>);

impl EpochLookups {
    pub(super) fn of(request: &Struct<'_>) -> Self {
        Self(requested(structs(request, "topics").map(|topic| {
            let partition = |asked| (int32(asked, "partition", 0), int32(asked, "leaderEpoch", -1));
            (topic_ref(topic, "topic"), structs(topic, "partitions").map(partition))
        })))
    }
}

/// Answers OffsetForLeaderEpoch.
///
/// # Errors
/// If the client is gone, or memory is exhausted.
pub(super) fn offset_for_leader_epoch(
    archive: &Archive,
    budget: &Budget<'_>,
    lookups: EpochLookups,
) -> Result<Struct<'static>, Unanswered> {
    let topics = lookups.0.into_iter().map(|RequestedTopic { topic, partitions }| {
        let partitions = partitions.into_iter().map(|asked| {
            budget.check_client()?;
            let end = archive.partition(&topic, asked.partition).and_then(|partition| {
                let unreadable = |_| ErrorCode::KafkaStorageError;
                partition.end_of_epoch(&archive.shared, asked.value).map_err(unreadable)
            });
            let (error, (epoch, end)) = match end {
                Ok(end) => (ErrorCode::None, end.unwrap_or((-1, -1))),
                Err(error) => (error, (-1, -1)),
            };
            Ok(structure([
                ("errorCode", code(error)),
                ("partition", number(asked.partition)),
                ("leaderEpoch", number(epoch)),
                ("endOffset", number(end)),
            ]))
        });
        let partitions = array(budget, partitions)?;
        let [name, _] = named(&topic, "topic");
        Ok(structure([name, ("partitions", partitions)]))
    });
    Ok(fields([("topics", array(budget, topics)?)]))
}

/// Refuses Produce; None if the client does not want an answer (`acks=0`).
///
/// # Errors
/// If memory is exhausted.
pub(super) fn refuse_produce(
    budget: &Budget<'_>,
    request: &Struct<'_>,
) -> Result<Option<Struct<'static>>, Unanswered> {
    if int(request, "acks", 1) == 0 {
        return Ok(None);
    }
    let topics = requested(structs(request, "topicData").map(|topic| {
        let partition = |asked| (int32(asked, "index", 0), ());
        (topic_ref(topic, "name"), structs(topic, "partitionData").map(partition))
    }));
    let topics = topics.into_iter().map(|RequestedTopic { topic, partitions }| {
        let refused = partitions.into_iter().map(|asked| Ok(refused(asked.partition)));
        let partitions = array(budget, refused)?;
        let [name, id] = named(&topic, "name");
        Ok(structure([name, id, ("partitionResponses", partitions)]))
    });
    Ok(Some(fields([("responses", array(budget, topics)?)])))
}

fn refused(partition: i32) -> Answer {
    structure([
        ("index", number(partition)),
        ("errorCode", code(ErrorCode::PolicyViolation)),
        ("baseOffset", number(-1)),
        ("errorMessage", string("magicbyte serve is read-only: nothing can be produced")),
    ])
}
