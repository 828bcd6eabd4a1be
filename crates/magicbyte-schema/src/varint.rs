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

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn every_size() {
        for bits in 0..=63 {
            for value in [(1_u64 << bits) - 1, 1 << bits, (1 << bits) | 0x55] {
                let mut bytes = Vec::new();
                let mut rest = value;
                while rest >= 0x80 {
                    bytes.push(rest as u8 | 0x80);
                    rest >>= 7;
                }
                bytes.push(rest as u8);
                let size = bytes.len();
                bytes.extend([0xff; 7]);
                assert_eq!(short(&bytes), (size <= 8).then_some((value, size)), "{value:#x}");
            }
        }
        assert_eq!(short(&[]), None);
        assert_eq!(short(&[0x80; 12]), None);
        // Longer than it needs to be.
        assert_eq!(short(&[0x81, 0x80, 0x00, 0, 0, 0, 0, 0]), Some((1, 3)));
    }
}
