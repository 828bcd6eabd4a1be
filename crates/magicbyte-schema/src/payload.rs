//! The input of a decoder.

use crate::budget;

/// A key or value without its framing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Payload<'a> {
    /// The bytes after the framing; `None` for a null, which decodes to null.
    pub bytes: Option<&'a [u8]>,
    /// The key of the schema that the payload was written with, as given to `add_writer`, or [`Payload::NO_WRITER`].
    pub writer: u32,
    /// For Protobuf: the path of the message in its file.
    pub message_indexes: &'a [i32],
}

impl Payload<'_> {
    /// The number of its bytes; 0 for a null.
    pub(crate) fn size(&self) -> usize {
        self.bytes.map_or(0, <[u8]>::len)
    }

    /// The most bytes that a compressed payload of this size may inflate to: those that its columns may take.
    #[must_use]
    pub fn max_inflated(compressed: usize) -> usize {
        budget::max_of(compressed)
    }

    /// The key of a payload whose schema is not known: JSON can be read all the same.
    pub const NO_WRITER: u32 = u32::MAX;
}
