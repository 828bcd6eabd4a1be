//! What a client sends to a read-only broker.

use magicbyte_log::{Listing, PartitionLog};
use magicbyte_protocol::message::read_response;
use magicbyte_protocol::wire::FrameDecoder;
use magicbyte_serve::{ReadOnlyBroker, ServeOptions};

use super::made::{batch, message, record};
use super::scratch::Scratch;

const API_VERSIONS: i16 = 18;
/// Larger frames close a connection.
const LARGEST: usize = 1 << 20;

thread_local! {
    static SERVED: Served = Served::new();
}

/// A partition `t-0` with batches of magic 1 and 2, and damage.
struct Served {
    listing: Listing,
    _scratch: Scratch,
}

impl Served {
    fn new() -> Self {
        let scratch = Scratch::new();
        let mut segment = message(0, 1, 0, 1000, b"old");
        for offset in [1, 2, 3] {
            segment.extend(batch(offset, 0, 1, 1000 + offset, &record(0, b"key", b"value", b"")));
        }
        let damaged = segment.len() - 80;
        segment[damaged] ^= 1;
        scratch.segment(&segment);
        let log = PartitionLog::open(scratch.partition()).unwrap();
        Self { listing: log.listing().clone(), _scratch: scratch }
    }
}

/// The bytes as one connection's: each request is answered by a response to it, or closes the connection.
pub fn serve_request(data: &[u8]) {
    let (to_magic_2, follow) = (data.len() % 2 == 1, data.len() % 4 > 1);
    let options = ServeOptions { to_magic_2, follow, ..ServeOptions::default() };
    let broker = SERVED.with(|served| ReadOnlyBroker::new(vec![served.listing.clone()], options));
    // Nothing waits.
    broker.stop();
    let mut frames = FrameDecoder::new(LARGEST);
    frames.push(data);
    while let Ok(Some(frame)) = frames.next_frame() {
        let Ok(answer) = broker.handle(frame) else { return };
        let Some(answer) = answer else { continue };
        let (key, version) =
            (i16::from_be_bytes([frame[0], frame[1]]), i16::from_be_bytes([frame[2], frame[3]]));
        let response = read_response(&answer, key, version).expect("a broker answers what it was asked");
        assert_eq!(answer[..4], frame[4..8], "the correlation id");
        // Also an unknown version of ApiVersions, with the versions that are served (KIP-511).
        assert!(response.api_version == version || key == API_VERSIONS);
    }
}
