//! Formats of keys and values.

use std::str::FromStr;

use base64::prelude::{BASE64_STANDARD, Engine as _};

use magicbyte_log::LogError;

use crate::lines::escape::push_json_string;

/// The format in which keys and values are written as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PayloadFormat {
    /// Text; invalid UTF-8 shows as U+FFFD.
    #[default]
    Utf8,
    /// Two hexadecimal digits per byte, in lower case.
    Hex,
    /// Base64 with padding, by RFC 4648.
    Base64,
    /// The JSON document that the bytes are. Other keys and values are null, and shown in the additional field `invalidKey`
    /// or `invalidValue`: as text, or in JSON lines as an object with their `base64` if they are not UTF-8. Values of
    /// headers are text.
    Json,
}

impl FromStr for PayloadFormat {
    type Err = LogError;

    fn from_str(name: &str) -> Result<Self, LogError> {
        match name {
            "utf-8" => Ok(Self::Utf8),
            "hex" => Ok(Self::Hex),
            "base64" => Ok(Self::Base64),
            "json" => Ok(Self::Json),
            other => Err(LogError::Usage(format!(
                "keys and values are written as utf-8, hex, base64 or json, not {other:?}"
            ))),
        }
    }
}

impl PayloadFormat {
    /// Appends a JSON string. JSON is text here: only columns of documents are embedded.
    pub(super) fn push_json(self, bytes: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Utf8 | Self::Json => push_json_string(bytes, out),
            Self::Hex | Self::Base64 => {
                out.push(b'"');
                self.push_digits(bytes, out);
                out.push(b'"');
            }
        }
    }

    /// Appends the bytes in hexadecimal or base64; as they are, if they are written as text.
    pub(super) fn push_digits(self, bytes: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Utf8 | Self::Json => out.extend_from_slice(bytes),
            Self::Hex => push_hex(bytes, out),
            Self::Base64 => push_base64(bytes, out),
        }
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

fn push_hex(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + 2 * bytes.len(), 0);
    for (digits, byte) in out[start..].as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
        *digits = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
    }
}

fn push_base64(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    let written = BASE64_STANDARD.encode_slice(bytes, &mut out[start..]);
    debug_assert_eq!(written, Ok(out.len() - start));
}
