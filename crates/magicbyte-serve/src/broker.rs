//! The broker: a request in, a response out.

use std::borrow::Cow;

use magicbyte::{Error, ErrorKind, Result};
use magicbyte_broker::ErrorCode;
use magicbyte_log::Listing;
use magicbyte_protocol::internals::read_request_start;
use magicbyte_protocol::message::body::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use magicbyte_protocol::message::body::{ProduceRequest, ProduceResponse, RequestHeader};
use magicbyte_protocol::message::{ApiKey, Struct};

use crate::administration;
use crate::archive::{Archive, TopicRef};
use crate::cluster::{self, Address};
use crate::configs::describe_configs;
use crate::coordinator::{Coordinator, find_coordinator};
use crate::fetch::{FetchQuery, Fetched, fetch};
use crate::fetch_sessions::FetchSessions;
use crate::limits::{
    MAX_RESPONSE_MEMORY, OWN_MEMORY, OWN_REQUESTS, PARTITION_MEMORY, REQUEST_FACTOR, SHARED_MEMORY,
    SHARED_REQUESTS,
};
use crate::log_dirs::describe_log_dirs;
use crate::members::{Client, Joining, NotJoined, Syncing};
use crate::memory::{Budget, Memory, Unanswered};
use crate::offsets::{EpochLookups, OffsetLookups, list_offsets, offset_for_leader_epoch};
use crate::options::{ServeLimits, ServeOptions};
use crate::partition::Shared;
use crate::producers::{ProducerLookups, describe_producers};
use crate::recipient::Recipient;
use crate::request::{Request, RequestStart};
use crate::requested::{RequestedTopic, requested};
use crate::response::{Response, array};
use crate::stopping::Stopping;
use crate::transactions::Transactions;
use crate::view::ViewOptions;

/// The first version of Produce with ids of topics instead of names.
const PRODUCE_BY_ID: i16 = 13;

/// A request that was dispatched.
enum Dispatched {
    /// The client wants no response.
    NoResponse,
    Response(Response),
    // Requests that can take long, without their frames.
    Fetch(FetchQuery),
    ListOffsets(OffsetLookups),
    OffsetForLeaderEpoch(EpochLookups),
    DescribeProducers(ProducerLookups),
    JoinGroup(std::result::Result<Joining, NotJoined>),
    SyncGroup(Syncing),
}

/// A broker without a network: it answers requests from partition directories.
#[derive(Debug)]
pub struct ReadOnlyBroker {
    archive: Archive,
    sessions: FetchSessions,
    coordinator: Coordinator,
    transactions: Transactions,
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
            sessions: FetchSessions::default(),
            coordinator: Coordinator::new(options.groups, options.committed, archive.topic_partitions()),
            transactions: Transactions::new(options.transactions, options.as_of),
            archive,
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

    /// Responds to a request, without the frame's size; the response has none either. None if the request wants no
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
        let mut bytes = Vec::new();
        let mut start = 0;
        for (gap, parts) in gaps.iter().zip(parts) {
            bytes.extend_from_slice(&head[start..gap.position]);
            start = gap.position;
            for part in parts {
                part.append_to(&mut bytes).map_err(|error| {
                    Error::new(ErrorKind::FileUnreadable(error.to_string())).in_field("records")
                })?;
            }
        }
        bytes.extend_from_slice(&head[start..]);
        Ok(Some(bytes))
    }

    /// Like [`handle`](Self::handle), but returns record sets that are still in their files.
    pub(super) fn answer(
        &self,
        frame: impl AsRef<[u8]>,
        peer: &Peer,
        budget: &Budget<'_>,
    ) -> Result<Option<Response>> {
        let start = RequestStart::read(frame.as_ref())?;
        if let Err(error) = start.check_version() {
            if start.api.key != ApiKey::ApiVersions {
                return Err(error);
            }
            // As a broker does, so that the client can try another version (KIP-511).
            let start = RequestStart { version: 0, ..start };
            return start.respond(&cluster::api_versions(ErrorCode::UnsupportedVersion)).map(Some);
        }
        let dispatched = self.dispatch(frame.as_ref(), start, peer, budget)?;
        // Others get the memory of the frame while the request waits.
        drop(frame);
        let (archive, coordinator) = (&self.archive, &self.coordinator);
        let response = match dispatched {
            Dispatched::NoResponse => return Ok(None),
            Dispatched::Response(response) => Ok(response),
            Dispatched::Fetch(query) => {
                let Fetched { body, parts } = fetch(archive, &self.sessions, budget, query)?;
                start.respond_with(&body, parts)
            }
            Dispatched::ListOffsets(lookups) => start.respond(&list_offsets(archive, budget, &lookups)?),
            Dispatched::OffsetForLeaderEpoch(lookups) => {
                start.respond(&offset_for_leader_epoch(archive, budget, &lookups)?)
            }
            Dispatched::DescribeProducers(lookups) => {
                start.respond(&describe_producers(archive, budget, &lookups)?)
            }
            Dispatched::JoinGroup(Ok(joining)) => {
                start.respond(&coordinator.join(start.version, budget, joining)?)
            }
            Dispatched::JoinGroup(Err(refused)) => start.respond(&refused.response(start.version)),
            Dispatched::SyncGroup(syncing) => start.respond(&coordinator.sync(budget, syncing)?),
        };
        response.map(Some)
    }

    /// Responds to a request of a version that is served, or takes what is needed of one that can take long.
    fn dispatch(
        &self,
        frame: &[u8],
        start: RequestStart,
        peer: &Peer,
        budget: &Budget<'_>,
    ) -> Result<Dispatched> {
        let _values = budget.lend(frame.len().saturating_mul(REQUEST_FACTOR))?;
        let version = start.version;
        let message = read_request_start(frame, start.api.key as i16, version)?;
        let (archive, coordinator) = (&self.archive, &self.coordinator);
        let address = self.advertised.as_ref().unwrap_or(&peer.reached);
        let response = match start.request(message.body)? {
            Request::Produce(request) if request.acks == 0 => return Ok(Dispatched::NoResponse),
            Request::Produce(request) => start.respond(&refuse_produce(budget, version, &request)?),
            Request::Fetch(request) => return Ok(Dispatched::Fetch(FetchQuery::new(request, version))),
            Request::ListOffsets(request) => {
                return Ok(Dispatched::ListOffsets(OffsetLookups::new(request)));
            }
            Request::OffsetForLeaderEpoch(request) => {
                return Ok(Dispatched::OffsetForLeaderEpoch(EpochLookups::new(request)));
            }
            Request::DescribeProducers(request) => {
                return Ok(Dispatched::DescribeProducers(ProducerLookups::new(request)));
            }
            Request::DescribeTransactions(request) => {
                start.respond(&self.transactions.describe(budget, &request)?)
            }
            Request::ListTransactions(request) => start.respond(&self.transactions.list(budget, &request)?),
            Request::JoinGroup(request) => {
                let client_id = client_id(message.header)?;
                let client = Client { id: &client_id, host: &peer.host };
                return Ok(Dispatched::JoinGroup(coordinator.begin_join(version, client, request)));
            }
            Request::SyncGroup(request) => return Ok(Dispatched::SyncGroup(Syncing::new(request))),
            Request::Metadata(request) => {
                start.respond(&cluster::metadata(archive, budget, address, version, &request)?)
            }
            Request::OffsetCommit(request) => {
                start.respond(&coordinator.commit(archive, budget, version, &request)?)
            }
            Request::OffsetFetch(request) => {
                start.respond(&coordinator.committed(archive, budget, version, request)?)
            }
            Request::FindCoordinator(request) => {
                start.respond(&find_coordinator(budget, address, version, &request)?)
            }
            Request::Heartbeat(request) => start.respond(&coordinator.heartbeat(&request)),
            Request::LeaveGroup(request) => start.respond(&coordinator.leave(version, budget, &request)?),
            Request::DescribeGroups(request) => {
                start.respond(&coordinator.describe(budget, version, &request)?)
            }
            Request::ConsumerGroupHeartbeat(request) => {
                let client_id = client_id(message.header)?;
                let client = Client { id: &client_id, host: &peer.host };
                start.respond(&coordinator.consumer_heartbeat(archive, budget, version, client, &request)?)
            }
            Request::ConsumerGroupDescribe(request) => {
                start.respond(&coordinator.describe_consumer_groups(archive, budget, &request)?)
            }
            Request::ShareGroupDescribe(request) => {
                start.respond(&coordinator.describe_share_groups(budget, &request)?)
            }
            Request::ListGroups(request) => start.respond(&coordinator.list(budget, &request)?),
            Request::ApiVersions(_) => start.respond(&cluster::api_versions(ErrorCode::None)),
            Request::DescribeConfigs(request) => start.respond(&describe_configs(archive, budget, &request)?),
            Request::DescribeLogDirs(request) => {
                start.respond(&describe_log_dirs(archive, budget, &request)?)
            }
            Request::DescribeCluster(_) => start.respond(&cluster::describe_cluster(address)),
            Request::DescribeTopicPartitions(request) => {
                start.respond(&cluster::describe_topic_partitions(archive, budget, &request)?)
            }
            Request::Administration(request) => administration::respond(archive, budget, start, &request),
        };
        response.map(Dispatched::Response)
    }

    /// Ends all waiting, now and from now on: a request that would wait gets its response at once.
    pub fn stop(&self) {
        self.stopping.stop();
        self.coordinator.wake();
    }
}

/// The client's name for itself.
fn client_id(header: Struct<'_>) -> Result<Cow<'_, str>> {
    Ok(RequestHeader::try_from(header)?.client_id.unwrap_or_default())
}

/// The response to Produce: an error for each partition.
///
/// # Errors
/// If memory is exhausted.
fn refuse_produce(
    budget: &Budget<'_>,
    version: i16,
    request: &ProduceRequest<'_>,
) -> std::result::Result<ProduceResponse<'static>, Unanswered> {
    let topics = requested(request.topic_data.iter().map(|topic| {
        let partitions = topic.partition_data.iter().map(|partition| (partition.index, ()));
        (TopicRef::new(&topic.name, topic.topic_id, version >= PRODUCE_BY_ID), partitions)
    }));
    let responses = topics.into_iter().map(|RequestedTopic { topic, partitions }| {
        let refused = partitions.into_iter().map(|requested| {
            Ok(PartitionProduceResponse {
                index: requested.partition,
                error_code: ErrorCode::PolicyViolation.code(),
                base_offset: -1,
                error_message: Some("magicbyte serve is read-only: nothing can be produced".into()),
                ..Default::default()
            })
        });
        let partition_responses = array(budget, refused)?;
        let (name, topic_id) = (topic.name().to_owned().into(), topic.id());
        Ok(TopicProduceResponse { name, topic_id, partition_responses })
    });
    Ok(ProduceResponse { responses: array(budget, responses)?, ..Default::default() })
}
