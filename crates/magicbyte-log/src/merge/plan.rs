//! The plan of a merged log, from the alignment of its copies. Pure: no file is opened.

use crate::chunk::Chunk;
use crate::error::{LogError, LogResult};
use crate::listing::Listing;
use crate::merge::lineage::{Lineage, Stranger, ranking};
use crate::merge::model::{
    Alignment, LeftOut, LeftOutReason, MergeOptions, MergePlan, MergedCopy, MergedRange, MergedSegment, Run,
    Share,
};
use crate::merge::selection::{cleaned_copy, lost_ranges, select};
use crate::problem::CHECKPOINT_BEYOND_LOG;
use crate::read::offset_ranges::OffsetRanges;
use crate::read::plan::Plan;

/// The largest `segment.bytes` of Kafka.
const MAX_SEGMENT_BYTES: u64 = i32::MAX as u64;

/// Plans the log that several copies add up to. The last of `plans` may be that of repairs, which has no listing
/// (see [`MergeOptions::repaired`]).
///
/// # Errors
/// [`LogError::Usage`] if the arguments do not belong together.
pub fn plan_merge(
    alignment: &Alignment,
    listings: &[Listing],
    plans: &[Plan],
    options: &MergeOptions,
) -> LogResult<MergePlan> {
    let copies = options.repaired.unwrap_or(plans.len());
    let has_share =
        |share: &Share| plans.get(share.copy).is_some_and(|plan| share.segment < plan.segments.len());
    let fits = copies > 0
        && listings.len() >= copies
        && plans.len() == alignment.copies.len()
        && plans.len() <= copies + 1
        && options.leader.is_none_or(|leader| leader < copies)
        && alignment.runs.iter().all(|run| !run.shares.is_empty() && run.shares.iter().all(has_share));
    if !fits {
        return Err(LogError::Usage("the alignment is not that of these copies".into()));
    }
    let ranking = ranking(alignment, copies);
    let leader = options.leader.or(ranking.first().copied()).unwrap_or(0);
    let lineage = Lineage::of(alignment, listings, leader, options.cleaned_until);
    let cleaned = (options.cleaned_until > i64::MIN)
        .then(|| cleaned_copy(alignment, plans, &lineage, &ranking, options.cleaned_until));
    let selected = select(alignment, &lineage, &ranking, cleaned, options);
    let planner = Planner { alignment, plans, options, lineage, cleaned, selected };
    Ok(planner.plan(&ranking))
}

struct Planner<'a> {
    alignment: &'a Alignment,
    plans: &'a [Plan],
    options: &'a MergeOptions,
    lineage: Lineage,
    cleaned: Option<usize>,
    selected: Vec<&'a Run>,
}

impl Planner<'_> {
    fn plan(&self, ranking: &[usize]) -> MergePlan {
        let sources: Vec<_> = self.selected.iter().map(|run| self.source(run, ranking)).collect();
        // A copy that ends before its own start has a wrong checkpoint, and one of another branch says nothing of this one.
        let known = self
            .plans
            .iter()
            .enumerate()
            .filter(|&(copy, _)| copy == self.lineage.leader || !self.has(copy, Stranger::Diverged));
        let starts = known.filter_map(|(_, plan)| {
            plan.log_start_offset.filter(|&start| plan.next_offset.is_none_or(|next| start <= next))
        });
        let log_start_offset = starts.max();
        let segment_sizes =
            self.plans.iter().flat_map(|plan| &plan.segments).map(|planned| planned.segment.size);
        MergePlan {
            leader: self.lineage.leader,
            cleaned_copy: self.cleaned,
            cleaned_until: self.cleaned.map(|_| self.options.cleaned_until),
            segments: self.segments(&sources, log_start_offset),
            segment_bytes: segment_sizes.max().unwrap_or(0).min(MAX_SEGMENT_BYTES),
            ranges: self.ranges(&sources),
            holes: self.holes(log_start_offset),
            left_out: self.left_out(),
            copies: self.copies(&sources),
            log_start_offset,
            next_offset: self.next_offset(),
        }
    }

    /// The share to copy: that of the copy that leads, or of the best one.
    fn source<'r>(&self, run: &'r Run, ranking: &[usize]) -> &'r Share {
        let preferred = std::iter::once(&self.lineage.leader).chain(ranking);
        preferred.copied().find_map(|copy| run.share_of(copy)).unwrap_or(&run.shares[0])
    }

    fn next_offset(&self) -> i64 {
        self.selected.last().map_or_else(|| self.base_offset(), |run| run.next_offset)
    }

    /// The base offset of the merged log: that of the first segment of the copies that are in it, which may be empty.
    fn base_offset(&self) -> i64 {
        let starts = self.plans.iter().enumerate().filter(|&(copy, _)| {
            copy == self.lineage.leader || self.selected.iter().any(|run| run.share_of(copy).is_some())
        });
        let first = |plan: &Plan| {
            plan.segments
                .iter()
                .find(|planned| !planned.segment.is_checkpoint)
                .map(|planned| planned.segment.base_offset)
        };
        starts.filter_map(|(_, plan)| first(plan)).min().unwrap_or(0)
    }

    fn segments(&self, sources: &[&Share], log_start_offset: Option<i64>) -> Vec<MergedSegment> {
        let leading = &self.plans[self.lineage.leader].segments;
        let bases: Vec<_> = leading.iter().map(|planned| planned.segment.base_offset).collect();
        let mut segments: Vec<MergedSegment> = Vec::new();
        let mut end = self.base_offset();
        let mut passed = 0;
        for (at, (run, share)) in self.selected.iter().zip(sources).enumerate() {
            let begun = bases.partition_point(|&base| base <= run.first_offset);
            if begun > passed || segments.is_empty() {
                let named = begun.checked_sub(1).map_or(end, |last| bases[last]).max(end);
                let base_offset = if segments.is_empty() { end } else { named };
                segments.push(MergedSegment { base_offset, chunks: Vec::new() });
                passed = begun;
            }
            let next = self.selected.get(at + 1).map_or(run.next_offset, |next| next.first_offset);
            let segment = &self.plans[share.copy].segments[share.segment].segment;
            let chunk = Chunk {
                next_offset: Some(next),
                log_start_offset: log_start_offset.filter(|&start| start > run.first_offset),
                ..Chunk::of(segment, run.first_offset, share.start..share.end)
            };
            if let Some(last) = segments.last_mut() {
                last.chunks.push(chunk);
            }
            end = run.next_offset;
        }
        segments
    }

    fn ranges(&self, sources: &[&Share]) -> Vec<MergedRange> {
        let mut ranges: Vec<MergedRange> = Vec::new();
        for (run, share) in self.selected.iter().zip(sources) {
            if let Some(last) = ranges.last_mut()
                && (last.share.copy, last.share.segment, last.share.end)
                    == (share.copy, share.segment, share.start)
            {
                last.share.end = share.end;
                last.last_offset = run.next_offset.saturating_sub(1);
                last.batches += run.batches;
                continue;
            }
            ranges.push(MergedRange {
                share: (*share).clone(),
                first_offset: run.first_offset,
                last_offset: run.next_offset.saturating_sub(1),
                batches: run.batches,
            });
        }
        ranges
    }

    /// The gaps between the runs, in order. In the cleaned part of a compacted log, only those of damage.
    fn holes(&self, log_start_offset: Option<i64>) -> Vec<(i64, i64)> {
        let mut holes = Vec::new();
        let mut expected = self.base_offset().max(log_start_offset.unwrap_or(i64::MIN));
        let cleaned_until = self.options.cleaned_until;
        let lost: OffsetRanges = self
            .cleaned
            .map(|copy| lost_ranges(self.alignment, &self.plans[copy], copy))
            .into_iter()
            .flatten()
            .collect();
        for run in &self.selected {
            let (first, last) = (expected, run.first_offset.saturating_sub(1));
            holes.extend(lost.within(first, last.min(cleaned_until.saturating_sub(1))));
            holes.push((first.max(cleaned_until), last));
            expected = expected.max(run.next_offset);
        }
        let is_whole = |copy| !self.has(copy, Stranger::Diverged) && !self.has(copy, Stranger::PastTheEnd);
        let known = self.plans.iter().enumerate().filter(|&(copy, _)| is_whole(copy));
        let problems = known.flat_map(|(_, plan)| &plan.problems);
        let beyond = problems.filter(|problem| problem.kind == CHECKPOINT_BEYOND_LOG);
        let known_end = beyond.filter_map(|problem| problem.last_lost_offset).max();
        holes.extend(known_end.map(|last| (expected, last)));
        holes.retain(|(first, last)| first <= last);
        holes
    }

    /// True if a copy has batches that are not in the lineage for this reason.
    fn has(&self, copy: usize, reason: Stranger) -> bool {
        let mut runs = self.alignment.runs.iter().filter(|run| run.share_of(copy).is_some());
        runs.any(|run| self.lineage.stranger(run) == Some(reason))
    }

    /// True if the merged log has the batches of a run.
    fn is_kept(&self, run: &Run) -> bool {
        let at = self.selected.binary_search_by_key(&run.first_offset, |selected| selected.first_offset);
        at.is_ok_and(|at| self.selected[at].is_same(run))
    }

    fn left_out(&self) -> Vec<LeftOut> {
        let mut left_out = Vec::new();
        for copy in 0..self.plans.len() {
            let mut open: Option<LeftOut> = None;
            for run in self.alignment.runs.iter().filter(|run| run.share_of(copy).is_some()) {
                if self.is_kept(run) {
                    left_out.extend(open.take());
                    continue;
                }
                let reason = self.reason(run);
                match &mut open {
                    Some(last) if last.reason == reason => {
                        last.last_offset = run.next_offset.saturating_sub(1);
                        last.batches += run.batches;
                        last.size += run.size();
                    }
                    _ => left_out.extend(open.replace(LeftOut {
                        copy,
                        first_offset: run.first_offset,
                        last_offset: run.next_offset.saturating_sub(1),
                        leader_epoch: run.leader_epoch,
                        batches: run.batches,
                        size: run.size(),
                        reason,
                    })),
                }
            }
            left_out.extend(open);
        }
        left_out
    }

    fn reason(&self, run: &Run) -> LeftOutReason {
        match self.lineage.stranger(run) {
            Some(Stranger::Diverged) => LeftOutReason::Diverged,
            Some(Stranger::PastTheEnd) => LeftOutReason::PastTheEnd,
            None if run.first_offset < self.options.cleaned_until => LeftOutReason::Cleaned,
            None => LeftOutReason::Differs,
        }
    }

    fn copies(&self, sources: &[&Share]) -> Vec<MergedCopy> {
        let mut copies = vec![MergedCopy::default(); self.plans.len()];
        for run in &self.alignment.runs {
            let is_kept = self.is_kept(run);
            for share in &run.shares {
                let copy = &mut copies[share.copy];
                if is_kept {
                    copy.same_bytes += run.size();
                } else {
                    copy.left_out_bytes += run.size();
                }
            }
        }
        for share in sources {
            let (copy, size) = (&mut copies[share.copy], share.end.saturating_sub(share.start));
            copy.used_bytes += size;
            copy.same_bytes = copy.same_bytes.saturating_sub(size);
        }
        copies
    }
}
