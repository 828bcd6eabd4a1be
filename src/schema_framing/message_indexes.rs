//! The message that a Protobuf payload is: its path in its file.

use std::borrow::Cow;

use crate::bytes::cursor::Cursor;
use crate::error::{ErrorKind, Result};

/// The path of a Protobuf message in its file: an index for each level of nesting. It borrows the usual paths, of the
/// first 64 messages that are not inside another.
pub type MessageIndexes = Cow<'static, [i32]>;

/// The message indexes of the usual paths.
static FIRST: [i32; 64] = {
    let mut indexes = [0; 64];
    let mut index = 0;
    while index < indexes.len() {
        indexes[index] = index as i32;
        index += 1;
    }
    indexes
};

/// The message indexes at the start of `data`, and the bytes after them. A single byte 0 is short for the first
/// message. A count that is odd would be negative: then the numbers are read as Protobuf's plain varints, as some clients
/// write them.
///
/// # Errors
/// With the position of the first byte of the number that is at fault: [`ErrorKind::UnexpectedEnd`],
/// [`ErrorKind::InvalidVarint`], [`ErrorKind::InvalidCount`] for more indexes than `data` has bytes,
/// [`ErrorKind::InvalidRecord`] for a negative index.
#[inline]
pub fn parse_message_indexes(data: &[u8]) -> Result<(MessageIndexes, &[u8])> {
    match data {
        [0, rest @ ..] => Ok((Cow::Borrowed(&FIRST[..1]), rest)),
        // One index, whose varint is one byte and not negative.
        [2, index, rest @ ..] if index & 0x81 == 0 => {
            Ok((Cow::Borrowed(std::slice::from_ref(&FIRST[usize::from(index / 2)])), rest))
        }
        _ => parse_other_indexes(data),
    }
}

fn parse_other_indexes(data: &[u8]) -> Result<(MessageIndexes, &[u8])> {
    if let Some(plain) = parse_plain_indexes(data) {
        return Ok(plain);
    }
    let mut cursor = Cursor::new(data);
    let mut start = 0;
    let indexes = read_indexes(&mut cursor, &mut start)
        .map_err(|e| e.in_field("messageIndexes").at_position(start as u64))?;
    Ok((indexes, &data[cursor.position()..]))
}

/// The message indexes without zigzag. An even count reads as one with zigzag, so that only odd ones are certain.
fn parse_plain_indexes(data: &[u8]) -> Option<(MessageIndexes, &[u8])> {
    let (count, mut rest) = plain_varint(data)?;
    if count % 2 == 0 || count as usize > rest.len() {
        return None;
    }
    let mut indexes = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let (index, after) = plain_varint(rest)?;
        indexes.push(i32::try_from(index).ok()?);
        rest = after;
    }
    Some((Cow::Owned(indexes), rest))
}

/// A varint of Protobuf that fits into 32 bits, and the bytes after it.
pub(super) fn plain_varint(data: &[u8]) -> Option<(u32, &[u8])> {
    let mut value = 0_u64;
    for (place, &byte) in data.iter().enumerate().take(5) {
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some((u32::try_from(value).ok()?, &data[place + 1..]));
        }
    }
    None
}

/// `start` is left at the number that was read last.
fn read_indexes(cursor: &mut Cursor<'_>, start: &mut usize) -> Result<MessageIndexes> {
    let count = cursor.varint()?;
    if count == 0 {
        return Ok(Cow::Borrowed(&FIRST[..1]));
    }
    // Each index takes a byte at least.
    if usize::try_from(count).is_ok_and(|count| count <= cursor.remaining()) {
        let indexes = (0..count).map(|_| {
            *start = cursor.position();
            match cursor.varint()? {
                index @ 0.. => Ok(index),
                _ => Err(ErrorKind::InvalidRecord("a message index is negative").into()),
            }
        });
        return indexes.collect();
    }
    Err(ErrorKind::InvalidCount(count.into()).into())
}
