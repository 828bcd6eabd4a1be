//! A connection, which matches responses to their requests.

use std::collections::VecDeque;
use std::net::SocketAddr;

use magicbyte::internals::be;

use crate::message::frame::read_request;
use crate::message::value::Value;
use crate::wire::direction::Direction;
use crate::wire::exchange::{Exchange, WireSummary};
use crate::wire::requests::{begins_request, frame_size, is_request, is_tls, request_head};
use crate::wire::segment::Segment;

const PRODUCE: i16 = 0;
const SASL_HANDSHAKE: i16 = 17;
/// Requests without a response yet; of more, the oldest counts as unanswered. Clients send 5 at a time, few many more.
const MAX_PENDING: usize = 1024;
/// The memory of the frames that wait for others, in bytes.
const MAX_PENDING_BYTES: usize = 128 << 20;

/// The kind of data that a connection carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing was recognized so far.
    Unknown,
    Kafka,
    Tls,
    Other,
}

/// The two directions of a connection, and the requests without a response.
#[derive(Debug)]
pub(crate) struct Connection {
    number: u64,
    pub(crate) client: Option<SocketAddr>,
    server: Option<SocketAddr>,
    pub(crate) kind: Kind,
    pub(crate) requests: Direction,
    pub(crate) responses: Direction,
    pending: VecDeque<Exchange>,
    /// Responses whose requests are still to come.
    early: VecDeque<Exchange>,
    waiting_bytes: usize,
    /// True if the client may send SASL tokens that are not requests.
    sasl_tokens: bool,
    pub(crate) closed: bool,
    /// The number of the last packet.
    pub(crate) last_packet: u64,
}

impl Connection {
    pub(crate) fn new(number: u64, client: Option<SocketAddr>, server: Option<SocketAddr>) -> Self {
        Self {
            number,
            client,
            server,
            kind: Kind::Unknown,
            requests: Direction::new(),
            responses: Direction::new(),
            pending: VecDeque::new(),
            early: VecDeque::new(),
            waiting_bytes: 0,
            sasl_tokens: false,
            closed: false,
            last_packet: 0,
        }
    }

    /// The same connection, with no knowledge of its bytes.
    pub(crate) fn restarted(&self) -> Self {
        let kind = self.kind;
        Self { kind, last_packet: self.last_packet, ..Self::new(self.number, self.client, self.server) }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// True if anything was sent on the connection.
    pub(crate) fn has_bytes(&self) -> bool {
        self.requests.frames.skipped > 0 || self.responses.frames.skipped > 0
    }

    /// The memory of incomplete data, in bytes.
    pub(crate) fn held(&self) -> usize {
        self.requests.held() + self.responses.held() + self.waiting_bytes
    }

    /// True if the next response can be read only after more requests.
    pub(crate) fn needs_requests(&self) -> bool {
        self.pending.is_empty() || !self.early.is_empty()
    }

    /// Takes a segment from the client or the server.
    pub(crate) fn segment(
        &mut self,
        segment: &Segment<'_>,
        from_client: bool,
        out: &mut VecDeque<Exchange>,
        summary: &mut WireSummary,
    ) {
        if let Some(acknowledged) = segment.acknowledged {
            let other = if from_client { &mut self.responses } else { &mut self.requests };
            other.stream.acknowledge(acknowledged);
        }
        if matches!(self.kind, Kind::Tls | Kind::Other) {
            return;
        }
        if self.kind == Kind::Unknown && is_tls(segment.payload) {
            self.kind = Kind::Tls;
            return;
        }
        if from_client {
            self.requests.push(segment.sequence, segment.payload, &begins_request);
        } else {
            let pending = &self.pending;
            self.responses.push(segment.sequence, segment.payload, &|bytes| begins_response(bytes, pending));
        }
        self.requests.give_up_lost(&begins_request);
        self.read_requests(segment.time, out, summary);
        if self.kind == Kind::Other {
            // Nothing of it is kept.
            (self.requests, self.responses) = (Direction::new(), Direction::new());
            return;
        }
        let pending = &self.pending;
        self.responses.give_up_lost(&|bytes| begins_response(bytes, pending));
        self.read_responses(segment.time, out, summary);
    }

    /// Takes bytes of the client, in order.
    pub(crate) fn request_bytes(
        &mut self,
        bytes: &[u8],
        out: &mut VecDeque<Exchange>,
        summary: &mut WireSummary,
    ) {
        self.requests.frames.take(bytes, &begins_request);
        self.read_requests(None, out, summary);
    }

    /// Takes bytes of the server, in order.
    pub(crate) fn response_bytes(
        &mut self,
        bytes: &[u8],
        out: &mut VecDeque<Exchange>,
        summary: &mut WireSummary,
    ) {
        let pending = &self.pending;
        self.responses.frames.take(bytes, &|bytes| begins_response(bytes, pending));
        self.read_responses(None, out, summary);
    }

    fn exchange(&self) -> Exchange {
        Exchange { connection: self.number, client: self.client, server: self.server, ..Exchange::default() }
    }

    fn read_requests(&mut self, time: Option<i64>, out: &mut VecDeque<Exchange>, summary: &mut WireSummary) {
        loop {
            let frame = match self.requests.frames.next() {
                Ok(Some(frame)) => frame.to_vec(),
                Ok(None) => return,
                Err(error) => {
                    self.requests.frames.fail();
                    match self.kind {
                        Kind::Unknown => self.kind = Kind::Other,
                        _ => summary.problem(format!("connection {}, requests: {error}", self.number)),
                    }
                    return;
                }
            };
            if self.kind == Kind::Unknown {
                if !is_request(&frame, frame.len()) {
                    self.kind = Kind::Other;
                    return;
                }
                self.kind = Kind::Kafka;
            }
            self.request(frame, time, out);
        }
    }

    fn request(&mut self, frame: Vec<u8>, time: Option<i64>, out: &mut VecDeque<Exchange>) {
        // After its tokens, a client goes on with requests.
        let is_token = self.sasl_tokens && !is_request(&frame, frame.len());
        let mut exchange = self.exchange();
        exchange.is_sasl_token = is_token;
        exchange.head = request_head(&frame).filter(|_| !is_token);
        let is_handshake =
            exchange.head.is_some_and(|head| (head.api_key, head.api_version) == (SASL_HANDSHAKE, 0));
        // Its response may be captured later, or not at all.
        self.sasl_tokens = is_handshake || is_token;
        exchange.request_time = time;
        let unanswered = exchange.head.is_some_and(|head| head.api_key == PRODUCE) && has_no_response(&frame);
        exchange.request = Some(frame);
        if let Some(head) = exchange.head {
            let found = self.early.iter().position(|early| response_id(early) == Some(head.correlation_id));
            if let Some(early) = found.and_then(|index| self.early.remove(index)) {
                self.waiting_bytes -= size_of(&early);
                exchange.response = early.response;
                exchange.response_time = early.response_time;
                out.push_back(exchange);
                return;
            }
        }
        if unanswered {
            out.push_back(exchange);
            return;
        }
        self.waiting_bytes += size_of(&exchange);
        self.pending.push_back(exchange);
        while self.pending.len() > MAX_PENDING || self.waiting_bytes > MAX_PENDING_BYTES {
            self.give_up_oldest(out);
        }
    }

    /// Hands out the exchange that has waited for longest, as it is.
    fn give_up_oldest(&mut self, out: &mut VecDeque<Exchange>) {
        if let Some(oldest) = self.early.pop_front().or_else(|| self.pending.pop_front()) {
            self.waiting_bytes -= size_of(&oldest);
            out.push_back(oldest);
        }
    }

    fn read_responses(&mut self, time: Option<i64>, out: &mut VecDeque<Exchange>, summary: &mut WireSummary) {
        // Before a request, a server that speaks Kafka's protocol sends nothing.
        if self.kind == Kind::Unknown {
            return;
        }
        loop {
            let frame = match self.responses.frames.next() {
                Ok(Some(frame)) => frame.to_vec(),
                Ok(None) => return,
                Err(error) => {
                    self.responses.frames.fail();
                    summary.problem(format!("connection {}, responses: {error}", self.number));
                    return;
                }
            };
            self.response(frame, time, out);
        }
    }

    fn response(&mut self, frame: Vec<u8>, time: Option<i64>, out: &mut VecDeque<Exchange>) {
        let mut exchange = self.exchange();
        exchange.response_time = time;
        exchange.response = Some(frame);
        let id = response_id(&exchange);
        let answers = |pending: &Exchange| match pending.head {
            Some(head) => id == Some(head.correlation_id),
            None => true,
        };
        let Some(index) = self.pending.iter().position(answers) else {
            // Its request may be captured later, or have begun before the capture.
            self.waiting_bytes += size_of(&exchange);
            self.early.push_back(exchange);
            if self.early.len() > MAX_PENDING || self.waiting_bytes > MAX_PENDING_BYTES {
                self.give_up_oldest(out);
            }
            return;
        };
        // A broker answers in order: the responses to these are not in the capture.
        for unanswered in self.pending.drain(..index) {
            self.waiting_bytes -= size_of(&unanswered);
            out.push_back(unanswered);
        }
        let Some(mut answered) = self.pending.pop_front() else { return };
        self.waiting_bytes -= size_of(&answered);
        answered.response = exchange.response;
        answered.response_time = exchange.response_time;
        out.push_back(answered);
    }

    /// The end of the connection or the capture: hands out everything that waits, and adds up the losses.
    pub(crate) fn finish(
        &mut self,
        time: Option<i64>,
        out: &mut VecDeque<Exchange>,
        summary: &mut WireSummary,
    ) {
        while self.requests.stream.is_waiting() {
            self.requests.skip(&begins_request);
            self.read_requests(time, out, summary);
        }
        while self.responses.stream.is_waiting() {
            let pending = &self.pending;
            self.responses.skip(&|bytes| begins_response(bytes, pending));
            self.read_responses(time, out, summary);
        }
        // Data that waited for the first request.
        self.read_responses(time, out, summary);
        out.extend(self.pending.drain(..).chain(self.early.drain(..)));
        self.waiting_bytes = 0;
        for direction in [&mut self.requests, &mut self.responses] {
            direction.frames.abandon();
            if self.kind == Kind::Kafka {
                summary.lost_bytes += direction.lost;
                summary.skipped_bytes += direction.frames.skipped;
            }
        }
    }
}

/// The correlation id of an exchange's response.
fn response_id(exchange: &Exchange) -> Option<i32> {
    exchange.response.as_deref().filter(|frame| frame.len() >= 4).map(|frame| be!(frame, 0, i32))
}

/// True if bytes begin the response to one of these requests.
fn begins_response(bytes: &[u8], pending: &VecDeque<Exchange>) -> bool {
    let (Some(size), Some(frame)) = (frame_size(bytes), bytes.get(4..8)) else {
        return false;
    };
    let id = be!(frame, 0, i32);
    size >= 4 && pending.iter().any(|one| one.head.is_some_and(|head| head.correlation_id == id))
}

/// True if a Produce request has `acks` 0: the broker does not respond to it.
fn has_no_response(frame: &[u8]) -> bool {
    read_request(frame).is_ok_and(|request| request.body.get("acks") == Some(&Value::Int(0)))
}

/// The memory of an exchange, in bytes.
fn size_of(exchange: &Exchange) -> usize {
    let frames = [&exchange.request, &exchange.response];
    size_of_val(exchange) + frames.into_iter().flatten().map(Vec::len).sum::<usize>()
}
