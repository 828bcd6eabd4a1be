//! Reads the good batches of one copy in offset order, and notes what lies between them.

use std::io;

use magicbyte::Decompressor;

use crate::error::{LogError, LogResult};
use crate::merge::model::{AlignedCopy, Damage, Share};
use crate::problem::LISTED;
use crate::read::chunk_reader::ChunkReader;
use crate::read::plan::Plan;

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

    fn share(&self, copy: usize) -> Share {
        let (segment, start) = (self.segment, self.position);
        Share { copy, segment, start, end: start + self.size }
    }
}

/// A batch without a leader epoch, as in magic 0 and 1.
const NO_EPOCH: i32 = -1;

/// The reader of one copy. Memory: one block, or the largest batch.
#[derive(Debug)]
pub(super) struct CopyReader<'a> {
    copy: usize,
    plan: &'a Plan,
    /// The chunk to open next.
    chunk: usize,
    open: Option<ChunkReader>,
    segment: usize,
    /// The end of the accounted bytes of the open chunk.
    position: u64,
    /// The offset after the last batch that was read.
    read_until: i64,
    /// The last epoch that was passed.
    leader_epoch: i32,
    head: Option<Head>,
    following: Option<Head>,
    /// The offset after the last batch that was passed.
    next_offset: i64,
    damages: Vec<Damage>,
    /// The damage from here on has no good batch after it yet.
    open_damages: usize,
    account: AlignedCopy,
    max_batch_size: usize,
    decompressor: Decompressor,
}

impl<'a> CopyReader<'a> {
    /// Opens a copy and reads its first batch.
    pub(super) fn open(copy: usize, plan: &'a Plan, max_batch_size: usize) -> LogResult<Self> {
        let start = plan.segments.first().map_or(0, |segment| segment.segment.base_offset);
        let mut reader = Self {
            copy,
            plan,
            chunk: 0,
            open: None,
            segment: 0,
            position: 0,
            read_until: start,
            leader_epoch: NO_EPOCH,
            head: None,
            following: None,
            next_offset: start,
            damages: Vec::new(),
            open_damages: 0,
            account: AlignedCopy::default(),
            max_batch_size,
            decompressor: Decompressor::with_limit(max_batch_size),
        };
        reader.following = reader.read()?;
        reader.find_head()?;
        Ok(reader)
    }

    /// The next good batch.
    pub(super) fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// True if the copy has the batch that holds this offset, which is at most that of the next batch.
    pub(super) fn has_passed(&self, offset: i64) -> bool {
        self.next_offset > offset
    }

    /// Passes the next good batch.
    pub(super) fn pass(&mut self) -> LogResult<()> {
        if let Some(head) = self.head.take() {
            self.next_offset = head.last_offset.saturating_add(1);
            self.leader_epoch = self.leader_epoch.max(head.leader_epoch);
            self.account.good_bytes += head.size;
            self.account.last = Some((head.leader_epoch, head.last_offset));
        }
        self.find_head()
    }

    /// Counts the next good batch as damage, since its leader epoch is wrong.
    pub(super) fn refuse(&mut self) -> LogResult<()> {
        if let Some(head) = self.head.take() {
            self.refuse_epoch(&head, None);
        }
        self.find_head()
    }

    /// The account and the damage, once all batches are passed.
    pub(super) fn finish(self) -> (AlignedCopy, Vec<Damage>) {
        (self.account, self.damages)
    }

    /// No CRC covers the leader epoch, but epochs never decrease: an epoch that contradicts the batch before or
    /// after it is wrong.
    fn find_head(&mut self) -> LogResult<()> {
        while let Some(mut head) = self.following.take() {
            self.following = self.read()?;
            head.is_last = self.following.is_none();
            let (before, epoch) = (self.leader_epoch, head.leader_epoch);
            let after =
                self.following.map(|following| following.leader_epoch).filter(|&after| after >= before);
            let is_ordered = epoch >= before && after.is_none_or(|after| epoch <= after);
            if is_ordered || epoch == NO_EPOCH {
                self.head = Some(head);
                return Ok(());
            }
            self.refuse_epoch(&head, after.filter(|&after| after == before));
        }
        Ok(())
    }

    fn refuse_epoch(&mut self, head: &Head, leader_epoch: Option<i32>) {
        self.account.damaged_bytes += head.size;
        let damage = Damage {
            share: head.share(self.copy),
            first_offset: head.first_offset,
            next_offset: head.last_offset.checked_add(1),
            leader_epoch,
        };
        // The bytes after it may have been noted already.
        let at = self.damages.partition_point(|other| {
            (other.share.segment, other.share.start) < (head.segment, head.position)
        });
        self.damages.insert(at, damage);
        self.open_damages += 1;
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
            let io = |error: io::Error| LogError::io(reader_path(self.plan, self.chunk), error);
            let Some((data, _)) = reader.next_batch().map_err(io)? else {
                self.close_chunk();
                continue;
            };
            let batch = data.batch();
            let last_offset = batch.last_offset();
            // The messages of a wrapper were decompressed when its offset was checked.
            let first_offset =
                batch.base_offset(&mut self.decompressor).unwrap_or_else(|_| batch.stored_offset());
            reader.pass(Some(first_offset), last_offset);
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
            let start = reader.chunk().start_offset.unwrap_or(i64::MIN);
            self.note_damage(head.position);
            self.position = head.position + head.size;
            if first_offset < start.max(self.read_until) {
                self.account.overlapping_bytes += head.size;
                continue;
            }
            for damage in self.damages.iter_mut().skip(self.open_damages) {
                damage.next_offset.get_or_insert(first_offset);
            }
            self.open_damages = self.damages.len();
            self.read_until = last_offset.saturating_add(1);
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
            first_offset: self.read_until,
            next_offset: None,
            leader_epoch: None,
        });
    }
}

fn reader_path(plan: &Plan, next_chunk: usize) -> &std::path::Path {
    let opened = next_chunk.checked_sub(1).and_then(|chunk| plan.chunks.get(chunk));
    opened.map_or(std::path::Path::new(&plan.path), |chunk| chunk.location.path())
}
