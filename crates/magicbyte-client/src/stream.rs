//! The bytes of a connection, with a deadline for every read and write.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::address::Address;
use crate::backoff::deadline;
use crate::error::{Error, ErrorKind, Result};
use crate::options::Security;

/// A TCP connection whose reads and writes end at a deadline.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    deadline: Instant,
}

impl Socket {
    /// Connects to the first address of a host that accepts.
    fn connect(address: &Address, deadline: Instant) -> io::Result<Self> {
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

/// A connection as it is, or with TLS.
pub(crate) enum Stream {
    Plain(Socket),
    #[cfg(feature = "tls")]
    Tls(Box<rustls::StreamOwned<rustls::ClientConnection, Socket>>),
}

impl Stream {
    /// Connects within `timeout`, with TLS if the options say so.
    pub(crate) fn connect(address: &Address, security: &Security, timeout: Duration) -> Result<Self> {
        let deadline = deadline(timeout);
        let socket = Socket::connect(address, deadline)
            .map_err(|error| Error::from_io(error, timeout, "accept the connection"))?;
        let Some(tls) = &security.tls else { return Ok(Self::Plain(socket)) };
        #[cfg(feature = "tls")]
        return crate::tls::handshake(socket, address, tls, timeout)
            .map(|stream| Self::Tls(Box::new(stream)));
        #[cfg(not(feature = "tls"))]
        {
            let _ = tls;
            Err(Error::options("TLS is left out of this build: expected the feature `tls`"))
        }
    }

    /// Gives all that follows this much time.
    pub(crate) fn set_timeout(&mut self, timeout: Duration) {
        let deadline = deadline(timeout);
        match self {
            Self::Plain(socket) => socket.deadline = deadline,
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.sock.deadline = deadline,
        }
    }

    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.write_all(bytes),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => {
                stream.write_all(bytes)?;
                stream.flush()
            }
        }
    }

    pub(crate) fn read_exact(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.read_exact(buffer),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.read_exact(buffer),
        }
    }
}

impl Error {
    /// The error of a connection: one that timed out says what the broker had to do.
    pub(crate) fn from_io(error: io::Error, after: Duration, awaited: &str) -> Self {
        // With TLS 1.3, a broker refuses a client's certificate only after the handshake.
        #[cfg(feature = "tls")]
        if let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref()) {
            return crate::tls::refused(error);
        }
        Self::new(match error.kind() {
            io::ErrorKind::TimedOut => ErrorKind::Timeout { awaited: awaited.to_owned(), after },
            io::ErrorKind::UnexpectedEof => {
                let why = format!("closed the connection, expected to {awaited}");
                ErrorKind::Io(io::Error::new(io::ErrorKind::UnexpectedEof, why))
            }
            _ => ErrorKind::Io(error),
        })
    }
}
