//! Plain data of a merge. Offsets are inclusive if their name says first or last, exclusive if it says next.

use crate::problem::Problems;

/// The maximum number of copies of a partition: a set of copies is a `u64`.
pub const MAX_COPIES: usize = 64;

/// The bytes of one copy that hold a run.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Share {
    /// The copy: its place among the plans that were aligned.
    pub copy: usize,
    /// The segment: its place in the plan of the copy.
    pub segment: usize,
    /// Position of the first batch.
    pub start: u64,
    /// Where the last batch ends.
    pub end: u64,
}

/// Adjacent good batches that the same copies have, byte for byte. Between two copies, batches are equal if they
/// have the same offsets, leader epoch, size and CRC.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Run {
    /// Where the batches are, in the order of the copies.
    pub shares: Vec<Share>,
    /// Offset of the first record.
    pub first_offset: i64,
    /// The offset after the last batch.
    pub next_offset: i64,
    /// The leader epoch of all batches; -1 for magic 0 and 1.
    pub leader_epoch: i32,
    /// The number of batches.
    pub batches: u64,
}

impl Run {
    /// The bytes of the batches.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.shares.first().map_or(0, |share| share.end.saturating_sub(share.start))
    }

    /// The share of a copy, if it has the run.
    #[must_use]
    pub fn share_of(&self, copy: usize) -> Option<&Share> {
        self.shares.iter().find(|share| share.copy == copy)
    }
}

/// Bytes of a copy that are not good batches, and the offsets that they may have held.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Damage {
    /// The bytes.
    #[serde(flatten)]
    pub share: Share,
    /// The smallest offset that they can hold: it follows the last good batch.
    pub first_offset: i64,
    /// The offset of the next good batch; None if nothing follows.
    pub next_offset: Option<i64>,
    /// Set if the bytes are a batch of which only the leader epoch is wrong, which no CRC covers: the epoch of the
    /// batches on both sides.
    pub leader_epoch: Option<i32>,
}

/// The account of a copy: each byte of its chunks is counted once.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AlignedCopy {
    /// Good batches.
    pub good_bytes: u64,
    /// Bytes that are no good batch.
    pub damaged_bytes: u64,
    /// Zeros or an incomplete batch at the end of the log.
    pub tail_bytes: u64,
    /// Batches whose offsets an earlier segment of the copy has.
    pub overlapping_bytes: u64,
    /// Leader epoch and offset of the last good record.
    pub last: Option<(i32, i64)>,
    /// The problems of the bytes.
    #[serde(flatten)]
    pub problems: Problems,
}

/// The result of reading all copies of a partition side by side. It grows with damage, differences and leader
/// epochs, and with the log only by a run for every 4 MiB.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Alignment {
    /// The runs, by first offset.
    pub runs: Vec<Run>,
    /// Damaged bytes, by copy and position.
    pub damages: Vec<Damage>,
    /// The account of each copy.
    pub copies: Vec<AlignedCopy>,
}

impl Alignment {
    /// Adds copies that were aligned by themselves, after those that are there.
    pub fn append(&mut self, other: Self) {
        let copies = self.copies.len();
        let moved = |share: Share| Share { copy: share.copy + copies, ..share };
        self.runs.extend(
            other
                .runs
                .into_iter()
                .map(|run| Run { shares: run.shares.into_iter().map(moved).collect(), ..run }),
        );
        self.runs.sort_by_key(|run| run.first_offset);
        let damages = other.damages.into_iter();
        self.damages.extend(damages.map(|damage| Damage { share: moved(damage.share), ..damage }));
        self.copies.extend(other.copies);
    }
}
