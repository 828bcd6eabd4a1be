//! Kafka's text form of a UUID: 22 characters of URL-safe base64 without padding (`Uuid.toString`).

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The text of a UUID.
#[cfg(any(feature = "python", test))]
pub(crate) fn to_text(uuid: [u8; 16]) -> String {
    // 132 bits: the UUID, then four that are zero.
    let bits = u128::from_be_bytes(uuid);
    let digit = |index: u32| match 122u32.checked_sub(6 * index) {
        Some(shift) => (bits >> shift) as u8 & 63,
        None => (bits << 4) as u8 & 63,
    };
    (0..22).map(|index| char::from(ALPHABET[usize::from(digit(index))])).collect()
}

/// The UUID of a text; `None` if it is not one.
pub(crate) fn from_text(text: &[u8]) -> Option<[u8; 16]> {
    let (last, digits) = text.split_last().filter(|_| text.len() == 22)?;
    let value = |byte: &u8| ALPHABET.iter().position(|one| one == byte).map(|at| at as u128);
    let mut bits = 0u128;
    for digit in digits {
        bits = bits << 6 | value(digit)?;
    }
    let last = value(last).filter(|digit| digit.trailing_zeros() >= 4)?;
    Some((bits << 2 | last >> 4).to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        // As Kafka's Uuid prints them: ZERO, METADATA_TOPIC_ID (ONE), and all bits.
        assert_eq!(to_text([0; 16]), "AAAAAAAAAAAAAAAAAAAAAA");
        assert_eq!(to_text(1u128.to_be_bytes()), "AAAAAAAAAAAAAAAAAAAAAQ");
        assert_eq!(to_text([0xff; 16]), "_____________________w");
        for bits in (0..128).map(|bit| 1u128 << bit).chain([u128::MAX / 3, u128::MAX / 7 * 2]) {
            let uuid = bits.to_be_bytes();
            assert_eq!(from_text(to_text(uuid).as_bytes()), Some(uuid));
        }
        for wrong in ["", "AAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAB", "AAAAAAAAAAAAAAAAAAAA+Q"] {
            assert_eq!(from_text(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
