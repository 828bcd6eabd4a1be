//! The headers of a segment's batches as columns, with the segment's survey: one scan, nothing is decompressed.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int16Array, Int32Array, Int64Array, RecordBatch, UInt32Array};

use magicbyte::{Batch, RecordBatch as V2Batch};
use magicbyte_log::internals::{Content, HeaderScan, HeaderVisitor};
use magicbyte_log::steps::Survey;
use magicbyte_log::{LogResult, Segment};

use crate::schema::batch_headers_schema;

/// The rows of a batch of columns, about 4 MiB.
const MAX_ROWS: usize = 64 << 10;
/// The producers whose sequences are followed at a time, about 2 MiB.
const MAX_PRODUCERS: usize = 64 << 10;

/// An iterator over the headers of a segment's batches of magic 2 that have data records, as columns: see
/// [`batch_headers_schema`]. Batches of magic 0 and 1, control batches and empty ones have no row.
///
/// Ends at the first error, one of those of [`survey_segment`](magicbyte_log::steps::survey_segment). Memory: one
/// batch of 65,536 rows, and the last sequences of as many producers.
pub struct BatchHeaders {
    /// None at the end.
    scan: Option<HeaderScan<HeaderRows>>,
    survey: Option<Survey>,
}

impl BatchHeaders {
    /// Opens a segment.
    ///
    /// # Errors
    /// The errors of [`survey_segment`](magicbyte_log::steps::survey_segment).
    pub fn open(segment: &Segment) -> LogResult<Self> {
        let scan = HeaderScan::begin(segment, HeaderRows::default(), false)?;
        Ok(Self { scan: Some(scan), survey: None })
    }

    /// The survey of the segment, once the iterator has ended without an error.
    #[must_use]
    pub fn survey(&self) -> Option<&Survey> {
        self.survey.as_ref()
    }
}

impl Iterator for BatchHeaders {
    type Item = LogResult<RecordBatch>;

    fn next(&mut self) -> Option<LogResult<RecordBatch>> {
        let mut scan = self.scan.take()?;
        loop {
            match scan.step() {
                Ok(true) if scan.visitor().rows() < MAX_ROWS => {}
                Ok(true) => {
                    let columns = scan.visitor().take();
                    self.scan = Some(scan);
                    return columns.map(Ok);
                }
                Ok(false) => break,
                Err(error) => return Some(Err(error)),
            }
        }
        match scan.end() {
            Ok((survey, mut rows)) => {
                self.survey = Some(survey);
                rows.take().map(Ok)
            }
            Err(error) => Some(Err(error)),
        }
    }
}

impl std::fmt::Debug for BatchHeaders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchHeaders").field("survey", &self.survey).finish_non_exhaustive()
    }
}

/// Rows, column by column, in the order of the schema's columns of each type.
#[derive(Default)]
struct HeaderRows {
    long: [Vec<i64>; 6],
    int: [Vec<i32>; 4],
    short: [Vec<i16>; 2],
    crc: Vec<u32>,
    flag: [Vec<bool>; 2],
    /// The last batch of each producer.
    producers: HashMap<i64, LastBatch>,
    /// The number of rows that were taken.
    taken: usize,
}

struct LastBatch {
    epoch: i16,
    next_sequence: i32,
    /// The number of its row; None if it has none.
    row: Option<usize>,
}

impl HeaderRows {
    fn rows(&self) -> usize {
        self.crc.len()
    }

    /// True if the batch continues the sequence of its producer's last batch in the segment, which is then marked as
    /// followed.
    fn follows(&mut self, batch: &V2Batch<'_>) -> bool {
        if batch.producer_id() < 0 {
            return false;
        }
        if self.producers.len() >= MAX_PRODUCERS && !self.producers.contains_key(&batch.producer_id()) {
            self.producers.clear();
        }
        let (epoch, next_sequence) = (batch.producer_epoch(), next_sequence(batch));
        let row = (batch.record_count() > 0).then(|| self.taken + self.rows());
        let last = LastBatch { epoch, next_sequence, row };
        let Some(before) = self.producers.insert(batch.producer_id(), last) else { return false };
        let follows = (before.epoch, before.next_sequence) == (epoch, batch.base_sequence());
        let row = before.row.and_then(|row| row.checked_sub(self.taken));
        if let Some(followed) = row.and_then(|row| self.flag[1].get_mut(row)) {
            *followed = follows;
        }
        follows
    }

    /// The rows since the last call, if there are any.
    fn take(&mut self) -> Option<RecordBatch> {
        if self.crc.is_empty() {
            return None;
        }
        self.taken += self.rows();
        let mut long = self.long.iter_mut().map(|values| array::<Int64Array, _>(values));
        let mut int = self.int.iter_mut().map(|values| array::<Int32Array, _>(values));
        let mut flag = self.flag.iter_mut().map(|values| array::<BooleanArray, _>(values));
        let mut short = self.short.iter_mut().map(|values| array::<Int16Array, _>(values));
        let schema = batch_headers_schema();
        let arrays = schema.fields().iter().filter_map(|field| match field.data_type() {
            arrow_schema::DataType::Int64 => long.next(),
            arrow_schema::DataType::Int32 => int.next(),
            arrow_schema::DataType::Int16 => short.next(),
            arrow_schema::DataType::UInt32 => Some(array::<UInt32Array, _>(&mut self.crc)),
            _ => flag.next(),
        });
        let arrays = arrays.collect();
        RecordBatch::try_new(schema, arrays).ok()
    }
}

fn array<A: From<Vec<T>> + arrow_array::Array + 'static, T>(values: &mut Vec<T>) -> ArrayRef {
    let more = Vec::with_capacity(values.len());
    Arc::new(A::from(std::mem::replace(values, more)))
}

/// The sequence of the batch that follows; -1 for none.
fn next_sequence(batch: &V2Batch<'_>) -> i32 {
    match batch.last_sequence() {
        last if last < 0 => -1,
        i32::MAX => 0,
        last => last + 1,
    }
}

impl HeaderVisitor for HeaderRows {
    fn visit(&mut self, batch: &Batch<'_>, size: usize, _content: Option<&Content>) {
        let Some(batch) = batch.as_v2() else { return };
        if batch.is_control() {
            return;
        }
        let follows = self.follows(batch);
        if batch.record_count() <= 0 {
            return;
        }
        let long = [
            batch.position() as i64,
            batch.base_offset(),
            batch.last_offset(),
            batch.base_timestamp(),
            batch.max_timestamp(),
            batch.producer_id(),
        ];
        // A batch is smaller than 2 GiB.
        let int = [size as i32, batch.record_count(), batch.base_sequence(), next_sequence(batch)];
        let short = [batch.attributes(), batch.producer_epoch()];
        self.long.iter_mut().zip(long).for_each(|(column, value)| column.push(value));
        self.int.iter_mut().zip(int).for_each(|(column, value)| column.push(value));
        self.short.iter_mut().zip(short).for_each(|(column, value)| column.push(value));
        self.crc.push(batch.crc());
        self.flag[0].push(follows);
        self.flag[1].push(false);
    }

    fn reads_controls(&self) -> bool {
        false
    }
}
