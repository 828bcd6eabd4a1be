//! Brokers that send what no broker sends: bounded memory and time, and an error that says what was wrong.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod played;

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use magicbyte_client::{
    ClientOptions, Cluster, Error, ErrorKind, FetchOptions, FetchRange, Sasl, ScramHash, Security,
    TlsOptions, TokenSource,
};
use magicbyte_protocol::message::body::fetch_response::{
    EpochEndOffset, FetchableTopicResponse, PartitionData,
};
use magicbyte_protocol::message::body::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use magicbyte_protocol::message::body::{
    FetchResponse, MetadataResponse, SaslAuthenticateResponse, SaslHandshakeResponse, write_response,
};
use played::{
    Asked, HANDSHAKE, METADATA, VERSIONS, api_versions, batch, broker, fetched, fetching, framed, metadata,
    options, records, two_nodes,
};

/// The error of reading offsets 10 to 20, after the number of answers; none if the range was read.
fn read(address: SocketAddr) -> (usize, Option<Error>) {
    let begun = Instant::now();
    let mut answers = 0;
    let result = Cluster::connect(&address.to_string(), options()).and_then(|mut cluster| {
        let range = FetchRange { topic: "t".into(), partition: 0, start: 10, end: 20 };
        let limits =
            FetchOptions { max_bytes: 1 << 19, max_partition_bytes: 1 << 19, ..FetchOptions::default() };
        cluster.fetch(vec![range], limits)?.try_for_each(|fetched| fetched.map(|_| answers += 1))
    });
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    (answers, result.err())
}

fn error_of(address: SocketAddr) -> Error {
    read(address).1.expect("an error")
}

#[test]
fn frames_of_any_size_and_content() {
    for (bytes, expected) in [
        (vec![0x7f, 0xff, 0xff, 0xff], "a response of 2147483647 bytes: expected 4 to 1048576"),
        (vec![0xff, 0xff, 0xff, 0xff], "a response of -1 bytes"),
        (vec![0, 0, 0, 3, 1, 2, 3], "a response of 3 bytes"),
        (vec![0, 0, 0, 4, 0, 0, 0, 9], "a response with correlation id 9: expected 1"),
        (vec![0, 0, 0, 4, 0, 0, 0, 1], "ApiVersions"),
        (vec![0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0xff, 0xff, 0xff], "ApiVersions"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "a response of 1213486160 bytes"),
    ] {
        let error = error_of(broker(move |_| Some(bytes.clone())));
        assert!(matches!(error.kind(), ErrorKind::Protocol(_)), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.broker().is_some_and(|broker| broker.starts_with("127.0.0.1:")));
    }
}

#[test]
fn brokers_that_stay_silent_or_close() {
    // An announced frame that never comes.
    let error = error_of(broker(|_| Some(vec![0, 0x0f, 0, 0, 1])));
    assert!(error.to_string().contains("did not answer ApiVersions within"), "{error}");
    let error = error_of(broker(|_| Some(Vec::new())));
    assert!(matches!(error.kind(), ErrorKind::Timeout { .. }), "{error}");
    let error = error_of(broker(|_| None));
    assert!(error.to_string().contains("closed the connection, expected to answer ApiVersions"), "{error}");
    let error = error_of(fetching(|_| None));
    assert!(error.to_string().contains("expected to answer Fetch"), "{error}");
    let error = error_of(fetching(|_| Some(Vec::new())));
    assert!(error.to_string().contains("did not answer Fetch"), "{error}");
    // A byte now and then does not move the deadline.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            while stream.write_all(&[0]).is_ok() {
                thread::sleep(Duration::from_millis(150));
            }
        }
    });
    error_of(address);
}

#[test]
fn redirects() {
    for (host, port) in [
        ("", 1),
        ("127.0.0.1", 0),
        ("127.0.0.1", -1),
        ("127.0.0.1", 65536),
        ("\u{1b}[31mred", 1),
        ("two words", 1),
        ("user@host", 1),
    ] {
        let address = broker(move |asked| match asked.api {
            VERSIONS => Some(api_versions(asked)),
            _ => Some(metadata(asked, host, port)),
        });
        let error = error_of(address);
        assert!(matches!(error.kind(), ErrorKind::Protocol(_)), "{error}");
        assert!(error.to_string().contains("expected a host and port"), "{error}");
        assert!(!error.to_string().contains(char::is_control), "{error:?}");
    }
    // Where nobody listens.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = broker(move |asked| match asked.api {
        VERSIONS => Some(api_versions(asked)),
        _ => Some(metadata(asked, "127.0.0.1", closed.into())),
    });
    assert!(matches!(error_of(address).kind(), ErrorKind::Io(_)));
}

/// A response may be full of topics, partitions or brokers: the memory of the values that are read from it has a limit.
#[test]
fn endless_metadata() {
    let of = |topics: Vec<MetadataResponseTopic<'_>>, nodes: i32| {
        let response = |asked: Asked| {
            let brokers = (0..nodes).map(|node_id| MetadataResponseBroker {
                node_id,
                host: "127.0.0.1".into(),
                port: i32::from(asked.port),
                ..Default::default()
            });
            let response =
                MetadataResponse { brokers: brokers.collect(), topics: topics.clone(), ..Default::default() };
            framed(write_response(&response, 12, 0).unwrap())
        };
        // Written once: all that differs is the correlation id.
        let written = response(Asked { api: METADATA, version: 12, id: 0, port: 1 });
        let address = broker(move |asked| match asked.api {
            VERSIONS => Some(api_versions(asked)),
            _ => {
                let mut bytes = written.clone();
                bytes[4..8].copy_from_slice(&asked.id.to_be_bytes());
                Some(bytes)
            }
        });
        let begun = Instant::now();
        let options = ClientOptions { max_response_bytes: 32 << 20, ..options() };
        let mut cluster = Cluster::connect(&address.to_string(), options).unwrap();
        let found = cluster.topics(None).and_then(|_| cluster.topics(Some(&["t"])));
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        found.expect_err("an error").to_string()
    };
    let topic = |name: &'static str| MetadataResponseTopic { name: Some(name.into()), ..Default::default() };
    let error = of(vec![topic("x"); 20_000], 1);
    assert!(error.contains("a topic that was not asked for"), "{error}");
    let partitions = vec![MetadataResponsePartition::default(); 900_000];
    let error = of(vec![MetadataResponseTopic { partitions, ..topic("t") }], 1);
    assert!(error.contains("values") && error.starts_with("127.0.0.1:"), "{error}");
    let error = of(vec![topic("t")], 900_000);
    assert!(error.contains("values"), "{error}");
}

#[test]
fn lies_about_offsets() {
    let of = |parts: Vec<Vec<u8>>| fetching(move |asked| Some(fetched(asked, records(parts.concat()))));
    // Batches before the position are skipped, as by Kafka's consumer; alone, they would be fetched forever.
    let error = error_of(of(vec![batch(3), batch(9)]));
    assert!(
        error.to_string().contains(
            "the records at offset 10: offset 9 does not fit between its neighbours: expected at least 10"
        ),
        "{error}"
    );
    let (answers, error) = read(of(vec![batch(3), batch(19), batch(25)]));
    assert_eq!((answers, error.map(|error| error.to_string())), (1, None));
    let error = error_of(of(vec![batch(12), batch(11)]));
    assert!(
        error.to_string().contains("the records at offset 13: offset 11 does not fit between its neighbours"),
        "{error}"
    );
    // A gap up to the end of the range leaves nothing to read.
    let (answers, error) = read(of(vec![batch(99)]));
    assert_eq!((answers, error.map(|error| error.to_string())), (0, None));
    // Offsets beyond the end of the log would leave out all records before them.
    for (sent, found) in [(vec![batch(100)], 100), (vec![batch(10), batch(900)], 900)] {
        let error = error_of(of(sent));
        let expected =
            format!("the records at offset 10: offset {found} is not allowed here: expected 10 to 49");
        assert!(error.to_string().contains(&expected), "{error}");
    }
    // Records that are replicated while a leader reads are beyond the high watermark that it tells.
    for high_watermark in [0, 10, 19] {
        let (answers, error) = read(fetching(move |asked| {
            Some(fetched(asked, PartitionData { high_watermark, ..records(batch(19)) }))
        }));
        assert_eq!((answers, error.map(|error| error.to_string())), (1, None));
    }
    let error = error_of(of(vec![batch(i64::MAX - 1)[..61].to_vec()]));
    assert!(error.to_string().contains("t-0"), "{error}");
    let error = error_of(of(vec![vec![0x55; 200]]));
    assert!(error.to_string().contains("t-0: the records at offset 10"), "{error}");
    // A batch that is never whole.
    let error = error_of(of(vec![batch(10)[..70].to_vec()]));
    assert!(error.to_string().contains("a batch of at least"), "{error}");
}

/// A broker that names one more byte each time would be asked half a million times.
#[test]
fn batches_that_grow() {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let error = error_of(fetching(|asked| {
        let mut cut = batch(10);
        let length = (1 << 19) + ASKED.fetch_add(1, Ordering::Relaxed);
        cut[8..12].copy_from_slice(&length.to_be_bytes());
        Some(fetched(asked, records(cut)))
    }));
    assert!(error.to_string().contains("a batch of at least"), "{error}");
    assert!(ASKED.load(Ordering::Relaxed) < 10);
}

/// An answer without partitions is what a broker sends when a quota is exceeded (`FetchContext.getThrottledResponse`).
#[test]
fn quotas() {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let throttled = |asked: Asked| {
        let response = FetchResponse { throttle_time_ms: 5, ..Default::default() };
        framed(write_response(&response, asked.version, asked.id).unwrap())
    };
    let address = fetching(move |asked| {
        Some(match ASKED.fetch_add(1, Ordering::Relaxed) {
            0 | 2 => throttled(asked),
            1 => fetched(asked, records(batch(12))),
            _ => fetched(asked, records(batch(19))),
        })
    });
    let (answers, error) = read(address);
    assert_eq!((answers, error.map(|error| error.to_string())), (2, None));
    // Forever.
    let error = error_of(fetching(move |asked| Some(throttled(asked))));
    assert!(matches!(error.kind(), ErrorKind::Timeout { .. }), "{error}");
    assert!(error.to_string().contains("quota"), "{error}");
}

/// A leader whose remote storage is slow sends neither records nor an error. Its own disks begin at offset 50.
#[test]
fn slow_remote_storage() {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let nothing = || PartitionData { high_watermark: 100, ..Default::default() };
    let address = fetching(move |asked| {
        Some(match ASKED.fetch_add(1, Ordering::Relaxed) {
            0 => fetched(asked, nothing()),
            _ => fetched(asked, records(batch(19))),
        })
    });
    let (answers, error) = read(address);
    assert_eq!((answers, error.map(|error| error.to_string())), (1, None));
    let error = error_of(fetching(move |asked| Some(fetched(asked, nothing()))));
    assert!(error.to_string().contains("remote storage"), "{error}");
}

/// While the metadata is asked for at one of two brokers, a response of records from it is under way.
#[test]
fn one_of_two_brokers_closes() {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    static FETCHED: AtomicU32 = AtomicU32::new(0);
    static PORTS: Mutex<Vec<u16>> = Mutex::new(Vec::new());
    let node = |partition_index: i32| {
        broker(move |asked| match asked.api {
            VERSIONS => Some(api_versions(asked)),
            METADATA => Some(two_nodes(&PORTS.lock().unwrap(), asked)),
            _ if partition_index == 1 && ASKED.fetch_add(1, Ordering::Relaxed) < 3 => None,
            _ => {
                let position = match partition_index {
                    0 => 10 + i64::from(FETCHED.fetch_add(1, Ordering::Relaxed)),
                    _ => 19,
                };
                let batches = batch(position.min(19));
                Some(fetched(asked, PartitionData { partition_index, ..records(batches) }))
            }
        })
    };
    let nodes = [node(0), node(1)];
    PORTS.lock().unwrap().extend(nodes.map(|node| node.port()));
    let mut cluster = Cluster::connect(&nodes[0].to_string(), options()).unwrap();
    let ranges =
        [0, 1].map(|partition| FetchRange { topic: "t".into(), partition, start: 10, end: 20 }).to_vec();
    let limits = FetchOptions { max_bytes: 1 << 19, max_partition_bytes: 1 << 19, ..FetchOptions::default() };
    let fetched: Vec<_> = cluster.fetch(ranges, limits).unwrap().collect::<Result<_, _>>().unwrap();
    for partition in [0, 1] {
        let mut next = 10;
        for fetched in fetched.iter().filter(|fetched| fetched.partition == partition) {
            assert_eq!(fetched.position, next);
            next = fetched.next_position;
        }
        assert_eq!(next, 20);
    }
}

#[test]
fn times_without_end() {
    let address = fetching(|asked| Some(fetched(asked, records(batch(19)))));
    let forever = ClientOptions {
        request_timeout: Duration::MAX,
        retry_timeout: Duration::MAX,
        ..ClientOptions::default()
    };
    let mut cluster = Cluster::connect(&address.to_string(), forever).unwrap();
    let range = FetchRange { topic: "t".into(), partition: 0, start: 10, end: 20 };
    let options = FetchOptions { max_wait: Duration::MAX, ..FetchOptions::default() };
    assert_eq!(cluster.fetch(vec![range], options).unwrap().flatten().count(), 1);
}

#[test]
fn answers_about_other_things() {
    let error = error_of(fetching(|asked| {
        Some(fetched(asked, PartitionData { partition_index: 5, ..Default::default() }))
    }));
    assert!(error.to_string().contains("t-5: Fetch: was not asked for"), "{error}");
    let error = error_of(fetching(|asked| {
        let response = FetchResponse::default();
        Some(framed(write_response(&response, asked.version, asked.id).unwrap()))
    }));
    assert!(error.to_string().contains("t-0: Fetch: the answer lacks the partition"), "{error}");
    let error = error_of(fetching(|asked| {
        let topic = FetchableTopicResponse {
            topic: "t".into(),
            partitions: vec![records(batch(10)), records(batch(10))],
            ..Default::default()
        };
        let response = FetchResponse { responses: vec![topic], ..Default::default() };
        Some(framed(write_response(&response, asked.version, asked.id).unwrap()))
    }));
    assert!(error.to_string().contains("a second answer"), "{error}");
}

#[test]
fn errors_of_brokers() {
    let of = |error_code| {
        error_of(fetching(move |asked| {
            Some(fetched(asked, PartitionData { error_code, ..Default::default() }))
        }))
    };
    for (code, name) in [
        (29, "TOPIC_AUTHORIZATION_FAILED"),
        (2, "CORRUPT_MESSAGE"),
        (6, "NOT_LEADER_OR_FOLLOWER"),
        (74, "FENCED_LEADER_EPOCH"),
        (12345, "error code 12345"),
    ] {
        let error = of(code);
        assert!(error.to_string().contains(&format!("t-0: Fetch: {name}")), "{error}");
    }
    // Retention has overtaken the reader: the log now begins at 50.
    let error = of(1);
    assert!(
        matches!(error.kind(), ErrorKind::OffsetOutOfRange { offset: 10, log_start: Some(50), .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("offset 10 was deleted; the log now begins at 50"), "{error}");
    // The leader of another lineage.
    let diverging = EpochEndOffset { epoch: 2, end_offset: 7 };
    let error = error_of(fetching(move |asked| {
        Some(fetched(asked, PartitionData { diverging_epoch: diverging.clone(), ..Default::default() }))
    }));
    assert!(matches!(error.kind(), ErrorKind::Truncated { offset: 10, diverges_at: 7 }), "{error}");
    // A log that never grows.
    let error = error_of(fetching(|asked| Some(fetched(asked, PartitionData::default()))));
    assert!(matches!(error.kind(), ErrorKind::Timeout { .. }), "{error}");
}

#[test]
fn a_leader_that_moves_back_in_time() {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    // Errors that pass: the range is read after all.
    let address = fetching(|asked| {
        Some(match ASKED.fetch_add(1, Ordering::Relaxed) {
            0 => fetched(asked, PartitionData { error_code: 6, ..Default::default() }),
            1 => return None,
            2 => fetched(asked, records(batch(12))),
            3 => fetched(asked, PartitionData { error_code: 75, ..Default::default() }),
            _ => fetched(asked, records(batch(19))),
        })
    });
    let (answers, error) = read(address);
    assert_eq!((answers, error.map(|error| error.to_string())), (2, None));
}

#[test]
fn brokers_that_do_not_know_the_password() {
    let address = broker(|asked| match asked.api {
        VERSIONS => Some(api_versions(asked)),
        HANDSHAKE => {
            let response =
                SaslHandshakeResponse { mechanisms: vec!["SCRAM-SHA-256".into()], ..Default::default() };
            Some(framed(write_response(&response, asked.version, asked.id).unwrap()))
        }
        _ => {
            let challenge = b"r=short,s=AAAA,i=4096".to_vec();
            let response = SaslAuthenticateResponse { auth_bytes: challenge.into(), ..Default::default() };
            Some(framed(write_response(&response, asked.version, asked.id).unwrap()))
        }
    });
    let user = Sasl::Scram { hash: ScramHash::Sha256, username: "alice".into(), password: "hunter2".into() };
    let options = ClientOptions { security: Security { tls: None, sasl: Some(user) }, ..options() };
    assert!(!format!("{options:?}").contains("hunter2"));
    let error = Cluster::connect(&address.to_string(), options).unwrap_err();
    assert!(error.to_string().contains("SCRAM"), "{error}");
    assert!(!error.is_retriable() && !format!("{error:?}").contains("hunter2"), "{error}");
}

#[test]
fn debug_texts_have_no_secret() {
    // As PEM files of Kafka's clients: the key is beside the certificates.
    let pem = b"hunter2".to_vec();
    let security = Security {
        tls: Some(TlsOptions {
            ca: Some(pem.clone()),
            client_certificates: Some(pem.clone()),
            client_key: Some("hunter2".into()),
            any_hostname: true,
        }),
        sasl: Some(Sasl::OauthBearer(TokenSource::Command(["print", "hunter2"].map(Into::into).to_vec()))),
    };
    let options = ClientOptions { security, ..ClientOptions::default() };
    let text = format!("{options:?}");
    assert!(text.contains("any_hostname: true") && text.contains("print"), "{text}");
    let numbers = format!("{pem:?}");
    assert!(!text.contains("hunter2") && !text.contains(numbers.trim_matches(['[', ']'])), "{text}");
}
