//! Captures, made packet by packet: which requests and responses are found in them.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::borrow::Cow;
use std::io::{Cursor, Read};

use magicbyte_protocol::message::{Message, MessageKind, Struct, Value, read_response, write_message};
use magicbyte_protocol::wire::{Exchange, Exchanges, WireSummary, record_sets};

#[global_allocator]
static ALLOCATOR: magicbyte_testing::memory::Counting = magicbyte_testing::memory::Counting;

const FETCH: i16 = 1;
const METADATA: i16 = 3;

/// A frame with its size.
fn sized(frame: &[u8]) -> Vec<u8> {
    [&(frame.len() as i32).to_be_bytes(), frame].concat()
}

fn request(api_key: i16, api_version: i16, correlation_id: i32, body: Struct<'static>) -> Vec<u8> {
    let mut header = Struct::default();
    header.set("correlationId", Value::Int(correlation_id.into()));
    header.set("clientId", Value::String(Cow::Borrowed(b"tester")));
    let kind = MessageKind::Request;
    write_message(&Message { kind, api_key, api_version, header, body }).unwrap()
}

fn response(api_key: i16, api_version: i16, correlation_id: i32, body: Struct<'static>) -> Vec<u8> {
    let mut header = Struct::default();
    header.set("correlationId", Value::Int(correlation_id.into()));
    let kind = MessageKind::Response;
    write_message(&Message { kind, api_key, api_version, header, body }).unwrap()
}

fn structure(fields: Vec<(&'static str, Value<'static>)>) -> Struct<'static> {
    let mut made = Struct::default();
    fields.into_iter().for_each(|(name, value)| made.set(name, value));
    made
}

fn one(of: Struct<'static>) -> Value<'static> {
    Value::Array(vec![Value::Struct(of)])
}

fn fetched(topic: &'static str, records: &'static [u8]) -> Struct<'static> {
    let partition =
        structure(vec![("partitionIndex", Value::Int(3)), ("records", Value::Bytes(Cow::Borrowed(records)))]);
    let topic = structure(vec![
        ("topic", Value::String(Cow::Borrowed(topic.as_bytes()))),
        ("partitions", one(partition)),
    ]);
    structure(vec![("responses", one(topic))])
}

/// Requests of a client, the responses, and the exchanges that they are.
fn conversation() -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let requests = vec![
        request(METADATA, 12, 0, Struct::default()),
        request(FETCH, 12, 1, Struct::default()),
        request(FETCH, 12, 2, Struct::default()),
        request(METADATA, 0, 3, Struct::default()),
    ];
    let responses = vec![
        response(METADATA, 12, 0, Struct::default()),
        response(FETCH, 12, 1, fetched("orders", &[7; 300])),
        response(FETCH, 12, 2, fetched("orders", &[8; 40])),
        response(METADATA, 0, 3, Struct::default()),
    ];
    (requests, responses)
}

#[derive(Clone)]
struct Tcp {
    from_client: bool,
    sequence: u32,
    acknowledged: u32,
    flags: u8,
    payload: Vec<u8>,
}

const SYN: u8 = 2;
const ACK: u8 = 16;
const START: [u32; 2] = [u32::MAX - 30, 77];

/// A connection whose client sends a request when the previous one was answered, in segments of `size` bytes.
fn connection(requests: &[Vec<u8>], responses: &[Vec<u8>], size: usize) -> Vec<Tcp> {
    let [client, server] = START;
    let segment = |from_client, sequence, acknowledged, flags| Tcp {
        from_client,
        sequence,
        acknowledged,
        flags,
        payload: Vec::new(),
    };
    let mut all =
        vec![segment(true, client, 0, SYN), segment(false, server, client.wrapping_add(1), SYN | ACK)];
    let mut next = [client.wrapping_add(1), server + 1];
    for (request, response) in requests.iter().zip(responses) {
        for (side, frame) in [request, response].into_iter().enumerate() {
            for part in sized(frame).chunks(size) {
                let mut one = segment(side == 0, next[side], next[1 - side], ACK);
                one.payload = part.to_vec();
                next[side] = next[side].wrapping_add(part.len() as u32);
                all.push(one);
            }
        }
    }
    all.push(segment(true, next[0], next[1], ACK));
    all
}

fn ip(one: &Tcp, version: u8) -> Vec<u8> {
    let ports: [u16; 2] = if one.from_client { [50_000, 9092] } else { [9092, 50_000] };
    let mut tcp: Vec<u8> = ports.into_iter().flat_map(u16::to_be_bytes).collect();
    tcp.extend(one.sequence.to_be_bytes());
    tcp.extend(one.acknowledged.to_be_bytes());
    tcp.extend([0x50, one.flags, 1, 0, 0, 0, 0, 0]);
    tcp.extend(&one.payload);
    let ends = if one.from_client { [1, 2] } else { [2, 1] };
    let mut packet = match version {
        4 => {
            let mut header = vec![0x45, 0];
            header.extend((20 + tcp.len() as u16).to_be_bytes());
            header.extend([0, 0, 0, 0, 64, 6, 0, 0]);
            ends.iter().for_each(|&end| header.extend([10, 0, 0, end]));
            header
        }
        _ => {
            let mut header = vec![0x60, 0, 0, 0];
            header.extend((tcp.len() as u16).to_be_bytes());
            header.extend([6, 64]);
            ends.iter().for_each(|&end| header.extend([&[0xfd; 15][..], &[end]].concat()));
            header
        }
    };
    packet.extend(tcp);
    packet
}

fn pcap(link: u32, packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = [0xa1b2_c3d4u32, 2 | 4 << 16, 0, 0, 65_535, link].map(u32::to_le_bytes).concat();
    for (index, packet) in packets.iter().enumerate() {
        let size = packet.len() as u32;
        file.extend([1_700_000_000, index as u32, size, size].map(u32::to_le_bytes).concat());
        file.extend(packet);
    }
    file
}

fn of_segments(segments: &[Tcp]) -> Vec<u8> {
    pcap(101, &segments.iter().map(|one| ip(one, 4)).collect::<Vec<_>>())
}

fn read(capture: Vec<u8>) -> (Vec<Exchange>, WireSummary) {
    let mut exchanges = Exchanges::of_capture(Box::new(Cursor::new(capture)), vec![]).unwrap();
    let found = exchanges.by_ref().map(Result::unwrap).collect();
    (found, exchanges.summary().clone())
}

fn assert_whole(capture: Vec<u8>, what: &str) {
    let (requests, responses) = conversation();
    let (found, summary) = read(capture);
    assert_eq!(found.len(), requests.len(), "{what}: {summary:?}");
    for (index, exchange) in found.iter().enumerate() {
        assert_eq!(exchange.request.as_ref(), Some(&requests[index]), "{what}");
        assert_eq!(exchange.response.as_ref(), Some(&responses[index]), "{what}");
        assert!(exchange.request_time.is_some() && exchange.response_time.is_some());
        assert_eq!(exchange.client.unwrap().port(), 50_000, "{what}");
    }
    assert_eq!((summary.connections, summary.lost_bytes, summary.skipped_bytes), (1, 0, 0), "{what}");
    assert_eq!(summary.problems, [""; 0], "{what}");
}

#[test]
fn segments_of_every_size() {
    let (requests, responses) = conversation();
    for size in 1..=400 {
        assert_whole(of_segments(&connection(&requests, &responses, size)), &format!("segments of {size}"));
    }
}

#[test]
fn every_link_layer() {
    let (requests, responses) = conversation();
    let segments = connection(&requests, &responses, 100);
    let links: [(u32, &[u8], u8); 9] = [
        (1, &[0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 8, 0], 4),
        (1, &[0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0x81, 0, 0, 5, 0x86, 0xdd], 6),
        (113, &[0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0], 4),
        (276, &[0x86, 0xdd, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0], 6),
        (0, &[2, 0, 0, 0], 4),
        (108, &[0, 0, 0, 24], 6),
        (101, &[], 6),
        (228, &[], 4),
        (12, &[], 4),
    ];
    for (link, header, version) in links {
        let packets: Vec<_> = segments.iter().map(|one| [header, &ip(one, version)].concat()).collect();
        assert_whole(pcap(link, &packets), &format!("link type {link}"));
    }
}

#[test]
fn pcapng() {
    let block = |kind: u32, body: Vec<u8>| {
        let mut body = body;
        body.resize(body.len().next_multiple_of(4), 0);
        let size = (body.len() as u32 + 12).to_be_bytes();
        [&kind.to_be_bytes(), &size, &body[..], &size].concat()
    };
    let (requests, responses) = conversation();
    let mut file =
        block(0x0a0d_0d0a, [0x1a2b_3c4du32, 1 << 16, u32::MAX, u32::MAX].map(u32::to_be_bytes).concat());
    // Nanoseconds: the option if_tsresol.
    file.extend(block(1, vec![0, 101, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 9, 0, 0, 0, 0, 0, 0, 0]));
    for (index, one) in connection(&requests, &responses, 100).iter().enumerate() {
        let packet = ip(one, 4);
        let size = packet.len() as u32;
        let time = 1_700_000_000_000_000_000 + index as u64 * 1000;
        let head = [0, (time >> 32) as u32, time as u32, size, size].map(u32::to_be_bytes).concat();
        file.extend(block(6, [head, packet].concat()));
    }
    let (found, _) = read(file.clone());
    assert_eq!(found[0].request_time, Some(1_700_000_000_000_002));
    assert_whole(file, "pcapng");
}

/// A generator with a fixed seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

#[test]
fn late_and_repeated_segments() {
    let (requests, responses) = conversation();
    for seed in 0..300 {
        let mut chance = Chance(seed);
        let mut segments = connection(&requests, &responses, 1 + chance.below(60));
        for _ in 0..20 {
            let at = 2 + chance.below(segments.len() - 2);
            let again = segments[at].clone();
            // Within the patience of the reader.
            let to = (at + chance.below(5)).min(segments.len());
            segments.insert(to, again);
            let other = (at + chance.below(5)).min(segments.len() - 1);
            segments.swap(at, other);
        }
        assert_whole(of_segments(&segments), &format!("seed {seed}"));
    }
}

#[test]
fn each_segment_lost() {
    let (requests, responses) = conversation();
    for size in [20, 50, 1000] {
        let all = connection(&requests, &responses, size);
        for lost in 2..all.len() - 1 {
            let mut segments = all.clone();
            let gone = segments.remove(lost).payload.len() as u64;
            let (found, summary) = read(of_segments(&segments));
            let whole = found.iter().filter(|one| one.request.is_some() && one.response.is_some()).count();
            assert!(whole >= requests.len() - 2, "{size} {lost}: {whole} {summary:?}");
            for exchange in found {
                assert!(exchange.request.is_none_or(|frame| requests.contains(&frame)));
                assert!(exchange.response.is_none_or(|frame| responses.contains(&frame)));
            }
            // What a side sent last is not missed.
            let last = all
                .iter()
                .rposition(|one| !one.payload.is_empty() && one.from_client == all[lost].from_client);
            assert!(
                summary.lost_bytes == gone || Some(lost) == last || size == 1000,
                "{size} {lost}: {summary:?}"
            );
        }
    }
}

#[test]
fn a_capture_that_begins_in_the_middle() {
    let (requests, responses) = conversation();
    let all = connection(&requests, &responses, 30);
    for first in 2..all.len() - 1 {
        let (found, summary) = read(of_segments(&all[first..]));
        let whole = found.iter().filter(|one| one.request.is_some() && one.response.is_some()).count();
        let begun = all[2..first].iter().filter(|one| one.from_client).map(|one| one.payload.len()).sum();
        let sizes = requests.iter().scan(0, |end, frame| {
            let start = *end;
            *end += 4 + frame.len();
            Some(start)
        });
        let expected = sizes.filter(|&start| start >= begun).count();
        assert_eq!(whole, expected, "from segment {first}: {summary:?}");
    }
}

#[test]
fn requests_without_response() {
    let produce = |id, acks| {
        request(0, 7, id, structure(vec![("acks", Value::Int(acks)), ("topicData", Value::Array(vec![]))]))
    };
    let requests = [produce(0, 0), produce(1, 1), produce(2, 0), request(METADATA, 12, 3, Struct::default())];
    let answers = [response(0, 7, 1, Struct::default()), response(METADATA, 12, 3, Struct::default())];
    let mut segments = connection(&[requests.concat(), vec![]], &[vec![], vec![]], 1000);
    segments.truncate(2);
    let [client, server] = START.map(|start| start.wrapping_add(1));
    let send = |from_client, sequence, frames: &[Vec<u8>]| Tcp {
        from_client,
        sequence,
        acknowledged: 0,
        flags: 0,
        payload: frames.iter().flat_map(|frame| sized(frame)).collect(),
    };
    segments.push(send(true, client, &requests));
    segments.push(send(false, server, &answers));
    let (found, summary) = read(of_segments(&segments));
    let ids: Vec<_> =
        found.iter().map(|one| (one.head.unwrap().correlation_id, one.response.is_some())).collect();
    assert_eq!(ids, [(0, false), (2, false), (1, true), (3, true)], "{summary:?}");
}

#[test]
fn tokens_of_sasl() {
    let handshake = request(17, 0, 5, structure(vec![("mechanism", Value::String(Cow::Borrowed(b"PLAIN")))]));
    let requests = [handshake, b"\0user\0password".to_vec(), request(METADATA, 12, 6, Struct::default())];
    let responses =
        [response(17, 0, 5, Struct::default()), vec![], response(METADATA, 12, 6, Struct::default())];
    let (found, summary) = read(of_segments(&connection(&requests, &responses, 1000)));
    assert_eq!(summary.problems, [""; 0]);
    let shown: Vec<_> =
        found.iter().map(|one| (one.is_sasl_token, one.head.map(|head| head.api_key))).collect();
    assert_eq!(shown, [(false, Some(17)), (true, None), (false, Some(METADATA))]);
    assert_eq!(found[1].response.as_deref(), Some(&[][..]));
}

#[test]
fn other_protocols() {
    let hello = [&[0x16, 3, 1, 2, 0][..], &[1; 512]].concat();
    for (bytes, tls) in
        [(&hello[..], 1), (b"GET / HTTP/1.1\r\n\r\n", 0), (b"\0\0\0\x08\0\0\0\x01\0\0\0\0", 0)]
    {
        let mut segments = connection(&[vec![]], &[vec![]], 1000);
        segments[2].payload = bytes.to_vec();
        let (found, summary) = read(of_segments(&segments[..3]));
        assert_eq!(found, []);
        assert_eq!((summary.tls_connections, summary.other_connections), (tls, 1 - tls), "{bytes:?}");
    }
}

#[test]
fn files_that_end_early_or_are_none() {
    let (requests, responses) = conversation();
    let whole = of_segments(&connection(&requests, &responses, 100));
    for size in 24..whole.len() {
        let (found, summary) = read(whole[..size].to_vec());
        assert!(found.len() <= requests.len() && summary.problems.len() <= 1, "{size}");
    }
    for other in [&b""[..], b"\xd4\xc3", b"PK\x03\x04 not a capture"] {
        let error = Exchanges::of_capture(Box::new(Cursor::new(other.to_vec())), vec![]).unwrap_err();
        assert!(error.to_string().contains("neither a pcap nor a pcapng file"), "{error}");
    }
}

#[test]
fn streams() {
    let (requests, responses) = conversation();
    let directory = std::env::temp_dir().join(format!("magicbyte-wire-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let paths = ["requests", "responses"].map(|name| directory.join(name));
    // More than a chunk of either.
    for (path, frames) in paths.iter().zip([&requests, &responses]) {
        let all: Vec<u8> = (0..200).flat_map(|_| frames.iter().flat_map(|frame| sized(frame))).collect();
        std::fs::write(path, all).unwrap();
    }
    let mut exchanges = Exchanges::of_streams(&paths[0], &paths[1]).unwrap();
    let found: Vec<_> = exchanges.by_ref().map(Result::unwrap).collect();
    std::fs::remove_dir_all(&directory).unwrap();
    assert_eq!(found.len(), 800);
    for (index, exchange) in found.iter().enumerate() {
        assert_eq!(exchange.request.as_ref(), Some(&requests[index % 4]));
        assert_eq!(exchange.response.as_ref(), Some(&responses[index % 4]));
    }
    assert_eq!(exchanges.summary().problems, [""; 0]);
}

#[test]
fn record_sets_of_a_fetch() {
    let (_, responses) = conversation();
    let message = read_response(&responses[1], FETCH, 12).unwrap();
    let [set] = &record_sets(&message)[..] else { panic!("one record set") };
    assert_eq!((set.topic.as_deref(), set.topic_id, set.partition), (Some(&b"orders"[..]), None, 3));
    assert!(matches!(set.bytes, Cow::Borrowed(bytes) if bytes == [7; 300]));
    assert_eq!(record_sets(&read_response(&responses[0], METADATA, 12).unwrap()), []);
}

/// A capture of connections that each send a part of a large frame.
struct Unfinished {
    connections: u16,
    next: Cursor<Vec<u8>>,
}

impl Read for Unfinished {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.next.position() == self.next.get_ref().len() as u64 && self.connections > 0 {
            self.connections -= 1;
            let mut sent = (90i32 << 20).to_be_bytes().to_vec();
            sent.extend(request(METADATA, 12, 0, Struct::default()));
            sent.resize(500_000, 0);
            let mut segments = connection(&[vec![]], &[vec![]], 1000);
            segments.truncate(2);
            let mut sequence = START[0].wrapping_add(1);
            for part in sent.chunks(60_000) {
                let payload = part.to_vec();
                segments.push(Tcp { from_client: true, sequence, acknowledged: 0, flags: ACK, payload });
                sequence = sequence.wrapping_add(part.len() as u32);
            }
            let mut packets: Vec<_> = segments.iter().map(|one| ip(one, 4)).collect();
            for (packet, segment) in packets.iter_mut().zip(&segments) {
                let port = if segment.from_client { 20 } else { 22 };
                packet[port..port + 2].copy_from_slice(&(20_000 + self.connections).to_be_bytes());
            }
            let file = pcap(101, &packets);
            let header = if self.next.get_ref().is_empty() { 0 } else { 24 };
            self.next = Cursor::new(file[header..].to_vec());
        }
        self.next.read(buffer)
    }
}

#[test]
fn memory_is_bounded_for_all_connections() {
    let capture = Unfinished { connections: 1000, next: Cursor::default() };
    let (summary, peak) = magicbyte_testing::memory::measured(|| {
        let mut exchanges = Exchanges::of_capture(Box::new(capture), vec![]).unwrap();
        assert_eq!(exchanges.by_ref().count(), 0);
        exchanges.summary().clone()
    });
    assert_eq!(summary.connections, 1000);
    assert!(summary.problems[0].contains("were given up"), "{:?}", summary.problems);
    // The buffers of incomplete frames grow by doubling.
    assert!(peak < 560 << 20, "{peak}");
}
