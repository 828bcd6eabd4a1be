//! The bytes of a connection, as they are or with TLS.

use std::io::{self, Read, Write};
use std::time::Duration;

use crate::address::Address;
use crate::backoff::deadline;
use crate::connector::{Connector, Duplex};
use crate::error::{Error, Result};
use crate::options::ClientOptions;
use crate::socket::Socket;

/// A connection as it is, or with TLS.
pub(crate) enum Stream {
    Plain(Socket),
    Given(Box<dyn Duplex>),
    #[cfg(feature = "tls")]
    Tls(Box<rustls::StreamOwned<rustls::ClientConnection, Socket>>),
}

impl Stream {
    /// Connects within `timeout`, with TLS if the options say so.
    pub(crate) fn connect(address: &Address, options: &ClientOptions) -> Result<Self> {
        let timeout = options.request_timeout;
        let failed = |error| Error::from_io(error, timeout, "accept the connection");
        if let Some(Connector(connect)) = &options.connector {
            return connect(address).map(Self::Given).map_err(failed);
        }
        let socket = Socket::connect(address, deadline(timeout)).map_err(failed)?;
        let Some(tls) = &options.security.tls else { return Ok(Self::Plain(socket)) };
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
            Self::Given(_) => {}
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.sock.deadline = deadline,
        }
    }

    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.write_all(bytes),
            Self::Given(stream) => stream.write_all(bytes),
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
            Self::Given(stream) => stream.read_exact(buffer),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.read_exact(buffer),
        }
    }
}
