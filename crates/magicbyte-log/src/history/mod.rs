//! The report of `explain`: what producers, transactions and leaders did, judged by the log's batch headers.

pub(crate) mod bins;
pub(crate) mod event;
pub(crate) mod model;
pub(crate) mod partition_history;
pub(crate) mod segment_history;
