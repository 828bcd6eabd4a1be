//! Ranges of partitions, fetched from their leaders.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use magicbyte::state::IsolationLevel;
use magicbyte_broker::ErrorCode;
use magicbyte_protocol::message::ApiKey;
use magicbyte_protocol::message::body::fetch_request::{FetchPartition, FetchTopic};
use magicbyte_protocol::message::body::fetch_response::PartitionData;
use magicbyte_protocol::message::body::{FetchRequest, FetchResponse};

use crate::address::Address;
use crate::backoff::Backoff;
use crate::cluster::{Cluster, Route};
use crate::connection::{Response, Sent};
use crate::error::{Error, ErrorKind, Result};
use crate::fetch_options::{FetchOptions, FetchRange};
use crate::fetched::{Fetched, whole_batches};
use crate::offsets::{OffsetSpec, TopicPartition};

/// The version since which a response has a limit of its own, which its first batch may exceed (KIP-74).
const WHOLE_FIRST_BATCH_SINCE: i16 = 3;
/// The version since which a leader notices that it does not have what was fetched before (KIP-595).
const DIVERGING_EPOCH_SINCE: i16 = 12;
/// The version since which topics are named by their ids (KIP-516).
const TOPIC_IDS_SINCE: i16 = 13;

/// Fetches ranges of partitions. One request names all partitions of a broker, and the next one is under way while the
/// batches of the last are used.
///
/// Memory: one response, and what the caller keeps of earlier ones. A response that is under way stays with the system.
/// After an error, the fetcher ends.
#[derive(Debug)]
pub struct Fetcher<'c> {
    cluster: &'c mut Cluster,
    options: FetchOptions,
    /// The partitions that are not done; those that got records last are at the end, since a response may be too small for all.
    pending: VecDeque<Partition>,
    /// Requests that were sent, oldest first, each to another broker.
    under_way: VecDeque<UnderWay>,
    ready: VecDeque<Fetched>,
    /// The error that ended it, until the caller gets it.
    failure: Option<Error>,
    backoff: Backoff,
}

#[derive(Debug)]
struct Partition {
    place: TopicPartition,
    position: i64,
    end: i64,
    max_bytes: usize,
    /// The id that the topic had first.
    topic_id: Option<[u8; 16]>,
    /// The epoch of the leader that was asked last, and of the last batch; -1 if unknown.
    asked_epoch: i32,
    last_epoch: i32,
}

/// The name of a topic in a response.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum TopicKey<'a> {
    Id([u8; 16]),
    Name(&'a str),
}

#[derive(Debug)]
struct UnderWay {
    address: Address,
    sent: Sent,
    partitions: Vec<Partition>,
}

/// The meaning of an answer about a partition.
enum Outcome {
    /// The range was fetched.
    Done,
    /// The range goes on.
    Progress,
    /// The response had no room for the partition.
    Starved,
    /// The same request may succeed later or at another leader.
    Retry(Error),
}

impl Cluster {
    /// Fetches ranges of partitions. Empty ranges are done at once.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`] for a negative offset, a partition that is listed twice, or limits that no broker takes.
    pub fn fetch(&mut self, ranges: Vec<FetchRange>, options: FetchOptions) -> Result<Fetcher<'_>> {
        let limit = self.options.max_response_bytes.min(i32::MAX as usize);
        for (name, bytes) in
            [("max_bytes", options.max_bytes), ("max_partition_bytes", options.max_partition_bytes)]
        {
            if bytes == 0 || bytes > limit {
                return Err(Error::options(format!(
                    "{name} {bytes}: expected 1 to {limit} (max_response_bytes)"
                )));
            }
        }
        let mut places = BTreeSet::new();
        let mut pending = VecDeque::with_capacity(ranges.len());
        for FetchRange { topic, partition, start, end } in ranges {
            if start < 0 {
                return Err(
                    Error::options(format!("offset {start}: expected 0 or more")).of(&topic, partition)
                );
            }
            if !places.insert((Arc::clone(&topic), partition)) {
                return Err(Error::options("the partition is listed twice").of(&topic, partition));
            }
            if start < end {
                pending.push_back(Partition::new(
                    (topic, partition),
                    start..end,
                    options.max_partition_bytes,
                ));
            }
        }
        let backoff = Backoff::new(self.options.retry_timeout);
        let (under_way, ready) = (VecDeque::new(), VecDeque::new());
        Ok(Fetcher { cluster: self, options, pending, under_way, ready, failure: None, backoff })
    }
}

impl Partition {
    fn new(place: TopicPartition, range: std::ops::Range<i64>, max_bytes: usize) -> Self {
        Self {
            place,
            position: range.start,
            end: range.end,
            max_bytes,
            topic_id: None,
            asked_epoch: -1,
            last_epoch: -1,
        }
    }

    /// The name of its topic in a response that has ids, or names.
    fn key(&self, by_id: bool) -> TopicKey<'_> {
        match self.topic_id {
            Some(id) if by_id => TopicKey::Id(id),
            _ => TopicKey::Name(&self.place.0),
        }
    }

    fn request(&self, route: &Route, version: i16) -> FetchTopic<'_> {
        let by_id = version >= TOPIC_IDS_SINCE;
        let partition = FetchPartition {
            partition: self.place.1,
            current_leader_epoch: if version >= 9 { route.epoch } else { -1 },
            fetch_offset: self.position,
            last_fetched_epoch: if version >= DIVERGING_EPOCH_SINCE { self.last_epoch } else { -1 },
            partition_max_bytes: self.max_bytes as i32,
            ..Default::default()
        };
        FetchTopic {
            topic: if by_id { "".into() } else { (&*self.place.0).into() },
            topic_id: route.topic_id.filter(|_| by_id).unwrap_or_default(),
            partitions: vec![partition],
        }
    }
}

impl Iterator for Fetcher<'_> {
    type Item = Result<Fetched>;

    /// The next batches of any of the partitions; None when all ranges were fetched.
    ///
    /// # Errors
    /// Errors that do not pass within [`retry_timeout`](crate::ClientOptions::retry_timeout), among them that of a range that ends
    /// after the log does. Without retries: the log does not have an offset, was truncated, or is another topic's.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(fetched) = self.ready.pop_front() {
                return Some(Ok(fetched));
            }
            if let Some(error) = self.failure.take() {
                return Some(Err(error));
            }
            match self.step() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    self.pending.clear();
                    self.under_way.clear();
                    self.failure = Some(error);
                }
            }
        }
    }
}

impl Fetcher<'_> {
    /// Sends what can be sent and receives a response; false if there is nothing left to do.
    fn step(&mut self) -> Result<bool> {
        if let Err(error) = self.send() {
            self.failed(error)?;
        }
        let Some(UnderWay { address, sent, partitions }) = self.under_way.pop_front() else {
            return Ok(!self.pending.is_empty());
        };
        let connection = self.cluster.open_connection(&address).filter(|connection| connection.awaits(&sent));
        let Some(connection) = connection else {
            // Dropped for the response to a later request, such as for metadata: it is asked for again.
            self.pending.extend(partitions);
            return Ok(true);
        };
        let response = match connection.receive(sent) {
            Ok(response) => response,
            Err(error) => {
                self.pending.extend(partitions);
                self.failed(error)?;
                return Ok(true);
            }
        };
        self.take(&address, &response, partitions)?;
        // Under way while the caller uses the batches.
        if let Err(error) = self.send() {
            self.failed(error)?;
        }
        Ok(true)
    }

    /// Waits after an error that may pass, and has leaders looked up again.
    fn failed(&mut self, error: Error) -> Result<()> {
        if !error.is_retriable() || !self.backoff.pause() {
            return Err(error);
        }
        for partition in &self.pending {
            self.cluster.forget(&partition.place.0);
        }
        Ok(())
    }

    /// Sends a request to each leader that has none under way.
    fn send(&mut self) -> Result<()> {
        self.cluster.find_leaders(self.pending.iter().map(|partition| &partition.place.0))?;
        let mut by_leader: BTreeMap<Address, Vec<(Partition, Route)>> = BTreeMap::new();
        let mut error = None;
        for mut partition in std::mem::take(&mut self.pending) {
            match self.cluster.route(&partition.place.0, partition.place.1) {
                Ok(route) if self.under_way.iter().all(|one| one.address != route.address) => {
                    if let Err(other) = self.check_leader(&mut partition, &route) {
                        error.get_or_insert(other);
                        self.pending.push_back(partition);
                        continue;
                    }
                    by_leader.entry(route.address.clone()).or_default().push((partition, route));
                }
                Ok(_) => self.pending.push_back(partition),
                Err(other) => {
                    error.get_or_insert(other);
                    self.pending.push_back(partition);
                }
            }
        }
        for (address, asked) in by_leader {
            let sent = self.send_to(&address, &asked);
            let partitions = asked.into_iter().map(|(partition, _)| partition);
            match sent {
                Ok(sent) => {
                    self.under_way.push_back(UnderWay { address, sent, partitions: partitions.collect() });
                }
                Err(other) => {
                    error.get_or_insert(other);
                    self.pending.extend(partitions);
                }
            }
        }
        error.map_or(Ok(()), Err)
    }

    /// Checks that the topic is still the same, and that a new leader has what was fetched from the old one.
    fn check_leader(&mut self, partition: &mut Partition, route: &Route) -> Result<()> {
        let Partition { place, topic_id, asked_epoch, last_epoch, position, .. } = partition;
        if let (Some(first), Some(now)) = (*topic_id, route.topic_id)
            && first != now
        {
            return Err(Error::new(ErrorKind::TopicRecreated).of(&place.0, place.1));
        }
        *topic_id = topic_id.or(route.topic_id);
        let is_new = *asked_epoch >= 0 && route.epoch != *asked_epoch;
        if is_new
            && *last_epoch >= 0
            && self.cluster.connection(&route.address)?.version(ApiKey::Fetch)? < DIVERGING_EPOCH_SINCE
        {
            let end = self.cluster.end_of_leader_epoch(place, *last_epoch)?;
            if let Some(end) = end.filter(|end| end < position) {
                return Err(truncated(*position, end).of(&place.0, place.1));
            }
        }
        *asked_epoch = route.epoch;
        Ok(())
    }

    fn send_to(&mut self, address: &Address, asked: &[(Partition, Route)]) -> Result<Sent> {
        let options = self.options;
        // A broker that waits longer than a response may take would not be heard.
        let max_wait = options.max_wait.min(self.cluster.options.request_timeout / 2);
        let connection = self.cluster.connection(address)?;
        let newest = connection.version(ApiKey::Fetch)?;
        let has_ids = asked.iter().all(|(_, route)| route.topic_id.is_some());
        let newest = if has_ids { newest } else { newest.min(TOPIC_IDS_SINCE - 1) };
        let committed = options.isolation_level == IsolationLevel::ReadCommitted;
        connection.send_at_most(newest, |version| FetchRequest {
            max_wait_ms: i32::try_from(max_wait.as_millis()).unwrap_or(i32::MAX),
            min_bytes: 1,
            max_bytes: if version >= WHOLE_FIRST_BATCH_SINCE { options.max_bytes as i32 } else { i32::MAX },
            isolation_level: i8::from(committed && version >= 4),
            topics: asked.iter().map(|(partition, route)| partition.request(route, version)).collect(),
            ..Default::default()
        })
    }

    /// Takes a response apart. Partitions that are not done go back to the others.
    fn take(&mut self, address: &Address, response: &Response, partitions: Vec<Partition>) -> Result<()> {
        let read: FetchResponse<'_> = response.read()?;
        if let Some(connection) = self.cluster.open_connection(address) {
            connection.note_throttle(read.throttle_time_ms);
        }
        if read.error_code == 0 && read.responses.is_empty() && read.throttle_time_ms > 0 {
            // A quota is exceeded (`FetchContext.getThrottledResponse`).
            self.pending.extend(partitions);
            let awaited = "send records: a quota delays them".to_owned();
            let after = self.cluster.options.retry_timeout;
            return self.failed(Error::new(ErrorKind::Timeout { awaited, after }).at(response.broker()));
        }
        let answers = answers(response, &read, &partitions)?;
        // Only then is the end of the log the reason for an answer without records.
        let is_empty = answers.values().all(|answer| bytes_of(answer).is_empty());
        let mut retried = None;
        for mut partition in partitions {
            let place = partition.place.clone();
            let in_place = |error: Error| error.at(response.broker()).of(&place.0, place.1);
            let outcome = match answers.get(&place) {
                Some(answer) => self.take_answer(response, &mut partition, answer, is_empty),
                None => Err(Error::protocol("Fetch: the answer lacks the partition")),
            };
            match outcome.map_err(in_place)? {
                Outcome::Done => self.backoff.succeeded(),
                Outcome::Progress => {
                    self.backoff.succeeded();
                    self.pending.push_back(partition);
                }
                Outcome::Starved => self.pending.push_front(partition),
                Outcome::Retry(error) => {
                    self.cluster.forget(&place.0);
                    retried = Some(in_place(error));
                    self.pending.push_back(partition);
                }
            }
        }
        retried.map_or(Ok(()), |error| self.failed(error))
    }

    /// Takes the answer about a partition, and moves its position.
    fn take_answer(
        &mut self,
        response: &Response,
        partition: &mut Partition,
        answer: &PartitionData<'_>,
        is_empty: bool,
    ) -> Result<Outcome> {
        let position = partition.position;
        if answer.error_code == ErrorCode::OffsetOutOfRange.code() {
            return Err(self.out_of_range(partition));
        }
        if let Err(error) = Error::check("Fetch", answer.error_code) {
            return if error.is_retriable() { Ok(Outcome::Retry(error)) } else { Err(error) };
        }
        if answer.diverging_epoch.end_offset >= 0 {
            return Err(truncated(position, answer.diverging_epoch.end_offset));
        }
        let records = bytes_of(answer);
        if records.is_empty() {
            return self.without_records(partition, answer, is_empty);
        }
        let whole = whole_batches(records, position, partition.end)?;
        if whole.needed > 0 {
            return self.grow(partition, records.len() as u64 + whole.needed).map(|()| Outcome::Starved);
        }
        (partition.position, partition.last_epoch) = (whole.next_position, whole.leader_epoch);
        if whole.start < whole.end {
            let aborted = answer.aborted_transactions.iter().flatten();
            self.ready.push_back(Fetched {
                topic: Arc::clone(&partition.place.0),
                partition: partition.place.1,
                position,
                next_position: whole.next_position,
                records: response.share(&records[whole.start..whole.end]),
                high_watermark: answer.high_watermark,
                last_stable_offset: answer.last_stable_offset,
                log_start_offset: answer.log_start_offset,
                aborted_transactions: aborted.map(|one| (one.producer_id, one.first_offset)).collect(),
            });
        }
        Ok(if partition.position >= partition.end { Outcome::Done } else { Outcome::Progress })
    }

    /// The meaning of an answer without records: no room, the end of the range, or a log that ends before it.
    fn without_records(
        &mut self,
        partition: &Partition,
        answer: &PartitionData<'_>,
        is_empty: bool,
    ) -> Result<Outcome> {
        if !is_empty {
            return Ok(Outcome::Starved);
        }
        let committed = self.options.isolation_level == IsolationLevel::ReadCommitted;
        let readable = if committed && answer.last_stable_offset >= 0 {
            answer.last_stable_offset
        } else {
            answer.high_watermark
        };
        let Partition { position, end, .. } = *partition;
        let reason = if readable < end {
            format!("its log is readable up to {readable}")
        } else if self.is_remote(partition)? {
            "they are in remote storage".to_owned()
        } else {
            return Ok(Outcome::Done);
        };
        let awaited = format!("send records of offsets {position} to {end} (exclusive): {reason}");
        let after = self.cluster.options.retry_timeout;
        Ok(Outcome::Retry(Error::new(ErrorKind::Timeout { awaited, after })))
    }

    /// True if the next offset is in remote storage. A leader that waits for it in vain (`remote.fetch.max.wait.ms`)
    /// answers without records and without an error (`DelayedRemoteFetch.onComplete`).
    fn is_remote(&mut self, partition: &Partition) -> Result<bool> {
        let place = &partition.place;
        let level = IsolationLevel::ReadUncommitted;
        match self.cluster.list_offsets(std::slice::from_ref(place), OffsetSpec::EarliestLocal, level) {
            Ok(found) => Ok(found[place].is_some_and(|start| partition.position < start)),
            Err(error) if matches!(error.kind(), ErrorKind::UnsupportedVersion(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Asks for more bytes of a partition, whose next batch was cut: brokers before Kafka 0.10.1 send no whole ones then.
    fn grow(&self, partition: &mut Partition, needed: u64) -> Result<()> {
        let limit = self.cluster.options.max_response_bytes.min(i32::MAX as usize);
        match usize::try_from(needed).ok().filter(|&bytes| bytes <= limit && bytes > partition.max_bytes) {
            // At least twice as many, so that a broker which names a little more each time is not asked forever.
            Some(bytes) => partition.max_bytes = bytes.max(2 * partition.max_bytes).min(limit),
            None => {
                let why = format!(
                    "a batch of at least {needed} bytes at offset {}: expected at most {limit}",
                    partition.position
                );
                return Err(Error::protocol(why));
            }
        }
        Ok(())
    }

    /// The error of an offset that the log does not have, with the offsets that it has.
    fn out_of_range(&mut self, partition: &Partition) -> Error {
        let mut bound = |spec| {
            let found = self.cluster.list_offsets(
                std::slice::from_ref(&partition.place),
                spec,
                IsolationLevel::ReadUncommitted,
            );
            found.ok().and_then(|found| found.get(&partition.place).copied().flatten())
        };
        let (log_start, log_end) = (bound(OffsetSpec::Earliest), bound(OffsetSpec::Latest));
        Error::new(ErrorKind::OffsetOutOfRange { offset: partition.position, log_start, log_end })
    }
}

/// The answers about the partitions that were asked for, one for each.
fn answers<'r, 'a>(
    response: &Response,
    read: &'r FetchResponse<'a>,
    partitions: &[Partition],
) -> Result<BTreeMap<TopicPartition, &'r PartitionData<'a>>> {
    let at = |error: Error| error.at(response.broker());
    Error::check("Fetch", read.error_code).map_err(at)?;
    let by_id = response.version() >= TOPIC_IDS_SINCE;
    let asked: HashMap<(TopicKey<'_>, i32), &Partition> =
        partitions.iter().map(|one| ((one.key(by_id), one.place.1), one)).collect();
    let mut answers = BTreeMap::new();
    for topic in &read.responses {
        let key = if by_id { TopicKey::Id(topic.topic_id) } else { TopicKey::Name(&topic.topic) };
        for answer in &topic.partitions {
            let index = answer.partition_index;
            let Some(asked) = asked.get(&(key, index)) else {
                return Err(at(Error::protocol("Fetch: was not asked for").of(&topic.topic, index)));
            };
            if answers.insert(asked.place.clone(), answer).is_some() {
                return Err(at(Error::protocol("Fetch: a second answer").of(&asked.place.0, index)));
            }
        }
    }
    Ok(answers)
}

fn bytes_of<'a>(answer: &'a PartitionData<'_>) -> &'a [u8] {
    answer.records.as_ref().map_or(&[], |records| records.as_bytes())
}

fn truncated(offset: i64, diverges_at: i64) -> Error {
    Error::new(ErrorKind::Truncated { offset, diverges_at })
}
