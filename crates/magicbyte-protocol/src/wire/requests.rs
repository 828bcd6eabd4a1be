//! How a frame of a request is told from other bytes, by its first fields.

use magicbyte::internals::be;

use crate::message::table::{Role, definition};
use crate::wire::exchange::RequestHead;
use crate::wire::frames::MAX_FRAME_BYTES;

/// Of a frame's size, and of a request's header up to the length of the client id.
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

/// Whether a frame looks like a request: an API and a version that exist, and a client id that fits.
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

/// Whether bytes look like the size and the start of a request.
pub(crate) fn begins_request(bytes: &[u8]) -> bool {
    frame_size(bytes).is_some_and(|size| is_request(&bytes[SIZE..], size))
}

/// Whether bytes look like a record of TLS: its type and version.
pub(crate) fn is_tls(bytes: &[u8]) -> bool {
    matches!(bytes, [0x14..=0x17, 3, 0..=4, ..])
}
