//! A TCP connection, with a deadline for every read and write.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::address::Address;

/// A TCP connection whose reads and writes end at a deadline.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    pub(crate) deadline: Instant,
}

impl Socket {
    /// Connects to the first address of a host that accepts.
    pub(crate) fn connect(address: &Address, deadline: Instant) -> io::Result<Self> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        for resolved in resolve(address, deadline)? {
            match TcpStream::connect_timeout(&resolved, left(deadline)?) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(Self { stream, deadline });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(left(self.deadline)?))?;
        self.stream.read(buffer).map_err(timed_out)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(left(self.deadline)?))?;
        self.stream.write(bytes).map_err(timed_out)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The time until a deadline.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Unix reports a read that has timed out as one that would block.
fn timed_out(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock { io::ErrorKind::TimedOut.into() } else { error }
}

/// The addresses of a host. The system's resolver has no deadline, so it is asked in a thread that may outlive this call.
fn resolve(address: &Address, deadline: Instant) -> io::Result<Vec<SocketAddr>> {
    if let Ok(ip) = address.host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, address.port)]);
    }
    let (sender, receiver) = mpsc::channel();
    let asked = (address.host.clone(), address.port);
    thread::Builder::new().name("magicbyte-resolve".into()).spawn(move || {
        let _ = sender.send(asked.to_socket_addrs().map(Vec::from_iter));
    })?;
    receiver.recv_timeout(left(deadline)?).map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}
