//! The bytes of a response on their way to the client, which has limited time to take them.

use std::io::{self, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Small pieces are sent together.
const BUFFER: usize = 64 << 10;

/// A response that is being sent.
#[derive(Debug)]
pub(super) struct Outgoing<'a> {
    stream: &'a TcpStream,
    buffer: Vec<u8>,
    deadline: Instant,
}

impl<'a> Outgoing<'a> {
    /// A response that the client has to take in this time. A write that is blocked ends by the stream's own timeout.
    pub(super) fn new(stream: &'a TcpStream, time: Duration) -> Self {
        Self { stream, buffer: Vec::new(), deadline: Instant::now() + time }
    }

    /// For the kernel, which sends a file on its own.
    #[cfg(target_os = "linux")]
    pub(super) fn stream(&self) -> &'a TcpStream {
        self.stream
    }

    /// Sends bytes, or keeps a few for the next call.
    ///
    /// # Errors
    /// If the client does not take them in time.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffer.len() + bytes.len() > BUFFER {
            self.flush()?;
        }
        if bytes.len() > BUFFER {
            return self.send(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Sends the bytes that were kept.
    ///
    /// # Errors
    /// If the client does not take them in time.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        self.send(&buffer)?;
        self.buffer = buffer;
        self.buffer.clear();
        Ok(())
    }

    /// # Errors
    /// If the time is over.
    pub(super) fn check_time(&self) -> io::Result<()> {
        if Instant::now() < self.deadline { Ok(()) } else { Err(io::ErrorKind::TimedOut.into()) }
    }

    fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => bytes = &bytes[sent..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if !bytes.is_empty() {
                self.check_time()?;
            }
        }
        Ok(())
    }
}
