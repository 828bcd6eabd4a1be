//! Control records of types 0 to 6: payloads serialised by Kafka's own classes, and broken ones.

use magicbyte::{ControlRecord, ControlType, Endpoint, ErrorKind, Result, Voter};
use magicbyte_testing::handmade::hex;

const DIRECTORY_1: [u8; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
const DIRECTORY_2: [u8; 16] = [255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 2];

const LEADER_CHANGE_0: &str = "0000 00000003 03 00000003 00 0000012c 00 02 00000003 00 00";
const LEADER_CHANGE_1: &str = "0001 00000003 03 00000003 0102030405060708090a0b0c0d0e0f10 00
    0000012c ffffffffffffffff0000000000000002 00 02 00000003 0102030405060708090a0b0c0d0e0f10 00 00";
const SNAPSHOT_HEADER: &str = "0000 0000018bcfe5687b 00";
const SNAPSHOT_FOOTER: &str = "0000 00";
const KRAFT_VERSION: &str = "0000 0001 00";
const VOTERS: &str = "0000 03 00000003 0102030405060708090a0b0c0d0e0f10
    03 0b434f4e54524f4c4c4552 1162726f6b65722d332e6578616d706c65 2385 00 0242 043a3a31 ffff 00 0000 0001 00 00
    00000004 ffffffffffffffff0000000000000002 01 0001 0002 00 00 00";
/// With tagged fields that no version knows.
const VOTERS_TAGGED: &str = "0000 03 00000003 0102030405060708090a0b0c0d0e0f10
    03 0b434f4e54524f4c4c4552 1162726f6b65722d332e6578616d706c65 2385 00 0242 043a3a31 ffff 00 0000 0001 00
    01 ac02 01 09 00000004 ffffffffffffffff0000000000000002 01 0001 0002 00 00 01 07 03 010203";

fn parse(id: u8, value: &str) -> Result<ControlRecord> {
    ControlRecord::parse(Some(&[0, 0, 0, id]), Some(&hex(value)))
}

fn voters() -> Vec<Voter> {
    let endpoint = |name: &str, host: &str, port| Endpoint { name: name.into(), host: host.into(), port };
    vec![
        Voter {
            voter_id: 3,
            directory_id: DIRECTORY_1,
            endpoints: vec![endpoint("CONTROLLER", "broker-3.example", 9093), endpoint("B", "::1", 65535)],
            min_supported_version: 0,
            max_supported_version: 1,
        },
        Voter {
            voter_id: 4,
            directory_id: DIRECTORY_2,
            endpoints: vec![],
            min_supported_version: 1,
            max_supported_version: 2,
        },
    ]
}

#[test]
fn payloads() {
    let end = |committed, version, coordinator_epoch| ControlRecord::EndTransaction {
        committed,
        version,
        coordinator_epoch,
    };
    let voter = |voter_id, directory_id| Voter { voter_id, directory_id, ..Voter::default() };
    let leader = |version, first: [u8; 16], second| ControlRecord::LeaderChange {
        version,
        leader_id: 3,
        voters: vec![voter(3, first), voter(300, second)],
        granting_voters: vec![voter(3, first)],
    };
    let cases = [
        (0, "0000 00000003", end(false, 0, 3)),
        (1, "0000 0000004d", end(true, 0, 77)),
        (1, "0000 00000003 99", end(true, 0, 3)),
        (1, "0005 00000003", end(true, 5, 3)),
        (2, LEADER_CHANGE_0, leader(0, [0; 16], [0; 16])),
        (2, LEADER_CHANGE_1, leader(1, DIRECTORY_1, DIRECTORY_2)),
        (
            3,
            SNAPSHOT_HEADER,
            ControlRecord::SnapshotHeader { version: 0, last_contained_log_timestamp: 1_700_000_000_123 },
        ),
        (4, SNAPSHOT_FOOTER, ControlRecord::SnapshotFooter { version: 0 }),
        (5, KRAFT_VERSION, ControlRecord::KRaftVersion { version: 0, kraft_version: 1 }),
        (6, VOTERS, ControlRecord::KRaftVoters { version: 0, voters: voters() }),
        (6, VOTERS_TAGGED, ControlRecord::KRaftVoters { version: 0, voters: voters() }),
        (7, "0000", ControlRecord::Unknown { id: 7 }),
        (99, "", ControlRecord::Unknown { id: 99 }),
    ];
    for (id, value, expected) in cases {
        assert_eq!(parse(id, value).unwrap(), expected, "type {id}: {value}");
    }
}

#[test]
fn keys() {
    let cases = [
        ("0000 0000", "ABORT"),
        ("0000 0001", "COMMIT"),
        ("0000 0002", "LEADER_CHANGE"),
        ("0000 0003", "SNAPSHOT_HEADER"),
        ("0000 0004", "SNAPSHOT_FOOTER"),
        ("0000 0005", "KRAFT_VERSION"),
        ("0000 0006", "KRAFT_VOTERS"),
        ("0000 0007", "UNKNOWN"),
        ("0000 ffff", "UNKNOWN"),
        // A higher version is read like version 0; what follows is ignored.
        ("0005 0001", "COMMIT"),
        ("0000 0001 ff", "COMMIT"),
    ];
    for (key, name) in cases {
        assert_eq!(ControlType::parse(&hex(key)).unwrap().name(), name, "{key}");
    }
    for key in ["", "0000", "000000", "ffff0001", "80000000"] {
        let error = ControlType::parse(&hex(key)).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidRecord(_)), "{key}: {error}");
        assert_eq!(error.field(), Some("key"));
    }
}

#[test]
fn missing_key_or_value() {
    for (key, value, field) in [(None, Some(&[0u8; 6][..]), "key"), (Some(&[0u8; 4][..]), None, "value")] {
        let error = ControlRecord::parse(key, value).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidRecord(_)), "{error}");
        assert_eq!(error.field(), Some(field));
    }
    // An unknown type is skipped, so it needs no value.
    assert_eq!(ControlRecord::parse(Some(&[0, 0, 0, 9]), None).unwrap(), ControlRecord::Unknown { id: 9 });
}

/// A payload cut anywhere inside the part that is read is an error, and its sizes and counts are not trusted.
#[test]
fn broken_payloads() {
    let cases = [
        (0, "0000 00000003", 0),
        (2, LEADER_CHANGE_0, 1),
        (2, LEADER_CHANGE_1, 1),
        (3, SNAPSHOT_HEADER, 1),
        (4, SNAPSHOT_FOOTER, 1),
        (5, KRAFT_VERSION, 1),
        (6, VOTERS, 1),
    ];
    for (id, value, tail) in cases {
        let value = hex(value);
        // The tagged fields at the end are not read.
        for length in 0..value.len() - tail {
            let error = ControlRecord::parse(Some(&[0, 0, 0, id]), Some(&value[..length])).unwrap_err();
            // A count is compared with the remaining bytes before its elements are read.
            let kinds = matches!(error.kind(), ErrorKind::UnexpectedEnd | ErrorKind::InvalidCount(1 | 2));
            assert!(kinds, "type {id}, {length} bytes: {error}");
            assert_eq!(error.field(), Some("value"));
        }
    }
    let count = ErrorKind::InvalidCount(0xffff_fffe);
    let end = ErrorKind::UnexpectedEnd;
    for (id, value, kind) in [
        (1, "ffff 00000003", ErrorKind::InvalidRecord("a control record's value has a negative version")),
        (2, "0000 00000003 ffffffff0f 0000", count.clone()),
        (6, "0000 ffffffff0f 0000", count),
        (6, "0000 ffffffffff 0000", ErrorKind::InvalidVarint),
        // A name of 2^32-2 bytes; a tagged field that does not end; 2^32-1 tagged fields.
        (6, "0000 02 00000003 00000000000000000000000000000000 02 ffffffff0f 41", end.clone()),
        (2, "0000 00000003 02 00000003 01 07 7f 00", end.clone()),
        (2, "0000 00000003 02 00000003 ffffffff0f 07 00 07 00", end),
    ] {
        assert_eq!(parse(id, value).unwrap_err().kind(), &kind, "type {id}: {value}");
    }
}
