//! Conversions: Kafka's bytes where Kafka has the same conversion, every batch of the real partitions, and
//! what is refused.

use proptest::prelude::*;
use serde_json::Value;

use magicbyte::convert::{
    Converter, Losses, Rebatcher, set_last_offset, set_max_timestamp, set_partition_leader_epoch,
};
use magicbyte::{
    Batch, Batches, Compression, Decompressor, ErrorKind, RecordBatch, RecordsBuilder, Result, TimestampType,
};
use magicbyte_testing::handmade::{Row, V2, hex, message, plain_record, read_all, record_of, varint};
use magicbyte_testing::{files, partitions};

/// Batches that Kafka built (see builder.rs), and Kafka's conversions of them: `up` by
/// `MemoryRecords.filterTo` of 4.3, `down` by `downConvert` of 3.9, the others by the setters of
/// `MutableRecordBatch`, applied in sequence.
const BUILT: &str = include_str!("../data/built.jsonl");
const CONVERTED: &str = include_str!("../data/converted.jsonl");

fn convert(bytes: &[u8], mut each: impl FnMut(&Batch<'_>, &mut Vec<u8>) -> Result<()>) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    for batch in Batches::new(bytes) {
        each(&batch?, &mut out)?;
    }
    Ok(out)
}

fn to_codec(codec: Compression) -> Converter {
    Converter::to_codec(codec, None).unwrap()
}

fn recompress(bytes: &[u8], codec: Compression) -> Vec<u8> {
    let mut converter = to_codec(codec);
    convert(bytes, |batch, out| converter.recompress(batch, out)).unwrap()
}

#[test]
fn conversions_are_kafkas() {
    let built: Vec<Value> = BUILT.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut converter = Converter::new();
    let mut changed: (usize, Vec<u8>) = (usize::MAX, vec![]);
    for line in CONVERTED.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let index = case["input"].as_u64().unwrap() as usize;
        let input = hex(built[index]["bytes"].as_str().unwrap());
        let argument = |i: usize| case["args"][i].as_i64().unwrap();
        let op = case["op"].as_str().unwrap();
        if !matches!(op, "up" | "down") && changed.0 != index {
            let first = Batches::new(&input).next().unwrap().unwrap();
            changed = (index, first.as_bytes().to_vec());
        }
        let output = match op {
            "up" => convert(&input, |batch, out| converter.up_convert(batch, out)).unwrap(),
            "down" => {
                let magic = argument(0) as i8;
                convert(&input, |batch, out| converter.down_convert(batch, magic, out).map(drop)).unwrap()
            }
            _ => {
                match op {
                    "last_offset" => set_last_offset(&mut changed.1, argument(0)),
                    "leader_epoch" => set_partition_leader_epoch(&mut changed.1, argument(0) as i32),
                    _ => {
                        let append = argument(0) == 1;
                        let kind =
                            if append { TimestampType::LogAppendTime } else { TimestampType::CreateTime };
                        set_max_timestamp(&mut changed.1, kind, argument(1))
                    }
                }
                .unwrap();
                changed.1.clone()
            }
        };
        assert_eq!(::hex::encode(output), case["bytes"].as_str().unwrap(), "{op} of {}", built[index]);
    }
}

/// The bytes of a segment up to the first batch that is cut or damaged.
fn good_part(path: &std::path::Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    let mut end = 0;
    for batch in Batches::new(&bytes) {
        match batch.and_then(|batch| batch.verify().map(|()| batch)) {
            Ok(batch) => end += batch.size_in_bytes(),
            Err(_) => break,
        }
    }
    bytes[..end].to_vec()
}

fn segments() -> impl Iterator<Item = (String, Vec<u8>)> {
    partitions().into_iter().flat_map(|dir| {
        files(&dir, ".log").into_iter().map(|path| (path.display().to_string(), good_part(&path)))
    })
}

/// The header fields of a batch, without codec, size and CRC.
fn header_facts(batch: &RecordBatch<'_>) -> impl PartialEq + std::fmt::Debug + use<> {
    let facts = (batch.base_offset(), batch.last_offset(), batch.base_timestamp(), batch.max_timestamp());
    let producer = (batch.producer_id(), batch.producer_epoch(), batch.base_sequence());
    (facts, producer, batch.partition_leader_epoch(), batch.attributes() & !7, batch.record_count())
}

#[test]
fn every_real_batch_in_every_codec_and_back() {
    for (name, bytes) in segments() {
        let plain = recompress(&bytes, Compression::None);
        let rows = read_all(&bytes).unwrap();
        let v2_only = Batches::new(&bytes).all(|batch| batch.unwrap().magic() == 2);
        for codec in Compression::ALL {
            if codec == Compression::Zstd && !v2_only {
                continue;
            }
            let there = recompress(&bytes, codec);
            // Outside its wrapper, a legacy message carries the wrapper's timestamp type itself.
            let comparable = |rows: Vec<Row>| match v2_only {
                true => rows,
                false => rows.into_iter().map(without_attributes).collect(),
            };
            let new_rows = comparable(read_all(&there).unwrap());
            assert_eq!(new_rows, comparable(rows.clone()), "{name} {}", codec.name());
            assert_eq!(recompress(&there, Compression::None), plain, "{name} {}", codec.name());
            if v2_only {
                for (old, new) in Batches::new(&bytes).zip(Batches::new(&there)) {
                    let (Batch::V2(old), Batch::V2(new)) = (old.unwrap(), new.unwrap()) else { panic!() };
                    assert_eq!(header_facts(&old), header_facts(&new), "{name}");
                    assert!(new.compression().unwrap() == codec || new.record_count() == 0, "{name}");
                }
            }
        }
    }
}

/// A legacy record as it is in magic 2.
fn up(row: Row) -> Row {
    let timestamp_type = match row.timestamp_type {
        TimestampType::NoTimestampType => TimestampType::CreateTime,
        other => other,
    };
    Row { timestamp_type, ..row }
}

fn without_attributes(row: Row) -> Row {
    Row { attributes: 0, ..row }
}

#[test]
fn every_legacy_batch_up() {
    let mut legacy = 0;
    for (name, bytes) in segments() {
        for target in [None, Some(Compression::Zstd)] {
            let mut converter = target.map_or_else(Converter::new, to_codec);
            let new = convert(&bytes, |batch, out| converter.up_convert(batch, out)).unwrap();
            let (old_batches, new_batches): (Vec<_>, Vec<_>) =
                (Batches::new(&bytes).collect(), Batches::new(&new).collect());
            assert_eq!(old_batches.len(), new_batches.len(), "{name}");
            for (old, new) in old_batches.iter().zip(&new_batches) {
                let (old, Batch::V2(new)) = (old.as_ref().unwrap(), new.as_ref().unwrap()) else { panic!() };
                if old.magic() == 2 {
                    continue;
                }
                legacy += 1;
                assert_eq!(old.last_offset(), new.last_offset(), "{name}");
                assert_eq!(old.base_offset(&mut Decompressor::new()).unwrap(), new.base_offset());
                assert_eq!(new.partition_leader_epoch(), -1);
                assert_eq!((new.producer_id(), new.base_sequence()), (-1, -1));
                assert_eq!(new.max_timestamp(), old.max_timestamp(), "{name}");
                assert_eq!(new.compression().unwrap(), target.unwrap_or(old.compression().unwrap()));
            }
            let rows: Vec<_> =
                read_all(&bytes).unwrap().into_iter().map(up).map(without_attributes).collect();
            let new_rows: Vec<_> = read_all(&new).unwrap().into_iter().map(without_attributes).collect();
            assert_eq!(new_rows, rows, "{name}");
        }
    }
    assert!(legacy > 1000);
}

#[test]
fn every_real_batch_rebatched() {
    for (name, bytes) in segments() {
        for max_size in [0, 2000, 1 << 20] {
            let mut rebatcher = Rebatcher::new(to_codec(Compression::Lz4), max_size);
            let mut new = convert(&bytes, |batch, out| rebatcher.push(batch, out)).unwrap();
            rebatcher.flush(&mut new).unwrap();
            let rows: Vec<_> = read_all(&bytes).unwrap().into_iter().map(up).collect();
            let new_rows: Vec<_> = read_all(&new).unwrap();
            assert_eq!(new_rows.len(), rows.len());
            for (new, old) in new_rows.into_iter().zip(rows) {
                assert_eq!(without_attributes(new), without_attributes(old), "{name}");
            }
            let mut last_offset = -1;
            for batch in Batches::new(&new) {
                let Batch::V2(batch) = batch.unwrap() else { panic!("{name}") };
                batch.verify().unwrap();
                assert!(batch.base_offset() > last_offset, "{name}");
                last_offset = batch.last_offset();
                let size = 61 + batch.records(&mut Decompressor::new()).unwrap().payload_size();
                let marked =
                    batch.base_sequence() != -1 || batch.is_control() || batch.delete_horizon_ms().is_some();
                assert!(marked || size <= max_size || batch.record_count() == 1, "{name}: {size}");
            }
            assert_eq!(last_offset, Batches::new(&bytes).last().map_or(-1, |b| b.unwrap().last_offset()));
        }
    }
}

/// Four thousand single messages become four batches.
#[test]
fn rebatching_saves_space() {
    let old: Vec<u8> = (0..4000)
        .flat_map(|i| message(i, 1, 0, 1_500_000_000_000 + i, Some(b"key"), Some(&[b'v'; 40])))
        .collect();
    let mut rebatcher = Rebatcher::new(to_codec(Compression::Zstd), 64 << 10);
    let mut new = convert(&old, |batch, out| rebatcher.push(batch, out)).unwrap();
    rebatcher.flush(&mut new).unwrap();
    assert_eq!(Batches::new(&new).count(), 4);
    assert!(new.len() * 20 < old.len(), "{} {}", new.len(), old.len());
    assert_eq!(read_all(&new).unwrap(), read_all(&old).unwrap());
}

/// When a batch turns out to be bad, those before it are kept, and nothing of it is written.
#[test]
fn a_bad_batch_is_not_partly_rebatched() {
    let good = message(5, 1, 0, 1000, None, Some(b"good"));
    let inner = [message(6, 0, 0, 0, None, Some(b"a")), message(7, 0, 0, 0, None, Some(b"b"))].concat();
    let mut broken = inner.clone();
    *broken.last_mut().unwrap() ^= 1;
    let unordered = [message(7, 0, 0, 0, None, Some(b"a")), message(6, 0, 0, 0, None, Some(b"b"))].concat();
    for inner in [broken, unordered] {
        let bad = message(7, 0, 1, 0, None, Some(&magicbyte_testing::handmade::gzip_stored(&inner)));
        let mut rebatcher = Rebatcher::new(Converter::new(), 1 << 20);
        let mut out = vec![];
        rebatcher.push(&Batch::from_frame(&good, 0).unwrap(), &mut out).unwrap();
        let error = rebatcher.push(&Batch::from_frame(&bad, 0).unwrap(), &mut out).unwrap_err();
        assert_eq!((error.record_index(), error.base_offset()), (Some(1), Some(7)), "{error}");
        rebatcher.flush(&mut out).unwrap();
        assert_eq!(read_all(&out).unwrap(), read_all(&good).unwrap());

        let mut out = b"before".to_vec();
        let error = Converter::new().up_convert(&Batch::from_frame(&bad, 0).unwrap(), &mut out).unwrap_err();
        assert_eq!((error.record_index(), error.base_offset()), (Some(1), Some(7)), "{error}");
        assert_eq!(out, b"before");
    }
}

/// A batch with a valid CRC but an unreadable record is not recompressed, either.
#[test]
fn a_bad_record_is_not_recompressed() {
    let inner = [message(6, 0, 0, 0, None, Some(b"a")), message(7, 0, 0, 0, None, Some(b"b"))].concat();
    let mut broken = inner.clone();
    *broken.last_mut().unwrap() ^= 1;
    let wrapper = message(7, 0, 1, 0, None, Some(&magicbyte_testing::handmade::gzip_stored(&broken)));
    let mut cut = V2::of(&[plain_record(0), plain_record(1)]);
    cut.payload.pop();
    for bad in [wrapper, cut.bytes()] {
        for codec in [Compression::None, Compression::Lz4] {
            let mut out = b"before".to_vec();
            let error =
                to_codec(codec).recompress(&Batch::from_frame(&bad, 0).unwrap(), &mut out).unwrap_err();
            assert_eq!((error.record_index(), &out[..]), (Some(1), &b"before"[..]), "{error}");
        }
    }
}

/// Timestamps that Kafka's builder refuses, and deltas that overflow 64 bits, are kept.
#[test]
fn odd_timestamps_are_kept() {
    for timestamp in [-5, i64::MIN, i64::MAX, -1, 0] {
        let old = [message(3, 1, 0, timestamp, None, None), message(4, 1, 8, timestamp, None, None)].concat();
        let new = convert(&old, |batch, out| Converter::new().up_convert(batch, out)).unwrap();
        let rows: Vec<_> = read_all(&new).unwrap();
        assert_eq!(rows[0], read_all(&old).unwrap()[0]);
        assert_eq!((rows[1].timestamp, rows[1].timestamp_type), (timestamp, TimestampType::LogAppendTime));
    }
}

#[test]
fn down_conversion_counts_what_is_lost() {
    let header = record_of(&[&[0], &[4], &[0], &[1], &[1], &[4], &[2], b"h", &[1], &[2], b"i", &[0]]);
    let v2 = V2 {
        attributes: 0x10,
        producer_id: 9,
        producer_epoch: 0,
        base_sequence: 0,
        ..V2::of(&[header.clone(), plain_record(1)])
    };
    let marker = V2 { attributes: 0x30, ..V2::of(&[plain_record(0)]) };
    let horizon = V2 { attributes: 0x40, ..V2::of(&[plain_record(0)]) };
    let log = [v2.bytes(), marker.bytes(), horizon.bytes(), V2::of(&[]).bytes()].concat();
    for (magic, timestamps) in [(0, 3), (1, 0)] {
        let (mut converter, mut losses) = (Converter::new(), Losses::default());
        let new = convert(&log, |batch, out| {
            losses += converter.down_convert(batch, magic, out)?;
            Ok(())
        })
        .unwrap();
        let expected = Losses {
            control_batches: 1,
            empty_batches: 1,
            producer_batches: 1,
            transactional_batches: 1,
            delete_horizons: 1,
            headers: 2,
            timestamps,
        };
        assert_eq!(losses, expected);
        let rows = read_all(&new).unwrap();
        assert_eq!(rows.iter().map(|row| row.offset).collect::<Vec<_>>(), [100, 101, 100]);
        assert!(Batches::new(&new).all(|batch| batch.unwrap().magic() == magic));
        // Batches of the target magic are unchanged.
        let again = convert(&new, |batch, out| converter.down_convert(batch, magic, out).map(drop)).unwrap();
        assert_eq!(again, new);
    }
}

#[test]
fn zstd_is_refused_below_magic_2() {
    let mut builder = RecordsBuilder::v2(Compression::Zstd);
    builder.append(0, 0, None, Some(b"v"), &[]).unwrap();
    let new = builder.build().unwrap();
    let batch = Batch::from_frame(&new, 0).unwrap();
    let kind = ErrorKind::UnsupportedCompression("zstd needs magic 2");
    assert_eq!(Converter::new().down_convert(&batch, 1, &mut vec![]).unwrap_err().kind(), &kind);
    let mut out = vec![];
    to_codec(Compression::Gzip).down_convert(&batch, 1, &mut out).unwrap();
    assert_eq!(read_all(&out).unwrap()[0].value.as_deref(), Some(&b"v"[..]));
    let old = message(0, 1, 0, 0, None, None);
    let error = to_codec(Compression::Zstd).recompress(&Batch::from_frame(&old, 0).unwrap(), &mut out);
    assert_eq!(error.unwrap_err().kind(), &kind);
}

/// A new CRC would hide the damage, so damaged batches are refused.
#[test]
fn damage_gets_no_new_crc() {
    let v1 = message(3, 1, 0, 1000, Some(b"key"), Some(b"value"));
    for good in [V2::of(&[plain_record(0)]).bytes(), v1] {
        let mut bad = good.clone();
        *bad.last_mut().unwrap() ^= 1;
        let batch = Batch::from_frame(&bad, 0).unwrap();
        let (mut converter, mut out) = (to_codec(Compression::Gzip), vec![]);
        let mut rebatcher = Rebatcher::new(Converter::new(), 1000);
        let errors = [
            converter.recompress(&batch, &mut out),
            converter.up_convert(&batch, &mut out),
            converter.down_convert(&batch, 0, &mut out).map(drop),
            rebatcher.push(&batch, &mut out),
            set_max_timestamp(&mut bad.clone(), TimestampType::LogAppendTime, 5),
        ];
        for error in errors {
            assert!(matches!(error.unwrap_err().kind(), ErrorKind::CrcMismatch { .. }));
        }
        assert!(out.is_empty());
    }
}

#[test]
fn in_place_limits() {
    let wrapper = message(
        7,
        0,
        1,
        0,
        None,
        Some(&magicbyte_testing::handmade::gzip_stored(&message(7, 0, 0, 0, None, None))),
    );
    let mut v0 = message(3, 0, 0, 0, None, None);
    let mut v2 = V2::of(&[plain_record(0), plain_record(1)]).bytes();
    let kind = |result: Result<()>| result.unwrap_err().kind().clone();
    assert!(matches!(kind(set_last_offset(&mut wrapper.clone(), 9)), ErrorKind::InvalidOptions(_)));
    assert!(matches!(
        kind(set_last_offset(&mut v2, 0)),
        ErrorKind::OffsetOutOfRange { found: 0, min: 1, .. }
    ));
    assert!(matches!(kind(set_partition_leader_epoch(&mut v0, 1)), ErrorKind::InvalidOptions(_)));
    let create = TimestampType::CreateTime;
    assert!(matches!(kind(set_max_timestamp(&mut v0, create, 1)), ErrorKind::InvalidOptions(_)));
    let none = TimestampType::NoTimestampType;
    assert!(matches!(kind(set_max_timestamp(&mut v2, none, 1)), ErrorKind::InvalidOptions(_)));
    for cut in 0..v2.len() {
        assert!(set_last_offset(&mut v2[..cut], 5).is_err(), "{cut}");
    }
    // Kafka clears reserved bits when it rewrites the attributes; if nothing changes, they are kept.
    let reserved = V2 { attributes: 0xff80, ..V2::of(&[plain_record(0)]) };
    let mut bytes = reserved.bytes();
    set_max_timestamp(&mut bytes, create, reserved.max_timestamp).unwrap();
    assert_eq!(bytes, reserved.bytes());
    set_max_timestamp(&mut bytes, create, 1).unwrap();
    assert_eq!(bytes, V2 { attributes: 0, max_timestamp: 1, ..reserved }.bytes());
}

/// Old brokers assigned an offset to each message in a magic 0 wrapper.
#[test]
fn offsets_in_a_magic_0_wrapper() {
    for codec in [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4] {
        let mut builder = RecordsBuilder::v0(codec);
        for offset in 0..if codec == Compression::None { 1 } else { 3 } {
            builder.append(offset * 7, -1, Some(b"k"), Some(&[1; 90]), &[]).unwrap();
        }
        let bytes = builder.build().unwrap();
        let Batch::Legacy(batch) = Batch::from_frame(&bytes, 0).unwrap() else { panic!() };
        let mut out = vec![];
        Converter::new().assign_offsets(&batch, 1000, &mut out).unwrap();
        let rows = read_all(&out).unwrap();
        for (index, row) in rows.iter().enumerate() {
            assert_eq!(row.offset, 1000 + index as i64);
        }
        let new = Batch::from_frame(&out, 0).unwrap();
        assert_eq!((new.last_offset(), new.compression().unwrap()), (999 + rows.len() as i64, codec));
        let error = Converter::new().assign_offsets(&batch, i64::MAX, &mut out);
        assert_eq!(error.is_ok(), codec == Compression::None);
    }
}

/// Inner messages keep their own magic, even if it differs from the wrapper's, when they are unwrapped.
#[test]
fn a_magic_0_message_in_a_magic_1_wrapper() {
    let inner = [message(0, 0, 0, 0, None, Some(b"old")), message(2, 1, 0, 5, None, Some(b"new"))].concat();
    for attributes in [1, 9] {
        let wrapper =
            message(12, 1, attributes, 50, None, Some(&magicbyte_testing::handmade::gzip_stored(&inner)));
        let plain = recompress(&wrapper, Compression::None);
        assert_eq!(Batches::new(&plain).map(|b| b.unwrap().magic()).collect::<Vec<_>>(), [0, 1]);
        let (old, new) = (read_all(&wrapper).unwrap(), read_all(&plain).unwrap());
        let rows = |rows: Vec<Row>| rows.into_iter().map(without_attributes).collect::<Vec<_>>();
        assert_eq!(rows(new), rows(old));
    }
}

fn producer_batch(base_offset: i64, base_sequence: i32, records: i32) -> V2 {
    let records: Vec<_> = (0..records).map(plain_record).collect();
    V2 { base_offset, base_sequence, producer_id: 5, producer_epoch: 1, attributes: 0x10, ..V2::of(&records) }
}

fn merge(batches: &[V2]) -> Result<Vec<u8>> {
    let bytes: Vec<_> = batches.iter().map(V2::bytes).collect();
    let batches: Vec<_> = bytes
        .iter()
        .map(|bytes| match Batch::from_frame(bytes, 0) {
            Ok(Batch::V2(batch)) => batch,
            other => panic!("{other:?}"),
        })
        .collect();
    let mut out = vec![];
    Converter::new().merge(&batches, &mut out).map(|()| out)
}

#[test]
fn merging_and_splitting() {
    let parts = [producer_batch(10, i32::MAX - 1, 3), producer_batch(13, 1, 2), producer_batch(15, 3, 4)];
    let merged = merge(&parts).unwrap();
    let rows = read_all(&parts.iter().flat_map(V2::bytes).collect::<Vec<_>>()).unwrap();
    assert_eq!(read_all(&merged).unwrap(), rows, "sequences too");
    let Batch::V2(batch) = Batch::from_frame(&merged, 0).unwrap() else { panic!() };
    assert_eq!((batch.base_offset(), batch.last_offset(), batch.record_count()), (10, 18, 9));
    for max_size in [0, 75, 80, 100, 200] {
        for codec in [Compression::None, Compression::Snappy] {
            let mut out = vec![];
            to_codec(codec).split(&batch, max_size, &mut out).unwrap();
            assert_eq!(read_all(&out).unwrap(), rows);
            let mut next = 10;
            for part in Batches::new(&out) {
                let Batch::V2(part) = part.unwrap() else { panic!() };
                assert_eq!(part.base_offset(), next);
                let size = 61 + part.records(&mut Decompressor::new()).unwrap().payload_size();
                assert!(size <= max_size || part.record_count() == 1);
                next = part.last_offset() + 1;
            }
            assert_eq!(next, 19);
        }
    }
}

/// The last offsets of compacted batches are kept: a split or merged log covers the same offsets.
#[test]
fn gaps_survive_merge_and_split() {
    let gap = |base_offset| V2 {
        base_offset,
        last_offset_delta: 50,
        ..V2::of(&[plain_record(3), plain_record(40)])
    };
    let merged = merge(&[gap(100), gap(200)]).unwrap();
    let Batch::V2(batch) = Batch::from_frame(&merged, 0).unwrap() else { panic!() };
    assert_eq!((batch.base_offset(), batch.last_offset()), (100, 250));
    let mut out = vec![];
    Converter::new().split(&batch, 0, &mut out).unwrap();
    let ranges: Vec<_> = Batches::new(&out)
        .map(|b| match b.unwrap() {
            Batch::V2(b) => (b.base_offset(), b.last_offset()),
            Batch::Legacy(_) => panic!(),
        })
        .collect();
    assert_eq!(ranges, [(100, 139), (140, 202), (203, 239), (240, 250)]);
    assert_eq!(read_all(&out).unwrap(), read_all(&merged).unwrap());
}

#[test]
fn batches_that_cannot_be_merged() {
    let first = || producer_batch(10, 0, 2);
    let next = || producer_batch(12, 2, 2);
    assert!(merge(&[first(), next()]).is_ok());
    let control = V2 { attributes: 0x30, ..next() };
    for (batch, why) in [
        (control, "control"),
        (V2 { count: 0, payload: vec![], ..next() }, "without records"),
        (V2 { attributes: 0, ..next() }, "flags"),
        (V2 { attributes: 0x18, ..next() }, "timestamp type"),
        (V2 { leader_epoch: 1, ..next() }, "leader epoch"),
        (V2 { producer_id: 6, ..next() }, "producer id"),
        (V2 { producer_epoch: 2, ..next() }, "epoch"),
        (V2 { base_sequence: 3, ..next() }, "gap"),
        (V2 { base_offset: 13, ..next() }, "gap"),
        (V2 { base_offset: 11, ..next() }, "offset order"),
    ] {
        let error = merge(&[first(), batch.clone()]).unwrap_err();
        assert!(error.to_string().contains(why), "{why}: {error}");
        assert_eq!(error.base_offset(), Some(batch.base_offset));
    }
    for (attributes, change, why) in [
        (0x08, V2 { max_timestamp: 7, ..V2::of(&[plain_record(0)]) }, "append time"),
        (0x40, V2 { base_timestamp: 7, ..V2::of(&[plain_record(0)]) }, "delete horizon"),
    ] {
        let first = V2 { attributes, ..V2::of(&[plain_record(0)]) };
        let error = merge(&[first, V2 { attributes, base_offset: 200, ..change }]).unwrap_err();
        assert!(error.to_string().contains(why), "{why}: {error}");
    }
    let plain = |base_offset| V2 { base_offset, ..V2::of(&[plain_record(0)]) };
    let error = merge(&[plain(0), plain(1 << 31)]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::OffsetOutOfRange { .. }), "{error}");
    assert!(merge(&[]).unwrap().is_empty());
}

type Record = (u8, i64, i32, Option<Vec<u8>>, usize);

fn any_record() -> impl Strategy<Value = Record> {
    let value = prop::option::of(prop::collection::vec(any::<u8>(), 0..40));
    (any::<u8>(), any::<i64>(), 1..5, value, 0..3usize)
}

prop_compose! {
    /// A valid batch with any content that Kafka's readers accept.
    fn any_v2()(
        records in prop::collection::vec(any_record(), 1..12),
        base_offset in 0..i64::MAX / 2,
        attributes in any::<u16>(),
        (base_timestamp, max_timestamp) in any::<(i64, i64)>(),
        (producer_id, producer_epoch, base_sequence) in any::<(i64, i16, i32)>(),
        tail in 0..9i32,
    ) -> V2 {
        let mut offset = -1;
        let write = |(attributes, timestamp_delta, step, value, headers): Record| {
            offset += step;
            let value = value.map_or_else(|| varint(-1), |value| magicbyte_testing::handmade::sized(&value));
            let headers = [varint(headers as i64), [2, b'h', 1].repeat(headers)].concat();
            let (delta, key) = (varint(timestamp_delta), varint(-3));
            record_of(&[&[attributes], &delta, &varint(offset.into()), &key, &value, &headers])
        };
        let records: Vec<_> = records.into_iter().map(write).collect();
        V2 {
            base_offset,
            // Any bits except the codec's.
            attributes: attributes & !7,
            last_offset_delta: offset + tail,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            ..V2::of(&records)
        }
    }
}

proptest! {
    /// Compressing and decompressing gives the same bytes, whatever the header and the records hold.
    #[test]
    fn recompression_is_lossless(batch in any_v2()) {
        let bytes = batch.bytes();
        for codec in Compression::ALL {
            let there = recompress(&bytes, codec);
            prop_assert_eq!(read_all(&there).unwrap(), read_all(&bytes).unwrap());
            prop_assert_eq!(recompress(&there, Compression::None), bytes.clone());
        }
    }

    /// Random damage gives an error or a batch, never a panic.
    #[test]
    fn random_damage(
        mut batch in any_v2(),
        noise in prop::collection::vec(any::<(usize, u8)>(), 1..6),
        codec in 0..8u16,
    ) {
        for (at, byte) in noise {
            let at = at % batch.payload.len();
            batch.payload[at] = byte;
        }
        batch.attributes |= codec;
        let bytes = batch.bytes();
        let frame = Batch::from_frame(&bytes, 0).unwrap();
        let Batch::V2(v2) = frame else { panic!() };
        let mut out = vec![];
        let mut rebatcher = Rebatcher::new(Converter::new(), 100);
        for codec in Compression::ALL {
            let mut converter = to_codec(codec).with_limit(1 << 20);
            let _ = converter.recompress(&frame, &mut out);
            let _ = converter.down_convert(&frame, 1, &mut out);
            let _ = converter.merge(&[v2], &mut out);
            let _ = converter.split(&v2, 70, &mut out);
        }
        let _ = rebatcher.push(&frame, &mut out);
        let _ = rebatcher.flush(&mut out);
        // Every batch written is whole.
        for batch in Batches::new(&out) {
            batch.unwrap().verify().unwrap();
        }
    }
}
