//! An experimental magic 3, to measure what ideas for the next format are worth. No broker or client reads it, and no
//! other crate does. [`compare`] measures it beside the real formats; docs/study.md has the results.
//!
//! The base is KIP-931 as written, a proposal that was discarded. Its batch, with what it leaves open:
//!
//! ```text
//! baseOffset: int64, batchLength: int32, partitionLeaderEpoch: int32, magic: int8 = 3, crc: uint32 (CRC-32C from attributes on)
//! attributes: int16            bits 0 to 6 as in magic 2
//! producerId: int64, producerEpoch: int16, baseSequence: int32
//! recordsCount: int32          the KIP's list leaves it out, as it leaves it out of magic 2
//! lastOffsetDelta: varint, baseTimestamp: varlong, maxTimestampDelta: varlong
//! records
//! ```
//!
//! The KIP moves the last three fields "to the trail of the batch headers" and calls `maxTimestampDelta` a varint: a difference
//! of timestamps does not fit into 32 bits, so it is a varlong here, which takes the same bytes where both can hold it.
//!
//! Each [`Idea`] is a bit of the attributes that this crate made up, but for bit 7, which is the KIP's:
//!
//! | bit | idea | source |
//! |---|---|---|
//! | 7 | records without attributes | KIP-931 |
//! | 8 | tagged fields after the batch header | the KIP's page of plans |
//! | 9 | the append time kept beside the records' own times | the KIP's page of plans |
//! | 10 | headers that all records begin with are stored once | the KIP's page of plans |
//! | 11 | the fields of all records first, then their keys, values and headers | the KIP's additional proposal |
//! | 12 | the same as two sections, compressed one by one | a variant of it |

#![forbid(unsafe_code)]

mod comparison;
mod decode;
mod encode;
mod fields;
mod validate;

pub use comparison::{Comparison, Form, compare};
pub use decode::to_magic_2;
pub use encode::Encoder;
pub use fields::{Header3, Idea, Ideas, frames};
pub use validate::{Validated, Validator, validate};
