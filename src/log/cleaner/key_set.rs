//! The keys that are to be forgotten: as the key of a record, and, those that chance does not make, in any
//! bytes.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

/// Bytes other than zero from which on a key is searched for in any bytes: shorter ones, and the small numbers
/// that serializers write in eight bytes, are everywhere.
const DISTINCTIVE: usize = 8;
const WINDOW: usize = 8;
/// Bits of the filter for each key: one window in sixteen of foreign text is looked up.
const BITS_A_KEY: usize = 16;
const FILTER_BITS: (usize, usize) = (1 << 10, 1 << 26);

/// Keys, numbered in the order they were given. Memory is about a hundred bytes a key and the keys themselves;
/// time to search does not depend on their number.
pub struct KeySet {
    numbers: HashMap<Box<[u8]>, u32>,
    /// A bit for each hash of the first bytes of a key that is searched for.
    filter: Vec<u64>,
    /// First bytes and length of each such key, in order.
    lengths: Vec<(u64, usize)>,
}

impl KeySet {
    /// Takes the keys; of equal ones the first has the number.
    #[must_use]
    pub fn new(keys: Vec<Vec<u8>>) -> Self {
        let mut lengths: Vec<_> = keys
            .iter()
            .filter(|key| key.iter().filter(|&&byte| byte != 0).count() >= DISTINCTIVE)
            .filter_map(|key| Some((u64::from_le_bytes(*key.first_chunk()?), key.len())))
            .collect();
        lengths.sort_unstable();
        lengths.dedup();
        let bits = (lengths.len() * BITS_A_KEY).next_power_of_two().clamp(FILTER_BITS.0, FILTER_BITS.1);
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

    /// The key's number, if it is one of them.
    #[must_use]
    pub fn number_of(&self, key: &[u8]) -> Option<u32> {
        self.numbers.get(key).copied()
    }

    /// Where one of the keys that are searched for first occurs in `data`.
    #[must_use]
    pub fn find(&self, data: &[u8]) -> Option<Range<usize>> {
        self.find_iter(data).next()
    }

    /// Where they occur, from left to right; none begins inside the one before.
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

    /// The length of the shortest key that `data`, which begins with `window`, begins with.
    fn length_at(&self, window: u64, data: &[u8]) -> Option<usize> {
        let first = self.lengths.partition_point(|&(other, _)| other < window);
        let own = self.lengths[first..].iter().take_while(|(other, _)| *other == window);
        own.map(|&(_, length)| length)
            .find(|&length| data.get(..length).is_some_and(|start| self.numbers.contains_key(start)))
    }
}

/// The top bits of a product: neighbouring windows go far apart.
fn bit_of(window: u64, bits: usize) -> usize {
    (window.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits.trailing_zeros())) as usize
}

/// How many, and nothing else: they may be personal.
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
    fn its_text_holds_no_key() {
        assert!(!format!("{:?}", KeySet::new(vec![b"user-4711".to_vec()])).contains("4711"));
    }
}
