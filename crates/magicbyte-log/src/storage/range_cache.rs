//! A cache of fetched ranges in a temporary file, so that decoding a log does not fetch again what its survey
//! has read. The file has no name. Finished ranges that were kept for one reader are overwritten first, since
//! the system has their space in memory. Then the oldest ranges make room for new ranges.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::storage::positioned::{read_at, write_at};

/// The maximum size of the cache, in bytes: the data ahead of the decoding (`_MOST_AHEAD_BYTES` in
/// `jobs/run/surveys_ahead.py`), and the tasks that are being decoded.
const CAPACITY: u64 = 2560 << 20;

/// A version of a file: the number of its store, path, version and size.
pub(super) type Key = Arc<(u64, String, String, u64)>;

static CACHE: Mutex<Option<RangeCache>> = Mutex::new(None);

/// Reads bytes of a kept range from `position` on. Returns the number of bytes read; None if the first byte
/// is not kept.
pub(super) fn read(key: &Key, position: u64, buffer: &mut [u8]) -> Option<usize> {
    CACHE.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.read(key, position, buffer)
}

/// True if the byte at a position is kept.
pub(super) fn is_kept(key: &Key, position: u64) -> bool {
    let cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    cache.as_ref().is_some_and(|open| open.find(key, position).is_some())
}

/// The start of the first kept range after `position`.
pub(super) fn next_start(key: &Key, position: u64) -> Option<u64> {
    let cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    cache.as_ref()?.index.get(key)?.range(position..).next().map(|(start, _)| *start)
}

/// Keeps a range, `once` if each of its bytes will be read by one more reader. Without room for temporary
/// files nothing is kept, and the range is fetched again when it is needed.
pub(super) fn put(key: &Key, start: u64, bytes: &[u8], once: bool) {
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if cache.is_none() {
        *cache = tempfile::tempfile().ok().map(|file| RangeCache::new(file, CAPACITY));
    }
    if let Some(open) = cache.as_mut()
        && open.put(key, start, bytes, once).is_err()
    {
        *cache = None;
    }
}

/// Reports that a reader has read these bytes and will not read them again. Each byte is reported once.
pub(super) fn finish(key: &Key, bytes: &Range<u64>) {
    if let Some(cache) = CACHE.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        cache.finish(key, bytes);
    }
}

/// Ranges in a file.
#[derive(Debug)]
struct RangeCache {
    file: File,
    capacity: u64,
    /// The place of the next range, unless the space of a finished range is free.
    head: u64,
    /// The ranges by their place in this file. They do not overlap.
    places: BTreeMap<u64, Place>,
    /// The place of each range, by its file and its position there.
    index: HashMap<Key, BTreeMap<u64, Range<u64>>>,
    /// Places of finished ranges, by length; some may have been overwritten since.
    finished: HashMap<u64, Vec<u64>>,
}

#[derive(Debug)]
struct Place {
    end: u64,
    /// None if the range is finished.
    kept: Option<Kept>,
}

#[derive(Debug)]
struct Kept {
    key: Key,
    start: u64,
    /// The number of unfinished bytes. None if the range is kept for any number of readers.
    unread: Option<u64>,
}

impl RangeCache {
    fn new(file: File, capacity: u64) -> Self {
        let (places, index, finished) = (BTreeMap::new(), HashMap::new(), HashMap::new());
        Self { file, capacity, head: 0, places, index, finished }
    }

    fn read(&self, key: &Key, position: u64, buffer: &mut [u8]) -> Option<usize> {
        let stored = self.find(key, position)?;
        let length = buffer.len().min((stored.end - stored.start) as usize);
        read_at(&self.file, &mut buffer[..length], stored.start).ok().filter(|&read| read > 0)
    }

    /// The place of the rest of a kept range, from `position` on.
    fn find(&self, key: &Key, position: u64) -> Option<Range<u64>> {
        let (start, stored) = self.index.get(key)?.range(..=position).next_back()?;
        let rest = stored.start + (position - start)..stored.end;
        (!rest.is_empty()).then_some(rest)
    }

    fn put(&mut self, key: &Key, start: u64, bytes: &[u8], once: bool) -> io::Result<()> {
        let length = bytes.len() as u64;
        if length == 0
            || length > self.capacity
            || self.index.get(key).is_some_and(|all| all.contains_key(&start))
        {
            return Ok(());
        }
        let at = self.finished_place(length).unwrap_or_else(|| {
            let at = if self.head + length > self.capacity { 0 } else { self.head };
            self.head = at + length;
            at
        });
        let stored = at..at + length;
        self.clear(&stored);
        let mut written = 0;
        while written < bytes.len() {
            written += write_at(&self.file, &bytes[written..], at + written as u64)?;
        }
        let kept = Kept { key: Arc::clone(key), start, unread: once.then_some(length) };
        self.places.insert(at, Place { end: stored.end, kept: Some(kept) });
        self.index.entry(Arc::clone(key)).or_default().insert(start, stored);
        Ok(())
    }

    /// The place of a finished range of this length.
    fn finished_place(&mut self, length: u64) -> Option<u64> {
        let places = self.finished.get_mut(&length)?;
        while let Some(at) = places.pop() {
            if self.places.get(&at).is_some_and(|place| place.kept.is_none() && place.end == at + length) {
                return Some(at);
            }
        }
        None
    }

    /// Forgets the ranges in a part of the file.
    fn clear(&mut self, part: &Range<u64>) {
        while let Some((&at, _)) =
            self.places.range(..part.end).next_back().filter(|(_, place)| place.end > part.start)
        {
            if let Some(Kept { key, start, .. }) = self.places.remove(&at).and_then(|place| place.kept) {
                self.remove(&key, start);
            }
        }
    }

    fn remove(&mut self, key: &Key, start: u64) {
        if let Some(ranges) = self.index.get_mut(key) {
            ranges.remove(&start);
            if ranges.is_empty() {
                self.index.remove(key);
            }
        }
    }

    fn finish(&mut self, key: &Key, bytes: &Range<u64>) {
        let Some(ranges) = self.index.get(key) else { return };
        let first = ranges.range(..=bytes.start).next_back().map_or(bytes.start, |(start, _)| *start);
        let touched: Vec<_> = ranges
            .range(first..bytes.end.max(first))
            .map(|(start, stored)| (*start, stored.clone()))
            .collect();
        for (start, stored) in touched {
            let end = start + (stored.end - stored.start);
            let read = end.min(bytes.end).saturating_sub(start.max(bytes.start));
            let Some(place) = self.places.get_mut(&stored.start) else { continue };
            let Some(Kept { unread: Some(unread), .. }) = &mut place.kept else { continue };
            *unread = unread.saturating_sub(read);
            if *unread == 0 {
                place.kept = None;
                self.finished.entry(stored.end - stored.start).or_default().push(stored.start);
                self.remove(key, start);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Arc::new((1, name.into(), "1".into(), 1000))
    }

    fn rest(cache: &RangeCache, key: &Key, position: u64) -> Option<Vec<u8>> {
        let mut buffer = vec![0; 1000];
        let read = cache.read(key, position, &mut buffer)?;
        buffer.truncate(read);
        Some(buffer)
    }

    #[test]
    fn the_oldest_ranges_make_room() {
        let mut cache = RangeCache::new(tempfile::tempfile().expect("created"), 100);
        let (a, b) = (key("a"), key("b"));
        for (n, start) in (0..9).map(|n| (n, u64::from(n) * 30)) {
            cache.put(&a, start, &[n; 30], false).expect("written");
            assert!(cache.places.len() <= 3);
            assert_eq!(rest(&cache, &a, start + 10).as_deref(), Some(&[n; 20][..]));
            assert_eq!(rest(&cache, &a, start + 30), None);
        }
        assert_eq!(rest(&cache, &a, 0), None);
        for n in 0..50 {
            let size = usize::from(n) * 7 % 60 + 1;
            cache.put(&b, u64::from(n) * 100, &vec![n; size], false).expect("written");
            assert_eq!(rest(&cache, &b, u64::from(n) * 100).as_deref(), Some(&vec![n; size][..]));
            // Ranges that are still there have the right content.
            for old in 0..n {
                let read = rest(&cache, &b, u64::from(old) * 100);
                assert!(read.is_none_or(|bytes| bytes.len() == usize::from(old) * 7 % 60 + 1
                    && bytes.iter().all(|&byte| byte == old)));
            }
        }
        assert_eq!(cache.index.values().map(BTreeMap::len).sum::<usize>(), cache.places.len());
        cache.put(&a, 5, &[0; 101], false).expect("too large to be kept");
        assert_eq!(rest(&cache, &a, 5), None);
    }

    #[test]
    fn finished_ranges_make_room_first() {
        let mut cache = RangeCache::new(tempfile::tempfile().expect("created"), 100);
        let (a, b) = (key("a"), key("b"));
        cache.put(&a, 0, &[1; 30], true).expect("written");
        cache.put(&a, 30, &[2; 30], true).expect("written");
        cache.put(&b, 0, &[3; 30], false).expect("written");
        // Two readers, each of a part, in any order.
        cache.finish(&a, &(40..60));
        assert_eq!(rest(&cache, &a, 50), Some(vec![2; 10]));
        cache.finish(&a, &(10..40));
        assert_eq!(rest(&cache, &a, 50), None);
        assert_eq!(rest(&cache, &a, 0), Some(vec![1; 30]));
        cache.finish(&b, &(0..30));
        cache.put(&a, 60, &[4; 30], true).expect("written");
        assert_eq!(rest(&cache, &a, 60), Some(vec![4; 30]));
        assert_eq!(rest(&cache, &a, 0), Some(vec![1; 30]), "there was room");
        assert_eq!(rest(&cache, &b, 0), Some(vec![3; 30]), "it is kept for any number of readers");
        cache.finish(&a, &(0..90));
        assert_eq!(cache.index.len(), 1);
        // Over a finished place, which is then none.
        cache.put(&b, 100, &[5; 60], false).expect("written");
        cache.put(&b, 200, &[6; 30], false).expect("written");
        assert_eq!(rest(&cache, &b, 100), Some(vec![5; 60]));
        assert_eq!(rest(&cache, &b, 200), Some(vec![6; 30]));
    }
}
