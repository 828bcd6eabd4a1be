//! How a key or value names its schema, against bytes as registries' serializers write them.

use proptest::prelude::*;

use magicbyte::schema_framing::{Framed, IdSize, SchemaId, parse_message_indexes, write_schema_framing};
use magicbyte::{Batches, Decompressor, ErrorKind};
use magicbyte_testing::{files, partitions};

/// From the tests of Confluent's clients.
const GUID: [u8; 16] =
    [0x89, 0x79, 0x17, 0x62, 0x23, 0x36, 0x41, 0x86, 0x96, 0x74, 0x29, 0x9b, 0x90, 0xa8, 0x02, 0xe2];

fn with_guid(rest: &[u8]) -> Vec<u8> {
    [&[1], GUID.as_slice(), rest].concat()
}

#[test]
fn forms() {
    let four = |value| Framed::parse(value, None, IdSize::Four).unwrap().unwrap();
    let framed = four(b"\0\x12\x34\x56\x78abc");
    assert_eq!(
        (framed.schema, framed.payload, framed.id_bytes()),
        (SchemaId::Id(0x1234_5678), &b"abc"[..], 5)
    );
    let value = with_guid(b"abc");
    let framed = four(&value);
    assert_eq!((framed.schema, framed.payload, framed.id_bytes()), (SchemaId::Guid(GUID), &b"abc"[..], 17));
    assert_eq!(four(b"\0\xff\xff\xff\xff").schema, SchemaId::Id(-1));
    let framed = Framed::parse(b"\0\0\0\0\x01\0\0\0\x02abc", None, IdSize::Eight).unwrap().unwrap();
    assert_eq!((framed.schema, framed.payload), (SchemaId::Id(0x1_0000_0002), &b"abc"[..]));
}

#[test]
fn what_is_not_framed_passes_through() {
    let long = with_guid(b"");
    for value in [&b""[..], b"{}", b"\0", b"\0\0\0\0", b"\x02\0\0\0\0\0", &long[..16]] {
        assert_eq!(Framed::parse(value, None, IdSize::Four), Ok(None), "{value:?}");
    }
    // Apicurio has no GUIDs.
    for value in [&b"\0\0\0\0\0\0\0\0"[..], &long] {
        assert_eq!(Framed::parse(value, None, IdSize::Eight), Ok(None), "{value:?}");
    }
}

#[test]
fn a_header_is_decisive() {
    let header = with_guid(b"\x02\x04");
    let framed = Framed::parse(b"\0\0\0\0\x07x", Some(&header), IdSize::Four).unwrap().unwrap();
    assert_eq!(framed.schema, SchemaId::Guid(GUID));
    assert_eq!(framed.payload, b"\0\0\0\0\x07x");
    assert_eq!(framed.message_indexes().unwrap(), (vec![2].into(), &b"\0\0\0\0\x07x"[..]));
    // The header's id has 4 bytes, whatever ids in values have.
    let framed = Framed::parse(b"x", Some(b"\0\0\0\0\x07"), IdSize::Eight).unwrap().unwrap();
    assert_eq!(framed.schema, SchemaId::Id(7));
    for (header, kind) in
        [(&b""[..], "unexpected_end"), (b"\0\0", "unexpected_end"), (b"7", "invalid_record")]
    {
        let error = Framed::parse(b"x", Some(header), IdSize::Four).unwrap_err();
        assert_eq!((error.kind().name(), error.field(), error.position()), (kind, Some("schemaId"), Some(0)));
    }
    // A header for Protobuf that ends before the indexes.
    let framed = Framed::parse(b"x", Some(b"\0\0\0\0\x07"), IdSize::Four).unwrap().unwrap();
    let error = framed.message_indexes().unwrap_err();
    assert_eq!((error.kind(), error.position()), (&ErrorKind::UnexpectedEnd, Some(5)));
}

#[test]
fn message_indexes() {
    for (bytes, indexes) in [
        (&b"\0x"[..], vec![0]),
        (b"\x02\0x", vec![0]),
        (b"\x02\x7ex", vec![63]),
        (b"\x02\x80\x01x", vec![64]),
        (b"\x04\x02\x06x", vec![1, 3]),
    ] {
        assert_eq!(parse_message_indexes(bytes).unwrap(), (indexes.into(), &b"x"[..]));
    }
    let framed = Framed::parse(b"\0\0\0\0\x07\x04\x02\x06x", None, IdSize::Four).unwrap().unwrap();
    assert_eq!(framed.message_indexes().unwrap(), (vec![1, 3].into(), &b"x"[..]));
    for (bytes, kind, position) in [
        (&b""[..], "unexpected_end", 0),
        (b"\x01", "invalid_count", 0),                 // -1
        (b"\x06\0\0", "invalid_count", 0),             // 3 indexes in 2 bytes
        (b"\xfe\xff\xff\xff\x0f", "invalid_count", 0), // 2^31 - 1 indexes
        (b"\x04\0\x01", "invalid_record", 2),          // the index -1
        (b"\x02\x01", "invalid_record", 1),            // alone
        (b"\x02", "invalid_count", 0),
        (b"\x04\0\x80", "unexpected_end", 2), // cut
        (b"\xff\xff\xff\xff\xff\xff", "invalid_varint", 0),
    ] {
        let error = parse_message_indexes(bytes).unwrap_err();
        assert_eq!((error.kind().name(), error.position()), (kind, Some(position)), "{bytes:?}");
        assert_eq!(error.field(), Some("messageIndexes"));
    }
}

#[test]
fn what_cannot_be_written() {
    let wrong = [
        (SchemaId::Id(1 << 31), &[][..], IdSize::Four),
        (SchemaId::Guid(GUID), &[], IdSize::Eight),
        (SchemaId::Id(1), &[1, -1], IdSize::Four),
    ];
    for (schema, indexes, size) in wrong {
        let error = write_schema_framing(schema, indexes, size).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidOptions(_)), "{error}");
    }
}

#[test]
fn values_of_a_real_topic() {
    let path = partitions().into_iter().find(|path| path.ends_with("sr_avro")).unwrap();
    let mut ids = std::collections::BTreeMap::new();
    for file in files(&path, "log") {
        let data = std::fs::read(file).unwrap();
        for batch in Batches::new(&data) {
            for record in batch.unwrap().records(&mut Decompressor::new()).unwrap() {
                let record = record.unwrap();
                // The others are tombstones.
                let Some(value) = record.value() else { continue };
                let framed = Framed::parse(value, None, IdSize::Four).unwrap().unwrap();
                let SchemaId::Id(id) = framed.schema else { panic!("a GUID") };
                *ids.entry(id).or_insert(0) += 1;
            }
        }
    }
    assert_eq!(ids.into_iter().collect::<Vec<(i64, i32)>>(), [(1, 78), (4, 40)]);
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        id: i32, guid: [u8; 16], is_guid: bool, payload: Vec<u8>,
        indexes in prop::collection::vec(0..=i32::MAX, 1..20),
    ) {
        let schema = if is_guid { SchemaId::Guid(guid) } else { SchemaId::Id(id.into()) };
        let framing = write_schema_framing(schema, &indexes, IdSize::Four).unwrap();
        let value = [framing.clone(), payload.clone()].concat();
        let framed = Framed::parse(&value, None, IdSize::Four).unwrap().unwrap();
        prop_assert_eq!(framed.schema, schema);
        prop_assert_eq!(framed.message_indexes().unwrap(), (indexes.clone().into(), payload.as_slice()));
        let framed = Framed::parse(&payload, Some(&framing), IdSize::Four).unwrap().unwrap();
        prop_assert_eq!(framed.schema, schema);
        prop_assert_eq!(framed.message_indexes().unwrap(), (indexes.into(), payload.as_slice()));
    }

    #[test]
    fn any_bytes_are_read(value: Vec<u8>, header: Option<Vec<u8>>, eight: bool) {
        let size = if eight { IdSize::Eight } else { IdSize::Four };
        if let Ok(Some(framed)) = Framed::parse(&value, header.as_deref(), size)
            && let Ok((indexes, payload)) = framed.message_indexes()
        {
            prop_assert!(indexes.len() <= value.len() + header.as_ref().map_or(1, Vec::len));
            prop_assert!(value.ends_with(payload));
        }
    }
}
