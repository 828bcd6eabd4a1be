//! The rules of magic 0 and 1, on hand-made messages and wrappers.

use TimestampType::{CreateTime, LogAppendTime, NoTimestampType};

use magicbyte::{Batch, Batches, ErrorKind, TimestampType};
use magicbyte_testing::handmade::{Row, error_after_good, message, message_of, read_all};

#[cfg(feature = "gzip")]
const GZIP: u8 = 1;
const APPEND_TIME: u8 = 8;

fn row(offset: i64, timestamp: i64, timestamp_type: TimestampType) -> Row {
    Row {
        offset,
        timestamp,
        timestamp_type,
        sequence: -1,
        attributes: 0,
        key: None,
        value: Some(b"v".to_vec()),
        headers: vec![],
    }
}

/// An inner or outer message with value "v".
fn plain(offset: i64, magic: u8, timestamp: i64) -> Vec<u8> {
    message(offset, magic, 0, timestamp, None, Some(b"v"))
}

fn negative(size: i32) -> Vec<u8> {
    [size.to_be_bytes(), size.to_be_bytes()].concat()
}

#[test]
fn messages() {
    let null = Row { value: None, ..row(7, -1, NoTimestampType) };
    let timestamp = 5i64.to_be_bytes();
    let cases: Vec<(&str, Vec<u8>, Row)> = vec![
        ("magic 0", plain(7, 0, 99), row(7, -1, NoTimestampType)),
        ("magic 1", plain(7, 1, 99), row(7, 99, CreateTime)),
        ("negative timestamp", plain(7, 1, -5), row(7, -5, CreateTime)),
        (
            "key",
            message(7, 1, 0, 5, Some(b"k"), Some(b"v")),
            Row { key: Some(b"k".to_vec()), ..row(7, 5, CreateTime) },
        ),
        (
            "empty is not null",
            message(7, 1, 0, 5, Some(b""), Some(b"")),
            Row { key: Some(vec![]), value: Some(vec![]), ..row(7, 5, CreateTime) },
        ),
        ("null", message(7, 0, 0, 5, None, None), null.clone()),
        ("sizes of -2 are null", message_of(7, 0, 0, &negative(-2)), null.clone()),
        ("sizes of -2^31 are null", message_of(7, 0, 0, &negative(i32::MIN)), null.clone()),
        ("bytes after the value", message_of(7, 0, 0, &[negative(-1), vec![0xff; 5]].concat()), null.clone()),
        (
            "append time",
            message(7, 1, APPEND_TIME, 5, None, Some(b"v")),
            Row { attributes: 8, ..row(7, 5, LogAppendTime) },
        ),
        (
            "magic 0 has no append time",
            message(7, 0, APPEND_TIME, 5, None, Some(b"v")),
            Row { attributes: 8, ..row(7, -1, NoTimestampType) },
        ),
        (
            "reserved bits",
            message_of(7, 1, 0xf0, &[&timestamp[..], &negative(-1)].concat()),
            Row { attributes: 0xf0_u8 as i8, value: None, ..row(7, 5, CreateTime) },
        ),
        ("negative offset", plain(-7, 1, 5), row(-7, 5, CreateTime)),
    ];
    for (name, bytes, expected) in cases {
        assert_eq!(read_all(&bytes).unwrap(), [expected], "{name}");
    }
}

#[test]
fn broken_messages() {
    let size = |found, max| ErrorKind::InvalidSize { found, min: -1, max };
    let int = |n: i32| n.to_be_bytes();
    let cases: Vec<(&str, Vec<u8>, ErrorKind, Option<&str>)> = vec![
        ("key beyond the message", message_of(7, 0, 0, &[int(5), int(-1)].concat()), size(5, 4), Some("key")),
        (
            "key of 2^31-1",
            message_of(7, 0, 0, &[int(i32::MAX), int(-1)].concat()),
            size(i32::MAX.into(), 4),
            Some("key"),
        ),
        (
            "value beyond the message",
            message_of(7, 0, 0, &[int(-1), int(1)].concat()),
            size(1, 0),
            Some("value"),
        ),
        (
            "no value size",
            message_of(7, 0, 0, &[int(4), int(-1)].concat()),
            ErrorKind::UnexpectedEnd,
            Some("value"),
        ),
        // Large enough for a magic 0 message, so framing accepts it; the fields do not fit.
        ("magic 1 without key size", message_of(7, 1, 0, &[0; 8]), ErrorKind::UnexpectedEnd, Some("key")),
        (
            "magic 1 without value size",
            message_of(7, 1, 0, &[0; 12]),
            ErrorKind::UnexpectedEnd,
            Some("value"),
        ),
    ];
    for (name, bytes, kind, field) in cases {
        assert_eq!(error_after_good(&bytes), (kind, Some(0), field), "{name}");
    }
    for magic in [0, 1] {
        let mut wrong = plain(7, magic, 5);
        let computed = u32::from_be_bytes(wrong[12..16].try_into().unwrap());
        wrong[12..16].copy_from_slice(&[0; 4]);
        let kind = ErrorKind::CrcMismatch { stored: 0, computed };
        assert_eq!(error_after_good(&wrong), (kind, None, Some("crc")));
    }
}

#[test]
fn codecs_that_legacy_messages_cannot_have() {
    let attributes = Some("attributes");
    for magic in [0, 1] {
        let zstd = message(7, magic, 4, 5, None, Some(b"v"));
        let kind = ErrorKind::UnsupportedCompression("zstd needs magic 2");
        assert_eq!(error_after_good(&zstd), (kind, None, attributes));
        for id in 5..8 {
            let unknown = message(7, magic, id, 5, None, Some(b"v"));
            assert_eq!(error_after_good(&unknown), (ErrorKind::UnknownCompression(id), None, attributes));
        }
    }
}

/// A magic 1 message of 14 bytes ends inside its timestamp: nothing may read past the end.
#[test]
fn the_smallest_message() {
    for magic in [0, 1] {
        let bytes = message_of(7, magic, 0, &[0xff; 8]);
        let Batch::Legacy(batch) = Batches::new(&bytes).next().unwrap().unwrap() else { panic!("magic") };
        assert_eq!((batch.magic(), batch.size_in_bytes(), batch.last_offset()), (magic as i8, 26, 7));
        assert_eq!(batch.max_timestamp(), -1);
        batch.verify().unwrap();
    }
}

#[cfg(feature = "gzip")]
mod wrappers {
    use super::*;
    use magicbyte::Decompressor;
    use magicbyte_testing::handmade::gzip_stored;

    const WRAPPER_TIME: i64 = 500;

    fn wrapper_with(offset: i64, magic: u8, attributes: u8, content: &[u8]) -> Vec<u8> {
        message(offset, magic, GZIP | attributes, WRAPPER_TIME, None, Some(&gzip_stored(content)))
    }

    fn wrapper(offset: i64, magic: u8, inner: &[Vec<u8>]) -> Vec<u8> {
        wrapper_with(offset, magic, 0, &inner.concat())
    }

    #[test]
    fn read() {
        let two = |magic, first, second| [plain(first, magic, 1), plain(second, magic, 2)];
        let v1 = |first, second| vec![row(first, 1, CreateTime), row(second, 2, CreateTime)];
        let v0 = |first, second| vec![row(first, -1, NoTimestampType), row(second, -1, NoTimestampType)];
        let flagged = message(1, 1, APPEND_TIME, 2, None, Some(b"v"));
        let joined = |inner: &[Vec<u8>], tail: &[u8]| [&inner.concat()[..], tail].concat();
        let with_bytes_after_the_value = |inner: &[Vec<u8>]| {
            let value = gzip_stored(&inner.concat());
            let mut rest = WRAPPER_TIME.to_be_bytes().to_vec();
            rest.extend([0xff; 4]);
            rest.extend((value.len() as u32).to_be_bytes());
            rest.extend(value);
            rest.extend([0xee; 9]);
            message_of(10, 1, GZIP, &rest)
        };
        let cases: Vec<(&str, Vec<u8>, Vec<Row>)> = vec![
            ("relative offsets", wrapper(10, 1, &two(1, 0, 1)), v1(9, 10)),
            ("gaps that compaction left", wrapper(10, 1, &two(1, 0, 3)), v1(7, 10)),
            ("wrapper offset equal to the last inner offset", wrapper(3, 1, &two(1, 0, 3)), v1(0, 3)),
            ("wrapper offset 0 (librdkafka)", wrapper(0, 1, &two(1, 0, 1)), v1(0, 1)),
            ("wrapper offset 0, absolute offsets inside", wrapper(0, 1, &two(1, 40, 41)), v1(40, 41)),
            ("magic 0 stores absolute offsets", wrapper(10, 0, &two(0, 4, 9)), v0(4, 9)),
            ("magic 0 ignores the wrapper's offset", wrapper(3, 0, &two(0, 4, 9)), v0(4, 9)),
            ("magic 0 in magic 1", wrapper(10, 1, &two(0, 0, 1)), v0(9, 10)),
            (
                "magic 1 in magic 0",
                wrapper(10, 0, &two(1, 4, 9)),
                vec![row(4, 1, NoTimestampType), row(9, 2, NoTimestampType)],
            ),
            (
                "both in one",
                wrapper(10, 1, &[plain(0, 0, 1), plain(1, 1, 2)]),
                vec![row(9, -1, NoTimestampType), row(10, 2, CreateTime)],
            ),
            (
                "append time of the wrapper",
                wrapper_with(10, 1, APPEND_TIME, &two(1, 0, 1).concat()),
                vec![row(9, WRAPPER_TIME, LogAppendTime), row(10, WRAPPER_TIME, LogAppendTime)],
            ),
            (
                "append time of the wrapper, magic 0 inside",
                wrapper_with(10, 1, APPEND_TIME, &two(0, 0, 1).concat()),
                v0(9, 10),
            ),
            (
                "the flag of an inner message is ignored",
                wrapper(10, 1, &[plain(0, 1, 1), flagged.clone()]),
                vec![row(9, 1, CreateTime), Row { attributes: 8, ..row(10, 2, CreateTime) }],
            ),
            (
                "11 bytes after the last message",
                wrapper_with(10, 1, 0, &joined(&two(1, 0, 1), &[0; 11])),
                v1(9, 10),
            ),
            (
                "a cut message after the last message",
                wrapper_with(10, 1, 0, &joined(&two(1, 0, 1), &plain(2, 1, 3)[..30])),
                v1(9, 10),
            ),
            ("bytes after the wrapper's value", with_bytes_after_the_value(&two(1, 0, 1)), v1(9, 10)),
            (
                "inner null, negative sizes, bytes after the value",
                wrapper(10, 0, &[message_of(4, 0, 0, &[negative(-3), vec![1, 2]].concat())]),
                vec![Row { value: None, ..row(4, -1, NoTimestampType) }],
            ),
        ];
        for (name, bytes, expected) in cases {
            assert_eq!(read_all(&bytes).unwrap(), expected, "{name}");
            let batch = Batches::new(&bytes).next().unwrap().unwrap();
            let base_offset = batch.base_offset(&mut Decompressor::new()).unwrap();
            assert_eq!(base_offset, expected[0].offset, "{name}");
        }
    }

    #[test]
    fn refused() {
        let first = plain(0, 1, 1);
        let sized = |size: i32| [&1i64.to_be_bytes()[..], &size.to_be_bytes(), &[0; 30]].concat();
        let size = |found| ErrorKind::InvalidSize { found, min: 14, max: i32::MAX.into() };
        let invalid = |why| ErrorKind::InvalidRecord(why);
        let mut wrong_crc = plain(1, 1, 2);
        wrong_crc[12..16].copy_from_slice(&[0; 4]);
        let computed = u32::from_be_bytes(plain(1, 1, 2)[12..16].try_into().unwrap());
        let nested = wrapper(1, 1, std::slice::from_ref(&first));
        let no_messages = invalid("a compressed message set has no messages inside");

        type Case = (&'static str, Vec<u8>, ErrorKind, Option<u32>, Option<&'static str>);
        let cases: Vec<Case> = vec![
            (
                "null value",
                message(10, 1, GZIP, 5, None, None),
                invalid("a compressed message set has a null value"),
                None,
                Some("value"),
            ),
            ("no messages inside", wrapper(10, 1, &[]), no_messages.clone(), None, Some("offset")),
            (
                "only a cut message inside",
                wrapper_with(10, 0, 0, &first[..20]),
                no_messages,
                None,
                Some("offset"),
            ),
            (
                "wrapper offset below the last inner offset",
                wrapper(2, 1, &[first.clone(), plain(3, 1, 2)]),
                invalid("the wrapper's offset is smaller than the last relative offset inside"),
                None,
                Some("offset"),
            ),
            (
                "compressed inside",
                wrapper(10, 1, &[first.clone(), nested]),
                invalid("inner messages must not be compressed"),
                Some(1),
                Some("attributes"),
            ),
            (
                "unknown codec inside",
                wrapper(10, 1, &[first.clone(), message(1, 1, 7, 2, None, None)]),
                ErrorKind::UnknownCompression(7),
                Some(1),
                Some("attributes"),
            ),
            (
                "magic 2 inside",
                wrapper(10, 1, &[first.clone(), plain(1, 2, 2)]),
                ErrorKind::UnsupportedMagic(2),
                Some(1),
                Some("magic"),
            ),
            ("size 13 inside", wrapper(10, 1, &[first.clone(), sized(13)]), size(13), Some(1), Some("size")),
            ("size -1 inside", wrapper(10, 1, &[first.clone(), sized(-1)]), size(-1), Some(1), Some("size")),
            ("size 0 inside", wrapper(10, 1, &[sized(0)]), size(0), Some(0), Some("size")),
            (
                "wrong CRC inside",
                wrapper(10, 1, &[first.clone(), wrong_crc]),
                ErrorKind::CrcMismatch { stored: 0, computed },
                Some(1),
                Some("crc"),
            ),
            (
                "key beyond the inner message",
                wrapper(10, 0, &[message_of(0, 0, 0, &[0, 0, 0, 9, 0, 0, 0, 0])]),
                ErrorKind::InvalidSize { found: 9, min: -1, max: 4 },
                Some(0),
                Some("key"),
            ),
        ];
        for (name, bytes, kind, record, field) in cases {
            assert_eq!(error_after_good(&bytes), (kind, record, field), "{name}");
        }
        let (kind, ..) = error_after_good(&message(10, 1, GZIP, 5, None, Some(b"not gzip")));
        assert!(matches!(kind, ErrorKind::Decompression(_)), "{kind}");
    }

    /// The broker's own iterator does not check inner CRCs. Everything else is still checked.
    #[test]
    fn inner_crcs_can_be_left_unchecked() {
        let mut wrong = plain(0, 1, 1);
        wrong[12] ^= 1;
        let bytes = wrapper(10, 1, &[wrong, plain(1, 1, 2)]);
        let batch = Batches::new(&bytes).next().unwrap().unwrap();
        batch.verify().unwrap();
        let mut decompressor = Decompressor::new();
        let mut checked = batch.records(&mut decompressor).unwrap();
        assert!(matches!(checked.next().unwrap().unwrap_err().kind(), ErrorKind::CrcMismatch { .. }));
        assert!(checked.next().is_none(), "continues after an error");
        let unchecked = batch.records(&mut decompressor).unwrap().without_crc_check();
        let rows: Vec<_> = unchecked.map(|record| Row::from(record.unwrap())).collect();
        assert_eq!(rows, [row(9, 1, CreateTime), row(10, 2, CreateTime)]);
        assert_eq!(batch.base_offset(&mut decompressor).unwrap(), 9);
    }
}
