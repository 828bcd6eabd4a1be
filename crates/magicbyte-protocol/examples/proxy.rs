//! A proxy in front of a broker: it checks every batch that clients produce, and compresses it with zstd.
//!
//! cargo run -p magicbyte-protocol --example proxy -- 127.0.0.1:9093 127.0.0.1:9092
//!
//! Clients bootstrap from the proxy and stay there, because responses name the proxy in place of the broker. So the
//! cluster may only have one. A request with a batch that a broker would refuse is answered by the proxy.

use std::borrow::Cow;
use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use magicbyte::convert::Converter;
use magicbyte::{Batches, Compression, Decompressor};
use magicbyte_broker::{AppendError, check_produce_request};
use magicbyte_protocol::message::body::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use magicbyte_protocol::message::body::{
    ApiVersionsResponse, DescribeClusterResponse, FindCoordinatorResponse, MetadataResponse, ProduceRequest,
    ProduceResponse, Records, RequestHeader, read_response, write_request, write_response,
};
use magicbyte_protocol::message::{ApiKey, read_request};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The maximum size of a frame, as a broker's `socket.request.max.bytes`.
const MAX_FRAME: usize = 100 << 20;
/// Requests of a client that wait for their responses.
const MAX_PIPELINED: usize = 100;
/// The version of Produce since which batches may be compressed with zstd.
const ZSTD_SINCE: i16 = 7;

/// The source of the response to a request. Responses have the order of the requests.
enum Answer {
    Broker { api_key: i16, version: i16 },
    Proxy(Vec<u8>),
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(listen), Some(broker)) = (arguments.next(), arguments.next()) else {
        return Err("usage: proxy LISTEN BROKER".into());
    };
    let listener = TcpListener::bind(listen)?;
    eprintln!("listening on {}", listener.local_addr()?);
    for client in listener.incoming() {
        let (client, broker) = (client?, broker.clone());
        thread::spawn(move || {
            if let Err(error) =
                TcpStream::connect(broker).map_err(Into::into).and_then(|broker| serve(&client, &broker))
            {
                eprintln!("a connection ended: {error}");
            }
        });
    }
    Ok(())
}

/// Connects a client with the broker, until either closes its connection.
fn serve(client: &TcpStream, broker: &TcpStream) -> Result<()> {
    client.set_nodelay(true)?;
    broker.set_nodelay(true)?;
    let proxy = client.local_addr()?;
    let (answers, expected) = sync_channel(MAX_PIPELINED);
    thread::scope(|scope| {
        let requests = scope.spawn(move || {
            let passed = pass_requests(client, broker, &answers);
            // Wakes the other thread, and the other way round below.
            broker.shutdown(Shutdown::Both).ok();
            passed
        });
        let passed = pass_responses(broker, client, expected, proxy);
        client.shutdown(Shutdown::Both).ok();
        requests.join().map_err(|_| "a thread panicked")?.and(passed)
    })
}

fn pass_requests(client: &TcpStream, broker: &TcpStream, answers: &SyncSender<Answer>) -> Result<()> {
    let mut batches = Recompressor::new()?;
    while let Some(frame) = read_frame(client)? {
        let Some(&[key_high, key_low, version_high, version_low]) = frame.first_chunk() else {
            return Err(format!("a request of {} bytes", frame.len()).into());
        };
        let api_key = i16::from_be_bytes([key_high, key_low]);
        let version = i16::from_be_bytes([version_high, version_low]);
        let answer = Answer::Broker { api_key, version };
        if api_key != ApiKey::Produce as i16 {
            answers.send(answer)?;
            write_frame(broker, &frame)?;
            continue;
        }
        let message = read_request(&frame)?;
        let header = RequestHeader::try_from(message.header)?;
        let mut request = ProduceRequest::try_from(message.body)?;
        match batches.replace_all(&mut request, version) {
            Ok(()) => {
                // A producer that does not want an acknowledgement gets no response.
                if request.acks != 0 {
                    answers.send(answer)?;
                }
                let frame =
                    write_request(&request, version, header.correlation_id, header.client_id.as_deref())?;
                write_frame(broker, &frame)?;
            }
            Err(error) if request.acks != 0 => {
                let refusal = write_response(&refusal(&request, &error), version, header.correlation_id)?;
                answers.send(Answer::Proxy(refusal))?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Checks batches and recompresses them, with the same buffers for all batches of a connection.
struct Recompressor {
    converter: Converter,
    decompressor: Decompressor,
}

impl Recompressor {
    fn new() -> Result<Self> {
        let converter = Converter::to_codec(Compression::Zstd, None)?;
        Ok(Self { converter, decompressor: Decompressor::new() })
    }

    /// Replaces the batches of a request, up to the first that a broker would refuse.
    fn replace_all(
        &mut self,
        request: &mut ProduceRequest<'_>,
        version: i16,
    ) -> std::result::Result<(), AppendError> {
        for partition in request.topic_data.iter_mut().flat_map(|topic| &mut topic.partition_data) {
            if let Some(Records::Bytes(records)) = &mut partition.records {
                *records = Cow::Owned(self.replaced(records, version)?);
            }
        }
        Ok(())
    }

    fn replaced(&mut self, records: &[u8], version: i16) -> std::result::Result<Vec<u8>, AppendError> {
        check_produce_request(records, version)?;
        let mut out = Vec::with_capacity(records.len());
        for batch in Batches::new(records) {
            let batch = batch?;
            batch.verify()?;
            for record in batch.records(&mut self.decompressor)? {
                record?;
            }
            if version >= ZSTD_SINCE {
                self.converter.recompress(&batch, &mut out)?;
            } else {
                out.extend_from_slice(batch.as_bytes());
            }
        }
        Ok(out)
    }
}

/// The response to a request that is not passed on: all of its partitions get the error.
fn refusal<'a>(request: &ProduceRequest<'a>, error: &AppendError) -> ProduceResponse<'a> {
    let refused = |index| PartitionProduceResponse {
        index,
        error_code: error.code().code(),
        base_offset: -1,
        error_message: Some(Cow::Owned(error.to_string())),
        ..Default::default()
    };
    let responses = request.topic_data.iter().map(|topic| TopicProduceResponse {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partition_responses: topic.partition_data.iter().map(|partition| refused(partition.index)).collect(),
    });
    ProduceResponse { responses: responses.collect(), ..Default::default() }
}

fn pass_responses(
    broker: &TcpStream,
    client: &TcpStream,
    expected: Receiver<Answer>,
    proxy: SocketAddr,
) -> Result<()> {
    for answer in expected {
        let frame = match answer {
            Answer::Proxy(frame) => frame,
            Answer::Broker { api_key, version } => {
                let Some(frame) = read_frame(broker)? else { return Ok(()) };
                redirected(&frame, api_key, version, proxy)?.unwrap_or(frame)
            }
        };
        write_frame(client, &frame)?;
    }
    Ok(())
}

/// A response that names the broker, changed to name the proxy, and to offer only versions that the proxy can read.
/// None if the response can stay as it is.
fn redirected(frame: &[u8], api_key: i16, version: i16, proxy: SocketAddr) -> Result<Option<Vec<u8>>> {
    let host = || Cow::Owned(proxy.ip().to_string());
    let port = proxy.port().into();
    let out = match ApiKey::try_from(api_key) {
        Ok(ApiKey::Metadata) => {
            let (id, mut response) = read_response::<MetadataResponse<'_>>(frame, version)?;
            response.brokers.iter_mut().for_each(|broker| (broker.host, broker.port) = (host(), port));
            write_response(&response, version, id)?
        }
        Ok(ApiKey::DescribeCluster) => {
            let (id, mut response) = read_response::<DescribeClusterResponse<'_>>(frame, version)?;
            response.brokers.iter_mut().for_each(|broker| (broker.host, broker.port) = (host(), port));
            write_response(&response, version, id)?
        }
        Ok(ApiKey::FindCoordinator) => {
            let (id, mut response) = read_response::<FindCoordinatorResponse<'_>>(frame, version)?;
            (response.host, response.port) = (host(), port);
            response.coordinators.iter_mut().for_each(|found| (found.host, found.port) = (host(), port));
            write_response(&response, version, id)?
        }
        Ok(ApiKey::ApiVersions) => {
            let (id, mut response) = read_response::<ApiVersionsResponse<'_>>(frame, version)?;
            if response.error_code != 0 {
                return Ok(None);
            }
            for api in &mut response.api_keys {
                let newest = newest_version(api.api_key).unwrap_or(api.max_version);
                api.max_version = api.max_version.min(newest);
            }
            write_response(&response, version, id)?
        }
        _ => return Ok(None),
    };
    Ok(Some(out))
}

/// The newest version of an API whose messages the proxy reads.
fn newest_version(api_key: i16) -> Option<i16> {
    let api = ApiKey::try_from(api_key).ok()?;
    let is_read = matches!(
        api,
        ApiKey::Produce
            | ApiKey::Metadata
            | ApiKey::FindCoordinator
            | ApiKey::ApiVersions
            | ApiKey::DescribeCluster
    );
    is_read.then(|| api.max_version())
}

/// A frame without its size; None at the end of the connection.
fn read_frame(mut from: &TcpStream) -> Result<Option<Vec<u8>>> {
    let mut size = [0; 4];
    match from.read_exact(&mut size) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let size = u32::from_be_bytes(size) as usize;
    if size > MAX_FRAME {
        return Err(format!("a frame of {size} bytes: expected at most {MAX_FRAME}").into());
    }
    // The buffer grows with what arrives, not with what was announced.
    let mut frame = Vec::new();
    from.take(size as u64).read_to_end(&mut frame)?;
    if frame.len() < size {
        return Err(format!("the connection ended after {} of {size} bytes of a frame", frame.len()).into());
    }
    Ok(Some(frame))
}

fn write_frame(mut to: &TcpStream, frame: &[u8]) -> Result<()> {
    let size = u32::try_from(frame.len())?;
    to.write_all(&[&size.to_be_bytes(), frame].concat())?;
    Ok(())
}
