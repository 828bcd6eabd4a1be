//! The runs of a merged log.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::merge::lineage::Lineage;
use crate::merge::model::{Alignment, MergeOptions, Run};
use crate::problem::MISSING_SEGMENT;
use crate::read::plan::Plan;

/// The copy whose cleaned part is taken as it is: the copy that loses least in it.
///
/// Copies of a compacted log are cleaned at different times. Where one of them has removed a tombstone, an older
/// value of another would come back.
pub(super) fn cleaned_copy(
    alignment: &Alignment,
    plans: &[Plan],
    lineage: &Lineage,
    ranking: &[usize],
    cleaned_until: i64,
) -> usize {
    let starts =
        || plans.iter().filter_map(|plan| plan.segments.first()).map(|first| first.segment.base_offset);
    let start = starts().min().unwrap_or(0);
    let cost = |&copy: &usize| {
        let plan = &plans[copy];
        let runs = || alignment.runs.iter().filter(move |run| run.share_of(copy).is_some());
        let end = runs().map(|run| run.next_offset).max().unwrap_or(i64::MIN);
        let is_stranger =
            runs().any(|run| run.first_offset < cleaned_until && lineage.stranger(run).is_some());
        let begins = plan.segments.first().map_or(i64::MAX, |first| first.segment.base_offset);
        let lost: u64 = lost_ranges(alignment, plan, copy)
            .filter(|&(first, _)| first < cleaned_until)
            .map(|(first, last)| last.saturating_add(1).min(cleaned_until).abs_diff(first).max(1))
            .fold(begins.abs_diff(start), u64::saturating_add);
        (is_stranger, end < cleaned_until.min(lineage.end), lost)
    };
    ranking.iter().min_by_key(|copy| cost(copy)).copied().unwrap_or(lineage.leader)
}

/// The offsets that damage and missing segments of a copy may have held: first and last.
pub(super) fn lost_ranges<'a>(
    alignment: &'a Alignment,
    plan: &'a Plan,
    copy: usize,
) -> impl Iterator<Item = (i64, i64)> + 'a {
    let damages = alignment.damages.iter().filter(move |damage| damage.share.copy == copy);
    let damaged = damages.map(|damage| {
        (damage.first_offset, damage.next_offset.map_or(i64::MAX, |next| next.saturating_sub(1)))
    });
    let missing = plan.problems.iter().filter(|problem| problem.kind == MISSING_SEGMENT);
    let missing = missing.filter_map(|problem| Some((problem.first_lost_offset?, problem.last_lost_offset?)));
    damaged.chain(missing)
}

/// The runs of the merged log, in order: those of the cleaned copy, those of the copy that leads, and in the gaps
/// between them what the others have.
pub(super) fn select<'a>(
    alignment: &'a Alignment,
    lineage: &Lineage,
    ranking: &[usize],
    cleaned: Option<usize>,
    options: &MergeOptions,
) -> Vec<&'a Run> {
    let rank = |run: &Run| {
        let ranks = run.shares.iter().map(|share| ranking.iter().position(|&copy| copy == share.copy));
        ranks.flatten().min().unwrap_or(usize::MAX)
    };
    let is_cleaned = |run: &Run| run.first_offset < options.cleaned_until;
    let of_cleaned_copy = |run: &Run| {
        run.shares.iter().any(|share| Some(share.copy) == cleaned || Some(share.copy) == options.repaired)
    };
    let mut candidates: Vec<_> = alignment
        .runs
        .iter()
        .filter(|run| lineage.stranger(run).is_none())
        .filter(|run| !is_cleaned(run) || of_cleaned_copy(run))
        .collect();
    candidates.sort_by_key(|run| {
        let is_of_leader = run.share_of(lineage.leader).is_some();
        (!is_cleaned(run), !is_of_leader, Reverse(run.leader_epoch), rank(run), run.first_offset)
    });
    let mut selected: BTreeMap<i64, &Run> = BTreeMap::new();
    for run in candidates {
        let before = selected.range(..=run.first_offset).next_back().map(|(_, run)| *run);
        let after = selected.range(run.first_offset..).next().map(|(_, run)| *run);
        if before.is_none_or(|before| follows(before, run)) && after.is_none_or(|after| follows(run, after)) {
            selected.insert(run.first_offset, run);
        }
    }
    selected.into_values().collect()
}

/// True if a run can be after another in a log: offsets increase, and leader epochs do not decrease. Batches of
/// magic 0 and 1 have no epoch.
fn follows(before: &Run, run: &Run) -> bool {
    before.next_offset <= run.first_offset
        && (before.leader_epoch <= run.leader_epoch || run.leader_epoch < 0)
}
