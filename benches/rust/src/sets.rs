//! Small sets in the shapes of `Shape` in `benches/java`, generated here so that the benchmark needs nothing
//! else. The same seed gives the same bytes.

use std::io::Write;

use flate2::write::GzEncoder;

use magicbyte::{Compression, RECORD_BATCH_OVERHEAD, crc32c, encode_varint};

use crate::pass::Found;

const FIRST_TIMESTAMP: i64 = 1_700_000_000_000;
/// Position of a batch's CRC, and of the first byte that it covers.
const CRC: usize = 17;
const ATTRIBUTES: usize = 21;
/// The chunk size of snappy-java's stream.
const SNAPPY_CHUNK: usize = 32 << 10;

#[derive(Clone, Copy)]
pub struct Shape {
    pub name: &'static str,
    batches: i64,
    records_in_batch: i64,
    value_size: usize,
    headers: i64,
}

#[rustfmt::skip]
pub const SHAPES: [Shape; 4] = [
    Shape { name: "S1", batches: 8, records_in_batch: 1000, value_size: 100, headers: 0 },
    Shape { name: "S2", batches: 5, records_in_batch: 1000, value_size: 100, headers: 3 },
    Shape { name: "S3", batches: 1, records_in_batch: 100, value_size: 10 << 10, headers: 0 },
    Shape { name: "S4", batches: 800, records_in_batch: 10, value_size: 100, headers: 0 },
];

/// About 1 MB of records, and what a reader must find in them.
pub fn set(shape: Shape, codec: Compression) -> (Vec<u8>, Found) {
    let mut random = Random(20_261_121);
    let mut data = Vec::new();
    let mut found = Found { records: 0, bytes: 0 };
    for batch in 0..shape.batches {
        let mut records = Vec::new();
        for index in 0..shape.records_in_batch {
            let offset = batch * shape.records_in_batch + index;
            let key = format!("user-{:011}", random.below(1_000_000));
            let value = value(offset, shape.value_size, &mut random);
            append_record(index, &key, &value, shape.headers, &mut records);
            found.records += 1;
            found.bytes += (key.len() + value.len()) as u64;
        }
        append_batch(batch * shape.records_in_batch, shape.records_in_batch, codec, &records, &mut data);
    }
    (data, found)
}

/// Concatenated JSON objects, cut to `size` bytes.
fn value(offset: i64, size: usize, random: &mut Random) -> String {
    let mut text = String::new();
    while text.len() < size {
        let event =
            ["click", "view", "cart", "order", "refund", "search", "login", "logout"][random.below(8)];
        let (user, amount, shop) = (random.below(1_000_000), random.below(100_000), random.below(20));
        text += &format!(
            "{{\"id\":{},\"event\":\"{event}\",\"user\":{user},\"amount\":{}.{:02},\"shop\":{shop},\
             \"currency\":\"EUR\",\"mobile\":true,\"tags\":[]}}\n",
            1_000_000 + offset,
            amount / 100,
            amount % 100,
        );
    }
    text.truncate(size);
    text
}

fn append_record(index: i64, key: &str, value: &str, headers: i64, out: &mut Vec<u8>) {
    let mut body = vec![0];
    encode_varint(10 * index, &mut body);
    encode_varint(index, &mut body);
    append_field(key, &mut body);
    append_field(value, &mut body);
    encode_varint(headers, &mut body);
    for _ in 0..headers {
        append_field("content-type", &mut body);
        append_field("application/json", &mut body);
    }
    append_field_bytes(&body, out);
}

fn append_field(field: &str, out: &mut Vec<u8>) {
    append_field_bytes(field.as_bytes(), out);
}

fn append_field_bytes(field: &[u8], out: &mut Vec<u8>) {
    encode_varint(field.len() as i64, out);
    out.extend(field);
}

fn append_batch(base_offset: i64, count: i64, codec: Compression, records: &[u8], out: &mut Vec<u8>) {
    let payload = compress(codec, records);
    let start = out.len();
    let length = (RECORD_BATCH_OVERHEAD - 12 + payload.len()) as i32;
    out.extend(base_offset.to_be_bytes());
    out.extend(length.to_be_bytes());
    out.extend((-1i32).to_be_bytes()); // partition leader epoch
    out.push(2); // magic
    out.extend(0u32.to_be_bytes()); // the CRC, set below
    out.extend((codec as i16).to_be_bytes());
    out.extend((count as i32 - 1).to_be_bytes()); // last offset delta
    out.extend(FIRST_TIMESTAMP.to_be_bytes());
    out.extend((FIRST_TIMESTAMP + 10 * (count - 1)).to_be_bytes());
    out.extend((-1i64).to_be_bytes()); // producer id
    out.extend((-1i16).to_be_bytes()); // producer epoch
    out.extend((-1i32).to_be_bytes()); // base sequence
    out.extend((count as i32).to_be_bytes());
    out.extend(payload);
    let crc = crc32c(&out[start + ATTRIBUTES..], 0);
    out[start + CRC..start + ATTRIBUTES].copy_from_slice(&crc.to_be_bytes());
}

fn compress(codec: Compression, records: &[u8]) -> Vec<u8> {
    match codec {
        Compression::None => records.to_vec(),
        Compression::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(records).expect("a Vec takes everything");
            encoder.finish().expect("a Vec takes everything")
        }
        Compression::Snappy => {
            let mut out = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01".to_vec();
            for chunk in records.chunks(SNAPPY_CHUNK) {
                let block = snap::raw::Encoder::new().compress_vec(chunk).expect("a chunk is small");
                out.extend((block.len() as u32).to_be_bytes());
                out.extend(block);
            }
            out
        }
        Compression::Lz4 => {
            let mut encoder = lz4::EncoderBuilder::new().build(Vec::new()).expect("LZ4 has memory");
            encoder.write_all(records).expect("a Vec takes everything");
            encoder.finish().0
        }
        Compression::Zstd => {
            let mut out = vec![0; zstd_safe::compress_bound(records.len())];
            let size = zstd_safe::compress(out.as_mut_slice(), records, zstd_safe::CLEVEL_DEFAULT);
            out.truncate(size.expect("the bound suffices"));
            out
        }
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as usize % bound
    }
}
