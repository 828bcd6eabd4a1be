//! What `explain` reports: what producers, transactions and leaders did, by the headers of the log's batches.

pub(crate) mod bins;
pub(crate) mod event;
pub(crate) mod model;
pub(crate) mod partition_history;
pub(crate) mod segment_history;
