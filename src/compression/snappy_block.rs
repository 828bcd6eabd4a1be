//! Raw snappy blocks of up to 8 KB, byte for byte as the C++ library in snappy-java writes them.
//!
//! The crate `snap` uses the same algorithm, but different hash bits for tables smaller than the largest, and
//! so finds other matches in small blocks. For larger blocks it writes the same bytes.

use crate::bytes::varint;

/// The largest block whose hash table is smaller than the largest table.
pub(super) const MAX_SMALL_BLOCK: usize = 8 << 10;

const MIN_TABLE: usize = 256;
const MAX_TABLE_BITS: u32 = 14;
const HASH_FACTOR: u32 = 0x1e35_a7bd;
/// The number of bytes at the end of a block in which no match begins.
const MARGIN: usize = 15;
const MIN_MATCH: usize = 4;

/// Compresses `data` into `out`, which has at least `snap::raw::max_compress_len` bytes; returns the number
/// of bytes written. Uses as much of `table` as `data` is long, rounded up to a power of two.
pub(super) fn compress(data: &[u8], table: &mut [u16; MAX_SMALL_BLOCK], out: &mut [u8]) -> usize {
    let size = data.len().next_power_of_two().max(MIN_TABLE);
    let mut block = Block { data, table: &mut table[..size], out, at: 0 };
    block.table.fill(0);
    block.at = varint::write_unsigned(data.len() as u64, block.out);
    block.compress();
    block.at
}

struct Block<'a> {
    data: &'a [u8],
    /// Position of the last four bytes with each hash.
    table: &'a mut [u16],
    out: &'a mut [u8],
    at: usize,
}

impl Block<'_> {
    fn compress(&mut self) {
        let Some(limit) = self.data.len().checked_sub(MARGIN) else {
            return self.literal(0, self.data.len());
        };
        let mut emitted = 0;
        while let Some((mut ip, mut candidate)) = self.next_match(emitted, limit) {
            self.literal(emitted, ip);
            loop {
                let length = MIN_MATCH + self.common(candidate + MIN_MATCH, ip + MIN_MATCH);
                self.copy(ip - candidate, length);
                ip += length;
                emitted = ip;
                if ip >= limit {
                    return self.literal(emitted, self.data.len());
                }
                // Only the two positions at the end of a match are recorded, not those inside.
                self.swap_entry(ip - 1);
                candidate = self.swap_entry(ip);
                if self.word(candidate) != self.word(ip) {
                    break;
                }
            }
        }
        self.literal(emitted, self.data.len());
    }

    /// The next position after `from` whose four bytes occurred before, and where they did. Tries every byte
    /// at first, and fewer the longer there is no match.
    fn next_match(&mut self, from: usize, limit: usize) -> Option<(usize, usize)> {
        let mut ip = from + 1;
        let mut skip = 32;
        loop {
            let step = skip >> 5;
            skip += step;
            if ip + step > limit {
                return None;
            }
            let candidate = self.swap_entry(ip);
            if self.word(candidate) == self.word(ip) {
                return Some((ip, candidate));
            }
            ip += step;
        }
    }

    fn word(&self, at: usize) -> u32 {
        let bytes = &self.data[at..at + 4];
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }

    /// Records position `at` in the table; returns the position recorded before.
    fn swap_entry(&mut self, at: usize) -> usize {
        let hash = self.word(at).wrapping_mul(HASH_FACTOR) >> (32 - MAX_TABLE_BITS);
        let slot = hash as usize & (self.table.len() - 1);
        std::mem::replace(&mut self.table[slot], at as u16).into()
    }

    /// The number of bytes that are equal from `a` and from `b` on; `a < b`.
    fn common(&self, a: usize, b: usize) -> usize {
        self.data[b..].iter().zip(&self.data[a..]).take_while(|(x, y)| x == y).count()
    }

    fn put(&mut self, bytes: &[u8]) {
        self.out[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    fn literal(&mut self, start: usize, end: usize) {
        let literal = &self.data[start..end];
        match literal.len() {
            0 => return,
            length @ 1..=60 => self.put(&[(length as u8 - 1) << 2]),
            length @ 61..=256 => self.put(&[60 << 2, (length - 1) as u8]),
            length => {
                let [low, high] = (length as u16 - 1).to_le_bytes();
                self.put(&[61 << 2, low, high]);
            }
        }
        self.put(literal);
    }

    fn copy(&mut self, offset: usize, mut length: usize) {
        // Leaves at least four bytes for the last copy.
        while length >= 68 {
            self.copy_up_to_64(offset, 64);
            length -= 64;
        }
        if length > 64 {
            self.copy_up_to_64(offset, 60);
            length -= 60;
        }
        self.copy_up_to_64(offset, length);
    }

    fn copy_up_to_64(&mut self, offset: usize, length: usize) {
        let [low, high] = (offset as u16).to_le_bytes();
        if length < 12 && offset < 2048 {
            self.put(&[0b01 | (length as u8 - 4) << 2 | high << 5, low]);
        } else {
            self.put(&[0b10 | (length as u8 - 1) << 2, low, high]);
        }
    }
}
