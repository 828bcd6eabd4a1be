//! Digests of the contents of batches: equal for copies of a batch that a broker has recompressed, or given other
//! timestamps.

use std::io;

use twox_hash::XxHash3_128;

use magicbyte::{Decompressor, Result};
use magicbyte_log::{Segment, SegmentBatch, SegmentReader};

use crate::record_digests::write_content;

/// The digests of the batches at these positions of a segment: the 128-bit XXH3 of the key, value and headers of each
/// record, in order. Offsets, timestamps, codec and producer make no difference. None where there is no batch whose
/// CRC holds and whose records decode within the limit, such as in a file that has changed.
///
/// # Errors
/// If no file can be opened or memory is exhausted.
pub fn digest_contents(
    segment: &Segment,
    positions: &[u64],
    max_decompressed_bytes: usize,
) -> io::Result<Vec<Option<u128>>> {
    let mut reader = SegmentReader::of_segment(segment)?.max_batch_size(max_decompressed_bytes);
    let mut decompressor = Decompressor::with_limit(max_decompressed_bytes);
    let mut bytes = Vec::new();
    let mut digests = Vec::with_capacity(positions.len());
    for &position in positions {
        let batch = reader.peek_batch(position)?;
        digests.push(batch.and_then(|batch| digest(&batch, &mut decompressor, &mut bytes).ok()));
    }
    Ok(digests)
}

fn digest(batch: &SegmentBatch, decompressor: &mut Decompressor, bytes: &mut Vec<u8>) -> Result<u128> {
    let mut hasher = XxHash3_128::new();
    for record in batch.batch().records(decompressor)? {
        bytes.clear();
        write_content(&record?, bytes);
        hasher.write(bytes);
    }
    Ok(hasher.finish_128())
}
