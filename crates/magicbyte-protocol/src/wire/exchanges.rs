//! Captures, read to their end: files of packets, or the bytes of a connection's two directions.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use magicbyte_log::internals::open_regular;
use magicbyte_log::{LogError, LogResult};

use crate::wire::connection::Connection;
use crate::wire::connections::Connections;
use crate::wire::exchange::{Exchange, WireSummary};
use crate::wire::packets::{Packets, Progress};

/// Bytes of a stream that are read at a time: fewer responses than a connection keeps for requests to come.
const CHUNK: usize = 8 << 10;

/// The exchanges of captures, each as soon as it is complete.
///
/// Frames are found by what is in the packets: a connection may have begun before the capture, and packets may be
/// missing in it, come twice or in another order. A request whose response is missing comes without it when a later
/// one is answered, or at the end; a response without its request comes at the end.
///
/// Memory: 256 MiB of incomplete messages, and the messages of the exchange.
///
/// ```
/// use magicbyte_protocol::wire::Exchanges;
///
/// # fn read() -> Result<(), magicbyte_log::LogError> {
/// let mut exchanges = Exchanges::open(vec!["kafka.pcap".into()], vec![9092]);
/// for exchange in &mut exchanges {
///     let exchange = exchange?;
///     println!("{:?} {:?}", exchange.client, exchange.head);
/// }
/// println!("{} bytes were lost", exchanges.summary().lost_bytes);
/// # Ok(()) }
/// ```
pub struct Exchanges {
    source: Source,
    ready: VecDeque<Exchange>,
    summary: WireSummary,
}

enum Source {
    Captures { next: VecDeque<PathBuf>, now: Option<(PathBuf, Box<Packets>)>, connections: Box<Connections> },
    Streams(Box<Streams>),
    Ended,
}

struct Streams {
    connection: Connection,
    requests: Option<(PathBuf, File)>,
    responses: Option<(PathBuf, File)>,
}

impl Exchanges {
    /// Reads pcap and pcapng files, also compressed with gzip, one after the other, as one capture: connections go on from one to the next.
    /// With `ports`, only connections to them count; without, the server of a connection whose start is missing is
    /// the side with the smaller port.
    #[must_use]
    pub fn open(paths: Vec<PathBuf>, ports: Vec<u16>) -> Self {
        Self::of(Source::Captures {
            next: paths.into(),
            now: None,
            connections: Box::new(Connections::new(ports)),
        })
    }

    /// Reads a pcap or pcapng file from anywhere.
    ///
    /// # Errors
    /// [`LogError::Io`] if it is neither of them.
    pub fn of_capture(capture: Box<dyn Read + Send>, ports: Vec<u16>) -> LogResult<Self> {
        let path = PathBuf::from("capture");
        let packets = packets(&path, capture)?;
        let connections = Box::new(Connections::new(ports));
        Ok(Self::of(Source::Captures {
            next: VecDeque::new(),
            now: Some((path, Box::new(packets))),
            connections,
        }))
    }

    /// Reads the bytes of one connection from two files, one for each direction, from its first byte.
    ///
    /// # Errors
    /// [`LogError::Io`] if one of them cannot be opened.
    pub fn of_streams(requests: impl AsRef<Path>, responses: impl AsRef<Path>) -> LogResult<Self> {
        let responses = responses.as_ref();
        let requests = requests.as_ref();
        let open = |path: &Path| match open_regular(path) {
            Ok(file) => Ok(Some((path.to_owned(), file))),
            Err(error) => Err(LogError::io(path, error)),
        };
        let mut connection = Connection::new(0, None, None);
        connection.requests.frames.in_step = true;
        connection.responses.frames.in_step = true;
        let streams = Streams { connection, requests: open(requests)?, responses: open(responses)? };
        let mut exchanges = Self::of(Source::Streams(Box::new(streams)));
        exchanges.summary.connections = 1;
        Ok(exchanges)
    }

    fn of(source: Source) -> Self {
        Self { source, ready: VecDeque::new(), summary: WireSummary::default() }
    }

    /// The summary of the capture so far, apart from its exchanges.
    #[must_use]
    pub fn summary(&self) -> &WireSummary {
        &self.summary
    }

    /// Reads on until an exchange is ready, or all has been read.
    fn advance(&mut self) -> LogResult<()> {
        let Self { source, ready, summary } = self;
        match source {
            Source::Captures { next, now, connections } => {
                let Some((path, packets)) = now else {
                    let Some(path) = next.pop_front() else {
                        connections.finish(ready, summary);
                        *source = Source::Ended;
                        return Ok(());
                    };
                    let file = open_regular(&path).map_err(|error| LogError::io(&path, error))?;
                    let packets = self::packets(&path, Box::new(file))?;
                    *now = Some((path, Box::new(packets)));
                    return Ok(());
                };
                while ready.is_empty() {
                    match packets.next(&mut |segment| connections.segment(segment, ready, summary)) {
                        Ok(Progress::Block) => continue,
                        Ok(Progress::End) => {}
                        Err(why) => summary.problem(format!("{}: {why}", path.display())),
                    }
                    let (other, unread) = packets.finish();
                    summary.other_packets += other;
                    for (unread, count) in unread {
                        summary.problem(format!("{}: {count} packets {unread}", path.display()));
                    }
                    *now = None;
                    return Ok(());
                }
                Ok(())
            }
            Source::Streams(streams) => {
                let Streams { connection, requests, responses } = &mut **streams;
                let mut buffer = [0; CHUNK];
                if requests.is_some() && (connection.needs_requests() || responses.is_none()) {
                    let bytes = read_some(requests, &mut buffer)?;
                    connection.request_bytes(bytes, ready, summary);
                } else if responses.is_some() {
                    let bytes = read_some(responses, &mut buffer)?;
                    connection.response_bytes(bytes, ready, summary);
                } else {
                    connection.finish(None, ready, summary);
                    *source = Source::Ended;
                }
                Ok(())
            }
            Source::Ended => Ok(()),
        }
    }
}

impl Iterator for Exchanges {
    type Item = LogResult<Exchange>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(exchange) = self.ready.pop_front() {
                return Some(Ok(exchange));
            }
            if matches!(self.source, Source::Ended) {
                return None;
            }
            if let Err(error) = self.advance() {
                self.source = Source::Ended;
                return Some(Err(error));
            }
        }
    }
}

impl std::fmt::Debug for Exchanges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exchanges").field("summary", &self.summary).finish_non_exhaustive()
    }
}

fn packets(path: &Path, capture: Box<dyn Read + Send>) -> LogResult<Packets> {
    Packets::new(capture).map_err(|why| LogError::io(path, io::Error::new(io::ErrorKind::InvalidData, why)))
}

/// Reads once; at its end, the file is closed.
fn read_some<'b>(from: &mut Option<(PathBuf, File)>, buffer: &'b mut [u8]) -> LogResult<&'b [u8]> {
    let Some((path, file)) = from else { return Ok(&[]) };
    let size = file.read(buffer).map_err(|error| LogError::io(path, error))?;
    if size == 0 {
        *from = None;
    }
    Ok(&buffer[..size])
}
