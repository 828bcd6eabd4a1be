//! How keys and values are written.

use std::str::FromStr;

use crate::columns::lines::escape::push_json_string;
use crate::log::error::LogError;

/// How keys and values are written as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PayloadFormat {
    /// As text; invalid UTF-8 shows as U+FFFD.
    #[default]
    Utf8,
    /// Two hexadecimal digits per byte, in lower case.
    Hex,
    /// Base64 with padding, by RFC 4648.
    Base64,
    /// As the JSON document that it is. Other keys and values are null, and shown as text in the additional field
    /// `invalidKey` or `invalidValue`. Values of headers are text.
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
            Self::Hex => {
                out.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
            }
            Self::Base64 => push_base64(bytes, out),
        }
    }
}

fn digit(value: u8) -> u8 {
    b"0123456789abcdef"[usize::from(value & 15)]
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn push_base64(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        let sextet = |at: u32| BASE64[(bits >> (18 - 6 * at) & 63) as usize];
        let mut quad = [sextet(0), sextet(1), sextet(2), sextet(3)];
        quad[group.len() + 1..].fill(b'=');
        out.extend_from_slice(&quad);
    }
}
