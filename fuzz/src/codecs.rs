//! Any payload in each codec, with limits on the output.

use magicbyte::{Compression, Decompressor, ErrorKind};

/// Small enough that inputs often exceed it.
const SMALL: usize = 4 << 10;
const LARGE: usize = 1 << 20;

/// gzip, decompressed in one call and as a stream.
pub fn gzip(data: &[u8]) {
    exercise(Compression::Gzip, 2, data);
    // Only a member without header fields is read in one call.
    if !data.starts_with(&[0x1f, 0x8b, 8, 0]) || data.len() < 10 {
        return;
    }
    let named = [&data[..3], &[8], &data[4..10], b"\0", &data[10..]].concat();
    let read = |payload: &[u8]| {
        Decompressor::with_limit(LARGE).decompress(Compression::Gzip, 2, payload).map(<[u8]>::to_vec)
    };
    match (read(data), read(&named)) {
        // zlib refuses codes that libdeflate accepts (tests/format/codecs.rs), but the content must match its
        // checksum.
        (Ok(content), Err(_)) => {
            let size = (content.len() as u32).to_le_bytes();
            let trailer = [crc32fast::hash(&content).to_le_bytes(), size].concat();
            assert!(data.windows(8).any(|bytes| bytes == trailer), "the content does not match its trailer");
        }
        (whole, streamed) => assert_eq!(whole, streamed),
    }
}

/// Snappy, in chunks or raw.
pub fn snappy(data: &[u8]) {
    exercise(Compression::Snappy, 2, data);
}

/// LZ4 frames, including those of magic 0.
pub fn lz4(data: &[u8]) {
    exercise(Compression::Lz4, 0, data);
    exercise(Compression::Lz4, 2, data);
}

/// zstd.
pub fn zstd(data: &[u8]) {
    exercise(Compression::Zstd, 2, data);
}

fn exercise(codec: Compression, magic: i8, data: &[u8]) {
    let mut small = Decompressor::with_limit(SMALL);
    let mut large = Decompressor::with_limit(LARGE);
    let limited = small.decompress(codec, magic, data).map(<[u8]>::to_vec);
    // A reused decompressor and a shared result give the same.
    assert_eq!(small.decompress(codec, magic, data).map(<[u8]>::to_vec), limited);
    let shared = small.decompress_shared(codec, magic, data);
    assert_eq!(shared.clone().map(|bytes| bytes.to_vec()), limited);
    // A result that is held does not change.
    let held = shared.ok();
    let _ = small.decompress_shared(codec, magic, &data[..data.len() / 2]);
    let _ = small.decompress_shared(codec, magic, &data[..data.len() / 3]);
    assert_eq!(held.as_deref(), limited.as_deref().ok());

    let whole = large.decompress(codec, magic, data);
    match (&limited, &whole) {
        (Ok(some), Ok(all)) => {
            assert!(some.len() <= SMALL);
            assert_eq!(&some[..], *all);
        }
        (Err(error), all) => match error.kind() {
            ErrorKind::LimitExceeded { limit: SMALL } => {
                assert!(all.is_err() || all.as_ref().unwrap().len() > SMALL);
            }
            _ => assert_eq!(all.as_ref().err(), Some(error), "a higher limit changes the error"),
        },
        (Ok(_), Err(error)) => panic!("a higher limit causes an error: {error}"),
    }
    assert!(whole.map_or(0, <[u8]>::len) <= LARGE);
}
