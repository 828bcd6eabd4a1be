//! What a segment allows its next batch to be.

/// What a batch must fit to be the log's next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The smallest offset it can have.
    pub(crate) expected: i64,
    /// The largest offset the segment can hold.
    pub(crate) max_offset: i64,
    /// Larger batches are not loaded.
    pub(crate) max_batch_size: usize,
}
