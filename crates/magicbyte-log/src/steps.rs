//! The steps of jobs over many partitions, for engines that distribute them. The values passed between steps
//! are plain data (JSON with the feature `serde`).
//!
//! ```text
//! read      is_partition, list_partition -> survey_segment -> plan_partition -> ChunkReader -> reconcile
//! explain   list_partition -> segment_history -> partition_history
//! rewrite   a plan -> rewrite_chunks -> finish_partition
//! merge     plans of copies -> align -> plan_merge -> repair_holes, then as rewrite
//! clean     a plan -> plan_compaction | plan_redaction -> index_keys -> reduce_keys, ProducerSummary -> clean_group
//!           -> finish_partition -> check_segment
//! ```

pub use crate::chunk::{Chunk, DEFAULT_CHUNK_BYTES};
pub use crate::cleaner::check::{CheckedSegment, Leak, check_segment};
pub use crate::cleaner::clean::{
    CleanCounts, CleanOptions, Cleaned, RedactedOffsets, Rule, Selection, clean_group,
};
pub use crate::cleaner::index_keys::{IndexedChunk, IndexedKeys, index_keys};
pub use crate::cleaner::key_set::KeySet;
pub use crate::cleaner::last_records::reduce_keys;
pub use crate::cleaner::plan::{CleanerChunk, Compaction, SegmentGroup, plan_compaction, plan_redaction};
pub use crate::cleaner::producer_summary::ProducerSummary;
pub use crate::history::event::HistoryEvent;
pub use crate::history::partition_history::partition_history;
pub use crate::history::segment_history::{
    OffsetGap, SegmentHistory, SkippedRange, StepBack, segment_history,
};
pub use crate::located::Located;
pub use crate::merge::align::align;
pub use crate::merge::model::{
    AlignedCopy, Alignment, Damage, LeftOut, LeftOutReason, MAX_COPIES, MergeOptions, MergePlan, MergedCopy,
    MergedRange, MergedSegment, Run, Share,
};
pub use crate::merge::plan::plan_merge;
pub use crate::merge::repair::repair_holes;
pub use crate::names::{is_partition, is_segment_file};
pub use crate::read::accounting::{join_results, reconcile, reconcile_fetched};
pub use crate::read::chunk_reader::{BatchCounts, ChunkReader};
pub use crate::read::header_scan::{survey_grown, survey_segment};
pub use crate::read::name_order::{is_in_name_order, segments_from};
pub use crate::read::plan::{Plan, PlanSegment, plan_partition};
pub use crate::read::survey::{Border, Survey};
pub use crate::read::survey_in_parts::SurveyInParts;
pub use crate::read::timestamps::{offset_for_timestamp, start_for_timestamp};
pub use crate::read::trim::trim_chunk;
pub use crate::runs::batch_run::{BatchRun, FoundRuns, ProducerRun, find_runs};
pub use crate::runs::marks::BatchMark;
pub use crate::write::rewriter::{RewriteOptions, Rewritten, rewrite_chunks};
