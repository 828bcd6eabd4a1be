//! The table `records`, built record by record; a batch that turns out bad is taken back.

use std::sync::Arc;

use arrow_array::types::{TimestampMicrosecondType, TimestampMillisecondType};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Int32Array, Int64Array, ListArray, PrimitiveArray, RecordBatch,
    RecordBatchOptions, StringArray, StructArray,
};
use arrow_buffer::{NullBuffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, SchemaRef};

use super::schema::{Flavour, RecordColumn, header_fields, records_schema};
use crate::batches::Batch;
use crate::record::Record;

/// How many records are best handed to [`RecordColumns::push_block`] at once.
pub const BLOCK: usize = 64;

/// Collects records into the asked columns; what nobody asked for is not built.
#[derive(Debug)]
pub struct RecordColumns {
    schema: SchemaRef,
    columns: Vec<RecordColumn>,
    flavour: Flavour,
    topic: String,
    partition: i32,
    segment: String,
    rows: usize,
    key: Option<BinaryColumn>,
    value: Option<BinaryColumn>,
    headers: Option<HeadersColumn>,
    offset: Option<Vec<i64>>,
    timestamp: Option<Vec<i64>>,
    timestamp_type: Option<Vec<i32>>,
    sequence: Option<Vec<i32>>,
    /// What all records of a batch share, with the row behind its last.
    batches: Vec<(usize, BatchFacts)>,
    wants_batch_facts: bool,
}

#[derive(Clone, Copy, Debug)]
struct BatchFacts {
    magic: i32,
    compression: &'static str,
    producer_id: i64,
    producer_epoch: i32,
    is_transactional: bool,
    leader_epoch: i32,
    position: i64,
}

/// How full everything is: what a bad batch is taken back to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    rows: usize,
    key_bytes: usize,
    value_bytes: usize,
    headers: usize,
    header_bytes: (usize, usize),
}

impl RecordColumns {
    /// Collects these columns. `topic`, `partition` and `segment` are the same in every row.
    #[must_use]
    pub fn new(
        columns: &[RecordColumn],
        flavour: Flavour,
        topic: &str,
        partition: i32,
        segment: &str,
    ) -> Self {
        use RecordColumn as C;
        let wants = |column| columns.contains(&column);
        let shared =
            [C::Magic, C::Compression, C::ProducerId, C::ProducerEpoch, C::IsTransactional, C::LeaderEpoch];
        Self {
            schema: records_schema(columns, flavour),
            columns: columns.to_vec(),
            flavour,
            topic: topic.to_owned(),
            partition,
            segment: segment.to_owned(),
            rows: 0,
            key: wants(C::Key).then(BinaryColumn::default),
            value: wants(C::Value).then(BinaryColumn::default),
            headers: wants(C::Headers).then(HeadersColumn::default),
            offset: wants(C::Offset).then(Vec::new),
            timestamp: (wants(C::Timestamp) || wants(C::TimestampMillis)).then(Vec::new),
            timestamp_type: wants(C::TimestampType).then(Vec::new),
            sequence: wants(C::Sequence).then(Vec::new),
            batches: Vec::new(),
            wants_batch_facts: wants(C::Position) || shared.into_iter().any(wants),
        }
    }

    /// The schema of what [`finish`](Self::finish) gives.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Rows collected.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of keys, values and headers collected: what a batch is cut by.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let binary = |column: &Option<BinaryColumn>| column.as_ref().map_or(0, |c| c.data.len());
        let headers = self.headers.as_ref().map_or(0, |h| h.keys.data.len() + h.values.data.len());
        binary(&self.key) + binary(&self.value) + headers
    }

    /// Adds records: a block at a time, since column by column is quicker than record by record.
    /// [`BLOCK`] of them stay in cache in between.
    pub fn push_block(&mut self, block: &[Record<'_>]) {
        self.rows += block.len();
        if let Some(column) = &mut self.offset {
            column.extend(block.iter().map(Record::offset));
        }
        if let Some(column) = &mut self.timestamp {
            column.extend(block.iter().map(Record::timestamp));
        }
        if let Some(column) = &mut self.timestamp_type {
            column.extend(block.iter().map(|record| record.timestamp_type() as i32));
        }
        if let Some(column) = &mut self.sequence {
            column.extend(block.iter().map(Record::sequence));
        }
        if let Some(column) = &mut self.key {
            column.extend(block.iter().map(Record::key));
        }
        if let Some(column) = &mut self.value {
            column.extend(block.iter().map(Record::value));
        }
        if let Some(column) = &mut self.headers {
            column.push_block(block);
        }
    }

    /// Ends a batch: its facts hold for all rows since the last.
    pub(super) fn end_batch(&mut self, batch: &Batch<'_>) {
        if !self.wants_batch_facts {
            return;
        }
        let mut facts = BatchFacts {
            magic: batch.magic().into(),
            compression: batch.compression().map_or("unknown", |codec| codec.name()),
            producer_id: -1,
            producer_epoch: -1,
            is_transactional: false,
            leader_epoch: -1,
            position: batch.position() as i64,
        };
        if let Batch::V2(batch) = batch {
            facts.producer_id = batch.producer_id();
            facts.producer_epoch = batch.producer_epoch().into();
            facts.is_transactional = batch.is_transactional();
            facts.leader_epoch = batch.partition_leader_epoch();
        }
        self.batches.push((self.rows, facts));
    }

    pub(super) fn mark(&self) -> Mark {
        let bytes = |column: &Option<BinaryColumn>| column.as_ref().map_or(0, |c| c.data.len());
        let headers = self.headers.as_ref();
        Mark {
            rows: self.rows,
            key_bytes: bytes(&self.key),
            value_bytes: bytes(&self.value),
            headers: headers.map_or(0, |h| h.keys.offsets.rows()),
            header_bytes: headers.map_or((0, 0), |h| (h.keys.data.len(), h.values.data.len())),
        }
    }

    pub(super) fn truncate(&mut self, mark: Mark) {
        self.rows = mark.rows;
        for (column, bytes) in [(&mut self.key, mark.key_bytes), (&mut self.value, mark.value_bytes)] {
            if let Some(column) = column {
                column.truncate(mark.rows, bytes);
            }
        }
        for column in [&mut self.offset, &mut self.timestamp].into_iter().flatten() {
            column.truncate(mark.rows);
        }
        for column in [&mut self.timestamp_type, &mut self.sequence].into_iter().flatten() {
            column.truncate(mark.rows);
        }
        if let Some(headers) = &mut self.headers {
            headers.offsets.truncate(mark.rows);
            headers.present.truncate(mark.rows);
            headers.keys.truncate(mark.headers, mark.header_bytes.0);
            headers.values.truncate(mark.headers, mark.header_bytes.1);
        }
    }

    /// The rows collected as one Arrow batch, and how many of their timestamps it cannot hold
    /// (they are null); begins anew.
    pub fn finish(&mut self) -> (RecordBatch, u64) {
        use RecordColumn as C;
        let rows = std::mem::take(&mut self.rows);
        let facts = std::mem::take(&mut self.batches);
        let mut null_timestamps = 0;
        let timestamps = self.timestamp.as_mut().map(|column| ScalarBuffer::from(renew(column)));
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        for column in self.columns.clone() {
            let int32 =
                |of: fn(&BatchFacts) -> i32| -> ArrayRef { Arc::new(Int32Array::from(expand(&facts, of))) };
            arrays.push(match column {
                C::Key => Arc::new(self.key.as_mut().map(BinaryColumn::finish).unwrap_or_else(empty_binary)),
                C::Value => {
                    Arc::new(self.value.as_mut().map(BinaryColumn::finish).unwrap_or_else(empty_binary))
                }
                C::Topic => Arc::new(repeated(&self.topic, rows)),
                C::Segment => Arc::new(repeated(&self.segment, rows)),
                C::Partition => Arc::new(Int32Array::from_value(self.partition, rows)),
                C::Offset => Arc::new(Int64Array::from(self.offset.as_mut().map(renew).unwrap_or_default())),
                C::Timestamp => {
                    let (array, nulls) = self.timestamps(timestamps.clone().unwrap_or_default());
                    null_timestamps = nulls;
                    array
                }
                C::TimestampMillis => Arc::new(Int64Array::new(timestamps.clone().unwrap_or_default(), None)),
                C::TimestampType => {
                    Arc::new(Int32Array::from(self.timestamp_type.as_mut().map(renew).unwrap_or_default()))
                }
                C::Sequence => {
                    Arc::new(Int32Array::from(self.sequence.as_mut().map(renew).unwrap_or_default()))
                }
                C::Headers => Arc::new(
                    self.headers
                        .as_mut()
                        .map(HeadersColumn::finish)
                        .unwrap_or_else(|| HeadersColumn::default().finish()),
                ),
                C::Magic => int32(|f| f.magic),
                C::ProducerEpoch => int32(|f| f.producer_epoch),
                C::LeaderEpoch => int32(|f| f.leader_epoch),
                C::ProducerId => Arc::new(Int64Array::from(expand(&facts, |f| f.producer_id))),
                C::Position => Arc::new(Int64Array::from(expand(&facts, |f| f.position))),
                C::IsTransactional => Arc::new(BooleanArray::from(expand(&facts, |f| f.is_transactional))),
                C::Compression => Arc::new(StringArray::from(expand(&facts, |f| f.compression))),
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.schema(), arrays, &options);
        // Every array above has `rows` rows and its column's type.
        (batch.unwrap_or_else(|_| RecordBatch::new_empty(self.schema())), null_timestamps)
    }

    /// Spark's microseconds do not hold every 64-bit number of milliseconds.
    fn timestamps(&self, millis: ScalarBuffer<i64>) -> (ArrayRef, u64) {
        match self.flavour {
            Flavour::Millis => {
                let array = PrimitiveArray::<TimestampMillisecondType>::new(millis, None);
                (Arc::new(array.with_timezone("UTC")), 0)
            }
            Flavour::Spark => {
                let array: PrimitiveArray<TimestampMicrosecondType> =
                    if millis.iter().all(|ms| ms.checked_mul(1000).is_some()) {
                        PrimitiveArray::new(millis.iter().map(|ms| ms * 1000).collect(), None)
                    } else {
                        millis.iter().map(|ms| ms.checked_mul(1000)).collect()
                    };
                let nulls = arrow_array::Array::null_count(&array) as u64;
                (Arc::new(array.with_timezone("UTC")), nulls)
            }
        }
    }
}

fn expand<T: Clone>(facts: &[(usize, BatchFacts)], of: impl Fn(&BatchFacts) -> T) -> Vec<T> {
    let mut values = Vec::with_capacity(facts.last().map_or(0, |(end, _)| *end));
    for (end, facts) in facts {
        values.resize(*end, of(facts));
    }
    values
}

fn repeated(text: &str, rows: usize) -> StringArray {
    StringArray::new_repeated(text, rows)
}

fn empty_binary() -> BinaryArray {
    BinaryColumn::default().finish()
}

/// What was collected; room for as much again is kept, so that the next batch need not grow.
fn renew<T>(column: &mut Vec<T>) -> Vec<T> {
    let capacity = column.len();
    std::mem::replace(column, Vec::with_capacity(capacity))
}

/// Plain Arrow binary: 32-bit offsets, one run of bytes. Its size stays below 2 GiB because a table
/// is cut long before (see [`super::DecodeOptions`]).
#[derive(Debug)]
struct BinaryColumn {
    offsets: Offsets,
    data: Vec<u8>,
    valid: NullBufferBuilder,
}

impl Default for BinaryColumn {
    fn default() -> Self {
        Self { offsets: Offsets::default(), data: Vec::new(), valid: NullBufferBuilder::new(0) }
    }
}

impl BinaryColumn {
    #[inline]
    fn push(&mut self, value: Option<&[u8]>) {
        if let Some(bytes) = value {
            self.data.extend_from_slice(bytes);
            self.valid.append_non_null();
        } else {
            self.valid.append_null();
        }
        self.offsets.push(self.data.len());
    }

    #[inline]
    fn extend<'a>(&mut self, values: impl ExactSizeIterator<Item = Option<&'a [u8]>> + Clone) {
        let (mut bytes, mut nulls) = (0, 0);
        for value in values.clone() {
            bytes += value.map_or(0, <[u8]>::len);
            nulls += usize::from(value.is_none());
        }
        self.data.reserve(bytes);
        if nulls > 0 {
            values.for_each(|value| self.push(value));
            return;
        }
        self.valid.append_n_non_nulls(values.len());
        let data = &mut self.data;
        self.offsets.0.extend(values.map(|value| {
            data.extend_from_slice(value.unwrap_or_default());
            data.len() as i32
        }));
    }

    fn truncate(&mut self, rows: usize, bytes: usize) {
        self.offsets.truncate(rows);
        self.data.truncate(bytes);
        self.valid.truncate(rows);
    }

    fn finish(&mut self) -> BinaryArray {
        BinaryArray::new(self.offsets.finish(), renew(&mut self.data).into(), self.valid.finish())
    }

    /// As UTF-8, U+FFFD for what is not, as Kafka's own header keys.
    fn finish_text(&mut self) -> StringArray {
        let bytes = self.finish();
        match StringArray::try_from_binary(bytes.clone()) {
            Ok(text) => text,
            Err(_) => bytes.iter().map(|key| key.map(String::from_utf8_lossy)).collect(),
        }
    }
}

/// Arrow's 32-bit offsets: a zero, then the end of each row.
#[derive(Debug)]
struct Offsets(Vec<i32>);

impl Default for Offsets {
    fn default() -> Self {
        Self(vec![0])
    }
}

impl Offsets {
    #[inline]
    fn push(&mut self, end: usize) {
        self.0.push(end as i32);
    }

    fn rows(&self) -> usize {
        self.0.len() - 1
    }

    fn truncate(&mut self, rows: usize) {
        self.0.truncate(rows + 1);
    }

    fn finish(&mut self) -> OffsetBuffer<i32> {
        let offsets = renew(&mut self.0);
        self.0.push(0);
        OffsetBuffer::new(offsets.into())
    }
}

/// `list<struct<key, value>>`; null where a record has no headers, as Spark's Kafka source has it.
#[derive(Debug, Default)]
struct HeadersColumn {
    offsets: Offsets,
    /// A byte a row is quicker to write than a bit.
    present: Vec<bool>,
    keys: BinaryColumn,
    values: BinaryColumn,
}

impl HeadersColumn {
    fn push_block(&mut self, block: &[Record<'_>]) {
        self.present.extend(block.iter().map(|record| !record.headers().is_empty()));
        for record in block {
            for header in record.headers() {
                self.keys.push(Some(header.key));
                self.values.push(header.value);
            }
            self.offsets.push(self.keys.offsets.rows());
        }
    }

    fn finish(&mut self) -> ListArray {
        let (keys, values) = (self.keys.finish_text(), self.values.finish());
        let entries = StructArray::new(header_fields(), vec![Arc::new(keys), Arc::new(values)], None);
        let field = Field::new("element", DataType::Struct(header_fields()), true);
        let present = NullBuffer::from(renew(&mut self.present));
        ListArray::new(Arc::new(field), self.offsets.finish(), Arc::new(entries), Some(present))
    }
}
