//! Leader epochs: which leader wrote from which offset on (`LeaderEpochFileCache`), and where two
//! copies of a partition part.

/// One leader epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EpochEntry {
    /// The epoch.
    pub epoch: i32,
    /// Offset of its first record.
    pub start_offset: i64,
}

/// The epochs of a log, in order: both epochs and offsets rise. Look-ups are binary searches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct LeaderEpochs {
    entries: Vec<EpochEntry>,
}

impl LeaderEpochs {
    /// What a checkpoint says: its entries assigned in their order.
    #[must_use]
    pub fn from_entries(entries: &[EpochEntry]) -> Self {
        let mut epochs = Self::default();
        entries.iter().for_each(|&entry| epochs.assign(entry));
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

    /// A leader appends at this offset. Entries that contradict it, of higher epochs or offsets, go: it
    /// is the newer word. Negative epochs and offsets say nothing (Kafka raises for them).
    pub fn assign(&mut self, entry: EpochEntry) {
        let known = |last: EpochEntry| entry.epoch == last.epoch && entry.start_offset >= last.start_offset;
        if entry.epoch < 0 || entry.start_offset < 0 || self.latest().is_some_and(known) {
            return;
        }
        let contradicts =
            |last: EpochEntry| last.epoch >= entry.epoch || last.start_offset >= entry.start_offset;
        while self.latest().is_some_and(contradicts) {
            self.entries.pop();
        }
        self.entries.push(entry);
    }

    /// A log is read again: only a higher epoch counts (`LogSegment.recover`).
    pub fn replay(&mut self, entry: EpochEntry) {
        if self.latest().is_none_or(|last| last.epoch < entry.epoch) {
            self.assign(entry);
        }
    }

    /// The log ends here (exclusive): later epochs go.
    pub fn truncate_from_end(&mut self, end_offset: i64) {
        while end_offset >= 0 && self.latest().is_some_and(|last| last.start_offset >= end_offset) {
            self.entries.pop();
        }
    }

    /// The log begins here: the epoch of this offset begins here too, and those before it go.
    pub fn truncate_from_start(&mut self, start_offset: i64) {
        let begun = self.entries.partition_point(|entry| entry.start_offset <= start_offset);
        if let Some(current) = begun.checked_sub(1) {
            self.entries.drain(..current);
            self.entries[0].start_offset = start_offset;
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// The epoch of an offset; none before the first.
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

    /// What a leader whose log ends at `log_end_offset` (exclusive) answers to OffsetsForLeaderEpoch:
    /// the highest epoch up to the one asked for, and the offset where it ends (exclusive). None if
    /// it knows no such thing: for an epoch above all, or a negative one.
    #[must_use]
    pub fn end_offset_for_epoch(&self, epoch: i32, log_end_offset: i64) -> Option<(i32, i64)> {
        if epoch == -1 {
            return None;
        }
        if self.latest().is_some_and(|latest| latest.epoch == epoch) {
            return Some((epoch, log_end_offset));
        }
        let next = self.next(epoch)?;
        // Before the first: there is nothing to end, the log begins with the next one.
        let found = self.entries.iter().rev().find(|entry| entry.epoch <= epoch);
        Some((found.map_or(epoch, |entry| entry.epoch), next.start_offset))
    }
}

/// What a follower does about a leader's log (`AbstractFetcherThread.getOffsetTruncationState`).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Truncation {
    /// Where the follower cuts its log (exclusive end); its own end if it keeps everything. None: the
    /// epochs do not tell, it would cut at its high watermark.
    pub offset: Option<i64>,
    /// What it asked and was told: epoch, the leader's epoch, where the leader says that this one ends.
    pub questions: Vec<(i32, Option<(i32, i64)>)>,
}

/// Where a follower's log, which ends at `follower_end` (exclusive), parts from the leader's.
#[must_use]
pub fn truncation(
    follower: &LeaderEpochs,
    follower_end: i64,
    leader: &LeaderEpochs,
    leader_end: i64,
) -> Truncation {
    let (mut follower, mut end) = (follower.clone(), follower_end);
    let mut questions = Vec::new();
    // Each turn cuts at least the follower's last epoch off, or is the last.
    while let Some(latest) = follower.latest() {
        let answer = leader.end_offset_for_epoch(latest.epoch, leader_end);
        questions.push((latest.epoch, answer));
        let Some((epoch, leaders_end)) = answer else { return Truncation { offset: None, questions } };
        let own = follower.end_offset_for_epoch(epoch, end);
        let (offset, done) = match own {
            Some((found, own_end)) if found == epoch => (own_end.min(leaders_end), true),
            // An epoch the follower does not know: it cuts to its own one before, and asks again.
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
    // Nothing with an epoch is left, or there never was.
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
        let said = entries(&[(-1, 0), (0, 1), (0, 5), (3, 9), (2, 12), (4, 20)]);
        let mut replayed = LeaderEpochs::default();
        said.iter().for_each(|&entry| replayed.replay(entry));
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
    fn copies_part_where_the_leader_never_wrote() {
        let leader = epochs(&[(0, 0), (2, 10), (4, 30)]);
        let cut = |follower: &[(i32, i64)], end| truncation(&epochs(follower), end, &leader, 50).offset;
        assert_eq!(cut(&[(0, 0), (2, 10), (4, 30)], 45), Some(45), "the same, behind");
        assert_eq!(cut(&[(0, 0), (2, 10), (4, 30)], 60), Some(50), "the leader lost some");
        assert_eq!(cut(&[(0, 0), (2, 10)], 40), Some(30), "wrote on in an epoch that was over");
        assert_eq!(cut(&[(0, 0), (1, 8), (3, 20)], 40), Some(8), "a leader of its own, twice");
        assert_eq!(cut(&[(0, 0), (7, 20)], 40), None, "an epoch the leader never heard of");
        assert_eq!(cut(&[], 40), None);
    }
}
