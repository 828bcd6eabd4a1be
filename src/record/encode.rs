//! Writing one magic 2 record (`DefaultRecord.writeTo`).

use super::{Header, Headers};
use crate::bytes::varint::size_of;
use crate::bytes::writer::Writer;

const NULL: i64 = -1;

/// The fields of a record as they are written, and their size, which is computed once.
#[derive(Clone, Copy)]
pub(crate) struct RecordFields<'a> {
    attributes: i8,
    pub(super) timestamp_delta: i64,
    pub(super) offset_delta: i32,
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
    headers: HeaderFields<'a>,
    /// Bytes behind the length field.
    body_size: usize,
}

/// Headers to be written: given one by one, or as they stand in another record.
#[derive(Clone, Copy)]
pub(crate) enum HeaderFields<'a> {
    List(&'a [Header<'a>]),
    Stored(Headers<'a>),
}

impl HeaderFields<'_> {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::List(headers) => headers.is_empty(),
            Self::Stored(headers) => headers.is_empty(),
        }
    }

    #[inline]
    fn size(&self) -> usize {
        match self {
            Self::List(headers) => {
                let each =
                    |header: &Header<'_>| nullable_size(Some(header.key)) + nullable_size(header.value);
                size_of(headers.len() as i64) + headers.iter().map(each).sum::<usize>()
            }
            Self::Stored(headers) => {
                let (data, count) = headers.parts();
                size_of(count.into()) + data.len()
            }
        }
    }

    #[inline]
    fn write(&self, out: &mut Writer<'_>) {
        match self {
            Self::List(headers) => {
                out.varint(headers.len() as i64);
                for header in *headers {
                    nullable(out, Some(header.key));
                    nullable(out, header.value);
                }
            }
            Self::Stored(headers) => {
                let (data, count) = headers.parts();
                out.varint(count.into());
                out.bytes(data);
            }
        }
    }
}

impl<'a> RecordFields<'a> {
    #[inline(always)]
    pub(crate) fn new(
        attributes: i8,
        (timestamp_delta, offset_delta): (i64, i32),
        (key, value): (Option<&'a [u8]>, Option<&'a [u8]>),
        headers: HeaderFields<'a>,
    ) -> Self {
        let body_size = 1
            + size_of(timestamp_delta)
            + size_of(offset_delta.into())
            + nullable_size(key)
            + nullable_size(value)
            + headers.size();
        Self { attributes, timestamp_delta, offset_delta, key, value, headers, body_size }
    }

    /// Bytes of the record behind its length field.
    #[cfg(feature = "python")]
    pub(crate) fn body_size(&self) -> usize {
        self.body_size
    }

    /// Bytes of the record, its length field included.
    #[inline]
    pub(crate) fn size(&self) -> usize {
        size_of(self.body_size as i64) + self.body_size
    }

    /// Appends the record, for which `records` grows once.
    #[inline]
    pub(crate) fn append_to(&self, records: &mut Vec<u8>) {
        let start = records.len();
        records.resize(start + self.size(), 0);
        let mut out = Writer::new(&mut records[start..]);
        out.varint(self.body_size as i64);
        out.i8(self.attributes);
        out.varint(self.timestamp_delta);
        out.varint(self.offset_delta.into());
        nullable(&mut out, self.key);
        nullable(&mut out, self.value);
        self.headers.write(&mut out);
    }
}

#[inline]
fn nullable_size(data: Option<&[u8]>) -> usize {
    data.map_or(size_of(NULL), |data| size_of(data.len() as i64) + data.len())
}

#[inline]
fn nullable(out: &mut Writer<'_>, data: Option<&[u8]>) {
    match data {
        Some(data) => {
            out.varint(data.len() as i64);
            out.bytes(data);
        }
        None => out.varint(NULL),
    }
}
