//! Bytes and primitives: a checked cursor, a writer, varints, checksums. Knows nothing of records.

pub(crate) mod ahead;
pub(crate) mod checksum;
pub(crate) mod cursor;
pub(crate) mod range_checksum;
pub(crate) mod room;
pub(crate) mod varint;
pub(crate) mod writer;
