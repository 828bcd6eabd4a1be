//! Kafka's varints: zigzag, little-endian groups of seven bits (`ByteUtils`).

use crate::error::{ErrorKind, Result};

/// Reads an unsigned varint of up to 5 bytes. As Kafka does: overlong forms are accepted, bits
/// beyond the 32nd in the fifth byte are dropped, a fifth byte that says "more" is an error.
#[inline(always)]
pub(crate) fn read_unsigned(data: &[u8], at: &mut usize) -> Result<u32> {
    let Some(&first) = data.get(*at) else { return Err(ErrorKind::UnexpectedEnd.into()) };
    if first < 0x80 {
        *at += 1;
        return Ok(u32::from(first));
    }
    read_unsigned_long_form(data, at)
}

#[inline]
fn read_unsigned_long_form(data: &[u8], at: &mut usize) -> Result<u32> {
    let mut value = 0u32;
    for (index, shift) in (0..35).step_by(7).enumerate() {
        let Some(&byte) = data.get(*at + index) else { return Err(ErrorKind::UnexpectedEnd.into()) };
        value |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            *at += index + 1;
            return Ok(value);
        }
    }
    Err(ErrorKind::InvalidVarint.into())
}

/// Reads a zigzag varint of up to 5 bytes.
#[inline(always)]
pub(crate) fn read_i32(data: &[u8], at: &mut usize) -> Result<i32> {
    let raw = read_unsigned(data, at)?;
    Ok((raw >> 1) as i32 ^ -((raw & 1) as i32))
}

/// Reads a zigzag varlong of up to 10 bytes.
#[inline(always)]
pub(crate) fn read_i64(data: &[u8], at: &mut usize) -> Result<i64> {
    let mut value = 0u64;
    for (index, shift) in (0..70).step_by(7).enumerate() {
        let Some(&byte) = data.get(*at + index) else { return Err(ErrorKind::UnexpectedEnd.into()) };
        value |= u64::from(byte & 0x7f).wrapping_shl(shift);
        if byte < 0x80 {
            *at += index + 1;
            return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
        }
    }
    Err(ErrorKind::InvalidVarint.into())
}

/// Zigzag: small numbers of either sign get small. The same bytes for 32 and 64 bits.
#[inline(always)]
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Bytes of the shortest zigzag form of `value`: 1 to 10.
#[inline(always)]
pub(crate) fn size_of(value: i64) -> usize {
    // A seventh of the bits, rounded up, without a division: exact up to 64 bits.
    ((zigzag(value) | 1).ilog2() as usize * 9 + 73) / 64
}

/// Writes the shortest zigzag form of `value` to the start of `out`, which has room for it;
/// returns its size.
#[inline(always)]
pub(crate) fn write(value: i64, out: &mut [u8]) -> usize {
    write_unsigned(zigzag(value), out)
}

/// As [`write`], without zigzag.
#[inline(always)]
pub(crate) fn write_unsigned(mut raw: u64, out: &mut [u8]) -> usize {
    let mut at = 0;
    while raw >= 0x80 {
        out[at] = raw as u8 | 0x80;
        raw >>= 7;
        at += 1;
    }
    out[at] = raw as u8;
    at + 1
}

/// Appends the shortest zigzag form of `value` to `out`, which has room for it: nothing is called for
/// the one or two bytes of most.
#[inline(always)]
pub(crate) fn append(value: i64, out: &mut Vec<u8>) {
    let raw = zigzag(value);
    if raw < 0x80 {
        out.push(raw as u8);
    } else if raw < 0x4000 {
        out.extend_from_slice(&[raw as u8 | 0x80, (raw >> 7) as u8]);
    } else {
        encode_varint(value, out);
    }
}

/// Appends the shortest zigzag form of `value`: 1 to 10 bytes.
pub fn encode_varint(value: i64, out: &mut Vec<u8>) {
    let mut bytes = [0; 10];
    let size = write(value, &mut bytes);
    out.extend_from_slice(&bytes[..size]);
}

/// Reads a zigzag varint (64-bit) at `position`: the value and the position behind it.
///
/// # Errors
/// [`ErrorKind::UnexpectedEnd`] if the data ends inside it, [`ErrorKind::InvalidVarint`] beyond
/// 10 bytes.
///
/// ```
/// let mut out = Vec::new();
/// magicbyte::encode_varint(-64, &mut out);
/// assert_eq!(out, [0x7f]);
/// assert_eq!(magicbyte::decode_varint(&out, 0).unwrap(), (-64, 1));
/// ```
pub fn decode_varint(data: &[u8], position: usize) -> Result<(i64, usize)> {
    let mut at = position;
    let value = read_i64(data, &mut at)?;
    Ok((value, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_borders() {
        for value in [0, -1, 1, 63, 64, -64, -65, 8191, 8192, i64::from(i32::MAX), i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            encode_varint(value, &mut out);
            assert_eq!(decode_varint(&out, 0).unwrap(), (value, out.len()));
            assert_eq!(size_of(value), out.len());
            if let Ok(small) = i32::try_from(value) {
                let mut at = 0;
                assert_eq!(read_i32(&out, &mut at).unwrap(), small);
                assert_eq!(at, out.len());
            }
        }
    }

    #[test]
    fn forms_kafka_accepts_and_refuses() {
        let read = |bytes: &[u8]| read_i32(bytes, &mut 0).map_err(|e| e.kind().clone());
        assert_eq!(read(&[0x80, 0x80, 0x80, 0x80, 0x00]), Ok(0), "overlong");
        assert_eq!(read(&[0xff, 0xff, 0xff, 0xff, 0x7f]), Ok(i32::MIN), "extra bits of byte 5 dropped");
        assert_eq!(read(&[0xff; 5]), Err(ErrorKind::InvalidVarint));
        assert_eq!(read(&[0x80]), Err(ErrorKind::UnexpectedEnd));
        assert_eq!(read(&[]), Err(ErrorKind::UnexpectedEnd));
        assert_eq!(read_i64(&[0x80; 10], &mut 0).unwrap_err().kind(), &ErrorKind::InvalidVarint);
        assert_eq!(read_i64(&[0x80; 9], &mut 0).unwrap_err().kind(), &ErrorKind::UnexpectedEnd);
    }
}
