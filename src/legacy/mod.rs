//! Magic 0 and 1: messages, and wrappers whose value holds compressed messages
//! (Kafka's `LegacyRecord` and `AbstractLegacyRecordBatch`).

mod batch;
mod builder;
mod iter;
mod message;

pub use batch::LegacyBatch;
pub(crate) use builder::{MessageSetBuilder, set_overhead};
pub use iter::MessageIter;
pub(crate) use message::RECORD_OVERHEAD_V0;
