//! Magic 2: batch headers, records, record headers and control records (Kafka's `DefaultRecordBatch` and
//! `DefaultRecord`).

pub(crate) mod batch;
#[doc(hidden)]
pub mod batch_header;
pub(crate) mod builder;
pub(crate) mod control;
pub(crate) mod encode;
pub(crate) mod header;
pub(crate) mod iter;
pub(crate) mod producer_state;
pub(crate) mod timestamp_type;

pub use batch::RecordBatch;
pub use batch_header::RECORD_BATCH_OVERHEAD;
pub(crate) use batch_header::at;
pub use control::{ControlRecord, ControlType, Endpoint, Voter};
pub use header::{Header, Headers};
pub use iter::RecordIter;
pub use producer_state::ProducerState;
pub use timestamp_type::TimestampType;

/// Size of the smallest record of any magic: length, attributes, timestamp and offset deltas, key and value
/// lengths, header count.
#[doc(hidden)]
pub const SMALLEST_RECORD: usize = 7;

/// One record of any magic, borrowed from its batch or from the decompression buffer. Copying it copies no
/// payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'r> {
    pub(crate) offset: i64,
    pub(crate) timestamp: i64,
    pub(crate) timestamp_type: TimestampType,
    pub(crate) sequence: i32,
    pub(crate) attributes: i8,
    pub(crate) key: Option<&'r [u8]>,
    pub(crate) value: Option<&'r [u8]>,
    pub(crate) headers: Headers<'r>,
}

impl<'r> Record<'r> {
    /// A record of these parts, which are not checked.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn of_parts(
        offset: i64,
        (timestamp, timestamp_type): (i64, TimestampType),
        sequence: i32,
        attributes: i8,
        (key, value): (Option<&'r [u8]>, Option<&'r [u8]>),
        headers: Headers<'r>,
    ) -> Self {
        Self { offset, timestamp, timestamp_type, sequence, attributes, key, value, headers }
    }

    /// The record with other headers.
    #[doc(hidden)]
    #[must_use]
    pub fn with_headers(self, headers: Headers<'r>) -> Self {
        Self { headers, ..self }
    }

    /// The absolute offset in the partition.
    #[must_use]
    #[inline]
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// Milliseconds since 1970, -1 for none (always so in magic 0). Sums wrap at 64 bits, as in Java.
    #[must_use]
    #[inline]
    pub fn timestamp(&self) -> i64 {
        self.timestamp
    }

    /// The meaning of the timestamp.
    #[must_use]
    #[inline]
    pub fn timestamp_type(&self) -> TimestampType {
        self.timestamp_type
    }

    /// The producer's sequence number, -1 for none. 2^31-1 is followed by 0.
    #[must_use]
    #[inline]
    pub fn sequence(&self) -> i32 {
        self.sequence
    }

    /// The attributes byte of the record as stored: unused in magic 2; codec and timestamp type in magic 0
    /// and 1.
    #[must_use]
    #[inline]
    pub fn attributes(&self) -> i8 {
        self.attributes
    }

    /// The key; `None` for null, as distinct from empty. A view.
    #[must_use]
    #[inline]
    pub fn key(&self) -> Option<&'r [u8]> {
        self.key
    }

    /// The value; `None` for null (a tombstone on compacted topics). A view.
    #[must_use]
    #[inline]
    pub fn value(&self) -> Option<&'r [u8]> {
        self.value
    }

    /// The headers in stored order, duplicates included: a lazy iterator that does not allocate and cannot
    /// fail, since the headers were checked when the record was read.
    #[must_use]
    #[inline]
    pub fn headers(&self) -> Headers<'r> {
        self.headers
    }

    /// The last header with this key, as [`Headers::last_header`]. A view.
    #[must_use]
    pub fn last_header(&self, key: &[u8]) -> Option<Header<'r>> {
        self.headers.last_header(key)
    }

    /// The headers with this key, as [`Headers::headers_for`]. Views.
    pub fn headers_for<'k>(&self, key: &'k [u8]) -> impl Iterator<Item = Header<'r>> + use<'r, 'k> {
        self.headers.headers_for(key)
    }
}

/// A record without its key and value, as [`Records::skip_key_value`](crate::Records::skip_key_value) yields
/// it (Kafka's `PartialDefaultRecord`). Unlike in Kafka, all sizes were checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialRecord {
    /// The offset, see [`Record::offset`].
    pub offset: i64,
    /// The timestamp, see [`Record::timestamp`].
    pub timestamp: i64,
    /// The sequence number, see [`Record::sequence`].
    pub sequence: i32,
    /// Size of the key in bytes, `None` for null.
    pub key_size: Option<usize>,
    /// Size of the value in bytes, `None` for null.
    pub value_size: Option<usize>,
    /// The number of headers.
    pub header_count: usize,
}

impl From<Record<'_>> for PartialRecord {
    #[inline]
    fn from(record: Record<'_>) -> Self {
        Self {
            offset: record.offset,
            timestamp: record.timestamp,
            sequence: record.sequence,
            key_size: record.key.map(<[u8]>::len),
            value_size: record.value.map(<[u8]>::len),
            header_count: record.headers.len(),
        }
    }
}
