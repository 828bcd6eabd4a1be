//! An open segment.

use std::io;
use std::sync::Arc;

use magicbyte::{Batch, Compression, DEFAULT_MAX_DECOMPRESSED_BYTES, Decompressor, RECORD_BATCH_OVERHEAD};
use magicbyte_log::{Location, SegmentReader};

use crate::fields::Fields;
use crate::sheet::{Checkpoint, Sheet};
use crate::source::{Source, location};

/// A segment that is read in slices. Memory: 8 MiB and the largest batch, stored and decompressed, which has at most
/// 256 MiB.
#[derive(Debug)]
pub struct Segment {
    source: Arc<dyn Source>,
    location: Location,
    size: u64,
    decompressor: Decompressor,
}

impl Segment {
    /// Opens a file of `size` bytes.
    pub fn new(source: Arc<dyn Source>, size: u64) -> Self {
        let location = location(Arc::clone(&source));
        Self { source, location, size, decompressor: Decompressor::new() }
    }

    /// Where the first sheet begins.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn start(&self) -> io::Result<Checkpoint> {
        let header = self.bytes(0, RECORD_BATCH_OVERHEAD as u64)?;
        let first = Batch::from_header(&header, 0).ok().filter(|batch| {
            // The header of a wrapper has its last offset only.
            batch.magic() == 2 || batch.compression() == Ok(Compression::None)
        });
        Ok(Checkpoint { position: 0, expected: first.map_or(0, |batch| batch.stored_offset().max(0)) })
    }

    /// The pieces from a checkpoint on.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn sheet(&mut self, start: Checkpoint) -> io::Result<Sheet> {
        let range = start.position.min(self.size)..self.size;
        let location = self.location.clone();
        let reader = SegmentReader::open(location, self.size, range, start.expected, i64::MAX)?;
        Sheet::read(reader, start, &mut self.decompressor)
    }

    /// At most `count` fields of the piece at a position, from the one with the index `first` on.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn fields(&self, position: u64, size: u64, first: usize, count: usize) -> io::Result<Fields> {
        let data = self.bytes(position, size.min(DEFAULT_MAX_DECOMPRESSED_BYTES as u64))?;
        Ok(Fields::read(data, DEFAULT_MAX_DECOMPRESSED_BYTES, first, count))
    }

    fn bytes(&self, position: u64, size: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; size.min(self.size.saturating_sub(position)) as usize];
        let read = self.source.read(&mut bytes, position)?;
        bytes.truncate(read);
        Ok(bytes)
    }
}
