//! Protobuf's wire format: varints, tags, lengths, and fields to skip.

use crate::budget::Budget;
use crate::failure::{Attempt, Failure};

/// Nesting of messages and groups; Protobuf's own implementations refuse more.
pub(crate) const MAX_DEPTH: u32 = 100;

/// How a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WireType {
    Varint,
    Fixed64,
    Length,
    StartGroup,
    EndGroup,
    Fixed32,
}

/// A field's number and how its value is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tag {
    pub(crate) number: u32,
    pub(crate) wire: WireType,
}

/// A position in a payload, and the end of the message or packed list that is being read.
pub(crate) struct Reader<'a> {
    data: &'a [u8],
    position: usize,
    end: usize,
    pub(crate) budget: Budget,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Self { data, position: 0, end: data.len(), budget: Budget::new(data.len()) }
    }

    pub(crate) fn position(&self) -> usize {
        self.position
    }

    pub(crate) fn at_end(&self) -> bool {
        self.position >= self.end
    }

    #[cold]
    pub(crate) fn fail<T>(&self, reason: impl Into<String>) -> Attempt<T> {
        Err(Failure::at(self.position, reason))
    }

    /// A value. As in Google's parsers, its bits beyond the 64th count for nothing.
    #[inline]
    pub(crate) fn varint(&mut self) -> Attempt<u64> {
        match self.data[self.position..self.end].first() {
            Some(&byte) if byte < 0x80 => {
                self.position += 1;
                Ok(byte.into())
            }
            _ => self.long_varint::<10>(),
        }
    }

    /// A tag or a length, which has at most 5 bytes and 32 bits.
    #[inline]
    fn short_varint(&mut self) -> Attempt<u32> {
        match self.data[self.position..self.end].first() {
            Some(&byte) if byte < 0x80 => {
                self.position += 1;
                Ok(byte.into())
            }
            _ => {
                let start = self.position;
                let value = self.long_varint::<5>()?;
                u32::try_from(value).map_err(|_| Failure::at(start, "a tag or length has more than 32 bits"))
            }
        }
    }

    fn long_varint<const MOST: usize>(&mut self) -> Attempt<u64> {
        let mut value = 0_u64;
        let rest = &self.data[self.position..self.end];
        for (index, &byte) in rest.iter().take(MOST).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                self.position += index + 1;
                return Ok(value);
            }
        }
        if rest.len() < MOST {
            self.fail("a varint is cut off")
        } else {
            self.fail(format!("a varint has more than {MOST} bytes"))
        }
    }

    /// # Errors
    /// The field number 0, an unknown wire type, and a tag that is cut off or has more than 32 bits.
    #[inline]
    pub(crate) fn tag(&mut self) -> Attempt<Tag> {
        let start = self.position;
        let tag = self.short_varint()?;
        let wire = match tag & 7 {
            0 => WireType::Varint,
            1 => WireType::Fixed64,
            2 => WireType::Length,
            3 => WireType::StartGroup,
            4 => WireType::EndGroup,
            5 => WireType::Fixed32,
            wire => return Err(Failure::at(start, format!("wire type {wire} does not exist"))),
        };
        match tag >> 3 {
            0 => Err(Failure::at(start, "field number 0: expected one from 1 to 536870911")),
            number => Ok(Tag { number, wire }),
        }
    }

    fn fixed<const N: usize>(&mut self) -> Attempt<[u8; N]> {
        match self.data[self.position..self.end].first_chunk() {
            Some(bytes) => {
                self.position += N;
                Ok(*bytes)
            }
            None => {
                let left = self.end - self.position;
                self.fail(format!("a value is cut off: {left} of {N} bytes"))
            }
        }
    }

    #[inline]
    pub(crate) fn fixed32(&mut self) -> Attempt<[u8; 4]> {
        self.fixed()
    }

    #[inline]
    pub(crate) fn fixed64(&mut self) -> Attempt<[u8; 8]> {
        self.fixed()
    }

    /// A length, and the bytes that it counts.
    #[inline]
    pub(crate) fn bytes(&mut self) -> Attempt<&'a [u8]> {
        let end = self.length()?;
        let bytes = &self.data[self.position..end];
        self.position = end;
        Ok(bytes)
    }

    /// A length; returns where what it counts ends.
    fn length(&mut self) -> Attempt<usize> {
        let start = self.position;
        let length = self.short_varint()?;
        let left = self.end - self.position;
        match usize::try_from(length) {
            Ok(length) if length <= left => Ok(self.position + length),
            _ => Err(Failure::at(start, format!("a length of {length} where {left} bytes are left"))),
        }
    }

    /// Reads a length, and with `read` exactly the bytes that it counts.
    #[inline]
    pub(crate) fn delimited<T>(&mut self, read: impl FnOnce(&mut Self) -> Attempt<T>) -> Attempt<T> {
        let end = self.length()?;
        let outer = std::mem::replace(&mut self.end, end);
        let value = read(self)?;
        self.end = outer;
        Ok(value)
    }

    /// Skips the value of a field that [`Reader::next_field`] returned. `depth` is how deep the message is that has it.
    pub(crate) fn skip(&mut self, tag: Tag, depth: u32) -> Attempt<()> {
        match tag.wire {
            WireType::Varint => self.varint().map(drop),
            WireType::Fixed64 => self.fixed64().map(drop),
            WireType::Fixed32 => self.fixed32().map(drop),
            WireType::Length => self.bytes().map(drop),
            WireType::StartGroup => self.skip_group(tag.number, depth),
            // next_field() does not return one.
            WireType::EndGroup => self.fail("a group that has not begun"),
        }
    }

    fn skip_group(&mut self, number: u32, depth: u32) -> Attempt<()> {
        self.check_depth(depth + 1)?;
        while let Some(tag) = self.next_field(Some(number))? {
            self.skip(tag, depth + 1)?;
        }
        Ok(())
    }

    /// The next field of a message, which is a group of this number or ends where the bytes do; `None` at its end.
    #[inline]
    pub(crate) fn next_field(&mut self, group: Option<u32>) -> Attempt<Option<Tag>> {
        if self.position >= self.end {
            return match group {
                None => Ok(None),
                Some(number) => self.fail(format!("group {number} does not end")),
            };
        }
        let start = self.position;
        let tag = self.tag()?;
        match (tag.wire, group) {
            (WireType::EndGroup, Some(number)) if tag.number == number => Ok(None),
            (WireType::EndGroup, _) => {
                let reason = format!("the end of group {}, which has not begun", tag.number);
                Err(Failure::at(start, reason))
            }
            _ => Ok(Some(tag)),
        }
    }

    /// The fields of a group, which ends after them.
    pub(crate) fn group(&mut self, number: u32, depth: u32) -> Attempt<&'a [u8]> {
        let start = self.position;
        let mut end = start;
        while let Some(tag) = self.next_field(Some(number))? {
            self.skip(tag, depth)?;
            end = self.position;
        }
        Ok(&self.data[start..end])
    }

    /// # Errors
    /// For a message or group that is nested deeper than [`MAX_DEPTH`].
    #[inline]
    pub(crate) fn check_depth(&self, depth: u32) -> Attempt<()> {
        if depth > MAX_DEPTH {
            return self.fail(format!("messages are nested deeper than {MAX_DEPTH}"));
        }
        Ok(())
    }
}
