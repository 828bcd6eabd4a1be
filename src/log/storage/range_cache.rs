//! Ranges that were fetched, kept in a temporary file, so that the decoding of a log need not fetch again what its survey
//! has read. The file has no name, and the oldest ranges make room for new ones.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use ::bytes::Bytes;

use crate::log::storage::local::{read_at, write_at};

/// The most that is kept, in bytes.
const CAPACITY: u64 = 2 << 30;

/// A version of a file: path, version and size.
pub(super) type Key = Arc<(String, String, u64)>;

static CACHE: Mutex<Option<RangeCache>> = Mutex::new(None);

/// The rest of a kept range, from `position` on.
pub(super) fn get(key: &Key, position: u64) -> Option<Bytes> {
    CACHE.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.get(key, position)
}

/// Whether the byte at a position is kept.
pub(super) fn is_kept(key: &Key, position: u64) -> bool {
    let cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    cache.as_ref().is_some_and(|open| open.find(key, position).is_some())
}

/// Where the first kept range after `position` begins.
pub(super) fn next_start(key: &Key, position: u64) -> Option<u64> {
    let cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    cache.as_ref()?.index.get(key)?.range(position..).next().map(|(start, _)| *start)
}

/// Keeps a range. Without room for temporary files nothing is kept, and is fetched again when it is needed.
pub(super) fn put(key: &Key, start: u64, bytes: &[u8]) {
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if cache.is_none() {
        *cache = tempfile::tempfile().ok().map(|file| RangeCache::new(file, CAPACITY));
    }
    if let Some(open) = cache.as_mut()
        && open.put(key, start, bytes).is_err()
    {
        *cache = None;
    }
}

/// A ring of ranges in a file.
#[derive(Debug)]
struct RangeCache {
    file: File,
    capacity: u64,
    /// Where the next range is written.
    head: u64,
    /// The ranges by age: their place in the file, and what they are.
    entries: VecDeque<(Range<u64>, Key, u64)>,
    /// By file and position there: the place in the ring.
    index: HashMap<Key, BTreeMap<u64, Range<u64>>>,
}

impl RangeCache {
    fn new(file: File, capacity: u64) -> Self {
        Self { file, capacity, head: 0, entries: VecDeque::new(), index: HashMap::new() }
    }

    fn get(&self, key: &Key, position: u64) -> Option<Bytes> {
        let place = self.find(key, position)?;
        let mut bytes = vec![0; (place.end - place.start) as usize];
        let mut filled = 0;
        while filled < bytes.len() {
            match read_at(&self.file, &mut bytes[filled..], place.start + filled as u64) {
                Ok(0) | Err(_) => return None,
                Ok(n) => filled += n,
            }
        }
        Some(bytes.into())
    }

    /// Where in the ring the rest of a kept range is, from `position` on.
    fn find(&self, key: &Key, position: u64) -> Option<Range<u64>> {
        let (start, place) = self.index.get(key)?.range(..=position).next_back()?;
        let rest = place.start + (position - start)..place.end;
        (!rest.is_empty()).then_some(rest)
    }

    fn put(&mut self, key: &Key, start: u64, bytes: &[u8]) -> io::Result<()> {
        let length = bytes.len() as u64;
        if length == 0
            || length > self.capacity
            || self.index.get(key).is_some_and(|all| all.contains_key(&start))
        {
            return Ok(());
        }
        if self.head + length > self.capacity {
            // What is left up to the end of the ring is the oldest.
            while self.entries.front().is_some_and(|(place, ..)| place.start >= self.head) {
                self.forget_oldest();
            }
            self.head = 0;
        }
        let place = self.head..self.head + length;
        while self.entries.front().is_some_and(|(old, ..)| old.start < place.end && old.end > place.start) {
            self.forget_oldest();
        }
        let mut written = 0;
        while written < bytes.len() {
            written += write_at(&self.file, &bytes[written..], place.start + written as u64)?;
        }
        self.head = place.end;
        self.entries.push_back((place.clone(), Arc::clone(key), start));
        self.index.entry(Arc::clone(key)).or_default().insert(start, place);
        Ok(())
    }

    fn forget_oldest(&mut self) {
        let Some((_, key, start)) = self.entries.pop_front() else { return };
        if let Some(ranges) = self.index.get_mut(&key) {
            ranges.remove(&start);
            if ranges.is_empty() {
                self.index.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Arc::new((name.into(), "1".into(), 1000))
    }

    #[test]
    fn the_oldest_ranges_make_room() {
        let mut cache = RangeCache::new(tempfile::tempfile().expect("created"), 100);
        let (a, b) = (key("a"), key("b"));
        for (n, start) in (0..9).map(|n| (n, u64::from(n) * 30)) {
            cache.put(&a, start, &[n; 30]).expect("written");
            assert!(cache.entries.len() <= 3);
            assert_eq!(cache.get(&a, start + 10).as_deref(), Some(&[n; 20][..]));
            assert_eq!(cache.get(&a, start + 30), None);
        }
        assert_eq!(cache.get(&a, 0), None);
        for n in 0..50 {
            let size = usize::from(n) * 7 % 60 + 1;
            cache.put(&b, u64::from(n) * 100, &vec![n; size]).expect("written");
            assert_eq!(cache.get(&b, u64::from(n) * 100).as_deref(), Some(&vec![n; size][..]));
            // What is still there is right.
            for old in 0..n {
                let found = cache.get(&b, u64::from(old) * 100);
                assert!(found.is_none_or(|bytes| bytes.len() == usize::from(old) * 7 % 60 + 1
                    && bytes.iter().all(|&one| one == old)));
            }
        }
        assert_eq!(cache.index.values().map(BTreeMap::len).sum::<usize>(), cache.entries.len());
        cache.put(&a, 5, &[0; 101]).expect("too large to be kept");
        assert_eq!(cache.get(&a, 5), None);
    }
}
