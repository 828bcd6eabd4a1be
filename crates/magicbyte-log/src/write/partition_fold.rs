//! The sidecars whose state spans segments: `.txnindex`, `.snapshot` and `leader-epoch-checkpoint`, computed
//! from the segments' summaries (`ProducerStateManager`, `LeaderEpochFileCache`).

use magicbyte::sidecar::{
    TransactionIndexEntry, parse_leader_epoch_checkpoint, write_leader_epoch_checkpoint,
    write_producer_snapshot, write_transaction_index,
};
use magicbyte::state::{LeaderEpochs, Producers};

use crate::error::{LogError, LogResult};
use crate::storage::location::Location;
use crate::storage::sidecars::read_sidecar;
use crate::write::segment_fold::SegmentSummary;

/// A sidecar: its name and its content.
pub type SidecarFile = (String, Vec<u8>);

/// The fold over a partition's segments; takes their summaries in offset order.
#[derive(Debug, Default)]
pub(crate) struct PartitionFold {
    producers: Producers,
    epochs: LeaderEpochs,
    /// Producers whose last timestamp (ms) is not later are expired between segments.
    expired_until: Option<i64>,
    /// First base offset, last base offset and end offset of the segments so far.
    bounds: Option<(i64, i64, i64)>,
}

impl PartitionFold {
    pub(crate) fn new(epochs: LeaderEpochs, expired_until: Option<i64>) -> Self {
        Self { epochs, expired_until, ..Self::default() }
    }

    /// Adds the next segment. Passes to `sink` the snapshot at its base offset, unless it is the first, and
    /// its transaction index if any of its markers aborts a transaction. Each snapshot has all producers so
    /// far, so snapshots are not kept in memory.
    pub(crate) fn add(
        &mut self,
        segment: &SegmentSummary,
        mut sink: impl FnMut(SidecarFile) -> LogResult<()>,
    ) -> LogResult<()> {
        let base_offset = segment.base_offset;
        if let Some((_, last_base, end)) = self.bounds {
            if base_offset < end || base_offset == last_base {
                let why =
                    format!("segment {base_offset} begins before offset {end}, where the previous one ends");
                return Err(LogError::Usage(why));
            }
            // Where a segment ends, a broker writes a snapshot, then loads it without expired producers. If
            // the next segment begins there, that is its snapshot; after a gap it writes another one.
            let at_end = (base_offset == end).then(|| self.snapshot_at(end));
            if let Some(time) = self.expired_until {
                self.producers.expire(time);
            }
            sink(at_end.unwrap_or_else(|| self.snapshot_at(base_offset)))?;
        }
        let mut aborted = Vec::new();
        for event in &segment.producers {
            if let Some(ended) = self.producers.apply(event)
                && !ended.committed
            {
                aborted.push(TransactionIndexEntry::of(ended));
            }
        }
        // Everything in a log that is rebuilt is replicated.
        self.producers.set_high_watermark(i64::MAX);
        if !aborted.is_empty() {
            sink((format!("{base_offset:020}.txnindex"), write_transaction_index(&aborted)))?;
        }
        segment.leader_epochs.iter().for_each(|&entry| self.epochs.replay(entry));
        let first_base = self.bounds.map_or(base_offset, |(first_base, ..)| first_base);
        self.bounds = Some((first_base, base_offset, segment.next_offset));
        Ok(())
    }

    /// Returns the snapshot at the end of the log and the epoch checkpoint. If the log ends in an empty
    /// segment, its snapshot has been written already.
    pub(crate) fn finish(mut self) -> Vec<SidecarFile> {
        let mut files = Vec::new();
        if let Some((first_base, last_base, end)) = self.bounds {
            self.epochs.truncate_from_end(end);
            self.epochs.truncate_from_start(first_base);
            files.extend((end > last_base).then(|| self.snapshot_at(end)));
        }
        let epochs = write_leader_epoch_checkpoint(self.epochs.entries());
        files.push(("leader-epoch-checkpoint".into(), epochs.into()));
        files
    }

    fn snapshot_at(&self, offset: i64) -> SidecarFile {
        (format!("{offset:020}.snapshot"), write_producer_snapshot(&self.producers.in_order()))
    }
}

/// The existing epoch checkpoint, which a broker extends: it has epochs of which compaction left no batch. An
/// unreadable checkpoint counts as empty; the listing has reported it.
pub(crate) fn existing_epochs(directory: &Location) -> LeaderEpochs {
    let data = read_sidecar(directory.join("leader-epoch-checkpoint")).ok().flatten();
    let text = data.and_then(|data| String::from_utf8(data).ok());
    let entries = text.and_then(|text| parse_leader_epoch_checkpoint(&text).ok());
    entries.map(|entries| LeaderEpochs::from_entries(&entries)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use magicbyte::sidecar::parse_producer_snapshot;
    use magicbyte::state::ProducerEvent;

    fn segment(base_offset: i64, next_offset: i64, producer_id: i64) -> SegmentSummary {
        SegmentSummary {
            directory: String::new(),
            base_offset,
            next_offset,
            size: 0,
            batches: 1,
            producers: vec![ProducerEvent::EmptyMarker {
                producer_id,
                producer_epoch: 0,
                offset: base_offset,
            }],
            leader_epochs: Vec::new(),
        }
    }

    /// A producer known only from an empty marker expires at once.
    #[test]
    fn expired_producers_are_in_the_snapshot_at_a_segments_end_but_not_after_a_gap() {
        let mut fold = PartitionFold::new(LeaderEpochs::default(), Some(0));
        let mut snapshots = Vec::new();
        for segment in [segment(5, 10, 1), segment(10, 20, 2), segment(25, 30, 3)] {
            let keep = |file| {
                snapshots.push(file);
                Ok(())
            };
            fold.add(&segment, keep).expect("in order");
        }
        snapshots.push(fold.finish().remove(0));
        let found: Vec<_> = snapshots
            .iter()
            .map(|(name, data)| {
                let entries = parse_producer_snapshot(data).expect("just written");
                (&name[15..20], entries.iter().map(|entry| entry.producer_id).collect::<Vec<_>>())
            })
            .collect();
        assert_eq!(found, [("00010", vec![1]), ("00025", vec![]), ("00030", vec![3])]);
    }
}
