//! Checksums of arbitrary ranges of a buffer at nearly constant cost, using the algebra of CRCs.
//!
//! A CRC is a remainder of polynomials over GF(2): `crc(a ++ b) = crc(a) * x^(8 * |b|) + crc(b)`. Given the
//! checksums of a buffer's prefixes, the checksum of a range takes one such product. This keeps a scan for
//! batches linear even if forged headers claim long, overlapping ranges.

use std::sync::LazyLock;

use crate::bytes::checksum::{crc32, crc32c};

/// The distance between the prefixes that are kept, in bytes.
const STRIDE: usize = 1 << 8;

/// A checksum algorithm: one of the two that Kafka has.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// CRC-32C, of magic 2.
    Castagnoli,
    /// CRC-32, of magic 0 and 1.
    Ieee,
}

#[doc(hidden)]
impl Algorithm {
    /// The polynomial, bits reflected.
    fn polynomial(self) -> u32 {
        match self {
            Self::Castagnoli => 0x82f6_3b78,
            Self::Ieee => 0xedb8_8320,
        }
    }

    #[must_use]
    pub fn checksum(self, data: &[u8]) -> u32 {
        match self {
            Self::Castagnoli => crc32c(data, 0),
            Self::Ieee => crc32(data),
        }
    }

    /// The checksum of two adjacent ranges; `second` is that of the second range, of `length` bytes.
    #[must_use]
    pub fn join(self, first: u32, second: u32, length: u64) -> u32 {
        self.shift(first, length) ^ second
    }

    /// Like [`join`](Self::join) for a few bytes, but without its products. The checksum of the preceding
    /// bytes is the start value of the CRC, which amounts to a change of the first four bytes.
    fn append(self, before: u32, data: &[u8]) -> u32 {
        let mut copy = [0; STRIDE];
        let Some(copy) = copy.get_mut(..data.len()).filter(|copy| copy.len() >= 4) else {
            return self.join(before, self.checksum(data), data.len() as u64);
        };
        copy.copy_from_slice(data);
        copy.iter_mut().zip(before.to_le_bytes()).for_each(|(byte, before)| *byte ^= before);
        self.checksum(copy)
    }

    /// `crc * x^(8 * bytes)`.
    fn shift(self, mut crc: u32, bytes: u64) -> u32 {
        static CASTAGNOLI: LazyLock<Powers> = LazyLock::new(|| powers(Algorithm::Castagnoli));
        static IEEE: LazyLock<Powers> = LazyLock::new(|| powers(Algorithm::Ieee));
        let powers = match self {
            Self::Castagnoli => &CASTAGNOLI,
            Self::Ieee => &IEEE,
        };
        for (digit, powers) in bytes.to_le_bytes().into_iter().zip(powers.iter()) {
            if digit > 0 {
                crc = self.multiply(crc, powers[usize::from(digit)]);
            }
        }
        crc
    }

    /// The product of two polynomials modulo the CRC's own; the highest bit is x^0.
    fn multiply(self, a: u32, mut b: u32) -> u32 {
        let mut product = 0;
        for bit in (0..32).rev() {
            product ^= b & (a >> bit & 1).wrapping_neg();
            b = (b >> 1) ^ (self.polynomial() & (b & 1).wrapping_neg());
        }
        product
    }

    /// The shortest prefix of `data`, of at least `min_length` bytes, that has this checksum together with
    /// the bytes before `data`, whose checksum is `before`. Returns its length, and the checksum up to the
    /// end of the prefix or, if there is none, of `data`. Cost: one table lookup per byte.
    #[must_use]
    pub fn prefix_with(
        self,
        checksum: u32,
        before: u32,
        data: &[u8],
        min_length: usize,
    ) -> (Option<usize>, u32) {
        static CASTAGNOLI: LazyLock<[u32; 256]> = LazyLock::new(|| bytewise(Algorithm::Castagnoli));
        static IEEE: LazyLock<[u32; 256]> = LazyLock::new(|| bytewise(Algorithm::Ieee));
        let table: &[u32; 256] = match self {
            Self::Castagnoli => &CASTAGNOLI,
            Self::Ieee => &IEEE,
        };
        let mut state = !before;
        for (index, &byte) in data.iter().enumerate() {
            if index >= min_length && !state == checksum {
                return (Some(index), checksum);
            }
            state = table[usize::from(state as u8 ^ byte)] ^ (state >> 8);
        }
        let found = (data.len() >= min_length && !state == checksum).then_some(data.len());
        (found, !state)
    }

    /// The single bit whose flip changes the checksum of `length` bytes by `syndrome` (stored XOR computed),
    /// as an index that counts from the first byte's lowest bit. `None` if there is no such bit. Cost: one
    /// step per bit, from the last bit to the one found.
    #[must_use]
    pub fn flipped_bit(self, syndrome: u32, length: usize) -> Option<u64> {
        // The last bit that enters the CRC is the last byte's highest; each bit before it has one more
        // power of x.
        let mut trace = self.polynomial();
        for back in 0..length as u64 * 8 {
            if trace == syndrome {
                let from_start = length as u64 * 8 - 1 - back;
                return Some(from_start);
            }
            trace = (trace >> 1) ^ (self.polynomial() & (trace & 1).wrapping_neg());
        }
        None
    }
}

/// `[k][d]` is x^(8 * d * 256^k): the factor of the k-th base-256 digit of a length.
type Powers = [[u32; 256]; 8];

fn powers(algorithm: Algorithm) -> Powers {
    const ONE: u32 = 1 << 31;
    let mut powers = [[ONE; 256]; 8];
    // x^8.
    let mut step = ONE >> 8;
    for row in &mut powers {
        for digit in 1..256 {
            row[digit] = algorithm.multiply(row[digit - 1], step);
        }
        step = algorithm.multiply(row[255], step);
    }
    powers
}

/// The usual table of a bytewise CRC: the checksum of each single byte, without the initial inversion.
fn bytewise(algorithm: Algorithm) -> [u32; 256] {
    std::array::from_fn(|byte| {
        (0..8).fold(byte as u32, |crc, _bit| (crc >> 1) ^ (algorithm.polynomial() & (crc & 1).wrapping_neg()))
    })
}

/// Checksums of ranges of one buffer. Checksums of its prefixes are computed once, as far as they are needed.
#[doc(hidden)]
#[derive(Debug)]
pub struct RangeChecksum<'a> {
    algorithm: Algorithm,
    data: &'a [u8],
    /// `[i]` is the checksum of the first `i * STRIDE` bytes.
    prefixes: Vec<u32>,
}

#[doc(hidden)]
impl<'a> RangeChecksum<'a> {
    #[must_use]
    pub fn new(algorithm: Algorithm, data: &'a [u8]) -> Self {
        Self { algorithm, data, prefixes: vec![0] }
    }

    /// The checksum of `data[start..end]`; both are within the buffer.
    pub fn of(&mut self, start: usize, end: usize) -> u32 {
        if end - start <= 2 * STRIDE {
            return self.algorithm.checksum(&self.data[start..end]);
        }
        let (before, whole) = (self.prefix(start), self.prefix(end));
        whole ^ self.algorithm.shift(before, (end - start) as u64)
    }

    fn prefix(&mut self, end: usize) -> u32 {
        let whole = end / STRIDE;
        while self.prefixes.len() <= whole {
            let at = (self.prefixes.len() - 1) * STRIDE;
            let before = self.prefixes[self.prefixes.len() - 1];
            self.prefixes.push(self.algorithm.append(before, &self.data[at..at + STRIDE]));
        }
        self.algorithm.append(self.prefixes[whole], &self.data[whole * STRIDE..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(length: u32) -> Vec<u8> {
        (0..length).map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8).collect()
    }

    #[test]
    fn any_range_has_the_checksum_of_its_bytes() {
        let data = bytes(9000);
        for algorithm in [Algorithm::Castagnoli, Algorithm::Ieee] {
            let mut ranges = RangeChecksum::new(algorithm, &data);
            for (start, end) in
                [(0, 9000), (1, 8999), (5, 5), (1023, 4097), (1024, 8192), (700, 2749), (3, 6000), (2, 771)]
            {
                assert_eq!(ranges.of(start, end), algorithm.checksum(&data[start..end]), "{start}..{end}");
            }
        }
    }

    #[test]
    fn the_shortest_prefix_with_a_checksum() {
        let data = bytes(500);
        for algorithm in [Algorithm::Castagnoli, Algorithm::Ieee] {
            for length in 0..=500 {
                let stored = algorithm.checksum(&data[..length]);
                assert_eq!(algorithm.prefix_with(stored, 0, &data, 0).0, Some(length));
                let (before, rest) = data.split_at(length / 2);
                let before = algorithm.checksum(before);
                assert_eq!(
                    algorithm.prefix_with(stored, before, rest, 1).0,
                    Some(length - length / 2).filter(|n| *n > 0)
                );
                assert_eq!(
                    algorithm.prefix_with(!stored, before, rest, 0),
                    (None, algorithm.checksum(&data))
                );
            }
        }
    }

    #[test]
    fn long_shifts() {
        for algorithm in [Algorithm::Castagnoli, Algorithm::Ieee] {
            let once = algorithm.shift(0xdead_beef, 70_000);
            assert_eq!(
                algorithm.shift(algorithm.shift(once, 1 << 33), 5),
                algorithm.shift(once, (1 << 33) + 5)
            );
            let zeros = vec![0; 70_000];
            let data = [&b"magic"[..], &zeros].concat();
            let joined = algorithm.join(algorithm.checksum(b"magic"), algorithm.checksum(&zeros), 70_000);
            assert_eq!(joined, algorithm.checksum(&data));
        }
    }

    #[test]
    fn a_flipped_bit_is_found() {
        for algorithm in [Algorithm::Castagnoli, Algorithm::Ieee] {
            let mut data = bytes(500);
            let right = algorithm.checksum(&data);
            for bit in 0..4000u64 {
                data[bit as usize / 8] ^= 1 << (bit % 8);
                let syndrome = right ^ algorithm.checksum(&data);
                data[bit as usize / 8] ^= 1 << (bit % 8);
                assert_eq!(algorithm.flipped_bit(syndrome, data.len()), Some(bit));
            }
            assert_eq!(algorithm.flipped_bit(0, 500), None);
            let two = algorithm.checksum(&data) ^ {
                data[7] ^= 3;
                algorithm.checksum(&data)
            };
            assert_eq!(algorithm.flipped_bit(two, data.len()), None);
        }
    }
}
