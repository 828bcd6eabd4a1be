//! The tokens of a Protobuf file, for texts that the parser does not take as they are.

use std::ops::Range;

pub(super) fn is_letter(letter: char) -> bool {
    letter.is_ascii_alphabetic() || letter == '_'
}

fn is_of_name(letter: char) -> bool {
    is_letter(letter) || letter.is_ascii_digit()
}

/// The words, strings and signs of a text, without its comments.
pub(super) struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self { text, at: 0 }
    }
}

impl Iterator for Tokens<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        loop {
            let rest = &self.text[self.at..];
            let first = rest.chars().next()?;
            let size = if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else if let Some(comment) = rest.strip_prefix("/*") {
                comment.find("*/").map_or(rest.len(), |end| end + 4)
            } else if first.is_whitespace() || first == '\u{feff}' {
                first.len_utf8()
            } else {
                let size = token(rest, first);
                let start = self.at;
                self.at += size;
                return Some(start..self.at);
            };
            self.at += size;
        }
    }
}

/// The size of the token that the text begins with.
fn token(rest: &str, first: char) -> usize {
    if is_of_name(first) {
        return rest.find(|letter| !is_of_name(letter)).unwrap_or(rest.len());
    }
    if !matches!(first, '"' | '\'') {
        return first.len_utf8();
    }
    let mut escaped = true;
    for (at, letter) in rest.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if letter == first => return at + 1,
            _ => {}
        }
    }
    rest.len()
}
