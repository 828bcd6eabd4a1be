//! Writing one magic 2 record (`DefaultRecord.writeTo`).

use crate::bytes::output_buffer::OutputBuffer;
use crate::bytes::varint;
use crate::bytes::varint::Varint;
use crate::record::header::{Header, Headers};

const NULL: i64 = -1;

/// The fields of a record in encoded form, and their size, computed once.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct RecordFields<'a> {
    attributes: i8,
    pub(super) timestamp_delta: i64,
    timestamp: Varint,
    pub(super) offset_delta: i32,
    offset: Varint,
    key: Nullable<'a>,
    value: Nullable<'a>,
    headers: HeaderFields<'a>,
    /// Size in bytes without the length field.
    body_size: usize,
    length: Varint,
}

/// Headers to be written: a list, or the encoded headers of another record.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum HeaderFields<'a> {
    /// In this order.
    List(&'a [Header<'a>]),
    /// Encoded.
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

    #[inline(always)]
    fn size(&self) -> usize {
        match self {
            Self::List(headers) => {
                let each = |h: &Header<'_>| Nullable::of(Some(h.key)).size() + Nullable::of(h.value).size();
                Varint::of(headers.len() as i64).size() + headers.iter().map(each).sum::<usize>()
            }
            Self::Stored(headers) => {
                let (data, count) = headers.parts();
                Varint::of(count.into()).size() + data.len()
            }
        }
    }

    /// Writes the headers to the start of `out`.
    #[inline(always)]
    fn write(&self, out: &mut [u8]) {
        match self {
            Self::List(headers) => {
                let mut at = Varint::of(headers.len() as i64).write(out);
                for header in *headers {
                    at += Nullable::of(Some(header.key)).write(&mut out[at..]);
                    at += Nullable::of(header.value).write(&mut out[at..]);
                }
            }
            Self::Stored(headers) => {
                let (data, count) = headers.parts();
                let start = Varint::of(count.into()).write(out);
                out[start..start + data.len()].copy_from_slice(data);
            }
        }
    }
}

#[doc(hidden)]
impl<'a> RecordFields<'a> {
    #[inline(always)]
    #[must_use]
    pub fn new(
        attributes: i8,
        (timestamp_delta, offset_delta): (i64, i32),
        (key, value): (Option<&'a [u8]>, Option<&'a [u8]>),
        headers: HeaderFields<'a>,
    ) -> Self {
        let (key, value) = (Nullable::of(key), Nullable::of(value));
        let timestamp = Varint::of(timestamp_delta);
        let offset = Varint::of(offset_delta.into());
        let body_size = 1 + timestamp.size() + offset.size() + key.size() + value.size() + headers.size();
        let length = Varint::of(body_size as i64);
        Self {
            attributes,
            timestamp_delta,
            timestamp,
            offset_delta,
            offset,
            key,
            value,
            headers,
            body_size,
            length,
        }
    }

    /// Size of the record in bytes, without its length field.
    #[must_use]
    pub fn body_size(&self) -> usize {
        self.body_size
    }

    /// Size of the record in bytes, its length field included.
    #[inline]
    #[must_use]
    pub fn size(&self) -> usize {
        self.length.size() + self.body_size
    }

    /// Appends the record. The buffer's length is updated once rather than per field, where each update would
    /// wait for the one before.
    #[inline(always)]
    pub(crate) fn append_to(&self, records: &mut OutputBuffer) {
        let out = records.next(self.size());
        let mut at = self.length.write(out);
        out[at] = self.attributes as u8;
        at += 1;
        at += if self.timestamp.is_whole() {
            self.timestamp.write(&mut out[at..])
        } else {
            varint::write(self.timestamp_delta, &mut out[at..])
        };
        at += self.offset.write(&mut out[at..]);
        at += self.key.write(&mut out[at..]);
        at += self.value.write(&mut out[at..]);
        self.headers.write(&mut out[at..]);
    }
}

/// A nullable field, with its encoded length.
#[derive(Clone, Copy)]
struct Nullable<'a> {
    length: Varint,
    data: Option<&'a [u8]>,
}

impl<'a> Nullable<'a> {
    #[inline(always)]
    fn of(data: Option<&'a [u8]>) -> Self {
        Self { length: Varint::of(data.map_or(NULL, |data| data.len() as i64)), data }
    }

    #[inline(always)]
    fn size(&self) -> usize {
        self.length.size() + self.data.map_or(0, <[u8]>::len)
    }

    /// Writes the field to the start of `out`; returns its size.
    #[inline(always)]
    fn write(&self, out: &mut [u8]) -> usize {
        let start = self.length.write(out);
        let Some(data) = self.data else { return start };
        let end = start + data.len();
        copy(data, &mut out[start..end]);
        end
    }
}

/// Copies 16 to 32 bytes as two halves that may overlap: a call to `memcpy` would cost more.
#[inline(always)]
fn copy(data: &[u8], out: &mut [u8]) {
    if data.len() <= 32
        && let (Some(head), Some(tail)) = (data.first_chunk::<16>(), data.last_chunk::<16>())
    {
        out[..16].copy_from_slice(head);
        out[data.len() - 16..].copy_from_slice(tail);
    } else {
        out.copy_from_slice(data);
    }
}
