//! A connection: frames in, responses out, in order.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use crate::serve::broker::{Peer, ReadOnlyBroker, Response};
use crate::serve::cluster::Address;
use crate::wire::frames::FrameDecoder;

const BUFFER: usize = 16 << 10;
/// The send buffer towards a client on this machine, as a broker has it (`socket.send.buffer.bytes`): sending takes a quarter less
/// CPU time than with the megabytes that the system would choose, which are for networks with a delay.
#[cfg(target_os = "linux")]
const LOCAL_SEND_BUFFER: usize = 100 << 10;

/// Serves a connection until the client closes it, is idle for too long, or sends what no client would.
///
/// # Errors
/// Why the connection ended, unless the client closed it.
pub(super) fn serve(broker: &ReadOnlyBroker, mut stream: &TcpStream) -> io::Result<()> {
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
    let mut frames = FrameDecoder::new(broker.limits.request_bytes);
    let mut buffer = vec![0; BUFFER];
    loop {
        // For the whole frame, not for each of its bytes.
        let deadline = Instant::now() + idle;
        let frame = loop {
            if let Some(frame) = frames.next_frame().map_err(io::Error::other)? {
                break frame;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || broker.stopping.is_stopping() {
                return Ok(());
            }
            stream.set_read_timeout(Some(left))?;
            match stream.read(&mut buffer)? {
                0 => return Ok(()),
                read => frames.push(&buffer[..read]),
            }
        };
        if let Some(response) = broker.answer(frame, &peer).map_err(io::Error::other)? {
            send(stream, &response)?;
        }
    }
}

fn send(mut stream: &TcpStream, response: &Response) -> io::Result<()> {
    let Response { head, gaps, parts } = response;
    let size = head.len() + gaps.iter().map(|gap| gap.size).sum::<usize>();
    let size = i32::try_from(size).map_err(io::Error::other)?;
    // What comes before the next large part is sent together with it.
    let mut out = size.to_be_bytes().to_vec();
    let mut start = 0;
    for (gap, parts) in gaps.iter().zip(parts) {
        out.extend_from_slice(&head[start..gap.position]);
        start = gap.position;
        for part in parts {
            if !part.append_small(&mut out) {
                stream.write_all(&out)?;
                out.clear();
                part.send(stream)?;
            }
        }
    }
    out.extend_from_slice(&head[start..]);
    stream.write_all(&out)
}
