//! Logs to damage: batches with their positions and offsets, and a directory to write them to.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use magicbyte_log::PartitionLog;
use magicbyte_testing::handmade::{V2, message, record_of, sized, varint};

/// A pseudo-random generator with a fixed seed.
pub struct Chance(pub u64);

impl Chance {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n as u64) as usize
    }
    pub fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.below(256) as u8).collect()
    }
}

/// A segment of whole batches, with the byte range and offsets of each.
#[derive(Clone, Default)]
pub struct Log {
    pub bytes: Vec<u8>,
    pub places: Vec<Range<usize>>,
    pub offsets: Vec<Range<i64>>,
}

impl Log {
    pub fn next_offset(&self) -> i64 {
        self.offsets.last().map_or(0, |offsets| offsets.end)
    }

    pub fn push(&mut self, batch: &[u8], records: i64) {
        let (start, first) = (self.bytes.len(), self.next_offset());
        self.bytes.extend(batch);
        self.bytes[start..start + 8]
            .copy_from_slice(&(first + if batch[16] == 2 { 0 } else { records - 1 }).to_be_bytes());
        self.places.push(start..self.bytes.len());
        self.offsets.push(first..first + records);
    }

    /// Appends a batch of a few records with values of `size` bytes.
    pub fn push_plain(&mut self, magic: u8, size: usize, chance: &mut Chance) {
        if magic < 2 {
            let value = chance.bytes(size);
            return self.push(&message(0, magic, 0, 1_700_000_000_000, Some(b"key"), Some(&value)), 1);
        }
        let count = 1 + chance.below(5);
        let records: Vec<_> =
            (0..count).map(|delta| record(delta as i64, &chance.bytes(size), &[])).collect();
        self.push(&V2::of(&records).bytes(), count as i64);
    }

    pub fn of_plain(magic: u8, batches: usize, size: usize, chance: &mut Chance) -> Self {
        let mut log = Self::default();
        for _ in 0..batches {
            let size = size / 2 + chance.below(size);
            log.push_plain(magic, size, chance);
        }
        log
    }
}

pub fn record(offset_delta: i64, value: &[u8], header_value: &[u8]) -> Vec<u8> {
    let delta = varint(offset_delta);
    let headers = if header_value.is_empty() {
        varint(0)
    } else {
        [varint(1), sized(b"h"), sized(header_value)].concat()
    };
    record_of(&[&[0], &delta, &delta, &sized(b"k"), &sized(value), &headers])
}

pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("magicbyte-salvage-{name}-{}", std::process::id()));
        fs::create_dir_all(dir.join("t-0")).unwrap();
        Self(dir)
    }
    pub fn write(&self, bytes: &[u8]) -> PartitionLog {
        fs::write(self.0.join("t-0/00000000000000000000.log"), bytes).unwrap();
        PartitionLog::open(self.0.join("t-0")).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
