//! Producer state with its snapshots, which outlive a restart and a truncation
//! (`ProducerStateManager`, the part that reads and writes files; here the files are bytes in memory).

use std::collections::{BTreeMap, BTreeSet};

use crate::sidecar::producer_snapshot::{parse_producer_snapshot, write_producer_snapshot};
use crate::state::producers::Producers;

/// The state of a partition's producers up to an offset, and its snapshots.
#[derive(Clone, Debug, Default)]
pub struct ProducerStateManager {
    /// The state; whoever appends checks and applies, then tells the new end by
    /// [`set_end_offset`](Self::set_end_offset).
    pub producers: Producers,
    /// What each `.snapshot` holds, by the offset in its name.
    snapshots: BTreeMap<i64, Vec<u8>>,
    end_offset: i64,
    last_snapshot_offset: i64,
    /// `producer.id.expiration.ms`.
    expiration_ms: i64,
}

impl ProducerStateManager {
    /// Nothing loaded yet, as a broker starts: with the snapshots that are there, whatever they hold.
    #[must_use]
    pub fn new(snapshots: BTreeMap<i64, Vec<u8>>, expiration_ms: i64) -> Self {
        Self { snapshots, expiration_ms, ..Self::default() }
    }

    /// The snapshots, by the offset in their names.
    #[must_use]
    pub fn snapshots(&self) -> &BTreeMap<i64, Vec<u8>> {
        &self.snapshots
    }

    /// Up to where (exclusive) the state knows the log.
    #[must_use]
    pub fn end_offset(&self) -> i64 {
        self.end_offset
    }

    /// The state knows the log up to here (exclusive).
    pub fn set_end_offset(&mut self, offset: i64) {
        self.end_offset = offset;
    }

    /// Writes a snapshot at the end of what is known, if something came since the last one; gives its
    /// offset.
    pub fn take_snapshot(&mut self) -> Option<i64> {
        if self.end_offset <= self.last_snapshot_offset {
            return None;
        }
        let bytes = write_producer_snapshot(&self.producers.in_order());
        self.snapshots.insert(self.end_offset, bytes);
        self.last_snapshot_offset = self.end_offset;
        Some(self.end_offset)
    }

    /// The log now reaches from `log_start` to `log_end` (exclusive): snapshots outside are deleted. If
    /// the state knows another end, it is loaded again from the newest snapshot that can be read, less
    /// the producers that expired by `now` (ms); those that cannot be read are deleted. Whoever calls
    /// this replays the log from [`end_offset`](Self::end_offset) on.
    pub fn truncate_and_reload(&mut self, log_start: i64, log_end: i64, now: i64) {
        self.snapshots.retain(|&offset, _| log_start < offset && offset <= log_end);
        if self.end_offset == log_end {
            self.set_log_start_offset(log_start);
            return;
        }
        self.producers.clear();
        let expired = now.saturating_sub(self.expiration_ms);
        self.last_snapshot_offset = log_start;
        while let Some((&offset, bytes)) = self.snapshots.last_key_value() {
            if let Ok(entries) = parse_producer_snapshot(bytes) {
                let known = entries.into_iter().filter(|entry| !entry.is_expired(expired));
                known.for_each(|entry| self.producers.load(entry));
                self.last_snapshot_offset = offset;
                break;
            }
            self.snapshots.remove(&offset);
        }
        self.end_offset = self.last_snapshot_offset;
    }

    /// The log lost what is before this offset (`onLogStartOffsetIncremented`). Producers stay known.
    pub fn set_log_start_offset(&mut self, log_start: i64) {
        self.producers.set_high_watermark(log_start);
        self.end_offset = self.end_offset.max(log_start);
        self.last_snapshot_offset = self.snapshots.last_key_value().map_or(log_start, |(&offset, _)| offset);
    }

    /// Forgets everything, snapshots too: the log starts anew here.
    pub fn truncate_fully_and_start_at(&mut self, offset: i64) {
        self.producers.clear();
        self.snapshots.clear();
        self.last_snapshot_offset = 0;
        self.end_offset = offset;
    }

    /// Forgets producers that were last heard of `producer.id.expiration.ms` ago or earlier.
    pub fn remove_expired_producers(&mut self, now: i64) {
        self.producers.expire(now.saturating_sub(self.expiration_ms));
    }

    /// Deletes the snapshots before an offset.
    pub fn delete_snapshots_before(&mut self, offset: i64) {
        self.snapshots.retain(|&at, _| at >= offset || at < 0);
    }

    /// Deletes the snapshots that stand at no segment's base offset, but for the last one behind all
    /// of them, which a clean shutdown wrote (`removeStraySnapshots`).
    pub fn remove_stray_snapshots(&mut self, segment_base_offsets: &BTreeSet<i64>) {
        let stray = |offset: &i64| !segment_base_offsets.contains(offset);
        let last_stray = self.snapshots.keys().copied().rfind(stray);
        let last_segment = segment_base_offsets.last().copied();
        self.snapshots.retain(|offset, _| {
            !stray(offset) || (Some(*offset) == last_stray && last_segment.is_none_or(|last| *offset >= last))
        });
    }
}
