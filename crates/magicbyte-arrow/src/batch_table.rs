//! The table `batches`: one row per batch, valid or not.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Int32Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};

use magicbyte::{Batch, Compression, ControlType, RecordBatch as V2Batch};
use magicbyte_log::steps::Chunk;

use crate::schema::batches_schema;

/// Rows of the table, column by column, in the order of its schema.
#[derive(Debug)]
pub(super) struct BatchTable {
    rows: usize,
    text: [StringBuilder; 4],
    long: [Int64Builder; 11],
    int: [Int32Builder; 7],
    flag: [BooleanBuilder; 3],
}

/// The fields of a row that come from decoding the batch's records.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DecodedFields {
    pub(super) is_valid: bool,
    pub(super) base_offset: Option<i64>,
    pub(super) count: Option<u64>,
    pub(super) uncompressed_size: Option<u64>,
    pub(super) control_type: Option<ControlType>,
}

/// Builders without capacity: the default is a thousand rows, which even a segment of one batch would keep.
impl Default for BatchTable {
    fn default() -> Self {
        Self {
            rows: 0,
            text: std::array::from_fn(|_| StringBuilder::with_capacity(0, 0)),
            long: std::array::from_fn(|_| Int64Builder::with_capacity(0)),
            int: std::array::from_fn(|_| Int32Builder::with_capacity(0)),
            flag: std::array::from_fn(|_| BooleanBuilder::with_capacity(0)),
        }
    }
}

impl BatchTable {
    /// The number of rows that are ready to be taken.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn push(&mut self, chunk: &Chunk, batch: &Batch<'_>, decoded: DecodedFields) {
        self.rows += 1;
        let v2 = batch.as_v2();
        let count = decoded.count.map(|n| n as i64).or(v2.map(|b| b.record_count().into()));
        let [topic, segment, compression, control_type] = &mut self.text;
        topic.append_value(&chunk.topic);
        segment.append_value(&chunk.segment);
        compression.append_option(batch.compression().ok().map(Compression::name));
        control_type.append_option(decoded.control_type.map(ControlType::name));
        let [position, size, base, last, counts, crc, base_time, max_time, horizon, producer, raw_size] =
            &mut self.long;
        position.append_value(batch.position() as i64);
        size.append_value(batch.size_in_bytes() as i64);
        base.append_option(v2.map(V2Batch::base_offset).or(decoded.base_offset));
        last.append_value(batch.last_offset());
        counts.append_option(count);
        crc.append_value(batch.crc().into());
        base_time.append_option(v2.map(V2Batch::base_timestamp));
        max_time.append_value(batch.max_timestamp());
        horizon.append_option(v2.and_then(V2Batch::delete_horizon_ms));
        producer.append_option(v2.map(V2Batch::producer_id));
        raw_size.append_option(decoded.uncompressed_size.map(|n| n as i64));
        let [partition, magic, time_type, epoch, base_sequence, last_sequence, leader_epoch] = &mut self.int;
        partition.append_value(chunk.partition);
        magic.append_value(batch.magic().into());
        time_type.append_value(batch.timestamp_type() as i32);
        epoch.append_option(v2.map(|b| b.producer_epoch().into()));
        base_sequence.append_option(v2.map(V2Batch::base_sequence));
        last_sequence.append_option(v2.map(V2Batch::last_sequence));
        leader_epoch.append_option(v2.map(V2Batch::partition_leader_epoch));
        let [valid, transactional, control] = &mut self.flag;
        valid.append_value(decoded.is_valid);
        transactional.append_value(v2.is_some_and(V2Batch::is_transactional));
        control.append_value(batch.is_control());
    }

    /// The rows since the last call, if there are any.
    pub(super) fn take(&mut self) -> Option<RecordBatch> {
        if std::mem::take(&mut self.rows) == 0 {
            return None;
        }
        let mut text = self.text.iter_mut().map(|b| Arc::new(b.finish()) as ArrayRef);
        let mut long = self.long.iter_mut().map(|b| Arc::new(b.finish()) as ArrayRef);
        let mut int = self.int.iter_mut().map(|b| Arc::new(b.finish()) as ArrayRef);
        let mut flag = self.flag.iter_mut().map(|b| Arc::new(b.finish()) as ArrayRef);
        let schema = batches_schema();
        // The builders of each type are in the order of the schema's columns of that type.
        let arrays = schema.fields().iter().filter_map(|field| match field.data_type() {
            arrow_schema::DataType::Utf8 => text.next(),
            arrow_schema::DataType::Int64 => long.next(),
            arrow_schema::DataType::Int32 => int.next(),
            _ => flag.next(),
        });
        let arrays = arrays.collect();
        RecordBatch::try_new(schema, arrays).ok()
    }
}
