//! The positions of a remote segment's chunks. The chunks of the original file all have one size; the chunks
//! of the object may have different sizes (Aiven's `ChunkIndex`, `ChunkSizesBinaryCodec`).

use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

/// The maximum size of a chunk that is restored: one chunk is in memory at a time.
const MAX_CHUNK: u64 = 64 << 20;
/// The maximum number of chunks whose sizes are kept.
const MAX_CHUNKS: usize = 1 << 18;
/// The maximum size of the list of sizes.
const MAX_SIZES: usize = 9 + 4 * MAX_CHUNKS;

/// `chunkIndex` of a manifest.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum ChunkIndexJson {
    Fixed {
        original_chunk_size: i32,
        original_file_size: i32,
        transformed_chunk_size: i32,
        final_transformed_chunk_size: i32,
    },
    Variable {
        original_chunk_size: i32,
        original_file_size: i32,
        transformed_chunks: String,
    },
}

/// The chunks of a segment. Positions and sizes fit into 64 bits, whatever the manifest says.
#[derive(Debug)]
pub(super) struct ChunkIndex {
    pub(super) original_size: u64,
    chunk_size: u64,
    sizes: Sizes,
}

/// The sizes of chunks in the object.
#[derive(Debug)]
enum Sizes {
    Fixed {
        size: u64,
        last: u64,
    },
    /// The end of each chunk.
    Variable {
        ends: Vec<u64>,
    },
}

impl ChunkIndex {
    /// Checks the content of a manifest.
    pub(super) fn new(json: ChunkIndexJson) -> Result<Self, String> {
        let positive = |size: i32, name: &str| match u64::try_from(size) {
            Ok(size) if size > 0 => Ok(size),
            _ => Err(format!("{name} is {size}, expected a positive number")),
        };
        let size_of = |size: i32, name: &str| {
            u64::try_from(size).map_err(|_| format!("{name} is {size}, expected 0 or more"))
        };
        let (chunk_size, original_size, sizes) = match json {
            ChunkIndexJson::Fixed {
                original_chunk_size,
                original_file_size,
                transformed_chunk_size,
                final_transformed_chunk_size,
            } => (
                positive(original_chunk_size, "originalChunkSize")?,
                size_of(original_file_size, "originalFileSize")?,
                Sizes::Fixed {
                    size: size_of(transformed_chunk_size, "transformedChunkSize")?,
                    last: size_of(final_transformed_chunk_size, "finalTransformedChunkSize")?,
                },
            ),
            ChunkIndexJson::Variable { original_chunk_size, original_file_size, transformed_chunks } => (
                positive(original_chunk_size, "originalChunkSize")?,
                size_of(original_file_size, "originalFileSize")?,
                Sizes::Variable { ends: ends(&decode_sizes(&transformed_chunks)?) },
            ),
        };
        let index = Self { original_size, chunk_size, sizes };
        if let Sizes::Variable { ends } = &index.sizes
            && ends.len() as u64 != index.count()
        {
            return Err(format!(
                "it has {} chunks, expected {} of {chunk_size} bytes for {original_size}",
                ends.len(),
                index.count()
            ));
        }
        Ok(index)
    }

    /// Refuses chunks that are too large to be restored in memory.
    pub(super) fn check_chunk_sizes(&self) -> Result<(), String> {
        let largest = match &self.sizes {
            Sizes::Fixed { size, last } => (*size).max(*last),
            Sizes::Variable { .. } => (0..self.count()).map(|n| length(&self.stored(n))).max().unwrap_or(0),
        };
        let original = self.chunk_size.min(self.original_size);
        match largest.max(original) {
            // The object's chunk may be a little larger: zstd and AES-GCM add bytes to what they cannot compress.
            size if original <= MAX_CHUNK && size <= 2 * MAX_CHUNK => Ok(()),
            size => Err(format!("a chunk has {size} bytes, more than the limit of {MAX_CHUNK}")),
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.original_size.div_ceil(self.chunk_size)
    }

    /// The chunk that holds a position of the original file.
    pub(super) fn chunk_at(&self, position: u64) -> u64 {
        position / self.chunk_size
    }

    /// The range of a chunk in the original file.
    pub(super) fn original(&self, number: u64) -> Range<u64> {
        let start = number * self.chunk_size;
        start..(start + self.chunk_size).min(self.original_size)
    }

    /// The range of a chunk in the object.
    pub(super) fn stored(&self, number: u64) -> Range<u64> {
        match &self.sizes {
            Sizes::Fixed { size, last } => {
                let start = number * size;
                start..start + if number + 1 == self.count() { *last } else { *size }
            }
            Sizes::Variable { ends } => {
                let end_of = |number: u64| ends.get(number as usize).copied().unwrap_or_default();
                number.checked_sub(1).map_or(0, end_of)..end_of(number)
            }
        }
    }

    /// The size of the object.
    pub(super) fn stored_size(&self) -> u64 {
        self.count().checked_sub(1).map_or(0, |last| self.stored(last).end)
    }
}

fn length(range: &Range<u64>) -> u64 {
    range.end - range.start
}

fn ends(sizes: &[u32]) -> Vec<u64> {
    let mut end = 0;
    sizes
        .iter()
        .map(|&size| {
            end += u64::from(size);
            end
        })
        .collect()
}

/// The list of sizes, from the base64 of a zstd frame in Aiven's binary format. The format is a count; then,
/// if there are several sizes, their base, the number of bytes per value, and all values but the last minus
/// the base; then the last value. All numbers are big-endian.
fn decode_sizes(text: &str) -> Result<Vec<u32>, String> {
    let compressed =
        STANDARD.decode(text).map_err(|error| format!("transformedChunks is not base64: {error}"))?;
    let mut list = vec![0; decompressed_size(&compressed)?];
    let length = zstd_safe::decompress(&mut list[..], &compressed)
        .map_err(|code| format!("transformedChunks: zstd: {}", zstd_safe::get_error_name(code)))?;
    parse_sizes(&list[..length]).ok_or_else(|| "transformedChunks is not a list of sizes".into())
}

fn decompressed_size(compressed: &[u8]) -> Result<usize, String> {
    match zstd_safe::get_frame_content_size(compressed) {
        Ok(Some(size)) if size <= MAX_SIZES as u64 => Ok(size as usize),
        Ok(Some(size)) => {
            Err(format!("transformedChunks has {size} bytes, more than the limit of {MAX_SIZES}"))
        }
        _ => Err("transformedChunks does not begin with a zstd frame that has its size".into()),
    }
}

fn parse_sizes(list: &[u8]) -> Option<Vec<u32>> {
    // Kafka's sizes are signed.
    let size = |number: u32| i32::try_from(number).is_ok().then_some(number);
    let (count, rest) = list.split_first_chunk()?;
    let count = usize::try_from(u32::from_be_bytes(*count)).ok()?;
    if count == 0 {
        return rest.is_empty().then(Vec::new);
    }
    let (rest, last) = rest.split_last_chunk()?;
    let last = size(u32::from_be_bytes(*last))?;
    if count == 1 {
        return rest.is_empty().then(|| vec![last]);
    }
    let (base, rest) = rest.split_first_chunk()?;
    let base = u32::from_be_bytes(*base);
    let (&width, values) = rest.split_first()?;
    let width = usize::from(width);
    if !(1..=4).contains(&width) || values.len() != (count - 1).checked_mul(width)? {
        return None;
    }
    let value = |bytes: &[u8]| bytes.iter().fold(0, |value, &byte| value << 8 | u32::from(byte));
    let others = values.chunks_exact(width).map(|bytes| size(base.checked_add(value(bytes))?));
    others.chain([Some(last)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The plugin's own example (`ChunkIndexSerializationTest`): 10, 20 and 30.
    const ENCODED: &[u8] = b"\0\0\0\x03\0\0\0\x0a\x01\0\x0a\0\0\0\x1e";

    fn variable(list: &[u8]) -> Result<ChunkIndex, String> {
        let mut compressed = vec![0; 100 + list.len()];
        let size = zstd_safe::compress(&mut compressed[..], list, 3).expect("compressed");
        ChunkIndex::new(ChunkIndexJson::Variable {
            original_chunk_size: 100,
            original_file_size: 250,
            transformed_chunks: STANDARD.encode(&compressed[..size]),
        })
    }

    #[test]
    fn chunks_of_several_sizes() {
        let index = variable(ENCODED).expect("valid");
        let chunks: Vec<_> = (0..index.count()).map(|n| (index.original(n), index.stored(n))).collect();
        assert_eq!(chunks, [(0..100, 0..10), (100..200, 10..30), (200..250, 30..60)]);
        assert_eq!((index.stored_size(), index.chunk_at(199), index.chunk_at(200)), (60, 1, 2));
        assert_eq!(parse_sizes(b"\0\0\0\0"), Some(vec![]));
        assert_eq!(parse_sizes(b"\0\0\0\x01\0\0\0\x05"), Some(vec![5]));
        let wide = b"\0\0\0\x03\0\x0f\x42\x40\x02\x01\x00\x00\x02\x00\x00\x00\x07";
        assert_eq!(parse_sizes(wide), Some(vec![1_000_256, 1_000_002, 7]));
    }

    #[test]
    fn chunks_of_one_size() {
        let index = |original_chunk_size, original_file_size, transformed_chunk_size, last| {
            ChunkIndex::new(ChunkIndexJson::Fixed {
                original_chunk_size,
                original_file_size,
                transformed_chunk_size,
                final_transformed_chunk_size: last,
            })
        };
        let chunks = index(100, 250, 110, 80).expect("valid");
        assert_eq!((0..3).map(|n| chunks.stored(n)).collect::<Vec<_>>(), [0..110, 110..220, 220..300]);
        assert_eq!(index(100, 0, 110, 0).expect("an empty file").stored_size(), 0);
        assert_eq!(index(1, i32::MAX, i32::MAX, i32::MAX).expect("large").stored_size() >> 60, 3);
        for (sizes, why) in [
            ((0, 250, 110, 80), "originalChunkSize is 0, expected a positive number"),
            ((-5, 250, 110, 80), "originalChunkSize is -5, expected a positive number"),
            ((100, -1, 110, 80), "originalFileSize is -1, expected 0 or more"),
            ((100, 250, -1, 80), "transformedChunkSize is -1, expected 0 or more"),
            ((100, 250, 110, -1), "finalTransformedChunkSize is -1, expected 0 or more"),
        ] {
            assert_eq!(index(sizes.0, sizes.1, sizes.2, sizes.3).expect_err("refused"), why);
        }
        let large = index(i32::MAX, i32::MAX, i32::MAX, 5).expect("valid").check_chunk_sizes();
        assert_eq!(large, Err("a chunk has 2147483647 bytes, more than the limit of 67108864".into()));
        assert!(index(i32::MAX, 1000, i32::MAX, 5).expect("valid").check_chunk_sizes().is_err());
    }

    #[test]
    fn lists_that_are_none() {
        for end in 0..ENCODED.len() {
            assert_eq!(parse_sizes(&ENCODED[..end]), None, "{end}");
        }
        assert_eq!(parse_sizes(&[ENCODED, b"?"].concat()), None);
        for (at, byte) in [(0, 0x7f), (3, 4), (4, 0x80), (8, 0), (8, 5), (11, 0x80)] {
            let mut list = ENCODED.to_vec();
            list[at] = byte;
            assert_eq!(parse_sizes(&list), None, "{at}");
        }
        assert_eq!(parse_sizes(b"\0\0\0\x02\x7f\xff\xff\xff\x01\x01\0\0\0\0"), None);
        let why = variable(b"\0\0\0\x01\0\0\0\x05").expect_err("one chunk");
        assert_eq!(why, "it has 1 chunks, expected 3 of 100 bytes for 250");
        assert_eq!(
            decode_sizes("?").expect_err("not base64").split(':').next(),
            Some("transformedChunks is not base64")
        );
        assert_eq!(
            decode_sizes("AAAA").expect_err("not zstd"),
            "transformedChunks does not begin with a zstd frame that has its size"
        );
        let bomb = vec![0; MAX_SIZES + 1];
        assert_eq!(
            variable(&bomb).expect_err("too large"),
            format!("transformedChunks has {} bytes, more than the limit of {MAX_SIZES}", MAX_SIZES + 1)
        );
    }
}
