//! Digests of ranges of offsets, as Python gets them.

use magicbyte_arrow::RangeDigest;

/// The number of a range, its records and the sum of their hashes.
pub(super) type PyRangeDigest = (i64, u64, u128);

pub(super) fn ranges_of(digests: &[RangeDigest]) -> Vec<PyRangeDigest> {
    digests.iter().map(|one| (one.range, one.records, one.digest)).collect()
}
