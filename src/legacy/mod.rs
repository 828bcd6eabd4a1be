//! Magic 0 and 1: messages, and wrappers whose value holds compressed messages
//! (Kafka's `LegacyRecord` and `AbstractLegacyRecordBatch`).

mod batch;
mod builder;
mod iter;
mod message;

pub use batch::LegacyBatch;
pub(crate) use builder::{MessageFields, MessageSetBuilder, set_overhead, write_crc};
pub use iter::MessageIter;
pub(crate) use iter::split_message;
pub(crate) use message::{COMPRESSION, LOG_APPEND_TIME, LOG_OVERHEAD, RECORD_OVERHEAD_V0, at};
