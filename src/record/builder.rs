//! A magic 2 batch while it is being built (the magic 2 half of `MemoryRecordsBuilder`).

use crate::bytes::output_buffer::OutputBuffer;
use crate::compression::compressor::Compressor;
use crate::error::{Error, ErrorKind, Result};
use crate::record::batch_header::{BatchHeader, COMPRESSION, RECORD_BATCH_OVERHEAD};
use crate::record::encode::{HeaderFields, RecordFields};

/// Collects records relative to a base offset and timestamp. It checks nothing: the caller enforces Kafka's
/// rules.
#[doc(hidden)]
#[derive(Debug)]
pub struct BatchBuilder {
    base_offset: i64,
    base_timestamp: i64,
    last_offset: i64,
    max_timestamp: i64,
    count: i32,
    /// Space for the header, then the records: if uncompressed, this becomes the batch itself.
    data: OutputBuffer,
}

#[doc(hidden)]
impl Default for BatchBuilder {
    fn default() -> Self {
        Self::new()
    }
}

#[doc(hidden)]
impl BatchBuilder {
    #[must_use]
    pub fn new() -> Self {
        let mut data = OutputBuffer::default();
        data.restart(RECORD_BATCH_OVERHEAD);
        Self { base_offset: 0, base_timestamp: -1, last_offset: -1, max_timestamp: -1, count: 0, data }
    }

    /// Drops all records but keeps the buffer. The deltas of the next records are relative to this base.
    pub fn start(&mut self, base_offset: i64, base_timestamp: i64) {
        (self.base_offset, self.base_timestamp) = (base_offset, base_timestamp);
        (self.last_offset, self.max_timestamp, self.count) = (base_offset.wrapping_sub(1), -1, 0);
        self.data.restart(RECORD_BATCH_OVERHEAD);
    }

    #[must_use]
    pub fn count(&self) -> i32 {
        self.count
    }

    pub(crate) fn base_offset(&self) -> i64 {
        self.base_offset
    }

    pub(crate) fn last_offset(&self) -> i64 {
        self.last_offset
    }

    /// Size of the records in bytes.
    #[must_use]
    pub fn records_size(&self) -> usize {
        self.data.len() - RECORD_BATCH_OVERHEAD
    }

    /// Checks that a record with this offset can follow the last one: offsets increase, and their distance
    /// from the base is an int32.
    #[inline]
    pub fn check_offset(&self, offset: i64) -> Result<()> {
        offset_between(offset, self.base_offset, (self.count > 0).then_some(self.last_offset))
    }

    /// A record with these fields; its offset has been checked.
    #[inline(always)]
    #[must_use]
    pub fn fields<'a>(
        &self,
        (offset, timestamp): (i64, i64),
        attributes: i8,
        (key, value): (Option<&'a [u8]>, Option<&'a [u8]>),
        headers: HeaderFields<'a>,
    ) -> RecordFields<'a> {
        let timestamp_delta = timestamp.wrapping_sub(self.base_timestamp);
        let offset_delta = offset.wrapping_sub(self.base_offset) as i32;
        RecordFields::new(attributes, (timestamp_delta, offset_delta), (key, value), headers)
    }

    /// Appends a record that [`fields`](Self::fields) returned.
    #[inline(always)]
    pub fn append(&mut self, record: &RecordFields<'_>) {
        record.append_to(&mut self.data);
        let timestamp = self.base_timestamp.wrapping_add(record.timestamp_delta);
        self.max_timestamp = self.max_timestamp.max(timestamp);
        self.last_offset = self.base_offset.wrapping_add(record.offset_delta.into());
        self.count += 1;
    }

    /// Extends the batch to this offset, past its last record, as in a compacted batch.
    pub(crate) fn extend_to(&mut self, last_offset: i64) {
        self.last_offset = self.last_offset.max(last_offset);
    }

    /// The header of the records so far: no producer, no flags, no leader epoch.
    #[must_use]
    pub fn header(&self) -> BatchHeader {
        BatchHeader {
            base_offset: self.base_offset,
            partition_leader_epoch: -1,
            attributes: 0,
            last_offset_delta: self.last_offset.wrapping_sub(self.base_offset) as i32,
            base_timestamp: self.base_timestamp,
            max_timestamp: self.max_timestamp,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            record_count: self.count,
        }
    }

    /// Appends the finished batch to `out`; the codec bits in `header` are set to the compressor's. Returns
    /// the size of the record section as written.
    pub fn finish(
        &self,
        mut header: BatchHeader,
        compressor: &mut Compressor,
        out: &mut Vec<u8>,
    ) -> Result<usize> {
        header.attributes = header.attributes & !i16::from(COMPRESSION) | compressor.codec() as i16;
        let payload = compressor.compress(2, &self.data.written()[RECORD_BATCH_OVERHEAD..])?;
        append_batch(&header, payload, out)?;
        Ok(payload.len())
    }

    /// Appends the finished uncompressed batch to `out`. Returns the size of the record section.
    pub(crate) fn finish_stored_into(&mut self, header: BatchHeader, out: &mut Vec<u8>) -> Result<usize> {
        let batch = self.finish_stored(header)?;
        out.extend_from_slice(batch);
        Ok(batch.len() - RECORD_BATCH_OVERHEAD)
    }

    /// The finished uncompressed batch, in the buffer where its records were collected. A view.
    pub fn finish_stored(&mut self, mut header: BatchHeader) -> Result<&[u8]> {
        check_size(self.data.len())?;
        header.attributes &= !i16::from(COMPRESSION);
        header.write(self.data.written_mut());
        Ok(self.data.written())
    }
}

fn check_size(size: usize) -> Result<()> {
    match i32::try_from(size) {
        Ok(_) => Ok(()),
        Err(_) => Err(ErrorKind::RecordTooLarge { size, limit: i32::MAX as usize }.into()),
    }
}

/// Appends a batch with this header and record section to `out`.
#[doc(hidden)]
pub fn append_batch(header: &BatchHeader, payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let size = RECORD_BATCH_OVERHEAD + payload.len();
    check_size(size)?;
    let start = out.len();
    out.reserve(size);
    out.resize(start + RECORD_BATCH_OVERHEAD, 0);
    out.extend_from_slice(payload);
    header.write(&mut out[start..]);
    Ok(())
}

/// Checks that `offset` can follow `last`, if there is one, in a batch with base offset `base`.
#[inline]
pub(crate) fn offset_between(offset: i64, base: i64, last: Option<i64>) -> Result<()> {
    let is_low = last.map_or(offset < base, |last| offset <= last);
    if is_low || offset.wrapping_sub(base) as u64 > i32::MAX as u64 {
        let min = last.map_or(base, |last| last.saturating_add(1));
        return Err(out_of_range(offset, min, base.saturating_add(i32::MAX.into())));
    }
    Ok(())
}

/// Checks that a batch with base offset 0 can have this offset, and `size` bytes.
#[doc(hidden)]
pub fn representable(offset: i64, size: usize) -> Result<()> {
    match i32::try_from(offset) {
        Ok(_) => check_size(size),
        Err(_) => Err(out_of_range(offset, i32::MIN.into(), i32::MAX.into())),
    }
}

#[cold]
fn out_of_range(found: i64, min: i64, max: i64) -> Error {
    Error::new(ErrorKind::OffsetOutOfRange { found, min, max }).in_field("offset")
}
