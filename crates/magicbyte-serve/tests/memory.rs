//! Requests with as many elements as fit into them take memory in proportion to their bytes.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use magicbyte_serve::{ReadOnlyBroker, ServeOptions};
use magicbyte_testing::memory::{Counting, measured};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The factor by which `serve` reserves memory for the values of a request.
const FACTOR: usize = 200;
const ELEMENTS: usize = 100_000;

/// A request of a flexible version, with one array of structures or strings.
fn request(api_key: i16, version: i16, start: &[u8], element_end: &[u8], end: &[u8]) -> Vec<u8> {
    let mut frame = [api_key.to_be_bytes(), version.to_be_bytes()].concat();
    frame.extend([0, 0, 0, 7, 0xff, 0xff, 0]);
    frame.extend(start);
    // The number of elements plus one, as a varint.
    frame.extend([0xa1, 0x8d, 0x06]);
    for number in 0..ELEMENTS {
        frame.push(6);
        frame.extend(format!("{number:05}").bytes());
        frame.extend(element_end);
    }
    frame.extend(end);
    frame
}

#[test]
fn arrays_of_short_names() {
    let broker = ReadOnlyBroker::new(Vec::new(), ServeOptions::default());
    let requests = [
        ("Produce", request(0, 9, &[0, 0, 1, 0, 0, 0, 0], &[1, 0], &[0])),
        ("Metadata", request(3, 9, &[], &[0], &[0, 0, 0, 0])),
        ("OffsetFetch", request(9, 8, &[], &[0, 0], &[0, 0])),
        ("FindCoordinator", request(10, 4, &[0], &[], &[0])),
        ("LeaveGroup", request(13, 4, &[2, b'g'], &[0, 0], &[0])),
        ("DescribeGroups", request(15, 5, &[], &[], &[0, 0])),
        ("DescribeTopicPartitions", request(75, 0, &[], &[0], &[0, 0, 7, 208, 0xff, 0])),
    ];
    for (name, request) in requests {
        let (response, peak) = measured(|| broker.handle(&request));
        let size = response.unwrap().unwrap().len();
        assert!(size > ELEMENTS * 6, "{name}: all elements are in the response of {size} bytes");
        assert!(peak < FACTOR * request.len(), "{name}: {peak} bytes for a request of {}", request.len());
    }
}
