//! Producer state with its snapshots, from which it is reloaded after a restart or a truncation (the part of
//! `ProducerStateManager` that reads and writes files; here snapshots are bytes in memory).

use std::collections::{BTreeMap, BTreeSet};

use crate::sidecar::producer_snapshot::{parse_producer_snapshot, write_producer_snapshot};
use crate::state::producers::Producers;

/// The state of a partition's producers up to an offset, and its snapshots.
#[derive(Clone, Debug, Default)]
pub struct ProducerStateManager {
    /// The state. After an append is applied to it, call [`set_end_offset`](Self::set_end_offset).
    pub producers: Producers,
    /// The content of each `.snapshot`, by the offset in its name.
    snapshots: BTreeMap<i64, Vec<u8>>,
    end_offset: i64,
    last_snapshot_offset: i64,
    /// `producer.id.expiration.ms`.
    expiration_ms: i64,
}

impl ProducerStateManager {
    /// The state of a broker that starts: with the snapshots that exist, valid or not, of which none is
    /// loaded yet.
    #[must_use]
    pub fn new(snapshots: BTreeMap<i64, Vec<u8>>, expiration_ms: i64) -> Self {
        Self { snapshots, expiration_ms, ..Self::default() }
    }

    /// The content of the snapshots, by the offset in their names.
    #[must_use]
    pub fn snapshots(&self) -> &BTreeMap<i64, Vec<u8>> {
        &self.snapshots
    }

    /// The end (exclusive) of the part of the log that the state covers.
    #[must_use]
    pub fn end_offset(&self) -> i64 {
        self.end_offset
    }

    /// Sets the end (exclusive) of the part of the log that the state covers.
    pub fn set_end_offset(&mut self, offset: i64) {
        self.end_offset = offset;
    }

    /// Writes a snapshot at the end offset, unless there is one that is as new; returns its offset.
    pub fn take_snapshot(&mut self) -> Option<i64> {
        if self.end_offset <= self.last_snapshot_offset {
            return None;
        }
        let bytes = write_producer_snapshot(&self.producers.in_order());
        self.snapshots.insert(self.end_offset, bytes);
        self.last_snapshot_offset = self.end_offset;
        Some(self.end_offset)
    }

    /// Adapts to a log that extends from `log_start` to `log_end` (exclusive). Snapshots outside this range
    /// are deleted. If the state has a different end, it is reloaded from the newest readable snapshot,
    /// without producers that have expired at `now` (ms); newer, unreadable snapshots are deleted. The caller
    /// then replays the log from [`end_offset`](Self::end_offset) on; after a crash `LogLoader` does so for each
    /// segment.
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

    /// Sets a higher start of the log (`UnifiedLog.maybeIncrementLogStartOffset`). Producers are kept.
    pub fn set_log_start_offset(&mut self, log_start: i64) {
        self.producers.set_high_watermark(log_start);
        self.end_offset = self.end_offset.max(log_start);
        self.last_snapshot_offset = self.snapshots.last_key_value().map_or(log_start, |(&offset, _)| offset);
    }

    /// Drops everything including the snapshots, for a log that is emptied and restarted at `offset`.
    pub fn truncate_fully_and_start_at(&mut self, offset: i64) {
        self.producers.clear();
        self.snapshots.clear();
        self.last_snapshot_offset = 0;
        self.end_offset = offset;
    }

    /// Removes producers without an open transaction whose last batch or marker is at least
    /// `producer.id.expiration.ms` older than `now` (ms).
    pub fn remove_expired_producers(&mut self, now: i64) {
        self.producers.expire(now.saturating_sub(self.expiration_ms));
    }

    /// Deletes the snapshots before an offset.
    pub fn delete_snapshots_before(&mut self, offset: i64) {
        self.snapshots.retain(|&at, _| at >= offset || at < 0);
    }

    /// Deletes snapshots that are not at a segment's base offset, except for the last one if no segment
    /// starts after it: that one was written by a clean shutdown (`removeStraySnapshots`).
    pub fn remove_stray_snapshots(&mut self, segment_base_offsets: &BTreeSet<i64>) {
        let stray = |offset: &i64| !segment_base_offsets.contains(offset);
        let last_stray = self.snapshots.keys().copied().rfind(stray);
        let last_segment = segment_base_offsets.last().copied();
        self.snapshots.retain(|offset, _| {
            !stray(offset) || (Some(*offset) == last_stray && last_segment.is_none_or(|last| *offset >= last))
        });
    }
}
