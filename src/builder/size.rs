//! The size of a batch while it is being built, and whether it has room for another record
//! (`MemoryRecordsBuilder.hasRoomFor`, `CompressionRatioEstimator`).

use super::{Growing, RecordsBuilder};
use crate::compression::codec::Compression;
use crate::error::{Error, ErrorKind};
use crate::legacy::builder::set_overhead;
use crate::record::batch_header::RECORD_BATCH_OVERHEAD;
use crate::record::encode::HeaderFields;
use crate::record::header::Header;

impl RecordsBuilder {
    /// True if the batch has room for a record with these fields at the next offset, so that
    /// [`append`](Self::append) takes it. As in Kafka, a batch without records has.
    #[must_use]
    pub fn has_room_for(
        &self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[Header<'_>],
    ) -> bool {
        let record = match &self.records {
            Growing::V2(batch) => {
                let next = (batch.last_offset().wrapping_add(1), timestamp);
                batch.fields(next, 0, (key, value), HeaderFields::List(headers)).size()
            }
            Growing::Legacy(set) => set.fields((set.last_offset(), timestamp), (key, value)).size(),
        };
        record <= self.max_size_of_next()
    }

    /// Size in bytes of the batch if it were built now: exact if uncompressed, otherwise estimated from the
    /// compression ratio of the batches built before (`CompressionRatioEstimator`; 1 at first) plus 5 %.
    #[must_use]
    pub fn estimated_size_in_bytes(&self) -> usize {
        if self.record_count() == 0 { 0 } else { self.size() }
    }

    /// The size of the batch with its header or wrapper.
    #[inline]
    fn size(&self) -> usize {
        let raw = self.raw_size();
        let records = match self.codec {
            Compression::None => raw,
            _ => self.compression_ratio.estimate(raw),
        };
        self.overhead() + records
    }

    /// Size of the batch without its records.
    #[inline]
    fn overhead(&self) -> usize {
        match &self.records {
            Growing::V2(_) => RECORD_BATCH_OVERHEAD,
            Growing::Legacy(_) => set_overhead(self.magic, self.codec),
        }
    }

    /// Size of the batch without compression.
    #[doc(hidden)]
    #[must_use]
    pub fn uncompressed_size(&self) -> usize {
        self.overhead() + self.raw_size()
    }

    /// Uncompressed size of the records so far.
    #[inline]
    pub(super) fn raw_size(&self) -> usize {
        match &self.records {
            Growing::V2(batch) => batch.records_size(),
            Growing::Legacy(set) => set.messages_size(),
        }
    }

    /// The maximum size of the next record in bytes.
    #[inline(always)]
    pub(super) fn max_size_of_next(&self) -> usize {
        let by_estimate = self.max_size().saturating_sub(self.size());
        // Kafka counts the uncompressed bytes in an int too, and they may be far more than the estimate.
        by_estimate.min((i32::MAX as usize).saturating_sub(self.raw_size()))
    }

    /// The maximum size of the batch with the next record.
    #[inline(always)]
    fn max_size(&self) -> usize {
        if self.record_count() == 0 { i32::MAX as usize } else { self.options.max_size }
    }

    #[cold]
    pub(super) fn too_large(&self, record: usize) -> Error {
        let limited = |size, limit| ErrorKind::RecordTooLarge { size, limit }.into();
        match self.size().saturating_add(record) {
            size if size > self.max_size() => limited(size, self.max_size()),
            _ => limited(self.raw_size().saturating_add(record), i32::MAX as usize),
        }
    }

    /// True if a record was refused that might fit in an empty batch.
    pub(super) fn is_full(&self, error: &Error) -> bool {
        self.record_count() > 0 && matches!(error.kind(), ErrorKind::RecordTooLarge { .. })
    }
}
