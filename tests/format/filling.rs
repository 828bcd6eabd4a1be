//! Filling batches: whether there is room for a record, and its offset.

use magicbyte::{Compression, ErrorKind, Header, RecordsBuilder};
use magicbyte_testing::handmade::read_all;

/// `has_room_for` is exact for uncompressed batches.
#[test]
fn batches_fill_up_to_the_last_byte() {
    for new in [RecordsBuilder::v0, RecordsBuilder::v1, RecordsBuilder::v2] {
        let mut builder = new(Compression::None).max_size_in_bytes(700);
        let mut offset = 0;
        while builder.has_room_for(offset, Some(b"k"), Some(&[1; 30]), &[]) {
            builder.append(offset, offset, Some(b"k"), Some(&[1; 30]), &[]).unwrap();
            offset += 1;
        }
        let error = builder.append(offset, offset, Some(b"k"), Some(&[1; 30]), &[]).unwrap_err();
        let ErrorKind::RecordTooLarge { size, limit: 700 } = *error.kind() else { panic!("{error}") };
        let full = builder.build().unwrap();
        assert!(full.len() <= 700 && size > 700 && size - full.len() < 100, "{} {size}", full.len());
    }
}

/// The first record of a batch is taken whatever its size, as by Kafka, and nothing after it.
#[test]
fn a_first_record_of_any_size_fits() {
    for codec in Compression::ALL {
        for magic in 0..=2 {
            if codec.for_magic(magic).is_err() {
                continue;
            }
            let builder = match magic {
                0 => RecordsBuilder::v0(codec),
                1 => RecordsBuilder::v1(codec),
                _ => RecordsBuilder::v2(codec),
            };
            let mut builder = builder.max_size_in_bytes(100);
            for _ in 0..3 {
                assert!(builder.has_room_for(7, None, Some(&[1; 5000]), &[]));
                assert!(builder.try_append(0, 7, None, Some(&[1; 5000]), &[]).unwrap());
                let size = builder.estimated_size_in_bytes();
                assert!(!builder.has_room_for(7, None, None, &[]));
                assert!(!builder.try_append(1, 7, None, None, &[]).unwrap());
                let error = builder.append(1, 7, None, None, &[]).unwrap_err();
                assert!(matches!(error.kind(), ErrorKind::RecordTooLarge { limit: 100, .. }), "{error}");
                assert_eq!((builder.record_count(), builder.estimated_size_in_bytes()), (1, size));
                let rows = read_all(&builder.build().unwrap()).unwrap();
                assert_eq!(
                    rows.iter().map(|row| row.value.as_ref().map(Vec::len)).collect::<Vec<_>>(),
                    [Some(5000)]
                );
            }
        }
    }
}

/// `append`, `try_append` and `has_room_for` agree about every record, whatever came before it.
#[test]
fn one_rule_says_what_has_room() {
    let mut random = 7u64;
    for codec in [Compression::None, Compression::Lz4] {
        let mut builder = RecordsBuilder::v2(codec).max_size_in_bytes(600);
        for _ in 0..2000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let value = vec![1; (random >> 40) as usize % 300];
            let headers = [Header { key: b"h", value: Some(&value[..value.len() / 2]) }];
            let offset = builder.next_offset();
            let fits = builder.has_room_for(offset, None, Some(&value), &headers);
            let appended = match random >> 63 {
                0 => builder.append(offset, offset, None, Some(&value), &headers).is_ok(),
                _ => builder.try_append(offset, offset, None, Some(&value), &headers).unwrap(),
            };
            assert_eq!(appended, fits);
            if !appended {
                builder.build().unwrap();
                assert_eq!(builder.next_offset(), 0);
            }
        }
    }
}

/// Errors other than a full batch are errors of `try_append` too.
#[test]
fn refused_records_are_not_a_matter_of_room() {
    let mut builder = RecordsBuilder::v2(Compression::None).max_size_in_bytes(100);
    builder.try_append(5, 0, None, Some(&[0; 200]), &[]).unwrap();
    assert_eq!(builder.next_offset(), 6);
    for (offset, timestamp) in [(5, 0), (i64::MAX, 0), (6, -2)] {
        let error = builder.try_append(offset, timestamp, None, None, &[]).unwrap_err();
        assert_eq!(error.record_index(), Some(1));
    }
    let mut forbidden = RecordsBuilder::v2(Compression::None).transactional();
    assert!(forbidden.try_append(0, 0, None, None, &[]).is_err());
    let mut last = RecordsBuilder::v2(Compression::None);
    last.append(i64::MAX, 0, None, None, &[]).unwrap();
    assert!(last.try_append(last.next_offset(), 0, None, None, &[]).is_err());
}

#[test]
fn offsets_are_counted_in_every_magic() {
    for new in [RecordsBuilder::v0, RecordsBuilder::v1, RecordsBuilder::v2] {
        let mut builder = new(Compression::None).base_offset(40);
        for expected in [40, 41, 42] {
            assert_eq!(builder.next_offset(), expected);
            builder.append(expected, 0, None, None, &[]).unwrap();
        }
        builder.append(50, 0, None, None, &[]).unwrap();
        assert_eq!(builder.next_offset(), 51);
        builder.build().unwrap();
        assert_eq!(builder.next_offset(), 0, "a base offset is for one batch");
    }
}
