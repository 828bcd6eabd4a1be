//! The second step: joins surveys in offset order into a plan of what to read. With `read_committed` it ends
//! at the last stable offset, where a broker ends the data of a `CompletedFetch`. Pure: no file is opened.

use std::collections::{HashMap, HashSet};

use magicbyte::internals::AbortedByProducer;
use magicbyte::state::{
    AbortedTransaction, EpochEntry, IsolationLevel, LeaderEpochs, TransactionEvent, Transactions,
    last_stable_offset,
};

use crate::chunk::{Chunk, MAX_OFFSET};
use crate::error::{LogError, LogResult};
use crate::listing::{IgnoredFile, Listing, Segment};
use crate::names::IgnoreReason;
use crate::problem::{
    CHECKPOINT_BEYOND_LOG, FILE_UNREADABLE, LEADER_EPOCH_MISMATCH, LOG_START_OUT_OF_RANGE, MISSING_SEGMENT,
    OFFSET_OVERFLOW, OVERLAPPING_SEGMENT, Problem, TRANSACTION_INDEX_MISMATCH, UNFINISHED_SWAP,
    UNKNOWN_LOG_FILE, WRONG_BASE_OFFSET,
};
use crate::read::offset_ranges::OffsetRanges;
use crate::read::options::PlanOptions;
use crate::read::survey::Survey;

/// A segment of a plan, with its survey's findings.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct PlanSegment {
    /// The file.
    #[serde(flatten)]
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

/// The plan of a read, in offset order, with all facts known beforehand.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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
    /// The offset in the first batch's header, or the log's start if that is greater.
    pub first_offset: Option<i64>,
    /// The offset after the last one: Kafka's log end offset.
    pub next_offset: Option<i64>,
    /// Where the earliest open transaction begins, else `next_offset`.
    pub last_stable_offset: Option<i64>,
    /// The log's start, if records before it are left out.
    #[serde(default)]
    pub log_start_offset: Option<i64>,
    /// All aborted transactions.
    pub aborted: Vec<AbortedTransaction>,
    /// Where leader epochs begin, according to the batches.
    pub leader_epochs: LeaderEpochs,
}

/// Joins the surveys of a directory's segments, given in any order, into a plan. For a segment with only a
/// part of its survey, the plan has the chunks before the part's last border.
///
/// # Errors
/// [`LogError::Usage`] if a listed segment has no survey.
pub fn plan_partition(listing: &Listing, surveys: &[Survey], options: PlanOptions) -> LogResult<Plan> {
    let mut plan = Plan {
        path: listing.location.to_string(),
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
        log_start_offset: listing.log_start_offset(),
        aborted: Vec::new(),
        leader_epochs: LeaderEpochs::default(),
    };
    let by_path: HashMap<_, _> =
        surveys.iter().map(|survey| (survey.segment.location.path(), survey)).collect();
    let survey_of = |segment: &Segment| {
        let survey = by_path.get(segment.location.path()).copied();
        survey.ok_or_else(|| LogError::Usage(format!("segment {} was not surveyed", segment.location)))
    };
    let ordered = in_offset_order(listing.segments.iter().map(survey_of).collect::<LogResult<_>>()?);
    plan.note_unread_files(listing);
    let mut transactions = Transactions::default();
    let mut kept: Vec<LogSegment<'_>> = Vec::new();
    let mut reported: Vec<i64> = listing.missing_segments().collect();
    reported.sort_unstable();
    for (survey, max_offset) in ordered {
        let Some(segment) = plan.append(survey, max_offset, options.start_offset) else { continue };
        if let Some(before) = kept.last() {
            plan.note_missing_segment(&reported, before, &segment);
        }
        let start_offset = segment.start_offset;
        kept.push(segment);
        plan.problems.extend(survey.problems.iter().cloned());
        // Unreadable bytes are reported by the chunk that has them.
        if let (Some(why), 0) = (&survey.unreadable, survey.segment.size) {
            let segment = &survey.segment;
            plan.problems.push(segment.problem(&segment.file, FILE_UNREADABLE, why.clone()));
        }
        for &event in &survey.transactions {
            let (TransactionEvent::Begin { offset, .. } | TransactionEvent::End { offset, .. }) = event;
            if start_offset.is_none_or(|start| options.start_offset == Some(start) || offset >= start)
                && offset <= max_offset
            {
                transactions.apply(event);
            }
        }
        let epochs = survey.leader_epochs.entries().iter().filter(|entry| entry.start_offset <= max_offset);
        epochs.for_each(|&entry| plan.leader_epochs.replay(entry));
    }
    plan.end_with(&transactions);
    let mut end_offset = options.end_offset;
    if options.isolation_level == IsolationLevel::ReadCommitted {
        let stable = plan.last_stable_offset.unwrap_or(i64::MAX);
        end_offset = Some(end_offset.unwrap_or(i64::MAX).min(stable));
        for segment in &kept {
            plan.compare_transaction_index(segment.survey);
        }
    }
    plan.drop_explained_gaps(&kept);
    plan.note_checkpoints(listing);
    plan.note_leader_epochs(listing);
    let aborted = match options.isolation_level {
        IsolationLevel::ReadCommitted => AbortedByProducer::new(&plan.aborted),
        IsolationLevel::ReadUncommitted => AbortedByProducer::new(&[]),
    };
    for (index, segment) in kept.iter().enumerate() {
        let next_offset = kept.get(index + 1).map(|next| next.base_offset);
        plan.cut(segment, end_offset, next_offset, &aborted, options);
    }
    Ok(plan)
}

/// A segment as a part of the log.
struct LogSegment<'a> {
    survey: &'a Survey,
    /// Where its offsets begin, whatever its name says.
    base_offset: i64,
    /// Its last offset that is believed.
    last_offset: Option<i64>,
    /// Larger offsets in it are wrong.
    max_offset: i64,
    /// The offset to start reading it at: the one requested, or the end of the segments before it.
    start_offset: Option<i64>,
    is_misnamed: bool,
}

/// Orders segments by the offsets of their first good batches, since a restored file may have the name of
/// another file. Returns each segment with the maximum offset that it can have. Segments without a good batch
/// have only their names.
///
/// If all offsets of the next segment are in a gap before the last batch of a segment, that batch, whose offset no
/// CRC covers, is wrong rather than the whole segment.
fn in_offset_order(mut surveys: Vec<&Survey>) -> Vec<(&Survey, i64)> {
    surveys.sort_by_key(|survey| {
        let named = survey.segment.base_offset;
        let first = survey.first_offset.filter(|_| !survey.segment.is_checkpoint).unwrap_or(named);
        // The copy with the right name comes first.
        (first, named > first, -named)
    });
    let max_offset = |index: usize| {
        let (survey, next): (&Survey, &Survey) = (surveys[index], surveys.get(index + 1)?);
        let (first, last) = (next.first_offset?, next.last_offset?);
        let is_wrong = survey.gap_before_last? <= first && last <= survey.last_offset?;
        (is_wrong && !survey.segment.is_checkpoint && !next.segment.is_checkpoint).then_some(first - 1)
    };
    (0..surveys.len()).map(|index| (surveys[index], max_offset(index).unwrap_or(MAX_OFFSET))).collect()
}

impl Plan {
    /// Sets the aborted transactions and the last stable offset, once all segments are appended.
    fn end_with(&mut self, transactions: &Transactions) {
        self.aborted = transactions.aborted().to_vec();
        let first_unstable = transactions.first_unstable_offset();
        // Damage can hide where the log ends, though not where a transaction begins.
        let end = self.next_offset.or(first_unstable);
        self.last_stable_offset = end.map(|end| last_stable_offset(first_unstable, end));
        if let Some(start) = self.log_start_offset {
            let start = self.next_offset.map_or(start, |next| next.min(start));
            self.first_offset = self.first_offset.map(|first| first.max(start));
            self.last_stable_offset = self.last_stable_offset.map(|stable| stable.max(start));
        }
    }

    /// Drops the problems of missing segments that the content of the others explains.
    fn drop_explained_gaps(&mut self, kept: &[LogSegment<'_>]) {
        // Only a log that was never compacted has all its offsets; files that the listing misses are missing anyway.
        if kept.iter().any(|segment| segment.survey.gaps > 0) {
            let kept_files: HashSet<_> =
                kept.iter().map(|segment| Some(&segment.survey.segment.file)).collect();
            self.problems.retain(|problem| {
                problem.kind != MISSING_SEGMENT || !kept_files.contains(&problem.segment.as_ref())
            });
        }
        // The listing knows names only.
        let misnamed = kept.iter().filter(|segment| segment.is_misnamed);
        let held: OffsetRanges =
            misnamed.filter_map(|segment| Some((segment.base_offset, segment.last_offset?))).collect();
        let is_there = |offset: i64| held.within(offset, offset).next().is_some();
        self.problems.retain(|problem| {
            problem.kind != MISSING_SEGMENT || !problem.first_lost_offset.is_some_and(is_there)
        });
    }

    /// The offsets that the plan's problems say may be lost.
    pub(crate) fn lost_ranges(&self) -> OffsetRanges {
        let bounds = |problem: &Problem| Some((problem.first_lost_offset?, problem.last_lost_offset?));
        self.problems.iter().filter_map(bounds).collect()
    }

    /// Kafka names a segment by the offset after the previous segment's last one. Damage at the end of a
    /// segment is left to its reader. The listing has `reported` the missing segments that have other files
    /// beside them, here in order.
    fn note_missing_segment(&mut self, reported: &[i64], before: &LogSegment<'_>, next: &LogSegment<'_>) {
        let (first, ends) = match before.last_offset {
            Some(last) if before.survey.sound_end == before.survey.segment.size => {
                (last.saturating_add(1), "ends before them")
            }
            None if before.survey.emptied => (before.base_offset, "is empty"),
            _ => return,
        };
        let (before, segment) = (&before.survey.segment, &next.survey.segment);
        let reported = reported.get(reported.partition_point(|&offset| offset < first));
        let end = reported.map_or(next.base_offset, |&offset| offset.min(next.base_offset));
        if end > first && !segment.is_checkpoint {
            let last = end - 1;
            let message = format!(
                "offsets {first}..={last} are in no file: {} {ends} and {} begins after them",
                before.file, segment.file
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
        if let Some(named) = self.log_start_offset.filter(|&named| named > end) {
            let message = format!(
                "the log starts at {named} (log-start-offset-checkpoint), but its offsets end before {end}: a \
                 broker would delete all of its segments. Their records are only read on request"
            );
            self.add_problem(LOG_START_OUT_OF_RANGE, message);
        }
        if let Some(named) = checkpoints.log_start_offset.filter(|&named| named < 0) {
            let message = format!("the log cannot start at {named} (log-start-offset-checkpoint)");
            self.add_problem(LOG_START_OUT_OF_RANGE, message);
        }
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

    /// Reports the first batch with another leader epoch than the checkpoint says. Epochs that are newer than the
    /// checkpoint contradict nothing: it may be older than the batches.
    fn note_leader_epochs(&mut self, listing: &Listing) {
        let Some(latest) = listing.leader_epochs.latest() else { return };
        let differs = |entry: &EpochEntry| {
            let checkpointed = listing.leader_epochs.epoch_for_offset(entry.start_offset);
            checkpointed
                .filter(|&epoch| entry.epoch <= latest.epoch && epoch != entry.epoch)
                .map(|epoch| (*entry, epoch))
        };
        if let Some((entry, checkpointed)) = self.leader_epochs.entries().iter().find_map(differs) {
            let message = format!(
                "offset {} has leader epoch {checkpointed} by the leader-epoch-checkpoint, and its batch has {}: followers \
                 that ask where an epoch ends get a wrong offset",
                entry.start_offset, entry.epoch
            );
            self.add_problem(LEADER_EPOCH_MISMATCH, message);
        }
    }

    fn add_problem(&mut self, kind: &str, message: String) {
        self.problems.push(Problem {
            topic: self.topic.clone(),
            partition: self.partition,
            kind: kind.to_owned(),
            message,
            ..Problem::default()
        });
    }

    fn add_lost_offsets(&mut self, kind: &str, first: i64, last: i64, message: String) {
        self.add_problem(kind, message);
        if let Some(problem) = self.problems.last_mut() {
            (problem.first_lost_offset, problem.last_lost_offset) = (Some(first), Some(last));
        }
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

    /// Appends a segment to the log; offsets beyond `max_offset` in it are wrong. None if the segment adds
    /// nothing to the segments before it.
    fn append<'a>(
        &mut self,
        survey: &'a Survey,
        max_offset: i64,
        requested_start: Option<i64>,
    ) -> Option<LogSegment<'a>> {
        let segment = &survey.segment;
        let mut start_offset = requested_start;
        let mut base_offset = survey.base_offset;
        let mut is_misnamed = false;
        let last_offset = match survey.gap_before_last {
            Some(expected) if survey.last_offset > Some(max_offset) => Some(expected.saturating_sub(1)),
            _ => survey.last_offset,
        };
        if let (Some(first), Some(last), false) = (survey.first_offset, last_offset, segment.is_checkpoint) {
            // Kafka names a segment by an offset that is not in those before it.
            let before = self.next_offset.filter(|&next| base_offset < next && next <= first);
            base_offset = before.unwrap_or(base_offset);
            is_misnamed = base_offset != segment.base_offset;
            if let Some(next) = self.next_offset.filter(|&next| first < next) {
                if survey.is_part {
                    // Only the whole survey shows whether the segment adds anything.
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
            if is_misnamed {
                let message = format!(
                    "the file is named for base offset {}, but its offsets are {first}..={last}",
                    segment.base_offset
                );
                self.problems.push(segment.problem(&segment.file, WRONG_BASE_OFFSET, message));
            }
            if last.saturating_sub(base_offset) > i32::MAX.into() {
                let message = format!(
                    "its offsets reach {last}, 2^31 or more beyond {base_offset}: no index can hold them, and a broker \
                     splits the segment when it starts"
                );
                self.problems.push(segment.problem(&segment.file, OFFSET_OVERFLOW, message));
            }
        }
        self.segments.push(PlanSegment {
            segment: Segment { base_offset, ..segment.clone() },
            first_offset: survey.first_offset,
            last_offset,
            max_timestamp: survey.max_timestamp,
            batches: survey.batches,
            transactional: survey.transactional.clone(),
        });
        Some(LogSegment { survey, base_offset, last_offset, max_offset, start_offset, is_misnamed })
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
            let file = segment.sidecar_name("txnindex");
            self.problems.push(segment.problem(&file, TRANSACTION_INDEX_MISMATCH, message));
        }
    }

    fn cut(
        &mut self,
        of: &LogSegment<'_>,
        end_offset: Option<i64>,
        next_segment: Option<i64>,
        aborted: &AbortedByProducer,
        options: PlanOptions,
    ) {
        let (survey, segment) = (of.survey, &of.survey.segment);
        let wanted = options.start_offset.unwrap_or(i64::MIN);
        let skipped = survey.borders.partition_point(|border| border.expected_offset <= wanted);
        let (before, borders) = survey.borders.split_at(skipped);
        let (mut start, mut expected_offset) =
            before.last().map_or((0, of.base_offset), |border| (border.position, border.expected_offset));
        let mut borders = borders.iter();
        let first = start;
        while start < segment.size {
            let next =
                borders.by_ref().find(|border| border.position >= start.saturating_add(options.chunk_bytes));
            if next.is_none() && survey.is_part {
                break;
            }
            let end = next.map_or(segment.size, |border| border.position);
            let next_expected = next.map_or(i64::MAX, |border| border.expected_offset);
            // A requested range skips whole chunks outside it, but not the first chunk, whose account shows that
            // there was a request. All other chunks are read, so that every byte is counted.
            let outside = options.start_offset.is_some_and(|start| next_expected <= start)
                || options.end_offset.is_some_and(|end| expected_offset >= end && start > first);
            if !outside {
                let aborted =
                    aborted.within(&survey.transactional, start..end, expected_offset..next_expected);
                self.chunks.push(Chunk {
                    expected_offset,
                    next_offset: next.map(|border| border.expected_offset).or(next_segment),
                    max_offset: of.max_offset,
                    log_start_offset: self.log_start_offset.filter(|&start| start > expected_offset),
                    start_offset: of.start_offset,
                    end_offset,
                    aborted,
                    ..Chunk::of(segment, of.base_offset, start..end)
                });
            }
            (start, expected_offset) = (end, next_expected);
        }
    }
}
