//! A running cluster, read for its digests.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::{PyConnectionError, PyPermissionError, PyTimeoutError, PyValueError};
use pyo3::prelude::*;

use magicbyte::state::{AbortedFilter, IsolationLevel};
use magicbyte_arrow::FetchDigests;
use magicbyte_client::{
    ClientOptions, Cluster, Error, ErrorKind, FetchOptions, FetchRange, OffsetSpec, Result, TopicPartition,
};

use crate::docs::docstring;
use crate::jobs::PyRangeDigest;
use crate::locked::Locked;
use crate::panics;
use crate::view::{items, parse_name};

/// Bytes after which a call ends, so that Python can be interrupted between calls.
const BYTES_OF_A_CALL: usize = 64 << 20;

#[doc = docstring!(cluster, ClusterReader)]
#[pyclass(frozen, name = "ClusterReader", module = "magicbyte._core")]
pub(super) struct PyClusterReader {
    cluster: Locked<Cluster>,
}

/// The next offset, the digests, the bytes, and the offsets of batches that do not decode with the reasons and the number of
/// those that are not listed.
type PyDigested = (String, i32, i64, Vec<PyRangeDigest>, usize, Vec<(i64, i64, String)>, u64);

#[pymethods]
impl PyClusterReader {
    #[new]
    #[pyo3(signature = (bootstrap_servers, command_config = None))]
    fn new(py: Python<'_>, bootstrap_servers: &str, command_config: Option<PathBuf>) -> PyResult<Self> {
        panics::here();
        let connected = py.detach(|| {
            let options = command_config.map(ClientOptions::from_properties_file).transpose()?;
            Cluster::connect(bootstrap_servers, options.unwrap_or_default())
        });
        Ok(Self { cluster: Locked::new(connected.map_err(|error| client_to_py(&error))?) })
    }

    #[doc = docstring!(cluster, ClusterReader.partitions)]
    fn partitions(&self, py: Python<'_>) -> PyResult<Vec<(String, i32)>> {
        let topics = self.cluster.with(py, |cluster| cluster.topics(None));
        let topics = topics.map_err(|error| client_to_py(&error))?;
        let partitions = topics
            .iter()
            .flat_map(|topic| topic.partitions.keys().map(|&partition| (topic.name.to_string(), partition)));
        Ok(partitions.collect())
    }

    #[doc = docstring!(cluster, ClusterReader.offsets)]
    fn offsets(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = items)] partitions: Vec<(String, i32)>,
        isolation_level: &str,
    ) -> PyResult<Vec<(i64, i64)>> {
        let level = parse_name(isolation_level)?;
        let places: Vec<TopicPartition> =
            partitions.into_iter().map(|(topic, partition)| (Arc::from(topic), partition)).collect();
        let bounds = self.cluster.with(py, |cluster| {
            let starts = cluster.list_offsets(&places, OffsetSpec::Earliest, level)?;
            let ends = cluster.list_offsets(&places, OffsetSpec::Latest, level)?;
            Ok(places.iter().map(|place| (starts[place].unwrap_or(0), ends[place].unwrap_or(0))).collect())
        });
        bounds.map_err(|error: Error| client_to_py(&error))
    }

    #[doc = docstring!(cluster, ClusterReader.digest)]
    fn digest(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = items)] ranges: Vec<(String, i32, i64, i64)>,
        width: i64,
        isolation_level: &str,
        max_decompressed_bytes: usize,
    ) -> PyResult<Vec<PyDigested>> {
        let isolation_level = parse_name(isolation_level)?;
        let options = FetchOptions { isolation_level, ..FetchOptions::default() };
        let ranges = ranges.into_iter().map(|(topic, partition, start, end)| {
            let digests = FetchDigests::new(width, max_decompressed_bytes);
            ((Arc::from(topic), partition), Digested { offsets: start..end, next: start, bytes: 0, digests })
        });
        let mut ranges: BTreeMap<TopicPartition, Digested> = ranges.collect();
        self.cluster
            .with(py, |cluster| fetch_digests(cluster, &mut ranges, options))
            .map_err(|error| client_to_py(&error))?;
        Ok(ranges.into_iter().map(Digested::into_py).collect())
    }
}

/// A range of a partition, as far as it was fetched.
struct Digested {
    offsets: Range<i64>,
    next: i64,
    bytes: usize,
    digests: FetchDigests,
}

impl Digested {
    fn into_py(((topic, partition), digested): (TopicPartition, Self)) -> PyDigested {
        let ranges =
            digested.digests.ranges().iter().map(|one| (one.range, one.records, one.digest)).collect();
        let (errors, left_out) = digested.digests.errors();
        let errors = errors.iter().map(|(at, error)| (at.start, at.end, error.to_string())).collect();
        (topic.to_string(), partition, digested.next, ranges, digested.bytes, errors, left_out)
    }
}

fn fetch_digests(
    cluster: &mut Cluster,
    ranges: &mut BTreeMap<TopicPartition, Digested>,
    options: FetchOptions,
) -> Result<()> {
    let wanted = ranges.iter().map(|((topic, partition), digested)| {
        let Range { start, end } = digested.offsets;
        FetchRange { topic: Arc::clone(topic), partition: *partition, start, end }
    });
    let mut bytes = 0;
    for fetched in cluster.fetch(wanted.collect(), options)? {
        let fetched = fetched?;
        let Some(digested) = ranges.get_mut(&(Arc::clone(&fetched.topic), fetched.partition)) else {
            continue;
        };
        let committed = options.isolation_level == IsolationLevel::ReadCommitted;
        let aborted = committed.then(|| AbortedFilter::new(fetched.aborted_transactions));
        let offsets = fetched.position..digested.offsets.end;
        digested.digests.add(&fetched.records, &offsets, aborted);
        digested.next = fetched.next_position;
        digested.bytes += fetched.records.len();
        bytes += fetched.records.len();
        if bytes >= BYTES_OF_A_CALL {
            return Ok(());
        }
    }
    // Where offsets have no record, a range ends after its last batch.
    ranges.values_mut().for_each(|digested| digested.next = digested.next.max(digested.offsets.end));
    Ok(())
}

#[cold]
fn client_to_py(error: &Error) -> PyErr {
    let message = error.to_string();
    match error.kind() {
        ErrorKind::InvalidOptions(_) => PyValueError::new_err(message),
        ErrorKind::Timeout { .. } => PyTimeoutError::new_err(message),
        ErrorKind::Security(_) => PyPermissionError::new_err(message),
        _ => PyConnectionError::new_err(message),
    }
}
