//! Which records a stream of columns gives: ranges of offsets and of timestamps.

use crate::batch::Batch;
use crate::record::Record;
use crate::record::batch::RecordBatch;
use crate::record::timestamp_type::TimestampType;

/// Records whose offset and timestamp lie in these ranges; `None` leaves a side open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Nothing before this offset.
    pub start_offset: Option<i64>,
    /// Nothing from this offset on.
    pub end_offset: Option<i64>,
    /// No timestamp (ms) before this one.
    pub start_timestamp: Option<i64>,
    /// No timestamp (ms) from this one on.
    pub end_timestamp: Option<i64>,
}

impl Selection {
    /// Whether no record of the batch can be selected, by its header. A message set of magic 0 or 1 does
    /// not say where it begins: its records decide.
    pub(super) fn excludes(&self, batch: &Batch<'_>) -> bool {
        let Batch::V2(batch) = batch else { return false };
        self.start_offset.is_some_and(|start| batch.last_offset() < start)
            || self.end_offset.is_some_and(|end| batch.base_offset() >= end)
            || self.start_timestamp.is_some_and(|start| batch.max_timestamp() < start)
            || (has_one_time(batch) && self.end_timestamp.is_some_and(|end| batch.max_timestamp() >= end))
    }

    /// What is left to ask of the batch's records, when its header has answered for all of them.
    pub(super) fn left_to_ask(&self, batch: &Batch<'_>) -> Self {
        let Batch::V2(batch) = batch else { return *self };
        let one_time = has_one_time(batch);
        Self {
            start_offset: self.start_offset.filter(|&start| batch.base_offset() < start),
            end_offset: self.end_offset.filter(|&end| batch.last_offset() >= end),
            start_timestamp: self.start_timestamp.filter(|&start| !one_time || batch.max_timestamp() < start),
            end_timestamp: self.end_timestamp.filter(|&end| !one_time || batch.max_timestamp() >= end),
        }
    }

    /// Whether the record is selected.
    #[inline]
    pub(super) fn has(&self, record: &Record<'_>) -> bool {
        self.start_offset.is_none_or(|start| start <= record.offset())
            && self.end_offset.is_none_or(|end| record.offset() < end)
            && self.start_timestamp.is_none_or(|start| start <= record.timestamp())
            && self.end_timestamp.is_none_or(|end| record.timestamp() < end)
    }

    /// Whether there is nothing to ask.
    pub(super) fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}

/// The header has the latest time only, unless the broker gave all records the same one.
fn has_one_time(batch: &RecordBatch<'_>) -> bool {
    batch.timestamp_type() == TimestampType::LogAppendTime
}
