//! Each codec over any payload, under limits.

use magicbyte::{Compression, Decompressor, ErrorKind};

/// Small enough to be met often.
const SMALL: usize = 4 << 10;
const LARGE: usize = 1 << 20;

/// gzip.
pub fn gzip(data: &[u8]) {
    exercise(Compression::Gzip, 2, data);
}

/// Snappy, chunked or raw.
pub fn snappy(data: &[u8]) {
    exercise(Compression::Snappy, 2, data);
}

/// LZ4 frames, those of magic 0 too.
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
    // A used decompressor and a shared result are no different.
    assert_eq!(small.decompress(codec, magic, data).map(<[u8]>::to_vec), limited);
    let shared = small.decompress_shared(codec, magic, data);
    assert_eq!(shared.clone().map(|bytes| bytes.to_vec()), limited);
    // While somebody holds a result, it does not change.
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
                assert!(all.is_err() || all.as_ref().unwrap().len() > SMALL)
            }
            _ => assert_eq!(all.as_ref().err(), Some(error), "a higher limit makes another error"),
        },
        (Ok(_), Err(error)) => panic!("a higher limit makes an error: {error}"),
    }
    assert!(whole.map_or(0, <[u8]>::len) <= LARGE);
}
