//! The read-only broker.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyTuple;

use magicbyte_log::Listing;
use magicbyte_serve::{
    GroupMetadata, GroupType, ReadOnlyBroker, ServeLimits, ServeOptions, ServedTopic, Server,
    TransactionMetadata,
};

use crate::json::parse_located;
use crate::locked::Locked;
use crate::view::items;
use crate::{docs::docstring, panics};

/// A topic in the report of `magicbyte topics`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Topic {
    topic: String,
    topic_id: Option<String>,
    configs: BTreeMap<String, String>,
}

/// A group in the report of `magicbyte offsets`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Group {
    group: String,
    #[pyo3(item("type"))]
    group_type: String,
    epoch: Option<i32>,
    assignment_epoch: Option<i32>,
    protocol_type: Option<String>,
}

/// A `CoordinatedTransaction`.
#[derive(FromPyObject)]
struct Transaction {
    transactional_id: String,
    producer_id: i64,
    producer_epoch: i16,
    state: String,
    timeout_ms: i32,
    start_timestamp: i64,
    partitions: BTreeSet<(String, i32)>,
}

/// A committed offset in the report of `magicbyte offsets`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct CommittedOffset {
    group: String,
    topic: String,
    partition: i32,
    offset: i64,
    leader_epoch: Option<i32>,
    metadata: Option<String>,
}

impl Group {
    fn described(self) -> PyResult<(String, GroupMetadata)> {
        let Some(group_type) = GroupType::of_name(&self.group_type) else {
            return Err(PyValueError::new_err(format!("{:?} is not a type of groups", self.group_type)));
        };
        let metadata = GroupMetadata {
            group_type,
            epoch: self.epoch.unwrap_or_default(),
            assignment_epoch: self.assignment_epoch.unwrap_or_default(),
            protocol_type: self.protocol_type.unwrap_or_default(),
        };
        Ok((self.group, metadata))
    }
}

impl Transaction {
    fn described(self) -> (String, TransactionMetadata) {
        let mut partitions: BTreeMap<String, Vec<i32>> = BTreeMap::new();
        for (topic, partition) in self.partitions {
            partitions.entry(topic).or_default().push(partition);
        }
        let metadata = TransactionMetadata {
            producer_id: self.producer_id,
            producer_epoch: self.producer_epoch,
            state: self.state,
            timeout_ms: self.timeout_ms,
            start_timestamp: self.start_timestamp,
            partitions,
        };
        (self.transactional_id, metadata)
    }
}

#[doc = docstring!(serve, Server)]
#[pyclass(frozen, name = "Server", module = "magicbyte.jobs.serve")]
pub(super) struct PyServer {
    server: Locked<Server>,
    address: SocketAddr,
    partitions: Vec<(String, i32)>,
    problems: Vec<String>,
}

#[pymethods]
impl PyServer {
    #[new]
    #[pyo3(
        signature = (
            listings, listen, *, advertised_listener = None, to_magic_2 = false, as_of = None,
            read_committed_only = false, follow = false, topics = Vec::new(), groups = Vec::new(),
            committed = Vec::new(), transactions = Vec::new(), problems = Vec::new(), max_connections = None, max_request_bytes = None, idle_ms = None
        ),
        text_signature = "(listings, listen, *, advertised_listener=None, to_magic_2=False, as_of=None, \
            read_committed_only=False, follow=False, topics=(), groups=(), committed=(), \
            transactions=(), problems=(), max_connections=None, max_request_bytes=None, idle_ms=None)"
    )]
    #[expect(clippy::too_many_arguments, reason = "they are named in Python")]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = items)] listings: Vec<PyBackedStr>,
        listen: (String, u16),
        advertised_listener: Option<(String, u16)>,
        to_magic_2: bool,
        as_of: Option<i64>,
        read_committed_only: bool,
        follow: bool,
        #[pyo3(from_py_with = items)] topics: Vec<Topic>,
        #[pyo3(from_py_with = items)] groups: Vec<Group>,
        #[pyo3(from_py_with = items)] committed: Vec<CommittedOffset>,
        #[pyo3(from_py_with = items)] transactions: Vec<Transaction>,
        #[pyo3(from_py_with = items)] problems: Vec<String>,
        max_connections: Option<usize>,
        max_request_bytes: Option<usize>,
        idle_ms: Option<u64>,
    ) -> PyResult<Self> {
        panics::here();
        let listings: PyResult<Vec<Listing>> =
            listings.iter().map(|listing| parse_located(listing)).collect();
        let listings = listings?;
        let default = ServeLimits::default();
        let limits = ServeLimits {
            connections: max_connections.unwrap_or(default.connections),
            request_bytes: max_request_bytes.unwrap_or(default.request_bytes),
            idle: idle_ms.map_or(default.idle, Duration::from_millis),
        };
        let topics = topics
            .into_iter()
            .map(|topic| (topic.topic, ServedTopic { topic_id: topic.topic_id, configs: topic.configs }));
        let committed = committed.into_iter().map(|of| {
            let leader_epoch = of.leader_epoch.unwrap_or(-1);
            let offset =
                magicbyte_serve::CommittedOffset { offset: of.offset, leader_epoch, metadata: of.metadata };
            (of.group, of.topic, of.partition, offset)
        });
        let partitions = listings.iter().map(|of| (of.topic.clone(), of.partition)).collect();
        let options = ServeOptions {
            advertised_listener,
            to_magic_2,
            as_of,
            read_committed_only,
            follow,
            topics: topics.collect(),
            groups: groups.into_iter().map(Group::described).collect::<PyResult<_>>()?,
            transactions: transactions.into_iter().map(Transaction::described).collect(),
            committed: committed.collect(),
            limits,
        };
        let (host, port) = listen;
        let started =
            py.detach(|| Server::start(ReadOnlyBroker::new(listings, options), (host.as_str(), port)));
        let server = started.map_err(|error| {
            let why = format!("cannot listen on {host}:{port}: {error}");
            PyOSError::new_err((error.raw_os_error(), why))
        })?;
        let address = server.address();
        Ok(Self { server: Locked::new(server), address, partitions, problems })
    }

    #[doc = docstring!(serve, Server.bootstrap_servers)]
    #[getter]
    fn bootstrap_servers(&self) -> String {
        panics::here();
        self.address.to_string()
    }

    #[doc = docstring!(serve, Server.partitions)]
    #[getter]
    fn partitions(&self) -> Vec<(String, i32)> {
        panics::here();
        self.partitions.clone()
    }

    #[doc = docstring!(serve, Server.problems)]
    #[getter]
    fn problems(&self) -> Vec<String> {
        panics::here();
        self.problems.clone()
    }

    #[doc = docstring!(serve, Server.connections)]
    #[getter]
    fn connections(&self, py: Python<'_>) -> usize {
        self.server.with(py, |server| server.connections())
    }

    #[doc = docstring!(serve, Server.stop)]
    fn stop(&self, py: Python<'_>) {
        self.server.with(py, |server| server.stop());
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, PyTuple>) {
        self.stop(py);
    }

    fn __repr__(&self) -> String {
        panics::here();
        format!("<Server {}: {} partitions>", self.address, self.partitions.len())
    }
}
