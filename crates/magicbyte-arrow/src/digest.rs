//! Counts and digests of the rows of the table `records`, to compare a table with its log.

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, PrimitiveArray, RecordBatch};
use twox_hash::XxHash3_128;

use magicbyte::{Error, ErrorKind, Result};

use crate::cell_bytes::Fields;
use crate::cells::{Blobs, HeaderLists, Times, wrong};

/// The rows of one partition in a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionDigest {
    /// The topic.
    pub topic: String,
    /// The partition of the topic.
    pub partition: i32,
    /// The number of rows.
    pub rows: u64,
    /// The smallest offset.
    pub first_offset: i64,
    /// The maximum offset.
    pub last_offset: i64,
    /// The sum of the rows' hashes, modulo 2^128. It does not depend on the order of the rows, and the digest
    /// of several batches is the sum of their digests.
    pub digest: u128,
}

/// The column that makes rows with typed keys or values add up to the digest of their records.
const DIGEST: &str = "_digest";
/// The columns that are hashed for a row with typed keys or values, as far as they exist.
const TYPED: [&str; 12] = [
    "_error",
    "_key_error",
    "_key_schema_id",
    "_schema_id",
    "headers",
    "invalidKey",
    "invalidValue",
    "key",
    "offset",
    "timestamp",
    "timestampType",
    "value",
];

/// Counts the rows of each partition and adds up a hash of each row: the 128-bit XXH3 of offset, timestamp
/// (ms), timestamp type, key, value and headers. A changed, missing or doubled row changes the sum. It is no
/// protection from somebody who looks for rows with the same sum.
///
/// The columns are those of the table `records`, in any of Arrow's layouts; others are ignored. A key that
/// is null counts as its bytes in `invalidKey`, if there is that column, and a value likewise: so digests do
/// not depend on whether keys and values are read as text.
///
/// **Typed keys and values** have lost their bytes. A table with them has the column `_digest`, which is null
/// in most rows: what it holds, numbers of 128 bits (big-endian), is added to the sum. The hash of a row then
/// is that of its cells, typed ones included, each with its name and without nulls. It is not changed by what
/// becomes of a table: new fields, which are null in older rows, another order of them, wider numbers.
/// Whoever writes rows puts the difference between the digest of their records and that of the rows into one
/// of them.
///
/// # Errors
/// [`ErrorKind::InvalidOptions`] if a column is missing or has another type, [`ErrorKind::InvalidRecord`] for
/// a null topic, partition or offset.
pub fn digest_records(batch: &RecordBatch) -> Result<Vec<PartitionDigest>> {
    let columns = Columns::of(batch)?;
    let mut digests: Vec<PartitionDigest> = Vec::new();
    let mut last = 0;
    let mut bytes = Vec::new();
    for row in 0..batch.num_rows() {
        let place = columns.places.get(row)?;
        let digest = columns.digest(row, place.offset, &mut bytes);
        // Neighbours are mostly of the same partition.
        if !digests.get(last).is_some_and(|partition| place.is_of(partition)) {
            last = digests.iter().position(|partition| place.is_of(partition)).unwrap_or_else(|| {
                digests.push(place.empty());
                digests.len() - 1
            });
        }
        if let Some(partition) = digests.get_mut(last) {
            partition.rows += 1;
            partition.first_offset = partition.first_offset.min(place.offset);
            partition.last_offset = partition.last_offset.max(place.offset);
            partition.digest = partition.digest.wrapping_add(digest);
        }
    }
    Ok(digests)
}

/// The position of a row in the log.
pub(super) struct Place<'a> {
    pub(super) topic: &'a [u8],
    pub(super) partition: i32,
    pub(super) offset: i64,
}

impl Place<'_> {
    fn is_of(&self, digest: &PartitionDigest) -> bool {
        self.partition == digest.partition && self.topic == digest.topic.as_bytes()
    }

    fn empty(&self) -> PartitionDigest {
        PartitionDigest {
            topic: String::from_utf8_lossy(self.topic).into_owned(),
            partition: self.partition,
            rows: 0,
            first_offset: i64::MAX,
            last_offset: i64::MIN,
            digest: 0,
        }
    }
}

/// The columns that place a row in the log.
pub(super) struct Places<'a> {
    topic: Blobs<'a>,
    partition: &'a Int32Array,
    offset: &'a Int64Array,
}

impl<'a> Places<'a> {
    pub(super) fn of(batch: &'a RecordBatch) -> Result<Self> {
        Ok(Self {
            topic: Blobs::of(column(batch, "topic")?, "topic")?,
            partition: numbers::<Int32Type>(column(batch, "partition")?, "partition")?,
            offset: numbers::<Int64Type>(column(batch, "offset")?, "offset")?,
        })
    }

    pub(super) fn get(&self, row: usize) -> Result<Place<'a>> {
        let null = |field| {
            let error = Error::new(ErrorKind::InvalidRecord("the cell is null")).in_field(field);
            error.at_record(u32::try_from(row).unwrap_or(u32::MAX))
        };
        Ok(Place {
            topic: self.topic.get(row).ok_or_else(|| null("topic"))?,
            partition: cell(self.partition, row).ok_or_else(|| null("partition"))?,
            offset: cell(self.offset, row).ok_or_else(|| null("offset"))?,
        })
    }
}

struct Columns<'a> {
    places: Places<'a>,
    contents: Contents<'a>,
}

enum Contents<'a> {
    Records(Box<Records<'a>>),
    Typed { fields: Fields<'a>, differences: Vec<u128> },
}

impl<'a> Columns<'a> {
    fn of(batch: &'a RecordBatch) -> Result<Self> {
        Ok(Self {
            places: Places::of(batch)?,
            contents: match batch.column_by_name(DIGEST) {
                None => Contents::Records(Box::new(Records::of(batch)?)),
                Some(differences) => Contents::Typed {
                    fields: Fields::of(
                        TYPED.iter().filter_map(|name| Some((*name, batch.column_by_name(name)?))),
                    )?,
                    differences: wide_numbers(differences, batch.num_rows())?,
                },
            },
        })
    }

    fn digest(&self, row: usize, offset: i64, bytes: &mut Vec<u8>) -> u128 {
        bytes.clear();
        match &self.contents {
            Contents::Records(records) => {
                records.write(row, offset, bytes);
                XxHash3_128::oneshot(bytes)
            }
            Contents::Typed { fields, differences } => {
                fields.write(row, bytes);
                XxHash3_128::oneshot(bytes).wrapping_add(differences[row])
            }
        }
    }
}

/// The cells of the column `_digest`, with 0 for nulls.
fn wide_numbers(column: &ArrayRef, rows: usize) -> Result<Vec<u128>> {
    let blobs = Blobs::of(column, DIGEST)?;
    (0..rows)
        .map(|row| match blobs.get(row).map(<[u8; 16]>::try_from) {
            None => Ok(0),
            Some(Ok(bytes)) => Ok(u128::from_be_bytes(bytes)),
            Some(Err(_)) => Err(wrong("a cell does not have 16 bytes", DIGEST)),
        })
        .collect()
}

/// Columns that hold all that a record has.
pub(super) struct Records<'a> {
    pub(super) timestamp: Times<'a>,
    pub(super) timestamp_type: &'a Int32Array,
    pub(super) key: Payloads<'a>,
    pub(super) value: Payloads<'a>,
    pub(super) headers: HeaderLists<'a>,
}

impl<'a> Records<'a> {
    pub(super) fn of(batch: &'a RecordBatch) -> Result<Self> {
        let payloads = |name, invalid| -> Result<Payloads<'a>> {
            let invalid =
                batch.column_by_name(invalid).map(|column| Blobs::of(column, invalid)).transpose()?;
            Ok(Payloads { texts: Blobs::of(column(batch, name)?, name)?, invalid })
        };
        Ok(Self {
            timestamp: Times::of(column(batch, "timestamp")?)?,
            timestamp_type: numbers::<Int32Type>(column(batch, "timestampType")?, "timestampType")?,
            key: payloads("key", "invalidKey")?,
            value: payloads("value", "invalidValue")?,
            headers: HeaderLists::of(column(batch, "headers")?)?,
        })
    }

    /// Writes the hashed bytes of a row. Lengths come before bytes, so that no two rows are written alike.
    fn write(&self, row: usize, offset: i64, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&offset.to_le_bytes());
        bytes.extend_from_slice(&self.timestamp.get(row).to_le_bytes());
        bytes.extend_from_slice(&cell(self.timestamp_type, row).unwrap_or(i32::MIN).to_le_bytes());
        write_blob(self.key.get(row), bytes);
        write_blob(self.value.get(row), bytes);
        let headers = self.headers.range(row);
        bytes.extend_from_slice(&(headers.len() as u64).to_le_bytes());
        for item in headers {
            write_blob(self.headers.keys.get(item), bytes);
            write_blob(self.headers.values.get(item), bytes);
        }
    }
}

fn column<'a>(batch: &'a RecordBatch, name: &'static str) -> Result<&'a ArrayRef> {
    batch.column_by_name(name).ok_or_else(|| wrong("there is no such column", name))
}

pub(super) fn numbers<'a, T: ArrowPrimitiveType>(
    column: &'a ArrayRef,
    name: &'static str,
) -> Result<&'a PrimitiveArray<T>> {
    column.as_primitive_opt().ok_or_else(|| wrong("the column has another type of number", name))
}

pub(super) fn cell<T: ArrowPrimitiveType>(column: &PrimitiveArray<T>, row: usize) -> Option<T::Native> {
    column.is_valid(row).then(|| column.value(row))
}

pub(super) struct Payloads<'a> {
    texts: Blobs<'a>,
    invalid: Option<Blobs<'a>>,
}

impl<'a> Payloads<'a> {
    pub(super) fn get(&self, row: usize) -> Option<&'a [u8]> {
        self.texts.get(row).or_else(|| self.invalid.as_ref().and_then(|invalid| invalid.get(row)))
    }
}

/// Writes bytes after their length; null has a length that no bytes have.
pub(crate) fn write_blob(blob: Option<&[u8]>, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&blob.map_or(u64::MAX, |blob| blob.len() as u64).to_le_bytes());
    bytes.extend_from_slice(blob.unwrap_or_default());
}
