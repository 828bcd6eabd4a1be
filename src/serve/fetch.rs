//! Fetch: the records of partitions (`KafkaApis.handleFetchRequest`, `ReplicaManager.readFromLog`).

use std::time::{Duration, Instant};

use crate::broker::append_error::ErrorCode;
use crate::message::value::{Struct, Value};
use crate::serve::archive::{Archive, TopicRef};
use crate::serve::fields::{
    Answer, array, code, fields, int, int32, number, string, structs, structure, text, uuid,
};
use crate::serve::partition::{Bounds, Read, Wanted, prepare};
use crate::serve::span::Part;
use crate::serve::stopping::Stopping;
use crate::state::isolation::IsolationLevel;

/// The most bytes of one response.
const MOST_BYTES: u64 = 16 << 20;
/// The most of these in memory, and in how many open files the others are. The partitions after that get their turn
/// with the next request.
const MOST_MEMORY: u64 = 2 << 20;
const MOST_FILES: usize = 32;
/// The longest that a client waits for records.
const LONGEST_WAIT: Duration = Duration::from_mins(1);
/// How often a growing log is looked at while a client waits.
const LOOK: Duration = Duration::from_millis(200);

/// A response to Fetch: its fields, in which record sets are sizes, and the bytes of these sets in order.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) body: Struct<'static>,
    pub(super) parts: Vec<Vec<Part>>,
}

/// A request, without what is not needed.
#[derive(Debug)]
pub(super) struct FetchRequest {
    has_session: bool,
    isolation: IsolationLevel,
    max_bytes: u64,
    max_wait: Duration,
    topics: Vec<(TopicRef, Vec<Asked>)>,
}

#[derive(Debug)]
struct Asked {
    partition: i32,
    offset: i64,
    max_bytes: u64,
}

impl FetchRequest {
    pub(super) fn of(request: &Struct<'_>) -> Self {
        let isolation = match int(request, "isolationLevel", 0) {
            1 => IsolationLevel::ReadCommitted,
            _ => IsolationLevel::ReadUncommitted,
        };
        let topics = structs(request, "topics").map(|topic| {
            let partitions = structs(topic, "partitions").map(|asked| Asked {
                partition: int32(asked, "partition", 0),
                offset: int(asked, "fetchOffset", -1),
                max_bytes: int(asked, "partitionMaxBytes", 0).max(0) as u64,
            });
            (topic_ref(topic, "topic"), partitions.collect())
        });
        Self {
            has_session: int(request, "sessionId", 0) != 0 && int(request, "sessionEpoch", -1) > 0,
            isolation,
            max_bytes: (int(request, "maxBytes", i32::MAX.into()).max(0) as u64).min(MOST_BYTES),
            max_wait: Duration::from_millis(int(request, "maxWaitMs", 0).max(0) as u64).min(LONGEST_WAIT),
            topics: topics.collect(),
        }
    }
}

/// How a request names a topic: by name, or in newer versions by id.
pub(super) fn topic_ref(topic: &Struct<'_>, name: &str) -> TopicRef {
    match text(topic, name) {
        Some(name) => TopicRef::Name(name),
        None => TopicRef::Id(uuid(topic, "topicId").unwrap_or_default()),
    }
}

/// A topic's name or id in a response; only one of them is in its version.
pub(super) fn named(topic: &TopicRef, name: &'static str) -> [(&'static str, Answer); 2] {
    match topic {
        TopicRef::Name(text) => [(name, string(text)), ("topicId", Value::Uuid([0; 16]))],
        TopicRef::Id(id) => [(name, string("")), ("topicId", Value::Uuid(*id))],
    }
}

/// Answers Fetch. At the end of the log it waits as long as the client wants, for a growing log or in vain.
pub(super) fn fetch(archive: &Archive, stopping: &Stopping, request: FetchRequest) -> Fetched {
    // Sessions are declined (session 0): every request names all its partitions.
    if request.has_session {
        let error = fields([("errorCode", code(ErrorCode::FetchSessionIdNotFound))]);
        return Fetched { body: error, parts: Vec::new() };
    }
    let begun = Instant::now();
    loop {
        let mut response =
            Response { archive, isolation: request.isolation, ..Response::new(archive, request.max_bytes) };
        let topics = request.topics.iter().map(|(topic, partitions)| {
            let partitions: Vec<_> =
                partitions.iter().map(|asked| response.partition(topic, asked)).collect();
            let [name, id] = named(topic, "topic");
            structure([name, id, ("partitions", Value::Array(partitions))])
        });
        let topics: Vec<_> = topics.collect();
        let left = request.max_wait.saturating_sub(begun.elapsed());
        if response.taken > 0 || response.failed || left.is_zero() || stopping.is_stopping() {
            let body = fields([("errorCode", code(ErrorCode::None)), ("responses", Value::Array(topics))]);
            return Fetched { body, parts: response.parts };
        }
        stopping.wait(if archive.shared.follow { left.min(LOOK) } else { left });
    }
}

struct Response<'a> {
    archive: &'a Archive,
    isolation: IsolationLevel,
    max_bytes: u64,
    taken: u64,
    memory: u64,
    files: usize,
    failed: bool,
    parts: Vec<Vec<Part>>,
}

impl<'a> Response<'a> {
    fn new(archive: &'a Archive, max_bytes: u64) -> Self {
        let isolation = IsolationLevel::default();
        Self {
            archive,
            isolation,
            max_bytes,
            taken: 0,
            memory: 0,
            files: 0,
            failed: false,
            parts: Vec::new(),
        }
    }

    fn partition(&mut self, topic: &TopicRef, asked: &Asked) -> Answer {
        let (error, bounds, read) = match self.read(topic, asked) {
            Ok((bounds, read)) => (ErrorCode::None, Some(bounds), read),
            Err((error, bounds)) => {
                self.failed = true;
                (error, bounds, Read::default())
            }
        };
        let size: u64 = read.parts.iter().map(Part::size).sum();
        self.taken += size;
        for part in &read.parts {
            match part {
                Part::Memory(bytes) => self.memory += bytes.len() as u64,
                Part::File(_) => self.files += 1,
            }
        }
        let of_bounds = |of: fn(&Bounds) -> i64| number(bounds.as_ref().map_or(-1, of));
        let aborted = read.aborted.iter().map(|one| {
            structure([("producerId", number(one.producer_id)), ("firstOffset", number(one.first_offset))])
        });
        let aborted = match self.isolation {
            IsolationLevel::ReadCommitted => array(aborted),
            IsolationLevel::ReadUncommitted => Value::Null,
        };
        self.parts.push(read.parts);
        structure([
            ("partitionIndex", number(asked.partition)),
            ("errorCode", code(error)),
            ("highWatermark", of_bounds(|bounds| bounds.end)),
            ("lastStableOffset", of_bounds(|bounds| bounds.last_stable_offset)),
            ("logStartOffset", of_bounds(|bounds| bounds.start)),
            ("abortedTransactions", aborted),
            ("records", number(size as i64)),
        ])
    }

    fn read(&self, topic: &TopicRef, asked: &Asked) -> Result<(Bounds, Read), (ErrorCode, Option<Bounds>)> {
        let partition = self.archive.partition(topic, asked.partition).map_err(|error| (error, None))?;
        let unreadable = |_| (ErrorCode::KafkaStorageError, None);
        let shared = &self.archive.shared;
        let bounds = partition.bounds(shared).map_err(unreadable)?;
        // The leader epoch that a client knows is not checked: there is no other leader that it could mean, and
        // librdkafka sends 0 if it knows none.
        if asked.offset < bounds.start || asked.offset > bounds.end {
            return Err((ErrorCode::OffsetOutOfRange, Some(bounds)));
        }
        let is_full = self.memory >= MOST_MEMORY || self.files >= MOST_FILES;
        let wanted = Wanted {
            offset: asked.offset,
            limit: bounds.limit(self.isolation),
            max_bytes: if is_full {
                0
            } else {
                asked.max_bytes.min(self.max_bytes.saturating_sub(self.taken))
            },
            at_least_one: self.taken == 0,
            isolation: self.isolation,
        };
        let mut read = partition.read(shared, wanted).map_err(unreadable)?;
        prepare(&mut read.parts).map_err(|_| (ErrorCode::KafkaStorageError, Some(bounds)))?;
        Ok((bounds, read))
    }
}
