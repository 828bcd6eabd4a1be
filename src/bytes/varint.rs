//! Kafka's varints: zigzag, little-endian groups of seven bits (`ByteUtils`).

use crate::error::{ErrorKind, Result};

/// Takes an unsigned varint of up to 5 bytes off the front of `data`. As in Kafka, overlong forms are
/// accepted, bits beyond the 32nd are dropped, and a fifth byte with the continuation bit is an error.
#[inline(always)]
pub(crate) fn read_unsigned(data: &mut &[u8]) -> Result<u32> {
    // Nearly all have one or two bytes.
    match **data {
        [byte @ ..0x80, ref rest @ ..] => {
            *data = rest;
            Ok(byte.into())
        }
        [low, high @ ..0x80, ref rest @ ..] => {
            *data = rest;
            Ok(u32::from(low & 0x7f) | u32::from(high) << 7)
        }
        _ => {
            let (value, rest) = read_long(data, 5)?;
            *data = rest;
            Ok(value as u32)
        }
    }
}

/// Reads a varint of up to `max_size` bytes; returns it with the bytes after it.
#[inline(never)]
fn read_long(data: &[u8], max_size: usize) -> Result<(u64, &[u8])> {
    let mut value = 0u64;
    for (index, &byte) in data.iter().take(max_size).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Ok((value, &data[index + 1..]));
        }
    }
    Err(if data.len() < max_size { ErrorKind::UnexpectedEnd } else { ErrorKind::InvalidVarint }.into())
}

/// Takes a zigzag varint of up to 5 bytes off the front of `data`.
#[doc(hidden)]
#[inline(always)]
pub fn read_i32(data: &mut &[u8]) -> Result<i32> {
    let raw = read_unsigned(data)?;
    Ok((raw >> 1) as i32 ^ -((raw & 1) as i32))
}

/// Takes a zigzag varlong of up to 10 bytes off the front of `data`.
#[doc(hidden)]
#[inline(always)]
pub fn read_i64(data: &mut &[u8]) -> Result<i64> {
    let value = match **data {
        [byte @ ..0x80, ref rest @ ..] => {
            *data = rest;
            byte.into()
        }
        [low, high @ ..0x80, ref rest @ ..] => {
            *data = rest;
            u64::from(low & 0x7f) | u64::from(high) << 7
        }
        // Timestamps within seconds of the first.
        [low, middle, high @ ..0x80, ref rest @ ..] => {
            *data = rest;
            u64::from(low & 0x7f) | u64::from(middle & 0x7f) << 7 | u64::from(high) << 14
        }
        _ => {
            let (value, rest) = read_long(data, 10)?;
            *data = rest;
            value
        }
    };
    Ok((value >> 1) as i64 ^ -((value & 1) as i64))
}

/// Zigzag: maps small numbers of either sign to small ones. 32- and 64-bit numbers get the same bytes.
#[inline(always)]
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Writes the shortest zigzag form of `value` to the start of `out`, which must be long enough; returns its
/// size.
#[doc(hidden)]
#[inline(always)]
pub fn write(value: i64, out: &mut [u8]) -> usize {
    write_unsigned(zigzag(value), out)
}

/// The bytes that [`write`](fn@write) writes: one for each 7 bits.
#[doc(hidden)]
#[inline(always)]
#[must_use]
pub fn size(value: i64) -> usize {
    let bits = u64::BITS - (zigzag(value) | 1).leading_zeros();
    // Rounded up for 1 to 64 bits, without a division by 7.
    ((bits * 9 + 64) / 64) as usize
}

/// Like [`write`](fn@write), but without zigzag.
#[doc(hidden)]
#[inline(always)]
pub fn write_unsigned(mut raw: u64, out: &mut [u8]) -> usize {
    let mut at = 0;
    while raw >= 0x80 {
        out[at] = raw as u8 | 0x80;
        raw >>= 7;
        at += 1;
    }
    out[at] = raw as u8;
    at + 1
}

/// Appends the shortest zigzag form of `value`: 1 to 10 bytes.
pub fn encode_varint(value: i64, out: &mut Vec<u8>) {
    let mut bytes = [0; 10];
    let size = write(value, &mut bytes);
    out.extend_from_slice(&bytes[..size]);
}

/// The shortest zigzag form of a number, encoded once for its size and its bytes.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Varint(u64);

#[doc(hidden)]
impl Varint {
    /// The number of bytes that [`write`](Self::write) may overwrite.
    pub(crate) const MARGIN: usize = size_of::<u64>();
    /// The bytes are in the low bits, their number in the highest byte.
    const SIZE_AT: u32 = 56;

    #[inline(always)]
    #[must_use]
    pub fn of(value: i64) -> Self {
        // Each group of seven bits moves up by one more than the group before, to make room for the
        // continuation bits.
        match zigzag(value) {
            raw @ ..0x80 => Self::from_parts(raw, 1),
            raw @ ..0x4000 => Self::from_parts((raw & 0x7f) | (raw & 0x3f80) << 1 | 0x80, 2),
            // Timestamps within a quarter of an hour of the first.
            raw @ ..0x20_0000 => {
                let groups = (raw & 0x7f) | (raw & 0x3f80) << 1 | (raw & 0x1f_c000) << 2;
                Self::from_parts(groups | 0x8080, 3)
            }
            raw => Self::long(raw),
        }
    }

    #[inline(never)]
    fn long(raw: u64) -> Self {
        let mut bytes = [0; 16];
        let size = write_unsigned(raw, &mut bytes);
        let low = u128::from_le_bytes(bytes) as u64 & ((1 << Self::SIZE_AT) - 1);
        Self::from_parts(low, size as u64)
    }

    #[inline(always)]
    fn from_parts(bytes: u64, size: u64) -> Self {
        Self(bytes | size << Self::SIZE_AT)
    }

    /// Size in bytes, 1 to 10.
    #[inline(always)]
    #[must_use]
    pub fn size(self) -> usize {
        (self.0 >> Self::SIZE_AT) as usize
    }

    /// True if all bytes fit, which [`write`](Self::write) requires. The bytes of any int32 fit.
    #[inline(always)]
    pub(crate) fn is_whole(self) -> bool {
        self.size() < Self::MARGIN
    }

    /// Writes the varint to the start of `out`, which has at least [`MARGIN`](Self::MARGIN) bytes. Bytes
    /// after the varint are overwritten, too. Returns the size of the varint.
    #[inline(always)]
    pub(crate) fn write(self, out: &mut [u8]) -> usize {
        debug_assert!(self.is_whole());
        out[..Self::MARGIN].copy_from_slice(&self.0.to_le_bytes());
        self.size()
    }
}

/// Reads a zigzag varint (64-bit) at `position`; returns the value and the position after it.
///
/// # Errors
/// [`ErrorKind::UnexpectedEnd`] if the data ends inside it, [`ErrorKind::InvalidVarint`] if it has more than
/// 10 bytes.
///
/// ```
/// let mut out = Vec::new();
/// magicbyte::encode_varint(-64, &mut out);
/// assert_eq!(out, [0x7f]);
/// assert_eq!(magicbyte::decode_varint(&out, 0).unwrap(), (-64, 1));
/// ```
pub fn decode_varint(data: &[u8], position: usize) -> Result<(i64, usize)> {
    let mut rest = data.get(position..).unwrap_or_default();
    let value = read_i64(&mut rest)?;
    Ok((value, data.len() - rest.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_borders() {
        let borders =
            (1..63).map(|bits| 1 << bits).flat_map(|border| [border - 1, border, -border, -border - 1]);
        for value in borders.chain([0, 1, i64::MAX, i64::MIN]) {
            let mut out = Vec::new();
            encode_varint(value, &mut out);
            assert_eq!(decode_varint(&out, 0).unwrap(), (value, out.len()));
            let varint = Varint::of(value);
            assert_eq!(varint.size(), out.len());
            assert_eq!(size(value), out.len());
            if varint.is_whole() {
                let mut written = [0; Varint::MARGIN];
                assert_eq!(varint.write(&mut written), out.len());
                assert_eq!(written[..out.len()], out);
            }
            if let Ok(small) = i32::try_from(value) {
                let mut rest = &out[..];
                assert!(varint.is_whole());
                assert_eq!(read_i32(&mut rest).unwrap(), small);
                assert!(rest.is_empty());
            }
        }
    }

    #[test]
    fn forms_kafka_accepts_and_refuses() {
        let read = |mut bytes: &[u8]| read_i32(&mut bytes).map_err(|e| e.kind().clone());
        let read_long = |mut bytes: &[u8]| read_i64(&mut bytes).map_err(|e| e.kind().clone());
        assert_eq!(read(&[0x80, 0x80, 0x80, 0x80, 0x00]), Ok(0), "overlong");
        assert_eq!(read(&[0xff, 0xff, 0xff, 0xff, 0x7f]), Ok(i32::MIN), "extra bits of byte 5 dropped");
        assert_eq!(read(&[0xff; 5]), Err(ErrorKind::InvalidVarint));
        assert_eq!(read(&[0x80]), Err(ErrorKind::UnexpectedEnd));
        assert_eq!(read(&[]), Err(ErrorKind::UnexpectedEnd));
        assert_eq!(read_long(&[0x80; 10]), Err(ErrorKind::InvalidVarint));
        assert_eq!(read_long(&[0x80; 9]), Err(ErrorKind::UnexpectedEnd));
        assert_eq!(read_long(&[&[0xff; 9][..], &[0x7f]].concat()), Ok(i64::MIN), "extra bits dropped");
    }
}
