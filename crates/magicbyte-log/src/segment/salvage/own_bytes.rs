//! The end of a bad batch, by its own checksum and sizes. Batches before that end are its content.

use std::io;

use magicbyte::RECORD_BATCH_OVERHEAD;
use magicbyte::internals::{Algorithm, LOG_OVERHEAD, RECORD_OVERHEAD_V0, be};

use super::damage::Damage;
use super::evidence::OwnChecksum;
use super::extent::{Bounds, Extent, extent};
use super::header::{declared_size, is_as_written};
use super::scan::Scan;
use super::{BLOCK, LARGE, MIN_STEP, Verdict};

/// The rules that need no other batch: [`flipped_bit`], [`wrong_length`], [`record_sizes`], [`cut_off`].
pub(super) fn own_bytes(damage: &mut Damage<'_>) -> io::Result<Verdict> {
    let budget = damage.left();
    let Some(size) = declared_size(&damage.header) else { return Ok(Verdict::Unknown) };
    let declared_end = damage.start + size;
    if budget > 0 && flipped_bit(damage, declared_end)? {
        return Ok(Verdict::End(declared_end));
    }
    if let Some(end) = wrong_length(damage)? {
        return Ok(Verdict::End(end));
    }
    let fits_the_file = declared_end <= damage.blocks.size();
    let max_size = if fits_the_file { damage.limits.max_batch_size as u64 } else { size };
    // The walk over the sizes may cost this much, even if the rules before it spend some of the budget. A few
    // steps are free: readers with different budgets should agree about a torn tail.
    let max_effort = budget.max(MIN_STEP);
    let bounds = Bounds { max_size, max_effort, is_exact: !fits_the_file };
    let (extent, effort) = extent(damage.blocks, damage.start, &damage.header, bounds)?;
    damage.spend(effort);
    match extent {
        Extent::Ends(end) if budget > 0 => record_sizes(damage, end, declared_end),
        _ if fits_the_file => Ok(Verdict::Unknown),
        _ => cut_off(damage, extent, declared_end),
    }
}

/// True if one flipped bit explains the checksum up to the declared end: the length is then right.
fn flipped_bit(damage: &mut Damage<'_>, declared_end: u64) -> io::Result<bool> {
    if declared_end > damage.blocks.size() || declared_end - damage.start > LARGE as u64 {
        return Ok(false);
    }
    damage.evidence.is_a_bit_off(damage.blocks, &damage.header, damage.start, declared_end)
}

/// The end of the batch if only its length is wrong: its checksum covers everything else.
fn wrong_length(damage: &mut Damage<'_>) -> io::Result<Option<u64>> {
    let Some(checksum) = OwnChecksum::read(&damage.header) else { return Ok(None) };
    let min_size = match checksum.algorithm {
        Algorithm::Castagnoli => RECORD_BATCH_OVERHEAD,
        Algorithm::Ieee => LOG_OVERHEAD + RECORD_OVERHEAD_V0,
    };
    let max_size = damage.reach().min(BLOCK as u64).min(damage.rest());
    let (end, inspected) = checksum.end(damage.blocks, damage.start, min_size as u64, max_size)?;
    damage.spend(inspected);
    Ok(end)
}

/// The `end` that the sizes of the records lead to, if something else agrees with it.
fn record_sizes(damage: &mut Damage<'_>, end: u64, declared_end: u64) -> io::Result<Verdict> {
    // Either the length or a size is wrong. Where the declared end is an end, too, no rule here can tell which.
    let is_ambiguous =
        end != declared_end && declared_end <= damage.blocks.size() && damage.ends_at(declared_end)?;
    let is_end = !is_ambiguous && damage.ends_at(end)?
        // Length and sizes agree with each other, so only missing bytes could have moved what follows.
        || end == declared_end && !is_straddled(damage, end)?;
    Ok(if is_end { Verdict::End(end) } else { Verdict::Unknown })
}

/// True if a batch whose CRC holds begins before the `end` of the bad batch and ends after it. Bytes are then
/// missing in between.
fn is_straddled(damage: &mut Damage<'_>, end: u64) -> io::Result<bool> {
    let mut scan = Scan::new(damage);
    let mut at = end.saturating_sub(damage.reach()).max(damage.start + 1);
    while at < end {
        let starts = (end - at).min(LARGE as u64) as usize;
        let window = damage.blocks.at(at, starts + LARGE)?;
        if window.len() < starts {
            break;
        }
        damage.spend(starts as u64);
        scan.window(damage, &window, at, starts)?;
        at += starts as u64;
    }
    Ok(scan.candidates.iter().any(|batch| batch.end > end && batch.first >= damage.limits.expected))
}

/// The verdict on a batch that claims more than the file has. It is the tail if it has an offset that the log
/// expects next, and its records run out of bytes where their sizes say. Compressed records show no sizes: the
/// header alone must be beyond doubt, and even then a scan may refute it.
fn cut_off(damage: &mut Damage<'_>, extent: Extent, declared_end: u64) -> io::Result<Verdict> {
    let possible = damage.limits.expected..=damage.limits.near();
    let claims = damage.claims_its_offsets();
    let verdict = match extent {
        Extent::Torn => Verdict::Torn,
        Extent::Hidden if claims => Verdict::MayBeTorn,
        _ => return Ok(Verdict::Unknown),
    };
    if !possible.contains(&be!(&damage.header, 0, i64)) {
        return Ok(Verdict::Unknown);
    }
    let is_credible = verdict == Verdict::Torn && claims
        || is_as_written(damage.blocks, &damage.header, damage.start, declared_end)?;
    Ok(if is_credible { verdict } else { Verdict::Unknown })
}

#[cfg(test)]
mod tests {
    use magicbyte_testing::handmade::message;

    use super::super::Salvage;
    use super::super::testing::{LIMITS, batch, blocks, compressed, junk, position, resume, set_size, spoil};

    /// Bytes after the bad batch. No header continues from its end, so a scan resumes after them.
    const GARBAGE: [u8; 40] = [0xee; 40];

    /// A value that holds a batch, and enough after it that its size does not show that.
    fn value_of(inner: &[u8]) -> Vec<u8> {
        [&junk(10), inner, &junk(40)].concat()
    }

    #[test]
    fn flipped_bit() {
        let mut bad = batch(10, &[&junk(100)]);
        bad[61] ^= 0x20; // The size of the record.
        assert_eq!(resume(&[&bad, &GARBAGE, &batch(11, &[b"next"])]), Some(bad.len()));
    }

    #[test]
    fn wrong_length() {
        let mut bad = compressed(10, &junk(100));
        let size = bad.len();
        set_size(&mut bad, size + 60);
        assert_eq!(resume(&[&bad, &GARBAGE, &batch(11, &[b"next"])]), Some(size));
    }

    #[test]
    fn record_sizes_that_lead_to_the_next_batch() {
        // The offset of the inner batch would continue the log; the next one leaves it out, as compaction does.
        let mut bad = batch(10, &[&value_of(&batch(11, &[b"inner"]))]);
        spoil(&mut bad);
        let next = batch(12, &[b"next"]);
        assert_eq!(resume(&[&bad, &next]), Some(bad.len()));
        let size = bad.len();
        set_size(&mut bad, size + 7);
        assert_eq!(resume(&[&bad, &next]), Some(size));
    }

    #[test]
    fn record_sizes_that_lead_to_the_declared_end() {
        let mut bad = batch(10, &[&junk(100)]);
        spoil(&mut bad);
        assert_eq!(resume(&[&bad, &GARBAGE, &batch(11, &[b"next"])]), Some(bad.len()));
    }

    #[test]
    fn record_sizes_that_do_not_lead_to_the_declared_end_although_a_batch_begins_there() {
        let inner = batch(11, &[b"inner"]);
        let mut bad = message(10, 0, 0, 0, None, Some(&value_of(&inner)));
        let size_of_value = position(&bad, &inner) - 26;
        bad[22..26].copy_from_slice(&(size_of_value as i32).to_be_bytes());
        spoil(&mut bad);
        assert_eq!(resume(&[&bad, &batch(11, &[b"next"])]), Some(bad.len()));
    }

    #[test]
    fn a_declared_end_inside_the_next_batch() {
        let bad = batch(10, &[&junk(300)]);
        // The last bytes of the bad batch are lost. A zero of the next one looks like its number of headers.
        let next = batch(11, &[&[0; 400]]);
        assert_eq!(resume(&[&bad[..200], &next, &batch(12, &[b"later"])]), Some(200));
    }

    #[test]
    fn a_torn_tail_holds_no_batches_of_the_log() {
        let bad = batch(10, &[&value_of(&batch(11, &[b"inner"]))]);
        assert_eq!(resume(&[&bad[..bad.len() - 20]]), None);
        // The file was preallocated as far as the middle of the second record, which was never written.
        let values = [&value_of(&batch(11, &[b"inner"]))[..], &junk(30)];
        let (first, both) = (batch(10, &values[..1]).len(), batch(10, &values));
        assert_eq!(resume(&[&both[..first], &[0; 20]]), None);
    }

    #[test]
    fn a_torn_tail_is_one_whatever_damage_before_it_has_cost() {
        let bad = batch(10, &[&value_of(&batch(11, &[b"inner"]))]);
        let file = &bad[..bad.len() - 20];
        let size = file.len() as u64;
        for left in [1 << 20, 100, 0] {
            let mut salvage = Salvage::new(0, size);
            let budget = salvage.evidence.left(0);
            salvage.spend((budget - left.min(budget)) as usize);
            assert_eq!(salvage.resume(&mut blocks(file), 0, None, &LIMITS).expect("read"), None, "{left}");
        }
    }

    #[test]
    fn a_compressed_tail_may_be_torn() {
        // The codec stored the inner batch as it is.
        let tail = |inner_offset| {
            let inner = batch(inner_offset, &[b"inner"]);
            let bad = compressed(10, &value_of(&inner));
            (resume(&[&bad[..bad.len() - 20]]), position(&bad, &inner))
        };
        assert_eq!(tail(5000).0, None);
        let (resumed, inner) = tail(12);
        assert_eq!(resumed, Some(inner));
    }
}
