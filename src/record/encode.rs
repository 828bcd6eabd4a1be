//! Writing one magic 2 record (`DefaultRecord.writeTo`).

use super::{Header, Headers};
use crate::bytes::varint::{self, size_of};

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
    fn append_to(&self, out: &mut Vec<u8>) {
        match self {
            Self::List(headers) => {
                varint::append(headers.len() as i64, out);
                for header in *headers {
                    nullable(out, Some(header.key));
                    nullable(out, header.value);
                }
            }
            Self::Stored(headers) => {
                let (data, count) = headers.parts();
                varint::append(count.into(), out);
                out.extend_from_slice(data);
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
        // As a variable of its own the vector stays in registers.
        let mut out = std::mem::take(records);
        out.reserve(self.size());
        varint::append(self.body_size as i64, &mut out);
        out.push(self.attributes as u8);
        varint::append(self.timestamp_delta, &mut out);
        varint::append(self.offset_delta.into(), &mut out);
        nullable(&mut out, self.key);
        nullable(&mut out, self.value);
        self.headers.append_to(&mut out);
        *records = out;
    }
}

#[inline]
fn nullable_size(data: Option<&[u8]>) -> usize {
    data.map_or(size_of(NULL), |data| size_of(data.len() as i64) + data.len())
}

#[inline(always)]
fn nullable(out: &mut Vec<u8>, data: Option<&[u8]>) {
    match data {
        Some(data) => {
            varint::append(data.len() as i64, out);
            bytes(out, data);
        }
        None => varint::append(NULL, out),
    }
}

/// Up to 32 bytes are copied as two halves that may overlap: a call would cost more than the copy.
#[inline(always)]
fn bytes(out: &mut Vec<u8>, data: &[u8]) {
    match (data.first_chunk::<16>(), data.last_chunk::<16>()) {
        (Some(head), Some(tail)) if data.len() <= 32 => {
            let end = out.len() + data.len();
            out.extend_from_slice(head);
            out.truncate(end - 16);
            out.extend_from_slice(tail);
        }
        _ => out.extend_from_slice(data),
    }
}
