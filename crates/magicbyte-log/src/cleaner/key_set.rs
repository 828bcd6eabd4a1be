//! The keys to redact: searched for as record keys and, if distinctive enough, in any bytes.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

/// The number of nonzero bytes a key needs to be searched for in any bytes: shorter keys, and small numbers
/// serialized in eight bytes, would match everywhere.
const DISTINCTIVE: usize = 8;
const WINDOW: usize = 8;
/// The filter's bits per key: one in sixteen windows of unrelated text is looked up.
const BITS_PER_KEY: usize = 16;
const FILTER_BITS: (usize, usize) = (1 << 10, 1 << 26);

/// Keys, numbered in the order given. Memory: about a hundred bytes per key plus the keys themselves. Search
/// time does not depend on their number.
pub struct KeySet {
    numbers: HashMap<Box<[u8]>, u32>,
    /// A Bloom filter of the first bytes of each key that is searched for.
    filter: Vec<u64>,
    /// The first bytes and the length of each such key, sorted.
    lengths: Vec<(u64, usize)>,
}

impl KeySet {
    /// Creates a set of keys; of equal keys the first has the number.
    #[must_use]
    pub fn new(keys: Vec<Vec<u8>>) -> Self {
        let mut lengths: Vec<_> = keys
            .iter()
            .filter(|key| key.iter().filter(|&&byte| byte != 0).count() >= DISTINCTIVE)
            .filter_map(|key| Some((u64::from_le_bytes(*key.first_chunk()?), key.len())))
            .collect();
        lengths.sort_unstable();
        lengths.dedup();
        let bits = (lengths.len() * BITS_PER_KEY).next_power_of_two().clamp(FILTER_BITS.0, FILTER_BITS.1);
        let mut filter = vec![0; bits / 64];
        for &(window, _) in &lengths {
            let bit = bit_of(window, bits);
            filter[bit / 64] |= 1 << (bit % 64);
        }
        let mut numbers = HashMap::with_capacity(keys.len());
        for (number, key) in (0..).zip(keys) {
            numbers.entry(key.into_boxed_slice()).or_insert(number);
        }
        Self { numbers, filter, lengths }
    }

    /// The key's number, if it is in the set.
    #[must_use]
    pub fn number_of(&self, key: &[u8]) -> Option<u32> {
        self.numbers.get(key).copied()
    }

    /// The first occurrence in `data` of a key that is distinctive enough to search for.
    #[must_use]
    pub fn find(&self, data: &[u8]) -> Option<Range<usize>> {
        self.find_iter(data).next()
    }

    /// All occurrences, from left to right, without overlaps.
    pub(crate) fn find_iter<'k>(&'k self, data: &'k [u8]) -> impl Iterator<Item = Range<usize>> + use<'k> {
        let mut from = if self.lengths.is_empty() { data.len() } else { 0 };
        std::iter::from_fn(move || {
            let (at, length) = data[from..].windows(WINDOW).enumerate().find_map(|(at, window)| {
                let window = window.try_into().map_or(0, u64::from_le_bytes);
                self.passes(window)
                    .then(|| self.length_at(window, &data[from + at..]))?
                    .map(|length| (at, length))
            })?;
            let start = from + at;
            from = start + length;
            Some(start..from)
        })
    }

    fn passes(&self, window: u64) -> bool {
        let bit = bit_of(window, self.filter.len() * 64);
        self.filter[bit / 64] >> (bit % 64) & 1 != 0
    }

    /// The length of the shortest key at the start of `data`, which begins with `window`.
    fn length_at(&self, window: u64, data: &[u8]) -> Option<usize> {
        let first = self.lengths.partition_point(|&(other, _)| other < window);
        let candidates = self.lengths[first..].iter().take_while(|(other, _)| *other == window);
        candidates
            .map(|&(_, length)| length)
            .find(|&length| data.get(..length).is_some_and(|start| self.numbers.contains_key(start)))
    }
}

/// The top bits of a product, so that similar windows are spread apart.
fn bit_of(window: u64, bits: usize) -> usize {
    (window.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits.trailing_zeros())) as usize
}

/// Prints only the number of keys, since keys may be personal data.
impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySet").field("keys", &self.numbers.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_a_plain_search_finds() {
        let keys = ["user-4711", "user-47110000", "customer-1", "ab", "\0\0\0\0\0\0\0\x01", "aaaaaaaaaa"];
        let set = KeySet::new(keys.iter().map(|key| key.as_bytes().to_vec()).collect());
        for text in [
            "",
            "user-471",
            "user-4711",
            "xuser-4711x",
            "user-47110000",
            "user-47user-4711",
            "ab",
            "customer-",
            "a customer-1 and user-4711",
            "aaaaaaaaa",
            "aaaaaaaaaaaaaaaaaaaaa",
            "\0\0\0\0\0\0\0\x01",
        ] {
            let long = keys.iter().filter(|key| key.len() > 8);
            let expected = long.filter_map(|key| text.find(key)).min();
            assert_eq!(set.find(text.as_bytes()).map(|found| found.start), expected, "{text:?}");
        }
        assert_eq!(set.find_iter(b"user-4711user-4711 aaaaaaaaaaaaaaaaaaaaa").count(), 4);
        assert_eq!(set.number_of(b"ab"), Some(3));
        assert_eq!(set.number_of(b"abc"), None);
    }

    #[test]
    fn debug_output_has_no_keys() {
        assert!(!format!("{:?}", KeySet::new(vec![b"user-4711".to_vec()])).contains("4711"));
    }
}
