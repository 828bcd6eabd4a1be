//! Protobuf's wire format: varints, tags, lengths, and fields to skip.

use super::short_bytes::is_ascii;
use crate::budget::Budget;
use crate::failure::{Attempt, Failure};
use crate::varint;

/// Nesting of messages and groups; Protobuf's own implementations refuse more.
pub(crate) const MAX_DEPTH: u32 = 100;

/// The form in which a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WireType {
    Varint,
    Fixed64,
    Length,
    StartGroup,
    EndGroup,
    Fixed32,
}

/// By their numbers.
const WIRE_TYPES: [WireType; 6] = [
    WireType::Varint,
    WireType::Fixed64,
    WireType::Length,
    WireType::StartGroup,
    WireType::EndGroup,
    WireType::Fixed32,
];

/// A field's number and how its value is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tag {
    pub(crate) number: u32,
    pub(crate) wire: WireType,
}

/// The fields of a message whose tags are one byte: how each is stored, and its index.
pub(crate) struct ShortTags([Option<(WireType, u16)>; 0x80]);

impl ShortTags {
    /// `fields` are numbers and indexes.
    pub(crate) fn new(fields: impl IntoIterator<Item = (u32, u16)>) -> Self {
        let mut tags = [None; 0x80];
        for (number, index) in fields {
            for (bits, &wire) in (0..).zip(&WIRE_TYPES) {
                // The end of a group begins no field.
                if wire != WireType::EndGroup
                    && let Some(tag) = tags.get_mut((number << 3 | bits) as usize)
                {
                    *tag = Some((wire, index));
                }
            }
        }
        Self(tags)
    }
}

/// The rest of a message or packed list in a payload.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    /// The position in the payload at which `rest` ends.
    end: usize,
    pub(crate) budget: Budget,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(data: &'a [u8], budget: Budget) -> Self {
        Self { rest: data, end: data.len(), budget }
    }

    #[inline]
    pub(crate) fn position(&self) -> usize {
        self.end - self.rest.len()
    }

    #[inline]
    pub(crate) fn at_end(&self) -> bool {
        self.rest.is_empty()
    }

    #[cold]
    pub(crate) fn fail<T>(&self, reason: impl Into<String>) -> Attempt<T> {
        Err(Failure::at(self.position(), reason))
    }

    /// A value. As in Google's parsers, its bits beyond the 64th count for nothing.
    #[inline]
    pub(crate) fn varint(&mut self) -> Attempt<u64> {
        match varint::short(self.rest) {
            Some((value, size)) => {
                self.rest = &self.rest[size..];
                Ok(value)
            }
            None => self.long_varint::<10>(),
        }
    }

    /// A tag or a length, which has at most 5 bytes and 32 bits.
    #[inline]
    fn short_varint(&mut self) -> Attempt<u32> {
        match self.rest.split_first() {
            Some((&byte, rest)) if byte < 0x80 => {
                self.rest = rest;
                Ok(byte.into())
            }
            _ => self.longer_varint(),
        }
    }

    #[inline(never)]
    fn longer_varint(&mut self) -> Attempt<u32> {
        if let Some((value, size @ ..5)) = varint::short(self.rest) {
            self.rest = &self.rest[size..];
            return Ok(value as u32);
        }
        let start = self.position();
        let value = self.long_varint::<5>()?;
        u32::try_from(value).map_err(|_| Failure::at(start, "a tag or length has more than 32 bits"))
    }

    #[inline(never)]
    fn long_varint<const MAX: usize>(&mut self) -> Attempt<u64> {
        if let Some((value, size)) = varint::long::<MAX>(self.rest) {
            self.rest = &self.rest[size..];
            return Ok(value);
        }
        if self.rest.len() < MAX {
            self.fail("a varint is cut off")
        } else {
            self.fail(format!("a varint has more than {MAX} bytes"))
        }
    }

    /// # Errors
    /// The field number 0, an unknown wire type, and a tag that is cut off or has more than 32 bits.
    #[inline]
    pub(crate) fn tag(&mut self) -> Attempt<Tag> {
        let start = self.position();
        let tag = self.short_varint()?;
        let Some(&wire) = WIRE_TYPES.get((tag & 7) as usize) else {
            return Err(Failure::at(start, format!("wire type {} does not exist", tag & 7)));
        };
        match tag >> 3 {
            0 => Err(Failure::at(start, "field number 0: expected one from 1 to 536870911")),
            number => Ok(Tag { number, wire }),
        }
    }

    #[inline]
    fn fixed<const N: usize>(&mut self) -> Attempt<[u8; N]> {
        match self.rest.split_first_chunk() {
            Some((bytes, rest)) => {
                self.rest = rest;
                Ok(*bytes)
            }
            None => self.fail(format!("a value is cut off: {} of {N} bytes", self.rest.len())),
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

    /// The whole values of `N` bytes that are left.
    #[inline]
    pub(crate) fn all_fixed<const N: usize>(&mut self) -> &'a [[u8; N]] {
        let (values, rest) = self.rest.as_chunks();
        self.rest = rest;
        values
    }

    /// A length, and the bytes that it counts.
    #[inline]
    pub(crate) fn bytes(&mut self) -> Attempt<&'a [u8]> {
        let (bytes, rest) = self.split()?;
        self.rest = rest;
        Ok(bytes)
    }

    /// A length, and the text that it counts.
    #[inline]
    pub(crate) fn text(&mut self) -> Attempt<&'a [u8]> {
        let bytes = self.bytes()?;
        if is_ascii(bytes) { Ok(bytes) } else { self.checked(bytes) }
    }

    /// Checks that the bytes that were read last are UTF-8.
    fn checked(&self, bytes: &'a [u8]) -> Attempt<&'a [u8]> {
        match std::str::from_utf8(bytes) {
            Ok(_) => Ok(bytes),
            Err(error) => {
                let start = self.position() - bytes.len();
                Err(Failure::at(start + error.valid_up_to(), "text that is not UTF-8"))
            }
        }
    }

    /// A length; returns the bytes that it counts, and what follows.
    #[inline(always)]
    fn split(&mut self) -> Attempt<(&'a [u8], &'a [u8])> {
        let start = self.position();
        let length = self.short_varint()?;
        match self.rest.split_at_checked(length as usize) {
            Some(split) => Ok(split),
            None => {
                let left = self.rest.len();
                Err(Failure::at(start, format!("a length of {length} where {left} bytes are left")))
            }
        }
    }

    /// Reads a length, and with `read` exactly the bytes that it counts.
    #[inline(always)]
    pub(crate) fn delimited<T>(&mut self, read: impl FnOnce(&mut Self) -> Attempt<T>) -> Attempt<T> {
        let (inner, outer) = self.split()?;
        self.rest = inner;
        self.end -= outer.len();
        let value = read(self)?;
        self.rest = outer;
        self.end += outer.len();
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

    /// The next field of a message and its index, if `tags` has it; otherwise nothing is read.
    #[inline]
    pub(crate) fn short_tag(&mut self, tags: &ShortTags) -> Option<(Tag, usize)> {
        let (&byte, rest) = self.rest.split_first()?;
        let (wire, index) = (*tags.0.get(usize::from(byte))?)?;
        self.rest = rest;
        Some((Tag { number: u32::from(byte >> 3), wire }, index.into()))
    }

    /// The next field of a message, which is a group of this number or ends where the bytes do; `None` at its end.
    #[inline]
    pub(crate) fn next_field(&mut self, group: Option<u32>) -> Attempt<Option<Tag>> {
        if self.at_end() {
            return match group {
                None => Ok(None),
                Some(number) => self.fail(format!("group {number} does not end")),
            };
        }
        let start = self.position();
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
