//! The broker: a request in, a response out.

use magicbyte::internals::be;
use magicbyte::{Error, ErrorKind, Result};
use magicbyte_broker::ErrorCode;
use magicbyte_log::Listing;
use magicbyte_protocol::internals::{Gap, read_request_start, write_response};
use magicbyte_protocol::message::{Struct, read_request};

use crate::archive::Archive;
use crate::cluster::{self, Address};
use crate::coordinator::{Client, Coordinator, find_coordinator};
use crate::fetch::{FetchRequest, fetch};
use crate::fetch_sessions::FetchSessions;
use crate::fields::text;
use crate::limits::{
    MAX_RESPONSE_MEMORY, OWN_MEMORY, OWN_REQUESTS, PARTITION_MEMORY, REQUEST_FACTOR, SHARED_MEMORY,
    SHARED_REQUESTS,
};
use crate::memory::{Budget, Memory, Unanswered};
use crate::offsets::{EpochLookups, OffsetLookups, list_offsets, offset_for_leader_epoch, refuse_produce};
use crate::options::{ServeLimits, ServeOptions};
use crate::partition::Shared;
use crate::recipient::Recipient;
use crate::span::Part;
use crate::stopping::Stopping;
use crate::view::ViewOptions;

/// The start of a request's header: API, version, correlation id.
const HEADER_START: usize = 8;

/// A broker without a network: it answers requests from partition directories.
#[derive(Debug)]
pub struct ReadOnlyBroker {
    archive: Archive,
    sessions: FetchSessions,
    coordinator: Coordinator,
    advertised: Option<Address>,
    /// The memory of requests that are under way.
    pub(super) requests: Memory,
    /// The memory of their values, of responses, and of the work between.
    memory: Memory,
    max_response: usize,
    pub(super) limits: ServeLimits,
    pub(super) stopping: Stopping,
}

/// The connection that a request comes from.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    /// The client's address.
    pub(super) host: String,
    /// The address that it has connected to.
    pub(super) reached: Address,
}

/// A response: the bytes around the record sets, and the record sets.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) head: Vec<u8>,
    pub(super) gaps: Vec<Gap>,
    pub(super) parts: Vec<Vec<Part>>,
}

impl Response {
    /// Bytes in memory.
    pub(super) fn memory(&self) -> usize {
        let part = |part: &Part| match part {
            Part::Memory(bytes) => bytes.len(),
            Part::File(_) => 0,
        };
        self.head.len() + self.parts.iter().flatten().map(part).sum::<usize>()
    }
}

impl ReadOnlyBroker {
    /// A broker of these partitions, as `list_partition` lists them. Their segments are read when clients request them.
    #[must_use]
    pub fn new(listings: Vec<Listing>, options: ServeOptions) -> Self {
        let view = ViewOptions { as_of: options.as_of, read_committed_only: options.read_committed_only };
        let shared =
            Shared { view, to_magic_2: options.to_magic_2, follow: options.follow, ..Shared::default() };
        let archive = Archive::new(listings, options.topics, shared);
        // A server of very many partitions has the memory to list them.
        let max_response = MAX_RESPONSE_MEMORY.max(archive.partitions().saturating_mul(PARTITION_MEMORY));
        Self {
            archive,
            sessions: FetchSessions::default(),
            coordinator: Coordinator::new(options.committed),
            advertised: options.advertised_listener.map(|(host, port)| Address { host, port }),
            requests: Memory::new(OWN_REQUESTS, SHARED_REQUESTS.max(options.limits.request_bytes)),
            memory: Memory::new(OWN_MEMORY, SHARED_MEMORY.max(2 * max_response)),
            max_response,
            limits: options.limits,
            stopping: Stopping::default(),
        }
    }

    /// The memory for a request of this client.
    pub(super) fn budget<'a>(&'a self, recipient: Recipient<'a>) -> Budget<'a> {
        self.memory.budget(self.max_response, recipient)
    }

    /// Answers a request, without the frame's size; the response has none either. None if the request wants no
    /// response. Waits where a broker waits: at the end of a log, and for other members of a group.
    ///
    /// # Errors
    /// The errors of [`read_request`](magicbyte_protocol::message::read_request), and [`ErrorKind::UnsupportedVersion`]
    /// for an API or version that is not served: a broker closes the connection.
    pub fn handle(&self, request: &[u8]) -> Result<Option<Vec<u8>>> {
        let host = "127.0.0.1".to_owned();
        let peer = Peer { host: host.clone(), reached: Address { host, port: 9092 } };
        let budget = self.budget(Recipient::new(&self.stopping, None));
        let Some(response) = self.answer(request, &peer, &budget)? else { return Ok(None) };
        let Response { head, gaps, parts } = response;
        let mut whole = Vec::new();
        let mut start = 0;
        for (gap, parts) in gaps.iter().zip(parts) {
            whole.extend_from_slice(&head[start..gap.position]);
            start = gap.position;
            for part in parts {
                part.append_to(&mut whole).map_err(|error| {
                    Error::new(ErrorKind::FileUnreadable(error.to_string())).in_field("records")
                })?;
            }
        }
        whole.extend_from_slice(&head[start..]);
        Ok(Some(whole))
    }

    /// Like [`handle`](Self::handle), but returns record sets that are still in their files.
    pub(super) fn answer(
        &self,
        request: impl AsRef<[u8]>,
        peer: &Peer,
        budget: &Budget<'_>,
    ) -> Result<Option<Response>> {
        let frame = request.as_ref();
        if frame.len() < HEADER_START {
            read_request(frame)?;
        }
        let (api_key, version) = (be!(frame, 0, i16), be!(frame, 2, i16));
        let correlation_id = be!(frame, 4, i32);
        let Some((_, oldest, newest)) = cluster::APIS.iter().copied().find(|(key, ..)| *key == api_key)
        else {
            let why = format!("API key {api_key} is not served by a read-only broker");
            return Err(Error::new(ErrorKind::UnsupportedVersion(why))
                .in_field("requestApiKey")
                .at_position(0));
        };
        if !(oldest..=newest).contains(&version) {
            if api_key == cluster::API_VERSIONS {
                // As a broker does, so that the client can ask again (KIP-511).
                let body = cluster::api_versions(ErrorCode::UnsupportedVersion);
                return response(api_key, 0, correlation_id, &body, Vec::new()).map(Some);
            }
            let why = format!("version {version} of API key {api_key}: expected {oldest} to {newest}");
            let error = Error::new(ErrorKind::UnsupportedVersion(why)).in_field("requestApiVersion");
            return Err(error.at_position(2));
        }
        match self.answer_version(request, (api_key, version), peer, budget)? {
            Some((body, parts)) => response(api_key, version, correlation_id, &body, parts).map(Some),
            None => Ok(None),
        }
    }

    /// The fields of the answer and its record sets.
    fn answer_version(
        &self,
        frame: impl AsRef<[u8]>,
        (api_key, version): (i16, i16),
        peer: &Peer,
        budget: &Budget<'_>,
    ) -> Result<Option<(Struct<'static>, Vec<Vec<Part>>)>> {
        let values = budget.lend(frame.as_ref().len().saturating_mul(REQUEST_FACTOR)).map_err(unanswered)?;
        let message = read_request_start(frame.as_ref(), api_key, version)?;
        let request = &message.body;
        let archive = &self.archive;
        let coordinator = &self.coordinator;
        let address = self.advertised.as_ref().unwrap_or(&peer.reached);
        let body = match api_key {
            // These can take long: others get the memory of the request meanwhile.
            cluster::FETCH => {
                let request = FetchRequest::of(request);
                drop(message);
                drop((values, frame));
                let fetched = fetch(archive, &self.sessions, budget, request).map_err(unanswered)?;
                return Ok(Some((fetched.body, fetched.parts)));
            }
            cluster::LIST_OFFSETS => {
                let lookups = OffsetLookups::of(request);
                drop(message);
                drop((values, frame));
                list_offsets(archive, budget, lookups)
            }
            cluster::OFFSET_FOR_LEADER_EPOCH => {
                let lookups = EpochLookups::of(request);
                drop(message);
                drop((values, frame));
                offset_for_leader_epoch(archive, budget, lookups)
            }
            cluster::JOIN_GROUP => {
                let client_id = text(&message.header, "clientId").unwrap_or_default();
                let client = Client { id: &client_id, host: &peer.host };
                let joining = coordinator.begin_join(version, client, request);
                drop(message);
                drop((values, frame));
                match joining {
                    Ok(joining) => coordinator.join(version, budget, joining),
                    Err(failed) => Ok(failed),
                }
            }
            cluster::SYNC_GROUP => {
                let syncing = Coordinator::begin_sync(request);
                drop(message);
                drop((values, frame));
                coordinator.sync(budget, syncing)
            }
            cluster::PRODUCE => match refuse_produce(budget, request).map_err(unanswered)? {
                Some(body) => Ok(body),
                None => return Ok(None),
            },
            cluster::METADATA => cluster::metadata(archive, budget, address, version, request),
            cluster::OFFSET_COMMIT => coordinator.commit(archive, budget, request),
            cluster::OFFSET_FETCH => coordinator.committed(archive, budget, version, request),
            cluster::FIND_COORDINATOR => find_coordinator(budget, address, version, request),
            cluster::HEARTBEAT => Ok(coordinator.heartbeat(request)),
            cluster::LEAVE_GROUP => coordinator.leave(version, budget, request),
            cluster::DESCRIBE_GROUPS => coordinator.describe(budget, request),
            cluster::LIST_GROUPS => coordinator.list(budget, request),
            cluster::DESCRIBE_CONFIGS => cluster::describe_configs(archive, budget, request),
            cluster::DESCRIBE_LOG_DIRS => cluster::describe_log_dirs(archive, budget, request),
            cluster::DESCRIBE_CLUSTER => Ok(cluster::describe_cluster(address)),
            cluster::DESCRIBE_TOPIC_PARTITIONS => {
                cluster::describe_topic_partitions(archive, budget, request)
            }
            _ => Ok(cluster::api_versions(ErrorCode::None)),
        };
        Ok(Some((body.map_err(unanswered)?, Vec::new())))
    }

    /// Ends all waiting, now and from now on: a request that would wait is answered at once.
    pub fn stop(&self) {
        self.stopping.stop();
        self.coordinator.wake();
    }
}

/// The error of a request whose connection is closed, since it gets no answer.
fn unanswered(why: Unanswered) -> Error {
    Error::new(ErrorKind::InvalidMessage(why.to_string()))
}

fn response(
    api_key: i16,
    version: i16,
    correlation_id: i32,
    body: &Struct<'_>,
    parts: Vec<Vec<Part>>,
) -> Result<Response> {
    let (head, gaps) = write_response(api_key, version, correlation_id.into(), body)?;
    Ok(Response { head, gaps, parts })
}
