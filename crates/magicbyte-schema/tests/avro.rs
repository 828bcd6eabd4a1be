//! Avro payloads of several writers, through the public API.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, StringArray};

use magicbyte_schema::Payload;
use magicbyte_schema::avro::AvroDecoder;

fn payload(writer: u32, bytes: &[u8]) -> Payload<'_> {
    Payload { bytes: Some(bytes), writer, ..Payload::default() }
}

#[test]
fn rows_of_several_writers_stay_in_order() {
    let mut decoder = AvroDecoder::new(r#""long""#, &[]).unwrap();
    decoder.add_writer(1, r#""int""#, &[]).unwrap();
    decoder.add_writer(2, r#"["null", "long"]"#, &[]).unwrap();
    let payloads = [
        payload(1, b"\x02"),
        payload(2, b"\x02\x04"),
        Payload::default(),
        payload(3, b"\x02"),
        payload(2, b"\0"),
        payload(1, b""),
        payload(1, b"\x06"),
    ];
    let decoded = decoder.decode(&payloads).unwrap();
    let values = decoded.values.as_primitive::<Int64Type>();
    let expected = [Some(1), Some(2), None, None, None, None, Some(3)];
    assert_eq!(values.iter().collect::<Vec<_>>(), expected);
    let errors: Vec<_> = decoded.errors.iter().map(|error| (error.row, error.position)).collect();
    // A writer's null that the reader has no place for has no position.
    assert_eq!(errors, [(3, None), (4, None), (5, Some(0))]);
}

#[test]
fn a_decoder_is_whole_after_bad_rows() {
    let mut decoder = AvroDecoder::new(r#"{"type": "map", "values": "string"}"#, &[]).unwrap();
    decoder.add_writer(1, r#"{"type": "map", "values": "string"}"#, &[]).unwrap();
    for _ in 0..3 {
        let decoded =
            decoder.decode(&[payload(1, b"\x02\x02a\x02b\0"), payload(1, b"\x02\x02a\x02\xff\0")]).unwrap();
        assert_eq!(decoded.errors.len(), 1);
        assert_eq!(decoded.errors[0].position, Some(4));
        let map = decoded.values.as_map();
        assert_eq!((map.is_valid(0), map.is_null(1)), (true, true));
        assert_eq!(map.value(0).column(1).as_ref(), &StringArray::from(vec!["b"]));
    }
}

#[test]
fn a_writer_that_the_reader_cannot_read_is_refused() {
    let mut decoder = AvroDecoder::new(r#""int""#, &[]).unwrap();
    assert!(decoder.add_writer(1, r#""string""#, &[]).unwrap_err().to_string().contains("the reader's"));
    assert!(decoder.add_writer(1, "{", &[]).is_err());
    assert_eq!(decoder.decode(&[payload(1, b"\x02")]).unwrap().errors.len(), 1);
    assert_eq!(decoder.decode(&[]).unwrap().values.len(), 0);
}
