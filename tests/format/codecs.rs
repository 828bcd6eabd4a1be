//! What each codec accepts and refuses, compared with the codecs that Kafka's own classes use.

use magicbyte::{Compression, Decompressor, ErrorKind};
#[allow(unused_imports, reason = "unused without codecs")]
use magicbyte_testing::handmade::{gzip_member, gzip_stored, hex};

type Case = (&'static str, Vec<u8>, Option<Vec<u8>>);

fn gives(name: &'static str, payload: impl AsRef<[u8]>, content: impl AsRef<[u8]>) -> Case {
    (name, payload.as_ref().to_vec(), Some(content.as_ref().to_vec()))
}

#[allow(dead_code, reason = "unused without codecs")]
fn refused(name: &'static str, payload: impl AsRef<[u8]>) -> Case {
    (name, payload.as_ref().to_vec(), None)
}

/// Runs all cases twice on one decompressor: a case must leave nothing that changes the next one.
fn check(codec: Compression, magic: i8, cases: &[Case]) {
    let mut decompressor = Decompressor::new();
    for _ in 0..2 {
        for (name, payload, expected) in cases {
            let found = decompressor.decompress(codec, magic, payload);
            match (expected, found) {
                (Some(content), found) => assert!(found.unwrap() == content, "{codec:?}: {name}"),
                (None, Ok(found)) => panic!("{codec:?}: {name}: gave {} bytes", found.len()),
                (None, Err(error)) => {
                    assert!(
                        matches!(error.kind(), ErrorKind::Decompression(_)),
                        "{codec:?}: {name}: {error}"
                    );
                }
            }
        }
    }
}

/// No proper prefix of a stream is accepted, except those of the lengths in `allowed`.
#[allow(dead_code, reason = "unused without codecs")]
fn check_prefixes(codec: Compression, stream: &[u8], allowed: &[usize]) {
    let mut decompressor = Decompressor::new();
    for length in 0..stream.len() {
        let accepted = decompressor.decompress(codec, 2, &stream[..length]).is_ok();
        assert_eq!(accepted, allowed.contains(&length), "{codec:?}: {length} of {} bytes", stream.len());
    }
}

/// Random words: compressible, but with more than one symbol.
#[allow(dead_code, reason = "unused without codecs")]
fn sample(size: usize) -> Vec<u8> {
    let words =
        ["offset ", "partition ", "leader ", "epoch ", "topic ", "0123456789 ", "\"key\": ", "null, "];
    let mut seed = 7u32;
    let mut text = String::new();
    while text.len() < size {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.push_str(words[(seed >> 29) as usize]);
    }
    text.truncate(size);
    text.into_bytes()
}

/// A limit of exactly the size is enough, any smaller one is an error that names it.
#[allow(dead_code, reason = "unused without codecs")]
fn check_limit(codec: Compression, payload: &[u8], content: &[u8]) {
    let size = content.len();
    assert_eq!(Decompressor::with_limit(size).decompress(codec, 2, payload).unwrap(), content);
    for limit in [size - 1, size / 2, 1, 0] {
        let error = Decompressor::with_limit(limit).decompress(codec, 2, payload).unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::LimitExceeded { limit }, "{codec:?}");
        assert!(error.to_string().contains(&limit.to_string()), "{error}");
    }
}

#[test]
fn none_is_a_copy_within_the_limit() {
    check(Compression::None, 2, &[gives("empty", [], []), gives("bytes", b"abc", b"abc")]);
    check_limit(Compression::None, b"abcdef", b"abcdef");
}

#[test]
fn a_codec_left_out_says_so() {
    for (codec, present) in [
        (Compression::Gzip, cfg!(feature = "gzip")),
        (Compression::Snappy, cfg!(feature = "snappy")),
        (Compression::Lz4, cfg!(feature = "lz4")),
        (Compression::Zstd, cfg!(feature = "zstd")),
    ] {
        // One byte is not a stream of any codec, so the codecs that are present fail, too, but with another
        // error.
        let error = Decompressor::new().decompress(codec, 2, &[0xff]).unwrap_err();
        let unsupported = matches!(error.kind(), ErrorKind::UnsupportedCompression(_));
        assert_eq!(unsupported, !present, "{codec:?}: {error}");
    }
}

#[cfg(feature = "gzip")]
mod gzip {
    use std::io::Write;

    use super::*;

    const EMPTY: &str = "1f8b08000000000000ff 0300 00000000 00000000";

    fn deflated(data: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn with_byte(mut stream: Vec<u8>, at: usize, value: u8) -> Vec<u8> {
        stream[at] = value;
        stream
    }

    #[test]
    fn table() {
        let one = gzip_stored(b"one");
        let two = deflated(b"two");
        let crc16 = |header: &str| {
            let header = hex(header);
            [&header[10..], &(crc32fast::hash(&header) as u16).to_le_bytes()].concat()
        };
        let followed_by = |junk: &[u8]| [&one[..], junk].concat();
        let end = one.len();
        check(
            Compression::Gzip,
            2,
            &[
                gives("empty stream", hex(EMPTY), b""),
                refused("zero bytes", []),
                gives("a stored block", &one, b"one"),
                gives("Huffman codes", &two, b"two"),
                gives("several blocks", deflated(&sample(1 << 20)), sample(1 << 20)),
                gives("two members", [&one[..], &two].concat(), b"onetwo"),
                gives(
                    "three members, the middle one empty",
                    [&one[..], &hex(EMPTY), &two].concat(),
                    b"onetwo",
                ),
                // A reader that takes a member in one call must notice that there is another.
                gives("two members alike", followed_by(&one), b"oneone"),
                gives("three members alike", [&two[..], &two, &two].concat(), b"twotwotwo"),
                gives("a second member with a name", followed_by(&gzip_member(8, b"n\0", b"two")), b"onetwo"),
                gives("two empty members", [hex(EMPTY), hex(EMPTY)].concat(), b""),
                gives(
                    "junk and a copy of the trailer after",
                    followed_by(&[&[0xa5; 30][..], &one[end - 8..]].concat()),
                    b"one",
                ),
                refused(
                    "other bytes before the trailer",
                    [&one[..end - 8], b"???", &one[end - 8..]].concat(),
                ),
                // The content's own size, then the magic of a member: it looks like the border of two
                // members.
                gives(
                    "a content like a border",
                    gzip_stored(b"\x07\0\0\0\x1f\x8b\x08"),
                    b"\x07\0\0\0\x1f\x8b\x08",
                ),
                gives("0x00 after", followed_by(&[0]), b"one"),
                gives("8 garbage bytes after", followed_by(&[0xa5; 8]), b"one"),
                gives("30 garbage bytes after", followed_by(&[0xa5; 30]), b"one"),
                gives("18 bytes of a member after", followed_by(&two[..18]), b"one"),
                refused("19 bytes of a member after", followed_by(&two[..19])),
                refused("second member cut by 1", followed_by(&two[..two.len() - 1])),
                gives("second member of another method", followed_by(&with_byte(two.clone(), 2, 9)), b"one"),
                refused(
                    "second member with a wrong CRC",
                    followed_by(&with_byte(two.clone(), two.len() - 8, 0)),
                ),
                refused("cut by 1", &one[..end - 1]),
                gives("FEXTRA", gzip_member(4, b"\x03\0abc", b"x"), b"x"),
                gives("FNAME", gzip_member(8, b"name\0", b"x"), b"x"),
                gives("FCOMMENT", gzip_member(16, b"why\0", b"x"), b"x"),
                gives("FHCRC", gzip_member(2, &crc16("1f8b08020000000000ff"), b"x"), b"x"),
                gives(
                    "all fields",
                    gzip_member(30, &crc16("1f8b081e0000000000ff 010061 6e00 6300"), b"x"),
                    b"x",
                ),
                refused("FHCRC wrong", gzip_member(2, &[0, 0], b"x")),
                refused("FEXTRA cut", &gzip_member(4, b"\xff\xff", b"x")[..]),
                refused("FNAME without end", &gzip_member(8, b"name", b"x")[..14]),
                gives("reserved flags", gzip_member(0xe1, &[], b"x"), b"x"),
                refused("magic", with_byte(one.clone(), 1, 0x8c)),
                refused("method", with_byte(one.clone(), 2, 7)),
                refused("block type 3", with_byte(one.clone(), 10, 7)),
                refused("stored block whose sizes disagree", with_byte(one.clone(), 11, 4)),
                refused("CRC wrong", with_byte(one.clone(), end - 8, 0)),
                refused("size wrong", with_byte(one.clone(), end - 4, 4)),
            ],
        );
        // Bytes after the first member that are too few for another member are ignored.
        check_prefixes(Compression::Gzip, &one, &[]);
        check_prefixes(Compression::Gzip, &followed_by(&two), &(end..=end + 18).collect::<Vec<_>>());
        check_limit(Compression::Gzip, &deflated(&sample(100_000)), &sample(100_000));
        check_limit(Compression::Gzip, &deflated(&[7; 1 << 20]), &[7; 1 << 20]);
        check_limit(Compression::Gzip, &[deflated(b"abc"), deflated(b"def")].concat(), b"abcdef");
    }

    /// libdeflate accepts symbols and counts of codes that RFC 1951 leaves undefined; zlib does not. No
    /// encoder writes them. We return such content only if CRC and size match, and only under the header that
    /// Kafka writes.
    #[test]
    fn codes_without_a_meaning() {
        let symbol_286 = hex("1f8b08000000000000ff 4b1c0300 56fac234 03010000");
        let codes_for_32_distances =
            hex("1f8b08000000000000ff 05df81080000000020d6fd255641 2d7307f0 03000000");
        for (stream, content) in [(symbol_286, vec![b'a'; 259]), (codes_for_32_distances, vec![b'a'; 3])] {
            check(Compression::Gzip, 2, &[gives("under Kafka's header", &stream, content)]);
            let named = [&stream[..3], &[8], &stream[4..10], &[0], &stream[10..]].concat();
            check(Compression::Gzip, 2, &[refused("under another header", named)]);
            let crc = with_byte(stream.clone(), stream.len() - 8, 0);
            check(Compression::Gzip, 2, &[refused("another CRC", crc)]);
        }
    }
}

#[cfg(feature = "snappy")]
mod snappy {
    use super::*;

    const HEADER: &str = "82534e41505059 00 00000001 00000001";

    fn raw(data: &[u8]) -> Vec<u8> {
        snap::raw::Encoder::new().compress_vec(data).unwrap()
    }

    fn chunk(block: &[u8]) -> Vec<u8> {
        [&(block.len() as u32).to_be_bytes(), block].concat()
    }

    fn xerial(header: &str, parts: &[&[u8]]) -> Vec<u8> {
        [hex(header), parts.concat()].concat()
    }

    fn chunked(data: &[u8], size: usize) -> Vec<u8> {
        let chunks: Vec<_> = data.chunks(size).map(|part| chunk(&raw(part))).collect();
        xerial(HEADER, &[&chunks.concat()])
    }

    #[test]
    fn table() {
        let one = chunk(&raw(b"one"));
        let stream = xerial(HEADER, &[&one]);
        let with = |parts: &[&[u8]]| [&stream[..], &parts.concat()].concat();
        let data = sample(300_000);
        check(
            Compression::Snappy,
            2,
            &[
                gives("header only", hex(HEADER), b""),
                refused("zero bytes", []),
                gives("one chunk", &stream, b"one"),
                gives("two streams", with(&[&stream]), b"oneone"),
                gives("three headers in a row", with(&[&hex(HEADER), &stream]), b"oneone"),
                gives("0x00 after", with(&[&[0]]), b"one"),
                gives("3 bytes after", with(&[&[0xff; 3]]), b"one"),
                refused("8 garbage bytes after", with(&[&[0x7f; 8]])),
                refused("cut by 1", &stream[..stream.len() - 1]),
                gives("chunks of 32 KB", chunked(&data, 32 << 10), &data),
                gives("chunks of 1 KB", chunked(&data, 1 << 10), &data),
                refused("chunk length -1", with(&[&[0xff; 4], &one])),
                refused("chunk length 0", with(&[&[0; 4], &one])),
                refused("chunk length 512 MiB", with(&[&[0x20, 0, 0, 0], &one])),
                refused("chunk length 512 MiB + 1", with(&[&[0x20, 0, 0, 1], &one])),
                refused("chunk length 2^31-1", with(&[&[0x7f, 0xff, 0xff, 0xff], &one])),
                refused("chunk that is not a snappy block", with(&[&chunk(b"\x05\x10hell")])),
                refused("chunk that declares too much", with(&[&chunk(b"\xff\xff\xff\xff\x07\x10hello")])),
                refused(
                    "chunk that refers to bytes before its start",
                    with(&[&chunk(b"\x08\x0dzzzz\x01\x09")]),
                ),
                gives("raw", raw(b"one"), b"one"),
                gives("raw and large", raw(&data), &data),
                gives("raw and empty", [0], b""),
                refused("raw, cut by 1", &raw(b"one")[..4]),
                refused("raw, a byte after", [&raw(b"one")[..], &[0]].concat()),
                refused("raw, two blocks", [raw(b"one"), raw(b"two")].concat()),
                refused("magic alone", &stream[..8]),
                refused("15 bytes of a header", &stream[..15]),
                gives(
                    "first header: version 0",
                    xerial("82534e4150505900 00000000 00000000", &[&one]),
                    b"one",
                ),
                gives(
                    "first header: little-endian",
                    xerial("82534e4150505900 01000000 01000000", &[&one]),
                    b"one",
                ),
                gives(
                    "later header: little-endian",
                    with(&[&hex("82534e4150505900 01000000 01000000"), &one]),
                    b"oneone",
                ),
                refused("later header: version 0", with(&[&hex("82534e4150505900 00000000 00000001"), &one])),
                gives(
                    "later header: compatible 0",
                    with(&[&hex("82534e4150505900 00000001 00000000"), &one]),
                    b"oneone",
                ),
                // Java skips these 16 bytes or stops here, depending on its buffers.
                refused(
                    "later header: other magic",
                    with(&[&hex("82534e4150505901 00000001 00000001"), &one]),
                ),
                refused("later header cut", with(&[&hex(HEADER)[..15]])),
            ],
        );
        // A header alone is a stream, and up to three bytes after a chunk are ignored.
        check_prefixes(Compression::Snappy, &stream, &[16, 17, 18, 19]);
        check_limit(Compression::Snappy, &chunked(&data, 32 << 10), &data);
        check_limit(Compression::Snappy, &raw(&data), &data);
    }
}

#[cfg(feature = "lz4")]
mod lz4 {
    use super::*;

    const END: [u8; 4] = [0; 4];

    fn xxh32(data: &[u8]) -> u32 {
        twox_hash::XxHash32::oneshot(0, data)
    }

    /// Magic, descriptor and its checksum.
    fn header(flg: u8, bd: u8, content_size: &[u8]) -> Vec<u8> {
        let descriptor = [&[flg, bd], content_size].concat();
        let checksum = (xxh32(&descriptor) >> 8) as u8;
        [&hex("04224d18")[..], &descriptor, &[checksum]].concat()
    }

    fn stored(data: &[u8]) -> Vec<u8> {
        [&(data.len() as u32 | 1 << 31).to_le_bytes(), data].concat()
    }

    fn block(data: &[u8]) -> Vec<u8> {
        let compressed = lz4_flex::block::compress(data);
        [&(compressed.len() as u32).to_le_bytes(), &compressed[..]].concat()
    }

    fn summed(block: &[u8]) -> Vec<u8> {
        [block, &xxh32(&block[4..]).to_le_bytes()].concat()
    }

    fn frame(flg: u8, bd: u8, parts: &[&[u8]]) -> Vec<u8> {
        [header(flg, bd, &[]), parts.concat()].concat()
    }

    #[test]
    fn table() {
        let one = frame(0x60, 0x40, &[&block(b"one"), &END]);
        let with = |parts: &[&[u8]]| [&one[..], &parts.concat()].concat();
        let sized =
            |flg: u8, size: u64| [&header(flg, 0x40, &size.to_le_bytes())[..], &block(b"one"), &END].concat();
        let data = sample(4 << 20);
        // Content size, block and content checksum.
        let everything = |bd| {
            let header = header(0x7c, bd, &3u64.to_le_bytes());
            [&header[..], &summed(&block(b"one")), &END, &xxh32(b"one").to_le_bytes(), &[0xa5; 3]].concat()
        };
        let broken_sum = {
            let mut sum = summed(&block(b"one"));
            *sum.last_mut().unwrap() ^= 1;
            sum
        };
        check(
            Compression::Lz4,
            2,
            &[
                gives("empty stream", hex("04224d18604082 00000000"), b""),
                refused("zero bytes", []),
                gives("one block", &one, b"one"),
                gives("first of two frames only", with(&[&one]), b"one"),
                gives("0x00 after", with(&[&[0]]), b"one"),
                gives("8 garbage bytes after", with(&[&[0xa5; 8]]), b"one"),
                refused("cut by 1", &one[..one.len() - 1]),
                gives("stored block", frame(0x60, 0x40, &[&stored(b"one"), &END]), b"one"),
                gives("two blocks", frame(0x60, 0x40, &[&block(b"one"), &stored(b"two"), &END]), b"onetwo"),
                gives("blocks of 64 KB", frame(0x60, 0x40, &[&block(&data[..65536]), &END]), &data[..65536]),
                gives(
                    "blocks of 256 KB",
                    frame(0x60, 0x50, &[&block(&data[..262_144]), &END]),
                    &data[..262_144],
                ),
                gives(
                    "blocks of 1 MB",
                    frame(0x60, 0x60, &[&block(&data[..1 << 20]), &END]),
                    &data[..1 << 20],
                ),
                gives("blocks of 4 MB", frame(0x60, 0x70, &[&block(&data), &END]), &data),
                refused("stored block too large", frame(0x60, 0x40, &[&stored(&data[..65537]), &END])),
                refused("block that yields too much", frame(0x60, 0x40, &[&block(&[7; 65537]), &END])),
                refused("block size 3", frame(0x60, 0x30, &[&block(b"one"), &END])),
                refused("block size 0", frame(0x60, 0x00, &[&block(b"one"), &END])),
                refused("reserved bits of BD", frame(0x60, 0x48, &[&block(b"one"), &END])),
                refused("top bit of BD", frame(0x60, 0xc0, &[&block(b"one"), &END])),
                refused("dependent blocks", frame(0x40, 0x40, &[&block(b"one"), &END])),
                refused("dictionary id", [&header(0x61, 0x40, &[0; 4])[..], &block(b"one"), &END].concat()),
                refused("reserved bit of FLG", frame(0x62, 0x40, &[&block(b"one"), &END])),
                refused("version 0", frame(0x20, 0x40, &[&block(b"one"), &END])),
                refused("version 2", frame(0xa0, 0x40, &[&block(b"one"), &END])),
                refused("version 3", frame(0xe0, 0x40, &[&block(b"one"), &END])),
                refused("magic", [&[5], &one[1..]].concat()),
                refused("legacy frame", hex("02214c18 04000000 306f6e65")),
                refused("skippable frame first", [&hex("502a4d18 01000000 00")[..], &one].concat()),
                gives("content size", sized(0x68, 3), b"one"),
                gives("content size that is wrong", sized(0x68, 99), b"one"),
                refused("content size cut", &sized(0x68, 3)[..12]),
                gives("block checksum", frame(0x70, 0x40, &[&summed(&block(b"one")), &END]), b"one"),
                gives("block checksum, stored", frame(0x70, 0x40, &[&summed(&stored(b"one")), &END]), b"one"),
                refused("block checksum wrong", frame(0x70, 0x40, &[&broken_sum, &END])),
                gives(
                    "content checksum",
                    frame(0x64, 0x40, &[&block(b"one"), &END, &xxh32(b"one").to_le_bytes()]),
                    b"one",
                ),
                gives(
                    "content checksum that is wrong",
                    frame(0x64, 0x40, &[&block(b"one"), &END, &[0; 4]]),
                    b"one",
                ),
                refused("content checksum missing", frame(0x64, 0x40, &[&block(b"one"), &END])),
                refused("content checksum cut", frame(0x64, 0x40, &[&block(b"one"), &END, &[0; 3]])),
                gives("all optional fields, 3 junk bytes", everything(0x70), b"one"),
                gives("the same, blocks of 1 MB", everything(0x60), b"one"),
                gives("the same, blocks of 256 KB", everything(0x50), b"one"),
                gives("end mark 0x80000000", frame(0x60, 0x40, &[&block(b"one"), &hex("00000080")]), b"one"),
                refused("no end mark", frame(0x60, 0x40, &[&block(b"one")])),
                refused("header checksum wrong", hex("04224d18604083 00000000")),
                refused("header checksum of KAFKA-3160", hex("04224d1860401a 00000000")),
                refused("header only", &one[..7]),
                // Token: no literals, then a match of 4 at distance 1, before any output.
                refused(
                    "block that refers to bytes before its start",
                    frame(0x60, 0x40, &[&block(b"one"), &hex("03000000 000100"), &END]),
                ),
                refused("match distance 0", frame(0x60, 0x40, &[&hex("04000000 10610000"), &END])),
                refused("literals past the block", frame(0x60, 0x40, &[&hex("02000000 f061"), &END])),
            ],
        );
        check_prefixes(Compression::Lz4, &one, &[]);
        check_limit(Compression::Lz4, &frame(0x60, 0x70, &[&block(&data), &END]), &data);
        check_limit(Compression::Lz4, &frame(0x60, 0x40, &[&stored(b"abcdef"), &END]), b"abcdef");
    }

    #[test]
    fn the_header_checksum_is_ignored_in_magic_0_alone() {
        let kafka_3160 = hex("04224d1860401a 0300008061626300000000");
        for checksum in [0x82, 0x1a, 0x00] {
            let mut frame = kafka_3160.clone();
            frame[6] = checksum;
            for magic in 0..=2 {
                let accepted = Decompressor::new().decompress(Compression::Lz4, magic, &frame).is_ok();
                assert_eq!(accepted, magic == 0 || checksum == 0x82, "{checksum:#x} in magic {magic}");
            }
        }
    }
}

#[cfg(feature = "zstd")]
mod zstd {
    use super::*;
    use zstd_safe::CParameter;

    const EMPTY: &str = "28b52ffd 2000 010000";

    /// One frame with the content size in its header.
    fn compressed(data: &[u8], checksum: bool) -> Vec<u8> {
        let mut context = zstd_safe::CCtx::create();
        context.set_parameter(CParameter::ChecksumFlag(checksum)).unwrap();
        let mut out = vec![0; zstd_safe::compress_bound(data.len())];
        let size = context.compress2(&mut out[..], data).unwrap();
        out.truncate(size);
        out
    }

    /// One frame as Kafka streams it: no content size, window of 2 MB, one raw block.
    fn streamed(data: &[u8]) -> Vec<u8> {
        let block = (1 | (data.len() as u32) << 3).to_le_bytes();
        [&hex("28b52ffd 0058")[..], &block[..3], data].concat()
    }

    fn skippable(data: &[u8]) -> Vec<u8> {
        [&hex("502a4d18")[..], &(data.len() as u32).to_le_bytes(), data].concat()
    }

    #[test]
    fn table() {
        let one = streamed(b"one");
        let data = sample(1 << 20);
        let join = |parts: &[&[u8]]| parts.concat();
        let mut bad_sum = compressed(b"one", true);
        *bad_sum.last_mut().unwrap() ^= 1;
        check(
            Compression::Zstd,
            2,
            &[
                gives("empty stream", hex(EMPTY), b""),
                gives("zero bytes", [], b""),
                gives("no content size", &one, b"one"),
                gives("as Kafka closes it", hex("28b52ffd 0058 180000 6f6e65 010000"), b"one"),
                gives("an RLE block", hex("28b52ffd 0058 230000 61"), b"aaaa"),
                gives("known content size", compressed(&data, false), &data),
                gives("checksum", compressed(&data, true), &data),
                refused("checksum wrong", bad_sum),
                refused("content size wrong", hex("28b52ffd 2004 190000 6f6e65")),
                gives("two frames", join(&[&one, &compressed(b"two", true)]), b"onetwo"),
                gives("two frames, one empty", join(&[&hex(EMPTY), &one]), b"one"),
                gives("skippable frame before", join(&[&skippable(b"junk"), &one]), b"one"),
                gives("skippable frame between", join(&[&one, &skippable(b""), &one]), b"oneone"),
                gives("skippable frame after", join(&[&one, &skippable(b"junk")]), b"one"),
                gives("skippable frame alone", skippable(b"junk"), b""),
                // zstd-jni does not notice these: it checks only the first frame of a buffer for its end.
                refused("second frame cut by 1", join(&[&one, &one[..one.len() - 1]])),
                refused("skippable frame cut", join(&[&one, &skippable(b"junk")[..11]])),
                // zstd-jni refuses this because it would allocate the window; we do not.
                gives("a window of 256 MB", hex("28b52ffd 0090 190000 6f6e65"), b"one"),
                refused("0x00 after", join(&[&one, &[0]])),
                refused("8 garbage bytes after", join(&[&one, &[0xa5; 8]])),
                refused("cut by 1", &one[..one.len() - 1]),
                refused("last block missing", hex("28b52ffd 0058 180000 6f6e65")),
                refused("block type 3", hex("28b52ffd 0058 1f0000 6f6e65")),
                refused("reserved bit of the frame header", hex("28b52ffd 0858 190000 6f6e65")),
                refused("unknown dictionary", hex("28b52ffd 0158 07 190000 6f6e65")),
                refused("magic", hex("29b52ffd 0058 190000 6f6e65")),
                refused("zstd 0.7", hex("27b52ffd 0058 190000 6f6e65")),
            ],
        );
        check_prefixes(Compression::Zstd, &one, &[0]);
        check_prefixes(Compression::Zstd, &compressed(&data[..1000], true), &[0]);
        check_limit(Compression::Zstd, &compressed(&data, true), &data);
        check_limit(Compression::Zstd, &join(&[&streamed(b"abc"), &streamed(b"def")]), b"abcdef");
    }
}

#[test]
fn kept_results_outlive_the_next_ones() {
    let mut decompressor = Decompressor::new();
    let content = |round: u8| vec![round; 9 + usize::from(round)];
    let mut kept = Vec::new();
    for round in 0..9 {
        let whole = decompressor.decompress_shared(Compression::None, 2, &content(round)).unwrap();
        // Some results are kept whole, some in part, some not at all.
        match round % 3 {
            0 => kept.push((whole, content(round))),
            1 => kept.push((whole.slice(2..5), vec![round; 3])),
            _ => drop(whole),
        }
    }
    decompressor.decompress(Compression::None, 2, &[0xff; 99]).unwrap();
    for (found, expected) in kept {
        assert_eq!(found, expected);
    }
}
