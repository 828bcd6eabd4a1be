//! Which header precedes a body (`ApiMessageType.requestHeaderVersion` and `responseHeaderVersion`).

use crate::message::table::{Definition, Role};

const CONTROLLED_SHUTDOWN: i16 = 7;
pub(crate) const API_VERSIONS: i16 = 18;

/// The header's name in the table, and its version.
pub(crate) fn header_of(body: &Definition, version: i16) -> (&'static str, i16) {
    let flexible = i16::from(body.is_flexible(version));
    match (body.role, body.api_key) {
        // The only request without a client id.
        (Role::Request, Some(CONTROLLED_SHUTDOWN)) if version == 0 => ("RequestHeader", 0),
        (Role::Request, _) => ("RequestHeader", 1 + flexible),
        // Its client does not know yet what the broker supports (KIP-511).
        (_, Some(API_VERSIONS)) => ("ResponseHeader", 0),
        _ => ("ResponseHeader", flexible),
    }
}
