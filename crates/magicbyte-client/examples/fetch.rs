//! Reads all records of a topic and prints their number and the batches' bytes for each partition.
//!
//! cargo run -p magicbyte-client --example fetch -- 127.0.0.1:9092 orders

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use magicbyte::state::IsolationLevel;
use magicbyte::{Batches, Decompressor};
use magicbyte_client::{ClientOptions, Cluster, FetchOptions, FetchRange, OffsetSpec};

/// Records and bytes of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// The number of records, control records included.
    pub records: u64,
    /// The bytes of the batches.
    pub bytes: u64,
}

#[allow(clippy::print_stdout, reason = "an example")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(servers), Some(topic)) = (arguments.next(), arguments.next()) else {
        return Err("usage: fetch HOST:PORT[,HOST:PORT...] TOPIC".into());
    };
    for (partition, sums) in read_topic(&servers, &topic)? {
        println!("{topic}-{partition}: {} records, {} bytes", sums.records, sums.bytes);
    }
    Ok(())
}

/// The sums of all partitions of a topic, up to their ends of now.
///
/// # Errors
/// The errors of the cluster, and those of batches that do not decode.
pub fn read_topic(servers: &str, topic: &str) -> Result<BTreeMap<i32, Sums>, Box<dyn Error>> {
    let mut cluster = Cluster::connect(servers, ClientOptions::default())?;
    let described = cluster.topics(Some(&[topic]))?;
    let partitions: Vec<_> = described
        .iter()
        .flat_map(|topic| topic.partitions.keys().map(|&partition| (Arc::clone(&topic.name), partition)))
        .collect();
    let level = IsolationLevel::ReadUncommitted;
    let starts = cluster.list_offsets(&partitions, OffsetSpec::Earliest, level)?;
    let ends = cluster.list_offsets(&partitions, OffsetSpec::Latest, level)?;
    let ranges = partitions.iter().map(|place| FetchRange {
        topic: Arc::clone(&place.0),
        partition: place.1,
        start: starts[place].unwrap_or(0),
        end: ends[place].unwrap_or(0),
    });
    let mut sums: BTreeMap<_, _> = partitions.iter().map(|place| (place.1, Sums::default())).collect();
    let mut decompressor = Decompressor::new();
    for fetched in cluster.fetch(ranges.collect(), FetchOptions::default())? {
        let fetched = fetched?;
        let sums = sums.entry(fetched.partition).or_default();
        sums.bytes += fetched.records.len() as u64;
        for batch in Batches::new(&fetched.records) {
            for record in batch?.records(&mut decompressor)? {
                record?;
                sums.records += 1;
            }
        }
    }
    Ok(sums)
}
