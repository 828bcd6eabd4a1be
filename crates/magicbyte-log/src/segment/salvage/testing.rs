//! Damaged logs for the tests of the rules. In all of them, the batch at offset 10 is bad.

use std::io::Write;

use magicbyte::DEFAULT_MAX_DECOMPRESSED_BYTES;
use magicbyte_testing::handmade::{V2, record_of, sized, varint};

use super::Salvage;
use super::header::framed_size;
use crate::segment::blocks::Blocks;
use crate::segment::limits::Limits;

pub(super) const LIMITS: Limits =
    Limits { expected: 10, max_offset: i64::MAX, max_batch_size: DEFAULT_MAX_DECOMPRESSED_BYTES };

/// Bytes that are no length, no header and no magic.
pub(super) fn junk(size: usize) -> Vec<u8> {
    vec![0xff; size]
}

/// A batch at this offset, of a record without a key for each value.
pub(super) fn batch(offset: i64, values: &[&[u8]]) -> Vec<u8> {
    let record = |(delta, value): (usize, &&[u8])| {
        let delta = varint(delta as i64);
        record_of(&[&[0], &delta, &delta, &varint(-1), &sized(value), &varint(0)])
    };
    let records: Vec<_> = values.iter().enumerate().map(record).collect();
    V2 { base_offset: offset, ..V2::of(&records) }.bytes()
}

/// A batch of a record, with a payload that shows no sizes.
pub(super) fn compressed(offset: i64, payload: &[u8]) -> Vec<u8> {
    const SNAPPY: u16 = 2;
    V2 {
        base_offset: offset,
        attributes: SNAPPY,
        last_offset_delta: 0,
        count: 1,
        payload: payload.to_vec(),
        ..V2::of(&[])
    }
    .bytes()
}

/// Damages the batch in a way that no flipped bit explains, outside its header and sizes.
pub(super) fn spoil(batch: &mut [u8]) {
    let value = batch.windows(2).rposition(|bytes| bytes == [0xff; 2]).expect("junk at the end of the value");
    batch[value..value + 2].copy_from_slice(&[0xb1, 0x3a]);
}

/// Sets the length so that the batch seems to have this size.
pub(super) fn set_size(batch: &mut [u8], size: usize) {
    batch[8..12].copy_from_slice(&(size as i32 - 12).to_be_bytes());
}

/// The position of `part` in `bytes`.
pub(super) fn position(bytes: &[u8], part: &[u8]) -> usize {
    bytes.windows(part.len()).position(|window| window == part).expect("a part of the bytes")
}

/// The blocks of a file of these bytes.
pub(super) fn blocks(bytes: &[u8]) -> Blocks {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("written");
    Blocks::open(&file.path().into(), bytes.len() as u64, None, 1 << 20).expect("opened")
}

/// The position where the log continues, if the file consists of these parts and the first is a bad batch.
pub(super) fn resume(parts: &[&[u8]]) -> Option<usize> {
    let bytes = parts.concat();
    let size = bytes.len() as u64;
    // As a reader passes it.
    let declared_end = framed_size(&bytes).filter(|&end| end <= size);
    let resumed = Salvage::new(0, size).resume(&mut blocks(&bytes), 0, declared_end, &LIMITS);
    resumed.expect("read").map(|position| position as usize)
}
