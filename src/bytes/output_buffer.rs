//! A buffer that grows, and hands out the next bytes to be written to.

use crate::bytes::varint::Varint;

/// How much is made ready at a time.
const STEP: usize = 64 << 10;

/// Bytes written one behind the other. What is written in several steps gets its room at once: nothing is asked
/// and no length is kept for each step.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// Behind `end` stands what an earlier use left there, or zeros.
    data: Vec<u8>,
    end: usize,
}

impl Room {
    /// The next `size` bytes, to be written to, and behind them [`Varint::ROOM`], which [`Varint::write`] may touch.
    #[inline(always)]
    pub(crate) fn next(&mut self, size: usize) -> &mut [u8] {
        let (start, end) = (self.end, self.end + size);
        let touched = end + Varint::ROOM;
        if self.data.len() < touched {
            self.grow(touched);
        }
        self.end = end;
        &mut self.data[start..touched]
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, length: usize) {
        self.data.reserve(length - self.data.len());
        self.data.resize(self.data.capacity().min(length + STEP), 0);
    }

    /// Begins anew, behind `end` bytes.
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
    fn gives_room_behind_what_was_written() {
        let mut room = Room::default();
        let mut expected = Vec::new();
        for size in [0, 1, 7, STEP, 3, 5 * STEP, 2] {
            let next = room.next(size);
            assert_eq!(next.len(), size + Varint::ROOM);
            next.fill(size as u8);
            expected.resize(expected.len() + size, size as u8);
        }
        assert_eq!(room.written(), expected);
        let most = room.data.len();
        room.restart(4);
        assert_eq!(room.len(), 4);
        room.next(STEP).fill(1);
        assert_eq!(room.written_mut()[4..], [1; STEP]);
        assert_eq!(room.data.len(), most, "memory is kept");
    }
}
