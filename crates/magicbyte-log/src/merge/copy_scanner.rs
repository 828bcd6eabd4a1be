//! Reads the good batches of one copy in offset order, and notes what lies between them.

use std::io;
use std::sync::mpsc::SyncSender;

use magicbyte::Decompressor;

use crate::error::{LogError, LogResult};
use crate::merge::model::{AlignedCopy, Damage, Share};
use crate::problem::LISTED;
use crate::read::chunk_reader::ChunkReader;
use crate::read::plan::Plan;

/// Batches that are passed on together.
const BLOCK: usize = 256;

/// A good batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub first_offset: i64,
    pub last_offset: i64,
    pub leader_epoch: i32,
    pub crc: u32,
    pub size: u64,
    pub segment: usize,
    pub position: u64,
    /// True if no good batch follows in the copy.
    pub is_last: bool,
}

impl Head {
    /// The part of a batch that is equal in all copies, whatever leader epoch the batch has.
    pub(super) fn content(&self) -> (i64, i64, u32, u64) {
        (self.first_offset, self.last_offset, self.crc, self.size)
    }

    /// True if two batches are equal but for their place in the log, which no CRC covers.
    pub(super) fn is_same_batch(&self, other: &Self) -> bool {
        let span = |head: &Self| head.last_offset.wrapping_sub(head.first_offset);
        (self.crc, self.size, span(self)) == (other.crc, other.size, span(other))
    }

    /// The hash of a run that goes on with this batch.
    pub(super) fn hash_after(&self, before: u64) -> u64 {
        // The odd constant of Fibonacci hashing.
        (before ^ (self.last_offset as u64).rotate_left(32) ^ u64::from(self.crc))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    pub(super) fn share(&self, copy: usize) -> Share {
        let (segment, start) = (self.segment, self.position);
        Share { copy, segment, start, end: start + self.size }
    }
}

/// The scan of one copy. Memory: one block of its file, or the largest batch.
#[derive(Debug)]
pub(super) struct CopyScanner<'a> {
    copy: usize,
    plan: &'a Plan,
    /// The chunk to open next.
    chunk: usize,
    open: Option<ChunkReader>,
    segment: usize,
    /// The end of the accounted bytes of the open chunk.
    position: u64,
    /// The offset after the last good batch.
    next_offset: i64,
    damages: Vec<Damage>,
    /// The damage from here on has no good batch after it yet.
    open_damages: usize,
    account: AlignedCopy,
    max_batch_size: usize,
    decompressor: Decompressor,
}

impl<'a> CopyScanner<'a> {
    pub(super) fn new(copy: usize, plan: &'a Plan, max_batch_size: usize) -> Self {
        Self {
            copy,
            plan,
            chunk: 0,
            open: None,
            segment: 0,
            position: 0,
            next_offset: plan.segments.first().map_or(0, |first| first.segment.base_offset),
            damages: Vec::new(),
            open_damages: 0,
            account: AlignedCopy::default(),
            max_batch_size,
            decompressor: Decompressor::with_limit(max_batch_size),
        }
    }

    /// Sends all good batches, unless nobody receives them any more. Returns the account, in which the good
    /// batches are yet to be counted, and the damage.
    pub(super) fn run(mut self, heads: &SyncSender<Vec<Head>>) -> LogResult<(AlignedCopy, Vec<Damage>)> {
        let mut block = Vec::with_capacity(BLOCK);
        while let Some(head) = self.read()? {
            block.push(head);
            if block.len() == BLOCK && heads.send(std::mem::take(&mut block)).is_err() {
                break;
            }
        }
        // The receiver may have ended with an error of its own.
        let _ = heads.send(block);
        Ok((self.account, self.damages))
    }

    /// Reads the next good batch, and accounts for the bytes before it.
    fn read(&mut self) -> LogResult<Option<Head>> {
        loop {
            let Some(reader) = &mut self.open else {
                match self.open_chunk()? {
                    true => continue,
                    false => return Ok(None),
                }
            };
            let next = reader.next_batch();
            let next = next.map_err(|error| LogError::io(reader.chunk().location.path(), error))?;
            let Some((data, _)) = next else {
                self.close_chunk();
                continue;
            };
            let batch = data.batch();
            let last_offset = batch.last_offset();
            // The messages of a wrapper were decompressed when its offset was checked.
            let first_offset =
                batch.base_offset(&mut self.decompressor).unwrap_or_else(|_| batch.stored_offset());
            reader.pass(Some(first_offset), last_offset);
            let start_offset = reader.chunk().start_offset.unwrap_or(i64::MIN);
            let head = Head {
                first_offset,
                last_offset,
                leader_epoch: batch.partition_leader_epoch(),
                crc: batch.crc(),
                size: data.data().len() as u64,
                segment: self.segment,
                position: data.position(),
                is_last: false,
            };
            self.note_damage(head.position);
            self.position = head.position + head.size;
            if first_offset < start_offset.max(self.next_offset) {
                self.account.overlapping_bytes += head.size;
                continue;
            }
            for damage in self.damages.iter_mut().skip(self.open_damages) {
                damage.next_offset = Some(first_offset);
            }
            self.open_damages = self.damages.len();
            self.next_offset = last_offset.saturating_add(1);
            return Ok(Some(head));
        }
    }

    fn open_chunk(&mut self) -> LogResult<bool> {
        let Some(chunk) = self.plan.chunks.get(self.chunk) else { return Ok(false) };
        let from_here = self.plan.segments.iter().skip(self.segment);
        self.segment += from_here.take_while(|planned| planned.segment.location != chunk.location).count();
        let io = |error: io::Error| LogError::io(chunk.location.path(), error);
        let reader = ChunkReader::open(chunk.clone(), true, self.max_batch_size).map_err(io)?;
        self.position = chunk.start;
        self.open = Some(reader.max_problems(LISTED));
        self.chunk += 1;
        Ok(true)
    }

    fn close_chunk(&mut self) {
        let Some(mut reader) = self.open.take() else { return };
        let end = reader.chunk().end;
        let tail = reader.result().tail.as_ref().map_or(end, |tail| tail.start);
        self.note_damage(tail);
        self.account.tail_bytes += end - tail;
        reader.move_problems(&mut self.account.problems);
    }

    /// Notes that the bytes up to `end` are no good batch.
    fn note_damage(&mut self, end: u64) {
        let start = self.position;
        if end <= start {
            return;
        }
        self.account.damaged_bytes += end - start;
        if let Some(last) = self.damages.get_mut(self.open_damages..).and_then(<[_]>::last_mut)
            && (last.share.segment, last.share.end) == (self.segment, start)
        {
            last.share.end = end;
            return;
        }
        self.damages.push(Damage {
            share: Share { copy: self.copy, segment: self.segment, start, end },
            first_offset: self.next_offset,
            next_offset: None,
            leader_epoch: None,
        });
    }
}
