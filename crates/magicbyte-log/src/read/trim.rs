//! Narrows a chunk to the bytes that hold the requested offsets, for a stream, which returns to a growing
//! file again and again.

use std::io;

use magicbyte::RecordBatch;

use crate::chunk::Chunk;
use crate::segment::reader::{Piece, SegmentReader};

/// Narrows a chunk to the batches that hold its requested offsets, and the damage between them; None if there
/// are no such batches. Reads no further than necessary.
///
/// Consecutive offset ranges yield consecutive byte ranges: each damaged range is in exactly one of them,
/// even if a batch is requested in two parts. Bytes after the last good batch of the log are in none: they
/// may be a batch that is still being written.
///
/// # Errors
/// If no file can be opened or memory is exhausted.
pub fn trim_chunk(mut chunk: Chunk) -> io::Result<Option<Chunk>> {
    let start = chunk.start_offset.filter(|&start| start > chunk.expected_offset);
    let end = chunk.end_offset.filter(|&end| chunk.next_offset.is_none_or(|next| end < next));
    if start.zip(chunk.next_offset).is_some_and(|(start, next)| start >= next)
        || end.is_some_and(|end| end <= chunk.expected_offset)
    {
        return Ok(None);
    }
    let mut cut = Cut { start, end, last_end: chunk.start, expected_offset: chunk.expected_offset };
    if start.is_some() || end.is_some() {
        cut.walk(&mut chunk)?;
    }
    Ok(Some(chunk).filter(|chunk| chunk.start < chunk.end))
}

struct Cut {
    /// The offset to start at, until it is found.
    start: Option<i64>,
    /// The offset to end before, until it is found.
    end: Option<i64>,
    /// Where the last good batch ends.
    last_end: u64,
    /// The offset after its last one.
    expected_offset: i64,
}

impl Cut {
    fn walk(&mut self, chunk: &mut Chunk) -> io::Result<()> {
        let pieces = SegmentReader::of_chunk(chunk)?;
        for piece in pieces {
            let Piece::Batch(read) = piece? else { continue };
            let batch = read.batch();
            let (position, after) = (read.position(), read.position() + read.data().len() as u64);
            let last = batch.last_offset();
            // A wrapper's header has its last offset only.
            let first = batch.as_v2().map_or(self.expected_offset, RecordBatch::base_offset);
            if let Some(start) = self.start.take_if(|start| last >= *start) {
                // If the batch is split, the damage before it was read with its first part.
                let begin = if first < start { position } else { self.last_end };
                self.begin(chunk, begin);
            }
            if let Some(end) = self.end.take_if(|end| last >= *end) {
                chunk.end = if first < end { after } else { self.last_end };
                return Ok(());
            }
            (self.last_end, self.expected_offset) = (after, last.saturating_add(1));
            if self.start.is_none() && self.end.is_none() {
                return Ok(());
            }
        }
        if self.start.is_some() {
            self.begin(chunk, self.last_end);
        }
        if self.end.is_some() {
            chunk.end = self.last_end;
        }
        Ok(())
    }

    fn begin(&self, chunk: &mut Chunk, position: u64) {
        (chunk.start, chunk.expected_offset) = (position, self.expected_offset);
    }
}
