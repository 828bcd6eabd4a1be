//! Batches as `RecordsBuilder` writes them: equal to Kafka's bytes for the same records. What it refuses.

use serde_json::Value;

use magicbyte::{
    Batch, Batches, Compression, Compressor, ControlRecord, Decompressor, Endpoint, ErrorKind, Header,
    RecordsBuilder, TimestampType, Voter,
};
use magicbyte_testing::handmade::{Row, hex, read_all, summary};

/// Batches that Kafka 3.9's `MemoryRecordsBuilder` built from these options and records. Bytes are compared
/// for the codecs whose output is determined by their input.
const BUILT: &str = include_str!("../data/built.jsonl");

/// `"<hex>*<times>"`, or null.
fn content(value: &Value) -> Option<Vec<u8>> {
    let (pattern, times) = match value.as_str()?.split_once('*') {
        Some((pattern, times)) => (pattern, times.parse().unwrap()),
        None => (value.as_str()?, 1),
    };
    Some(hex(pattern).repeat(times))
}

fn int(value: &Value) -> i64 {
    value.as_i64().unwrap()
}

struct Case(Value);

impl Case {
    fn codec(&self) -> Compression {
        let name = self.0["codec"].as_str().unwrap();
        Compression::ALL.into_iter().find(|codec| codec.name() == name).unwrap()
    }

    fn builder(&self) -> RecordsBuilder {
        let case = &self.0;
        let mut builder = match int(&case["magic"]) {
            0 => RecordsBuilder::v0(self.codec()),
            1 => RecordsBuilder::v1(self.codec()),
            _ => RecordsBuilder::v2(self.codec()),
        };
        builder = builder.base_offset(int(&case["base_offset"]));
        if int(&case["append_time"]) >= 0 {
            builder = builder.log_append_time(int(&case["append_time"]));
        }
        let [id, epoch, sequence] = [0, 1, 2].map(|i| int(&case["producer"][i]));
        builder = builder.producer(id, epoch as i16, sequence as i32);
        if case["transactional"] == true {
            builder = builder.transactional();
        }
        if int(&case["delete_horizon"]) >= 0 {
            builder = builder.delete_horizon_ms(int(&case["delete_horizon"]));
        }
        builder.partition_leader_epoch(int(&case["leader_epoch"]) as i32)
    }

    fn rows(&self) -> Vec<Row> {
        let (magic, append_time) = (int(&self.0["magic"]), int(&self.0["append_time"]));
        let row = |record: &Value| Row {
            offset: int(&record[0]),
            timestamp: match magic {
                0 => -1,
                _ if append_time >= 0 => append_time,
                _ => int(&record[1]),
            },
            timestamp_type: match magic {
                0 => TimestampType::NoTimestampType,
                _ if append_time >= 0 => TimestampType::LogAppendTime,
                _ => TimestampType::CreateTime,
            },
            sequence: -1,
            attributes: if magic == 1 && append_time >= 0 { 8 } else { 0 },
            key: content(&record[2]),
            value: content(&record[3]),
            headers: headers(record),
        };
        self.0["records"].as_array().unwrap().iter().map(row).collect()
    }

    /// Builds the batch, and checks the sizes that the builder predicts.
    fn build(&self, builder: &mut RecordsBuilder) -> Vec<u8> {
        for record in self.0["records"].as_array().unwrap() {
            let (key, value, headers) = (content(&record[2]), content(&record[3]), headers(record));
            let headers: Vec<_> =
                headers.iter().map(|(key, value)| Header { key, value: value.as_deref() }).collect();
            let (offset, timestamp) = (int(&record[0]), int(&record[1]));
            builder.append(offset, timestamp, key.as_deref(), value.as_deref(), &headers).unwrap();
        }
        let estimate = builder.estimated_size_in_bytes();
        assert_eq!(estimate as i64, int(&self.0["estimate"]), "{}", self.0);
        let bytes = builder.build().unwrap();
        if self.codec() == Compression::None {
            assert_eq!(bytes.len(), estimate, "{}", self.0);
        }
        assert_eq!(bytes.len(), bytes.capacity(), "{}", self.0);
        bytes
    }
}

fn headers(record: &Value) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let headers = record[4].as_array().unwrap();
    headers.iter().map(|header| (content(&header[0]).unwrap(), content(&header[1]))).collect()
}

fn cases() -> Vec<Case> {
    BUILT.lines().map(|line| Case(serde_json::from_str(line).unwrap())).collect()
}

#[test]
fn the_bytes_are_kafkas() {
    let mut equal = 0;
    for case in cases() {
        let bytes = case.build(&mut case.builder());
        let expected = hex(case.0["bytes"].as_str().unwrap());
        if matches!(case.codec(), Compression::None | Compression::Snappy) {
            assert_eq!(::hex::encode(&bytes), ::hex::encode(expected), "{}", case.0);
            equal += 1;
        }
        let rows = read_all(&bytes).unwrap();
        let without_sequence: Vec<_> = rows.into_iter().map(|row| Row { sequence: -1, ..row }).collect();
        assert_eq!(without_sequence, case.rows(), "{}", case.0);
    }
    assert!(equal > 40);
}

/// A reused builder gives what a new one gives: nothing of the previous batch is left.
#[test]
fn a_builder_is_reusable() {
    for codec in Compression::ALL {
        let record = |builder: &mut RecordsBuilder, offset| {
            builder.append(offset, 1000 + offset, Some(b"key"), Some(&[7; 300]), &[]).unwrap();
        };
        let mut reused = RecordsBuilder::v2(codec).producer(1, 2, i32::MAX - 1).base_offset(5);
        let mut out = Vec::new();
        for batch in 0..3 {
            for offset in 0..3 {
                record(&mut reused, 10 * batch + offset + 5);
            }
            reused.build_into(&mut out).unwrap();
            assert_eq!(reused.record_count(), 0);
            assert!(reused.build().unwrap().is_empty(), "no records, no bytes");
        }
        let mut expected = Vec::new();
        // Sequences continue from batch to batch, and wrap from 2^31-1 to 0.
        for (batch, sequence) in [(0, i32::MAX - 1), (1, 1), (2, 4)] {
            let mut fresh = RecordsBuilder::v2(codec).producer(1, 2, sequence);
            for offset in 0..3 {
                record(&mut fresh, 10 * batch + offset + 5);
            }
            fresh.build_into(&mut expected).unwrap();
        }
        assert_eq!(out, expected, "{}", codec.name());
    }
}

#[test]
fn records_of_another_batch_keep_their_attributes() {
    let record =
        magicbyte_testing::handmade::record_of(&[&[0x7f], &[4], &[0], &[1], &[1], &[2], &[2], b"h", &[1]]);
    let bytes = magicbyte_testing::handmade::V2::of(&[record]).bytes();
    let mut builder = RecordsBuilder::v2(Compression::Zstd);
    let mut decompressor = Decompressor::new();
    let batch = Batches::new(&bytes).next().unwrap().unwrap();
    for record in batch.records(&mut decompressor).unwrap() {
        builder.append_record(&record.unwrap()).unwrap();
    }
    let rebuilt = builder.build().unwrap();
    assert_eq!(read_all(&rebuilt).unwrap(), read_all(&bytes).unwrap());
    assert_eq!(read_all(&rebuilt).unwrap()[0].attributes, 0x7f);
}

/// Batches of control records, as `MemoryRecords` of Kafka 4.3 writes them.
#[test]
fn control_batches_are_kafkas() {
    let voter = |voter_id| Voter { voter_id, ..Voter::default() };
    let marker = |committed, coordinator_epoch| ControlRecord::EndTransaction {
        committed,
        version: 0,
        coordinator_epoch,
    };
    let leader = ControlRecord::LeaderChange {
        version: 0,
        leader_id: 3,
        voters: vec![voter(3), voter(300)],
        granting_voters: vec![voter(3)],
    };
    let voters = vec![Voter {
        voter_id: 3,
        directory_id: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
        endpoints: vec![Endpoint { name: "CONTROLLER".into(), host: "broker-3".into(), port: 9093 }],
        min_supported_version: 0,
        max_supported_version: 1,
    }];
    let transaction = |epoch| {
        RecordsBuilder::v2(Compression::None)
            .producer(99, 3, -1)
            .transactional()
            .control()
            .partition_leader_epoch(epoch)
    };
    let quorum = || RecordsBuilder::v2(Compression::None).control().partition_leader_epoch(4);
    let header = ControlRecord::SnapshotHeader { version: 0, last_contained_log_timestamp: 1_234_567 };
    for (mut builder, offset, timestamp, record, expected) in [
        (transaction(7), 42, 1000, marker(true, 11), COMMIT),
        (transaction(-1), 43, 1001, marker(false, 12), ABORT),
        (quorum(), 5, 2000, leader, LEADER_CHANGE),
        (quorum(), 0, 2000, header, SNAPSHOT_HEADER),
        (quorum(), 9, 2000, ControlRecord::SnapshotFooter { version: 0 }, SNAPSHOT_FOOTER),
        (quorum(), 1, 2000, ControlRecord::KRaftVersion { version: 0, kraft_version: 1 }, KRAFT_VERSION),
        (quorum(), 2, 2000, ControlRecord::KRaftVoters { version: 0, voters }, KRAFT_VOTERS),
    ] {
        builder.append_control(offset, timestamp, &record).unwrap();
        assert_eq!(::hex::encode(builder.build().unwrap()), expected, "{record:?}");
        let (key, value) = record.to_key_and_value().unwrap();
        assert_eq!(ControlRecord::parse(Some(&key), Some(&value)).unwrap(), record);
    }
}

/// `DefaultRecordBatch.writeEmptyHeader` of Kafka 4.3.
#[test]
fn the_empty_batch_is_kafkas() {
    let builder = RecordsBuilder::v2(Compression::Lz4)
        .producer(7, 1, 5)
        .transactional()
        .partition_leader_epoch(9)
        .log_append_time(1)
        .delete_horizon_ms(2)
        .base_offset(100);
    assert_eq!(::hex::encode(builder.empty_batch(120, 5555).unwrap()), EMPTY);
    let error = builder.empty_batch(99, 0).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::OffsetOutOfRange { found: 99, min: 100, .. }), "{error}");
    let error = RecordsBuilder::v1(Compression::None).empty_batch(1, 0).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidOptions(_)), "{error}");
}

#[test]
fn forbidden_options() {
    let codec = Compression::None;
    let older = [RecordsBuilder::v0, RecordsBuilder::v1];
    let mut cases = vec![
        (RecordsBuilder::v2(codec).transactional(), "a transactional batch needs a producer id"),
        (RecordsBuilder::v2(codec).producer(1, -1, 0), "a producer id needs a producer epoch"),
        (RecordsBuilder::v2(codec).producer(1, 0, -1), "a producer id needs a base sequence"),
        (RecordsBuilder::v2(codec).delete_horizon_ms(-2), "the delete horizon is negative"),
        (RecordsBuilder::v2(codec).log_append_time(-1), "the log append time is negative"),
    ];
    for new in older {
        cases.push((new(codec).producer(1, 0, 0), "a producer id needs magic 2"));
        cases.push((new(codec).producer(1, 0, 0).transactional(), "transactions need magic 2"));
        cases.push((new(codec).control(), "control batches need magic 2"));
        cases.push((new(codec).delete_horizon_ms(1), "a delete horizon needs magic 2"));
    }
    for (mut builder, why) in cases {
        // A key that a control batch would accept.
        let error = builder.append(0, 0, Some(&[0; 4]), None, &[]).unwrap_err();
        assert_eq!(summary(&error), (ErrorKind::InvalidOptions(why), Some(0), None));
        assert_eq!(builder.build().unwrap_err().kind(), &ErrorKind::InvalidOptions(why));
        assert_eq!(builder.validate().unwrap_err().kind(), &ErrorKind::InvalidOptions(why));
    }
    for new in older {
        let error = new(Compression::Zstd).append(0, 0, None, None, &[]).unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::UnsupportedCompression("zstd needs magic 2"));
        let header = [Header { key: b"h", value: None }];
        let error = new(codec).append(0, 0, None, None, &header).unwrap_err();
        assert_eq!(summary(&error).2, Some("headers"));
    }
    let marker = ControlRecord::EndTransaction { committed: true, version: 0, coordinator_epoch: 0 };
    let error = RecordsBuilder::v2(codec).control().append_control(0, 0, &marker).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidOptions(_)), "{error}");
    let error = RecordsBuilder::v2(codec).control().append(0, 0, Some(b"key"), None, &[]).unwrap_err();
    assert_eq!(summary(&error).2, Some("key"));
    let error = RecordsBuilder::v2(codec).control().append(0, 0, Some(&[0, 0, 0, 7]), None, &[]).unwrap_err();
    assert_eq!(summary(&error).2, Some("key"), "the key of an unknown type of control record");
    let unknown = ControlRecord::Unknown { id: 9 };
    let error = RecordsBuilder::v2(codec).control().append_control(0, 0, &unknown).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidRecord(_)), "{error}");
}

/// Varints of every length before fields of many sizes, after a longer batch that must leave nothing in
/// between.
#[test]
fn numbers_and_fields_of_every_size() {
    let sizes = [0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 127, 128, 8191, 8192, 1 << 20];
    let times: Vec<i64> = (0..63).map(|bits| 1 << bits).flat_map(|time| [time - 1, time, -1]).collect();
    let mut builder = RecordsBuilder::v2(Compression::None);
    for first in [i64::MAX, 0] {
        builder.append(0, first, Some(&[0xff; 1 << 20]), Some(&[0xff; 1 << 20]), &[]).unwrap();
        builder.build().unwrap();
        let mut expected = Vec::new();
        for (index, timestamp) in times.iter().copied().enumerate() {
            // Offset deltas of all sizes that a batch can hold.
            let offset = ((1 << (index % 31)) - 1).max(expected.last().map_or(0, |row: &Row| row.offset + 1));
            let timestamp = if index == 0 { first } else { timestamp };
            let (key, value) = (vec![1; sizes[index % 15]], vec![2; sizes[(index / 2) % 15]]);
            let headers = [Header { key: &key, value: None }, Header { key: b"", value: Some(&value) }];
            let headers = &headers[..index % 3];
            builder.append(offset, timestamp, Some(&key), Some(&value), headers).unwrap();
            expected.push(Row {
                offset,
                timestamp,
                timestamp_type: TimestampType::CreateTime,
                sequence: -1,
                attributes: 0,
                headers: headers.iter().map(|h| (h.key.to_vec(), h.value.map(<[u8]>::to_vec))).collect(),
                key: Some(key),
                value: Some(value),
            });
        }
        let size = builder.estimated_size_in_bytes();
        let bytes = builder.build().unwrap();
        assert_eq!(bytes.len(), size);
        assert!(read_all(&bytes).unwrap() == expected);
    }
}

/// A wrapper cannot hold negative offsets: its own would have to be below the relative ones inside.
#[test]
fn no_negative_offsets_in_a_wrapper() {
    let below = ErrorKind::OffsetOutOfRange { found: -1, min: 0, max: i64::MAX };
    let mut wrapper = RecordsBuilder::v1(Compression::Lz4);
    assert_eq!(wrapper.append(-1, 0, None, None, &[]).unwrap_err().kind(), &below);
    let mut wrapper = RecordsBuilder::v1(Compression::Lz4).base_offset(-1);
    assert_eq!(wrapper.append(0, 0, None, None, &[]).unwrap_err().kind(), &below);
    for mut other in [RecordsBuilder::v1(Compression::None), RecordsBuilder::v2(Compression::Lz4)] {
        other.append(-1, 0, None, None, &[]).unwrap();
    }
}

/// A refused record is named, and leaves the batch as it was.
#[test]
fn refused_records() {
    for new in [RecordsBuilder::v0, RecordsBuilder::v1, RecordsBuilder::v2] {
        let mut builder = new(Compression::None).base_offset(5).max_size_in_bytes(1000);
        let too_low = ErrorKind::OffsetOutOfRange { found: 4, min: 5, max: 5 + i64::from(i32::MAX) };
        let error = builder.append(4, 0, None, None, &[]).unwrap_err();
        assert_eq!(summary(&error), (too_low, Some(0), Some("offset")));
        builder.append(7, 0, None, Some(b"first"), &[]).unwrap();
        for found in [7, 6, i64::MIN, i64::MAX, 6 + i64::from(i32::MAX)] {
            let error = builder.append(found, 0, None, None, &[]).unwrap_err();
            let kind = ErrorKind::OffsetOutOfRange { found, min: 8, max: 5 + i64::from(i32::MAX) };
            assert_eq!(summary(&error), (kind, Some(1), Some("offset")));
        }
        let error = builder.append(8, -2, None, None, &[]).unwrap_err();
        assert_eq!((error.record_index(), error.field()), (Some(1), Some("timestamp")));
        let (size, large) = (builder.estimated_size_in_bytes(), [0; 1000]);
        assert!(!builder.has_room_for(0, None, Some(&large), &[]));
        let error = builder.append(8, 0, None, Some(&large), &[]).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::RecordTooLarge { limit: 1000, .. }), "{error}");
        assert_eq!(builder.estimated_size_in_bytes(), size);
        builder.append(5 + i64::from(i32::MAX), 0, None, Some(b"last"), &[]).unwrap();
        let rows = read_all(&builder.build().unwrap()).unwrap();
        assert_eq!(rows.iter().map(|row| row.offset).collect::<Vec<_>>(), [7, 5 + i64::from(i32::MAX)]);
    }
}

/// The estimate follows the compression ratio of earlier batches (`CompressionRatioEstimator`).
#[test]
fn the_estimate_follows_the_ratio() {
    let mut builder = RecordsBuilder::v2(Compression::Gzip);
    let mut noise = 1u64;
    let mut estimate_of = |builder: &mut RecordsBuilder, compressible: bool| {
        let mut value = vec![0; 10_000];
        if !compressible {
            for byte in &mut value {
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = (noise >> 56) as u8;
            }
        }
        builder.append(0, 0, None, Some(&value), &[]).unwrap();
        let estimate = builder.estimated_size_in_bytes();
        builder.build().unwrap();
        estimate
    };
    let raw = 10_011;
    let at_ratio = |ratio: f32| 61 + (raw as f32 * ratio * 1.05) as usize;
    assert_eq!(estimate_of(&mut builder, true), at_ratio(1.0));
    assert_eq!(estimate_of(&mut builder, true), at_ratio(1.0 - 0.005));
    assert_eq!(estimate_of(&mut builder, false), at_ratio(1.0 - 0.005 - 0.005));
    // Noise does not compress: the ratio rises at once, by at least 0.05.
    assert_eq!(estimate_of(&mut builder, true), at_ratio(1.0 - 0.005 - 0.005 + 0.05));
}

#[test]
fn levels() {
    let value = b"a value that compresses, compresses and compresses ".repeat(500);
    for (codec, levels) in [
        (Compression::Gzip, vec![-1, 1, 6, 9]),
        (Compression::Lz4, vec![9]),
        (Compression::Zstd, vec![-131_072, -1, 1, 3, 19, 22]),
    ] {
        for level in levels {
            let mut builder = RecordsBuilder::v2(codec).level(level);
            builder.append(0, 0, None, Some(&value), &[]).unwrap();
            let bytes = builder.build().unwrap();
            assert_eq!(read_all(&bytes).unwrap()[0].value.as_ref().unwrap(), &value, "level {level}");
        }
    }
    for (codec, level) in [
        (Compression::None, 1),
        (Compression::Snappy, 1),
        (Compression::Gzip, 0),
        (Compression::Gzip, 10),
        (Compression::Gzip, -2),
        (Compression::Lz4, 0),
        (Compression::Lz4, 18),
        (Compression::Zstd, 23),
        (Compression::Zstd, -131_073),
    ] {
        let mut builder = RecordsBuilder::v2(codec).level(level);
        assert_eq!(builder.validate().unwrap_err().kind().name(), "unsupported_level");
        builder.append(0, 0, None, Some(&value), &[]).unwrap();
        let error = builder.build().unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::UnsupportedLevel { level: l, .. } if *l == level),
            "{error}"
        );
        assert_eq!(builder.record_count(), 1, "the records are kept");
    }
}

/// lz4's default level is the fast one, as in Kafka; all other levels compress better.
#[test]
fn lz4_high_compression() {
    let value: Vec<u8> = (0..100_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8 & 0x1f).collect();
    let size = |level| {
        let mut builder = RecordsBuilder::v2(Compression::Lz4).level(level);
        builder.append(0, 0, None, Some(&value), &[]).unwrap();
        let bytes = builder.build().unwrap();
        assert_eq!(read_all(&bytes).unwrap()[0].value.as_ref(), Some(&value));
        bytes.len()
    };
    let fast = size(9);
    for level in [1, 8, 10, 17] {
        let high = size(level);
        assert!(high < fast, "level {level}: {high} against {fast}");
    }
}

/// The output of each codec fits the buffer that was sized for it, at every level.
#[test]
fn noise_in_every_codec_and_level() {
    let mut state = 1u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    })
    .take(200_000)
    .collect();
    for codec in Compression::ALL {
        let levels = codec.levels().map_or(0..=0, |levels| -1.max(*levels.start())..=*levels.end());
        for level in levels {
            let Ok(mut compressor) = Compressor::with_level(codec, (level != 0).then_some(level)) else {
                continue;
            };
            for size in [0, 1, 15, 16, 1000, 8192, 8193, 65_535, 65_536, 70_000, 200_000] {
                let compressed = compressor.compress(2, &noise[..size]).unwrap();
                let back = Decompressor::new().decompress(codec, 2, compressed).unwrap().to_vec();
                assert!(back == noise[..size], "{} level {level}, {size} bytes", codec.name());
            }
        }
    }
}

/// LZ4 stores incompressible blocks as they are; in magic 0 the frame has Kafka's old header checksum.
#[test]
fn lz4_frames() {
    let noise: Vec<u8> =
        (0..70_000u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
    for (new, head) in [
        (RecordsBuilder::v0 as fn(Compression) -> RecordsBuilder, "04224d1860401a"),
        (RecordsBuilder::v1, "04224d18604082"),
        (RecordsBuilder::v2, "04224d18604082"),
    ] {
        let mut builder = new(Compression::Lz4);
        builder.append(3, 0, None, Some(&noise), &[]).unwrap();
        let bytes = builder.build().unwrap();
        assert!(::hex::encode(&bytes).contains(head), "{head}");
        assert!(bytes.len() < noise.len() + 150, "raw blocks: {}", bytes.len());
        assert_eq!(read_all(&bytes).unwrap()[0].value.as_ref(), Some(&noise));
        let batch = Batches::new(&bytes).next().unwrap().unwrap();
        let first = batch.base_offset(&mut Decompressor::new()).unwrap();
        assert_eq!((first, matches!(batch, Batch::V2(_))), (3, batch.magic() == 2));
    }
}
const COMMIT: &str = "000000000000002a000000420000000702bf36c0c000300000000000000000000003e800000000000003e800000000000000630003ffffffff000000012000000008000000010c00000000000b00";
const ABORT: &str = "000000000000002b00000042ffffffff0262f8404e00300000000000000000000003e900000000000003e900000000000000630003ffffffff000000012000000008000000000c00000000000c00";
const LEADER_CHANGE: &str = "00000000000000050000005400000004027f3990d200200000000000000000000007d000000000000007d0ffffffffffffffffffffffffffff00000001440000000800000002300000000000030300000003000000012c000200000003000000";
const SNAPSHOT_HEADER: &str = "0000000000000000000000470000000402b3f6358300200000000000000000000007d000000000000007d0ffffffffffffffffffffffffffff000000012a0000000800000003160000000000000012d6870000";
const SNAPSHOT_FOOTER: &str = "00000000000000090000003f0000000402a7ebcde000200000000000000000000007d000000000000007d0ffffffffffffffffffffffffffff000000011a00000008000000040600000000";
const KRAFT_VERSION: &str = "0000000000000001000000410000000402372f1ee100200000000000000000000007d000000000000007d0ffffffffffffffffffffffffffff000000011e00000008000000050a000000010000";
const KRAFT_VOTERS: &str = "0000000000000002000000730000000402d67d98c100200000000000000000000007d000000000000007d0ffffffffffffffffffffffffffff00000001800100000008000000066c000002000000030102030405060708090a0b0c0d0e0f10020b434f4e54524f4c4c45520962726f6b65722d332385000000000100000000";
const EMPTY: &str = "000000000000006400000031000000090231813839001800000014ffffffffffffffff00000000000015b3000000000000000700010000000500000000";

/// The bounds that an error names are valid offsets, even at the ends of the range.
#[test]
fn bounds_of_offsets_do_not_wrap() {
    for mut builder in [RecordsBuilder::v1(Compression::None), RecordsBuilder::v2(Compression::None)] {
        builder = builder.base_offset(i64::MIN);
        let error = builder.append(i64::MAX, 0, None, Some(b"value"), &[]).unwrap_err();
        let max = i64::MIN + i64::from(i32::MAX);
        let expected = ErrorKind::OffsetOutOfRange { found: i64::MAX, min: i64::MIN, max };
        assert_eq!(error.kind(), &expected);
        builder.append(i64::MIN, 0, None, Some(b"value"), &[]).unwrap();
    }
}
