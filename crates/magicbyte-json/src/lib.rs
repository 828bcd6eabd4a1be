//! JSON text that every parser takes.
//!
//! RFC 8259 allows an escape for half of a surrogate pair, such as `"\ud800"`, and leaves to each parser what it does with
//! it. Many refuse the text, and one such value makes a whole column of JSON unreadable for them.
//!
//! ```
//! use magicbyte_json::{is_json, unpaired_surrogate};
//!
//! assert!(is_json(r#"{"a": "\ud83d\ude00"}"#));
//! assert!(!is_json(r#"{"a": "\ud83d"}"#));
//! assert_eq!(unpaired_surrogate(r#"{"a": "\ud83d"}"#), Some(7));
//! ```
#![forbid(unsafe_code)]

use serde::de::IgnoredAny;

/// True for one JSON document by the grammar of RFC 8259, of any depth and with numbers of any size, in which no escape is
/// half of a surrogate pair.
#[must_use]
pub fn is_json(text: &str) -> bool {
    // IgnoredAny checks the grammar without building anything, at any depth.
    serde_json::from_str::<IgnoredAny>(text).is_ok() && unpaired_surrogate(text).is_none()
}

/// The position of the first escape that is half of a surrogate pair, without the other half next to it.
///
/// The text may be anything; only escapes are read. Time grows with its length.
#[must_use]
pub fn unpaired_surrogate(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(distance) = memchr::memchr(b'\\', &bytes[at..]) {
        at += distance;
        at += match (unit(bytes, at), unit(bytes, at + 6)) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => 12,
            (Some(0xd800..0xe000), _) => return Some(at),
            // With what is escaped, which may be a backslash.
            _ => (bytes.len() - at).min(2),
        };
    }
    None
}

/// The unit of UTF-16 that an escape at this position is.
fn unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(br"\u")?;
    digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)? as u16))
}

#[cfg(test)]
mod tests {
    use super::{is_json, unpaired_surrogate};

    #[test]
    fn halves_of_pairs_are_found() {
        for (text, position) in [
            (r#""\ud800""#, Some(1)),
            (r#""\udc00""#, Some(1)),
            (r#""\uD800\uD800""#, Some(1)),
            (r#""\udc00\ud800""#, Some(1)),
            (r#""\ud800a\udc00""#, Some(1)),
            (r#""\ud83d\ude00\udfff""#, Some(13)),
            (r#"{"a":[{"\\\ud83d":1}]}"#, Some(10)),
            (r#""\uDBFF\uDFFF\ud7ff\ue000\u0000""#, None),
            (r#""\\ud800\"\\""#, None),
            (r"\ud80", None),
            (r"\ud800", Some(0)),
            (r"\u+800", None),
            ("\\", None),
            (r"é\uD9é", None),
        ] {
            assert_eq!(unpaired_surrogate(text), position, "{text}");
        }
    }

    #[test]
    fn the_grammar_is_that_of_the_rfc() {
        let deep = "[".repeat(3000) + &"]".repeat(3000);
        for text in
            ["1e400", "-0", &"1".repeat(5000), &deep, " {} ", "\"\u{ffff}\u{7f}\"", r#"{"a":1,"a":2}"#]
        {
            assert!(is_json(text), "{text:.20}");
        }
        for text in ["", "NaN", "01", "1.", "1 2", "[1,]", "\"\t\"", "\u{feff}{}", r#""\ud800""#] {
            assert!(!is_json(text), "{text}");
        }
    }
}
