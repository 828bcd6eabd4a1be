//! The second step: joins surveys in offset order into a plan of what to read. With `read_committed` it ends
//! at the last stable offset, where a broker ends the data of a `CompletedFetch`. Pure: no file is opened.

use std::collections::{HashMap, HashSet};

use crate::log::chunk::Chunk;
use crate::log::error::{LogError, LogResult};
use crate::log::listing::{IgnoredFile, Listing, Segment};
use crate::log::names::IgnoreReason;
use crate::log::problem::{
    CHECKPOINT_BEYOND_LOG, FILE_UNREADABLE, MISSING_SEGMENT, OVERLAPPING_SEGMENT, Problem,
    TRANSACTION_INDEX_MISMATCH, UNFINISHED_SWAP, UNKNOWN_LOG_FILE, WRONG_BASE_OFFSET,
};
use crate::log::read::offset_ranges::OffsetRanges;
use crate::log::read::options::PlanOptions;
use crate::log::read::survey::Survey;
use crate::state::isolation::{AbortedByProducer, AbortedTransaction, IsolationLevel, last_stable_offset};
use crate::state::leader_epochs::LeaderEpochs;
use crate::state::transactions::{TransactionEvent, Transactions};

/// A segment of a plan, with its survey's findings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct PlanSegment {
    /// The file.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub segment: Segment,
    /// See [`Survey::first_offset`].
    pub first_offset: Option<i64>,
    /// See [`Survey::last_offset`].
    pub last_offset: Option<i64>,
    /// See [`Survey::max_timestamp`].
    pub max_timestamp: i64,
    /// See [`Survey::batches`].
    pub batches: u64,
    /// See [`Survey::transactional`].
    pub transactional: Vec<(u64, i64)>,
}

/// What to read, in offset order, and what is known beforehand.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Plan {
    /// The directory.
    pub path: String,
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// Which records are delivered.
    pub isolation_level: IsolationLevel,
    /// The chunks to decode.
    pub chunks: Vec<Chunk>,
    /// The segments that are part of the log, in offset order.
    pub segments: Vec<PlanSegment>,
    /// Files that are not read, including overlapping segments.
    pub ignored: Vec<IgnoredFile>,
    /// Problems of the directory, its segments and sidecars.
    pub problems: Vec<Problem>,
    /// The offset in the first batch's header.
    pub first_offset: Option<i64>,
    /// The offset after the last one: Kafka's log end offset.
    pub next_offset: Option<i64>,
    /// Where the earliest open transaction begins, else `next_offset`.
    pub last_stable_offset: Option<i64>,
    /// All aborted transactions.
    pub aborted: Vec<AbortedTransaction>,
    /// Where leader epochs begin, according to the batches.
    pub leader_epochs: LeaderEpochs,
}

/// Joins the surveys of a directory's segments, given in any order, into a plan. Of a segment with a part of its survey
/// only, the plan has the chunks before the part's last border.
///
/// # Errors
/// [`LogError::Usage`] if a listed segment has no survey.
pub fn plan_partition(listing: &Listing, surveys: &[Survey], options: PlanOptions) -> LogResult<Plan> {
    let mut plan = Plan {
        path: listing.path.clone(),
        topic: listing.topic.clone(),
        partition: listing.partition,
        isolation_level: options.isolation_level,
        chunks: Vec::new(),
        segments: Vec::new(),
        ignored: listing.ignored.clone(),
        problems: listing.problems.clone(),
        first_offset: None,
        next_offset: None,
        last_stable_offset: None,
        aborted: Vec::new(),
        leader_epochs: LeaderEpochs::default(),
    };
    let by_path: HashMap<_, _> = surveys.iter().map(|survey| (&survey.segment.path, survey)).collect();
    let survey_of = |segment: &Segment| {
        let survey = by_path.get(&segment.path).copied();
        survey.ok_or_else(|| LogError::Usage(format!("segment {} was not surveyed", segment.path)))
    };
    let ordered: Vec<&Survey> = listing.segments.iter().map(survey_of).collect::<LogResult<_>>()?;
    plan.note_unread_files(listing);
    let mut transactions = Transactions::default();
    let mut kept: Vec<(&Survey, Option<i64>)> = Vec::new();
    for survey in ordered {
        let before = kept.last().map(|(before, _)| *before);
        let Some(start_offset) = plan.append(survey, options.start_offset) else { continue };
        if let Some(before) = before {
            plan.note_missing_segment(listing, before, survey);
        }
        kept.push((survey, start_offset));
        plan.problems.extend(survey.problems.iter().cloned());
        // Unreadable bytes are reported by the chunk that has them.
        if let (Some(why), 0) = (&survey.unreadable, survey.segment.size) {
            let segment = &survey.segment;
            plan.problems.push(segment.problem(&segment.file, FILE_UNREADABLE, why.clone()));
        }
        for &event in &survey.transactions {
            let (TransactionEvent::Begin { offset, .. } | TransactionEvent::End { offset, .. }) = event;
            if start_offset.is_none_or(|start| options.start_offset == Some(start) || offset >= start) {
                transactions.apply(event);
            }
        }
        survey.leader_epochs.entries().iter().for_each(|&entry| plan.leader_epochs.replay(entry));
    }
    plan.aborted = transactions.aborted().to_vec();
    let first_unstable = transactions.first_unstable_offset();
    // Damage can hide where the log ends, though not where a transaction begins.
    let end = plan.next_offset.or(first_unstable);
    plan.last_stable_offset = end.map(|end| last_stable_offset(first_unstable, end));
    let mut end_offset = options.end_offset;
    if options.isolation_level == IsolationLevel::ReadCommitted {
        let stable = plan.last_stable_offset.unwrap_or(i64::MAX);
        end_offset = Some(end_offset.unwrap_or(i64::MAX).min(stable));
        for (survey, _) in &kept {
            plan.compare_transaction_index(survey);
        }
    }
    // Only a log that was never compacted has all its offsets; files that the listing misses are missing anyway.
    if kept.iter().any(|(survey, _)| survey.gaps > 0) {
        let found: HashSet<_> = kept.iter().map(|(survey, _)| Some(&survey.segment.file)).collect();
        plan.problems.retain(|one| one.kind != MISSING_SEGMENT || !found.contains(&one.segment.as_ref()));
    }
    plan.note_checkpoints(listing);
    let aborted = match options.isolation_level {
        IsolationLevel::ReadCommitted => AbortedByProducer::new(&plan.aborted),
        IsolationLevel::ReadUncommitted => AbortedByProducer::new(&[]),
    };
    for (index, (survey, start_offset)) in kept.iter().enumerate() {
        let next_offset = kept.get(index + 1).map(|(next, _)| next.base_offset());
        plan.cut(survey, *start_offset, end_offset, next_offset, &aborted, options);
    }
    Ok(plan)
}

impl Plan {
    /// The offsets that the plan's problems say may be lost.
    pub(crate) fn lost_ranges(&self) -> OffsetRanges {
        let bounds = |one: &Problem| Some((one.first_lost_offset?, one.last_lost_offset?));
        self.problems.iter().filter_map(bounds).collect()
    }

    /// Kafka names a segment by the offset after the previous segment's last one. Damage at the end of a
    /// segment is left to its reader.
    fn note_missing_segment(&mut self, listing: &Listing, before: &Survey, survey: &Survey) {
        let (first, ends) = match before.last_offset {
            Some(last) if before.sound_end == before.segment.size => {
                (last.saturating_add(1), "ends before them")
            }
            None if before.emptied => (before.segment.base_offset, "is empty"),
            _ => return,
        };
        let segment = &survey.segment;
        // The listing has reported the segments of which other files are there.
        let reported = listing.missing_segments().filter(|&offset| offset >= first).min();
        let end = reported.unwrap_or(i64::MAX).min(segment.base_offset);
        if end > first && !segment.is_checkpoint {
            let last = end - 1;
            let message = format!(
                "offsets {first}..={last} are in no file: {} {ends} and {} begins after them",
                before.segment.file, segment.file
            );
            self.problems.push(Problem {
                first_lost_offset: Some(first),
                last_lost_offset: Some(last),
                ..segment.problem(&segment.file, MISSING_SEGMENT, message)
            });
        }
    }

    /// Compares the log with what the broker's checkpoints say about it (those of `LogManager`, and the high
    /// watermarks of `ReplicaManager`).
    fn note_checkpoints(&mut self, listing: &Listing) {
        let Some(checkpoints) = listing.checkpoints else { return };
        let base_offset = |planned: &PlanSegment| planned.segment.base_offset;
        let start = self.segments.first().map(base_offset);
        let last = self.segments.last().map(base_offset);
        if let (Some(named), Some(first)) = (checkpoints.log_start_offset, start)
            && named < first
            && listing.unreadable_segments().all(|(offset, _)| offset > first)
        {
            let message = format!(
                "offsets {named}..={} are in no file: the broker's log began at {named} \
                 (log-start-offset-checkpoint), the first segment begins at {first}. The segments were deleted, or \
                 are only in tiered storage",
                first - 1
            );
            self.add_lost_offsets(MISSING_SEGMENT, named, first - 1, message);
        }
        let end = self.next_offset.or(start).or(checkpoints.log_start_offset).unwrap_or(0);
        let end = last.map_or(end, |last| end.max(last));
        let committed = checkpoints.high_watermark.map(|offset| (offset, "replication-offset-checkpoint"));
        let flushed = checkpoints.recovery_point.map(|offset| (offset, "recovery-point-offset-checkpoint"));
        if let Some((known, file)) = committed.into_iter().chain(flushed).max_by_key(|(offset, _)| *offset)
            && known > end
        {
            let message = format!(
                "offsets {end}..={} are in no readable batch, although the broker's log reached {} ({file})",
                known - 1,
                known - 1
            );
            self.add_lost_offsets(CHECKPOINT_BEYOND_LOG, end, known - 1, message);
        }
    }

    fn add_lost_offsets(&mut self, kind: &str, first: i64, last: i64, message: String) {
        self.problems.push(Problem {
            topic: self.topic.clone(),
            partition: self.partition,
            kind: kind.to_owned(),
            first_lost_offset: Some(first),
            last_lost_offset: Some(last),
            message,
            ..Problem::default()
        });
    }

    /// Ignored files that may hold records of the log.
    fn note_unread_files(&mut self, listing: &Listing) {
        for file in &listing.ignored {
            let (kind, message) = match file.reason {
                IgnoreReason::Swap => {
                    (UNFINISHED_SWAP, "a broker stopped while replacing segments; this file is not read")
                }
                IgnoreReason::Foreign if file.size > 0 && file.file.contains(".log") => {
                    (UNKNOWN_LOG_FILE, "expected twenty digits and .log; this file is not read")
                }
                _ => continue,
            };
            self.problems.push(Problem {
                topic: self.topic.clone(),
                partition: self.partition,
                segment: Some(file.file.clone()),
                kind: kind.into(),
                message: message.to_owned(),
                ..Problem::default()
            });
        }
    }

    /// Appends a segment to the log. None if it adds nothing to the segments before it, else the offset to
    /// start reading it at.
    fn append(&mut self, survey: &Survey, requested_start: Option<i64>) -> Option<Option<i64>> {
        let segment = &survey.segment;
        let mut start_offset = requested_start;
        if let (Some(first), Some(last), false) =
            (survey.first_offset, survey.last_offset, segment.is_checkpoint)
        {
            if let Some(next) = self.next_offset.filter(|&next| first < next) {
                if survey.is_part {
                    // Whether it adds anything, all of its offsets tell.
                    return None;
                }
                let contained = last < next;
                let message = format!(
                    "the segment has offsets {first}..={last}, but those before it already reach {}: {}",
                    next.saturating_sub(1),
                    if contained { "it is not read" } else { "it is read from there on" },
                );
                self.problems.push(segment.problem(&segment.file, OVERLAPPING_SEGMENT, message));
                if contained {
                    self.ignored.push(IgnoredFile {
                        file: segment.file.clone(),
                        size: segment.size,
                        reason: IgnoreReason::Overlapping,
                    });
                    return None;
                }
                start_offset = Some(requested_start.unwrap_or(i64::MIN).max(next));
            }
            self.first_offset.get_or_insert(first);
            self.next_offset = Some(last.saturating_add(1));
            if last < segment.base_offset {
                let message = format!(
                    "the file is named for base offset {}, but its offsets end at {last}",
                    segment.base_offset
                );
                self.problems.push(segment.problem(&segment.file, WRONG_BASE_OFFSET, message));
            }
        }
        self.segments.push(PlanSegment {
            segment: segment.clone(),
            first_offset: survey.first_offset,
            last_offset: survey.last_offset,
            max_timestamp: survey.max_timestamp,
            batches: survey.batches,
            transactional: survey.transactional.clone(),
        });
        Some(start_offset)
    }

    /// Markers are authoritative; a broker would be misled by an index that lacks their transactions.
    fn compare_transaction_index(&mut self, survey: &Survey) {
        let segment = &survey.segment;
        let (Some(first), Some(last)) = (survey.first_offset, survey.last_offset) else { return };
        let known: HashSet<_> =
            survey.transaction_index.iter().map(|entry| (entry.producer_id, entry.last_offset)).collect();
        let is_missing =
            |range: &&AbortedTransaction| !known.contains(&(range.producer_id, range.last_offset));
        // Aborted transactions are in the order of their markers.
        let from = self.aborted.partition_point(|range| range.last_offset < first);
        let here = self.aborted[from..].iter().take_while(|range| range.last_offset <= last);
        let missing: Vec<_> = here.filter(is_missing).collect();
        if let Some(range) = missing.first() {
            let message = format!(
                "{} aborted transactions are not in the transaction index; the first is of producer {}, \
                 offsets {}..={}. Reading follows the markers.",
                missing.len(),
                range.producer_id,
                range.first_offset,
                range.last_offset
            );
            let file = segment.file.replace(".log", ".txnindex");
            self.problems.push(segment.problem(&file, TRANSACTION_INDEX_MISMATCH, message));
        }
    }

    fn cut(
        &mut self,
        survey: &Survey,
        start_offset: Option<i64>,
        end_offset: Option<i64>,
        next_segment: Option<i64>,
        aborted: &AbortedByProducer,
        options: PlanOptions,
    ) {
        let segment = &survey.segment;
        let base = survey.base_offset();
        let (mut start, mut expected_offset) = (0, base);
        let mut borders = survey.borders.iter();
        while start < segment.size {
            let next =
                borders.by_ref().find(|border| border.position >= start.saturating_add(options.chunk_bytes));
            if next.is_none() && survey.is_part {
                break;
            }
            let end = next.map_or(segment.size, |border| border.position);
            let next_expected = next.map_or(i64::MAX, |border| border.expected_offset);
            // A requested range skips whole chunks outside it; all others are read, so that every byte is
            // counted.
            let outside = options.start_offset.is_some_and(|start| next_expected <= start)
                || options.end_offset.is_some_and(|end| expected_offset >= end && start > 0);
            if !outside {
                let aborted =
                    aborted.within(&survey.transactional, start..end, expected_offset..next_expected);
                self.chunks.push(Chunk {
                    expected_offset,
                    next_offset: next.map(|border| border.expected_offset).or(next_segment),
                    start_offset,
                    end_offset,
                    aborted,
                    ..Chunk::of(segment, base, start..end)
                });
            }
            (start, expected_offset) = (end, next_expected);
        }
    }
}
