//! An estimate of how well the records of the next batch will compress, judged by the batches before it
//! (`CompressionRatioEstimator`).

/// Kafka's margin on the estimated size of compressed records.
const COMPRESSION_RATE_ESTIMATION_FACTOR: f32 = 1.05;
/// The steps by which the estimate improves and deteriorates.
const COMPRESSION_RATIO_IMPROVING_STEP: f32 = 0.005;
const COMPRESSION_RATIO_DETERIORATE_STEP: f32 = 0.05;

/// The estimated ratio of compressed to uncompressed size.
#[derive(Debug)]
pub(super) struct CompressionRatio(f32);

impl Default for CompressionRatio {
    fn default() -> Self {
        Self(1.0)
    }
}

impl CompressionRatio {
    /// The estimated size in bytes of records that have `raw` bytes uncompressed.
    #[inline]
    pub(super) fn estimate(&self, raw: usize) -> usize {
        (raw as f32 * self.0 * COMPRESSION_RATE_ESTIMATION_FACTOR) as usize
    }

    /// `updateEstimation`: the estimate improves slowly and worsens at once.
    pub(super) fn observe(&mut self, observed: f32) {
        self.0 = if observed > self.0 {
            observed.max(self.0 + COMPRESSION_RATIO_DETERIORATE_STEP)
        } else {
            observed.max(self.0 - COMPRESSION_RATIO_IMPROVING_STEP)
        };
    }
}
