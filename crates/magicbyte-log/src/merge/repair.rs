//! Repairs for the offsets that no copy has: a batch with one flipped bit, a wrong length or a wrong leader epoch.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use magicbyte::Batch;
use magicbyte::convert::set_partition_leader_epoch;

use crate::chunk::Chunk;
use crate::error::{LogError, LogResult};
use crate::merge::model::{Alignment, Damage, MergePlan};
use crate::read::plan::Plan;
use crate::read::rescue::Rescuer;
use crate::segment::reader::{Piece, SegmentReader};

/// Tries to repair the damaged bytes of the copies that may hold the holes of a merge. Each repaired batch becomes
/// a segment in `directory`, named by its first offset, so that the repairs can be aligned as one more copy.
/// Returns their number. Only what a CRC proves is written ([`Repair::is_proven`](crate::Repair::is_proven)).
///
/// # Errors
/// [`LogError::Io`].
pub fn repair_holes(
    alignment: &Alignment,
    merged: &MergePlan,
    plans: &[Plan],
    directory: impl AsRef<Path>,
    max_batch_size: usize,
) -> LogResult<u64> {
    let directory = directory.as_ref();
    let mut repaired: BTreeMap<i64, i64> = BTreeMap::new();
    for damage in candidates(alignment, merged) {
        let batch = repaired_batch(damage, plans, max_batch_size)?;
        let Some(data) = batch else { continue };
        let Ok(batch) = Batch::from_frame(&data, 0) else { continue };
        let Ok(first) = batch.base_offset(&mut magicbyte::Decompressor::with_limit(max_batch_size)) else {
            continue;
        };
        let last = batch.last_offset();
        let is_free = repaired.range(..=last).next_back().is_none_or(|(_, &end)| end < first);
        if !is_free || !is_in_hole(merged, first, last) {
            continue;
        }
        let path = directory.join(format!("{first:020}.log"));
        write_as_of(&path, &data, damage, plans).map_err(|error| LogError::io(&path, error))?;
        repaired.insert(first, last);
    }
    Ok(repaired.len() as u64)
}

/// True if no copy has any of the offsets from `first` to `last`. Holes are in order.
fn is_in_hole(merged: &MergePlan, first: i64, last: i64) -> bool {
    let at = merged.holes.partition_point(|&(_, end)| end < first);
    first <= last && merged.holes.get(at).is_some_and(|&(start, end)| start <= first && last <= end)
}

/// The damage that may hold offsets of a hole, that of the copy that leads first. In the cleaned part of a
/// compacted log, only the damage of the copy that is taken there.
fn candidates<'a>(alignment: &'a Alignment, merged: &'a MergePlan) -> Vec<&'a Damage> {
    let may_fill = |damage: &&Damage| {
        let next = damage.next_offset.unwrap_or(i64::MAX);
        let is_cleaned = merged.cleaned_until.is_some_and(|until| damage.first_offset < until);
        // Holes are in order.
        let at = merged.holes.partition_point(|&(_, last)| last < damage.first_offset);
        merged.holes.get(at).is_some_and(|&(first, _)| first < next)
            && (!is_cleaned || merged.cleaned_copy == Some(damage.share.copy))
    };
    let mut found: Vec<_> = alignment.damages.iter().filter(may_fill).collect();
    found.sort_by_key(|damage| (damage.share.copy != merged.leader, damage.share.copy));
    found
}

/// Writes a repaired batch, with the time of the file that it is from.
fn write_as_of(path: &Path, data: &[u8], damage: &Damage, plans: &[Plan]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(data)?;
    let segment = plans.get(damage.share.copy).and_then(|plan| plan.segments.get(damage.share.segment));
    match segment.and_then(|planned| planned.segment.location.modified()) {
        Some(modified) => file.set_modified(modified),
        None => Ok(()),
    }
}

fn repaired_batch(damage: &Damage, plans: &[Plan], max_batch_size: usize) -> LogResult<Option<Vec<u8>>> {
    let share = &damage.share;
    let Some(planned) = plans.get(share.copy).and_then(|plan| plan.segments.get(share.segment)) else {
        return Ok(None);
    };
    let chunk = Chunk::of(&planned.segment, damage.first_offset, share.start..share.end);
    let io = |error| LogError::io(planned.segment.location.path(), error);
    if let Some(epoch) = damage.leader_epoch {
        let mut pieces = SegmentReader::of_chunk(&chunk).map_err(io)?;
        let Some(Piece::Batch(batch)) = pieces.next().transpose().map_err(io)? else { return Ok(None) };
        let mut data = batch.data().to_vec();
        return Ok(set_partition_leader_epoch(&mut data, epoch).is_ok().then_some(data));
    }
    let mut rescuer = Rescuer::of_chunk(&chunk, max_batch_size).map_err(io)?;
    let rescued = rescuer.next().transpose().map_err(io)?;
    let repair = rescued.and_then(|rescued| rescued.repair).filter(crate::Repair::is_proven);
    Ok(repair.map(|repair| repair.batch))
}
