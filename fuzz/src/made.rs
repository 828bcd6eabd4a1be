//! Valid batches of any content: lengths and checksums are computed, everything else is given.

/// Sets the length and CRC of a batch. It has at least 26 bytes, and its magic in place.
pub fn seal(batch: &mut [u8]) {
    let length = (batch.len() - 12) as i32;
    batch[8..12].copy_from_slice(&length.to_be_bytes());
    if matches!(batch[16], 2 | 3) {
        if let Some(covered) = batch.get(21..) {
            let crc = crc32c::crc32c(covered);
            batch[17..21].copy_from_slice(&crc.to_be_bytes());
        }
    } else {
        let crc = crc32fast::hash(&batch[16..]);
        batch[12..16].copy_from_slice(&crc.to_be_bytes());
    }
}

/// A batch of magic 2 with these attributes.
pub fn batch(base_offset: i64, attributes: u8, records: i32, base_timestamp: i64, payload: &[u8]) -> Vec<u8> {
    let mut out = base_offset.to_be_bytes().to_vec();
    out.extend([0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, attributes]);
    out.extend((records - 1).to_be_bytes());
    out.extend(base_timestamp.to_be_bytes());
    out.extend((base_timestamp + i64::from(records) - 1).to_be_bytes());
    // No producer.
    out.extend([0xff; 14]);
    out.extend(records.to_be_bytes());
    out.extend(payload);
    seal(&mut out);
    out
}

/// A record of magic 2, with one header unless `header` is empty.
pub fn record(delta: i64, key: &[u8], value: &[u8], header: &[u8]) -> Vec<u8> {
    let mut body = vec![0];
    magicbyte::encode_varint(delta, &mut body);
    magicbyte::encode_varint(delta, &mut body);
    sized(key, &mut body);
    sized(value, &mut body);
    magicbyte::encode_varint((!header.is_empty()).into(), &mut body);
    if !header.is_empty() {
        sized(b"h", &mut body);
        sized(header, &mut body);
    }
    let mut out = Vec::new();
    sized(&body, &mut out);
    out
}

fn sized(data: &[u8], out: &mut Vec<u8>) {
    magicbyte::encode_varint(data.len() as i64, out);
    out.extend(data);
}

/// A message of magic 0 or 1 without a key.
pub fn message(offset: i64, magic: u8, attributes: u8, timestamp: i64, value: &[u8]) -> Vec<u8> {
    let mut out = offset.to_be_bytes().to_vec();
    out.extend([0, 0, 0, 0, 0, 0, 0, 0, magic, attributes]);
    if magic == 1 {
        out.extend(timestamp.to_be_bytes());
    }
    out.extend((-1i32).to_be_bytes());
    out.extend((value.len() as i32).to_be_bytes());
    out.extend(value);
    seal(&mut out);
    out
}

/// One raw Snappy block.
pub fn snappy(data: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(data).unwrap()
}

/// Pseudo-random bytes for this seed.
pub fn noise(seed: u64, size: usize) -> Vec<u8> {
    let mut state = seed;
    (0..size)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect()
}
