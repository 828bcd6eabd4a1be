//! The sidecars whose state goes on from segment to segment: `.txnindex`, `.snapshot` and
//! `leader-epoch-checkpoint`, from the summaries of the segments.

use super::segment_fold::SegmentSummary;
use super::{
    AbortedTransaction, LogError, LogResult, write_leader_epoch_checkpoint, write_producer_snapshot,
    write_transaction_index,
};
use crate::state::leader_epochs::LeaderEpochs;
use crate::state::producers::Producers;

/// A sidecar: its name and what is in it.
pub type SidecarFile = (String, Vec<u8>);

/// The fold: feed it the summaries in offset order.
#[derive(Debug, Default)]
pub(super) struct PartitionFold {
    producers: Producers,
    epochs: LeaderEpochs,
    /// Producers that had nothing to say since this time (ms) are forgotten between segments.
    expired_until: Option<i64>,
    /// First base offset, last base offset, end offset of what came so far.
    bounds: Option<(i64, i64, i64)>,
}

impl PartitionFold {
    pub(super) fn new(epochs: LeaderEpochs, expired_until: Option<i64>) -> Self {
        Self { epochs, expired_until, ..Self::default() }
    }

    /// Takes the next segment; gives the snapshot at its base offset, unless it is the first, and
    /// its transaction index, if any of its markers aborts something.
    pub(super) fn add(&mut self, segment: &SegmentSummary) -> LogResult<Vec<SidecarFile>> {
        let base_offset = segment.base_offset;
        let mut files = Vec::new();
        if let Some((_, last_base, end)) = self.bounds {
            if base_offset < end || base_offset == last_base {
                let why =
                    format!("segment {base_offset} begins before offset {end}, where its neighbour ends");
                return Err(LogError::Usage(why));
            }
            files.push(self.snapshot_at(base_offset));
            // A broker loads the snapshot it has just written to go on from there.
            if let Some(time) = self.expired_until {
                self.producers.expire(time);
            }
        }
        let mut aborted = Vec::new();
        for event in &segment.producers {
            if let Some(ended) = self.producers.apply(event)
                && !ended.committed
            {
                aborted.push(AbortedTransaction {
                    version: 0,
                    producer_id: ended.producer_id,
                    first_offset: ended.first_offset,
                    last_offset: ended.last_offset,
                    last_stable_offset: ended.last_stable_offset,
                });
            }
        }
        if !aborted.is_empty() {
            files.push((format!("{base_offset:020}.txnindex"), write_transaction_index(&aborted)));
        }
        segment.leader_epochs.iter().for_each(|&entry| self.epochs.assign(entry));
        let first_base = self.bounds.map_or(base_offset, |(first_base, ..)| first_base);
        self.bounds = Some((first_base, base_offset, segment.next_offset));
        Ok(files)
    }

    /// Gives the snapshot at the end of the log and the epochs. Where an empty segment ends a log
    /// its snapshot was given before.
    pub(super) fn finish(mut self) -> Vec<SidecarFile> {
        let mut files = Vec::new();
        if let Some((first_base, last_base, end)) = self.bounds {
            self.epochs.truncate(first_base, end);
            files.extend((end > last_base).then(|| self.snapshot_at(end)));
        }
        let epochs = write_leader_epoch_checkpoint(self.epochs.entries());
        files.push(("leader-epoch-checkpoint".into(), epochs.into()));
        files
    }

    fn snapshot_at(&self, offset: i64) -> SidecarFile {
        (format!("{offset:020}.snapshot"), write_producer_snapshot(&self.producers.snapshot()))
    }
}
