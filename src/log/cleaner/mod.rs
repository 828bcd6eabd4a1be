//! Compaction and redaction: a partition written anew without some of its records
//! (Kafka's `Cleaner`, `LogCleanerManager`, `CleanedTransactionMetadata`).
//!
//! ```text
//! plan_compaction -> index_keys (runs of chunks) -> reduce_keys (parts of the hash), LogFacts (fold)
//!                 -> clean_group (groups of segments) -> finish_partition
//! plan_redaction  -> index_keys -> LogFacts (fold) -> clean_group -> finish_partition -> check_segment
//! ```
//!
//! Steps over plain data, as reading is: threads or a cluster can do them. [`compact_partition`] does
//! them in order in one process.

pub(crate) mod check;
pub(crate) mod clean;
pub(crate) mod compact;
pub(crate) mod decodable;
pub(crate) mod index_keys;
pub(crate) mod key_map;
pub(crate) mod key_set;
pub(crate) mod last_records;
pub(crate) mod plan;
pub(crate) mod prior_state;
pub(crate) mod transaction_metadata;
