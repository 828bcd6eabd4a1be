//! A partition's directory: its segments, and how they are read, written, cleaned and repaired (Kafka's
//! `UnifiedLog`, `LocalLog`, `LogSegment`, `LogCleaner`).
//!
//! [`PartitionLog`] reads a partition, [`begin_partition`] and [`PartitionWriter`] write one,
//! [`compact_partition`] compacts one, [`rebuild_sidecars`] rebuilds its indexes, and [`Rescuer`] shows what
//! can be saved from damage. Each consists of steps over plain data, which threads or a cluster can run: see
//! [`steps`].
//!
//! ```
//! use magicbyte_log::{PartitionLog, PlanOptions};
//!
//! # let directory = magicbyte_testing::repository().join("samples/archive-0");
//! let account = PartitionLog::open(&directory)?.verify(PlanOptions::default())?;
//! println!("{} records, {} offsets may be lost", account.rows, account.lost_offsets);
//! assert_eq!(account.size, account.good_bytes + account.quarantined_bytes + account.tail_bytes);
//! # Ok::<(), magicbyte_log::LogError>(())
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

pub(crate) mod chunk;
pub(crate) mod cleaner;
pub(crate) mod error;
pub(crate) mod history;
#[doc(hidden)]
pub mod internals;
pub(crate) mod listing;
mod located;
pub(crate) mod merge;
pub(crate) mod names;
pub(crate) mod problem;
mod process;
pub(crate) mod read;
pub(crate) mod runs;
pub(crate) mod segment;
pub mod steps;
pub(crate) mod storage;
pub(crate) mod unnamed;
pub(crate) mod write;

pub use cleaner::compact::{CompactRun, compact_partition};
pub use cleaner::key_map::KeyMapOptions;
pub use cleaner::plan::CompactOptions;
pub use error::{LogError, LogResult};
pub use history::bins::{Bin, CODECS};
pub use history::model::{
    Anomaly, ControlCount, CoordinatedTransaction, HistoryOptions, PartitionHistory, ProducerHistory,
    TransactionHistory, TransactionOutcome,
};
pub use listing::{IgnoredFile, Listing, PartitionCheckpoints, Segment, Sidecar, list_partition};
pub use names::{DirectoryState, IgnoreReason, SidecarKind};
pub use problem::{LISTED, Problem, Problems};
pub use read::accounting::{ByteRange, ChunkResult, PartitionReconciliation, SegmentReconciliation};
pub use read::chunk_reader::Disposition;
pub use read::live::{Answer, Answers, LiveChunks, LivePartition};
pub use read::options::{DamageMode, PlanOptions, ReadOptions};
pub use read::partition_log::{LogBatch, LogBatches, PartitionLog};
pub use read::rescue::{Repair, Rescued, Rescuer};
pub use segment::reader::{Piece, SegmentBatch, SegmentReader, TailKind};
pub use storage::location::Location;
pub use storage::mounted::Stores;
pub use storage::remote::{Fetch, RemoteStore, StoredFile};
pub use storage::sidecars::read_sidecar;
pub use write::follower_log::{AppendedBatches, BatchInFile, DamagedBatch, FollowerLog, whole_batches};
pub use write::forget::forget_producers;
pub use write::open_transactions::OpenTransaction;
pub use write::options::WriteOptions;
pub use write::partition_fold::SidecarFile;
pub use write::partition_writer::{PartitionWriter, begin_partition, finish_partition};
pub use write::rebuild::{FileChange, RebuildOptions, RebuiltFile, compute_sidecars, rebuild_sidecars};
pub use write::segment_fold::{DEFAULT_INDEX_INTERVAL_BYTES, SegmentSummary};
