//! The framing of a byte range into batches of mixed magics, and nothing else
//! (Kafka's `ByteBufferLogInputStream`).

use crate::batch::Batch;
use crate::bytes::prefetch::following;
use crate::error::Result;
use crate::frame::Frame;

/// Frames a byte range into batches of mixed magics; nothing is decompressed, no CRC checked. A step
/// reads the 17 bytes that size and magic stand in; batches are views.
///
/// Ends silently at a cut last batch, which is normal at the end of a fetch: see
/// [`remaining`](Self::remaining). Ends after the first error, since what follows a broken length
/// is unknown.
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
    /// Of `rest`.
    position: u64,
    failed: bool,
}

/// From this size on, what follows a batch is fetched while it is walked. For shorter ones, which are read as fast
/// without, asking only costs: a sixth of the rate of uncompressed messages.
const FETCHED_AHEAD: usize = 4 << 10;

impl<'a> Batches<'a> {
    /// Over `data`, whose first byte has position 0.
    #[must_use]
    pub fn new(data: &'a [u8]) -> Self {
        Self::at_position(data, 0)
    }

    /// Over `data`, whose first byte has this position (in a file, say).
    #[must_use]
    pub fn at_position(data: &'a [u8], position: u64) -> Self {
        Self { rest: data, position, failed: false }
    }

    /// Position of the next batch.
    #[must_use]
    pub fn next_position(&self) -> u64 {
        self.position
    }

    /// Bytes not framed yet: at the end, those of a cut last batch.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// How many bytes the next batch lacks: 0 when it is whole or nothing is there; at least this
    /// many while too little is there to tell.
    #[must_use]
    pub fn needed(&self) -> u64 {
        match Frame::read(self.rest) {
            Ok(Frame::Cut { needed }) if self.remaining() > 0 => needed,
            _ => 0,
        }
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<Batch<'a>>;

    // Always, and all the way down to the CRC: out of line, a message is moved through memory as often as it is read.
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
        if size >= FETCHED_AHEAD {
            return Some(Ok(batch.followed_by(&rest[following(rest.len(), 0, size)])));
        }
        Some(Ok(batch))
    }
}
