//! Leader epochs as a fold over batches (`LeaderEpochFileCache`, as `LogSegment.recover` fills it).

/// One leader epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EpochEntry {
    /// The epoch.
    pub epoch: i32,
    /// Offset of its first record.
    pub start_offset: i64,
}

/// The fold: feed it the epochs of batches in offset order.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeaderEpochs {
    entries: Vec<EpochEntry>,
}

impl LeaderEpochs {
    /// Goes on from what a checkpoint says.
    pub(crate) fn from_checkpoint(entries: Vec<EpochEntry>) -> Self {
        Self { entries }
    }

    /// Forgets what lies outside a log that has offsets from `start` to `end` (exclusive).
    pub(crate) fn truncate(&mut self, start: i64, end: i64) {
        self.entries.retain(|entry| entry.start_offset < end);
        let begun = self.entries.iter().filter(|entry| entry.start_offset <= start).count();
        if let Some(current) = begun.checked_sub(1) {
            self.entries.drain(..current);
            self.entries[0].start_offset = start;
        }
    }

    /// Takes the next batch's epoch: only a higher one counts.
    pub(crate) fn assign(&mut self, entry: EpochEntry) {
        if entry.epoch < 0 || self.entries.last().is_some_and(|last| last.epoch >= entry.epoch) {
            return;
        }
        while self.entries.last().is_some_and(|last| last.start_offset >= entry.start_offset) {
            self.entries.pop();
        }
        self.entries.push(entry);
    }

    pub(crate) fn entries(&self) -> &[EpochEntry] {
        &self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(pairs: &[(i32, i64)]) -> Vec<EpochEntry> {
        pairs.iter().map(|&(epoch, start_offset)| EpochEntry { epoch, start_offset }).collect()
    }

    #[test]
    fn only_higher_epochs_count() {
        let mut epochs = LeaderEpochs::default();
        for entry in entries(&[(-1, 0), (0, 1), (0, 5), (3, 9), (2, 12), (4, 20)]) {
            epochs.assign(entry);
        }
        assert_eq!(epochs.entries(), entries(&[(0, 1), (3, 9), (4, 20)]));
    }

    #[test]
    fn a_checkpoint_is_cut_to_the_log() {
        let checkpoint = entries(&[(0, 0), (1, 10), (2, 20), (5, 40)]);
        let mut epochs = LeaderEpochs::from_checkpoint(checkpoint.clone());
        epochs.truncate(15, 40);
        assert_eq!(epochs.entries(), entries(&[(1, 15), (2, 20)]));
        let mut epochs = LeaderEpochs::from_checkpoint(checkpoint);
        epochs.assign(EpochEntry { epoch: 6, start_offset: 40 });
        assert_eq!(epochs.entries(), entries(&[(0, 0), (1, 10), (2, 20), (6, 40)]));
    }
}
