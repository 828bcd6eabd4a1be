//! Fetch: the records of partitions (`KafkaApis.handleFetchRequest`, `ReplicaManager.readFromLog`).

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::broker::append_error::ErrorCode;
use crate::broker::consumed_log::{self, Bounds, Consumed, ConsumedLog, FetchAt};
use crate::message::value::{Struct, Value};
use crate::serve::archive::{Archive, TopicRef};
use crate::serve::fetch_sessions::{Asked, FetchSessions, Metadata, Outcome, Told};
use crate::serve::fields::{
    Answer, array, code, fields, int, int32, ints, number, string, structs, structure, text, uuid,
};
use crate::serve::partition::prepare;
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
    metadata: Metadata,
    isolation: IsolationLevel,
    max_bytes: u64,
    max_wait: Duration,
    partitions: Vec<Asked>,
    forgotten: HashSet<(TopicRef, i32)>,
}

impl FetchRequest {
    pub(super) fn of(request: &Struct<'_>) -> Self {
        let isolation = match int(request, "isolationLevel", 0) {
            1 => IsolationLevel::ReadCommitted,
            _ => IsolationLevel::ReadUncommitted,
        };
        let partitions = structs(request, "topics").flat_map(|topic| {
            let named = topic_ref(topic, "topic");
            structs(topic, "partitions").map(move |asked| Asked {
                topic: named.clone(),
                partition: int32(asked, "partition", 0),
                offset: int(asked, "fetchOffset", -1),
                max_bytes: int(asked, "partitionMaxBytes", 0).max(0) as u64,
            })
        });
        let forgotten = structs(request, "forgottenTopicsData").flat_map(|topic| {
            let named = topic_ref(topic, "topic");
            ints(topic, "partitions").into_iter().map(move |partition| (named.clone(), partition as i32))
        });
        let metadata = Metadata {
            session_id: int32(request, "sessionId", 0),
            epoch: int32(request, "sessionEpoch", Metadata::FINAL_EPOCH),
        };
        Self {
            metadata,
            isolation,
            max_bytes: (int(request, "maxBytes", i32::MAX.into()).max(0) as u64).min(MOST_BYTES),
            max_wait: Duration::from_millis(int(request, "maxWaitMs", 0).max(0) as u64).min(LONGEST_WAIT),
            partitions: partitions.collect(),
            forgotten: forgotten.collect(),
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
pub(super) fn fetch(
    archive: &Archive,
    sessions: &FetchSessions,
    stopping: &Stopping,
    request: FetchRequest,
) -> Fetched {
    let FetchRequest { metadata, isolation, max_bytes, max_wait, partitions, forgotten } = request;
    let asked = match sessions.begin(metadata, partitions, &forgotten) {
        Ok(asked) => asked,
        Err(error) => return Fetched { body: fields([("errorCode", code(error))]), parts: Vec::new() },
    };
    let begun = Instant::now();
    loop {
        let mut response = Response { archive, isolation, max_bytes, taken: 0, memory: 0, files: 0 };
        let answered: Vec<_> = asked.partitions.iter().map(|one| response.partition(one)).collect();
        let failed = answered.iter().any(|one| one.outcome.told.error != ErrorCode::None);
        let left = max_wait.saturating_sub(begun.elapsed());
        if response.taken == 0 && !failed && !left.is_zero() && !stopping.is_stopping() {
            stopping.wait(if archive.shared.follow { left.min(LOOK) } else { left });
            continue;
        }
        let outcomes: Vec<_> = answered.iter().map(|one| one.outcome).collect();
        sessions.end(&asked, &outcomes);
        let mut topics: Vec<(&TopicRef, Vec<Answer>)> = Vec::new();
        let mut parts = Vec::new();
        for (place, (one, answered)) in asked.partitions.iter().zip(answered).enumerate() {
            if !asked.is_news(place, answered.outcome) {
                continue;
            }
            match topics.last_mut() {
                Some((topic, answers)) if **topic == one.topic => answers.push(answered.answer),
                _ => topics.push((&one.topic, vec![answered.answer])),
            }
            parts.push(answered.parts);
        }
        let topics = topics.into_iter().map(|(topic, answers)| {
            let [name, id] = named(topic, "topic");
            structure([name, id, ("partitions", Value::Array(answers))])
        });
        let body = fields([
            ("errorCode", code(ErrorCode::None)),
            ("sessionId", number(asked.session_id())),
            ("responses", array(topics)),
        ]);
        return Fetched { body, parts };
    }
}

/// The answer about a partition.
struct Answered {
    answer: Answer,
    parts: Vec<Part>,
    outcome: Outcome,
}

type Records = Consumed<Vec<Part>>;

/// What the partitions of a response have taken so far.
struct Response<'a> {
    archive: &'a Archive,
    isolation: IsolationLevel,
    max_bytes: u64,
    taken: u64,
    memory: u64,
    files: usize,
}

impl Response<'_> {
    fn partition(&mut self, asked: &Asked) -> Answered {
        let (error, bounds, read) = match self.read(asked) {
            Ok((bounds, read)) => (ErrorCode::None, Some(bounds), read),
            Err((error, bounds)) => (error, bounds, Consumed::default()),
        };
        let size: u64 = read.records.iter().map(Part::size).sum();
        self.taken += size;
        for part in &read.records {
            match part {
                Part::Memory(bytes) => self.memory += bytes.len() as u64,
                Part::File(_) => self.files += 1,
            }
        }
        let of_bounds = |of: fn(&Bounds) -> i64| bounds.as_ref().map_or(-1, of);
        let told = Told {
            error,
            high_watermark: of_bounds(|bounds| bounds.end),
            log_start_offset: of_bounds(|bounds| bounds.start),
        };
        let aborted = read.aborted.iter().map(|one| {
            structure([("producerId", number(one.producer_id)), ("firstOffset", number(one.first_offset))])
        });
        let aborted = match self.isolation {
            IsolationLevel::ReadCommitted => array(aborted),
            IsolationLevel::ReadUncommitted => Value::Null,
        };
        let answer = structure([
            ("partitionIndex", number(asked.partition)),
            ("errorCode", code(error)),
            ("highWatermark", number(told.high_watermark)),
            ("lastStableOffset", number(of_bounds(|bounds| bounds.last_stable_offset))),
            ("logStartOffset", number(told.log_start_offset)),
            ("abortedTransactions", aborted),
            ("records", number(size as i64)),
        ]);
        Answered { answer, parts: read.records, outcome: Outcome { told, has_records: size > 0 } }
    }

    fn read(&self, asked: &Asked) -> Result<(Bounds, Records), (ErrorCode, Option<Bounds>)> {
        let partition =
            self.archive.partition(&asked.topic, asked.partition).map_err(|error| (error, None))?;
        let unreadable = |_| (ErrorCode::KafkaStorageError, None);
        let log = partition.snapshot(&self.archive.shared).map_err(unreadable)?;
        let bounds = log.bounds();
        let is_full = self.memory >= MOST_MEMORY || self.files >= MOST_FILES;
        let left = if is_full { 0 } else { self.max_bytes.saturating_sub(self.taken) };
        let request = FetchAt {
            offset: asked.offset,
            max_bytes: asked.max_bytes.min(left),
            at_least_one: self.taken == 0,
            isolation: self.isolation,
        };
        // The leader epoch that a client knows is not checked: there is no other leader that it could mean, and
        // librdkafka sends 0 if it knows none.
        let fetched = consumed_log::fetch(&log, request).map_err(unreadable)?;
        let mut fetched = fetched.ok_or((ErrorCode::OffsetOutOfRange, Some(bounds)))?;
        prepare(&mut fetched.records).map_err(|_| (ErrorCode::KafkaStorageError, Some(bounds)))?;
        Ok((bounds, fetched))
    }
}
