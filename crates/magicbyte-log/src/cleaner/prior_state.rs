//! The state of producers and leader epochs as the batches had it before cleaning. A broker's `Cleaner` does
//! not touch snapshots and the epoch checkpoint, and indexes every aborted transaction of which it found a
//! batch. So the sidecars remain true when batches are gone.

use magicbyte::Batch;
use magicbyte::internals::ProducerEvents;
use magicbyte::state::{EpochEntry, LeaderEpochs, ProducerEvent};

use crate::write::segment_fold::SegmentSummary;

/// The state of the batches that went into one segment, whatever is left of them.
#[derive(Debug, Default)]
pub(crate) struct PriorState {
    producers: ProducerEvents,
    epochs: LeaderEpochs,
}

impl PriorState {
    pub(crate) fn add(&mut self, batch: &Batch<'_>, event: Option<ProducerEvent>) {
        if let Some(event) = event {
            self.producers.add(event);
        }
        if let Some(batch) = batch.as_v2() {
            let (epoch, start_offset) = (batch.partition_leader_epoch(), batch.base_offset());
            self.epochs.replay(EpochEntry { epoch, start_offset });
        }
    }

    /// Replaces the state that the summary took from the cleaned batches.
    pub(crate) fn apply_to(self, segment: &mut SegmentSummary) {
        segment.producers = self.producers.into_events();
        segment.leader_epochs = self.epochs.entries().to_vec();
    }
}
