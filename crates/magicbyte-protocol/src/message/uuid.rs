//! Kafka's text form of a UUID: 22 characters of URL-safe base64 without padding (`Uuid.toString`).

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};

/// The text of a UUID.
#[doc(hidden)]
#[must_use]
pub fn to_text(uuid: [u8; 16]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(uuid)
}

/// The UUID of a text; `None` if it is not one.
#[doc(hidden)]
#[must_use]
pub fn from_text(text: &[u8]) -> Option<[u8; 16]> {
    let mut uuid = [0; 16];
    let length = BASE64_URL_SAFE_NO_PAD.decode_slice(text, &mut uuid).ok()?;
    (length == uuid.len()).then_some(uuid)
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
