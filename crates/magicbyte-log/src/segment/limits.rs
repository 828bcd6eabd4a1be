//! The bounds on a segment's next batch.

/// The offsets and size that the next batch of the log must fit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The smallest offset the batch can have.
    pub(crate) expected: i64,
    /// The largest offset the segment can hold.
    pub(crate) max_offset: i64,
    /// Larger batches are not loaded.
    pub(crate) max_batch_size: usize,
}

impl Limits {
    /// The largest offset that needs no further evidence: a segment of Kafka's spans 31 bits, since its index stores
    /// offsets relative to the name (`LogSegment.canConvertToRelativeOffset`). Cleaners before 0.11.0.1 wrote wider
    /// ones, so an offset beyond it is possible, but a damaged one is more likely.
    pub(crate) fn near(&self) -> i64 {
        self.max_offset.min(self.expected.saturating_add(i32::MAX.into()))
    }
}
