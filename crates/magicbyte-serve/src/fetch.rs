//! Fetch: the records of partitions (`KafkaApis.handleFetchRequest`, `ReplicaManager.readFromLog`).

use std::collections::HashSet;
use std::time::{Duration, Instant};

use magicbyte::state::IsolationLevel;
use magicbyte_broker::ErrorCode;
use magicbyte_broker::internals::{Bounds, Consumed, ConsumedLog, FetchAt};
use magicbyte_protocol::message::{Struct, Value};

use crate::archive::{Archive, TopicRef};
use crate::fetch_sessions::{Asked, FetchSessions, Metadata, Outcome, Told};
use crate::fields::{Answer, array, code, fields, int, int32, ints, number, structs, structure};
use crate::limits::{MAX_FETCH_BYTES, MAX_FETCH_FILES, MAX_FETCH_MEMORY, MAX_FETCH_WAIT};
use crate::memory::{Budget, Unanswered};
use crate::partition::prepare;
use crate::requested::{RequestedTopic, named, requested, topic_ref};
use crate::span::Part;

/// The time between two looks at a growing log while a client waits.
const LOOK: Duration = Duration::from_millis(200);

/// A response to Fetch: its fields, in which record sets are sizes, and the bytes of these sets in order.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) body: Struct<'static>,
    pub(super) parts: Vec<Vec<Part>>,
}

/// A request, reduced to the fields that are needed.
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
        let topics = requested(structs(request, "topics").map(|topic| {
            let partition = |asked| {
                let max_bytes = int(asked, "partitionMaxBytes", 0).max(0) as u64;
                (int32(asked, "partition", 0), (int(asked, "fetchOffset", -1), max_bytes))
            };
            (topic_ref(topic, "topic"), structs(topic, "partitions").map(partition))
        }));
        let partitions = topics.into_iter().flat_map(|RequestedTopic { topic, partitions }| {
            partitions.into_iter().map(move |asked| {
                let (offset, max_bytes) = asked.value;
                Asked { topic: topic.clone(), partition: asked.partition, offset, max_bytes }
            })
        });
        let forgotten = structs(request, "forgottenTopicsData").flat_map(|topic| {
            let named = topic_ref(topic, "topic");
            ints(topic, "partitions").map(move |partition| (named.clone(), partition))
        });
        let metadata = Metadata {
            session_id: int32(request, "sessionId", 0),
            epoch: int32(request, "sessionEpoch", Metadata::FINAL_EPOCH),
        };
        Self {
            metadata,
            isolation,
            max_bytes: (int(request, "maxBytes", i32::MAX.into()).max(0) as u64).min(MAX_FETCH_BYTES),
            max_wait: Duration::from_millis(int(request, "maxWaitMs", 0).max(0) as u64).min(MAX_FETCH_WAIT),
            partitions: partitions.collect(),
            forgotten: forgotten.collect(),
        }
    }
}

/// Answers Fetch. At the end of the log it waits as long as the client wants, for a growing log or in vain.
///
/// # Errors
/// If the client is gone, or memory is exhausted.
pub(super) fn fetch(
    archive: &Archive,
    sessions: &FetchSessions,
    budget: &Budget<'_>,
    request: FetchRequest,
) -> Result<Fetched, Unanswered> {
    let FetchRequest { metadata, isolation, max_bytes, max_wait, partitions, forgotten } = request;
    let asked = match sessions.begin(metadata, partitions, &forgotten) {
        Ok(asked) => asked,
        Err(error) => return Ok(Fetched { body: fields([("errorCode", code(error))]), parts: Vec::new() }),
    };
    budget.take(asked.partitions.len() * (size_of::<Asked>() + size_of::<Answered>()))?;
    let begun = Instant::now();
    loop {
        let mut response = Response { archive, budget, isolation, max_bytes, taken: 0, memory: 0, files: 0 };
        let answered: Result<Vec<_>, _> =
            asked.partitions.iter().map(|one| response.partition(one)).collect();
        let answered = answered?;
        let failed = answered.iter().any(|one| one.outcome.told.error != ErrorCode::None);
        let left = max_wait.saturating_sub(begun.elapsed());
        if response.taken == 0 && !failed && !left.is_zero() && !budget.recipient().is_stopping() {
            budget.recipient().wait(if archive.shared.follow { left.min(LOOK) } else { left });
            budget.check_client()?;
            continue;
        }
        let outcomes: Vec<_> = answered.iter().map(|one| one.outcome).collect();
        sessions.end(&asked, &outcomes);
        let mut topics: Vec<(&TopicRef, Vec<(&Asked, Answered)>)> = Vec::new();
        for (place, (one, answered)) in asked.partitions.iter().zip(answered).enumerate() {
            if !asked.is_news(place, answered.outcome) {
                continue;
            }
            match topics.last_mut() {
                Some((topic, news)) if **topic == one.topic => news.push((one, answered)),
                _ => topics.push((&one.topic, vec![(one, answered)])),
            }
        }
        let mut parts = Vec::new();
        let topics = topics.into_iter().map(|(topic, news)| {
            let news = news.into_iter().map(|(one, answered)| {
                let answer = answered.answer(one.partition, isolation, budget);
                parts.push(answered.records.records);
                answer
            });
            let partitions = array(budget, news)?;
            let [name, id] = named(topic, "topic");
            Ok(structure([name, id, ("partitions", partitions)]))
        });
        let body = fields([
            ("errorCode", code(ErrorCode::None)),
            ("sessionId", number(asked.session_id())),
            ("responses", array(budget, topics)?),
        ]);
        return Ok(Fetched { body, parts });
    }
}

type Records = Consumed<Vec<Part>>;

/// The answer about a partition.
#[derive(Debug)]
struct Answered {
    bounds: Option<Bounds>,
    records: Records,
    size: u64,
    outcome: Outcome,
}

impl Answered {
    fn answer(
        &self,
        partition: i32,
        isolation: IsolationLevel,
        budget: &Budget<'_>,
    ) -> Result<Answer, Unanswered> {
        let aborted = self.records.aborted.iter().map(|one| {
            let first_offset = number(one.first_offset);
            Ok(structure([("producerId", number(one.producer_id)), ("firstOffset", first_offset)]))
        });
        let aborted = match isolation {
            IsolationLevel::ReadCommitted => array(budget, aborted)?,
            IsolationLevel::ReadUncommitted => Value::Null,
        };
        let told = self.outcome.told;
        let last_stable_offset = self.bounds.as_ref().map_or(-1, |bounds| bounds.last_stable_offset);
        Ok(structure([
            ("partitionIndex", number(partition)),
            ("errorCode", code(told.error)),
            ("highWatermark", number(told.high_watermark)),
            ("lastStableOffset", number(last_stable_offset)),
            ("logStartOffset", number(told.log_start_offset)),
            ("abortedTransactions", aborted),
            ("records", number(self.size as i64)),
        ]))
    }
}

/// The resources that the partitions of a response have taken so far.
struct Response<'a> {
    archive: &'a Archive,
    budget: &'a Budget<'a>,
    isolation: IsolationLevel,
    max_bytes: u64,
    taken: u64,
    memory: u64,
    files: usize,
}

impl Response<'_> {
    fn partition(&mut self, asked: &Asked) -> Result<Answered, Unanswered> {
        self.budget.check_client()?;
        let (error, bounds, records) = match self.read(asked) {
            Ok((bounds, records)) => (ErrorCode::None, Some(bounds), records),
            Err((error, bounds)) => (error, bounds, Consumed::default()),
        };
        let size: u64 = records.records.iter().map(Part::size).sum();
        self.taken += size;
        for part in &records.records {
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
        Ok(Answered { bounds, records, size, outcome: Outcome { told, has_records: size > 0 } })
    }

    fn read(&self, asked: &Asked) -> Result<(Bounds, Records), (ErrorCode, Option<Bounds>)> {
        let partition =
            self.archive.partition(&asked.topic, asked.partition).map_err(|error| (error, None))?;
        let unreadable = |_| (ErrorCode::KafkaStorageError, None);
        let log = partition.snapshot(&self.archive.shared, self.budget).map_err(unreadable)?;
        let bounds = log.bounds();
        let is_full = self.memory >= MAX_FETCH_MEMORY || self.files >= MAX_FETCH_FILES;
        let left = if is_full { 0 } else { self.max_bytes.saturating_sub(self.taken) };
        let request = FetchAt {
            offset: asked.offset,
            max_bytes: asked.max_bytes.min(left),
            at_least_one: self.taken == 0,
            isolation: self.isolation,
        };
        // The leader epoch that a client knows is not checked: there is no other leader that it could mean, and
        // librdkafka sends 0 if it knows none.
        let fetched = magicbyte_broker::internals::fetch(&log, request).map_err(unreadable)?;
        let mut fetched = fetched.ok_or((ErrorCode::OffsetOutOfRange, Some(bounds)))?;
        prepare(&mut fetched.records, self.budget)
            .map_err(|_| (ErrorCode::KafkaStorageError, Some(bounds)))?;
        Ok((bounds, fetched))
    }
}
