//! The examples for embedders work as described.

#[allow(dead_code, reason = "main is unused here")]
#[path = "../../examples/produce.rs"]
mod produce;
#[allow(dead_code, reason = "main is unused here")]
#[path = "../../examples/read_segment.rs"]
mod read_segment;
#[allow(dead_code, reason = "main is unused here")]
#[path = "../../examples/read_socket.rs"]
mod read_socket;

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::thread;

use magicbyte::{Batch, Decompressor};

const TIMESTAMP: i64 = 1_700_000_000_000;

fn values() -> Vec<Vec<u8>> {
    (0..5000u32).map(|i| format!("value {i} {}", i.wrapping_mul(2_654_435_761)).into_bytes()).collect()
}

/// What a reader collects: the values, the first sequence of each batch, and the total size.
#[derive(Default)]
struct Seen {
    values: Vec<Vec<u8>>,
    sequences: Vec<i32>,
    bytes: usize,
}

impl Seen {
    fn take(
        &mut self,
        batch: Batch<'_>,
        decompressor: &mut Decompressor,
    ) -> Result<(), Box<dyn std::error::Error>> {
        batch.verify()?;
        let Batch::V2(v2) = batch else { panic!("magic {}", batch.magic()) };
        assert_eq!((v2.base_offset(), v2.producer_id(), v2.max_timestamp()), (0, 4711, TIMESTAMP));
        self.sequences.push(v2.base_sequence());
        self.bytes += v2.size_in_bytes();
        for record in batch.records(decompressor)? {
            self.values.push(record?.value().unwrap().to_vec());
        }
        Ok(())
    }
}

#[test]
fn produced_records_arrive() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let values = values();
    let sent = thread::scope(|scope| {
        let producer = scope.spawn(|| {
            let mut stream = TcpStream::connect(address).unwrap();
            produce::produce(&mut stream, TIMESTAMP, values.iter().map(Vec::as_slice)).unwrap()
        });
        let mut seen = Seen::default();
        let (stream, _) = listener.accept().unwrap();
        assert_eq!(read_socket::read(stream, |batch, d| seen.take(batch, d)).unwrap(), 0);
        assert_eq!(seen.values, values);
        assert!(seen.sequences.len() > 3, "{:?}", seen.sequences);
        assert!(seen.sequences.is_sorted() && seen.sequences[0] == 0);
        assert_eq!(seen.bytes, producer.join().unwrap());
        seen.bytes
    });
    assert!(sent > 24 << 10);
}

/// A reader that returns at most this many bytes per call.
struct Trickle<'a>(&'a [u8], usize);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let size = self.1.min(buffer.len());
        (&mut self.0).take(size as u64).read(buffer)
    }
}

#[test]
fn batches_may_arrive_in_pieces_and_the_last_may_be_cut() {
    let values = values();
    let mut bytes = Vec::new();
    produce::produce(&mut bytes, TIMESTAMP, values.iter().map(Vec::as_slice)).unwrap();
    let whole = {
        let mut seen = Seen::default();
        read_socket::read(&bytes[..], |batch, d| seen.take(batch, d)).unwrap();
        seen
    };
    for size in [1, 7, 4096, 1 << 20] {
        let mut seen = Seen::default();
        let cut =
            read_socket::read(Trickle(&bytes[..bytes.len() - 5], size), |b, d| seen.take(b, d)).unwrap();
        assert_eq!(seen.bytes + cut, bytes.len() - 5);
        assert_eq!(seen.sequences, whole.sequences[..whole.sequences.len() - 1]);
        assert_eq!(seen.values, whole.values[..seen.values.len()]);
    }
    // Bytes that cannot be a batch are an error at once: nothing waits for more input or allocates memory for
    // it.
    let huge = [&[0; 8][..], &[0x7f, 0xff, 0xff, 0], &[0; 4], &[2]].concat();
    assert!(read_socket::read(&huge[..], |_, _| Ok(())).unwrap_err().to_string().contains("lacks"));
    assert!(read_socket::read(&[0; 12][..], |_, _| Ok(())).is_err());
}

#[test]
fn a_segment_is_printed_to_its_cut_end() {
    let values = values();
    let mut bytes = Vec::new();
    produce::produce(&mut bytes, TIMESTAMP, values.iter().take(3).map(Vec::as_slice)).unwrap();
    let printed = |segment: &[u8]| {
        let mut out = Vec::new();
        read_segment::print(segment, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let whole = printed(&bytes);
    assert_eq!(whole.lines().count(), 3);
    assert!(whole.starts_with(&format!("0 {TIMESTAMP} null value 0 0\n")), "{whole}");
    let cut = printed(&[&bytes[..], &bytes[..50]].concat());
    assert_eq!(cut, format!("{whole}50 bytes of a cut batch at the end\n"));
}
