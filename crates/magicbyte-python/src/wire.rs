//! Captures of the protocol.

use std::net::SocketAddr;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use magicbyte_log::LogResult;
use magicbyte_protocol::wire::{Exchange, Exchanges, RecordSet};

use crate::errors::{log_to_py, to_py};
use crate::locked::Locked;
use crate::record::header_text;
use crate::view::items;
use crate::{docs::docstring, panics, view};

/// Frames of this many bytes are handed out at a time.
const BLOCK_BYTES: usize = 1 << 20;
const BLOCK: usize = 1024;

/// Connection, client, server; API key, version, correlation id; whether it is a token; the two times; the two frames.
type Exchanged<'py> = (
    u64,
    Option<String>,
    Option<String>,
    Option<(i16, i16, i32)>,
    bool,
    Option<i64>,
    Option<i64>,
    Option<Bound<'py, PyBytes>>,
    Option<Bound<'py, PyBytes>>,
);

/// Topic, its id, partition, batches.
type Set<'py> = (Option<Bound<'py, PyAny>>, Option<String>, i32, Bound<'py, PyBytes>);

#[doc = docstring!(wire, WireReader)]
#[pyclass(frozen, name = "WireReader", module = "magicbyte._core")]
pub(super) struct PyWireReader(Locked<Exchanges>);

#[pymethods]
impl PyWireReader {
    #[new]
    fn new(
        #[pyo3(from_py_with = items)] paths: Vec<PathBuf>,
        #[pyo3(from_py_with = items)] ports: Vec<u16>,
    ) -> Self {
        panics::here();
        Self(Locked::new(Exchanges::open(paths, ports)))
    }

    #[doc = docstring!(wire, WireReader.of_streams)]
    #[staticmethod]
    fn of_streams(py: Python<'_>, requests: PathBuf, responses: PathBuf) -> PyResult<Self> {
        panics::here();
        let opened = py.detach(|| Exchanges::of_streams(&requests, &responses));
        Ok(Self(Locked::new(opened.map_err(|error| log_to_py(py, &error))?)))
    }

    #[doc = docstring!(wire, WireReader.next_block)]
    fn next_block<'py>(&self, py: Python<'py>) -> PyResult<Vec<Exchanged<'py>>> {
        let block = self.0.with(py, block).map_err(|error| log_to_py(py, &error))?;
        Ok(block.into_iter().map(|exchange| exchanged(py, exchange)).collect())
    }

    #[doc = docstring!(wire, WireReader.summary)]
    #[allow(clippy::type_complexity, reason = "the fields of WireSummary")]
    fn summary(&self, py: Python<'_>) -> (u64, u64, u64, u64, u64, u64, Vec<String>, u64) {
        let all = self.0.with(py, |exchanges| exchanges.summary().clone());
        (
            all.connections,
            all.tls_connections,
            all.other_connections,
            all.other_packets,
            all.lost_bytes,
            all.skipped_bytes,
            all.problems,
            all.problems_left_out,
        )
    }
}

fn block(exchanges: &mut Exchanges) -> LogResult<Vec<Exchange>> {
    let (mut block, mut bytes) = (Vec::new(), 0);
    while block.len() < BLOCK
        && bytes < BLOCK_BYTES
        && let Some(exchange) = exchanges.next()
    {
        let exchange = exchange?;
        let frames = [&exchange.request, &exchange.response];
        bytes += frames.into_iter().flatten().map(Vec::len).sum::<usize>();
        block.push(exchange);
    }
    Ok(block)
}

fn exchanged(py: Python<'_>, exchange: Exchange) -> Exchanged<'_> {
    let address = |one: Option<SocketAddr>| one.map(|one| one.to_string());
    let frame = |one: Option<Vec<u8>>| one.map(|one| PyBytes::new(py, &one));
    (
        exchange.connection,
        address(exchange.client),
        address(exchange.server),
        exchange.head.map(|head| (head.api_key, head.api_version, head.correlation_id)),
        exchange.is_sasl_token,
        exchange.request_time,
        exchange.response_time,
        frame(exchange.request),
        frame(exchange.response),
    )
}

#[doc = docstring!(wire, request_record_sets)]
#[pyfunction]
pub(super) fn request_record_sets<'py>(
    py: Python<'py>,
    frame: &Bound<'py, PyAny>,
) -> PyResult<Vec<Set<'py>>> {
    panics::here();
    let frame = view::content("frame", frame)?;
    let message = magicbyte_protocol::message::read_request(&frame).map_err(|error| to_py(py, &error))?;
    magicbyte_protocol::wire::record_sets(&message).into_iter().map(|one| set(py, one)).collect()
}

#[doc = docstring!(wire, response_record_sets)]
#[pyfunction]
pub(super) fn response_record_sets<'py>(
    py: Python<'py>,
    frame: &Bound<'py, PyAny>,
    api_key: i16,
    api_version: i16,
) -> PyResult<Vec<Set<'py>>> {
    panics::here();
    let frame = view::content("frame", frame)?;
    let message = magicbyte_protocol::message::read_response(&frame, api_key, api_version)
        .map_err(|error| to_py(py, &error))?;
    magicbyte_protocol::wire::record_sets(&message).into_iter().map(|one| set(py, one)).collect()
}

fn set<'py>(py: Python<'py>, set: RecordSet<'_>) -> PyResult<Set<'py>> {
    let topic = set.topic.map(|name| header_text(py, &name)).transpose()?;
    let id = set.topic_id.map(magicbyte_protocol::internals::uuid::to_text);
    Ok((topic, id, set.partition, PyBytes::new(py, &set.bytes)))
}
