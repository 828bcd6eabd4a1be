//! Brokers that a test plays: they answer with the bytes that it makes.
#![allow(dead_code, reason = "each test uses some of them")]

use std::borrow::Cow;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use magicbyte::{Compression, RecordsBuilder};
use magicbyte_client::ClientOptions;
use magicbyte_protocol::message::body::api_versions_response::ApiVersion;
use magicbyte_protocol::message::body::fetch_response::{FetchableTopicResponse, PartitionData};
use magicbyte_protocol::message::body::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use magicbyte_protocol::message::body::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use magicbyte_protocol::message::body::{
    ApiVersionsResponse, FetchResponse, ListOffsetsResponse, MetadataResponse, Records, write_response,
};

pub const METADATA: i16 = 3;
pub const FETCH: i16 = 1;
pub const LIST_OFFSETS: i16 = 2;
pub const HANDSHAKE: i16 = 17;
pub const VERSIONS: i16 = 18;
pub const AUTHENTICATE: i16 = 36;

/// A request: API, version, correlation id; and where the broker listens.
#[derive(Clone, Copy)]
pub struct Asked {
    pub api: i16,
    pub version: i16,
    pub id: i32,
    pub port: u16,
}

/// Listens, and answers every request with the bytes that `answer` makes; none closes the connection.
pub fn broker(answer: impl Fn(Asked) -> Option<Vec<u8>> + Send + Clone + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let answer = answer.clone();
            thread::spawn(move || serve(&stream.unwrap(), address.port(), &answer));
        }
    });
    address
}

fn serve(mut stream: &TcpStream, port: u16, answer: &impl Fn(Asked) -> Option<Vec<u8>>) {
    let mut size = [0; 4];
    while stream.read_exact(&mut size).is_ok() {
        let mut frame = vec![0; u32::from_be_bytes(size) as usize];
        stream.read_exact(&mut frame).unwrap();
        let short = |at: usize| i16::from_be_bytes([frame[at], frame[at + 1]]);
        let id = i32::from_be_bytes(frame[4..8].try_into().unwrap());
        let Some(bytes) = answer(Asked { api: short(0), version: short(2), id, port }) else { return };
        if stream.write_all(&bytes).is_err() {
            return;
        }
    }
}

pub fn framed(frame: Vec<u8>) -> Vec<u8> {
    [&(frame.len() as u32).to_be_bytes()[..], &frame].concat()
}

pub fn api_versions(asked: Asked) -> Vec<u8> {
    let offered =
        [(FETCH, 12), (LIST_OFFSETS, 8), (METADATA, 12), (HANDSHAKE, 1), (VERSIONS, 3), (AUTHENTICATE, 2)];
    let api_keys =
        offered.iter().map(|&(api_key, max_version)| ApiVersion { api_key, min_version: 0, max_version });
    let response = ApiVersionsResponse { api_keys: api_keys.collect(), ..Default::default() };
    framed(write_response(&response, asked.version, asked.id).unwrap())
}

pub fn metadata(asked: Asked, host: &'static str, port: i32) -> Vec<u8> {
    let partition = MetadataResponsePartition { leader_id: 1, leader_epoch: 3, ..Default::default() };
    let topic =
        MetadataResponseTopic { name: Some("t".into()), partitions: vec![partition], ..Default::default() };
    let node = MetadataResponseBroker { node_id: 1, host: host.into(), port, ..Default::default() };
    let response = MetadataResponse { brokers: vec![node], topics: vec![topic], ..Default::default() };
    framed(write_response(&response, asked.version, asked.id).unwrap())
}

/// The metadata of two nodes on loopback, 0 and 1; each leads the partition of topic `t` with its number.
pub fn two_nodes(ports: &[u16], asked: Asked) -> Vec<u8> {
    let nodes = ports.iter().zip(0..).map(|(&port, node_id)| MetadataResponseBroker {
        node_id,
        host: "127.0.0.1".into(),
        port: port.into(),
        ..Default::default()
    });
    let partitions = (0..2).map(|index| MetadataResponsePartition {
        partition_index: index,
        leader_id: index,
        leader_epoch: 3,
        ..Default::default()
    });
    let partitions = partitions.collect();
    let topic = MetadataResponseTopic { name: Some("t".into()), partitions, ..Default::default() };
    let response = MetadataResponse { brokers: nodes.collect(), topics: vec![topic], ..Default::default() };
    framed(write_response(&response, asked.version, asked.id).unwrap())
}

/// An ordinary broker, but for its answers to Fetch.
pub fn fetching(fetch: impl Fn(Asked) -> Option<Vec<u8>> + Send + Clone + 'static) -> SocketAddr {
    broker(move |asked| match asked.api {
        VERSIONS => Some(api_versions(asked)),
        METADATA => Some(metadata(asked, "127.0.0.1", asked.port.into())),
        LIST_OFFSETS => Some(listed(asked)),
        _ => fetch(asked),
    })
}

/// Any offset that is looked for in the partition `t-0` is 50.
pub fn listed(asked: Asked) -> Vec<u8> {
    let listed = ListOffsetsPartitionResponse { offset: 50, ..Default::default() };
    let topic = ListOffsetsTopicResponse { name: "t".into(), partitions: vec![listed] };
    let response = ListOffsetsResponse { topics: vec![topic], ..Default::default() };
    framed(write_response(&response, asked.version, asked.id).unwrap())
}

/// A Fetch response about the only partition.
pub fn fetched(asked: Asked, answer: PartitionData<'_>) -> Vec<u8> {
    let topic = FetchableTopicResponse { topic: "t".into(), partitions: vec![answer], ..Default::default() };
    let response = FetchResponse { responses: vec![topic], ..Default::default() };
    framed(write_response(&response, asked.version, asked.id).unwrap())
}

pub fn records(records: Vec<u8>) -> PartitionData<'static> {
    let records = Some(Records::Bytes(Cow::Owned(records)));
    PartitionData { records, high_watermark: 100, ..Default::default() }
}

/// A batch of one record.
pub fn batch(offset: i64) -> Vec<u8> {
    let mut builder = RecordsBuilder::v2(Compression::None);
    builder.append(offset, 0, None, Some(b"value"), &[]).unwrap();
    builder.build().unwrap()
}

pub fn options() -> ClientOptions {
    ClientOptions {
        request_timeout: Duration::from_millis(700),
        retry_timeout: Duration::from_millis(700),
        max_response_bytes: 1 << 20,
        ..ClientOptions::default()
    }
}
