//! A running cluster as a source: its partitions are fetched ahead of use, by threads that know no Python.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use magicbyte::state::IsolationLevel;
use magicbyte_client::{
    ClientOptions, Cluster, Error, ErrorKind, FetchOptions, FetchRange, OffsetSpec, Result, TopicPartition,
};
use magicbyte_log::internals::Process;
use magicbyte_log::{Answer, Answers, LivePartition};

/// The maximum number of answers that wait for their reader. With the one that is read and the one that is received,
/// this bounds the memory of a read.
const ANSWERS_AHEAD: usize = 2;
/// The size of an answer, in bytes, unless a single batch is larger. An answer should still be in the cache when it is
/// decoded.
const ANSWER_BYTES: usize = 2 << 20;
/// The maximum number of clusters that are kept connected for the next read.
const MAX_IDLE: usize = 4;
/// The time between two looks at signals, such as that of Ctrl-C.
const SIGNALS_EVERY: Duration = Duration::from_millis(100);

/// Connections to one cluster. Several reads may be under way at the same time, each with connections of its own.
#[derive(Debug)]
pub(super) struct Clusters {
    bootstrap_servers: String,
    options: ClientOptions,
    idle: Mutex<Idle>,
}

/// Clusters for the next reads, and the process whose connections they have: a forked child would answer for its parent.
#[derive(Debug)]
struct Idle {
    process: Process,
    clusters: Vec<Cluster>,
}

impl Clusters {
    /// Connects, so that options and addresses that are of no use are known at once.
    pub(super) fn connect(bootstrap_servers: String, options: ClientOptions) -> Result<Self> {
        let idle = Idle { process: Process::current(), clusters: Vec::new() };
        let clusters = Self { bootstrap_servers, options, idle: Mutex::new(idle) };
        clusters.give_back(clusters.take()?);
        Ok(clusters)
    }

    pub(super) fn bootstrap_servers(&self) -> &str {
        &self.bootstrap_servers
    }

    fn take(&self) -> Result<Cluster> {
        self.idle()
            .clusters
            .pop()
            .map_or_else(|| Cluster::connect(&self.bootstrap_servers, self.options.clone()), Ok)
    }

    /// Keeps a cluster of which no response is under way.
    fn give_back(&self, cluster: Cluster) {
        let mut idle = self.idle();
        if idle.clusters.len() < MAX_IDLE {
            idle.clusters.push(cluster);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if !idle.process.is_current() {
            *idle = Idle { process: Process::current(), clusters: Vec::new() };
        }
        idle
    }

    /// Works with a cluster on a thread of its own, so that Ctrl-C ends the wait.
    pub(super) fn with<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&mut Cluster) -> Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let (done, result) = sync_channel(1);
        let clusters = Arc::clone(self);
        start(move || {
            let worked = clusters.take().and_then(|mut cluster| {
                let worked = work(&mut cluster);
                clusters.give_back(cluster);
                worked
            });
            // Nobody waits any more after an interrupt.
            let _ = done.send(worked);
        })?;
        receive(&result)?.map_err(to_io)
    }
}

fn start(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name("magicbyte-fetch".to_owned()).spawn(work).map(drop)
}

/// Waits for a thread. Python's signal handlers run meanwhile, and their exception ends the wait.
fn receive<T>(results: &Receiver<T>) -> io::Result<T> {
    loop {
        match results.recv_timeout(SIGNALS_EVERY) {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Timeout) => {
                let handled = Python::try_attach(|py| py.check_signals());
                handled.unwrap_or(Ok(())).map_err(io::Error::other)?;
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other("a fetching thread panicked: please report this"));
            }
        }
    }
}

/// An error of a cluster as one of the system, of a kind that has a class in Python.
fn to_io(error: Error) -> io::Error {
    let kind = match error.kind() {
        ErrorKind::Timeout { .. } => io::ErrorKind::TimedOut,
        ErrorKind::Security(_) => io::ErrorKind::PermissionDenied,
        ErrorKind::InvalidOptions(_) => io::ErrorKind::InvalidInput,
        _ => io::ErrorKind::ConnectionAborted,
    };
    io::Error::new(kind, error.to_string())
}

/// A partition of a cluster.
#[derive(Clone, Debug)]
pub(super) struct ClusterPartition {
    pub(super) clusters: Arc<Clusters>,
    pub(super) place: TopicPartition,
}

impl ClusterPartition {
    fn list_offsets<const N: usize>(
        &self,
        specs: [OffsetSpec; N],
        level: IsolationLevel,
    ) -> io::Result<[Option<i64>; N]> {
        let place = self.place.clone();
        self.clusters.with(move |cluster| {
            let mut offsets = [None; N];
            for (offset, spec) in offsets.iter_mut().zip(specs) {
                let listed = cluster.list_offsets(std::slice::from_ref(&place), spec, level)?;
                *offset = listed.get(&place).copied().flatten();
            }
            Ok(offsets)
        })
    }
}

impl LivePartition for ClusterPartition {
    fn offsets(&self, isolation_level: IsolationLevel) -> io::Result<Range<i64>> {
        let [start, end] = self.list_offsets([OffsetSpec::Earliest, OffsetSpec::Latest], isolation_level)?;
        Ok(start.unwrap_or(0)..end.unwrap_or(0))
    }

    fn offset_for_timestamp(&self, timestamp: i64) -> io::Result<Option<i64>> {
        let specs = [OffsetSpec::Timestamp(timestamp)];
        self.list_offsets(specs, IsolationLevel::ReadUncommitted).map(|[offset]| offset)
    }

    fn fetch(&self, offsets: Range<i64>, isolation_level: IsolationLevel) -> io::Result<Answers> {
        let (topic, partition) = self.place.clone();
        let range = FetchRange { topic, partition, start: offsets.start, end: offsets.end };
        let answers = AnswersAhead::begin(&self.clusters, vec![range], isolation_level, false)?;
        Ok(Box::new(answers.map(|next| next.map(|(_, answer)| answer)).fuse()))
    }
}

/// An answer with the index of its range, or the end.
type Sent = Option<io::Result<(usize, Answer)>>;

/// Fetches ranges in their order, as long as somebody reads the answers.
fn fetch_all(
    clusters: &Clusters,
    ranges: Vec<FetchRange>,
    options: FetchOptions,
    answers: &SyncSender<Sent>,
) -> Result<()> {
    let places = ranges.iter().map(|range| (Arc::clone(&range.topic), range.partition));
    let indexes: HashMap<TopicPartition, usize> = places.zip(0..).collect();
    let mut cluster = clusters.take()?;
    for fetched in cluster.fetch(ranges, options)? {
        let fetched = fetched?;
        let index = indexes[&(fetched.topic, fetched.partition)];
        let answer = Answer {
            position: fetched.position,
            next_position: fetched.next_position,
            records: fetched.records,
            aborted_transactions: fetched.aborted_transactions,
        };
        if answers.send(Some(Ok((index, answer)))).is_err() {
            return Ok(());
        }
    }
    clusters.give_back(cluster);
    let _ = answers.send(None);
    Ok(())
}

/// The answers that a thread fetches ahead. The thread ends soon after this is dropped.
#[derive(Debug)]
pub(super) struct AnswersAhead {
    answers: Receiver<Sent>,
    process: Process,
}

impl AnswersAhead {
    /// Begins to fetch ranges in their order; see [`FetchOptions::from_log_start`].
    pub(super) fn begin(
        clusters: &Arc<Clusters>,
        ranges: Vec<FetchRange>,
        isolation_level: IsolationLevel,
        from_log_start: bool,
    ) -> io::Result<Self> {
        let options = FetchOptions {
            isolation_level,
            max_bytes: ANSWER_BYTES,
            max_partition_bytes: ANSWER_BYTES,
            in_order: true,
            from_log_start,
            ..FetchOptions::default()
        };
        let (sender, answers) = sync_channel(ANSWERS_AHEAD);
        let clusters = Arc::clone(clusters);
        start(move || {
            if let Err(error) = fetch_all(&clusters, ranges, options, &sender) {
                let _ = sender.send(Some(Err(to_io(error))));
            }
        })?;
        Ok(Self { answers, process: Process::current() })
    }
}

impl Iterator for AnswersAhead {
    type Item = io::Result<(usize, Answer)>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.process.is_current() {
            let why = "the thread that fetches is in the process that began the read, which has forked since";
            return Some(Err(io::Error::other(why)));
        }
        receive(&self.answers).transpose().map(|received| received.and_then(|answer| answer))
    }
}
