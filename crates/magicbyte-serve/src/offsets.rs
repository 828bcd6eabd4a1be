//! ListOffsets and OffsetForLeaderEpoch: lookups in logs.

use magicbyte::state::IsolationLevel;
use magicbyte_broker::{ErrorCode, ListedOffset, OffsetSpec};
use magicbyte_protocol::message::body::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use magicbyte_protocol::message::body::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderTopicResult,
};
use magicbyte_protocol::message::body::{
    ListOffsetsRequest, ListOffsetsResponse, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
};

use crate::archive::{Archive, TopicRef};
use crate::fetch::isolation_level;
use crate::memory::{Budget, Unanswered};
use crate::requested::{RequestedTopic, requested};
use crate::response::array;

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
    pub(super) fn new(request: ListOffsetsRequest<'_>) -> Self {
        let topics = request.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter();
            let timestamps = partitions.map(|partition| (partition.partition_index, partition.timestamp));
            (TopicRef::Name((&*topic.name).into()), timestamps)
        });
        Self { isolation: isolation_level(request.isolation_level), topics: requested(topics) }
    }
}

/// Responds to ListOffsets. A partition that was named twice has an error, as in Kafka (`ReplicaManager.fetchOffset`).
///
/// # Errors
/// If the client is gone, or memory is exhausted.
pub(super) fn list_offsets<'l>(
    archive: &Archive,
    budget: &Budget<'_>,
    lookups: &'l OffsetLookups,
) -> Result<ListOffsetsResponse<'l>, Unanswered> {
    let topics = lookups.topics.iter().map(|RequestedTopic { topic, partitions }| {
        let partitions = partitions.iter().map(|requested| {
            budget.check_client()?;
            let listed = match requested.is_repeated {
                true => Err(ErrorCode::InvalidRequest),
                false => {
                    let (partition, timestamp) = (requested.partition, requested.value);
                    list_offset(archive, budget, (topic, partition), timestamp, lookups.isolation)
                }
            };
            let nothing = ListedOffset::new(-1, -1, -1);
            let (error, listed) = match listed {
                Ok(listed) => (ErrorCode::None, listed.unwrap_or(nothing)),
                Err(error) => (error, nothing),
            };
            Ok(ListOffsetsPartitionResponse {
                partition_index: requested.partition,
                error_code: error.code(),
                timestamp: listed.timestamp,
                offset: listed.offset,
                leader_epoch: listed.leader_epoch,
            })
        });
        let partitions = array(budget, partitions)?;
        Ok(ListOffsetsTopicResponse { name: topic.name().into(), partitions })
    });
    Ok(ListOffsetsResponse { topics: array(budget, topics)?, ..Default::default() })
}

fn list_offset(
    archive: &Archive,
    budget: &Budget<'_>,
    (topic, partition): (&TopicRef, i32),
    timestamp: i64,
    isolation: IsolationLevel,
) -> Result<Option<ListedOffset>, ErrorCode> {
    let spec = match timestamp {
        LATEST => OffsetSpec::Latest,
        EARLIEST | EARLIEST_LOCAL => OffsetSpec::Earliest,
        MAX_TIMESTAMP => OffsetSpec::MaxTimestamp,
        // Special timestamps of tiered storage: nothing is there.
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
    pub(super) fn new(request: OffsetForLeaderEpochRequest<'_>) -> Self {
        Self(requested(request.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter();
            let epochs = partitions.map(|partition| (partition.partition, partition.leader_epoch));
            (TopicRef::Name((&*topic.topic).into()), epochs)
        })))
    }
}

/// Responds to OffsetForLeaderEpoch.
///
/// # Errors
/// If the client is gone, or memory is exhausted.
pub(super) fn offset_for_leader_epoch<'l>(
    archive: &Archive,
    budget: &Budget<'_>,
    lookups: &'l EpochLookups,
) -> Result<OffsetForLeaderEpochResponse<'l>, Unanswered> {
    let topics = lookups.0.iter().map(|RequestedTopic { topic, partitions }| {
        let partitions = partitions.iter().map(|requested| {
            budget.check_client()?;
            let end = archive.partition(topic, requested.partition).and_then(|partition| {
                let unreadable = |_| ErrorCode::KafkaStorageError;
                partition.end_of_epoch(&archive.shared, requested.value).map_err(unreadable)
            });
            let (error, (leader_epoch, end_offset)) = match end {
                Ok(end) => (ErrorCode::None, end.unwrap_or((-1, -1))),
                Err(error) => (error, (-1, -1)),
            };
            let (partition, error_code) = (requested.partition, error.code());
            Ok(EpochEndOffset { error_code, partition, leader_epoch, end_offset })
        });
        let partitions = array(budget, partitions)?;
        Ok(OffsetForLeaderTopicResult { topic: topic.name().into(), partitions })
    });
    Ok(OffsetForLeaderEpochResponse { topics: array(budget, topics)?, ..Default::default() })
}
