//! Sets of offsets as ranges, for counts in which no offset counts twice.

/// Disjoint ranges of offsets, both ends inclusive, in increasing order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OffsetRanges {
    ranges: Vec<(i64, i64)>,
}

impl FromIterator<(i64, i64)> for OffsetRanges {
    /// The union of the ranges; a range whose end lies before its start is empty.
    fn from_iter<I: IntoIterator<Item = (i64, i64)>>(ranges: I) -> Self {
        let mut sorted: Vec<_> = ranges.into_iter().filter(|(first, last)| first <= last).collect();
        sorted.sort_unstable();
        let mut union: Vec<(i64, i64)> = Vec::with_capacity(sorted.len());
        for (first, last) in sorted {
            match union.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => union.push((first, last)),
            }
        }
        Self { ranges: union }
    }
}

impl OffsetRanges {
    /// The number of offsets; saturates.
    pub(crate) fn count(&self) -> u64 {
        self.ranges.iter().fold(0, |sum, range| sum.saturating_add(length(*range)))
    }

    /// The offsets between `first` and `last` (inclusive), as ranges in order.
    pub(crate) fn within(&self, first: i64, last: i64) -> impl Iterator<Item = (i64, i64)> + '_ {
        let start = self.ranges.partition_point(|range| range.1 < first);
        let found = self.ranges[start..].iter().take_while(move |range| range.0 <= last);
        found.map(move |range| (range.0.max(first), range.1.min(last))).filter(|(first, last)| first <= last)
    }

    /// The number of offsets between `first` and `last` (inclusive).
    pub(crate) fn count_within(&self, first: i64, last: i64) -> u64 {
        self.within(first, last).fold(0, |sum, range| sum.saturating_add(length(range)))
    }
}

fn length((first, last): (i64, i64)) -> u64 {
    last.abs_diff(first).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn union(ranges: &[(i64, i64)]) -> OffsetRanges {
        ranges.iter().copied().collect()
    }

    #[test]
    fn overlapping_and_adjacent_ranges_are_joined() {
        assert_eq!(union(&[(5, 9), (0, 3), (2, 6), (11, 12), (10, 10)]), union(&[(0, 12)]));
        assert_eq!(union(&[(0, 3), (5, 9)]).count(), 9);
    }

    #[test]
    fn a_contained_range_adds_nothing() {
        assert_eq!(union(&[(0, 100), (10, 20), (100, 100)]).count(), 101);
    }

    #[test]
    fn an_empty_range_counts_nothing() {
        assert_eq!(union(&[(5, 4)]).count(), 0);
        assert_eq!(union(&[]).count_within(0, 10), 0);
    }

    #[test]
    fn counts_within_bounds() {
        let ranges = union(&[(0, 9), (20, 29)]);
        assert_eq!(ranges.count_within(5, 24), 10);
        assert_eq!(ranges.count_within(10, 19), 0);
        assert_eq!(ranges.count_within(9, 9), 1);
        assert_eq!(ranges.within(5, 24).collect::<Vec<_>>(), [(5, 9), (20, 24)]);
        assert_eq!(ranges.within(i64::MIN, i64::MAX).collect::<Vec<_>>(), [(0, 9), (20, 29)]);
        assert_eq!(ranges.within(24, 5).count(), 0);
    }

    #[test]
    fn extreme_offsets_saturate() {
        let all = union(&[(i64::MIN, i64::MAX), (0, i64::MAX)]);
        assert_eq!(all.count(), u64::MAX);
        assert_eq!(all.count_within(i64::MAX, i64::MAX), 1);
    }
}
