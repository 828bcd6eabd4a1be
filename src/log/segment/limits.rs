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
