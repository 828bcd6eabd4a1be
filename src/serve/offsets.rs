//! ListOffsets and OffsetForLeaderEpoch: lookups in logs. Produce, which is refused.

use crate::broker::append_error::ErrorCode;
use crate::broker::consumed_log::{self, ListedOffset, OffsetSpec};
use crate::message::value::{Struct, Value};
use crate::serve::archive::{Archive, TopicRef};
use crate::serve::fetch::{named, topic_ref};
use crate::serve::fields::{
    Answer, array, code, fields, int, int32, number, string, structs, structure, text,
};
use crate::state::isolation::IsolationLevel;

/// The timestamps that are not one (`ListOffsetsRequest`).
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;

/// Answers ListOffsets.
pub(super) fn list_offsets(archive: &Archive, request: &Struct<'_>) -> Struct<'static> {
    let isolation = match int(request, "isolationLevel", 0) {
        1 => IsolationLevel::ReadCommitted,
        _ => IsolationLevel::ReadUncommitted,
    };
    let topics = structs(request, "topics").map(|topic| {
        let name = text(topic, "name").unwrap_or_default();
        let partitions = structs(topic, "partitions").map(|asked| {
            let partition = int32(asked, "partitionIndex", 0);
            let place = TopicRef::Name(name.clone());
            let found = list_offset(archive, &place, partition, int(asked, "timestamp", 0), isolation);
            let nothing = ListedOffset { timestamp: -1, offset: -1, leader_epoch: -1 };
            let (error, listed) = match found {
                Ok(listed) => (ErrorCode::None, listed.unwrap_or(nothing)),
                Err(error) => (error, nothing),
            };
            structure([
                ("partitionIndex", number(partition)),
                ("errorCode", code(error)),
                ("timestamp", number(listed.timestamp)),
                ("offset", number(listed.offset)),
                ("leaderEpoch", number(listed.leader_epoch)),
            ])
        });
        let partitions: Vec<_> = partitions.collect();
        structure([("name", string(name)), ("partitions", Value::Array(partitions))])
    });
    fields([("topics", array(topics))])
}

fn list_offset(
    archive: &Archive,
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
    let mut log = partition.snapshot(&archive.shared).map_err(unreadable)?;
    consumed_log::list_offset(&mut log, spec, isolation).map_err(unreadable)
}

/// Answers OffsetForLeaderEpoch.
pub(super) fn offset_for_leader_epoch(archive: &Archive, request: &Struct<'_>) -> Struct<'static> {
    let topics = structs(request, "topics").map(|topic| {
        let name = text(topic, "topic").unwrap_or_default();
        let place = TopicRef::Name(name.clone());
        let partitions = structs(topic, "partitions").map(|asked| {
            let (partition, epoch) = (int32(asked, "partition", 0), int32(asked, "leaderEpoch", -1));
            let found = archive.partition(&place, partition).and_then(|found| {
                let unreadable = |_| ErrorCode::KafkaStorageError;
                found.end_of_epoch(&archive.shared, epoch).map_err(unreadable)
            });
            let (error, (epoch, end)) = match found {
                Ok(found) => (ErrorCode::None, found.unwrap_or((-1, -1))),
                Err(error) => (error, (-1, -1)),
            };
            structure([
                ("errorCode", code(error)),
                ("partition", number(partition)),
                ("leaderEpoch", number(epoch)),
                ("endOffset", number(end)),
            ])
        });
        let partitions: Vec<_> = partitions.collect();
        structure([("topic", string(name)), ("partitions", Value::Array(partitions))])
    });
    fields([("topics", array(topics))])
}

/// Refuses Produce; None if the client does not want an answer (`acks=0`).
pub(super) fn refuse_produce(request: &Struct<'_>) -> Option<Struct<'static>> {
    if int(request, "acks", 1) == 0 {
        return None;
    }
    let topics = structs(request, "topicData").map(|topic| {
        let partitions = structs(topic, "partitionData").map(|asked| refused(int32(asked, "index", 0)));
        let partitions: Vec<_> = partitions.collect();
        let [name, id] = named(&topic_ref(topic, "name"), "name");
        structure([name, id, ("partitionResponses", Value::Array(partitions))])
    });
    Some(fields([("responses", array(topics))]))
}

fn refused(partition: i32) -> Answer {
    structure([
        ("index", number(partition)),
        ("errorCode", code(ErrorCode::PolicyViolation)),
        ("baseOffset", number(-1)),
        ("errorMessage", string("magicbyte serve is read-only: nothing can be produced")),
    ])
}
