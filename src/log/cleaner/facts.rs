//! What the whole log says about producers and transactions, without which no batch can be judged.

use std::collections::HashMap;

use crate::state::{ProducerEvent, Producers};

/// The facts of one log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LogFacts {
    /// Of each producer that is not forgotten its last data offset, none if only markers are known, and
    /// its epoch (`UnifiedLog.lastRecordsOfActiveProducers`).
    producers: HashMap<i64, (Option<i64>, i16)>,
    /// Offsets of the markers whose transaction still has batches, in order.
    markers_with_data: Vec<i64>,
}

impl LogFacts {
    /// Folds what the log's chunks say, in offset order. Producers without an open transaction that were
    /// last heard of at `expired_until` (ms) or before are forgotten, as a broker forgets them.
    #[must_use]
    pub fn of(chunks: &[Vec<ProducerEvent>], expired_until: Option<i64>) -> Self {
        let mut state = Producers::default();
        let mut markers_with_data = Vec::new();
        for event in chunks.iter().flatten() {
            if let Some(ended) = state.apply(event) {
                markers_with_data.push(ended.last_offset);
            }
        }
        if let Some(time) = expired_until {
            state.expire(time);
        }
        markers_with_data.sort_unstable();
        let last = |offset: i64| (offset >= 0).then_some(offset);
        let entries = state.snapshot().into_iter();
        let producers = entries.map(|e| (e.producer_id, (last(e.last_offset()), e.producer_epoch))).collect();
        Self { producers, markers_with_data }
    }

    /// The facts that concern offsets from `first` to `last`, to hand to a task.
    #[must_use]
    pub fn between(&self, first: i64, last: i64) -> Self {
        let producers = self.producers.iter().filter(|(_, (offset, _))| {
            // Of a producer without data every marker of its epoch counts.
            offset.is_none_or(|offset| (first..=last).contains(&offset))
        });
        let markers = self.markers_with_data.iter().filter(|&offset| (first..=last).contains(offset));
        Self {
            producers: producers.map(|(&id, &state)| (id, state)).collect(),
            markers_with_data: markers.copied().collect(),
        }
    }

    /// Whether the transaction that ends at this offset still has batches.
    pub(super) fn has_data(&self, marker_offset: i64) -> bool {
        self.markers_with_data.binary_search(&marker_offset).is_ok()
    }

    /// Whether the batch tells a producer's last sequence or, of one that only markers are left of, its
    /// epoch.
    pub(super) fn is_last_of_producer(&self, batch: &crate::RecordBatch<'_>) -> bool {
        match self.producers.get(&batch.producer_id()) {
            Some((Some(offset), _)) => batch.last_offset() == *offset,
            Some((None, epoch)) => batch.is_control() && batch.producer_epoch() == *epoch,
            None => false,
        }
    }
}
