//! Text of others, written so that it ends no line and no string, and controls no terminal: invisible characters
//! are escaped. These are controls, line ends, changes of direction, and spaces other than U+0020.

use std::fmt::{Arguments, Write};

/// Appends a JSON string. Invalid UTF-8 becomes U+FFFD.
pub(super) fn push_json_string(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    STRING.push(bytes, out);
    out.push(b'"');
}

/// Appends a JSON document, which is valid: its line ends and tabs, which are only between its tokens, become
/// spaces.
pub(super) fn push_json_document(document: &str, out: &mut Vec<u8>) {
    DOCUMENT.push_text(document, out);
}

/// Appends text. Invalid UTF-8 becomes U+FFFD, and if only visible characters are wanted, others are escaped as in
/// Python: `\x1b`, `\n`, `\u202e`.
pub(super) fn push_text_of(bytes: &[u8], visible: bool, out: &mut Vec<u8>) {
    if visible {
        TEXT.push(bytes, out);
    } else {
        out.extend_from_slice(String::from_utf8_lossy(bytes).as_bytes());
    }
}

/// The rules for escaping a text.
struct Escapes {
    /// The fate of each byte: the byte itself, the two bytes that replace it, or a `LOOK` at its character.
    fates: [[u8; 2]; 256],
    /// True if `"` and `\` are escaped.
    quotes: bool,
    /// Appends the escape of an invisible character.
    escape: fn(char, &mut Vec<u8>),
}

/// The second byte of a fate, if the byte is copied.
const COPIED: u8 = 0;
const LOOK: u8 = 0x80;

const VISIBLE: [[u8; 2]; 256] = {
    let mut fates = [[0, LOOK]; 256];
    let mut byte = b' ';
    while byte < 0x7f {
        fates[byte as usize] = [byte, COPIED];
        byte += 1;
    }
    fates
};

static STRING: Escapes = Escapes {
    fates: {
        let mut fates = VISIBLE;
        let letters = *b"\"\"\\\\\nn\rr\tt\x08b\x0cf";
        let mut at = 0;
        while at < letters.len() {
            fates[letters[at] as usize] = [b'\\', letters[at + 1]];
            at += 2;
        }
        fates
    },
    quotes: true,
    escape: push_units,
};

static DOCUMENT: Escapes = Escapes { fates: VISIBLE, quotes: false, escape: document_escape };
static TEXT: Escapes = Escapes { fates: VISIBLE, quotes: false, escape: visible_escape };

impl Escapes {
    /// Appends text. Invalid UTF-8 becomes U+FFFD.
    fn push(&self, bytes: &[u8], out: &mut Vec<u8>) {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.push_text(text, out),
            Err(_) => {
                for chunk in bytes.utf8_chunks() {
                    self.push_text(chunk.valid(), out);
                    if !chunk.invalid().is_empty() {
                        out.extend_from_slice("\u{fffd}".as_bytes());
                    }
                }
            }
        }
    }

    fn push_text(&self, text: &str, out: &mut Vec<u8>) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if let Some(block) = bytes[at..].first_chunk::<BLOCK>()
                && is_plain(block, self.quotes)
            {
                out.extend_from_slice(block);
                at += BLOCK;
            } else if self.push_ascii(&bytes[at..bytes.len().min(at + BLOCK)], out) {
                at += BLOCK;
            } else {
                at += self.push_characters(&text[at..], out);
            }
        }
    }

    /// Appends a block of at most `BLOCK` bytes; nothing, and false, if there is a byte to look at.
    #[inline]
    fn push_ascii(&self, block: &[u8], out: &mut Vec<u8>) -> bool {
        if !block.is_ascii() {
            return false;
        }
        let end = out.len();
        out.extend_from_slice(&[0; 2 * BLOCK]);
        let Some(escaped) = out.last_chunk_mut::<{ 2 * BLOCK }>() else { return false };
        let (mut length, mut seen) = (0, 0);
        for &byte in block {
            // Without branches: in JSON that holds JSON, they could not be predicted. What follows a byte that is
            // copied is overwritten.
            let fate = self.fates[usize::from(byte)];
            seen |= fate[1];
            if let Some(pair) = escaped.get_mut(length..length + 2) {
                pair.copy_from_slice(&fate);
            }
            length += 1 + usize::from(fate[1] != COPIED);
        }
        let is_whole = seen & LOOK == 0;
        out.truncate(if is_whole { end + length } else { end });
        is_whole
    }

    /// Appends at least `BLOCK` bytes, or all, character by character; returns how many.
    fn push_characters(&self, text: &str, out: &mut Vec<u8>) -> usize {
        let mut copied = 0;
        let mut end = text.len();
        for (at, character) in text.char_indices() {
            if at >= BLOCK {
                end = at;
                break;
            }
            let fate = if character.is_ascii() { self.fates[character as usize] } else { [0, LOOK] };
            if fate[1] == COPIED || !character.is_ascii() && is_visible(character) {
                continue;
            }
            out.extend_from_slice(&text.as_bytes()[copied..at]);
            copied = at + character.len_utf8();
            if fate[1] == LOOK {
                (self.escape)(character, out);
            } else {
                out.extend_from_slice(&fate);
            }
        }
        out.extend_from_slice(&text.as_bytes()[copied..end]);
        end
    }
}

/// Bytes that are written together.
const BLOCK: usize = 16;

/// True if none of the bytes is escaped.
fn is_plain(block: &[u8; BLOCK], quotes: bool) -> bool {
    // Without branches, the comparisons are made in vectors.
    let escaped = |byte: &u8| {
        u8::from(!(b' '..0x7f).contains(byte))
            | u8::from(quotes) & (u8::from(*byte == b'"') | u8::from(*byte == b'\\'))
    };
    block.iter().map(escaped).fold(0, |any, mark| any | mark) == 0
}

/// True if a character that is not ASCII is shown as itself, as by Python's `str.isprintable` and Rust's `Debug`.
fn is_visible(character: char) -> bool {
    match character {
        // The letters of most texts need no search.
        '\u{a1}'..='\u{ac}'
        | '\u{ae}'..='\u{377}'
        | '\u{400}'..='\u{52f}'
        | '\u{3041}'..='\u{3096}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}' => true,
        _ => {
            // After another character, only what is not printable is escaped.
            let mut text = [b'x'; 5];
            let end = 1 + character.encode_utf8(&mut text[1..]).len();
            std::str::from_utf8(&text[..end]).is_ok_and(|text| text.escape_debug().nth(1) != Some('\\'))
        }
    }
}

fn document_escape(character: char, out: &mut Vec<u8>) {
    if character < ' ' {
        out.push(b' ');
    } else {
        push_units(character, out);
    }
}

/// JSON's escape of any character.
fn push_units(character: char, out: &mut Vec<u8>) {
    for unit in character.encode_utf16(&mut [0; 2]) {
        push_formatted(format_args!("\\u{unit:04x}"), out);
    }
}

fn visible_escape(character: char, out: &mut Vec<u8>) {
    match character {
        '\n' => out.extend_from_slice(b"\\n"),
        '\r' => out.extend_from_slice(b"\\r"),
        '\t' => out.extend_from_slice(b"\\t"),
        '\0'..='\u{ff}' => push_formatted(format_args!("\\x{:02x}", u32::from(character)), out),
        '\u{100}'..='\u{ffff}' => push_formatted(format_args!("\\u{:04x}", u32::from(character)), out),
        _ => push_formatted(format_args!("\\U{:08x}", u32::from(character)), out),
    }
}

fn push_formatted(text: Arguments<'_>, out: &mut Vec<u8>) {
    // Writing to a String cannot fail.
    let mut formatted = String::new();
    let _ = formatted.write_fmt(text);
    out.extend_from_slice(formatted.as_bytes());
}
