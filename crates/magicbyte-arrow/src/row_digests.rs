//! Digests of the rows of the table `records` by ranges of offsets, to compare a table with a log or another table.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch};
use twox_hash::XxHash3_128;

use magicbyte::{Error, ErrorKind, Result};

use crate::digest::{Places, Records, cell, numbers, write_blob};
use crate::record_digests::{RangeDigest, write_place};
use crate::schema::NO_TIMESTAMP;

/// The column with the timestamps that are out of the range of `timestamp`.
const MILLIS: &str = "timestampMillis";
/// The type of a timestamp that the broker has set.
const LOG_APPEND_TIME: i32 = 1;
/// The type of the timestamp that a record of magic 0 does not have.
const NO_TIMESTAMP_TYPE: i32 = -1;

/// The digests of the rows of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowDigests {
    /// The topic.
    pub topic: String,
    /// The partition of the topic.
    pub partition: i32,
    /// The ranges that have rows, in order.
    pub ranges: Vec<RangeDigest>,
    /// The offsets of rows whose timestamp the table does not have, although the record had one: their hashes are
    /// those of no record.
    pub without_timestamp: Vec<i64>,
}

/// Digests rows as [`digest_chunk`](crate::digest_chunk) does the records that they were made of, by ranges of `width` offsets.
/// Rows may be in any order.
///
/// The columns are those of the table `records`, in any of Arrow's layouts; others are ignored. A key that is null counts
/// as its bytes in `invalidKey`, if there is that column, and a value likewise; a null timestamp as that in
/// `timestampMillis`.
///
/// # Errors
/// [`ErrorKind::InvalidOptions`] if a column is missing or has another type, as those of typed keys and values have;
/// [`ErrorKind::InvalidRecord`] for a null topic, partition or offset.
pub fn digest_rows(batch: &RecordBatch, width: i64) -> Result<Vec<RowDigests>> {
    let (places, records) = (Places::of(batch)?, Records::of(batch)?);
    let millis = batch.column_by_name(MILLIS);
    let millis = millis.map(|column| numbers::<Int64Type>(column, MILLIS)).transpose()?;
    let mut found: BTreeMap<(&[u8], i32), OfPartition> = BTreeMap::new();
    let mut bytes = Vec::new();
    for row in 0..batch.num_rows() {
        let place = places.get(row)?;
        let of = found.entry((place.topic, place.partition)).or_default();
        bytes.clear();
        if !write_row(&records, millis, row, place.offset, &mut bytes) {
            of.without_timestamp.push(place.offset);
        }
        of.add(place.offset.div_euclid(width.max(1)), XxHash3_128::oneshot(&bytes));
    }
    let digests = found.into_iter().map(|((topic, partition), of)| {
        let topic = String::from_utf8(topic.to_vec());
        let topic = topic.map_err(|_| Error::new(ErrorKind::InvalidRecord("a topic is not UTF-8")))?;
        let ranges = of.ranges.into_values().collect();
        Ok(RowDigests { topic, partition, ranges, without_timestamp: of.without_timestamp })
    });
    digests.collect()
}

#[derive(Default)]
struct OfPartition {
    ranges: BTreeMap<i64, RangeDigest>,
    without_timestamp: Vec<i64>,
}

impl OfPartition {
    fn add(&mut self, range: i64, digest: u128) {
        match self.ranges.entry(range) {
            Entry::Vacant(entry) => {
                entry.insert(RangeDigest { range, records: 1, digest });
            }
            Entry::Occupied(mut entry) => {
                let sum = entry.get_mut();
                sum.records += 1;
                sum.digest = sum.digest.wrapping_add(digest);
            }
        }
    }
}

/// Writes the hashed bytes of the record that a row was made of; false if its timestamp is not known.
fn write_row(
    records: &Records<'_>,
    millis: Option<&Int64Array>,
    row: usize,
    offset: i64,
    bytes: &mut Vec<u8>,
) -> bool {
    let timestamp_type = cell(records.timestamp_type, row).unwrap_or(NO_TIMESTAMP_TYPE);
    let known = match records.timestamp.get(row) {
        NO_TIMESTAMP if timestamp_type != NO_TIMESTAMP_TYPE && records.timestamp.is_null(row) => {
            millis.and_then(|millis| cell(millis, row))
        }
        timestamp => Some(timestamp),
    };
    let is_append_time = timestamp_type == LOG_APPEND_TIME;
    write_place(offset, known.unwrap_or(NO_TIMESTAMP), is_append_time, false, bytes);
    write_blob(records.key.get(row), bytes);
    write_blob(records.value.get(row), bytes);
    let headers = records.headers.range(row);
    bytes.extend_from_slice(&u32::try_from(headers.len()).unwrap_or(u32::MAX).to_le_bytes());
    for item in headers {
        write_blob(records.headers.keys.get(item), bytes);
        write_blob(records.headers.values.get(item), bytes);
    }
    known.is_some()
}
