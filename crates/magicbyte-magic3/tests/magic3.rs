//! The experimental magic 3: nothing is lost on the way there and back, and no bytes do harm.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use magicbyte::{Batch, Batches, Compression, Decompressor, ErrorKind, Header, Record, RecordsBuilder};
use magicbyte_lab::cost::{Cost, Format, Tally};
use magicbyte_magic3::{Encoder, Header3, Idea, Ideas, frames, to_magic_2, validate};
use magicbyte_testing::{files, partitions};

const NONE: Ideas = Ideas::KIP_931;

/// The KIP as written, each idea added to it, and all of them.
fn all_ideas() -> Vec<Ideas> {
    let single =
        [Idea::TaggedFields, Idea::BothTimestamps, Idea::BatchHeaders, Idea::FieldsFirst, Idea::TwoSections];
    let all = single.iter().take(4).fold(NONE, |ideas, &idea| ideas.with(idea));
    let mut ideas = vec![Ideas::default(), NONE, all, all.with(Idea::TwoSections)];
    ideas.extend(single.map(|idea| NONE.with(idea)));
    ideas
}

fn each_batch(mut check: impl FnMut(&Batch<'_>)) {
    for file in partitions().iter().flat_map(|dir| files(dir, ".log")) {
        let data = std::fs::read(file).unwrap();
        for batch in Batches::new(&data).map_while(Result::ok) {
            if batch.as_v2().is_some() && batch.verify().is_ok() {
                check(&batch);
            }
        }
    }
}

fn content<'r>(batch: &Batch<'r>, decompressor: &'r mut Decompressor) -> Vec<Record<'r>> {
    batch.records(decompressor).unwrap().map(Result::unwrap).collect()
}

#[test]
fn every_batch_comes_back() {
    let mut decompressor = Decompressor::new();
    let (mut before, mut after) = (Decompressor::new(), Decompressor::new());
    let mut seen = 0;
    for ideas in all_ideas() {
        for codec in [Compression::None, Compression::Lz4, Compression::Zstd] {
            let mut encoder = Encoder::new(ideas, codec, None).unwrap();
            each_batch(|batch| {
                let v2 = batch.as_v2().unwrap();
                let mut out = Vec::new();
                encoder.encode(v2, &mut out).unwrap();
                let mut back = Vec::new();
                to_magic_2(&out, &mut decompressor, &mut back).unwrap();
                let again = Batches::new(&back).next().unwrap().unwrap();
                again.verify().unwrap();
                if codec == Compression::None && batch.compression().unwrap() == codec {
                    assert_eq!(back, batch.as_bytes(), "{ideas:?}");
                }
                let fields = |batch: &Batch<'_>| {
                    let v2 = batch.as_v2().unwrap();
                    let times = (v2.base_timestamp(), v2.max_timestamp(), v2.attributes() & !7);
                    let producer = (v2.producer_id(), v2.producer_epoch(), v2.base_sequence());
                    (v2.base_offset(), v2.last_offset(), v2.partition_leader_epoch(), times, producer)
                };
                assert_eq!(fields(&again), fields(batch), "{ideas:?}");
                assert_eq!(content(&again, &mut after), content(batch, &mut before), "{ideas:?}");
                seen += 1;
            });
        }
    }
    assert!(seen > 10_000, "{seen}");
}

#[test]
fn the_size_is_what_the_cost_model_says() {
    let mut decompressor = Decompressor::new();
    let mut encoder = Encoder::new(NONE, Compression::None, None).unwrap();
    each_batch(|batch| {
        let mut tally = Tally::default();
        tally.add(batch, &mut decompressor).unwrap();
        let mut out = Vec::new();
        encoder.encode(batch.as_v2().unwrap(), &mut out).unwrap();
        let attributes_kept = content(batch, &mut decompressor).iter().any(|record| record.attributes() != 0);
        if !attributes_kept {
            assert_eq!(Cost::of(&tally, Format::Kip931).total(), out.len() as u64);
        }
    });
}

/// `count` records with a header that all share and one of their own, consecutive offsets.
fn batch(count: i64, value: usize, codec: Compression) -> Vec<u8> {
    let mut builder = RecordsBuilder::v2(codec);
    let mut state = 7_u64;
    // What does not compress.
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    for offset in 0..count {
        let own = offset.to_string();
        let value: Vec<u8> = (0..value).map(|_| noise()).collect();
        let headers = [
            Header { key: b"source", value: Some(b"shop-eu-west-1") },
            Header { key: b"id", value: Some(own.as_bytes()) },
        ];
        let key = (offset % 10 != 3).then_some(b"key".as_slice());
        builder.append(offset, 1_700_000_000_000 + offset, key, Some(&value), &headers).unwrap();
    }
    builder.build().unwrap().clone()
}

fn encoded(data: &[u8], ideas: Ideas, codec: Compression) -> Vec<u8> {
    let mut out = Vec::new();
    let batch = Batches::new(data).next().unwrap().unwrap();
    Encoder::new(ideas, codec, None).unwrap().encode(batch.as_v2().unwrap(), &mut out).unwrap();
    out
}

#[test]
fn validation_sees_what_the_records_say() {
    let data = batch(1000, 300, Compression::None);
    for ideas in all_ideas() {
        for codec in Compression::ALL {
            let validated = validate(&encoded(&data, ideas, codec)).unwrap();
            assert_eq!((validated.records, validated.null_keys), (1000, 100), "{ideas:?} {codec:?}");
            assert_eq!(validated.max_timestamp, 1_700_000_000_999);
        }
    }
}

/// With fields first, a fraction of the batch is decompressed.
#[test]
fn fields_first_need_little_decompression() {
    let data = batch(2000, 500, Compression::None);
    let whole = validate(&encoded(&data, NONE, Compression::Zstd)).unwrap().decompressed;
    assert!(whole > 1_000_000);
    for idea in [Idea::FieldsFirst, Idea::TwoSections] {
        for codec in [Compression::Gzip, Compression::Zstd] {
            let read = validate(&encoded(&data, NONE.with(idea), codec)).unwrap().decompressed;
            assert!(read < 40_000, "{idea:?} {codec:?}: {read}");
        }
    }
}

#[test]
fn shared_headers_are_stored_once() {
    let data = batch(100, 10, Compression::None);
    let plain = encoded(&data, NONE, Compression::None).len();
    let shared = encoded(&data, NONE.with(Idea::BatchHeaders), Compression::None).len();
    let header = 1 + "source".len() + 1 + "shop-eu-west-1".len();
    // The count and the header itself are in the batch.
    assert_eq!(plain - shared, 100 * header - header - 1);
}

#[test]
fn offsets_must_be_consecutive() {
    let mut builder = RecordsBuilder::v2(Compression::None);
    builder.append(0, 0, None, None, &[]).unwrap();
    builder.append(2, 0, None, None, &[]).unwrap();
    let data = builder.build().unwrap();
    for ideas in all_ideas() {
        let error = validate(&encoded(&data, ideas, Compression::None)).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::OffsetOutOfOrder { found: 2, expected: 1 }), "{error}");
        assert_eq!(error.record_index(), Some(1));
    }
}

#[test]
fn batches_are_framed_by_their_lengths() {
    let one = encoded(&batch(3, 1, Compression::None), NONE, Compression::None);
    let two = [&one[..], &one].concat();
    assert_eq!(frames(&two).map(Result::unwrap).collect::<Vec<_>>(), [&one[..], &one]);
    for length in one.len() + 1..two.len() {
        let found: Vec<_> = frames(&two[..length]).collect();
        assert!(found.len() == 2 && found[0].is_ok() && found[1].is_err());
        assert_eq!(found[1].as_ref().unwrap_err().position(), Some(one.len() as u64));
    }
}

/// No other reader takes magic 3 for anything else.
#[test]
fn other_readers_refuse_it() {
    let data = encoded(&batch(1, 1, Compression::None), NONE, Compression::None);
    let error = Batches::new(&data).next().unwrap().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::UnsupportedMagic(3)), "{error}");
}

/// Every prefix, every flipped byte with a right CRC: an error or records, and no more memory than the limit allows.
#[test]
fn damage_is_an_error_or_nothing() {
    for ideas in all_ideas() {
        for codec in [Compression::None, Compression::Gzip, Compression::Zstd] {
            let data = encoded(&batch(5, 10, Compression::None), ideas, codec);
            for length in 0..data.len() {
                assert!(Header3::read(&data[..length]).is_err());
            }
            for position in 21..data.len() {
                for flip in [1, 0x80, 0xff] {
                    let mut damaged = data.clone();
                    damaged[position] ^= flip;
                    assert!(validate(&damaged).is_err(), "the CRC");
                    let crc = magicbyte::crc32c(&damaged[21..], 0);
                    damaged[17..21].copy_from_slice(&crc.to_be_bytes());
                    let _ = validate(&damaged);
                    let mut decompressor = Decompressor::with_limit(1 << 20);
                    let mut out = Vec::new();
                    let _ = to_magic_2(&damaged, &mut decompressor, &mut out);
                    assert!(out.len() <= 2 << 20);
                }
            }
        }
    }
}

/// A count in the input reserves nothing, whatever it is.
#[test]
fn counts_are_not_believed() {
    for idea in [Idea::FieldsFirst, Idea::TwoSections] {
        for codec in [Compression::None, Compression::Gzip, Compression::Zstd] {
            let mut data = encoded(&batch(5, 10, Compression::None), NONE.with(idea), codec);
            data[37..41].copy_from_slice(&i32::MAX.to_be_bytes());
            let crc = magicbyte::crc32c(&data[21..], 0);
            data[17..21].copy_from_slice(&crc.to_be_bytes());
            assert_eq!(validate(&data).unwrap_err().record_index(), Some(5), "{idea:?} {codec:?}");
        }
    }
}

/// A large header shared by many records would be a bomb.
#[test]
fn shared_headers_are_limited() {
    let mut builder = RecordsBuilder::v2(Compression::None);
    let large = vec![b'x'; 100_000];
    for offset in 0..1000 {
        builder.append(offset, 0, None, None, &[Header { key: b"h", value: Some(&large) }]).unwrap();
    }
    let data = encoded(&builder.build().unwrap(), NONE.with(Idea::BatchHeaders), Compression::None);
    assert!(data.len() < 110_000);
    let mut out = Vec::new();
    let error = to_magic_2(&data, &mut Decompressor::with_limit(10 << 20), &mut out).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::LimitExceeded { .. }), "{error}");
}
