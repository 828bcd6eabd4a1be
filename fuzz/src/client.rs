//! The answers of a hostile broker to a client.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use magicbyte::Batches;
use magicbyte::state::IsolationLevel;
use magicbyte_client::{
    ClientOptions, Cluster, Connector, Duplex, FetchOptions, FetchRange, OffsetSpec, Result, Sasl, ScramHash,
    Security, TopicPartition,
};
use magicbyte_protocol::message::body::api_versions_response::ApiVersion;
use magicbyte_protocol::message::body::fetch_response::{FetchableTopicResponse, PartitionData};
use magicbyte_protocol::message::body::find_coordinator_response::Coordinator;
use magicbyte_protocol::message::body::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use magicbyte_protocol::message::body::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use magicbyte_protocol::message::body::offset_fetch_response::OffsetFetchResponseGroup;
use magicbyte_protocol::message::body::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderTopicResult,
};
use magicbyte_protocol::message::body::{
    ApiVersionsResponse, Body, FetchResponse, FindCoordinatorResponse, ListOffsetsResponse, MetadataResponse,
    OffsetFetchResponse, OffsetForLeaderEpochResponse, Records, SaslAuthenticateResponse,
    SaslHandshakeResponse, write_response,
};

use super::made::{batch, record};

/// The APIs that the client uses, with their newest versions.
const APIS: [(i16, i16); 9] =
    [(18, 3), (3, 13), (2, 11), (1, 18), (23, 4), (17, 1), (36, 2), (10, 6), (9, 9)];
const END: i64 = 20;
const LARGEST: usize = 1 << 16;

/// The script of a broker: which APIs it answers with bytes of the input, the newest version that it has of any, and these
/// bytes. After them, its connections end.
struct Script {
    hostile: u8,
    newest: i16,
    answers: VecDeque<Vec<u8>>,
}

/// A connection to the broker, without a network.
struct Scripted {
    script: Arc<Mutex<Script>>,
    sent: Vec<u8>,
    answered: VecDeque<u8>,
}

impl Write for Scripted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sent.extend(bytes);
        while let Some(size) = self.sent.first_chunk().map(|size| u32::from_be_bytes(*size) as usize) {
            let Some(frame) = self.sent.get(4..4 + size) else { break };
            let answer = self.script.lock().unwrap().answer(frame);
            self.answered.extend(answer.ok_or(io::ErrorKind::BrokenPipe)?);
            self.sent.drain(..4 + size);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Scripted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.answered.is_empty() {
            Err(io::ErrorKind::TimedOut.into())
        } else {
            self.answered.read(buffer)
        }
    }
}

impl Script {
    /// The bytes of a response. A hostile one has the right correlation id, or the client would not read it.
    fn answer(&mut self, request: &[u8]) -> Option<Vec<u8>> {
        let short = |at: usize| i16::from_be_bytes([request[at], request[at + 1]]);
        let (key, version, id) = (short(0), short(2), i32::from_be_bytes(request[4..8].try_into().unwrap()));
        let api = APIS.iter().position(|&(api, _)| api == key).expect("an API of the client");
        // The two about groups share the last bit.
        let frame = if self.hostile & 1 << api.min(7) == 0 {
            honest(key, version, id, self.newest)
        } else {
            [&id.to_be_bytes()[..], &self.answers.pop_front()?].concat()
        };
        Some([&(frame.len() as u32).to_be_bytes()[..], &frame].concat())
    }
}

/// The answer of a broker that has the partition `t-0`.
fn honest(key: i16, version: i16, id: i32, newest: i16) -> Vec<u8> {
    fn written(body: &impl Body, version: i16, id: i32) -> Vec<u8> {
        write_response(body, version, id).expect("an answer of this version")
    }
    match key {
        18 => {
            let apis = APIS.iter().map(|&(api_key, last)| ApiVersion {
                api_key,
                min_version: 0,
                max_version: last.min(newest),
            });
            written(&ApiVersionsResponse { api_keys: apis.collect(), ..Default::default() }, version, id)
        }
        3 => {
            let nodes = [1, 2].map(|node_id| MetadataResponseBroker {
                node_id,
                host: format!("host{node_id}").into(),
                port: 9092,
                ..Default::default()
            });
            let partition = MetadataResponsePartition { leader_id: 1, ..Default::default() };
            let topic = MetadataResponseTopic {
                name: Some("t".into()),
                partitions: vec![partition],
                ..Default::default()
            };
            let body =
                MetadataResponse { brokers: nodes.to_vec(), topics: vec![topic], ..Default::default() };
            written(&body, version, id)
        }
        2 => {
            let listed = ListOffsetsPartitionResponse { offset: END, ..Default::default() };
            let topic = ListOffsetsTopicResponse { name: "t".into(), partitions: vec![listed] };
            written(&ListOffsetsResponse { topics: vec![topic], ..Default::default() }, version, id)
        }
        23 => {
            let end = EpochEndOffset { end_offset: END, ..Default::default() };
            let topic = OffsetForLeaderTopicResult { topic: "t".into(), partitions: vec![end] };
            written(&OffsetForLeaderEpochResponse { topics: vec![topic], ..Default::default() }, version, id)
        }
        17 => {
            let mechanisms = vec!["SCRAM-SHA-256".into()];
            written(&SaslHandshakeResponse { mechanisms, ..Default::default() }, version, id)
        }
        10 if version < 4 => {
            let body = FindCoordinatorResponse { host: "host2".into(), port: 9092, ..Default::default() };
            written(&body, version, id)
        }
        10 => {
            let found =
                Coordinator { key: "g".into(), host: "host2".into(), port: 9092, ..Default::default() };
            written(&FindCoordinatorResponse { coordinators: vec![found], ..Default::default() }, version, id)
        }
        9 if version < 8 => written(&OffsetFetchResponse::default(), version, id),
        9 => {
            let group = OffsetFetchResponseGroup { group_id: "g".into(), ..Default::default() };
            written(&OffsetFetchResponse { groups: vec![group], ..Default::default() }, version, id)
        }
        36 => written(&SaslAuthenticateResponse::default(), version, id),
        _ => {
            let records = batch(END - 1, 0, 1, 0, &record(0, b"key", b"value", b""));
            let partition = PartitionData {
                records: Some(Records::Bytes(Cow::Owned(records))),
                high_watermark: END,
                ..Default::default()
            };
            let topic = FetchableTopicResponse {
                topic: "t".into(),
                partitions: vec![partition],
                ..Default::default()
            };
            written(&FetchResponse { responses: vec![topic], ..Default::default() }, version, id)
        }
    }
}

/// The bytes as answers: which APIs they are of, the newest version, and then each with its length.
pub fn client_response(data: &[u8]) {
    let Some((&[hostile, newest], mut rest)) = data.split_first_chunk() else { return };
    let mut answers = VecDeque::new();
    while let Some((&length, after)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes(length)).min(after.len());
        answers.push_back(after[..length].to_vec());
        rest = &after[length..];
    }
    let newest = 2 + i16::from(newest % 32);
    let script = Arc::new(Mutex::new(Script { hostile, newest, answers }));
    let connector = Connector(Arc::new(move |_| {
        let script = Arc::clone(&script);
        Ok(Box::new(Scripted { script, sent: Vec::new(), answered: VecDeque::new() }) as Box<dyn Duplex>)
    }));
    let sasl = Sasl::Scram { hash: ScramHash::Sha256, username: "alice".into(), password: "hunter2".into() };
    let options = ClientOptions {
        request_timeout: Duration::from_millis(10),
        retry_timeout: Duration::ZERO,
        max_response_bytes: LARGEST,
        rack: "a".into(),
        security: Security { tls: None, sasl: (hostile & 3 << 5 != 0).then_some(sasl) },
        connector: Some(connector),
        ..ClientOptions::default()
    };
    if let Err(error) = read(options) {
        assert!(!error.to_string().contains(char::is_control), "{error}");
    }
}

/// Everything that is read of a cluster. What is fetched are whole batches from each position to the next.
fn read(options: ClientOptions) -> Result<()> {
    let mut cluster = Cluster::connect("host1:9092", options)?;
    cluster.topics(None)?;
    cluster.existing_topics(&["t"])?;
    let place: TopicPartition = ("t".into(), 0);
    let level = IsolationLevel::ReadCommitted;
    for spec in [OffsetSpec::Earliest, OffsetSpec::Timestamp(5)] {
        cluster.list_offsets(std::slice::from_ref(&place), spec, level)?;
    }
    cluster.end_of_leader_epoch(&place, 3)?;
    cluster.leader_epochs(std::slice::from_ref(&place))?;
    cluster.committed_offsets("g")?;
    let mut position = 0;
    for end in [END / 2, END] {
        let range = FetchRange { topic: "t".into(), partition: 0, start: position, end };
        let options = FetchOptions {
            isolation_level: level,
            max_wait: Duration::ZERO,
            max_bytes: LARGEST,
            max_partition_bytes: LARGEST,
            in_order: end == END,
            from_log_start: end == END,
        };
        for fetched in cluster.fetch(vec![range], options)? {
            let fetched = fetched?;
            assert!(fetched.position >= position && fetched.next_position > fetched.position);
            position = fetched.next_position;
            let mut batches = Batches::new(&fetched.records);
            let last = batches.by_ref().map(|batch| batch.unwrap().last_offset()).last();
            assert!(last.is_some_and(|last| last < position), "batches up to the next position");
            assert_eq!(batches.needed(), 0, "a batch that is cut");
        }
        position = position.max(end);
    }
    Ok(())
}
