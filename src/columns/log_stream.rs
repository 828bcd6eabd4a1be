//! A partition's log as a stream of Arrow batches.

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use super::record_columns::RecordColumns;
use super::stream::{MAX_BYTES, MAX_ROWS, columns, push_records};
use crate::Decompressor;
use crate::log::{Disposition, LogBatches, LogError, LogResult, OnError, PartitionLog, ReadOptions};

/// The data records of a log, as a consumer sees them: offset, timestamp (ms), timestampType, key, value,
/// headers. Nothing is read before the first batch is asked for; memory is that of one Arrow batch.
#[derive(Debug)]
pub struct LogStream {
    log: PartitionLog,
    options: ReadOptions,
    /// Opened with the first batch.
    batches: Option<LogBatches>,
    decompressor: Decompressor,
    columns: RecordColumns,
    failed: bool,
}

impl LogStream {
    /// Over what the options ask for.
    #[must_use]
    pub fn new(log: PartitionLog, options: ReadOptions) -> Self {
        let decompressor =
            Decompressor::with_limit(options.max_decompressed_bytes.min(i32::MAX as usize / 2));
        Self { log, options, batches: None, decompressor, columns: columns(), failed: false }
    }

    fn fill(&mut self) -> LogResult<Option<RecordBatch>> {
        let batches = match &mut self.batches {
            Some(batches) => batches,
            none => none.insert(self.log.batches(self.options)?),
        };
        for batch in batches {
            let batch = batch?;
            if batch.disposition != Disposition::Rows {
                continue;
            }
            let asked = batch.start_offset..batch.end_offset;
            let mark = self.columns.mark();
            let pushed = batch.data.batch().and_then(|view| {
                let records = view.records(&mut self.decompressor)?;
                let records = if self.options.check_crcs { records } else { records.without_crc_check() };
                push_records(records, |record| asked.contains(&record.offset()), &mut self.columns)
            });
            if let Err(error) = pushed {
                // The whole batch is damage: none of its records counts.
                self.columns.truncate(mark);
                if self.options.on_error == OnError::Fail {
                    return Err(LogError::Format { path: batch.segment.into(), error });
                }
            }
            if self.columns.rows() >= MAX_ROWS || self.columns.bytes() >= MAX_BYTES {
                return Ok(Some(self.columns.finish().0));
            }
        }
        Ok(if self.columns.rows() > 0 { Some(self.columns.finish().0) } else { None })
    }
}

impl Iterator for LogStream {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.fill();
        self.failed = !matches!(next, Ok(Some(_)));
        next.map_err(|error| ArrowError::ExternalError(Box::new(error))).transpose()
    }
}

impl RecordBatchReader for LogStream {
    fn schema(&self) -> SchemaRef {
        self.columns.schema()
    }
}
