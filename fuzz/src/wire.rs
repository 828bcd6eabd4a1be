//! Captures, and the messages in them.

use std::io::Cursor;

use magicbyte_protocol::message::{MessageKind, read_request, read_response, write_message};
use magicbyte_protocol::wire::{Exchange, Exchanges, record_sets};

/// The bytes as a capture file; then each of its packets twice, which changes nothing unless bytes are lost.
pub fn wire_stream(data: &[u8]) {
    let Some((found, lost)) = exchanges(data) else { return };
    for exchange in &found {
        if let Some(Ok(message)) = exchange.request.as_deref().map(read_request) {
            let _ = record_sets(&message);
        }
        if let (Some(frame), Some(head)) = (&exchange.response, exchange.head)
            && let Ok(message) = read_response(frame, head.api_key, head.api_version)
        {
            let bytes: usize = record_sets(&message).iter().map(|set| set.bytes.len()).sum();
            assert!(bytes <= frame.len());
        }
    }
    if let Some(twice) = repeated(data) {
        let (again, lost_again) = exchanges(&twice).expect("the same header");
        // More packets are waited for, so that something else may be given up.
        if (lost, lost_again) == (0, 0) {
            assert_eq!(frames(&found), frames(&again));
        }
    }
}

/// The exchanges, and how many bytes were lost.
fn exchanges(data: &[u8]) -> Option<(Vec<Exchange>, u64)> {
    let mut exchanges = Exchanges::of_capture(Box::new(Cursor::new(data.to_vec())), vec![]).ok()?;
    let found: Vec<_> = exchanges.by_ref().map(Result::unwrap).collect();
    let bytes: usize =
        found.iter().flat_map(|one| [&one.request, &one.response]).flatten().map(Vec::len).sum();
    assert!(bytes <= data.len());
    Some((found, exchanges.summary().lost_bytes))
}

/// A request and its response.
type Frames<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

fn frames(found: &[Exchange]) -> Vec<Frames<'_>> {
    found.iter().map(|one| (one.request.as_deref(), one.response.as_deref())).collect()
}

/// A pcap file of packets without a link layer, each of them twice.
fn repeated(data: &[u8]) -> Option<Vec<u8>> {
    let (header, mut rest) = data.split_at_checked(24)?;
    if header[..4] != 0xa1b2_c3d4u32.to_le_bytes() {
        return None;
    }
    let mut twice = header.to_vec();
    while let Some(size) = rest.get(8..12) {
        let size = u32::from_le_bytes(size.try_into().unwrap()) as usize;
        let packet = rest.get(..16usize.checked_add(size)?)?;
        // A second SYN or FIN may belong to another connection.
        let flags = packet.get(16 + 33)?;
        twice.extend(packet);
        if flags % 8 == 0 {
            twice.extend(packet);
        }
        rest = &rest[packet.len()..];
    }
    Some(twice)
}

/// Any bytes as a message of any API: what was read is written and read again.
pub fn message(data: &[u8]) {
    let Some((&[choice, key, version], frame)) = data.split_first_chunk() else { return };
    let read = match choice % 2 {
        0 => read_request(frame),
        _ => read_response(frame, i16::from(key as i8), i16::from(version as i8)),
    };
    let Ok(message) = read else { return };
    let _ = record_sets(&message);
    let written = write_message(&message).expect("what was read can be written");
    let again = match message.kind {
        MessageKind::Request => read_request(&written),
        MessageKind::Response => read_response(&written, message.api_key, message.api_version),
    };
    let again = again.expect("what was written can be read");
    // NaN differs from itself.
    assert_eq!(format!("{:?}", again.body), format!("{:?}", message.body));
}
