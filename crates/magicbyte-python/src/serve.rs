//! The read-only broker.

use std::collections::BTreeMap;
use std::time::Duration;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

use magicbyte_log::Listing;
use magicbyte_serve::{CommittedOffset, ReadOnlyBroker, ServeLimits, ServeOptions, ServedTopic, Server};

use crate::jobs::parse_located;
use crate::locked::Locked;
use crate::view::items;
use crate::{docs::docstring, panics};

/// Group, topic, partition, offset, leader epoch, metadata.
type Committed = (String, String, i32, i64, i32, Option<String>);

#[doc = docstring!(serve, ServerCore)]
#[pyclass(frozen, name = "ServerCore", module = "magicbyte._core")]
pub(super) struct PyServer {
    server: Locked<Server>,
    address: (String, u16),
}

#[pymethods]
impl PyServer {
    #[new]
    #[pyo3(signature = (
        listings, listen, *, advertised_listener = None, to_magic_2 = false, as_of = None,
        read_committed_only = false, follow = false, topics = BTreeMap::new(), committed = Vec::new(),
        max_connections = None, max_request_bytes = None, idle_ms = None
    ))]
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
        topics: BTreeMap<String, (Option<String>, BTreeMap<String, String>)>,
        committed: Vec<Committed>,
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
        let topics =
            topics.into_iter().map(|(name, (topic_id, configs))| (name, ServedTopic { topic_id, configs }));
        let committed =
            committed.into_iter().map(|(group, topic, partition, offset, leader_epoch, metadata)| {
                (group, topic, partition, CommittedOffset { offset, leader_epoch, metadata })
            });
        let options = ServeOptions {
            advertised_listener,
            to_magic_2,
            as_of,
            read_committed_only,
            follow,
            topics: topics.collect(),
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
        let address = (server.address().ip().to_string(), server.address().port());
        Ok(Self { server: Locked::new(server), address })
    }

    #[doc = docstring!(serve, ServerCore.address)]
    #[getter]
    fn address(&self) -> (&str, u16) {
        panics::here();
        (&self.address.0, self.address.1)
    }

    #[doc = docstring!(serve, ServerCore.connections)]
    #[getter]
    fn connections(&self, py: Python<'_>) -> usize {
        self.server.with(py, |server| server.connections())
    }

    #[doc = docstring!(serve, ServerCore.stop)]
    fn stop(&self, py: Python<'_>) {
        self.server.with(py, |server| server.stop());
    }
}
