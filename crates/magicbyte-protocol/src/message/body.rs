//! Requests and responses with types of their own: structs with Kafka's names, types and defaults.
//!
//! Each has the fields of the versions from [`Body::MIN_VERSION`] to [`Body::MAX_VERSION`]; messages in versions that
//! Kafka 4.4 no longer has are [`Struct`]s only, where its definition does not describe them. A field that a version
//! does not have gets its default when it is read; when it is written, it must have its default. Kafka adds fields, so code that outlives its next version makes a struct with
//! `..Default::default()`. Tagged fields that are not in the table are lost.
//!
//! ```
//! use magicbyte_protocol::message::body::fetch_request::{FetchPartition, FetchTopic};
//! use magicbyte_protocol::message::body::{FetchRequest, FetchResponse, read_response, write_request};
//!
//! let partition = FetchPartition { fetch_offset: 17, partition_max_bytes: 1 << 20, ..Default::default() };
//! let topic = FetchTopic { topic: "orders".into(), partitions: vec![partition], ..Default::default() };
//! let request = FetchRequest { max_wait_ms: 500, topics: vec![topic], ..Default::default() };
//! let frame = write_request(&request, 4, 7, Some("reader"))?;
//! # assert_eq!(frame[..8], [0, 1, 0, 4, 0, 0, 0, 7]);
//! // The broker's response: no topics.
//! let frame = [0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0];
//! let (correlation_id, response) = read_response::<FetchResponse<'_>>(&frame, 4)?;
//! assert_eq!((correlation_id, response.responses.len()), (7, 0));
//! # Ok::<(), magicbyte::Error>(())
//! ```

use std::borrow::Cow;

use magicbyte::{Error, ErrorKind, Result};

use crate::message::api_key::ApiKey;
use crate::message::fields::{AsValue, Fields, ValueRef};
use crate::message::frame::{self, MessageKind};
use crate::message::from_value::{FromValue, Mismatch};
pub use crate::message::records::Records;
use crate::message::value::{Struct, Value};
use crate::message::write::{Absent, Gap};

/// A request or response with a type of its own.
pub trait Body: Fields {
    /// Request or response.
    const KIND: MessageKind;
    /// The API.
    const API: ApiKey;
    /// The oldest version that the type has all fields of.
    const MIN_VERSION: i16;
    /// The newest version that the type has all fields of (inclusive).
    const MAX_VERSION: i16;
}

/// Writes a request, without the frame's size. The only one without a client id is that for ControlledShutdown 0.
///
/// # Errors
/// [`ErrorKind::UnsupportedVersion`] if the type does not have the version, [`ErrorKind::InvalidMessage`] if a field
/// that is not in the version has a value other than its default, or a value is null or too large for the version.
pub fn write_request<B: Body>(
    body: &B,
    version: i16,
    correlation_id: i32,
    client_id: Option<&str>,
) -> Result<Vec<u8>> {
    check_version::<B>(version)?;
    let mut header = RequestHeader {
        request_api_key: B::API as i16,
        request_api_version: version,
        correlation_id,
        ..Default::default()
    };
    if B::API.request_header_version(version)? > 0 {
        header.client_id = client_id.map(Cow::Borrowed);
    }
    let absent = Absent::Default;
    frame::write_parts((B::KIND, B::API as i16, version), &header, body, absent).map(|(frame, _)| frame)
}

/// Reads a response, without the frame's size. Returns its correlation id and its body.
///
/// # Errors
/// [`ErrorKind::UnsupportedVersion`] if the type does not have the version, and the errors of
/// [`read_response`](super::read_response).
pub fn read_response<'a, B>(frame: &'a [u8], version: i16) -> Result<(i32, B)>
where
    B: Body + TryFrom<Struct<'a>, Error = Error>,
{
    check_version::<B>(version)?;
    let message = frame::read_response(frame, B::API as i16, version)?;
    let header = ResponseHeader::try_from(message.header)?;
    Ok((header.correlation_id, message.body.try_into()?))
}

/// Writes a response, without the frame's size. As a broker makes the same one for every version, fields that the
/// version does not have are left out.
///
/// # Errors
/// [`ErrorKind::UnsupportedVersion`] if the type does not have the version, [`ErrorKind::InvalidMessage`] if a value is
/// null or too large for it.
pub fn write_response<B: Body>(body: &B, version: i16, correlation_id: i32) -> Result<Vec<u8>> {
    write_response_around(body, version, correlation_id).map(|(frame, _)| frame)
}

/// Writes a response like [`write_response`]; the bytes of record sets that are [`Records::Gap`]s are not in the frame.
#[doc(hidden)]
pub fn write_response_around<B: Body>(
    body: &B,
    version: i16,
    correlation_id: i32,
) -> Result<(Vec<u8>, Vec<Gap>)> {
    check_version::<B>(version)?;
    let header = ResponseHeader { correlation_id };
    frame::write_parts((B::KIND, B::API as i16, version), &header, body, Absent::LeftOut)
}

fn check_version<B: Body>(version: i16) -> Result<()> {
    if (B::MIN_VERSION..=B::MAX_VERSION).contains(&version) {
        return Ok(());
    }
    let why =
        format!("{} version {version}: expected {} to {}", B::API.name(), B::MIN_VERSION, B::MAX_VERSION);
    Err(Error::new(ErrorKind::UnsupportedVersion(why)).in_field("requestApiVersion"))
}

/// Defines a structure, with Kafka's name of each field, and its default if it is not that of the type.
macro_rules! structure {
    ($(#[$doc:meta])* $name:ident $(<$lifetime:lifetime>)? {
        $($(#[$field_doc:meta])* $field:ident $kafka:literal: $ty:ty $(= $default:expr)?,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name $(<$lifetime>)? {
            $($(#[$field_doc])* pub $field: $ty,)*
        }

        impl $(<$lifetime>)? Default for $name $(<$lifetime>)? {
            fn default() -> Self {
                Self { $($field: default!($($default)?),)* }
            }
        }

        impl $(<$lifetime>)? Fields for $name $(<$lifetime>)? {
            fn get(&self, name: &str) -> Option<ValueRef<'_>> {
                match name {
                    $($kafka => Some(self.$field.as_value()),)*
                    _ => None,
                }
            }

            fn for_each(&self, visit: &mut dyn FnMut(&str, ValueRef<'_>)) {
                $(visit($kafka, self.$field.as_value());)*
            }
        }

        impl $(<$lifetime>)? AsValue for $name $(<$lifetime>)? {
            fn as_value(&self) -> ValueRef<'_> {
                ValueRef::Struct(self)
            }
        }

        impl<'a> FromValue<'a> for $name $(<$lifetime>)? {
            fn from_value(value: Value<'a>) -> std::result::Result<Self, Mismatch> {
                match value {
                    Value::Struct(fields) => Self::from_fields(fields),
                    _ => Err(Mismatch::new(&value, "a structure")),
                }
            }

            fn from_fields(fields: Struct<'a>) -> std::result::Result<Self, Mismatch> {
                let mut read = Self::default();
                for (name, value) in fields.fields {
                    match &*name {
                        $($kafka => {
                            read.$field = FromValue::from_value(value).map_err(|error| error.in_field($kafka))?;
                        })*
                        _ => return Err(Mismatch::unknown_field(&name)),
                    }
                }
                Ok(read)
            }
        }

        impl<'a> TryFrom<Struct<'a>> for $name $(<$lifetime>)? {
            type Error = Error;

            fn try_from(fields: Struct<'a>) -> Result<Self> {
                Self::from_fields(fields).map_err(|error| error.of(stringify!($name)))
            }
        }
    };
}

/// A field's default, or that of its type.
macro_rules! default {
    () => {
        Default::default()
    };
    ($default:expr) => {
        $default
    };
}

/// Makes a structure the body of an API's requests or responses.
macro_rules! body {
    ($name:ident $(<$lifetime:lifetime>)?, $kind:ident, $api:ident, $oldest:literal, $newest:literal) => {
        impl $(<$lifetime>)? Body for $name $(<$lifetime>)? {
            const KIND: MessageKind = MessageKind::$kind;
            const API: ApiKey = ApiKey::$api;
            const MIN_VERSION: i16 = $oldest;
            const MAX_VERSION: i16 = $newest;
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/body.rs"));

#[cfg(test)]
mod tests {
    use super::fetch_request::FetchTopic;
    use super::*;
    use crate::message::frame::{read_request, read_response as read_message};

    macro_rules! round_trips {
        ($($body:ident),*) => {
            $({
                for version in $body::MIN_VERSION..=$body::MAX_VERSION {
                    let (kind, api, default) = ($body::KIND, $body::API as i16, $body::default());
                    let header = Struct::default();
                    let mut parts = (kind, api, version);
                    let frame = match kind {
                        MessageKind::Request => write_request(&default, version, 0, None).unwrap(),
                        MessageKind::Response => {
                            frame::write_parts(parts, &header, &default, Absent::Default).unwrap().0
                        }
                    };
                    let message = match kind {
                        MessageKind::Request => read_request(&frame).unwrap(),
                        MessageKind::Response => read_message(&frame, api, version).unwrap(),
                    };
                    parts.2 = message.api_version;
                    assert_eq!(parts, (kind, api, version));
                    assert_eq!($body::try_from(message.body).unwrap(), default, "version {version}");
                }
            })*
        };
    }

    /// Defaults are those of the table, or they would be written, read or refused as other values.
    #[test]
    fn defaults_in_all_versions() {
        all_bodies!();
    }

    #[test]
    fn fields_that_a_version_does_not_have() {
        let topic = FetchTopic { topic: "orders".into(), topic_id: [7; 16], ..Default::default() };
        let request = FetchRequest { topics: vec![topic], ..Default::default() };
        for version in [12, 13] {
            let error = write_request(&request, version, 0, None).unwrap_err();
            let field = if version < 13 { "topicId" } else { "topic" };
            assert!(error.to_string().contains(&format!("this version has no field {field:?}")), "{error}");
        }
        let error = write_request(&ListOffsetsRequest::default(), 0, 0, None).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::UnsupportedVersion(_)), "{error}");

        let response = HeartbeatResponse { throttle_time_ms: 5, error_code: 7 };
        assert_eq!(write_response(&response, 0, 1).unwrap(), [0, 0, 0, 1, 0, 7], "left out");
    }

    #[test]
    fn record_sets_that_a_broker_sends_itself() {
        let partition =
            fetch_response::PartitionData { records: Some(Records::Gap(9)), ..Default::default() };
        let topic = fetch_response::FetchableTopicResponse {
            topic: "t".into(),
            partitions: vec![partition],
            ..Default::default()
        };
        let response = FetchResponse { responses: vec![topic], ..Default::default() };
        let (mut frame, gaps) = write_response_around(&response, 4, 0).unwrap();
        assert_eq!(gaps, [Gap { position: frame.len(), size: 9 }]);
        frame.extend(*b"the batch");
        let (_, read) = read_response::<FetchResponse<'_>>(&frame, 4).unwrap();
        let records = &read.responses[0].partitions[0].records;
        assert_eq!(*records, Some(Records::Bytes(Cow::Borrowed(b"the batch"))));
    }

    #[test]
    fn values_of_other_types() {
        let mut topic = Struct::default();
        topic.set("topic", Value::String(Cow::Borrowed(b"caf\xe9")));
        let read = FetchTopic::try_from(topic.clone()).unwrap();
        assert_eq!(read, FetchTopic { topic: "caf\u{fffd}".into(), ..Default::default() });

        topic.set("partitions", Value::Array(vec![Value::Null]));
        let mut request = Struct::default();
        request.set("topics", Value::Array(vec![Value::Struct(topic)]));
        let errors = [
            (request, "FetchRequest, topics[0].partitions[0]: null: expected a structure"),
            (
                fields("maxBytes", 1 << 40),
                "FetchRequest, maxBytes: an integer: expected an integer in the range of i32",
            ),
            (fields("other", 1), "FetchRequest: the type has no field \"other\""),
        ];
        for (fields, expected) in errors {
            let error = FetchRequest::try_from(fields).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::InvalidMessage(why) if why == expected), "{error}");
        }
    }

    fn fields(name: &'static str, n: i64) -> Struct<'static> {
        let mut fields = Struct::default();
        fields.set(name, Value::Int(n));
        fields
    }
}
