//! The client reads what `magicbyte-serve` serves, in frames of Kafka's protocol.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

#[allow(dead_code, reason = "main is unused here")]
#[path = "../examples/fetch.rs"]
mod fetch;

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use magicbyte::state::IsolationLevel;
use magicbyte::{Batches, Decompressor};
use magicbyte_client::{
    ClientOptions, Cluster, Error, ErrorKind, FetchOptions, FetchRange, Fetched, OffsetSpec,
};
use magicbyte_log::PartitionLog;
use magicbyte_serve::{ReadOnlyBroker, ServeOptions, Server};
use magicbyte_testing::{data, partitions};

const LEVEL: IsolationLevel = IsolationLevel::ReadUncommitted;

/// Partitions whose segments are whole and begin where the log does.
fn names() -> Vec<String> {
    let paths = partitions().into_iter();
    let mut names: Vec<_> =
        paths.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    let is_partial =
        |name: &str| ["torn_tail", "trimmed", "unclean", "live"].iter().any(|part| name.contains(part));
    names.retain(|name| name.starts_with('v') && !is_partial(name));
    names
}

/// A server of these directories of the test data.
fn server(names: &[&str]) -> Server {
    let listings = names.iter().map(|name| PartitionLog::open(data().join(name)).unwrap().listing().clone());
    let broker = ReadOnlyBroker::new(listings.collect(), ServeOptions::default());
    Server::start(broker, "127.0.0.1:0").unwrap()
}

fn options() -> ClientOptions {
    ClientOptions {
        request_timeout: Duration::from_secs(5),
        retry_timeout: Duration::from_millis(600),
        ..ClientOptions::default()
    }
}

fn connect(server: &Server) -> Cluster {
    Cluster::connect(&server.address().to_string(), options()).unwrap()
}

fn range(topic: &str, start: i64, end: i64) -> FetchRange {
    FetchRange { topic: topic.into(), partition: 0, start, end }
}

type BytesByTopic = BTreeMap<Arc<str>, Vec<u8>>;

/// All bytes of each topic, and the answers.
fn fetch_all(
    cluster: &mut Cluster,
    ranges: Vec<FetchRange>,
    options: FetchOptions,
) -> Result<(BytesByTopic, Vec<Fetched>), Error> {
    let (mut bytes, mut all) = (BytesByTopic::new(), Vec::new());
    for fetched in cluster.fetch(ranges, options)? {
        let fetched = fetched?;
        bytes.entry(Arc::clone(&fetched.topic)).or_default().extend_from_slice(&fetched.records);
        all.push(fetched);
    }
    Ok((bytes, all))
}

/// The ranges of all topics, from their starts to their ends.
fn whole(cluster: &mut Cluster, names: &[&str], level: IsolationLevel) -> Vec<FetchRange> {
    let places: Vec<_> = names.iter().map(|&name| (Arc::from(name), 0)).collect();
    let starts = cluster.list_offsets(&places, OffsetSpec::Earliest, level).unwrap();
    let ends = cluster.list_offsets(&places, OffsetSpec::Latest, level).unwrap();
    places.iter().map(|place| range(&place.0, starts[place].unwrap(), ends[place].unwrap())).collect()
}

/// The bytes of a partition's segments.
fn on_disk(name: &str) -> Vec<u8> {
    let mut paths: Vec<_> =
        fs::read_dir(data().join(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    paths.sort();
    paths.iter().flat_map(|path| fs::read(path).unwrap()).collect()
}

#[test]
fn every_partition_byte_for_byte_whatever_the_limits() {
    let names = names();
    assert!(names.len() > 20, "{names:?}");
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let server = server(&names);
    let mut cluster = connect(&server);
    let limits = [(16 << 20, 4 << 20), (3000, 700), (1, 1)];
    for ((max_bytes, max_partition_bytes), in_order) in
        limits.into_iter().flat_map(|one| [(one, false), (one, true)])
    {
        let options = FetchOptions { max_bytes, max_partition_bytes, in_order, ..FetchOptions::default() };
        let ranges = whole(&mut cluster, &names, LEVEL);
        let asked = ranges.len();
        let mut order: Vec<_> =
            ranges.iter().filter(|one| one.start < one.end).map(|one| one.topic.clone()).collect();
        let (bytes, all) = fetch_all(&mut cluster, ranges, options).unwrap();
        assert!(all.len() >= asked / 2, "{} answers", all.len());
        if in_order {
            let mut delivered: Vec<_> = all.iter().map(|one| one.topic.clone()).collect();
            delivered.dedup();
            order.retain(|topic| bytes.contains_key(topic));
            assert_eq!(delivered, order);
        }
        for name in &names {
            let fetched = bytes.get(*name).map_or(&[][..], Vec::as_slice);
            assert!(fetched == on_disk(name), "{name} with {max_bytes} and {max_partition_bytes} bytes");
        }
    }
}

#[test]
fn ranges_begin_and_end_inside_batches() {
    let server = server(&["v2_lz4"]);
    let mut cluster = connect(&server);
    let FetchRange { end: log_end, .. } = whole(&mut cluster, &["v2_lz4"], LEVEL)[0];
    let mut decompressor = Decompressor::new();
    for (start, end) in [(0, 1), (1, 2), (3, log_end - 1), (log_end - 1, log_end), (5, 5), (7, 3)] {
        let (bytes, all) =
            fetch_all(&mut cluster, vec![range("v2_lz4", start, end)], FetchOptions::default()).unwrap();
        let mut offsets = Vec::new();
        for batch in Batches::new(bytes.values().next().map_or(&[], Vec::as_slice)) {
            let batch = batch.unwrap();
            for record in batch.records(&mut decompressor).unwrap() {
                offsets.push(record.unwrap().offset());
            }
        }
        offsets.retain(|offset| (start..end).contains(offset));
        assert_eq!(offsets, (start..end).collect::<Vec<_>>(), "no offset is missing");
        assert!(all.iter().all(|fetched| fetched.position < end));
    }
}

#[test]
fn read_committed_ends_at_the_last_stable_offset() {
    let names = names();
    let names: Vec<&str> = names.iter().filter(|name| name.contains("txn")).map(String::as_str).collect();
    assert!(!names.is_empty());
    let server = server(&names);
    let mut cluster = connect(&server);
    let level = IsolationLevel::ReadCommitted;
    let ranges = whole(&mut cluster, &names, level);
    let options = FetchOptions { isolation_level: level, ..FetchOptions::default() };
    let (_, all) = fetch_all(&mut cluster, ranges, options).unwrap();
    assert!(all.iter().any(|fetched| !fetched.aborted_transactions.is_empty()));
    assert!(all.iter().all(|fetched| fetched.next_position <= fetched.last_stable_offset));
}

#[test]
fn errors_name_topic_and_partition() {
    let server = server(&["v2_lz4"]);
    let mut cluster = connect(&server);
    let end = whole(&mut cluster, &["v2_lz4"], LEVEL)[0].end;
    let mut fetch =
        |range: FetchRange| fetch_all(&mut cluster, vec![range], FetchOptions::default()).unwrap_err();

    let error = fetch(range("v2_lz4", end + 1, end + 2));
    assert_eq!(
        error.to_string(),
        format!(
            "{}: v2_lz4-0: OFFSET_OUT_OF_RANGE: offset {} is beyond the end of the log, {end}",
            server.address(),
            end + 1
        )
    );
    assert_eq!((error.topic(), error.partition()), (Some("v2_lz4"), Some(0)));

    let error = fetch(range("v2_lz4", end, end + 1));
    assert!(matches!(error.kind(), ErrorKind::Timeout { .. }), "{error}");
    assert!(error.to_string().contains(&format!("its log is readable up to {end}")), "{error}");

    let error = fetch(range("missing", 0, 1));
    assert_eq!(
        error.to_string(),
        format!("{}: topic missing: Metadata: UNKNOWN_TOPIC_OR_PARTITION", server.address())
    );
    assert!(!error.is_retriable());

    let error = fetch(FetchRange { topic: "v2_lz4".into(), partition: 7, start: 0, end: 1 });
    assert_eq!((error.name(), error.partition()), (Some("UNKNOWN_TOPIC_OR_PARTITION"), Some(7)));

    for wrong in [vec![range("v2_lz4", -1, 1)], vec![range("v2_lz4", 0, 1), range("v2_lz4", 1, 2)]] {
        let error = cluster.fetch(wrong, FetchOptions::default()).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidOptions(_)), "{error}");
    }
}

#[test]
fn offsets_of_times_and_epochs() {
    let server = server(&["v2_lz4"]);
    let mut cluster = connect(&server);
    let place = (Arc::from("v2_lz4"), 0);
    let mut listed = |spec| cluster.list_offsets(std::slice::from_ref(&place), spec, LEVEL).unwrap()[&place];
    assert_eq!(listed(OffsetSpec::Timestamp(0)), Some(0));
    assert_eq!(listed(OffsetSpec::Timestamp(i64::MAX)), None);
    let end = listed(OffsetSpec::Latest);
    assert_eq!(cluster.end_of_leader_epoch(&place, i32::MAX - 1).unwrap().or(end), end);
}

#[test]
fn a_response_above_the_limit_is_an_error() {
    let server = server(&["v2_none"]);
    let options = ClientOptions { max_response_bytes: 2000, ..options() };
    let mut cluster = Cluster::connect(&server.address().to_string(), options).unwrap();
    let options = FetchOptions { max_bytes: 2000, max_partition_bytes: 2000, ..FetchOptions::default() };
    let error = fetch_all(&mut cluster, vec![range("v2_none", 0, 50)], options);
    let error = error.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.is_empty() || error.contains("expected 4 to 2000"), "{error}");
    let error = cluster.fetch(vec![], FetchOptions::default()).unwrap_err();
    assert!(error.to_string().contains("max_bytes 16777216: expected 1 to 2000"), "{error}");
}

#[test]
fn a_server_that_ends_is_an_error_in_time() {
    let mut server = server(&["v2_lz4"]);
    let mut cluster = connect(&server);
    assert_eq!(cluster.topics(None).unwrap().iter().filter(|topic| &*topic.name == "v2_lz4").count(), 1);
    server.stop();
    let error = cluster.topics(None).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Io(_)), "{error}");
}

#[test]
fn the_cluster_and_the_replicas() {
    let server = server(&["v2_lz4"]);
    let mut cluster = connect(&server);
    let topics = cluster.topics(Some(&["v2_lz4"])).unwrap();
    let brokers: Vec<i32> = cluster.brokers().map(|(id, _)| id).collect();
    assert_eq!(cluster.id(), Some("magicbyte-serve"));
    assert_eq!(topics[0].replicas, BTreeMap::from([(0, brokers)]));
}

#[test]
fn the_example() {
    let server = server(&["v2_lz4"]);
    let sums = fetch::read_topic(&server.address().to_string(), "v2_lz4").unwrap();
    assert_eq!(sums[&0].bytes, on_disk("v2_lz4").len() as u64);
    assert!(sums[&0].records > 0);
}
