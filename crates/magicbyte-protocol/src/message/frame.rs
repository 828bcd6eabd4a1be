//! Whole requests and responses: a header and a body, without the four bytes of the frame's size before them.

use magicbyte::internals::Cursor;
use magicbyte::{Error, ErrorKind, Result};

use crate::message::fields::Fields;
use crate::message::header::{API_VERSIONS, header_of};
use crate::message::path::Path;
use crate::message::read::read;
use crate::message::secrets;
use crate::message::table::{self, Role};
use crate::message::value::{Struct, Value};
use crate::message::write::{Absent, Gap, write};

/// Kafka's error code of a version that a broker does not support.
const UNSUPPORTED_VERSION: i64 = 35;

/// A request or a response.
#[derive(Clone, Debug, PartialEq)]
pub struct Message<'a> {
    /// Which of the two.
    pub kind: MessageKind,
    /// The API's key.
    pub api_key: i16,
    /// The version that the body has.
    pub api_version: i16,
    /// `correlationId`; of requests also `clientId`, `requestApiKey` and `requestApiVersion`.
    pub header: Struct<'a>,
    /// The fields of the message.
    pub body: Struct<'a>,
}

impl Message<'_> {
    /// Replaces passwords, keys and tokens: texts by `[hidden]`, bytes by null. So are the records of
    /// `__cluster_metadata`, which hold those of the cluster.
    pub fn hide_secrets(&mut self) {
        // A version that is not known has no fields that are.
        if let Ok(definition) = table::definition(self.kind.role(), self.api_key, self.api_version) {
            secrets::hide(definition, &mut self.body);
        }
    }
}

/// Which of the two messages of an API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageKind {
    /// From a client, or between brokers.
    Request,
    /// The answer to it.
    Response,
}

/// Reads a request: its header names the API and the version. `frame` begins after the frame's size.
///
/// # Errors
/// [`ErrorKind::UnsupportedVersion`] if the API or the version is not known, [`ErrorKind::InvalidMessage`] if the
/// bytes are not such a message or more than one; with the byte in the frame and the field.
pub fn read_request(frame: &[u8]) -> Result<Message<'_>> {
    let mut start = Cursor::new(frame);
    let (Ok(api_key), Ok(api_version)) = (start.i16(), start.i16()) else {
        let why = format!("RequestHeader: a frame of {} bytes: expected at least 8", frame.len());
        return Err(Error::new(ErrorKind::InvalidMessage(why)).at_position(0));
    };
    read_message(MessageKind::Request, frame, api_key, api_version)
}

/// Reads the response to a request of this API and version, which the response itself does not name.
///
/// A broker that does not support the version of an ApiVersions request answers in version 0: this is then the
/// version of the message.
///
/// # Errors
/// The errors of [`read_request`].
pub fn read_response(frame: &[u8], api_key: i16, api_version: i16) -> Result<Message<'_>> {
    let error = match read_message(MessageKind::Response, frame, api_key, api_version) {
        Err(error) if api_key == API_VERSIONS && api_version != 0 => error,
        other => return other,
    };
    // As `ApiVersionsResponse.parse`.
    match read_message(MessageKind::Response, frame, api_key, 0) {
        Ok(message) if message.body.get("errorCode") == Some(&Value::Int(UNSUPPORTED_VERSION)) => Ok(message),
        _ => Err(error),
    }
}

/// Reads a request of this API and version as a broker does, which ignores bytes after it: librdkafka's requests for
/// the metadata of all topics have three.
#[doc(hidden)]
pub fn read_request_start(frame: &[u8], api_key: i16, api_version: i16) -> Result<Message<'_>> {
    read_start(MessageKind::Request, frame, api_key, api_version).map(|(message, _)| message)
}

fn read_message(kind: MessageKind, frame: &[u8], api_key: i16, api_version: i16) -> Result<Message<'_>> {
    let (message, end) = read_start(kind, frame, api_key, api_version)?;
    if end < frame.len() {
        let definition = table::definition(kind.role(), api_key, api_version)?;
        let path = Path::new(definition, api_version);
        let error = path.error(format_args!("{} bytes remain after its end", frame.len() - end));
        return Err(error.at_position(end as u64));
    }
    Ok(message)
}

/// Reads a message off the front of a frame; returns it with its end.
fn read_start(
    kind: MessageKind,
    frame: &[u8],
    api_key: i16,
    api_version: i16,
) -> Result<(Message<'_>, usize)> {
    let definition = table::definition(kind.role(), api_key, api_version).map_err(|error| match kind {
        MessageKind::Request if error.field() == Some("requestApiKey") => error.at_position(0),
        MessageKind::Request => error.at_position(2),
        MessageKind::Response => error,
    })?;
    let (name, version) = header_of(definition, api_version);
    let (header, start) = read(table::header(name), version, frame, 0)?;
    let (body, size) = read(definition, api_version, &frame[start..], start)?;
    Ok((Message { kind, api_key, api_version, header, body }, start + size))
}

/// Writes a request or response, without the frame's size. The fields that are missing have their defaults; the
/// API and version in a request's header are those of the message.
///
/// # Errors
/// [`ErrorKind::UnsupportedVersion`] if the API or the version is not known, [`ErrorKind::InvalidMessage`] if a
/// field is not in the version, or has a value of another type or out of range.
pub fn write_message(message: &Message<'_>) -> Result<Vec<u8>> {
    let Message { kind, api_key, api_version, header, body } = message;
    let mut header = header.clone();
    if *kind == MessageKind::Request {
        header.set("requestApiKey", Value::Int((*api_key).into()));
        header.set("requestApiVersion", Value::Int((*api_version).into()));
    }
    write_parts((*kind, *api_key, *api_version), &header, body, Absent::Refused).map(|(frame, _)| frame)
}

/// Writes the header and the body of a message of this kind, API and version.
pub(crate) fn write_parts(
    (kind, api_key, api_version): (MessageKind, i16, i16),
    header: &dyn Fields,
    body: &dyn Fields,
    absent: Absent,
) -> Result<(Vec<u8>, Vec<Gap>)> {
    let definition = table::definition(kind.role(), api_key, api_version)?;
    let (name, version) = header_of(definition, api_version);
    let mut out = Vec::new();
    write(table::header(name), version, header, absent, &mut out)?;
    let gaps = write(definition, api_version, body, absent, &mut out)?;
    Ok((out, gaps))
}

impl MessageKind {
    fn role(self) -> Role {
        match self {
            Self::Request => Role::Request,
            Self::Response => Role::Response,
        }
    }
}
