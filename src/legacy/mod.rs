//! Magic 0 and 1: messages, and wrappers whose value holds compressed messages
//! (Kafka's `LegacyRecord` and `AbstractLegacyRecordBatch`).

pub(crate) mod batch;
pub(crate) mod builder;
pub(crate) mod iter;
#[doc(hidden)]
pub mod message;

pub use batch::LegacyBatch;
pub(crate) use builder::write_crc;
pub use iter::MessageIter;
pub(crate) use message::{COMPRESSION, LOG_APPEND_TIME, LOG_OVERHEAD, at};
