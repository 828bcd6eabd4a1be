//! A connection to one broker: frames, versions, and requests that are pipelined.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use magicbyte::Error as FormatError;
use magicbyte_broker::ErrorCode;
use magicbyte_protocol::message::body::{
    ApiVersionsRequest, ApiVersionsResponse, Body, read_response, write_request,
};
use magicbyte_protocol::message::{
    ApiKey, Message, MessageKind, Struct, Value, read_response as read_message, write_message,
};

use crate::address::Address;
use crate::backoff::deadline;
use crate::error::{Error, Result};
use crate::frames::Frames;
use crate::options::ClientOptions;
use crate::stream::Stream;

/// The APIs that this client uses, and the versions in which it knows what each field means. The oldest ones are those of
/// Kafka 0.10.
const VERSIONS: [(ApiKey, i16, i16); 22] = [
    (ApiKey::Fetch, 2, 18),
    (ApiKey::ListOffsets, 1, 11),
    (ApiKey::Metadata, 1, 13),
    // Later versions name topics by their ids alone.
    (ApiKey::OffsetFetch, 2, 9),
    (ApiKey::FindCoordinator, 0, 6),
    (ApiKey::SaslHandshake, 0, 1),
    (ApiKey::ApiVersions, 0, NEWEST_API_VERSIONS),
    (ApiKey::OffsetForLeaderEpoch, 2, 4),
    (ApiKey::DescribeAcls, 1, 3),
    (ApiKey::DescribeConfigs, 1, 4),
    (ApiKey::SaslAuthenticate, 0, 2),
    (ApiKey::DescribeClientQuotas, 0, 1),
    (ApiKey::DescribeUserScramCredentials, 0, 0),
    (ApiKey::DescribeLogDirs, 1, 5),
    (ApiKey::DescribeQuorum, 0, 2),
    (ApiKey::ListConfigResources, 0, 1),
    (ApiKey::ListGroups, 0, 5),
    (ApiKey::DescribeGroups, 0, 6),
    (ApiKey::ConsumerGroupDescribe, 0, 1),
    (ApiKey::ShareGroupDescribe, 0, 1),
    (ApiKey::StreamsGroupDescribe, 0, 1),
    (ApiKey::DescribeShareGroupOffsets, 0, 1),
];
/// The first to be sent. Later ones ask whether the broker is the one that is meant (KIP-1242).
const NEWEST_API_VERSIONS: i16 = 3;
/// The smallest response: a correlation id.
const MIN_RESPONSE: i32 = 4;
/// Memory that is reserved before any byte of a response has arrived.
const FIRST_READ: usize = 1 << 20;

/// A connection to a broker, which sends any requests. They are pipelined: several may be sent before the first response is
/// received.
///
/// Every wait has a deadline. After an error other than [`ErrorKind::Broker`](crate::ErrorKind::Broker), the connection
/// is of no use.
pub struct Connection {
    broker: String,
    stream: Stream,
    options: Arc<ClientOptions>,
    /// The versions that the broker has, by the key of the API.
    offered: HashMap<i16, (i16, i16)>,
    /// The correlation ids of requests without a response, oldest first.
    waiting: VecDeque<i32>,
    next_id: i32,
    has_failed: bool,
    /// The time by which the broker wants to delay the next response because of a quota.
    throttle: Duration,
    /// The time at which the broker ends an authenticated session (KIP-368).
    expires: Option<Instant>,
}

/// A request that was sent, and its place in the connection.
#[derive(Debug)]
#[must_use = "a response is received, or dropped with the next one"]
pub struct Sent {
    correlation_id: i32,
    api: ApiKey,
    /// The version of the request, and of its response.
    pub version: i16,
}

/// A response: the frame, in memory of its own, and how to read it.
#[derive(Clone, Debug)]
pub struct Response {
    frame: Bytes,
    broker: String,
    api: ApiKey,
    version: i16,
}

impl Connection {
    /// Connects by TCP or TLS, and asks for the versions that the broker has.
    pub(crate) fn connect(address: &Address, options: &Arc<ClientOptions>) -> Result<Self> {
        let broker = address.to_string();
        let stream = Stream::connect(address, options).map_err(|error| error.at(&broker))?;
        let mut connection = Self {
            broker,
            stream,
            options: Arc::clone(options),
            offered: HashMap::new(),
            waiting: VecDeque::new(),
            next_id: 1,
            has_failed: false,
            throttle: Duration::ZERO,
            expires: None,
        };
        connection.ask_versions()?;
        Ok(connection)
    }

    /// Notes the time after which the broker ends the session.
    pub(crate) fn expire_after(&mut self, lifetime: Duration) {
        self.expires = Some(deadline(lifetime));
    }

    /// The host and port, as in errors.
    #[must_use]
    pub fn broker(&self) -> &str {
        &self.broker
    }

    /// True if the connection is of no use any more: after an error, or when the broker is about to end the session.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.has_failed || self.expires.is_some_and(|expires| Instant::now() >= expires)
    }

    /// The number of requests without a response.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.waiting.len()
    }

    /// The newest version of an API that both sides know.
    ///
    /// # Errors
    /// [`ErrorKind::UnsupportedVersion`](crate::ErrorKind::UnsupportedVersion) if they have none in common.
    pub fn version(&self, api: ApiKey) -> Result<i16> {
        let unsupported = |why| Error::new(crate::ErrorKind::UnsupportedVersion(why)).at(&self.broker);
        let Some(&(_, oldest, newest)) = VERSIONS.iter().find(|(key, ..)| *key == api) else {
            return Err(unsupported(format!("{} is not used by this client", api.name())));
        };
        let Some(&(offered_oldest, offered_newest)) = self.offered.get(&(api as i16)) else {
            return Err(unsupported(format!("the broker does not have {}", api.name())));
        };
        let version = newest.min(offered_newest);
        if version < oldest.max(offered_oldest) {
            return Err(unsupported(format!(
                "{}: the broker has versions {offered_oldest} to {offered_newest}, this client {oldest} to {newest}",
                api.name()
            )));
        }
        Ok(version)
    }

    /// Sends a request in the newest version that both sides know, for which `body` makes it.
    ///
    /// # Errors
    /// The errors of the connection, and that of a body that does not fit its version.
    pub fn send<B: Body>(&mut self, body: impl FnOnce(i16) -> B) -> Result<Sent> {
        self.send_at_most(i16::MAX, body)
    }

    /// Sends a request in the newest common version up to this one; see [`send`](Self::send).
    pub(crate) fn send_at_most<B: Body>(&mut self, newest: i16, body: impl FnOnce(i16) -> B) -> Result<Sent> {
        let version = self.version(B::API)?.min(newest);
        self.send_version(version, &body(version))
    }

    fn send_version<B: Body>(&mut self, version: i16, body: &B) -> Result<Sent> {
        let correlation_id = self.next_id;
        self.next_id = self.next_id.checked_add(1).unwrap_or(1);
        let frame = write_request(body, version, correlation_id, Some(&self.options.client_id));
        self.send_frame(frame, Sent { correlation_id, api: B::API, version })
    }

    fn send_frame(&mut self, frame: magicbyte::Result<Vec<u8>>, sent: Sent) -> Result<Sent> {
        let frame = frame.map_err(|error| Error::options(error.to_string()).at(&self.broker))?;
        self.write_frame(&frame)?;
        self.waiting.push_back(sent.correlation_id);
        Ok(sent)
    }

    /// Sends a request whose body is a structure, in the newest version that both sides know, and receives its response.
    ///
    /// # Errors
    /// The errors of [`call`](Self::call); [`ErrorKind::InvalidOptions`](crate::ErrorKind::InvalidOptions) for a field
    /// that the version does not have.
    pub(crate) fn call_struct(&mut self, api: ApiKey, body: Struct<'_>) -> Result<Response> {
        let version = self.version(api)?;
        let correlation_id = self.next_id;
        self.next_id = self.next_id.checked_add(1).unwrap_or(1);
        let header = Struct::from([
            ("correlationId", Value::Int(correlation_id.into())),
            ("clientId", Value::from(self.options.client_id.as_str())),
        ]);
        let kind = MessageKind::Request;
        let frame = write_message(&Message { kind, api_key: api as i16, api_version: version, header, body });
        let sent = self.send_frame(frame, Sent { correlation_id, api, version })?;
        self.receive(sent)
    }

    /// Receives the response to a request. Those to earlier requests are dropped.
    ///
    /// # Errors
    /// A timeout, if it does not arrive within [`request_timeout`](ClientOptions::request_timeout) from now;
    /// [`ErrorKind::Protocol`](crate::ErrorKind::Protocol) if the frame is not a response to the request.
    pub fn receive(&mut self, sent: Sent) -> Result<Response> {
        self.receive_in(&Frames::new(0), sent)
    }

    /// Receives the response to a request into one of these frames; see [`receive`](Self::receive).
    pub(crate) fn receive_in(&mut self, frames: &Frames, sent: Sent) -> Result<Response> {
        if !self.awaits(&sent) {
            return Err(Error::protocol("the request was not sent on this connection").at(&self.broker));
        }
        let awaited = format!("answer {}", sent.api.name());
        loop {
            let mut memory = frames.take();
            let length = self.read_frame(&awaited, &mut memory)?;
            let frame = frames.lend(memory, length);
            let id = frame.first_chunk().map(|id| i32::from_be_bytes(*id));
            let expected = self.waiting.pop_front();
            if id != expected || expected.is_none() {
                let expected = expected.map_or("none".into(), |id| id.to_string());
                let why = format!("a response with correlation id {}: expected {expected}", id.unwrap_or(-1));
                return Err(self.failed(Error::protocol(why)));
            }
            if id == Some(sent.correlation_id) {
                return Ok(Response {
                    frame,
                    broker: self.broker.clone(),
                    api: sent.api,
                    version: sent.version,
                });
            }
        }
    }

    /// Sends a request and receives its response.
    ///
    /// # Errors
    /// The errors of [`send`](Self::send) and [`receive`](Self::receive).
    pub fn call<B: Body>(&mut self, body: impl FnOnce(i16) -> B) -> Result<Response> {
        let sent = self.send(body)?;
        self.receive(sent)
    }

    /// True if the response to a request is still to come: it was neither received nor dropped.
    pub(crate) fn awaits(&self, sent: &Sent) -> bool {
        self.waiting.contains(&sent.correlation_id)
    }

    /// The time in which a broker has to answer.
    pub(crate) fn patience(&self) -> Duration {
        self.options.request_timeout
    }

    /// Notes that the broker delays its next response. A broker that names any time gains no more than the caller's
    /// patience.
    pub(crate) fn note_throttle(&mut self, throttle_time_ms: i32) {
        let throttle = Duration::from_millis(u64::try_from(throttle_time_ms).unwrap_or(0));
        self.throttle = throttle.min(self.options.retry_timeout);
    }

    pub(crate) fn write_frame(&mut self, frame: &[u8]) -> Result<()> {
        if self.has_failed {
            let why =
                std::io::Error::new(std::io::ErrorKind::NotConnected, "the connection has failed before");
            return Err(Error::new(crate::ErrorKind::Io(why)).at(&self.broker));
        }
        let size = i32::try_from(frame.len())
            .map_err(|_| Error::options(format!("a request of {} bytes", frame.len())).at(&self.broker))?;
        let timeout = self.options.request_timeout;
        self.stream.set_timeout(timeout);
        self.stream
            .write_all(&[&size.to_be_bytes(), frame].concat())
            .map_err(|error| self.failed(Error::from_io(error, timeout, "accept a request")))
    }

    /// Reads a frame to the start of `frame`, which may have other bytes; returns its length.
    pub(crate) fn read_frame(&mut self, awaited: &str, frame: &mut Vec<u8>) -> Result<usize> {
        let timeout = self.options.request_timeout.saturating_add(std::mem::take(&mut self.throttle));
        self.stream.set_timeout(timeout);
        let mut size = [0; 4];
        self.stream
            .read_exact(&mut size)
            .map_err(|error| self.failed(Error::from_io(error, timeout, awaited)))?;
        let (size, limit) = (i32::from_be_bytes(size), self.options.max_response_bytes);
        let whole = usize::try_from(size).ok().filter(|&whole| size >= MIN_RESPONSE && whole <= limit);
        let Some(whole) = whole else {
            let why = format!("a response of {size} bytes: expected {MIN_RESPONSE} to {limit}");
            return Err(self.failed(Error::protocol(why)));
        };
        let mut read = 0;
        while read < whole {
            // Memory follows the bytes: a size alone reserves little.
            let end = whole.min((read + read.max(FIRST_READ)).max(frame.len()));
            if end > frame.len() {
                frame.reserve_exact(end - frame.len());
                frame.resize(end, 0);
            }
            self.stream
                .read_exact(&mut frame[read..end])
                .map_err(|error| self.failed(Error::from_io(error, timeout, awaited)))?;
            read = end;
        }
        Ok(whole)
    }

    /// An error after which nothing that arrives can be trusted.
    fn failed(&mut self, error: Error) -> Error {
        self.has_failed = true;
        error.at(&self.broker)
    }

    /// Asks for the versions of all APIs, first in the newest form. A broker that does not know it says so in the oldest
    /// (KIP-511).
    fn ask_versions(&mut self) -> Result<()> {
        let named = ApiVersionsRequest {
            client_software_name: "magicbyte".into(),
            client_software_version: env!("CARGO_PKG_VERSION").into(),
            ..Default::default()
        };
        for (version, request) in [(NEWEST_API_VERSIONS, named), (0, ApiVersionsRequest::default())] {
            let sent = self.send_version(version, &request)?;
            let response = self.receive(sent)?;
            let response: ApiVersionsResponse<'_> = response.read()?;
            if response.error_code == ErrorCode::UnsupportedVersion.code() && version > 0 {
                continue;
            }
            Error::check("ApiVersions", response.error_code).map_err(|error| error.at(&self.broker))?;
            let offered =
                response.api_keys.iter().map(|api| (api.api_key, (api.min_version, api.max_version)));
            self.offered = offered.collect();
            return Ok(());
        }
        Err(self.failed(Error::protocol("ApiVersions: UNSUPPORTED_VERSION of version 0")))
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("broker", &self.broker)
            .field("in_flight", &self.in_flight())
            .field("is_over", &self.is_over())
            .finish_non_exhaustive()
    }
}

impl Response {
    /// Reads the fields. Strings and record sets borrow the frame.
    ///
    /// # Errors
    /// [`ErrorKind::Protocol`](crate::ErrorKind::Protocol) if the bytes are not a response to the request.
    pub fn read<'a, B>(&'a self) -> Result<B>
    where
        B: Body + TryFrom<Struct<'a>, Error = FormatError>,
    {
        if B::API != self.api {
            let why = format!("a response to {}, not to {}", self.api.name(), B::API.name());
            return Err(Error::protocol(why).at(&self.broker));
        }
        match read_response::<B>(&self.frame, self.version) {
            Ok((_, body)) => Ok(body),
            Err(error) => Err(Error::protocol(error.to_string()).at(&self.broker)),
        }
    }

    /// Reads the fields as a structure, which borrows the frame.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    pub fn read_struct(&self) -> Result<Struct<'_>> {
        let message = read_message(&self.frame, self.api as i16, self.version);
        message
            .map(|message| message.body)
            .map_err(|error| Error::protocol(error.to_string()).at(&self.broker))
    }

    /// A part of the frame that was read from it, without a copy.
    #[must_use]
    pub fn share(&self, part: &[u8]) -> Bytes {
        self.frame.slice_ref(part)
    }

    /// The broker's host and port.
    #[must_use]
    pub fn broker(&self) -> &str {
        &self.broker
    }

    /// The version of the response.
    #[must_use]
    pub fn version(&self) -> i16 {
        self.version
    }
}
