//! Facts about producers and transactions from the whole log, needed to clean any of its batches
//! (`CleanedTransactionMetadata`, `Cleaner.shouldDiscardBatch`).

use std::collections::HashMap;
use std::ops::Range;

use magicbyte::RecordBatch;
use magicbyte::state::{ProducerEvent, Producers};

/// The summary of one log, by offset. A task needs only the entries for its own offsets, so all tasks
/// together receive no more entries than the log has.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ProducerSummary {
    /// The last data offset and the ID of each producer that has not expired, sorted
    /// (`UnifiedLog.lastRecordsOfActiveProducers`).
    last_data: Vec<(i64, i64)>,
    /// For producers known only from markers: the markers' offsets, sorted, each with the producer's last
    /// epoch.
    lone_markers: Vec<(i64, i16)>,
    /// Offsets of the markers whose transactions still have batches, sorted.
    markers_with_data: Vec<i64>,
}

impl ProducerSummary {
    /// Folds the events of the log's chunks, in offset order. Producers without an open transaction whose
    /// last timestamp (ms) is not later than `expired_until` are expired, as by a broker.
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
        let mut last_data = Vec::new();
        let mut without_data = HashMap::new();
        for entry in state.entries() {
            match entry.last_offset() {
                offset if offset >= 0 => last_data.push((offset, entry.producer_id)),
                _ => {
                    without_data.insert(entry.producer_id, entry.producer_epoch);
                }
            }
        }
        let lone = |event: &ProducerEvent| match *event {
            ProducerEvent::Marker { offset, .. } | ProducerEvent::EmptyMarker { offset, .. } => {
                Some((offset, *without_data.get(&event.producer_id())?))
            }
            ProducerEvent::Data { .. } => None,
        };
        let mut lone_markers: Vec<_> = chunks.iter().flatten().filter_map(lone).collect();
        last_data.sort_unstable();
        lone_markers.sort_unstable();
        markers_with_data.sort_unstable();
        Self { last_data, lone_markers, markers_with_data }
    }

    /// The part for offsets from `first` to `last` (inclusive), for a task.
    #[must_use]
    pub fn between(&self, first: i64, last: i64) -> Self {
        let data = within(&self.last_data, |entry| entry.0, first, last);
        let markers = within(&self.lone_markers, |entry| entry.0, first, last);
        let ends = within(&self.markers_with_data, |&offset| offset, first, last);
        Self {
            last_data: self.last_data[data].to_vec(),
            lone_markers: self.lone_markers[markers].to_vec(),
            markers_with_data: self.markers_with_data[ends].to_vec(),
        }
    }

    /// True if the transaction that ends at this offset still has batches.
    pub(crate) fn has_data(&self, marker_offset: i64) -> bool {
        self.markers_with_data.binary_search(&marker_offset).is_ok()
    }

    /// True if the batch has a producer's last sequence, or the last epoch of a producer known only from
    /// markers.
    pub(crate) fn is_last_of_producer(&self, batch: &RecordBatch<'_>) -> bool {
        let data = (batch.last_offset(), batch.producer_id());
        let marker = (batch.base_offset(), batch.producer_epoch());
        self.last_data.binary_search(&data).is_ok()
            || batch.is_control() && self.lone_markers.binary_search(&marker).is_ok()
    }
}

/// The range of sorted elements whose offsets are from `first` to `last`.
fn within<T>(sorted: &[T], offset: impl Fn(&T) -> i64, first: i64, last: i64) -> Range<usize> {
    let start = sorted.partition_point(|entry| offset(entry) < first);
    let end = sorted.partition_point(|entry| offset(entry) <= last);
    start..end.max(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each task once got all producers known only from markers: quadratic in their number.
    #[test]
    fn tasks_together_get_each_entry_once() {
        let marker = |producer_id| ProducerEvent::Marker {
            producer_id,
            producer_epoch: 3,
            committed: true,
            coordinator_epoch: 0,
            offset: producer_id,
            timestamp: 0,
        };
        let summary = ProducerSummary::of(&[(0..500).map(marker).collect()], None);
        let parts: Vec<_> = (0..500).map(|offset| summary.between(offset, offset)).collect();
        assert!(parts.iter().enumerate().all(|(at, part)| part.lone_markers == [(at as i64, 3)]));
    }

    #[test]
    fn each_fact_is_where_it_matters() {
        let data = |producer_id, first_offset: i64| ProducerEvent::Data {
            producer_id,
            transactional: true,
            first_offset,
            producer_epoch: 0,
            base_sequence: 0,
            last_sequence: 1,
            last_offset: first_offset + 1,
            offset_delta: 1,
            timestamp: 5,
        };
        let end = |producer_id, offset| ProducerEvent::Marker {
            producer_id,
            producer_epoch: 0,
            committed: false,
            coordinator_epoch: 0,
            offset,
            timestamp: 6,
        };
        let empty = ProducerEvent::EmptyMarker { producer_id: 9, producer_epoch: 0, offset: 30 };
        let summary = ProducerSummary::of(&[vec![data(1, 0), end(1, 10)], vec![data(1, 20), empty]], None);
        let (first, last) = (summary.between(0, 15), summary.between(16, 99));
        assert_eq!((&first.last_data[..], &last.last_data[..]), (&[][..], &[(21, 1)][..]));
        assert!(first.has_data(10) && !last.has_data(10));
        assert_eq!((first.lone_markers.len(), &last.lone_markers[..]), (0, &[(30, -1)][..]));
    }
}
