//! The table `records`, built record by record. The records of an invalid batch are removed again.

use std::sync::Arc;

use ::bytes::Bytes;
use arrow_array::builder::StringBuilder;
use arrow_array::types::{TimestampMicrosecondType, TimestampMillisecondType};
use arrow_array::{
    ArrayRef, BooleanArray, Int32Array, Int64Array, PrimitiveArray, RecordBatch, RecordBatchOptions,
    StringArray,
};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow_schema::SchemaRef;

use magicbyte::{Batch, Compression, Record};

use crate::binary_column::{BinaryColumn, renew};
use crate::headers_column::{HeadersColumn, HeadersMark};
use crate::run_column::RunColumn;
use crate::schema::{Flavour, NO_TIMESTAMP, RecordColumn, records_schema};
use crate::view_column::{ViewColumn, ViewMark};

/// Collects records into the requested columns.
#[derive(Debug)]
pub struct RecordColumns {
    schema: SchemaRef,
    columns: Vec<RecordColumn>,
    flavour: Flavour,
    topic: String,
    partition: i32,
    segment: Arc<str>,
    rows: usize,
    key: Option<BinaryColumn>,
    value: Option<BinaryColumn>,
    value_views: Option<ViewColumn>,
    headers: Option<HeadersColumn>,
    offset: Option<Vec<i64>>,
    timestamp: Option<Vec<i64>>,
    timestamp_type: Option<RunColumn>,
    sequence: Option<Vec<i32>>,
    /// The fields of each batch, with the row after its last.
    batches: Vec<(usize, BatchFields)>,
    needs_batch_fields: bool,
}

/// Fields that all records of a batch share.
#[derive(Clone, Debug)]
struct BatchFields {
    magic: i32,
    /// `None` if the codec bits are unknown.
    compression: Option<Compression>,
    producer_id: i64,
    producer_epoch: i32,
    is_transactional: bool,
    leader_epoch: i32,
    segment: Arc<str>,
    position: i64,
}

/// The length of all columns, to which they are truncated if a batch is invalid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    rows: usize,
    key_bytes: usize,
    value_bytes: usize,
    views: ViewMark,
    headers: HeadersMark,
}

impl RecordColumns {
    /// Collects the given columns. `topic` and `partition` are the same in every row.
    #[must_use]
    pub fn new(columns: &[RecordColumn], flavour: Flavour, topic: &str, partition: i32) -> Self {
        use RecordColumn as C;
        let wants = |column| columns.contains(&column);
        let views = flavour == Flavour::Views;
        Self {
            schema: records_schema(columns, flavour),
            columns: columns.to_vec(),
            flavour,
            topic: topic.to_owned(),
            partition,
            segment: "".into(),
            rows: 0,
            key: wants(C::Key).then(BinaryColumn::default),
            value: (wants(C::Value) && !views).then(BinaryColumn::default),
            value_views: (wants(C::Value) && views).then(ViewColumn::default),
            headers: wants(C::Headers).then(HeadersColumn::default),
            offset: wants(C::Offset).then(Vec::new),
            timestamp: (wants(C::Timestamp) || wants(C::TimestampMillis)).then(Vec::new),
            timestamp_type: wants(C::TimestampType).then(RunColumn::default),
            sequence: wants(C::Sequence).then(Vec::new),
            batches: Vec::new(),
            needs_batch_fields: columns.iter().any(|column| column.is_batch_field()),
        }
    }

    /// The schema of the Arrow batches that [`finish`](Self::finish) returns.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Rows collected.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of keys, values and headers, collected or kept alive by views.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let binary = |column: &Option<BinaryColumn>| column.as_ref().map_or(0, BinaryColumn::bytes);
        let views = self.value_views.as_ref().map_or(0, ViewColumn::bytes);
        let headers = self.headers.as_ref().map_or(0, HeadersColumn::bytes);
        binary(&self.key) + binary(&self.value) + views + headers
    }

    /// True if all columns are known from the headers of batches.
    pub(super) fn needs_headers_only(&self) -> bool {
        self.columns.iter().all(|column| !column.needs_records())
    }

    /// True if values are collected as views.
    pub(super) fn wants_views(&self) -> bool {
        self.value_views.is_some()
    }

    /// Sets the segment of the following batches.
    pub fn set_segment(&mut self, segment: &Arc<str>) {
        self.segment = Arc::clone(segment);
    }

    /// Reserves capacity for more rows. The caller bounds the number by the size of its input.
    pub(super) fn reserve(&mut self, rows: usize) {
        for column in [&mut self.key, &mut self.value].into_iter().flatten() {
            column.reserve(rows);
        }
        if let Some(column) = &mut self.value_views {
            column.reserve(rows);
        }
        for column in [&mut self.offset, &mut self.timestamp].into_iter().flatten() {
            column.reserve(rows);
        }
        if let Some(column) = &mut self.sequence {
            column.reserve(rows);
        }
    }

    /// With [`Flavour::Views`], makes the following values views into `payload`, of which they are parts.
    /// With `None` they are copied.
    pub(super) fn view_in(&mut self, payload: Option<&Bytes>) {
        match (&mut self.value_views, payload) {
            (Some(column), Some(payload)) => column.view_in(payload),
            (Some(column), None) => column.leave(),
            (None, _) => {}
        }
    }

    /// Adds a record.
    // Out of line, passing the record through memory would add half the cost of reading it.
    #[inline(always)]
    pub fn push(&mut self, record: &Record<'_>) {
        let row = self.rows;
        self.rows += 1;
        if let Some(column) = &mut self.offset {
            column.push(record.offset());
        }
        if let Some(column) = &mut self.timestamp {
            column.push(record.timestamp());
        }
        if let Some(column) = &mut self.timestamp_type {
            column.push(row, record.timestamp_type() as i32);
        }
        if let Some(column) = &mut self.sequence {
            column.push(record.sequence());
        }
        if let Some(column) = &mut self.key {
            column.push(record.key());
        }
        if let Some(column) = &mut self.value {
            column.push(record.value());
        }
        if let Some(column) = &mut self.value_views {
            column.push(record.value());
        }
        if let Some(column) = &mut self.headers {
            column.push(row, record.headers());
        }
    }

    /// Adds rows without reading records, if [headers are enough](Self::needs_headers_only).
    pub(super) fn push_rows(&mut self, rows: usize) {
        self.rows += rows;
    }

    /// Ends a batch: the rows added since the last call get its fields.
    pub fn end_batch(&mut self, batch: &Batch<'_>) {
        if !self.needs_batch_fields {
            return;
        }
        let mut fields = BatchFields {
            magic: batch.magic().into(),
            compression: batch.compression().ok(),
            producer_id: -1,
            producer_epoch: -1,
            is_transactional: false,
            leader_epoch: -1,
            segment: Arc::clone(&self.segment),
            position: batch.position() as i64,
        };
        if let Batch::V2(batch) = batch {
            fields.producer_id = batch.producer_id();
            fields.producer_epoch = batch.producer_epoch().into();
            fields.is_transactional = batch.is_transactional();
            fields.leader_epoch = batch.partition_leader_epoch();
        }
        self.batches.push((self.rows, fields));
    }

    pub(super) fn mark(&self) -> Mark {
        let bytes = |column: &Option<BinaryColumn>| column.as_ref().map_or(0, BinaryColumn::bytes);
        Mark {
            rows: self.rows,
            key_bytes: bytes(&self.key),
            value_bytes: bytes(&self.value),
            views: self.value_views.as_ref().map_or(ViewMark::default(), ViewColumn::mark),
            headers: self.headers.as_ref().map_or(HeadersMark::default(), HeadersColumn::mark),
        }
    }

    pub(super) fn truncate(&mut self, mark: Mark) {
        self.rows = mark.rows;
        for (column, bytes) in [(&mut self.key, mark.key_bytes), (&mut self.value, mark.value_bytes)] {
            if let Some(column) = column {
                column.truncate(mark.rows, bytes);
            }
        }
        if let Some(column) = &mut self.value_views {
            column.truncate(mark.rows, mark.views);
        }
        for column in [&mut self.offset, &mut self.timestamp].into_iter().flatten() {
            column.truncate(mark.rows);
        }
        if let Some(column) = &mut self.timestamp_type {
            column.truncate(mark.rows);
        }
        if let Some(column) = &mut self.sequence {
            column.truncate(mark.rows);
        }
        if let Some(headers) = &mut self.headers {
            headers.truncate(mark.rows, mark.headers);
        }
    }

    /// Takes the collected rows as one Arrow batch, and the number of timestamps that the batch cannot
    /// represent. These are null, like the timestamps of records without one.
    pub fn finish(&mut self) -> (RecordBatch, u64) {
        use RecordColumn as C;
        let rows = std::mem::take(&mut self.rows);
        let batches = std::mem::take(&mut self.batches);
        let mut lost_timestamps = 0;
        let timestamps = self.timestamp.as_mut().map(|column| ScalarBuffer::from(renew(column)));
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        for (at, column) in self.columns.clone().into_iter().enumerate() {
            // A column may be requested twice.
            if let Some(before) = self.columns[..at].iter().position(|other| *other == column) {
                arrays.push(Arc::clone(&arrays[before]));
                continue;
            }
            let int32 = |of: fn(&BatchFields) -> i32| -> ArrayRef {
                Arc::new(Int32Array::from(expand(&batches, of)))
            };
            arrays.push(match column {
                C::Key => finished(self.key.as_mut(), BinaryColumn::finish),
                C::Value if self.flavour == Flavour::Views => {
                    finished(self.value_views.as_mut(), ViewColumn::finish)
                }
                C::Value => finished(self.value.as_mut(), BinaryColumn::finish),
                C::Topic => Arc::new(StringArray::new_repeated(&self.topic, rows)),
                C::Segment => segments(&batches),
                C::Partition => Arc::new(Int32Array::from_value(self.partition, rows)),
                C::Offset => Arc::new(Int64Array::from(self.offset.as_mut().map(renew).unwrap_or_default())),
                C::Timestamp => {
                    let (array, lost) = self.timestamps(timestamps.clone().unwrap_or_default());
                    lost_timestamps = lost;
                    array
                }
                C::TimestampMillis => Arc::new(Int64Array::new(timestamps.clone().unwrap_or_default(), None)),
                C::TimestampType => {
                    let types = self.timestamp_type.as_mut().map(|column| column.finish(rows));
                    Arc::new(Int32Array::from(types.unwrap_or_default()))
                }
                C::Sequence => {
                    Arc::new(Int32Array::from(self.sequence.as_mut().map(renew).unwrap_or_default()))
                }
                C::Headers => finished(self.headers.as_mut(), |column| column.finish(rows)),
                C::Magic => int32(|f| f.magic),
                C::ProducerEpoch => int32(|f| f.producer_epoch),
                C::LeaderEpoch => int32(|f| f.leader_epoch),
                C::ProducerId => Arc::new(Int64Array::from(expand(&batches, |f| f.producer_id))),
                C::Position => Arc::new(Int64Array::from(expand(&batches, |f| f.position))),
                C::IsTransactional => Arc::new(BooleanArray::from(expand(&batches, |f| f.is_transactional))),
                C::Compression => {
                    let name = |f: &BatchFields| f.compression.map_or("unknown", Compression::name);
                    Arc::new(StringArray::from(expand(&batches, name)))
                }
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.schema(), arrays, &options);
        // Every array above has `rows` rows and its column's type.
        (batch.unwrap_or_else(|_| RecordBatch::new_empty(self.schema())), lost_timestamps)
    }

    /// The timestamp column, and the number of timestamps that it cannot hold: Spark's microseconds cannot
    /// represent all 64-bit numbers of milliseconds. These timestamps are null. The time of a record without
    /// a timestamp is null, too; it would otherwise be a moment in 1969.
    fn timestamps(&self, millis: ScalarBuffer<i64>) -> (ArrayRef, u64) {
        let absent = millis.iter().filter(|&&ms| ms == NO_TIMESTAMP).count();
        match self.flavour {
            Flavour::Millis | Flavour::Views => {
                let present = || BooleanBuffer::collect_bool(millis.len(), |row| millis[row] != NO_TIMESTAMP);
                let nulls = (absent > 0).then(|| NullBuffer::new(present()));
                let array = PrimitiveArray::<TimestampMillisecondType>::new(millis, nulls);
                (Arc::new(array.with_timezone("UTC")), 0)
            }
            Flavour::Spark => {
                let micros = |ms: &i64| if *ms == NO_TIMESTAMP { None } else { ms.checked_mul(1000) };
                let array: PrimitiveArray<TimestampMicrosecondType> =
                    if absent == 0 && millis.iter().all(|ms| ms.checked_mul(1000).is_some()) {
                        PrimitiveArray::new(millis.iter().map(|ms| ms * 1000).collect(), None)
                    } else {
                        millis.iter().map(micros).collect()
                    };
                let lost = arrow_array::Array::null_count(&array) - absent;
                (Arc::new(array.with_timezone("UTC")), lost as u64)
            }
        }
    }
}

/// One value per row from a field of its batch.
fn expand<T: Clone>(batches: &[(usize, BatchFields)], of: impl Fn(&BatchFields) -> T) -> Vec<T> {
    let mut values = Vec::with_capacity(batches.last().map_or(0, |(end, _)| *end));
    for (end, fields) in batches {
        values.resize(*end, of(fields));
    }
    values
}

/// The column as an array; without rows if it was not requested.
fn finished<C: Default, A: arrow_array::Array + 'static>(
    column: Option<&mut C>,
    finish: impl Fn(&mut C) -> A,
) -> ArrayRef {
    Arc::new(match column {
        Some(column) => finish(column),
        None => finish(&mut C::default()),
    })
}

fn segments(batches: &[(usize, BatchFields)]) -> ArrayRef {
    let mut names = StringBuilder::with_capacity(batches.last().map_or(0, |(end, _)| *end), 0);
    let mut from = 0;
    for (end, fields) in batches {
        names.append_value_n(&*fields.segment, end - from);
        from = *end;
    }
    Arc::new(names.finish())
}
