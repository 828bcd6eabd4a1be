//! How a key or value names its schema, against bytes as registries' serializers write them.

use proptest::prelude::*;

use magicbyte::schema_framing::{
    Framed, Framing, IdSize, Message, SchemaHeader, SchemaId, Window, Windows, parse_message_indexes,
    write_schema_framing,
};
use magicbyte::{Batches, Decompressor, ErrorKind};
use magicbyte_testing::{files, partitions};

/// From the tests of Confluent's clients.
const GUID: [u8; 16] =
    [0x89, 0x79, 0x17, 0x62, 0x23, 0x36, 0x41, 0x86, 0x96, 0x74, 0x29, 0x9b, 0x90, 0xa8, 0x02, 0xe2];

#[expect(clippy::unnecessary_wraps, reason = "`parse` takes an option")]
fn confluent(header: &[u8]) -> Option<(SchemaHeader, &[u8])> {
    Some((SchemaHeader::Confluent, header))
}

fn with_guid(rest: &[u8]) -> Vec<u8> {
    [&[1], GUID.as_slice(), rest].concat()
}

#[test]
fn forms() {
    let four = |value| Framed::parse(value, None, Framing::Auto).unwrap().unwrap();
    let framed = four(b"\0\x12\x34\x56\x78abc");
    assert_eq!(
        (framed.schema, framed.payload, framed.id_bytes()),
        (SchemaId::Id(0x1234_5678), &b"abc"[..], 5)
    );
    let value = with_guid(b"abc");
    let framed = four(&value);
    assert_eq!((framed.schema, framed.payload, framed.id_bytes()), (SchemaId::Guid(GUID), &b"abc"[..], 17));
    assert_eq!(four(b"\0\xff\xff\xff\xff").schema, SchemaId::Id(-1));
    let framed = Framed::parse(b"\0\0\0\0\x01\0\0\0\x02abc", None, Framing::Apicurio).unwrap().unwrap();
    assert_eq!((framed.schema, framed.payload), (SchemaId::Id(0x1_0000_0002), &b"abc"[..]));
}

#[test]
fn what_is_not_framed_passes_through() {
    let long = with_guid(b"");
    for value in [&b""[..], b"{}", b"\0", b"\0\0\0\0", b"\x02\0\0\0\0\0", &long[..16]] {
        assert_eq!(Framed::parse(value, None, Framing::Auto), Ok(None), "{value:?}");
    }
    // Apicurio has no GUIDs.
    for value in [&b"\0\0\0\0\0\0\0\0"[..], &long] {
        assert_eq!(Framed::parse(value, None, Framing::Apicurio), Ok(None), "{value:?}");
    }
}

#[test]
fn a_header_is_decisive() {
    let header = with_guid(b"\x02\x04");
    let framed = Framed::parse(b"\0\0\0\0\x07x", confluent(&header), Framing::Auto).unwrap().unwrap();
    assert_eq!(framed.schema, SchemaId::Guid(GUID));
    assert_eq!(framed.payload, b"\0\0\0\0\x07x");
    assert_eq!(
        framed.message(framed.payload, None).unwrap(),
        (Message::Path(vec![2].into()), &b"\0\0\0\0\x07x"[..])
    );
    // Of another framing it says nothing.
    for framing in [Framing::Apicurio, Framing::Glue, Framing::SingleObject, Framing::Bare] {
        assert_eq!(Framed::parse(b"x", confluent(b"\0\0\0\0\x07"), framing), Ok(None));
    }
    for (header, kind) in
        [(&b""[..], "unexpected_end"), (b"\0\0", "unexpected_end"), (b"7", "invalid_record")]
    {
        let error = Framed::parse(b"x", confluent(header), Framing::Auto).unwrap_err();
        assert_eq!((error.kind().name(), error.field(), error.position()), (kind, Some("schemaId"), Some(0)));
    }
    // A header for Protobuf that ends before the indexes.
    let framed = Framed::parse(b"x", confluent(b"\0\0\0\0\x07"), Framing::Confluent).unwrap().unwrap();
    let error = framed.message(framed.payload, None).unwrap_err();
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
    let framed = Framed::parse(b"\0\0\0\0\x07\x04\x02\x06x", None, Framing::Auto).unwrap().unwrap();
    assert_eq!(framed.message(framed.payload, None).unwrap(), (Message::Path(vec![1, 3].into()), &b"x"[..]));
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
fn message_indexes_without_zigzag() {
    for (bytes, indexes) in
        [(&b"\x01\x01x"[..], vec![1]), (b"\x03\x01\x02\x80\x01x", vec![1, 2, 128]), (b"\x01\0x", vec![0])]
    {
        assert_eq!(parse_message_indexes(bytes).unwrap(), (indexes.into(), &b"x"[..]));
    }
    // Too few, cut, or beyond 32 bits: then it is the negative count that is wrong.
    for bytes in [&b"\x05\0\0"[..], b"\x01\x80", b"\x01\xff\xff\xff\xff\x0f"] {
        assert_eq!(parse_message_indexes(bytes).unwrap_err().kind().name(), "invalid_count", "{bytes:?}");
    }
}

#[test]
fn framings_of_others() {
    fn auto(value: &[u8]) -> Option<Framed<'_>> {
        Framed::parse(value, None, Framing::Auto).unwrap()
    }
    for (compression, is_deflated) in [(0, false), (5, true)] {
        let value = [&[3, compression], GUID.as_slice(), b"abc"].concat();
        let framed = auto(&value).unwrap();
        assert_eq!((framed.schema, framed.framing), (SchemaId::Guid(GUID), Framing::Glue));
        assert_eq!(
            (framed.payload, framed.is_deflated, framed.value_offset()),
            (&b"abc"[..], is_deflated, 18)
        );
        for size in 0..18 {
            assert_eq!(auto(&value[..size]), None);
        }
    }
    assert_eq!(auto(&[&[3, 1], GUID.as_slice(), b"abc"].concat()), None, "no such compression");
    let framed = auto(b"\xc3\x01\x02\0\0\0\0\0\0\x80abc").unwrap();
    assert_eq!((framed.schema, framed.payload), (SchemaId::Fingerprint(1 << 63 | 2), &b"abc"[..]));
    assert_eq!(auto(b"\xc3\x01\x02\0\0\0\0\0\0"), None);
    assert_eq!(auto(b"\xc3\x02\x02\0\0\0\0\0\0\0"), None);
    for framing in [Framing::Confluent, Framing::Apicurio, Framing::Bare] {
        assert_eq!(Framed::parse(b"\xc3\x01\x02\0\0\0\0\0\0\0", None, framing), Ok(None));
    }
}

#[test]
fn a_long_id_is_one_whose_first_half_is_0() {
    let value = b"\0\0\0\0\0\0\0\0\x07abc";
    let framed = Framed::parse(value, None, Framing::Auto).unwrap().unwrap();
    assert_eq!(framed.schema, SchemaId::Id(0));
    let long = framed.with_long_id(value).unwrap();
    assert_eq!((long.schema, long.payload, long.framing), (SchemaId::Id(7), &b"abc"[..], Framing::Apicurio));
    for value in [&b"\0\0\0\0\0\0\0\0"[..], b"\0\0\0\0\x01\0\0\0\x07abc"] {
        assert_eq!(Framed::parse(value, None, Framing::Auto).unwrap().unwrap().with_long_id(value), None);
    }
}

#[test]
fn headers_of_apicurio() {
    for (key, is_key, header) in [
        (&b"apicurio.value.globalId"[..], false, Some(SchemaHeader::ApicurioGlobalId)),
        (b"apicurio.key.contentId", true, Some(SchemaHeader::ApicurioContentId)),
        (b"apicurio.value.contentHash", false, Some(SchemaHeader::ApicurioOther)),
        (b"apicurio.value.artifactId", false, Some(SchemaHeader::ApicurioOther)),
        (b"apicurio.value.globalId", true, None),
        (b"apicurio.value.encoding", false, None),
        (b"__value_schema_id", false, Some(SchemaHeader::Confluent)),
        (b"__key_schema_id", false, None),
    ] {
        assert_eq!(SchemaHeader::of(key, is_key), header);
    }
    let parse =
        |content| Framed::parse(b"abc", Some((SchemaHeader::ApicurioGlobalId, content)), Framing::Auto);
    let framed = parse(b"\0\0\0\x01\0\0\0\x07").unwrap().unwrap();
    assert_eq!((framed.schema, framed.payload), (SchemaId::Id((1 << 32) + 7), &b"abc"[..]));
    assert_eq!(parse(b"\0\0\0\x07").unwrap_err().kind().name(), "invalid_record");
    let other = Some((SchemaHeader::ApicurioOther, &b"5f"[..]));
    assert_eq!(Framed::parse(b"abc", other, Framing::Auto).unwrap_err().kind().name(), "invalid_record");
    // The header is not one of this framing.
    assert_eq!(Framed::parse(b"abc", other, Framing::Glue), Ok(None));
}

#[test]
fn messages_of_others() {
    let message = |payload: &'static [u8], header: Option<&'static [u8]>| {
        let id = Some((SchemaHeader::ApicurioContentId, &b"\0\0\0\0\0\0\0\x07"[..]));
        let framed = Framed::parse(payload, id, Framing::Auto).unwrap().unwrap();
        framed.message(payload, header).unwrap()
    };
    // A reference goes before the header with the name, and without either it is the first message.
    assert_eq!(message(b"\x06\x0a\x04Cartx", None), (Message::Name("Cart"), &b"x"[..]));
    assert_eq!(message(b"\x06\x0a\x04Cartx", Some(b"Bag")), (Message::Name("Cart"), &b"x"[..]));
    assert_eq!(message(b"\x0a\x04Cart", Some(b"Bag")), (Message::Name("Bag"), &b"\x0a\x04Cart"[..]));
    for payload in [
        &b"\x0a\x04Cart"[..],
        b"\x06\x0a\x05Cartx",
        b"\x06\x0a\x04Ca tx",
        b"\x06\x0a\x04Ca",
        b"\x02\x0a\0",
        b"",
    ] {
        assert_eq!(message(payload, None), (Message::Path(vec![0].into()), payload));
    }
    let glue = [&[3, 0], GUID.as_slice(), b"\xac\x02abc"].concat();
    let framed = Framed::parse(&glue, None, Framing::Auto).unwrap().unwrap();
    assert_eq!(framed.message(framed.payload, None).unwrap(), (Message::Sorted(300), &b"abc"[..]));
    assert_eq!(framed.message(b"\xff", None).unwrap_err().kind().name(), "invalid_varint");
}

#[test]
fn windows() {
    let time = |millis: i64| millis.to_be_bytes();
    let (start, end) = (1_700_000_000_000, 1_700_000_060_000);
    let key = [b"key".as_slice(), &time(end), &time(start)].concat();
    let session = Window { start, end: Some(end) };
    assert_eq!(Window::split(&key, Windows::Session), Some((&b"key"[..], session)));
    assert_eq!(Window::split_plausible(&key, Windows::Session), Some((&b"key"[..], session)));
    let of_time = Window { start, end: None };
    assert_eq!(Window::split_plausible(&key, Windows::Time), Some((&key[..11], of_time)));
    for windows in [Windows::None, Windows::Auto] {
        assert_eq!(Window::split(&key, windows), None);
    }
    assert_eq!(Window::split(&key[..15], Windows::Session), None, "too short");
    let backwards = [time(start), time(end)].concat();
    assert_eq!(Window::split_plausible(&backwards, Windows::Session), None);
    assert!(Window::split(&backwards, Windows::Session).is_some());
    for millis in [0, -1, 946_684_799_999, 4_102_444_800_000] {
        assert_eq!(Window::split_plausible(&time(millis), Windows::Time), None);
    }
}

#[test]
fn what_cannot_be_written() {
    let wrong = [
        (SchemaId::Id(1 << 31), &[][..], IdSize::Four),
        (SchemaId::Guid(GUID), &[], IdSize::Eight),
        (SchemaId::Id(1), &[1, -1], IdSize::Four),
        (SchemaId::Fingerprint(1), &[], IdSize::Four),
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
                let framed = Framed::parse(value, None, Framing::Auto).unwrap().unwrap();
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
        let framed = Framed::parse(&value, None, Framing::Auto).unwrap().unwrap();
        prop_assert_eq!(framed.schema, schema);
        let path = |indexes: Vec<i32>| Message::Path(indexes.into());
        prop_assert_eq!(framed.message(framed.payload, None).unwrap(), (path(indexes.clone()), payload.as_slice()));
        let framed = Framed::parse(&payload, confluent(&framing), Framing::Confluent).unwrap().unwrap();
        prop_assert_eq!(framed.schema, schema);
        prop_assert_eq!(framed.message(framed.payload, None).unwrap(), (path(indexes), payload.as_slice()));
    }

    #[test]
    fn any_bytes_are_read(value: Vec<u8>, start in 0..6_usize, header: Option<Vec<u8>>, choice in 0..6_usize) {
        let starts = [&b""[..], b"\0\0\0\0", b"\x01", b"\x03\0", b"\x03\x05", b"\xc3\x01"];
        let framings = [
            Framing::Auto, Framing::Confluent, Framing::Apicurio, Framing::Glue, Framing::SingleObject, Framing::Bare,
        ];
        let value = [starts[start], &value].concat();
        let header = header.as_deref().map(|header| (SchemaHeader::Confluent, header));
        if let Ok(Some(framed)) = Framed::parse(&value, header, framings[choice])
            && let Ok((_, payload)) = framed.message(framed.payload, None)
        {
            prop_assert!(value.ends_with(payload));
        }
    }
}
