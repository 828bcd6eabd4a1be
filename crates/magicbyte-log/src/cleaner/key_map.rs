//! The offset map: the position of each key's last record, exact for any keys, in bounded memory.
//!
//! Kafka's `SkimpyOffsetMap` treats keys with equal MD5 hashes as one key, and cleans only as far as its
//! memory reaches. Here the keys themselves are compared, and keys that do not fit in memory are partitioned
//! by hash into files that can be reduced separately. The hash has a random seed, so colliding keys cannot be
//! chosen; if keys collide, they cost time but not records.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use crate::error::{LogError, LogResult};
use crate::storage::local;

/// The maximum number of files that a map spills into.
const FANOUT: usize = 16;
/// Each level of spilling uses its own bits of the hash. Below this level, keys stay in memory.
const MAX_DEPTH: u32 = 8;
const FILE_BUFFER: usize = 64 << 10;
/// The size of the position and length before each key, in memory and in files.
const ENTRY: usize = 12;

/// Options for distributing the keys of one partition's log.
#[derive(Clone, Copy, Debug)]
pub struct KeyMapOptions {
    /// A random seed, the same for all tasks of a partition.
    pub seed: u64,
    /// The memory of one map, in bytes; a single key may exceed it.
    pub memory_bytes: usize,
    /// The number of files at the first level: 1 for a log whose keys fit in one map, else 16. Any number
    /// gives correct results.
    pub parts: usize,
}

type Hash = fn(u64, &[u8]) -> u64;

fn seeded(seed: u64, key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u64(seed);
    hasher.write(key);
    hasher.finish()
}

/// Keys and the positions of their last records.
pub(crate) struct KeyMap {
    options: KeyMapOptions,
    depth: u32,
    hash: Hash,
    /// Open addressing: the low half of the hash, and the index in `entries` plus one; 0 is free.
    slots: Vec<u64>,
    used: usize,
    /// Position, length and bytes of each key.
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
            // Slots may take up to a quarter of the memory; indexes have 32 bits.
            max_entries: (options.memory_bytes / 4 * 3).clamp(1 << 12, u32::MAX as usize - 1),
            spill: Spill { directory: directory.to_owned(), files: (0..parts).map(|_| None).collect() },
        }
    }

    /// Adds a record of the key at this position; the largest position is kept.
    pub(crate) fn put(&mut self, key: &[u8], position: u64) -> LogResult<()> {
        let tag = (self.hash)(self.options.seed, key) as u32;
        let mut at = self.find(tag, key);
        if self.slots[at] != 0 {
            let start = (self.slots[at] as u32 - 1) as usize;
            let stored = &mut self.entries[start..start + 8];
            if position > read_u64(stored) {
                stored.copy_from_slice(&position.to_le_bytes());
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
        self.entries.extend_from_slice(&position.to_le_bytes());
        self.entries.extend_from_slice(&(key.len() as u32).to_le_bytes());
        self.entries.extend_from_slice(key);
        Ok(())
    }

    /// True if all keys are in memory.
    pub(crate) fn is_whole(&self) -> bool {
        self.spill.files.iter().all(Option::is_none)
    }

    /// The positions in a map whose keys are all in memory.
    pub(crate) fn into_positions(mut self) -> Vec<u64> {
        self.slots = Vec::new();
        entries(&self.entries).map(|(position, _)| position).collect()
    }

    /// Spills the remaining keys; returns the files, by part of the hash.
    pub(crate) fn into_files(mut self) -> LogResult<Vec<Option<PathBuf>>> {
        self.flush()?;
        self.spill.finish()
    }

    /// The key's slot, or the free slot where it belongs.
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

    /// True if another key would exceed the memory.
    fn is_full(&self, length: usize) -> bool {
        let must_grow = self.used >= self.slots.len() / 4 * 3;
        let slots_full = must_grow && self.slots.len() * 16 > self.options.memory_bytes / 4;
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
        for (position, key) in entries(&self.entries) {
            let bits = (self.hash)(self.options.seed, key) >> (32 + 4 * self.depth.min(MAX_DEPTH - 1));
            self.spill.write(bits as usize % parts, position, key)?;
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
    let mut file = BufReader::with_capacity(FILE_BUFFER, local::open_regular(path).map_err(io)?);
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
        // Reads only what exists: a truncated file cannot reserve memory.
        if (&mut file).take(length).read_to_end(&mut key).map_err(io)? as u64 != length {
            return Err(io(io::ErrorKind::UnexpectedEof.into()));
        }
        map.put(&key, read_u64(&head))?;
    }
}

/// The files of a map that does not fit in memory.
struct Spill {
    directory: PathBuf,
    files: Vec<Option<(PathBuf, BufWriter<File>)>>,
}

impl Spill {
    fn write(&mut self, part: usize, position: u64, key: &[u8]) -> LogResult<()> {
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
            .write_all(&position.to_le_bytes())
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

/// Position and key of the first entry in `bytes`.
fn entry(bytes: &[u8]) -> (u64, &[u8]) {
    let length = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) as usize;
    (read_u64(bytes), &bytes[ENTRY..ENTRY + length])
}

fn entries(mut rest: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    std::iter::from_fn(move || {
        (!rest.is_empty()).then(|| {
            let (position, key) = entry(rest);
            rest = &rest[ENTRY + key.len()..];
            (position, key)
        })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::cleaner::last_records::reduce_keys;

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

    const OPTIONS: KeyMapOptions = KeyMapOptions { seed: 7, memory_bytes: 1 << 14, parts: 16 };

    /// Keys of many lengths, most of them repeated.
    fn puts(count: u64) -> impl Iterator<Item = (Vec<u8>, u64)> {
        (0..count).map(move |position| {
            let number = position.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (count / 2);
            (number.to_string().repeat(1 + (number % 5) as usize).into_bytes(), position)
        })
    }

    fn last_positions(count: u64) -> Vec<u64> {
        let mut positions: Vec<_> = puts(count).collect::<HashMap<_, _>>().into_values().collect();
        positions.sort_unstable();
        positions
    }

    fn reduced(files: Vec<Option<PathBuf>>, scratch: &Path) -> Vec<u64> {
        let mut positions = Vec::new();
        for (part, file) in files.into_iter().enumerate() {
            let lists = reduce_keys(file.as_slice(), scratch.join(format!("to-{part}")), OPTIONS);
            for list in lists.expect("the files are there") {
                let data = fs::read(list).expect("just written");
                let list_positions: Vec<_> = data.chunks(8).map(read_u64).collect();
                assert!(list_positions.is_sorted());
                positions.extend(list_positions);
            }
        }
        positions.sort_unstable();
        positions
    }

    #[test]
    fn spilled_over_many_levels_each_key_has_its_last_position() {
        let scratch = Scratch::new("levels");
        let mut map = KeyMap::new(&scratch.0.join("from"), OPTIONS, 0);
        for (key, position) in puts(100_000) {
            map.put(&key, position).expect("there is room on the disk");
        }
        assert!(!map.is_whole());
        assert!(map.entries.len() + map.slots.len() * 8 <= 2 * OPTIONS.memory_bytes);
        let files = map.into_files().expect("there is room on the disk");
        assert_eq!(reduced(files, &scratch.0), last_positions(100_000));
    }

    /// The worst case, slow but correct: all keys have the same hash.
    #[test]
    fn keys_of_one_hash_stay_apart() {
        let scratch = Scratch::new("one-hash");
        let mut map = KeyMap::new(&scratch.0.join("from"), OPTIONS, 0);
        map.hash = |_, _| 0xAAAA_AAAA_0000_0001;
        for (key, position) in puts(3000) {
            map.put(&key, position).expect("there is room on the disk");
        }
        assert!(!map.is_whole());
        let files = map.into_files().expect("there is room on the disk");
        assert_eq!(files.iter().flatten().count(), 1);
        assert_eq!(reduced(files, &scratch.0), last_positions(3000));
    }

    /// Below the last level of the hash, keys stay in memory.
    #[test]
    fn nothing_spills_when_the_hash_has_no_bits_left() {
        let scratch = Scratch::new("deep");
        let mut map = KeyMap::new(&scratch.0, OPTIONS, MAX_DEPTH);
        map.hash = |_, _| 1;
        for (key, position) in puts(3000) {
            map.put(&key, position).expect("nothing is written");
        }
        assert!(map.is_whole());
        let mut positions = map.into_positions();
        positions.sort_unstable();
        assert_eq!(positions, last_positions(3000));
    }
}
