//! Compaction and redaction: rewriting a partition without some of its records (Kafka's `Cleaner`,
//! `LogCleanerManager`, `CleanedTransactionMetadata`).
//!
//! ```text
//! plan_compaction -> index_keys (runs of chunks) -> reduce_keys (parts of the hash), ProducerSummary (fold)
//!                 -> clean_group (groups of segments) -> finish_partition
//! plan_redaction  -> index_keys -> ProducerSummary (fold) -> clean_group -> finish_partition -> check_segment
//! ```
//!
//! Like reading, these are steps over plain data, which threads or a cluster can run.
//! [`compact_partition`](compact::compact_partition) runs them in order in one process.

pub(crate) mod check;
pub(crate) mod clean;
pub(crate) mod compact;
pub(crate) mod decoded_batch;
pub(crate) mod index_keys;
pub(crate) mod key_map;
pub(crate) mod key_set;
pub(crate) mod last_records;
pub(crate) mod plan;
pub(crate) mod prior_state;
pub(crate) mod producer_summary;
