//! Iterating over the records of a magic 2 batch (`DefaultRecord.readFrom`).

use crate::bytes::cursor::Cursor;
use crate::bytes::prefetch::Prefetch;
use crate::error::{Error, ErrorKind, Result};
use crate::record::Record;
use crate::record::header::Headers;
use crate::record::timestamp_type::TimestampType;

/// A lazy iterator over the records of a [`RecordBatch`](super::RecordBatch). Each step checks one record
/// without allocating; iteration ends after the first error.
#[derive(Clone, Debug)]
pub struct RecordIter<'r> {
    pub(super) cursor: Cursor<'r>,
    /// Records not read yet, of `count`.
    pub(super) left: u32,
    pub(super) count: u32,
    pub(super) base_offset: i64,
    pub(super) base_timestamp: i64,
    /// The batch's maximum timestamp, if it replaces the records' own (`LogAppendTime`).
    pub(super) append_time: Option<i64>,
    pub(super) base_sequence: i32,
    pub(super) position: u64,
    /// The bytes after this batch, prefetched at the pace of the walk.
    pub(super) prefetch: Prefetch<'r>,
    /// The maximum size of a record in bytes.
    pub(crate) size_limit: usize,
}

impl<'r> RecordIter<'r> {
    /// Size of the record section in bytes.
    #[must_use]
    pub fn payload_size(&self) -> usize {
        self.cursor.position() + self.cursor.remaining()
    }

    /// The position after the last record read, in the record section.
    #[doc(hidden)]
    #[must_use]
    pub fn position(&self) -> usize {
        self.cursor.position()
    }

    #[inline(always)]
    fn read(&mut self) -> Result<Record<'r>> {
        if self.cursor.remaining() == 0 {
            return Err(ErrorKind::TooFewRecords { announced: self.count }.into());
        }
        let length = self.cursor.varint().map_err(|e| e.in_field("length"))?;
        if length <= 0 || length as usize > self.cursor.remaining().min(self.size_limit) {
            return Err(self.invalid_length(length));
        }
        self.prefetch.fetch(self.cursor.position(), length as usize);
        // Fields are read from the record's own bytes, so none can reach into the next record.
        let mut body = Cursor::new(self.cursor.take(length as usize)?);
        let attributes = body.i8()?;
        let timestamp_delta = body.varlong().map_err(|e| e.in_field("timestampDelta"))?;
        let offset_delta = body.varint().map_err(|e| e.in_field("offsetDelta"))?;
        let key = nullable(&mut body).map_err(|e| e.in_field("key"))?;
        let value = nullable(&mut body).map_err(|e| e.in_field("value"))?;
        let headers = Headers::check(&mut body)?;
        if body.remaining() != 0 {
            let (declared, consumed) = (length as usize, body.position());
            return Err(ErrorKind::RecordSizeMismatch { declared, consumed }.into());
        }
        if self.left == 1 && self.cursor.remaining() != 0 {
            return Err(ErrorKind::RecordsRemaining { bytes: self.cursor.remaining() }.into());
        }
        let (timestamp, timestamp_type) = match self.append_time {
            Some(time) => (time, TimestampType::LogAppendTime),
            None => (self.base_timestamp.wrapping_add(timestamp_delta), TimestampType::CreateTime),
        };
        Ok(Record {
            offset: self.base_offset.wrapping_add(offset_delta.into()),
            timestamp,
            timestamp_type,
            sequence: sequence_of(self.base_sequence, offset_delta),
            attributes,
            key,
            value,
            headers,
        })
    }

    #[cold]
    fn invalid_length(&self, found: i32) -> Error {
        if let Ok(size) = usize::try_from(found)
            && size > self.size_limit
        {
            return ErrorKind::RecordSizeLimitExceeded { size, limit: self.size_limit }.into();
        }
        let max = self.cursor.remaining() as i64;
        let invalid = ErrorKind::InvalidSize { found: found.into(), min: 1, max };
        Error::new(invalid).in_field("length")
    }
}

/// A length and that many bytes; as in Kafka, any negative length is null.
#[inline(always)]
fn nullable<'r>(body: &mut Cursor<'r>) -> Result<Option<&'r [u8]>> {
    match body.length()? {
        Some(length) => body.take(length).map(Some),
        None => Ok(None),
    }
}

/// The sequence of a record; -1 if its batch has none, which any negative base means
/// (`DefaultRecord.readFrom`).
#[inline]
pub(crate) fn sequence_of(base: i32, offset_delta: i32) -> i32 {
    if base < 0 { -1 } else { increment_sequence(base, offset_delta) }
}

/// Sequences wrap from 2^31-1 to 0 (`DefaultRecordBatch.incrementSequence`).
#[inline]
pub(super) fn increment_sequence(base: i32, by: i32) -> i32 {
    if base > i32::MAX.wrapping_sub(by) {
        by.wrapping_sub(i32::MAX.wrapping_sub(base)).wrapping_sub(1)
    } else {
        base.wrapping_add(by)
    }
}

impl<'r> Iterator for RecordIter<'r> {
    type Item = Result<Record<'r>>;

    // Out of line, returning the record through memory would add half the cost of reading it.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let read = self.read();
        if let Err(error) = read {
            let index = self.count - self.left;
            self.left = 0;
            return Some(Err(error.at_record(index).in_batch(self.position, self.base_offset)));
        }
        self.left -= 1;
        Some(read)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        // The announced count is not trustworthy: no lower bound, so that no caller reserves memory by it.
        (0, Some(self.left as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_wrap_to_zero() {
        assert_eq!(increment_sequence(i32::MAX, 1), 0);
        assert_eq!(increment_sequence(i32::MAX - 1, 3), 1);
        assert_eq!(increment_sequence(5, 7), 12);
        assert_eq!(increment_sequence(0, -1), i32::MAX);
        assert_eq!(sequence_of(-1, 9), -1);
        assert_eq!(sequence_of(i32::MIN, 9), -1);
    }
}
