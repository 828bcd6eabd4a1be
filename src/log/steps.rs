//! The steps of jobs over many partitions, for engines that distribute them. The values passed between steps
//! are plain data (JSON with the feature `serde`).
//!
//! ```text
//! read      is_partition, list_partition -> survey_segment -> plan_partition -> ChunkReader -> reconcile
//! explain   list_partition -> segment_history -> partition_history
//! rewrite   a plan -> rewrite_chunks -> finish_partition
//! clean     a plan -> plan_compaction | plan_redaction -> index_keys -> reduce_keys, ProducerSummary -> clean_group
//!           -> finish_partition -> check_segment
//! ```

pub use crate::log::chunk::{Chunk, DEFAULT_CHUNK_BYTES};
pub use crate::log::cleaner::check::{CheckedSegment, Leak, check_segment};
pub use crate::log::cleaner::clean::{
    CleanCounts, CleanOptions, Cleaned, RedactedOffsets, Rule, Selection, clean_group,
};
pub use crate::log::cleaner::index_keys::{IndexedChunk, IndexedKeys, index_keys};
pub use crate::log::cleaner::key_set::KeySet;
pub use crate::log::cleaner::last_records::reduce_keys;
pub use crate::log::cleaner::plan::{
    CleanerChunk, Compaction, SegmentGroup, plan_compaction, plan_redaction,
};
pub use crate::log::cleaner::producer_summary::ProducerSummary;
pub use crate::log::history::event::HistoryEvent;
pub use crate::log::history::partition_history::partition_history;
pub use crate::log::history::segment_history::{
    OffsetGap, SegmentHistory, SkippedRange, StepBack, segment_history,
};
pub use crate::log::names::{is_partition, is_segment_file};
pub use crate::log::read::accounting::reconcile;
pub use crate::log::read::chunk_reader::{BatchCounts, ChunkReader};
pub use crate::log::read::header_scan::{survey_grown, survey_segment};
pub use crate::log::read::name_order::{is_in_name_order, segments_from};
pub use crate::log::read::plan::{Plan, PlanSegment, plan_partition};
pub use crate::log::read::seek::offset_for_timestamp;
pub use crate::log::read::survey::{Border, Survey};
pub use crate::log::read::survey_in_parts::SurveyInParts;
pub use crate::log::read::trim::trim_chunk;
pub use crate::log::write::rewriter::{RewriteOptions, Rewritten, rewrite_chunks};
