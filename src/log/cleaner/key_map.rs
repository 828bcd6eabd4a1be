//! The offset map: of each key the place of its last record, exact for any keys, in bounded memory.
//!
//! Kafka's `SkimpyOffsetMap` takes two keys with the same MD5 for one, and cleans only as far as its memory
//! reaches. Here the keys themselves are compared, and what outgrows memory goes to files, dealt out by
//! hash, so that each can be reduced by itself. The hash is seeded by chance: nobody can choose keys that
//! fall together, and if they did it would cost time, not records.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use crate::log::error::{LogError, LogResult};

/// Files a map spills into, at most.
const FANOUT: usize = 16;
/// Each level of spilling takes its own bits of the hash; deeper, memory has to do.
const MAX_DEPTH: u32 = 8;
const FILE_BUFFER: usize = 64 << 10;
/// Place and length in front of each key, in memory and in files.
const ENTRY: usize = 12;

/// How the keys of one partition's log are dealt out.
#[derive(Clone, Copy, Debug)]
pub struct KeyMapOptions {
    /// By chance, the same for all tasks of a partition.
    pub seed: u64,
    /// Bytes that one map may take; a single key may be larger.
    pub memory: usize,
    /// Files of the first level: 1 for a log so small that one map holds it, else 16. Any number is right.
    pub parts: usize,
}

type Hash = fn(u64, &[u8]) -> u64;

fn seeded(seed: u64, key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u64(seed);
    hasher.write(key);
    hasher.finish()
}

/// Keys and the places of their last records.
pub(crate) struct KeyMap {
    options: KeyMapOptions,
    depth: u32,
    hash: Hash,
    /// Open addressing: the hash's low half, and the position in `entries` plus one; 0 is free.
    slots: Vec<u64>,
    used: usize,
    /// Place, length and bytes of each key.
    entries: Vec<u8>,
    max_entries: usize,
    spill: Spill,
}

impl KeyMap {
    /// A map that spills into files in `directory`.
    pub(crate) fn new(directory: &Path, options: KeyMapOptions, depth: u32) -> Self {
        let parts = if depth == 0 { options.parts.clamp(1, FANOUT) } else { FANOUT };
        Self {
            options,
            depth,
            hash: seeded,
            slots: vec![0; 1 << 10],
            used: 0,
            entries: Vec::new(),
            // Slots are grown up to a quarter of the memory; positions have 32 bits.
            max_entries: (options.memory / 4 * 3).clamp(1 << 12, u32::MAX as usize - 1),
            spill: Spill { directory: directory.to_owned(), files: (0..parts).map(|_| None).collect() },
        }
    }

    /// Notes that the key has a record at this place; the largest place counts.
    pub(crate) fn put(&mut self, key: &[u8], place: u64) -> LogResult<()> {
        let tag = (self.hash)(self.options.seed, key) as u32;
        let mut at = self.find(tag, key);
        if self.slots[at] != 0 {
            let start = (self.slots[at] as u32 - 1) as usize;
            let stored = &mut self.entries[start..start + 8];
            if place > read_u64(stored) {
                stored.copy_from_slice(&place.to_le_bytes());
            }
            return Ok(());
        }
        if self.is_full(key.len()) {
            self.flush()?;
            at = self.find(tag, key);
        } else if self.used >= self.slots.len() / 4 * 3 {
            self.grow();
            at = self.find(tag, key);
        }
        self.slots[at] = u64::from(tag) << 32 | (self.entries.len() as u64 + 1);
        self.used += 1;
        self.entries.extend_from_slice(&place.to_le_bytes());
        self.entries.extend_from_slice(&(key.len() as u32).to_le_bytes());
        self.entries.extend_from_slice(key);
        Ok(())
    }

    /// Whether all keys are still in memory.
    pub(crate) fn is_whole(&self) -> bool {
        self.spill.files.iter().all(Option::is_none)
    }

    /// The places of a map that is whole.
    pub(crate) fn into_places(mut self) -> Vec<u64> {
        self.slots = Vec::new();
        entries(&self.entries).map(|(place, _)| place).collect()
    }

    /// Writes what is in memory; the files, by part of the hash.
    pub(crate) fn into_files(mut self) -> LogResult<Vec<Option<PathBuf>>> {
        self.flush()?;
        self.spill.finish()
    }

    /// The key's slot, or the free one where it belongs.
    fn find(&self, tag: u32, key: &[u8]) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = tag as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 || (slot >> 32) as u32 == tag && self.key_at(slot) == key {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    fn key_at(&self, slot: u64) -> &[u8] {
        let start = (slot as u32 - 1) as usize;
        entry(&self.entries[start..]).1
    }

    /// Whether another key would take more memory than there is.
    fn is_full(&self, length: usize) -> bool {
        let must_grow = self.used >= self.slots.len() / 4 * 3;
        let slots_full = must_grow && self.slots.len() * 16 > self.options.memory / 4;
        let full = slots_full || self.entries.len() + ENTRY + length > self.max_entries;
        full && self.used > 0
            && (self.depth < MAX_DEPTH || self.entries.len() + ENTRY + length > u32::MAX as usize)
    }

    fn grow(&mut self) {
        let mut slots = vec![0; self.slots.len() * 2];
        let mask = slots.len() - 1;
        for &slot in self.slots.iter().filter(|&&slot| slot != 0) {
            let mut at = (slot >> 32) as usize & mask;
            while slots[at] != 0 {
                at = (at + 1) & mask;
            }
            slots[at] = slot;
        }
        self.slots = slots;
    }

    fn flush(&mut self) -> LogResult<()> {
        let parts = self.spill.files.len();
        for (place, key) in entries(&self.entries) {
            let bits = (self.hash)(self.options.seed, key) >> (32 + 4 * self.depth.min(MAX_DEPTH - 1));
            self.spill.write(bits as usize % parts, place, key)?;
        }
        self.entries.clear();
        self.slots.fill(0);
        self.used = 0;
        Ok(())
    }
}

/// Reads the entries of a spilled file into the map.
pub(crate) fn put_file(map: &mut KeyMap, path: &Path) -> LogResult<()> {
    let io = |error| LogError::io(path, error);
    let mut file = BufReader::with_capacity(FILE_BUFFER, File::open(path).map_err(io)?);
    let mut head = [0; ENTRY];
    let mut key = Vec::new();
    loop {
        match file.read_exact(&mut head) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(io(error)),
        }
        let length = u64::from(u32::from_le_bytes([head[8], head[9], head[10], head[11]]));
        key.clear();
        // As much as there is: a cut file reserves nothing.
        if (&mut file).take(length).read_to_end(&mut key).map_err(io)? as u64 != length {
            return Err(io(io::ErrorKind::UnexpectedEof.into()));
        }
        map.put(&key, read_u64(&head))?;
    }
}

/// The files of a map that outgrew memory.
struct Spill {
    directory: PathBuf,
    files: Vec<Option<(PathBuf, BufWriter<File>)>>,
}

impl Spill {
    fn write(&mut self, part: usize, place: u64, key: &[u8]) -> LogResult<()> {
        let (path, file) = match &mut self.files[part] {
            Some(file) => file,
            none => {
                fs::create_dir_all(&self.directory).map_err(|e| LogError::io(&self.directory, e))?;
                let path = self.directory.join(format!("part-{part:02}.keys"));
                let file = File::create_new(&path).map_err(|e| LogError::io(&path, e))?;
                none.insert((path, BufWriter::with_capacity(FILE_BUFFER, file)))
            }
        };
        let written = file
            .write_all(&place.to_le_bytes())
            .and_then(|()| file.write_all(&(key.len() as u32).to_le_bytes()))
            .and_then(|()| file.write_all(key));
        written.map_err(|e| LogError::io(path, e))
    }

    fn finish(self) -> LogResult<Vec<Option<PathBuf>>> {
        let close = |(path, mut file): (PathBuf, BufWriter<File>)| {
            file.flush().map_err(|e| LogError::io(&path, e))?;
            Ok(path)
        };
        self.files.into_iter().map(|file| file.map(close).transpose()).collect()
    }
}

fn read_u64(bytes: &[u8]) -> u64 {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[..8]);
    u64::from_le_bytes(value)
}

/// Place and key of the entry that `bytes` begin with.
fn entry(bytes: &[u8]) -> (u64, &[u8]) {
    let length = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) as usize;
    (read_u64(bytes), &bytes[ENTRY..ENTRY + length])
}

fn entries(mut rest: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    std::iter::from_fn(move || {
        (!rest.is_empty()).then(|| {
            let (place, key) = entry(rest);
            rest = &rest[ENTRY + key.len()..];
            (place, key)
        })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::log::cleaner::last_records::reduce_keys;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("magicbyte-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const OPTIONS: KeyMapOptions = KeyMapOptions { seed: 7, memory: 1 << 14, parts: 16 };

    /// Keys of many lengths, most of them several times.
    fn puts(count: u64) -> impl Iterator<Item = (Vec<u8>, u64)> {
        (0..count).map(move |place| {
            let number = place.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (count / 2);
            (number.to_string().repeat(1 + (number % 5) as usize).into_bytes(), place)
        })
    }

    fn last_places(count: u64) -> Vec<u64> {
        let mut places: Vec<_> = puts(count).collect::<HashMap<_, _>>().into_values().collect();
        places.sort_unstable();
        places
    }

    fn reduced(files: Vec<Option<PathBuf>>, scratch: &Path) -> Vec<u64> {
        let mut places = Vec::new();
        for (part, file) in files.into_iter().enumerate() {
            let lists = reduce_keys(file.as_slice(), &scratch.join(format!("to-{part}")), OPTIONS);
            for list in lists.expect("the files are there") {
                let data = fs::read(list).expect("just written");
                let own: Vec<_> = data.chunks(8).map(read_u64).collect();
                assert!(own.is_sorted());
                places.extend(own);
            }
        }
        places.sort_unstable();
        places
    }

    #[test]
    fn spilled_over_many_levels_each_key_has_its_last_place() {
        let scratch = Scratch::new("levels");
        let mut map = KeyMap::new(&scratch.0.join("from"), OPTIONS, 0);
        for (key, place) in puts(100_000) {
            map.put(&key, place).expect("there is room on the disk");
        }
        assert!(!map.is_whole());
        assert!(map.entries.len() + map.slots.len() * 8 <= 2 * OPTIONS.memory);
        let files = map.into_files().expect("there is room on the disk");
        assert_eq!(reduced(files, &scratch.0), last_places(100_000));
    }

    /// The worst that chosen keys can do is to have one hash, all of them: then it is slow.
    #[test]
    fn keys_of_one_hash_stay_apart() {
        let scratch = Scratch::new("one-hash");
        let mut map = KeyMap::new(&scratch.0.join("from"), OPTIONS, 0);
        map.hash = |_, _| 0xAAAA_AAAA_0000_0001;
        for (key, place) in puts(3000) {
            map.put(&key, place).expect("there is room on the disk");
        }
        assert!(!map.is_whole());
        let files = map.into_files().expect("there is room on the disk");
        assert_eq!(files.iter().flatten().count(), 1);
        assert_eq!(reduced(files, &scratch.0), last_places(3000));
    }

    /// Deeper than the hash has bits, memory has to do.
    #[test]
    fn where_the_hash_has_no_more_bits_nothing_spills() {
        let scratch = Scratch::new("deep");
        let mut map = KeyMap::new(&scratch.0, OPTIONS, MAX_DEPTH);
        map.hash = |_, _| 1;
        for (key, place) in puts(3000) {
            map.put(&key, place).expect("nothing is written");
        }
        assert!(map.is_whole());
        let mut places = map.into_places();
        places.sort_unstable();
        assert_eq!(places, last_places(3000));
    }
}
