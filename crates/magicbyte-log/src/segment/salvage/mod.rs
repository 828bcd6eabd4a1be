//! The search for the batch with which the log continues after a bad one.
//!
//! A value may hold whole batches, so a matching CRC alone proves nothing. Rules are tried in this order, and the
//! first that knows decides:
//!
//! 1. The **same batch again**: an interrupted append was repeated in full (`appended_again.rs`).
//! 2. The batch's **own bytes** (`own_bytes.rs`): one flipped bit explains the checksum up to the declared end; or
//!    the checksum, which does not cover the length, holds for another one; or the sizes of its records lead to its
//!    end (`extent.rs`). A batch that claims more than the file has, and whose records are cut off, is a torn tail,
//!    whatever its values hold.
//! 3. Its **declared end**, if the headers from there lead to a batch whose CRC holds, and nothing shows that it
//!    ends before (`declared_end.rs`).
//! 4. A **scan** for batches whose CRC holds (`scan.rs`) and whose offsets continue the log (`islands.rs`).
//!
//! Rules 3 and 4 follow the bad batch's own checksum as far as they go: if the CRC of the bytes up to another batch
//! is the stored one, the bad batch ends there, whatever batches its records hold.
//!
//! Work is linear in the file, whatever lengths headers claim and however frequent damage is. It is paid from
//! a budget that grows with the bytes passed. As the budget runs out, evidence is gathered over shorter
//! distances, down to the first batch that fits and whose CRC holds; checksums of long ranges are computed
//! from prefixes (`evidence.rs`).

use std::io;
use std::ops::Range;

use magicbyte::{Batch, Error, ErrorKind, RECORD_BATCH_OVERHEAD};

use crate::segment::blocks::Blocks;
use crate::segment::limits::Limits;
use damage::Damage;
use evidence::{Evidence, OwnChecksum};
use neighbors::Neighbors;

mod appended_again;
mod damage;
mod declared_end;
mod evidence;
mod extent;
mod header;
mod islands;
mod neighbors;
mod own_bytes;
mod scan;
#[cfg(test)]
mod testing;
mod whole_batches;
mod window;

pub(crate) use whole_batches::{WholeBatch, WholeBatches};

const BLOCK: usize = 1 << 20;
/// Once damage has been frequent, a batch larger than this is not loaded only to check its CRC. Nor is a
/// flipped bit accepted as the explanation of its damage: among this many bits, one fits by chance once in
/// 4,000 times.
const LARGE: usize = 64 << 10;
/// The first step of a scan with little budget left, in bytes.
const MIN_STEP: u64 = 1 << 10;
/// The cost of a step over bytes that are not read, to a header or a size, in bytes of the budget.
const STEP_EFFORT: u64 = 256;

/// The finding of a rule about a bad batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The batch ends here, and the log continues.
    End(u64),
    /// The batch was never completely written, so nothing follows it.
    Torn,
    /// The header claims more than the file has, and nothing in the batch confirms or refutes it.
    MayBeTorn,
    Unknown,
}

/// The rules, the strongest evidence first.
const RULES: [fn(&mut Damage<'_>) -> io::Result<Verdict>; 4] =
    [appended_again::appended_again, own_bytes::own_bytes, declared_end::declared_end, scan::next_batch];

/// Finds where to resume after damage; each reader has one.
#[derive(Debug)]
pub(crate) struct Salvage {
    evidence: Evidence,
    /// The last time that headers led to a batch whose CRC holds: the position where they started, and the
    /// position of that batch.
    led: Option<(u64, u64)>,
}

impl Salvage {
    /// The state for a reader of the bytes `start..end`.
    pub(crate) fn new(start: u64, end: u64) -> Self {
        Self { evidence: Evidence::new(start, end), led: None }
    }

    /// Checks that the offsets of a batch at `range` fit between its neighbors'. None if they fit, else the
    /// offset that does not.
    pub(crate) fn misfit(
        &mut self,
        blocks: &mut Blocks,
        limits: &Limits,
        (first, last): (i64, i64),
        range: Range<u64>,
    ) -> io::Result<Option<i64>> {
        Neighbors { blocks, evidence: &mut self.evidence, limits, range, last }.misfit(first)
    }

    /// Refuses to load a large batch whose CRC is known to be wrong; returns the error. Headers that claim
    /// long ranges one after another must not cost those ranges each time.
    pub(crate) fn refuses(
        &mut self,
        blocks: &mut Blocks,
        position: u64,
        size: usize,
    ) -> io::Result<Option<Error>> {
        if size <= LARGE || size as u64 <= self.evidence.left(position) {
            return Ok(None);
        }
        let header = blocks.peek(position, RECORD_BATCH_OVERHEAD)?;
        let (Ok(batch), Some(checksum)) = (Batch::from_header(&header, position), OwnChecksum::read(&header))
        else {
            return Ok(None);
        };
        let (covered, stored) = (position + checksum.start..position + size as u64, checksum.stored);
        let computed = self.evidence.checksum(blocks, checksum.algorithm, covered, position)?;
        let wrong = computed.filter(|&computed| computed != stored);
        Ok(wrong.map(|computed| batch.place(ErrorKind::CrcMismatch { stored, computed }.into())))
    }

    /// Spends this many bytes of the budget.
    pub(crate) fn spend(&mut self, bytes: usize) {
        self.evidence.spend(bytes as u64);
    }

    /// Position of the first batch after the bad one at `start`, or the file's size if that batch is whole
    /// and the last. `declared_end` is where its length puts its end, if the length is possible at all. None if
    /// no batch of this log follows.
    pub(crate) fn resume(
        &mut self,
        blocks: &mut Blocks,
        start: u64,
        declared_end: Option<u64>,
        limits: &Limits,
    ) -> io::Result<Option<u64>> {
        let (header, limits) = (blocks.at(start, RECORD_BATCH_OVERHEAD)?, *limits);
        let Self { evidence, led } = self;
        let mut damage =
            Damage { blocks, evidence, led, limits, start, header, declared_end, may_be_torn: false };
        for rule in RULES {
            match rule(&mut damage)? {
                Verdict::End(end) => return Ok(Some(end)),
                Verdict::Torn => return Ok(None),
                Verdict::MayBeTorn => damage.may_be_torn = true,
                Verdict::Unknown => {}
            }
        }
        Ok(None)
    }
}
