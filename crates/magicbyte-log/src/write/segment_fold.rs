//! The effect of a segment's batches on its indexes and on the state that outlives it: the same whether they
//! are appended (`LogSegment.append`) or replayed (`LogSegment.recover`).

use magicbyte::internals::ProducerEvents;
use magicbyte::sidecar::{OffsetIndexEntry, TimeIndexEntry, write_offset_index, write_time_index};
use magicbyte::state::{EpochEntry, LeaderEpochs, ProducerEvent};
use magicbyte::{Batch, Decompressor, ErrorKind, Result};

/// Kafka's default of `index.interval.bytes`.
pub const DEFAULT_INDEX_INTERVAL_BYTES: u32 = 4096;

/// The summary of one segment, from which a partition's sidecars are written. It grows with producers and
/// transactions, not with batches.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SegmentSummary {
    /// The segment's directory.
    pub directory: String,
    /// The offset in the segment's name.
    pub base_offset: i64,
    /// The offset after the last one; the base offset if the segment is empty.
    pub next_offset: i64,
    /// Size of the `.log` in bytes.
    pub size: u64,
    /// The number of batches (magic 0 and 1: outermost messages).
    pub batches: u64,
    /// Producer events, in offset order.
    pub producers: Vec<ProducerEvent>,
    /// Where leader epochs begin in the segment.
    pub leader_epochs: Vec<EpochEntry>,
}

/// The encoded indexes of a segment, and its summary.
pub(crate) struct FoldedSegment {
    pub(crate) offset_index: Vec<u8>,
    pub(crate) time_index: Vec<u8>,
    pub(crate) summary: SegmentSummary,
}

/// The fold over one segment's batches.
#[derive(Debug)]
pub(crate) struct SegmentFold {
    summary: SegmentSummary,
    index_interval_bytes: u32,
    bytes_since_last_index_entry: u64,
    offset_index: Vec<OffsetIndexEntry>,
    time_index: Vec<TimeIndexEntry>,
    /// The largest timestamp so far, and the last offset of its batch.
    max_timestamp: TimeIndexEntry,
    producers: ProducerEvents,
    epochs: LeaderEpochs,
    decompressor: Decompressor,
}

impl SegmentFold {
    pub(crate) fn new(directory: String, base_offset: i64, index_interval_bytes: u32) -> Self {
        let summary = SegmentSummary {
            directory,
            base_offset,
            next_offset: base_offset,
            size: 0,
            batches: 0,
            producers: Vec::new(),
            leader_epochs: Vec::new(),
        };
        Self {
            summary,
            index_interval_bytes,
            bytes_since_last_index_entry: 0,
            offset_index: Vec::new(),
            time_index: Vec::new(),
            max_timestamp: TimeIndexEntry { timestamp: -1, offset: -1 },
            producers: ProducerEvents::default(),
            epochs: LeaderEpochs::default(),
            decompressor: Decompressor::new(),
        }
    }

    pub(crate) fn base_offset(&self) -> i64 {
        self.summary.base_offset
    }

    pub(crate) fn next_offset(&self) -> i64 {
        self.summary.next_offset
    }

    pub(crate) fn size(&self) -> u64 {
        self.summary.size
    }

    /// True if an index limited to this many bytes is full (`OffsetIndex.isFull`, `TimeIndex.isFull`). The
    /// latter keeps room for the entry added on closing.
    pub(crate) fn is_index_full(&self, max_index_bytes: u32) -> bool {
        let max = max_index_bytes as usize;
        self.offset_index.len() >= max / 8 || self.time_index.len() + 1 >= max / 12
    }

    /// Adds the next batch, which is in order and whose offsets fit the segment.
    pub(crate) fn add(&mut self, batch: &Batch<'_>) -> Result<()> {
        let (last_offset, timestamp) = (batch.last_offset(), batch.max_timestamp());
        // Kafka's positions are ints.
        let position = u32::try_from(self.summary.size).ok().filter(|&position| position < 1 << 31);
        let position = position.ok_or_else(|| {
            batch.place(
                ErrorKind::InvalidRecord("the batch begins past the first 2 GiB of its segment").into(),
            )
        })?;
        if let Some(batch) = batch.as_v2() {
            if let Some(event) = ProducerEvent::of(batch, &mut self.decompressor)? {
                self.producers.add(event);
            }
            let (epoch, start_offset) = (batch.partition_leader_epoch(), batch.base_offset());
            self.epochs.replay(EpochEntry { epoch, start_offset });
        }
        if timestamp > self.max_timestamp.timestamp {
            self.max_timestamp = TimeIndexEntry { timestamp, offset: last_offset };
        }
        if self.bytes_since_last_index_entry > self.index_interval_bytes.into() {
            self.offset_index.push(OffsetIndexEntry { offset: last_offset, position });
            self.add_time();
            self.bytes_since_last_index_entry = 0;
        }
        self.bytes_since_last_index_entry += batch.size_in_bytes() as u64;
        self.summary.size += batch.size_in_bytes() as u64;
        self.summary.batches += 1;
        self.summary.next_offset = last_offset.saturating_add(1);
        Ok(())
    }

    /// `TimeIndex.maybeAppend`: only a timestamp larger than the last entry's, or than -1 in an empty index.
    fn add_time(&mut self) {
        if self.max_timestamp.timestamp > self.time_index.last().map_or(-1, |last| last.timestamp) {
            self.time_index.push(self.max_timestamp);
        }
    }

    /// Closes the segment, adding an entry for its largest timestamp.
    pub(crate) fn finish(mut self) -> Result<FoldedSegment> {
        self.add_time();
        self.summary.producers = self.producers.into_events();
        self.summary.leader_epochs = self.epochs.entries().to_vec();
        let base_offset = self.summary.base_offset;
        Ok(FoldedSegment {
            offset_index: write_offset_index(&self.offset_index, base_offset)?,
            time_index: write_time_index(&self.time_index, base_offset)?,
            summary: self.summary,
        })
    }
}
