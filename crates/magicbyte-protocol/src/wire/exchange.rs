//! The contents of a capture: requests with their responses, and a summary of what could not be read.

use std::net::SocketAddr;

/// The maximum number of problems that are listed.
const LISTED: usize = 100;

/// A request and its response, as far as the capture has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// The number of the connection in the capture, from 0.
    pub connection: u64,
    /// The client's address; None for streams, which have none.
    pub client: Option<SocketAddr>,
    /// The server's address.
    pub server: Option<SocketAddr>,
    /// The start of the request; None if the request is not in the capture, or is a token of SASL.
    pub head: Option<RequestHead>,
    /// True if the frames are SASL tokens after SaslHandshake version 0, which are not messages.
    pub is_sasl_token: bool,
    /// The time at which the request was captured to its end, in microseconds since 1970.
    pub request_time: Option<i64>,
    /// The time at which the response was captured to its end.
    pub response_time: Option<i64>,
    /// The request's frame, without its size; [`read_request`](crate::message::read_request) reads it.
    pub request: Option<Vec<u8>>,
    /// The response's frame; [`read_response`](crate::message::read_response) reads it. A Produce request with `acks`
    /// 0 has none.
    pub response: Option<Vec<u8>>,
}

/// The start of every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// The API's key.
    pub api_key: i16,
    /// The version of the request and its response.
    pub api_version: i16,
    /// The id that the response repeats.
    pub correlation_id: i32,
}

/// A summary of a capture, apart from its exchanges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WireSummary {
    /// TCP connections.
    pub connections: u64,
    /// Encrypted TCP connections.
    pub tls_connections: u64,
    /// TCP connections that carry a protocol other than Kafka's.
    pub other_connections: u64,
    /// Packets that are not TCP over IP, or cannot be read.
    pub other_packets: u64,
    /// Bytes that packets missing in the capture had.
    pub lost_bytes: u64,
    /// Bytes of Kafka connections in which no frame was recognized, such as before the first one, or after a loss.
    pub skipped_bytes: u64,
    /// Problems that were found, and where.
    pub problems: Vec<String>,
    /// The number of further problems.
    pub problems_left_out: u64,
}

impl WireSummary {
    pub(crate) fn problem(&mut self, text: String) {
        match self.problems.len() < LISTED {
            true => self.problems.push(text),
            false => self.problems_left_out += 1,
        }
    }
}
