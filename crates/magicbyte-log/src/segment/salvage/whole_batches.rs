//! Every whole batch in a file of any kind: a disk image, or what was left of a file without a name.

use std::io;

use ::bytes::Bytes;

use magicbyte::{Batch, ErrorKind, RECORD_BATCH_OVERHEAD};

use super::evidence::Evidence;
use super::header::framed_size;
use super::islands::Candidate;
use super::window::Window;
use crate::segment::blocks::Blocks;

/// The largest step of a search, in bytes, and the first: batches are often near each other.
const STEP: usize = 1 << 20;
const FIRST_STEP: usize = 4 << 10;
/// The checksums of prefixes begin anew after as many bytes: 1 MiB of them per GiB.
const EVIDENCE_BYTES: u64 = 1 << 30;

/// A batch whose CRC holds. A value that holds it is not known, or is damaged.
#[derive(Clone, Debug)]
pub(crate) struct WholeBatch {
    pub(crate) position: u64,
    pub(crate) data: Bytes,
    before: [u8; 5],
}

impl WholeBatch {
    /// The batch's place alone.
    pub(crate) fn without_data(&self) -> Self {
        Self { data: Bytes::new(), ..*self }
    }

    /// True if the length of the bytes from this batch to `end` is written right before it, as before a value.
    pub(crate) fn begins_a_value(&self, end: u64) -> bool {
        let candidate = Candidate { start: self.position, end, first: 0, last: 0, before: self.before };
        let length = end - self.position;
        candidate.lengths_before(false).any(|before| before == length)
    }
}

/// The batches of a file in the order of their positions. Batches inside of other batches do not count. Work is
/// linear in the file's size.
#[derive(Debug)]
pub(crate) struct WholeBatches {
    blocks: Blocks,
    max_batch_size: usize,
    evidence: Evidence,
    evidence_ends: u64,
    at: u64,
    /// Batches begin here only if they begin at `at`.
    searched: u64,
}

impl WholeBatches {
    pub(crate) fn new(blocks: Blocks, max_batch_size: usize) -> Self {
        let (evidence, evidence_ends) = (Evidence::new(0, blocks.size()), EVIDENCE_BYTES);
        Self { blocks, max_batch_size, evidence, evidence_ends, at: 0, searched: 0 }
    }

    /// The next batch; None at the end of the file.
    ///
    /// # Errors
    /// If memory is exhausted. Bytes that the operating system cannot read hold no batches.
    pub(crate) fn next(&mut self) -> io::Result<Option<WholeBatch>> {
        if let Some(batch) = self.batch_here()? {
            return Ok(Some(batch));
        }
        self.searched = self.searched.max(self.at);
        let mut step = FIRST_STEP;
        while self.searched < self.blocks.size() {
            if self.searched >= self.evidence_ends {
                self.evidence = Evidence::new(self.searched, self.blocks.size());
                self.evidence_ends = self.searched + EVIDENCE_BYTES;
            }
            let bytes = self.blocks.at(self.searched, 2 * step)?;
            if bytes.is_empty() {
                return Ok(None);
            }
            match self.first_in(&bytes, step)? {
                Some(candidate) => {
                    let before = self.before(candidate.start)?;
                    let size = (candidate.end - candidate.start) as usize;
                    let data = self.blocks.at(candidate.start, size)?;
                    (self.at, self.searched) = (candidate.end, candidate.end);
                    if data.len() == size {
                        return Ok(Some(WholeBatch { position: candidate.start, data, before }));
                    }
                }
                None => self.searched += bytes.len().min(step) as u64,
            }
            step = (2 * step).min(STEP);
        }
        Ok(None)
    }

    /// The first failure to read the file, if there was one.
    pub(crate) fn failure(&self) -> Option<&ErrorKind> {
        self.blocks.failure()
    }

    /// The batch right after the last one.
    fn batch_here(&mut self) -> io::Result<Option<WholeBatch>> {
        let header = self.blocks.at(self.at, RECORD_BATCH_OVERHEAD)?;
        let Some(size) = framed_size(&header) else { return Ok(None) };
        if size > self.max_batch_size as u64 || self.at + size > self.blocks.size() {
            return Ok(None);
        }
        // A large batch is loaded only if its header does not look like other bytes.
        if size > STEP as u64 && Batch::from_header(&header, self.at).is_err() {
            return Ok(None);
        }
        self.evidence.spend(size);
        if self.evidence.left(self.at) == 0 {
            return Ok(None);
        }
        let (position, data) = (self.at, self.blocks.at(self.at, size as usize)?);
        let is_good = Batch::from_frame(&data, position).is_ok_and(|batch| batch.verify().is_ok());
        if !is_good || data.len() as u64 != size {
            return Ok(None);
        }
        self.at += size;
        Ok(Some(WholeBatch { position, data, before: [0; 5] }))
    }

    /// The bytes right before a batch; zeros where the file begins.
    fn before(&mut self, position: u64) -> io::Result<[u8; 5]> {
        let Some(start) = position.checked_sub(5) else { return Ok([0; 5]) };
        Ok(self.blocks.peek(start, 5)?.as_ref().try_into().unwrap_or_default())
    }

    /// The first batch that begins in the first `step` of the bytes at `searched`.
    fn first_in(&mut self, bytes: &[u8], step: usize) -> io::Result<Option<Candidate>> {
        let at = self.searched;
        let mut window = Window::new(bytes, at);
        let mut next = 0;
        while let Some(start) = window.next_magic(next).filter(|&start| start < step) {
            next = start + 1;
            let Some(candidate) = window.candidate(start, self.max_batch_size) else { continue };
            if window.crc_holds((&mut self.blocks, &mut self.evidence), at, &candidate)? {
                return Ok(Some(candidate));
            }
        }
        Ok(None)
    }
}
