//! Framing: splitting a byte range into batches of mixed magics (Kafka's `ByteBufferLogInputStream`).

use crate::batch::Batch;
use crate::bytes::prefetch::following;
use crate::error::{Error, ErrorKind, Result};
use crate::frame::Frame;

/// Splits a byte range into batches of mixed magics, without decompressing anything or checking CRCs. Each
/// step reads the 17 bytes up to the magic byte; batches are views.
///
/// A truncated last batch, which is normal at the end of a fetch, ends the iteration silently: see
/// [`remaining`](Self::remaining) and [`truncated`](Self::truncated). So does the first error, since the bytes after a broken length cannot be
/// framed.
///
/// ```
/// # fn read(bytes: &[u8]) -> magicbyte::Result<()> {
/// let mut decompressor = magicbyte::Decompressor::new();
/// for batch in magicbyte::Batches::new(bytes) {
///     let batch = batch?;
///     batch.verify()?;
///     for record in batch.records(&mut decompressor)? {
///         let record = record?;
///         assert!(record.offset() <= batch.last_offset());
///     }
/// }
/// # Ok(()) }
/// # read(&[]).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    rest: &'a [u8],
    /// Position of `rest` in the input.
    position: u64,
    failed: bool,
}

/// The minimum size of a batch for the bytes after it to be prefetched. Smaller batches gain nothing from it:
/// uncompressed messages would be read a sixth slower.
const MIN_PREFETCH_SIZE: usize = 4 << 10;

impl<'a> Batches<'a> {
    /// Batches of `data`, whose first byte has position 0.
    #[must_use]
    pub fn new(data: &'a [u8]) -> Self {
        Self::at_position(data, 0)
    }

    /// Batches of `data`, whose first byte has the given position, for example in a file.
    #[must_use]
    pub fn at_position(data: &'a [u8], position: u64) -> Self {
        Self { rest: data, position, failed: false }
    }

    /// Position of the next batch.
    #[must_use]
    pub fn next_position(&self) -> u64 {
        self.position
    }

    /// Bytes not framed yet; at the end of the iteration, the bytes of a truncated last batch.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The number of bytes that the next batch is missing: 0 if it is whole or there is none. This is a lower bound if
    /// even the length field is incomplete.
    #[must_use]
    pub fn needed(&self) -> u64 {
        match Frame::read(self.rest) {
            Ok(Frame::Cut { needed }) if self.remaining() > 0 => needed,
            _ => 0,
        }
    }

    /// The error of a truncated last batch, for callers whose input has to be whole; `None` if the next batch
    /// is whole or there is none.
    #[must_use]
    pub fn truncated(&self) -> Option<Error> {
        let needed = self.needed();
        (needed > 0).then(|| Error::new(ErrorKind::NeedMoreBytes { needed }).at_position(self.position))
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<Batch<'a>>;

    // Inlined all the way down to the CRC: out of line, each message would be copied through memory.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let size = match Frame::read(self.rest) {
            Ok(Frame::Cut { .. }) => return None,
            Ok(Frame::Whole { size }) => size,
            Err(error) => {
                self.failed = true;
                return Some(Err(error.at_position(self.position)));
            }
        };
        let (frame, rest) = self.rest.split_at(size);
        let batch = match Batch::new(frame, self.position) {
            Ok(batch) => batch,
            Err(error) => {
                self.failed = true;
                return Some(Err(error));
            }
        };
        self.rest = rest;
        self.position += size as u64;
        if size >= MIN_PREFETCH_SIZE {
            return Some(Ok(batch.followed_by(&rest[following(rest.len(), 0, size)])));
        }
        Some(Ok(batch))
    }
}
