//! One direction of a TCP connection: segments in any order, some twice, some never, become bytes in order.

use std::collections::BTreeMap;

/// The memory of a waiting segment besides its bytes, in bytes.
const OVERHEAD: usize = 96;
/// The maximum window of TCP (RFC 7323): a segment further ahead belongs to something else.
const WINDOW: i64 = 1 << 30;

/// Puts segments in order. Memory: the segments after a hole.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// The sequence number of the next byte to deliver; None before the first segment.
    next: Option<u32>,
    /// The number of bytes that were delivered or lost.
    position: i64,
    /// Bytes after a hole, by position.
    waiting: BTreeMap<i64, Box<[u8]>>,
    held: usize,
    /// The position up to which the receiver has got everything.
    acknowledged: i64,
}

impl Stream {
    /// A SYN: the stream begins after its sequence number.
    pub(crate) fn begin(&mut self, sequence: u32) {
        *self = Self { next: Some(sequence.wrapping_add(1)), ..Self::default() };
    }

    /// True if the stream began with a SYN of this sequence number, and nothing has followed the SYN.
    pub(crate) fn began_at(&self, sequence: u32) -> bool {
        self.next.is_some_and(|next| next.wrapping_sub(self.position as u32) == sequence.wrapping_add(1))
    }

    /// Takes a segment. Delivers its bytes if they are the next ones, and those that waited for them. Of bytes that
    /// are sent twice, the first count.
    pub(crate) fn push(&mut self, sequence: u32, payload: &[u8], deliver: &mut impl FnMut(&[u8])) {
        // Without bytes it has the number after a FIN, or that before a probe's byte.
        if payload.is_empty() {
            return;
        }
        let next = *self.next.get_or_insert(sequence);
        let ahead = i64::from(sequence.wrapping_sub(next) as i32);
        let at = self.position + ahead;
        let end = at + payload.len() as i64;
        if end <= self.position || ahead > WINDOW {
            return;
        }
        if at > self.position {
            let longer = self.waiting.get(&at).is_none_or(|there| there.len() < payload.len());
            if longer {
                self.held += payload.len() + OVERHEAD;
                let old = self.waiting.insert(at, payload.into());
                self.held -= old.map_or(0, |old| old.len() + OVERHEAD);
            }
            return;
        }
        self.advance(&payload[(self.position - at) as usize..], deliver);
        self.deliver_waiting(deliver);
    }

    fn advance(&mut self, bytes: &[u8], deliver: &mut impl FnMut(&[u8])) {
        deliver(bytes);
        self.move_by(bytes.len() as i64);
    }

    fn move_by(&mut self, bytes: i64) {
        self.position += bytes;
        self.next = self.next.map(|next| next.wrapping_add(bytes as u32));
    }

    fn deliver_waiting(&mut self, deliver: &mut impl FnMut(&[u8])) {
        while let Some(first) = self.waiting.first_entry()
            && *first.key() <= self.position
        {
            let (at, bytes) = first.remove_entry();
            self.held -= bytes.len() + OVERHEAD;
            if let Some(rest) = bytes.get((self.position - at) as usize..).filter(|rest| !rest.is_empty()) {
                self.advance(rest, deliver);
            }
        }
    }

    /// The other side expects this sequence number next: it has what precedes it, whether it was captured or not.
    pub(crate) fn acknowledge(&mut self, sequence: u32) {
        if let Some(next) = self.next {
            let ahead = i64::from(sequence.wrapping_sub(next) as i32);
            if ahead <= WINDOW {
                self.acknowledged = self.acknowledged.max(self.position + ahead);
            }
        }
    }

    /// True if segments wait for bytes that will not be sent again.
    pub(crate) fn has_lost(&self) -> bool {
        self.waiting.first_key_value().is_some_and(|(&at, _)| self.acknowledged >= at)
    }

    /// True if segments wait for bytes.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Gives up on the bytes before the first segment that waits; returns how many they are.
    pub(crate) fn skip(&mut self) -> i64 {
        let lost = self.waiting.first_key_value().map_or(0, |(&at, _)| at - self.position);
        self.move_by(lost);
        lost
    }

    /// Delivers what [`skip`](Self::skip) has made the next bytes.
    pub(crate) fn resume(&mut self, deliver: &mut impl FnMut(&[u8])) {
        self.deliver_waiting(deliver);
    }

    /// The memory of the segments that wait, in bytes.
    pub(crate) fn held(&self) -> usize {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deliver(stream: &mut Stream, segments: &[(u32, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        for (sequence, payload) in segments {
            stream.push(*sequence, payload, &mut |bytes: &[u8]| out.extend_from_slice(bytes));
        }
        out
    }

    #[test]
    fn any_order_overlap_and_wrap() {
        let base = u32::MAX - 2;
        let text = b"abcdefghij";
        let part = |from: usize, to: usize| (base.wrapping_add(1 + from as u32), &text[from..to]);
        let orders: [&[(usize, usize)]; 5] = [
            &[(0, 10)],
            &[(5, 10), (0, 5)],
            &[(8, 10), (3, 6), (2, 9), (0, 1), (0, 3)],
            &[(0, 4), (0, 4), (2, 8), (7, 10), (9, 10)],
            &[(4, 5), (4, 8), (4, 6), (0, 4), (8, 10)],
        ];
        for order in orders {
            let mut stream = Stream::default();
            stream.begin(base);
            assert!(stream.began_at(base));
            let segments: Vec<_> = order.iter().map(|&(from, to)| part(from, to)).collect();
            assert_eq!(deliver(&mut stream, &segments), text, "{order:?}");
            assert!(stream.held() == 0 && !stream.is_waiting());
            assert!(stream.began_at(base) && !stream.began_at(base.wrapping_add(1)));
        }
    }

    #[test]
    fn lost_bytes() {
        let mut stream = Stream::default();
        assert_eq!(deliver(&mut stream, &[(100, b"ab"), (105, b"fg")]), b"ab");
        assert!(stream.is_waiting() && !stream.has_lost());
        stream.acknowledge(104);
        assert!(!stream.has_lost());
        stream.acknowledge(107);
        assert!(stream.has_lost());
        assert_eq!(stream.skip(), 3);
        let mut out = Vec::new();
        stream.resume(&mut |bytes: &[u8]| out.extend_from_slice(bytes));
        assert_eq!(out, b"fg");
        assert!(!stream.is_waiting());
    }

    #[test]
    fn segments_outside_the_window() {
        let mut stream = Stream::default();
        stream.begin(9);
        let far: &[(u32, &[u8])] = &[(10 + (1 << 30) + 1, b"x"), (9, b"k"), (u32::MAX, b"old"), (11, b"")];
        assert_eq!(deliver(&mut stream, far), b"");
        assert!(stream.held() == 0 && !stream.is_waiting());
    }
}
