//! What batches said about producers and leader epochs before they were cleaned. A broker's cleaner leaves
//! snapshots and the epochs' checkpoint alone, and indexes each aborted transaction that it met a batch of:
//! what sidecars say is still true when the batches are gone.

use crate::batch::Batch;
use crate::log::write::segment_fold::SegmentSummary;
use crate::state::leader_epochs::{EpochEntry, LeaderEpochs};
use crate::state::producer_event::{ProducerEvent, ProducerEvents};

/// The batches that went into one segment, whatever is left of them.
#[derive(Debug, Default)]
pub(crate) struct Said {
    producers: ProducerEvents,
    epochs: LeaderEpochs,
}

impl Said {
    pub(crate) fn add(&mut self, batch: &Batch<'_>, event: Option<ProducerEvent>) {
        if let Some(event) = event {
            self.producers.add(event);
        }
        if let Batch::V2(batch) = batch {
            let (epoch, start_offset) = (batch.partition_leader_epoch(), batch.base_offset());
            self.epochs.replay(EpochEntry { epoch, start_offset });
        }
    }

    /// Puts it in the place of what the cleaned batches say.
    pub(crate) fn tell(self, segment: &mut SegmentSummary) {
        segment.producers = self.producers.into_events();
        segment.leader_epochs = self.epochs.entries().to_vec();
    }
}
