//! Reads the copies of a partition side by side and notes which of them have the same batches.

use std::thread;

use crate::chunk::DEFAULT_CHUNK_BYTES;
use crate::error::{LogError, LogResult};
use crate::listing::Listing;
use crate::merge::copy_reader::CopyReader;
use crate::merge::copy_scanner::Head;
use crate::merge::model::{Alignment, MAX_COPIES, Run, Share};
use crate::read::plan::Plan;

/// Reads every copy of a partition once, in offset order, and groups their good batches into runs. Before
/// `cleaned_until`, copies are not compared: Kafka's cleaner leaves other batches in each copy.
///
/// Cost: reads and checks all bytes, in a thread for each copy, but decodes no records of magic 2. Memory: a
/// block or the largest batch of each copy, and the result.
///
/// # Errors
/// [`LogError::Io`]; [`LogError::Usage`] for more than [`MAX_COPIES`] copies, or another number of listings than
/// plans. Damage is not an error.
pub fn align(
    listings: &[Listing],
    plans: &[Plan],
    cleaned_until: i64,
    max_batch_size: usize,
) -> LogResult<Alignment> {
    if plans.len() > MAX_COPIES || listings.len() != plans.len() {
        let (plans, listings) = (plans.len(), listings.len());
        let why =
            format!("{plans} copies and {listings} listings: expected as many, and at most {MAX_COPIES}");
        return Err(LogError::Usage(why));
    }
    thread::scope(|scope| {
        let readers: LogResult<Vec<_>> = plans
            .iter()
            .enumerate()
            .map(|(copy, plan)| CopyReader::start(scope, copy, plan, max_batch_size))
            .collect();
        let aligner = Aligner {
            listings,
            cleaned_until,
            cuts: cuts(listings, plans),
            readers: readers?,
            runs: Vec::new(),
            current: vec![None; plans.len()],
            heads: Vec::new(),
            group: Vec::new(),
        };
        aligner.align()
    })
}

/// The offsets at which a run ends, so that it is within one leader's epoch of every copy: where epochs begin, by
/// batches and by checkpoints, and where copies end.
fn cuts(listings: &[Listing], plans: &[Plan]) -> Vec<i64> {
    let batches = plans.iter().flat_map(|plan| plan.leader_epochs.entries());
    let checkpoints = listings.iter().flat_map(|listing| listing.leader_epochs.entries());
    let epochs = batches.chain(checkpoints).map(|entry| entry.start_offset);
    let mut cuts: Vec<_> = epochs.chain(plans.iter().filter_map(|plan| plan.next_offset)).collect();
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

/// A run that may grow, and what its batches have in common.
struct OpenRun {
    run: Run,
    members: u64,
    /// The copies that have a batch at the offsets of the run, equal or not.
    present: u64,
    /// The number of cuts before the end of its batches.
    cell: usize,
}

struct Aligner<'a, 'scope> {
    listings: &'a [Listing],
    cleaned_until: i64,
    cuts: Vec<i64>,
    readers: Vec<CopyReader<'scope>>,
    runs: Vec<OpenRun>,
    /// The run that has the last batch of each copy.
    current: Vec<Option<usize>>,
    /// The batches of a step, and those of them that are equal: kept for their memory.
    heads: Vec<(usize, Head)>,
    group: Vec<(usize, Head)>,
}

impl Aligner<'_, '_> {
    fn align(mut self) -> LogResult<Alignment> {
        while let Some(offset) = self.heads().map(|(_, head)| head.first_offset).min() {
            if offset >= self.cleaned_until && self.refuse_wrong_header(offset) {
                continue;
            }
            self.step(offset);
        }
        let mut runs: Vec<_> = self.runs.into_iter().map(|open| open.run).collect();
        runs.sort_by_key(|run| run.first_offset);
        let mut alignment = Alignment { runs, ..Alignment::default() };
        for reader in self.readers {
            let (account, damages) = reader.finish()?;
            alignment.copies.push(account);
            alignment.damages.extend(damages);
        }
        Ok(alignment)
    }

    fn heads(&self) -> impl Iterator<Item = (usize, &Head)> {
        self.readers.iter().enumerate().filter_map(|(copy, reader)| Some((copy, reader.head()?)))
    }

    fn heads_at(&self, offset: i64) -> impl Iterator<Item = (usize, &Head)> {
        self.heads().filter(move |(_, head)| head.first_offset == offset)
    }

    /// Takes the batches that begin at this offset, which no batch precedes.
    fn step(&mut self, offset: i64) {
        let mut heads = std::mem::take(&mut self.heads);
        heads.clear();
        heads.extend(self.heads_at(offset).map(|(copy, head)| (copy, *head)));
        let mut left = mask(heads.iter().map(|&(copy, _)| copy));
        let passed = (0..self.readers.len()).filter(|&copy| self.readers[copy].has_passed(offset));
        let present = left | mask(passed);
        let is_cleaned = offset < self.cleaned_until;
        let mut group = std::mem::take(&mut self.group);
        for (at, &(copy, head)) in heads.iter().enumerate() {
            if left & (1 << copy) == 0 {
                continue;
            }
            let is_equal = |other: &Head| {
                !is_cleaned && other.content() == head.content() && other.leader_epoch == head.leader_epoch
            };
            group.clear();
            group.extend(
                heads[at..].iter().filter(|(other, batch)| *other == copy || is_equal(batch)).copied(),
            );
            let members = mask(group.iter().map(|&(copy, _)| copy));
            left &= !members;
            self.add(&group, members, if is_cleaned { members } else { present });
        }
        heads.iter().for_each(|&(copy, _)| self.readers[copy].pass());
        (self.heads, self.group) = (heads, group);
    }

    /// Appends a batch that these copies have to their run, or begins a run.
    fn add(&mut self, group: &[(usize, Head)], members: u64, present: u64) {
        let Some(&(copy, head)) = group.first() else { return };
        let cell = self.cuts.partition_point(|&cut| cut <= head.last_offset);
        let next_offset = head.last_offset.saturating_add(1);
        let is_cleaned = |offset: i64| offset < self.cleaned_until;
        let open = self.current[copy];
        let grows = open.and_then(|at| self.runs.get(at)).is_some_and(|open| {
            let run = &open.run;
            (open.members, open.present, open.cell) == (members, present, cell)
                && run.leader_epoch == head.leader_epoch
                && run.size() + head.size <= DEFAULT_CHUNK_BYTES
                && is_cleaned(run.first_offset) == is_cleaned(head.first_offset)
                && (run.next_offset == head.first_offset || is_cleaned(head.first_offset))
                && run
                    .shares
                    .iter()
                    .zip(group)
                    .all(|(share, (_, head))| (share.segment, share.end) == (head.segment, head.position))
        });
        // Equal copies are in the same run, unless one of them was in another since.
        let is_shared = group.iter().all(|&(copy, _)| self.current[copy] == open);
        if let (true, true, Some(open)) = (grows, is_shared, open.and_then(|at| self.runs.get_mut(at))) {
            open.run.shares.iter_mut().for_each(|share| share.end += head.size);
            open.run.next_offset = next_offset;
            open.run.batches += 1;
            open.run.content = head.hash_after(open.run.content);
            return;
        }
        let shares = group.iter().map(|&(copy, head)| Share {
            copy,
            segment: head.segment,
            start: head.position,
            end: head.position + head.size,
        });
        let run = Run {
            shares: shares.collect(),
            first_offset: head.first_offset,
            next_offset,
            leader_epoch: head.leader_epoch,
            batches: 1,
            content: head.hash_after(0),
        };
        group.iter().for_each(|&(copy, _)| self.current[copy] = Some(self.runs.len()));
        self.runs.push(OpenRun { run, members, present, cell });
    }

    /// Refuses a wrong offset or leader epoch in the last batch of a copy, which no CRC covers and no later batch
    /// contradicts. It would decide which copy leads. Another copy has the batch at this offset, with an offset or
    /// an epoch that is lower by one bit; and the checkpoint of this copy does not have the higher epoch. Returns
    /// true if there is such a batch.
    fn refuse_wrong_header(&mut self, offset: i64) -> bool {
        let is_wrong = |&(copy, head): &(usize, &Head)| {
            let reader = &self.readers[copy];
            let checkpoint = self.listings[copy].leader_epochs.entries();
            let is_known = checkpoint.iter().any(|entry| entry.epoch == head.leader_epoch);
            head.is_last
                && !reader.has_passed(offset)
                && self.heads_at(offset).filter(|(_, other)| other.is_same_batch(head)).any(|(_, other)| {
                    let is_epoch = head.first_offset == offset && !is_known;
                    is_epoch && is_raised(other.leader_epoch.into(), head.leader_epoch.into())
                        || is_raised(offset, head.first_offset)
                })
        };
        let Some((copy, _)) = self.heads().find(is_wrong) else { return false };
        self.readers[copy].refuse();
        true
    }
}

/// True if a number is larger than another by one bit.
fn is_raised(number: i64, by_a_bit: i64) -> bool {
    number < by_a_bit && (number ^ by_a_bit).count_ones() == 1
}

fn mask(copies: impl Iterator<Item = usize>) -> u64 {
    copies.fold(0, |mask, copy| mask | 1 << copy)
}
