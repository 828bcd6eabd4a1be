//! Leader epochs: the offset from which each leader wrote (`LeaderEpochFileCache`), and where two copies of a
//! partition diverge.

/// One leader epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EpochEntry {
    /// The epoch.
    pub epoch: i32,
    /// Offset of its first record.
    pub start_offset: i64,
}

/// The epochs of a log in increasing order of both epoch and offset. Lookups are binary searches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct LeaderEpochs {
    entries: Vec<EpochEntry>,
}

impl LeaderEpochs {
    /// The epochs of a checkpoint: its entries, [assigned](Self::assign) in order.
    #[must_use]
    pub fn from_entries(entries: &[EpochEntry]) -> Self {
        let mut epochs = Self::default();
        for &entry in entries {
            epochs.assign(entry);
        }
        epochs
    }

    /// The epochs, in order.
    #[must_use]
    pub fn entries(&self) -> &[EpochEntry] {
        &self.entries
    }

    /// The highest epoch.
    #[must_use]
    pub fn latest(&self) -> Option<EpochEntry> {
        self.entries.last().copied()
    }

    /// The lowest epoch.
    #[must_use]
    pub fn earliest(&self) -> Option<EpochEntry> {
        self.entries.first().copied()
    }

    /// Adds an epoch when its leader appends. The new entry wins: entries with the same or a higher epoch or
    /// offset are removed. Negative epochs and offsets are ignored (Kafka throws).
    pub fn assign(&mut self, entry: EpochEntry) {
        let has_begun =
            |last: EpochEntry| entry.epoch == last.epoch && entry.start_offset >= last.start_offset;
        if entry.epoch < 0 || entry.start_offset < 0 || self.latest().is_some_and(has_begun) {
            return;
        }
        let contradicts =
            |last: EpochEntry| last.epoch >= entry.epoch || last.start_offset >= entry.start_offset;
        while self.latest().is_some_and(contradicts) {
            self.entries.pop();
        }
        self.entries.push(entry);
    }

    /// Adds an epoch when a log is read again: only a higher epoch counts (`LogSegment.recover`).
    pub fn replay(&mut self, entry: EpochEntry) {
        if self.latest().is_none_or(|last| last.epoch < entry.epoch) {
            self.assign(entry);
        }
    }

    /// Removes the epochs that begin at or after the new end of the log (exclusive).
    pub fn truncate_from_end(&mut self, end_offset: i64) {
        while end_offset >= 0 && self.latest().is_some_and(|last| last.start_offset >= end_offset) {
            self.entries.pop();
        }
    }

    /// Moves the start of the log: the epoch of this offset now begins here, and earlier epochs are removed.
    pub fn truncate_from_start(&mut self, start_offset: i64) {
        let begun = self.entries.partition_point(|entry| entry.start_offset <= start_offset);
        if let Some(current) = begun.checked_sub(1) {
            self.entries.drain(..current);
            self.entries[0].start_offset = start_offset;
        }
    }

    /// Removes all epochs.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// The epoch of an offset; `None` before the first epoch.
    #[must_use]
    pub fn epoch_for_offset(&self, offset: i64) -> Option<i32> {
        let begun = self.entries.partition_point(|entry| entry.start_offset <= offset);
        Some(self.entries[begun.checked_sub(1)?].epoch)
    }

    /// The highest epoch below this one.
    #[must_use]
    pub fn previous(&self, epoch: i32) -> Option<EpochEntry> {
        let lower = self.entries.partition_point(|entry| entry.epoch < epoch);
        Some(self.entries[lower.checked_sub(1)?])
    }

    /// The lowest epoch above this one.
    #[must_use]
    pub fn next(&self, epoch: i32) -> Option<EpochEntry> {
        self.entries.get(self.entries.partition_point(|entry| entry.epoch <= epoch)).copied()
    }

    /// The answer to OffsetsForLeaderEpoch of a leader whose log ends at `log_end_offset` (exclusive): the
    /// highest epoch not above the requested one, and the offset where it ends (exclusive). `None` for an
    /// epoch above all others, and for -1.
    #[must_use]
    pub fn end_offset_for_epoch(&self, epoch: i32, log_end_offset: i64) -> Option<(i32, i64)> {
        if epoch == -1 {
            return None;
        }
        if self.latest().is_some_and(|latest| latest.epoch == epoch) {
            return Some((epoch, log_end_offset));
        }
        let next = self.next(epoch)?;
        // Before the first epoch: the log begins with the next one.
        let found = self.entries.iter().rev().find(|entry| entry.epoch <= epoch);
        Some((found.map_or(epoch, |entry| entry.epoch), next.start_offset))
    }
}

/// The truncation of a follower's log to match a leader's (`AbstractFetcherThread.getOffsetTruncationState`).
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Truncation {
    /// The new end of the follower's log (exclusive); its present end if nothing is truncated. `None` if the
    /// epochs do not determine it; the follower then truncates to its high watermark.
    pub offset: Option<i64>,
    /// The follower's requests and the leader's answers: the epoch requested, and the epoch and its end
    /// offset in the answer.
    pub questions: Vec<(i32, Option<(i32, i64)>)>,
}

/// The divergence of a follower's log from the leader's. Both ends are exclusive.
#[must_use]
pub fn truncation(
    follower: &LeaderEpochs,
    follower_end: i64,
    leader: &LeaderEpochs,
    leader_end: i64,
) -> Truncation {
    let (mut follower, mut end) = (follower.clone(), follower_end);
    let mut questions = Vec::new();
    // Each iteration removes at least the follower's last epoch, or is the last one.
    while let Some(latest) = follower.latest() {
        let answer = leader.end_offset_for_epoch(latest.epoch, leader_end);
        questions.push((latest.epoch, answer));
        let Some((epoch, leaders_end)) = answer else { return Truncation { offset: None, questions } };
        let own = follower.end_offset_for_epoch(epoch, end);
        let (offset, done) = match own {
            Some((found, own_end)) if found == epoch => (own_end.min(leaders_end), true),
            // The follower does not have this epoch: it truncates to its own previous one, and asks again.
            Some((_, own_end)) => (own_end, false),
            None => (leaders_end, true),
        };
        let before = end;
        end = offset.min(end);
        if done || end == before {
            return Truncation { offset: Some(end), questions };
        }
        follower.truncate_from_end(end);
    }
    // No epochs are left, or there were none.
    let offset = (!questions.is_empty()).then_some(end);
    Truncation { offset, questions }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(pairs: &[(i32, i64)]) -> Vec<EpochEntry> {
        pairs.iter().map(|&(epoch, start_offset)| EpochEntry { epoch, start_offset }).collect()
    }

    fn epochs(pairs: &[(i32, i64)]) -> LeaderEpochs {
        LeaderEpochs::from_entries(&entries(pairs))
    }

    #[test]
    fn a_replay_takes_higher_epochs_only_a_leader_has_the_last_word() {
        let mut replayed = LeaderEpochs::default();
        for entry in entries(&[(-1, 0), (0, 1), (0, 5), (3, 9), (2, 12), (4, 20)]) {
            replayed.replay(entry);
        }
        assert_eq!(replayed.entries(), entries(&[(0, 1), (3, 9), (4, 20)]));
        assert_eq!(epochs(&[(0, 1), (0, 5), (3, 9), (2, 12), (4, 20)]).entries(), {
            entries(&[(0, 1), (2, 12), (4, 20)])
        });
    }

    #[test]
    fn a_checkpoint_is_cut_to_the_log() {
        let checkpoint = epochs(&[(0, 0), (1, 10), (2, 20), (5, 40)]);
        let mut cut = checkpoint.clone();
        cut.truncate_from_end(40);
        cut.truncate_from_start(15);
        assert_eq!(cut.entries(), entries(&[(1, 15), (2, 20)]));
        let mut longer = checkpoint;
        longer.assign(EpochEntry { epoch: 6, start_offset: 40 });
        assert_eq!(longer.entries(), entries(&[(0, 0), (1, 10), (2, 20), (6, 40)]));
    }

    #[test]
    fn copies_diverge_where_the_leader_never_wrote() {
        let leader = epochs(&[(0, 0), (2, 10), (4, 30)]);
        let cut = |follower: &[(i32, i64)], end| truncation(&epochs(follower), end, &leader, 50).offset;
        assert_eq!(cut(&[(0, 0), (2, 10), (4, 30)], 45), Some(45), "the same, but shorter");
        assert_eq!(cut(&[(0, 0), (2, 10), (4, 30)], 60), Some(50), "the leader lost some");
        assert_eq!(cut(&[(0, 0), (2, 10)], 40), Some(30), "continued in an epoch that had ended");
        assert_eq!(cut(&[(0, 0), (1, 8), (3, 20)], 40), Some(8), "a leader of its own, twice");
        assert_eq!(cut(&[(0, 0), (7, 20)], 40), None, "an epoch the leader does not have");
        assert_eq!(cut(&[], 40), None);
    }
}
