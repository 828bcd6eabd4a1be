//! The decode step: a chunk is decoded into the tables `records`, `batches` and `problems`, and every byte
//! and record is accounted for.

use std::collections::VecDeque;
use std::io;

use arrow_array::RecordBatch;

use magicbyte::{Batch, ControlType, DEFAULT_MAX_DECOMPRESSED_BYTES, Decompressor, Error, Result};
use magicbyte_log::internals::Step;
use magicbyte_log::steps::{BatchCounts, Chunk, ChunkReader};
use magicbyte_log::{ChunkResult, Disposition, LISTED, Problems, SegmentBatch};

use crate::batch_decoder::MAX_PAYLOAD;
use crate::batch_table::{BatchTable, DecodedFields};
use crate::problem_table::problems_to_arrow;
use crate::record_columns::RecordColumns;
use crate::schema::{Flavour, RecordColumn};
use crate::selection::Selection;
use crate::text_columns::Payloads;

/// Options for decoding a chunk.
#[derive(Clone, Debug)]
pub struct DecodeOptions {
    /// The columns of `records`; if empty, records are only decoded and counted.
    pub columns: Vec<RecordColumn>,
    /// The types of the arrays.
    pub flavour: Flavour,
    /// The types that keys and values are read as; with [`Flavour::Views`], both are binary.
    pub payloads: Payloads,
    /// The earliest timestamp (ms) of the records that are delivered, inclusive; `None` for no limit. Other
    /// records are counted as outside, like records outside the chunk's offsets.
    pub start_timestamp: Option<i64>,
    /// The end of the timestamps (ms), exclusive.
    pub end_timestamp: Option<i64>,
    /// An Arrow batch is complete once its keys, values and headers have about this many bytes.
    pub max_batch_bytes: usize,
    /// The maximum number of rows in an Arrow batch.
    pub max_batch_rows: usize,
    /// The maximum size in bytes of one batch of the log, stored or decompressed; at most [`MAX_PAYLOAD`] if
    /// there are columns.
    pub max_decompressed_bytes: usize,
    /// True if rows of `batches` are collected.
    pub batches_table: bool,
    /// True if CRCs are checked.
    pub check_crcs: bool,
}

impl Default for DecodeOptions {
    fn default() -> Self {
        Self {
            columns: Vec::new(),
            flavour: Flavour::Spark,
            payloads: Payloads::default(),
            start_timestamp: None,
            end_timestamp: None,
            max_batch_bytes: 2 << 20,
            max_batch_rows: 64 << 10,
            max_decompressed_bytes: DEFAULT_MAX_DECOMPRESSED_BYTES,
            batches_table: true,
            check_crcs: true,
        }
    }
}

/// Decodes one chunk: an iterator of Arrow batches of `records`. A batch may be empty, if only the other
/// tables have rows to be taken.
#[derive(Debug)]
pub struct ChunkDecoder {
    reader: ChunkReader,
    options: DecodeOptions,
    decompressor: Decompressor,
    columns: RecordColumns,
    table: BatchTable,
    /// Slices of one large Arrow batch.
    ready: VecDeque<RecordBatch>,
    error: Option<Error>,
}

impl ChunkDecoder {
    /// Opens the chunk's file.
    ///
    /// # Errors
    /// The file cannot be opened; [`io::ErrorKind::InvalidInput`] if there are columns and
    /// `max_decompressed_bytes` is more than [`MAX_PAYLOAD`], or if views are to be text.
    pub fn open(chunk: Chunk, mut options: DecodeOptions) -> io::Result<Self> {
        if !options.columns.is_empty() && options.max_decompressed_bytes > MAX_PAYLOAD {
            let why = format!(
                "max_decompressed_bytes {}: columns can hold batches of at most {MAX_PAYLOAD} bytes",
                options.max_decompressed_bytes
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        if options.flavour == Flavour::Views && !options.payloads.are_binary() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "payloads: views are binary, not text"));
        }
        // Even with one more batch of the log, columns stay below the 2 GiB of Arrow's 32-bit offsets.
        options.max_batch_bytes = options.max_batch_bytes.clamp(1, 512 << 20);
        let mut columns =
            RecordColumns::new(&options.columns, options.flavour, &chunk.topic, chunk.partition);
        columns.set_segment(&chunk.segment.as_str().into());
        let decompressor = Decompressor::with_limit(options.max_decompressed_bytes);
        let reader = ChunkReader::open(chunk, options.check_crcs, options.max_decompressed_bytes)?;
        let table = BatchTable::default();
        Ok(Self { reader, options, decompressor, columns, table, ready: VecDeque::new(), error: None })
    }

    /// Takes the rows of `batches` collected since the last call.
    pub fn take_batches(&mut self) -> Option<RecordBatch> {
        self.table.take()
    }

    /// Takes the rows of `problems` collected since the last call.
    pub fn take_problems(&mut self) -> Option<RecordBatch> {
        problems_to_arrow(&self.reader.take_problems())
    }

    /// Moves the problems collected since the last call to `problems`, which keeps a limited number.
    pub fn move_problems(&mut self, problems: &mut Problems) {
        self.reader.move_problems(problems);
    }

    /// Takes the error of the first damage since the last call, for callers that stop at damage.
    pub fn take_error(&mut self) -> Option<Error> {
        self.error.take()
    }

    /// The checksum, see [`ChunkReader::checksum`].
    #[must_use]
    pub fn checksum(&self) -> u32 {
        self.reader.checksum()
    }

    /// The counts of bytes and records, complete once the iterator has ended.
    #[must_use]
    pub fn result(&self) -> &ChunkResult {
        self.reader.result()
    }

    fn fill(&mut self) -> io::Result<Option<RecordBatch>> {
        if let Some(batch) = self.ready.pop_front() {
            return Ok(Some(batch));
        }
        loop {
            let step = self.reader.step()?;
            self.note_error();
            match step {
                Step::Batch(data, disposition) => self.decode(&data, disposition),
                Step::Damage => {}
                Step::End => {
                    return Ok(if self.columns.rows() > 0 { Some(self.finish_batch()) } else { None });
                }
            }
            self.note_error();
            // The other tables are taken between Arrow batches, so when they are full one ends too.
            if self.columns.rows() >= self.options.max_batch_rows
                || self.columns.bytes() >= self.options.max_batch_bytes
                || self.table.rows() >= self.options.max_batch_rows
                || self.reader.problems() >= LISTED
            {
                return Ok(Some(self.finish_batch()));
            }
        }
    }

    fn note_error(&mut self) {
        if let Some(error) = self.reader.take_error() {
            self.error.get_or_insert(error);
        }
    }

    /// Takes the collected rows. If they are too large, as one batch of the log can be, the result is sliced.
    fn finish_batch(&mut self) -> RecordBatch {
        let bytes = self.columns.bytes();
        let (decoded, null_timestamps) = self.columns.finish();
        let (decoded, invalid) = self.options.payloads.convert(decoded);
        self.reader.add_unrepresented(null_timestamps, invalid.keys, invalid.values);
        let rows = decoded.num_rows();
        let pieces = bytes.div_ceil(2 * self.options.max_batch_bytes).max(1);
        let step = rows.div_ceil(pieces).clamp(1, self.options.max_batch_rows.max(1));
        self.ready = (0..rows).step_by(step).map(|at| decoded.slice(at, step.min(rows - at))).collect();
        self.ready.pop_front().unwrap_or(decoded)
    }

    fn decode(&mut self, data: &SegmentBatch, disposition: Disposition) {
        let batch = data.batch();
        let mark = self.columns.mark();
        let mut decoded = DecodedFields::default();
        let counts = self.read_records(&batch, disposition, &mut decoded);
        match &counts {
            Ok(counts) => {
                self.columns.end_batch(&batch);
                self.reader.good(data, batch.last_offset(), disposition, *counts);
                decoded.is_valid = true;
                decoded.count = Some(counts.announced);
                decoded.base_offset = counts.first_offset;
            }
            Err(error) => {
                self.columns.truncate(mark);
                self.reader.bad(data, error);
            }
        }
        if self.options.batches_table && !self.reader.chunk().is_deleted(batch.last_offset()) {
            self.table.push(self.reader.chunk(), &batch, decoded);
        }
    }

    fn read_records(
        &mut self,
        batch: &Batch<'_>,
        disposition: Disposition,
        decoded: &mut DecodedFields,
    ) -> Result<BatchCounts> {
        let Self { reader, columns, decompressor, options, .. } = self;
        let mut counts = BatchCounts::default();
        let collect = disposition == Disposition::Rows && !options.columns.is_empty();
        let times = Selection {
            start_timestamp: options.start_timestamp,
            end_timestamp: options.end_timestamp,
            ..Selection::default()
        };
        let times = times.remaining_for(batch);
        let has_times = !times.is_everything();
        let mut records = batch.records(decompressor)?;
        if !options.check_crcs {
            records = records.without_crc_check();
        }
        decoded.uncompressed_size = Some(records.payload_size() as u64);
        records.visit(|record| {
            counts.first_offset.get_or_insert(record.offset());
            counts.last_offset = Some(record.offset());
            counts.announced += 1;
            if reader.leaves_out(record.offset(), &mut counts) {
            } else if has_times && !times.has(&record) {
                counts.outside += 1;
            } else if collect {
                columns.push(&record);
            } else if disposition == Disposition::Control {
                decoded.control_type = record.key().and_then(|key| ControlType::parse(key).ok());
            }
        })?;
        Ok(counts)
    }
}

impl Iterator for ChunkDecoder {
    type Item = io::Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.fill().transpose()
    }
}
