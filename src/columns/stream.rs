//! Batches in memory as Arrow: one at a time, or as a stream.

use ::bytes::Bytes;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use super::record_columns::{BLOCK, RecordColumns};
use super::schema::{Flavour, RecordColumn};
use crate::batches::{Batch, Batches, Records};
use crate::error::Result;
use crate::record::Record;
use crate::{Decompressor, Error};

const COLUMNS: [RecordColumn; 6] = [
    RecordColumn::Offset,
    RecordColumn::Timestamp,
    RecordColumn::TimestampType,
    RecordColumn::Key,
    RecordColumn::Value,
    RecordColumn::Headers,
];
/// Small enough to stay in cache between the copy and its reader.
pub(super) const MAX_BYTES: usize = 1 << 20;
pub(super) const MAX_ROWS: usize = 64 << 10;

pub(super) fn columns() -> RecordColumns {
    RecordColumns::new(&COLUMNS, Flavour::Millis, "", 0, "")
}

/// The schema of in-memory batches: offset, timestamp (ms), timestampType, key, value, headers.
#[cfg(feature = "python")]
pub(crate) fn batch_schema() -> SchemaRef {
    columns().schema()
}

/// The records of one batch as Arrow columns, copied; checks the CRC if asked.
///
/// # Errors
/// As [`Batch::verify`] and [`Batch::records`].
pub fn batch_to_arrow(
    batch: &Batch<'_>,
    decompressor: &mut Decompressor,
    check_crcs: bool,
) -> Result<RecordBatch> {
    let mut columns = columns();
    push_all(batch, decompressor, check_crcs, &mut columns)?;
    Ok(columns.finish().0)
}

fn records_of<'r>(
    batch: &Batch<'r>,
    decompressor: &'r mut Decompressor,
    check_crcs: bool,
) -> Result<Records<'r>> {
    if check_crcs {
        batch.verify()?;
        batch.records(decompressor)
    } else {
        Ok(batch.records(decompressor)?.without_crc_check())
    }
}

fn push_all(
    batch: &Batch<'_>,
    decompressor: &mut Decompressor,
    check_crcs: bool,
    columns: &mut RecordColumns,
) -> Result<()> {
    push_records(records_of(batch, decompressor, check_crcs)?, |_| true, columns)
}

/// Adds the records that are wanted. After an error some were added.
pub(super) fn push_records<'r>(
    records: Records<'r>,
    wanted: impl Fn(&Record<'r>) -> bool,
    columns: &mut RecordColumns,
) -> Result<()> {
    let mut block = Vec::with_capacity(BLOCK);
    records.visit(|record| {
        if wanted(&record) {
            block.push(record);
        }
        if block.len() == BLOCK {
            columns.push_block(&block);
            block.clear();
        }
    })?;
    columns.push_block(&block);
    Ok(())
}

/// A stream of Arrow batches over framed bytes: data records only, as a consumer sees them.
/// Cheap until the first batch is asked for.
#[derive(Debug)]
pub struct BatchStream {
    data: Bytes,
    position: usize,
    decompressor: Decompressor,
    check_crcs: bool,
    columns: RecordColumns,
    failed: bool,
}

impl BatchStream {
    /// Over `data` from its start.
    #[must_use]
    pub fn new(data: Bytes, check_crcs: bool, max_decompressed_bytes: usize) -> Self {
        let decompressor = Decompressor::with_limit(max_decompressed_bytes.min(i32::MAX as usize / 2));
        Self { data, position: 0, decompressor, check_crcs, columns: columns(), failed: false }
    }

    fn fill(&mut self) -> Result<Option<RecordBatch>> {
        let data = self.data.clone();
        for batch in Batches::at_position(&data[self.position..], self.position as u64) {
            let batch = batch?;
            self.position += batch.size_in_bytes();
            if batch.is_control() {
                // Left out only if it is what it says: a flipped bit must not hide records.
                records_of(&batch, &mut self.decompressor, self.check_crcs)?.visit(drop)?;
                continue;
            }
            push_all(&batch, &mut self.decompressor, self.check_crcs, &mut self.columns)?;
            if self.columns.rows() >= MAX_ROWS || self.columns.bytes() >= MAX_BYTES {
                return Ok(Some(self.columns.finish().0));
            }
        }
        Ok(if self.columns.rows() > 0 { Some(self.columns.finish().0) } else { None })
    }
}

impl Iterator for BatchStream {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.fill();
        self.failed = next.is_err();
        next.map_err(|error: Error| ArrowError::ExternalError(Box::new(error))).transpose()
    }
}

impl RecordBatchReader for BatchStream {
    fn schema(&self) -> SchemaRef {
        self.columns.schema()
    }
}
