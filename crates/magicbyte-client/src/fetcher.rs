//! Ranges of partitions, fetched from their leaders.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use magicbyte::state::IsolationLevel;
use magicbyte_broker::ErrorCode;
use magicbyte_protocol::message::ApiKey;
use magicbyte_protocol::message::body::fetch_response::PartitionData;
use magicbyte_protocol::message::body::{FetchRequest, FetchResponse};

use crate::TopicPartition;
use crate::address::Address;
use crate::backoff::Backoff;
use crate::cluster::{Cluster, Route};
use crate::connection::{Response, Sent};
use crate::error::{Error, ErrorKind, Result};
use crate::fetch_options::{FetchOptions, FetchRange};
use crate::fetched::{Fetched, corrupt, whole_batches};
use crate::frames::Frames;
use crate::offsets::OffsetSpec;
use crate::partition::{
    DIVERGING_EPOCH_SINCE, Partition, TOPIC_IDS_SINCE, answers, bytes_of, is_behind, requested,
};
use crate::ready::Ready;

/// The version since which a response has a limit of its own, which its first batch may exceed (KIP-74).
const WHOLE_FIRST_BATCH_SINCE: i16 = 3;
/// The version since which a leader names the closest replica (KIP-392).
const RACKS_SINCE: i16 = 11;
/// The version since which a broker answers at once when a quota is exceeded, and the client waits (KIP-219).
const CLIENT_WAITS_SINCE: i16 = 8;
/// In order, the partitions that are asked for at once, the first included.
const PARTITIONS_AHEAD: usize = 100;
/// In order, the brokers with a response under way, or in memory for a later partition.
const BROKERS_AHEAD: usize = 8;

/// Fetches ranges of partitions. One request names all partitions of a broker, and the next one is under way while the
/// batches of the last are used.
///
/// Memory: one response, with [`FetchOptions::in_order`] one of each of a few brokers, and what the caller keeps of earlier
/// ones, whose memory is used again once it is dropped. A response that is under way stays with the system.
/// After an error, the fetcher ends.
#[derive(Debug)]
pub struct Fetcher<'c> {
    cluster: &'c mut Cluster,
    options: FetchOptions,
    /// The partitions that are not done; those that got records last are at the end, since a response may be too small for all.
    pending: VecDeque<Partition>,
    /// Requests that were sent, oldest first, each to another broker.
    under_way: VecDeque<UnderWay>,
    ready: Ready,
    frames: Frames,
    /// The error that ended it, until the caller gets it.
    failure: Option<Error>,
    /// True if nothing more is asked for.
    is_ending: bool,
    backoff: Backoff,
}

#[derive(Debug)]
struct UnderWay {
    address: Address,
    sent: Sent,
    partitions: Vec<Partition>,
}

impl UnderWay {
    fn first(&self) -> usize {
        self.partitions.iter().map(|partition| partition.rank).min().unwrap_or(usize::MAX)
    }
}

/// The meaning of an answer about a partition.
enum Outcome {
    /// The range was fetched.
    Done,
    /// The range goes on.
    Progress,
    /// The response had no room for the partition.
    Starved,
    /// The leader has named a closer replica.
    Redirected,
    /// The log ends before the range does, or a leader waits for remote storage.
    Wait(Error),
    /// The same request may succeed later or at another leader.
    Retry(Error),
}

impl Cluster {
    /// Fetches ranges of partitions. Empty ranges are done at once. A range that begins where an earlier one of this
    /// cluster has ended is its continuation: the log must still have what was fetched before.
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
        for (index, FetchRange { topic, partition, start, end }) in ranges.into_iter().enumerate() {
            if start < 0 {
                return Err(
                    Error::options(format!("offset {start}: expected 0 or more")).of(&topic, partition)
                );
            }
            if !places.insert((Arc::clone(&topic), partition)) {
                return Err(Error::options("the partition is listed twice").of(&topic, partition));
            }
            if start < end {
                let place = (topic, partition);
                let before = self.read_positions.get(&place);
                let range = start..end;
                let mut partition = Partition::new(place, range, options.max_partition_bytes, before);
                partition.rank = if options.in_order { index } else { 0 };
                pending.push_back(partition);
            }
        }
        let backoff = Backoff::new(self.options.retry_timeout);
        let (under_way, ready) = (VecDeque::new(), Ready::default());
        // With the fields around the records.
        let frames = Frames::new(2 * options.max_bytes);
        Ok(Fetcher {
            cluster: self,
            options,
            pending,
            under_way,
            ready,
            frames,
            failure: None,
            is_ending: false,
            backoff,
        })
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
            if let Some(fetched) = self.ready.pop(self.first()) {
                // The broker of the next partition may have waited for this.
                if self.options.in_order
                    && self.ready.is_empty()
                    && let Err(error) = self.send()
                {
                    self.fail(error);
                }
                return Some(Ok(fetched));
            }
            if let Some(error) = self.failure.take() {
                return Some(Err(error));
            }
            match self.step() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => self.fail(error),
            }
        }
    }
}

impl Fetcher<'_> {
    /// Asks for nothing more: the iteration ends after the batches that are under way, so that none is fetched in vain.
    pub fn finish(&mut self) {
        self.is_ending = true;
    }

    /// The first partition in the order of delivery that is not done.
    fn first(&self) -> usize {
        let under_way = self.under_way.iter().map(UnderWay::first);
        self.pending.iter().map(|partition| partition.rank).chain(under_way).min().unwrap_or(usize::MAX)
    }

    /// Ends with an error, after the batches that come before it.
    fn fail(&mut self, error: Error) {
        self.ready.drop_after(self.first());
        self.pending.clear();
        self.under_way.clear();
        self.failure = Some(error);
    }

    /// Sends what can be sent and receives a response; false if there is nothing left to do.
    fn step(&mut self) -> Result<bool> {
        self.send()?;
        // The oldest of those with the first partition.
        let next = self.under_way.iter().enumerate().min_by_key(|(_, one)| one.first()).map(|(at, _)| at);
        let Some(UnderWay { address, sent, partitions }) = next.and_then(|at| self.under_way.remove(at))
        else {
            return Ok(!self.is_ending && !self.pending.is_empty());
        };
        let connection = self.cluster.open_connection(&address).filter(|connection| connection.awaits(&sent));
        let Some(connection) = connection else {
            // Dropped for the response to a later request, such as for metadata: it is asked for again.
            self.pending.extend(partitions);
            return Ok(true);
        };
        match connection.receive_in(&self.frames, sent) {
            Ok(response) => self.take(&address, &response, partitions)?,
            Err(error) => self.retry_later(partitions, error)?,
        }
        // Under way while the caller uses the batches.
        self.send()?;
        Ok(true)
    }

    /// Puts partitions back after an error that may pass, waits, and has their leaders looked up again.
    fn retry_later(&mut self, partitions: Vec<Partition>, error: Error) -> Result<()> {
        if !error.is_retriable() {
            return Err(error);
        }
        let is_final = self.put_back(partitions);
        if self.is_ending {
            return Ok(());
        }
        // Other partitions may succeed all the time.
        if is_final || !self.cluster.pause(&mut self.backoff, &error) {
            return Err(error);
        }
        Ok(())
    }

    /// Puts back partitions that have failed; true if one has done so for too long.
    fn put_back(&mut self, mut partitions: Vec<Partition>) -> bool {
        let mut is_final = false;
        for partition in &mut partitions {
            is_final |= partition.has_failed_for(self.cluster.options.retry_timeout);
            partition.replica = None;
            self.cluster.forget(&partition.place.0);
        }
        self.pending.extend(partitions);
        is_final
    }

    /// Sends a request to each leader that has none under way.
    fn send(&mut self) -> Result<()> {
        if self.is_ending {
            return Ok(());
        }
        if let Err(error) = self.cluster.find_leaders(self.pending.iter().map(|one| &one.place.0)) {
            let partitions = std::mem::take(&mut self.pending).into();
            return self.retry_later(partitions, error);
        }
        self.pending.make_contiguous().sort_by_key(|partition| partition.rank);
        let first = self.first();
        let mut ahead: BTreeSet<Address> = self.ready.waiting(first).cloned().collect();
        let waiting = ahead.clone();
        ahead.extend(self.under_way.iter().map(|one| one.address.clone()));
        let mut by_broker: BTreeMap<Address, Vec<(Partition, Route)>> = BTreeMap::new();
        let mut failed: Option<(Vec<Partition>, Error)> = None;
        let mut fail = |partition, error| failed.get_or_insert_with(|| (Vec::new(), error)).0.push(partition);
        for mut partition in std::mem::take(&mut self.pending) {
            match partition.route(self.cluster) {
                Ok(route)
                    if self.under_way.iter().all(|one| one.address != route.address)
                        && (partition.rank == first
                            || partition.rank - first < PARTITIONS_AHEAD
                                && !waiting.contains(&route.address)
                                && (ahead.contains(&route.address) || ahead.len() < BROKERS_AHEAD)) =>
                {
                    ahead.insert(route.address.clone());
                    match self.check_leader(&mut partition, &route) {
                        Ok(()) => {
                            by_broker.entry(route.address.clone()).or_default().push((partition, route));
                        }
                        Err(error) => fail(partition, error),
                    }
                }
                Ok(_) => self.pending.push_back(partition),
                Err(error) => fail(partition, error),
            }
        }
        for (address, asked) in by_broker {
            let sent = self.send_to(&address, &asked);
            let partitions = asked.into_iter().map(|(partition, _)| partition);
            match sent {
                Ok(sent) => {
                    self.under_way.push_back(UnderWay { address, sent, partitions: partitions.collect() });
                }
                Err(error) => failed.get_or_insert_with(|| (Vec::new(), error)).0.extend(partitions),
            }
        }
        failed.map_or(Ok(()), |(partitions, error)| self.retry_later(partitions, error))
    }

    /// Checks that the topic is still the same, and that a new leader has what was fetched from the old one.
    fn check_leader(&mut self, partition: &mut Partition, route: &Route) -> Result<()> {
        let Partition { place, read, asked_epoch, .. } = partition;
        if let (Some(first), Some(now)) = (read.topic_id, route.topic_id)
            && first != now
        {
            return Err(Error::new(ErrorKind::TopicRecreated).of(&place.0, place.1));
        }
        read.topic_id = read.topic_id.or(route.topic_id);
        if route.epoch != *asked_epoch
            && read.leader_epoch >= 0
            && self.cluster.connection(&route.address)?.version(ApiKey::Fetch)? < DIVERGING_EPOCH_SINCE
        {
            let end = self.cluster.end_of_leader_epoch(place, read.leader_epoch)?;
            if let Some(end) = end.filter(|&end| end < read.offset) {
                return Err(truncated(read.offset, end).of(&place.0, place.1));
            }
        }
        *asked_epoch = route.epoch;
        Ok(())
    }

    fn send_to(&mut self, address: &Address, asked: &[(Partition, Route)]) -> Result<Sent> {
        let options = self.options;
        let rack = self.cluster.options.rack.clone();
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
            topics: requested(asked, version),
            rack_id: if version >= RACKS_SINCE { (&*rack).into() } else { "".into() },
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
            return self.wait_for_quota(response, read.throttle_time_ms, partitions);
        }
        let answers = answers(response, &read, &partitions)?;
        // Only then is the end of the log the reason for an answer without records.
        let is_empty = answers.values().all(|answer| bytes_of(answer).is_empty());
        let mut retried: Option<(Vec<Partition>, Error)> = None;
        let mut waiting = None;
        for mut partition in partitions {
            let place = partition.place.clone();
            let in_place = |error: Error| error.at(response.broker()).of(&place.0, place.1);
            let outcome = match answers.get(&place) {
                Some(answer) => self.take_answer((address, response), &mut partition, answer, is_empty),
                None => Err(Error::protocol("Fetch: the answer lacks the partition")),
            };
            match outcome.map_err(in_place)? {
                Outcome::Done => self.backoff.succeeded(),
                Outcome::Progress => {
                    self.backoff.succeeded();
                    partition.succeeded();
                    self.pending.push_back(partition);
                }
                Outcome::Starved => self.pending.push_front(partition),
                Outcome::Redirected => self.pending.push_back(partition),
                Outcome::Wait(error) => {
                    self.cluster.forget(&place.0);
                    partition.replica = None;
                    self.pending.push_back(partition);
                    waiting.get_or_insert(in_place(error));
                }
                Outcome::Retry(error) => {
                    retried.get_or_insert_with(|| (Vec::new(), in_place(error))).0.push(partition);
                }
            }
        }
        match (retried, waiting) {
            (Some((partitions, error)), _) => self.retry_later(partitions, error),
            (None, Some(error)) if !self.is_ending && !self.cluster.pause(&mut self.backoff, &error) => {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// Waits as long as a broker wants that sends nothing because of a quota (`FetchContext.getThrottledResponse`).
    fn wait_for_quota(
        &mut self,
        response: &Response,
        throttle_time_ms: i32,
        mut partitions: Vec<Partition>,
    ) -> Result<()> {
        let after = self.cluster.options.retry_timeout;
        let is_final = partitions.iter_mut().any(|partition| partition.has_failed_for(after));
        self.pending.extend(partitions);
        let client_waits = response.version() >= CLIENT_WAITS_SINCE;
        let told = if client_waits { throttle_time_ms.unsigned_abs() } else { 0 };
        if self.is_ending || !is_final && self.backoff.pause_for(Duration::from_millis(told.into())) {
            return Ok(());
        }
        let awaited = "send records: a quota delays them".to_owned();
        Err(Error::new(ErrorKind::Timeout { awaited, after }).at(response.broker()))
    }

    /// Takes the answer about a partition, and moves its position.
    fn take_answer(
        &mut self,
        (address, response): (&Address, &Response),
        partition: &mut Partition,
        answer: &PartitionData<'_>,
        is_empty: bool,
    ) -> Result<Outcome> {
        let position = partition.read.offset;
        if partition.replica.is_some() && is_behind(answer) {
            let awaited = format!("have offset {position} as the closest replica");
            let after = self.cluster.options.retry_timeout;
            return Ok(Outcome::Retry(Error::new(ErrorKind::Timeout { awaited, after })));
        }
        if answer.error_code == ErrorCode::OffsetOutOfRange.code() {
            return self.out_of_range(partition);
        }
        if let Err(error) = Error::check("Fetch", answer.error_code) {
            return if error.is_retriable() { Ok(Outcome::Retry(error)) } else { Err(error) };
        }
        if answer.diverging_epoch.end_offset >= 0 {
            return Err(truncated(position, answer.diverging_epoch.end_offset));
        }
        // Only a leader names another replica, or two could do so forever.
        let closest = answer.preferred_read_replica;
        if partition.replica.is_none()
            && !self.cluster.options.rack.is_empty()
            && self.cluster.address_of(closest).is_some()
        {
            partition.replica = Some(closest);
            return Ok(Outcome::Redirected);
        }
        let records = bytes_of(answer);
        if records.is_empty() {
            return self.without_records(partition, answer, is_empty);
        }
        let whole = whole_batches(records, position, partition.end)?;
        if whole.needed > 0 {
            return self.grow(partition, records.len() as u64 + whole.needed).map(|()| Outcome::Starved);
        }
        if (0..=whole.last_offset).contains(&answer.high_watermark) {
            self.check_end(partition, whole.last_offset)?;
        }
        partition.read.offset = whole.next_position;
        partition.read.leader_epoch = whole.leader_epoch;
        partition.has_read = true;
        self.cluster.read_positions.insert(partition.place.clone(), partition.read);
        if whole.start < whole.end {
            let aborted = answer.aborted_transactions.iter().flatten();
            let fetched = Fetched {
                topic: Arc::clone(&partition.place.0),
                partition: partition.place.1,
                position,
                next_position: whole.next_position,
                records: response.share(&records[whole.start..whole.end]),
                high_watermark: answer.high_watermark,
                last_stable_offset: answer.last_stable_offset,
                log_start_offset: answer.log_start_offset,
                aborted_transactions: aborted.map(|one| (one.producer_id, one.first_offset)).collect(),
            };
            self.ready.push(partition.rank, address.clone(), fetched);
        }
        Ok(if partition.read.offset >= partition.end { Outcome::Done } else { Outcome::Progress })
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
        let (position, end) = (partition.read.offset, partition.end);
        let reason = if readable < end {
            format!("its log is readable up to {readable}")
        } else if self.is_remote(partition)? {
            "they are in remote storage".to_owned()
        } else {
            return Ok(Outcome::Done);
        };
        let awaited = format!("send records of offsets {position} to {end} (exclusive): {reason}");
        let after = self.cluster.options.retry_timeout;
        Ok(Outcome::Wait(Error::new(ErrorKind::Timeout { awaited, after })))
    }

    /// True if the next offset is in remote storage. A leader that waits for it in vain (`remote.fetch.max.wait.ms`)
    /// answers without records and without an error (`DelayedRemoteFetch.onComplete`).
    fn is_remote(&mut self, partition: &Partition) -> Result<bool> {
        match self.bound(&partition.place, OffsetSpec::EarliestLocal) {
            Ok(found) => Ok(found.is_some_and(|start| partition.read.offset < start)),
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
                    partition.read.offset
                );
                return Err(Error::protocol(why));
            }
        }
        Ok(())
    }

    /// Checks a batch that ends at this offset against the end of the log. The high watermark in its response may be
    /// older than its records (`Partition.readRecords`), but no leader sends what is beyond the one that it has now. No
    /// checksum covers the base offset of a batch: a wrong one would hide the records of others.
    fn check_end(&mut self, partition: &Partition, found: i64) -> Result<()> {
        let end = self.bound(&partition.place, OffsetSpec::Latest)?;
        match end {
            Some(end) if end <= found => {
                let (min, max) = (partition.read.offset, end - 1);
                let error = magicbyte::ErrorKind::OffsetOutOfRange { found, min, max };
                Err(corrupt(partition.read.offset, error.into()))
            }
            _ => Ok(()),
        }
    }

    fn bound(&mut self, place: &TopicPartition, spec: OffsetSpec) -> Result<Option<i64>> {
        let level = IsolationLevel::ReadUncommitted;
        let found = self.cluster.list_offsets(std::slice::from_ref(place), spec, level)?;
        Ok(found.get(place).copied().flatten())
    }

    /// An offset that the log does not have: an error with the offsets that it has, or the range begins with these.
    fn out_of_range(&mut self, partition: &mut Partition) -> Result<Outcome> {
        let mut bound = |spec| self.bound(&partition.place, spec).ok().flatten();
        let (log_start, log_end) = (bound(OffsetSpec::Earliest), bound(OffsetSpec::Latest));
        let offset = partition.read.offset;
        let error = Error::new(ErrorKind::OffsetOutOfRange { offset, log_start, log_end });
        match log_start.filter(|&start| start > offset) {
            Some(start) if self.options.from_log_start && !partition.has_read => {
                partition.read.offset = start.min(partition.end);
                // A broker whose log begins later each time is not asked forever.
                Ok(if start < partition.end { Outcome::Wait(error) } else { Outcome::Done })
            }
            _ => Err(error),
        }
    }
}

fn truncated(offset: i64, diverges_at: i64) -> Error {
    Error::new(ErrorKind::Truncated { offset, diverges_at })
}
