//! A growing buffer that hands out its next bytes to be written.

use crate::bytes::varint::Varint;

/// The number of bytes that are initialized at a time.
const STEP: usize = 64 << 10;

/// Bytes written in sequence. A record made of several fields reserves its bytes in one step, so that no
/// capacity check or length update is needed per field.
#[derive(Debug, Default)]
pub(crate) struct OutputBuffer {
    /// After `end` are zeros or leftovers of earlier use.
    data: Vec<u8>,
    end: usize,
}

impl OutputBuffer {
    /// The next `size` bytes, to be written to, followed by [`Varint::MARGIN`] bytes that [`Varint::write`]
    /// may overwrite.
    #[inline(always)]
    pub(crate) fn next(&mut self, size: usize) -> &mut [u8] {
        let (start, end) = (self.end, self.end + size);
        let end_with_margin = end + Varint::MARGIN;
        if self.data.len() < end_with_margin {
            self.grow(end_with_margin);
        }
        self.end = end;
        &mut self.data[start..end_with_margin]
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, length: usize) {
        self.data.reserve(length - self.data.len());
        self.data.resize(self.data.capacity().min(length + STEP), 0);
    }

    /// Starts over after the first `end` bytes, which are kept.
    pub(crate) fn restart(&mut self, end: usize) {
        self.end = 0;
        self.next(end);
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.end
    }

    pub(crate) fn written(&self) -> &[u8] {
        &self.data[..self.end]
    }

    pub(crate) fn written_mut(&mut self) -> &mut [u8] {
        &mut self.data[..self.end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hands_out_the_bytes_after_those_written() {
        let mut buffer = OutputBuffer::default();
        let mut expected = Vec::new();
        for size in [0, 1, 7, STEP, 3, 5 * STEP, 2] {
            let next = buffer.next(size);
            assert_eq!(next.len(), size + Varint::MARGIN);
            next.fill(size as u8);
            expected.resize(expected.len() + size, size as u8);
        }
        assert_eq!(buffer.written(), expected);
        let largest = buffer.data.len();
        buffer.restart(4);
        assert_eq!(buffer.len(), 4);
        buffer.next(STEP).fill(1);
        assert_eq!(buffer.written_mut()[4..], vec![1; STEP]);
        assert_eq!(buffer.data.len(), largest, "memory is kept");
    }
}
