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

mod check;
mod clean;
mod compact;
mod compaction;
mod facts;
mod index;
mod key_map;
mod key_set;
mod places;
mod said;
mod sound;

pub use check::{CheckedSegment, Leak, check_segment};
pub use clean::{CleanCounts, CleanOptions, Cleaned, RedactedOffsets, Rule, Selection, clean_group};
pub use compact::{CompactRun, compact_partition};
pub use compaction::{
    CleanerChunk, CompactOptions, Compaction, SegmentGroup, plan_compaction, plan_redaction,
};
pub use facts::LogFacts;
pub use index::{IndexedChunk, IndexedKeys, index_keys};
pub use key_map::KeyMapOptions;
pub use key_set::KeySet;
pub use places::reduce_keys;
