//! Several brokers of a cluster: the closest replica, one that fails while others do not, the continuation of a range.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod played;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use magicbyte_client::{ClientOptions, Cluster, Error, ErrorKind, FetchOptions, FetchRange};
use magicbyte_protocol::message::body::fetch_response::{EpochEndOffset, PartitionData};
use magicbyte_protocol::message::body::metadata_response::MetadataResponseTopic;
use magicbyte_protocol::message::body::{FetchResponse, MetadataResponse, write_response};
use played::{
    Asked, LIST_OFFSETS, METADATA, VERSIONS, api_versions, batch, broker, fetched, fetching, framed, listed,
    options, records, two_nodes,
};

/// The bytes of an answer; none closes the connection.
type Answer = fn(Asked) -> Option<Vec<u8>>;

const LIMITS: usize = 1 << 19;

/// Nodes 0 and 1; each leads the partition of its number. They answer Fetch with what `fetch` makes for the node.
fn cluster(fetch: impl Fn(i32, Asked) -> Option<Vec<u8>> + Send + Clone + 'static) -> SocketAddr {
    let ports: Arc<Mutex<Vec<u16>>> = Arc::default();
    let nodes = [0, 1].map(|node| {
        let (ports, fetch) = (Arc::clone(&ports), fetch.clone());
        broker(move |asked| match asked.api {
            VERSIONS => Some(api_versions(asked)),
            METADATA => Some(two_nodes(&ports.lock().unwrap(), asked)),
            LIST_OFFSETS => Some(listed(asked)),
            _ => fetch(node, asked),
        })
    });
    ports.lock().unwrap().extend(nodes.map(|node| node.port()));
    nodes[0]
}

fn range(partition: i32, start: i64, end: i64) -> FetchRange {
    FetchRange { topic: "t".into(), partition, start, end }
}

fn limits() -> FetchOptions {
    FetchOptions { max_bytes: LIMITS, max_partition_bytes: LIMITS, ..FetchOptions::default() }
}

/// The ranges of offsets that were fetched of partition 0, offsets 10 to 20, by a client in a rack.
fn read_in_rack(address: SocketAddr) -> Result<Vec<(i64, i64)>, Error> {
    let options = ClientOptions { rack: "a".into(), ..options() };
    let mut cluster = Cluster::connect(&address.to_string(), options)?;
    let fetcher = cluster.fetch(vec![range(0, 10, 20)], limits())?;
    fetcher.map(|fetched| fetched.map(|one| (one.position, one.next_position))).collect()
}

fn redirect(asked: Asked, to: i32) -> Vec<u8> {
    let answer = PartitionData { preferred_read_replica: to, high_watermark: 100, ..Default::default() };
    fetched(asked, answer)
}

#[test]
fn the_closest_replica() {
    static LEADER: AtomicU32 = AtomicU32::new(0);
    static REPLICA: AtomicU32 = AtomicU32::new(0);
    let address = cluster(|node, asked| {
        Some(match node {
            0 => {
                LEADER.fetch_add(1, Ordering::Relaxed);
                redirect(asked, 1)
            }
            _ => match REPLICA.fetch_add(1, Ordering::Relaxed) {
                0 => fetched(asked, records(batch(12))),
                _ => fetched(asked, records(batch(19))),
            },
        })
    });
    assert_eq!(read_in_rack(address).unwrap(), [(10, 13), (13, 20)]);
    // The leader was asked once.
    assert_eq!((LEADER.load(Ordering::Relaxed), REPLICA.load(Ordering::Relaxed)), (1, 2));
}

/// A replica that does not have what the leader has: the leader is asked again.
#[test]
fn a_replica_that_is_behind() {
    let unable: [Answer; 5] = [
        |asked| Some(fetched(asked, PartitionData { error_code: 1, ..Default::default() })),
        |asked| Some(fetched(asked, PartitionData { error_code: 78, ..Default::default() })),
        |asked| {
            let diverging_epoch = EpochEndOffset { epoch: 2, end_offset: 7 };
            Some(fetched(asked, PartitionData { diverging_epoch, ..Default::default() }))
        },
        // Its high watermark is not there yet.
        |asked| Some(fetched(asked, PartitionData { high_watermark: 10, ..Default::default() })),
        |_| None,
    ];
    for unable in unable {
        let asked_leader = Arc::new(AtomicU32::new(0));
        let address = cluster(move |node, asked| match node {
            0 if asked_leader.fetch_add(1, Ordering::Relaxed) == 0 => Some(redirect(asked, 1)),
            0 => Some(fetched(asked, records(batch(19)))),
            _ => unable(asked),
        });
        assert_eq!(read_in_rack(address).unwrap(), [(10, 20)]);
    }
}

/// Two brokers name each other, a broker names itself, and one names a broker that the cluster does not have.
#[test]
fn replicas_without_end() {
    for to in [|node: i32| 1 - node, |node| node, |_| 77] {
        let begun = Instant::now();
        let error = read_in_rack(cluster(move |node, asked| Some(redirect(asked, to(node))))).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Timeout { .. }), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
    // Without a rack, no leader names a replica.
    let address = cluster(|node, asked| {
        Some(if node == 0 {
            fetched(asked, PartitionData { preferred_read_replica: 1, ..records(batch(19)) })
        } else {
            Vec::new()
        })
    });
    let mut cluster = Cluster::connect(&address.to_string(), options()).unwrap();
    assert_eq!(cluster.fetch(vec![range(0, 10, 20)], limits()).unwrap().flatten().count(), 1);
}

/// One leader fails forever while another one sends a record at a time: its error does not wait for the end of the others.
#[test]
fn a_leader_that_fails_while_another_does_not() {
    static FETCHED: AtomicU32 = AtomicU32::new(0);
    let address = cluster(|node, asked| {
        (node == 0)
            .then(|| fetched(asked, records(batch(i64::from(FETCHED.fetch_add(1, Ordering::Relaxed))))))
    });
    let mut cluster = Cluster::connect(&address.to_string(), options()).unwrap();
    let begun = Instant::now();
    let ranges = vec![range(0, 0, 1_000_000), range(1, 0, 10)];
    let error = cluster.fetch(ranges, limits()).unwrap().find_map(Result::err).unwrap();
    assert!(matches!(error.kind(), ErrorKind::Io(_)), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(FETCHED.load(Ordering::Relaxed) > 1);
}

/// In order, a broker is asked once for what comes later, whatever its number of batches; it is asked for more when its
/// partition is read.
#[test]
fn partitions_in_order() {
    static FETCHED: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];
    let address = cluster(|node, asked| {
        let partition_index = node;
        let offset = i64::from(FETCHED[node as usize].fetch_add(1, Ordering::Relaxed));
        Some(fetched(asked, PartitionData { partition_index, ..records(batch(offset)) }))
    });
    for order in [[0, 1], [1, 0]] {
        FETCHED.iter().for_each(|fetched| fetched.store(0, Ordering::Relaxed));
        let mut cluster = Cluster::connect(&address.to_string(), options()).unwrap();
        let ranges = order.map(|partition| range(partition, 0, 10)).to_vec();
        let options = FetchOptions { in_order: true, ..limits() };
        let mut delivered = Vec::new();
        for fetched in cluster.fetch(ranges, options).unwrap() {
            let fetched = fetched.unwrap();
            if fetched.partition == order[0] {
                let ahead = FETCHED[order[1] as usize].load(Ordering::Relaxed);
                assert!(ahead <= 1, "{ahead} responses of the next partition");
            }
            delivered.push((fetched.partition, fetched.position));
        }
        let expected = order.iter().flat_map(|&partition| (0..10).map(move |offset| (partition, offset)));
        assert_eq!(delivered, expected.collect::<Vec<_>>());
    }
}

/// In order, an error about a later partition comes after the batches of those before it that are there, and nothing else.
#[test]
fn errors_in_order() {
    let address = cluster(|node, asked| {
        Some(match node {
            0 => fetched(asked, records(batch(9))),
            // TOPIC_AUTHORIZATION_FAILED.
            _ => fetched(asked, PartitionData { partition_index: 1, error_code: 29, ..Default::default() }),
        })
    });
    let mut cluster = Cluster::connect(&address.to_string(), options()).unwrap();
    let ranges = vec![range(0, 0, 10), range(1, 0, 10)];
    let options = FetchOptions { in_order: true, ..limits() };
    let delivered: Vec<_> = cluster.fetch(ranges, options).unwrap().collect();
    let [Ok(first), Err(error)] = &delivered[..] else { panic!("{delivered:?}") };
    assert_eq!((first.partition, first.next_position), (0, 10));
    assert!(error.to_string().contains("t-1"), "{error}");
}

/// Retention has overtaken a range of which nothing was read: it begins where the log does, if that is wanted.
#[test]
fn ranges_whose_start_is_deleted() {
    for (from_log_start, end, expected) in
        [(true, 60, Ok(vec![(50, 60)])), (true, 50, Ok(vec![])), (true, 20, Ok(vec![])), (false, 60, Err(10))]
    {
        let asked_before = Arc::new(AtomicU32::new(0));
        let address = fetching(move |asked| {
            Some(match asked_before.fetch_add(1, Ordering::Relaxed) {
                0 => fetched(asked, PartitionData { error_code: 1, ..Default::default() }),
                _ => fetched(asked, records(batch(59))),
            })
        });
        let mut cluster = Cluster::connect(&address.to_string(), options()).unwrap();
        let options = FetchOptions { from_log_start, ..limits() };
        let read = cluster.fetch(vec![range(0, 10, end)], options).unwrap();
        let read: Result<Vec<_>, Error> =
            read.map(|fetched| fetched.map(|one| (one.position, one.next_position))).collect();
        let read = read.map_err(|error| match error.kind() {
            ErrorKind::OffsetOutOfRange { offset, log_start: Some(50), .. } => *offset,
            _ => panic!("{error}"),
        });
        assert_eq!(read, expected);
    }
    // Once something was read, records would be missing in between.
    static FETCHED: AtomicU32 = AtomicU32::new(0);
    let address = fetching(|asked| {
        Some(match FETCHED.fetch_add(1, Ordering::Relaxed) {
            0 => fetched(asked, records(batch(12))),
            _ => fetched(asked, PartitionData { error_code: 1, ..Default::default() }),
        })
    });
    let mut cluster = Cluster::connect(&address.to_string(), options()).unwrap();
    let options = FetchOptions { from_log_start: true, ..limits() };
    let error = cluster.fetch(vec![range(0, 10, 60)], options).unwrap().find_map(Result::err).unwrap();
    assert!(matches!(error.kind(), ErrorKind::OffsetOutOfRange { offset: 13, .. }), "{error}");
}

/// The batches under way are not fetched in vain.
#[test]
fn an_iteration_that_is_finished() {
    static FETCHED: AtomicU32 = AtomicU32::new(0);
    let address = fetching(|asked| {
        let offset = i64::from(FETCHED.fetch_add(1, Ordering::Relaxed));
        Some(fetched(asked, records(batch(offset))))
    });
    let mut cluster = Cluster::connect(&address.to_string(), options()).unwrap();
    let mut fetcher = cluster.fetch(vec![range(0, 0, 1000)], limits()).unwrap();
    let mut next = 0;
    while let Some(fetched) = fetcher.next() {
        let fetched = fetched.unwrap();
        assert_eq!(fetched.position, next);
        next = fetched.next_position;
        if next == 3 {
            fetcher.finish();
        }
    }
    assert_eq!(next, i64::from(FETCHED.load(Ordering::Relaxed)));
    assert!((3..6).contains(&next), "{next}");
}

/// The range after another one tells the leader the epoch of what was fetched, and hears that the log was truncated.
#[test]
fn a_range_that_continues_another() {
    static FETCHED: AtomicU32 = AtomicU32::new(0);
    let address = fetching(|asked| {
        let diverging_epoch = EpochEndOffset { epoch: 2, end_offset: 4 };
        Some(match FETCHED.fetch_add(1, Ordering::Relaxed) {
            0 => fetched(asked, records(batch(9))),
            _ => fetched(asked, PartitionData { diverging_epoch, ..Default::default() }),
        })
    });
    let mut cluster = Cluster::connect(&address.to_string(), options()).unwrap();
    assert_eq!(cluster.fetch(vec![range(0, 0, 10)], limits()).unwrap().flatten().count(), 1);
    let error = cluster.fetch(vec![range(0, 10, 20)], limits()).unwrap().find_map(Result::err).unwrap();
    assert!(matches!(error.kind(), ErrorKind::Truncated { offset: 10, diverges_at: 4 }), "{error}");
}

/// A client waits as long as it is told to before it asks again.
#[test]
fn quotas_are_kept() {
    static FETCHED: AtomicU32 = AtomicU32::new(0);
    let address = fetching(|asked| {
        let throttled = FetchResponse { throttle_time_ms: 300, ..Default::default() };
        Some(match FETCHED.fetch_add(1, Ordering::Relaxed) {
            0 => framed(write_response(&throttled, asked.version, asked.id).unwrap()),
            _ => fetched(asked, records(batch(19))),
        })
    });
    let begun = Instant::now();
    let mut cluster = Cluster::connect(&address.to_string(), options()).unwrap();
    assert_eq!(cluster.fetch(vec![range(0, 10, 20)], limits()).unwrap().flatten().count(), 1);
    assert!(begun.elapsed() >= Duration::from_millis(300));
    assert_eq!(FETCHED.load(Ordering::Relaxed), 2);
}

/// Topics that do not exist are left out; each request names a bounded number of them.
#[test]
fn existing_topics() {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let address = broker(|asked| {
        if asked.api == VERSIONS {
            return Some(api_versions(asked));
        }
        // The names are in their order.
        let first = ASKED.fetch_add(1, Ordering::Relaxed) * 250;
        let topics = (first..(first + 250).min(600)).map(|number| MetadataResponseTopic {
            name: Some(format!("t{number:03}").into()),
            error_code: if number % 3 == 0 { 3 } else { 0 },
            ..Default::default()
        });
        let response = MetadataResponse { topics: topics.collect(), ..Default::default() };
        Some(framed(write_response(&response, asked.version, asked.id).unwrap()))
    });
    let mut cluster = Cluster::connect(&address.to_string(), options()).unwrap();
    let names: Vec<_> = (0..600).map(|number| format!("t{number:03}")).collect();
    let long = "x".repeat(250);
    let mut asked: Vec<&str> = names.iter().map(String::as_str).collect();
    asked.extend(["", &long, "t001"]);
    let found = cluster.existing_topics(&asked).unwrap();
    assert_eq!((found.len(), ASKED.load(Ordering::Relaxed)), (400, 3));
    assert_eq!(&*found[0].name, "t001");
}
