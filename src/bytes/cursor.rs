//! A cursor over borrowed bytes, with one bounds-checked method per primitive.

use crate::bytes::varint;
use crate::error::{ErrorKind, Result};

/// Reads Kafka's primitives from a slice; the slices it returns borrow from it.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    /// The unread bytes: one comparison decides whether a read fits.
    rest: &'a [u8],
    size: usize,
}

#[doc(hidden)]
impl<'a> Cursor<'a> {
    #[inline]
    #[must_use]
    pub fn new(data: &'a [u8]) -> Self {
        Self { rest: data, size: data.len() }
    }

    #[inline]
    #[must_use]
    pub fn position(&self) -> usize {
        self.size - self.rest.len()
    }

    #[inline]
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    #[inline(always)]
    pub fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.rest.split_at_checked(length) else {
            return Err(ErrorKind::UnexpectedEnd.into());
        };
        self.rest = rest;
        Ok(taken)
    }

    /// Takes the next byte if it is zero.
    #[inline(always)]
    pub(crate) fn take_zero(&mut self) -> bool {
        match *self.rest {
            [0, ref rest @ ..] => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let taken = self.take(N)?;
        Ok(std::array::from_fn(|i| taken[i]))
    }

    #[inline]
    pub fn i8(&mut self) -> Result<i8> {
        Ok(i8::from_be_bytes(self.array()?))
    }

    #[inline]
    pub fn i16(&mut self) -> Result<i16> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    #[inline]
    pub fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    #[inline]
    pub fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    #[inline]
    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    #[inline]
    pub fn i64(&mut self) -> Result<i64> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    #[inline]
    pub fn uuid(&mut self) -> Result<[u8; 16]> {
        self.array()
    }

    #[inline(always)]
    pub fn varint(&mut self) -> Result<i32> {
        varint::read_i32(&mut self.rest)
    }

    /// A varint length: `None` if negative, which is null in Kafka's `DefaultRecord`.
    #[inline(always)]
    pub fn length(&mut self) -> Result<Option<usize>> {
        // Zigzag: the lowest bit is the sign.
        let raw = varint::read_unsigned(&mut self.rest)?;
        Ok((raw & 1 == 0).then_some((raw >> 1) as usize))
    }

    #[inline(always)]
    pub fn varlong(&mut self) -> Result<i64> {
        varint::read_i64(&mut self.rest)
    }

    #[inline]
    pub fn unsigned_varint(&mut self) -> Result<u32> {
        varint::read_unsigned(&mut self.rest)
    }
}

/// Reads a big-endian integer at a fixed index of a slice whose length was checked before.
#[doc(hidden)]
#[macro_export]
macro_rules! be {
    ($data:expr, $at:expr, $type:ty) => {{
        const SIZE: usize = ::std::mem::size_of::<$type>();
        let data: &[u8] = $data;
        <$type>::from_be_bytes(::std::array::from_fn::<u8, SIZE, _>(|i| data[$at + i]))
    }};
}
pub use be;
