//! Text of others, written so that it ends no line and no string, and controls no terminal: invisible characters
//! are escaped. These are controls, line ends, changes of direction, and spaces other than U+0020.

use std::fmt::Write;

/// Appends a JSON string. Invalid UTF-8 becomes U+FFFD.
pub(super) fn push_json_string(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    push_escaped(bytes, &JSON_ESCAPED, json_escape, out);
    out.push(b'"');
}

/// Appends a JSON document, which is valid: its line ends and tabs, which are only between its tokens, become
/// spaces.
pub(super) fn push_json_document(document: &str, out: &mut Vec<u8>) {
    push_text(document, &INVISIBLE, document_escape, out);
}

/// Appends text. Invalid UTF-8 becomes U+FFFD, and if only visible characters are wanted, others are escaped as in
/// Python: `\x1b`, `\n`, `\u202e`.
pub(super) fn push_text_of(bytes: &[u8], visible: bool, out: &mut Vec<u8>) {
    if visible {
        push_escaped(bytes, &INVISIBLE, visible_escape, out);
    } else {
        out.extend_from_slice(String::from_utf8_lossy(bytes).as_bytes());
    }
}

/// By byte: whether it cannot be copied without a look at it.
type Marks = [bool; 256];

const JSON_ESCAPED: Marks = {
    let mut marks = invisible_ascii();
    marks[b'"' as usize] = true;
    marks[b'\\' as usize] = true;
    marks
};

const INVISIBLE: Marks = invisible_ascii();

/// Marks everything but visible ASCII.
const fn invisible_ascii() -> Marks {
    let mut marks = [true; 256];
    let mut byte = b' ';
    while byte < 0x7f {
        marks[byte as usize] = false;
        byte += 1;
    }
    marks
}

type Escape = fn(char, &mut Vec<u8>);

fn push_escaped(bytes: &[u8], marks: &Marks, escape: Escape, out: &mut Vec<u8>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => push_text(text, marks, escape, out),
        Err(_) => {
            for chunk in bytes.utf8_chunks() {
                push_text(chunk.valid(), marks, escape, out);
                if !chunk.invalid().is_empty() {
                    out.extend_from_slice("\u{fffd}".as_bytes());
                }
            }
        }
    }
}

/// Copies runs of characters, and escapes those between them.
fn push_text(text: &str, marks: &Marks, escape: Escape, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    let (mut copied, mut at) = (0, 0);
    loop {
        at += unmarked(&bytes[at..], marks);
        let Some(one) = text[at..].chars().next() else { break };
        let end = at + one.len_utf8();
        if one.is_ascii() || !is_visible(one) {
            out.extend_from_slice(&bytes[copied..at]);
            escape(one, out);
            copied = end;
        }
        at = end;
    }
    out.extend_from_slice(&bytes[copied..]);
}

/// How many bytes precede the first one that is marked.
#[inline]
fn unmarked(bytes: &[u8], marks: &Marks) -> usize {
    bytes.iter().position(|byte| marks[usize::from(*byte)]).unwrap_or(bytes.len())
}

/// Whether a character that is not ASCII shows as one: as Python's `str.isprintable`, and Rust's `Debug`.
fn is_visible(one: char) -> bool {
    match one {
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
            let end = 1 + one.encode_utf8(&mut text[1..]).len();
            std::str::from_utf8(&text[..end]).is_ok_and(|text| text.escape_debug().nth(1) != Some('\\'))
        }
    }
}

#[cold]
fn json_escape(one: char, out: &mut Vec<u8>) {
    let short = match one {
        '"' => b'"',
        '\\' => b'\\',
        '\n' => b'n',
        '\r' => b'r',
        '\t' => b't',
        '\u{8}' => b'b',
        '\u{c}' => b'f',
        other => return push_units(other, out),
    };
    out.extend_from_slice(&[b'\\', short]);
}

#[cold]
fn document_escape(one: char, out: &mut Vec<u8>) {
    if one < ' ' {
        out.push(b' ');
    } else {
        push_units(one, out);
    }
}

/// JSON's escape of any character.
fn push_units(one: char, out: &mut Vec<u8>) {
    for unit in one.encode_utf16(&mut [0; 2]) {
        push_formatted(format_args!("\\u{unit:04x}"), out);
    }
}

#[cold]
fn visible_escape(one: char, out: &mut Vec<u8>) {
    match one {
        '\n' => out.extend_from_slice(b"\\n"),
        '\r' => out.extend_from_slice(b"\\r"),
        '\t' => out.extend_from_slice(b"\\t"),
        '\0'..='\u{ff}' => push_formatted(format_args!("\\x{:02x}", u32::from(one)), out),
        '\u{100}'..='\u{ffff}' => push_formatted(format_args!("\\u{:04x}", u32::from(one)), out),
        _ => push_formatted(format_args!("\\U{:08x}", u32::from(one)), out),
    }
}

fn push_formatted(text: std::fmt::Arguments<'_>, out: &mut Vec<u8>) {
    // Writing to a String cannot fail.
    let mut formatted = String::new();
    let _ = formatted.write_fmt(text);
    out.extend_from_slice(formatted.as_bytes());
}
