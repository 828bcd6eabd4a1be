//! The copy that leads, and the batches of the others that are in its lineage.
//!
//! A follower truncates what its leader does not have before it appends (`AbstractFetcherThread`, since KIP-101). So
//! if two copies have the same batch of the same leader epoch, everything before it is the same log. Batches after
//! the last common one are judged like those of a follower: an epoch ends where the next one begins in the log that
//! leads (`LeaderEpochFileCache.endOffsetFor`). Where a copy contradicts the one that leads, its epochs prove nothing: all
//! that it has from there on is another branch.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use magicbyte::state::LeaderEpochs;

use crate::listing::Listing;
use crate::merge::model::{Alignment, Run};

/// Why a run is not in the lineage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stranger {
    /// The leader of another branch wrote it.
    Diverged,
    /// It continues the log after the end of the copy that leads.
    PastTheEnd,
}

/// The lineage of a merged log.
#[derive(Debug)]
pub(super) struct Lineage {
    /// The copy that leads.
    pub leader: usize,
    /// The offset after the last batch of that copy.
    pub end: i64,
    /// For each copy, the offset after the last batch that is also in the copy that leads.
    agreements: Vec<i64>,
    /// For each copy, the first offset after that at which it has other batches than the copy that leads: it has diverged
    /// there or before, also where the copy that leads has a hole.
    contradictions: Vec<i64>,
    /// The first offset of each epoch.
    epochs: BTreeMap<i32, i64>,
}

/// The copies from the best to the worst: by leader epoch and offset of the last batch, then by damage.
pub(super) fn ranking(alignment: &Alignment, copies: usize) -> Vec<usize> {
    let mut ranked: Vec<_> = (0..copies).collect();
    let last = |copy: usize| alignment.copies.get(copy).and_then(|account| account.last);
    let damage = |copy: usize| alignment.copies.get(copy).map_or(0, |account| account.damaged_bytes);
    ranked.sort_by_key(|&copy| (Reverse(last(copy)), damage(copy)));
    ranked
}

impl Lineage {
    /// The lineage of the copy that leads. Before `cleaned_until`, copies are not compared.
    pub(super) fn of(alignment: &Alignment, listings: &[Listing], leader: usize, cleaned_until: i64) -> Self {
        let runs = &alignment.runs;
        let of_leader = || runs.iter().filter(|run| run.share_of(leader).is_some());
        let mut agreements = vec![i64::MIN; alignment.copies.len()];
        for run in of_leader() {
            for share in &run.shares {
                agreements[share.copy] = agreements[share.copy].max(run.next_offset);
            }
        }
        let contradictions = contradictions(runs, leader, &agreements, cleaned_until);
        let mut lineage = Self {
            leader,
            end: agreements.get(leader).copied().unwrap_or(i64::MIN),
            agreements,
            contradictions,
            epochs: BTreeMap::new(),
        };
        let agreed = runs.iter().filter(|run| lineage.agrees(run));
        let begins: Vec<_> = agreed.map(|run| (run.leader_epoch, run.first_offset)).collect();
        lineage.add_epochs(begins);
        if let Some(listing) = listings.get(leader)
            && of_leader().all(|run| confirms(&listing.leader_epochs, run))
        {
            let entries = listing.leader_epochs.entries().iter();
            lineage.add_epochs(entries.map(|entry| (entry.epoch, entry.start_offset)));
        }
        lineage
    }

    fn add_epochs(&mut self, begins: impl IntoIterator<Item = (i32, i64)>) {
        for (epoch, offset) in begins {
            let start = self.epochs.entry(epoch).or_insert(offset);
            *start = offset.min(*start);
        }
    }

    /// None if the run is in the lineage.
    pub(super) fn stranger(&self, run: &Run) -> Option<Stranger> {
        if self.agrees(run) {
            return None;
        }
        if run.shares.iter().all(|share| run.next_offset > self.contradictions[share.copy]) {
            return Some(Stranger::Diverged);
        }
        let epoch = run.leader_epoch;
        let following = self.epochs.range(epoch.saturating_add(1)..).next().map(|(_, &start)| start);
        if epoch >= 0 && !self.epochs.contains_key(&epoch) {
            return Some(Stranger::Diverged);
        }
        match following {
            Some(end) => (run.next_offset > end).then_some(Stranger::Diverged),
            None => (run.next_offset > self.end).then_some(Stranger::PastTheEnd),
        }
    }

    /// True if one of the run's copies has a batch of the copy that leads at its end or later.
    fn agrees(&self, run: &Run) -> bool {
        run.shares.iter().any(|share| run.next_offset <= self.agreements[share.copy])
    }
}

/// See [`Lineage::contradictions`]: `i64::MAX` for a copy without one.
fn contradictions(runs: &[Run], leader: usize, agreements: &[i64], cleaned_until: i64) -> Vec<i64> {
    let (leading, others): (Vec<&Run>, Vec<&Run>) =
        runs.iter().partition(|run| run.share_of(leader).is_some());
    let mut found = vec![i64::MAX; agreements.len()];
    for run in others.into_iter().filter(|run| run.first_offset >= cleaned_until) {
        let following = leading.partition_point(|other| other.next_offset <= run.first_offset);
        if let Some(other) = leading.get(following)
            && other.first_offset < run.next_offset
        {
            let offset = run.first_offset.max(other.first_offset);
            for copy in run.shares.iter().map(|share| share.copy) {
                if offset >= agreements[copy] {
                    found[copy] = found[copy].min(offset);
                }
            }
        }
    }
    found
}

/// True if a checkpoint has the epoch of a run's batches, or is older.
fn confirms(checkpoint: &LeaderEpochs, run: &Run) -> bool {
    let is_newer = checkpoint.latest().is_some_and(|latest| latest.epoch < run.leader_epoch);
    let at_start = checkpoint.epoch_for_offset(run.first_offset);
    is_newer || at_start.is_none_or(|epoch| epoch == run.leader_epoch)
}
