//! Framing, and the records of each magic.

use std::path::Path;

use magicbyte::{Batch, Batches, ErrorKind};
use magicbyte_log::{Piece, SegmentReader, TailKind};

use super::made::{message, seal, snappy};
use super::scratch::Scratch;
use super::walk::{LIMIT, Read, walk};

/// Frames the bytes as a whole, in part, batch by batch, and as a file.
pub fn framing(data: &[u8]) {
    let mut batches = Batches::new(data);
    let mut found = Vec::new();
    let mut end = 0;
    let mut failed = false;
    while let Some(next) = batches.next() {
        match next {
            Ok(batch) => {
                assert_eq!(batch.position(), end as u64);
                assert_eq!(batch.as_bytes(), &data[end..end + batch.size_in_bytes()]);
                end += batch.size_in_bytes();
                let alone = Batch::from_frame(batch.as_bytes(), batch.position()).unwrap();
                assert_eq!(walk(&alone), walk(&batch));
                found.push(batch);
            }
            Err(error) => {
                assert_eq!(error.position(), Some(end as u64), "{error}");
                assert!(!error.is_incomplete(), "a cut batch is not an error");
                assert!(batches.next().is_none(), "framing continues after an error");
                failed = true;
            }
        }
    }
    assert_eq!(batches.remaining(), data.len() - end);
    assert_eq!(batches.next_position(), end as u64);
    if !failed {
        assert_eq!(batches.needed() > 0, batches.remaining() > 0);
    }
    a_part_is_framed_alike(data, &found);
    a_file_is_framed_alike(data, &found);
}

/// Batches before a cut are read as if the rest were present. The cut itself is not an error, unless the
/// whole input has the same error.
fn a_part_is_framed_alike(data: &[u8], whole: &[Batch<'_>]) {
    let cut = data.len() * usize::from(data.first().copied().unwrap_or_default()) / 256;
    let mut before =
        whole.iter().take_while(|batch| batch.position() as usize + batch.size_in_bytes() <= cut);
    for batch in Batches::new(&data[..cut]) {
        match batch {
            Ok(batch) => assert_eq!(before.next().unwrap().as_bytes(), batch.as_bytes()),
            Err(error) => {
                let again = Batches::new(data).find_map(Result::err);
                assert_eq!(again.as_ref(), Some(&error), "only the part has this error");
            }
        }
    }
    assert!(before.next().is_none());
}

/// The file reader gives the same chain of intact batches from the start, and accounts for every byte.
fn a_file_is_framed_alike(data: &[u8], batches: &[Batch<'_>]) {
    thread_local!(static SCRATCH: Scratch = Scratch::new());
    let path = SCRATCH.with(|scratch| scratch.segment(data));
    let mut intact = 0;
    let mut expected = i64::MIN;
    for batch in batches {
        let (first, last) = (batch.stored_offset(), batch.last_offset());
        if batch.verify().is_err() || first < expected || last < first || last == i64::MAX {
            break;
        }
        (expected, intact) = (last + 1, intact + 1);
    }
    // What follows the chain may show that the last batch has a wrong offset.
    let chain = batches[..intact].iter().map(magicbyte::Batch::size_in_bytes).sum::<usize>();
    if chain < data.len() {
        intact = intact.saturating_sub(1);
    }
    for check_crcs in [true, false] {
        let pieces = pieces(&path, data.len() as u64, check_crcs);
        for (batch, piece) in batches[..intact].iter().zip(&pieces) {
            let Piece::Batch(read) = piece else { panic!("an intact batch is {piece:?}") };
            assert_eq!((read.position(), &read.data()[..]), (batch.position(), batch.as_bytes()));
        }
        if chain == data.len() {
            assert_eq!(pieces.len(), intact);
        }
    }
}

fn pieces(path: &Path, size: u64, check_crcs: bool) -> Vec<Piece> {
    let reader = SegmentReader::open(path, size, 0..size, i64::MIN, i64::MAX).unwrap();
    let pieces: Vec<_> =
        reader.check_crcs(check_crcs).max_batch_size(LIMIT).map(|piece| piece.unwrap()).collect();
    let mut at = 0;
    for piece in &pieces {
        let range = match piece {
            Piece::Batch(batch) => {
                assert!(!check_crcs || batch.batch().verify().is_ok());
                batch.position()..batch.position() + batch.data().len() as u64
            }
            Piece::Quarantined { range, error } => {
                assert_eq!(error.position(), Some(range.start), "{error}");
                range.clone()
            }
            Piece::Tail { range, kind } => {
                assert_eq!(range.end, size, "a tail inside: {}", TailKind::name(*kind));
                range.clone()
            }
        };
        assert!(range.start == at && range.end > at, "{piece:?} at {at}");
        at = range.end;
    }
    assert_eq!(at, size, "bytes are left out");
    pieces
}

/// Reads the bytes as a magic 2 batch with valid length and CRC.
pub fn magic2(data: &[u8]) {
    let mut batch = data.to_vec();
    batch.resize(data.len().max(61), 0);
    batch[16] = 2;
    seal(&mut batch);
    walk_alone(&batch);
    // The same records, stored and compressed, must read the same.
    if batch.len() > LIMIT {
        return;
    }
    batch[22] &= !7;
    seal(&mut batch);
    let stored = walk_alone(&batch);
    let compressed = snappy(&batch[61..]);
    batch.truncate(61);
    batch.extend(compressed);
    batch[22] |= 2;
    seal(&mut batch);
    assert_alike(stored, walk_alone(&batch));
}

/// Reads the bytes as a message, or as the content of a wrapper. The first byte chooses: bit 0 the magic,
/// bits 1-3 the codec, bits 4-5 what the bytes are. The next eight are the offset.
pub fn legacy(data: &[u8]) {
    let Some((&[kind, ref offset @ ..], content)) = data.split_first_chunk::<9>() else { return };
    let (magic, codec) = (kind & 1, kind >> 1 & 7);
    let offset = i64::from_be_bytes(*offset);
    match kind >> 4 & 3 {
        // The rest of a message after its attributes.
        0 => {
            let mut outer = [&offset.to_be_bytes()[..], &[0; 8], &[magic, codec], content].concat();
            outer.resize(outer.len().max(26), 0);
            seal(&mut outer);
            walk_alone(&outer);
        }
        // The compressed payload.
        1 => drop(walk_alone(&message(offset, magic, codec, 5, content))),
        // The inner messages, as they are or with valid checksums, and with or without append time.
        inside => {
            let mut inner = content.to_vec();
            if inside == 3 {
                seal_each(&mut inner);
            }
            let flags = kind >> 6 << 3;
            let payload = snappy(&inner);
            let chunked =
                [&b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01"[..], &(payload.len() as u32).to_be_bytes(), &payload]
                    .concat();
            let raw = walk_alone(&message(offset, magic, 2 | flags, 5, &payload));
            assert_alike(raw, walk_alone(&message(offset, magic, 2 | flags, 5, &chunked)));
        }
    }
}

/// Sets valid checksums for all messages up to the first wrong size.
fn seal_each(mut messages: &mut [u8]) {
    while messages.len() >= 26 {
        let size = i32::from_be_bytes(messages[8..12].try_into().unwrap());
        let Ok(size) = usize::try_from(size) else { return };
        if size < 14 || size > messages.len() - 12 {
            return;
        }
        let (message, rest) = messages.split_at_mut(12 + size);
        let crc = crc32fast::hash(&message[16..]);
        message[12..16].copy_from_slice(&crc.to_be_bytes());
        messages = rest;
    }
}

/// Reads bytes that are one batch with a valid checksum.
fn walk_alone(bytes: &[u8]) -> Read {
    let mut batches = Batches::new(bytes);
    let batch = batches.next().unwrap().unwrap();
    assert!(batches.next().is_none() && batches.remaining() == 0);
    batch.verify().unwrap();
    walk(&batch)
}

/// Asserts that two forms of the same records read the same.
fn assert_alike(one: Read, other: Read) {
    // A build without the codec cannot read one of them.
    if !other.1.as_ref().is_some_and(|e| matches!(e.kind(), ErrorKind::UnsupportedCompression(_))) {
        assert_eq!(one, other);
    }
}
