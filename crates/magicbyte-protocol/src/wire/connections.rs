//! The connections of a capture, by the addresses of their packets.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use crate::wire::connection::{Connection, Kind};
use crate::wire::exchange::{Exchange, WireSummary};
use crate::wire::segment::Segment;

/// The maximum number of connections that are followed at a time. Beyond it, the connections that have been quiet for
/// longest are given up.
const MAX_CONNECTIONS: usize = 1 << 16;
/// The memory of all incomplete frames and exchanges, in bytes; beyond it, the largest ones are given up.
const MAX_HELD: usize = 256 << 20;

/// Two addresses, the smaller one first.
type Ends = (SocketAddr, SocketAddr);

/// Gives each segment to its connection.
#[derive(Debug)]
pub(crate) struct Connections {
    /// The ports to follow; empty for any port.
    ports: Vec<u16>,
    open: HashMap<Ends, Connection>,
    held: usize,
    packets: u64,
    /// Packets whose payload was not captured in full.
    cut: u64,
    time: Option<i64>,
    max_held: usize,
}

impl Connections {
    pub(crate) fn new(ports: Vec<u16>) -> Self {
        Self { ports, open: HashMap::new(), held: 0, packets: 0, cut: 0, time: None, max_held: MAX_HELD }
    }

    pub(crate) fn segment(
        &mut self,
        segment: &Segment<'_>,
        out: &mut VecDeque<Exchange>,
        summary: &mut WireSummary,
    ) {
        let (source, destination) = (segment.source, segment.destination);
        let [to, from] = [destination, source].map(|one| self.ports.contains(&one.port()));
        if !self.ports.is_empty() && !to && !from {
            summary.other_packets += 1;
            return;
        }
        self.packets += 1;
        self.cut += u64::from(segment.is_cut);
        self.time = segment.time.or(self.time);
        let ends = (source.min(destination), source.max(destination));
        let begins = segment.syn && segment.acknowledged.is_none();
        let known = self.open.get(&ends);
        let again = known.is_some_and(|one| one.requests.stream.began_at(segment.sequence));
        if begins && !again && known.is_some() {
            self.remove(&ends, out, summary);
        }
        if !self.open.contains_key(&ends) {
            if !segment.syn && segment.payload.is_empty() {
                return;
            }
            let client_sends = match segment.syn {
                true => begins,
                // Without the start of the connection, the server is the one with the port of a server.
                false if to != from => to,
                false => source.port() >= destination.port(),
            };
            let (client, server) = if client_sends { (source, destination) } else { (destination, source) };
            self.make_room(out, summary);
            let connection = Connection::new(summary.connections, Some(client), Some(server));
            summary.connections += 1;
            self.open.insert(ends, connection);
        }
        let Some(connection) = self.open.get_mut(&ends) else { return };
        connection.last_packet = self.packets;
        let from_client = connection.client == Some(source);
        let direction = if from_client { &mut connection.requests } else { &mut connection.responses };
        if segment.syn {
            if !direction.stream.began_at(segment.sequence) {
                direction.begin(segment.sequence);
            }
            return;
        }
        if connection.closed {
            return;
        }
        direction.finished |= segment.fin;
        let before = connection.held();
        connection.segment(segment, from_client, out, summary);
        if segment.rst || (connection.requests.finished && connection.responses.finished) {
            // It stays, so that retransmitted segments are not taken for another connection.
            connection.finish(self.time, out, summary);
            connection.closed = true;
        }
        self.held = self.held + connection.held() - before;
        if self.held > self.max_held {
            self.forget_largest(out, summary);
        }
    }

    /// The end of the capture.
    pub(crate) fn finish(&mut self, out: &mut VecDeque<Exchange>, summary: &mut WireSummary) {
        let mut numbered: Vec<_> = self.open.iter().map(|(ends, one)| (one.number(), *ends)).collect();
        numbered.sort_unstable();
        for (_, ends) in numbered {
            self.remove(&ends, out, summary);
        }
        if self.cut > 0 {
            let cut = self.cut;
            summary.problem(format!(
                "{cut} packets were cut when they were captured (tcpdump -s): their rest is lost"
            ));
        }
    }

    fn remove(&mut self, ends: &Ends, out: &mut VecDeque<Exchange>, summary: &mut WireSummary) {
        let Some(mut connection) = self.open.remove(ends) else { return };
        self.held -= connection.held();
        if !connection.closed {
            connection.finish(self.time, out, summary);
        }
        match connection.kind {
            Kind::Tls => summary.tls_connections += 1,
            Kind::Other => summary.other_connections += 1,
            Kind::Unknown if connection.has_bytes() => summary.other_connections += 1,
            Kind::Unknown | Kind::Kafka => {}
        }
    }

    fn make_room(&mut self, out: &mut VecDeque<Exchange>, summary: &mut WireSummary) {
        if self.open.len() < MAX_CONNECTIONS {
            return;
        }
        let mut quiet: Vec<_> = self.open.iter().map(|(ends, one)| (one.last_packet, *ends)).collect();
        quiet.sort_unstable();
        quiet.truncate(MAX_CONNECTIONS / 2);
        for (_, ends) in quiet {
            self.remove(&ends, out, summary);
        }
        summary.problem(format!(
            "more than {MAX_CONNECTIONS} connections at a time: half of them were given up"
        ));
    }

    fn forget_largest(&mut self, out: &mut VecDeque<Exchange>, summary: &mut WireSummary) {
        let mut largest: Vec<_> = self.open.iter().map(|(ends, one)| (one.held(), *ends)).collect();
        largest.sort_unstable();
        while self.held > self.max_held / 2
            && let Some((held, ends)) = largest.pop()
        {
            let Some(connection) = self.open.get_mut(&ends) else { continue };
            connection.finish(self.time, out, summary);
            *connection = connection.restarted();
            self.held -= held;
            summary.problem(format!(
                "connection {}: its {held} bytes of incomplete messages were given up: all connections had more \
                 than {} bytes of them",
                connection.number(),
                self.max_held
            ));
        }
    }
}
