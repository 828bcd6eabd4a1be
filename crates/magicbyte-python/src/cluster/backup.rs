//! The batches of a cluster, appended to files as they come.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use magicbyte_client::{Cluster, Error, ErrorKind, FetchOptions, FetchRange, TopicPartition};
use magicbyte_log::{AppendedBatches, FollowerLog, LogError, OpenTransaction};
use pyo3::prelude::*;
use serde::Serialize;

use super::record_digests::{LastRecord, last_record};
use super::{BYTES_OF_A_CALL, client_to_py};
use crate::docs::docstring;
use crate::errors::log_to_py;
use crate::json::to_json;
use crate::panics;
use crate::view::items;

/// Kafka's name of the error of a topic that is not there (any more).
const UNKNOWN_TOPIC: &str = "UNKNOWN_TOPIC_OR_PARTITION";
/// Kafka's name of an error of the connection to a broker.
const NETWORK_EXCEPTION: &str = "NETWORK_EXCEPTION";

/// A range of offsets of a partition, and where its batches go: topic, partition, first offset, end (exclusive), directory,
/// active segment, open transactions.
pub(super) type CopiedRange = (String, i32, i64, i64, PathBuf, Option<i64>, Vec<PyOpenTransaction>);

/// A transaction that is open: producer, first offset, whether it is overlapped.
type PyOpenTransaction = (i64, i64, bool);

/// A range, as far as it was copied.
#[derive(Serialize)]
struct CopiedBatches {
    topic: String,
    partition: i32,
    #[serde(flatten)]
    appended: AppendedBatches,
    last_record: Option<LastRecord>,
    stopped: Option<Stopped>,
}

/// The batches that a segment has from a position on.
#[derive(Serialize)]
struct WholeBatches {
    #[serde(flatten)]
    found: AppendedBatches,
    last_record: Option<LastRecord>,
}

/// Why a range cannot be copied any further, while others can.
#[derive(Clone, Serialize)]
struct Stopped {
    error: &'static str,
    message: String,
}

/// An error of the cluster or of the files.
pub(super) enum CopyError {
    Client(Error),
    Log(LogError),
}

impl From<Error> for CopyError {
    fn from(error: Error) -> Self {
        Self::Client(error)
    }
}

impl From<LogError> for CopyError {
    fn from(error: LogError) -> Self {
        Self::Log(error)
    }
}

impl CopyError {
    pub(super) fn into_py(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Client(error) => client_to_py(&error),
            Self::Log(error) => log_to_py(py, &error),
        }
    }
}

struct Copied {
    log: FollowerLog,
    end: i64,
    stopped: Option<Stopped>,
}

/// Copies ranges until about [`BYTES_OF_A_CALL`] were copied, or one of them cannot go on. Returns JSON.
pub(super) fn copy_batches(
    cluster: &mut Cluster,
    ranges: Vec<CopiedRange>,
    segment_bytes: u64,
) -> Result<Vec<impl Serialize + use<>>, CopyError> {
    let mut copied: BTreeMap<TopicPartition, Copied> = BTreeMap::new();
    let mut wanted = Vec::with_capacity(ranges.len());
    for (topic, partition, start, end, directory, active, open) in ranges {
        let topic: Arc<str> = topic.into();
        wanted.push(FetchRange { topic: Arc::clone(&topic), partition, start, end });
        let log = FollowerLog::new(directory, active, start, segment_bytes);
        let log = log.with_open_transactions(open.into_iter().map(open_transaction).collect());
        copied.insert((topic, partition), Copied { log, end, stopped: None });
    }
    match append(cluster, wanted, &mut copied) {
        Ok(true) => {
            // Where offsets have no record, a range ends after its last batch.
            for one in copied.values_mut() {
                one.log.skip_to(one.end);
            }
        }
        Ok(false) => {}
        Err(CopyError::Client(error)) => stop(error, &mut copied)?,
        Err(other) => return Err(other),
    }
    let mut results = Vec::with_capacity(copied.len());
    for ((topic, partition), one) in copied {
        let appended = one.log.into_appended();
        let last_record = last_record(&appended)?;
        let stopped = one.stopped;
        results.push(CopiedBatches { topic: topic.to_string(), partition, appended, last_record, stopped });
    }
    Ok(results)
}

/// True if all ranges were fetched.
fn append(
    cluster: &mut Cluster,
    wanted: Vec<FetchRange>,
    copied: &mut BTreeMap<TopicPartition, Copied>,
) -> Result<bool, CopyError> {
    let mut bytes = 0;
    let mut fetcher = cluster.fetch(wanted, FetchOptions::default())?;
    while let Some(fetched) = fetcher.next() {
        let fetched = fetched?;
        if let Some(one) = copied.get_mut(&(Arc::clone(&fetched.topic), fetched.partition)) {
            one.log.append(&fetched.records)?;
            one.log.skip_to(fetched.next_position);
        }
        bytes += fetched.records.len();
        if bytes >= BYTES_OF_A_CALL {
            fetcher.finish();
        }
    }
    Ok(bytes < BYTES_OF_A_CALL)
}

/// Notes the error of one partition or topic, or that a broker has not answered in all this time; all others end the copy.
fn stop(error: Error, copied: &mut BTreeMap<TopicPartition, Copied>) -> Result<(), CopyError> {
    let name = match error.kind() {
        ErrorKind::OffsetOutOfRange { .. } => "OFFSET_OUT_OF_RANGE",
        ErrorKind::Truncated { .. } => "TRUNCATED",
        ErrorKind::TopicRecreated => "TOPIC_RECREATED",
        ErrorKind::Corrupt { .. } => "CORRUPT",
        _ if error.name() == Some(UNKNOWN_TOPIC) => UNKNOWN_TOPIC,
        _ if error.is_retriable() => error.name().unwrap_or(NETWORK_EXCEPTION),
        _ => return Err(error.into()),
    };
    let mut stopped = 0;
    for ((topic, partition), one) in copied {
        // An error of a connection is that of all partitions.
        let is_it = error.topic().is_none_or(|name| *name == **topic)
            && error.partition().is_none_or(|number| number == *partition);
        if is_it {
            one.stopped = Some(Stopped { error: name, message: error.to_string() });
            stopped += 1;
        }
    }
    if stopped == 0 { Err(error.into()) } else { Ok(()) }
}

fn open_transaction((producer_id, first_offset, is_overlapped): PyOpenTransaction) -> OpenTransaction {
    OpenTransaction { producer_id, first_offset, is_overlapped }
}

#[doc = docstring!(cluster, whole_batches)]
#[pyfunction]
pub(crate) fn whole_batches(
    py: Python<'_>,
    path: PathBuf,
    position: u64,
    next_offset: i64,
    end_offset: i64,
    #[pyo3(from_py_with = items)] open_transactions: Vec<PyOpenTransaction>,
) -> PyResult<(u64, String)> {
    panics::here();
    let open = open_transactions.into_iter().map(open_transaction).collect();
    let found = py.detach(|| {
        let (end, found) = magicbyte_log::whole_batches(&path, position, next_offset, end_offset, open)?;
        let last_record = last_record(&found)?;
        Ok((end, WholeBatches { found, last_record }))
    });
    let (end, found) = found.map_err(|error: LogError| log_to_py(py, &error))?;
    Ok((end, to_json(&found)?))
}
