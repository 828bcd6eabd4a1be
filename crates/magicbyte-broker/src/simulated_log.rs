//! An in-memory log of one segment, with lookups by offset and time (`LogSegment`).

use magicbyte::{Batch, Batches, Decompressor, Result};

use crate::consumed_log::ListedOffset;

/// `index.interval.bytes`: the density of the offset index, on which the aborted transactions in a fetch
/// response depend.
const INDEX_INTERVAL_BYTES: usize = 4096;

/// A batch in the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    pub(super) position: usize,
    pub(super) size: usize,
    /// In magic 0 and 1 this is the last offset too.
    pub(super) base_offset: i64,
    pub(super) last_offset: i64,
    pub(super) max_timestamp: i64,
}

#[derive(Debug, Default)]
pub(super) struct SimulatedLog {
    bytes: Vec<u8>,
    batches: Vec<Stored>,
    /// The offset index: last offset and position of some batches.
    index: Vec<(i64, usize)>,
    since_last_entry: usize,
    /// `max.decompressed.message.bytes`, which lookups by time obey too.
    record_size_limit: usize,
}

impl SimulatedLog {
    pub(super) fn new(record_size_limit: usize) -> Self {
        Self { record_size_limit, ..Self::default() }
    }

    /// `size` bytes from this position on.
    pub(super) fn slice(&self, position: usize, size: usize) -> &[u8] {
        &self.bytes[position..position + size]
    }

    /// Size of the log in bytes.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Appends whole batches.
    pub(super) fn append(&mut self, batches: &[u8]) -> Result<()> {
        for batch in Batches::at_position(batches, self.bytes.len() as u64) {
            let batch = batch?;
            let (position, size) = (batch.position() as usize, batch.size_in_bytes());
            let (last_offset, max_timestamp) = (batch.last_offset(), batch.max_timestamp());
            if self.since_last_entry > INDEX_INTERVAL_BYTES {
                self.index.push((last_offset, position));
                self.since_last_entry = 0;
            }
            self.since_last_entry += size;
            let base_offset = batch.stored_offset();
            self.batches.push(Stored { position, size, base_offset, last_offset, max_timestamp });
        }
        self.bytes.extend_from_slice(batches);
        Ok(())
    }

    /// The batches that end at or after this offset.
    fn batches_from(&self, offset: i64) -> &[Stored] {
        let first = self.batches.iter().position(|batch| batch.last_offset >= offset);
        &self.batches[first.unwrap_or(self.batches.len())..]
    }

    /// The batch that contains this offset, or the next one.
    pub(super) fn find(&self, offset: i64) -> Option<Stored> {
        self.batches_from(offset).first().copied()
    }

    /// The bytes of the batches that end at or after this offset.
    pub(super) fn bytes_from(&self, offset: i64) -> &[u8] {
        &self.bytes[self.find(offset).map_or(self.bytes.len(), |batch| batch.position)..]
    }

    /// The index's upper bound for offsets of batches before the position `end`; `None` if that is the log's
    /// end (`OffsetIndex.fetchUpperBoundOffset`).
    pub(super) fn upper_bound(&self, end: usize) -> Option<i64> {
        // Kafka's search skips the first entry if it has exactly this position.
        let skip_first = self.index.first().is_some_and(|(_, position)| *position == end);
        let mut entries = self.index.iter().skip(usize::from(skip_first));
        entries.find(|(_, position)| *position >= end).map(|(offset, _)| *offset)
    }

    /// Removes the batch that contains this offset, and those after it.
    pub(super) fn truncate(&mut self, offset: i64) {
        let kept = self.batches.len() - self.batches_from(offset).len();
        let end = self.batches.get(kept).map_or(self.bytes.len(), |batch| batch.position);
        self.batches.truncate(kept);
        self.bytes.truncate(end);
        self.index.retain(|(last_offset, _)| *last_offset < offset);
        self.since_last_entry = 0;
    }

    /// The first record from `start_offset` on with this timestamp or a later one
    /// (`FileRecords.searchForTimestamp`).
    pub(super) fn find_by_time(
        &self,
        timestamp: i64,
        start_offset: i64,
        decompressor: &mut Decompressor,
    ) -> Result<Option<ListedOffset>> {
        for batch in self.batches.iter().filter(|batch| batch.max_timestamp >= timestamp) {
            let matches = |time, offset| time >= timestamp && offset >= start_offset;
            let record = self.find_in(batch, decompressor, matches)?;
            if record.is_some() {
                return Ok(record);
            }
        }
        Ok(None)
    }

    /// The first record with the largest timestamp (`RecordBatch.offsetOfMaxTimestamp`).
    pub(super) fn find_max_timestamp(&self, decompressor: &mut Decompressor) -> Result<Option<ListedOffset>> {
        let max = self.batches.iter().map(|batch| batch.max_timestamp).max();
        match self.batches.iter().find(|batch| Some(batch.max_timestamp) == max) {
            // If no record has a timestamp, the first one is found by its -1; not so in magic 0.
            Some(batch) if self.batch(batch)?.magic() > 0 => {
                self.find_in(batch, decompressor, |time, _| time == batch.max_timestamp)
            }
            _ => Ok(None),
        }
    }

    fn batch(&self, stored: &Stored) -> Result<Batch<'_>> {
        let bytes = &self.bytes[stored.position..stored.position + stored.size];
        Batch::from_frame(bytes, stored.position as u64)
    }

    /// The first record of the batch whose timestamp and offset match.
    fn find_in(
        &self,
        stored: &Stored,
        decompressor: &mut Decompressor,
        matches: impl Fn(i64, i64) -> bool,
    ) -> Result<Option<ListedOffset>> {
        let batch = self.batch(stored)?;
        let leader_epoch = batch.partition_leader_epoch();
        let payload = batch.payload(decompressor)?;
        for record in batch.records_up_to(payload, self.record_size_limit)? {
            let record = record?;
            let (timestamp, offset) = (record.timestamp(), record.offset());
            if matches(timestamp, offset) {
                return Ok(Some(ListedOffset { timestamp, offset, leader_epoch }));
            }
        }
        Ok(None)
    }
}
