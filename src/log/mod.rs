//! A partition's directory: segment files, indexes, snapshots, and how they are read in full
//! (Kafka's `UnifiedLog`, `LogSegment`, `LocalLog`, reading side).
//!
//! `list -> survey (one a segment) -> plan (fold) -> read (chunks)`: four steps over plain data, so
//! that threads or a cluster can do them. [`PartitionLog`] does them in order in one process.

mod accounting;
mod blocks;
pub(crate) mod chunk_reader;
mod cleaner;
mod directory;
mod durable;
mod evidence;
mod extent;
mod leader_epoch_checkpoint;
mod offset_index;
mod partition_fold;
mod partition_log;
mod partition_metadata;
mod partition_writer;
mod plan;
mod producer_snapshot;
mod producer_state;
mod rebuild;
mod regular_file;
mod rescue;
mod rewriter;
mod salvage;
mod salvage_scan;
mod seek;
mod segment_fold;
mod segment_reader;
mod segment_writer;
mod story;
mod story_bins;
mod story_model;
mod story_segment;
mod survey;
mod time_index;
mod transaction_index;
mod trim;
mod wrapper;

pub use accounting::{
    ByteRange, ChunkResult, LISTED, PartitionReconciliation, SegmentReconciliation, reconcile,
};
pub use chunk_reader::{BatchCounts, ChunkReader, Disposition};
pub use cleaner::{
    CheckedSegment, CleanCounts, CleanOptions, Cleaned, CleanerChunk, CompactOptions, CompactRun, Compaction,
    IndexedChunk, IndexedKeys, KeyMapOptions, KeySet, Leak, LogFacts, RedactedOffsets, Rule, SegmentGroup,
    Selection, check_segment, clean_group, compact_partition, index_keys, plan_compaction, plan_redaction,
    reduce_keys,
};
pub use directory::{IgnoredFile, Listing, Segment, Sidecar, list_partition};
pub use leader_epoch_checkpoint::{parse_leader_epoch_checkpoint, write_leader_epoch_checkpoint};
pub use offset_index::{OffsetIndexEntry, offset_index_entries, parse_offset_index, write_offset_index};
pub use partition_fold::SidecarFile;
pub use partition_log::{LogBatch, LogBatches, OnError, PartitionLog, ReadOptions};
pub use partition_metadata::{PartitionMetadata, parse_partition_metadata, write_partition_metadata};
pub use partition_writer::{PartitionWriter, WriteOptions, begin_partition, finish_partition};
pub use plan::{
    Chunk, DEFAULT_CHUNK_BYTES, IsolationLevel, Plan, PlanOptions, PlanSegment, Problem, Problems,
    plan_partition,
};
pub use producer_snapshot::{parse_producer_snapshot, write_producer_snapshot};
pub use producer_state::ProducerStateManager;
pub use rebuild::{RebuildOptions, RebuiltFile, compute_sidecars, rebuild_sidecars};
pub use regular_file::read_sidecar;
pub use rescue::{Repair, Rescued, Rescuer};
pub use rewriter::{RewriteOptions, Rewritten, rewrite_chunks};
pub use seek::offset_for_timestamp;
pub use segment_fold::{DEFAULT_INDEX_INTERVAL_BYTES, SegmentSummary};
pub use segment_reader::{Piece, SegmentBatch, SegmentReader, TailKind};
pub use story::tell_story;
pub use story_bins::{Bin, CODECS};
pub use story_model::{
    Anomaly, ControlCount, ProducerStory, Story, StoryOptions, TransactionOutcome, TransactionStory,
};
pub use story_segment::{OffsetGap, SegmentStory, SkippedRange, StepBack, StoryEvent, tell_segment};
pub use survey::{Border, Survey, survey_segment};
pub use time_index::{TimeIndexEntry, parse_time_index, time_index_entries, write_time_index};
pub use transaction_index::{
    AbortedTransaction, collect_aborted_transactions, parse_transaction_index, write_transaction_index,
};
pub use trim::trim_chunk;

pub use crate::state::{AbortedRange, EpochEntry, ProducerEvent, ProducerStateEntry, TransactionEvent};

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What can go wrong with a directory: the operating system, or the bytes.
#[derive(Debug)]
#[non_exhaustive]
pub enum LogError {
    /// A file or directory could not be read.
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file's content is not what its name promises.
    Format {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        error: crate::Error,
    },
    /// The caller asked for something that cannot be.
    Usage(String),
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Format { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Usage(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for LogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Format { error, .. } => Some(error),
            Self::Usage(_) => None,
        }
    }
}

impl LogError {
    fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }
}

/// The result of reading a directory.
pub type LogResult<T> = std::result::Result<T, LogError>;
