//! Varints, as Avro and Protobuf have them: seven bits a byte, the lowest first.

/// A varint of at most 8 bytes that `data` begins with, and its size. Longer ones, those that are cut off, and those in
/// the last bytes of `data` are up to the caller.
#[inline]
pub(crate) fn short(data: &[u8]) -> Option<(u64, usize)> {
    if let Some(&byte) = data.first()
        && byte < 0x80
    {
        return Some((byte.into(), 1));
    }
    let word = u64::from_le_bytes(*data.first_chunk()?);
    // The highest bit of the last byte is the first that is 0.
    let last = !word & 0x8080_8080_8080_8080;
    if last == 0 {
        return None;
    }
    let size = last.trailing_zeros() / 8 + 1;
    let bytes = word & (u64::MAX >> (64 - 8 * size));
    // Closes the gaps between groups of 7 bits, then 14, then 28.
    let pairs = (bytes & 0x007f_007f_007f_007f) | (bytes & 0x7f00_7f00_7f00_7f00) >> 1;
    let fours = (pairs & 0x0000_3fff_0000_3fff) | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    let value = (fours & 0x0000_0000_0fff_ffff) | (fours & 0x0fff_ffff_0000_0000) >> 4;
    Some((value, size as usize))
}

/// A varint of at most `MAX` bytes that `data` begins with, and its size. `None` if it is cut off or longer. Bits beyond
/// 64 are dropped, as Protobuf's readers do.
#[inline]
pub(crate) fn long<const MAX: usize>(data: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (index, &byte) in data.iter().take(MAX).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Some((value, index + 1));
        }
    }
    None
}

/// A varint of at most 64 bits, and its size. Avro allows no further bits.
pub(crate) fn exact(data: &[u8]) -> Option<(u64, usize)> {
    long::<10>(data).filter(|&(_, size)| size < 10 || data[9] <= 1)
}

/// Appends a varint.
#[inline]
pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A signed number as the varint of it, which is small if the number is near 0: 0, -1, 1, -2 are 0, 1, 2, 3.
#[inline]
pub(crate) fn zigzag(value: i64) -> u64 {
    (value as u64) << 1 ^ (value >> 63) as u64
}

/// The number of which [`zigzag`] makes this one.
#[inline]
pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::{exact, long, put, short, unzigzag, zigzag};

    #[test]
    fn numbers_near_0_are_small() {
        for (number, value) in
            [(0, 0), (-1, 1), (1, 2), (-2, 3), (i64::MAX, u64::MAX - 1), (i64::MIN, u64::MAX)]
        {
            assert_eq!((zigzag(number), unzigzag(value)), (value, number));
        }
    }

    #[test]
    fn every_size() {
        for bits in 0..=63 {
            for value in [(1_u64 << bits) - 1, 1 << bits, (1 << bits) | 0x55] {
                let mut bytes = Vec::new();
                put(&mut bytes, value);
                let size = bytes.len();
                assert_eq!(exact(&bytes), Some((value, size)), "{value:#x}");
                assert_eq!(exact(&bytes[..size - 1]), None, "{value:#x}");
                bytes.extend([0xff; 7]);
                assert_eq!(long::<5>(&bytes), (size <= 5).then_some((value, size)), "{value:#x}");
                assert_eq!(short(&bytes), (size <= 8).then_some((value, size)), "{value:#x}");
            }
        }
        assert_eq!(short(&[]), None);
        assert_eq!(short(&[0x80; 12]), None);
        // The tenth byte has the highest of 64 bits only.
        let highest = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1];
        let beyond = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 3];
        assert_eq!((exact(&highest), exact(&beyond)), (Some((1 << 63, 10)), None));
        assert_eq!(long::<10>(&beyond), Some((1 << 63, 10)));
        // Longer than it needs to be.
        assert_eq!(short(&[0x81, 0x80, 0x00, 0, 0, 0, 0, 0]), Some((1, 3)));
    }
}
