//! Bytes and primitives: a checked cursor, a writer, varints, checksums. Independent of records.

pub(crate) mod checksum;
pub(crate) mod cursor;
pub(crate) mod output_buffer;
pub(crate) mod prefetch;
pub(crate) mod range_checksum;
#[doc(hidden)]
pub mod varint;
pub(crate) mod writer;
