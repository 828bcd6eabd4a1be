//! One direction of a connection: TCP segments become frames. After a loss, frames are found again.

use magicbyte::Result;

use crate::wire::frames::{FrameDecoder, MAX_FRAME_BYTES};
use crate::wire::stream::Stream;

/// The number of segments that may arrive before missing bytes count as lost, if the receiver has them.
const PATIENCE: u32 = 16;
/// The maximum number of bytes that wait for lost ones, even if the receiver has not confirmed those.
const MAX_WAITING: usize = 16 << 20;

/// A test for bytes that begin a frame, as far as can be told.
pub(crate) type Begins<'a> = &'a dyn Fn(&[u8]) -> bool;

/// A direction of a connection.
#[derive(Debug)]
pub(crate) struct Direction {
    pub(crate) stream: Stream,
    pub(crate) frames: Frames,
    /// Segments since bytes have been lost.
    waited: u32,
    /// Bytes that packets missing in the capture had.
    pub(crate) lost: u64,
    pub(crate) finished: bool,
}

impl Direction {
    pub(crate) fn new() -> Self {
        Self { stream: Stream::default(), frames: Frames::new(), waited: 0, lost: 0, finished: false }
    }

    /// The first segment of a connection, after which frames begin.
    pub(crate) fn begin(&mut self, sequence: u32) {
        self.stream.begin(sequence);
        self.frames.in_step = true;
    }

    pub(crate) fn push(&mut self, sequence: u32, payload: &[u8], begins: Begins<'_>) {
        let Self { stream, frames, .. } = self;
        stream.push(sequence, payload, &mut |bytes| frames.take(bytes, begins));
    }

    /// Goes on after bytes that were lost, once they are.
    pub(crate) fn give_up_lost(&mut self, begins: Begins<'_>) {
        let lost = self.stream.has_lost();
        self.waited = if lost { self.waited + 1 } else { 0 };
        if (lost && self.waited > PATIENCE) || self.stream.held() > MAX_WAITING {
            self.skip(begins);
        }
    }

    /// Goes on after the bytes that are missing now.
    pub(crate) fn skip(&mut self, begins: Begins<'_>) {
        let Self { stream, frames, .. } = self;
        let lost = stream.skip();
        self.lost += lost as u64;
        frames.lose(lost as u64);
        stream.resume(&mut |bytes| frames.take(bytes, begins));
    }

    /// The memory of incomplete data, in bytes.
    pub(crate) fn held(&self) -> usize {
        self.stream.held() + self.frames.decoder.pending()
    }
}

/// Bytes in order, some of them lost, and the frames in them.
#[derive(Debug)]
pub(crate) struct Frames {
    decoder: FrameDecoder,
    /// The position in the stream at which the decoder began.
    base: u64,
    position: u64,
    /// True if the decoder's next byte is known to be in or before a frame.
    pub(crate) in_step: bool,
    /// Bytes that are left of a frame that has lost some.
    rest_of_damaged: u64,
    /// Bytes in which no frame was recognized.
    pub(crate) skipped: u64,
}

impl Frames {
    fn new() -> Self {
        let decoder = FrameDecoder::new(MAX_FRAME_BYTES);
        Self { decoder, base: 0, position: 0, in_step: false, rest_of_damaged: 0, skipped: 0 }
    }

    pub(crate) fn take(&mut self, bytes: &[u8], begins: Begins<'_>) {
        let rest = bytes.get(self.rest_of_damaged as usize..).unwrap_or_default();
        let damaged = bytes.len() - rest.len();
        self.rest_of_damaged -= damaged as u64;
        self.skip(damaged);
        if rest.is_empty() {
            return;
        }
        if !self.in_step {
            // Clients and brokers begin most frames in a segment of their own.
            if !begins(rest) {
                self.skip(rest.len());
                return;
            }
            self.in_step = true;
        }
        self.position += rest.len() as u64;
        self.decoder.push(rest);
    }

    fn skip(&mut self, bytes: usize) {
        self.position += bytes as u64;
        self.skipped += bytes as u64;
        if self.decoder.pending() == 0 {
            self.restart();
        }
    }

    /// Bytes that are not there. If they belong to one frame, the next one is where it would have been.
    fn lose(&mut self, bytes: u64) {
        self.position += bytes;
        if self.rest_of_damaged > 0 {
            self.in_step &= bytes <= self.rest_of_damaged;
            self.rest_of_damaged = self.rest_of_damaged.saturating_sub(bytes);
        } else {
            match self.decoder.missing().map(|missing| missing as u64) {
                Some(missing) if bytes <= missing => self.rest_of_damaged = missing - bytes,
                _ => self.in_step = false,
            }
        }
        self.abandon();
    }

    /// Forgets the incomplete frame.
    pub(crate) fn abandon(&mut self) {
        self.skipped += self.decoder.pending() as u64;
        self.restart();
    }

    fn restart(&mut self) {
        self.decoder = FrameDecoder::new(MAX_FRAME_BYTES);
        self.base = self.position;
    }

    /// The next whole frame. An error has its position in the stream; then [`fail`](Self::fail) must be called.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>> {
        let base = self.base;
        self.decoder.next_frame().map_err(|error| error.shifted_by(base))
    }

    /// No frame can be found where the next one should begin.
    pub(crate) fn fail(&mut self) {
        self.in_step = false;
        self.abandon();
    }
}
