//! Real segments with all kinds of damage: an error that names its place, or a silent tail; never a panic,
//! and never a record that was not written.

use std::hint::black_box;
use std::path::PathBuf;

use magicbyte::{Batch, Batches, Compression, ControlRecord, Decompressor, Error, Result};
use magicbyte_testing::handmade::{in_this_build, read_all};
use magicbyte_testing::{data, files, partitions};

/// One partition for each magic and codec, and some with special content.
const KINDS: [&str; 18] = [
    "v0_none",
    "v0_gzip",
    "v0_snappy",
    "v0_lz4",
    "v1_none",
    "v1_gzip",
    "v1_snappy",
    "v1_lz4",
    "v1_logappend",
    "v2_none",
    "v2_gzip",
    "v2_snappy",
    "v2_lz4",
    "v2_zstd",
    "v2_headers",
    "v2_txn",
    "v2_nulls",
    "v2_tombstones",
];

/// Those with codecs that this build has.
fn kinds() -> impl Iterator<Item = &'static str> {
    let readable = |batch: Batch<'_>| in_this_build(batch.compression().unwrap().name());
    KINDS
        .into_iter()
        .filter(move |name| Batches::new(&smallest_segment(name)).all(|batch| readable(batch.unwrap())))
}

/// The smallest segment of the partition that is not empty.
fn smallest_segment(name: &str) -> Vec<u8> {
    let segments = files(&data().join(name), ".log").into_iter().map(|path| std::fs::read(path).unwrap());
    segments.filter(|bytes| !bytes.is_empty()).min_by_key(Vec::len).unwrap()
}

fn frames(segment: &[u8]) -> Vec<&[u8]> {
    let frames: Vec<_> = Batches::new(segment).map(|batch| batch.unwrap().as_bytes()).collect();
    assert!(!frames.is_empty());
    frames
}

/// Sets the length and CRC of a changed batch.
fn seal(batch: &mut [u8]) {
    let length = (batch.len() - 12) as i32;
    batch[8..12].copy_from_slice(&length.to_be_bytes());
    if batch[16] < 2 {
        let crc = crc32fast::hash(&batch[16..]);
        batch[12..16].copy_from_slice(&crc.to_be_bytes());
    } else if batch.len() >= 21 {
        let crc = crc32c::crc32c(&batch[21..]);
        batch[17..21].copy_from_slice(&crc.to_be_bytes());
    }
}

struct Reader(Decompressor);

impl Reader {
    fn new() -> Self {
        Self(Decompressor::with_limit(1 << 20))
    }

    /// Calls everything that a reader offers on a batch, without the CRC check; every error must name its
    /// place.
    fn exercise(&mut self, batch: &Batch<'_>) -> Result<usize> {
        black_box((batch.last_offset(), batch.max_timestamp(), batch.timestamp_type(), batch.is_control()));
        if let Batch::V2(batch) = batch {
            black_box((batch.last_sequence(), batch.delete_horizon_ms(), batch.record_count()));
        }
        let placed = |error: Error| {
            assert_eq!(error.position(), Some(batch.position()), "{error}");
            assert_eq!(error.base_offset(), Some(batch.stored_offset()), "{error}");
            error
        };
        let _ = batch.base_offset(&mut self.0).map_err(placed);
        let mut count = 0;
        for record in batch.records(&mut self.0).map_err(placed)?.without_crc_check() {
            let record = record.map_err(placed)?;
            assert_eq!(record.headers().count(), record.headers().len());
            let _ = black_box(ControlRecord::parse(record.key(), record.value()));
            count += 1;
        }
        Ok(count)
    }

    /// The bytes of each batch that can be read, or the error in its place.
    fn read<'a>(&mut self, bytes: &'a [u8]) -> Vec<Result<&'a [u8]>> {
        Batches::new(bytes)
            .map(|batch| {
                let batch = batch?;
                batch.verify()?;
                self.exercise(&batch)?;
                Ok(batch.as_bytes())
            })
            .collect()
    }
}

fn small_segments() -> Vec<PathBuf> {
    let mut all: Vec<_> = partitions().iter().flat_map(|dir| files(dir, ".log")).collect();
    all.retain(|path| (1..8 << 10).contains(&std::fs::metadata(path).unwrap().len()));
    assert!(all.len() > 50);
    all
}

/// A file cut anywhere keeps its whole batches; the cut batch is a tail, not an error.
#[test]
fn every_prefix_of_a_segment_is_its_whole_batches() {
    for path in small_segments() {
        let segment = std::fs::read(&path).unwrap();
        let whole = frames(&segment);
        let mut at = 0;
        for (count, frame) in whole.iter().enumerate() {
            for cut in at..at + frame.len() {
                let mut batches = Batches::new(&segment[..cut]);
                assert_eq!(batches.by_ref().map(Result::unwrap).count(), count, "{path:?} cut at {cut}");
                assert_eq!(batches.remaining(), cut - at);
                assert!(batches.needed() as usize <= frame.len() - (cut - at));
                assert_eq!(batches.needed() > 0, cut > at);
            }
            at += frame.len();
        }
    }
}

/// A cut batch with a length and a CRC that fit the cut.
#[test]
fn every_prefix_of_a_batch_with_a_matching_length_is_an_error() {
    let mut reader = Reader::new();
    for path in small_segments() {
        let segment = std::fs::read(&path).unwrap();
        // One batch of each kind per file is enough.
        let mut seen = Vec::new();
        for frame in frames(&segment) {
            let kind = (frame[16], if frame[16] == 2 { frame[22] } else { frame[17] });
            let empty = frame[16] == 2 && frame[57..61] == [0; 4];
            if seen.contains(&kind) || empty {
                continue;
            }
            seen.push(kind);
            for cut in 17..frame.len() {
                let mut batch = frame[..cut].to_vec();
                seal(&mut batch);
                let found = reader.read(&batch);
                assert!(matches!(found[..], [Err(_)]), "{path:?}: {kind:?} cut at {cut} of {}", frame.len());
            }
        }
    }
}

#[test]
fn every_flipped_byte() {
    let mut reader = Reader::new();
    for name in kinds() {
        let segment = smallest_segment(name);
        let mut start = 0;
        for frame in frames(&segment) {
            for at in 0..frame.len() {
                for mask in [0x01, 0x80, 0xff] {
                    // Only a wrong length can reach into the next batches.
                    let end = if (8..12).contains(&at) { segment.len() } else { start + frame.len() };
                    let mut damaged = segment[start..end].to_vec();
                    damaged[at] ^= mask;
                    let found = reader.read(&damaged);
                    let place = format_args!("{name}: byte {at} of the batch at {start} ^ {mask:#x}");
                    match (at, frame[16]) {
                        // No checksum covers the base offset, but a wrapper's offset must not be below those
                        // inside.
                        (0..8, 1) if frame[17] & 7 != 0 => assert_eq!(found.len(), 1, "{place}"),
                        (0..8, _) | (12..16, 2) => assert!(found[0].is_ok(), "{place}"),
                        // A length beyond the end of the input means a cut batch.
                        (8..12, _) => assert!(matches!(found[..], [] | [Err(_), ..]), "{place}"),
                        _ => assert!(matches!(found[..], [Err(_)]), "{place}"),
                    }
                    // With a matching CRC, as a writer would produce it: anything but a panic.
                    let mut sealed = frame.to_vec();
                    sealed[at] ^= mask;
                    seal(&mut sealed);
                    black_box(reader.read(&sealed));
                }
            }
            start += frame.len();
        }
    }
}

/// A small generator, so that a failure can be reproduced from its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len());
            let size = self.below(9).min(bytes.len() - at);
            match self.below(5) {
                0 => bytes[at] = self.below(256) as u8,
                1 => bytes[at..at + size].fill([0, 0x7f, 0x80, 0xff][self.below(4)]),
                2 => drop(bytes.drain(at..at + size)),
                3 => {
                    let from = self.below(bytes.len() - size + 1);
                    let copied = bytes[from..from + size].to_vec();
                    bytes.splice(at..at, copied);
                }
                _ => bytes[at..].rotate_left(size),
            }
            if bytes.len() < 17 {
                bytes.resize(17, 0);
            }
        }
    }
}

/// Every batch that a damaged segment yields was written: its bytes are the same except for the offset,
/// leader epoch and length (framing already checks the length).
#[test]
fn damaged_segments_yield_only_batches_that_were_written() {
    let mut reader = Reader::new();
    for name in kinds() {
        let segment = smallest_segment(name);
        let written: std::collections::HashSet<_> =
            frames(&segment).iter().map(|frame| &frame[16..]).collect();
        for seed in 0..300 {
            let mut damaged = segment.clone();
            Random(seed).damage(&mut damaged);
            for batch in reader.read(&damaged).into_iter().flatten() {
                assert!(written.contains(&batch[16..]), "{name}, seed {seed}");
            }
        }
    }
}

/// Damage with a valid CRC, as from a broken or hostile writer: it reaches the parsers and codecs.
#[test]
fn damaged_batches_with_a_valid_crc_do_no_harm() {
    let mut reader = Reader::new();
    let (mut read, mut refused) = (0, 0);
    for name in kinds() {
        let segment = smallest_segment(name);
        for (index, frame) in frames(&segment).iter().take(10).enumerate() {
            for seed in 0..400 {
                let mut batch = frame.to_vec();
                Random(seed + 1000 * index as u64).damage(&mut batch);
                // Keep the magic, so that framing does not find the damage.
                batch[16] = frame[16];
                seal(&mut batch);
                match reader.read(&batch)[..] {
                    [Ok(_)] => read += 1,
                    [Err(_)] => refused += 1,
                    ref found => panic!("{name}, batch {index}, seed {seed}: {} batches", found.len()),
                }
            }
        }
    }
    // Both must happen often, or the damage is not varied enough.
    assert!(read > 500 && refused > 5_000, "{read} read, {refused} refused");
}

/// The tests above mean something only if these segments are readable when undamaged.
#[test]
fn undamaged() {
    for name in kinds() {
        let segment = smallest_segment(name);
        let rows = read_all(&segment).unwrap();
        let mut reader = Reader::new();
        assert!(reader.read(&segment).iter().all(Result::is_ok), "{name}");
        let counted: usize =
            Batches::new(&segment).map(|batch| reader.exercise(&batch.unwrap()).unwrap()).sum();
        assert_eq!(counted, rows.len(), "{name}");
        let codec = name.rsplit('_').next().unwrap();
        let mut codecs = Batches::new(&segment).map(|batch| batch.unwrap().compression().unwrap().name());
        let is_codec = Compression::ALL.iter().any(|known| known.name() == codec);
        assert!(!is_codec || codecs.any(|found| found == codec), "{name} has no batch in {codec}");
    }
}
