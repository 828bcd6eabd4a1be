//! Plain data of a merge. Offsets are inclusive if their name says first or last, exclusive if it says next.

use crate::chunk::Chunk;
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
    /// The end of the last batch.
    pub end: u64,
}

/// Adjacent good batches that the same copies have, byte for byte. Between two copies, batches are equal if they
/// have the same offsets, leader epoch, size and CRC.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Run {
    /// The bytes of the batches, in the order of the copies.
    pub shares: Vec<Share>,
    /// Offset of the first record.
    pub first_offset: i64,
    /// The offset after the last batch.
    pub next_offset: i64,
    /// The leader epoch of all batches; -1 for magic 0 and 1.
    pub leader_epoch: i32,
    /// The number of batches.
    pub batches: u64,
    /// A hash of the ends and CRCs of its batches.
    pub content: u64,
}

impl Run {
    /// True if two runs have equal batches. They are runs of their own where copies are not compared batch by batch.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let content =
            |run: &Self| (run.first_offset, run.next_offset, run.leader_epoch, run.batches, run.content);
        content(self) == content(other) && self.size() == other.size()
    }

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

/// Options of planning a merge.
#[derive(Clone, Copy, Debug)]
pub struct MergeOptions {
    /// The copy that leads; by default the one whose last batch has the highest leader epoch and offset.
    pub leader: Option<usize>,
    /// The offset before which copies were cleaned by compaction, so that one of them is taken as it is. The
    /// minimum for a log that is not compacted.
    pub cleaned_until: i64,
    /// The copy with the repairs of [`repair_holes`](crate::steps::repair_holes): the last one, if there is one.
    pub repaired: Option<usize>,
}

impl Default for MergeOptions {
    fn default() -> Self {
        Self { leader: None, cleaned_until: i64::MIN, repaired: None }
    }
}

/// Adjacent batches of the merged log, and where they come from.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct MergedRange {
    /// The bytes.
    #[serde(flatten)]
    pub share: Share,
    /// The first offset.
    pub first_offset: i64,
    /// The last offset.
    pub last_offset: i64,
    /// The number of batches.
    pub batches: u64,
}

/// The reason why batches of a copy are not in the merged log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LeftOutReason {
    /// A leader wrote them whose batches the log that leads does not have: a follower would truncate them.
    Diverged,
    /// They continue the log after the end of the copy that was preferred.
    PastTheEnd,
    /// They are from the cleaned part of a compacted log, which is taken from another copy.
    Cleaned,
    /// The merged log has other batches at their offsets.
    Differs,
}

/// Adjacent batches of a copy that are not in the merged log.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct LeftOut {
    /// The copy.
    pub copy: usize,
    /// The first offset.
    pub first_offset: i64,
    /// The last offset.
    pub last_offset: i64,
    /// The leader epoch of the first batch.
    pub leader_epoch: i32,
    /// The number of batches.
    pub batches: u64,
    /// Their bytes.
    pub size: u64,
    /// The reason.
    pub reason: LeftOutReason,
}

/// The good bytes of a copy by their use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct MergedCopy {
    /// Bytes that the merged log takes from this copy.
    pub used_bytes: u64,
    /// Bytes that the merged log takes from another copy, which has the same.
    pub same_bytes: u64,
    /// Bytes that are not in the merged log.
    pub left_out_bytes: u64,
}

/// A segment of the merged log.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct MergedSegment {
    /// The base offset, which names it.
    pub base_offset: i64,
    /// The bytes of the copies.
    pub chunks: Vec<Chunk>,
}

/// The plan of a merged log.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct MergePlan {
    /// The copy that leads.
    pub leader: usize,
    /// The copy from which the cleaned part of a compacted log is taken.
    pub cleaned_copy: Option<usize>,
    /// The end of that part.
    pub cleaned_until: Option<i64>,
    /// The segments to write; their borders are those of the copy that leads.
    pub segments: Vec<MergedSegment>,
    /// The maximum size of a segment in bytes: that of the largest segment of the copies.
    pub segment_bytes: u64,
    /// The origin of all bytes.
    pub ranges: Vec<MergedRange>,
    /// First and last offsets that no copy has.
    pub holes: Vec<(i64, i64)>,
    /// The batches that are not in the merged log.
    pub left_out: Vec<LeftOut>,
    /// The good bytes of each copy by their use.
    pub copies: Vec<MergedCopy>,
    /// The log's start, if records before it are left out: the highest of the copies.
    pub log_start_offset: Option<i64>,
    /// The offset after the last one.
    pub next_offset: i64,
}
