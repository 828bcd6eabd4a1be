//! The broker: a request in, a response out.

use std::sync::{Mutex, MutexGuard};

use crate::broker::append_error::ErrorCode;
use crate::bytes::cursor::be;
use crate::error::{Error, ErrorKind, Result};
use crate::log::listing::Listing;
use crate::message::frame::{read_request, read_request_start, write_response};
use crate::message::value::Struct;
use crate::message::write::Gap;
use crate::serve::archive::Archive;
use crate::serve::cluster::{self, Address};
use crate::serve::coordinator::{Client, Coordinator, find_coordinator};
use crate::serve::fetch::{FetchRequest, fetch};
use crate::serve::fetch_sessions::FetchSessions;
use crate::serve::fields::text;
use crate::serve::groups::Groups;
use crate::serve::lock::lock;
use crate::serve::offsets::{list_offsets, offset_for_leader_epoch, refuse_produce};
use crate::serve::options::{ServeLimits, ServeOptions};
use crate::serve::partition::Shared;
use crate::serve::span::Part;
use crate::serve::stopping::Stopping;
use crate::serve::view::ViewOptions;

/// Larger requests are read one after another: as values they can take a hundred times their size.
const LARGE: usize = 16 << 10;

/// The start of a request's header: API, version, correlation id.
const HEADER_START: usize = 8;

/// A broker without a network: it answers requests from partition directories.
#[derive(Debug)]
pub struct ReadOnlyBroker {
    archive: Archive,
    sessions: FetchSessions,
    coordinator: Coordinator,
    advertised: Option<Address>,
    large: Mutex<()>,
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

impl ReadOnlyBroker {
    /// A broker of these partitions, as `list_partition` lists them. Their segments are read when clients ask for them.
    #[must_use]
    pub fn new(listings: Vec<Listing>, options: ServeOptions) -> Self {
        let view = ViewOptions { as_of: options.as_of, read_committed_only: options.read_committed_only };
        let shared =
            Shared { view, to_magic_2: options.to_magic_2, follow: options.follow, ..Shared::default() };
        let mut groups = Groups::default();
        for (group, topic, partition, offset) in options.committed {
            groups.restore(&group, (topic, partition), offset);
        }
        Self {
            archive: Archive::new(listings, options.topics, shared),
            sessions: FetchSessions::default(),
            coordinator: Coordinator::new(groups),
            advertised: options.advertised_listener.map(|(host, port)| Address { host, port }),
            large: Mutex::default(),
            limits: options.limits,
            stopping: Stopping::default(),
        }
    }

    /// Answers a request, without the frame's size; the response has none either. None if the request wants no
    /// response. Waits where a broker waits: at the end of a log, and for other members of a group.
    ///
    /// # Errors
    /// Those of [`read_request`](crate::message::read_request), and [`ErrorKind::UnsupportedVersion`] for an API or
    /// version that is not served: a broker closes the connection.
    pub fn handle(&self, request: &[u8]) -> Result<Option<Vec<u8>>> {
        let host = "127.0.0.1".to_owned();
        let peer = Peer { host: host.clone(), reached: Address { host, port: 9092 } };
        let Some(response) = self.answer(request, &peer)? else { return Ok(None) };
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

    /// As [`handle`](Self::handle), with record sets that are still in their files.
    pub(super) fn answer(&self, frame: &[u8], peer: &Peer) -> Result<Option<Response>> {
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
        let turn = (frame.len() > LARGE).then(|| lock(&self.large));
        self.answer_version(frame, (api_key, version, correlation_id), peer, turn)
    }

    fn answer_version(
        &self,
        frame: &[u8],
        (api_key, version, correlation_id): (i16, i16, i32),
        peer: &Peer,
        turn: Option<MutexGuard<'_, ()>>,
    ) -> Result<Option<Response>> {
        let message = read_request_start(frame, api_key, version)?;
        let request = &message.body;
        let archive = &self.archive;
        let address = self.advertised.as_ref().unwrap_or(&peer.reached);
        let client_id = text(&message.header, "clientId").unwrap_or_default();
        let client = Client { id: &client_id, host: &peer.host };
        let is_stopping = || self.stopping.is_stopping();
        let body = match api_key {
            cluster::FETCH => {
                let request = FetchRequest::of(request);
                // Others get their turn while this client waits.
                drop((message, turn));
                let fetched = fetch(archive, &self.sessions, &self.stopping, request);
                return response(api_key, version, correlation_id, &fetched.body, fetched.parts).map(Some);
            }
            cluster::JOIN_GROUP => {
                let joining = self.coordinator.begin_join(version, client, request);
                drop((message, turn));
                joining.map_or_else(
                    |failed| failed,
                    |joining| self.coordinator.join(version, joining, &is_stopping),
                )
            }
            cluster::SYNC_GROUP => {
                let syncing = Coordinator::begin_sync(request);
                drop((message, turn));
                self.coordinator.sync(syncing, &is_stopping)
            }
            cluster::PRODUCE => match refuse_produce(request) {
                Some(body) => body,
                None => return Ok(None),
            },
            cluster::LIST_OFFSETS => list_offsets(archive, request),
            cluster::METADATA => cluster::metadata(archive, address, version, request),
            cluster::OFFSET_COMMIT => self.coordinator.commit(archive, request),
            cluster::OFFSET_FETCH => self.coordinator.committed(archive, version, request),
            cluster::FIND_COORDINATOR => find_coordinator(address, version, request),
            cluster::HEARTBEAT => self.coordinator.heartbeat(request),
            cluster::LEAVE_GROUP => self.coordinator.leave(version, request),
            cluster::DESCRIBE_GROUPS => self.coordinator.describe(request),
            cluster::LIST_GROUPS => self.coordinator.list(request),
            cluster::OFFSET_FOR_LEADER_EPOCH => offset_for_leader_epoch(archive, request),
            cluster::DESCRIBE_CONFIGS => cluster::describe_configs(archive, request),
            cluster::DESCRIBE_CLUSTER => cluster::describe_cluster(address),
            cluster::DESCRIBE_TOPIC_PARTITIONS => cluster::describe_topic_partitions(archive, request),
            _ => cluster::api_versions(ErrorCode::None),
        };
        response(api_key, version, correlation_id, &body, Vec::new()).map(Some)
    }

    /// Ends all waiting, now and from now on: a request that would wait is answered at once.
    pub fn stop(&self) {
        self.stopping.stop();
        self.coordinator.wake();
    }
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
