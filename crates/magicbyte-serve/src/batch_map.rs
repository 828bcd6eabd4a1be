//! Positions of the good batches in a chunk, which are the part of it that is served. The chunk is read once for this,
//! with all CRCs checked; afterwards its bytes go to clients without being looked at.

use std::io;

use magicbyte::{Batch, DEFAULT_MAX_DECOMPRESSED_BYTES, Decompressor};
use magicbyte_log::steps::{Chunk, ChunkReader};
use magicbyte_log::{Disposition, LISTED, Problem};

/// Small batches are mapped together up to this many bytes.
const RUN_BYTES: u64 = 64 << 10;

/// Adjacent good batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// First byte in the segment.
    pub(super) start: u64,
    /// One past the last byte.
    pub(super) end: u64,
    /// The smallest offset that the first batch can have.
    pub(super) first_offset: i64,
    /// The last offset of the last batch.
    pub(super) last_offset: i64,
    /// The number of batches: those of a single one may take more than [`RUN_BYTES`].
    pub(super) batches: u32,
    /// True if the batches are of magic 0 or 1.
    pub(super) is_legacy: bool,
}

/// The good batches of a chunk, in offset order.
#[derive(Debug, Default)]
pub(super) struct BatchMap {
    pub(super) runs: Vec<Run>,
    /// Problems, whose bytes are left out.
    pub(super) problems: Vec<Problem>,
    /// Further problems, which are only counted.
    pub(super) problems_left_out: u64,
}

impl BatchMap {
    /// Reads the chunk. Batches of the transactions in `chunk.aborted` are left out, too.
    ///
    /// # Errors
    /// If no file can be opened or memory is exhausted.
    pub(super) fn of(chunk: &Chunk) -> io::Result<Self> {
        let start_offset = chunk.start_offset.max(chunk.log_start_offset).unwrap_or(i64::MIN);
        let mut expected = chunk.expected_offset;
        let mut decompressor = Decompressor::new();
        let mut reader =
            ChunkReader::open(chunk.clone(), true, DEFAULT_MAX_DECOMPRESSED_BYTES)?.max_problems(LISTED);
        let mut map = Self::default();
        while let Some((data, disposition)) = reader.next_batch()? {
            let batch = data.batch();
            // Only after damage is a wrapper's first offset worth its decompression.
            let first = reader.follows_damage().then(|| batch.base_offset(&mut decompressor).ok());
            reader.pass(first.flatten(), batch.last_offset());
            // The batches that an earlier segment has, too, deleted ones, and those of aborted transactions.
            if batch.last_offset() >= start_offset && disposition != Disposition::Aborted {
                map.add(&batch, data.position(), expected);
            }
            expected = batch.last_offset().saturating_add(1);
        }
        map.problems = reader.take_problems();
        map.problems_left_out = reader.take_problems_left_out();
        Ok(map)
    }

    fn add(&mut self, batch: &Batch<'_>, start: u64, expected: i64) {
        let end = start + batch.size_in_bytes() as u64;
        let is_legacy = batch.magic() < 2;
        let last_offset = batch.last_offset();
        if let Some(run) = self.runs.last_mut()
            && (run.end, run.is_legacy) == (start, is_legacy)
            && end - run.start <= RUN_BYTES
        {
            (run.end, run.last_offset) = (end, last_offset);
            run.batches += 1;
            return;
        }
        // A wrapper's header has its last offset.
        let first_offset = if is_legacy { expected } else { batch.stored_offset() };
        self.runs.push(Run { start, end, first_offset, last_offset, batches: 1, is_legacy });
    }
}
