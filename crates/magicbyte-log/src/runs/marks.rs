//! Marks of batches: replicas have equal ones, since batches are copied byte for byte.

use std::collections::HashSet;

use magicbyte::Batch;

/// The marks of a run besides those of its first and last batch.
const SAMPLES: usize = 16;

/// What tells a batch from all others: replicas of a partition agree in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct BatchMark {
    /// The offset in its header: the last one of a legacy wrapper.
    pub offset: i64,
    /// Its leader epoch; -1 in magic 0 and 1.
    pub epoch: i32,
    /// Its CRC.
    pub crc: u32,
}

impl BatchMark {
    pub(crate) fn of(batch: &Batch<'_>) -> Self {
        Self { offset: batch.stored_offset(), epoch: batch.partition_leader_epoch(), crc: batch.crc() }
    }
}

/// Chooses marks of a run: those of the first and the last batch, those that are wanted, and those with the smallest
/// CRCs. So runs with many common batches have common marks, wherever they begin.
#[derive(Debug, Default)]
pub(super) struct Marks {
    first: Option<BatchMark>,
    last: Option<BatchMark>,
    smallest: Vec<BatchMark>,
    wanted: Vec<BatchMark>,
}

impl Marks {
    pub(super) fn add(&mut self, mark: BatchMark, wanted: &HashSet<BatchMark>) {
        self.first.get_or_insert(mark);
        self.wanted.extend(wanted.get(&mark));
        self.last = Some(mark);
        let at = self.smallest.partition_point(|known| known.crc <= mark.crc);
        if at < SAMPLES {
            self.smallest.truncate(SAMPLES - 1);
            self.smallest.insert(at, mark);
        }
    }

    /// Each mark once.
    pub(super) fn finish(self) -> Vec<BatchMark> {
        let mut seen = HashSet::new();
        let all = self.first.into_iter().chain(self.last).chain(self.smallest).chain(self.wanted);
        all.filter(|&mark| seen.insert(mark)).collect()
    }
}
