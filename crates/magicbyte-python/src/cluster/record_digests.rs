//! Digests of single records, which tell whether two logs have the same history.

use std::collections::BTreeMap;
use std::sync::Arc;

use magicbyte::{Batches, Decompressor};
use magicbyte_arrow::{RecordDigest, digest_record};
use magicbyte_client::{Cluster, FetchOptions, FetchRange, Fetched, Result, TopicPartition};
use magicbyte_log::{AppendedBatches, LogResult};
use serde::Serialize;

/// The bytes of a partition that are asked for: no more than one batch is needed of each.
const BYTES_OF_A_PARTITION: usize = 64 << 10;

/// The last record that was appended.
#[derive(Serialize)]
pub(super) struct LastRecord {
    offset: i64,
    digest: String,
}

/// The last record of the last batch that was appended; None if it does not decode, or has no record.
pub(super) fn last_record(appended: &AppendedBatches) -> LogResult<Option<LastRecord>> {
    let Some(place) = &appended.last_batch else { return Ok(None) };
    let data = place.read()?;
    let record = Batches::new(&data).next().and_then(|batch| {
        // Another process may have changed the file.
        digest_record(&batch.ok()?, None, &mut Decompressor::new()).ok()?
    });
    Ok(record.map(|record| LastRecord { offset: record.offset, digest: text(record) }))
}

/// The digests of the records at these offsets, for those that leaders have and that decode.
pub(super) fn digest_records(
    cluster: &mut Cluster,
    mut offsets: BTreeMap<TopicPartition, i64>,
) -> Result<BTreeMap<TopicPartition, String>> {
    let mut found = BTreeMap::new();
    loop {
        let Err(error) = fetch_records(cluster, &mut offsets, &mut found) else { return Ok(found) };
        let (Some(topic), Some(partition), false) = (error.topic(), error.partition(), error.is_retriable())
        else {
            return Err(error);
        };
        // No leader would take this error back. It is not that of all others.
        if offsets.remove(&(Arc::from(topic), partition)).is_none() {
            return Err(error);
        }
    }
}

/// Fetches records until all were fetched, or one of the partitions fails. What was fetched is not in `offsets` any more.
fn fetch_records(
    cluster: &mut Cluster,
    offsets: &mut BTreeMap<TopicPartition, i64>,
    found: &mut BTreeMap<TopicPartition, String>,
) -> Result<()> {
    let wanted = offsets.iter().map(|((topic, partition), &offset)| FetchRange {
        topic: Arc::clone(topic),
        partition: *partition,
        start: offset,
        end: offset + 1,
    });
    let options = FetchOptions { max_partition_bytes: BYTES_OF_A_PARTITION, ..FetchOptions::default() };
    let mut decompressor = Decompressor::new();
    for fetched in cluster.fetch(wanted.collect(), options)? {
        let fetched = fetched?;
        let place = (Arc::clone(&fetched.topic), fetched.partition);
        let Some(&offset) = offsets.get(&place) else { continue };
        if let Some(record) = record_of(&fetched, offset, &mut decompressor) {
            found.insert(place.clone(), text(record));
        }
        if fetched.next_position > offset {
            offsets.remove(&place);
        }
    }
    Ok(())
}

fn record_of(fetched: &Fetched, offset: i64, decompressor: &mut Decompressor) -> Option<RecordDigest> {
    let mut batches = Batches::new(&fetched.records).map_while(std::result::Result::ok);
    let batch = batches.find(|batch| batch.last_offset() >= offset)?;
    digest_record(&batch, Some(offset), decompressor).ok()?
}

fn text(record: RecordDigest) -> String {
    format!("{:032x}", record.digest)
}
