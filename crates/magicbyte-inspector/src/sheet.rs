//! The list of a segment's pieces, a sheet at a time. A sheet depends on nothing but its checkpoint, so that the page
//! keeps checkpoints only and has a sheet read again to show it.

use std::io;

use magicbyte::{Batch, Decompressor, Error};
use magicbyte_log::{Piece, SegmentReader};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

/// The number of rows of a sheet.
const ROWS: usize = 500;
/// The number of rows of a sheet with damage close to its end.
const MAX_ROWS: usize = 5000;
/// After this many bytes of good batches, a reader that starts anew finds the same pieces as one that goes on: the
/// rule by which magicbyte-log divides segments.
const GOOD_BYTES: u64 = 1 << 20;

/// Where a sheet begins.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Checkpoint {
    /// The position of its first piece, in bytes.
    pub position: u64,
    /// The smallest offset that its first batch can have.
    #[serde(serialize_with = "text")]
    pub expected: i64,
}

/// Pieces one after the other, with their sums.
#[derive(Debug, Default, Serialize)]
pub struct Sheet {
    /// The pieces.
    pub rows: Vec<Row>,
    /// Where the next sheet begins; none after the last one.
    pub next: Option<Checkpoint>,
    /// The number of records in good batches.
    pub records: u64,
    /// The bytes of good batches.
    pub good: u64,
    /// The bytes of damage.
    pub quarantined: u64,
    /// The bytes after the last batch.
    pub tail: u64,
}

/// The kind of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RowKind {
    /// A batch whose CRC holds and whose records decode.
    Good,
    /// A batch or other bytes that cannot be read.
    Quarantined,
    /// The end of the file after the last batch.
    Tail,
}

/// A piece of a segment. Numbers of 64 bits are text, since those of JavaScript have 53.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The kind.
    pub kind: RowKind,
    /// The position in the file, in bytes.
    pub position: u64,
    /// The size in bytes.
    pub size: u64,
    /// The header of a batch that has one, if it is no guess.
    #[serde(flatten)]
    pub batch: Option<Header>,
    /// Why it cannot be read, or what kind of tail it is.
    pub problem: Option<String>,
}

/// The header of a batch, as the list shows it.
#[derive(Debug, Serialize)]
pub struct Header {
    magic: i8,
    #[serde(serialize_with = "text")]
    base_offset: i64,
    #[serde(serialize_with = "text")]
    last_offset: i64,
    /// The number of records that decode.
    records: u64,
    codec: &'static str,
    /// In milliseconds since 1970; -1 for none.
    #[serde(serialize_with = "text")]
    max_timestamp: i64,
    timestamp_type: String,
    producer: Option<Producer>,
    is_transactional: bool,
    is_control: bool,
    crc: String,
}

#[derive(Debug, Serialize)]
struct Producer {
    #[serde(serialize_with = "text")]
    id: i64,
    epoch: i16,
    sequence: i32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn text<S: Serializer>(number: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

impl Sheet {
    /// Reads the pieces from a checkpoint on; `reader` starts there.
    pub(crate) fn read(
        reader: SegmentReader,
        start: Checkpoint,
        decompressor: &mut Decompressor,
    ) -> io::Result<Self> {
        let mut sheet = Self::default();
        let mut next = start;
        let mut good_since_damage = GOOD_BYTES;
        for piece in reader {
            let is_border = sheet.rows.len() >= ROWS && good_since_damage >= GOOD_BYTES;
            if is_border || sheet.rows.len() >= MAX_ROWS {
                sheet.next = Some(next);
                break;
            }
            let row = match piece? {
                Piece::Batch(batch) => {
                    next.expected = batch.batch().last_offset().saturating_add(1);
                    Row::of_batch(&batch.batch(), decompressor)
                }
                Piece::Quarantined { range, error } => {
                    Row::other(RowKind::Quarantined, range.start, range.end - range.start, error.to_string())
                }
                Piece::Tail { range, kind } => {
                    let problem = kind.name().replace('_', " ");
                    Row::other(RowKind::Tail, range.start, range.end - range.start, problem)
                }
            };
            next.position = row.position + row.size;
            good_since_damage = if row.kind == RowKind::Good { good_since_damage + row.size } else { 0 };
            sheet.add(row);
        }
        Ok(sheet)
    }

    fn add(&mut self, row: Row) {
        match row.kind {
            RowKind::Good => {
                self.good += row.size;
                self.records += row.batch.as_ref().map_or(0, |batch| batch.records);
            }
            RowKind::Quarantined => self.quarantined += row.size,
            RowKind::Tail => self.tail += row.size,
        }
        self.rows.push(row);
    }
}

impl Row {
    fn other(kind: RowKind, position: u64, size: u64, problem: String) -> Self {
        Self { kind, position, size, batch: None, problem: Some(problem) }
    }

    /// A batch whose CRC holds; damaged all the same if its records do not decode.
    fn of_batch(batch: &Batch<'_>, decompressor: &mut Decompressor) -> Self {
        let (records, error) = count(batch, decompressor);
        let base_offset = batch.base_offset(decompressor).unwrap_or_else(|_| batch.stored_offset());
        let producer = batch.as_v2().filter(|_| batch.has_producer_id()).map(|batch| Producer {
            id: batch.producer_id(),
            epoch: batch.producer_epoch(),
            sequence: batch.base_sequence(),
        });
        let header = Header {
            magic: batch.magic(),
            base_offset,
            last_offset: batch.last_offset(),
            records,
            codec: batch.compression().map_or("unknown", |codec| codec.name()),
            max_timestamp: batch.max_timestamp(),
            timestamp_type: format!("{:?}", batch.timestamp_type()),
            producer,
            is_transactional: batch.is_transactional(),
            is_control: batch.is_control(),
            crc: format!("{:08x}", batch.crc()),
        };
        Self {
            kind: if error.is_none() { RowKind::Good } else { RowKind::Quarantined },
            position: batch.position(),
            size: batch.size_in_bytes() as u64,
            batch: Some(header),
            problem: error.map(|error| error.to_string()),
        }
    }
}

/// Decodes the records of a batch, up to the first error.
fn count(batch: &Batch<'_>, decompressor: &mut Decompressor) -> (u64, Option<Error>) {
    let records = match batch.records(decompressor) {
        Ok(records) => records,
        Err(error) => return (0, Some(error)),
    };
    let mut count = 0;
    for record in records {
        match record {
            Ok(_) => count += 1,
            Err(error) => return (count, Some(error)),
        }
    }
    (count, None)
}
