//! Merging copies of a partition: alignment, lineage, and hostile alignments.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use magicbyte::convert::set_partition_leader_epoch;
use magicbyte::{Batches, DEFAULT_MAX_DECOMPRESSED_BYTES};
use magicbyte_log::steps::{
    Alignment, Damage, LeftOutReason, MAX_COPIES, MergeOptions, MergePlan, Plan, Run, Share, align,
    plan_merge, repair_holes,
};
use magicbyte_log::{Listing, LogError, PartitionLog, PlanOptions};
use magicbyte_testing::scratch;

use crate::support::damage::{Chance, Log};

/// The copies of a partition in one directory each.
struct Copies {
    listings: Vec<Listing>,
    plans: Vec<Plan>,
}

impl Copies {
    fn write(root: &Path, logs: &[Vec<u8>]) -> Self {
        let (mut listings, mut plans) = (Vec::new(), Vec::new());
        for (number, bytes) in logs.iter().enumerate() {
            let directory = root.join(format!("b{number}")).join("t-0");
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join(format!("{:020}.log", 0)), bytes).unwrap();
            let log = PartitionLog::open(directory).unwrap();
            plans.push(log.plan(PlanOptions::default()).unwrap());
            listings.push(log.listing().clone());
        }
        Self { listings, plans }
    }

    fn align(&self) -> Alignment {
        align(&self.listings, &self.plans, i64::MIN, DEFAULT_MAX_DECOMPRESSED_BYTES).unwrap()
    }

    fn plan(&self) -> MergePlan {
        plan_merge(&self.align(), &self.listings, &self.plans, &MergeOptions::default()).unwrap()
    }
}

fn with_epoch(log: &Log, from: usize, epoch: i32) -> Vec<u8> {
    let mut bytes = log.bytes.clone();
    for place in &log.places[from..] {
        set_partition_leader_epoch(&mut bytes[place.clone()], epoch).unwrap();
    }
    bytes
}

/// The bytes that a plan would copy.
fn merged(plan: &MergePlan) -> Vec<u8> {
    let chunks = plan.segments.iter().flat_map(|segment| &segment.chunks);
    chunks
        .flat_map(|chunk| {
            let bytes = fs::read(chunk.location.path()).unwrap();
            bytes[chunk.start as usize..chunk.end as usize].to_vec()
        })
        .collect()
}

#[test]
fn every_byte_of_every_copy_is_accounted_for() {
    let root = scratch("merge-account");
    let log = Log::of_plain(2, 60, 300, &mut Chance(3));
    let mut logs = vec![log.bytes.clone(); 3];
    for (number, bytes) in logs.iter_mut().enumerate() {
        for place in log.places.iter().skip(number).step_by(3) {
            bytes[place.end - 1] ^= 0x81;
        }
        bytes.extend([0; 100]);
    }
    let copies = Copies::write(&root, &logs);
    let alignment = copies.align();
    let plan = copies.plan();
    assert_eq!(merged(&plan), log.bytes);
    assert!(plan.holes.is_empty() && plan.left_out.is_empty());
    for (account, merged) in alignment.copies.iter().zip(&plan.copies) {
        let good = merged.used_bytes + merged.same_bytes + merged.left_out_bytes;
        assert_eq!(good, account.good_bytes);
        assert_eq!(good + account.damaged_bytes + account.tail_bytes, logs[0].len() as u64);
        assert_eq!(account.tail_bytes, 100);
    }
}

#[test]
fn the_last_leader_epoch_decides_before_the_last_offset() {
    let root = scratch("merge-epochs");
    let log = Log::of_plain(2, 40, 100, &mut Chance(5));
    let lost = with_epoch(&log, 30, 3);
    let settled = with_epoch(&log, 30, 5)[..log.places[35].start].to_vec();
    let copies = Copies::write(&root, &[lost, settled.clone()]);
    let plan = copies.plan();
    assert_eq!(plan.leader, 1);
    assert_eq!(merged(&plan), settled);
    let [left_out] = &plan.left_out[..] else { panic!("{:?}", plan.left_out) };
    assert_eq!((left_out.copy, left_out.reason), (0, LeftOutReason::Diverged));
    assert_eq!(left_out.first_offset, log.offsets[30].start);
    let preferred = MergeOptions { leader: Some(0), ..MergeOptions::default() };
    let plan = plan_merge(&copies.align(), &copies.listings, &copies.plans, &preferred).unwrap();
    assert_eq!(plan.next_offset, log.next_offset());
}

#[test]
fn repairs_are_those_that_a_crc_proves_at_offsets_that_no_copy_has() {
    let root = scratch("merge-repairs");
    let log = Log::of_plain(2, 20, 200, &mut Chance(9));
    let mut bytes = log.bytes.clone();
    bytes[log.places[4].end - 1] ^= 1;
    bytes[log.places[9].end - 1] ^= 0x81;
    let copies = Copies::write(&root, &[bytes.clone(), bytes]);
    let plan = copies.plan();
    let lost = |batch: usize| (log.offsets[batch].start, log.offsets[batch].end - 1);
    assert_eq!(plan.holes, [lost(4), lost(9)]);
    let directory = root.join("repairs");
    fs::create_dir(&directory).unwrap();
    let limit = DEFAULT_MAX_DECOMPRESSED_BYTES;
    assert_eq!(repair_holes(&copies.align(), &plan, &copies.plans, &directory, limit).unwrap(), 1);
    let file = directory.join(format!("{:020}.log", log.offsets[4].start));
    let repaired = fs::read(file).unwrap();
    assert_eq!(repaired, log.bytes[log.places[4].clone()]);
    assert!(Batches::new(&repaired).all(|batch| batch.is_ok()));
}

#[test]
fn an_alignment_of_other_copies_is_refused() {
    let root = scratch("merge-hostile");
    let log = Log::of_plain(2, 5, 100, &mut Chance(1));
    let copies = Copies::write(&root, &[log.bytes.clone(), log.bytes]);
    let mut alignment = copies.align();
    let refused = |alignment: &Alignment, listings: &[Listing], plans: &[Plan]| {
        let options = MergeOptions::default();
        matches!(plan_merge(alignment, listings, plans, &options), Err(LogError::Usage(_)))
    };
    assert!(refused(&alignment, &copies.listings, &copies.plans[..1]));
    assert!(refused(&alignment, &copies.listings[..1], &copies.plans));
    assert!(refused(&Alignment::default(), &[], &[]));
    alignment.runs[0].shares[0].segment = 7;
    assert!(refused(&alignment, &copies.listings, &copies.plans));
    alignment.runs[0].shares.clear();
    assert!(refused(&alignment, &copies.listings, &copies.plans));
    let many = vec![copies.plans[0].clone(); MAX_COPIES + 1];
    let listings = vec![copies.listings[0].clone(); MAX_COPIES + 1];
    assert!(matches!(align(&listings, &many, i64::MIN, 1 << 20), Err(LogError::Usage(_))));
}

/// A cleaned log of one-byte runs with a damage before each, in the offsets `0, step, 2 * step, ...`.
fn hostile(copies: &Copies, runs: i64, step: i64) -> Alignment {
    let share = |at: i64| Share { copy: 0, segment: 0, start: at as u64, end: at as u64 + 1 };
    let mut alignment = copies.align();
    alignment.runs = (0..runs)
        .map(|at| Run {
            shares: vec![share(2 * at + 1)],
            first_offset: (at + 1) * step,
            next_offset: (at + 1) * step + 1,
            leader_epoch: 0,
            batches: 1,
            content: 0,
        })
        .collect();
    alignment.damages = (0..runs)
        .map(|at| Damage {
            share: share(2 * at),
            first_offset: at * step + 1,
            next_offset: Some((at + 1) * step),
            leader_epoch: None,
        })
        .collect();
    alignment
}

#[test]
fn holes_of_hostile_damages_are_found_in_linear_time() {
    let root = scratch("merge-holes");
    let log = Log::of_plain(2, 5, 100, &mut Chance(1));
    let copies = Copies::write(&root, std::slice::from_ref(&log.bytes));
    let runs = 200_000;
    let mut alignment = hostile(&copies, runs, 10);
    let options = MergeOptions { cleaned_until: i64::MAX, ..MergeOptions::default() };
    let begun = Instant::now();
    let plan = plan_merge(&alignment, &copies.listings, &copies.plans, &options).unwrap();
    assert_eq!(plan.holes.len(), runs as usize);
    assert_eq!(plan.holes[..2], [(1, 9), (11, 19)]);
    // Every damage may hold every offset: a union has each of them once.
    alignment.damages.iter_mut().for_each(|damage| damage.next_offset = None);
    let overlapping = plan_merge(&alignment, &copies.listings, &copies.plans, &options).unwrap();
    assert_eq!(overlapping.holes, plan.holes);
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
}

#[test]
fn repairs_of_many_damages_take_linear_time() {
    let root = scratch("merge-many-repairs");
    let batches = 3000;
    let log = Log::of_plain(2, batches, 60, &mut Chance(4));
    let mut bytes = log.bytes.clone();
    for place in log.places.iter().take(batches - 1).step_by(2) {
        bytes[place.end - 1] ^= 1;
    }
    let copies = Copies::write(&root, &[bytes.clone(), bytes]);
    let plan = copies.plan();
    let directory = root.join("repairs");
    fs::create_dir(&directory).unwrap();
    let limit = DEFAULT_MAX_DECOMPRESSED_BYTES;
    let repaired = repair_holes(&copies.align(), &plan, &copies.plans, &directory, limit).unwrap();
    // The same batch of the other copy is not written again.
    assert_eq!(repaired, plan.holes.len() as u64);
    assert_eq!(fs::read_dir(&directory).unwrap().count(), plan.holes.len());
}
