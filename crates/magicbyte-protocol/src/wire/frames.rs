//! The frames of one direction of a connection: the size in four bytes, then a request or a response
//! (`NetworkReceive`).

use magicbyte::internals::be;
use magicbyte::{Error, ErrorKind, Result};

/// The size that a broker accepts by default (`socket.request.max.bytes`), in bytes.
pub const MAX_FRAME_BYTES: usize = 100 << 20;

/// Bytes of the size before a frame.
const SIZE: usize = 4;

/// Cuts a stream of bytes, which arrive in pieces of any size, into frames. It hands out bytes and does not know
/// messages; [`read_request`](crate::message::read_request) reads them.
///
/// Memory: the incomplete frame and the bytes that were pushed after it. Nothing is reserved from a size.
///
/// ```
/// use magicbyte_protocol::wire::FrameDecoder;
///
/// let mut frames = FrameDecoder::new(1 << 20);
/// frames.push(&[0, 0, 0, 2, b'h']);
/// assert_eq!(frames.next_frame()?, None);
/// frames.push(&[b'i', 0, 0]);
/// assert_eq!(frames.next_frame()?, Some(&b"hi"[..]));
/// assert_eq!(frames.next_frame()?, None);
/// assert_eq!(frames.position(), 6);
/// # Ok::<(), magicbyte::Error>(())
/// ```
#[derive(Debug)]
pub struct FrameDecoder {
    limit: usize,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were handed out.
    done: usize,
    position: u64,
}

impl FrameDecoder {
    /// A decoder that refuses frames of more than `limit` bytes; see [`MAX_FRAME_BYTES`].
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, buffer: Vec::new(), done: 0, position: 0 }
    }

    /// Adds the next bytes of the stream; copies them.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.done);
        self.done = 0;
        // A large frame must not keep its memory for the rest of the connection.
        if self.buffer.is_empty() {
            self.buffer.shrink_to(64 << 10);
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next frame without its size; None until the rest of it is pushed.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidMessage`] for a size that is negative or above the limit, with its position in the stream.
    /// No frame can be found after it.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>> {
        let rest = &self.buffer[self.done..];
        let Some(size) = rest.get(..SIZE) else { return Ok(None) };
        let size = be!(size, 0, i32);
        let Some(end) = usize::try_from(size).ok().filter(|&size| size <= self.limit) else {
            let why = format!("a frame of {size} bytes: expected 0 to {}", self.limit);
            return Err(Error::new(ErrorKind::InvalidMessage(why)).at_position(self.position));
        };
        let end = SIZE + end;
        if rest.len() < end {
            return Ok(None);
        }
        let start = self.done + SIZE;
        self.done += end;
        self.position += end as u64;
        Ok(Some(&self.buffer[start..self.done]))
    }

    /// The number of bytes that the incomplete frame still lacks; None if not even its size is complete.
    #[must_use]
    pub fn missing(&self) -> Option<usize> {
        let rest = &self.buffer[self.done..];
        let size = usize::try_from(be!(rest.get(..SIZE)?, 0, i32)).ok().filter(|&size| size <= self.limit)?;
        Some((SIZE + size).saturating_sub(rest.len()))
    }

    /// The position in the stream at which the next frame begins, with its size.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Bytes that were pushed and not handed out. These are the bytes of an incomplete frame if
    /// [`next_frame`](Self::next_frame) has returned none.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.buffer.len() - self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(frames: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for frame in frames {
            bytes.extend((frame.len() as i32).to_be_bytes());
            bytes.extend_from_slice(frame);
        }
        bytes
    }

    #[test]
    fn frames_cut_at_every_byte() {
        let frames: [&[u8]; 4] = [b"first", b"", &[7; 300], b"x"];
        let bytes = stream(&frames);
        for step in 1..=bytes.len() {
            let mut decoder = FrameDecoder::new(300);
            let mut found = Vec::new();
            for piece in bytes.chunks(step) {
                decoder.push(piece);
                while let Some(frame) = decoder.next_frame().expect("valid") {
                    found.push(frame.to_vec());
                }
            }
            assert_eq!(found, frames, "in pieces of {step}");
            assert_eq!((decoder.position(), decoder.pending()), (bytes.len() as u64, 0));
        }
    }

    #[test]
    fn sizes_out_of_range() {
        for size in [-1, i32::MIN, 301, i32::MAX] {
            let mut decoder = FrameDecoder::new(300);
            decoder.push(&stream(&[b"good"]));
            decoder.push(&size.to_be_bytes());
            assert_eq!(decoder.next_frame().expect("valid"), Some(&b"good"[..]));
            let error = decoder.next_frame().expect_err("a wrong size");
            assert_eq!(error.position(), Some(8));
            assert!(error.to_string().contains(&size.to_string()), "{error}");
            assert!(decoder.next_frame().is_err(), "it stays wrong");
        }
    }

    #[test]
    fn memory_follows_the_bytes_not_the_size() {
        let mut decoder = FrameDecoder::new(MAX_FRAME_BYTES);
        decoder.push(&(MAX_FRAME_BYTES as i32).to_be_bytes());
        decoder.push(&[0; 1000]);
        assert_eq!(decoder.next_frame().expect("incomplete"), None);
        assert!(decoder.buffer.capacity() < 4096);
        let mut decoder = FrameDecoder::new(MAX_FRAME_BYTES);
        decoder.push(&stream(&[&[1; 1 << 20]]));
        assert!(decoder.next_frame().expect("valid").is_some());
        decoder.push(&[]);
        assert!(decoder.buffer.capacity() <= 64 << 10);
    }
}
