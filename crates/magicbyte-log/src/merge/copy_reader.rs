//! The good batches of one copy, which a thread reads ahead.

use std::io;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::vec::IntoIter;

use crate::error::{LogError, LogResult};
use crate::merge::copy_scanner::{CopyScanner, Head};
use crate::merge::model::{AlignedCopy, Damage};
use crate::problem::{LEADER_EPOCH_OUT_OF_ORDER, Problem, Problems};
use crate::read::plan::Plan;

/// A batch without a leader epoch, as in magic 0 and 1.
const NO_EPOCH: i32 = -1;
/// Blocks of batches that a thread may be ahead.
const BLOCKS_AHEAD: usize = 4;

/// The reader of one copy.
#[derive(Debug)]
pub(super) struct CopyReader<'scope> {
    copy: usize,
    plan: &'scope Plan,
    scan: ScopedJoinHandle<'scope, LogResult<(AlignedCopy, Vec<Damage>)>>,
    blocks: Receiver<Vec<Head>>,
    block: IntoIter<Head>,
    head: Option<Head>,
    following: Option<Head>,
    /// The last epoch that was passed.
    leader_epoch: i32,
    /// The offset after the last batch that was passed.
    next_offset: i64,
    good_bytes: u64,
    last: Option<(i32, i64)>,
    /// Batches with a wrong offset or leader epoch.
    refused: Vec<Damage>,
    /// The batches among them whose epochs are out of order.
    problems: Problems,
}

impl<'scope> CopyReader<'scope> {
    /// Begins to read a copy.
    pub(super) fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        copy: usize,
        plan: &'env Plan,
        max_batch_size: usize,
    ) -> LogResult<Self> {
        let (heads, blocks) = sync_channel(BLOCKS_AHEAD);
        let scanner = CopyScanner::new(copy, plan, max_batch_size);
        let spawned = Builder::new().spawn_scoped(scope, move || scanner.run(&heads));
        let mut reader = Self {
            copy,
            plan,
            scan: spawned.map_err(|error: io::Error| LogError::io(plan.path.as_ref(), error))?,
            blocks,
            block: Vec::new().into_iter(),
            head: None,
            following: None,
            leader_epoch: NO_EPOCH,
            next_offset: plan.segments.first().map_or(0, |first| first.segment.base_offset),
            good_bytes: 0,
            last: None,
            refused: Vec::new(),
            problems: Problems::default(),
        };
        reader.following = reader.read();
        reader.find_head();
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
    pub(super) fn pass(&mut self) {
        if let Some(head) = self.head.take() {
            self.next_offset = head.last_offset.saturating_add(1);
            self.leader_epoch = self.leader_epoch.max(head.leader_epoch);
            self.good_bytes += head.size;
            self.last = Some((head.leader_epoch, head.last_offset));
        }
        self.find_head();
    }

    /// Counts the next good batch as damage, since its offset or leader epoch is wrong.
    pub(super) fn refuse(&mut self) {
        if let Some(head) = self.head.take() {
            let (first_offset, share) = (self.next_offset, head.share(self.copy));
            self.refused.push(Damage { share, first_offset, next_offset: None, leader_epoch: None });
        }
        self.find_head();
    }

    /// The account and the damage, once all batches are passed.
    ///
    /// # Errors
    /// The error that ended the batches, if one did.
    pub(super) fn finish(self) -> LogResult<(AlignedCopy, Vec<Damage>)> {
        let (mut account, mut damages) =
            self.scan.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        account.good_bytes = self.good_bytes;
        account.last = self.last;
        account.damaged_bytes +=
            self.refused.iter().map(|damage| damage.share.end - damage.share.start).sum::<u64>();
        account.problems.join(self.problems);
        damages.extend(self.refused);
        damages.sort_by_key(|damage| (damage.share.segment, damage.share.start));
        Ok((account, damages))
    }

    fn read(&mut self) -> Option<Head> {
        loop {
            if let Some(head) = self.block.next() {
                return Some(head);
            }
            self.block = self.blocks.recv().ok()?.into_iter();
        }
    }

    /// No CRC covers the leader epoch, but epochs never decrease: an epoch that contradicts the batch before or
    /// after it is wrong. So is that of every batch of a run with lower epochs, although its CRCs hold: the leader's
    /// `LeaderEpochFileCache` drops the higher epoch when it meets such a run, and then has no end for the epoch that
    /// a follower has fetched last (`Partition.readRecords`), so that no follower gets past its start.
    fn find_head(&mut self) {
        // Only the epoch of a batch between two of the same epoch is certain, not those of a run of batches.
        let mut is_alone = true;
        while let Some(mut head) = self.following.take() {
            self.following = self.read();
            head.is_last = self.following.is_none();
            let (before, epoch) = (self.leader_epoch, head.leader_epoch);
            let after = self.following.map(|following| following.leader_epoch);
            let after = after.filter(|&after| after >= before);
            let is_ordered = epoch >= before && after.is_none_or(|after| epoch <= after);
            if is_ordered || epoch == NO_EPOCH {
                self.head = Some(head);
                return;
            }
            self.note_refused(&head, after.filter(|&after| is_alone && after == before));
            is_alone = false;
        }
    }

    fn note_refused(&mut self, head: &Head, leader_epoch: Option<i32>) {
        if let Some(planned) = self.plan.segments.get(head.segment) {
            let segment = &planned.segment;
            self.problems.note(Problem {
                topic: segment.topic.clone(),
                partition: segment.partition,
                segment: Some(segment.file.clone()),
                kind: LEADER_EPOCH_OUT_OF_ORDER.into(),
                start: Some(head.position),
                end: Some(head.position + head.size),
                base_offset: Some(head.first_offset),
                field: Some("partitionLeaderEpoch".into()),
                first_lost_offset: Some(head.first_offset),
                last_lost_offset: Some(head.last_offset),
                message: format!(
                    "leader epoch {} between batches of epoch {} and {}: the epochs of a log never decrease",
                    head.leader_epoch,
                    self.leader_epoch,
                    self.following
                        .map_or_else(|| "none".into(), |following| following.leader_epoch.to_string()),
                ),
                ..Problem::default()
            });
        }
        self.refused.push(Damage {
            share: head.share(self.copy),
            first_offset: head.first_offset,
            next_offset: head.last_offset.checked_add(1),
            leader_epoch,
        });
    }
}
