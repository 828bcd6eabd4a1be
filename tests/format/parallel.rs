//! Reading with several threads gives what one thread gives, with errors and panics in the same place.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use magicbyte::{
    Batch, Batches, Compression, Decompressor, Error, ErrorKind, ParallelBatches, RecordsBuilder,
};

/// Batches of various sizes, codecs and magics, enough for several chunks.
fn input() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut offset = 0;
    for round in 0..2000u32 {
        let codec = match round % 3 {
            1 if cfg!(feature = "snappy") => Compression::Snappy,
            2 if cfg!(feature = "gzip") => Compression::Gzip,
            _ => Compression::None,
        };
        let mut builder = if round % 7 == 0 { RecordsBuilder::v1(codec) } else { RecordsBuilder::v2(codec) };
        for _ in 0..=(round % 10) {
            let value = vec![round as u8; (offset * 31 % 300) as usize];
            builder.append(offset, 1_700_000_000_000 + offset, None, Some(&value), &[]).unwrap();
            offset += 1;
        }
        builder.build_into(&mut bytes).unwrap();
    }
    let mut large = RecordsBuilder::v2(Compression::None);
    large.append(offset, 0, None, Some(&vec![7; 1 << 20]), &[]).unwrap();
    large.build_into(&mut bytes).unwrap();
    bytes
}

/// A batch's position, and the offset and value size of each record.
type Row = (u64, Vec<(i64, usize)>);

fn rows(batch: Batch<'_>, decompressor: &mut Decompressor) -> Result<Row, Error> {
    batch.verify()?;
    let mut found = Vec::new();
    for record in batch.records(decompressor)? {
        let record = record?;
        found.push((record.offset(), record.value().unwrap_or_default().len()));
    }
    Ok((batch.position(), found))
}

/// What one thread finds up to the first error or the end, and the size of a cut last batch.
fn alone(bytes: &[u8], position: u64) -> (Vec<Row>, Result<usize, Error>) {
    let mut decompressor = Decompressor::new();
    let mut found = Vec::new();
    let mut batches = Batches::at_position(bytes, position);
    for batch in batches.by_ref() {
        match batch.and_then(|batch| rows(batch, &mut decompressor)) {
            Ok(row) => found.push(row),
            Err(error) => return (found, Err(error)),
        }
    }
    (found, Ok(batches.remaining()))
}

fn together(bytes: &[u8], position: u64, threads: usize) -> (Vec<Row>, Result<usize, Error>) {
    let mut found = Vec::new();
    let end = ParallelBatches::at_position(bytes, position).threads(threads).map(rows, |row| {
        found.push(row);
        Ok(())
    });
    (found, end)
}

#[test]
fn any_number_of_threads_finds_the_same() {
    let mut bytes = input();
    let at = |share: usize| bytes.len() * share / 100;
    let (early, late) = (at(3), at(60));
    for threads in [0, 1, 2, 3, 8] {
        assert_eq!(together(&bytes, 1 << 40, threads), alone(&bytes, 1 << 40));
        assert_eq!(together(&[], 5, threads), (vec![], Ok(0)));
        // The last batch is cut.
        let cut = &bytes[..late];
        let (found, end) = together(cut, 0, threads);
        assert!(matches!(end, Ok(1..)), "{end:?}");
        assert_eq!((found, end), alone(cut, 0));
    }
    // A flipped byte: a wrong CRC or a wrong length. Only the first error counts, so damage is added from
    // back to front.
    for place in [late, early, 8] {
        bytes[place] ^= 0x80;
        let expected = alone(&bytes, 0);
        assert!(expected.1.is_err());
        for threads in [1, 2, 5] {
            assert_eq!(together(&bytes, 0, threads), expected);
        }
    }
}

#[test]
fn the_limit_applies_to_each_thread() {
    let bytes = input();
    let end = ParallelBatches::new(&bytes).threads(2).max_decompressed_bytes(10).map(rows, |_| Ok(()));
    let compressed = cfg!(feature = "snappy") || cfg!(feature = "gzip");
    assert_eq!(end.is_err(), compressed, "{end:?}");
    if let Err(error) = end {
        assert!(matches!(error.kind(), ErrorKind::LimitExceeded { limit: 10 }), "{error}");
    }
}

#[test]
fn an_error_of_the_receiver_ends_the_run() {
    let bytes = input();
    let mut left = 3;
    let end = ParallelBatches::new(&bytes).threads(2).map(rows, |_| {
        left -= 1;
        if left == 0 { Err(ErrorKind::InvalidRecord("enough").into()) } else { Ok(()) }
    });
    assert_eq!((end.unwrap_err().kind(), left), (&ErrorKind::InvalidRecord("enough"), 0));
}

#[test]
fn a_panic_follows_the_chunks_before_it() {
    let bytes = input();
    // A position among the small batches, past the first chunk.
    let place = (bytes.len() as u64 - (1 << 20)) * 2 / 3;
    assert!(place > 256 << 10, "{place}");
    for threads in [1, 3] {
        let mut received = Vec::new();
        let run = AssertUnwindSafe(|| {
            ParallelBatches::new(&bytes).threads(threads).map(
                |batch, _| {
                    assert!(batch.position() < place, "far enough");
                    Ok(batch.position())
                },
                |position| {
                    received.push(position);
                    Ok(())
                },
            )
        });
        let panic = catch_unwind(run).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"far enough"));
        assert!(received.is_sorted() && received.last().is_some_and(|&last| last < place));
        // Everything is received except the chunk with the panic: 256 KiB, exceeded by at most one small
        // batch.
        assert!(place - received.last().unwrap() < (256 << 10) + 4096, "{:?} of {place}", received.last());
    }
}

/// However slow the receiver is, the threads stay at most a few chunks ahead.
#[test]
fn memory_is_bounded_by_the_chunks_in_flight() {
    let bytes = input().repeat(5);
    let done = AtomicUsize::new(0);
    let mut received = 0;
    ParallelBatches::new(&bytes)
        .threads(2)
        .map(
            |batch, _| {
                done.fetch_add(batch.size_in_bytes(), Ordering::Relaxed);
                Ok(batch.size_in_bytes())
            },
            |size| {
                received += size;
                let ahead = done.load(Ordering::Relaxed).saturating_sub(received);
                // Four chunks in flight and the one being received; the largest batch is 1 MiB.
                assert!(ahead <= 5 * (256 << 10) + 5 * (1 << 20), "{ahead} bytes ahead");
                Ok(())
            },
        )
        .unwrap();
    assert_eq!(received, bytes.len());
}
