//! The selection of records by ranges of offsets and timestamps.

use magicbyte::{Batch, Record, RecordBatch, TimestampType};

/// Selects records by offset and timestamp; `None` leaves a side open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The first offset (inclusive).
    pub start_offset: Option<i64>,
    /// The end offset (exclusive).
    pub end_offset: Option<i64>,
    /// The earliest timestamp in ms (inclusive).
    pub start_timestamp: Option<i64>,
    /// The end of the timestamps in ms (exclusive).
    pub end_timestamp: Option<i64>,
}

impl Selection {
    /// True if the batch's header rules out all of its records. Never true for magic 0 and 1, where a wrapper
    /// does not store its first offset.
    pub(super) fn excludes(&self, batch: &Batch<'_>) -> bool {
        let Some(batch) = batch.as_v2() else { return false };
        self.start_offset.is_some_and(|start| batch.last_offset() < start)
            || self.end_offset.is_some_and(|end| batch.base_offset() >= end)
            || self.start_timestamp.is_some_and(|start| batch.max_timestamp() < start)
            || (has_one_time(batch) && self.end_timestamp.is_some_and(|end| batch.max_timestamp() >= end))
    }

    /// The conditions that have to be checked for each record of the batch, because its header does not
    /// ensure them.
    pub(super) fn remaining_for(&self, batch: &Batch<'_>) -> Self {
        let Some(batch) = batch.as_v2() else { return *self };
        let has_one_time = has_one_time(batch);
        Self {
            start_offset: self.start_offset.filter(|&start| batch.base_offset() < start),
            end_offset: self.end_offset.filter(|&end| batch.last_offset() >= end),
            start_timestamp: self
                .start_timestamp
                .filter(|&start| !has_one_time || batch.max_timestamp() < start),
            end_timestamp: self.end_timestamp.filter(|&end| !has_one_time || batch.max_timestamp() >= end),
        }
    }

    /// True if the record is selected.
    #[inline]
    pub(super) fn has(&self, record: &Record<'_>) -> bool {
        self.start_offset.is_none_or(|start| start <= record.offset())
            && self.end_offset.is_none_or(|end| record.offset() < end)
            && self.start_timestamp.is_none_or(|start| start <= record.timestamp())
            && self.end_timestamp.is_none_or(|end| record.timestamp() < end)
    }

    /// True if there are no conditions.
    pub(super) fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}

/// True if the header's maximum timestamp is the timestamp of every record (`LogAppendTime`).
fn has_one_time(batch: &RecordBatch<'_>) -> bool {
    batch.timestamp_type() == TimestampType::LogAppendTime
}
