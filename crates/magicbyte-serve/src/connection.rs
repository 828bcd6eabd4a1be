//! A connection: frames in, responses out, in order.

use std::io::{self, BufReader, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::broker::{Peer, ReadOnlyBroker};
use crate::cluster::Address;
use crate::limits::{MAX_ARRIVAL, MAX_DELIVERY, OWN_REQUESTS};
use crate::memory::Budget;
use crate::outgoing::Outgoing;
use crate::recipient::Recipient;
use crate::response::Response;

const BUFFER: usize = 16 << 10;
/// The send buffer towards a client on this machine, as a broker has it (`socket.send.buffer.bytes`): sending takes a quarter less
/// CPU time than with the megabytes that the system would choose, which are for networks with a delay.
#[cfg(target_os = "linux")]
const LOCAL_SEND_BUFFER: usize = 100 << 10;

/// A request, and its share of the memory of all that are under way.
struct Frame<'a> {
    bytes: Vec<u8>,
    _memory: Budget<'a>,
}

impl AsRef<[u8]> for Frame<'_> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Serves a connection until the client closes it, is idle for too long, or sends what no client would.
///
/// # Errors
/// Why the connection ended, unless the client closed it.
pub(super) fn serve(broker: &ReadOnlyBroker, stream: &TcpStream) -> io::Result<()> {
    let reached = stream.local_addr()?;
    let client = stream.peer_addr()?.ip();
    let peer = Peer {
        host: client.to_string(),
        reached: Address { host: reached.ip().to_string(), port: reached.port() },
    };
    let idle = broker.limits.idle;
    stream.set_nodelay(true)?;
    #[cfg(target_os = "linux")]
    if client.is_loopback() {
        rustix::net::sockopt::set_socket_send_buffer_size(stream, LOCAL_SEND_BUFFER)?;
    }
    stream.set_write_timeout(Some(idle))?;
    let recipient = Recipient::new(&broker.stopping, Some(stream));
    let mut incoming = BufReader::with_capacity(BUFFER, stream);
    while let Some(frame) = next_frame(broker, &mut incoming, recipient)? {
        let budget = broker.budget(recipient);
        let Some(response) = broker.answer(frame, &peer, &budget).map_err(io::Error::other)? else {
            continue;
        };
        budget.shrink_to(response.memory());
        // Others may need the memory of this response.
        let time = if budget.is_shared() { idle.min(MAX_DELIVERY) } else { idle };
        if time < idle {
            stream.set_write_timeout(Some(time))?;
        }
        send(stream, &response, time)?;
        if time < idle {
            stream.set_write_timeout(Some(idle))?;
        }
    }
    Ok(())
}

/// The next frame without its size; None if the client closes the connection or is idle for too long.
///
/// # Errors
/// If its size is negative or above the limit, or others do not leave memory for it.
fn next_frame<'a>(
    broker: &'a ReadOnlyBroker,
    incoming: &mut BufReader<&TcpStream>,
    recipient: Recipient<'a>,
) -> io::Result<Option<Frame<'a>>> {
    // For the whole frame, not for each of its bytes.
    let deadline = Instant::now() + broker.limits.idle;
    let mut size = [0; 4];
    if !fill(incoming, &mut size, deadline)? {
        return Ok(None);
    }
    let size = i32::from_be_bytes(size);
    let limit = broker.limits.request_bytes;
    let size = usize::try_from(size)
        .ok()
        .filter(|&size| size <= limit)
        .ok_or_else(|| io::Error::other(format!("a frame of {size} bytes: expected 0 to {limit}")))?;
    let memory = broker.requests.budget(usize::MAX, recipient);
    memory.take(size)?;
    let deadline = if size > OWN_REQUESTS { deadline.min(Instant::now() + MAX_ARRIVAL) } else { deadline };
    let mut bytes = vec![0; size];
    let is_whole = fill(incoming, &mut bytes, deadline)?;
    Ok(is_whole.then_some(Frame { bytes, _memory: memory }))
}

/// Reads all of `bytes`; false if the connection ends or the time is over.
fn fill(incoming: &mut BufReader<&TcpStream>, mut bytes: &mut [u8], deadline: Instant) -> io::Result<bool> {
    while !bytes.is_empty() {
        if incoming.buffer().is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            incoming.get_ref().set_read_timeout(Some(left))?;
        }
        match incoming.read(bytes) {
            Ok(0) => return Ok(false),
            Ok(read) => bytes = &mut bytes[read..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

fn send(stream: &TcpStream, response: &Response, time: Duration) -> io::Result<()> {
    let Response { head, gaps, parts } = response;
    let size = head.len() + gaps.iter().map(|gap| gap.size).sum::<usize>();
    let size = i32::try_from(size).map_err(io::Error::other)?;
    let mut out = Outgoing::new(stream, time);
    out.write(&size.to_be_bytes())?;
    let mut start = 0;
    for (gap, parts) in gaps.iter().zip(parts) {
        out.write(&head[start..gap.position])?;
        start = gap.position;
        for part in parts {
            part.send(&mut out)?;
        }
    }
    out.write(&head[start..])?;
    out.flush()
}
