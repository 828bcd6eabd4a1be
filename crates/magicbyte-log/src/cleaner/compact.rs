//! All steps of a compaction, in one process.

use std::fs;
use std::path::{Path, PathBuf};

use magicbyte::DEFAULT_MAX_DECOMPRESSED_BYTES;

use crate::cleaner::clean::{CleanCounts, CleanOptions, Rule, clean_group};
use crate::cleaner::index_keys::index_keys;
use crate::cleaner::key_map::KeyMapOptions;
use crate::cleaner::last_records::reduce_keys;
use crate::cleaner::plan::{CompactOptions, Compaction, plan_compaction};
use crate::cleaner::producer_summary::ProducerSummary;
use crate::error::LogResult;
use crate::listing::list_partition;
use crate::read::header_scan::survey_segment;
use crate::read::options::{DamageMode, PlanOptions};
use crate::read::plan::plan_partition;
use crate::read::survey::Survey;
use crate::storage::location::Location;
use crate::write::options::WriteOptions;
use crate::write::partition_writer::{begin_partition, finish_partition};
use crate::write::segment_fold::SegmentSummary;

/// Options of running a compaction in one process.
#[derive(Clone, Copy, Debug)]
pub struct CompactRun {
    /// Producers whose last timestamp (ms) is not later than this are expired.
    pub expired_until: Option<i64>,
    /// Memory for the map of keys, in bytes; further keys are spilled to files next to the target.
    pub memory_bytes: usize,
    /// The limit for one batch, stored or decompressed, in bytes.
    pub max_decompressed_bytes: usize,
    /// The topic's `max.decompressed.message.bytes`: a larger record in a compressed batch is an error.
    pub record_size_limit: Option<usize>,
    /// The handling of damage, which is an error or is skipped. Only a job reports skipped damage.
    pub mode: DamageMode,
}

impl Default for CompactRun {
    fn default() -> Self {
        Self {
            expired_until: None,
            memory_bytes: 128 << 20,
            max_decompressed_bytes: DEFAULT_MAX_DECOMPRESSED_BYTES,
            record_size_limit: None,
            mode: DamageMode::FailFast,
        }
    }
}

/// Compacts the partition in `source` into the new directory `target`.
///
/// # Errors
/// [`LogError::Io`], also if the target exists; with [`DamageMode::FailFast`], [`LogError::Format`] at the
/// first damage; [`LogError::Usage`] if another writer of the target is at work, or was killed.
///
/// [`LogError::Io`]: crate::LogError::Io
/// [`LogError::Format`]: crate::LogError::Format
/// [`LogError::Usage`]: crate::LogError::Usage
pub fn compact_partition(
    source: impl Into<Location>,
    target: impl AsRef<Path>,
    options: &CompactOptions,
    run: &CompactRun,
) -> LogResult<CleanCounts> {
    let target = target.as_ref();
    let listing = list_partition(source, false)?;
    if run.mode == DamageMode::FailFast {
        listing.check_segments()?;
    }
    let surveys: Vec<Survey> = listing.segments.iter().map(survey_segment).collect::<LogResult<_>>()?;
    let chunk_bytes = u64::MAX;
    let plan = plan_partition(&listing, &surveys, PlanOptions { chunk_bytes, ..PlanOptions::default() })?;
    let compaction = plan_compaction(&plan, &listing, options)?;
    let directory = begin_partition(target)?;
    let size = plan.segments.iter().map(|planned| planned.segment.size).sum();
    let compacted = write(&compaction, size, &directory, options, run).and_then(|(counts, segments)| {
        finish_partition(target, &segments, None, Some(&listing.location))?;
        Ok(counts)
    });
    if compacted.is_err() {
        // The first error matters; leftovers that cannot be removed are not a partition.
        let _ = fs::remove_dir_all(&directory);
    }
    compacted
}

/// Runs both passes; writes the segments into `directory`.
fn write(
    compaction: &Compaction,
    size: u64,
    directory: &Path,
    options: &CompactOptions,
    run: &CompactRun,
) -> LogResult<(CleanCounts, Vec<SegmentSummary>)> {
    let &CompactRun { expired_until, memory_bytes, max_decompressed_bytes, record_size_limit, mode } = run;
    let scratch = directory.join("keys");
    let chunks: Vec<_> = compaction.groups.iter().flat_map(|group| group.chunks.clone()).collect();
    let parts = if size <= memory_bytes as u64 { 1 } else { 16 };
    let keys = KeyMapOptions {
        seed: std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0),
        memory_bytes,
        parts,
    };
    let indexed =
        index_keys(&chunks, Some((&scratch, keys)), max_decompressed_bytes, record_size_limit, mode)?;
    let mut lists: Vec<PathBuf> = Vec::new();
    for (part, file) in indexed.files.into_iter().enumerate() {
        if let Some(file) = file {
            lists.extend(reduce_keys(&[file], scratch.join(format!("part-{part:02}")), keys)?);
        }
    }
    let summary = ProducerSummary::of(&[indexed.producers], expired_until);
    let clean = CleanOptions {
        rule: Rule::Compact { now: options.now, delete_retention_ms: options.delete_retention_ms, lists },
        clean_until: compaction.clean_until,
        max_decompressed_bytes,
        mode,
        write: WriteOptions::default(),
    };
    let (mut counts, mut segments, mut rest) = (CleanCounts::default(), Vec::new(), &*indexed.chunks);
    for group in &compaction.groups {
        let (chunks, later) = rest.split_at(group.chunks.len());
        rest = later;
        let cleaned = clean_group(group, chunks, &summary, directory, &clean)?;
        counts.add(&cleaned.counts);
        segments.extend(cleaned.segments);
    }
    Ok((counts, segments))
}
