//! Writing rows of Arrow batches as the segments of one partition.

use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;

use magicbyte::{Compression, RecordsBuilder, Result};
use magicbyte_log::{LogError, LogResult, PartitionWriter, SegmentSummary, WriteOptions};

use crate::rows::{Defaults, Rows};

/// Options for writing rows.
#[derive(Clone, Copy, Debug)]
pub struct RowsOptions {
    /// The codec and its level, `None` for Kafka's default.
    pub compression: (Compression, Option<i32>),
    /// A batch is complete once it has about this many bytes.
    pub batch_bytes: usize,
    /// The timestamp (ms) of rows without a column of them.
    pub timestamp: i64,
    /// Options for rolling and indexing segments.
    pub write: WriteOptions,
}

/// Writes the rows of one partition, with the offsets of the column `offset`, or consecutive ones from 0 on.
#[derive(Debug)]
pub struct RowsWriter {
    directory: PathBuf,
    options: RowsOptions,
    builder: RecordsBuilder,
    built: Vec<u8>,
    /// Created with the first batch, whose base offset is that of the first segment.
    writer: Option<PartitionWriter>,
    first_offset: Option<i64>,
    next_offset: i64,
    rows: u64,
}

impl RowsWriter {
    /// A writer into `directory`. Nothing is written before the first batch is complete.
    ///
    /// # Errors
    /// [`LogError::Usage`] for a level that the codec does not have.
    pub fn new(directory: impl AsRef<Path>, options: RowsOptions) -> LogResult<Self> {
        let directory = directory.as_ref();
        let (codec, level) = options.compression;
        let mut builder = RecordsBuilder::v2(codec);
        if let Some(level) = level {
            builder = builder.level(level);
        }
        builder.validate().map_err(|error| LogError::Usage(error.to_string()))?;
        Ok(Self {
            directory: directory.to_owned(),
            options,
            builder,
            built: Vec::new(),
            writer: None,
            first_offset: None,
            next_offset: 0,
            rows: 0,
        })
    }

    /// Rows appended so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Offset of the first row, if any.
    #[must_use]
    pub fn first_offset(&self) -> Option<i64> {
        self.first_offset
    }

    /// The offset after the last row's.
    #[must_use]
    pub fn next_offset(&self) -> i64 {
        self.next_offset
    }

    /// Appends the rows of a batch.
    ///
    /// # Errors
    /// [`LogError::Usage`] with the row and its fault, for example an offset that does not increase or a null
    /// header key. [`LogError::Io`].
    pub fn append(&mut self, batch: &RecordBatch) -> LogResult<()> {
        let rows = Rows::of(batch).map_err(|error| LogError::Usage(error.to_string()))?;
        for row in 0..rows.len() {
            let offset = self
                .append_row(&rows, row)
                .map_err(|error| LogError::Usage(format!("row {} of the partition: {error}", self.rows)))?;
            self.first_offset.get_or_insert(offset);
            self.next_offset = offset.saturating_add(1);
            self.rows += 1;
            if self.builder.estimated_size_in_bytes() >= self.options.batch_bytes {
                self.build()?;
            }
        }
        Ok(())
    }

    fn append_row(&mut self, rows: &Rows<'_>, row: usize) -> Result<i64> {
        let defaults = Defaults { offset: self.next_offset, timestamp: self.options.timestamp };
        rows.append(row, defaults, &mut self.builder)
    }

    fn build(&mut self) -> LogResult<()> {
        self.built.clear();
        self.builder.build_into(&mut self.built).map_err(|error| LogError::Usage(error.to_string()))?;
        if self.built.is_empty() {
            return Ok(());
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => {
                let base_offset = self.first_offset.unwrap_or(0);
                none.insert(PartitionWriter::create(&self.directory, base_offset, self.options.write)?)
            }
        };
        writer.append_all(&self.built).map(drop)
    }

    /// Writes the last batch and closes the last segment. Returns the summaries of all segments.
    ///
    /// # Errors
    /// [`LogError::Io`].
    pub fn finish(mut self) -> LogResult<Vec<SegmentSummary>> {
        self.build()?;
        self.writer.map_or_else(|| Ok(Vec::new()), PartitionWriter::finish)
    }
}
