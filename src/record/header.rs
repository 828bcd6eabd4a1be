//! Record headers: checked once, then iterated lazily (`DefaultRecord.readHeaders`).

use crate::bytes::cursor::Cursor;
use crate::error::{Error, ErrorKind, Result};

/// One header. Key and value are bytes, since Kafka does not check that keys are UTF-8. Views.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'r> {
    /// The key, possibly empty.
    pub key: &'r [u8],
    /// The value; `None` for null.
    pub value: Option<&'r [u8]>,
}

/// The headers of one record: an iterator over [`Header`]s in stored order, duplicates included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers<'r> {
    /// Exactly `count` headers, checked by [`Headers::check`].
    data: &'r [u8],
    count: u32,
}

impl<'r> Headers<'r> {
    /// Reads the count and the sizes in every header; the cursor is then after the last header.
    #[doc(hidden)]
    #[inline(always)]
    pub fn check(cursor: &mut Cursor<'r>) -> Result<Self> {
        // Most records have none.
        if cursor.take_zero() {
            return Ok(Self::default());
        }
        // By value: a cursor passed by reference would be kept in memory rather than in registers.
        let headers;
        (headers, *cursor) = Self::check_each(*cursor)?;
        Ok(headers)
    }

    #[inline(never)]
    fn check_each(mut cursor: Cursor<'r>) -> Result<(Self, Cursor<'r>)> {
        let count = cursor.varint().map_err(|e| e.in_field("headersCount"))?;
        // As in Kafka: a header takes at least one byte.
        if count < 0 || count as usize > cursor.remaining() {
            return Err(Error::new(ErrorKind::InvalidCount(count.into())).in_field("headersCount"));
        }
        let count = count as u32;
        let mut end = cursor;
        for _ in 0..count {
            read_header(&mut end)?;
        }
        let data = cursor.take(end.position() - cursor.position())?;
        Ok((Self { data, count }, end))
    }

    /// The bytes and the number of the headers.
    #[doc(hidden)]
    #[must_use]
    pub fn parts(&self) -> (&'r [u8], u32) {
        (self.data, self.count)
    }

    /// Headers from the result of [`parts`](Self::parts).
    #[doc(hidden)]
    #[must_use]
    pub fn from_parts(data: &'r [u8], count: u32) -> Self {
        Self { data, count }
    }

    /// The last header with this key (Java's `Headers.lastHeader`). Keys are compared as bytes. A view; the
    /// cost is a walk over all headers.
    #[must_use]
    pub fn last_header(self, key: &[u8]) -> Option<Header<'r>> {
        self.headers_for(key).last()
    }

    /// The headers with this key, in stored order (Java's `Headers.headers(key)`). Views.
    pub fn headers_for<'k>(self, key: &'k [u8]) -> impl Iterator<Item = Header<'r>> + use<'r, 'k> {
        self.filter(move |header| header.key == key)
    }

    /// True if no headers are left.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[inline(always)]
fn read_header<'r>(cursor: &mut Cursor<'r>) -> Result<Header<'r>> {
    let length = cursor.varint().map_err(|e| e.in_field("headerKeyLength"))?;
    if length < 0 {
        let invalid = ErrorKind::InvalidSize { found: length.into(), min: 0, max: i32::MAX.into() };
        return Err(Error::new(invalid).in_field("headerKeyLength"));
    }
    let key = cursor.take(length as usize).map_err(|e| e.in_field("headerKey"))?;
    let value = match cursor.length().map_err(|e| e.in_field("headerValueLength"))? {
        Some(length) => Some(cursor.take(length).map_err(|e| e.in_field("headerValue"))?),
        None => None,
    };
    Ok(Header { key, value })
}

#[allow(clippy::copy_iterator, reason = "a record hands out its headers any number of times")]
impl<'r> Iterator for Headers<'r> {
    type Item = Header<'r>;

    #[inline]
    fn next(&mut self) -> Option<Header<'r>> {
        if self.count == 0 {
            return None;
        }
        let mut cursor = Cursor::new(self.data);
        // Cannot fail, since `check` has read the same bytes; an error would end the iteration.
        let header = read_header(&mut cursor).ok()?;
        self.data = &self.data[cursor.position()..];
        self.count -= 1;
        Some(header)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count as usize, Some(self.count as usize))
    }
}

impl ExactSizeIterator for Headers<'_> {}
