//! Small inputs that claim a huge size or decompress to one: they fail quickly with an error that names
//! the limit, and use no memory beyond it.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::time::{Duration, Instant};

#[cfg(feature = "zstd")]
use magicbyte::Compression;
use magicbyte::{Batches, ControlRecord, Decompressor, ErrorKind, Result};
use magicbyte_testing::handmade::{V2, gzip_stored, hex, plain_record, record_of, varint};

const MIB: usize = 1 << 20;

#[global_allocator]
static ALLOCATOR: magicbyte_testing::memory::Counting = magicbyte_testing::memory::Counting;

/// The result of `work` and the most memory that it held; fails if it takes long.
fn measured<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let started = Instant::now();
    let measured = magicbyte_testing::memory::measured(work);
    assert!(started.elapsed() < Duration::from_secs(5), "took {:?}", started.elapsed());
    measured
}

/// Reads every record of one batch.
fn read(batch: &[u8], decompressor: &mut Decompressor) -> Result<usize> {
    let batch = Batches::new(batch).next().unwrap()?;
    let mut records = batch.records(decompressor)?;
    records.try_fold(0, |count, record| record.map(|_| count + 1))
}

#[allow(dead_code, reason = "unused without codecs")]
fn batch_of(codec: u16, payload: Vec<u8>) -> Vec<u8> {
    V2 { attributes: codec, payload, ..V2::of(&[plain_record(0)]) }.bytes()
}

/// One valid record, compressed with this codec.
#[allow(dead_code, reason = "unused without codecs")]
fn valid(codec: u16) -> Vec<u8> {
    let record = plain_record(0);
    let around = |head: &str, tail: &str| [hex(head), record.clone(), hex(tail)].concat();
    match codec {
        1 => gzip_stored(&record),
        2 => around("09 20", ""),
        3 => around("04224d18604082 09000080", "00000000"),
        _ => around("28b52ffd 0058 490000", ""),
    }
}

/// The default limit and smaller ones hold, and the decompressor works afterwards.
#[allow(dead_code, reason = "unused without codecs")]
fn check(codec: u16, payload: Vec<u8>) {
    let batch = batch_of(codec, payload);
    for limit in [magicbyte::DEFAULT_MAX_DECOMPRESSED_BYTES, 10 * MIB, 9] {
        let mut decompressor = Decompressor::with_limit(limit);
        let (error, peak) = measured(|| read(&batch, &mut decompressor).unwrap_err());
        assert_eq!(error.kind(), &ErrorKind::LimitExceeded { limit }, "codec {codec}");
        assert_eq!((error.position(), error.base_offset()), (Some(0), Some(100)));
        assert!(error.to_string().contains(&limit.to_string()), "{error}");
        // A codec's largest block and its context may come on top.
        assert!(peak <= limit + 5 * MIB, "codec {codec}: {peak} bytes under a limit of {limit}");
        assert_eq!(read(&batch_of(codec, valid(codec)), &mut decompressor).unwrap(), 1);
    }
}

#[cfg(feature = "gzip")]
#[test]
fn gzip_1_mb_becomes_1_gb() {
    use std::io::Write;
    // A full flush ends on a byte boundary and resets the window, so the piece can be repeated.
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&vec![0; MIB]).unwrap();
    encoder.flush().unwrap();
    let piece = encoder.get_ref().clone();
    let stream = [vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff], piece.repeat(1024)].concat();
    assert!((MIB..2 * MIB).contains(&stream.len()), "{}", stream.len());
    check(1, stream);
    // The same as a sequence of members.
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&vec![0; MIB]).unwrap();
    check(1, encoder.finish().unwrap().repeat(1024));
}

#[cfg(feature = "snappy")]
#[test]
fn snappy_chunks_and_claims() {
    let block = snap::raw::Encoder::new().compress_vec(&vec![0; MIB]).unwrap();
    let chunk = [&(block.len() as u32).to_be_bytes()[..], &block].concat();
    let stream = [hex("82534e4150505900 00000001 00000001"), chunk.repeat(300)].concat();
    check(2, stream);
    // The same in one raw block.
    check(2, snap::raw::Encoder::new().compress_vec(&vec![0; 300 * MIB]).unwrap());
}

#[cfg(feature = "lz4")]
fn lz4_header(flg: u8, bd: u8, content_size: &[u8]) -> Vec<u8> {
    let descriptor = [&[flg, bd], content_size].concat();
    let checksum = (twox_hash::XxHash32::oneshot(0, &descriptor) >> 8) as u8;
    [&hex("04224d18")[..], &descriptor, &[checksum]].concat()
}

#[cfg(feature = "lz4")]
#[test]
fn lz4_4_mb_a_block() {
    let block = lz4_flex::block::compress(&vec![0; 4 * MIB]);
    let block = [&(block.len() as u32).to_le_bytes()[..], &block].concat();
    let stream = [lz4_header(0x60, 0x70, &[]), block.repeat(100)].concat();
    assert!(stream.len() < 2 * MIB);
    check(3, stream);
}

#[cfg(feature = "zstd")]
#[test]
fn zstd_300_kb_becomes_10_gb() {
    // Run-length blocks: four bytes become 128 KB.
    let block = (1 << 1 | (128u32 << 10) << 3).to_le_bytes();
    let stream = [hex("28b52ffd 0058"), [block[0], block[1], block[2], 0].repeat(80_000)].concat();
    assert!((300 << 10..400 << 10).contains(&stream.len()));
    check(4, stream);
    // Each block in a frame of its own.
    let frame = [&hex("28b52ffd 0058")[..], &[block[0] | 1, block[1], block[2], 0]].concat();
    check(4, frame.repeat(40_000));
}

/// A small batch after a large one uses little memory, even while the large result is kept.
#[cfg(feature = "zstd")]
#[test]
fn a_large_batch_does_not_make_the_next_one_large() {
    let mut large = vec![0; MIB];
    let size = zstd_safe::compress(&mut large[..], &vec![0; 64 * MIB], 3).unwrap();
    large.truncate(size);
    let small = hex("28b52ffd 0058 190000 6f6e65");
    let mut decompressor = Decompressor::new();
    let kept = decompressor.decompress_shared(Compression::Zstd, 2, &large).unwrap();
    let (next, peak) = measured(|| decompressor.decompress_shared(Compression::Zstd, 2, &small).unwrap());
    assert_eq!((kept.len(), &next[..]), (64 * MIB, &b"one"[..]));
    assert!(peak <= 128 << 10, "{peak} bytes");
}

/// The time is proportional to the input, even if it consists of many tiny members or frames.
#[test]
fn many_small_parts_are_read_quickly() {
    let mut streams: Vec<(u16, Vec<u8>)> = vec![];
    if cfg!(feature = "gzip") {
        streams.push((1, hex("1f8b08000000000000ff 0300 00000000 00000000")));
    }
    if cfg!(feature = "snappy") {
        streams.push((2, hex("82534e4150505900 00000001 00000001 00000001 00")));
    }
    if cfg!(feature = "zstd") {
        streams.push((4, hex("28b52ffd 2000 010000")));
        streams.push((4, hex("502a4d18 00000000")));
    }
    for (codec, stream) in streams {
        let batch = batch_of(codec, stream.repeat(MIB / stream.len()));
        let (result, peak) = measured(|| read(&batch, &mut Decompressor::new()));
        assert_eq!(result.unwrap_err().kind(), &ErrorKind::TooFewRecords { announced: 1 });
        assert!(peak <= 4 * MIB, "codec {codec}: {peak} bytes");
    }
}

/// A size or count in a few bytes of input reserves no more memory than those bytes can hold.
#[test]
fn claims_reserve_nothing() {
    let count = |n: i64| record_of(&[&[0, 0, 0, 2, b'k', 2, b'v'], &varint(n)]);
    let announced = |count, records: &[Vec<u8>]| V2 { count, ..V2::of(records) }.bytes();
    let mut cases = vec![
        ("2^31-1 records", announced(i32::MAX, &[plain_record(0)]), "too_few_records"),
        ("2^31-1 records, none present", announced(i32::MAX, &[]), "too_few_records"),
        ("2^30 headers", V2::of(&[count(1 << 30)]).bytes(), "invalid_count"),
        ("2^31-1 headers", V2::of(&[count(i32::MAX.into())]).bytes(), "invalid_count"),
        ("a record of 2^31-1 bytes", V2::of(&[varint(i32::MAX.into())]).bytes(), "invalid_size"),
    ];
    #[allow(unused_variables, unused_mut, reason = "unused without codecs")]
    let mut payload = |name, codec, payload, kind| cases.push((name, batch_of(codec, payload), kind));
    #[cfg(feature = "snappy")]
    {
        payload("snappy of 4 GiB", 2, hex("ffffffff0f 0000"), "decompression");
        payload("snappy of 200 MiB, within the limit", 2, hex("80808064 0000"), "decompression");
        let chunk = hex("82534e4150505900 00000001 00000001 1fffffff 00");
        payload("snappy chunk of 512 MiB", 2, chunk, "decompression");
    }
    #[cfg(feature = "lz4")]
    {
        // The rest of the stream is valid, but empty or not the start of a record.
        let sized = [lz4_header(0x68, 0x70, &[0xff; 8]), vec![0; 4]].concat();
        payload("lz4 content of 2^64-1", 3, sized, "too_few_records");
        let block = [lz4_header(0x60, 0x70, &[]), hex("02000000 1061 00000000")].concat();
        payload("lz4 block of up to 4 MiB", 3, block, "invalid_size");
    }
    #[cfg(feature = "zstd")]
    {
        payload("zstd content of 200 MiB", 4, hex("28b52ffd a0 0000800c 010000"), "decompression");
        payload("zstd content of 2^63", 4, hex("28b52ffd e0 0000000000000080 010000"), "decompression");
        payload("zstd window of 2 GiB", 4, hex("28b52ffd 00a8 010000"), "too_few_records");
    }
    for (name, batch, kind) in cases {
        let (result, peak) = measured(|| read(&batch, &mut Decompressor::new()));
        assert_eq!(result.unwrap_err().kind().name(), kind, "{name}");
        // The decompressor itself and its first buffer.
        assert!(peak <= 80 << 10, "{name}: {peak} bytes");
    }
}

/// `size_hint` does not repeat the count of a header, so `collect` reserves no memory for it.
#[test]
fn size_hints_ignore_the_announced_count() {
    let batch = V2 { count: i32::MAX, ..V2::of(&[plain_record(0), plain_record(1)]) }.bytes();
    let mut decompressor = Decompressor::new();
    let (rows, peak) = measured(|| {
        let batch = Batches::new(&batch).next().unwrap().unwrap();
        let records = batch.records(&mut decompressor).unwrap();
        assert_eq!(records.size_hint().0, 0);
        records.collect::<Vec<_>>().len()
    });
    assert_eq!(rows, 3);
    assert!(peak <= 4 << 10, "{peak} bytes");
}

#[test]
fn control_payloads_reserve_nothing() {
    // A count of 2^24 voters, followed by 2^24 bytes that do not contain one whole voter.
    let mut value = hex("0000 00000003 81808008");
    value.resize(16 * MIB + 10, 0xff);
    let (result, peak) = measured(|| ControlRecord::parse(Some(&[0, 0, 0, 2]), Some(&value)));
    result.unwrap_err();
    assert!(peak <= 4 << 10, "{peak} bytes");
}

/// Positions of records in a batch have 32 bits, so a larger limit is lowered to what they can address.
#[test]
fn limits_are_capped_at_32_bits() {
    for limit in [usize::MAX, 6 << 30, 1 << 32] {
        assert_eq!(Decompressor::with_limit(limit).limit(), u32::MAX as usize);
    }
    assert_eq!(Decompressor::with_limit(3 << 30).limit(), 3 << 30);
}
