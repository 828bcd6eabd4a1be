//! Detection of request frames among other bytes, by their first fields.

use magicbyte::internals::be;

use crate::message::table::{Role, definition};
use crate::wire::exchange::RequestHead;
use crate::wire::frames::MAX_FRAME_BYTES;

/// The size in bytes of a frame's length field, and of a request header up to the length of the client id.
const SIZE: usize = 4;
const HEADER: usize = 10;

/// The API, the version and the correlation id of a request.
pub(crate) fn request_head(frame: &[u8]) -> Option<RequestHead> {
    (frame.len() >= 8).then(|| RequestHead {
        api_key: be!(frame, 0, i16),
        api_version: be!(frame, 2, i16),
        correlation_id: be!(frame, 4, i32),
    })
}

/// The length of a frame with its size before it, if it is one that a peer could send.
pub(crate) fn frame_size(bytes: &[u8]) -> Option<usize> {
    let size = be!(bytes.get(..SIZE)?, 0, i32);
    usize::try_from(size).ok().filter(|&size| size <= MAX_FRAME_BYTES)
}

/// True if a frame looks like a request: the API and the version exist, and the client id fits.
pub(crate) fn is_request(frame: &[u8], size: usize) -> bool {
    let Some(head) = request_head(frame).filter(|_| frame.len() >= HEADER && size >= HEADER) else {
        return false;
    };
    let client_id = be!(frame, 8, i16);
    // The first request of Java clients from 0.10 to 2.0 has -1, if they authenticate.
    head.correlation_id >= -1
        && (-1..=(size - HEADER) as i64).contains(&i64::from(client_id))
        && definition(Role::Request, head.api_key, head.api_version).is_ok()
}

/// True if bytes look like the size and the start of a request.
pub(crate) fn begins_request(bytes: &[u8]) -> bool {
    frame_size(bytes).is_some_and(|size| is_request(&bytes[SIZE..], size))
}

/// True if bytes look like a TLS record: they begin with its type and version.
pub(crate) fn is_tls(bytes: &[u8]) -> bool {
    matches!(bytes, [0x14..=0x17, 3, 0..=4, ..])
}
