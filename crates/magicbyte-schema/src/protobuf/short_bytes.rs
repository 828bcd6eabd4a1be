//! Bytes of which most are few: 4 to 16 of them are one number, which takes no call and no loop.

/// Appends to `data`, which takes no call for the short values that most are.
#[inline]
pub(super) fn append(data: &mut Vec<u8>, value: &[u8]) {
    match word(value) {
        Some(word) => {
            let end = data.len() + value.len();
            data.extend_from_slice(&word.to_le_bytes());
            data.truncate(end);
        }
        None => data.extend_from_slice(value),
    }
}

/// True if bytes are ASCII, as most text is.
#[inline]
pub(super) fn is_ascii(bytes: &[u8]) -> bool {
    match word(bytes) {
        Some(word) => word & (u128::MAX / 0xff * 0x80) == 0,
        None => bytes.is_ascii(),
    }
}

/// Bytes as a number, the first of them lowest, if they are 4 to 16.
#[inline]
fn word(bytes: &[u8]) -> Option<u128> {
    let size = bytes.len();
    if size > 16 {
        return None;
    }
    // The last bytes come after the first ones, those that are of both twice.
    if let (Some(&first), Some(&last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let last = u128::from(u64::from_le_bytes(last)) << (8 * (size - 8));
        return Some(u128::from(u64::from_le_bytes(first)) | last);
    }
    let (&first, &last) = (bytes.first_chunk()?, bytes.last_chunk()?);
    let last = u64::from(u32::from_le_bytes(last)) << (8 * (size - 4));
    Some((u64::from(u32::from_le_bytes(first)) | last).into())
}

#[cfg(test)]
mod tests {
    use super::{append, is_ascii};

    #[test]
    fn short_and_long_bytes() {
        let text: Vec<u8> = (b'a'..=b'z').collect();
        let mut data = Vec::new();
        for size in 0..text.len() {
            data.truncate(3);
            let before = data.len();
            append(&mut data, &text[..size]);
            assert_eq!(&data[before..], &text[..size]);
            assert!(is_ascii(&text[..size]));
            for position in 0..size {
                let mut text = text[..size].to_vec();
                text[position] |= 0x80;
                assert!(!is_ascii(&text), "byte {position} of {size}");
            }
        }
    }
}
