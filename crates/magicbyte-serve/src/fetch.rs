//! Fetch: the records of partitions (`KafkaApis.handleFetchRequest`, `ReplicaManager.readFromLog`).

use std::collections::HashSet;
use std::time::{Duration, Instant};

use magicbyte::state::IsolationLevel;
use magicbyte_broker::ErrorCode;
use magicbyte_broker::internals::{Bounds, Consumed, ConsumedLog, FetchAt};
use magicbyte_protocol::message::body::fetch_response::{
    AbortedTransaction, FetchableTopicResponse, PartitionData,
};
use magicbyte_protocol::message::body::{FetchRequest, FetchResponse, Records};

use crate::archive::{Archive, TopicRef};
use crate::fetch_sessions::{Begun, FetchSessions, Metadata, Outcome, PartitionState, SessionPartition};
use crate::limits::{MAX_FETCH_BYTES, MAX_FETCH_FILES, MAX_FETCH_MEMORY, MAX_FETCH_WAIT};
use crate::memory::{Budget, Unanswered};
use crate::partition::prepare;
use crate::requested::{RequestedTopic, requested};
use crate::response::array;
use crate::span::Part;

/// The time between two looks at a growing log while a client waits.
const LOOK: Duration = Duration::from_millis(200);
/// The first version with ids of topics instead of names.
const TOPIC_IDS: i16 = 13;

/// A response to Fetch: its fields, in which record sets are sizes, and the bytes of these sets in order.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) body: FetchResponse<'static>,
    pub(super) parts: Vec<Vec<Part>>,
}

/// A Fetch request, reduced to the fields that are needed.
#[derive(Debug)]
pub(super) struct FetchQuery {
    metadata: Metadata,
    isolation: IsolationLevel,
    max_bytes: u64,
    max_wait: Duration,
    partitions: Vec<SessionPartition>,
    forgotten: HashSet<(TopicRef, i32)>,
}

impl FetchQuery {
    pub(super) fn new(request: FetchRequest<'_>, version: i16) -> Self {
        let is_by_id = version >= TOPIC_IDS;
        let topics = requested(request.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|partition| (partition.partition, partition));
            (TopicRef::new(&topic.topic, topic.topic_id, is_by_id), partitions)
        }));
        let partitions = topics.into_iter().flat_map(|RequestedTopic { topic, partitions }| {
            partitions.into_iter().map(move |requested| SessionPartition {
                topic: topic.clone(),
                partition: requested.partition,
                offset: requested.value.fetch_offset,
                max_bytes: requested.value.partition_max_bytes.max(0) as u64,
            })
        });
        let forgotten = request.forgotten_topics_data.iter().flat_map(|forgotten| {
            let topic = TopicRef::new(&forgotten.topic, forgotten.topic_id, is_by_id);
            forgotten.partitions.iter().map(move |&partition| (topic.clone(), partition))
        });
        Self {
            metadata: Metadata { session_id: request.session_id, epoch: request.session_epoch },
            isolation: isolation_level(request.isolation_level),
            max_bytes: (request.max_bytes.max(0) as u64).min(MAX_FETCH_BYTES),
            max_wait: Duration::from_millis(request.max_wait_ms.max(0) as u64).min(MAX_FETCH_WAIT),
            partitions: partitions.collect(),
            forgotten: forgotten.collect(),
        }
    }
}

/// The isolation level of a request (`IsolationLevel.forId`).
pub(super) fn isolation_level(level: i8) -> IsolationLevel {
    match level {
        1 => IsolationLevel::ReadCommitted,
        _ => IsolationLevel::ReadUncommitted,
    }
}

/// Responds to Fetch. At the end of the log it waits as long as the client wants, for a growing log or in vain.
///
/// # Errors
/// If the client is gone, or memory is exhausted.
pub(super) fn fetch(
    archive: &Archive,
    sessions: &FetchSessions,
    budget: &Budget<'_>,
    query: FetchQuery,
) -> Result<Fetched, Unanswered> {
    let FetchQuery { metadata, isolation, max_bytes, max_wait, partitions, forgotten } = query;
    let begun = match sessions.begin(metadata, partitions, &forgotten) {
        Ok(begun) => begun,
        Err(error) => {
            let body = FetchResponse { error_code: error.code(), ..Default::default() };
            return Ok(Fetched { body, parts: Vec::new() });
        }
    };
    budget.take(begun.partitions.len() * (size_of::<SessionPartition>() + size_of::<FetchedPartition>()))?;
    let start = Instant::now();
    loop {
        let mut reader = Reader { archive, budget, isolation, max_bytes, taken: 0, memory: 0, files: 0 };
        let fetched: Result<Vec<_>, _> =
            begun.partitions.iter().map(|partition| reader.partition(partition)).collect();
        let fetched = fetched?;
        let has_error = fetched.iter().any(|partition| partition.outcome.state.error != ErrorCode::None);
        let left = max_wait.saturating_sub(start.elapsed());
        if reader.taken == 0 && !has_error && !left.is_zero() && !budget.recipient().is_stopping() {
            budget.recipient().wait(if archive.shared.follow { left.min(LOOK) } else { left });
            budget.check_client()?;
            continue;
        }
        let outcomes: Vec<_> = fetched.iter().map(|partition| partition.outcome).collect();
        sessions.end(&begun, &outcomes);
        return response(&begun, fetched, isolation, budget);
    }
}

/// The response with the partitions that have news, topic by topic.
fn response(
    begun: &Begun,
    fetched: Vec<FetchedPartition>,
    isolation: IsolationLevel,
    budget: &Budget<'_>,
) -> Result<Fetched, Unanswered> {
    let mut topics: Vec<(&TopicRef, Vec<(i32, FetchedPartition)>)> = Vec::new();
    for (index, (partition, fetched)) in begun.partitions.iter().zip(fetched).enumerate() {
        if !begun.is_news(index, fetched.outcome) {
            continue;
        }
        let news = (partition.partition, fetched);
        match topics.last_mut() {
            Some((topic, all)) if **topic == partition.topic => all.push(news),
            _ => topics.push((&partition.topic, vec![news])),
        }
    }
    let mut parts = Vec::new();
    let topics = topics.into_iter().map(|(topic, news)| {
        let partitions = news.into_iter().map(|(partition, fetched)| {
            let data = fetched.data(partition, isolation, budget);
            parts.push(fetched.records.records);
            data
        });
        let (topic, topic_id) = (topic.name().to_owned().into(), topic.id());
        Ok(FetchableTopicResponse { topic, topic_id, partitions: array(budget, partitions)? })
    });
    let responses = array(budget, topics)?;
    let body = FetchResponse { session_id: begun.session_id(), responses, ..Default::default() };
    Ok(Fetched { body, parts })
}

type Batches = Consumed<Vec<Part>>;

/// The records of a partition, and its state.
#[derive(Debug)]
struct FetchedPartition {
    bounds: Option<Bounds>,
    records: Batches,
    size: usize,
    outcome: Outcome,
}

impl FetchedPartition {
    fn data(
        &self,
        partition_index: i32,
        isolation: IsolationLevel,
        budget: &Budget<'_>,
    ) -> Result<PartitionData<'static>, Unanswered> {
        let aborted = self.records.aborted.iter().map(|aborted| {
            Ok(AbortedTransaction { producer_id: aborted.producer_id, first_offset: aborted.first_offset })
        });
        let aborted_transactions = match isolation {
            IsolationLevel::ReadCommitted => Some(array(budget, aborted)?),
            IsolationLevel::ReadUncommitted => None,
        };
        let state = self.outcome.state;
        Ok(PartitionData {
            partition_index,
            error_code: state.error.code(),
            high_watermark: state.high_watermark,
            last_stable_offset: self.bounds.as_ref().map_or(-1, |bounds| bounds.last_stable_offset),
            log_start_offset: state.log_start_offset,
            aborted_transactions,
            records: Some(Records::Gap(self.size)),
            ..Default::default()
        })
    }
}

/// The resources that the partitions of a response have taken so far.
struct Reader<'a> {
    archive: &'a Archive,
    budget: &'a Budget<'a>,
    isolation: IsolationLevel,
    max_bytes: u64,
    taken: u64,
    memory: u64,
    files: usize,
}

impl Reader<'_> {
    fn partition(&mut self, requested: &SessionPartition) -> Result<FetchedPartition, Unanswered> {
        self.budget.check_client()?;
        let (error, bounds, records) = match self.read(requested) {
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
        let state = PartitionState {
            error,
            high_watermark: of_bounds(|bounds| bounds.end),
            log_start_offset: of_bounds(|bounds| bounds.start),
        };
        let outcome = Outcome { state, has_records: size > 0 };
        Ok(FetchedPartition { bounds, records, size: size as usize, outcome })
    }

    fn read(&self, requested: &SessionPartition) -> Result<(Bounds, Batches), (ErrorCode, Option<Bounds>)> {
        let partition =
            self.archive.partition(&requested.topic, requested.partition).map_err(|error| (error, None))?;
        let unreadable = |_| (ErrorCode::KafkaStorageError, None);
        let log = partition.snapshot(&self.archive.shared, self.budget).map_err(unreadable)?;
        let bounds = log.bounds();
        let is_full = self.memory >= MAX_FETCH_MEMORY || self.files >= MAX_FETCH_FILES;
        let left = if is_full { 0 } else { self.max_bytes.saturating_sub(self.taken) };
        let request = FetchAt {
            offset: requested.offset,
            max_bytes: requested.max_bytes.min(left),
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
