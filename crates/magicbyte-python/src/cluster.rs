//! A running cluster, read for its digests.

mod backup;
mod record_digests;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::{PyConnectionError, PyPermissionError, PyTimeoutError, PyValueError};
use pyo3::prelude::*;

use magicbyte::state::{AbortedFilter, IsolationLevel};
use magicbyte_arrow::FetchDigests;
use magicbyte_client::{
    ClientOptions, Cluster, Error, ErrorKind, FetchOptions, FetchRange, OffsetSpec, Result, RetryListener,
    Topic, TopicPartition,
};
use magicbyte_protocol::internals::uuid;
use magicbyte_protocol::message::ApiKey;
use pyo3::types::PyDict;

use crate::docs::docstring;
use crate::errors::{to_py, unsupported_version};
use crate::json::to_json;
use crate::locked::Locked;
use crate::message::{dict, structure};
use crate::panics;
use crate::range_digests::{PyRangeDigest, ranges_of};
use crate::view::{items, parse_name};

pub(crate) use backup::whole_batches;

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

/// Topic, partition, offset, leader epoch, metadata.
type PyCommittedOffset = (String, i32, i64, Option<i32>, String);

/// The name of a topic, its id, and the replicas of each partition.
type PyTopic = (String, Option<String>, BTreeMap<i32, Vec<i32>>);

/// The cluster's id, the ids of its brokers, and its topics.
type PyMetadata = (Option<String>, Vec<i32>, Vec<PyTopic>);

#[pymethods]
impl PyClusterReader {
    #[new]
    #[pyo3(signature = (bootstrap_servers, command_config = None, *, tls = false, on_retry = None))]
    fn new(
        py: Python<'_>,
        bootstrap_servers: &str,
        command_config: Option<CommandConfig>,
        tls: bool,
        on_retry: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        panics::here();
        let connected = py.detach(|| {
            let options = client_options(command_config, tls)?;
            let options = ClientOptions { retries: on_retry.map(listener), ..options };
            Cluster::connect(bootstrap_servers, options)
        });
        Ok(Self { cluster: Locked::new(connected.map_err(|error| client_to_py(&error))?) })
    }

    #[doc = docstring!(cluster, ClusterReader.partitions)]
    #[pyo3(signature = (topics = None))]
    fn partitions(&self, py: Python<'_>, topics: Option<Vec<String>>) -> PyResult<Vec<(String, i32)>> {
        let topics = self.cluster.with(py, |cluster| match &topics {
            Some(names) => cluster.existing_topics(&names.iter().map(String::as_str).collect::<Vec<_>>()),
            None => cluster.topics(None),
        });
        let topics = topics.map_err(|error| client_to_py(&error))?;
        Ok(partitions_of(&topics))
    }

    #[doc = docstring!(cluster, ClusterReader.offsets)]
    fn offsets(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = items)] partitions: Vec<(String, i32)>,
        isolation_level: &str,
    ) -> PyResult<Vec<(i64, i64)>> {
        let level = parse_name(isolation_level)?;
        let places = places(partitions);
        let bounds = self.cluster.with(py, |cluster| {
            let starts = cluster.list_offsets(&places, OffsetSpec::Earliest, level)?;
            let ends = cluster.list_offsets(&places, OffsetSpec::Latest, level)?;
            Ok(places.iter().map(|place| (starts[place].unwrap_or(0), ends[place].unwrap_or(0))).collect())
        });
        bounds.map_err(|error: Error| client_to_py(&error))
    }

    #[doc = docstring!(cluster, ClusterReader.committed_offsets)]
    fn committed_offsets(&self, py: Python<'_>, group: &str) -> PyResult<Vec<PyCommittedOffset>> {
        let found = self.cluster.with(py, |cluster| cluster.committed_offsets(group));
        let found = found.map_err(|error| client_to_py(&error))?.into_iter();
        let committed = found.map(|((topic, partition), one)| {
            (topic.to_string(), partition, one.offset, one.leader_epoch, one.metadata)
        });
        Ok(committed.collect())
    }

    #[doc = docstring!(cluster, ClusterReader.digest)]
    #[pyo3(signature = (ranges, width, isolation_level, max_decompressed_bytes, with_control = true))]
    fn digest(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = items)] ranges: Vec<(String, i32, i64, i64)>,
        width: i64,
        isolation_level: &str,
        max_decompressed_bytes: usize,
        with_control: bool,
    ) -> PyResult<Vec<PyDigested>> {
        let isolation_level = parse_name(isolation_level)?;
        let options = FetchOptions { isolation_level, ..FetchOptions::default() };
        let ranges = ranges.into_iter().map(|(topic, partition, start, end)| {
            let digests = FetchDigests::new(width, max_decompressed_bytes, with_control);
            ((Arc::from(topic), partition), Digested { offsets: start..end, next: start, bytes: 0, digests })
        });
        let mut ranges: BTreeMap<TopicPartition, Digested> = ranges.collect();
        self.cluster
            .with(py, |cluster| fetch_digests(cluster, &mut ranges, options))
            .map_err(|error| client_to_py(&error))?;
        Ok(ranges.into_iter().map(Digested::into_py).collect())
    }

    #[doc = docstring!(cluster, ClusterReader.digest_records)]
    fn digest_records(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = items)] offsets: Vec<(String, i32, i64)>,
    ) -> PyResult<Vec<Option<String>>> {
        let places: Vec<TopicPartition> =
            offsets.iter().map(|(topic, partition, _)| (topic.as_str().into(), *partition)).collect();
        let asked = places.iter().cloned().zip(offsets.into_iter().map(|(_, _, offset)| offset)).collect();
        let mut found = self
            .cluster
            .with(py, |cluster| record_digests::digest_records(cluster, asked))
            .map_err(|error| client_to_py(&error))?;
        Ok(places.iter().map(|place| found.remove(place)).collect())
    }

    #[doc = docstring!(cluster, ClusterReader.copy_batches)]
    fn copy_batches(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = items)] ranges: Vec<backup::CopiedRange>,
        segment_bytes: u64,
    ) -> PyResult<String> {
        let copied = self.cluster.with(py, |cluster| backup::copy_batches(cluster, ranges, segment_bytes));
        to_json(&copied.map_err(|error| error.into_py(py))?)
    }

    #[doc = docstring!(cluster, ClusterReader.offsets_for_time)]
    fn offsets_for_time(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = items)] partitions: Vec<(String, i32)>,
        timestamp: i64,
    ) -> PyResult<Vec<Option<i64>>> {
        panics::here();
        let places = places(partitions);
        let (spec, level) = (OffsetSpec::Timestamp(timestamp), IsolationLevel::ReadUncommitted);
        let found = self.cluster.with(py, |cluster| cluster.list_offsets(&places, spec, level));
        let found = found.map_err(|error| client_to_py(&error))?;
        Ok(places.iter().map(|place| found.get(place).copied().flatten()).collect())
    }

    #[doc = docstring!(cluster, ClusterReader.ends_of_leader_epochs)]
    fn ends_of_leader_epochs(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = items)] epochs: Vec<(String, i32, i32)>,
    ) -> PyResult<Vec<Option<(i32, i64)>>> {
        panics::here();
        let epochs: Vec<(TopicPartition, i32)> = epochs
            .into_iter()
            .map(|(topic, partition, epoch)| ((Arc::from(topic), partition), epoch))
            .collect();
        let asked = epochs.iter().cloned().collect();
        let ends = self.cluster.with(py, |cluster| cluster.ends_of_leader_epochs(&asked));
        let ends = ends.map_err(|error| client_to_py(&error))?;
        Ok(epochs.iter().map(|(place, _)| ends.get(place).copied().flatten()).collect())
    }

    #[doc = docstring!(cluster, ClusterReader.leader_epochs)]
    fn leader_epochs(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = items)] partitions: Vec<(String, i32)>,
    ) -> PyResult<Vec<Vec<(i32, i64)>>> {
        panics::here();
        let places = places(partitions);
        let found = self.cluster.with(py, |cluster| cluster.leader_epochs(&places));
        let mut found = found.map_err(|error| client_to_py(&error))?;
        Ok(places.iter().map(|place| found.remove(place).unwrap_or_default()).collect())
    }

    #[doc = docstring!(cluster, ClusterReader.describe)]
    #[pyo3(signature = (api_key, body, node_id = None))]
    fn describe<'py>(
        &self,
        py: Python<'py>,
        api_key: i16,
        body: &Bound<'py, PyDict>,
        node_id: Option<i32>,
    ) -> PyResult<Bound<'py, PyDict>> {
        panics::here();
        let api = ApiKey::try_from(api_key).map_err(|error| to_py(py, &error))?;
        let body = structure(body, 0)?;
        let response = self.cluster.with(py, |cluster| cluster.describe(api, node_id, &body));
        let response = response.map_err(|error| client_to_py(&error))?;
        dict(py, response.read_struct().map_err(|error| client_to_py(&error))?)
    }

    #[doc = docstring!(cluster, ClusterReader.metadata)]
    fn metadata(&self, py: Python<'_>) -> PyResult<PyMetadata> {
        let found = self.cluster.with(py, |cluster| {
            let topics = cluster.topics(None)?;
            let brokers = cluster.brokers().map(|(id, _)| id).collect();
            Ok((cluster.id().map(str::to_owned), brokers, topics.into_iter().map(described).collect()))
        });
        found.map_err(|error: Error| client_to_py(&error))
    }
}

/// The topic and the number of each partition.
pub(super) fn partitions_of(topics: &[Topic]) -> Vec<(String, i32)> {
    let partitions = topics
        .iter()
        .flat_map(|topic| topic.partitions.keys().map(|&partition| (topic.name.to_string(), partition)));
    partitions.collect()
}

fn places(partitions: Vec<(String, i32)>) -> Vec<TopicPartition> {
    partitions.into_iter().map(|(topic, partition)| (Arc::from(topic), partition)).collect()
}

fn described(topic: Topic) -> PyTopic {
    (topic.name.to_string(), topic.id.map(uuid::to_text), topic.replicas)
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
        let ranges = ranges_of(digested.digests.ranges());
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
    let mut fetcher = cluster.fetch(wanted.collect(), options)?;
    while let Some(fetched) = fetcher.next() {
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
            fetcher.finish();
        }
    }
    if bytes >= BYTES_OF_A_CALL {
        return Ok(());
    }
    // Where offsets have no record, a range ends after its last batch.
    ranges.values_mut().for_each(|digested| digested.next = digested.next.max(digested.offsets.end));
    Ok(())
}

/// Calls a function with the text of each error after which an attempt is repeated. Its exceptions have nowhere to go.
fn listener(on_retry: Py<PyAny>) -> RetryListener {
    RetryListener::new(move |error| {
        let message = error.to_string();
        Python::try_attach(|py| {
            if let Err(error) = on_retry.call1(py, (message,)) {
                error.write_unraisable(py, Some(on_retry.bind(py)));
            }
        });
    })
}

/// Properties of Kafka's own clients.
#[derive(FromPyObject)]
pub(super) enum CommandConfig {
    Properties(BTreeMap<String, String>),
    File(PathBuf),
}

/// The options that properties have, if there are any, with TLS if it is demanded.
pub(super) fn client_options(command_config: Option<CommandConfig>, tls: bool) -> Result<ClientOptions> {
    let mut options = match command_config {
        Some(CommandConfig::Properties(properties)) => ClientOptions::from_property_map(properties)?,
        Some(CommandConfig::File(path)) => ClientOptions::from_properties_file(path)?,
        None => ClientOptions::default(),
    };
    if tls {
        options.security.tls.get_or_insert_default();
    }
    Ok(options)
}

#[cold]
pub(super) fn client_to_py(error: &Error) -> PyErr {
    let message = error.to_string();
    match error.kind() {
        ErrorKind::InvalidOptions(_) => PyValueError::new_err(message),
        ErrorKind::Timeout { .. } => PyTimeoutError::new_err(message),
        ErrorKind::Security(_) => PyPermissionError::new_err(message),
        ErrorKind::UnsupportedVersion(_) => Python::attach(|py| unsupported_version(py, message)),
        _ => PyConnectionError::new_err(message),
    }
}
