//! Writing a partition: segments, their indexes, and the sidecars whose state spans segments.

pub(crate) mod durable;
pub(crate) mod follower_log;
pub(crate) mod forget;
pub(crate) mod open_transactions;
pub(crate) mod options;
pub(crate) mod partition_fold;
pub(crate) mod partition_writer;
pub(crate) mod rebuild;
pub(crate) mod rewriter;
pub(crate) mod segment_fold;
pub(crate) mod segment_writer;
