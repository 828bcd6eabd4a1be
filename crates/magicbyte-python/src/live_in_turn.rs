//! Partitions of a cluster that are read one after the other: while one is read, the next ones are fetched.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use magicbyte::state::IsolationLevel;
use magicbyte_client::{Cluster, FetchRange, OffsetSpec, Result, TopicPartition};
use magicbyte_log::{Answer, Answers, LivePartition, LogResult, PartitionLog};

use crate::arguments::Millis;
use crate::live::{AnswersAhead, Clusters};
use crate::log::PyPartitionReader;
use crate::view::parse_name;
use crate::{docs::docstring, panics};

/// The range that is read of a partition.
#[derive(Debug)]
struct Turn {
    place: TopicPartition,
    offsets: (Option<i64>, Option<i64>),
    start_timestamp: Option<i64>,
}

/// The offsets of a partition when the read begins.
#[derive(Clone, Debug)]
struct Listed {
    log: Range<i64>,
    /// The first offset of the start timestamp.
    first_late: Option<i64>,
}

/// A read of several partitions.
#[derive(Debug)]
struct Turns {
    clusters: Arc<Clusters>,
    turns: Vec<Turn>,
    isolation_level: IsolationLevel,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    listed: Option<Vec<Listed>>,
    running: Option<Running>,
}

/// A fetch of the partitions from `first` on.
#[derive(Debug)]
struct Running {
    answers: AnswersAhead,
    first: usize,
    /// The partition that is read.
    turn: usize,
    /// An answer about a later partition.
    waiting: Option<(usize, Answer)>,
}

impl Turns {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The offsets of a partition; those of all partitions are asked for at once.
    fn listed(self: &Arc<Self>, index: usize) -> io::Result<Listed> {
        let mut state = self.state();
        if state.listed.is_none() {
            let turns = Arc::clone(self);
            state.listed = Some(self.clusters.with(move |cluster| turns.list(cluster))?);
        }
        let listed = state.listed.as_ref().and_then(|listed| listed.get(index));
        listed.cloned().ok_or_else(|| io::Error::other("no such partition in the read"))
    }

    fn list(&self, cluster: &mut Cluster) -> Result<Vec<Listed>> {
        let places: Vec<_> = self.turns.iter().map(|turn| turn.place.clone()).collect();
        let starts = cluster.list_offsets(&places, OffsetSpec::Earliest, self.isolation_level)?;
        let ends = cluster.list_offsets(&places, OffsetSpec::Latest, self.isolation_level)?;
        let mut by_time: BTreeMap<i64, Vec<TopicPartition>> = BTreeMap::new();
        for turn in &self.turns {
            if let Some(timestamp) = turn.start_timestamp {
                by_time.entry(timestamp).or_default().push(turn.place.clone());
            }
        }
        let mut first_late = BTreeMap::new();
        for (timestamp, places) in by_time {
            let level = IsolationLevel::ReadUncommitted;
            first_late.extend(cluster.list_offsets(&places, OffsetSpec::Timestamp(timestamp), level)?);
        }
        let found = |offsets: &BTreeMap<_, _>, place| offsets.get(place).copied().flatten();
        let listed = places.iter().map(|place| Listed {
            log: found(&starts, place).unwrap_or(0)..found(&ends, place).unwrap_or(0),
            first_late: found(&first_late, place),
        });
        Ok(listed.collect())
    }

    /// The ranges of the partitions from `first` on, as their readers ask for them.
    fn ranges(self: &Arc<Self>, first: usize) -> LogResult<Vec<FetchRange>> {
        let ranges = self.turns.iter().enumerate().skip(first).map(|(index, turn)| {
            let (topic, partition) = &turn.place;
            let live = InTurn { turns: Arc::clone(self), index };
            let log = PartitionLog::of_cluster("", topic, *partition, Arc::new(live));
            let first_late = match turn.start_timestamp {
                Some(timestamp) => Some(log.offset_for_timestamp(timestamp)?.unwrap_or(i64::MAX)),
                None => None,
            };
            let offsets = (turn.offsets.0.max(first_late), turn.offsets.1);
            let Range { start, end } = log.live_offsets(offsets, self.isolation_level)?.unwrap_or(0..0);
            Ok(FetchRange { topic: Arc::clone(topic), partition: *partition, start, end })
        });
        ranges.collect()
    }

    /// Begins to read a partition: what is fetched ahead goes on with it, or another fetch begins there.
    fn begin(self: &Arc<Self>, index: usize) -> io::Result<()> {
        if let Some(running) = self.state().running.as_mut().filter(|running| running.turn < index) {
            running.turn = index;
            return Ok(());
        }
        let ranges = self.ranges(index).map_err(io::Error::other)?;
        // Who names no start reads what there is, also if retention is faster.
        let from_log_start =
            self.turns.iter().all(|turn| turn.offsets.0.is_none() && turn.start_timestamp.is_none());
        let answers = AnswersAhead::begin(&self.clusters, ranges, self.isolation_level, from_log_start)?;
        self.state().running = Some(Running { answers, first: index, turn: index, waiting: None });
        Ok(())
    }

    /// The next answer about a partition, unless the fetch goes on with a later one.
    fn next(&self, index: usize) -> Option<io::Result<Answer>> {
        let state = &mut *self.state();
        let Some(running) = state.running.as_mut().filter(|running| running.turn == index) else {
            return Some(Err(io::Error::other("another partition of the read has been begun since")));
        };
        loop {
            let next = running.waiting.take().map(Ok).or_else(|| {
                let next = running.answers.next()?;
                Some(next.map(|(at, answer)| (running.first + at, answer)))
            });
            match next {
                Some(Ok((about, answer))) if about == index => return Some(Ok(answer)),
                // The rest of a partition that nobody wants any more.
                Some(Ok((about, _))) if about < index => {}
                Some(Ok(later)) => {
                    running.waiting = Some(later);
                    return None;
                }
                Some(Err(error)) => return Some(Err(error)),
                None => return None,
            }
        }
    }

    /// Ends the fetch, unless it goes on with a later partition.
    fn end(&self, index: usize) {
        let state = &mut *self.state();
        if state.running.as_ref().is_some_and(|one| one.turn == index && one.waiting.is_none()) {
            state.running = None;
        }
    }
}

/// One of the partitions of a read.
#[derive(Debug)]
struct InTurn {
    turns: Arc<Turns>,
    index: usize,
}

impl LivePartition for InTurn {
    fn offsets(&self, _: IsolationLevel) -> io::Result<Range<i64>> {
        self.turns.listed(self.index).map(|listed| listed.log)
    }

    fn offset_for_timestamp(&self, _: i64) -> io::Result<Option<i64>> {
        self.turns.listed(self.index).map(|listed| listed.first_late)
    }

    fn fetch(&self, _: Range<i64>, _: IsolationLevel) -> io::Result<Answers> {
        self.turns.begin(self.index)?;
        let answers = InTurn { turns: Arc::clone(&self.turns), index: self.index };
        Ok(Box::new(AnswersInTurn(answers).fuse()))
    }
}

/// The answers about one of the partitions. Who drops them before their end has no use for later partitions, either.
struct AnswersInTurn(InTurn);

impl Iterator for AnswersInTurn {
    type Item = io::Result<Answer>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.turns.next(self.0.index)
    }
}

impl Drop for AnswersInTurn {
    fn drop(&mut self) {
        self.0.turns.end(self.0.index);
    }
}

/// Start and end offset, and start timestamp.
type Wanted = (Option<i64>, Option<i64>, Option<Millis>);

#[doc = docstring!(live, read_in_turn)]
#[pyfunction]
pub(super) fn read_in_turn(
    py: Python<'_>,
    readers: Vec<Py<PyPartitionReader>>,
    ranges: Vec<Wanted>,
    isolation_level: &str,
) -> PyResult<Vec<Py<PyPartitionReader>>> {
    panics::here();
    let isolation_level = parse_name(isolation_level)?;
    let wanted: Vec<_> = readers.iter().zip(ranges).collect();
    let of_one_cluster = wanted.chunk_by(|(one, _), (other, _)| match (&one.get().live, &other.get().live) {
        (Some(one), Some(other)) => Arc::ptr_eq(&one.clusters, &other.clusters),
        _ => false,
    });
    let mut in_turn = Vec::with_capacity(wanted.len());
    for group in of_one_cluster {
        let turns: Vec<_> = group.iter().filter_map(turn).collect();
        let Some(live) = group.first().and_then(|(reader, _)| reader.get().live.as_ref()) else {
            in_turn.extend(group.iter().map(|(reader, _)| reader.clone_ref(py)));
            continue;
        };
        let (clusters, state) = (Arc::clone(&live.clusters), Mutex::default());
        let turns = Arc::new(Turns { clusters, turns, isolation_level, state });
        for (index, (reader, _)) in group.iter().enumerate() {
            let live = InTurn { turns: Arc::clone(&turns), index };
            in_turn.push(Py::new(py, reader.get().read_from(Arc::new(live)))?);
        }
    }
    Ok(in_turn)
}

fn turn((reader, (start, end, time)): &(&Py<PyPartitionReader>, Wanted)) -> Option<Turn> {
    let place = reader.get().live.as_ref()?.place.clone();
    let start_timestamp = time.as_ref().map(|time| time.0);
    Some(Turn { place, offsets: (*start, *end), start_timestamp })
}
