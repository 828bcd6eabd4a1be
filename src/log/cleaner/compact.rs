//! All steps of a compaction in order, in one process.

use std::path::{Path, PathBuf};

use super::super::{
    LogResult, OnError, PlanOptions, Survey, WriteOptions, begin_partition, finish_partition, list_partition,
    plan_partition, survey_segment,
};
use super::{
    CleanCounts, CleanOptions, CompactOptions, KeyMapOptions, LogFacts, Rule, clean_group, index_keys,
    plan_compaction, reduce_keys,
};
use crate::DEFAULT_MAX_DECOMPRESSED_BYTES;

/// Compacts the partition in `source` into the new directory `target`. The map of keys takes `memory`
/// bytes; what is more goes to files beside the target. Producers last heard of at `expired_until` (ms) or
/// before are forgotten. Damage is left out with [`OnError::Skip`]: a job reports it.
///
/// # Errors
/// [`LogError::Io`]; with [`OnError::Fail`] [`LogError::Format`] at the first damage;
/// [`LogError::Usage`] if the target is there already.
///
/// [`LogError::Io`]: super::super::LogError::Io
/// [`LogError::Format`]: super::super::LogError::Format
/// [`LogError::Usage`]: super::super::LogError::Usage
pub fn compact_partition(
    source: &Path,
    target: &Path,
    options: &CompactOptions,
    expired_until: Option<i64>,
    memory: usize,
    on_error: OnError,
) -> LogResult<CleanCounts> {
    let listing = list_partition(source, false)?;
    let surveys: Vec<Survey> = listing.segments.iter().map(survey_segment).collect::<LogResult<_>>()?;
    let chunk_bytes = u64::MAX;
    let plan = plan_partition(&listing, &surveys, PlanOptions { chunk_bytes, ..PlanOptions::default() })?;
    let compaction = plan_compaction(&plan, &listing, options)?;
    let directory = begin_partition(target)?;
    let scratch = directory.join("keys");

    let chunks: Vec<_> = compaction.groups.iter().flat_map(|group| group.chunks.clone()).collect();
    let size: u64 = plan.segments.iter().map(|one| one.segment.size).sum();
    let parts = if size <= memory as u64 { 1 } else { 16 };
    let keys = KeyMapOptions {
        seed: std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0),
        memory,
        parts,
    };
    let limit = DEFAULT_MAX_DECOMPRESSED_BYTES;
    let indexed = index_keys(&chunks, Some((&scratch, keys)), limit, on_error)?;
    let mut lists: Vec<PathBuf> = Vec::new();
    for (part, file) in indexed.files.into_iter().enumerate() {
        if let Some(file) = file {
            lists.extend(reduce_keys(&[file], &scratch.join(format!("part-{part:02}")), keys)?);
        }
    }
    let facts = LogFacts::of(&[indexed.producers], expired_until);
    let clean = CleanOptions {
        rule: Rule::Compact { now: options.now, delete_retention_ms: options.delete_retention_ms, lists },
        clean_until: compaction.clean_until,
        max_decompressed_bytes: limit,
        on_error,
        write: WriteOptions::default(),
    };
    let (mut counts, mut segments, mut rest) = (CleanCounts::default(), Vec::new(), &*indexed.chunks);
    for group in &compaction.groups {
        let (own, behind) = rest.split_at(group.chunks.len());
        rest = behind;
        let cleaned = clean_group(group, own, &facts, &directory, &clean)?;
        counts.add(&cleaned.counts);
        segments.extend(cleaned.segments);
    }
    finish_partition(target, &segments, None, Some(source))?;
    Ok(counts)
}
