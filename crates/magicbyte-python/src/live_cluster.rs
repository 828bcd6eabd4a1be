//! A running cluster in Python: its partitions as logs.

use std::io;
use std::sync::Arc;

use pyo3::prelude::*;

use magicbyte_log::LogError;

use crate::cluster::{CommandConfig, client_options, client_to_py, partitions_of};
use crate::errors::log_to_py;
use crate::live::{ClusterPartition, Clusters};
use crate::log::PyPartitionReader;
use crate::{docs::docstring, panics};

#[doc = docstring!(live, LiveCluster)]
#[pyclass(frozen, name = "LiveCluster", module = "magicbyte._core")]
pub(super) struct PyLiveCluster(Arc<Clusters>);

#[pymethods]
impl PyLiveCluster {
    #[new]
    #[pyo3(signature = (bootstrap_servers, command_config = None, *, tls = false))]
    fn new(
        py: Python<'_>,
        bootstrap_servers: String,
        command_config: Option<CommandConfig>,
        tls: bool,
    ) -> PyResult<Self> {
        panics::here();
        let connected =
            py.detach(|| Clusters::connect(bootstrap_servers, client_options(command_config, tls)?));
        connected.map(|clusters| Self(Arc::new(clusters))).map_err(|error| client_to_py(&error))
    }

    #[doc = docstring!(live, LiveCluster.partitions)]
    fn partitions(&self, py: Python<'_>) -> PyResult<Vec<(String, i32)>> {
        panics::here();
        let listed = py.detach(|| self.0.with(|cluster| cluster.topics(None)));
        let topics = listed.map_err(|error| log_to_py(py, &self.failed(error)))?;
        Ok(partitions_of(&topics))
    }

    #[doc = docstring!(live, LiveCluster.partition)]
    fn partition(
        &self,
        url: &str,
        topic: &str,
        partition: i32,
        check_crcs: bool,
        max_decompressed_bytes: usize,
        mode: String,
    ) -> PyResult<PyPartitionReader> {
        panics::here();
        let live = ClusterPartition { clusters: Arc::clone(&self.0), place: (Arc::from(topic), partition) };
        PyPartitionReader::of_cluster(url, live, check_crcs, max_decompressed_bytes, mode)
    }
}

impl PyLiveCluster {
    fn failed(&self, error: io::Error) -> LogError {
        LogError::Io { path: self.0.bootstrap_servers().into(), source: error }
    }
}
