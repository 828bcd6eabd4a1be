//! The rules of magic 2 batches and records, on hand-made bytes, uncompressed and compressed.

use magicbyte::{Batch, Batches, ErrorKind, TimestampType};
use magicbyte_testing::handmade::{
    Row, V2, error_after_good, plain_record, read_all, record_of, sized, varint,
};

const GZIP: u16 = 1;

/// The batch uncompressed, and with a gzip payload: the rules are the same.
fn forms(batch: &V2) -> Vec<Vec<u8>> {
    let mut forms = vec![batch.bytes()];
    if cfg!(feature = "gzip") {
        let payload = magicbyte_testing::handmade::gzip_stored(&batch.payload);
        forms.push(V2 { attributes: batch.attributes | GZIP, payload, ..batch.clone() }.bytes());
    }
    forms
}

fn row(offset: i64, timestamp: i64) -> Row {
    Row {
        offset,
        timestamp,
        timestamp_type: TimestampType::CreateTime,
        sequence: -1,
        attributes: 0,
        key: Some(b"k".to_vec()),
        value: Some(b"v".to_vec()),
        headers: vec![],
    }
}

/// A record of these bytes, which follow attributes and deltas of 0: key, value and headers.
fn record_with(rest: &[&[u8]]) -> Vec<u8> {
    record_of(&[&[0, 0, 0], &rest.concat()])
}

/// A record with these deltas.
fn record_at(timestamp_delta: i64, offset_delta: i64) -> Vec<u8> {
    record_of(&[&[0], &varint(timestamp_delta), &varint(offset_delta), &sized(b"k"), &sized(b"v"), &[0]])
}

fn one(record: Vec<u8>) -> V2 {
    V2::of(&[record])
}

#[test]
fn accepted() {
    let null = |length: i64| record_with(&[&varint(length), &varint(length), &[0]]);
    let null_row = Row { key: None, value: None, ..row(100, 1000) };
    let header = |key: &[u8], value: &[u8]| [sized(key), value.to_vec()].concat();
    let headers = [
        header(b"a", &sized(b"1")),
        header(b"", &sized(b"")),
        header(b"a", &varint(-1)),
        header(b"\xff\xfe", &varint(-9)),
        header(b"a", &sized(b"1")),
    ];
    let header_row = Row {
        headers: vec![
            (b"a".to_vec(), Some(b"1".to_vec())),
            (vec![], Some(vec![])),
            (b"a".to_vec(), None),
            (b"\xff\xfe".to_vec(), None),
            (b"a".to_vec(), Some(b"1".to_vec())),
        ],
        ..row(100, 1000)
    };
    // Each varint is 0 or 1 in more bytes than needed; the fifth has bits beyond the 32nd, which are dropped.
    let overlong = record_of(&[
        &[0],
        &[0x82, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00],
        &[0x82, 0x80, 0x80, 0x80, 0x00],
        &[0x82, 0x80, 0x00, b'k'],
        &[0x82, 0x80, 0x80, 0x80, 0x70, b'v'],
        &[0x80, 0x00],
    ]);
    let overlong_size = [&[0x90, 0x80, 0x80, 0x80, 0x00], &plain_record(0)[1..]].concat();
    let with_sequence = |base_sequence, deltas: &[i64]| V2 {
        base_sequence,
        producer_id: 5,
        ..V2::of(&deltas.iter().map(|&delta| record_at(0, delta)).collect::<Vec<_>>())
    };
    let sequenced = |offset, sequence| Row { sequence, ..row(offset, 1000) };
    let append_time = |offset| Row { timestamp_type: TimestampType::LogAppendTime, ..row(offset, 2000) };

    let cases: Vec<(&str, V2, Vec<Row>)> = vec![
        ("length -1 is null", one(null(-1)), vec![null_row.clone()]),
        ("length -2 is null", one(null(-2)), vec![null_row.clone()]),
        ("length -5 is null", one(null(-5)), vec![null_row.clone()]),
        ("length -2^31 is null", one(null(i32::MIN.into())), vec![null_row]),
        (
            "empty is not null",
            one(record_with(&[&[0], &[0], &[0]])),
            vec![Row { key: Some(vec![]), value: Some(vec![]), ..row(100, 1000) }],
        ),
        (
            "headers in order, duplicates kept, any bytes, any negative length null",
            one(record_with(&[&sized(b"k"), &sized(b"v"), &varint(5), &headers.concat()])),
            vec![header_row],
        ),
        (
            "record attributes are kept",
            one(record_of(&[&[0xff], &[0, 0], &sized(b"k"), &sized(b"v"), &[0]])),
            vec![Row { attributes: -1, ..row(100, 1000) }],
        ),
        ("overlong varints", one(overlong), vec![row(101, 1001)]),
        ("overlong size", one(overlong_size), vec![row(100, 1000)]),
        (
            "offset deltas of a compacted batch",
            V2 { last_offset_delta: 9, ..V2::of(&[record_at(0, 4), record_at(0, 7)]) },
            vec![row(104, 1000), row(107, 1000)],
        ),
        (
            "offset deltas that are negative, equal, beyond the last",
            V2 { last_offset_delta: 0, ..V2::of(&[record_at(0, -3), record_at(0, 5), record_at(0, 5)]) },
            vec![row(97, 1000), row(105, 1000), row(105, 1000)],
        ),
        (
            "offsets wrap as Java's do",
            V2 { base_offset: i64::MAX, ..V2::of(&[record_at(0, 1)]) },
            vec![row(i64::MIN, 1000)],
        ),
        (
            "timestamps wrap as Java's do",
            V2 {
                base_timestamp: i64::MAX,
                ..V2::of(&[record_at(0, 0), record_at(1, 1), record_at(i64::MIN, 2)])
            },
            vec![row(100, i64::MAX), row(101, i64::MIN), row(102, -1)],
        ),
        (
            "negative timestamps",
            V2 { base_timestamp: -1, max_timestamp: -1, ..V2::of(&[record_at(0, 0), record_at(-99, 1)]) },
            vec![row(100, -1), row(101, -100)],
        ),
        (
            "append time replaces every timestamp",
            V2 { attributes: 8, ..V2::of(&[plain_record(0), plain_record(1)]) },
            vec![append_time(100), append_time(101)],
        ),
        (
            "deltas count from the delete horizon",
            V2 { attributes: 0x40, base_timestamp: 1 << 40, ..V2::of(&[record_at(5 - (1 << 40), 0)]) },
            vec![row(100, 5)],
        ),
        (
            "the high attribute byte and bit 7 are ignored",
            V2 { attributes: 0xff80, ..V2::of(&[plain_record(0)]) },
            vec![row(100, 1000)],
        ),
        (
            "sequences count by offset delta",
            with_sequence(7, &[0, 3]),
            vec![sequenced(100, 7), sequenced(103, 10)],
        ),
        (
            "sequences wrap to 0",
            with_sequence(i32::MAX - 1, &[0, 1, 2, 3]),
            vec![
                sequenced(100, i32::MAX - 1),
                sequenced(101, i32::MAX),
                sequenced(102, 0),
                sequenced(103, 1),
            ],
        ),
        (
            "a sequence without a producer",
            V2 { producer_id: -1, ..with_sequence(7, &[0]) },
            vec![sequenced(100, 7)],
        ),
        (
            "a negative base sequence means no sequence",
            with_sequence(-2, &[0, 1]),
            vec![row(100, 1000), row(101, 1000)],
        ),
    ];
    for (name, batch, expected) in cases {
        for bytes in forms(&batch) {
            assert_eq!(read_all(&bytes).unwrap(), expected, "{name}");
        }
    }
}

#[test]
fn refused() {
    let size = |found, min, max| ErrorKind::InvalidSize { found, min, max };
    let good = plain_record(0);
    let body = &good[1..];
    let of_size = |size: i64| [&varint(size), body].concat();
    let two = |second: Vec<u8>| V2::of(&[good.clone(), second]);
    let announced = |count, records: &[Vec<u8>]| V2 { count, ..V2::of(records) };
    let header = |key_length: i64, rest: &[u8]| {
        record_with(&[&[2, b'k'], &[2, b'v'], &varint(1), &varint(key_length), rest])
    };
    let count = |count: i64| record_with(&[&[2, b'k'], &[2, b'v'], &varint(count)]);
    let end = ErrorKind::UnexpectedEnd;
    let int = [0xff; 5];
    let long = [0xff; 11];

    type Case = (&'static str, V2, ErrorKind, Option<u32>, Option<&'static str>);
    let cases: Vec<Case> = vec![
        ("size 0", one(varint(0)), size(0, 1, 0), Some(0), Some("length")),
        ("size 0 before bytes", one(of_size(0)), size(0, 1, 8), Some(0), Some("length")),
        ("size -1", one(of_size(-1)), size(-1, 1, 8), Some(0), Some("length")),
        ("size beyond the batch", one(of_size(9)), size(9, 1, 8), Some(0), Some("length")),
        ("size 2^31-1", one(of_size(i32::MAX.into())), size(i32::MAX.into(), 1, 8), Some(0), Some("length")),
        ("size smaller by 1", one(of_size(7)), end.clone(), Some(0), Some("headersCount")),
        (
            "size larger by 1: does not take from the next record",
            V2::of(&[of_size(9), good.clone()]),
            ErrorKind::RecordSizeMismatch { declared: 9, consumed: 8 },
            Some(0),
            None,
        ),
        (
            "size of 6 bytes",
            one([&int[..], &[0, 0]].concat()),
            ErrorKind::InvalidVarint,
            Some(0),
            Some("length"),
        ),
        ("size cut", one(vec![0x80]), end.clone(), Some(0), Some("length")),
        ("second record", two(of_size(9)), size(9, 1, 8), Some(1), Some("length")),
        (
            "timestamp delta of 11 bytes",
            one(record_of(&[&[0], &long, &[0; 9]])),
            ErrorKind::InvalidVarint,
            Some(0),
            Some("timestampDelta"),
        ),
        (
            "offset delta of 6 bytes",
            one(record_of(&[&[0, 0], &int, &[0; 9]])),
            ErrorKind::InvalidVarint,
            Some(0),
            Some("offsetDelta"),
        ),
        ("key beyond the record", two(record_with(&[&varint(9), b"k"])), end.clone(), Some(1), Some("key")),
        ("key of 2^31-1", two(record_with(&[&varint(i32::MAX.into())])), end.clone(), Some(1), Some("key")),
        (
            "value beyond the record",
            two(record_with(&[&[2, b'k'], &varint(2), b"v"])),
            end.clone(),
            Some(1),
            Some("value"),
        ),
        ("header count -1", one(count(-1)), ErrorKind::InvalidCount(-1), Some(0), Some("headersCount")),
        (
            "header count 1 without headers",
            one(count(1)),
            ErrorKind::InvalidCount(1),
            Some(0),
            Some("headersCount"),
        ),
        (
            "header count 2^30",
            one(count(1 << 30)),
            ErrorKind::InvalidCount(1 << 30),
            Some(0),
            Some("headersCount"),
        ),
        (
            "header count 2 with one header",
            one(record_with(&[&[2, b'k'], &[2, b'v'], &varint(2), &[2, b'h', 1]])),
            end.clone(),
            Some(0),
            Some("headerKeyLength"),
        ),
        (
            "header key length -1",
            one(header(-1, &[0])),
            size(-1, 0, i32::MAX.into()),
            Some(0),
            Some("headerKeyLength"),
        ),
        ("header key beyond the record", one(header(2, b"h")), end.clone(), Some(0), Some("headerKey")),
        (
            "header value beyond the record",
            one(header(1, &[b'h', 4, 0])),
            end.clone(),
            Some(0),
            Some("headerValue"),
        ),
        (
            "a byte after the headers",
            one(record_with(&[&[2, b'k'], &[2, b'v'], &[0], &[0]])),
            ErrorKind::RecordSizeMismatch { declared: 9, consumed: 8 },
            Some(0),
            None,
        ),
        (
            "too few records",
            announced(2, std::slice::from_ref(&good)),
            ErrorKind::TooFewRecords { announced: 2 },
            Some(1),
            None,
        ),
        (
            "2^31-1 records announced",
            announced(i32::MAX, std::slice::from_ref(&good)),
            ErrorKind::TooFewRecords { announced: i32::MAX as u32 },
            Some(1),
            None,
        ),
        (
            "a record announced, none present",
            announced(1, &[]),
            ErrorKind::TooFewRecords { announced: 1 },
            Some(0),
            None,
        ),
        (
            "too many records",
            announced(1, &[good.clone(), plain_record(1)]),
            ErrorKind::RecordsRemaining { bytes: 9 },
            Some(0),
            None,
        ),
        (
            "a byte after the last record",
            announced(2, &[good.clone(), plain_record(1), vec![0]]),
            ErrorKind::RecordsRemaining { bytes: 1 },
            Some(1),
            None,
        ),
        (
            "record count -1",
            announced(-1, std::slice::from_ref(&good)),
            ErrorKind::InvalidCount(-1),
            None,
            Some("recordsCount"),
        ),
        (
            "record count -2^31",
            announced(i32::MIN, &[]),
            ErrorKind::InvalidCount(i32::MIN.into()),
            None,
            Some("recordsCount"),
        ),
    ];
    for (name, batch, kind, record, field) in cases {
        for bytes in forms(&batch) {
            assert_eq!(error_after_good(&bytes), (kind.clone(), record, field), "{name}");
        }
    }
}

#[test]
fn no_prefix_of_a_record_is_a_record() {
    let full = record_of(&[
        &[0],
        &varint(300),
        &varint(1),
        &sized(b"key"),
        &sized(b"value"),
        &varint(1),
        &sized(b"h"),
        &sized(b"x"),
    ]);
    let body = &full[1..];
    read_all(&one(full.clone()).bytes()).unwrap();
    for length in 0..body.len() {
        // The size fits the cut body, so only the fields can show the cut.
        let (_, record, _) = error_after_good(&one(sized(&body[..length])).bytes());
        assert_eq!(record, Some(0), "{length} bytes");
        let (_, record, _) = error_after_good(&one(full[..=length].to_vec()).bytes());
        assert_eq!(record, Some(0), "{length} bytes, original size");
    }
}

/// An unknown codec is refused even in a batch without records.
#[test]
fn unknown_codecs() {
    for id in 5..=7u8 {
        for records in [vec![], vec![plain_record(0)]] {
            let batch = V2 { attributes: 0x0100 | u16::from(id), ..V2::of(&records) };
            let expected = (ErrorKind::UnknownCompression(id), None, Some("attributes"));
            assert_eq!(error_after_good(&batch.bytes()), expected);
        }
    }
}

#[test]
fn a_wrong_crc_names_both_checksums() {
    let mut bytes = one(plain_record(0)).bytes();
    let computed = u32::from_be_bytes(bytes[17..21].try_into().unwrap());
    bytes[17..21].copy_from_slice(&1u32.to_be_bytes());
    let kind = ErrorKind::CrcMismatch { stored: 1, computed };
    assert_eq!(error_after_good(&bytes), (kind, None, Some("crc")));
}

#[test]
fn header_fields() {
    let batch = V2 {
        base_offset: 1 << 40,
        leader_epoch: 7,
        attributes: 0xff70,
        last_offset_delta: 12,
        base_timestamp: 55,
        max_timestamp: 66,
        producer_id: 1 << 50,
        producer_epoch: 3,
        base_sequence: i32::MAX - 2,
        ..V2::of(&[plain_record(0)])
    };
    let bytes = batch.bytes();
    let Batch::V2(found) = Batches::new(&bytes).next().unwrap().unwrap() else { panic!("magic") };
    assert_eq!((found.base_offset(), found.last_offset()), (1 << 40, (1 << 40) + 12));
    assert_eq!(found.partition_leader_epoch(), 7);
    assert_eq!(found.attributes() as u16, 0xff70);
    assert!(found.is_transactional() && found.is_control());
    assert_eq!(found.timestamp_type(), TimestampType::CreateTime);
    assert_eq!((found.base_timestamp(), found.max_timestamp()), (55, 66));
    assert_eq!(found.delete_horizon_ms(), Some(55));
    assert_eq!((found.producer_id(), found.producer_epoch()), (1 << 50, 3));
    assert_eq!((found.base_sequence(), found.last_sequence()), (i32::MAX - 2, 9));
    assert_eq!((found.record_count(), found.size_in_bytes()), (1, bytes.len()));

    // No flags, and offsets that overflow.
    let bytes = V2 { base_offset: i64::MAX, last_offset_delta: 1, base_sequence: -1, ..V2::of(&[]) }.bytes();
    let Batch::V2(found) = Batches::new(&bytes).next().unwrap().unwrap() else { panic!("magic") };
    assert_eq!((found.last_offset(), found.last_sequence()), (i64::MIN, -1));
    assert!(!found.is_transactional() && !found.is_control());
    assert_eq!(found.delete_horizon_ms(), None);
}

/// Kafka's `lastSequence` takes only -1 for no sequence; its records take any negative base sequence.
#[test]
fn sequences_below_minus_one() {
    let bytes = V2 { base_sequence: -5, ..V2::of(&[plain_record(0), plain_record(1)]) }.bytes();
    let Batch::V2(batch) = Batches::new(&bytes).next().unwrap().unwrap() else { panic!("magic") };
    assert_eq!(batch.last_sequence(), -4);
    assert!(read_all(&bytes).unwrap().iter().all(|row| row.sequence == -1));
}
