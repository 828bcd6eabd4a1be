//! Protobuf payloads and schemas.

use magicbyte_schema::protobuf::{ProtobufDecoder, ProtobufEncoder};
use magicbyte_schema::{Decoded, Payload};

use super::payloads::{assert_comes_back, assert_same_rows, between, decode_all, payloads, schema_and_rest};

/// What a schema may have.
const SCHEMAS: [&str; 6] = [
    r#"syntax = "proto3"; message M { int32 a = 1; uint64 b = 2; sint64 c = 3; fixed32 d = 4; double e = 5; bool f = 6; string g = 7; bytes h = 8; E i = 9; optional int32 j = 600; } enum E { X = 0; Y = 5; }"#,
    r#"syntax = "proto3"; message M { repeated int32 a = 1; repeated fixed64 b = 2; repeated string c = 3; repeated N d = 4; map<string, N> e = 5; map<int32, E> f = 6; } message N { repeated N n = 1; int32 v = 2; } enum E { X = 0; Y = 5; }"#,
    r#"syntax = "proto2"; message M { optional int32 a = 1 [default = 7]; required string b = 2; repeated group G = 3 { optional int32 x = 1; optional group H = 2 { optional E e = 1; } } optional E e = 4 [default = Y]; map<string, E> f = 5; } enum E { X = 0; Y = 1; }"#,
    r#"syntax = "proto3"; message M { oneof o { int32 a = 1; string b = 2; N c = 3; } N d = 4; message N { repeated int32 x = 1; oneof p { N n = 2; bool q = 3; } } }"#,
    r#"syntax = "proto3"; import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto"; import "google/protobuf/struct.proto"; import "google/protobuf/wrappers.proto"; import "google/protobuf/empty.proto"; message M { google.protobuf.Timestamp t = 1; repeated google.protobuf.Duration d = 2; google.protobuf.Struct s = 3; google.protobuf.StringValue w = 4; map<bool, google.protobuf.Timestamp> m = 5; google.protobuf.Empty e = 6; }"#,
    r#"syntax = "proto3"; message M { message A { message B { message C { repeated D d = 1; } C c = 1; } B b = 1; } message D {} A a = 1; repeated A as = 2; }"#,
];
/// The highest field number, which no schema above has.
const UNKNOWN: &[u8] = b"\xf8\xff\xff\xff\x0f\x05";

/// A byte that chooses the schema, or another for a schema in the first line; then payloads, each after its size.
///
/// What becomes of a payload does not depend on those beside it, an unknown field changes nothing, what was decoded
/// can be encoded, to values that are equal, and text is made of the same payloads as columns are.
pub fn schema_protobuf(data: &[u8]) {
    let Some((schema, rest)) = schema_and_rest(data, &SCHEMAS) else { return };
    let Ok(mut decoder) = ProtobufDecoder::new(schema, &[], &[]) else { return };
    decoder.add_writer(0, schema, &[]).unwrap();
    let payloads: Vec<_> = payloads(rest).into_iter().map(indexed).collect();
    let decoded = decode_all(&payloads, |payloads| decoder.decode(payloads));
    assert_eq!(decoded.values.data_type(), decoder.data_type());
    if SCHEMAS.contains(&schema) {
        let longer = between(&payloads, UNKNOWN, UNKNOWN);
        let longer: Vec<_> = longer
            .iter()
            .map(|bytes| indexed(Payload { bytes: bytes.as_deref(), ..Payload::default() }))
            .collect();
        assert_same_rows(&decoded, &decoder.decode(&longer).unwrap());
    }
    let encoder = ProtobufEncoder::new(schema, &[], None).unwrap();
    assert_comes_back(
        &decoded,
        0,
        |column| encoder.encode(column, b""),
        |payloads| decoder.decode(&payloads.iter().copied().map(indexed).collect::<Vec<_>>()),
    );
    let mut text = ProtobufDecoder::text();
    text.add_writer(0, schema, &[]).unwrap();
    let texts = decode_all(&payloads, |payloads| text.decode(payloads));
    // Some well-known types have values without a text, and others without a column.
    if SCHEMAS.contains(&schema) && !schema.contains("google/protobuf") {
        let rows = |decoded: &Decoded| decoded.errors.iter().map(|error| error.row).collect::<Vec<_>>();
        assert_eq!(rows(&decoded), rows(&texts));
    }
}

/// The first message of the file.
fn indexed(payload: Payload<'_>) -> Payload<'_> {
    Payload { message_indexes: &[0], ..payload }
}
